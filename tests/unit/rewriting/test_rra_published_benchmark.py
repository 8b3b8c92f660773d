"""The benchmark of Retrieve-Rewrite-Answer: its rows, folds and comparison, and that its page is that of its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers import rra_published as benchmark
from benchmarks.papers.rra_work import SETS, RraWork, SetPlan, some
from kgqa_core.types import Question


def row(hits: dict[str, float], **options: Any) -> dict[str, Any]:
    """A measured row."""
    cell = {"value": 0.5, "low": 0.25, "high": 0.75, "n": len(hits)}
    names = [f"{label}, {of}" for label in benchmark.METRICS.values() for of in ("all", "with answers")]
    return {
        "options": benchmark.PUBLISHED | options, "questions": len(hits), "with_answers": len(hits),
        "hit_at_1": dict.fromkeys(names, cell), "sentences": {}, "cpu_seconds": 1.0, "hits": hits,
    }  # fmt: skip


def test_each_row_differs_from_the_published_one_in_one_switch_but_for_ours() -> None:
    changed = {
        name: {key for key, value in (benchmark.PUBLISHED | own).items() if value != benchmark.PUBLISHED[key]}
        for name, own in benchmark.ROWS.items()
    }
    assert changed["as published"] == set()
    assert changed["ours, all four"] == set(benchmark.OURS)
    single = {frozenset(changed[name]) for name in list(benchmark.ROWS)[1:5]}
    assert single == {frozenset([switch]) for switch in benchmark.OURS}


@pytest.mark.parametrize("plan", SETS, ids=lambda plan: plan.name)
def test_the_switches_are_those_of_the_profiles(plan: SetPlan, tmp_path: Path) -> None:
    profile = RraWork(plan, tmp_path).profile
    assert profile.answering.template == benchmark.PUBLISHED["template"]
    assert profile.rewriter.on_unfaithful == benchmark.PUBLISHED["on_unfaithful"]
    assert profile.hop_path.sampling == benchmark.PUBLISHED["sampling"]
    assert profile.hop_path.named_first == benchmark.PUBLISHED["named_first"]


def test_a_topic_is_in_one_fold_and_a_fold_tests_what_the_others_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = RraWork(SetPlan("zjqa", folds=5), tmp_path)
    split = ("train", "dev", "test")
    every = [Question(f"q{n:03}", "?", split=split[n % 3], topic_keys=(f"topic {n % 40}",)) for n in range(400)]
    monkeypatch.setattr(RraWork, "questions", lambda self: every)
    tests = [work.tests(fold) for fold in range(5)]
    assert sorted(question.id for own in tests for question in own) == [question.id for question in every]
    assert {question.split for own in tests for question in own} == {"test"}
    topics = [{question.topic_keys for question in own} for own in tests]
    assert all(topics) and sum(map(len, topics)) == 40
    assert [len(own) for _, own in work.sample(50)] == [10] * 5
    assert work.sample(50) == work.sample(50)
    assert some(every, 7, "a") != some(every, 7, "b"), "draws for different ends are different"


def test_a_row_is_compared_with_the_published_one_question_by_question() -> None:
    base = {"a": 1.0, "b": 0.0, "c": 0.0, "d": 1.0}
    found = benchmark._compared(row({"a": 0.0, "b": 1.0, "c": 1.0, "d": 1.0}), base)
    assert (found["fixed"], found["broken"], found["p"]) == (2, 1, 1.0)
    assert "hits" not in found, "outputs of single questions stay in the folder of the work"


def test_a_finished_row_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def measure_row(work: RraWork, options: dict[str, Any], count: int) -> dict[str, Any]:
        measured.append(options["template"])
        if len(measured) == 4:
            raise KeyboardInterrupt
        return row({"q": 1.0}, **options)

    monkeypatch.setattr(benchmark, "measure_row", measure_row)
    monkeypatch.setattr(benchmark, "measure_retrieval", lambda work: {})
    monkeypatch.setattr(benchmark, "about", lambda work, count: {})
    with pytest.raises(KeyboardInterrupt):
        benchmark.run(SetPlan("atlas"), tmp_path, 1)
    found = benchmark.run(SetPlan("atlas"), tmp_path, 1)
    assert list(found["rows"]) == list(benchmark.ROWS)
    assert len(measured) == len(benchmark.ROWS) + 1, "only the one that was cut off came twice"


def test_the_tables_have_every_row_with_its_comparison() -> None:
    cell = {"value": 0.5, "low": 0.25, "high": 0.75, "n": 4}
    rows = {name: benchmark._compared(row({"q": 1.0}), {"q": 0.0}) for name in benchmark.ROWS}
    about = {"answered": 4, "test_questions": 1234, "folds": 5, "without_answers": 1, "pairs_at_most": 10,
             "corpus": "published pairs"}  # fmt: skip
    retrieval = {"sequential": {"questions": 4, "answer_in_facts": cell, "hits_at_1": cell}}
    conditions = {"seed": 7, "commit": "0123456789", "date": "2026-11-25", "threads": "1"}
    zjqa = {"conditions": conditions, "about": about, "rows": rows, "retrieval": retrieval}
    record = {"sets": {"zjqa": zjqa}}
    text = benchmark.tables(record)
    assert "| template: sen2023 | 50.0 (25.0–75.0) |" in text and "| +1 −0 | 1 |" in text
    assert "5 folds over topics" in text and "1,234 test questions" in text
    assert all(f"| {name} |" in text for name in benchmark.ROWS)
