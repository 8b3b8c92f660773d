"""A finished run's system is opened with what its stages had."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.cli import app as commands
from flows.cli import ask as cli
from kgqa_core.answering.reply import Answer
from kgqa_core.config import make_profile
from kgqa_core.errors import InputError
from kgqa_core.runs import finished, home_names
from kgqa_core.store.artifacts import ArtifactRef, Home
from kgqa_core.system import System


def _without_artifacts(monkeypatch: pytest.MonkeyPatch) -> None:
    def artifact(record: Any, kind: str) -> ArtifactRef:
        return ArtifactRef(kind=kind, path=f"/{kind}", digest="")

    monkeypatch.setattr(finished, "stage_artifact", artifact)
    monkeypatch.setattr(home_names, "stage_artifact", artifact)


def test_a_system_shares_the_home_cache_and_the_seed_of_its_run(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_artifacts(monkeypatch)
    profile = make_profile({"seed": 11, "retrieval": {"retrievers": ["hop_path", "kaping"]}})
    record = {"run_id": "r", "profile": profile.model_dump(mode="json"), "stages": []}
    parts = finished.system_parts(Home.current(), record, "hop_path", 0.25)
    assert (parts.cache, parts.profile.seed) == (own_home / "cache", 11)
    assert (parts.kg, parts.retriever, parts.knowledge) == (Path("/kg"), Path("/hop_path"), "hop_path/triples")
    assert parts.profile.abstention.min_confidence == 0.25 and parts.mentions is None and parts.reads_graph


def test_a_linked_variant_is_opened_like_its_retriever(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_artifacts(monkeypatch)
    profile = make_profile({"retrieval": {"retrievers": ["hop_path"], "topics": "linked"}})
    record = {"run_id": "r", "profile": profile.model_dump(mode="json"), "stages": []}
    parts = finished.system_parts(Home.current(), record, "hop_path@linked")
    assert (parts.knowledge, parts.retriever) == ("hop_path/triples", Path("/hop_path"))


def test_knowledge_without_facts_is_refused_where_answers_are_computed(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_artifacts(monkeypatch)
    for answerer, refused in (("auto", True), ("builtin", False)):
        profile = make_profile({"retrieval": {"retrievers": ["hop_path"]}, "answering": {"answerer": answerer}})
        record = {"run_id": "r", "profile": profile.model_dump(mode="json"), "stages": []}
        with pytest.raises(InputError, match="'none' holds no facts.*hop_path") if refused else nullcontext():
            assert not finished.system_parts(Home.current(), record, "none").reads_graph


def test_the_dictionary_is_made_before_anything_is_shown_and_turns_go_to_the_system(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[Any] = []

    class Waiting:
        def __enter__(self) -> None:
            happened.append("status")

        def __exit__(self, *_: object) -> None:
            happened.append("done")

    class Listening:
        def ask(self, *given: Any) -> Answer:
            happened.append(given)
            return Answer("ask", "And now?", "Rome")

    parts = finished.SystemParts(Path("kg"), Path("dkg"))
    Home(own_home).prepare()
    monkeypatch.setattr(cli, "answering_run", lambda home: {"run_id": "r"})
    monkeypatch.setattr(cli.err, "status", lambda message: Waiting())
    monkeypatch.setattr(finished, "system_parts", lambda *given: parts)
    monkeypatch.setattr(cli, "stage_artifact", lambda record, name: None)
    monkeypatch.setattr(cli.common, "mentions_folder", lambda *given: happened.append("mentions") or Path("mentions"))
    monkeypatch.setattr(System, "open", lambda opened: Listening())
    asked = ["ask", "And now?", "--turn", "Who rules Avalonia?", "--turn", "Nobody.", "--json"]
    result = CliRunner().invoke(commands.app, asked)
    assert result.exit_code == 0, result.output
    turns = [("user", "Who rules Avalonia?"), ("agent", "Nobody.")]
    loaded = ["status", "done", "status"]
    assert happened == ["mentions", *loaded, ("And now?", (), turns, {}), "done"]
    happened.clear()
    CliRunner().invoke(commands.app, ["ask", "And now?", "--topic", "Avalonia", "--json"])
    assert happened == [*loaded, ("And now?", ["Avalonia"], [], {}), "done"]
    happened.clear()
    piped = CliRunner().invoke(commands.app, ["ask", "--csv"], input="\ufeffAnd now?\n\n  And then?\r\n")
    assert piped.stdout.splitlines() == ["question,answer,confidence,why", *["And now?,Rome,,"] * 2], piped.output
    asked = [given[0] for given in happened if isinstance(given, tuple)]
    assert asked == ["And now?", "And then?"] and happened.count("mentions") == 1, "loaded once"


@pytest.mark.parametrize(
    ("words", "given", "message"),
    [
        (["ask"], b" \n", "there is no question"),
        (["ask", "-"], b"\xff", "not UTF-8"),
        (["ask", "Why?", "--json", "--csv"], b"", "leave one of them out"),
    ],
)
def test_questions_of_stdin_that_are_none_are_refused(
    own_home: Path, words: list[str], given: bytes, message: str
) -> None:
    result = CliRunner().invoke(commands.app, words, input=given)
    assert isinstance(result.exception, InputError) and message in str(result.exception)
