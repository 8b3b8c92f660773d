"""Random questions over random graphs, as the decoder sees them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from kgqa_core.logic.forms import Literal
from kgqa_core.logic.schema import types_of
from kgqa_core.parsing.decode.automaton import Automaton, Limits
from kgqa_core.parsing.decode.items import Near, near
from kgqa_core.parsing.decode.prepare import Ground
from kgqa_core.parsing.decode.rows import Row, make_row
from kgqa_core.parsing.decode.wording import Worded
from kgqa_core.parsing.examples import Topic
from tests.support.random_graphs import CLASSES, ENTITIES, LITERALS, RELATIONS, random_graph, store_of

WORDS = "how many of which is the largest between before after not and or".split()


@dataclass(frozen=True)
class Drawn:
    """A question's row and its automaton, with the graph that it is of and the types of its topics."""

    ground: Ground
    row: Row
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
