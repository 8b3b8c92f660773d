"""A corpus whose teacher and QA model are behind /completions is that of the same model behind a chat."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.config import LlmOptions
from kgqa_core.store.artifacts import content_digest
from tests.support import writing_runs
from tests.support.chat_server import ChatServer, Rates
from tests.support.writing_runs import make_atlas, write_corpus
from tests.unit.rewriting.test_forecast_against_server import Teller

FAULTS = Rates(throttled=0.05, failing=0.05, hang_up=0.02, cut=0.02, garbage=0.02, empty=0.03, nonsense=0.03)


@pytest.mark.slow
def test_a_corpus_does_not_depend_on_the_protocol_of_its_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_atlas(tmp_path, 80, 0)
    digests, asked = [], []
    for api in ("chat", "completions"):
        monkeypatch.setattr(writing_runs, "MODEL", "openai:stub@lab")
        with ChatServer(Teller(folder, long=False), rates=FAULTS, seed=5) as server:
            llm = LlmOptions.model_validate(
                {"endpoints": {"lab": {"base_url": server.base_url, "api": api}}, "retries": 9, "attempts": 3}
            )
            counts = write_corpus(folder, 60, tmp_path / api, llm, tmp_path / "cache", None)
            assert counts["kept"] > 30
            digests.append(content_digest(tmp_path / api))
            asked.append({key: prompts["requests"] for key, prompts in server.stats()["prompts"].items()})
            assert {api} == {"chat" if "messages" in body else "completions" for body in server.bodies}
    assert digests[0] == digests[1] and asked[0] == asked[1]
