"""A finished run's system is opened with what its stages had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from flows import answer as asking
from flows.cli import app as cli
from kgqa_core.abstention.apply import apply
from kgqa_core.config import KgOptions, make_profile
from kgqa_core.datasets.answers import SCHEMA
from kgqa_core.datasets.question import write_questions
from kgqa_core.kg.build import build
from kgqa_core.store.artifacts import ArtifactRef
from kgqa_core.types import Question


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a system is opened with; every artifact of a run lies in `/KIND`."""
    given: dict[str, Any] = {}
    monkeypatch.setattr(asking.System, "open", lambda **words: given.update(words))
    monkeypatch.setattr(
        asking, "stage_artifact", lambda record, kind: ArtifactRef(kind=kind, path=f"/{kind}", digest="")
    )
    return given


def test_a_system_shares_the_home_cache_and_the_seed_of_its_run(
    opened: dict[str, Any], own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "mentions_of", lambda record: ArtifactRef(kind="mentions", path="/mentions", digest=""))
    profile = make_profile({"seed": 11, "retrieval": {"retrievers": ["hop_path", "kaping"]}})
    record = {"run_id": "r", "profile": profile.model_dump(mode="json"), "stages": []}
    asking.open_system(record, "hop_path", asking.find_mentions(record, "hop_path"))
    assert (opened["cache"], opened["seed"]) == (own_home / "cache", 11)
    assert (opened["kg"], opened["retriever"], opened["knowledge"]) == (
        Path("/kg"),
        Path("/hop_path"),
        "hop_path/triples",
    )
    assert opened["mentions"] == Path("/mentions")


def test_a_linked_variant_is_asked_like_its_retriever_and_told_topics_need_no_dictionary(
    opened: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "mentions_of", lambda record: pytest.fail("nothing is to be found out"))
    profile = make_profile({"retrieval": {"retrievers": ["hop_path"], "topics": "linked"}})
    record = {"run_id": "r", "profile": profile.model_dump(mode="json"), "stages": []}
    asking.open_system(record, "hop_path@linked")
    assert (opened["knowledge"], opened["retriever"], opened["mentions"]) == (
        "hop_path/triples", Path("/hop_path"), None,
    )  # fmt: skip


@pytest.mark.parametrize("least", [0.5, 0.0])
def test_a_question_about_nothing_known_is_answered_where_that_is_asked_for(tmp_path: Path, least: float) -> None:
    lines = "Avalonia\tcapital\tQuelmar\n"
    (tmp_path / "graph.tsv").write_text(lines, encoding="utf-8")
    (tmp_path / "kg").mkdir()
    build(tmp_path / "kg", options=KgOptions(files=(str(tmp_path / "graph.tsv"),)))
    question = Question("q", "What is the capital of Avalonnia?")
    write_questions(tmp_path, [question])
    row = ("q", "rigel", "triples", "m", "", "Quelmar", False, "stop", 1, 1)
    pl.DataFrame([row], schema=SCHEMA, orient="row").write_parquet(tmp_path / "answers.parquet")
    pl.DataFrame({"question": ["q"], "text": [""]}).write_parquet(tmp_path / "knowledge.parquet")
    apply(
        tmp_path, kg=tmp_path / "kg", questions=tmp_path, facts={}, answers={"test": tmp_path}, abstainer=None,
        min_confidence=least,
    )  # fmt: skip
    made = ArtifactRef(kind="all", path=str(tmp_path), digest="")
    [told], rejects = asking._rows(dict.fromkeys(("answers", "knowledge", "questions", "confidence"), made))
    shown = [told.get(name) for name in ("answer", "answerable", "reason", "nearest", "model_answer", "reject")]
    if least:
        assert shown == [None, False, "entity not found", "Avalonia", "Quelmar", "no topic entity"]
        assert rejects == [{"id": "q", "reason": "no topic entity"}]
    else:
        assert (shown, rejects) == (["Quelmar", True, None, None, None, None], [])


def test_the_dictionary_is_made_before_anything_is_shown_and_turns_go_to_the_system(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[Any] = []

    class Waiting:
        def __enter__(self) -> None:
            happened.append("status")

        def __exit__(self, *_: object) -> None:
            happened.append("done")

    class Hearing:
        def ask(self, *given: Any) -> dict[str, Any]:
            happened.append(given)
            return {"answer": "Rome"}

    monkeypatch.setattr(cli.common, "newest_run", lambda home, run_id: {"run_id": "r"})
    monkeypatch.setattr(cli.err, "status", lambda message: Waiting())
    monkeypatch.setattr(asking, "find_mentions", lambda record, knowledge: happened.append("mentions"))
    monkeypatch.setattr(asking, "open_system", lambda record, knowledge, mentions, least: Hearing())
    asked = ["ask", "And now?", "--turn", "Who rules Avalonia?", "--turn", "Nobody.", "--json"]
    result = CliRunner().invoke(cli.app, asked)
    assert result.exit_code == 0, result.output
    turns = [("user", "Who rules Avalonia?"), ("agent", "Nobody.")]
    assert happened == ["mentions", "status", ("And now?", (), turns), "done"]
    happened.clear()
    CliRunner().invoke(cli.app, ["ask", "And now?", "--topic", "Avalonia", "--json"])
    assert happened == ["status", ("And now?", ["Avalonia"], []), "done"]
