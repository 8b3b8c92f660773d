"""Questions that the graph does not answer: for each reason what it says is missing is missing."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.abstention.labels import REASONS
from kgqa_core.builders.questions import unanswerable
from kgqa_core.builders.questions.generate import FILE, generate, make
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions
from kgqa_core.datasets.derived.thesaurus import thesaurus
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import execute
from kgqa_core.logic.parser import parse
from kgqa_core.metrics.normalise import is_cjk
from kgqa_core.rewriting.phrases import plural
from kgqa_core.workspace import Workspace


@pytest.fixture(scope="module")
def rows(film_kg: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    out = tmp_path_factory.mktemp("unanswerable")
    generate(Workspace(out), film_kg, GeneratedQuestionsOptions(size=300, unanswerable=0.4, read_back=0), 7)
    lines = (out / FILE).read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row.get("answerable") is False]


def of(rows: list[dict[str, Any]], reason: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["reason"] == reason]


def test_the_reasons_are_those_of_abstention_and_each_has_its_share(rows: list[dict[str, Any]]) -> None:
    assert {unanswerable.ENTITY, unanswerable.RELATION, unanswerable.FACT} == set(REASONS)
    counts = Counter(row["reason"] for row in rows)
    assert set(counts) == set(REASONS) and min(counts.values()) > 0.5 * max(counts.values())
    assert all(row["answers"] == [] for row in rows)


def test_a_missing_fact_is_not_in_the_graph(film_kg: Path, rows: list[dict[str, Any]]) -> None:
    with KgStore.open(film_kg) as store:
        for row in of(rows, unanswerable.FACT):
            assert execute(parse(row["missing_form"]), store, proof=False).empty, row
            assert row["missing_keys"][0] in store.relation_keys()


def known_names(store: KgStore) -> set[str]:
    return {
        name.casefold() for names in store.surface_forms(range(store.counts()["entities"])).values() for name in names
    }


def test_a_missing_entity_has_a_name_that_nothing_bears(film_kg: Path, rows: list[dict[str, Any]]) -> None:
    with KgStore.open(film_kg) as store:
        names = known_names(store)
        for row in of(rows, unanswerable.ENTITY):
            assert row["missing"].casefold() not in names and row["missing"] in row["plain_question"], row


def test_a_missing_relation_has_no_word_of_any_relation_of_the_graph(film_kg: Path, rows: list[dict[str, Any]]) -> None:
    with KgStore.open(film_kg) as store:
        here = {word for name in store.relation_names() for word in name.casefold().split() if len(word) > 3}
    superlatives = {word for one in thesaurus().relations.values() for word in one.most + one.least}
    for row in of(rows, unanswerable.RELATION):
        assert not here & set(row["missing"].split()), row
        best = any(word in row["plain_question"].casefold() for word in superlatives)
        assert row["topic_entities"] or best, row  # the best of a whole type names nothing


def test_relations_measures_and_types_are_missed(film_kg: Path) -> None:
    with KgStore.open(film_kg) as store:
        made = make(store, GeneratedQuestionsOptions(size=400, unanswerable=0.6, read_back=0), 7)
    missed = of([row for row in made if row.get("answerable") is False], unanswerable.RELATION)
    asked = [row["plain_question"].casefold() for row in missed]
    entries, types = thesaurus().relations.values(), thesaurus().types
    comparatives = {word for entry in entries for word in entry.more_than + entry.less_than}
    assert sum(any(f" {word}" in text for word in comparatives) for text in asked) > 5
    assert sum(any(plural(word) in text for word in types) for text in asked) > 10


@pytest.fixture(scope="module")
def many(film_kg: Path) -> list[dict[str, Any]]:
    """Unanswerable questions of a larger draw."""
    with KgStore.open(film_kg) as store:
        made = make(store, GeneratedQuestionsOptions(size=400, unanswerable=0.6, read_back=0), 7)
    return [row for row in made if row.get("answerable") is False]


def test_what_is_missing_is_said_in_the_language_of_the_graph(many: list[dict[str, Any]]) -> None:
    assert not [row for row in many if any(map(is_cjk, row["question"] + (row["missing"] or "")))]


def test_a_missing_property_of_a_thing_is_an_adjective_before_its_noun(many: list[dict[str, Any]]) -> None:
    modified = [row for row in of(many, unanswerable.RELATION) if row["missing"] in unanswerable._ADJECTIVES]
    assert len(modified) > 5
    for row in modified:
        text, word = row["plain_question"].casefold(), row["missing"]
        assert re.search(rf"\b{word} (?:film|person|people|genre|countr|cit)", text), row
        assert not re.search(rf"\ba {word}", text) or word[0] not in "aeiou", row


def test_a_missing_entity_may_be_a_name_of_the_graph_with_another_word(
    film_kg: Path, many: list[dict[str, Any]]
) -> None:
    with KgStore.open(film_kg) as store:
        names = known_names(store)
    more = {*unanswerable._BEFORE, *unanswerable._BEHIND}
    longer = [
        row for row in of(many, unanswerable.ENTITY)
        if any(row["missing"].replace(word, "").strip().casefold() in names for word in more if word in row["missing"])
    ]  # fmt: skip
    assert 5 < len(longer) < len(of(many, unanswerable.ENTITY))
