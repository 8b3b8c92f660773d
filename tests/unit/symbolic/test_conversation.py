"""A question that refers back is read over the form of the one before; one that is complete never is."""

from __future__ import annotations

import threading

import pytest

from kgqa_core.answering.reply import Answer
from kgqa_core.system import System

LAND = (
    "<urn:{0}> a <urn:Country> ; rdfs:label '{0}' ; <urn:capital> <urn:{1}> ; <urn:population> {2} ; <urn:area> {3} ."
)
CITY = "<urn:{1}> a <urn:City> ; rdfs:label '{1}' ; <urn:population> {4} ; <urn:mayor> <urn:m-{1}> ."
MAYOR = "<urn:m-{1}> a <urn:Person> ; rdfs:label '{5}' ."
LANDS = (
    ("Norland", "Alba", 9000, 500, 800, "Ada Stone"),
    ("Sudria", "Barrow", 5000, 900, 700, "Ben Low"),
    ("Estmark", "Corvin", 7000, 300, 600, "Cid Moor"),
    ("Westria", "Dunmere", 1000, 200, 900, "Dora Vane"),
)
BORDERS = (("Norland", "Sudria"), ("Norland", "Estmark"), ("Norland", "Westria"), ("Sudria", "Estmark"))


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> System:
    """Four countries with their neighbours, capitals and these' mayors."""
    folder = tmp_path_factory.mktemp("conversation")
    lines = ["@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."]
    lines += [f"<urn:{name}> rdfs:label '{name.lower()}' ." for name in ("Country", "City", "Person")]
    lines += [f"<urn:{name}> rdfs:label '{name}' ." for name in ("capital", "population", "area", "borders", "mayor")]
    lines += [text.format(*row) for row in LANDS for text in (LAND, CITY, MAYOR)]
    lines += [f"<urn:{a}> <urn:borders> <urn:{b}> . <urn:{b}> <urn:borders> <urn:{a}> ." for a, b in BORDERS]
    (folder / "lands.ttl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return System.from_graph(folder / "lands.ttl", home=folder / "home")


def asked(system: System, *texts: str) -> Answer:
    """The answer to the last of some questions."""
    dialogue = [turn for text in texts[:-1] for turn in (("user", text), ("agent", "…"))]
    return system.ask(texts[-1], dialogue=dialogue)


NEIGHBOURS = "Which countries border Norland?"
CAPITAL = "What is the capital of Norland?"


@pytest.mark.parametrize(
    ("before", "text", "answers"),
    [
        ((CAPITAL,), "and of Sudria?", {"Barrow"}),
        ((CAPITAL, "and of Sudria?"), "what about Westria?", {"Dunmere"}),
        ((CAPITAL,), "who is its mayor?", {"Ada Stone"}),
        ((CAPITAL,), "and its area?", {"500"}),  # of the country: a city here has none
        ((NEIGHBOURS,), "how many are there?", {"3"}),
        ((NEIGHBOURS, "how many are there?"), "which ones?", {"Sudria", "Estmark", "Westria"}),
        ((NEIGHBOURS,), "their capitals", {"Barrow", "Corvin", "Dunmere"}),
        ((NEIGHBOURS, "what are their capitals?"), "who are their mayors?", {"Ben Low", "Cid Moor", "Dora Vane"}),
        ((NEIGHBOURS,), "which of them has the largest area?", {"Sudria"}),
        ((NEIGHBOURS, "which of them has the largest area?"), "and the smallest?", {"Westria"}),
        ((NEIGHBOURS,), "which of them border Sudria?", {"Estmark"}),
        (("Does Norland border Sudria?",), "and Westria?", {"no"}),
    ],
)
def test_a_follow_up_is_answered_over_the_form_before(
    system: System, before: tuple[str, ...], text: str, answers: set[str]
) -> None:
    reply = asked(system, *before, text)
    assert set(reply.listed) == answers, reply
    assert reply.understood and reply.form and reply.proof


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (CAPITAL, "What is the capital of Westria?"),
        (NEIGHBOURS, "Which country has the largest area?"),
        (NEIGHBOURS, "Which is larger, Westria or Sudria?"),
        (CAPITAL, "What do they drink in the city of Barrow?"),
    ],
)
def test_nothing_of_a_dialogue_changes_a_complete_question(system: System, before: str, text: str) -> None:
    alone, later = system.ask(text), asked(system, before, text)
    assert later.understood is None
    assert (later.form, later.answers, later.confidence) == (alone.form, alone.answers, alone.confidence)


@pytest.mark.parametrize(
    ("texts", "word"),
    [
        (("What is its population?",), "its"),
        (("Which of them is the largest?",), "them"),
        (("What is the population of Norland?", "and the largest?"), "largest"),
        ((NEIGHBOURS, "what is its population?"), ""),  # of the country that was asked about
    ],
)
def test_a_word_that_refers_to_nothing_is_named(system: System, texts: tuple[str, ...], word: str) -> None:
    reply = asked(system, *texts)
    if word:
        assert reply.answer is None and reply.missing == f"what does “{word}” refer to?"
        assert reply.decline == f"I did not understand {reply.missing}"
    else:
        assert (reply.listed, reply.understood) == (["9000"], "population of Norland")


def test_a_declined_question_is_no_context_but_its_entity(system: System) -> None:
    assert asked(system, CAPITAL, "and of Narnia?", "and of Sudria?").listed == ["Barrow"]
    assert asked(system, "Who is the queen of Sudria?", "and its capital?").listed == ["Barrow"]


def test_a_follow_up_is_as_sure_as_what_it_rests_on(system: System) -> None:
    first, later = asked(system, NEIGHBOURS), asked(system, NEIGHBOURS, "how many are there?")
    assert first.confidence == later.confidence and later.calibrated


def test_dialogues_of_several_threads_do_not_mix(system: System) -> None:
    replies: dict[str, list[str]] = {}

    def talk(land: str) -> None:
        replies[land] = asked(system, f"What is the capital of {land}?", "who is its mayor?").listed

    threads = [threading.Thread(target=talk, args=(row[0],)) for row in LANDS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == {row[0]: [row[5]] for row in LANDS}
