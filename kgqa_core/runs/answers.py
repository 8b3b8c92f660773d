"""What runs answered, as their stages wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.abstention.apply import Verdict, read_verdicts
from kgqa_core.answering.explored import read_efforts
from kgqa_core.answering.reply import Answer
from kgqa_core.config import Experiment
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.evaluation.labels import METRICS
from kgqa_core.evaluation.paired import read_scored
from kgqa_core.kg.store import KgStore
from kgqa_core.runs.records import Record, artifact_folder
from kgqa_core.store.tables import read_frame
from kgqa_core.symbolic.compute import replies
from kgqa_core.types import Question


def verdict_fields(verdict: Verdict) -> dict[str, Any]:
    """Fields of `Answer` that say whether the graph holds the answer."""
    reason = verdict.reason
    return {
        "answerable": verdict.answerable,
        "confidence": verdict.confidence,
        "calibrated": verdict.calibrated,
        "min_confidence": verdict.min_confidence,
        "reason": reason and reason.kind,
        "missing": reason and reason.missing,
        "nearest": reason and reason.nearest,
    }


def read_answers(
    questions: Path,
    answers: Path,
    knowledge: Path | None = None,
    confidence: Path | None = None,
    computed: Path | None = None,
    wording: Path | None = None,
    *,
    needs_topics: bool = True,
) -> list[Answer]:
    """The answer to each question of a file, in its order, from the artifact folders of the stages.

    needs_topics: a question without a topic is rejected, unless the graph is held to answer it all the same.  One on
    which the language model failed is rejected, too.
    Raises ArtifactError when an artifact is damaged.
    """
    written = read_frame(answers / "answers.parquet", ("question", "output", "finish"))
    outputs = dict(written.select("question", "output").rows())
    failed = set(written.filter((pl.col("finish") == "error") & (pl.col("output") == ""))["question"])
    texts: dict[str, str] = {}
    if knowledge is not None:
        frame = read_frame(knowledge / "knowledge.parquet", ("question", "text"))
        texts = dict(frame.select("question", "text").rows())
    verdicts = read_verdicts(confidence) if confidence is not None else {}
    results = replies(computed) if computed is not None else {}
    efforts = read_efforts(computed) if computed is not None else {}
    wordings: dict[str, str] = {}
    if wording is not None:
        wordings = dict(
            read_frame(wording / "answers.parquet", ("question", "output")).select("question", "output").rows()
        )
    found = []
    for question in read_questions(questions):
        verdict = verdicts.get(question.id)
        answered = question.topic_entities or not needs_topics or (verdict is not None and verdict.answerable)
        reject = None if answered else (question.unlinkable or "no topic entity")
        if question.id in failed and reject is None:
            reject = "the language model failed on it; the same command asks it again"
        found.append(
            Answer(
                id=question.id,
                question=question.text,
                output=outputs.get(question.id),
                text=texts.get(question.id, ""),
                wording=(wordings.get(question.id) or None) if results.get(question.id, {}).get("answers") else None,
                effort=efforts.get(question.id),
                reject=reject,
                **results.get(question.id, {}),
                **(verdict_fields(verdict) if verdict is not None else {}),
            )
        )
    return found


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
