"""`kgqa run --folds` tests every question once, each fold under a name of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.cli.run import fold_profiles
from kgqa_core.config import make_profile
from tests.support.command import kgqa
from tests.support.forked_command import forked_kgqa
from tests.support.toy import write_graph, write_questions


def test_each_fold_is_a_profile_whose_question_set_has_a_name_of_its_own() -> None:
    made = fold_profiles(make_profile({"questions": {"name": "mine", "path": "q.jsonl"}}), 3)
    assert [(one.questions.name, one.questions.folds, one.questions.fold) for one in made] == [
        ("mine-fold1of3", 3, 0), ("mine-fold2of3", 3, 1), ("mine-fold3of3", 3, 2),
    ]  # fmt: skip
    assert {one.questions.path for one in made} == {"q.jsonl"}


def test_too_many_folds_are_refused_at_once(tmp_path: Path) -> None:
    outcome = forked_kgqa("run", "--folds", str(10**30), "--home", tmp_path / "home")
    assert outcome.code == 2 and str(10**30) in outcome.err and "1000" in outcome.err


@pytest.mark.slow
def test_scores_are_pooled_over_the_questions_of_all_folds(tmp_path: Path) -> None:
    triples = write_graph(tmp_path / "register.tsv", 2000)
    write_questions(tmp_path / "asked.jsonl", triples, 60)
    outcome = kgqa(
        "run", "--json", "--answerer", "builtin", "--kg", tmp_path / "register.tsv", "--questions",
        tmp_path / "asked.jsonl", "--home", tmp_path / "home", "--folds", "2", "--set",
        "retrieval.retrievers=[random,frequent,oracle]", "--set", "answering.knowledge=[none]", "--set",
        "answering.limit=2", "--set", "evaluation.bootstrap=100",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err[-4000:]
    found = outcome.json
    assert len(set(found["runs"])) == 2
    lines = (tmp_path / "asked.jsonl").read_text(encoding="utf-8").splitlines()
    cells = {name: found["scores"][f"{name}/-/-"]["test"]["hits_at_1"] for name in ("random", "frequent", "oracle")}
    assert {cell["n"] for cell in cells.values()} == {len(lines)}
    assert cells["oracle"]["value"] > cells["frequent"]["value"] >= 0
    assert len(found["folds"]["oracle/-/-"]["hits_at_1"]) == 2
