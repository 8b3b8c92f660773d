"""Options of language models: endpoints, prices, budgets, batches."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kgqa_core.config.base import Execution, Options


class Endpoint(Options):
    """A server that speaks OpenAI's protocol."""

    base_url: str
    """Its address, such as http://localhost:8000/v1."""
    key_env: str | None = None
    """Name of the environment variable that holds its key; without one no key is sent."""
    api: Literal["chat", "completions"] = "chat"
    """`chat` sends messages to /chat/completions; `completions` sends the prompt as one text to /completions, as base
    models without a chat template need it (no tools, no JSON schema of the reply)."""


class Price(Options):
    """What an endpoint charges, in one currency of your choice."""

    prompt: float = Field(default=0.0, ge=0)
    """For a million prompt tokens."""
    completion: float = Field(default=0.0, ge=0)
    """For a million completion tokens."""


class BudgetOptions(Options):
    """Limits of what the results of a run may cost at endpoints; local models are free.

    Reserved before each request with its largest possible output, so that they are never exceeded.  What was paid for
    the same stages in an earlier, killed try counts too.
    """

    max_calls: int | None = Field(default=None, ge=0)
    """Requests that may be sent, repeated ones included."""
    max_tokens: int | None = Field(default=None, ge=0)
    """Prompt and completion tokens together."""
    max_cost: float | None = Field(default=None, ge=0)
    """Money, by `llm.prices`."""


class LlmOptions(Options):
    """Where and how language models run; the same for teacher, rewriter, QA model and answerer.

    A model is named by `builtin`, `hf:FOLDER_OR_ID`, `openai:MODEL`, or `openai:MODEL@ENDPOINT` with a name from
    `endpoints`.
    """

    base_url: str | None = None
    """Endpoint of `openai:MODEL`; its key comes from OPENAI_API_KEY."""
    endpoints: dict[str, Endpoint] = {}
    """Further endpoints, by name."""
    batch_tokens: Execution[int] = Field(default=8192, ge=64)
    """Tokens in one batch of a local model, padding and room for the output included."""
    dtype: Literal["auto", "fp32", "bf16", "int8"] = "auto"
    """Numbers of a local model: `auto` is fp32 on a CPU and what the weights are stored in on a GPU; `int8` rounds the
    linear layers of a model on a CPU: `builtin` writes nearly the same in about 0.6 times the processor time, a
    pretrained model may lose most of its answers, where `bf16` serves (a rewriter's adapter stays in fp32)."""
    device: Execution[str] = "auto"
    """`auto`, `cpu`, `cuda` or a device map of Accelerate."""
    concurrency: Execution[int] = Field(default=16, ge=1)
    """Requests under way at once to an endpoint."""
    timeout_seconds: Execution[float] = Field(default=60, gt=0)
    """Longest wait for one request, from its first byte to the last of its reply."""
    max_reply_mb: Execution[float] = Field(default=8, gt=0, le=4096)
    """Largest reply of an endpoint after decompression, in MiB; a larger one is not read."""
    retries: Execution[int] = Field(default=4, ge=0)
    """Further tries of a request that failed."""
    attempts: int = Field(default=3, ge=1)
    """Completions of one prompt that may be rejected by the caller's check before the item is given up."""
    prices: Execution[dict[str, Price]] = {}
    """Price of each `openai:MODEL`, for `budget.max_cost` and `kgqa forecast`."""
    tokenizers: Execution[dict[str, str]] = {}
    """Tokenizer of an endpoint's model, as a folder or hub id, or `builtin`; a forecast estimates tokens without."""
    budget: Execution[BudgetOptions] = BudgetOptions()
    """Limits of calls, tokens and money."""

    def within(self, seconds: float) -> LlmOptions:
        """The same with no more tries of a request than end within so many seconds, and one try that does."""
        timeout = min(self.timeout_seconds, seconds)
        return self.model_copy(
            update={"timeout_seconds": timeout, "retries": min(self.retries, max(0, int(seconds // timeout) - 1))}
        )
