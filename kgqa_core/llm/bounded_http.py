"""An HTTP client for servers that are not trusted: a bound on every reply, and no redirect.

A reply is counted as it is decompressed, so that a small one cannot fill the memory.  A redirect is an error that names
its target: nothing that was meant for one server, its key least of all, goes to another, and no request is repeated
that was booked once.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any, TypeVar

import httpx2

from kgqa_core.http_clients import retry_after
from kgqa_core.llm.faults import RETRIED, ReplyRefused, shown

log = logging.getLogger("kgqa.llm")

T = TypeVar("T")

ERROR_BYTES = 2**16
"""Bytes that are read of the body of an error; the rest is left."""

FIRST_WAIT, LONGEST_WAIT, LONGEST_RETRY_AFTER = 0.5, 30.0, 120.0
"""Seconds before the first further try, doubling up to the longest; a Retry-After counts up to the last."""


class NoReply(Exception):
    """A request failed for good; the message says why."""


class BoundedClient(httpx2.AsyncClient):
    """A client that reads every reply to its end or to a bound.

    reply_bytes: of a body after decompression.  setting: the option that holds it, for the message.  on_part: is told
    each part of a good reply as it comes.  The time is bounded by who awaits the reply.  Methods raise ReplyRefused
    besides what they raise in httpx2.
    """

    def __init__(self, *, reply_bytes: int, setting: str, **given: Any) -> None:
        super().__init__(follow_redirects=False, **given)
        self.reply_bytes, self.setting = reply_bytes, setting
        self.on_part: Callable[[bytes], None] | None = None

    async def send(self, request: httpx2.Request, **given: Any) -> httpx2.Response:
        """The whole reply, whether it is to be streamed or not."""
        response = await super().send(request, **{**given, "stream": True, "follow_redirects": False})
        try:
            if response.has_redirect_location:
                raise _redirected(response)
            return await self._read(response)
        finally:
            await response.aclose()

    async def _read(self, response: httpx2.Response) -> httpx2.Response:
        codings = response.headers.get_list("content-encoding", split_commas=True)
        if len([coding for coding in codings if coding.strip().lower() != "identity"]) > 1:
            raise ReplyRefused(f"its reply is compressed more than once ({', '.join(codings)[:80]})", free=False)
        most = self.reply_bytes if response.is_success else min(self.reply_bytes, ERROR_BYTES)
        parts: list[bytes] = []
        size = 0
        async with aclosing(response.aiter_bytes()) as stream:
            async for part in stream:
                size += len(part)
                parts.append(part)
                if size > most and not response.is_success:
                    break
                if size > most:
                    raise ReplyRefused(
                        f"its reply is larger than {most / 2**20:g} MiB, the limit of {self.setting}; raise it if such "
                        "replies are meant",
                        free=False,
                    )
                if self.on_part is not None and response.is_success:
                    self.on_part(part)
        skipped = (b"content-encoding", b"content-length", b"transfer-encoding")
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in skipped]
        return httpx2.Response(
            response.status_code, headers=headers, content=b"".join(parts)[:most], request=response.request
        )


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, in a thread of its own when this one has an event loop (a notebook, a flow)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def patiently(
    send: Callable[[], httpx2.Response], read: Callable[[httpx2.Response], T], retries: int,
    wait: Callable[[float], None] = time.sleep,
) -> T:  # fmt: skip
    """What `read` makes of a reply, which is requested again where it is none, or none that can be read.

    read: raises ValueError for a reply that another try may mend.  wait: sleeps for so many seconds.  Raises NoReply.
    """
    failure = ""
    for attempt in range(retries + 1):
        after: float | None = None
        try:
            reply = send()
            if reply.status_code not in RETRIED and reply.status_code < 500:
                return read(reply)
            failure, after = f"status {reply.status_code}", retry_after(reply.headers)
        except ReplyRefused as fault:
            raise NoReply(str(fault)) from None
        except (httpx2.RequestError, httpx2.InvalidURL, TimeoutError, ValueError) as fault:
            failure = str(fault) if type(fault) is ValueError else f"{type(fault).__name__}: {fault}"
        if attempt < retries:
            pause = min(FIRST_WAIT * 2**attempt, LONGEST_WAIT) * (0.5 + random.random() / 2)
            log.debug("%s; requested again", failure)
            wait(max(pause, min(after or 0.0, LONGEST_RETRY_AFTER)))
    raise NoReply(failure)


def _redirected(response: httpx2.Response) -> ReplyRefused:
    """The error that names where a redirect leads."""
    request, following = response.request, response.next_request
    status = f"(status {response.status_code})"
    if following is None:
        return ReplyRefused(f"it redirects {status} to what is no address", free=True)
    target = shown(str(following.url))[:200]
    if following.url.origin != request.url.origin:
        return ReplyRefused(
            f"it redirects {status} from {shown(str(request.url))} to another server, {target}, where neither the "
            "request nor its key is sent",
            free=True,
        )
    return ReplyRefused(f"it redirects {status} to {target}; give the address that it has now", free=True)
