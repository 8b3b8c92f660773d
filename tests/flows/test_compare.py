"""`kgqa compare` on two finished runs: to the terminal, as JSON, as a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.store.artifacts import Home
from tests.support.finished import finished_run, questions
from tests.support.forked_command import forked_kgqa

EXPERIMENT = "rigel/triples/builtin"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = Home(tmp_path_factory.mktemp("compared") / "home")
    asked = questions([f"What is [bold]<script>{n}</script>?" for n in range(30)])
    for run, right, epochs in (("20260101-000000-aaaa", 10, 4), ("20260201-000000-bbbb", 25, 2)):
        rows = {EXPERIMENT: {one.id: {"exact": float(n < right)} for n, one in enumerate(asked)}}
        said = {EXPERIMENT: {one.id: f"said {one.id}" for one in asked}}
        finished_run(home, run, rows, asked, said, {"rigel": {"epochs": epochs}})
    return home.root


def test_terminal_page_and_json_say_the_same(home: Path, tmp_path: Path) -> None:
    page = tmp_path / "out" / "page.html"
    shown = forked_kgqa("compare", "20260101", "newest", "--home", home, "--html", page, "--limit", "2")
    assert shown.code == 0, shown.err[-3000:]
    assert "rigel.epochs" in shown.out and "+50.0" in shown.out and "2 of 15" in shown.out
    assert "[bold]<script>10</script>" in shown.out and "<script>12" not in shown.out
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text and "&lt;script&gt;24" in text and "+50.0" in text
    told = forked_kgqa("compare", "20260101", "newest", "--home", home, "--json")
    (score,) = told.json["scores"]
    assert (score["others"][0]["value"], score["others"][0]["won"]) == (0.5, 15)


def test_wrong_runs_are_refused_with_the_nearest(home: Path) -> None:
    wrong = forked_kgqa("compare", "20260101", "20260201-000000-bbbc", "--home", home)
    assert wrong.code == 2 and "did you mean '20260201-000000-bbbb'" in wrong.err and "Traceback" not in wrong.err
    alone = forked_kgqa("compare", "newest", "--home", home)
    assert alone.code == 2 and "at least two runs" in alone.err
