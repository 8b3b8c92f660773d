"""What a semantic parser says of each question: ranked forms, or that the graph has none, and what they find.

One Parquet file, a row a form, sorted by question and rank.  A question of which the parser found nothing at all has no
row; one of which it says that the graph has no form has a row whose form is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.errors import ArtifactError

FILE = "parsed.parquet"

SCHEMA: dict[str, Any] = {
    "question": pl.String, "rank": pl.Int32, "form": pl.String, "score": pl.Float64, "rho": pl.Float64,
    "answers": pl.List(pl.String), "empty": pl.Boolean,
}  # fmt: skip
"""Columns of parsed.parquet."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """One form that a parser proposes.

    rank: 0 is the best.  form: as text, None for "this graph has no form for it".  score: logarithm of the parser's
    probability of it among what it proposed, `None` included; at most 0.  rho: the linker's confidence in the least
    certain entity that the form names, 1 where it names none.  answers: what it finds in the graph, as
    `logic.execute.answer_texts` writes it.  empty: whether it finds nothing (a count of 0 is nothing); None where it
    was not run.
    """

    question: str
    rank: int
    form: str | None
    score: float
    rho: float = 1.0
    answers: tuple[str, ...] = ()
    empty: bool | None = None


def write_parsed(folder: Path, rows: Iterable[Parsed]) -> Path:
    """Writes `parsed.parquet` into `folder`, sorted by question and rank, and returns its path."""
    table = [asdict(row) for row in sorted(rows, key=lambda row: (row.question, row.rank))]
    path = folder / FILE
    pl.DataFrame(table, schema=SCHEMA, orient="row").write_parquet(path, compression="zstd")
    return path


def read_parsed(folder: Path) -> dict[str, list[Parsed]]:
    """The forms of each question, best first.  Raises ArtifactError."""
    path = folder / FILE
    try:
        frame = pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as fault:
        raise ArtifactError(f"{path} cannot be read ({fault}); delete its folder and run again") from None
    if dict(frame.schema) != SCHEMA:
        raise ArtifactError(f"{path} has other columns than this version writes; delete its folder and run again")
    found: dict[str, list[Parsed]] = {}
    for row in frame.iter_rows(named=True):
        found.setdefault(row["question"], []).append(Parsed(**{**row, "answers": tuple(row["answers"])}))
    return found
