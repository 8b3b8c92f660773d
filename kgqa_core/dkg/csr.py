"""The differentiable KG in memory: a CSR of directed edges, opened by memory map.

Row `e` of the CSR holds the edges that lead out of entity `e`, sorted by (relation, tail).  Relation `r` in
0..R-1 is a triple followed as stored; `r + R` is its inverse.  A row's forward edges therefore come first, and the
triple of a forward edge is its rank among all forward edges (triples are numbered in (head, relation, tail) order).
The triple of an inverse edge is found by a binary search in the row it points at: no edge → triple array exists.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgqa_core.dkg import layout, lookup_kernels
from kgqa_core.dkg.build import Builder, Ranges, relation_dtype
from kgqa_core.errors import ArtifactError
from kgqa_core.types import INVERSE

if TYPE_CHECKING:
    pass

IntArray = NDArray[np.int64]
Array = NDArray[Any]


class Dkg:
    """A graph as rows of directed edges; cheap to open, read-only, shared between processes by the page cache.

    entities, relations, triples: counts (ids of entities and relations may have holes).  edges_stored: directed edges.
    rows: uint32 or int64 [≤ entities + 1], where rows begin; those that are missing at the end are empty.
    rel: uint16 or uint32 [edges].  tail: int32 [edges].  literals: ranges [start, stop) of ids that are literals.
    digest: identifies arrays and relation keys.
    """

    def __init__(self, ptr: Array, rel: Array, tail: Array, meta: dict[str, Any]) -> None:
        self.rows, self.rel, self.tail, self.meta = ptr, rel, tail, meta
        self.entities: int = int(meta["entities"])
        self.relations: int = int(meta["relations"])
        self.triples: int = int(meta["triples"])
        self.edges_stored: int = int(meta["edges"])
        self.literals: list[list[int]] = [list(span) for span in meta["literals"] if span[1] > span[0]]
        self.digest: str = str(meta["digest"])
        self._forward: Array | None = None
        self._folder: Path | None = None
        self._scratch: dict[Any, Any] = {}

    @classmethod
    def open(cls, folder: Path) -> Dkg:
        """The DKG in a folder written by `export`.  Raises ArtifactError when it is missing or damaged."""
        folder = Path(folder)
        try:
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            rows, rel, tail = (_load(folder / f"{name}.npy") for name in ("ptr", "rel", "tail"))
            result = (len(rel), len(tail), int(rows[0]), int(rows[-1]))
            expected = (meta["edges"], meta["edges"], 0, meta["edges"])
            types = [array.dtype for array in (rel, tail)]
            wanted = [relation_dtype(meta["relations"]), np.dtype(np.int32)]
            dkg = cls(rows, rel, tail, meta)
            dkg._forward = forward = _load(folder / "forward.npy")
            blocks = (len(rows) - 2) // lookup_kernels.BLOCK + 2
            fits = len(rows) <= meta["entities"] + 1 and len(forward) == blocks and forward[-1] == meta["triples"]
        except (OSError, ValueError, KeyError, TypeError, IndexError) as fault:
            raise ArtifactError(f"{folder} does not hold a DKG ({fault}); build it again from its graph") from None
        if result != expected or types != wanted or not fits:
            raise ArtifactError(
                f"the arrays of the DKG in {folder} have lengths and ends {result} and types {types}, but its "
                f"meta.json says {expected} and {wanted} for {meta['entities']} entities; build it again from its graph"
            )
        dkg._folder = folder
        return dkg

    @classmethod
    def from_triples(
        cls,
        head: ArrayLike,
        relation: ArrayLike,
        tail: ArrayLike,
        entities: int,
        relations: int | Sequence[str],
        *,
        relation_names: Sequence[str] | None = None,
        literals: Ranges = (),
        literal_inverses: bool = False,
    ) -> Dkg:
        """A DKG in memory from distinct triples in any order; triple ids are their ranks by (head, relation, tail).

        relations: keys of the forward relations, or their number.  relation_names: of the forward relations.
        literals: ranges [start, stop) of ids.  Raises KgInputError on duplicates or ids out of range.
        """
        columns = [np.asarray(column, dtype=np.int64) for column in (head, relation, tail)]
        order = np.lexsort((columns[2], columns[1], columns[0]))
        heads, rels, tails = (column[order] for column in columns)
        keys = [f"r{number}" for number in range(relations)] if isinstance(relations, int) else list(relations)
        builder = Builder(entities, len(keys), literals, literal_inverses)
        builder.count(heads, rels, tails)
        builder.place(heads, rels, tails)
        ptr, rel, tail_column = builder.sort()
        arrays = layout.compact(ptr), rel, tail_column
        for array in arrays:
            array.setflags(write=False)
        schema = layout.DkgSchema(keys, keys if relation_names is None else relation_names, literals)
        return cls(*arrays, layout.make_meta(*arrays, entities, len(heads), schema))

    def save(self, folder: Path) -> None:
        """Writes the DKG as the export stage does, into a folder that exists.  Raises StorageError."""
        arrays = {"ptr": self.rows, "rel": self.rel, "tail": self.tail, "forward": self.forward}
        relations = {"relation_keys": self._relations["keys"], "relation_names": self._relations["names"]}
        layout.save(Path(folder), arrays, {**self.meta, **relations})

    @cached_property
    def _relations(self) -> dict[str, list[str]]:
        """Keys and names of the forward relations."""
        if self._folder is None:
            return {name: list(self.meta[f"relation_{name}"]) for name in ("keys", "names")}
        path = self._folder / layout.RELATIONS
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            if len(result["keys"]) != self.relations or len(result["names"]) != self.relations:
                raise ValueError(f"it names {len(result['keys'])} relations, and the DKG has {self.relations}")
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise ArtifactError(f"{path} is missing or damaged ({fault}); build it again from its graph") from None
        return {"keys": result["keys"], "names": result["names"]}

    @cached_property
    def relation_keys(self) -> list[str]:
        """Keys of the 2R relations, inverses in the second half with the prefix `<inv>-`."""
        keys = self._relations["keys"]
        return [*keys, *(INVERSE + key for key in keys)]

    @cached_property
    def relation_names(self) -> list[str]:
        """Names of the 2R relations, inverses in the second half with the prefix `<inv>-`."""
        names = self._relations["names"]
        return [*names, *(INVERSE + name for name in names)]

    @cached_property
    def relation_ids(self) -> dict[str, int]:
        """Relation id by key, inverses included."""
        return {key: number for number, key in enumerate(self.relation_keys)}

    def is_literal(self, entities: ArrayLike) -> NDArray[np.bool_]:
        """Whether each entity is a literal, bool [n]."""
        bounds = np.array(self.literals, dtype=np.int64).reshape(-1)
        return np.asarray(np.searchsorted(bounds, np.asarray(entities), side="right") % 2 == 1)

    @cached_property
    def ptr(self) -> IntArray:
        """Where each row begins, int64 [entities + 1]: `rows` in full.  A copy; `row_bounds` makes none."""
        full = np.full(self.entities + 1, self.edges_stored, dtype=np.int64)
        full[: len(self.rows)] = self.rows
        full.setflags(write=False)
        return full

    def row_bounds(self, entities: ArrayLike) -> tuple[IntArray, IntArray]:
        """Where the row of each entity starts and stops, int64 [n] each."""
        wanted = np.asarray(entities, dtype=np.int64)
        last = len(self.rows) - 1
        start, stop = self.rows[np.minimum(wanted, last)], self.rows[np.minimum(wanted + 1, last)]
        return start.astype(np.int64), stop.astype(np.int64)

    @property
    def forward(self) -> Array:
        """Triples whose head comes before each block of rows."""
        if self._forward is None:
            self._forward = layout.forward_blocks(self.rows, self.rel, self.relations)
        return self._forward

    def source_of(self, edges: ArrayLike) -> IntArray:
        """The entity that each edge leads out of, int64 [n]."""
        result: IntArray = lookup_kernels.sources(self.rows, self._checked(edges, self.edges_stored, "edge"))
        return result

    def direction_of(self, edges: ArrayLike) -> NDArray[np.int8]:
        """+1 for edges along their triple, -1 for edges against it, int8 [n]."""
        wanted = self._checked(edges, self.edges_stored, "edge")
        return np.where(self.rel[wanted] < self.relations, 1, -1).astype(np.int8)

    def triple_of(self, edges: ArrayLike) -> IntArray:
        """The triple that each directed edge stands for, int64 [n]."""
        wanted = self._checked(edges, self.edges_stored, "edge")
        result: IntArray = lookup_kernels.triples(self.rows, self.rel, self.tail, self.relations, self.forward, wanted)
        return result

    def edges(self, triples: ArrayLike) -> tuple[IntArray, IntArray, IntArray]:
        """(head, relation, tail) of triples, int64 [n] each."""
        index = self.edge_of(triples)
        return self.source_of(index), self.rel[index].astype(np.int64), self.tail[index].astype(np.int64)

    def edge_of(self, triples: ArrayLike) -> IntArray:
        """The forward edge of each triple, int64 [n]."""
        wanted = self._checked(triples, self.triples, "triple")
        result: IntArray = lookup_kernels.forward_edges(self.rows, self.rel, self.relations, self.forward, wanted)
        return result

    def find_edge(self, source: ArrayLike, relation: ArrayLike, target: ArrayLike) -> IntArray:
        """The directed edge (source, relation, target), relation in 0..2R-1; -1 where there is none, int64 [n]."""
        parts = np.broadcast_arrays(*(np.asarray(part, dtype=np.int64) for part in (source, relation, target)))
        flat = (np.ascontiguousarray(part).reshape(-1) for part in parts)
        result: IntArray = lookup_kernels.find(self.rows, self.rel, self.tail, *flat)
        return result.reshape(parts[0].shape)

    @staticmethod
    def _checked(ids: ArrayLike, count: int, what: str) -> IntArray:
        wanted = np.ascontiguousarray(ids, dtype=np.int64).reshape(-1)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= count):
            bad = wanted[(wanted < 0) | (wanted >= count)].flat[0]
            raise ArtifactError(
                f"{what} {bad} is not in this DKG, which has {count} {what}s; was it made for another graph?"
            )
        return wanted

    def __repr__(self) -> str:
        return f"Dkg({self.entities} entities, {self.relations} relations, {self.triples} triples)"


def join_ranges(starts: IntArray, stops: IntArray) -> IntArray:
    """The numbers of many ranges [start, stop), one after the other.

    >>> join_ranges(np.array([3, 9]), np.array([5, 10])).tolist()
    [3, 4, 9]
    """
    lengths = stops - starts
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - lengths), lengths)


def _load(path: Path) -> Array:
    """An array by memory map; a plain view, because the subclass makes every slice slow."""
    return np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
