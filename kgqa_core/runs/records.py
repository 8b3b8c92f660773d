"""Finished runs of a home: their records, by what words one is chosen, and what they answered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import Experiment
from kgqa_core.datasets.question import read_questions
from kgqa_core.errors import ArtifactError, InputError, nearest
from kgqa_core.evaluation.labels import METRICS
from kgqa_core.evaluation.paired import read_scored
from kgqa_core.kg.store import KgStore
from kgqa_core.runs.changes import Record
from kgqa_core.store.home import read_runs
from kgqa_core.store.tables import read_frame
from kgqa_core.types import Question


def current_champions(home: Path) -> dict[str, str]:
    """Registered system → id of the run that is its champion."""
    found = {}
    for path in sorted((home / "champions").glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            found[path.stem] = str(record["champion"]["run_id"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def choose_run(home: Path, word: str) -> dict[str, Any]:
    """The run that a word means: an id, the unambiguous beginning of one, `newest`, `champion` or `champion:SYSTEM`.

    Raises InputError that names the nearest run when none is meant, or all when several are.
    """
    records = {record["run_id"]: record for record in read_runs(home)}
    if not records:
        raise InputError(f"the home {home} has no run yet; start one with `kgqa demo` or `kgqa run`, or give --home")
    if word == "newest":
        done = [record for record in records.values() if record.get("status") == "done"]
        if not done:
            raise InputError(f"the home {home} has no finished run; it has {_listed(records)}")
        return done[-1]
    if word == "champion" or word.startswith("champion:"):
        word = _champion(home, word.partition(":")[2])
        if word not in records:
            raise InputError(f"the champion is run {word}, whose record is gone from {home / 'runs'}")
    found = [word] if word in records else [run for run in records if word and run.startswith(word)]
    if len(found) == 1:
        return records[found[0]]
    if found:
        raise InputError(f"{word!r} is the beginning of {len(found)} runs: {_listed(found)}; give more of the id")
    raise InputError(f"no run {word!r} in {home}; it has {_listed(records)}{nearest(word, records, cutoff=0.3)}")


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


def artifact_folder(record: Record, name: str) -> Path:
    """Folder of a stage's artifact.  Raises ArtifactError when the run has none."""
    for stage in record.get("stages", ()):
        if stage["name"] == name and stage.get("artifact"):
            return Path(stage["artifact"]["path"])
    raise ArtifactError(f"run {record['run_id']} has no {name}")


def _champion(home: Path, name: str) -> str:
    known = current_champions(home)
    if not known:
        raise InputError(f"the home {home} has no champion yet; the first finished run becomes one")
    if name:
        if name not in known:
            raise InputError(f"no champion of {name!r}; there are {', '.join(known)}{nearest(name, known)}")
        return known[name]
    if len(known) > 1:
        several = ", ".join(f"champion:{one}" for one in known)
        raise InputError(f"the home {home} has {len(known)} champions; say which: {several}")
    return next(iter(known.values()))


def _listed(runs: Iterable[str]) -> str:
    names = list(runs)
    return ", ".join(names[-10:]) + (f" and {len(names) - 10} older" if len(names) > 10 else "")


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
