"""Terms → integers, in bounded memory: a table over an arena, and sorted runs on disk once the arena is full.

Integers of one generation count from 0 in the order of first sight; `merge` puts the terms of all generations in
canonical order, each once, and gives the canonical integer of every earlier id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from kgqa_core.kg.ingest import intern_kernels as kernels
from kgqa_core.kg.ingest import order_kernels

Array = NDArray[Any]

SPARE = 16
"""Bytes behind the data of a column that its kernels may read."""

_STEP = 1 << 22  # words by which the arena grows at least
_FIRST_SLOTS = 1 << 16


class Interner:
    """Gives terms, which are bytes with a tag, ids from 0 in the order of their first sight.

    Call `fits` before each batch; it says whether the batch surely fits in `budget` bytes, and makes room for it.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.clear()

    def clear(self) -> None:
        """Forgets all terms and gives the memory back."""
        self.table: Array = np.zeros(_FIRST_SLOTS, dtype=np.uint64)
        self.arena: Array = np.empty(1 << 12, dtype=np.uint64)
        self.starts: Array = np.empty(1 << 10, dtype=np.uint32)
        self.state: Array = np.array([0, 1], dtype=np.int64)

    @property
    def count(self) -> int:
        """Terms so far."""
        return int(self.state[0])

    def fits(self, terms: int, size: int) -> bool:
        """Makes room for so many terms of so many bytes together, or returns that the budget does not allow it.

        An empty interner always makes room.
        """
        count, used = int(self.state[0]), int(self.state[1])
        most = count + terms
        words = used + 3 * terms + size // 8
        slots = len(self.table)
        while slots * 0.7 < most:
            slots *= 2
        growing = slots if slots > len(self.table) else 0
        if count and 8 * words + 4 * most + max(8 * (slots + growing // 2), 24 * most) > self.budget:
            return False
        if words > len(self.arena):
            self.arena.resize(max(words, min(2 * len(self.arena), len(self.arena) + _STEP)), refcheck=False)
        if most > len(self.starts):
            self.starts.resize(max(most, min(2 * len(self.starts), len(self.starts) + _STEP)), refcheck=False)
        if growing:
            self.table = np.zeros(slots, dtype=np.uint64)
            kernels.refill(self.table, self.arena, self.starts, count)
        return True

    def column(self, strings: StringColumn, tags: Array | None = None) -> Array:
        """Ids (int32) of a column, each string with its tag (0 where none are given); -1 for null."""
        out = np.empty(len(strings.lengths), dtype=np.int32)
        if tags is None:
            tags = np.zeros(len(out), dtype=np.int32)
        kernels.intern_column(
            strings.data, strings.begins, strings.lengths, tags, self.table, self.arena, self.starts, self.state, out
        )
        return out

    def rows(self, data: Array, rows: Array, tags: Interner) -> Array:
        """Ids (rows, 3) of the terms of a block of statements; tags are ids of datatypes in `tags`, plus 1."""
        out = np.empty((len(rows), 3), dtype=np.int32)
        kernels.intern_rows(
            data, rows, self.table, self.arena, self.starts, self.state,
            tags.table, tags.arena, tags.starts, tags.state, out,
        )  # fmt: skip
        return out

    def texts(self) -> list[bytes]:
        """The bytes of every term, by id; for few terms."""
        results = []
        for start in self.starts[: self.count].tolist():
            size = int(self.arena[start]) >> 32
            results.append(self.arena[start + 2 : start + 2 + (size + 7) // 8].tobytes()[:size])
        return results

    def order(self, ranks: Array) -> tuple[Array, int]:
        """Ids in canonical order, and how many of them are entities.  Drops the table.

        Entities, which have tag 0, come first, by bytes; the others by bytes and the rank of their tag.
        """
        self.table = np.zeros(_FIRST_SLOTS, dtype=np.uint64)
        ids = np.arange(self.count, dtype=np.uint32)
        entity = (self.arena[self.starts[: self.count] + np.uint32(1)] & np.uint64(0xFFFFFFFF)) == 0
        parts = [ids[entity], ids[~entity]]
        with ThreadPoolExecutor(1) as other:
            sorted_ = other.submit(order_kernels.sort_terms, self.arena, self.starts, parts[1], ranks)
            order_kernels.sort_terms(self.arena, self.starts, parts[0], ranks)
            sorted_.result()
        return np.concatenate(parts), len(parts[0])


@dataclass(frozen=True, slots=True)
class StringColumn:
    """A column of strings as bytes: data with SPARE bytes behind, begins and lengths (int64; -1 is null)."""

    data: Array
    begins: Array
    lengths: Array

    @classmethod
    def of(cls, series: pl.Series) -> StringColumn:
        """The bytes of a polars column of strings."""
        array: Any = series.rechunk().to_arrow()
        if isinstance(array, pa.ChunkedArray):  # pragma: no cover
            array = array.combine_chunks()
        if array.type != pa.large_string():
            array = array.cast(pa.large_string())
        offsets = np.frombuffer(array.buffers()[1], dtype=np.int64)[array.offset : array.offset + len(array) + 1]
        raw = array.buffers()[2]
        size = int(offsets[-1]) if len(array) else 0
        data = np.zeros(size + SPARE, dtype=np.uint8)
        if size:
            data[:size] = np.frombuffer(raw, dtype=np.uint8)[:size]
        lengths = np.diff(offsets)
        if array.null_count:
            lengths[series.is_null().to_numpy()] = -1
        return cls(data, np.ascontiguousarray(offsets[:-1]), lengths)


@dataclass(frozen=True, slots=True)
class SortedRun:
    """The terms of a generation in canonical order, in a file of words.

    terms: how many; words: of the file, the first `entity_words` are those of entities; longest: bytes of a term.
    """

    path: Path
    terms: int
    words: int
    entity_words: int
    longest: int


def write_run(interner: Interner, ranks: Array, path: Path, buffer: int = 1 << 21) -> SortedRun:
    """Writes the terms of a generation, in order, to a file."""
    ids, entities = interner.order(ranks)
    longest = int((interner.arena[interner.starts[: len(ids)]] >> np.uint64(32)).max(initial=np.uint64(0)))
    words = np.empty(max(buffer, longest // 8 + 8), dtype=np.uint64)
    sizes = []
    with path.open("wb") as stream:
        for part in (ids[:entities], ids[entities:]):
            at = total = 0
            while at < len(part):
                at = order_kernels.in_order(interner.arena, interner.starts, part, words, at)
                words[1 : int(words[0])].tofile(stream)
                total += int(words[0]) - 1
            sizes.append(total)
    return SortedRun(path, len(ids), sum(sizes), sizes[0], longest)


Sink = Callable[[int, Array, Array, Array], None]
"""Takes (first tid, offsets, text, tags) of some terms that follow those of the call before."""

TEXT = 32 << 20
TERMS = 1 << 20
"""Bytes and terms handed to a sink at once, but for a longer term."""


def ranks_of_ids(ids: Array) -> Array:
    """The tid of each id, where ids are in canonical order."""
    canonical = np.empty(len(ids), dtype=np.int32)
    canonical[ids] = np.arange(len(ids), dtype=np.int32)
    return canonical


def emit(interner: Interner, ids: Array, ranks: Array, sink: Sink) -> None:
    """Hands the terms of one generation to the sink, in the order of ids."""
    at = 0
    while at < len(ids):
        stop = min(len(ids), at + TERMS)
        while stop > at + 1 and order_kernels.text_bytes(interner.arena, interner.starts, ids, at, stop) > TEXT:
            stop = at + (stop - at + 1) // 2
        size = order_kernels.text_bytes(interner.arena, interner.starts, ids, at, stop)
        offsets, text = np.empty(stop - at + 1, dtype=np.int64), np.empty(size + 8, dtype=np.uint8)
        tags = np.empty(stop - at, dtype=np.int32)
        order_kernels.emit(interner.arena, interner.starts, ids, at, stop, offsets, text, tags, ranks)
        sink(at, offsets, text, tags)
        at = stop


def merge(runs: Sequence[SortedRun], ranks: Array, sink: Sink, memory: int) -> tuple[list[Array], int, int]:
    """Merges sorted runs; (for each run the tid of each of its ids, terms, how many are entities).

    Entities of all runs come first, then literals.  memory: bytes for the buffers of all runs together.
    """
    maps = np.empty(sum(run.terms for run in runs), dtype=np.int32)
    firsts = np.cumsum([0, *(run.terms for run in runs)]).astype(np.int64)
    entities = _merge(runs, [(0, run.entity_words) for run in runs], maps, firsts, ranks, 0, sink, memory)
    rests = [(run.entity_words, run.words) for run in runs]
    terms = _merge(runs, rests, maps, firsts, ranks, entities, sink, memory)
    return [maps[firsts[r] : firsts[r + 1]] for r in range(len(runs))], terms, entities


def _merge(
    runs: Sequence[SortedRun], parts: Sequence[tuple[int, int]], maps: Array, firsts: Array, ranks: Array, tid: int,
    sink: Sink, memory: int,
) -> int:  # fmt: skip
    """Merges the words parts[r] of every run; the next tid."""
    longest = max((run.longest for run in runs), default=0)
    size = max(memory // 8 // max(1, len(runs)), longest // 8 + 16)
    buffer = np.empty(size * len(runs), dtype=np.uint64)
    count = len(runs)
    heads = np.arange(count, dtype=np.int64) * size
    ends = heads.copy()
    left = np.array([stop - begin for begin, stop in parts], dtype=np.int64)
    held = heads.copy()  # where the words end that were read, of which the last may not make a whole term
    offsets, tags = np.empty(TERMS + 1, dtype=np.int64), np.empty(TERMS, dtype=np.int32)
    text = np.empty(max(TEXT, longest + 16), dtype=np.uint8)
    streams: list[FileIO] = []
    try:
        for run, (begin, _) in zip(runs, parts, strict=True):
            stream = FileIO(run.path)
            streams.append(stream)
            stream.seek(8 * begin)
        while True:
            for r in range(count):
                if heads[r] >= ends[r] and (left[r] or held[r] > heads[r]):
                    base = r * size
                    rest = int(held[r] - heads[r])
                    buffer[base : base + rest] = buffer[heads[r] : held[r]].copy()
                    wanted = int(min(size - rest, left[r]))
                    view = memoryview(buffer[base + rest : base + rest + wanted].view(np.uint8))  # type: ignore[arg-type]
                    read = 0
                    while read < len(view):
                        read += streams[r].readinto(view[read:])
                    left[r] -= wanted
                    heads[r], held[r] = base, base + rest + wanted
                    ends[r] = base + order_kernels.whole_terms(buffer[base:], rest + wanted)
            written, used = order_kernels.merge(
                buffer, heads, ends, left > 0, maps, firsts, ranks, tid, offsets, text, tags
            )
            if written:
                sink(tid, offsets[: written + 1], text[:used], tags[:written])
                tid += written
            elif not left.any() and (heads >= ends).all():
                return tid
    finally:
        for stream in streams:
            stream.close()
