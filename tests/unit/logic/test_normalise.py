from __future__ import annotations

import pytest

from kgqa_core.logic.normalise import isomorphic, normalise
from kgqa_core.logic.parser import parse


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(AND a.b (AND (JOIN r Q1) (JOIN s Q2)))", "(AND (AND (JOIN s Q2) a.b) (JOIN r Q1))"),
        ("(AND Q1 Q1)", "Q1"),
        ("(JOIN r (OR Q1 Q2))", "(JOIN r (OR Q2 Q1))"),
        ("(AND (MINUS Q1 Q2) Q3)", "(MINUS (AND Q3 Q1) Q2)"),
        ("(MINUS (MINUS Q1 Q2) Q3)", "(MINUS Q1 (OR Q3 Q2))"),
        ("(JOIN r (lt s 5))", "(lt (JOIN r s) 5)"),
        ("(NTHMIN 1 Q1 r)", "(ARGMIN Q1 r)"),
        ("(GREATER Q1 Q2 r)", "(GREATER Q2 Q1 r)"),
        ("(JOIN r Q1 (eq b Q1) (eq a Q1))", "(JOIN r Q1 (eq a Q1) (eq b Q1))"),
        ("(COUNT (AND Q1 Q2))", "(COUNT (AND Q2 Q1))"),
        ("(ARGMAX (AND Q1 a.b) r)", "(ARGMAX (AND a.b Q1) r)"),
    ],
)
def test_forms_that_mean_the_same_by_shape_are_isomorphic(one, other):
    assert isomorphic(parse(one), parse(other))
    assert normalise(parse(one)) == normalise(parse(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(JOIN r Q1)", "(JOIN (R r) Q1)"),
        ("(JOIN r (JOIN s Q1))", "(JOIN s (JOIN r Q1))"),
        ("(MINUS Q1 Q2)", "(MINUS Q2 Q1)"),
        ("(ARGMAX Q1 r)", "(ARGMIN Q1 r)"),
        ("(ARGMAX Q1 r)", "(ARGMAX Q1 (COUNT r))"),
        ("(AND Q1 Q2)", "(OR Q1 Q2)"),
        ("(JOIN r (AND Q1 Q2))", "(AND (JOIN r Q1) (JOIN r Q2))"),
        ("(JOIN r Q1 (eq q Q2))", "(JOIN r Q1)"),
        ("(HOLDS Q1 Q2)", "(HOLDS Q2 Q1)"),
        ("(lt (COUNT s) 5)", "(lt s 5)"),
        ("(JOIN r (lt (COUNT s) 5))", "(lt (COUNT (JOIN r s)) 5)"),
    ],
)
def test_other_forms_are_not(one, other):
    assert not isomorphic(parse(one), parse(other))


def test_a_relation_and_its_inverse_of_its_own_are_the_same_step():
    pair = {"film.film.actor": "film.actor.film"}
    one, other = parse("(JOIN (R film.film.actor) m.01)"), parse("(JOIN film.actor.film m.01)")
    assert not isomorphic(one, other)
    assert isomorphic(one, other, pair)
    assert isomorphic(one, other, {"film.actor.film": "film.film.actor"})
    assert normalise(one, pair) == normalise(other, pair) == other
