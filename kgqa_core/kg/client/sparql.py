"""A client of SPARQL 1.1 endpoints: SELECT by POST, JSON results, with patience.

Specifications: SPARQL 1.1 Protocol, section 2.1.2 (query via POST with URL-encoded parameters), and SPARQL 1.1 Query
Results JSON Format.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import httpx2

from kgqa_core.config import SparqlEndpointOptions
from kgqa_core.errors import EndpointError, KgInputError, without_passwords
from kgqa_core.http_clients import retry_after, trusted

log = logging.getLogger(__name__)

SCHEME = "sparql+"
"""What an endpoint's address begins with where a dump could be named: `sparql+https://query.wikidata.org/sparql`."""

TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
FIRST_WAIT, LONGEST_WAIT, LONGEST_RETRY_AFTER = 1.0, 60.0, 600.0
"""Seconds; the wait doubles with each try, and an endpoint's Retry-After is kept to that length."""

MOST_BYTES = 512 << 20
"""Bytes of one reply."""

SMALL_PAGE = 1000
"""Rows below which a page is the last one; above, an endpoint may have cut it at a limit of its own."""

ADVICE = (
    "run the same command again later, with fewer entities a query (--batch), or more patience (--timeout, --retries)"
)

Row = dict[str, dict[str, str]]
"""Variable → term as the JSON format has it: `type`, `value`, perhaps `xml:lang` or `datatype`."""


class TooMuch(Exception):
    """An endpoint did not finish a query in the tries that it had."""


class _Broken(ValueError):
    """A reply that is cut off, no JSON, or no result."""


class SparqlClient:
    """SELECT queries to one endpoint, one at a time.

    address: with or without SCHEME.  login: user and password.  advice: what to do where it does not answer.  requests,
    retried: how many were sent, and how many of them again.
    Raises KgInputError for an address that is none.
    """

    def __init__(
        self,
        address: str,
        options: SparqlEndpointOptions,
        sleep: Callable[[float], None] = time.sleep,
        *,
        login: tuple[str, str] | None = None,
        advice: str = ADVICE,
    ) -> None:
        self.address = address.removeprefix(SCHEME)
        self.shown = without_passwords(self.address)
        self.options, self._sleep, self._advice = options, sleep, advice
        self.requests = self.retried = 0
        self._free = 0.0
        try:
            number = version("kgqa")
        except PackageNotFoundError:
            number = "0"
        try:
            self._client = httpx2.Client(
                verify=trusted(),
                timeout=options.timeout,
                auth=login,
                headers={
                    "Accept": "application/sparql-results+json",
                    "User-Agent": f"kgqa/{number} (kg subset; python-httpx)",
                },
            )
            httpx2.URL(self.address)
        except (httpx2.InvalidURL, ValueError) as fault:
            raise KgInputError(f"{self.shown} is no address of an endpoint ({fault})") from None

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()

    def pages(self, query: str, tries: int | None = None) -> Iterator[list[Row]]:
        """The rows of a query that ends with ORDER BY, page by page.  Raises as `select` does."""
        offset = 0
        while True:
            rows = self.select(f"{query}\nLIMIT {self.options.page} OFFSET {offset}", tries)
            if rows:
                yield rows
            offset += len(rows)
            if len(rows) < min(SMALL_PAGE, self.options.page):
                return

    def select(self, query: str, tries: int | None = None) -> list[Row]:
        """The rows of a query.

        tries: after so many TooMuch is raised, for a query that can be divided; refusals for too many requests (429) do
        not count, since smaller queries do not help there.  Raises EndpointError when the endpoint refuses the query,
        or does not answer after all tries.
        """
        failure, wait = "", 0.0
        unfinished = 0
        for attempt in range(self.options.retries + 1):
            if attempt:
                self.retried += 1
                log.info("%s: %s; requested again", self.shown, failure)
                self._sleep(wait)
            wait = min(FIRST_WAIT * 2**attempt, LONGEST_WAIT) * (0.5 + random.random() / 2)
            self._take_turn()
            self.requests += 1
            try:
                reply = self._post(query)
                if reply.status_code == 200:
                    return _rows(reply.content)
                failure = f"status {reply.status_code}: {_first_line(reply)}"
                if reply.status_code not in TRY_AGAIN:
                    raise EndpointError(f"{self.shown} refuses a query ({failure}); the query is:\n{query[:2000]}")
                wait = max(wait, min(retry_after(reply.headers) or 0.0, LONGEST_RETRY_AFTER))
                unfinished += reply.status_code != 429
            except (httpx2.RequestError, httpx2.StreamError, _Broken) as fault:
                failure = f"{type(fault).__name__.lstrip('_')}: {fault}"
                unfinished += 1
            finally:
                self._free = time.monotonic() + self.options.delay
            if tries is not None and unfinished >= tries:
                raise TooMuch(failure)
        raise EndpointError(
            f"{self.shown} does not answer after {self.options.retries + 1} tries ({failure}); what it answered before "
            f"is kept: {self._advice}"
        )

    def _post(self, query: str) -> httpx2.Response:
        """One reply, whole."""
        with self._client.stream("POST", self.address, data={"query": query}) as reply:
            parts, size = [], 0
            for part in reply.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > MOST_BYTES:
                    raise _Broken(f"the reply has more than {MOST_BYTES >> 20} MiB; lower --page")
            return httpx2.Response(reply.status_code, headers=_plain(reply), content=b"".join(parts))

    def _take_turn(self) -> None:
        wait = self._free - time.monotonic()
        if wait > 0:
            self._sleep(wait)


def _plain(reply: httpx2.Response) -> dict[str, str]:
    """Headers of a reply whose content is decoded already."""
    return {name: reply.headers[name] for name in ("Retry-After", "Content-Type") if name in reply.headers}


def _rows(content: bytes) -> list[Row]:
    try:
        value: Any = json.loads(content)
        rows = value["results"]["bindings"]
    except (ValueError, RecursionError):
        raise _Broken("the reply is no JSON, or cut off") from None
    except (KeyError, TypeError):
        raise _Broken("the reply has no results.bindings") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise _Broken("results.bindings is no list of rows")
    return rows


def _first_line(reply: httpx2.Response) -> str:
    text = reply.content[:500].decode("utf-8", errors="replace").strip()
    return text.splitlines()[0][:200] if text else "no text"
