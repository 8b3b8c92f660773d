"""Questions of which a form leaves a word unread, or whose demands it does not meet, are not answered by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kgqa_core.answering.reply import Answer
from kgqa_core.config import SymbolicOptions
from kgqa_core.kg.store import KgStore
from kgqa_core.search.candidates import Candidate
from kgqa_core.search.cues import cues_of
from kgqa_core.search.graph import LabelGraph
from kgqa_core.search.reading import types_in
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.by_labels.calibrate import INPUTS, Calibration
from kgqa_core.symbolic.by_labels.model import LabelModel
from kgqa_core.symbolic.by_labels.parser import LabelParser, Prepared
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.symbolic.by_labels.unread import BOUND, RESTRICTING, Unread
from kgqa_core.symbolic.tables import ComputedAnswer
from tests.support.label_graph import XSD, Preferring, X, question_about
from tests.support.question_graph import RDFS, TYPE, build_graph

Ask = Callable[..., ComputedAnswer]
CAPITAL, BORDERS = "(JOIN (R capital) c0)", "(JOIN (R borders) c0)"
POPULATION, OF_CITY = "(JOIN (R population) c0)", "(JOIN borders (JOIN (R country) city0))"
BEFORE = f"(AND (TYPE country) (gt population 1989^^{XSD}decimal))"
LARGEST, POPULATIONS = "(ARGMAX (TYPE country) population)", "(JOIN (R population) (JOIN (R borders) c0))"

FLAT = Calibration((1.0,) + (0.0,) * 7 + (-40.0,) + (0.0,) * (INPUTS - 9), 0.0, 0.5)
"""The probability of an answer, and next to none where its form leaves words that stand alone."""


@pytest.fixture(scope="module")
def ask(graph: LabelGraph, scorer: LabelScorer) -> Iterator[Ask]:
    """Asks a solver that prefers the forms with these texts, and every form where none is given."""
    solver = AutoSolver(graph.store, SymbolicOptions(), LabelModel(scorer.network, 2, FLAT))
    solver.parser = Preferring(solver.graph, scorer)

    def asked(text: str, *topics: str, forms: tuple[str, ...] = (), least: float | None = None) -> ComputedAnswer:
        def wanted(one: Candidate) -> bool:
            return not forms or str(one.form).replace(X, "") in forms

        solver.parser.wanted, solver.parser.forms = wanted, forms
        question = question_about(graph, "q", text, *(X + name for name in topics))
        [found] = (solver if least is None else solver.at_confidence(least)).solve([question])
        return found

    yield asked


@pytest.mark.parametrize(
    ("text", "topics", "form", "missing"),
    [
        ("former capital of Norland", ("c0",), CAPITAL, "former"),
        ("capital of Norland in 1950", ("c0",), CAPITAL, "1950"),
        ("how many countries are in Narnia", (), "(COUNT (TYPE country))", "Narnia"),
        ("which films are out of stock", (), "(TYPE film)", "stock"),
        ("coastal countries bordering Norland", ("c0",), BORDERS, "coastal"),
        ("which countries border Norland and Estia", ("c0", "c2"), BORDERS, "Estia"),
        ("average population of the neighbours of Norland", ("c0",), POPULATIONS, "average"),
        ("which country has the most cities", (), "(TYPE country)", "most cities"),
        ("oldest country", (), LARGEST, "oldest"),
        ("second largest country", (), LARGEST, "second"),
        ("largest city on the Moon", (), "(TYPE city)", "largest, Moon"),
        ("why does Norland have neighbours", ("c0",), BORDERS, "why"),
        ("how do the neighbours of Norland border it", ("c0",), BORDERS, "how"),
        ("countries before 1989", (), BEFORE, "1989"),
        ("population of Norland in euros", ("c0",), POPULATION, "euros"),
        ("when did Ada Stone retire", ("p0",), "(JOIN (R date_of_birth) p0)", "retire"),
        ("official neighbours of Norland", ("c0",), BORDERS, "official"),
        ("which neighbours outlaw Norland", ("c0",), BORDERS, "outlaw"),
        ("what population does Norland feed", ("c0",), POPULATION, "feed"),
        ("what capital does Norland forbid", ("c0",), CAPITAL, "forbid"),
        ("what is the capital n of Norland", ("c0",), CAPITAL, "n"),
        ("capital of Norland for Ada", ("c0",), CAPITAL, "Ada"),
    ],
)  # fmt: skip
def test_word_that_the_form_leaves_unread_forbids_the_answer(
    ask: Ask, text: str, topics: tuple[str, ...], form: str, missing: str
) -> None:
    found = ask(text, *topics, forms=(form,))
    assert (found.answers, found.reason, found.missing) == ((), "not understood", missing)
    assert found.confidence is not None and found.confidence < 0.5


@pytest.mark.parametrize(
    ("text", "topics", "form"),
    [
        ("capital of Norland", ("c0",), CAPITAL),
        ("please tell me the capital city of Norland, thanks", ("c0",), CAPITAL),
        ("whats the captial of Norland", ("c0",), CAPITAL),
        ("which is the largest country", (), LARGEST),
        ("how many films are there", (), "(COUNT (TYPE film))"),
        ("countries that border Norland", ("c0",), BORDERS),
        ("neighbours of Norland", ("c0",), BORDERS),
        ("how is the capital of Norland called", ("c0",), CAPITAL),
        ("which city serves as the official capital of Norland", ("c0",), CAPITAL),
        ("which capital dominates Norland", ("c0",), CAPITAL),
        ("under what name is the capital of Norland known among others", ("c0",), CAPITAL),
        ("which countries have more than 1989 people", (), BEFORE),
        ("population of Norland in tonnes", ("c0",), POPULATION),
        ("countries that border the country of Norland City", ("city0",), OF_CITY),
    ],
)  # fmt: skip
def test_words_of_grammar_and_other_words_for_a_relation_are_read(
    ask: Ask, text: str, topics: tuple[str, ...], form: str
) -> None:
    found = ask(text, *topics, forms=(form,))
    assert found.answers and found.confidence is not None and found.confidence > 0.9


@pytest.mark.parametrize(
    ("text", "topic", "form"),
    [
        ("which countries border Norland City", "city0", OF_CITY),
        ("population of Norland City", "city0", "(JOIN (R population) (JOIN (R country) city0))"),
    ],
)  # fmt: skip
def test_relation_that_no_word_names_forbids_the_answer(ask: Ask, text: str, topic: str, form: str) -> None:
    found = ask(text, topic, forms=(form,))
    assert (found.answers, found.reason, found.readings[0].form.replace(X, "")) == ((), "not sure", form)


def test_form_that_reads_more_of_the_question_comes_before_a_likelier_one(
    graph: LabelGraph, scorer: LabelScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = LabelParser(graph, scorer)
    question = question_about(graph, "q", "which coastal countries border Norland", X + "c0")
    plain = parser.parse([question])[0]
    losses = {place: parser.unread(plain.prepared, one).loss for place, one in enumerate(plain.candidates[:4])}
    assert plain.unread[0].loss == losses[0] > 0 and "coastal" in plain.unread[0].words[0]
    wanted = str(plain.candidates[1].form)
    unread = parser.unread

    def reads_one(prepared: Prepared, best: Candidate) -> Unread:
        left = unread(prepared, best)
        return Unread() if str(best.form) == wanted else left._replace(words=("a", ""), restricting=True, bound=99)

    monkeypatch.setattr(parser, "unread", reads_one)
    again = parser.parse([question])[0]
    assert str(again.candidates[0].form) == wanted and again.unread[0] == Unread()
    assert again.scores[0] == pytest.approx(plain.scores[1] + losses[1], abs=1e-4)
    others = max(plain.scores[place] + loss for place, loss in losses.items() if place != 1)
    assert again.scores[1] <= others - RESTRICTING * 2 - BOUND * 3 + 1e-4


def test_nothing_is_no_answer_where_no_word_names_two_relations_of_a_form(scorer: LabelScorer, tmp_path: Path) -> None:
    lines = [f"<{X}a> <{X}seasoning> <{X}dill> .", f"<{X}b> <{X}shelter> <{X}harbour> ."]
    for key, name, kind in (
        ("a", "Ode", "Pie"),
        ("b", "Ulm", "Pie"),
        ("dill", "Dill", "Herb"),
        ("harbour", "Quay", "Home"),
    ):
        lines += [f"<{X}{key}> <{TYPE}> <{X}{kind}> .", f'<{X}{key}> <{RDFS}label> "{name}"@en .']
    with KgStore.open(build_graph(tmp_path, lines)) as store:
        solver = AutoSolver(store, SymbolicOptions(), LabelModel(scorer.network, 2, FLAT))
        solver.parser = Preferring(solver.graph, scorer)
        empty = f"(AND (JOIN {X}seasoning {X}dill) (JOIN {X}shelter {X}harbour))"
        solver.parser.wanted = lambda one: str(one.form) == empty
        solver.parser.forms = ("(AND (JOIN seasoning dill) (JOIN shelter harbour))",)
        about = [
            question_about(solver.graph, "q", text, X + "dill", X + "harbour")
            for text in ("pies with Dill in Quay", "pies with seasoning Dill and shelter Quay")
        ]
        wordless, named = solver.solve(about)
    assert not wordless.answers and named.answers == ("none",)


def test_what_is_located_in_something_is_no_country_where_no_types_are(scorer: LabelScorer, tmp_path: Path) -> None:
    lines = [f"<{X}lia> <{X}lives_in> <{X}porto> .", f"<{X}porto> <{X}is_in> <{X}portugal> ."]
    lines += [f'<{X}{key}> <{RDFS}label> "{key.title()}"@en .' for key in ("lia", "porto", "portugal")]
    with KgStore.open(build_graph(tmp_path, lines)) as store:
        solver = AutoSolver(store, SymbolicOptions(), LabelModel(scorer.network, 2, FLAT))
        solver.parser = Preferring(solver.graph, scorer)
        solver.parser.wanted = lambda one: str(one.form) in (f"(JOIN (R {X}{key}) {X}{topic})" for key, topic in ends)
        ends = ("lives_in", "lia"), ("is_in", "porto")
        asked = (("which city does Lia live in", "lia"), ("which country does Lia live in", "lia"),
                 ("which country is Porto in", "porto"))  # fmt: skip
        found = solver.solve([question_about(solver.graph, text, text, X + key) for text, key in asked])
    assert [one.answers for one in found] == [("Porto",), (), ("Portugal",)]


def test_words_of_a_mention_that_a_reading_leaves_out_are_no_other_words(ask: Ask) -> None:
    assert ask("how many films are there", forms=("(COUNT (TYPE film))",)).answers
    found = ask("how many films has norland", "c0", forms=("(COUNT (TYPE film))",))
    assert not found.answers and found.reason is not None


def test_relation_is_named_by_its_whole_label_also_where_a_type_shares_its_words(
    scorer: LabelScorer, tmp_path: Path
) -> None:
    lines = [f"<{X}pie> <{X}has_topping> <{X}ham> .", f"<{X}pie> <{X}has_crust> <{X}thin> ."]
    lines += [f"<{X}pie{n}> <{X}has_topping> <{X}ham> ." for n in range(3)]
    named = (("pie", "Pie", "Pizza"), ("ham", "Ham", "PizzaTopping"), ("thin", "Thin", "PizzaTopping"))
    for key, name, kind in (*named, *((f"pie{n}", f"Pie {n}", "Pizza") for n in range(3))):
        lines += [f"<{X}{key}> <{TYPE}> <{X}{kind}> .", f'<{X}{key}> <{RDFS}label> "{name}"@en .']
    lines.append(f'<{X}Pizza> <{RDFS}label> "massa"@pt .')
    with KgStore.open(build_graph(tmp_path, lines)) as store:
        solver = AutoSolver(store, SymbolicOptions(), LabelModel(scorer.network, 2, FLAT))
        solver.parser = Preferring(solver.graph, scorer)
        solver.parser.wanted = lambda one: str(one.form) == f"(JOIN (R {X}has_topping) {X}pie)"
        texts = ("what toppings are on Pie", "what is on Pie")
        named_by_label, unnamed = solver.solve([question_about(solver.graph, "q", text, X + "pie") for text in texts])
        assert types_in("which pizzas", solver.graph) and types_in("which massa", solver.graph)
    assert named_by_label.answers == ("Ham",) and not unnamed.answers


def test_blank_node_and_comparison_of_dates_that_overlap_are_no_answer(scorer: LabelScorer, tmp_path: Path) -> None:
    born = {"a": ("Ama", "1950-06-01", "date"), "b": ("Bela", "1950", "gYear"), "c": ("Cato", "1962", "gYear")}
    lines = [f"<{X}a> <{X}address> _:home .", f"<{X}d> <{X}capital> <{X}e> ."]
    lines += [f"<{X}{city}> <{X}country> <{X}d> ." for city in "ef"]
    for key, name, kind in (("d", "Norland", "country"), ("e", "Eton", "city"), ("f", "Fenn", "city")):
        lines += [f"<{X}{key}> <{TYPE}> <{X}{kind}> .", f'<{X}{key}> <{RDFS}label> "{name}"@en .']
    for key, (name, text, kind) in born.items():
        lines.append(f'<{X}{key}> <{RDFS}label> "{name}"@en .')
        lines.append(f'<{X}{key}> <{X}date_of_birth> "{text}"^^<{XSD}{kind}> .')
    with KgStore.open(build_graph(tmp_path, lines)) as store:
        solver = AutoSolver(store, SymbolicOptions(), LabelModel(scorer.network, 2), 0.0)
        solver.parser = Preferring(solver.graph, scorer)
        wanted = tuple(f"(JOIN (R {X}{one})" for one in (f"address) {X}a", f"capital) {X}d"))
        solver.parser.wanted = lambda one: str(one.form).startswith(("(LESS", *wanted))
        solver.parser.forms = ("(JOIN (R capital) d)",)
        about = [
            question_about(solver.graph, "q", text, *(X + key for key in topics))
            for text, topics in (("address of Ama", "a"), ("who is older, Ama or Bela", "ab"),
                                 ("who is older, Ama or Cato", "ac"), ("cities of Norland", "d"))
        ]  # fmt: skip
        address, overlap, apart, cities = solver.solve(about)
        sure = solver.at_confidence(0.5).solve(about[-1:])
    assert (address.answers, address.reason) == ((), "no fact") and "address" in str(address.missing)
    assert "LESS" not in str(overlap.form) and apart.answers == ("Ama",)
    assert cities.answers == ("Eton",) and not sure[0].answers


def test_word_of_training_questions_is_read_with_its_relations(graph: LabelGraph, scorer: LabelScorer) -> None:
    learnt = {"coastal": [X + "borders"], "upland": [X + "borders", X + "continent"], "nois": []}
    parser = Preferring(graph, scorer, 2, learnt)
    parser.wanted, parser.forms = lambda one: str(one.form).replace(X, "") == BORDERS, (BORDERS,)
    solver = AutoSolver(graph.store, SymbolicOptions(), LabelModel(scorer.network, 2, FLAT))
    solver.parser = parser

    def missing(text: str) -> str | None:
        [answer] = solver.solve([question_about(graph, "q", text, X + "c0")])
        return answer.missing

    assert missing("coastal noisy countries bordering Norland") is None
    assert missing("upland countries bordering Norland") == "upland"


def test_negated_question_takes_away_or_is_declined_by_the_negation(ask: Ask) -> None:
    users = "(JOIN borders c0)", BORDERS
    found = ask("which countries do not border Norland", "c0", forms=users)
    assert not set(found.answers) & {"Sudland", "Obara"} and "MINUS" not in "".join(users)
    without = ask("which countries don't border Norland", "c0", forms=("(MINUS (TYPE country) (JOIN borders c0))",))
    assert {"Estia", "Midland"} <= set(without.answers) and "Sudland" not in without.answers
    none = ask("who does not like Norland", "c0", forms=users)
    assert (none.answers, none.missing) == ((), "like")
    for text in ("does Norland not border Estia", "which countries border Norland"):
        forms = () if "not" in text else ("(MINUS (TYPE country) (JOIN borders c0))",)
        assert not ask(text, "c0", "c2", forms=forms).answers


@pytest.mark.parametrize(
    ("text", "topics", "form"),
    [
        ("which countries border Norland", ("c0",), "(HOLDS (TYPE country) c0)"),
        ("how many neighbours does Norland have", ("c0",), BORDERS),
        ("when was the capital of Norland built", ("c0",), CAPITAL),
        ("who was born in Norland City", ("city0",), "(COUNT (JOIN place_of_birth city0))"),
        ("where was Ada Stone born", ("p0",), "(JOIN (R date_of_birth) p0)"),
        ("the five largest countries", (), LARGEST),
        ("top 3 countries by population", (), LARGEST),
    ],
)  # fmt: skip
def test_answer_of_another_kind_than_the_question_wants_is_not_given(
    ask: Ask, text: str, topics: tuple[str, ...], form: str
) -> None:
    assert str(ask(text, *topics, forms=(form,)).form).replace(X, "") != form


@pytest.mark.parametrize(
    ("text", "words", "kind"),
    [
        ("which countries don't use the x", ["not"], "which"),
        ("films by x without y", ["without"], ""),
        ("countries outside x", ["outside"], ""),
        ("all countries but x", ["but"], ""),
        ("non-european countries", ["non"], ""),
        ("siblings of x other than y", ["other than"], ""),
        ("languages of neither x nor y", ["neither", "nor"], ""),
        ("who is the president of the continent", [], "person"),
        ("isn't x in y?", [], ""),
        ("x is in y, isn't it?", [], ""),
        ("no. of countries around x", [], ""),
        ("not only x but also y", [], ""),
        ("is x in y or not", [], ""),
        ("I don't know when x was born", [], "time"),
        ("language of the country where x is", [], ""),
        ("x was born when", [], "time"),
        ("tell me how many x there are", [], "number"),
    ],
)  # fmt: skip
def test_cues_of_a_question_are_its_negations_and_the_kind_of_its_answer(
    text: str, words: list[str], kind: str
) -> None:
    cues = cues_of(text, yes_no=text.startswith(("is", "x is")))
    assert ([word for _, word in cues.negations], cues.kind) == (words, kind)


def test_what_number_is_a_name_and_first_ranks_by_time() -> None:
    counts = {text: cues_of(text, yes_no=False).counts for text in ("what number do i call in x", "what number of y")}
    assert counts == {"what number do i call in x": False, "what number of y": True}
    timed = {text: cues_of(text, yes_no=False).timed for text in ("x 's first wife", "first n with most y", "in x")}
    assert timed == {"x 's first wife": True, "first n with most y": False, "in x": False}


def test_lower_case_word_of_an_operation_is_no_mention(graph: LabelGraph, scorer: LabelScorer) -> None:
    question = question_about(graph, "q", "country with the most neighbours", X + "c0")
    linked = replace(question, topic_keys=("most",), topic_weights=(0.9,), topic_mentions=(0,))
    [query] = LabelParser(graph, scorer).read([linked])
    assert (query.text, query.slots) == ("country with the most neighbours", ())


def test_person_is_read_where_one_asks_who_and_the_union_of_two_is_an_answer(ask: Ask) -> None:
    forms = ("(OR (JOIN (R directed_by) f0) (JOIN (R directed_by) f1))",)
    found = ask("the person that directed f0 or the person that directed f1", "f0", "f1", forms=forms)
    assert found.reason is None and len(found.answers) == 2


@pytest.mark.parametrize("text", ["Was ist die Hauptstadt von Norland?", "Norland 的首都是哪里？"])
def test_a_question_in_another_language_than_the_labels_is_not_understood(ask: Ask, text: str) -> None:
    found = ask(text, "c0", forms=(CAPITAL,))
    assert (found.answers, found.reason, found.confidence, found.readings) == ((), "not understood", None, ())
    answer = Answer("q", text, None, answerable=False, reason=found.reason, missing=found.missing)
    assert (answer.decline or "").startswith("I did not understand the question: it seems to be in ")
    assert ask(text, "c0", forms=(CAPITAL,), least=0.0).reason != "not understood"  # all that is found is answered
