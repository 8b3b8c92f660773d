"""From a benchmark to what parsers learn from, and from what they say to the paper's table."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.config import LinkingOptions, Training
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import InputError
from kgqa_core.linking.dictionary import build as build_mentions
from kgqa_core.linking.questions import link_questions
from kgqa_core.papers.grailqability.builder.evaluate import evaluate
from kgqa_core.papers.grailqability.builder.questions import benchmark_examples, benchmark_questions
from kgqa_core.papers.grailqability.builder.records import Benchmark, read_benchmark
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, read_examples
from kgqa_core.papers.grailqability.parsing.parsed_forms import ParsedForm, write_parsed
from kgqa_core.papers.grailqability.report import metric_rows, paper_table, write
from kgqa_core.workspace import Workspace
from tests.support.register_benchmark import write_benchmark, write_inputs


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("register")
    return write_benchmark(folder / "made", *write_inputs(folder))


@pytest.fixture(scope="module")
def questions(made: Path) -> Path:
    out = made.parent / "asked"
    out.mkdir()
    benchmark_questions(Workspace(out), benchmark=made, kg=made / "kg")
    return out


@pytest.fixture(scope="module")
def linked(made: Path, questions: Path) -> Path:
    mentions, out = made.parent / "mentions", made.parent / "linked"
    mentions.mkdir()
    out.mkdir()
    build_mentions(Workspace(mentions), kg=made / "kg")
    link_questions(Workspace(out), kg=made / "kg", mentions=mentions, questions=questions, options=LinkingOptions())
    return out


def examples(made: Path, questions: Path, out: Path, training: Training, linked: Path | None = None) -> Any:
    out.mkdir()
    benchmark_examples(
        Workspace(out), benchmark=made, kg=made / "kg", questions=questions, training=training, linked=linked
    )
    return {one.id: one for one in read_examples(out)}


def gone(benchmark: Benchmark) -> set[str]:
    return {key for drop in benchmark.drops for key in drop.entities}


def test_questions_have_the_topics_and_answers_that_are_left(made: Path, questions: Path) -> None:
    benchmark = read_benchmark(made)
    by_id = {one.id: one for one in read_questions(questions)}
    lost = gone(benchmark)
    for row in benchmark.questions:
        question = by_id[row.id]
        assert set(question.topic_keys) == set(row.topic_entities) - lost
        assert len(question.topic_entities) == len(question.topic_keys)
        assert question.s_expression == row.s_expression and (question.unlinkable is None) == row.answerable
        assert row.answerable or not question.answers


def test_training_on_a_shows_no_unanswerable_question_and_on_a_u_shows_what_they_are(
    made: Path, questions: Path, tmp_path: Path
) -> None:
    only = examples(made, questions, tmp_path / "A", "A")
    both = examples(made, questions, tmp_path / "AU", "A+U")
    for row in read_benchmark(made).questions:
        a: ParseExample = only[row.id]
        au: ParseExample = both[row.id]
        if row.split == "test":
            assert not a.known and not au.known and a.form is None and au.form is None
        else:
            assert a.known == row.answerable and a.form == (row.s_expression if row.answerable else None)
            assert au.known and au.form == row.s_expression
    missing = [row for row in read_benchmark(made).questions if row.split == "train" and not row.answerable]
    assert {both[row.id].form is None for row in missing} == {True, False}, "some NK, some NA"


def test_an_entity_that_was_dropped_is_not_linked(made: Path, questions: Path, linked: Path, tmp_path: Path) -> None:
    lost = gone(read_benchmark(made))
    for place, given in (("gold", None), ("linked", linked)):
        found = examples(made, questions, tmp_path / place, "A+U", given)
        topics = {topic.key for one in found.values() for topic in one.topics}
        assert topics and not topics & lost
    right = [
        set(row.topic_entities) - lost <= {topic.key for topic in found[row.id].topics}
        for row in read_benchmark(made).questions
    ]
    assert sum(right) > 0.9 * len(right)


def say(made: Path, out: Path, *, sure: bool) -> Path:
    """A parser that gives every ideal form, and knows by its probability (where `sure`) which of them are NK."""
    out.mkdir()
    benchmark = read_benchmark(made)
    write_parsed(
        out,
        [
            ParsedForm(
                question.id, 0, ideal.s_expression, math.log(0.3 if sure and question.s_expression is None else 0.9),
                answers=question.answers if question.s_expression else ideal.answers,
            )
            for question, ideal in zip(benchmark.questions, benchmark.ideal, strict=True)
            if question.split != "train"
        ],
    )  # fmt: skip
    return out


@pytest.fixture(scope="module")
def scores(made: Path) -> Path:
    out = made.parent / "scores"
    out.mkdir()
    parsed = {"rng/A+U": say(made, made.parent / "sure", sure=True)}
    parsed["decode/A"] = say(made, made.parent / "blind", sure=False)
    counts = evaluate(Workspace(out), benchmark=made, parsed=parsed, seed=7)
    assert counts["systems"] == 4 and counts["rng/A+U/U"] == 1.0
    return out


def test_thresholds_turn_unsure_forms_into_nk(made: Path, scores: Path) -> None:
    aggregates = json.loads((scores / "aggregates.json").read_text(encoding="utf-8"))
    em = {
        (system["parser"], system["thresholds"] is not None, group): cells["EM"]["value"]
        for system in aggregates["systems"]
        for group, cells in system["scores"]["test"].items()
    }
    assert em["rng", False, "A"] == em["rng", False, "NA"] == 1.0 and em["rng", False, "NK"] == 0.0
    assert all(em["rng", True, group] == 1.0 for group in ("all", "A", "U", "NK", "NA", "zero-shot"))
    assert em["decode", True, "A"] == 1.0 and em["decode", True, "NK"] == 0.0, "nothing tells its NK apart"
    [tuned] = [s["thresholds"] for s in aggregates["systems"] if s["parser"] == "rng" and s["thresholds"]]
    assert tuned["entity"] == 0.0 and 0.3 < tuned["form"] <= 0.9
    frame = pl.read_parquet(scores / "scores.parquet")
    test = [row for row in read_benchmark(made).questions if row.split == "test"]
    assert len(frame.filter(split="test", parser="rng", thresholds=True)) == len(test)
    nk = frame.filter(split="test", parser="rng", thresholds=True)["form"].null_count()
    assert nk == sum(row.s_expression is None for row in test)


def test_the_table_the_page_and_the_names_of_the_metrics(scores: Path, tmp_path: Path) -> None:
    aggregates = json.loads((scores / "aggregates.json").read_text(encoding="utf-8"))
    grid = paper_table(aggregates)
    assert grid.columns[1:4] == ("all F1(L)", "all F1(R)", "all EM") and len(grid.columns) == 10
    assert [name for name, _ in grid.rows] == [
        "Rank and generate, A+U", "Rank and generate, A+U + T", "Retrieve and decode, A", "Retrieve and decode, A + T"
    ]  # fmt: skip
    named = dict(metric_rows(aggregates))
    assert named["rng/A+U/T/test/U/em"] == 1.0 and "decode/A/no T/dev/NK/f1_regular" in named
    page = write(tmp_path, aggregates=aggregates, title="<b>made</b>", facts=[("Seed", "7")]).read_text("utf-8")
    assert "&lt;b&gt;made" in page and "<b>made" not in page
    for text in ("Table 3", "Table 1: what the splits hold", "EM by drop", "Thresholds, tuned on dev"):
        assert text in page


def test_what_was_parsed_of_other_questions_is_refused(made: Path, tmp_path: Path) -> None:
    write_parsed(tmp_path, [ParsedForm("nobody asked", 0, None, 0.0)])
    with pytest.raises(InputError, match="nobody asked"):
        evaluate(Workspace(tmp_path), benchmark=made, parsed={"rng/A": tmp_path}, seed=7)
    write_parsed(tmp_path, [])
    with pytest.raises(InputError, match="no test question"):
        evaluate(Workspace(tmp_path), benchmark=made, parsed={"rng/A": tmp_path}, seed=7)
