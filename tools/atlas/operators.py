"""Questions that need more than a path: sets, counts, comparisons, ranks, and yes or no."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tools.atlas.drafts import QuestionDraft, World, expression, full
from tools.atlas.graph import AtlasGraph

Maker = Callable[[str, World, random.Random], Iterator[QuestionDraft]]
"""Drafts of a template, by its name, over a graph."""

LARGEST_SET = 20
LARGEST_RANKED = 25
SHARE_OF_ONES = 0.2
"""Share of the things that count one that questions are made of."""
ORDINALS = ("second", "third", "fourth")


def _sets(kind_x: str, step_x: str, kind_y: str, step_y: str, *, subtract: bool) -> Maker:
    """Entities that the step reaches from x and also (or but not) the other step from y; one hop each."""

    def make(template: str, world: World, rng: random.Random) -> Iterator[QuestionDraft]:
        others = {key: frozenset(world.reach(key, [step_y])) for key in world.pools[kind_y]}
        symmetric = not subtract and (kind_x, step_x) == (kind_y, step_y)
        pairs = []
        for x in world.pools[kind_x]:
            reached = frozenset(world.reach(x, [step_x]))
            for y in world.pools[kind_y] if reached else ():
                common = reached & others[y]
                if common and x != y and not (symmetric and x > y) and (reached - common):
                    pairs.append((x, y, reached - common if subtract else common))
        for x, y, answers in rng.sample(pairs, len(pairs)):
            if not 1 <= len(answers) <= LARGEST_SET or {x, y} & answers:
                continue
            first, second = expression(x, full(step_x)), expression(y, full(step_y))
            yield QuestionDraft(
                template=template,
                complexity="difference" if subtract else "intersection",
                slots={"x": x, "y": y},
                topics=(x, y),
                paths=tuple(dict.fromkeys([full(step_x), full(step_y)])),
                answers=tuple(sorted(answers)),
                s_expression=None if subtract else f"(AND {first} {second})",
            )

    return make


def _count(kind: str, step: str, *, smallest_city: int = 0) -> Maker:
    def make(template: str, world: World, rng: random.Random) -> Iterator[QuestionDraft]:
        for x in world.shuffled(kind, rng):
            members = world.reach(x, [step])
            small = smallest_city and any((world.graph.number(m, "population") or 0) < smallest_city for m in members)
            dull = len(members) == 1 and rng.random() > SHARE_OF_ONES
            if members and len(members) <= 60 and not small and not dull:
                yield QuestionDraft(
                    template=template,
                    complexity="count",
                    slots={"x": x},
                    topics=(x,),
                    paths=(full(step),),
                    answers=(str(len(members)),),
                    answer_type="number",
                    s_expression=f"(COUNT {expression(x, full(step))})",
                )

    return make


def _compare(kind: str, relation: str, *, margin: float = 0.0, ratio: float = 1.0) -> Maker:
    """Which of two has more; relation `borders` compares how many, others the number itself."""

    def make(template: str, world: World, rng: random.Random) -> Iterator[QuestionDraft]:
        pool = [key for key in world.pools[kind] if _measure(world.graph, key, relation) is not None]
        for _ in range(20 * len(pool)):
            x, y = rng.sample(pool, 2)
            a, b = _measure(world.graph, x, relation) or 0.0, _measure(world.graph, y, relation) or 0.0
            if abs(a - b) > margin and max(a, b) >= ratio * min(a, b):
                yield QuestionDraft(
                    template=template,
                    complexity="comparative",
                    slots={"x": x, "y": y},
                    topics=(x, y),
                    paths=(full(relation),),
                    answers=(x if a > b else y,),
                )

    return make


def _measure(graph: AtlasGraph, key: str, relation: str) -> float | None:
    if relation == "borders":
        return float(len(graph.tails(key, relation))) or None
    return graph.number(key, relation)


def _ranked(sources: dict[str, str], relation: str, *, least: bool = False, nth: bool = False) -> Maker:
    """The member with the largest (or least, or n-th largest) number.  sources: kind of topic to step to members."""

    def make(template: str, world: World, rng: random.Random) -> Iterator[QuestionDraft]:
        topics = [(key, step) for kind, step in sources.items() for key in world.pools[kind]]
        for x, step in rng.sample(topics, len(topics)):
            members = world.reach(x, [step])
            numbers = {m: n for m in members if (n := world.graph.number(m, relation)) is not None}
            if not 3 <= len(members) <= LARGEST_RANKED or len(numbers) < len(members):
                continue
            order = sorted(numbers, key=lambda m: (numbers[m] if least else -numbers[m], m))
            for index in range(1, min(len(ORDINALS) + 1, len(order))) if nth else (0,):
                around = [numbers[m] for m in order[max(0, index - 1) : index + 2]]
                if len(set(around)) < len(around):
                    continue
                yield QuestionDraft(
                    template=template,
                    complexity="ordinal" if nth else "superlative",
                    slots={"x": x, **({"n": ORDINALS[index - 1]} if nth else {})},
                    topics=(x,),
                    paths=(full(step, relation),),
                    answers=(order[index],),
                    s_expression=None if nth else _best(least, expression(x, full(step)), full(relation)[0]),
                )

    return make


def _best(least: bool, members: str, relation: str) -> str:
    return f"({'ARGMIN' if least else 'ARGMAX'} {members} {relation})"


def _yes_no(kind: str, relation: str, wrong: Callable[[World, str, list[str]], list[str]]) -> Maker:
    """Is y what the relation gives for x?  wrong: plausible entities that it does not give."""

    def make(template: str, world: World, rng: random.Random) -> Iterator[QuestionDraft]:
        pools = {key for pool in world.pools.values() for key in pool}
        for _ in range(6):
            for x in world.shuffled(kind, rng):
                right = world.reach(x, [relation])
                good = [key for key in right if key in pools]
                bad = sorted({key for key in wrong(world, x, right) if key in pools and key != x} - set(right))
                if not good or not bad:
                    continue
                for answer, y in (("yes", rng.choice(good)), ("no", rng.choice(bad))):
                    yield QuestionDraft(
                        template=template,
                        complexity="yes/no",
                        slots={"x": x, "y": y},
                        topics=(x, y),
                        paths=(full(relation),),
                        answers=(answer,),
                        answer_type="yes/no",
                    )

    return make


def _same_continent(world: World, country: str) -> list[str]:
    return world.reach(country, ["continent", "<inv>-continent"])


def _wrong_neighbours(world: World, x: str, right: list[str]) -> list[str]:
    return [key for key in _same_continent(world, x) if world.graph.tails(key, "borders")]


def _wrong_capitals(world: World, x: str, right: list[str]) -> list[str]:
    cities = world.reach(x, ["<inv>-country"])
    return sorted(cities, key=lambda key: (-(world.graph.number(key, "population") or 0), key))[:6]


def _wrong_languages(world: World, x: str, right: list[str]) -> list[str]:
    return world.reach(x, ["borders", "language"]) or world.reach(x, ["continent", "<inv>-continent", "language"])


def _wrong_currencies(world: World, x: str, right: list[str]) -> list[str]:
    return world.reach(x, ["continent", "<inv>-continent", "currency"])


def _wrong_countries(world: World, x: str, right: list[str]) -> list[str]:
    return _same_continent(world, right[0])


def _wrong_continents(world: World, x: str, right: list[str]) -> list[str]:
    return world.pools["continent"]


_CITIES = {"country": "<inv>-country", "subdivision": "<inv>-subdivision"}
_NEIGHBOURS = {"country": "borders"}
_SPEAKERS = {"language": "<inv>-language"}

OPERATORS: dict[str, Maker] = {
    "both_border": _sets("country", "borders", "country", "borders", subtract=False),
    "continent_and_language": _sets("continent", "<inv>-continent", "language", "<inv>-language", subtract=False),
    "border_and_currency": _sets("country", "borders", "currency", "<inv>-currency", subtract=False),
    "border_and_language": _sets("country", "borders", "language", "<inv>-language", subtract=False),
    "both_languages": _sets("language", "<inv>-language", "language", "<inv>-language", subtract=False),
    "continent_and_currency": _sets("continent", "<inv>-continent", "currency", "<inv>-currency", subtract=False),
    "border_not_language": _sets("country", "borders", "language", "<inv>-language", subtract=True),
    "border_not_currency": _sets("country", "borders", "currency", "<inv>-currency", subtract=True),
    "border_not_border": _sets("country", "borders", "country", "borders", subtract=True),
    "language_not_continent": _sets("language", "<inv>-language", "continent", "<inv>-continent", subtract=True),
    "currency_not_language": _sets("currency", "<inv>-currency", "language", "<inv>-language", subtract=True),
    "language_not_language": _sets("language", "<inv>-language", "language", "<inv>-language", subtract=True),
    "count_borders": _count("country", "borders"),
    "count_languages": _count("country", "language"),
    "count_subdivisions": _count("country", "<inv>-subdivisionOf"),
    "count_currency": _count("currency", "<inv>-currency"),
    "count_speakers": _count("language", "<inv>-language"),
    "count_cities": _count("subdivision", "<inv>-subdivision", smallest_city=15_000),
    "more_people_country": _compare("country", "population", ratio=1.1),
    "larger_country": _compare("country", "area", ratio=1.1),
    "more_people_city": _compare("city", "population", ratio=1.1),
    "further_north": _compare("city", "latitude", margin=1.0, ratio=-1e9),
    "more_neighbours": _compare("country", "borders"),
    "largest_city": _ranked(_CITIES, "population"),
    "northernmost_city": _ranked(_CITIES, "latitude"),
    "southernmost_city": _ranked(_CITIES, "latitude", least=True),
    "most_people_neighbour": _ranked(_NEIGHBOURS, "population"),
    "fewest_people_neighbour": _ranked(_NEIGHBOURS, "population", least=True),
    "largest_neighbour": _ranked(_NEIGHBOURS, "area"),
    "smallest_neighbour": _ranked(_NEIGHBOURS, "area", least=True),
    "most_people_speaking": _ranked(_SPEAKERS, "population"),
    "largest_speaking": _ranked(_SPEAKERS, "area"),
    "nth_city": _ranked(_CITIES, "population", nth=True),
    "nth_people_neighbour": _ranked(_NEIGHBOURS, "population", nth=True),
    "nth_area_neighbour": _ranked(_NEIGHBOURS, "area", nth=True),
    "nth_people_speaking": _ranked(_SPEAKERS, "population", nth=True),
    "is_border": _yes_no("country", "borders", _wrong_neighbours),
    "is_capital": _yes_no("country", "capital", _wrong_capitals),
    "is_spoken": _yes_no("country", "language", _wrong_languages),
    "is_currency": _yes_no("country", "currency", _wrong_currencies),
    "is_country_of": _yes_no("city", "country", _wrong_countries),
    "is_continent": _yes_no("country", "continent", _wrong_continents),
}
"""Maker of the drafts of each operator template."""
