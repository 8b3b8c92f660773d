"""The answerer `auto`: one scale for the forms of all roads, answers with proof, and reasons where it declines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.config import KgOptions, SymbolicOptions
from kgqa_core.datasets.derived.splits import QuestionSample
from kgqa_core.datasets.files.answers import ROAD_SCHEMA
from kgqa_core.datasets.files.answers import SCHEMA as ANSWERS
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.errors import FormTimeout, InputError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import execute
from kgqa_core.logic.parser import parse
from kgqa_core.retrieval.collect import write_paths, write_retrieved
from kgqa_core.search.candidates import Candidate
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic import auto
from kgqa_core.symbolic.answer import answer_computed
from kgqa_core.symbolic.auto import GIVEN, UNCALIBRATED, AutoSolver
from kgqa_core.symbolic.by_labels.calibrate import INPUTS, Calibration
from kgqa_core.symbolic.by_labels.model import LabelModel, save, untrained
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.symbolic.compute import Calculator, ComputeInputs, compute
from kgqa_core.symbolic.tables import SCHEMA, ComputedAnswer, read_computed
from kgqa_core.types import ENTITY, FACT, OFFERED, RELATION, TYPE, UNSURE, Question, Retrieved
from kgqa_core.workspace import Workspace
from tests.support.label_graph import Preferring, X, question_about

FLAT = Calibration((1.0,) + (0.0,) * (INPUTS - 1), 0.0, 0.5)
"""Confidence is the answer's probability."""
CAPITAL = "(JOIN (R capital) c0)"
FAR = "(JOIN (R capital) (JOIN (R borders) (JOIN (R borders) c0)))"


def form_is(*texts: str) -> Callable[[Candidate], bool]:
    return lambda one: str(one.form).replace(X, "") in texts


def full(form: str) -> str:
    """A form with the keys of the graph."""
    for name in ("capital", "borders", "directed_by", "starred_actors", "country", "c0", "film", "nowhere"):
        form = form.replace(f" {name})", f" {X}{name})").replace(f" {name} ", f" {X}{name} ")
    return form


@pytest.fixture
def make(graph: LabelGraph, scorer: LabelScorer) -> Callable[..., AutoSolver]:
    """Solvers that prefer the candidates that a rule accepts."""

    def made(
        wanted: Callable[[Candidate], bool],
        none: float = 0.0,
        calibration: Calibration | None = None,
        min_confidence: float | None = None,
        **options: Any,
    ) -> AutoSolver:
        model = LabelModel(scorer.network, 2, calibration)
        solver = AutoSolver(graph.store, SymbolicOptions(**options), model, min_confidence)
        solver.parser = Preferring(solver.graph, scorer)
        solver.parser.wanted, solver.parser.none = wanted, none
        return solver

    return made


def ask(solver: AutoSolver, text: str, *names: str, **more: Any) -> ComputedAnswer:
    [found] = solver.solve([question_about(solver.graph, "q", text, *(X + name for name in names))], **more)
    return found


def test_answer_has_its_form_proof_topics_and_road(make: Callable[..., AutoSolver]) -> None:
    solver = make(form_is(CAPITAL), calibration=FLAT)
    found = ask(solver, "what is the capital of Norland?", "c0")
    assert (found.answers, found.keys, found.road, found.kind) == (("Norland City",), (X + "city0",), "labels", "none")
    assert str(found.form).replace(X, "") == CAPITAL and found.topics == ("Norland",)
    assert found.proof == execute(parse(full(CAPITAL)), solver.store).proof and len(found.proof) == 1
    assert found.confidence is not None and found.confidence > 0.9 and (found.reason, found.missing) == (None, None)
    assert found.tried > 1 and "capital" in found.words


RECIPE = f"""@prefix : <{X}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:soup rdfs:label "Soup" ; :step ( :cut :add :boil ) ; :sold_at [ :street "1 Quay" ] , [] ; :kept_in [] .
:stew rdfs:label "Stew" ; :step ( :boil :cut ) .
:cut rdfs:label "cut" . :add rdfs:label "add" . :boil rdfs:label "boil" ."""


