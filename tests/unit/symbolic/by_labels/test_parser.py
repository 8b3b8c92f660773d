"""The label parser: candidates with phrases and features, ranked by their scores, the same alone and in a batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kgqa_core.logic.forms import Count
from kgqa_core.logic.parser import parse
from kgqa_core.symbolic.by_labels.candidates import KINDS, LabelQuery
from kgqa_core.symbolic.by_labels.examples import candidate_of
from kgqa_core.symbolic.by_labels.graph import LabelGraph
from kgqa_core.symbolic.by_labels.parser import SCORED, LabelParser, answers_of, none_features
from kgqa_core.symbolic.by_labels.scorer import FEATURES, LabelScorer
from kgqa_core.types import Question
from tests.support.label_graph import X, question_about, slot_of


@pytest.fixture(scope="module")
def parser(graph: LabelGraph, scorer: LabelScorer) -> LabelParser:
    return LabelParser(graph, scorer)


def questions(graph: LabelGraph) -> list[Question]:
    return [
        question_about(graph, "a", "what is the capital of Norland", X + "c0"),
        question_about(graph, "b", "which countries does Estia border", X + "c2"),
        question_about(graph, "c", "films directed by Ada Stone with genre drama", X + "p0", X + "g0"),
        question_about(graph, "d", "why is that so"),
    ]


def test_candidate_with_the_labels_of_the_question_comes_first_even_untrained(
    graph: LabelGraph, parser: LabelParser
) -> None:
    best = [str(ranked.candidates[0].form).replace(X, "") for ranked in parser.parse(questions(graph)[:1])]
    assert best == ["(JOIN (R capital) c0)"]


def test_candidates_are_ordered_by_their_scores_and_at_most_so_many(graph: LabelGraph, parser: LabelParser) -> None:
    for ranked in parser.parse(questions(graph)):
        assert ranked.scores == sorted(ranked.scores, reverse=True)
        assert sorted(ranked.order) == list(range(len(ranked.prepared.candidates)))
        assert len(ranked.candidates) <= SCORED and ranked.likeness.shape == (len(ranked.order), 4)
        assert len(ranked.prepared.texts) == len(ranked.prepared.candidates)
    assert parser.parse(questions(graph))[3].candidates == []


def test_batch_has_the_candidates_and_scores_of_single_questions(graph: LabelGraph, parser: LabelParser) -> None:
    together = parser.parse(questions(graph))
    for ranked, question in zip(together, questions(graph), strict=True):
        [alone] = parser.parse([question])
        assert {str(one.form) for one in alone.candidates} == {str(one.form) for one in ranked.candidates}
        assert np.allclose(alone.scores, ranked.scores, atol=1e-3) and abs(alone.none - ranked.none) < 1e-3


def test_same_questions_have_the_same_scores_again(graph: LabelGraph, parser: LabelParser) -> None:
    first, second = parser.parse(questions(graph)), parser.parse(questions(graph))
    assert [one.scores for one in first] == [one.scores for one in second]


def test_phrases_name_slots_and_no_keys(graph: LabelGraph, parser: LabelParser) -> None:
    for ranked in parser.parse(questions(graph)):
        assert not [text for text in ranked.prepared.texts if "http" in text or "Norland" in text]


def test_features_are_finite_and_say_what_is_known(graph: LabelGraph, parser: LabelParser) -> None:
    query = LabelQuery("how many films has x directed", (slot_of(graph, "x", X + "p0", X + "p1"),))
    forms = [f"(COUNT (JOIN <{X}directed_by> <{X}p0>))", f"(JOIN <{X}directed_by> <{X}p15>)", f"(TYPE <{X}film>)"]
    candidates = [one for text in forms if (one := candidate_of(parse(text), query, graph)) is not None]
    guess = [np.log(np.full(size, 1 / size, dtype=np.float32)) for size in (len(KINDS), 2, 2)]
    rows = parser.features(query, candidates, guess, np.zeros(2 * graph.relations))
    assert rows.shape == (3, FEATURES) and np.isfinite(rows).all()
    assert rows[:, 4].tolist() == [0, -1, -1]  # weight of mentions that a form leaves out
    assert rows[:, 6].tolist() == [0, 1, 0]  # finds nothing
    assert rows[:, 16].tolist() == [1, 1, 1]  # share of its labels' words that the question has
    assert rows[:, 17].tolist() == [0.5, 0.5, 0.5]  # share of the question's words, films and directed, that they are


def test_proposed_form_is_added_once_with_its_road(graph: LabelGraph, parser: LabelParser) -> None:
    [query] = parser.read(questions(graph)[:1])
    known = candidate_of(parse(f"(JOIN (R <{X}capital>) <{X}c0>)"), query, graph)
    far = candidate_of(
        parse(f"(JOIN (R <{X}capital>) (JOIN (R <{X}borders>) (JOIN (R <{X}borders>) <{X}c0>)))"), query, graph
    )
    assert known is not None and far is not None
    [prepared] = parser.prepare([("a", query)], proposed=[[(known, "retriever"), (far, "retriever"), (far, "parser")]])
    assert [str(one.form) for one in prepared.candidates if one.road != "labels"] == [str(far.form)]
    assert prepared.candidates[-1].road == "retriever"
    assert prepared.features.shape == (len(prepared.candidates), FEATURES)


def test_most_cuts_candidates_of_each_question(graph: LabelGraph, parser: LabelParser) -> None:
    queries = [(one.id, query) for one, query in zip(questions(graph), parser.read(questions(graph)), strict=True)]
    assert [len(one.candidates) for one in parser.prepare(queries, most=3)] == [3, 3, 3, 0]


def test_none_is_judged_from_the_best_candidates(graph: LabelGraph) -> None:
    query = LabelQuery("x", (slot_of(graph, "x", X + "c0"),))
    row = none_features(
        torch.tensor([1.0, 5.0, 3.0]), torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.1, 0.0], [0, 0, 0]]), query
    )
    assert torch.allclose(row, torch.tensor([[0.5, 0.3, 0.4, 0.2, 0.3, 1.0]]))
    empty = none_features(torch.zeros(0), torch.zeros(0, 4), torch.zeros(0, 24), LabelQuery("x"))
    assert empty.tolist() == [[-1.0, -1.0, 0.0, 0.0, 0.0, 0.0]]


def test_answers_are_names_numbers_or_yes_and_no(graph: LabelGraph) -> None:
    def answers(text: str) -> tuple[str, ...]:
        made = candidate_of(parse(text), LabelQuery("?"), graph)
        assert made is not None
        return answers_of(made, graph)

    assert answers(f"(JOIN (R <{X}borders>) <{X}c0>)") == ("Sudland", "Obara")
    assert answers(f"(COUNT (JOIN (R <{X}borders>) <{X}c0>))") == ("2",)
    assert answers(f"(HOLDS (JOIN (R <{X}borders>) <{X}c0>) <{X}c1>)") == ("yes",)
    assert answers(f"(HOLDS (JOIN (R <{X}borders>) <{X}c0>) <{X}c4>)") == ("no",)
    assert answers(f"(JOIN (R <{X}population>) <{X}c0>)") == ("1000000",)


def test_parser_is_cleared_when_weights_change(graph: LabelGraph, scorer: LabelScorer) -> None:
    own = LabelParser(graph, scorer, hops=1)
    [ranked] = own.parse(questions(graph)[:1])
    assert own._way_block is not None and not any(len(one.ways) > 1 and one.kind == 0 for one in ranked.candidates)
    own.clear()
    assert own._way_block is None
    assert not isinstance(ranked.candidates[0].form, Count)
