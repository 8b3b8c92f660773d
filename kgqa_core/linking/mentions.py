"""The mention dictionary of a graph: folded name → entities, with what is known of names before any text is read.

Files of the artifact, all memory-mapped:

    names.bin, names.offsets.npy      folded names, sorted by their bytes: a name's number is its place
    names.flags.npy       uint8 [names]      what kind of words a name is made of (FUNCTION, RELATION, …)
    names.usual.npy       uint8 [names]      how usual its rarest word is in English text: 0 unknown, 255 the most usual
    names.within.npy      int32 [names]      in how many other names it occurs
    candidates.rows.npy   int64 [names + 1]  where the candidates of a name begin
    candidates.npy        int32 [n]          entities, the most common first, ties by id; those with PART come last
    candidates.flags.npy  uint8 [n]          how the entity comes by this name (LABEL, ALIAS, PART, …)
    commonness.npy        float32 [n]        share of the entity among those of the name; a name's sum to 1, and to less
                                             where entities with a small share of a part of names are left out
    entities.flags.npy    uint8 [entities]   PLACE
    words.bin, words.offsets.npy             sorted words that are no typing errors: of grammar, relations, types and
                                             usual English ones
    keys.*, labels.*, descriptions.*         key, best label and description of each entity by id
    near.rows.npy, near.npy                  neighbours of each entity, ascending: int64 [entities + 1], int32
    roles.rows.npy, roles.npy                relations of each entity, inverse ones numbered from R on: int64, int32
    roles.words.*                            folded label of each relation
    types.rows.npy, types.npy                types of each entity: int64, int32
    meta.json

Texts (`*.bin`) lie in one block of bytes, with the offsets where they begin in `*.offsets.npy`.
"""

from __future__ import annotations

import json
import math
import os
from bisect import bisect_left, bisect_right
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kgqa_core.errors import ArtifactError
from kgqa_core.linking.fold import Folded, fold
from kgqa_core.linking.growing_file import GrowingFile


@dataclass(frozen=True, slots=True)
class LinkCandidate:
    """An entity that a mention may mean.

    commonness: its share among the entities of the name, in [0, 1].  rho: confidence that the mention is one and means
    this entity, in [0, 1].
    """

    entity: int
    key: str
    label: str
    commonness: float
    rho: float


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch of text that is a name.

    start, end: its place in the text of its turn.  turn: 0 for the text itself, 1 for the turn before it, and so on.
    candidates: best first, ties by id.  chosen: it is likely to be meant as a name, and no mention that it overlaps is
    preferred.  link_probability, coherence: what the best candidate's ρ is made of.  errors: typing errors in it.
    kind: how it names the entity: by a whole `name`, as an `adjective`, by an `abbreviation`, by a `part` of the name,
    or with a `typo`.  type_word: it is a common noun for a type, as `city`.
    """

    start: int
    end: int
    text: str
    turn: int
    candidates: tuple[LinkCandidate, ...]
    chosen: bool = True
    link_probability: float = 0.0
    coherence: float = 0.0
    errors: int = 0
    kind: str = "name"
    type_word: bool = False


class Strings:
    """Texts by number.  blob: uint8.  offsets: int64 [n + 1]."""

    def __init__(self, blob: Array, offsets: Array) -> None:
        self.blob, self.offsets = blob, offsets
        self._bytes, self._starts = np.asarray(blob).data, np.asarray(offsets).data

    @classmethod
    def open(cls, folder: Path, name: str) -> Strings:
        """What `Writer` has written.  Raises OSError, ValueError."""
        path = folder / f"{name}.bin"
        offsets = np.load(folder / f"{name}.offsets.npy", mmap_mode="r", allow_pickle=False)
        size = path.stat().st_size
        if offsets.ndim != 1 or not len(offsets) or int(offsets[-1]) != size:
            raise ValueError(f"{path} has {size} bytes, but its offsets say {offsets[-1:]}")
        return cls(np.memmap(path, dtype=np.uint8, mode="r") if size else np.empty(0, np.uint8), offsets)

    @classmethod
    def of(cls, texts: Sequence[str]) -> Strings:
        """Texts in memory."""
        parts = [text.encode("utf-8") for text in texts]
        offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        offsets.flags.writeable = False  # as those of files: the kernels are compiled once
        return cls(np.frombuffer(b"".join(parts), dtype=np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def find(self, text: str) -> int:
        """The place of a text in sorted ones, or -1."""
        data = text.encode("utf-8", "surrogatepass")
        number = bisect_left(range(len(self)), data, key=self.data)
        return number if data and number < len(self) and self.data(number) == data else -1

    def beginning_with(self, text: str) -> tuple[int, int]:
        """The range of sorted texts that begin with a text."""
        return self._beginning(text.encode("utf-8", "surrogatepass"), 0, len(self))

    def _beginning(self, data: bytes, low: int, high: int) -> tuple[int, int]:
        """The part of a range of sorted texts that begins with some bytes."""
        every, size = range(len(self)), len(data)
        low = bisect_left(every, data, low, high, key=self.data)
        return low, bisect_right(every, data, low, high, key=lambda number: self.data(number)[:size])

    def spots(self, folded: Folded) -> list[tuple[int, int, int]]:
        """(first atom, last atom, name) of every row of atoms that is one of these sorted texts.

        From each atom on, the range of texts that begin with what was read narrows; the walk stops when it is empty.
        """
        results, text = [], folded.data.tobytes()
        begin, end = folded.begin.tolist(), folded.end.tolist()
        for first in range(len(begin)):
            low, high = 0, len(self)
            for last in range(first, len(begin)):
                data = text[begin[first] : end[last]]
                low, high = self._beginning(data, low, high)
                if low >= high:
                    break
                if self.data(low) == data:
                    results.append((first, last, low))
        return results

    def data(self, number: int) -> bytes:
        """The UTF-8 of a text."""
        return bytes(self._bytes[self._starts[number] : self._starts[number + 1]])

    def __getitem__(self, number: int) -> str:
        return self.data(number).decode("utf-8")


class StringsWriter:
    """Writes texts one after the other, and where each ends."""

    def __init__(self, folder: Path, name: str) -> None:
        self._stream: BinaryIO = (folder / f"{name}.bin").open("wb")
        self._offsets = GrowingFile(folder / f"{name}.offsets.npy", np.int64)
        self._offsets.add(np.zeros(1, np.int64))
        self._end = 0

    def add(self, column: Any) -> None:
        """An Arrow column of texts, none of them null."""
        column = column.cast("large_string")
        _, offsets, data = column.buffers()
        indices = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
        self._offsets.add(self._end + indices[1:] - indices[0])
        self._end += int(indices[-1] - indices[0])
        if data is not None:
            self._stream.write(memoryview(data)[int(indices[0]) : int(indices[-1])])

    def close(self) -> int:
        """How many texts were written."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        return self._offsets.close() - 1


