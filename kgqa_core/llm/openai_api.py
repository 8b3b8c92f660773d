"""Any server that speaks the OpenAI chat-completions protocol: vLLM, Ollama, llama.cpp, a vendor.

The key comes from OPENAI_API_KEY and from nowhere else; it is never logged and never part of a message.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import os
import random
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from kgqa_core.errors import EndpointError, ModelError
from kgqa_core.llm.protocol import Completion, Finish, GenerationParams, OnResult, cut_at_stop
from kgqa_core.monitor import QUIET, Monitor

log = logging.getLogger("kgqa.llm")

RETRIED = (408, 409, 425, 429)
"""Statuses below 500 that another try may mend."""

REFUSED = (401, 403, 404)
"""Statuses that no try mends and that concern every prompt alike."""

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before the first retry, doubling up to the longest; a Retry-After of the server is kept up to two minutes."""

LONGEST_ASKED = 120.0


class OpenAIModel:
    """A chat model behind an endpoint.

    model: the id that the endpoint knows.  base_url: of the server, such as http://localhost:8000/v1; OPENAI_BASE_URL
    or the vendor's when absent.  concurrency: requests under way at once.  timeout_seconds: of one request.
    retries: further tries of a failed request.  Raises EndpointError when there is neither a key nor a base URL.
    """

    batch_sensitive = False

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        concurrency: int = 16,
        timeout_seconds: float = 60.0,
        retries: int = 4,
        first_wait: float = FIRST_WAIT,
    ) -> None:
        self.model = model
        self.name = f"openai:{model}"
        self.revision = model
        self.concurrency, self.timeout_seconds, self.retries = concurrency, timeout_seconds, retries
        self.first_wait = first_wait
        self.base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        if self.base_url is not None and urlsplit(self.base_url).scheme not in ("http", "https"):
            raise EndpointError(
                f"base_url '{_shown(self.base_url)}' is not an http(s) address; write for example http://localhost:8000/v1"
            )
        if self.base_url is None and not os.environ.get("OPENAI_API_KEY"):
            raise EndpointError(
                f"answerer '{self.name}' needs OPENAI_API_KEY in the environment, or answering.base_url"
            )

    @property
    def address(self) -> str:
        """The endpoint as it may be shown: without user, password and query."""
        return _shown(self.base_url) if self.base_url else "the vendor's default endpoint"

    def generate(
        self,
        prompts: Sequence[str],
        params: GenerationParams,
        monitor: Monitor = QUIET,
        on_result: OnResult | None = None,
    ) -> list[Completion]:
        """One completion per prompt, in the order of the prompts; an equal prompt is asked once.

        A prompt that fails after all tries becomes a completion with finish `error` and the others go on.
        Raises EndpointError when the endpoint cannot be reached at the start, refuses every prompt alike (key, model or
        address wrong), or when all prompts fail; ModelError when several completions a prompt are asked for.
        """
        if params.n != 1:
            raise ModelError(f"one completion a prompt is supported, not n={params.n}; ask once per sample")
        if not prompts:
            return []
        return _run(self._all(prompts, params, monitor, on_result))

    async def _all(
        self, prompts: Sequence[str], params: GenerationParams, monitor: Monitor, on_result: OnResult | None
    ) -> list[Completion]:
        from openai import AsyncOpenAI

        places: dict[str, list[int]] = {}
        for place, prompt in enumerate(prompts):
            places.setdefault(prompt, []).append(place)
        results: list[Completion | None] = [None] * len(prompts)
        done = succeeded = 0
        queue = iter(places.items())
        fatal: list[EndpointError] = []

        async def step(client: AsyncOpenAI, prompt: str, where: list[int]) -> None:
            nonlocal done, succeeded
            completion = await self._one(client, prompt, params)
            if completion.finish == "error" and _concerns_all(completion.error or "", succeeded):
                fatal.append(self._down(completion.error or "it failed"))
                return
            succeeded += completion.finish != "error"
            for place in where:
                results[place] = completion
                if on_result is not None:
                    on_result(place, completion)
            done += len(where)
            monitor.progress(done, len(prompts), "answers")

        async def worker(client: AsyncOpenAI) -> None:
            while not fatal and (item := next(queue, None)) is not None:
                await step(client, *item)

        async with AsyncOpenAI(
            api_key=os.environ.get("OPENAI_API_KEY") or "none",
            base_url=self.base_url,
            timeout=self.timeout_seconds,
            max_retries=0,
        ) as client:
            await step(client, *next(queue))  # alone: an endpoint that is down costs one request, not a burst
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self.concurrency, len(places))):
                        group.create_task(worker(client))
            except ExceptionGroup as faults:
                raise faults.exceptions[0] from None
        if fatal:
            raise fatal[0]
        complete = [completion for completion in results if completion is not None]
        if complete and all(completion.finish == "error" for completion in complete):
            raise self._down(complete[0].error or "it failed")
        return complete

    def _down(self, why: str) -> EndpointError:
        return EndpointError(
            f"the endpoint {self.address} does not answer for model '{self.model}': {why}; "
            "check that the server runs, answering.base_url, the model's id and OPENAI_API_KEY"
        )

    async def _one(self, client: Any, prompt: str, params: GenerationParams) -> Completion:
        """One prompt with its retries.  Never raises for what the server does."""
        error = ""
        for attempt in range(self.retries + 1):
            error, again, asked = "", False, None
            try:
                return await self._ask(client, prompt, params)
            except Exception as fault:  # _sort raises again what is not the client's
                error, again, asked = _sort(fault)
            if not again or attempt == self.retries:
                break
            wait = min(LONGEST_WAIT, self.first_wait * 2**attempt) * (0.5 + random.random() / 2)
            wait = max(wait, min(asked, LONGEST_ASKED)) if asked is not None else wait
            log.info("%s: %s; try %d of %d in %.1f s", self.name, error, attempt + 2, self.retries + 1, wait)
            await asyncio.sleep(wait)
        return Completion("", "error", error=error)

    async def _ask(self, client: Any, prompt: str, params: GenerationParams) -> Completion:
        given: dict[str, Any] = {"temperature": params.temperature, "max_tokens": params.max_new_tokens}
        if params.temperature > 0:
            given["top_p"] = params.top_p
        if params.seed is not None:
            given["seed"] = params.seed
        if params.stop:
            given["stop"] = list(params.stop)
        # The library's timeout is between bytes; this one is for the whole request.
        async with asyncio.timeout(self.timeout_seconds):
            reply = await client.chat.completions.create(
                model=self.model, messages=[{"role": "user", "content": prompt}], **given
            )
        return _completion(reply, params)


