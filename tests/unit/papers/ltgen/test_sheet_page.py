"""The annotation page in a browser: radio buttons, progress, what a reload keeps, and the CSV that it saves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgqa_core.papers.ltgen.sheet import read_sheet, write_sheet
from tests.support.browser import NO_CHROMIUM, Browser, chromium

pytestmark = pytest.mark.slow

TEXTS = ["plain", 'with "quotes", commas\nand lines', "<b>bold</b> & <script>alert(1)</script>", "=1+1"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip(NO_CHROMIUM)
    with Browser(tmp_path_factory.mktemp("browser") / "log") as running:
        yield running


def test_what_is_chosen_in_the_page_is_what_agreement_reads(browser: Browser, tmp_path: Path, ltgen_kg: Path) -> None:
    rows = [
        {"id": f"conv/{number}", "question": text, "topic_entities": ["Q1"], "answers": ["Q120"], "level": "II",
         "reference": text, "gold_triples": [["Q1", "P106", "Q120"]]}
        for number, text in enumerate(TEXTS)
    ]  # fmt: skip
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    write_sheet(tmp_path, benchmark=tmp_path, kg=ltgen_kg, share=1.0, seed=7, kind="conv")
    browser.open((tmp_path / "sheet.html").as_uri(), "LTGen-Conv", "0 of 4 chosen", "(Ada Byron, occupation, poet)")
    assert browser.run("typeof alerted") == "undefined" and browser.count("article") == 4
    ids = json.loads(browser.run("JSON.stringify(items.map(item => item.dataset.id))"))
    for place, value in enumerate(["correct", "incorrect", "correct"]):
        browser.run(f"items[{place}].querySelector('input[value={value}]').click()")
    browser.fill("article:nth-of-type(2) input[type=text]", 'says "no", twice')
    browser.wait("3 of 4 chosen")
    saved = tmp_path / "filled.csv"
    saved.write_text(browser.run("csv()"), encoding="utf-8", newline="")
    assert read_sheet(saved) == {ids[0]: True, ids[1]: False, ids[2]: True, ids[3]: None}
    import csv

    with saved.open(encoding="utf-8-sig", newline="") as file:
        found = {row["id"]: row for row in csv.DictReader(file)}
    with (tmp_path / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        given = {row["id"]: row for row in csv.DictReader(file)}
    assert found[ids[1]]["note"] == 'says "no", twice'
    for key, row in given.items():
        mine = found[key]
        assert {name: " ".join(mine[name].split()) for name in ("id", "level", "query", "answer", "triples")} == {
            name: " ".join(row[name].split()) for name in ("id", "level", "query", "answer", "triples")
        }
    browser.open((tmp_path / "sheet.html").as_uri(), "3 of 4 chosen")
    assert browser.run("items[1].querySelector('input[type=text]').value") == 'says "no", twice'
    browser.run("document.getElementById('save').click()")
    assert browser.text()
