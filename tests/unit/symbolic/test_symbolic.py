"""Operators at answer time: what is read from words, which forms are assembled, and what they find on a small graph."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kgqa_core.config import KgOptions, SymbolicOptions
from kgqa_core.errors import FormTimeout
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import execute
from kgqa_core.logic.forms import BESTS
from kgqa_core.logic.parser import parse
from kgqa_core.symbolic.arguments import paths_of_facts
from kgqa_core.symbolic.compute import Calculator, proofs
from kgqa_core.symbolic.operations import KINDS, ORDERS, Operation, OperationScores, operation_of
from kgqa_core.symbolic.question_reader import date_in, ordinal_in, read_question
from kgqa_core.symbolic.solve import ComputedAnswer, Solver
from kgqa_core.symbolic.train import gold_form
from kgqa_core.types import Fact, Question
from kgqa_core.workspace import Workspace
from tests.support.graphs import small_graph


@pytest.fixture(scope="module")
def store():
    with small_graph() as graph:
        yield graph


class Sure:
    """A classifier that is sure of one operation."""

    reader = SimpleNamespace(topic_token="[TOPIC]")

    def __init__(self, kind, best="max", order="as said"):
        def logs(classes, right):
            return tuple(math.log(0.98 if one == right else 0.02 / len(classes)) for one in classes)

        self.own = OperationScores(logs(KINDS, kind), logs(BESTS, best), logs(ORDERS, order))

    def guess(self, texts):
        return [self.own for _ in texts]


def question_of(store, text, *topics):
    ids = tuple(store.resolve(topics)[topic][0] for topic in topics)
    return Question("q", text, topic_keys=topics, topic_entities=ids)


SOLVERS = {}


def solved(store, model, question, paths, parsed=None, **options):
    """What one solver of the graph computes, its classifier and options exchanged."""
    if id(store) not in SOLVERS:
        SOLVERS[id(store)] = Solver(store, model, SymbolicOptions())
    solver = SOLVERS[id(store)]
    solver.model, solver.options = model, SymbolicOptions(**options)
    return solver.solve([question], {"q": paths}, parsed)[0]


def test_mentions_stand_in_the_order_of_the_text(store):
    question = question_of(store, "Which towns are in fr but not in de?", "de", "fr")
    reading = read_question(question, store.entity_keys(question.topic_entities), {}, "[TOPIC]")
    assert [mention.entities for mention in reading.mentions] == [(("fr", 1.0),), (("de", 1.0),)]
    assert (reading.masked, reading.turned) == ("Which towns are in [TOPIC] but not in [TOPIC]?", False)


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("Apart from de, which towns are in fr?", True),
        ("Which towns outside de are in fr?", True),
        ("Which towns of fr are not in de?", False),
        ("Which towns are in fr, de excluded?", None),
        ("Which towns not in de are in fr?", True),
        ("Which towns that aren't in de are in fr?", True),
        ("Which towns of fr isn’t de next to?", False),
    ],
)
def test_what_a_difference_excludes_may_be_named_first(store, text, turned):
    question = question_of(store, text, "fr", "de")
    assert read_question(question, store.entity_keys(question.topic_entities), {}, "#").turned is turned


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


NO_DATES = (
    "before 2010", "after 2010", "until 2010", "since 2010", "by 2010", "before 5 May 2010", "since May 2010",
    "after the year 2010", "from 1990 to 1995", "between May 1990 and June 1995", "between 1990 and June 1995",
    "in 1990-1995", "in 1990 and 1995", "in 1990s",
    "from May 1990 until the end of 1995.", "in 1990's",
    "of a list of 1500 people", "by 1200 metres", "for 1500 days",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("Who was mayor in 2010?", "2010^^xsd:gYear"),
        ("Who was mayor on May 5, 2010?", "2010-05-05"),
        ("Who was mayor on the 5th of May 2010?", "2010-05-05"),
        ("Who was mayor in May 2010?", "2010-05"),
        ("Who was mayor on 2010-05-05?", "2010-05-05"),
        ("2010年5月谁是市长？", "2010-05"),
        ("Which towns have more than 2010 people?", None),
        ("Which towns have at least 15,000 people?", None),
        ("Who was born in 1990.5?", None),
        ("Name who was mayor in 2010.", "2010^^xsd:gYear"),
        ("Who was mayor as of 2010?", "2010^^xsd:gYear"),
        ("Who is the mayor of the city that was founded in 1850, with 2,000 people?", "1850^^xsd:gYear"),
        ("２０１０年谁是市长？", "2010^^xsd:gYear"),
        *[(f"Who was mayor {when}?", None) for when in NO_DATES],
        *[(f"{when}谁是市长？", None) for when in ("1850年代", "2010年以前", "从2010年到2012年", "2010年5月之后")],
    ],
)
def test_dates_are_read_from_the_text(text, date):
    found = date_in(text)
    assert found == (None if date is None else parse(date))


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


FR_TOWNS = ["<inv>-in population"]
CASES = {
    "capital of fr": ("none", "fr", ["capital"], "(JOIN (R capital) fr)", "paris"),
    "how many towns in fr": ("count", "fr", ["<inv>-in"], "(COUNT (JOIN in fr))", "3"),
    "largest town in fr": ("best", "fr", FR_TOWNS, "(ARGMAX (JOIN in fr) population)", "paris"),
    "second largest town in fr": ("nth", "fr", FR_TOWNS, "(NTHMAX 2 (JOIN in fr) population)", "lyon"),
    "which population is best in fr": ("best", "fr", ["<inv>-in"], "(ARGMAX (JOIN in fr) population)", "paris"),
    "more people, lyon or paris": (
        "compare", "lyon paris", ["population"], "(GREATER lyon paris population)", "paris"
    ),
    "taller, ann or bob": ("compare", "ann bob", ["height"], "(GREATER ann bob height)", "bob"),
    "more towns, fr or de": ("compare", "fr de", ["<inv>-in"], "(GREATER fr de (COUNT (R in)))", "fr"),
    "next to de and next to es": (
        "intersect", "de es", ["<inv>-borders"], "(AND (JOIN borders de) (JOIN borders es))", "fr"
    ),
    "neighbours of fr whose capital is not berlin": (
        "difference", "fr berlin", ["borders", "<inv>-capital"],
        "(MINUS (JOIN (R borders) fr) (JOIN capital berlin))", "es",
    ),
    "apart from the one with the capital berlin, neighbours of fr": (
        "difference", "berlin fr", ["borders", "<inv>-capital"],
        "(MINUS (JOIN (R borders) fr) (JOIN capital berlin))", "es",
    ),
    "does fr border de": ("yes/no", "fr de", ["borders"], "(HOLDS (JOIN (R borders) fr) de)", "yes"),
    "does de border es": ("yes/no", "de es", ["borders"], "(HOLDS (JOIN (R borders) de) es)", "no"),
    "is lyon in fr": ("yes/no", "lyon fr", ["in"], "(HOLDS (JOIN (R in) lyon) fr)", "yes"),
    "mayors": ("none", "mayor", ["<inv>-office"], "(JOIN office mayor)", "ann bob cid"),
    "mayor in 2005": ("none", "mayor", ["<inv>-office"], "(JOIN office mayor (at P580 2005^^xsd:gYear))", "ann"),
    "mayor on 2008-06-02": ("none", "mayor", ["<inv>-office"], "(JOIN office mayor (at P580 2008-06-02))", "bob"),
    "born of the mayor in 2005": (
        "none", "mayor", ["<inv>-office born"],
        "(JOIN (R born) (JOIN office mayor (at P580 2005^^xsd:gYear)))", "1952",
    ),
    "how many mayors as of 2008": (
        "count", "mayor", ["<inv>-office"], "(COUNT (JOIN office mayor (at P580 2008^^xsd:gYear)))", "2"
    ),
    "how many mayors since 2008": ("count", "mayor", ["<inv>-office"], "(COUNT (JOIN office mayor))", "3"),
    "mayor in 1990": ("none", "mayor", ["<inv>-office"], "(JOIN office mayor)", "ann bob cid"),
    "towns in fr in 2005": ("none", "fr", ["<inv>-in"], "(JOIN in fr)", "lyon nice paris"),
}  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_operations_are_computed(store, text):
    kind, topics, paths, form, answers = CASES[text]
    weighted = [(tuple(path.split()), 0.5**place) for place, path in enumerate(paths, 1)]
    found = solved(store, Sure(kind), question_of(store, text, *topics.split()), weighted)
    assert (found.form, " ".join(found.answers), found.kind) == (parse(form), answers, kind)
    assert found.proof


def test_nothing_is_ranked_by_a_place_that_cannot_be_read(store):
    question, ways = question_of(store, "hundredth largest town in fr", "fr"), [(("<inv>-in", "population"), 1.0)]
    assert solved(store, Sure("nth"), question, ways).form is None
    assert solved(store, Sure("nth"), replace(question, text="third largest town in fr"), ways).answers == ("nice",)


def test_a_proof_tells_when_its_facts_held(store):
    found = solved(store, Sure("none"), question_of(store, "mayor in 2005", "mayor"), [(("<inv>-office",), 1.0)])
    [(triple, text)] = proofs(store, [found])[found.question]
    assert (triple,) == found.proof and text == "(ann, office, mayor; P580: 2001; P582: 2008-06-01; of: paris)"


def test_dates_can_be_left_alone(store):
    question = question_of(store, "mayor in 2005", "mayor")
    found = solved(store, Sure("none"), question, [(("<inv>-office",), 1.0)], date_conditions=False)
    assert found.answers == ("ann", "bob", "cid")


def test_the_proof_of_a_no_is_what_there_is_instead(store):
    found = solved(store, Sure("yes/no"), question_of(store, "does de border es", "de", "es"), [(("borders",), 1.0)])
    [(head, _, tail)] = store.triples(found.proof).values()
    assert list(store.entity_keys([head, tail]).values()) == ["de", "fr"]


def test_a_less_likely_form_answers_where_the_likeliest_finds_nothing(store):
    question = question_of(store, "What is de?", "de")
    paths = [(("<inv>-holder",), 0.6), (("borders", "borders"), 0.3), (("capital",), 0.1)]
    found = solved(store, Sure("none"), question, paths)
    assert found.answers == ("es",)
    assert solved(store, Sure("none"), question, [(("unknown",), 1.0)]).form is None
    question, far = question_of(store, "What is es?", "es"), [(("capital",), 1.0), (("<inv>-borders",), 1e-5)]
    assert solved(store, Sure("none"), question, far).form is None
    assert solved(store, Sure("none"), question, far, margin=20).answers == ("fr",)


def test_nothing_is_answered_where_no_form_finds_anything(store):
    for kind, path in (("count", "<inv>-in"), ("none", "capital"), ("best", "borders")):
        found = solved(store, Sure(kind), question_of(store, "es?", "es"), [((path,), 1.0)])
        assert (found.form, found.answers, found.proof, found.kind) == (None, (), (), kind)


def test_a_form_that_takes_too_long_counts_as_having_found_nothing(store, monkeypatch):
    def late(form, *given, **options):
        if form == parse("(JOIN in fr)"):
            raise FormTimeout("too long")
        return execute(form, *given, **options)

    monkeypatch.setattr("kgqa_core.symbolic.solve.execute", late)
    proposed = {"q": [("(JOIN in fr)", -0.1), ("(JOIN in de)", -0.2)]}
    found = solved(store, Sure("none"), question_of(store, "towns", "fr"), [], proposed)
    assert (found.answers, found.tried, SOLVERS[id(store)].timeouts) == (("berlin", "bonn"), 2, 1)


def test_a_gold_form_that_takes_too_long_teaches_nothing():
    class Late:
        def execute(self, form):
            raise FormTimeout("too long")

    ways = {"complexity": "count", "relation_paths": (("<inv>-in",),)}
    question = Question("q", "How many?", topic_entities=(0,), answer_keys=("3",), **ways)
    assert gold_form(question, {0: "fr"}, Late()) is None


def test_forms_of_a_parser_come_first(store):
    question = question_of(store, "largest town in fr", "fr")
    proposed = {"q": [("(JOIN in fr)", -0.1), ("(ARGMIN (JOIN in fr) population)", -2.0)]}
    found = solved(store, Sure("best"), question, [(("<inv>-in", "population"), 1.0)], proposed)
    assert (str(found.form), found.answers) == ("(ARGMIN (JOIN in fr) population)", ("nice",))


def test_candidates_of_a_mention_are_tried_by_confidence(store):
    question = question_of(store, "capital of it", "es", "fr")
    question = replace(question, topic_weights=(0.9, 0.4), topic_mentions=(0, 0))
    assert solved(store, Sure("none"), question, [(("capital",), 1.0)]).answers == ("paris",)


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


def test_answers_of_one_name_are_told_apart_in_the_text_of_a_reply(tmp_path):
    rows = "p1\tlabel\tLi Wei\np2\tlabel\tLi Wei\np1\tborn_in\tHarbin\np2\tborn_in\tLyon\n"
    (tmp_path / "g.tsv").write_text(rows)
    build(Workspace(tmp_path), options=KgOptions(files=(str(tmp_path / "g.tsv"),), label_predicates=("label",)))
    with KgStore.open(tmp_path) as graph:
        calculator = Calculator(graph, Solver(graph, Sure("none"), SymbolicOptions()))
        both = calculator.reply(ComputedAnswer("q", "none", answers=("Li Wei",), keys=("p2", "p1")))
        one = calculator.reply(ComputedAnswer("q", "none", answers=("Li Wei",), keys=("p1",)))
    assert both["computed"] == "Li Wei, born in Lyon; Li Wei, born in Harbin"
    assert (one["computed"], both["answers"]) == ("Li Wei", ("Li Wei",))
