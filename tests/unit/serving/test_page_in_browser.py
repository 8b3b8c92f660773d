"""The web page in Chromium: what people do on it, by mouse and by keys, and a picture of each.

Pictures are kept in the folder that KGQA_TEST_OUTPUT names, else in pytest's own.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from kgqa_core.serving.graph_view import GraphView
from tests.support.browser import NO_CHROMIUM, Browser, chromium
from tests.support.page_server import DIRECTED, EVILS, MADE, MAYOR, NEXT, OLD, SLOW, STARRED, PageServer, page_server
from tests.support.question_graph import X

pytestmark = pytest.mark.slow
WIDE, PHONE = (1200, 1000), (360, 740)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures are kept."""
    given = os.environ.get("KGQA_TEST_OUTPUT")
    folder = Path(given).resolve() / "page" if given else tmp_path_factory.mktemp("page")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def chrome(output: Path) -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip(NO_CHROMIUM)
    with Browser(output / "chromium.log", size=WIDE) as running:
        running.watch()
        yield running


@pytest.fixture(scope="module")
def served(view: GraphView, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    with page_server(view, tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.fixture
def page(chrome: Browser, served: PageServer) -> Browser:
    """The page as a new visitor sees it."""
    chrome.emulate(*WIDE)
    chrome.open(f"{served.address}/health", "alive")
    chrome.run("sessionStorage.clear(); localStorage.clear()")
    chrome.requested.clear()
    chrome.open(served.address, "in your own words")
    return chrome


def ask(page: Browser, question: str, *words: str) -> str:
    page.fill("#question", question)
    page.press("Enter")
    text = page.wait(*words)
    stand(page)
    return text


def stand(page: Browser) -> None:
    """Wait until the picture stands still."""
    until = time.monotonic() + 60
    while page.run("document.querySelector('.picture')?.dataset.still") != "true" and time.monotonic() < until:
        time.sleep(0.1)


def wait_for(page: Browser, script: str) -> None:
    until = time.monotonic() + 60
    while not page.run(script):
        assert time.monotonic() < until, script
        time.sleep(0.1)


def entity(served: PageServer, key: str) -> str:
    return f"{served.address}/entity?key={quote(X + key, safe='')}"


def test_an_answer_comes_with_mentions_confidence_road_and_proof(page: Browser, output: Path) -> None:
    text = ask(page, DIRECTED, "Ben Stone", "Proof")
    assert "93 %" in text and "needs 50 %" in text and "found by relation names" in text
    assert page.run("document.querySelector('.facts').innerText").split("\n") == [
        "Night B1",
        "directed by",
        "Ben Stone",
    ]
    assert (
        page.run("document.querySelector('.answers a').getAttribute('href')")
        == f"/entity?key={quote(X + 'p1', safe='')}"
    )
    assert page.run("document.querySelectorAll('.node').length") == 2
    page.picture(output / "answer.png", still=0.5)
    page.mouse(".mention")
    page.wait("is read as", "link score 0.83", "Nothing else in this graph")
    page.picture(output / "mention.png", still=0.5)


def test_a_candidate_of_a_mention_is_asked_about_instead(page: Browser, served: PageServer) -> None:
    ask(page, MAYOR, "Not in this graph")
    page.mouse(".mention")
    page.wait("It may also be:", "Norland City")
    page.click("Ask about this")
    page.wait("Not in this graph")
    wait_for(page, "!document.querySelector('.waiting')")
    assert served.system.questions[-1][0].topic_keys == (f"{X}city0",)
    assert page.run("document.querySelectorAll('.past').length") == 0, "the same turn, asked anew"


def test_a_click_shows_neighbours_and_a_second_one_opens_the_entity(page: Browser, output: Path) -> None:
    ask(page, DIRECTED, "Ben Stone", "Proof")
    page.mouse(".node.answer circle")
    page.wait("new nodes", "facts not shown")
    stand(page)
    assert page.run("document.querySelectorAll('.node').length") > 8
    edges = "[...document.querySelectorAll('.edge')].length"
    assert page.run(edges) == page.run(
        "new Set([...document.querySelectorAll('.edge')].map(e => e.getAttribute('d'))).size"
    )
    page.picture(output / "expanded.png", still=0.5)
    place = "document.querySelector('.node.topic').getAttribute('transform')"
    before = page.run(place)
    page.mouse(".node.topic circle", by=(60, 30))
    stand(page)
    assert page.run(place) != before, "a node is dragged"
    zoom = "document.querySelector('.drawing > g').getAttribute('transform')"
    before = page.run(zoom)
    page.mouse("[aria-label='Zoom in']")
    assert page.run(zoom) != before
    page.mouse("[aria-label='Show all']")
    page.mouse(".node.topic circle", times=2)
    page.wait("Key", f"{X}f1", "Facts")


def test_keys_alone_walk_expand_and_open(page: Browser) -> None:
    ask(page, DIRECTED, "Ben Stone", "Proof")
    page.run("document.querySelector('.drawing').focus()")
    page.press("ArrowRight")
    page.press("ArrowLeft")
    wait_for(page, "document.querySelectorAll('.node.chosen').length === 1")
    shown = page.run("document.querySelector('.about .strong').innerText")
    page.press("Enter")
    page.wait("new node")
    page.press("Escape")
    wait_for(page, "document.querySelectorAll('.node.chosen').length === 0")
    page.press("ArrowRight")
    page.press("o")
    page.wait("Key", "Facts")
    assert shown in ("Night B1", "Ben Stone")
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"
    page.press("/")
    assert page.run("document.activeElement.type") == "search"


def test_what_is_not_there_says_why_and_is_answered_anyway(page: Browser, served: PageServer, output: Path) -> None:
    text = ask(page, MAYOR, "Not in this graph", "What the graph has around Norland")
    assert "no such relation: mayor" in text and "capital" in text and "Ada Stone" not in text
    assert "confidence" not in text and page.run("document.querySelectorAll('.node').length") == 0
    page.mouse(".around summary")
    wait_for(page, "document.querySelectorAll('.node').length > 2")
    stand(page)
    page.picture(output / "not-here.png", still=0.5)
    page.click("Answer anyway")
    page.wait("Ada Stone", "answered anyway")
    assert served.system.questions[-1][1] == 0
    page.run("document.querySelector('#anyway').click()")
    ask(page, DIRECTED, "Ben Stone")
    assert served.system.questions[-1][1] == 0


def test_a_reading_of_an_unsure_question_is_chosen_and_shown_with_its_proof(
    page: Browser, served: PageServer, output: Path
) -> None:
    text = ask(page, MADE, "I am not sure", "actor of Night B1", "What the graph has around Night B1")
    assert "confidence of the best answer 30 %" in text and "Not in this graph" not in text
    page.picture(output / "unsure.png", still=0.5)
    page.mouse(".readings li:nth-child(2) button")
    page.wait("Ben Stone", "Proof", "read as: actor of Night B1")
    assert page.run("document.querySelectorAll('.past').length") == 0
    text = ask(
        page, OLD, "I did not understand “old”, “boss”", "Without these words", "relations: {directed by: [boss]}"
    )
    assert "confidence" not in text
    page.picture(output / "unread.png", still=0.5)
    page.click("director")
    page.wait("Which old director made Night B1?")
    assert served.system.questions[-1][0].text == "Which old director made Night B1?"


def test_earlier_turns_are_sent_along_until_a_new_conversation(page: Browser, served: PageServer) -> None:
    ask(page, DIRECTED, "Ben Stone", "Proof")
    ask(page, NEXT, "Earlier in this conversation", "Hana Stone")
    turns = served.system.questions[-1][0].dialogue
    assert turns == (("user", DIRECTED), ("agent", "Ben Stone"))
    number = len(served.system.questions)
    page.click("Ask on its own")
    wait_for(page, "!document.querySelector('.waiting') && document.querySelectorAll('.turn').length === 1")
    assert len(served.system.questions) == number + 1 and not served.system.questions[-1][0].dialogue
    page.click("New conversation")
    page.wait("in your own words")
    ask(page, DIRECTED, "Ben Stone", "Proof")
    assert not served.system.questions[-1][0].dialogue


def test_a_reload_and_the_way_back_keep_the_conversation(page: Browser) -> None:
    ask(page, DIRECTED, "Ben Stone", "Proof")
    page.run("location.reload()")
    time.sleep(0.5)
    page.wait("Who directed", "Ben Stone", "Proof")
    page.run("document.querySelector('.answers a').click()")
    page.wait("Key", "Ben Stone", "Is mentioned in")
    page.run("document.querySelector('#in .relations a').click()")
    page.wait("Key", "Night")
    assert "Ben Stone" not in page.run("document.querySelector('h1').innerText")
    page.run("history.back()")
    wait_for(page, "document.querySelector('h1')?.innerText === 'Ben Stone'")
    page.run("history.back()")
    page.wait("Who directed", "Ben Stone", "Proof")


def test_an_answer_without_a_form_is_drawn_by_its_paths(page: Browser) -> None:
    text = ask(page, STARRED, "How topic and answer are connected")
    assert "Cleo Stone" in text and "confidence not calibrated" in text
    assert page.run("document.querySelectorAll('.node.answer').length") == 2


def test_a_correction_is_kept_with_keys(page: Browser, served: PageServer, output: Path) -> None:
    ask(page, NEXT, "Ben Stone", "Proof")
    page.click("Wrong")
    page.wait("The right answer")
    assert page.run("document.activeElement.closest('.correction') !== null")
    page.fill(".correction input", "Cleo Stne")
    page.wait("Cleo Stone", "similar")
    page.picture(output / "correct.png", still=0.5)
    page.press("ArrowDown")
    page.press("Enter")
    wait_for(page, "document.querySelectorAll('.correction .chip').length === 1")
    page.click("Send correction")
    page.wait("correction is kept")
    row = served.feedback.rows()[-1]
    assert (row["question"], row["verdict"], row["correction"]) == (NEXT, "down", [f"{X}p2"])
    assert row["answers"] == ["Ben Stone", "Eve Stone", "Hana Stone"] and row["topics"] == []  # it names none
    page.click("Right")
    wait_for(page, "document.querySelector('.feedback [aria-pressed=true]')?.innerText.trim() === 'Right'")
    again = served.feedback.rows()[-1]
    assert again["verdict"] == "up" and again["answer_id"] == row["answer_id"] and len(served.feedback.rows()) == 1
    page.run("location.reload()")
    time.sleep(0.5)
    page.wait("Your feedback is kept")


def test_the_page_of_an_entity_has_pages_relations_and_search(page: Browser, served: PageServer, output: Path) -> None:
    page.open(entity(served, "film"), "film", "Is mentioned in", "1–25 of")
    stand(page)
    page.open(entity(served, "p1"), "Ben Stone", "date of birth")
    page.click("place of birth 1")
    page.wait("Sudland City")
    assert "out_relation" in page.run("location.search")
    page.open(entity(served, "f1"), "Night B1", "has genre")
    stand(page)
    page.picture(output / "entity.png", still=0.5)
    page.fill("#search input", "Norlnd")
    page.wait("Norland", "similar")
    page.press("Escape")
    wait_for(page, "document.querySelector('.suggestions').hidden")
    page.press("Enter")
    page.wait("Search: Norlnd", "Norland City")
    page.open(f"{served.address}/entity?key=Nrland", "Not found", "Norland")


def test_a_question_is_stopped_and_comes_back_to_its_field(page: Browser) -> None:
    page.fill("#question", SLOW)
    page.press("Enter")
    page.wait("Looking for the answer")
    page.press("Escape")
    page.wait("in your own words")
    assert page.run("document.querySelector('#question').value") == SLOW


def test_a_link_fills_the_question_in_and_asks_nothing(page: Browser, served: PageServer) -> None:
    before = len(served.system.questions)
    page.open(f"{served.address}/?q=Who+pays%3F", "in your own words")
    time.sleep(0.5)
    assert (
        page.run("document.querySelector('#question').value") == "Who pays?" and len(served.system.questions) == before
    )


def test_dark_follows_the_system_and_the_switch(page: Browser, output: Path) -> None:
    ask(page, DIRECTED, "Ben Stone", "Proof")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.run(ground)
    page.emulate(*WIDE, dark=True)
    dark = page.run(ground)
    page.picture(output / "dark.png", still=0.5)
    assert dark != light
    page.mouse("#theme")
    assert page.run(ground) == light
    page.run("location.reload()")
    time.sleep(0.5)
    page.wait("Ben Stone")
    assert page.run(ground) == light, "the choice stays"


def test_nothing_is_wider_than_a_phone(page: Browser, served: PageServer, output: Path) -> None:
    page.emulate(*PHONE)
    wide = "document.documentElement.scrollWidth"
    ask(page, DIRECTED, "Ben Stone", "Proof")
    assert page.run(wide) == PHONE[0]
    page.picture(output / "phone.png", still=0.5)
    page.fill("#search input", "Night")
    page.wait("Night B1", "film")
    assert page.run(wide) == PHONE[0]
    ask(page, EVILS, "90 %")
    assert page.run(wide) == PHONE[0]
    page.picture(output / "phone-hostile.png", still=0.5)
    for key in ("f1", "evil"):
        page.open(entity(served, key), "Key")
        stand(page)
        assert page.run(wide) == PHONE[0], key
    page.picture(output / "phone-entity.png", still=0.5)


def test_hostile_names_and_outputs_are_text(page: Browser, served: PageServer, output: Path) -> None:
    text = ask(page, EVILS, "90 %", "<script>alert(1)</script>", "What the graph has around")
    assert "javascript:alert(1)" in text and "\\u202e" in text and "\u202e" not in text and "\x1b" not in text
    page.click("How it was found")
    page.wait("Retrieved triples")
    for button in json.loads(page.run("JSON.stringify([...document.querySelectorAll('.mention')].map((_, i) => i))")):
        page.run(f"document.querySelectorAll('.mention')[{button}].click()")
    page.picture(output / "hostile.png", still=0.5)
    harmless(page)
    page.open(entity(served, "evil"), "Evil", "borders")
    stand(page)
    harmless(page)
    page.picture(output / "hostile-entity.png", still=0.5)


def harmless(page: Browser) -> None:
    """Nothing is there that could run: no element, handler or address but those of the page."""
    inside = "[...document.querySelectorAll('main *')]"
    kinds = set(json.loads(page.run(f"JSON.stringify([...new Set({inside}.map(one => one.localName))])")))
    assert not kinds & {"script", "iframe", "img", "object", "embed", "style", "link", "base", "image", "foreignObject"}
    assert page.run(f"{inside}.every(one => one.getAttributeNames().every(name => !name.startsWith('on')))")
    styles = f"{inside}.filter(one => one.hasAttribute('style')).map(one => one.getAttribute('style'))"
    assert page.run(f"{styles}.every(style => /^--letters: [0-9.]+;$/.test(style))"), "the zoom of a picture alone"
    assert page.run(
        f"{inside}.filter(one => one.localName === 'a')"
        ".every(one => /^[/](entity|console)[?]/.test(one.href.slice(location.origin.length)))"
    )


def test_every_request_goes_to_the_server_itself(page: Browser, served: PageServer) -> None:
    ask(page, EVILS, "90 %")
    page.open(entity(served, "f1"), "Night B1", "Facts")
    page.run("new Image().src = 'http://elsewhere.test/a.png'")  # refused by the policy before anything leaves
    assert page.run("fetch('http://elsewhere.test/').then(() => 'sent', () => 'refused')") == "refused"
    assert (
        page.run(
            "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'made'; } catch { return 'refused'; } })()"
        )
        == "refused"
    )
    asked = [url for url in page.requested if not url.startswith(("about:", "data:")) and "elsewhere.test" not in url]
    assert len(asked) > 12 and all(url.startswith(f"{served.address}/") for url in asked), asked


def test_with_a_token_the_page_asks_for_it_and_keeps_it_in_the_tab(
    chrome: Browser, view: GraphView, tmp_path: Path, output: Path
) -> None:
    with page_server(view, tmp_path, token="a-long-token") as server:
        chrome.emulate(*WIDE)
        assert "toy" not in chrome.open(server.address, "This server asks for its token")
        chrome.picture(output / "token.png", still=0.5)
        chrome.press("Escape")
        time.sleep(0.5)  # until it closed, if it does
        assert chrome.run("document.querySelector('dialog').open"), "there is nothing behind it"
        chrome.fill("#token", "wrong")
        chrome.press("Enter")
        chrome.wait("This is not the token of this server")
        chrome.fill("#token", "a-long-token")
        chrome.press("Enter")
        chrome.wait("in your own words", "toy")
        ask(chrome, DIRECTED, "Ben Stone", "Proof")
        assert chrome.run("document.cookie") == "" and "a-long-token" not in chrome.run(
            "JSON.stringify({...localStorage})"
        )
        chrome.open(entity(server, "f1"), "Night B1", "Facts")
        assert not any("a-long-token" in url for url in chrome.requested)
