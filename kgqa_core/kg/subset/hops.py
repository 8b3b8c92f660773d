"""Which entities are reached in so many hops, and which runs of hubs are not followed.

A hop follows the edges of the entities that the hop before reached.  An entity's edges of one relation in one direction
are a run; a run longer than `max_degree` is cut: nothing is reached through it from this side.  An edge is kept when it
is followed from one of its ends.  Memory grows with the entities reached and with their runs, not with the dump.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kgqa_core.errors import KgqaError
from kgqa_core.kg.subset.codes import BYTES_PER_ENTITY, Array, CodeSet, distinct
from kgqa_core.kg.subset.edges import EdgeBlock
from kgqa_core.monitor import Monitor

OUT, IN = 0, 1
"""Directions of a run: the entity is the subject, or the object."""

WIDTH = 1 << 33
"""More than any number of a run: relations have 32 bits."""

LIMIT_OPTION = "--memory-limit"
_NONE = np.zeros(0, dtype=np.int64)


class CutRuns:
    """Runs that are not followed.  entities: their codes.  runs: 2 · relation + direction."""

    def __init__(self, entities: Array, runs: Array) -> None:
        self.entities, self.runs = entities, runs
        self.hubs = CodeSet(distinct([entities]))
        self._width = int(runs.max()) + 1 if len(runs) else 1
        self._keys = np.unique(self.hubs.find(entities) * self._width + runs)

    def __len__(self) -> int:
        return len(self._keys)

    def has(self, entities: Array, runs: Array) -> Array:
        """Which of some runs are cut."""
        if not len(self):
            return np.zeros(len(entities), dtype=np.bool_)
        indexes = self.hubs.find(entities)
        keys = np.where((indexes >= 0) & (runs < self._width), indexes * self._width + runs, -1)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        mask: Array = self._keys[at] == keys
        return mask


@dataclass(frozen=True)
class Reach:
    """What is reached.

    expanded: entities whose edges are followed, all but those of the last hop.  reached: all, sorted codes.  cut: runs
    of hubs.  by_hop: counts of each hop.
    """

    expanded: CodeSet
    reached: CodeSet
    cut: CutRuns
    both: bool
    by_hop: list[dict[str, int]] = field(default_factory=list)

    def keeps(self, block: EdgeBlock) -> Array:
        """Which statements are kept: those that are followed from one of their ends, or to a literal (0)."""
        forward, backward = follow(block, self.expanded, self.cut, self.both)
        keeps: Array = forward | backward
        return keeps


def follow(block: EdgeBlock, entities: CodeSet, cut: CutRuns, both: bool) -> tuple[Array, Array]:
    """Which edges are followed out of some entities, from subject to object and back."""
    forward = block.allowed & entities.has(block.subject)
    rows = np.flatnonzero(forward & (block.object != 0))
    if len(rows):
        forward[rows] = ~cut.has(block.subject[rows], 2 * block.relation[rows] + OUT)
    backward = block.allowed & entities.has(block.object) if both else np.zeros(len(forward), dtype=np.bool_)
    rows = np.flatnonzero(backward)
    if len(rows):
        backward[rows] = ~cut.has(block.object[rows], 2 * block.relation[rows] + IN)
    return forward, backward


def reach(
    blocks: Callable[[], Iterator[EdgeBlock]],
    seeds: Array,
    *,
    hops: int,
    max_degree: int,
    both: bool,
    memory: int,
    monitor: Monitor,
    total: int = 0,
) -> Reach:
    """The entities within so many hops of the seeds.

    blocks: the edges, from the beginning at each call.  seeds: codes.  max_degree: longest run that is followed; 0 for
    any.  memory: bytes for the sets of entities.  total: edges, for the progress.  Raises KgqaError when the entities
    do not fit.
    """
    expanded, frontier = distinct([]), distinct([seeds])
    reached, cut = frontier, CutRuns(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))
    by_hop: list[dict[str, int]] = []
    for hop in range(1, hops + 1):
        _check_memory(len(reached) + len(frontier), memory)
        here, before, old = CodeSet(frontier), CodeSet(expanded), cut
        keys, lengths = (
            _runs(blocks, here, both, monitor, total, f"hop {hop}, counting") if max_degree else (_NONE, _NONE)
        )
        too_long = lengths > max_degree
        entities, runs = frontier[keys[too_long] // WIDTH], keys[too_long] % WIDTH
        new = CutRuns(entities, runs)
        cut = CutRuns(np.concatenate([old.entities, entities]), np.concatenate([old.runs, runs]))
        ends: list[Array] = []
        waiting = followed = done = 0
        for block in blocks():
            forward, backward = follow(block, here, new, both)
            touched = np.flatnonzero(forward | backward)
            part = EdgeBlock(
                block.subject[touched], block.object[touched], block.relation[touched], block.allowed[touched]
            )
            earlier = np.logical_or(*follow(part, before, old, both))
            followed += len(touched) - int(earlier.sum())
            ends += [np.unique(block.object[forward]), np.unique(block.subject[backward])]
            waiting += sum(map(len, ends[-2:]))
            if waiting > len(block.subject):
                ends, waiting = [distinct(ends)], 0
                _check_memory(len(reached) + len(ends[0]), memory)
            done += len(block.subject)
            monitor.progress(done, max(total, done), f"edges, hop {hop} of {hops}")
        expanded = distinct([expanded, frontier])
        frontier = np.setdiff1d(distinct(ends), reached, assume_unique=True)
        reached = distinct([reached, frontier])
        by_hop.append(
            {
                "hop": hop,
                "followed_from": len(here),
                "edges": followed,
                "entities_reached": len(frontier),
                "hubs_cut": len(new.hubs),
                "runs_cut": len(new),
                "edges_cut": int(lengths[too_long].sum()),
            }
        )
        if not len(frontier):
            break
    _check_memory(len(reached) + len(expanded), memory)
    return Reach(CodeSet(expanded), CodeSet(reached), cut, both, by_hop)


def _runs(
    blocks: Callable[[], Iterator[EdgeBlock]], frontier: CodeSet, both: bool, monitor: Monitor, total: int, what: str
) -> tuple[Array, Array]:
    """Keys (index · WIDTH + run) of the runs of a frontier, and their lengths."""
    keys, lengths = _NONE, _NONE
    parts: list[tuple[Array, Array]] = []
    waiting = done = 0
    for block in blocks():
        for ends, direction in ((block.subject, OUT), (block.object, IN))[: 2 if both else 1]:
            indexes = frontier.find(ends)
            rows = np.flatnonzero((indexes >= 0) & block.allowed)
            counted = np.unique(indexes[rows] * WIDTH + 2 * block.relation[rows] + direction, return_counts=True)
            parts.append(counted)
            waiting += len(counted[0])
        if waiting > len(keys) + len(block.subject):
            keys, lengths = _summed([(keys, lengths), *parts])
            parts, waiting = [], 0
        done += len(block.subject)
        monitor.progress(done, max(total, done), f"edges, {what}")
    keys, lengths = _summed([(keys, lengths), *parts])
    return keys, lengths


def _summed(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    keys, indexes = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    lengths = np.zeros(len(keys), dtype=np.int64)
    np.add.at(lengths, indexes, np.concatenate([part[1] for part in parts]))
    return keys, lengths


def _check_memory(entities: int, memory: int) -> None:
    needed = entities * BYTES_PER_ENTITY
    if needed > memory:
        raise KgqaError(
            f"the neighbourhood has more than {entities:,} entities, which need {needed / 1e9:,.1f} GB of memory "
            f"({memory / 1e9:,.1f} allowed); lower --hops or --max-degree, name fewer --relations, or raise "
            f"{LIMIT_OPTION}"
        )


def save(result: Reach, folder: Any) -> dict[str, Any]:
    """Writes what is reached to a folder, and returns its counts."""
    arrays = {
        "expanded": result.expanded.codes,
        "reached": result.reached.codes,
        "cut_entities": result.cut.entities,
        "cut_runs": result.cut.runs,
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    return {"by_hop": result.by_hop, "both": result.both}


def load(folder: Any, counts: dict[str, Any]) -> Reach:
    """What `save` wrote."""
    expanded, reached, entities, runs = (
        np.load(folder / f"{name}.npy", allow_pickle=False)
        for name in ("expanded", "reached", "cut_entities", "cut_runs")
    )
    return Reach(CodeSet(expanded), CodeSet(reached), CutRuns(entities, runs), counts["both"], counts["by_hop"])
