"""What a run needs is looked at before it starts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from flows.preflight import check
from kgqa_core.config import Profile, make_profile
from kgqa_core.errors import ConfigError, KgqaError, QuestionFileError


def write_rows(path: Path, more: list[dict[str, object]]) -> Path:
    """Questions about one triple; more: further fields of each."""
    row = {"question": "a?", "topic_entities": ["a"], "answers": ["b"]}
    path.write_text("".join(json.dumps({"id": str(n), **row, **own}) + "\n" for n, own in enumerate(more)))
    return path


def profile_of(folder: Path, rows: list[dict[str, object]], *layers: dict[str, object]) -> Profile:
    (folder / "graph.tsv").write_text("a\tknows\tb\n")
    path = write_rows(folder / "own.jsonl", rows)
    return make_profile({"kg": {"files": [str(folder / "graph.tsv")]}, "questions": {"path": str(path)}}, *layers)


NO_TRAINING: dict[str, object] = {"retrieval": {"retrievers": ["random"]}, "answering": {"knowledge": ["none"]}}


@pytest.mark.parametrize(
    ("splits", "word"),
    [
        (["dev", "test", "test"], "in train "),
        (["train", "test", "test"], "in dev "),
        (["train", "dev", "dev"], "in test "),
        ([None], "give at least 3 questions"),
        ([None, None], "give at least 3 questions"),
    ],
)
def test_questions_that_leave_a_needed_split_empty_are_refused_before_anything_is_built(
    tmp_path: Path, splits: list[str | None], word: str
) -> None:
    with pytest.raises(QuestionFileError, match=re.escape(word)) as fault:
        check(profile_of(tmp_path, [{"split": split} for split in splits]))
    assert "own.jsonl" in str(fault.value)


def test_a_run_that_trains_nothing_needs_only_the_questions_that_it_answers(tmp_path: Path) -> None:
    check(profile_of(tmp_path, [{"split": "test"}], NO_TRAINING))
    with pytest.raises(QuestionFileError, match="in test "):
        check(profile_of(tmp_path, [{"split": "train"}], NO_TRAINING))


def test_hops_that_reach_no_training_question_are_refused_and_those_that_are_not_set_are_not(tmp_path: Path) -> None:
    rows = [{"relation_path": ["knows"] * 3, "split": split} for split in ("train", "dev", "test")]
    check(profile_of(tmp_path, rows, {"retriever": {"hops": 3}}))
    with pytest.raises(ConfigError, match="hop_path.max_hops is 2.*set hop_path.max_hops=3"):
        check(profile_of(tmp_path, rows, {"retriever": {"hops": 3}, "hop_path": {"max_hops": 2}}))
    only_rigel = {"retrieval": {"retrievers": ["rigel"]}, "answering": {"knowledge": ["rigel"]}}
    check(profile_of(tmp_path, rows, {"hop_path": {"max_hops": 2}}, only_rigel))


@pytest.mark.parametrize(
    ("linked", "starts"),
    [({"retrieval": {"topics": "both"}}, True), ({"retriever": {"soft_start": True}}, True), ({}, False)],
)
def test_the_encoder_of_linking_is_looked_at_where_questions_are_linked(
    tmp_path: Path, linked: dict[str, object], starts: bool
) -> None:
    (tmp_path / "graph.tsv").write_text("a\tknows\tb\n")
    write_rows(tmp_path / "asked.jsonl", [{}, {}, {}])
    profile = make_profile(
        {
            "kg": {"files": [str(tmp_path / "graph.tsv")]},
            "questions": {"path": str(tmp_path / "asked.jsonl")},
            "linking": {"context": "encoder", "encoder": str(tmp_path / "no_model")},
        },
        linked,
    )
    if not starts:
        check(profile)
        return
    with pytest.raises(KgqaError, match="linking.encoder"):
        check(profile)
