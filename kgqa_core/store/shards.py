"""Parts of a stage's work, which together are the whole: what they hold, and how they are joined again.

A part takes whole batches of the work that is not divided, in its order: what is computed together stays together, and
every number comes out as it would have.  A part's folder holds its share of each table and, in `part.json`, the counts
that its share adds to the whole.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.errors import ArtifactError, InputError
from kgqa_core.store.artifacts import write_json
from kgqa_core.store.tables import read_frame

Part = tuple[int, int]
"""(k, n): the k-th of n parts, counted from 0."""

FILE = "part.json"

LOADING = threading.RLock()
"""Held while a model is loaded: parts may run on threads of one process, and the model libraries import and load what
they need without a thought for other threads."""


def share(part: Part | None, starts: Sequence[int], total: int) -> slice:
    """The places, of `total`, that a part takes; all of them without a part.

    starts: ascending places at which something begins that must stay together, 0 the first.  The n shares follow each
    other and are as even as whole pieces allow; where there are fewer pieces than parts some shares are empty.
    Raises InputError for a part that cannot be.

    >>> [share((k, 3), [0, 64, 128, 192], 200) for k in range(3)]
    [slice(0, 64, None), slice(64, 128, None), slice(128, 200, None)]
    """
    if part is None:
        return slice(0, total)
    number, parts = part
    if not 0 <= number < parts:
        raise InputError(f"part {number} of {parts} is none; parts are counted from 0 to one less than their number")
    bounds = [*starts, total] if total else [0]
    pieces = len(bounds) - 1
    return slice(bounds[pieces * number // parts], bounds[pieces * (number + 1) // parts])


def write_part(out: Path, counts: Mapping[str, Any], **more: Any) -> None:
    """Writes what a part's share adds to the counts of the whole, and what else its joining needs."""
    write_json(out / FILE, {"counts": dict(counts), **more})


def read_parts(parts: Sequence[Path]) -> list[dict[str, Any]]:
    """What each part wrote, in their order.  Raises ArtifactError when one is missing or damaged."""
    rows = []
    for folder in parts:
        try:
            rows.append(json.loads((folder / FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError) as fault:
            raise ArtifactError(f"{folder} is not a part of a stage's work ({fault}); run the stage again") from None
    return rows


def join_rows(parts: Sequence[Path], name: str, by: Sequence[str] = ("question",)) -> pl.DataFrame:
    """The rows of one table of all parts, sorted by some columns; rows that are equal in these keep their order."""
    joined = pl.concat([read_frame(folder / name) for folder in parts])
    return joined.sort(*by, maintain_order=True) if by else joined


def add_counts(counts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts added up by name, also inside counts that have parts themselves.

    >>> add_counts([{"rows": 2, "finish": {"stop": 2}}, {"rows": 3, "finish": {"stop": 1, "length": 2}}])
    {'rows': 5, 'finish': {'stop': 3, 'length': 2}}
    """
    total: dict[str, Any] = {}
    for part in counts:
        for name, value in part.items():
            if isinstance(value, Mapping):
                total[name] = add_counts([total.get(name, {}), value])
            else:
                total[name] = total.get(name, 0) + value
    return total
