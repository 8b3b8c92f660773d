"""What a run needs is looked at before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.preflight import check
from kgqa_core.config import make_profile
from kgqa_core.errors import KgqaError


@pytest.mark.parametrize(
    ("linked", "starts"),
    [({"retrieval": {"topics": "both"}}, True), ({"retriever": {"soft_start": True}}, True), ({}, False)],
)
def test_the_encoder_of_linking_is_looked_at_where_questions_are_linked(
    tmp_path: Path, linked: dict[str, object], starts: bool
) -> None:
    (tmp_path / "graph.tsv").write_text("a\tknows\tb\n")
    (tmp_path / "asked.jsonl").write_text('{"id": "1", "question": "a?", "topic_entities": ["a"], "answers": ["b"]}\n')
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
