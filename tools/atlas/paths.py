"""Generic and multi-hop questions: the answers are exactly what a relation path reaches from the topic entity."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tools.atlas import vocabulary as v
from tools.atlas.drafts import QuestionDraft, World, expression
from tools.atlas.templates import Attribute, NamePhrase, TemplateWordings, compose, templates

LARGEST_ANSWER = 30
LARGEST_MIDDLE = 60
NUMBERS = {"population", "area", "latitude", "longitude"}
TEXTS = {
    "calling_code", "domain", "alpha2", "alpha3", "official_name", "language_code", "currency_code", "subdivision_code"
}  # fmt: skip


def answer_type(attribute: str) -> str:
    """Answer type of what an attribute asks for."""
    return "number" if attribute in NUMBERS else "text" if attribute in TEXTS else "entities"


def generic(world: World, rng: random.Random) -> Iterator[tuple[str, TemplateWordings, Iterator[QuestionDraft]]]:
    """Every 1-hop template with its wordings and an endless-enough supply of drafts."""
    for attribute in templates().attributes:
        yield attribute.name, attribute.one, _one_hop(world, attribute, random.Random(rng.random()))


def multi_hop(world: World, rng: random.Random) -> Iterator[tuple[str, TemplateWordings, Iterator[QuestionDraft]]]:
    """Every 2-hop template: an attribute of what a phrase names."""
    for phrase in templates().phrases:
        for attribute in templates().attributes:
            wordings = compose(attribute, phrase)
            if wordings is not None and attribute.name not in _TRIVIAL.get(phrase.name, ()):
                name = f"{attribute.name}/{phrase.name}"
                yield name, wordings, _two_hops(world, attribute, phrase, random.Random(rng.random()))


_TRIVIAL = {
    "subdivision_of_city": {"part_of", "cities_in"},
    "capital_of_country": {"city_country"},
    "country_of_subdivision": {"parts_of_country"},
}
"""Pairs that lead back or ask for what the phrase says already."""


def _one_hop(world: World, attribute: Attribute, rng: random.Random) -> Iterator[QuestionDraft]:
    pool = [key for kind in attribute.of for key in world.pools[kind]]
    for topic in rng.sample(pool, len(pool)):
        yield from _draft(world, attribute.name, "generic", topic, attribute.path, answer_type(attribute.name))


def _two_hops(world: World, attribute: Attribute, phrase: NamePhrase, rng: random.Random) -> Iterator[QuestionDraft]:
    for topic in world.shuffled(phrase.of, rng):
        middle = world.graph.follow([topic], phrase.path)
        if not middle or (len(middle) > 1) != phrase.several or len(middle) > LARGEST_MIDDLE:
            continue
        if any(v.kind_of(key) != phrase.to for key in middle):
            continue
        path = phrase.path + attribute.path
        name = f"{attribute.name}/{phrase.name}"
        yield from _draft(world, name, "multi-hop", topic, path, answer_type(attribute.name))


def _draft(
    world: World, name: str, complexity: str, topic: str, path: tuple[str, ...], kind: str
) -> Iterator[QuestionDraft]:
    answers = world.graph.follow([topic], path)
    if answers and len(answers) <= LARGEST_ANSWER and topic not in answers:
        yield QuestionDraft(
            template=name,
            complexity=complexity,
            slots={"x": topic},
            topics=(topic,),
            paths=(path,),
            answers=tuple(answers),
            answer_type=kind,
            s_expression=expression(topic, path),
        )