@pytest.fixture
def cook(tmp_path: Path, scorer: LabelScorer) -> Iterator[Callable[..., ComputedAnswer]]:
    """What is answered of a graph of recipes, where a form is preferred."""
    (tmp_path / "recipes.ttl").write_text(RECIPE)
    build(Workspace(tmp_path), options=KgOptions(files=(str(tmp_path / "recipes.ttl"),)))
    with KgStore.open(tmp_path) as store:
        solver = AutoSolver(store, SymbolicOptions(), LabelModel(scorer.network, 2, None))
        solver.parser = Preferring(solver.graph, LabelScorer(scorer.network))

        def answered(text: str, name: str, form: str) -> ComputedAnswer:
            solver.parser.wanted, solver.parser.none = form_is(form), 0.0
            return ask(solver, text, name)

        answered.told = lambda solved: Calculator(store, solver).reply(solved)["computed"]  # type: ignore[attr-defined]
        yield answered


def test_members_of_a_list_are_answered_in_the_order_of_the_file(cook: Callable[..., ComputedAnswer]) -> None:
    assert cook("what are the steps of Soup?", "soup", "(JOIN (R step) soup)").answers == ("cut", "add", "boil")
    assert cook("what are the steps of Stew?", "stew", "(JOIN (R step) stew)").answers == ("boil", "cut")


def test_a_blank_node_without_parts_is_left_out_with_a_count_or_declined(cook: Callable[..., ComputedAnswer]) -> None:
    sold = cook("where is Soup sold at?", "soup", "(JOIN (R sold_at) soup)")
    assert (sold.answers, len(sold.keys), sold.unnamed) == (("1 Quay",), 1, 1)
    assert cook.told(sold) == "1 Quay (and 1 without a name)"  # type: ignore[attr-defined]
    kept = cook("where is Soup kept in?", "soup", "(JOIN (R kept_in) soup)")
    assert (kept.answers, kept.reason, kept.confidence) == ((), FACT, None) and "names of the kept in" in str(
        kept.missing
    )


def test_forms_of_retriever_and_parser_carry_their_roads(make: Callable[..., AutoSolver]) -> None:
    text = "capitals around the neighbours of Norland"
    path = (f"{X}borders", f"{X}borders", f"{X}capital")
    walked = ask(make(form_is(FAR)), text, "c0", paths={"q": [(path, 0.9)]})
    assert walked.road == "retriever" and len(walked.answers) == 2
    parsed = ask(make(form_is(FAR)), text, "c0", parsed={"q": [("(JOIN", 0.0), (full(FAR), -1.0)]})
    assert (parsed.road, parsed.answers) == ("parser", walked.answers)
    both = ask(make(form_is(FAR)), text, "c0", paths={"q": [(path, 0.9)]}, parsed={"q": [(full(FAR), 0.0)]})
    assert both.road == "retriever"
    known = ask(make(form_is(CAPITAL)), "capital of Norland", "c0", parsed={"q": [(full(CAPITAL), 0.0)]})
    assert known.road == "labels"


def test_proposed_forms_that_find_nothing_or_cannot_run_are_no_candidates(make: Callable[..., AutoSolver]) -> None:
    texts = ("(JOIN (R nowhere) c0)", "(JOIN directed_by c0)")
    found = ask(
        make(lambda one: one.road == "parser"), "x of Norland", "c0", parsed={"q": [(full(t), 0.0) for t in texts]}
    )
    assert found.form is None


def test_declined_question_names_what_the_graph_lacks(make: Callable[..., AutoSolver]) -> None:
    found = ask(make(form_is(), none=20.0, calibration=FLAT), "Who is the president of Norland?", "c0")
    assert (found.reason, found.missing) == (RELATION, "president")
    assert (found.form, found.answers, found.proof, found.road) == (None, (), (), None)
    assert found.confidence is not None and found.confidence < 0.5


