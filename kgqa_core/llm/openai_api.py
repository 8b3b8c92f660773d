"""Any server that speaks OpenAI's protocol, chat or plain completions: vLLM, Ollama, llama.cpp, a vendor.

The key of the default endpoint comes from OPENAI_API_KEY, that of a named endpoint from the variable that the endpoint
names.  A key goes to no other endpoint, into no log and into no message.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from kgqa_core.config import LlmOptions
from kgqa_core.errors import BudgetReached, EndpointError, ModelError
from kgqa_core.http_clients import trusted
from kgqa_core.llm.budget import Budget, Reservation
from kgqa_core.llm.faults import Failure, concerns_all, excerpt, explain, is_final, is_web, redacted, secrets_of, shown
from kgqa_core.llm.protocol import Completion, GenerationParams, OnResult, OnText, clean_text, cut_at_stop
from kgqa_core.llm.reply import read_reply
from kgqa_core.llm.streamed import StreamedReply, without_beginnings
from kgqa_core.llm.tokens import bound
from kgqa_core.prompts import conversation_fields, messages, plain

log = logging.getLogger("kgqa.llm")

KEY = "OPENAI_API_KEY"
"""Variable with the key of the default endpoint."""

VENDOR = "https://api.openai.com/v1"
"""The default endpoint where neither `llm.base_url` nor OPENAI_BASE_URL names one."""

FIRST_WAIT, LONGEST_WAIT, LONGEST_RETRY_AFTER = 0.5, 30.0, 120.0
"""Seconds before the first retry, doubling up to the longest; the server's Retry-After holds up to the last."""

LEAST = 16
"""Characters of a secret that is removed from completions too; shorter ones are passwords in name only (`none`)."""

DOWN = 3
"""So many different prompts must all fail before an endpoint that never answered counts as down."""


