"""The page-view API: real paths, zeros, faults, politeness, and a cache that survives."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgqa_core.config import PopularityOptions, SamplingOptions
from kgqa_core.errors import ConfigError, EndpointError
from kgqa_core.kg.store import KgStore
from kgqa_core.papers.ltgen.eligible import find_eligible
from kgqa_core.papers.ltgen.page_views import AGENT, PageViews
from kgqa_core.papers.ltgen.popularity import measure
from kgqa_core.papers.ltgen.sample import draw
from kgqa_core.workspace import Workspace
from tests.support.ltgen import PEOPLE
from tests.support.page_views import ELSEWHERE, PageViewServer

VIEWS = {
    "Oslo": {"202012": 999, "202101": 1000, "202102": 500, "202103": 999},
    "AC/DC_&_Ümläut?": {"202101": 40},
    "Zero": {"202101": 0},
}


@pytest.fixture
def server() -> Iterator[PageViewServer]:
    with PageViewServer(dict(VIEWS)) as running:
        yield running


def options(server: PageViewServer, **more: object) -> PopularityOptions:
    given = {"source": "api", "base_url": server.base_url, "first_month": "2021-01", "last_month": "2021-02",
             "rate": 10_000, "retries": 3, "timeout_seconds": 5}  # fmt: skip
    return PopularityOptions.model_validate({**given, **more})


def ask(server: PageViewServer, *titles: str, cache: Path | None = None, **more: object) -> dict[str, float]:
    with PageViews(options(server, **more), cache, wait=lambda seconds: None) as api:
        return api.mean(titles)


def test_views_of_the_period_are_averaged_over_its_months(server: PageViewServer) -> None:
    assert ask(server, "Oslo", "Zero", "Nobody") == {"Oslo": 750.0, "Zero": 0.0, "Nobody": 0.0}
    assert ask(server, "Oslo", last_month="2021-01") == {"Oslo": 1000.0}
    assert ask(server, "Oslo", first_month="2019-03", last_month="2022-02") == {"Oslo": (999 + 1000 + 500 + 999) / 36}


def test_titles_are_quoted_and_the_request_says_who_asks(server: PageViewServer) -> None:
    assert ask(server, "AC/DC & Ümläut?") == {"AC/DC & Ümläut?": 20.0}
    assert server.titles == ["AC/DC_&_Ümläut?"] and server.agents == {AGENT}
    ask(server, "Oslo", user_agent="me (me@example.org)")
    assert server.agents == {AGENT, "me (me@example.org)"}


@pytest.mark.parametrize(
    "faults", [(429,), (500, 502, 503), ("garbage", "hang up"), ("strange", 429, 504), ("deep", "huge")]
)
def test_passing_faults_are_outlived(server: PageViewServer, faults: tuple[int | str, ...]) -> None:
    server.fail("Oslo", *faults)
    assert ask(server, "Oslo") == {"Oslo": 750.0}
    assert len(server.titles) == len(faults) + 1


def test_a_reply_in_drops_is_given_up_after_the_time_of_one_request(server: PageViewServer) -> None:
    server.fail("Oslo", "drops")
    started = time.monotonic()
    assert ask(server, "Oslo", timeout_seconds=0.5) == {"Oslo": 750.0}
    assert time.monotonic() - started < 8


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("bomb", "larger than 1 MiB, the limit of ltgen.popularity.max_reply_mb"),
        ("away", f"another server, {ELSEWHERE}"),
    ],
)
def test_a_bomb_and_a_redirect_end_it_with_their_reason(server: PageViewServer, fault: str, says: str) -> None:
    server.fail("Oslo", fault)
    with pytest.raises(EndpointError, match=re.escape(says)):
        ask(server, "Oslo")
    assert server.titles == ["Oslo"]


def test_works_inside_a_running_event_loop(server: PageViewServer) -> None:
    async def inside() -> dict[str, float]:
        return ask(server, "Oslo", "Zero")

    assert asyncio.run(inside()) == {"Oslo": 750.0, "Zero": 0.0}


def test_a_retry_after_is_kept_and_waits_grow(server: PageViewServer) -> None:
    waits: list[float] = []
    server.retry_after = "7"
    server.fail("Oslo", 429, 500, 500)
    with PageViews(options(server), None, wait=waits.append) as api:
        api.mean(["Oslo"])
    waits = [seconds for seconds in waits if seconds > 0.01]
    assert waits[0] == 7 and 0.5 <= waits[1] <= 1 and 1 <= waits[2] <= 2


def test_faults_that_stay_end_it_and_what_was_answered_is_kept(server: PageViewServer, tmp_path: Path) -> None:
    server.fail("Zero", *[503] * 4)
    with pytest.raises(EndpointError, match=r"does not answer for .*Zero.*status 503.*run the same command again"):
        ask(server, "Oslo", "Zero", cache=tmp_path)
    assert server.titles == ["Oslo"] + ["Zero"] * 4
    assert ask(server, "Oslo", "Zero", cache=tmp_path) == {"Oslo": 750.0, "Zero": 0.0}
    assert server.titles.count("Oslo") == 1
    assert ask(server, "Oslo", "Zero", cache=tmp_path) and len(server.titles) == 6


def test_a_refusal_is_not_repeated(server: PageViewServer) -> None:
    server.fail("Oslo", 403)
    with pytest.raises(EndpointError, match="status 403"):
        ask(server, "Oslo")
    assert server.titles == ["Oslo"]


def test_another_period_or_project_is_another_question(server: PageViewServer, tmp_path: Path) -> None:
    for more in ({}, {"last_month": "2021-01"}, {"project": "de.wikipedia"}, {"agent": "all-agents"}, {}):
        ask(server, "Oslo", "Nobody", cache=tmp_path, **more)
    assert server.titles.count("Oslo") == server.titles.count("Nobody") == 4


def test_a_project_that_has_none_of_the_articles_is_noticed_early(
    server: PageViewServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgqa_core.papers.ltgen.page_views.HOPELESS", 20)
    titles = [f"Title {number}" for number in range(30)]
    for _ in range(2):  # what the cache knows counts too
        with pytest.raises(
            ConfigError, match="none of the first 20 articles exists in .*project 'en.wikpedia', Title 0"
        ):
            ask(server, *titles, cache=tmp_path, project="en.wikpedia")
        assert len(server.titles) == 20
    found = ask(server, "Zero", *titles, cache=tmp_path)
    assert len(found) == 31, "an article without views exists"


def test_requests_keep_their_distance(server: PageViewServer) -> None:
    waits: list[float] = []
    with PageViews(options(server, rate=2), None, wait=waits.append) as api:
        api.mean([f"Title {number}" for number in range(5)])
    assert len(waits) == 4 and 1.0 < sum(waits) <= 5.1, "each one waits for its turn, half a second after the last"


def test_addresses_and_months_that_are_none_are_refused(server: PageViewServer) -> None:
    with pytest.raises(ConfigError, match="is not an http"):
        PageViews(options(server, base_url="file:///etc"))
    with pytest.raises(ConfigError, match="is before first_month"):
        PageViews(options(server, first_month="2022-01"))
    # the API would answer 400 for every article, which counts as no views
    with pytest.raises(ConfigError, match="access 'all-acess' is none of all-access, desktop"):
        PageViews(options(server, access="all-acess"))
    with pytest.raises(ConfigError, match="agent 'human' is none of all-agents, user"):
        PageViews(options(server, agent="human"))


def test_candidates_are_asked_for_in_the_order_of_the_draw_until_it_is_enough(
    server: PageViewServer, ltgen_kg: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgqa_core.papers.ltgen.popularity.CHUNK", 2)
    with KgStore.open(ltgen_kg) as store:
        candidates = find_eligible(store, SamplingOptions(), 7).candidates
        found = measure(Workspace(Path()), store, candidates, options(server), enough=lambda values: len(values) >= 3)
    assert len(server.titles) == 4 == found.counts["looked_at"] == len(found.values)
    assert [each.entity for each in candidates[:4]] == list(found.values)


def test_a_draw_by_the_api_is_the_draw_by_a_table_of_the_same_views(
    server: PageViewServer, ltgen_kg: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import polars as pl

    monkeypatch.setattr("kgqa_core.papers.ltgen.popularity.CHUNK", 3)
    months = {name.replace(" ", "_"): number for number, name in enumerate(PEOPLE)}
    server.views = {title: {"202101": 20 * 5**number} for title, number in months.items()}
    table = tmp_path / "views.tsv"
    table.write_text("".join(f"Q{number + 1}\t{10 * 5**number}\n" for number in months.values()))
    drawn = []
    for name, popularity in (("api", options(server)), ("table", PopularityOptions(files=(str(table),)))):
        (tmp_path / name).mkdir()
        counts = draw(
            Workspace(tmp_path / name, cache=tmp_path / "cache"),
            kg=ltgen_kg,
            options=SamplingOptions(per_level=1),
            popularity=popularity,
            seed=7,
        )
        assert counts["source"] == name
        drawn.append(pl.read_parquet(tmp_path / name / "entities.parquet").rows())
    assert drawn[0] == drawn[1] and [row[2] for row in drawn[0]] == ["I", "II", "III", "IV"]