def _concerns_all(error: str, succeeded: int) -> bool:
    """Whether a failure would meet every other prompt too: refused, or nobody there from the beginning."""
    return error.startswith(tuple(f"status {status}" for status in REFUSED)) or (
        succeeded == 0 and error.startswith("no connection")
    )


def _sort(fault: Exception) -> tuple[str, bool, float | None]:
    """What a failed request says, whether another try may mend it, and the seconds that the server asks to wait.

    Faults that are not the client's or the network's are raised again.
    """
    import openai

    if isinstance(fault, openai.APIStatusError):
        status = fault.status_code
        body = " ".join(_redacted(str(fault.body or "")).split())[:200]
        return (
            f"status {status} {body}".strip(),
            status in RETRIED or status >= 500,
            _retry_after(fault.response.headers),
        )
    if isinstance(fault, openai.APITimeoutError | TimeoutError):
        return "timed out", True, None
    if isinstance(fault, openai.APIConnectionError):
        cause = fault.__cause__
        name = type(cause).__name__ if cause is not None else "connection error"
        lost = name in ("RemoteProtocolError", "ReadError", "WriteError", "CloseError")
        return f"{'connection lost' if lost else 'no connection'} ({name})", True, None
    if isinstance(fault, openai.OpenAIError | _Unreadable | ValueError):
        return f"unreadable reply ({type(fault).__name__})", True, None
    raise fault


class _Unreadable(Exception):
    """A reply without the fields of a chat completion."""


def _completion(reply: Any, params: GenerationParams) -> Completion:
    choices: list[Any] = getattr(reply, "choices", None) or []
    message = getattr(choices[0], "message", None) if choices else None
    if message is None:
        raise _Unreadable("the reply has no choices")
    usage = getattr(reply, "usage", None)
    counts = (int(getattr(usage, "prompt_tokens", 0) or 0), int(getattr(usage, "completion_tokens", 0) or 0))
    refusal = getattr(message, "refusal", None)
    if refusal or choices[0].finish_reason == "content_filter":
        return Completion(str(refusal or ""), "refusal", *counts)
    text = cut_at_stop(str(message.content or ""), params.stop)
    finish: Finish = "length" if choices[0].finish_reason == "length" else "stop"
    return Completion(text, finish if text.strip() else "empty", *counts)


def _retry_after(headers: Any) -> float | None:
    """Seconds that a Retry-After (or retry-after-ms) header asks for, from a number or a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            return max(0.0, float(text) * unit)
        except ValueError:
            pass
        try:
            return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
        except (TypeError, ValueError):
            continue
    return None


def _redacted(text: str) -> str:
    key = os.environ.get("OPENAI_API_KEY")
    return text.replace(key, "[key]") if key else text


def _shown(url: str) -> str:
    """An address without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _run(work: Coroutine[Any, Any, list[Completion]]) -> list[Completion]:
    """Runs a coroutine to its end, in a thread of its own when this one has an event loop (a notebook, a flow)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
