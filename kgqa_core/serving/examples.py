"""Questions to begin with: made from a graph, and kept where the system that answers finds the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from kgqa_core.answering.reply import Answer
from kgqa_core.errors import KgqaError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.look import look
from kgqa_core.logic.result import value_text
from kgqa_core.rewriting.phrases import is_participle, phrase, plural, words
from kgqa_core.search.phrases import relation_words
from kgqa_core.search.schema_profile import GraphProfile, RelationProfile, profile

SHOWN, OF_A_KIND, FEW, LONGEST = 6, 5, 5, 80
"""Questions shown; asked of one kind; answers, and characters, of one."""
MOST_TRIPLES = 300_000
"""Of a larger graph none are made, since that takes the time of those who ask."""
PEOPLE = frozenset({"person", "human", "people", "employee", "actor", "director", "author", "politician"})
Example = tuple[str, str]
"""A question, and the logical form of its answers."""


def example_questions(store: KgStore, answer: Callable[[Sequence[str]], Sequence[Answer]]) -> tuple[str, ...]:
    """Short questions of several kinds, about relations and types of which there is much, that are answered rightly."""
    made = profile(store)
    if made.language != "en":
        return ()
    kinds = (_heads(store, made), _values(store, made), _most(made), _counts(made), _chains(store, made))
    drawn = [[example for example in islice(kind, OF_A_KIND) if len(example[0]) <= LONGEST] for kind in kinds]
    replies = iter(answer([text for kind in drawn for text, _ in kind]))
    right = [[text for text, form in kind if _same(store, form, next(replies))] for kind in drawn]
    rounds = [kind[number] for number in range(OF_A_KIND) for kind in right if number < len(kind)]
    return tuple(rounds[:SHOWN])


def _same(store: KgStore, form: str, reply: Answer) -> bool:
    try:
        found = look(store, form, limit=FEW + 1, seconds=2.0)
    except KgqaError:
        return False
    texts = [one["text"] for one in found["answers"]] if found["value"] is None else [value_text(found["value"])]
    return 0 < len(texts) <= FEW and sorted(texts) == sorted(reply.listed)


def _worded(made: GraphProfile) -> Iterator[tuple[RelationProfile, str]]:
    """Relations that are no types, those with most triples first, each with its noun; empty where that is none."""
    for relation in sorted(made.relations.values(), key=lambda one: (-one.triples, one.key)):
        if not relation.is_type and "<" not in relation.key + (relation.domain or ""):
            noun = relation_words(relation.label, "").noun
            yield relation, "" if is_participle(noun.split(" ")[-1]) else noun


def _ends(store: KgStore, made: GraphProfile, relation: RelationProfile, end: str, other: str, least: int) -> list[str]:
    """Keys and names of the best known things at an end that have few others at the other end, in turn."""
    rows = store.connection.execute(
        f"SELECT {end}, e.key FROM triples t JOIN entities e ON e.id = {end} WHERE relation = ? AND e.kind = 'entity' "
        f"GROUP BY {end}, e.key HAVING count(DISTINCT {other}) BETWEEN ? AND ? "
        f"ORDER BY any_value(popularity) DESC, {end} LIMIT 20",
        [relation.id, least, FEW],
    ).fetchall()
    known = [(key, made.names[i]) for i, key in rows if made.askable[i] and not {"<", ">"} & {*key}]
    return [str(text) for pair in known[:1] for text in pair]


def _values(store: KgStore, made: GraphProfile) -> Iterator[Example]:
    """`What is the capital of France?`, `When was Paris founded?`"""
    for relation, noun in _worded(made):
        verb = "" if noun or not relation.dated else words(relation.label)
        dated = is_participle(verb.split(" ")[-1])
        if (noun or dated) and relation.functional and (start := _ends(store, made, relation, "head", "tail", 1)):
            kind = made.types.get(relation.range or "")
            asks = "Who" if kind is not None and kind.label.lower() in PEOPLE else "What"
            text = f"When was {start[1]} {verb}?" if dated else f"{asks} is the {noun} of {start[1]}?"
            yield text, f"(JOIN (R <{relation.key}>) <{start[0]}>)"


def _heads(store: KgStore, made: GraphProfile) -> Iterator[Example]:
    """`Which teams are located in Berlin?`"""
    for relation, _ in _worded(made):
        words, domain = phrase(relation.label), made.types.get(relation.domain or "")
        if words.many and domain and relation.entities and (end := _ends(store, made, relation, "tail", "head", 2)):
            form = f"(AND (TYPE <{domain.key}>) (JOIN <{relation.key}> <{end[0]}>))"
            yield f"Which {plural(domain.label.lower())} {words.many} {end[1]}?", form


def _most(made: GraphProfile) -> Iterator[Example]:
    """`Which country has the largest population?`"""
    for relation, noun in _worded(made):
        domain = made.types.get(relation.domain or "")
        if noun and domain and relation.dimensions and not relation.dated and relation.functional:
            form = f"(ARGMAX (TYPE <{domain.key}>) <{relation.key}>)"
            yield f"Which {domain.label.lower()} has the largest {noun}?", form


def _counts(made: GraphProfile) -> Iterator[Example]:
    """`How many cities are there?`"""
    for kind in sorted(made.types.values(), key=lambda one: -one.entities):
        if not {"<", ">"} & {*kind.key}:
            yield f"How many {plural(kind.label.lower())} are there?", f"(COUNT (TYPE <{kind.key}>))"


def _chains(store: KgStore, made: GraphProfile) -> Iterator[Example]:
    """`What is the currency of the country of Paris?`"""
    for first, noun in _worded(made):
        for second, other in _worded(made):
            joined = first.range is not None and first.range == second.domain and first.functional and second.functional
            if noun and other and joined and (start := _ends(store, made, first, "head", "tail", 1)):
                form = f"(JOIN (R <{second.key}>) (JOIN (R <{first.key}>) <{start[0]}>))"
                yield f"What is the {other} of the {noun} of {start[1]}?", form
                break
