"""Names of answerers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.config import AnsweringOptions
from kgqa_core.errors import EndpointError, ModelError
from kgqa_core.llm.factory import load_model, parse_spec
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.openai_api import OpenAIModel
from tests.support.tiny_models import save_causal


def test_names_are_read() -> None:
    assert parse_spec("builtin") == ("builtin", "")
    assert parse_spec("hf:google/flan-t5-small") == ("hf", "google/flan-t5-small")
    assert parse_spec("openai:llama3:8b") == ("openai", "llama3:8b")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("bultin", "did you mean 'builtin'"),
        ("gpt-4", "openai:MODEL"),
        ("hf:", "names no model"),
        ("builtin:x", "write builtin"),
    ],
)
def test_a_wrong_name_says_what_is_possible(spec: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        load_model(spec, AnsweringOptions())


def test_options_reach_the_models(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    local = load_model(f"hf:{folder}", AnsweringOptions(batch_tokens=77, device="cpu"))
    assert isinstance(local, HFModel) and local.batch_tokens == 77 and local.name == f"hf:{folder}"
    remote = load_model("openai:m", AnsweringOptions(base_url="http://127.0.0.1:9/v1", retries=9, concurrency=2))
    assert isinstance(remote, OpenAIModel) and (remote.retries, remote.concurrency) == (9, 2)
    assert remote.name == "openai:m" and not remote.batch_sensitive


def test_an_endpoint_without_key_and_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(EndpointError, match="OPENAI_API_KEY"):
        load_model("openai:m", AnsweringOptions())
