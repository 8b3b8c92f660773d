"""Lists of English words of questions, and what tells superlatives and words of grammar."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from kgqa_core.datasets.derived import thesaurus as thesaurus_file
from kgqa_core.datasets.derived.thesaurus import RelationEntry, Thesaurus, public_names, thesaurus
from kgqa_core.datasets.files import packaged_yaml
from kgqa_core.kg.text_numbers import units
from kgqa_core.linking.english import type_words
from kgqa_core.linking.words import FUNCTION_WORDS, person_nouns
from kgqa_core.logic.forms import BESTS
from kgqa_core.search.graph import WORD, LabelGraph

WORDS = Path(thesaurus_file.__file__).parent / "data" / "question_words.yaml"
AGGREGATES = {
    "sum": "sums",
    "avg": "averages",
    "median": "medians",
    "range": "differences",
    "share": "shares",
    "group": "groups",
}
"""What is computed of a set → the list of words that ask for it."""
PERSONS = frozenset("person people persons ppl human humans individual individuals".split())
"""Words for persons as such."""
MONIES = frozenset(("money", "cash"))
"""Words for amounts of money."""
MONEY = frozenset(("price", "amount", "budget", "salary", "revenue", "turnover", "gross", "box office"))
"""First labels in the thesaurus of relations to them."""
OF_ENDS = re.compile(r"\b(?:until|till|expir\w+|due|deadline)\b", re.IGNORECASE)
"""Words of relations to dates that make nothing old or new."""
_SHARED = frozenset("a an as d des do i in is me on s so t was will x y z n".split())
"""Words of English grammar that other languages have, too."""
_PLAIN = frozenset("most least more less highest lowest higher lower best worst first last latest earliest to die "
                   "rated populated densely paid visited attended serving".split())  # fmt: skip
"""Words of rankings that tell nothing of what is measured."""


@cache
def question_words() -> Mapping[str, frozenset[str]]:
    """The lists of `question_words.yaml`, phrases with spaces between their words."""
    table: dict[str, str] = packaged_yaml.read_yaml(WORDS.read_text(encoding="utf-8"))
    return {name: frozenset(word.replace("_", " ") for word in text.split()) for name, text in table.items()}


@cache
def kinds() -> frozenset[str]:
    """Words for kinds of things."""
    return frozenset((*type_words(), *thesaurus().types))


@cache
def other_types(label: str) -> tuple[str, ...]:
    """Other words for a type's label."""
    return tuple(word for word, labels in type_words().items() if label in labels)


def entry_of(graph: LabelGraph, relation: int) -> RelationEntry:
    """What the thesaurus has for a relation: of its label, of the measure that this ends with, or of any date.

    A relation whose label has no entry has the other names of Wikidata's property of that name; one to true and false
    has none.
    """
    if graph.to_truths[relation]:
        return RelationEntry()
    measured, dated = bool(graph.measured[relation] > 0.5), bool(graph.dated[relation] > 0.5)
    return _entry(thesaurus(), graph.labels[relation], measured, dated)


@cache
def _entry(known: Thesaurus, label: str, measured: bool, dated: bool) -> RelationEntry:
    lists = question_words()
    if (entry := known.relation(label)) is not None:
        return entry
    if dated:
        entry = known.relation("date")
        entry = entry and replace(entry, nouns=(), ask=())
        if entry and OF_ENDS.search(label):
            entry = replace(entry, labels=("end date",), most=("latest",), least=("earliest",))
    elif measured:
        entry = known.measure(label, lists["units"] | lists["stated_units"] | units().keys())
    names = public_names(label) or RelationEntry()
    return (
        replace(entry, nouns=(*names.nouns, *entry.nouns), passive=names.passive, verb=names.verb) if entry else names
    )


def amounts(graph: LabelGraph) -> frozenset[int]:
    """Relations to amounts of money, by their names in the thesaurus or a currency in their labels."""
    currencies, measures = question_words()["currencies"], filter(graph.is_measure, range(graph.relations))
    return frozenset(
        one
        for one in measures
        if entry_of(graph, one).name in MONEY or not currencies.isdisjoint(WORD.findall(graph.labels[one].lower()))
    )


def individuals(graph: LabelGraph) -> tuple[int, ...]:
    """Indices of the types of single persons, such as employees, in a graph that has no type of persons as such."""
    return () if not PERSONS.isdisjoint(graph.types_by_words) else _individuals(tuple(graph.type_labels))


@lru_cache(maxsize=16)
def _individuals(labels: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(index for label, index in sorted(zip(labels, range(len(labels)), strict=True)) if is_person(label))


def is_person(label: str) -> bool:
    """Whether a type's label is for single persons."""
    lists, nouns = question_words(), {label, label.rpartition(" ")[2]}
    return not nouns.isdisjoint(lists["individuals"]) or bool((nouns & person_nouns()) - lists["no_person"])


def is_mutual(graph: LabelGraph, relation: int) -> bool:
    """Whether the label of a relation says that it holds in both directions, as `married to`."""
    return not question_words()["mutual"].isdisjoint(WORD.findall(graph.labels[relation].lower()))


def is_superlative(word: str) -> bool:
    """Whether a word wants the first of a ranking."""
    lists = question_words()
    ends = (word.endswith("est") and len(word) > 4) or (word.endswith("most") and len(word) > 6)
    return word in lists["superlatives"] or (ends and word not in lists["not_est"])


def is_measure(word: str) -> bool:
    """Whether a word ranks or compares."""
    return is_superlative(word) or word in question_words()["comparatives"] or word in adjectives()


def grammar_of(text: str) -> frozenset[str]:
    """Words of grammar in the language of a text: all words of one that is not English, for it has no lists here."""
    english, words = question_words()["grammar"], frozenset(WORD.findall(text.lower()))
    foreign = (FUNCTION_WORDS - english) & words - _listed()
    return words if len(foreign) > len(english & words - _SHARED) else english


@cache
def _listed() -> frozenset[str]:
    """Words of English that other lists have than that of its grammar."""
    lists = question_words()
    return frozenset().union(
        *(lists[name] for name in ("comparatives", "negations", "groups", "counting", "superlatives"))
    )


def adjectives() -> dict[str, dict[str, frozenset[str]]]:
    """Adjectives of rankings and comparisons: of each the first labels of the relations that it measures, and whether
    it wants the largest or the smallest value of each."""
    return _adjectives(thesaurus())


@cache
def _adjectives(known: Thesaurus) -> dict[str, dict[str, frozenset[str]]]:
    results: dict[str, dict[str, frozenset[str]]] = {}
    for entry in known.relations.values():
        for best, texts in zip(BESTS, ((*entry.most, *entry.more_than), (*entry.least, *entry.less_than)), strict=True):
            words = set(WORD.findall(" ".join(texts).lower())) - _PLAIN
            for word in words | {f"{word[:-3]}er" for word in words if word.endswith("est") and is_superlative(word)}:
                sides = results.setdefault(word, {})
                sides[entry.labels[0]] = sides.get(entry.labels[0], frozenset()) | {best}
    return results


@cache
def mixed_letters() -> list[list[str]]:
    """The letters of words of grammar, sorted, by which those with swapped letters are known."""
    return [sorted(word) for word in question_words()["grammar"] if len(word) > 2]


@cache
def idle_phrases() -> re.Pattern[str]:
    """Phrases that say nothing of what is asked for."""
    return re.compile(rf"\b(?:{'|'.join(sorted(question_words()['phrases'], key=len, reverse=True))})\b")
