"""The stage that computes answers from a retriever's facts, or from a parser's forms, and keeps what proves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import SymbolicOptions
from kgqa_core.datasets.question import read_questions
from kgqa_core.datasets.splits import choose
from kgqa_core.errors import StorageError
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import Wording
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.symbolic.arguments import read_arguments, read_proposed
from kgqa_core.symbolic.operator import load
from kgqa_core.symbolic.solve import Solved, Solver
from kgqa_core.symbolic.tables import COMPUTED, PROOF, PROOF_SCHEMA, SCHEMA


def compute(
    out: Path,
    *,
    kg: Path,
    questions: Path,
    facts: Path,
    operator: Path,
    parsed: Path | None,
    name: str,
    split: str,
    limit: int | None,
    options: SymbolicOptions,
    seed: int,
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes computed.parquet, a row a question, and proof.parquet, and returns counts.

    facts: of the retriever `name`.  operator: the trained classifier.  parsed: forms to try first, where a parser made
    some.  split, limit: the questions that are answered, as of `answer`.
    Raises QuestionFileError when the split is empty, and ArtifactError.
    """
    chosen = choose(read_questions(questions), split, limit, seed)
    model = load(operator)
    with KgStore.open(kg) as store:
        paths = read_arguments(facts, {question.id: question.topic_entities for question in chosen}, store)
        forms = read_proposed(parsed) if parsed is not None else None
        solver = Solver(store, model, options)
        solved = solver.solve(chosen, paths, forms, monitor)
        write(out, solved, proofs(store, solved))
    kinds = Counter(one.kind for one in solved if one.form is not None)
    return {
        "questions": len(solved),
        "computed": sum(one.form is not None for one in solved),
        "without_paths": sum(not paths.get(question.id) for question in chosen),
        "kinds": dict(sorted(kinds.items())),
        "truncated": sum(one.truncated for one in solved),
        "timeouts": solver.timeouts,
    }


def proofs(store: KgStore, solved: Sequence[Solved]) -> Mapping[str, list[tuple[int, str]]]:
    """The triples that prove each question's answer, with their texts."""
    used = sorted({triple for one in solved for triple in one.proof})
    wording = Wording(store, used, qualifiers=True)
    return {
        one.question: list(zip(one.proof, wording.texts([(triple, 1) for triple in one.proof]), strict=True))
        for one in solved
    }


def write(out: Path, solved: Sequence[Solved], proof: Mapping[str, Sequence[tuple[int, str]]]) -> None:
    """Writes both tables, rows in order of question."""
    ordered = sorted(solved, key=lambda one: one.question)
    rows = [
        (
            one.question, one.kind, None if one.form is None else str(one.form), list(one.answers), list(one.keys),
            one.weight, one.truncated, one.tried, list(one.topics), one.words,
        )
        for one in ordered
    ]  # fmt: skip
    proved = [
        (one.question, rank, triple, text)
        for one in ordered
        for rank, (triple, text) in enumerate(proof.get(one.question, ()))
    ]
    try:
        frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        frame.write_parquet(out / COMPUTED, compression="zstd", statistics=False)
        frame = pl.DataFrame(proved, schema=PROOF_SCHEMA, orient="row")
        frame.write_parquet(out / PROOF, compression="zstd", statistics=False)
    except OSError as fault:
        raise StorageError(f"cannot write what was computed to {out}: {fault}; free space") from fault