Array = NDArray[Any]
FORMAT = 2

LABEL, ALIAS, VARIANT, CASED, TYPE, PART, ACRONYM = 1, 2, 4, 8, 16, 32, 64
"""Flags of a candidate: the name is a label of it, an alias, one without brackets or article; is written with a capital
or in a script without case; the entity is the type of others; the name is a part of its label or alias only, such as a
surname; these are its initials."""
FUNCTION, RELATION, RELATION_WORDS, NUMBER, NAMED_TYPE, PARTIAL = 1, 2, 4, 8, 16, 32
"""Flags of a name: all its words are words of grammar; it is the label of a relation; its words occur in such labels;
it is a number; it names a type; all its candidates have it as a part of their names only."""
PLACE = 1
"""Flag of an entity: it is the value of a relation that leads to places."""
MANY = 20
"""Neighbours from which on any entity may be a place."""
MOST_PARTS = 5
"""Candidates by a part of their names that a name has beside others at most."""


class MentionDictionary:
    """A mention dictionary opened for reading; many processes share its pages.

    names: folded names, sorted.  flags: uint8 [names].  keys, labels: by entity id.
    """

    def __init__(self, folder: Path) -> None:
        """Raises ArtifactError when the folder holds no mention dictionary of this version."""
        self.folder = Path(folder)
        try:
            self.meta: dict[str, Any] = json.loads((self.folder / "meta.json").read_text(encoding="utf-8"))
            if self.meta["format"] != FORMAT:
                raise ValueError(f"its format is {self.meta['format']}, this version reads {FORMAT}")
            self.names = Strings.open(self.folder, "names")
            self.keys, self.labels, self.descriptions = (
                Strings.open(self.folder, name) for name in ("keys", "labels", "descriptions")
            )
            self.role_words = Strings.open(self.folder, "roles.words")
            self.flags, self.usual, self.within = (
                self._array(f"names.{name}") for name in ("flags", "usual", "within")
            )
            self.rows, self.entities = self._array("candidates.rows"), self._array("candidates")
            self.entity_flags, self.commonness = self._array("candidates.flags"), self._array("commonness")
            self.near_rows, self.near = self._array("near.rows"), self._array("near")
            self.role_rows, self.roles = self._array("roles.rows"), self._array("roles")
            self.type_rows, self.types = self._array("types.rows"), self._array("types")
            self.place_flags, self.words = self._array("entities.flags"), Strings.open(self.folder, "words")
            sizes = {
                "names": _lengths(self.names, self.flags, self.usual, self.within, self.rows[1:]),
                "candidates": (int(self.rows[-1]), len(self.entities), len(self.entity_flags), len(self.commonness)),
                "entities": _lengths(
                    *(self.keys, self.labels, self.descriptions, self.place_flags),
                    *(self.near_rows[1:], self.role_rows[1:], self.type_rows[1:]),
                ),
                "neighbours": (int(self.near_rows[-1]), len(self.near)),
                "roles": (int(self.role_rows[-1]), len(self.roles)),
                "types": (int(self.type_rows[-1]), len(self.types)),
            }
        except (OSError, ValueError, KeyError, TypeError, IndexError) as fault:
            raise ArtifactError(
                f"{folder} holds no mention dictionary ({fault}); build it again from its graph"
            ) from None
        for what, result in sizes.items():
            if len(set(result)) != 1:
                raise ArtifactError(f"{folder}: the numbers of {what} differ ({result}); build it again from its graph")

        self.n_whole = max(int(self.meta["names"]), 1)
        """Names that some entity has as a whole."""

    def _array(self, name: str) -> Array:
        path = self.folder / f"{name}.npy"
        loaded: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        return loaded.view(np.ndarray)

    def __len__(self) -> int:
        return len(self.names)

    def find(self, name: str) -> int:
        """The number of a name, folded here; -1 where it is none."""
        return self.names.find(fold(name))

    def find_whole(self, folded: str) -> int:
        """The number of a folded name that some entity has as its whole name; -1 where it is none."""
        number = self.names.find(folded)
        return -1 if number >= 0 and self.flags[number] & PARTIAL else number

    def candidates(self, number: int, most: int | None = None) -> list[tuple[int, float]]:
        """(entity, commonness) of a name by its number, the most common first, those by a part of their names last.

        most: of each of the two kinds.
        """
        start, stop = int(self.rows[number]), int(self.rows[number + 1])
        pairs = list(zip(self.entities[start:stop].tolist(), self.commonness[start:stop].tolist(), strict=True))
        if most is None:
            return pairs
        whole = self.whole_candidates(number)
        return pairs[: min(whole, most)] + pairs[whole : whole + most]

    def whole_candidates(self, number: int) -> int:
        """How many entities have a name as their whole name."""
        start, stop = int(self.rows[number]), int(self.rows[number + 1])
        last = max(start, stop - MOST_PARTS)
        return last - start + int((self.entity_flags[last:stop] & PART == 0).sum())

    def is_place(self, entity: int) -> bool:
        """Whether an entity may be a place: a relation leads to it that leads to places.

        In a graph without such relations it is one with many neighbours.
        """
        return bool(self.place_flags[entity] & PLACE) if self.meta["places"] else self.degree(entity) >= MANY

    def is_head(self, entity: int) -> bool:
        """Whether the graph tells something of an entity, which is not only the value of others' relations."""
        start, stop = int(self.role_rows[entity]), int(self.role_rows[entity + 1])
        return stop > start and int(self.roles[start]) < int(self.meta["relations"])

    def degree(self, entity: int) -> int:
        """Number of neighbours of an entity, itself among them."""
        return int(self.near_rows[entity + 1]) - int(self.near_rows[entity])

    def neighbours_of(self, entity: int) -> Array:
        """Neighbours of an entity in both directions and itself, ascending; int32."""
        return self.near[int(self.near_rows[entity]) : int(self.near_rows[entity + 1])]

    def roles_of(self, entity: int) -> list[int]:
        """Relations of an entity, ascending; those that lead to it are numbered from `relations` on."""
        return list(self.roles[int(self.role_rows[entity]) : int(self.role_rows[entity + 1])].tolist())

    def types_of(self, entity: int) -> list[int]:
        """Types of an entity, ascending."""
        return list(self.types[int(self.type_rows[entity]) : int(self.type_rows[entity + 1])].tolist())

    def relatednesses(self, ones: Sequence[int], others: Sequence[int]) -> list[list[float]]:
        """Milne-Witten relatedness by shared neighbours, in [0, 1], of each of `ones` (a row) with each of `others`.

        An entity is its own neighbour.
        """
        near = {entity: np.asarray(self.neighbours_of(entity)) for entity in {*ones, *others}}
        every = math.log(max(self.meta["entities"], 2))
        return [[_related(near[one], near[other], every) if one != other else 1.0 for other in others] for one in ones]


def _related(one: Array, other: Array, every: float) -> float:
    """Milne-Witten relatedness of two entities by their neighbours, ascending.  every: logarithm of all entities."""
    least, most = sorted((one, other), key=len)
    if not len(least) or math.log(len(least)) >= every:
        return 0.0
    places = np.minimum(np.searchsorted(most, least), len(most) - 1)
    common = int(np.count_nonzero(most[places] == least))
    if not common:
        return 0.0
    distance = (math.log(len(most)) - math.log(common)) / (every - math.log(len(least)))
    return min(1.0, max(0.0, 1.0 - distance))


def _lengths(*parts: Sized) -> tuple[int, ...]:
    return tuple(len(part) for part in parts)
