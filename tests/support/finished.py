"""Finished runs made by hand: a home with records, questions, answers and scores, and no stage that ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import make_profile
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.store.artifacts import ArtifactRef, Home, write_json
from kgqa_core.types import Question

Rows = Mapping[str, Mapping[str, Mapping[str, float]]]
"""experiment → question → metric → value."""


def questions(texts: Sequence[str], gold: str = "gold") -> list[Question]:
    """One question for each text, with one gold answer."""
    return [
        Question(id=f"q{n:04d}", text=text, answer_keys=(f"k{n}",), answer_names=((f"{gold} {n}",),))
        for n, text in enumerate(texts)
    ]


def binary(values: Sequence[float], experiment: str = "rigel/-/-", metric: str = "hits_at_1") -> Rows:
    """Scores of one experiment, a value for each question."""
    return {experiment: {f"q{n:04d}": {metric: float(value)} for n, value in enumerate(values)}}


def score_frame(rows: Rows, asked: Sequence[Question]) -> pl.DataFrame:
    """Scores as `read_scored` gives them."""
    texts = {one.id: one.text for one in asked}
    cells = [
        (experiment, "test", question, texts.get(question), metric, value)
        for experiment, scored in rows.items()
        for question, metrics in scored.items()
        for metric, value in metrics.items()
    ]
    names = ("experiment", "split", "question", "text", "metric", "value")
    schema = {name: pl.Float64 if name == "value" else pl.String for name in names}
    return pl.DataFrame(cells, schema=schema, orient="row")


def publish(home: Home, kind: str, key: str, files: Mapping[str, Any], made_of: Mapping[str, Any], run: str) -> Any:
    """An artifact with these frames or questions, by file name."""

    def fill(out: Path, work: Path) -> dict[str, int]:
        for name, value in files.items():
            if isinstance(value, pl.DataFrame):
                value.write_parquet(out / name)
            elif isinstance(value, list):
                write_questions(out, value)
            else:
                write_json(out / name, value)
        return {"rows": sum(len(value) for value in files.values())}

    record = {"made_of": dict(made_of), "run_id": run, "environment": {"git": "abc123"}}
    return home.compute(kind, f"{kind}{key}".ljust(24, "0"), fill, record)[0]


def finished_run(
    home: Home,
    run_id: str,
    rows: Rows,
    asked: Sequence[Question],
    answers: Mapping[str, Mapping[str, str]] | None = None,
    settings: Mapping[str, Any] | None = None,
    made_of: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Write a finished run into a home and return its record.

    answers: experiment → question → output.  made_of: stage → what its key was made of.
    """
    home.prepare()
    made = made_of or {}
    scores = score_frame(rows, asked).drop("text")
    refs: dict[str, ArtifactRef] = {
        "questions": publish(home, "questions", run_id, {"questions.parquet": list(asked)},
                             made.get("questions", {}), run_id),
        "scores": publish(home, "scores", run_id, {"scores.parquet": scores, "aggregates.json": {"scores": {}}},
                          made.get("scores", {}), run_id),
    }  # fmt: skip
    for experiment, outputs in (answers or {}).items():
        retriever, form, model = experiment.split("/", 2)
        frame = pl.DataFrame(
            {"question": list(outputs), "retriever": retriever, "format": form, "model": model,
             "output": list(outputs.values())}
        )  # fmt: skip
        name = f"answers/{retriever}"
        key = f"{run_id}{retriever}"
        refs[name] = publish(home, "answers", key, {"answers.parquet": frame}, made.get(name, {}), run_id)
    names = {"kg": {"name": "toy"}, "questions": {"name": "asked"}}
    profile = make_profile(names, settings or {})
    record = {
        "run_id": run_id,
        "status": "done",
        "home": str(home.root),
        "profile": profile.model_dump(mode="json"),
        "environment": {"git": f"commit-{run_id}"},
        "report": str(home.root / "runs" / run_id / "report.html"),
        "mlflow_run_id": None,
        "aggregates": {"scores": {}},
        "stages": [
            {"name": name, "title": name, "status": "computed", "seconds": 0.1,
             "counts": {"rows": 1}, "artifact": ref.model_dump()}
            for name, ref in refs.items()
        ],
    }  # fmt: skip
    folder = home.root / "runs" / run_id
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "run.json", record)
    return record
