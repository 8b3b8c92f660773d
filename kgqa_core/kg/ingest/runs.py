"""The terms of all generations in canonical order, each once, with the canonical integer of every earlier id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import FileIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.kg.ingest import order_kernels as kernels
from kgqa_core.kg.ingest.intern import Interner, Run

Array = NDArray[Any]
Sink = Callable[[int, Array, Array, Array], None]
"""Takes (first tid, offsets, text, tags) of some terms that follow those of the call before."""

TEXT = 32 << 20
TERMS = 1 << 20
"""Bytes and terms handed to a sink at once, but for a longer term."""


def places(ids: Array) -> Array:
    """The tid of each id, where ids are in canonical order."""
    canonical = np.empty(len(ids), dtype=np.int32)
    canonical[ids] = np.arange(len(ids), dtype=np.int32)
    return canonical


def emit(interner: Interner, ids: Array, ranks: Array, sink: Sink) -> None:
    """Hands the terms of one generation to the sink, in the order of ids."""
    at = 0
    while at < len(ids):
        stop = min(len(ids), at + TERMS)
        while stop > at + 1 and kernels.text_bytes(interner.arena, interner.starts, ids, at, stop) > TEXT:
            stop = at + (stop - at + 1) // 2
        size = kernels.text_bytes(interner.arena, interner.starts, ids, at, stop)
        offsets, text = np.empty(stop - at + 1, dtype=np.int64), np.empty(size + 8, dtype=np.uint8)
        tags = np.empty(stop - at, dtype=np.int32)
        kernels.emit(interner.arena, interner.starts, ids, at, stop, offsets, text, tags, ranks)
        sink(at, offsets, text, tags)
        at = stop


def merge(runs: Sequence[Run], ranks: Array, sink: Sink, memory: int) -> tuple[list[Array], int, int]:
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
    runs: Sequence[Run], parts: Sequence[tuple[int, int]], maps: Array, firsts: Array, ranks: Array, tid: int,
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
                    ends[r] = base + kernels.whole_terms(buffer[base:], rest + wanted)
            written, used = kernels.merge(buffer, heads, ends, left > 0, maps, firsts, ranks, tid, offsets, text, tags)
            if written:
                sink(tid, offsets[: written + 1], text[:used], tags[:written])
                tid += written
            elif not left.any() and (heads >= ends).all():
                return tid
    finally:
        for stream in streams:
            stream.close()