class OpenAIModel:
    """A model behind an endpoint.

    model: the id that the endpoint knows.  endpoint: its name in `llm.endpoints`; None is the default one, at
    `llm.base_url`, OPENAI_BASE_URL or the vendor's.  budget: reserves every try before it leaves.  first_wait: seconds
    before the first retry.  No message shows the keys of any endpoint.
    Raises EndpointError when the address is not one or the key is missing.
    """

    batch_sensitive = False
    tells = True

    def __init__(
        self,
        model: str,
        llm: LlmOptions,
        endpoint: str | None = None,
        *,
        budget: Budget | None = None,
        first_wait: float = FIRST_WAIT,
    ) -> None:
        named = llm.endpoints[endpoint] if endpoint is not None else None
        base_url, key_env = (llm.base_url, KEY) if named is None else (named.base_url, named.key_env)
        self.model, self.llm, self.endpoint, self.key_env = model, llm, endpoint, key_env
        self.name = f"openai:{model}" if endpoint is None else f"openai:{model}@{endpoint}"
        self.revision = model
        self.budget, self.first_wait = budget, first_wait
        self.base_url = base_url or (os.environ.get("OPENAI_BASE_URL") if endpoint is None else None) or None
        self.chats = named is None or named.api == "chat"
        self.address = endpoint_address(llm, endpoint)
        self.answered = self.known = False
        self.limit_name = "max_tokens"
        self.returns_log_probabilities = self.streams = True
        setting = f"llm.endpoints.{endpoint}.base_url" if endpoint else "llm.base_url"
        if self.base_url is not None and not is_web(self.base_url):
            raise EndpointError(
                f"{setting} '{shown(self.base_url)}' is not an http(s) address; write for example "
                "http://localhost:8000/v1"
            )
        if self.base_url is None and (endpoint is not None or not os.environ.get(KEY)):
            raise EndpointError(f"model '{self.name}' needs {KEY} in the environment, or {setting}")
        if endpoint is not None and key_env is not None and not os.environ.get(key_env):
            raise EndpointError(
                f"model '{self.name}': endpoint '{endpoint}' takes its key from {key_env}, which is not set; set it, "
                f"or remove llm.endpoints.{endpoint}.key_env if the server wants no key"
            )
        keys = [os.environ.get(each.key_env, "") for each in llm.endpoints.values() if each.key_env is not None]
        self.secrets = [*keys, *secrets_of(self.base_url or ""), os.environ.get(KEY, ""), self._key() or ""]

    def _key(self) -> str | None:
        return os.environ.get(self.key_env) or None if self.key_env is not None else None

    def has_answered(self) -> None:
        """An earlier run has answers of it: a refusal or an unreadable reply may be about one prompt."""
        self.known = True

    def generate(
        self,
        prompts: Sequence[str],
        params: GenerationParams,
        on_result: OnResult | None = None,
        on_text: OnText | None = None,
    ) -> list[Completion]:
        """One completion per prompt, in the order of the prompts; an equal prompt is sent once.

        on_text: where it is given, the endpoint is asked to stream; what it writes is told without secrets.

        A prompt that fails after all tries becomes a completion with finish `error`, or `unreadable` where what came
        was a completion, and the others go on.
        Raises EndpointError when the endpoint cannot be reached (on_result has what came before), refuses every prompt
        alike (key, model or address wrong), or has never answered and fails on all of several prompts; BudgetReached
        when the budget has no room for a request, after those under way have been answered; ModelError when params
        want a beam search, or a prompt is a conversation with tools or a schema and the endpoint has no chat.
        """
        if params.num_beams != 1:
            raise ModelError(f"model '{self.name}' is behind an endpoint and has no beam search; set num_beams to 1")
        if not self.chats and any(conversation_fields(prompt) is not None for prompt in prompts):
            raise no_chat(self.name, self.endpoint or "")
        if not prompts:
            return []
        from kgqa_core.llm.bounded_http import run_coroutine

        return run_coroutine(_Batch(self, prompts, params, on_result, on_text).all())

    def client(self) -> Any:
        """A client of one connection that sends this endpoint's own key, or none, and nothing else that identifies the
        user.  Each request under way has a client of its own: one pool for all looks at every idle connection each time
        it hands one out, which costs more than the request."""
        import httpx2
        from openai import AsyncOpenAI, Omit

        from kgqa_core.llm.bounded_http import BoundedClient

        headers: dict[str, Any] = {}
        if self.endpoint is not None:  # OPENAI_CUSTOM_HEADERS are meant for the default endpoint
            lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
            headers |= {line.partition(":")[0].strip(): Omit() for line in lines if ":" in line}
        client = AsyncOpenAI(
            api_key=self._key() or "none", base_url=self.base_url or VENDOR, timeout=self.llm.timeout_seconds,
            max_retries=0, default_headers=headers,
            http_client=BoundedClient(
                reply_bytes=int(self.llm.max_reply_mb * 2**20), setting="llm.max_reply_mb", verify=trusted(),
                timeout=self.llm.timeout_seconds, limits=httpx2.Limits(max_connections=1),
            ),
        )  # fmt: skip
        if self.endpoint is not None:
            client.organization = client.project = None
        return client

    def request_options(self) -> dict[str, Any]:
        """Options of the library for each request: without a key no Authorization header is sent."""
        from openai import Omit

        return {"headers": {"Authorization": Omit()}} if self._key() is None else {}

    def body(self, prompt: str, params: GenerationParams) -> dict[str, Any]:
        """A request as the protocol wants it; a chat has a system message before the user's.

        A conversation is sent with its own messages, tools and schema; to /completions a prompt is sent as one text.
        """
        text = clean_text(prompt)
        fields = conversation_fields(text) if self.chats else {"prompt": plain(text)}
        if fields is None:
            system, user = messages(text)
            sent = [{"role": "user", "content": user}]
            fields = {"messages": sent if system is None else [{"role": "system", "content": system}, *sent]}
        given: dict[str, Any] = {
            "model": self.model,
            **fields,
            "temperature": params.temperature,
            self.limit_name: params.max_new_tokens,
        }
        if params.temperature > 0:
            given["top_p"] = params.top_p
        if params.top_k > 0:
            given["top_k"] = params.top_k
        if params.seed is not None:
            given["seed"] = params.seed
        if params.stop:
            given["stop"] = list(params.stop)
        if params.log_probabilities and self.returns_log_probabilities:
            given["logprobs"] = True if self.chats else 1
        return given

    def down(self, why: str) -> EndpointError:
        """The error that says that this endpoint cannot be used."""
        where = f"llm.endpoints.{self.endpoint}.base_url" if self.endpoint else "llm.base_url"
        hint = "; a server that has only /completions is an endpoint of llm.endpoints with api: completions"
        return EndpointError(
            f"the endpoint {self.address} does not answer for model '{self.model}': {why}; "
            f"check that the server runs, {where}, the model's id and {self.key_env or 'its key_env'}"
            + (hint if self.chats and why.startswith(("status 400", "status 404", "status 405")) else "")
        )


