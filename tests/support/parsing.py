"""A graph of countries and cities with questions about them, for parsers, and random questions over random graphs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.logic.forms import Literal
from kgqa_core.logic.schema import types_of
from kgqa_core.papers.grailqability.parsing.decode.automaton import Automaton, Limits
from kgqa_core.papers.grailqability.parsing.decode.prepare import Ground
from kgqa_core.papers.grailqability.parsing.decode.rows import DecoderRow, Near, Worded, make_row, near
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, Topic, write_examples
from kgqa_core.papers.grailqability.parsing.parsed_forms import read_parsed
from kgqa_core.store.publish import publish_folder
from kgqa_core.workspace import Workspace
from tests.support.graphs import CLASSES, ENTITIES, LITERALS, RELATIONS, random_graph, store_of
from tests.support.models import Listener, Stopper

U = "urn:x:"
COUNTRIES = ("Arland", "Borland", "Corland", "Dorland", "Erland", "Forland")
_XSD = "http://www.w3.org/2001/XMLSchema#"
_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

WORDINGS = (
    ("what is the capital of {c}", "(JOIN (R urn:x:capital) {k})"),
    ("name the capital city of {c}", "(JOIN (R urn:x:capital) {k})"),
    ("which cities are in {c}", "(JOIN urn:x:country {k})"),
    ("how many cities are in {c}", "(COUNT (JOIN urn:x:country {k}))"),
    ("what is the largest city of {c}", "(ARGMAX (JOIN urn:x:country {k}) urn:x:population)"),
    ("how many people live in the capital of {c}", "(JOIN (R urn:x:population) (JOIN (R urn:x:capital) {k}))"),
)
"""Wordings of questions about a country, and their forms."""
PAIRS = (
    ("which countries border {c} and {d}", "(AND (JOIN urn:x:borders {k}) (JOIN urn:x:borders {l}))"),
    ("which countries border {c} but not {d}", "(MINUS (JOIN urn:x:borders {k}) (JOIN urn:x:borders {l}))"),
    ("is {c} a neighbour of {d}", "(HOLDS (JOIN (R urn:x:borders) {k}) {l})"),
)
"""The same about two."""
NOWHERE = ("who is the king of {c}", "what do people eat in {c}")
"""Questions that the graph has no form for."""


def key(name: str) -> str:
    """The key of something with a name."""
    return U + name.lower()


def write_graph(folder: Path) -> Path:
    """The graph's folder."""
    lines = []

    def say(head: str, relation: str, tail: str) -> None:
        lines.append(f"<{head}> <{relation}> {tail} .")

    for number, country in enumerate(COUNTRIES):
        say(key(country), _LABEL, f'"{country}"')
        say(key(country), _TYPE, f"<{U}Country>")
        for step in (1, 2):
            say(key(country), U + "borders", f"<{key(COUNTRIES[(number + step) % len(COUNTRIES)])}>")
        for place in range(3):
            city = f"{country[:2]}ville{place}"
            say(key(city), _LABEL, f'"{city}"')
            say(key(city), _TYPE, f"<{U}City>")
            say(key(city), U + "country", f"<{key(country)}>")
            say(key(city), U + "population", f'"{1000 * (place + 1) + number}"^^<{_XSD}integer>')
        say(key(country), U + "capital", f"<{key(country[:2] + 'ville0')}>")
    path = folder / "world.nt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    options = KgOptions(files=(str(path),))
    publish_folder("kg", folder / "kg", lambda out, work: build(Workspace(out, work), options=options))
    return folder / "kg"


def questions(unanswerable: bool = False) -> list[ParseExample]:
    """Questions about every country: the last country's are test, those of the one before dev."""
    made = []
    for number, country in enumerate(COUNTRIES):
        split = {4: "dev", 5: "test"}.get(number, "train")
        other = COUNTRIES[(number + 2) % len(COUNTRIES)]
        one, two = Topic(key(country), country), Topic(key(other), other, 1.0, 1)
        asked = [(wording, form, (one,)) for wording, form in WORDINGS]
        asked += [(wording, form, (one, two)) for wording, form in PAIRS]
        asked += [(wording, None, (one,)) for wording in NOWHERE] if unanswerable else []
        for place, (wording, form, topics) in enumerate(asked):
            text = wording.format(c=country, d=other)
            gold = None if form is None else form.format(k=key(country), l=key(other))
            made.append(ParseExample(f"q{number}-{place:02}", text, split, topics=topics, form=gold, known=True))
    return made


