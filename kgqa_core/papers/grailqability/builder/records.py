"""What an answerability benchmark is made of, and how its files hold it.

    train.jsonl dev.jsonl test.jsonl     what the modified graph says of each question: its form or none, its answers
    ideal/train.jsonl …                  kept apart: ideal form and answers, why and since when it cannot be answered
    drops.jsonl                          what was dropped, in order
    left_out.jsonl                       questions that are in no split, with the reason
    kg/                                  the modified graph, an overlay of the ideal one
    statistics.json README.md

No file that training reads has the ideal form of a question whose form is gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from kgqa_core.errors import InputError
from kgqa_core.papers.benchmark_files import write_json_lines
from kgqa_core.types import SPLITS

TYPE, RELATION, ENTITY, FACT = "type", "relation", "entity", "fact"
KINDS = (TYPE, RELATION, ENTITY, FACT)
"""Kinds of drops in the paper's order, the largest first."""

IID, PARTIAL, FULL = "iid", "partial", "full"
LEVELS = (IID, PARTIAL, FULL)
"""How new to a system what a question misses is: seen in training, in part, or not at all."""

DROPS, LEFT_OUT, STATISTICS, GRAPH, IDEAL = "drops.jsonl", "left_out.jsonl", "statistics.json", "kg", "ideal"


@dataclass(frozen=True, slots=True)
class BenchmarkQuestion:
    """A question as the modified graph has it: what systems are given, trained on and scored against.

    s_expression: None where the graph has no form for it (NK).  answers: keys of entities or literals, a number, or
    `yes` or `no`; empty, or `"0"` of a count, where it cannot be answered (NA).
    """

    id: str
    question: str
    split: str
    answerable: bool
    s_expression: str | None
    answers: tuple[str, ...]
    answer_type: str
    topic_entities: tuple[str, ...]
    complexity: str | None = None
    hops: int | None = None
    language: str = "en"

    @property
    def answer_label(self) -> str:
        """`A` or `NA`."""
        return "A" if self.answerable else "NA"

    @property
    def form_label(self) -> str:
        """`K` where the graph has its form, else `NK`."""
        return "NK" if self.s_expression is None else "K"


@dataclass(frozen=True, slots=True)
class IdealRecord:
    """The same question in the ideal graph, and what it lost.

    drop, step: the kind and number of the drop that made it unanswerable, else None.  missing: steps whose elements it
    misses: of its form where that is gone, else of the facts that answered it.  level: one of LEVELS for what dev
    and test miss, else None; `zero-shot` where the files do not say in which part.  more_drops: other kinds that a
    published file names beside `drop`.  generalization: of an answerable question of GrailQA, one of
    `types.GENERALIZATION`.
    """

    id: str
    s_expression: str
    answers: tuple[str, ...]
    drop: str | None = None
    step: int | None = None
    missing: tuple[int, ...] = ()
    level: str | None = None
    origin: str = ""
    more_drops: tuple[str, ...] = ()
    generalization: str | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """One thing that was dropped; keys are the graph's.

    element: key of a type, relation or entity; of a fact head, relation and tail.  popularity, affected, weight: what
    the draw saw.  unanswerable: questions that this step made so.  relations, entities: what else went with a type.
    facts: triples that this step took.
    """

    step: int
    kind: str
    element: tuple[str, ...]
    popularity: float
    affected: float
    weight: float
    unanswerable: int
    facts: int
    relations: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark that was read.  questions and ideal go in the same order, by split and id."""

    folder: Path
    questions: tuple[BenchmarkQuestion, ...]
    ideal: tuple[IdealRecord, ...]
    drops: tuple[Drop, ...]
    statistics: dict[str, Any]


def write_benchmark(
    out: Path, pairs: Sequence[tuple[BenchmarkQuestion, IdealRecord]], drops: Iterable[Drop], left_out: Iterable[Any]
) -> None:
    """Writes the questions of each split with their ideal halves, the drops, and what was left out."""
    for name in SPLITS:
        rows = [pair for pair in pairs if pair[0].split == name]
        write_json_lines(out / f"{name}.jsonl", (question for question, _ in rows))
        write_json_lines(out / IDEAL / f"{name}.jsonl", (ideal for _, ideal in rows))
    write_json_lines(out / DROPS, drops)
    write_json_lines(out / LEFT_OUT, left_out)


def read_benchmark(folder: Path) -> Benchmark:
    """The benchmark in a folder that `kgqa answerability build` wrote.  Raises InputError."""
    if not (folder / STATISTICS).is_file():
        raise InputError(f"{folder} is no answerability benchmark: it has no {STATISTICS}; `kgqa answerability build`")
    try:
        questions = [
            BenchmarkQuestion(**row) for split in SPLITS for row in _rows(folder / f"{split}.jsonl", BenchmarkQuestion)
        ]
        ideal = [
            IdealRecord(**row) for split in SPLITS for row in _rows(folder / IDEAL / f"{split}.jsonl", IdealRecord)
        ]
        drops = [Drop(**row) for row in _rows(folder / DROPS, Drop)]
        statistics = json.loads((folder / STATISTICS).read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError) as fault:
        raise InputError(f"{folder} cannot be read as an answerability benchmark: {fault}") from None
    if [row.id for row in questions] != [row.id for row in ideal]:
        raise InputError(f"{folder}: the questions and those of {IDEAL}/ are not the same; build it again")
    return Benchmark(folder, tuple(questions), tuple(ideal), tuple(drops), statistics)


def _rows(path: Path, kind: Any) -> Iterator[dict[str, Any]]:
    """The lines of a file as arguments of a dataclass; lists become tuples."""
    known = {field.name for field in fields(kind)}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        row = json.loads(line)
        unknown = sorted(set(row) - known)
        if unknown:
            raise ValueError(f"{path.name} line {number} has unknown fields {unknown}")
        yield {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