def test_topics_that_are_given_make_it_likelier_that_the_graph_has_a_form(make: Callable[..., AutoSolver]) -> None:
    solver = make(form_is(CAPITAL), none=10.0 + GIVEN / 2)
    given = question_about(solver.graph, "given", "capital of Norland", X + "c0")
    linked = replace(given, id="linked", topic_weights=(1.0,))
    answered, declined = solver.solve([given, linked])
    assert answered.answers == ("Norland City",) and answered.weight > 0.5
    assert declined.reason == UNSURE and declined.answers == ()


def test_an_unsure_question_offers_its_readings_and_the_chosen_one_is_answered_with_its_proof(
    make: Callable[..., AutoSolver],
) -> None:
    solver = make(form_is(CAPITAL), none=10.0 + GIVEN / 2, calibration=FLAT)
    question = replace(question_about(solver.graph, "q", "capital of Norland", X + "c0"), topic_weights=(1.0,))
    [found] = solver.solve([question])
    assert found.reason == UNSURE and found.form is None and 2 <= len(found.readings) <= OFFERED
    chances = [one.confidence or 0.0 for one in found.readings]
    assert chances == sorted(chances, reverse=True) and chances[0] == found.confidence
    for number, reading in enumerate(found.readings, start=1):
        [chosen] = solver.at_reading(number).solve([question])
        assert (str(chosen.form), chosen.answers[:5], chosen.reason) == (reading.form, reading.answers, None)
        assert chosen.proof and len(chosen.answers) == reading.rows and reading.words
    with pytest.raises(InputError, match="there is no reading 9 of 'capital of Norland', which offers"):
        solver.at_reading(9).solve([question])


def test_what_is_not_in_the_graph_is_a_name_a_type_or_a_relation(make: Callable[..., AutoSolver]) -> None:
    solver = make(form_is(CAPITAL), none=20.0)
    for text, reason, missing in (
        ("what is the capital of Norland in Middle Earth", ENTITY, "Middle Earth"),
        ("airports of Norland", TYPE, "airports"),
        ("which crew works in Norland", TYPE, "crew"),
        ("capital anthem of Norland", RELATION, "anthem"),
    ):
        found = ask(solver, text, "c0")
        assert (found.reason, found.missing, found.readings) == (reason, missing, ())


def test_words_of_the_best_form_are_not_missing(graph: LabelGraph, make: Callable[..., AutoSolver]) -> None:
    solver = make(form_is(CAPITAL), none=20.0)
    solver.graph.labels[solver.graph.memory.relation_ids[X + "capital"]] = "Capital"
    found = ask(solver, "capital anthem of Norland", "c0")
    assert (found.reason, found.missing) == (RELATION, "anthem")


def test_what_others_have_several_of_is_none_or_0_where_one_has_none(make: Callable[..., AutoSolver]) -> None:
    found = ask(make(form_is("(JOIN directed_by p12)")), "films directed by Mia Stone", "p12")
    assert (found.answers, found.reason) == (("none",), None)
    counted = ask(make(form_is("(COUNT (JOIN directed_by p12))")), "how many films did Mia Stone direct", "p12")
    assert counted.answers == ("0",)


def test_question_about_nothing_in_the_graph_lacks_its_entity(make: Callable[..., AutoSolver]) -> None:
    found = ask(make(form_is()), "how old is zanzibar")
    assert (found.reason, found.confidence, found.tried, found.topics) == (ENTITY, None, 0, ())
    assert "zanzibar" in (found.missing or "")
    assert ask(make(form_is()), "why").missing is None


def test_without_a_calibration_there_is_no_confidence(make: Callable[..., AutoSolver]) -> None:
    solver = make(form_is(CAPITAL))
    assert solver.threshold == UNCALIBRATED
    assert ask(solver, "what is the capital of Norland", "c0").confidence is None
    assert ask(make(form_is(CAPITAL), none=20.0), "what is the capital of Norland", "c0").confidence is None


