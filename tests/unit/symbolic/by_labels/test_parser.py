"""The label parser: candidates with phrases and features, ranked by their scores, the same alone and in a batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import BESTS, Class, Count, Entity, Join, Step
from kgqa_core.logic.lookup import index
from kgqa_core.logic.parser import parse
from kgqa_core.search.candidates import Candidate, LabelQuery, Slot, nodes_of
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic.by_labels.examples import candidate_of
from kgqa_core.symbolic.by_labels.parser import (
    DROPPED,
    HEAD_FEATURES,
    NO_CLASS,
    PAIRED,
    SCORED,
    UNEXPLAINED,
    LabelParser,
    Prepared,
    Ranked,
    RelationFit,
    _path_shapes,
    answers_of,
    classes_of,
    columns,
    none_features,
)
from kgqa_core.symbolic.by_labels.scorer import FEATURES, HEADS, LENGTHS, LIKENESS, NONE_FEATURES, LabelScorer
from kgqa_core.types import Question
from tests.support.label_graph import RDFS, X, question_about, slot_of, way_of
from tests.support.question_graph import build_graph


@pytest.fixture(scope="module")
def parser(graph: LabelGraph, scorer: LabelScorer) -> LabelParser:
    return LabelParser(graph, scorer)


def no_fit(graph: LabelGraph) -> RelationFit:
    """No way has anything in common with the text."""
    return RelationFit(*np.zeros((3, 2 * graph.relations)))


def even() -> list[np.ndarray]:
    """Each head of the scorer is undecided."""
    return [np.log(np.full(size, 1 / size, dtype=np.float32)) for size in HEADS]


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
    rows = parser.features(query, candidates, even(), no_fit(graph))
    assert rows.shape == (3, FEATURES) and np.isfinite(rows).all()
    assert rows[:, 4].tolist() == [0, -1, -1]  # weight of mentions that a form leaves out
    assert rows[:, 6].tolist() == [0, 1, 0]  # finds nothing
    assert rows[:, 16].tolist() == [1, 1, 1]  # share of its labels' words that the question has
    assert rows[:, 17].tolist() == [1, 1, 0.5]  # share of its words, films and directed, that wordings of its ways have


def features_of(parser: LabelParser, query: LabelQuery, *forms: str) -> np.ndarray:
    """Features of forms, whose keys are written without their prefix in <>."""
    made = [candidate_of(parse(form.replace("<", f"<{X}")), query, parser.graph) for form in forms]
    own = [one for one in made if one is not None]
    assert len(own) == len(forms)
    return parser.features(query, own, even(), no_fit(parser.graph))


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
    query = LabelQuery("x y", slots, strange=2, cut=True)
    likeness = torch.tensor([[0.9] * LIKENESS, [0.4, 0.1, 0.0, 0.7, 0.2], [0.8] * LIKENESS])
    features = torch.ones(3, FEATURES)
    own = columns("explained", "unused", "worst", "mean", "better", "covered", "left")
    features[1, own] = torch.tensor([0.6, -0.3, 0.8, 0.85, 0.05, 0.9, 0.4])
    row = none_features(torch.tensor([1.0, 5.0, 3.0]), likeness, features, query)
    # two scores, likenesses of the best, surest and least sure mention, strange words, a cut name, features of it
    expected = [0.5, 0.3, 0.4, 0.1, 0.0, 0.7, 0.2, 1.0, 0.5, 2 / 3, 1.0, 0.6, -0.3, 0.8, 0.85, 0.05, 0.9, 0.4]
    assert row.shape == (1, NONE_FEATURES) and torch.allclose(row, torch.tensor([expected]))
    alone = none_features(torch.tensor([5.0]), likeness[1:2], features[1:2], LabelQuery("x", strange=7))
    assert torch.allclose(alone, torch.tensor([[0.5, -1.0, *expected[2:7], 0.0, 0.0, 1.0, 0.0, *expected[11:]]]))


def test_none_of_a_question_without_candidates_is_judged_from_how_it_was_linked(graph: LabelGraph) -> None:
    nothing = torch.zeros(0), torch.zeros(0, LIKENESS), torch.zeros(0, FEATURES)
    assert none_features(*nothing, LabelQuery("x")).tolist() == [[-1.0, -1.0, 0, 0, 0, 1.0, *[0] * 12]]
    linked = none_features(*nothing, LabelQuery("x", (slot_of(graph, "x", X + "c0"),), strange=3))
    assert linked.tolist() == [[-1.0, -1.0, 0, 0, 0, 1.0, 0, 1.0, 1.0, 1.0, *[0] * 8]]
    assert linked.shape == (1, NONE_FEATURES)


def test_answers_are_names_numbers_or_yes_and_no(graph: LabelGraph) -> None:
    def answers(text: str) -> tuple[str, ...]:
        made = candidate_of(parse(text), LabelQuery("?"), graph)
        assert made is not None
        return answers_of(made, {} if made.nodes is None else graph.store.names(made.nodes.tolist()))

    assert answers(f"(JOIN (R <{X}borders>) <{X}c0>)") == ("Sudland", "Obara")
    assert answers(f"(COUNT (JOIN (R <{X}borders>) <{X}c0>))") == ("2",)
    assert answers(f"(HOLDS (JOIN (R <{X}borders>) <{X}c0>) <{X}c1>)") == ("yes",)
    assert answers(f"(HOLDS (JOIN (R <{X}borders>) <{X}c0>) <{X}c4>)") == ("no",)
    assert answers(f"(JOIN (R <{X}population>) <{X}c0>)") == ("1000000",)


def test_parser_is_cleared_when_weights_change(graph: LabelGraph, scorer: LabelScorer) -> None:
    own = LabelParser(graph, scorer, hops=1)
    [ranked] = own.parse(questions(graph)[:1])
    assert own._wording_block is not None and not any(len(one.ways) > 1 and one.kind == 0 for one in ranked.candidates)
    own.clear()
    assert own._wording_block is None
    assert not isinstance(ranked.candidates[0].form, Count)


def test_path_whose_relations_the_text_names_away_from_its_mention_is_in_order(graph: LabelGraph) -> None:
    query = LabelQuery("genre of the films directed by x", (slot_of(graph, "x", X + "p0"),))
    made = candidate_of(parse(f"(JOIN (R <{X}has_genre>) (JOIN <{X}directed_by> <{X}p0>))"), query, graph)
    assert made is not None and made.ways == (way_of(graph, "directed_by", back=True), way_of(graph, "has_genre"))
    likeness, paired, places = np.zeros((3, 2 * graph.relations))
    places[list(made.ways)], likeness[list(made.ways)] = (5, 1), (0.9, 0.4)
    assert RelationFit(likeness, paired, places, (7.0,)).outward(made) == pytest.approx(np.tanh(2))
    assert RelationFit(likeness, paired, places, (1.0,)).outward(made) == pytest.approx(-np.tanh(2))
    assert RelationFit(likeness, paired, places, (7.0,)).worst(made) == 0.4
    one = candidate_of(parse(f"(JOIN <{X}directed_by> <{X}p0>)"), query, graph)
    assert one is not None and RelationFit(likeness, paired, places, (7.0,)).outward(one) == 0
    kind = candidate_of(parse(f"(TYPE <{X}film>)"), query, graph)
    assert kind is not None and RelationFit(likeness, paired, places, (7.0,)).worst(kind) == 0


def test_order_is_read_from_the_words_of_the_text(graph: LabelGraph, parser: LabelParser) -> None:
    query = LabelQuery("genre of the films directed by x", (slot_of(graph, "x", X + "p0"),))
    other = LabelQuery("x directed films of what genre", query.slots)
    for own, slot in ((query, 7), (other, 1)):
        fit = parser.relation_fit(own, parser.scorer.questions([own.text]), 0)
        assert fit.slots == (slot,) and fit.positions.min() >= 1 and fit.positions.max() <= len(own.text.split())
    genre, directed = way_of(graph, "has_genre"), way_of(graph, "directed_by")
    assert fit.positions[genre] > fit.positions[directed]
    forms = [f"(JOIN (R <{X}has_genre>) (JOIN <{X}directed_by> <{X}p0>))", f"(JOIN <{X}directed_by> <{X}p0>)"]
    made = [one for text in forms if (one := candidate_of(parse(text), other, graph)) is not None]
    rows = parser.features(other, made, even(), fit)
    assert rows[0, columns("outward")] > 0 and rows[1, columns("outward")] == 0
    assert rows[:, columns("worst")[0]].tolist() == pytest.approx([fit.worst(one) for one in made])


def test_empty_text_has_no_positions(graph: LabelGraph, parser: LabelParser) -> None:
    query = LabelQuery("", (slot_of(graph, "x", X + "p0"),))
    fit = parser.relation_fit(query, parser.scorer.questions([""]), 0)
    assert np.isfinite(fit.positions).all() and len(fit.slots) == 1


def test_likeness_of_a_way_is_that_of_its_likest_wording(graph: LabelGraph, parser: LabelParser) -> None:
    text = "who directed x"
    question = parser.scorer.questions([text])
    fit = parser.relation_fit(LabelQuery(text, (slot_of(graph, "x", X + "f0"),)), question, 0)
    best = []
    for way in range(2 * graph.relations):
        wordings = list(parser.phrases.wordings(way))
        each = parser.scorer.likeness(question, 0, parser.scorer.phrases(wordings))
        own = (0.5 * each[:, 0] + each[:, 2]).tolist()
        assert fit.likeness[way] == pytest.approx(max(own), abs=1e-3), wordings
        best.append(own.index(max(own)))
    assert any(best), "another wording than the first is the likest"
    directed = way_of(graph, "directed_by")
    assert int(fit.likeness.argmax()) == directed and not fit.paired.any()
    assert fit.likeness[directed] == pytest.approx(1.5, abs=1e-3), "the text is one of its wordings"


def test_mean_and_better_compare_the_ways_of_a_form_with_all(graph: LabelGraph) -> None:
    likeness = np.zeros(2 * graph.relations)
    made = candidate_of(parse(f"(JOIN <{X}has_genre> (JOIN <{X}directed_by> <{X}p0>))"), LabelQuery("?"), graph)
    kind = candidate_of(parse(f"(TYPE <{X}film>)"), LabelQuery("?"), graph)
    assert made is not None and kind is not None and len(made.ways) == 2
    likeness[list(made.ways)], likeness[way_of(graph, "capital")] = (0.2, 0.6), 0.9
    fit = RelationFit(likeness, likeness, likeness)
    assert (fit.mean(made), fit.worst(made)) == (pytest.approx(0.4), pytest.approx(0.2))
    assert fit.better(made) == pytest.approx(0.3)
    assert (fit.mean(kind), fit.better(kind)) == (0, 0)
    likeness[made.ways[0]] = 0.95
    fit = RelationFit(likeness, likeness, likeness)
    assert fit.better(made) == 0, "the likest way of all is its own"


NAMES = "甲 乙 丙 丁".split()


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory, scorer: LabelScorer) -> Iterator[LabelParser]:
    """A parser of a graph with Chinese labels."""
    lines = [f'<{X}e{i}> <{RDFS}label> "{name}"@zh .' for i, name in enumerate(NAMES)]
    for n, label in enumerate(("导演", "出生日期", "面积")):
        lines += [f'<{X}r{n}> <{RDFS}label> "{label}"@zh .', f"<{X}e{n}> <{X}r{n}> <{X}e{n + 1}> ."]
    with KgStore.open(build_graph(tmp_path_factory.mktemp("chinese"), lines, languages=("zh",))) as store:
        index(store)
        yield LabelParser(LabelGraph(store), scorer)


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("x 的导演是谁", {"r0": 1.0, "r1": 0.0, "r2": 0.0}),
        ("x 的生日是哪天", {"r0": 0.0, "r1": 1.0, "r2": 0.0}),  # another noun of the thesaurus
        ("x 的出生地", {"r0": 0.0, "r1": 1 / 3, "r2": 0.0}),  # one of the three pairs of 出生日期
        ("x 什么时候出生", {"r0": 0.0, "r1": 1.0, "r2": 0.0}),  # a whole question of the thesaurus
        ("x 是谁拍的", {"r0": 1.0, "r1": 0.0, "r2": 0.0}),
    ],
)
def test_chinese_ways_have_the_share_of_their_pairs_that_the_text_has(
    chinese: LabelParser, text: str, shares: dict[str, float]
) -> None:
    query = LabelQuery(text, (slot_of(chinese.graph, "x", X + "e0"),))
    fit = chinese.relation_fit(query, chinese.scorer.questions([text]), 0)
    for name, share in shares.items():
        way = way_of(chinese.graph, name)
        assert fit.paired[way] >= share if share < 1 else fit.paired[way] == pytest.approx(1.0), name
        assert fit.paired[way] < 1 or share == 1, name
    best = fit.paired == 1
    assert fit.likeness[best] == pytest.approx(PAIRED) and (fit.likeness[~best] < PAIRED).all()


def test_form_whose_ways_are_in_the_text_has_their_pairs_for_a_feature(chinese: LabelParser) -> None:
    query = LabelQuery("x 的导演是谁", (slot_of(chinese.graph, "x", X + "e0"),))
    fit = chinese.relation_fit(query, chinese.scorer.questions([query.text]), 0)
    forms = [f"(JOIN (R <{X}{name}>) <{X}e0>)" for name in ("r0", "r2")] + [
        f"(JOIN (R <{X}r2>) (JOIN (R <{X}r0>) <{X}e0>))"
    ]
    made = [one for text in forms if (one := candidate_of(parse(text), query, chinese.graph)) is not None]
    rows = chinese.features(query, made, even(), fit)
    assert rows[0, 23] == 1 and rows[1, 23] < 0.5 and rows[2, 23] == pytest.approx((rows[0, 23] + rows[1, 23]) / 2)


@pytest.mark.parametrize(
    ("form", "longest", "turns"),
    [
        ("(TYPE <film>)", 0, 0),
        ("(JOIN (R <capital>) <c0>)", 1, 0),
        ("(JOIN (R <capital>) (JOIN (R <borders>) <c0>))", 2, 0),
        ("(JOIN (R <borders>) (JOIN (R <borders>) <c0>))", 2, 0),  # on over the same relation is not back
        ("(JOIN <directed_by> (JOIN (R <directed_by>) <f0>))", 2, 1),
        ("(JOIN (R <directed_by>) (JOIN <directed_by> <p0>))", 2, 1),
        ("(JOIN (R <has_genre>) (JOIN <directed_by> (JOIN (R <directed_by>) <f0>)))", 3, 1),
        ("(JOIN <directed_by> (JOIN (R <has_genre>) (JOIN (R <directed_by>) <f0>)))", 3, 0),  # not at once
        ("(JOIN (R <borders>) (JOIN (R <borders>) (JOIN (R <borders>) (JOIN (R <capital>) <c0>))))", 3, 0),  # at most
        ("(COUNT (JOIN <directed_by> (JOIN (R <directed_by>) <f0>)))", 2, 1),
        ("(AND (JOIN <has_genre> <g0>) (JOIN <directed_by> (JOIN <place_of_birth> <city0>)))", 2, 0),
        ("(AND (JOIN <directed_by> <p0>) (JOIN (R <directed_by>) <f0>))", 1, 0),  # two paths, not one there and back
        ("(MINUS (JOIN <has_genre> (JOIN (R <has_genre>) <f0>)) <f0>)", 2, 1),
        ("(ARGMAX (JOIN <directed_by> <p0>) <release_year>)", 1, 0),
        ("(HOLDS (JOIN (R <capital>) (JOIN (R <borders>) <c0>)) <c1>)", 2, 0),
    ],
)
def test_longest_path_of_a_form_and_whether_one_turns_back(
    graph: LabelGraph, form: str, longest: int, turns: int
) -> None:
    parsed = parse(form.replace("<", f"<{X}"))
    one = Candidate(parsed, 3, None, None, (), (), (), 1.0, 0.0)
    assert classes_of(one)[3:] == (min(longest, LENGTHS - 1), turns)
    assert classes_of(one)[0] == 3


def test_path_in_steps_of_one_join_has_the_shape_of_nested_joins() -> None:
    back, on = (Step("a", inverse=own) for own in (False, True))
    entity = Entity("e")
    for one, nested in (
        (Join((back, on), entity), Join((back,), Join((on,), entity))),
        (Join((on, back, Step("b", inverse=True)), entity), Join((on,), Join((back, Step("b", inverse=True)), entity))),
        (Join((on, on), entity), Join((on,), Join((on,), entity))),
    ):
        assert list(_path_shapes(one)) == list(_path_shapes(nested))
    assert list(_path_shapes(Join((back, on), entity))) == [(2, True)]
    assert list(_path_shapes(Join((on, on), entity))) == [(2, False)]


@pytest.mark.parametrize(
    ("form", "slots", "best", "order"),
    [
        ("(JOIN (R <capital>) <c0>)", (0,), NO_CLASS, NO_CLASS),
        ("(ARGMAX (TYPE <country>) <population>)", (), BESTS.index("max"), NO_CLASS),
        ("(NTHMIN 2 (TYPE <country>) <population>)", (), BESTS.index("min"), NO_CLASS),
        ("(LESS <c0> <c1> <population>)", (0, 1), BESTS.index("min"), NO_CLASS),
        ("(MINUS (JOIN (R <borders>) <c0>) <c1>)", (0, 1), NO_CLASS, 0),
        ("(MINUS (JOIN (R <borders>) <c0>) <c1>)", (1, 0), NO_CLASS, 1),
        ("(MINUS (JOIN (R <borders>) <c0>) <c0>)", (0,), NO_CLASS, NO_CLASS),
        ("(HOLDS (JOIN (R <borders>) <c0>) <c1>)", (1, 0), NO_CLASS, 1),
        ("(AND (JOIN <borders> <c0>) (JOIN <borders> <c1>))", (1, 0), NO_CLASS, NO_CLASS),
    ],
)
def test_direction_and_order_have_a_class_where_a_form_ranks_or_sets_apart(
    form: str, slots: tuple[int, ...], best: int, order: int
) -> None:
    one = Candidate(parse(form.replace("<", f"<{X}")), 0, None, None, (), slots, (), 1.0, 0.0)
    found = classes_of(one)
    assert found[1:3] == (best, order) and len(found) == len(HEADS) == len(HEAD_FEATURES)
    assert all(own < size for own, size in zip(found, HEADS, strict=True))


def test_features_of_the_heads_are_the_log_probabilities_of_each_candidate(
    graph: LabelGraph, parser: LabelParser
) -> None:
    texts = questions(graph)[:3]
    queries = [(one.id, query) for one, query in zip(texts, parser.read(texts), strict=True)]
    network, met = parser.scorer.network, set()
    for (_, query), prepared in zip(queries, parser.prepare(queries), strict=True):
        with torch.inference_mode():
            pooled = parser.scorer.questions([query.text]).pooled
            logs = [torch.log_softmax(head(pooled), -1)[0].tolist() for head in network.heads]
        for row, one in zip(prepared.features, prepared.candidates, strict=True):
            for column, log, number in zip(HEAD_FEATURES, logs, classes_of(one), strict=True):
                met.add((column, number))
                expected = log[number] / 4 if number != NO_CLASS else 0
                assert row[column] == pytest.approx(expected, abs=1e-3)
    assert {(column, NO_CLASS) for column in HEAD_FEATURES[1:3]} <= met
    assert all(len({number for own, number in met if own == column} - {NO_CLASS}) > 1 for column in (0, 27, 28))


def test_unlikely_class_counts_no_less_than_a_bound(graph: LabelGraph, parser: LabelParser) -> None:
    query = LabelQuery("x", (slot_of(graph, "x", X + "c0"),))
    made = candidate_of(parse(f"(JOIN (R <{X}capital>) <{X}c0>)"), query, graph)
    assert made is not None
    guess = [np.full(size, -50, dtype=np.float32) for size in HEADS]
    [row] = parser.features(query, [made], guess, no_fit(graph))
    assert row[list(HEAD_FEATURES)].tolist() == [-2, 0, 0, -2, -2]


def test_graph_without_types_is_parsed_by_its_labels(untyped_graph: LabelGraph, scorer: LabelScorer) -> None:
    parser = LabelParser(untyped_graph, scorer)
    texts = [
        ("what is the capital of Norland", "c0", "(JOIN (R capital) c0)"),
        ("films directed by Ada Stone", "p0", "(JOIN directed_by p0)"),
        ("population of Estia", "c2", "(JOIN (R population) c2)"),
    ]
    asked = [question_about(untyped_graph, text, text, X + name) for text, name, _ in texts]
    for ranked, (_, _, form) in zip(parser.parse(asked), texts, strict=True):
        assert str(ranked.candidates[0].form).replace(X, "") == form
        assert not any(isinstance(node, Class) for one in ranked.candidates for node in nodes_of(one.form))


def test_reading_without_a_mention_has_to_be_better_by_what_it_leaves_out(
    graph: LabelGraph, parser: LabelParser
) -> None:
    made = candidate_of(parse(f"(JOIN (R <{X}capital>) <{X}c0>)"), LabelQuery("?"), graph)
    assert made is not None

    def read(score: float | None, rho: float = 0.0, *words: str) -> Ranked:
        query = LabelQuery("?", dropped=rho, dropped_words=frozenset(words))
        own = [made] if score is not None else []
        blank = [""] * len(own)
        rows = np.zeros((len(own), FEATURES), dtype=np.float32)
        prepared = Prepared("q", query, own, blank, blank, rows, None)  # type: ignore[arg-type]
        scores = [score] if score is not None else []
        return Ranked(prepared, list(range(len(own))), scores, 0.0, np.zeros((len(own), LIKENESS), dtype=np.float32))

    whole, none = read(5.0), read(None)
    said = DROPPED * 0.5
    for other, better in (
        (read(5.0 + said + 0.1, 0.5, "capital"), True),
        (read(5.0 + said - 0.1, 0.5, "capital"), False),
        (read(5.0 + said + UNEXPLAINED - 0.1, 0.5, "network"), False),  # its form does not say the word
        (read(5.0 + said + UNEXPLAINED + 0.1, 0.5, "network"), True),
        (read(5.0 + said + UNEXPLAINED / 2 - 0.1, 0.5, "network", "capital"), False),
        (read(5.0 + said + UNEXPLAINED / 2 + 0.1, 0.5, "network", "capital"), True),
        (read(5.0), False),  # the first of equals
        (none, False),
    ):
        assert parser.best_readings([whole, other], [2]) == [other if better else whole]
    assert parser.best_readings([none, whole, none], [2, 1]) == [whole, none]
