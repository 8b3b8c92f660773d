"""The differentiable KG in memory: a CSR of directed edges, opened by memory map.

Row `e` of the CSR holds the edges that lead out of entity `e`, sorted by (relation, tail).  Relation `r` in
0..R-1 is a triple followed as stored; `r + R` is its inverse.  A row's forward edges therefore come first, and the
triple of a forward edge is its rank among all forward edges (triples are numbered in (head, relation, tail) order).
The triple of an inverse edge is found by a binary search in the row it points at: no edge → triple array exists.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgqa_core.errors import ArtifactError, KgInputError
from kgqa_core.types import INVERSE

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

IntArray = NDArray[np.int64]
Array = NDArray[Any]


class Dkg:
    """A graph as rows of directed edges; cheap to open, read-only, shared between processes by the page cache.

    entities, relations, triples: counts (relations without their inverses).  edges_stored: directed edges.
    ptr: int64 [entities + 1].  rel: uint16 or uint32 [edges].  tail: int32 [edges].
    first_literal: entities from this id on are literals.  digest: identifies arrays and relation keys.
    """

    def __init__(self, ptr: Array, rel: Array, tail: Array, meta: dict[str, Any]) -> None:
        self.ptr, self.rel, self.tail, self.meta = ptr, rel, tail, meta
        self.entities: int = int(meta["entities"])
        self.relations: int = int(meta["relations"])
        self.triples: int = int(meta["triples"])
        self.edges_stored: int = int(meta["edges"])
        self.first_literal: int = int(meta["first_literal"])
        self.digest: str = str(meta["digest"])
        self._scratch: dict[str, Any] = {}

    @classmethod
    def open(cls, folder: Path) -> Dkg:
        """The DKG in a folder written by `export`.  Raises ArtifactError when it is missing or damaged."""
        folder = Path(folder)
        try:
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            loaded = [
                np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ("ptr", "rel", "tail")
            ]
            ptr, rel, tail = (array.view(np.ndarray) for array in loaded)
            expected = (meta["entities"] + 1, meta["edges"], meta["edges"])
            widths = (np.dtype(np.int64), relation_dtype(meta["relations"]), np.dtype(np.int32))
            keys_ok = len(meta["relation_keys"]) == 2 * meta["relations"]
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise ArtifactError(f"{folder} does not hold a DKG ({fault}); build it again from its graph") from None
        found, types = (len(ptr), len(rel), len(tail)), (ptr.dtype, rel.dtype, tail.dtype)
        if found != expected or types != widths or not keys_ok:
            raise ArtifactError(
                f"the arrays of the DKG in {folder} have lengths {found} and types {types}, but its meta.json says "
                f"{expected} and {widths}; build it again from its graph"
            )
        return cls(ptr, rel, tail, meta)

    @classmethod
    def from_triples(
        cls,
        head: ArrayLike,
        relation: ArrayLike,
        tail: ArrayLike,
        entities: int,
        relations: int,
        *,
        relation_keys: Sequence[str] | None = None,
        relation_names: Sequence[str] | None = None,
        first_literal: int | None = None,
        literal_inverses: bool = False,
    ) -> Dkg:
        """A DKG in memory from distinct triples in any order; triple ids are their ranks by (head, relation, tail).

        relation_keys, relation_names: of the forward relations.  Raises KgInputError on duplicates or ids out of range.
        """
        columns = [np.asarray(column, dtype=np.int64) for column in (head, relation, tail)]
        order = np.lexsort((columns[2], columns[1], columns[0]))
        heads, rels, tails = (column[order] for column in columns)
        arrays = build_arrays(heads, rels, tails, entities, relations, first_literal, literal_inverses)
        keys = list(relation_keys) if relation_keys is not None else [f"r{number}" for number in range(relations)]
        names = list(relation_names) if relation_names is not None else keys
        limit = entities if first_literal is None else first_literal
        return cls(*arrays, make_meta(*arrays, len(heads), keys, names, limit))

    @cached_property
    def relation_keys(self) -> list[str]:
        """Keys of the 2R relations, inverses in the second half with the prefix `<inv>-`."""
        return list(self.meta["relation_keys"])

    @cached_property
    def relation_names(self) -> list[str]:
        """Names of the 2R relations, inverses in the second half with the prefix `<inv>-`."""
        return list(self.meta["relation_names"])

    @cached_property
    def relation_ids(self) -> dict[str, int]:
        """Relation id by key, inverses included."""
        return {key: number for number, key in enumerate(self.relation_keys)}

    def inverse(self, relation: int) -> int:
        """The id of the relation in the other direction."""
        return relation - self.relations if relation >= self.relations else relation + self.relations

    @cached_property
    def forward_ptr(self) -> IntArray:
        """Triples whose head comes before each entity, int64 [entities + 1]; computed on first use in one pass."""
        counts = np.zeros(self.entities + 1, dtype=np.int64)
        step = 1 << 24
        done = 0
        for start in range(0, self.edges_stored, step):
            stop = min(start + step, self.edges_stored)
            running = np.zeros(stop - start + 1, dtype=np.int64)
            np.cumsum(self.rel[start:stop] < self.relations, out=running[1:])
            first, last = np.searchsorted(self.ptr, (start, stop), side="left")
            counts[first:last] = done + running[self.ptr[first:last] - start]
            done += int(running[-1])
        counts[np.searchsorted(self.ptr, self.edges_stored, side="left") :] = done
        return counts

    def source_of(self, edges: ArrayLike) -> IntArray:
        """The entity that each edge leads out of, int64 [n]."""
        wanted = self._checked(edges, self.edges_stored, "edge")
        return np.asarray(np.searchsorted(self.ptr, wanted, side="right") - 1, dtype=np.int64)

    def direction_of(self, edges: ArrayLike) -> NDArray[np.int8]:
        """+1 for edges along their triple, -1 for edges against it, int8 [n]."""
        wanted = self._checked(edges, self.edges_stored, "edge")
        return np.where(self.rel[wanted] < self.relations, 1, -1).astype(np.int8)

    def triple_of(self, edges: ArrayLike) -> IntArray:
        """The triple that each directed edge stands for, int64 [n]."""
        wanted = self._checked(edges, self.edges_stored, "edge")
        source, rel, tail = (
            self.source_of(wanted),
            self.rel[wanted].astype(np.int64),
            self.tail[wanted].astype(np.int64),
        )
        inverse = rel >= self.relations
        home = np.where(inverse, tail, source)
        place = wanted.copy()
        if inverse.any():
            place[inverse] = self._find(tail[inverse], rel[inverse] - self.relations, source[inverse])
        return np.asarray(self.forward_ptr[home] + place - self.ptr[home], dtype=np.int64)

    def edges(self, triples: ArrayLike) -> tuple[IntArray, IntArray, IntArray]:
        """(head, relation, tail) of triples, int64 [n] each."""
        place = self.edge_of(triples)
        return self.source_of(place), self.rel[place].astype(np.int64), self.tail[place].astype(np.int64)

    def edge_of(self, triples: ArrayLike) -> IntArray:
        """The forward edge of each triple, int64 [n]."""
        wanted = self._checked(triples, self.triples, "triple")
        head = np.searchsorted(self.forward_ptr, wanted, side="right") - 1
        return np.asarray(self.ptr[head] + wanted - self.forward_ptr[head], dtype=np.int64)

    def find_edge(self, source: ArrayLike, relation: ArrayLike, target: ArrayLike) -> IntArray:
        """The directed edge (source, relation, target), relation in 0..2R-1; -1 where there is none, int64 [n]."""
        first, second, third = np.broadcast_arrays(
            *(np.asarray(part, dtype=np.int64) for part in (source, relation, target))
        )
        shape = first.shape
        place = self._find(first.ravel(), second.ravel(), third.ravel())
        inside = place < self.ptr[first.ravel() + 1]
        safe = np.where(inside, place, 0)
        if inside.any():
            inside &= (self.rel[safe] == second.ravel()) & (self.tail[safe] == third.ravel())
        return np.where(inside, place, -1).reshape(shape)

    def scipy_matrices(self) -> tuple[csr_matrix, csr_matrix, csr_matrix]:
        """The reified KB of Cohen et al. 2020: see `kgqa_core.dkg.scipy_view`."""
        from kgqa_core.dkg.scipy_view import scipy_matrices

        return scipy_matrices(self)

    def _find(self, row: IntArray, relation: IntArray, tail: IntArray) -> IntArray:
        """First place in each row that is not before (relation, tail), by binary search over all queries at once."""
        low, high = self.ptr[row].astype(np.int64), self.ptr[row + 1].astype(np.int64)
        while (open_ := low < high).any():
            middle = (low + high) // 2
            probe = np.where(open_, middle, 0)
            rel, other = self.rel[probe].astype(np.int64), self.tail[probe]
            before = open_ & ((rel < relation) | ((rel == relation) & (other < tail)))
            low = np.where(before, middle + 1, low)
            high = np.where(open_ & ~before, middle, high)
        return low

    @staticmethod
    def _checked(ids: ArrayLike, count: int, what: str) -> IntArray:
        wanted = np.asarray(ids, dtype=np.int64)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= count):
            bad = wanted[(wanted < 0) | (wanted >= count)].flat[0]
            raise ArtifactError(
                f"{what} {bad} is not in this DKG, which has {count} {what}s; was it made for another graph?"
            )
        return wanted

    def __repr__(self) -> str:
        return f"Dkg({self.entities} entities, {self.relations} relations, {self.triples} triples)"


def relation_dtype(relations: int) -> np.dtype[Any]:
    """Type of the relation column: uint16 while ids of both directions fit, else uint32."""
    return np.dtype(np.uint16) if 2 * relations <= 65_535 else np.dtype(np.uint32)


def build_arrays(
    head: Array,
    relation: Array,
    tail: Array,
    entities: int,
    relations: int,
    first_literal: int | None = None,
    literal_inverses: bool = False,
) -> tuple[Array, Array, Array]:
    """ptr, rel, tail of distinct triples that are sorted by (head, relation, tail).

    Edges out of literals (entities from first_literal on) are left out unless literal_inverses.
    Raises KgInputError when triples are unsorted, doubled or out of range.
    """
    if entities > 2**31 - 1:
        raise KgInputError(f"the graph has {entities} entities, but a DKG holds at most {2**31 - 1}")
    for name, column, limit in (("head", head, entities), ("relation", relation, relations), ("tail", tail, entities)):
        if len(column) and (int(column.min()) < 0 or int(column.max()) >= limit):
            raise KgInputError(
                f"{name} ids run from {column.min()} to {column.max()}, but the graph has {limit} of them"
            )
    if len(head) > 1:
        steps = [np.diff(column.astype(np.int64)) for column in (head, relation, tail)]
        ascending = (steps[0] > 0) | ((steps[0] == 0) & ((steps[1] > 0) | ((steps[1] == 0) & (steps[2] > 0))))
        if not ascending.all():
            at = int(np.flatnonzero(~ascending)[0])
            triple = (int(head[at + 1]), int(relation[at + 1]), int(tail[at + 1]))
            raise KgInputError(
                f"triple {triple} is doubled or out of (head, relation, tail) order; sort and deduplicate triples"
            )
    head, relation, tail = head.astype(np.int64), relation.astype(np.int64), tail.astype(np.int64)
    reverse = (
        np.arange(len(tail)) if literal_inverses or first_literal is None else np.flatnonzero(tail < first_literal)
    )
    # Stable by (tail, relation): heads are ascending already.
    reverse = reverse[np.argsort(tail[reverse] * max(relations, 1) + relation[reverse], kind="stable")]
    forward_count = np.bincount(head, minlength=entities)
    inverse_count = np.bincount(tail[reverse], minlength=entities)
    ptr = np.zeros(entities + 1, dtype=np.int64)
    np.cumsum(forward_count + inverse_count, out=ptr[1:])
    forward_ptr = np.cumsum(forward_count) - forward_count
    inverse_ptr = np.cumsum(inverse_count) - inverse_count
    edges = int(ptr[-1])
    rel_out, tail_out = np.empty(edges, dtype=relation_dtype(relations)), np.empty(edges, dtype=np.int32)
    place = ptr[head] + np.arange(len(head)) - forward_ptr[head]
    rel_out[place], tail_out[place] = relation, tail
    row = tail[reverse]
    place = ptr[row] + forward_count[row] + np.arange(len(row)) - inverse_ptr[row]
    rel_out[place], tail_out[place] = relation[reverse] + relations, head[reverse]
    for array in (ptr, rel_out, tail_out):
        array.setflags(write=False)
    return ptr, rel_out, tail_out


def make_meta(
    ptr: Array, rel: Array, tail: Array, triples: int, keys: Sequence[str], names: Sequence[str], first_literal: int
) -> dict[str, Any]:
    """What meta.json holds.  keys, names: of the forward relations."""
    both_keys = [*keys, *(INVERSE + key for key in keys)]
    both_names = [*names, *(INVERSE + name for name in names)]
    sha = hashlib.sha256()
    for array in (ptr, rel, tail):
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        raw: Any = np.ascontiguousarray(array).view(np.uint8)
        sha.update(raw)
    sha.update(json.dumps(both_keys).encode())
    return {
        "entities": len(ptr) - 1,
        "relations": len(keys),
        "triples": int(triples),
        "edges": len(tail),
        "first_literal": int(first_literal),
        "relation_keys": both_keys,
        "relation_names": both_names,
        "digest": sha.hexdigest(),
    }