def test_least_confidence_is_the_callers_or_that_of_the_calibration(make: Callable[..., AutoSolver]) -> None:
    even = 10.0 + GIVEN  # as likely as the answer
    for none, least, answered in (
        (even - 1, None, True),
        (even - 1, 0.99, False),
        (even + 1, None, False),
        (even + 1, 0.1, True),
        (even + 1, 0.0, True),
    ):
        found = ask(make(form_is(CAPITAL), none, FLAT, least), "capital of Norland", "c0")
        assert bool(found.answers) is answered and (found.reason is None) is answered
        assert found.min_confidence == (0.5 if least is None else least)
        assert found.confidence is not None and (found.confidence >= found.min_confidence) is answered
    strict = Calibration(FLAT.weights, 0.0, 0.9)
    assert make(form_is(), calibration=strict).threshold == 0.9
    assert make(form_is(), calibration=strict, min_confidence=0.2).threshold == 0.2


@pytest.mark.parametrize(
    ("text", "answered"),
    [
        ("does Norland border Midland", True), ("Norland borders Midland?", True),
        ("true that Norland is by Midland", True), ("neighbours Norland Midland", False),
    ],
)  # fmt: skip
def test_yes_or_no_answers_what_may_ask_for_it(make: Callable[..., AutoSolver], text: str, answered: bool) -> None:
    found = ask(make(form_is("(HOLDS (JOIN (R borders) c0) c4)"), min_confidence=0.0), text, "c0", "c4")
    assert (found.kind == "yes/no") is answered


def test_cut_answers_are_marked_and_in_order_of_id(make: Callable[..., AutoSolver]) -> None:
    wanted = form_is("(TYPE film)")
    whole, cut = (ask(make(wanted, max_answers=most), "all films") for most in (200, 3))
    assert len(whole.answers) == 40 and not whole.truncated
    assert cut.answers == whole.answers[:3] and cut.keys == whole.keys[:3] and cut.truncated


def test_values_are_their_own_keys_and_a_no_has_proof(make: Callable[..., AutoSolver]) -> None:
    count = ask(make(form_is("(COUNT (JOIN (R borders) c0))")), "how many border Norland", "c0")
    assert (count.answers, count.keys, count.kind, len(count.proof)) == (("2",), ("2",), "count", 2)
    no = ask(make(form_is("(HOLDS (JOIN (R borders) c0) c4)")), "does Norland border Midland", "c0", "c4")
    assert (no.answers, no.kind, len(no.proof)) == (("no",), "yes/no", 2)


def test_topic_that_is_a_text_has_its_text_for_a_name(make: Callable[..., AutoSolver]) -> None:
    found = ask(make(form_is('(JOIN call_sign "KX12")')), "which station is kx12")
    assert (found.answers, found.topics) == (("Radio North",), ("KX12",))
    walked = ask(make(form_is()), "which station is kx12", paths={"q": [((f"{X}call_sign",), 1.0)]})
    assert walked.topics == ("KX12",)


def test_form_too_slow_to_prove_is_answered_without_proof(
    make: Callable[..., AutoSolver], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: Any, **__: Any) -> None:
        raise FormTimeout("too slow")

    monkeypatch.setattr(auto, "execute", slow)
    solver = make(form_is(CAPITAL))
    found = ask(solver, "capital of Norland", "c0")
    assert (found.answers, found.proof, solver.timeouts) == (("Norland City",), (), 1)


@pytest.fixture(scope="module")
def questions(graph: LabelGraph) -> list[Question]:
    texts = [
        ("what is the capital of Norland", "c0"), ("which countries does Estia border", "c2"),
        ("how many films are there",), ("who is the president of Obara", "c7"), ("what is the weather like",),
        ("films with Ada Stone and genre drama", "p0", "g0"), ("which station has the call sign KX12",),
    ]  # fmt: skip
    return [
        question_about(graph, f"q{n}", text, *(X + name for name in names)) for n, (text, *names) in enumerate(texts)
    ]


