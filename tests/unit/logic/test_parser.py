from __future__ import annotations

import pytest

from kgqa_core.errors import FormError
from kgqa_core.logic.forms import (
    Aggregate,
    And,
    Arg,
    Class,
    Compare,
    CompareTo,
    Count,
    Entity,
    Greater,
    Join,
    Literal,
    Nth,
    Or,
    Share,
    Step,
    TimeConstraint,
    Where,
    elements,
)
from kgqa_core.logic.parser import parse

XSD = "http://www.w3.org/2001/XMLSchema#"
R, S = Step("r"), Step("s", inverse=True)


def test_a_join_of_a_join_is_one_path_read_from_the_answer():
    assert parse("(JOIN r (JOIN (R s) m.0abc))") == Join((R, S), Entity("m.0abc"))


def test_and_takes_its_inner_and_apart():
    text = "(AND film.film (AND (JOIN r m.01) (JOIN r m.02)))"
    assert parse(text) == And((Class("film.film"), Join((R,), Entity("m.01")), Join((R,), Entity("m.02"))))
    assert str(parse(text)) == text
    assert parse("(AND (AND a b) c)") == parse("(AND a b c)") == parse("(AND a (AND b c))")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("m.0abc", Entity("m.0abc")),
        ("g.11b_1", Entity("g.11b_1")),
        ("Q42", Entity("Q42")),
        ("urn:atlas:country:FR", Entity("urn:atlas:country:FR")),
        ("film.film", Class("film.film")),
        ("<film.film>", Entity("film.film")),
        ("(TYPE Q5)", Class("Q5")),
        ("<Kismet (1955) \\> \\\\>", Entity("Kismet (1955) > \\")),
        ("5", Literal("5", XSD + "integer")),
        ("-1.5", Literal("-1.5", XSD + "decimal")),
        ("2010-05-01", Literal("2010-05-01", XSD + "date")),
        ("2.3e+06^^xsd:float", Literal("2.3e+06", XSD + "float")),
        (f"2008-05-08^^{XSD}date", Literal("2008-05-08", XSD + "date")),
        ('"a \\"b\\" (c)"', Literal('a "b" (c)', XSD + "string")),
        ('"chat"@fr', Literal("chat", "@fr")),
        ("180^^xsd:decimal[Q174728]", Literal("180", XSD + "decimal", "Q174728")),
        ("180[Q174728]", Literal("180", XSD + "integer", "Q174728")),
        ("(COUNT (JOIN r Q1))", Count(Join((R,), Entity("Q1")))),
        ("(ARGMAX film.film r)", Arg("max", Class("film.film"), (R,))),
        ("(ARGMIN Q1 (JOIN (R s) r))", Arg("min", Entity("Q1"), (S, R))),
        ("(ARGMAX Q1 (COUNT r))", Arg("max", Entity("Q1"), (R,), counted=True)),
        ("(NTHMAX 2 Q1 r)", Nth(2, "max", Entity("Q1"), (R,))),
        ("(FIRSTMIN 3 Q1 r)", Nth(3, "min", Entity("Q1"), (R,), first=True)),
        ("(SUM Q1 (JOIN s r))", Aggregate("sum", Entity("Q1"), (Step("s"), R))),
        ("(AVG Q1 (COUNT r))", Aggregate("avg", Entity("Q1"), (R,), counted=True)),
        ("(RANGE Q1 r)", Aggregate("range", Entity("Q1"), (R,))),
        ("(VALUES Q1 r)", Aggregate("values", Entity("Q1"), (R,))),
        ("(GROUP Q1 r)", Aggregate("count", Entity("Q1"), (), (R,))),
        ("(GROUP Q1 (R s) (MAX r))", Aggregate("max", Entity("Q1"), (R,), (S,))),
        ("(SHARE Q1 Q2)", Share(Entity("Q1"), Entity("Q2"))),
        ("(ge r 5)", Compare("ge", (R,), Literal("5", XSD + "integer"))),
        ("(TC Q1 r 2010^^xsd:gYear)", TimeConstraint(Entity("Q1"), (R,), Literal("2010", XSD + "gYear"))),
        ("(LESS Q1 Q2 r)", Greater(Entity("Q1"), Entity("Q2"), (R,), "min")),
        ("(gt r Q1)", CompareTo("gt", (R,), Entity("Q1"))),
        ("(le (COUNT r) Q1)", CompareTo("le", (R,), Entity("Q1"), counted=True)),
        ("(TOPMIN (GROUP Q1 r (AVG (R s))))", Aggregate("avg", Entity("Q1"), (S,), (R,), pick="min")),
        ("(GROUP Q1 r (ARGMAX (R s)))", Aggregate("argmax", Entity("Q1"), (S,), (R,))),
        ("(OR Q1 Q2)", Or((Entity("Q1"), Entity("Q2")))),
        (
            "(JOIN r Q1 (eq P805 Q2) (at P580 2010^^xsd:gYear))",
            Join(
                (R,),
                Entity("Q1"),
                (Where("P805", "eq", Entity("Q2")), Where("P580", "at", Literal("2010", XSD + "gYear"))),
            ),
        ),
    ],
)
def test_every_kind_of_form_reads_and_prints_back(text, form):
    assert parse(text) == form
    assert parse(str(form)) == form


@pytest.mark.parametrize(
    ("text", "place", "part"),
    [
        ("(AND Q1", 1, "never closed"),
        ("Q1)", 3, "closes nothing"),
        ("", 1, "no form"),
        ("Q1 Q2", 4, "ends before 'Q2'"),
        ("(ARGMX Q1 r)", 1, "did you mean 'ARGMAX'"),
        ("(AND Q1)", 1, "AND is written (AND X Y)"),
        ("(JOIN (R r s) Q1)", 7, "(R r)"),
        ("(TC Q2 r Q1)", 10, "no number and no date"),
        ("(TOPMAX Q1)", 9, "TOPMAX takes a GROUP"),
        ("(NTHMAX 0 Q1 r)", 1, "count from 1"),
        ("(JOIN r Q1 (lt P580 Q2))", 21, "not with the entity Q2"),
        ("(JOIN r Q1 (like P580 Q2))", 12, "eq, lt"),
        ("(JOIN 5^^xsd:integer Q1)", 7, "a key stands here"),
        ('(JOIN r "x)', 9, "neither a bracket"),
        ("(" * 300, 101, "deep"),
        ('(JOIN r "\ud800")', 10, "half a character"),
        ("(GROUP Q1 r (COUNT s))", 13, "what is computed of each group is written (SUM r)"),
        ("(SUM Q1)", 1, "SUM is written (SUM X r), and this has 1 operands"),
        ("(NTHMAX 9999999999 Q1 r)", 9, "a place is a number from 1"),
    ],
)
def test_an_error_says_where_and_what(text, place, part):
    with pytest.raises(ValueError) as caught:
        parse(text)
    assert isinstance(caught.value, FormError)
    assert str(caught.value).startswith(f"s-expression, character {place}: ")
    assert part in str(caught.value)


def test_elements_are_sorted_and_hold_those_of_qualifiers():
    found = elements(parse("(AND film.film (JOIN (R b) Q2 (eq q Q1) (lt z 5)))"))
    assert found.entities == ("Q1", "Q2")
    assert found.relations == ("b", "q", "z")
    assert found.classes == ("film.film",)
    assert found.literals == (Literal("5", XSD + "integer"),)
