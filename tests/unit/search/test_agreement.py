"""Which end of a relation a question has a thing at, which end of a ranking it wants, and what goes without saying."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgqa_core.kg.store import KgStore
from kgqa_core.logic.parser import parse
from kgqa_core.search.agreement import GrammarAgreement
from kgqa_core.search.candidates import LabelQuery
from kgqa_core.search.graph import LabelGraph
from kgqa_core.search.phrases import Phrases
from kgqa_core.symbolic.by_labels.examples import candidate_of
from tests.support.label_graph import X, fit_of, slot_of
from tests.support.question_graph import RDFS, TYPE, XSD, build_graph


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelGraph]:
    """Animals that eat and are owned; towns of countries with one capital each; a clinic with an address."""
    lines = [f"<{X}{one}> <{X}eats> <{X}{other}> ." for one, other in (("fox", "hare"), ("hare", "grass"))]
    lines += [f"<{X}fox> <{X}ownedBy> <{X}hare> .", f"<{X}hare> <{X}memberOf> <{X}fox> ."]
    for number in range(8):
        lines += [f"<{X}t{number}> <{X}country> <{X}land> .", f"<{X}t{number}> <{TYPE}> <{X}town> ."]
        lines.append(f'<{X}t{number}> <{X}longitude> "{number}"^^<{XSD}decimal> .')
    lines += [f"<{X}land> <{X}capital> <{X}t1> .", f"<{X}land> <{TYPE}> <{X}state> ."]
    lines += [f"<{X}clinic> <{X}address> _:a .", f"_:a <{X}city> <{X}t2> ."]
    lines += [f'<{X}{key}> <{RDFS}label> "{key}" .' for key in ("fox", "hare", "land", "clinic", "town", "state")]
    with KgStore.open(build_graph(tmp_path_factory.mktemp("farm"), lines)) as store:
        yield LabelGraph(store)


def agreement(graph: LabelGraph, text: str, form: str, *keys: str) -> tuple[float, float, float]:
    """Of a form of a question whose mentions are x, y."""
    query = LabelQuery(text, tuple(slot_of(graph, "xy"[place], X + key) for place, key in enumerate(keys)))
    made = candidate_of(parse(form), query, graph)
    assert made is not None
    return GrammarAgreement(graph).of(made, query, fit_of(graph, query).cover)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "relation", "is_head"),
    [
        ("what does x eat?", "eats", True),
        ("who eats x?", "eats", False),
        ("who owns x?", "ownedBy", True),
        ("what does x own?", "ownedBy", False),
        ("what is owned by x?", "ownedBy", False),
        ("members of x", "memberOf", False),
        ("which club is x a member of?", "memberOf", True),
        ("capital of x", "capital", True),
        ("x 's capital", "capital", True),
        ("which land has x as its capital?", "capital", False),
        ("which land capitalises x", "capital", None),
        ("how many capitals does x have", "capital", True),
        ("tell me about x", "eats", None),
    ],
)
def test_verbs_and_nouns_say_which_end_of_their_relation_a_thing_is(
    farm: LabelGraph, text: str, relation: str, is_head: bool | None
) -> None:
    topic = "land" if relation == "capital" and is_head else "t1" if relation == "capital" else "hare"
    both = [f"(JOIN (R {X}{relation}) {X}{topic})", f"(JOIN {X}{relation} {X}{topic})"]
    told = [agreement(farm, text, form, topic)[1] for form in both]
    assert told == ([0.0, 0.0] if is_head is None else [1.0, -1.0] if is_head else [-1.0, 1.0])


def test_both_things_of_a_truth_have_their_ends(farm: LabelGraph) -> None:
    asked = "does the x eat the y ?"
    forms = (f"(HOLDS (JOIN {X}eats {X}hare) {X}fox)", f"(HOLDS (JOIN (R {X}eats) {X}hare) {X}fox)")
    assert [agreement(farm, asked, form, "fox", "hare")[1] for form in forms] == [1.0, -1.0]


@pytest.fixture(scope="module")
def firm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelGraph]:
    """Who manages whom, without types, and which parts of a machine need which."""
    chain = (("ann", "bob"), ("bob", "cid"), ("dan", "bob"))
    lines = [f"<{X}{one}> <{X}manager> <{X}{other}> ." for one, other in chain]
    needs = (("a", "b"), ("c", "b"), ("c", "d"))
    lines += [f"<{X}{one}> <{X}dependsOn> <{X}{other}> ." for one, other in needs]
    lines += [f"<{X}{key}> <{TYPE}> <{X}part> ." for key in "abcd"]
    with KgStore.open(build_graph(tmp_path_factory.mktemp("firm"), lines)) as store:
        yield LabelGraph(store)


@pytest.mark.parametrize(
    ("text", "is_head"),
    [
        ("who manages x ?", True),
        ("who is the manager of x ?", True),
        ("who is x 's manager?", True),
        ("who is x the manager of?", False),
        ("who does x manage?", False),
        ("who is managed by x ?", False),
    ],
)
def test_the_verb_of_a_noun_for_who_does_it_has_its_direction(firm: LabelGraph, text: str, is_head: bool) -> None:
    forms = (f"(JOIN (R {X}manager) {X}bob)", f"(JOIN {X}manager {X}bob)")
    assert [agreement(firm, text, form, "bob")[1] for form in forms] == ([1.0, -1.0] if is_head else [-1.0, 1.0])


@pytest.mark.parametrize(
    ("text", "heads"), [("part with most dependents", True), ("part with the highest number of dependencies", False)]
)
def test_what_a_ranking_counts_is_what_the_noun_for_it_says(firm: LabelGraph, text: str, heads: bool) -> None:
    forms = (f"(ARGMAX (TYPE {X}part) (COUNT (R {X}dependsOn)))", f"(ARGMAX (TYPE {X}part) (COUNT {X}dependsOn))")
    assert [agreement(firm, text, form)[1] for form in forms] == ([1.0, -1.0] if heads else [-1.0, 1.0])


def test_a_form_against_the_direction_of_the_words_is_no_candidate(firm: LabelGraph) -> None:
    told = GrammarAgreement(firm)
    query = LabelQuery("who manages x ?", (slot_of(firm, "x", f"{X}cid"),))
    words = fit_of(firm, query).cover
    assert words is not None
    made = candidate_of(parse(f"(JOIN {X}manager {X}cid)"), query, firm)
    assert made is not None and told.directed[firm.labels.index("manager")]
    assert told.reversed([made], query, words) == {0}, "nobody manages Cid: who is managed by him is no answer"


def test_adjectives_say_which_end_of_a_ranking_is_wanted(farm: LabelGraph) -> None:
    towns = f"(TYPE {X}town) {X}longitude)"
    for text, best in (("westernmost town", "MIN"), ("easternmost town", "MAX"), ("town with the highest", "MAX")):
        ends = {each: agreement(farm, text, f"(ARG{each} {towns}")[2] for each in ("MIN", "MAX")}
        assert ends == {best: 1.0, ({"MIN", "MAX"} - {best}).pop(): -1.0}
    assert agreement(farm, "towns above n", f"(AND (TYPE {X}town) (gt {X}longitude 3))")[2] == 1.0
    assert agreement(farm, "at least n", f"(AND (TYPE {X}town) (ge {X}longitude 3))")[2] == 1.0


def test_what_nearly_all_things_of_a_kind_have_goes_without_saying(farm: LabelGraph) -> None:
    usual, rare = (
        agreement(farm, "towns of x", form, "land")[0]
        for form in (f"(JOIN {X}country {X}land)", f"(JOIN (R {X}capital) {X}land)")
    )
    assert usual == 0.0 > rare
    assert agreement(farm, "capital of x", f"(JOIN (R {X}capital) {X}land)", "land")[0] == rare, "no word is near here"


def test_a_phrase_leaves_out_the_relation_to_what_holds_the_parts(farm: LabelGraph) -> None:
    write = Phrases(farm).write
    assert write(parse(f"(JOIN (R {X}city) (JOIN (R {X}address) {X}clinic))"), {X + "clinic": "x"}) == "city of x"
    assert write(parse(f"(JOIN (R {X}address) {X}clinic)"), {X + "clinic": "x"}) == "address of x"