def test_many_questions_are_answered_as_each_alone(
    graph: LabelGraph, scorer: LabelScorer, questions: list[Question]
) -> None:
    solver = AutoSolver(graph.store, SymbolicOptions(), LabelModel(scorer.network, 2, FLAT))
    together = solver.solve(questions)
    assert [one.question for one in together] == [question.id for question in questions]
    assert together[0].answers == ("Norland City",)
    for found, question in zip(together, questions, strict=True):
        [alone] = solver.solve([question])
        assert alone.confidence == pytest.approx(found.confidence, abs=1e-3)
        for name in ("form", "answers", "keys", "proof", "road", "reason", "missing", "tried", "topics", "words"):
            assert getattr(alone, name) == getattr(found, name), name
    assert solver.solve(questions) == together


def test_solver_without_a_model_starts_from_the_packaged_one(graph: LabelGraph, questions: list[Question]) -> None:
    solver = AutoSolver(graph.store, SymbolicOptions())
    found = solver.solve(questions[:1])[0]
    assert found.answers == ("Norland City",)


@pytest.fixture(scope="module")
def computed(
    label_kg: Path, questions: list[Question], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    """A `computed` artifact of `auto`, and its counts."""
    base = tmp_path_factory.mktemp("auto")
    folders = {name: base / name for name in ("questions", "facts", "label_parser", "out")}
    for folder in folders.values():
        folder.mkdir()
    write_questions(folders["questions"], questions)
    write_retrieved(folders["facts"], "hop_path", [Retrieved(question.id, ()) for question in questions])
    write_paths(folders["facts"], {"q0": [((f"{X}capital",), 1.0)]})
    save(folders["label_parser"], LabelModel(untrained(7), 2, FLAT))
    counts = compute(
        Workspace(folders["out"]),
        ComputeInputs(label_kg, folders["questions"], folders["facts"], label_parser=folders["label_parser"]),
        QuestionSample(split="test", limit=None, seed=7),
        SymbolicOptions(),
    )
    return folders["out"], counts


def test_table_of_auto_has_confidence_road_reason_and_what_is_missing(computed: tuple[Path, dict[str, Any]]) -> None:
    folder, counts = computed
    frame = pl.read_parquet(folder / "computed.parquet")
    assert dict(frame.schema) == SCHEMA
    assert {"confidence", "road", "reason", "missing"} <= set(frame.columns)
    assert counts["questions"] == 7 and sum(counts["roads"].values()) == counts["computed"] >= 2
    rows = {row["question"]: row for row in frame.iter_rows(named=True)}
    assert rows["q0"]["answers"] == ["Norland City"] and rows["q0"]["road"] == "labels" and rows["q0"]["reason"] is None
    assert rows["q4"]["reason"] == RELATION and rows["q4"]["road"] is None and rows["q4"]["missing"]
    assert all((row["reason"] is None) == bool(row["answers"]) for row in rows.values())
    assert all((row["confidence"] is None) is (row["reason"] in (ENTITY, FACT)) for row in rows.values())
    assert {row["min_confidence"] for row in rows.values()} == {0.5}


def test_answers_of_auto_have_the_road_and_the_confidence(
    computed: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, counts = computed
    answer_computed(Workspace(tmp_path), computed=folder, name="hop_path", answerer="auto")
    answers = pl.read_parquet(tmp_path / "answers.parquet")
    assert dict(answers.schema) == ANSWERS | ROAD_SCHEMA
    assert dict(answers["road"].drop_nulls().value_counts().iter_rows()) == counts["roads"]
    assert answers.filter(pl.col("road").is_null() != pl.col("abstained")).is_empty()
    expected = read_computed(folder, ("question", "road", "confidence"))
    assert answers.select(expected.columns).equals(expected)
