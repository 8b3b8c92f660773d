"""Rows without a relation: what is lost, and what the actions still mean."""

from __future__ import annotations

import pytest
import torch

from kgqa_core.papers.grailqability.parsing.decode.actions import END, NK, NUMBER, Slots
from kgqa_core.papers.grailqability.parsing.decode.rows import FEATURES, DecoderRow, drop_random_items, standing, worded
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, Topic

RELATIONS = ("a", "b", "c", "d")


def row(*actions: str) -> DecoderRow:
    """A question about one topic with four relations; actions by their names."""
    slots = Slots(topics=("x",), relations=RELATIONS)
    number = {slots.name(action): action for action in range(slots.actions)}
    labels = ("[E1]", *RELATIONS)
    features = tuple((float(place),) * FEATURES for place in range(5))
    return DecoderRow("…", slots, labels, (0, 3, 3, 3, 3), features, ("x",), tuple(number[name] for name in actions))


def actions_of(one: DecoderRow) -> list[str]:
    return [one.slots.name(action) for action in one.actions]


@pytest.mark.parametrize("actions", [("b", "x"), ("(R b)", "d", "x"), ("d", "(R a)", "x"), ("(R c)", "(R d)", "x")])
def test_a_row_that_keeps_what_it_needs_keeps_its_form(actions: tuple[str, ...]) -> None:
    needed = {action.strip("(R )") for action in actions} - {"x"}
    lost = set()
    for seed in range(40):
        torch.manual_seed(seed)
        [own] = drop_random_items([row(*actions, END)], missing=0.0)
        assert actions_of(own) == [*actions, END]
        [gone] = set(RELATIONS) - set(own.slots.relations)
        assert own.labels == ("[E1]", *own.slots.relations) and len(own.kinds) == 4
        assert [feature[0] for feature in own.features] == [
            0.0,
            *(1.0 + RELATIONS.index(r) for r in own.slots.relations),
        ]
        lost.add(gone)
    assert lost == set(RELATIONS) - needed


def test_a_row_that_loses_what_it_needs_has_no_form() -> None:
    torch.manual_seed(7)
    found = drop_random_items([row("(R b)", "d", "x", END)] * 400, missing=0.25)
    without = [own for own in found if own.actions == (NUMBER[NK], NUMBER[END])]
    assert 70 < len(without) < 130
    assert {r for own in without for r in set(RELATIONS) - set(own.slots.relations)} == {"b", "d"}
    assert all(actions_of(own) == ["(R b)", "d", "x", END] for own in found if own not in without)
    assert {len(own.slots.relations) for own in found} == {3}


def test_what_has_no_form_and_what_needs_all_relations_stay_what_they_are() -> None:
    torch.manual_seed(7)
    assert {tuple(actions_of(own)) for own in drop_random_items([row(NK, END)] * 20, missing=0.9)} == {(NK, END)}
    everything = row("a", "b", "c", "d", "x", END)
    assert drop_random_items([everything], missing=0.0) == [everything]


def typed_row(*actions: str) -> DecoderRow:
    """A question about one topic with three types and two relations."""
    slots = Slots(topics=("x",), classes=("t.p", "t.q", "t.r"), relations=("a", "b"))
    number = {slots.name(action): action for action in range(slots.actions)}
    labels = ("[E1]", *slots.classes, *slots.relations)
    features = tuple((float(place),) * FEATURES for place in range(6))
    return DecoderRow("…", slots, labels, (0, 1, 1, 1, 3, 3), features, ("x",), tuple(number[name] for name in actions))


def test_a_type_is_lost_as_a_relation_is() -> None:
    torch.manual_seed(7)
    actions = ["AND", "t.q", "(R b)", "x", END]
    kept, without = [], []
    for own in drop_random_items([typed_row(*actions)] * 600, missing=0.3):
        (without if own.actions == (NUMBER[NK], NUMBER[END]) else kept).append(own)
        assert own.labels == ("[E1]", *own.slots.classes, *own.slots.relations)
        assert len(own.labels) == len(own.kinds) == len(own.features) == 5
    assert all(actions_of(own) == actions for own in kept)
    lost = {"t.p", "t.q", "t.r", "a", "b"}
    assert {one for own in kept for one in lost - {*own.slots.classes, *own.slots.relations}} == {"t.p", "t.r", "a"}
    assert {one for own in without for one in lost - {*own.slots.classes, *own.slots.relations}} == {"t.q", "b"}
    shares = [sum(len(own.slots.classes) == 2 for own in rows) / len(rows) for rows in (kept, without)]
    assert abs(shares[0] - shares[1]) < 0.12  # how many types are left says nothing


def test_without_its_best_relation_a_row_has_another_best_one() -> None:
    torch.manual_seed(7)
    rows = [row("b", "x", END), *drop_random_items([row("b", "x", END)] * 20, missing=0.0)]
    assert len({own.slots.relations for own in rows}) == 4
    for own in rows:
        places = [place for _, place in standing(own)[1:]]
        assert standing(own)[1] == (0.0, 1.0) and places == [1 / n for n in range(1, len(own.slots.relations) + 1)]


def test_words_that_may_name_a_type_stay_beside_the_token_of_their_mention() -> None:
    topics = (Topic("film", "animated film", 0.8, 0), Topic("ada", "Ada Stone", 0.9, 1))
    example = ParseExample("q", "Which animated film did Ada Stone make?", topics=topics)
    known = {"film": None, "ada": None}
    assert worded(example, known, 4, 3).text == "Which [E1] did [E2] make?"
    assert worded(example, known, 4, 3, {"film"}).text == "Which [E1] animated film did [E2] make?"
