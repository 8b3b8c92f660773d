"""A report opens with how many answers are right, what fails most, and what to do next."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.datasets.files.question import write_questions
from kgqa_core.report.page import render, write
from kgqa_core.report.summary import ENOUGH, next_steps, summarize
from kgqa_core.types import Question
from tests.support.browser import NO_CHROMIUM, Browser, chromium
from tests.unit.report.fake import fake_report

KINDS = ("generic",) * 4 + ("multi-hop",) * 5 + ("count",)
OUTPUTS = ("Paris", "Paris", "Rome", None, None, None, None, "", "Paris", "Paris")
"""Two right and one wrong of the generic ones, one declined; of those of several steps four declined, one right."""
LINKED = "rigel@linked/triples/auto"


@pytest.fixture
def run(tmp_path: Path) -> dict[str, Path]:
    """Artifacts of a run of ten test questions, and one of training, answered from linked and from gold topics."""
    names = ("questions", "answers", "scores")
    folders = {name: tmp_path / name for name in names}
    for folder in folders.values():
        folder.mkdir()
    records = [
        Question(f"q{n}", f"question {n}?", complexity=kind, answer_names=(("Paris", "Lutetia"),))
        for n, kind in enumerate(KINDS)
    ]
    write_questions(folders["questions"], [*records, Question("t", "other?", split="train", answer_names=(("X",),))])
    given = [*zip(("rigel@linked",) * 10, (f"q{n}" for n in range(10)), OUTPUTS, strict=True)]
    given += [("rigel", f"q{n}", "Paris") for n in range(10)] + [("none", f"q{n}", "Rome") for n in range(10)]
    rows = [
        {"question": question, "retriever": retriever, "format": "none" if retriever == "none" else "triples",
         "model": "auto", "output": output or "", "abstained": output is None}
        for retriever, question, output in given
    ]  # fmt: skip
    pl.DataFrame(rows).write_parquet(folders["answers"] / "answers.parquet")
    scores = [
        {"experiment": f"{row['retriever']}/{row['format']}/auto", "split": "test", "question": row["question"],
         "metric": metric, "value": float(row["output"] == "Paris" or metric == "contains")}
        for row in rows
        for metric in ("exact", "contains")
    ]  # fmt: skip
    scores.append({"experiment": LINKED, "split": "train", "question": "t", "metric": "exact", "value": 1.0})
    pl.DataFrame(scores).write_parquet(folders["scores"] / "scores.parquet")
    return folders


def test_the_summary_counts_what_users_get_and_groups_what_fails(run: dict[str, Path]) -> None:
    summary = summarize(run["questions"], [run["answers"]], run["scores"], run="r1", generated=False)
    assert summary is not None and summary.experiment == LINKED, "not gold topics, nor without knowledge"
    assert (summary.n, summary.answered, summary.right) == (10, 5, 4)
    shares = {"right": 0.4, "wrong": 0.1, "declined": 0.5, "right_of_answered": 0.8}
    assert summary.metrics == shares | {"answered": 5, "questions": 10}
    groups = [(one.kind, one.declined, one.n, one.of) for one in summary.failures]
    assert groups == [("multi-hop", True, 4, 5), ("generic", False, 1, 4), ("generic", True, 1, 4)]
    assert [one.text for one in summary.failures[0].examples] == ["question 4?", "question 5?", "question 6?"]
    assert summary.failures[1].examples[0].output == "Rome" and summary.failures[1].examples[0].gold == ("Paris",)
    assert any("kgqa improve --run r1" in step for step in summary.next_steps)


def test_steps_depend_on_what_failed_and_where_the_questions_come_from() -> None:
    assert next_steps("r", declined=0, wrong=0, generated=False) == []
    assert "kgqa run" not in " ".join(next_steps("r", declined=ENOUGH - 1, wrong=0, generated=False))
    assert f"{ENOUGH + 1} questions" in next_steps("r", declined=ENOUGH, wrong=1, generated=False)[-1]
    assert "of your own" in next_steps("r", declined=ENOUGH, wrong=1, generated=True)[-1]


def test_a_run_in_which_nothing_was_answered_has_no_summary(run: dict[str, Path]) -> None:
    scores = pl.read_parquet(run["scores"] / "scores.parquet").with_columns(experiment=pl.lit("rigel/-/-"))
    scores.write_parquet(run["scores"] / "scores.parquet")
    assert summarize(run["questions"], [run["answers"]], run["scores"], run="r1", generated=False) is None
    assert 'id="summary"' not in render(fake_report()) and '<details class="part" open>' in render(fake_report())


def test_the_page_opens_with_the_summary_and_folds_the_rest(run: dict[str, Path]) -> None:
    address = "http://127.0.0.1:5000/#/compare-runs?runs=%5B%22a%22%5D&experiments=1"
    more = [f"`kgqa compare r0 r1` says what changed; in MLflow: {address}"]
    summary = summarize(run["questions"], [run["answers"]], run["scores"], run="r1", generated=True, more=more)
    page = render(replace(fake_report(), summary=summary))
    opening = page.split('id="summary"')[1].split("<nav")[0]
    assert "answered 80.0 % are right; it declined 50.0 %." in opening
    assert "Declined: 4 of 5 questions of the kind multi-hop (several steps)" in opening
    shown = address.replace("&", "&amp;")
    assert f'<code>kgqa compare r0 r1</code> says what changed; in MLflow: <a href="{shown}">{shown}</a>' in opening
    assert "it answered <bdi>Rome</bdi>" in opening and "<code>kgqa improve --run r1</code>" in opening
    assert page.count('<details class="part">') == page.count('class="part"') > 5


@pytest.mark.slow
def test_a_link_opens_its_part_and_print_shows_all(tmp_path: Path) -> None:
    if chromium() is None:
        pytest.skip(NO_CHROMIUM)
    path = write(tmp_path, data=fake_report())
    shown = "document.querySelector('#stages td').checkVisibility()"
    with Browser(tmp_path / "chromium.log") as browser:
        browser.open(path.as_uri(), "Stages")
        assert not browser.run(shown), "folded"
        browser._call("Emulation.setEmulatedMedia", media="print")
        assert browser.run(shown), "printed"
        browser._call("Emulation.setEmulatedMedia", media="screen")
        browser.click("Stages")
        assert browser.run(shown), "opened by its link"
