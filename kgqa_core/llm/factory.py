"""From the name of an answerer to the model: `builtin`, `hf:FOLDER_OR_ID` or `openai:MODEL`."""

from __future__ import annotations

from kgqa_core.config import AnsweringOptions
from kgqa_core.errors import ModelError, nearest
from kgqa_core.llm.protocol import LanguageModel

KINDS = ("builtin", "hf", "openai")


def parse_spec(spec: str) -> tuple[str, str]:
    """Kind and rest of an answerer's name.  Raises ModelError for a name of another form."""
    kind, colon, rest = spec.strip().partition(":")
    if kind not in KINDS:
        raise ModelError(
            f"unknown answerer '{spec}'{nearest(kind, KINDS)}; use builtin, hf:FOLDER_OR_ID or openai:MODEL"
        )
    if kind == "builtin" and colon:
        raise ModelError(f"answerer '{spec}': the builtin model takes no name; write builtin")
    if kind != "builtin" and not rest.strip():
        example = "hf:google/flan-t5-small" if kind == "hf" else "openai:my-model"
        raise ModelError(f"answerer '{spec}' names no model; write for example {example}")
    return kind, rest.strip()


def load_model(spec: str, options: AnsweringOptions) -> LanguageModel:
    """The model that an answerer's name stands for.

    Raises ModelError when the name or the folder is not one of a model, EndpointError when an endpoint is down.
    """
    kind, rest = parse_spec(spec)
    if kind == "openai":
        from kgqa_core.llm.openai_api import OpenAIModel

        return OpenAIModel(
            rest,
            base_url=options.base_url,
            concurrency=options.concurrency,
            timeout_seconds=options.timeout_seconds,
            retries=options.retries,
        )
    from kgqa_core.llm.hf import HFModel

    if kind == "builtin":
        from kgqa_core.llm.builtin.model import load_builtin

        return load_builtin(batch_tokens=options.batch_tokens, device=options.device)
    return HFModel(rest, batch_tokens=options.batch_tokens, device=options.device)
