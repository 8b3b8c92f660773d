"""Addresses of pages in MLflow."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from urllib.parse import parse_qs, urlsplit

import pytest

from kgqa_core.config import make_profile
from kgqa_core.store.artifacts import Home
from tasks.engine.publish import _compared
from tasks.engine.run import Run
from tasks.tracking.addresses import compare_page
from tests.support.finished import binary, finished_run, questions


def test_the_comparison_names_each_run_and_each_experiment_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MLFLOW_UI_URL", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    home = Home(tmp_path)
    assert compare_page(home, [("1", "a"), ("1", "b")]) is None, "no server is known"
    monkeypatch.setenv("MLFLOW_UI_URL", "http://127.0.0.1:5000/")
    page = compare_page(home, [("1", "a"), ("1", "b")])
    assert page is not None
    address = urlsplit(urlsplit(page).fragment)
    assert page.startswith("http://127.0.0.1:5000/#/compare-runs?") and address.path == "/compare-runs"
    query = {name: json.loads(values[0]) for name, values in parse_qs(address.query).items()}
    assert query == {"runs": ["a", "b"], "experiments": ["1"]}
    assert compare_page(home, [("1", "a"), ("1", None)]) is None, "a run that MLflow does not have"


def test_a_report_says_how_its_run_is_compared_with_the_last_one_of_its_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_UI_URL", "http://127.0.0.1:5000")
    home, asked = Home(tmp_path).prepare(), questions(["a", "b"])
    tracker = SimpleNamespace(experiment="1", known=lambda run: "new")
    run = cast(Run, SimpleNamespace(home=home, id="r2", tracker=tracker, tracked="handle"))
    profile = make_profile({"kg": {"name": "films", "files": ["films.nt"]}})
    assert _compared(run, profile) == [], "the first run of a home"
    finished_run(home, "r1", binary([1, 0]), asked, settings={"kg": {"name": "films", "files": ["films.nt"]}})
    [step] = _compared(run, profile)
    assert step == "`kgqa compare r1 r2` says what changed since the run before", "a run that MLflow does not have"
    path = home.root / "runs" / "r1" / "run.json"
    known = {"mlflow_experiment_id": "1", "mlflow_run_id": "old"}
    path.write_text(json.dumps(json.loads(path.read_text()) | known))
    [step] = _compared(run, profile)
    assert step.endswith(f"; side by side in MLflow: {compare_page(home, [('1', 'old'), ('1', 'new')])}")
    assert _compared(run, make_profile({"kg": {"name": "lands", "files": ["lands.nt"]}})) == []
