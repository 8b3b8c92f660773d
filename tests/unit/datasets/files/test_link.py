"""Linking: keys win, ambiguity is counted, and what cannot be answered says why."""

from __future__ import annotations

from typing import Any

import pytest

from kgqa_core.datasets.files.jsonl import canonical
from kgqa_core.datasets.files.link import LinkedQuestions, link
from kgqa_core.kg.store import KgStore
from kgqa_core.types import Question


def linked(store: KgStore, gold: bool = True, **changes: Any) -> LinkedQuestions:
    row = {"id": "q", "question": "?", "topic_entities": ["France"], "answers": ["Madrid"], **changes}
    return link([canonical(row, gold=gold)], store, source="test", gold=gold)


def only(store: KgStore, gold: bool = True, **changes: Any) -> Question:
    return linked(store, gold, **changes).questions[0]


def key(store: KgStore, *ids: int) -> list[str]:
    keys = store.entity_keys(ids)
    return [keys[entity] for entity in ids]


def test_labels_and_keys_find_entities(store: KgStore) -> None:
    by_label = only(store)
    by_key = only(store, topic_entities=["http://x/France"], answers=["http://x/Madrid"])
    assert by_label.topic_entities == by_key.topic_entities
    assert key(store, *by_label.topic_entities) == ["http://x/France"]
    assert key(store, *by_label.answers) == ["http://x/Madrid"]
    assert by_label.topic_keys == ("France",)
    assert by_label.unlinkable is None and by_label.source == "test"


def test_an_ambiguous_label_gives_every_entity_and_is_counted(store: KgStore) -> None:
    found = linked(store, topic_entities=["Paris"], answers=["http://x/Paris"])
    question = found.questions[0]
    assert key(store, *question.topic_entities) == ["http://x/Paris", "http://x/Paris_TX"]
    assert key(store, *question.answers) == ["http://x/Paris"]
    assert found.counts["ambiguous_topics"] == 1
    assert found.counts["ambiguous_answers"] == 0


def test_answer_names_are_name_aliases_and_those_of_the_file(store: KgStore) -> None:
    assert only(store, answers=["http://x/Paris"], answer_aliases=["Lutetia"]).answer_names == (
        ("Paris", "City of Light", "Lutetia"),
    )
    assert only(store, answers=["City of Light"]).answer_names == (("Paris", "City of Light"),)


def test_an_id_that_the_graph_lacks_is_reached_by_its_name_where_that_is_wanted(store: KgStore) -> None:
    row = canonical({"id": "q", "question": "?", "topic_entities": ["m.01"], "answers": ["m.02", "m.03"],
                     "answer_type": "entities", "answer_aliases": {"m.02": ["Matrit", "Madrid"]}})  # fmt: skip
    row["topic_names"] = {"m.01": "France"}
    assert link([row], store).questions[0].unlinkable is not None
    found = link([row], store, match_names=True)
    question = found.questions[0]
    assert question.unlinkable is None and found.counts["matched_by_name"] == 2
    assert key(store, *question.topic_entities, *question.answers) == ["http://x/France", "http://x/Madrid"]
    assert found.counts["answers_missing"] == 1 and "m.02" in question.answer_names[0]
    known = canonical({"id": "q", "question": "?", "topic_entities": ["France"], "answers": ["Madrid"],
                       "answer_aliases": {"Madrid": ["Paris"]}})  # fmt: skip
    assert key(store, *link([known], store, match_names=True).questions[0].answers) == ["http://x/Madrid"], "ids win"


def test_an_unknown_topic_is_unlinkable_with_a_hint(store: KgStore) -> None:
    question = only(store, topic_entities=["Frence"])
    assert question.unlinkable == "topic entity 'Frence' is not in the graph (did you mean 'France'?)"
    assert question.topic_entities == ()


def test_a_question_without_topic_or_answer_is_unlinkable(store: KgStore) -> None:
    assert only(store, topic_entities=[]).unlinkable == "no topic entity"
    assert only(store, answers=[]).unlinkable == "no gold answer is given"
    assert only(store, gold=False, answers=[]).unlinkable is None


def test_an_unknown_answer_is_unlinkable_only_when_none_is_known(store: KgStore) -> None:
    lost = only(store, answers=["Atlantis", "Lemuria"], answer_type="entities")
    assert lost.unlinkable is not None and lost.unlinkable.startswith("answer 'Atlantis' is not in the graph")
    partly = linked(store, answers=["Atlantis", "Madrid"])
    assert partly.questions[0].unlinkable is None
    assert key(store, *partly.questions[0].answers) == ["http://x/Madrid"]
    assert partly.questions[0].answer_names == (("Atlantis",), ("Madrid",))
    assert partly.counts["answers_missing"] == 1


def test_one_known_topic_of_two_is_enough(store: KgStore) -> None:
    found = linked(store, topic_entities=["Atlantis", "Spain"])
    assert key(store, *found.questions[0].topic_entities) == ["http://x/Spain"]
    assert found.questions[0].unlinkable is None
    assert found.counts["topics_missing"] == 1


@pytest.mark.parametrize(
    ("answers", "complexity", "expected", "literal"),
    [
        ([2138551], None, "number", True),
        (["1889-03-31"], None, "date", True),
        ([7], None, "number", False),
        (["1990-01-01"], None, "date", False),
        (["yes"], None, "yes/no", False),
        (["Madrid"], None, "entities", False),
        ([4], "count", "number", False),
        (["Atlantis"], None, "entities", False),
    ],
)
def test_the_answer_type_is_inferred(
    store: KgStore, answers: list[Any], complexity: str | None, expected: str, literal: bool
) -> None:
    question = only(store, answers=answers, complexity=complexity)
    assert question.answer_type == expected
    if expected != "entities":
        assert question.unlinkable is None
        assert bool(question.answers) is literal
        assert question.answer_names == ((str(answers[0]),),)


def test_a_stated_number_links_to_its_literal_but_not_for_counts(store: KgStore) -> None:
    number = only(store, answers=[4], answer_type="number", complexity="generic")
    assert key(store, *number.answers) == ["4"]
    assert only(store, answers=[4], answer_type="number", complexity="count").answers == ()
    assert only(store, answers=["Madrid"], answer_type="text").answers == ()
    assert only(store, answers=["yes"], answer_type="yes/no").unlinkable is None


def test_a_stated_type_chooses_among_literals_of_one_key(store: KgStore) -> None:
    number = only(store, answers=[4], answer_type="number").answers
    text = only(store, answers=["4"], answer_type="text").answers
    assert len(number) == len(text) == 1 and number != text


def test_a_path_with_an_unknown_relation_is_left_out(store: KgStore) -> None:
    found = linked(store, relation_path=[["http://x/capital", "<inv>-http://x/borders"], ["nonsense"]])
    question = found.questions[0]
    assert question.relation_paths == (("http://x/capital", "<inv>-http://x/borders"),)
    assert question.hops == 2
    assert found.counts["paths_unknown"] == 1


def test_order_of_questions_is_kept_and_ids_do_not_mix(store: KgStore) -> None:
    rows = [
        canonical({"id": f"q{n}", "question": "?", "topic_entities": [topic], "answers": [answer]})
        for n, (topic, answer) in enumerate([("Spain", "Madrid"), ("France", "http://x/Paris"), ("Nowhere", "Madrid")])
    ]
    questions = link(rows, store).questions
    assert [question.id for question in questions] == ["q0", "q1", "q2"]
    assert [question.unlinkable is None for question in questions] == [True, True, False]
