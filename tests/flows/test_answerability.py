"""`kgqa answerability`: a benchmark from files, verified, shown, scored, and parsers on it in report and tracker."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.papers.grailqability.builder.records import read_benchmark
from kgqa_core.papers.grailqability.parsing.parsed_forms import ParsedForm, write_parsed
from kgqa_core.store.publish import publish_folder
from tests.support.command import kgqa
from tests.support.forked_command import forked_kgqa
from tests.support.register_benchmark import write_inputs


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with facts.tsv, questions.jsonl, a home, and the benchmark `register` built from them."""
    folder = tmp_path_factory.mktemp("place")
    write_inputs(folder)
    built = kgqa(
        "answerability", "build", "--kg", folder / "facts.tsv", "--questions", folder / "questions.jsonl",
        "--set", "answerability.largest_drop_share=0.9", "--home", folder / "home", "--out", folder / "register",
        "--json",
    )  # fmt: skip
    assert built.code == 0, built.err[-3000:]
    counts = built.json["counts"]
    assert counts["unanswerable"] == 28 and counts["questions"] == 84
    return folder


@pytest.mark.slow
def test_it_is_verified_shown_and_scored(place: Path) -> None:
    verified = kgqa("answerability", "verify", place / "register", "--json")
    assert verified.code == 0 and verified.json["clean"], verified.err[-3000:]
    stats = kgqa("answerability", "stats", place / "register")
    assert "Table 1: what the splits hold" in stats.out and "Table 2" in stats.out
    benchmark = read_benchmark(place / "register")
    rows = [{"id": one.id, "s_expression": one.s_expression, "answers": one.answers} for one in benchmark.questions]
    path = place / "predicted.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    scored = kgqa("answerability", "score", place / "register", "--predictions", path, "--json").json
    assert all(row["EM"] == 100.0 for row in scored["scores"])


@pytest.mark.slow
def test_parsers_are_scored_and_shown_everywhere(place: Path) -> None:
    benchmark = read_benchmark(place / "register")

    def fill(folder: Path, work: Path) -> dict[str, Any]:
        write_parsed(
            folder,
            (
                ParsedForm(asked.id, 0, ideal.s_expression, math.log(0.9 if asked.s_expression else 0.4))
                for asked, ideal in zip(benchmark.questions, benchmark.ideal, strict=True)
            ),
        )
        return {}

    parsed = publish_folder("parsed", place / "parsed", fill)
    done = kgqa(
        "answerability", "evaluate", place / "register", "--parsed", f"rng/A+U={parsed.path}",
        "--home", place / "home", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err[-3000:]
    plain, tuned = done.json["systems"]
    assert plain["scores"]["test"]["U"]["EM"]["value"] < 1.0 == tuned["scores"]["test"]["U"]["EM"]["value"]
    assert tuned["thresholds"]["form"] == pytest.approx(0.65)
    page = Path(done.json["report"]).read_text(encoding="utf-8")
    assert "Rank and generate, A+U + T" in page and "Table 2: what was dropped" in page
    assert metrics(place / "home", done.json["run_id"])["rng/A_U/T/test/U/em"] == 1.0


def metrics(home: Path, run_id: str) -> dict[str, float]:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{home / 'mlflow/mlflow.db'}")  # no address that later tests would log to
    runs = client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])
    [run] = [run for run in runs if run.data.tags.get("kgqa.run_id") == run_id and "kgqa.stage" not in run.data.tags]
    found: dict[str, float] = run.data.metrics
    return found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("build",), "give --kg FILE or FOLDER and --questions FILE.jsonl"),
        (("build", "--kg", ".", "--questions", "q.jsonl"), "there is no graph folder"),
        (("verify", "gone"), "gone is no answerability benchmark"),
        (("evaluate", "gone"), "is no answerability benchmark"),
        (("evaluate", "gone", "--parsers", "bert"), "answerability.parsers"),
        (("evaluate", "gone", "--parsed", "rng=x"), "is not PARSER/TRAINING=FOLDER"),
    ],
)
def test_wrong_inputs_are_said_before_anything_starts(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    home = () if words[0] == "verify" else ("--home", tmp_path / "home")
    done = forked_kgqa("answerability", *words, *home, cwd=tmp_path)
    assert done.code in (1, 2) and said in done.err.replace("\n", " "), done.err[-500:]
    assert "Traceback" not in done.err
