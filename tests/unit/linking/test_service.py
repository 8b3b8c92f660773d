"""Entity linkers behind HTTP: what TAGME, REL and BLINK say is of this graph, and a linker that misbehaves is named."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from kgqa_core.config import LinkerEndpoint
from kgqa_core.errors import ConfigError, EndpointError
from kgqa_core.linking.tagger import Tagger
from kgqa_core.llm import bounded_http
from tests.support.linker_server import LinkerServer
from tests.unit.linking.conftest import Maker

ENTITIES = {
    "Q1": [("en", "Oslo")], "Q2": [("en", "Mercury")], "Q3": [("en", "Mercury"), ("en", "Hg")],
    "Q4": [("en", "Norway")], "Q5": [("en", "capital of the north")], "Q6": [("en", "Mercury (planet)")],
}  # fmt: skip
TRIPLES = [("Q4", "capital", "Q1"), ("Q2", "near", "Q1"), ("Q3", "near", "Q4"), ("Q6", "near", "Q4")]
PAGES = {"tiger city": "Oslo", "norway": "Norway", "element": "Mercury (element)", "atlantis": "Atlantis"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "FIRST_WAIT", 0.01)


def asking(make: Maker, server: LinkerServer, api: str, **more: object) -> Tagger:
    endpoint = LinkerEndpoint.model_validate({"api": api, "url": server.url(api), "retries": 2, **more})
    return make(ENTITIES, TRIPLES, service=endpoint)


@pytest.mark.parametrize("api", ["tagme", "rel"])
def test_a_linker_finds_what_no_name_of_the_graph_says(tagger: Maker, api: str) -> None:
    with LinkerServer(PAGES) as server:
        found = asking(tagger, server, api)
        mentions = found.link("Where is Atlantis, the Tiger City of Norway?", [("user", "and the element?")])
        assert [(one.turn, one.text, one.candidates[0].key) for one in mentions] == [
            (0, "Tiger City", "Q1"), (0, "Norway", "Q4"), (1, "element", "Q2"),
        ]  # fmt: skip
        rho, probability = (0.4, 0.7) if api == "tagme" else (0.9, 0.8)
        assert [one.candidates[0].rho for one in mentions] == pytest.approx([rho, rho, rho * 0.8])
        assert mentions[0].link_probability == probability and mentions[0].chosen
        assert {one.key for one in mentions[2].candidates} == {"Q2", "Q3"}, "brackets are no part of the name"
        assert [i for i, _ in found.select(found.link("the tiger city"))] == [0]
        asked = len(server.bodies)
        found.link("the tiger city")
        assert len(server.bodies) == asked, "a text is asked once"
    assert server.bodies[0]["text"].startswith("Where is Atlantis")


def test_blink_ranks_the_entities_of_the_taggers_own_mentions(tagger: Maker) -> None:
    text = "Is Mercury near Norway?"
    with LinkerServer({"mercury": "Mercury (planet)"}) as server:
        own = tagger(ENTITIES, TRIPLES).link(text)
        ranked = asking(tagger, server, "blink").link(text)
        [samples] = server.bodies
    assert [(one["context_left"], one["mention"], one["context_right"]) for one in samples] == [
        ("Is ", "Mercury", " near Norway?"), ("Is Mercury near ", "Norway", "?"),
    ]  # fmt: skip
    assert own[0].candidates[0].key != "Q6" and ranked[0].candidates[0].key == "Q6"
    assert ranked[0].candidates[0].rho == own[0].link_probability
    assert [one.rho for one in ranked[0].candidates] == sorted((one.rho for one in ranked[0].candidates), reverse=True)
    assert ranked[1:] == own[1:], "what it knows nothing of stays"
    with LinkerServer({}) as server:
        assert asking(tagger, server, "blink").link("nothing at all") == []
        assert server.bodies == []


def test_places_are_those_of_the_text_whatever_a_linker_counts(tagger: Maker) -> None:
    with LinkerServer(PAGES) as server:
        [mention] = asking(tagger, server, "tagme").link("😀😀 tiger city")
    assert (mention.start, mention.text) == (3, "tiger city")


@pytest.mark.parametrize("api", ["tagme", "rel", "blink"])
@pytest.mark.parametrize("fault", [429, 503, "hang up", "garbage"])
def test_a_passing_fault_is_tried_again(tagger: Maker, api: str, fault: int | str) -> None:
    with LinkerServer({"norway": "Norway"}) as server:
        server.fail(fault, fault)
        assert [one.candidates[0].key for one in asking(tagger, server, api).link("Where is Norway?")] == ["Q4"]


@pytest.mark.parametrize("api", ["tagme", "rel", "blink"])
@pytest.mark.parametrize(
    ("faults", "why"),
    [([500] * 3, "status 500"), ([400], "status 400"), (["away"], "redirects"), (["strange"], "a reply without"),
     ([b"[" * 100_000] * 3, "no JSON"), ([b" " * (8 << 20) + b"[]"], "limit of linking.service.max_reply_mb")],
    ids=["500", "400", "redirect", "strange", "deep", "large"],
)  # fmt: skip
def test_a_linker_that_does_not_answer_is_named(
    tagger: Maker, api: str, faults: list[int | str | bytes], why: str
) -> None:
    with LinkerServer(PAGES) as server:
        server.fail(*faults)
        with pytest.raises(EndpointError, match=f"as {api} does: .*{why}.*check linking.service"):
            asking(tagger, server, api).link("Where is Norway?")
        assert not server.faults


@pytest.mark.parametrize(
    "row",
    ['{"start": 0}', '{"start": "x", "end": 3, "rho": 1, "title": "Norway"}', "7", "null", "[]",
     '{"start": 0, "end": 99, "rho": 1, "title": "Norway"}', '{"start": 9, "end": 15, "rho": NaN, "title": "Norway"}',
     '{"start": 9, "end": 15, "rho": 1e999, "title": "Norway"}', '{"start": 9, "end": 15, "rho": 1, "title": 7}',
     '{"start": 1e999, "end": 15, "rho": 1, "title": "Norway"}',
     '{"start": 9, "end": 15, "rho": 1, "title": "Norway", "spot": "Sweden"}'],
)  # fmt: skip
def test_annotations_that_fit_no_text_are_left_out(tagger: Maker, row: str) -> None:
    good = '{"start": 9, "end": 15, "rho": 7, "title": "Norway"}'
    with LinkerServer(PAGES) as server:
        server.fail(f'{{"annotations": [{row}, {good}]}}'.encode())
        [mention] = asking(tagger, server, "tagme").link("Where is Norway?")
    assert (mention.text, mention.candidates[0].rho) == ("Norway", 1.0)


@pytest.mark.parametrize("api", ["tagme", "rel", "blink"])
def test_the_key_is_sent_and_never_shown(
    tagger: Maker, api: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with LinkerServer({"norway": "Norway"}, token="hush-1234567") as server:
        with pytest.raises(ConfigError, match="LINKER_KEY is not in the environment"):
            asking(tagger, server, api, key_env="LINKER_KEY")
        with pytest.raises(EndpointError, match="status 40[13]"):
            asking(tagger, server, api).link("Where is Norway?")
        monkeypatch.setenv("LINKER_KEY", "hush-1234567")
        found = asking(tagger, server, api, key_env="LINKER_KEY")
        assert found.link("Where is Norway?")[0].candidates[0].key == "Q4"
        server.fail(400)
        with pytest.raises(EndpointError) as fault:
            found.link("Is Norway cold?")
    assert "hush" not in str(fault.value) + caplog.text + json.dumps(found.options.model_dump())


def test_it_works_inside_a_running_event_loop(tagger: Maker) -> None:
    with LinkerServer(PAGES) as server:
        found = asking(tagger, server, "rel")

        async def ask() -> list[int]:
            return [i for i, _ in found.select(found.link("the tiger city"))]

        assert asyncio.run(ask()) == [0]


def test_an_address_that_is_none_is_refused(tagger: Maker) -> None:
    endpoint = LinkerEndpoint(api="rel", url="ftp://user:secret@host/")
    with pytest.raises(ConfigError, match="not an http") as fault:
        tagger(ENTITIES, TRIPLES, service=endpoint)
    assert "secret" not in str(fault.value)
