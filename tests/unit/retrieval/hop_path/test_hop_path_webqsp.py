"""The WebQSP benchmark: what it leaves out, masks and counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.papers import webqsp_paths as bench
from kgqa_core.datasets.webqsp import ParsedQuestion


def question(number: int, split: str, chain: tuple[str, ...] = ("a.b.c",)) -> ParsedQuestion:
    text = f"what does jamaican people speak {number}"
    return ParsedQuestion(f"{split}-{number}", text, split, "jamaican", "m.03_r3", "Jamaica", chain, (), False)


def test_a_tenth_of_train_is_dev_and_questions_without_chain_are_left_out() -> None:
    questions = [question(number, "train") for number in range(40)] + [question(0, "test"), question(1, "test", ())]
    parts = bench.splits(questions, 7)
    assert {name: len(own) for name, own in parts.items()} == {"train": 36, "dev": 4, "test": 1}
    assert parts == bench.splits(questions, 7)
    assert {one.split for one in parts["dev"]} == {"train"}


def test_the_topic_is_masked_by_its_mention_or_its_name() -> None:
    row = bench.row(question(3, "test", ("a.b.c", "d.e.f")), "[X]")
    assert (row.text, row.paths, row.weights, row.hops) == (
        "what does [X] people speak 3",
        (("a.b.c", "d.e.f"),),
        (1.0,),
        2,
    )
    by_name = ParsedQuestion("q", "who rules Jamaica", "test", None, "m.03_r3", "Jamaica", ("a.b.c",), (), False)
    assert bench.row(by_name, "[X]").text == "who rules [X]"
    nameless = ParsedQuestion("q", "who rules", "test", None, None, None, ("a.b.c",), (), False)
    assert bench.row(nameless, "[X]").text == "who rules"


def test_the_record_counts_every_test_question_with_a_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = [question(number, "train") for number in range(20)]
    questions += [question(0, "test"), question(1, "test", ()), question(2, "test", ("x.y.z",))]
    monkeypatch.setattr(bench, "read_parsed", lambda folder: questions)
    record = bench.run(tmp_path, 7, None, {"encoder": "scratch", "epochs": 1, "scratch_width": 16})
    assert record["without_chain"] == {"train": 0, "test": 1}
    assert record["relations"] == {"train_and_test": 2, "classes": 1}
    test = record["test"]
    assert (test["n"], test["unseen_paths"], test["path_at_1"], test["path_at_5"]) == (2, 1, 0.5, 0.5)
    assert record["test_by_hops"]["2"]["n"] == 0