@dataclass(frozen=True)
class World:
    """Folders of the graph and of examples: those that can be answered, and with others that cannot."""

    kg: Path
    examples: Path
    all_examples: Path


def make_world(folder: Path) -> World:
    """The graph and the examples, in new folders."""
    world = World(write_graph(folder), folder / "examples", folder / "all")
    for own, unanswerable in ((world.examples, False), (world.all_examples, True)):
        own.mkdir()
        write_examples(own, questions(unanswerable))
    return world


WORDS = "how many of which is the largest between before after not and or".split()


@dataclass(frozen=True)
class Drawn:
    """A question's row and its automaton, with the graph that it is of and the types of its topics."""

    ground: Ground
    row: DecoderRow
    automaton: Automaton
    types: dict[str, frozenset[str]]


def random_questions(seed: int, number: int) -> Iterator[Drawn]:
    """Questions over one random graph: any topics, types, literals and relations, whether they go together or not."""
    draw = random.Random(seed)
    with store_of(random_graph(seed)) as store:
        ground, types, nearby = Ground.of(store), types_of(store, ENTITIES), near(store, ENTITIES)
    for _ in range(number):
        yield _question(draw, ground, types, nearby)


def _question(draw: random.Random, ground: Ground, types: dict[str, frozenset[str]], nearby: Near) -> Drawn:
    topics = draw.sample(ENTITIES, draw.randint(0, 3))
    values = [Literal(text, datatype, unit if unit and unit.startswith("Q") else None)
              for text, datatype, unit in draw.sample(LITERALS, draw.randint(0, 2))]  # fmt: skip
    words = Worded(
        " ".join(draw.choices(WORDS, k=draw.randint(1, 8))),
        tuple((Topic(key, key), place) for place, key in enumerate(topics)),
        tuple((value, place) for place, value in enumerate(dict.fromkeys(values))),
    )
    relations = draw.sample(RELATIONS, draw.randint(0, 6))
    classes = draw.sample(CLASSES, draw.randint(0, 2))
    read = {key: ground.items.words.get(key, key) for key in (*relations, *classes)}
    items = type(ground.items)(ground.items.relations, ground.items.classes, read)
    scores = {key: draw.random() for key in read}
    row = make_row(words, relations, classes, scores, items, nearby, types)
    limits = Limits(draw.choice([3, 6, 10, 16]), draw.choice([1, 2, 3]))
    automaton = Automaton(ground.kinds, row.slots, types, no_form=draw.random() < 0.2, limits=limits)
    return Drawn(ground, row, automaton, types)


def parsed_by(predict: Any, world: World, parser: Path, out: Path, options: Any) -> tuple[Any, Any]:
    """What a parser says of the questions of a world, by question, and the counts of its stage."""
    out.mkdir()
    counts = predict(Workspace(out), kg=world.kg, examples=world.all_examples, parser=parser, options=options)
    return read_parsed(out), counts


def check_killed_training(train: Any, world: World, folder: Path, options: Any, stop_at: int) -> None:
    """A training that is killed at a step and started again writes the same bytes as one that was left alone."""
    inputs = {"kg": world.kg, "examples": world.all_examples, "options": options, "seed": 3}
    whole, again = Listener(), Listener()
    for name in ("one", "two"):
        (folder / name).mkdir()
    train(Workspace(folder / "one", folder / "work1", monitor=whole), **inputs)
    with pytest.raises(KeyboardInterrupt):
        train(Workspace(folder / "two", folder / "work2", monitor=Stopper(stop_at)), **inputs)
    train(Workspace(folder / "two", folder / "work2", monitor=again), **inputs)
    one, two = (
        {path.relative_to(folder / name): path.read_bytes() for path in (folder / name).rglob("*") if path.is_file()}
        for name in ("one", "two")
    )
    assert one == two
    assert any("goes on from its checkpoint" in note for note in again.notes) and len(again.steps) < len(whole.steps)