class _Batch:
    """The prompts of one call of `generate` on their way."""

    def __init__(
        self,
        model: OpenAIModel,
        prompts: Sequence[str],
        params: GenerationParams,
        on_result: OnResult | None,
        on_text: OnText | None = None,
    ) -> None:
        self.model, self.params, self.on_result = model, params, on_result
        self.on_text = on_text
        self.indices: dict[str, list[int]] = {}
        for index, prompt in enumerate(prompts):
            self.indices.setdefault(prompt, []).append(index)
        self.results: list[Completion | None] = [None] * len(prompts)
        self.done = self.refused = 0
        self.repaired: list[tuple[str, tuple[str, ...]]] = []
        self.fatal: EndpointError | None = None
        self.reached: BudgetReached | None = None
        self.under_way = self.waiting = self.settled = 0
        self.options = model.request_options()
        self.room = asyncio.Event()
        self.narrow = asyncio.Lock()

    async def all(self) -> list[Completion]:
        queue = iter(self.indices)

        async def worker(client: Any) -> None:
            while self.fatal is None and self.reached is None and (prompt := next(queue, None)) is not None:
                await self.step(client, prompt)

        async with AsyncExitStack() as opened:
            clients = [
                await opened.enter_async_context(self.model.client())
                for _ in range(min(self.model.llm.concurrency, len(self.indices)))
            ]
            if not self.model.answered:  # alone: an endpoint that is down costs one request, not a burst
                await self.step(clients[0], next(queue))
            try:
                async with asyncio.TaskGroup() as group:
                    for client in clients:
                        group.create_task(worker(client))
            except ExceptionGroup as faults:
                raise faults.exceptions[0] from None
            finally:
                self.warn()
        if self.fatal is not None:
            raise self.fatal
        if self.reached is not None:
            reached = self.reached
            raise BudgetReached(reached.limit, reached.spent, reached.needed, self.done, len(self.results) - self.done)
        complete = [completion for completion in self.results if completion is not None]
        if not self.model.answered and not self.model.known and len(self.indices) >= DOWN:
            raise self.model.down(complete[0].error or "it failed")
        return complete

    async def step(self, client: Any, prompt: str) -> None:
        try:
            completion = await self.tries(client, prompt)
        except BudgetReached as reached:
            self.reached = reached
            return
        message = completion.error or "it failed"
        if completion.finish == "error" and concerns_all(message):
            self.refused += 1  # of an endpoint that has answered, a refusal may be about one prompt
            proven = self.model.answered or self.model.known
            if not proven or is_final(message) or self.refused >= DOWN:
                self.fatal = self.model.down(f"{message}, at the prompt '{excerpt(prompt)}'" if proven else message)
                return
        elif completion.finish != "error":
            self.refused = 0
        self.model.answered |= completion.finish not in ("error", "unreadable")
        if completion.repairs:
            self.repaired.append((prompt, completion.repairs))
        for index in self.indices[prompt]:
            self.results[index] = completion
            if self.on_result is not None:
                self.on_result(index, completion)
        self.done += len(self.indices[prompt])

    def warn(self) -> None:
        """Logs that replies were odd, with the first of them."""
        if self.repaired:
            prompt, repairs = self.repaired[0]
            log.warning(
                "%s: %d replies were odd and were repaired; the first, to '%s': %s",
                self.model.name, len(self.repaired), excerpt(prompt), ", ".join(repairs),
            )  # fmt: skip

    async def tries(self, client: Any, prompt: str) -> Completion:
        """One prompt with its retries.  Raises nothing for what the server does, BudgetReached without room."""
        model = self.model
        attempt = 0
        while True:
            reservation = await self.reserve(prompt) if model.budget is not None else None
            failure, completion = None, None
            wants_log_probabilities = self.params.log_probabilities and model.returns_log_probabilities
            try:
                completion = await self.request(client, prompt)
            except Exception as fault:  # `explain` raises again what is not the client's
                failure = explain(fault, model.secrets)
            finally:
                self.settle(reservation, completion, failure)
            if completion is not None:
                return completion
            assert failure is not None
            if "max_completion_tokens" in failure.message and model.limit_name == "max_tokens":
                model.limit_name = "max_completion_tokens"
                continue
            if "stream" in failure.message and not failure.again and self.on_text is not None and model.streams:
                model.streams = False
                continue
            if "logprobs" in failure.message and not failure.again and wants_log_probabilities:
                model.returns_log_probabilities = False
                continue
            if not failure.again or attempt >= model.llm.retries or self.fatal is not None:
                # one that has never answered may be no model at all
                spent = failure.billed and (model.answered or model.known)
                return Completion("", "unreadable" if spent else "error", error=failure.message)
            attempt += 1
            await self.pause(failure, attempt)

    async def pause(self, failure: Failure, attempt: int) -> None:
        model = self.model
        wait = min(LONGEST_WAIT, model.first_wait * 2 ** (attempt - 1)) * (0.5 + random.random() / 2)
        wait = max(wait, min(failure.wait, LONGEST_RETRY_AFTER)) if failure.wait is not None else wait
        log.info(
            "%s: %s; try %d of %d in %.1f s", model.name, failure.message, attempt + 1, model.llm.retries + 1, wait
        )
        await asyncio.sleep(wait)

    async def request(self, client: Any, prompt: str) -> Completion:
        import httpx2

        heard, body = None, self.model.body(prompt, self.params)
        if self.on_text is not None and self.model.streams and "tools" not in body:
            heard = StreamedReply(partial(self.tell, prompt))
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        client._client.on_part = None if heard is None else heard.feed
        # The library's time-out is between bytes; this one is for the whole request.
        async with asyncio.timeout(self.model.llm.timeout_seconds):
            reply = await client.post(
                "/chat/completions" if self.model.chats else "/completions",
                cast_to=httpx2.Response,
                body=body,
                options=self.options,
            )
        content = heard.whole() if heard is not None and heard.events else reply.content
        completion = read_reply(content, self.params, prompt)
        text = redacted(completion.text, self.long_secrets())
        return completion if text == completion.text else replace(completion, text=text)

    def long_secrets(self) -> list[str]:
        return [secret for secret in self.model.secrets if len(secret) >= LEAST]

    def tell(self, prompt: str, text: str) -> None:
        """What a prompt has so far, without secrets and what may begin one."""
        assert self.on_text is not None
        shown = redacted(cut_at_stop(clean_text(text), self.params.stop), self.long_secrets())
        self.on_text(prompt, without_beginnings(shown, self.long_secrets()))

    async def reserve(self, prompt: str) -> Reservation:
        """Room for one request; waits for those under way when what they give back may make it."""
        budget, requested = self.model.budget, (self.model.name, bound(prompt), self.params.max_new_tokens)
        assert budget is not None
        if self.reached is not None:
            raise self.reached
        self.under_way += 1  # before it is known: one that is being booked may give back too
        try:
            try:
                return await budget.reserve_soon(*requested)
            except BudgetReached:
                return await self.reserve_narrowly(budget, requested)
        except BaseException:
            self.under_way -= 1
            raise

    async def reserve_narrowly(self, budget: Budget, requested: tuple[str, int, int]) -> Reservation:
        """Room for one request when there is little, one request after the other."""
        self.waiting += 1
        self.room.set()
        try:
            async with self.narrow:
                while self.reached is None:
                    settled = self.settled
                    self.room.clear()
                    try:
                        return await budget.reserve_soon(*requested)
                    except BudgetReached as reached:
                        if settled != self.settled:
                            continue
                        if self.under_way == self.waiting or reached.limit == "max_calls":
                            self.reached = reached
                        else:
                            await self.room.wait()
                raise self.reached
        finally:
            self.waiting -= 1

    def settle(self, reservation: Reservation | None, completion: Completion | None, failure: Failure | None) -> None:
        """Gives back what a request did not need; one whose cost is unknown stays spent in full."""
        if reservation is None or self.model.budget is None:
            return
        self.under_way -= 1
        self.settled += 1
        counted = completion is not None and not completion.estimated
        if counted and completion is not None and completion.prompt_tokens + completion.completion_tokens > 0:
            self.model.budget.settle(reservation, completion.prompt_tokens, completion.completion_tokens)
        elif failure is not None and failure.free:
            self.model.budget.settle(reservation, paid=False)
        self.room.set()


def no_chat(name: str, endpoint: str) -> ModelError:
    """The error of a model behind an endpoint that has /completions alone."""
    return ModelError(
        f"model '{name}' is behind /completions, which has no messages, tools or JSON schema of the reply; use an "
        f"endpoint that chats, without llm.endpoints.{endpoint}.api: completions"
    )


def endpoint_address(llm: LlmOptions, endpoint: str | None) -> str:
    """An endpoint's address as it may be shown and as the cache knows it: without user, password and query.

    That of /completions is another one than that of the chat of the same server.
    """
    named = llm.endpoints[endpoint] if endpoint else None
    url = named.base_url if named else llm.base_url or os.environ.get("OPENAI_BASE_URL")
    return shown(url or VENDOR) + ("/completions" if named is not None and named.api == "completions" else "")
