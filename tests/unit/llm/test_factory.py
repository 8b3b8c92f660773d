"""Names of models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import Endpoint, LlmOptions
from kgqa_core.errors import EndpointError, ModelError
from kgqa_core.llm.builtin.model import WEIGHTS
from kgqa_core.llm.cache import Identity
from kgqa_core.llm.factory import identify, load_model, parse_spec
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.paid import identity_of
from tests.support.device import DEVICE
from tests.support.models import save_causal

LLM = LlmOptions(
    base_url="http://127.0.0.1:9/v1", endpoints={"lab": Endpoint(base_url="http://u:p@127.0.0.1:8/v1?token=x")}
)


def test_names_are_read() -> None:
    assert parse_spec("builtin") == ("builtin", "")
    assert parse_spec("hf:google/flan-t5-small") == ("hf", "google/flan-t5-small")
    assert parse_spec("openai:llama3:8b") == ("openai", "llama3:8b")
    assert parse_spec("openai:m@lab", LLM) == ("openai", "m@lab")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("bultin", "did you mean 'builtin'"),
        ("gpt-4", "openai:MODEL@ENDPOINT"),
        ("hf:", "names no model"),
        ("builtin:x", "write builtin"),
        ("openai:m@lap", "no endpoint is named 'lap'; did you mean 'lab'.*llm.endpoints has lab"),
        ("openai:@lab", "no endpoint|names no model"),
    ],
)
def test_a_wrong_name_says_what_is_possible(spec: str, says: str) -> None:
    for read in (parse_spec, load_model, identify):
        with pytest.raises(ModelError, match=says):
            read(spec, LLM)  # type: ignore[operator]


def test_options_reach_the_models(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    local = load_model(f"hf:{folder}", LlmOptions(batch_tokens=77, device=DEVICE))
    assert isinstance(local, HFModel) and local.batch_tokens == 77 and local.name == f"hf:{folder}"
    llm = LLM.model_copy(update={"retries": 9, "concurrency": 2, "timeout_seconds": 3.0})
    remote = load_model("openai:m", llm)
    assert isinstance(remote, OpenAIModel)
    assert (remote.llm.retries, remote.llm.concurrency, remote.llm.timeout_seconds) == (9, 2, 3.0)
    assert remote.name == "openai:m" and not remote.batch_sensitive


def test_an_adapter_and_the_numbers_of_a_local_model_are_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr("kgqa_core.llm.hf.HFModel", lambda source, **given: seen.append(given))
    monkeypatch.setattr("kgqa_core.llm.builtin.model.load_builtin", lambda **given: seen.append(given))
    for spec in ("hf:m", "builtin"):
        load_model(spec, LlmOptions(dtype="bf16"), adapter=tmp_path)
    assert [(given["adapter"], given["dtype"]) for given in seen] == [(tmp_path, "bf16")] * 2
    with pytest.raises(ModelError, match="cannot take the adapter"):
        load_model("openai:m", LLM, adapter=tmp_path)


def test_a_model_is_known_by_its_endpoint_without_user_password_and_query() -> None:
    model = load_model("openai:m@lab", LLM)
    assert isinstance(model, OpenAIModel) and model.name == "openai:m@lab"
    assert model.address == "http://127.0.0.1:8/v1"
    assert identify("openai:m@lab", LLM) == identity_of(model)
    assert identify("openai:m@lab", LLM) == Identity("openai", "http://127.0.0.1:8/v1", "m", "m")
    assert identify("openai:m", LLM) == Identity("openai", "http://127.0.0.1:9/v1", "m", "m")


def test_a_local_model_is_known_by_its_weights_without_being_loaded(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    llm = LlmOptions(device=DEVICE)
    for spec in (f"hf:{folder}", "builtin"):
        assert identify(spec, llm) == identity_of(load_model(spec, llm))
    assert identify(f"hf:{WEIGHTS}", llm) is not None
    assert identify("hf:owner/name", llm) is None


def test_the_vendors_endpoint_has_an_address_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    assert identify("openai:m", LlmOptions()) == identity_of(load_model("openai:m", LlmOptions()))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:7/v1")
    assert identify("openai:m", LlmOptions()) == Identity("openai", "http://127.0.0.1:7/v1", "m", "m")
    assert identify("openai:m", LlmOptions()) == identity_of(load_model("openai:m", LlmOptions()))


def test_an_endpoint_without_key_and_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(EndpointError, match="OPENAI_API_KEY"):
        load_model("openai:m", LlmOptions())


@pytest.mark.parametrize(
    ("seconds", "timeout", "retries"), [(120.0, 60.0, 1), (5.0, 5.0, 0), (60.0, 60.0, 0), (1000.0, 60.0, 4)]
)
def test_tries_of_a_request_end_within_what_somebody_waits(seconds: float, timeout: float, retries: int) -> None:
    limited = LLM.within(seconds)
    assert (limited.timeout_seconds, limited.retries) == (timeout, retries)
    assert limited.endpoints == LLM.endpoints
