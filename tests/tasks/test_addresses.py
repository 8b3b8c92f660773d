"""Addresses of pages in MLflow."""

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from kgqa_core.store.artifacts import Home
from tasks.tracking.addresses import compare_page


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
