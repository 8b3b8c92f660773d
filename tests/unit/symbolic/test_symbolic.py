"""What is computed with: places and mentions read from words, operations of forms, paths of facts, and replies."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kgqa_core.config import KgOptions, SymbolicOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.parser import parse
from kgqa_core.search.operations import Operation, operation_of
from kgqa_core.search.question_reader import mark_mentions, ordinal_in
from kgqa_core.symbolic.answer import MAX_RESULTS, with_result
from kgqa_core.symbolic.arguments import paths_of_facts
from kgqa_core.symbolic.compute import Calculator
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import Fact, Question
from kgqa_core.workspace import Workspace


def test_mentions_stand_in_the_order_of_the_text():
    question = Question("q", "Which towns are in fr but not in de?", topic_keys=("de", "fr"), topic_entities=(4, 9))
    text, mentions = mark_mentions(question, {4: "de", 9: "fr"}, {})
    assert [one.entities for one in mentions] == [((9, "fr", 1.0),), ((4, "de", 1.0),)]
    assert text == f"Which towns are in {mentions[0].mark} but not in {mentions[1].mark}?"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("the second largest", 2),
        ("the 22nd town", 22),
        ("第三大城市", 3),
        ("第12名", 12),
        ("in 2nd place", 2),
        ("the eleventh largest", 11),
        ("the twentieth town", 20),
        ("the twenty-second largest", 22),
        ("the Ninety Ninth", 99),
        ("第十大城市", 10),
        ("第十一大城市", 11),
        ("第二十大城市", 20),
        ("第九十九名", 99),
        ("第一百名", None),
        ("第1000名", None),
        ("the 0th", None),
        ("most", None),
    ],
)
def test_places_are_read_from_the_text(text, place):
    assert ordinal_in(text) == place


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("(JOIN (R capital) fr)", Operation("none")),
        ("(COUNT (JOIN in fr))", Operation("count")),
        ("(ARGMIN (JOIN in fr) population)", Operation("best", "min")),
        ("(JOIN in (ARGMAX (TYPE country) (COUNT borders)))", Operation("best", "max")),
        ("(NTHMAX 2 (JOIN in fr) population)", Operation("nth", "max")),
        ("(LESS fr de population)", Operation("compare", "min")),
        ("(AND (JOIN in fr) (JOIN borders de))", Operation("intersect")),
        ("(AND (TYPE city) (JOIN in fr))", Operation("none")),
        ("(MINUS (JOIN in de) (JOIN in fr))", Operation("difference", turned=True)),
        ("(HOLDS (JOIN (R capital) fr) de)", Operation("yes/no")),
    ],
)
def test_a_form_says_its_operation(text, operation):
    assert operation_of(parse(text), ["fr", "de"]) == operation


def test_facts_walk_paths_from_the_topics():
    ends = {0: (1, 0, 2), 1: (2, 1, 3), 2: (4, 1, 2), 3: (9, 1, 8)}
    facts = [Fact(0, 0.8, 1, 0, 1), Fact(1, 0.5, 2, 1, 1), Fact(2, 0.4, 2, 2, -1), Fact(3, 0.9, 2, 3, 1)]
    assert paths_of_facts(facts, [1], ends, ["r", "s"]) == [
        (("r",), 0.8),
        (("r", "s"), 0.4),
        (("r", "<inv>-s"), pytest.approx(0.32)),
    ]
    chains = [replace(fact, path=path) for fact, path in zip(facts, (0, 1, 1, 1), strict=True)]
    assert paths_of_facts(chains, [1], ends, ["r", "s"]) == [(("r",), 0.8)]


def test_what_is_computed_stands_above_the_facts_that_a_model_reads():
    counted = ComputedAnswer("q", "count", answers=("15",), topics=("Estonia",), words="How many cities has")
    assert with_result(counted, "(a, r, b)") == "(Estonia, How many cities has, 15), (a, r, b)"
    larger = ComputedAnswer("q", "compare", answers=("Chad",), topics=("Chad", "Togo"), words="Which is larger")
    assert with_result(larger, "") == "(Chad, Which is larger, Togo)"
    many = ComputedAnswer("q", "none", answers=tuple(map(str, range(MAX_RESULTS + 1))))
    assert with_result(many, "").count("(it, answer, ") == MAX_RESULTS
    assert with_result(ComputedAnswer("q", "none"), "(a, r, b)") == "(a, r, b)"


def test_answers_of_one_name_are_told_apart_in_the_text_of_a_reply(tmp_path):
    rows = "p1\tlabel\tLi Wei\np2\tlabel\tLi Wei\np1\tborn_in\tHarbin\np2\tborn_in\tLyon\n"
    (tmp_path / "g.tsv").write_text(rows)
    build(Workspace(tmp_path), options=KgOptions(files=(str(tmp_path / "g.tsv"),), label_predicates=("label",)))
    with KgStore.open(tmp_path) as graph:
        calculator = Calculator(graph, SimpleNamespace(options=SymbolicOptions()))
        both = calculator.reply(ComputedAnswer("q", "none", answers=("Li Wei",), keys=("p2", "p1")))
        one = calculator.reply(ComputedAnswer("q", "none", answers=("Li Wei",), keys=("p1",)))
    assert both["computed"] == "Li Wei, born in Lyon; Li Wei, born in Harbin"
    assert (one["computed"], both["answers"]) == ("Li Wei", ("Li Wei",))
