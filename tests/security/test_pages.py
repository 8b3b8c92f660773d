"""Pages made of hostile names, questions and outputs hold nothing that a browser runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kgqa_core.report.runs import write
from kgqa_core.runs.diff import compare_runs
from kgqa_core.store.artifacts import Home
from tasks.engine.prefect_pages import cell
from tests.support.finished import finished_run, questions
from tests.support.hostile import EVIL, Dangers, dangers


@pytest.mark.parametrize("page", [
    "<a href=' java\tscript:alert(1)'>x</a>", "<p onclick=alert(1)>x", "<ScRiPt>alert(1)</script>", "<svg><set></svg>",
    "<iframe>", "<a xlink:href='data:text/html,x'>", '<meta http-equiv="Refresh" content="0">', "<!-- alert -->",
])  # fmt: skip
def test_the_reader_of_pages_sees_what_would_run(page: str) -> None:
    assert dangers(page)


def test_a_comparison_shows_hostile_text_and_runs_none(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    experiment = f"rigel/triples/openai:{EVIL[1]}"
    asked = questions([f"{text} {n}?" for n, text in enumerate(EVIL * 3)], gold=EVIL[0])
    records = []
    for number, run in enumerate(("20260101-000000-aaaa", "20260201-000000-bbbb")):
        rows = {experiment: {one.id: {"exact": float(n % 2 == number)} for n, one in enumerate(asked)}}
        said = {experiment: {one.id: f"{EVIL[n % len(EVIL)]} {run}" for n, one in enumerate(asked)}}
        names = {"kg": {"name": EVIL[2]}, "questions": {"name": EVIL[3]}, "description": EVIL[4]}
        settings = {**names, "name": EVIL[5], "answering": {"answerer": f"openai:{EVIL[number]}"}}
        record = finished_run(home, run, rows, asked, said, settings)
        links = {"report": "javascript:alert(1)", "mlflow_run_id": EVIL[1], "environment": {"git": EVIL[0]}}
        records.append({**record, **links})
    write(tmp_path / "page.html", compare_runs(records), EVIL[0])
    read = Dangers((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert read.found == []
    assert all(text in read.text for text in EVIL)


@pytest.mark.parametrize("text", [
    *EVIL, "a|b", "a\\|b", "\\[x\\](javascript:alert(1))", "a\nb", "a\r# b", "a\u2028| b", "`a", "<img src=x>",
    "&lt;b&gt;",
])  # fmt: skip
def test_a_cell_of_a_markdown_table_stays_a_cell(text: str) -> None:
    made = cell(text)
    bare = re.sub(r"\\[\\|\[\]`*_]", "", made)
    assert not set(bare) & set("<|[]`*_\\\n\r\u2028")
    back = re.sub(r"\\([\\|\[\]`*_])", r"\1", made).replace("&lt;", "<").replace("&amp;", "&")
    assert back == " ".join(text.splitlines())
