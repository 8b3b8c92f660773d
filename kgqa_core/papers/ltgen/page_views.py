"""The Wikimedia REST API of page views: mean monthly views of articles, requested at a bounded rate and never twice.

`BASE/metrics/pageviews/per-article/PROJECT/ACCESS/AGENT/TITLE/monthly/START/END`.  An article without views in the
period, or that does not exist, is status 404: zero views.  Every answer is kept in a file of the home's cache, so that
a killed run goes on and another benchmark asks only for what is new.
"""

from __future__ import annotations

import asyncio
import calendar
import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

from kgqa_core.config import PopularityOptions
from kgqa_core.errors import ConfigError, EndpointError
from kgqa_core.http_clients import trusted
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.store.sqlite import BUSY_SECONDS, write_ahead

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

FILE = "page_views.sqlite"
"""Name of the file in a home's cache folder."""

HOPELESS = 200
"""Articles at the beginning that, if none of them exists, mean that the wrong articles are requested."""

AGENT = "kgqa-ltgen/0.1 (long-tail benchmark builder; set ltgen.popularity.user_agent to how you can be reached)"

MOST_VIEWS = 2**53
"""Views of an article in a month; more are no number of views."""

_KNOWN = {
    "access": ("all-access", "desktop", "mobile-app", "mobile-web"),
    "agent": ("all-agents", "user", "spider", "automated"),
}
"""What the API knows; it answers anything else as it answers an article that does not exist."""


class PageViews:
    """A client of the API with its cache; use it as a context manager.

    cache: folder of the cache's file, None keeps it in memory.  wait: sleeps for so many seconds; for tests.
    Raises ConfigError for an address that is not http(s), a value that the API does not know, or months in the wrong
    order.
    """

    def __init__(
        self, options: PopularityOptions, cache: Path | None = None, wait: Callable[[float], None] = time.sleep
    ) -> None:
        if urlsplit(options.base_url).scheme not in ("http", "https"):
            raise ConfigError(f"ltgen.popularity.base_url '{options.base_url}' is not an http(s) address")
        for name, known in _KNOWN.items():
            if (given := getattr(options, name)) not in known:
                raise ConfigError(f"ltgen.popularity.{name} '{given}' is none of {', '.join(known)}")
        if options.last_month < options.first_month:
            raise ConfigError(
                f"ltgen.popularity.last_month {options.last_month} is before first_month {options.first_month}"
            )
        self.options, self._wait = options, wait
        self.months = _months(options.first_month, options.last_month)
        self.requests = self.looked_up = self.missing = 0
        first, last = options.first_month.split("-"), options.last_month.split("-")
        days = calendar.monthrange(int(last[0]), int(last[1]))[1]
        self._period = f"{''.join(first)}0100/{''.join(last)}{days:02d}00"
        self._next = 0.0
        self._client: Any = None
        self._runner = asyncio.Runner()
        if cache is not None:
            cache.mkdir(parents=True, exist_ok=True)
        self._store = sqlite3.connect(":memory:" if cache is None else cache / FILE, timeout=BUSY_SECONDS)
        write_ahead(self._store)
        with contextlib.closing(self._store.cursor()) as cursor:
            cursor.execute("CREATE TABLE IF NOT EXISTS views (request TEXT PRIMARY KEY, views INTEGER) WITHOUT ROWID")

    def __enter__(self) -> PageViews:
        from kgqa_core.llm.bounded_http import BoundedClient

        self._client = BoundedClient(
            reply_bytes=int(self.options.max_reply_mb * 2**20), setting="ltgen.popularity.max_reply_mb",
            verify=trusted(), timeout=self.options.timeout_seconds,
            headers={"User-Agent": self.options.user_agent or AGENT, "Accept": "application/json"},
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        _without_loop(lambda: self._runner.run(self._client.aclose()))
        _without_loop(self._runner.close)
        self._store.close()

    def url(self, title: str) -> str:
        """The address of an article's views."""
        options = self.options
        parts = ("metrics", "pageviews", "per-article", options.project, options.access, options.agent)
        article = quote(title.replace(" ", "_"), safe="")
        return f"{options.base_url.rstrip('/')}/{'/'.join(parts)}/{article}/monthly/{self._period}"

    def mean(self, titles: Sequence[str], monitor: Monitor = QUIET) -> dict[str, float]:
        """Mean monthly views of each article over the whole period; months without views count as 0.

        Raises EndpointError when the API refuses us or fails on an article after all tries; what was answered before is
        kept.  Raises ConfigError when none of the first HOPELESS articles exists.
        """
        views_of: dict[str, float] = {}
        for number, title in enumerate(titles, start=1):
            url = self.url(title)
            row = self._store.execute("SELECT views FROM views WHERE request = ?", [url]).fetchone()
            if row is None:
                views = self._ask(url)
                with self._store:
                    self._store.execute("INSERT OR REPLACE INTO views VALUES (?, ?)", [url, views])
            else:
                views = row[0]
            views_of[title] = (views or 0) / self.months
            self.looked_up += 1
            self.missing += views is None
            if self.missing == self.looked_up == HOPELESS:
                raise ConfigError(
                    f"none of the first {HOPELESS} articles exists in ltgen.popularity.project "
                    f"'{self.options.project}', {', '.join(titles[:3])} among them; write it as en.wikipedia, or give "
                    "the titles of its articles in ltgen.popularity.titles"
                )
            if number % 20 == 0 or number == len(titles):
                monitor.progress(number, len(titles), "articles")
        return views_of

    def _ask(self, url: str) -> int | None:
        """Views in the period, None where there is no such article."""
        from kgqa_core.llm.bounded_http import NoReply, patiently

        def send() -> httpx2.Response:
            self._take_turn()
            reply: httpx2.Response = _without_loop(lambda: self._runner.run(self._get(url)))
            self.requests += 1
            return reply

        def read(reply: httpx2.Response) -> int | None:
            if reply.status_code not in (200, 400, 404):
                raise NoReply(f"status {reply.status_code}")
            return _total(reply.content) if reply.status_code == 200 else None

        try:
            return patiently(send, read, self.options.retries, self._wait)
        except NoReply as failure:
            raise EndpointError(
                f"the page-view API does not answer for {url} ({failure}); what it answered before is kept: run the "
                "same command again later, lower ltgen.popularity.rate, or give ltgen.popularity.files"
            ) from None

    async def _get(self, url: str) -> httpx2.Response:
        """One reply, whole; the client's own time-out is between bytes."""
        async with asyncio.timeout(self.options.timeout_seconds):
            reply: httpx2.Response = await self._client.get(url)
        return reply

    def _take_turn(self) -> None:
        now = time.monotonic()
        if now < self._next:
            self._wait(self._next - now)
        self._next = max(now, self._next) + 1 / self.options.rate


def _without_loop(call: Callable[[], T]) -> T:
    """Calls in this thread, or in another one where this one has a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def _total(content: bytes) -> int:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as fault:
        raise ValueError("the reply is no JSON") from fault
    items = data.get("items") if isinstance(data, dict) else None
    if not isinstance(items, list):
        raise ValueError("the reply has no items")
    views = [item.get("views") if isinstance(item, dict) else None for item in items]
    if not all(isinstance(view, int) and not isinstance(view, bool) and 0 <= view <= MOST_VIEWS for view in views):
        raise ValueError("an item has no number of views")
    return min(MOST_VIEWS, sum(view for view in views if view is not None))


def _months(first: str, last: str) -> int:
    (first_year, two), (three, four) = ((int(part) for part in month.split("-")) for month in (first, last))
    return (three - first_year) * 12 + four - two + 1
