"""Questions as semantic parsers read them: their text, the entities found in it, and the gold form to learn from.

One Parquet file, a row a question, sorted by id; whoever makes the artifact (`of_questions` here, or a benchmark above)
says which entities a parser starts from and which form is gold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.errors import ArtifactError

FILE = "examples.parquet"

_TOPIC = pl.Struct({"key": pl.String, "mention": pl.String, "rho": pl.Float64, "number": pl.Int32})

SCHEMA: dict[str, Any] = {
    "id": pl.String, "text": pl.String, "split": pl.String, "language": pl.String, "topics": pl.List(_TOPIC),
    "form": pl.String, "known": pl.Boolean,
}  # fmt: skip
"""Columns of examples.parquet."""


@dataclass(frozen=True, slots=True)
class Topic:
    """An entity that a question may be about.

    key: in the graph.  mention: the words that name it in the text, or its name where they are not known.  rho: the
    linker's confidence in [0, 1], 1 for what the question file says.  number: of the mention; candidates of one mention
    share it.
    """

    key: str
    mention: str
    rho: float = 1.0
    number: int = 0


@dataclass(frozen=True, slots=True)
class ParseExample:
    """A question for a semantic parser.

    form: the gold form, as text, in the graph that the parser works on; None where there is none or it is not known.
    known: whether `form` says so: a None that is known means that this graph has no form for the question (NK), one
    that is not known says nothing, and the question is not learnt from.
    """

    id: str
    text: str
    split: str = "test"
    language: str = "en"
    topics: tuple[Topic, ...] = ()
    form: str | None = None
    known: bool = False


def write_examples(folder: Path, examples: Iterable[ParseExample]) -> Path:
    """Writes `examples.parquet` into `folder`, rows sorted by id, and returns its path."""
    rows = [asdict(one) for one in sorted(examples, key=lambda one: one.id)]
    path = folder / FILE
    pl.DataFrame(rows, schema=SCHEMA, orient="row").write_parquet(path, compression="zstd")
    return path


def read_examples(folder: Path) -> list[ParseExample]:
    """The questions of an `examples` artifact, in order of id.  Raises ArtifactError."""
    path = folder / FILE
    try:
        frame = pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as fault:
        raise ArtifactError(f"{path} cannot be read ({fault}); delete its folder and run again") from None
    if dict(frame.schema) != SCHEMA:
        raise ArtifactError(f"{path} has other columns than this version writes; delete its folder and run again")
    return [
        ParseExample(**{**row, "topics": tuple(Topic(**topic) for topic in row["topics"])})
        for row in frame.iter_rows(named=True)
    ]
