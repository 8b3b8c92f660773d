"""Somebody else's answers with our metrics (`kgqa evaluate`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgqa_core.config import EvaluationOptions, QuestionSource
from kgqa_core.datasets.files.jsonl import read_predictions
from kgqa_core.datasets.files.question import FILE, read_questions
from kgqa_core.datasets.load import read_raw
from kgqa_core.errors import QuestionFileError
from kgqa_core.evaluation.aggregate import aggregate
from kgqa_core.evaluation.score import score_outputs
from kgqa_core.types import Question

EXPERIMENT = "-/-/predictions"
"""Name of the predictions in the aggregates: neither retriever nor prompt format is known."""


def evaluate_predictions(
    predictions: Path, questions: Sequence[Question] | Path, *, kg: Path | None = None
) -> dict[str, Any]:
    """Aggregates of a prediction file, under the experiment `-/-/predictions`.

    predictions: JSON Lines `{"id", "prediction"}`; a list of answers counts as all of them, joined with commas.
    questions: records, a question file, or a `questions` artifact.  With `kg`, answers in a question file that are keys
    or labels of that graph get their names and aliases.
    Every question of a split that has a prediction is counted, without one it scores 0 (`n_missing`).  Predictions for
    unknown ids are not scored; `unknown_ids` lists them.
    Raises QuestionFileError that names file and line.
    """
    given = read_predictions(predictions)
    records = load_questions(questions, kg) if isinstance(questions, Path) else list(questions)
    known = {record.id for record in records}
    unknown = sorted(set(given) - known)
    if given and len(unknown) == len(given):
        raise QuestionFileError(
            f"{predictions}: none of its {len(given)} ids is among the {len(known)} questions "
            f"(the first is '{unknown[0]}'); give the question file that the predictions were made for"
        )
    splits = {record.split for record in records if record.id in given}
    evaluated = [record for record in records if record.split in splits]
    rows = {EXPERIMENT: score_outputs(evaluated, given)}
    aggregates = aggregate(rows, evaluated, samples=EvaluationOptions().bootstrap, seed=7)
    aggregates["n_missing"] = sum(record.id not in given for record in evaluated)
    aggregates["unknown_ids"] = unknown
    return aggregates


def load_questions(path: Path, kg: Path | None = None) -> list[Question]:
    """Questions of a question file or a `questions` artifact; those without a split count as test.

    Raises QuestionFileError.
    """
    if path.suffix == ".parquet" or (path / FILE).is_file():
        return read_questions(path)
    rows = read_raw(QuestionSource(path=str(path)), seed=7)
    names = _surface_forms(kg, [answer for row in rows for answer in row["answers"]]) if kg is not None else {}
    return [
        Question(
            id=row["id"],
            text=row["question"],
            split=row["split"] or "test",
            topic_keys=tuple(row["topic_entities"]),
            answer_type=row["answer_type"] or "entities",
            answer_keys=tuple(row["answers"]),
            answer_names=tuple(
                tuple(dict.fromkeys((*(names.get(answer) or (answer,)), answer, *aliases)))
                for answer, aliases in zip(row["answers"], row["answer_aliases"], strict=True)
            ),
            complexity=row["complexity"],
            hops=row["hops"],
            level=row["level"],
            dialogue=tuple((role, text) for role, text in row["dialogue"]),
            reference=row["reference"],
            gold_triples=tuple((head, relation, tail) for head, relation, tail in row["gold_triples"]),
        )
        for row in rows
    ]


def _surface_forms(kg: Path, texts: Sequence[str]) -> dict[str, list[str]]:
    from kgqa_core.kg.store import KgStore

    with KgStore.open(kg) as store:
        surface_forms = store.resolve(sorted(set(texts)))
        ids = sorted({entity for entities in surface_forms.values() for entity in entities})
        forms = store.surface_forms(ids)
    return {
        text: list(dict.fromkeys(form for entity in ids for form in forms[entity]))
        for text, ids in surface_forms.items()
    }
