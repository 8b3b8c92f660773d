"""The label parser: candidates with phrases and features, ranked by their scores, the same alone and in a batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kgqa_core.logic.forms import Count
from kgqa_core.logic.parser import parse
from kgqa_core.symbolic.by_labels.candidates import KINDS, LabelQuery, Slot
from kgqa_core.symbolic.by_labels.examples import candidate_of
from kgqa_core.symbolic.by_labels.graph import LabelGraph
from kgqa_core.symbolic.by_labels.parser import (
    EXPLAINED,
    OUTWARD,
    SCORED,
    UNUSED,
    WORST,
    LabelParser,
    WayFit,
    answers_of,
    none_features,
)
from kgqa_core.symbolic.by_labels.scorer import FEATURES, LIKENESS, NONE_FEATURES, LabelScorer
from kgqa_core.types import Question
from tests.support.label_graph import X, question_about, slot_of, way_of


@pytest.fixture(scope="module")
def parser(graph: LabelGraph, scorer: LabelScorer) -> LabelParser:
    return LabelParser(graph, scorer)


def no_fit(graph: LabelGraph) -> WayFit:
    """No way has anything in common with the text."""
    return WayFit(np.zeros(2 * graph.relations), np.zeros(2 * graph.relations))


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
        assert len(ranked.candidates) <= SCORED and ranked.likeness.shape == (len(ranked.order), LIKENESS)
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
    rows = parser.features(query, candidates, guess, no_fit(graph))
    assert rows.shape == (3, FEATURES) and np.isfinite(rows).all()
    assert rows[:, 4].tolist() == [0, -1, -1]  # weight of mentions that a form leaves out
    assert rows[:, 6].tolist() == [0, 1, 0]  # finds nothing
    assert rows[:, 16].tolist() == [1, 1, 1]  # share of its labels' words that the question has
    assert rows[:, 17].tolist() == [0.5, 0.5, 0.5]  # share of the question's words, films and directed, that they are


def features_of(parser: LabelParser, query: LabelQuery, *forms: str) -> np.ndarray:
    """Features of forms, whose keys are written without their prefix in <>."""
    made = [candidate_of(parse(form.replace("<", f"<{X}")), query, parser.graph) for form in forms]
    guess = [np.log(np.full(size, 1 / size, dtype=np.float32)) for size in (len(KINDS), 2, 2)]
    own = [one for one in made if one is not None]
    assert len(own) == len(forms)
    return parser.features(query, own, guess, no_fit(parser.graph))


YES_NO = ["is x in y", "hey , does x border y ?", "isn't x a country", "tell me whether x borders y", "and are x big",
          "is it true that x is big", "x borders y, right?", "please, can x border y", "so is x or not"]  # fmt: skip
NO_YES_NO = ["what is x", "who is x married to", "can you tell me what x is", "could you please tell me what x borders",
             "do you know the capital of x", "does anybody know what x is", "would someone list what x borders",
             "the capital of x is what", "how many does x have", "island x"]  # fmt: skip


@pytest.mark.parametrize(("text", "fits"), [*((one, True) for one in YES_NO), *((one, False) for one in NO_YES_NO)])
def test_yes_or_no_fits_a_question_that_is_asked_like_one(
    graph: LabelGraph, parser: LabelParser, text: str, fits: bool
) -> None:
    query = LabelQuery(text, (slot_of(graph, "x", X + "c0"), slot_of(graph, "y", X + "c1")))
    forms = ("(HOLDS (JOIN (R <borders>) <c0>) <c1>)", "(JOIN (R <borders>) <c0>)", "(COUNT (JOIN (R <borders>) <c0>))")
    yes = 0.5 if fits else -0.5
    assert features_of(parser, query, *forms)[:, 14].tolist() == [yes, -yes, -yes]


def test_answer_is_or_is_not_of_the_first_type_that_is_named(graph: LabelGraph, parser: LabelParser) -> None:
    types = tuple((graph.type_of_key[X + name], 1.0) for name in ("country", "city"))
    forms = (
        "(JOIN (R <borders>) <c0>)", "(JOIN (R <capital>) <c0>)", "(COUNT (TYPE <country>))",
        "(HOLDS (TYPE <country>) <c0>)",
    )  # fmt: skip
    text, slots = "what x", (slot_of(graph, "x", X + "c0"),)
    first = features_of(parser, LabelQuery(text, slots, types), *forms)[:, 15]
    other = features_of(parser, LabelQuery(text, slots, types[::-1]), *forms)[:, 15]
    none = features_of(parser, LabelQuery(text, slots), *forms)[:, 15]
    assert first.tolist() == [0.5, -0.5, 0, 0] and other.tolist() == [-0.5, 0.5, 0, 0] and not none.any()
    # a type counts with those below it
    place = ((graph.type_of_key[X + "place"], 1.0),)
    assert features_of(parser, LabelQuery(text, slots, place), *forms)[:, 15].tolist() == [-0.5, 0.5, 0, 0]


def test_all_types_with_the_label_of_the_first_count_as_it(
    graph: LabelGraph, parser: LabelParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    types = tuple((graph.type_of_key[X + name], 1.0) for name in ("film", "city"))
    query = LabelQuery("what x", (slot_of(graph, "x", X + "c0"),), types)
    forms = ("(JOIN (R <capital>) <c0>)", "(JOIN (R <borders>) <c0>)")
    assert features_of(parser, query, *forms)[:, 15].tolist() == [-0.5, -0.5]
    monkeypatch.setattr(graph, "type_labels", ["film" if text == "city" else text for text in graph.type_labels])
    assert features_of(parser, query, *forms)[:, 15].tolist() == [0.5, -0.5]


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
    slots = (slot_of(graph, "x", X + "c0"), Slot("y", ((0, "a", 0.25), (1, "b", 0.5))))
    query = LabelQuery("x y", slots, strange=2)
    likeness = torch.tensor([[0.9, 0.9, 0.9, 0.9], [0.4, 0.1, 0.0, 0.7], [0.8, 0.8, 0.8, 0.8]])
    features = torch.ones(3, FEATURES)
    features[1, EXPLAINED], features[1, UNUSED], features[1, WORST] = 0.6, -0.3, 0.8
    row = none_features(torch.tensor([1.0, 5.0, 3.0]), likeness, features, query)
    # two scores, likenesses of the best, surest and least sure mention, strange words, three features of the best
    expected = [0.5, 0.3, 0.4, 0.1, 0.0, 0.7, 1.0, 0.5, 2 / 3, 0.6, -0.3, 0.8]
    assert row.shape == (1, NONE_FEATURES) and torch.allclose(row, torch.tensor([expected]))
    alone = none_features(torch.tensor([5.0]), likeness[1:2], features[1:2], LabelQuery("x", strange=7))
    assert torch.allclose(alone, torch.tensor([[0.5, -1.0, 0.4, 0.1, 0.0, 0.7, 0.0, 0.0, 1.0, 0.6, -0.3, 0.8]]))


def test_none_of_a_question_without_candidates_is_judged_from_how_it_was_linked(graph: LabelGraph) -> None:
    nothing = torch.zeros(0), torch.zeros(0, LIKENESS), torch.zeros(0, FEATURES)
    assert none_features(*nothing, LabelQuery("x")).tolist() == [[-1.0, -1.0, 0, 0, 0, 1.0, 0, 0, 0, 0, 0, 0]]
    linked = none_features(*nothing, LabelQuery("x", (slot_of(graph, "x", X + "c0"),), strange=3))
    assert linked.tolist() == [[-1.0, -1.0, 0, 0, 0, 1.0, 1.0, 1.0, 1.0, 0, 0, 0]]
    assert linked.shape == (1, NONE_FEATURES)


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


def test_path_whose_relations_the_text_names_away_from_its_mention_is_in_order(graph: LabelGraph) -> None:
    query = LabelQuery("genre of the films directed by x", (slot_of(graph, "x", X + "p0"),))
    made = candidate_of(parse(f"(JOIN (R <{X}has_genre>) (JOIN <{X}directed_by> <{X}p0>))"), query, graph)
    assert made is not None and made.ways == (way_of(graph, "directed_by", back=True), way_of(graph, "has_genre"))
    places, likeness = np.zeros(2 * graph.relations), np.zeros(2 * graph.relations)
    places[list(made.ways)], likeness[list(made.ways)] = (5, 1), (0.9, 0.4)
    assert WayFit(likeness, places, (7.0,)).outward(made) == pytest.approx(np.tanh(2))
    assert WayFit(likeness, places, (1.0,)).outward(made) == pytest.approx(-np.tanh(2))
    assert WayFit(likeness, places, (7.0,)).worst(made) == 0.4
    one = candidate_of(parse(f"(JOIN <{X}directed_by> <{X}p0>)"), query, graph)
    assert one is not None and WayFit(likeness, places, (7.0,)).outward(one) == 0
    kind = candidate_of(parse(f"(TYPE <{X}film>)"), query, graph)
    assert kind is not None and WayFit(likeness, places, (7.0,)).worst(kind) == 0


def test_order_is_read_from_the_words_of_the_text(graph: LabelGraph, parser: LabelParser) -> None:
    query = LabelQuery("genre of the films directed by x", (slot_of(graph, "x", X + "p0"),))
    other = LabelQuery("x directed films of what genre", query.slots)
    for own, slot in ((query, 7), (other, 1)):
        fit = parser.way_fit(own, parser.scorer.questions([own.text]), 0)
        assert fit.slots == (slot,) and fit.places.min() >= 1 and fit.places.max() <= len(own.text.split())
    genre, directed = way_of(graph, "has_genre"), way_of(graph, "directed_by")
    assert fit.places[genre] > fit.places[directed]
    forms = [f"(JOIN (R <{X}has_genre>) (JOIN <{X}directed_by> <{X}p0>))", f"(JOIN <{X}directed_by> <{X}p0>)"]
    made = [one for text in forms if (one := candidate_of(parse(text), other, graph)) is not None]
    guess = [np.log(np.full(size, 1 / size, dtype=np.float32)) for size in (len(KINDS), 2, 2)]
    rows = parser.features(other, made, guess, fit)
    assert rows[0, OUTWARD] > 0 and rows[1, OUTWARD] == 0
    assert rows[:, WORST].tolist() == pytest.approx([fit.worst(one) for one in made])


def test_empty_text_has_no_places(graph: LabelGraph, parser: LabelParser) -> None:
    query = LabelQuery("", (slot_of(graph, "x", X + "p0"),))
    fit = parser.way_fit(query, parser.scorer.questions([""]), 0)
    assert np.isfinite(fit.places).all() and len(fit.slots) == 1
