"""From the name of a model to the model: `builtin`, `hf:FOLDER_OR_ID`, `openai:MODEL` or `openai:MODEL@ENDPOINT`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kgqa_core.config import LlmOptions
from kgqa_core.errors import ModelError, nearest
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import Identity
from kgqa_core.llm.protocol import LanguageModel

KINDS = ("builtin", "hf", "openai")


def parse_spec(spec: str, llm: LlmOptions | None = None) -> tuple[str, str]:
    """Kind and rest of a model's name, without loading it.

    llm: checks the endpoint too.  Raises ModelError for a name of another form or an endpoint that is not there.
    """
    kind, colon, rest = spec.strip().partition(":")
    if kind not in KINDS:
        raise ModelError(
            f"unknown model '{spec}'{nearest(kind, KINDS)}; "
            "use builtin, hf:FOLDER_OR_ID, openai:MODEL or openai:MODEL@ENDPOINT"
        )
    if kind == "builtin" and colon:
        raise ModelError(f"model '{spec}': the builtin model takes no name; write builtin")
    if kind != "builtin" and not rest.strip():
        example = "hf:google/flan-t5-small" if kind == "hf" else "openai:my-model"
        raise ModelError(f"model '{spec}' names no model; write for example {example}")
    if kind == "openai" and llm is not None:
        split_endpoint(rest.strip(), llm)
    return kind, rest.strip()


def split_endpoint(rest: str, llm: LlmOptions) -> tuple[str, str | None]:
    """Model and endpoint of `MODEL` or `MODEL@ENDPOINT`; None is the default endpoint.

    Raises ModelError for an endpoint that `llm.endpoints` does not have.
    """
    model, at, endpoint = rest.rpartition("@")
    if not at:
        return rest, None
    if endpoint in llm.endpoints and model:
        return model, endpoint
    known = ", ".join(sorted(llm.endpoints)) or "none"
    raise ModelError(
        f"model 'openai:{rest}': no endpoint is named '{endpoint}'{nearest(endpoint, llm.endpoints)}; llm.endpoints "
        f"has {known}; add it there, or write openai:MODEL for the default endpoint"
    )


def check_chat(spec: str, llm: LlmOptions) -> None:
    """Raises ModelError where a model is behind an endpoint without a chat: it has neither tools nor a JSON schema."""
    kind, rest = parse_spec(spec, llm)
    endpoint = split_endpoint(rest, llm)[1] if kind == "openai" else None
    if endpoint is not None and llm.endpoints[endpoint].api == "completions":
        from kgqa_core.llm.openai_api import no_chat

        raise no_chat(spec, endpoint)


def load_model(
    spec: str, llm: LlmOptions, *, budget: Budget | None = None, adapter: Path | None = None
) -> LanguageModel:
    """The model that a name stands for.

    budget: of an endpoint's requests; local models are free.  adapter: folder of a peft adapter for a local model.
    Raises ModelError when the name or the folder is not one of a model, EndpointError when an endpoint has no address
    or no key.
    """
    kind, rest = parse_spec(spec, llm)
    if kind == "openai":
        if adapter is not None:
            raise ModelError(f"model '{spec}' is behind an endpoint and cannot take the adapter {adapter.name}")
        from kgqa_core.llm.openai_api import OpenAIModel

        model, endpoint = split_endpoint(rest, llm)
        return OpenAIModel(model, llm, endpoint, budget=budget)
    given: dict[str, Any] = {"batch_tokens": llm.batch_tokens, "device": llm.device}
    if adapter is not None:
        given["adapter"] = adapter
    if llm.dtype != "auto":
        given["dtype"] = llm.dtype
    if kind == "builtin":
        from kgqa_core.llm.builtin.model import load_builtin

        return load_builtin(**given)
    from kgqa_core.llm.hf import HFModel

    return HFModel(rest, **given)


def identify(spec: str, llm: LlmOptions) -> Identity | None:
    """What the cache knows a model by, without loading it; None for a hub id, whose revision only loading shows."""
    kind, rest = parse_spec(spec, llm)
    if kind != "openai":
        from kgqa_core.llm.builtin.model import WEIGHTS
        from kgqa_core.llm.hf_load import has_chat_template, numbers_of, revision_of

        folder = WEIGHTS if kind == "builtin" else Path(rest).expanduser()
        if not folder.is_dir():
            return None
        settings = numbers_of(llm.dtype, chat=has_chat_template(folder))
        return Identity(kind, "", rest, revision_of(str(folder), None) + settings)
    from kgqa_core.llm.openai_api import endpoint_address

    model, endpoint = split_endpoint(rest, llm)
    return Identity("openai", endpoint_address(llm, endpoint), model, model)
