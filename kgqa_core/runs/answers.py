"""What runs answered, as their stages wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

import polars as pl

from kgqa_core.config import Experiment
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.evaluation.paired import read_scored
from kgqa_core.kg.store import KgStore
from kgqa_core.metrics.registry import METRICS
from kgqa_core.runs.records import Record, artifact_folder
from kgqa_core.store.tables import read_frame
from kgqa_core.types import Question


def outputs(record: Record, experiment: str) -> dict[str, str]:
    """Question id → what an experiment of a run answered; a retriever alone answers with its first entity."""
    parsed = Experiment.parse(experiment)
    if parsed.alone:
        return _first_entities(record, str(parsed.variant))
    wanted = {"retriever": str(parsed.variant), "format": parsed.format, "model": parsed.answerer}
    for stage in record["stages"]:
        if not stage["name"].startswith("answers") or not stage.get("artifact"):
            continue
        frame = read_frame(Path(stage["artifact"]["path"]) / "answers.parquet", ("question", *wanted, "output"))
        frame = frame.filter(*(pl.col(name) == value for name, value in wanted.items()))
        if frame.height:
            return dict(zip(frame["question"].to_list(), frame["output"].to_list(), strict=True))
    return {}


def answer_table(scores: Path, questions: Path, answers: Sequence[Path]) -> pl.DataFrame:
    """Rows (experiment, split, question, text, gold, answer) and a column for each metric, sorted by these.

    scores, questions, answers: artifact folders.  gold: first names of the gold answers, joined by `; `.  Retrievers
    alone have no answer here.
    """
    table = read_scored(scores, questions).pivot(on="metric", index=["experiment", "split", "question", "text"])
    questions_read = read_questions(questions)
    golds = pl.DataFrame(
        {
            "question": [one.id for one in questions_read],
            "gold": ["; ".join(gold_names(one)) for one in questions_read],
        },
        schema={"question": pl.String, "gold": pl.String},
    )
    columns = ("question", "retriever", "format", "model", "output")
    frames = [read_frame(folder / "answers.parquet", columns).select(columns).cast(pl.String) for folder in answers]
    answers_read = pl.concat([pl.DataFrame(schema=dict.fromkeys(columns, pl.String)), *frames]).select(
        "question", experiment=pl.concat_str("retriever", "format", "model", separator="/"), answer="output"
    )
    table = table.join(golds, on="question", how="left").join(answers_read, on=["experiment", "question"], how="left")
    first = ["experiment", "split", "question", "text", "gold", "answer"]
    known = [metric for metric in METRICS if metric in table.columns]
    return table.select(*first, *known, pl.exclude(*first, *known)).sort("experiment", "split", "question")


def gold_names(question: Question) -> list[str]:
    """First names of the gold answers."""
    names = zip_longest(question.answer_names, question.answer_keys, fillvalue=())
    return [str(known[0] if known else key) for known, key in names]


def _first_entities(record: Record, retriever: str) -> dict[str, str]:
    folder = artifact_folder(record, f"facts/{retriever}")
    frame = read_frame(folder / "entities.parquet", ("question", "rank", "entity")).filter(pl.col("rank") == 0)
    with KgStore.open(artifact_folder(record, "kg")) as store:
        names = store.names(frame["entity"].unique().to_list())
    return {question: names.get(entity, str(entity)) for question, _, entity in frame.iter_rows()}
