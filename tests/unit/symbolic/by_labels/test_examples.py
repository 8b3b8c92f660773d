"""Training examples: candidates of a question, which of them are right, and what is left out and counted."""

from __future__ import annotations

import pytest

from kgqa_core.logic.parser import parse
from kgqa_core.search.candidates import KINDS, LabelQuery
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic.by_labels.examples import LabelExample, best_of, candidate_of, kind_of, make_examples
from kgqa_core.symbolic.by_labels.parser import NO_CLASS, LabelParser, classes_of
from kgqa_core.symbolic.by_labels.scorer import FEATURES, HEADS, LabelScorer
from tests.support.label_graph import X, question_about


@pytest.fixture(scope="module")
def parser(graph: LabelGraph, scorer: LabelScorer) -> LabelParser:
    return LabelParser(graph, scorer)


def example(
    parser: LabelParser, text: str, form: str | None, *names: str, seed: int = 7
) -> tuple[LabelExample | None, dict[str, int]]:
    question = question_about(parser.graph, "q", text, *(X + name for name in names))
    found, counts = make_examples(parser, [(question, form and form.replace("<", f"<{X}"), 2.0)], seed)
    return (found[0] if found else None), counts


@pytest.mark.parametrize(
    ("form", "kind", "best"),
    [
        ("(JOIN (R capital) c0)", "none", None),
        ("(COUNT (JOIN (R borders) c0))", "count", None),
        ("(ARGMIN (TYPE country) population)", "best", "min"),
        ("(JOIN (R capital) (ARGMAX (TYPE country) population))", "best", "max"),
        ("(NTHMAX 2 (TYPE country) population)", "nth", "max"),
        ("(LESS c0 c1 population)", "compare", "min"),
        ("(MINUS (JOIN (R borders) c0) c1)", "difference", None),
        ("(AND (JOIN borders c0) (JOIN borders c1))", "intersect", None),
        ("(AND (TYPE city) (JOIN (R capital) c0))", "none", None),
        ("(MINUS (JOIN borders (JOIN (R borders) c0)) c0)", "none", None),
        ("(MINUS (JOIN borders (JOIN (R borders) c0)) c1)", "difference", None),
        ("(MINUS (JOIN (R borders) c0) (JOIN (R borders) c0))", "difference", None),
        ("(JOIN (R capital) (MINUS (JOIN borders (JOIN (R borders) c0)) c0))", "none", None),
        ("(JOIN (R capital) (MINUS (JOIN (R borders) c0) c1))", "difference", None),
        ("(COUNT (MINUS (JOIN borders (JOIN (R borders) c0)) c0))", "count", None),
        ('(MINUS (AND (JOIN borders c0) (gt population "5"^^xsd:integer)) c0)', "value", None),
        ("(HOLDS (GREATER c0 c1 population) c0)", "yes/no", "max"),
        ('(COUNT (AND (TYPE country) (gt population "5"^^xsd:integer)))', "value", None),
        ('(JOIN release_year "1999"^^xsd:gYear)', "value", None),
    ],
)
def test_operation_and_direction_of_a_form(form: str, kind: str, best: str | None) -> None:
    assert (kind_of(parse(form)), best_of(parse(form))) == (kind, best)


def test_gold_form_is_right_among_candidates_that_are_wrong(parser: LabelParser) -> None:
    made, counts = example(parser, "what is the capital of Norland", "(JOIN (R <capital>) <c0>)", "c0")
    assert made is not None and counts == {"examples": 1, "uncovered": 0, "without_form": 0, "unanswerable": 0}
    assert [text for text, good in zip(made.texts, made.right, strict=True) if good] == ["capital of x"]
    assert len(made.texts) == len(made.right) == len(made.relations) == len(made.nouns) == len(made.features) > 5
    assert made.features.shape[1] == FEATURES and made.weight == 2.0
    assert made.classes.shape == (len(made.texts), len(HEADS))
    assert made.wanted == (KINDS.index("none"), NO_CLASS, NO_CLASS, 1, 0)
    assert [noun for noun, good in zip(made.nouns, made.right, strict=True) if good] == ["capital"]
    capital = parser.graph.memory.relation_ids[X + "capital"]
    assert made.relations[made.right.tolist().index(True)] == {capital}


def test_form_beyond_the_candidates_is_added_and_counted(parser: LabelParser) -> None:
    form = "(JOIN (R <capital>) (JOIN (R <borders>) (JOIN (R <borders>) <c0>)))"
    made, counts = example(parser, "capitals of what borders what borders Norland", form, "c0")
    assert made is not None and counts["uncovered"] == 1
    assert made.right[0] and made.right.sum() == 1 and made.texts[0] == "capital of neighbor of neighbor of x"


@pytest.mark.parametrize(
    ("form", "text", "name", "phrase"),
    [
        ("(MINUS (JOIN <directed_by> (JOIN (R <directed_by>) <f0>)) <f0>)", "other films of the director of Night A0",
         "f0", "film directed by director of x"),
        ("(JOIN (R <has_genre>) (MINUS (JOIN <directed_by> (JOIN (R <directed_by>) <f0>)) <f0>))",
         "genres of other films of the director of Night A0",
         "f0", "genre of film directed by director of x"),
    ],
)  # fmt: skip
def test_others_of_its_kind_are_the_path_that_does_not_lead_back(
    graph: LabelGraph, scorer: LabelScorer, form: str, text: str, name: str, phrase: str
) -> None:
    made, counts = example(LabelParser(graph, scorer, hops=3), text, form, name)
    assert made is not None and counts["uncovered"] == 0 and made.wanted[0] == KINDS.index("none")
    right = {text for text, good in zip(made.texts, made.right, strict=True) if good}
    assert right and right <= {phrase, f"genre that is {phrase}"}
    assert {KINDS[kind] for kind, good in zip(made.classes[:, 0], made.right, strict=True) if good} == {"none"}


def test_candidate_has_the_types_of_the_question_that_its_members_are_of(parser: LabelParser) -> None:
    place = {name: parser.graph.type_of_key[X + name] for name in ("place", "film", "country", "city")}
    query = LabelQuery("?", types=tuple((place[name], 1.0) for name in ("place", "film")))

    def types(form: str) -> set[str]:
        made = candidate_of(parse(form.replace("<", f"<{X}")), query, parser.graph)
        assert made is not None and list(made.types) == sorted(made.types)
        return {name for name, own in place.items() if own in made.types}

    # capitals lead from countries to cities, which are places
    assert types("(JOIN (R <capital>) <c0>)") == {"country", "city", "place"}
    assert types("(JOIN <capital> <city0>)") == {"country", "city"}
    assert types("(JOIN <capital> <city0>)") == types("(COUNT (JOIN (R <capital>) <c0>))")
    # what finds nothing has no members of any type
    assert types("(JOIN (R <capital>) <p0>)") == {"country", "city"}


def test_order_of_two_mentions_is_learnt_from_differences(parser: LabelParser) -> None:
    form = "(MINUS (JOIN (R <borders>) <c0>) <c1>)"
    first, _ = example(parser, "neighbours of Norland except Sudland", form, "c0", "c1")
    second, _ = example(parser, "except Sudland, neighbours of Norland", form, "c0", "c1")
    assert first is not None and second is not None
    assert (first.wanted[2], second.wanted[2]) == (0, 1)


def test_direction_of_a_ranking_is_learnt(parser: LabelParser) -> None:
    made, _ = example(parser, "the smallest country by population", "(ARGMIN (TYPE <country>) <population>)")
    assert made is not None
    assert made.wanted[:2] == (KINDS.index("best"), 1)


def test_question_without_an_answer_has_no_right_candidate(parser: LabelParser) -> None:
    made, counts = example(parser, "who is the president of Norland", None, "c0")
    assert made is not None and counts["unanswerable"] == 1
    assert len(made.right) and not made.right.any() and made.wanted == (NO_CLASS,) * len(HEADS)


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("(JOIN (R <president>) <c0>)", ("c0",)),
        ("(JOIN (R <capital>) <nowhere>)", ("c0",)),
        ("(JOIN (R <capital>) <c0>)", ()),
        ("(TC (JOIN (R <capital>) <c0>) <capital> 2001)", ("c0",)),
    ],
)
def test_form_that_cannot_be_run_or_is_about_nothing_mentioned_is_left_out(
    parser: LabelParser, form: str, names: tuple[str, ...]
) -> None:
    made, counts = example(parser, "what is it", form, *names)
    assert made is None and counts == {"examples": 0, "uncovered": 0, "without_form": 1, "unanswerable": 0}


def test_same_seed_makes_the_same_examples_and_another_other_candidates(parser: LabelParser) -> None:
    args = (parser, "how many countries border Norland", "(COUNT (JOIN (R <borders>) <c0>))", "c0")
    texts = [example(*args, seed=seed)[0] for seed in (7, 7, 8)]
    assert texts[0] is not None and texts[1] is not None and texts[2] is not None
    assert texts[0].texts == texts[1].texts and texts[0].right.tolist() == texts[1].right.tolist()
    kinds = [set(one.classes[:, 0].tolist()) for one in texts if one is not None]
    assert all(KINDS.index("count") in own for own in kinds)


def test_path_back_to_its_topic_finds_what_its_candidate_finds(parser: LabelParser) -> None:
    form = parse(f"(JOIN (R <{X}borders>) (JOIN (R <{X}borders>) <{X}c0>))")
    graph = parser.graph
    made = candidate_of(form, LabelQuery("?"), graph)
    [topic] = graph.memory.know([X + "c0"]).values()
    assert made is not None and made.nodes is not None
    assert topic in graph.memory.nodes(form) and topic not in made.nodes


def test_candidates_have_their_classes_and_what_each_finds(parser: LabelParser) -> None:
    form = "(JOIN <directed_by> (JOIN (R <directed_by>) <f0>))"
    made, _ = example(parser, "films by the director of Night A0", form, "f0")
    assert made is not None
    own = made.right.tolist().index(True)
    assert made.wanted[3:] == (2, 1) and made.classes[own, 3:].tolist() == [2, 1] and made.nouns[own] == "film"
    assert {1, 2} <= set(made.classes[:, 3].tolist()) and {0, 1} == set(made.classes[:, 4].tolist())
    assert len(set(made.nouns)) > 3 and all(made.nouns)
    again = candidate_of(parse(form.replace("<", f"<{X}")), made.query, parser.graph)
    assert again is not None and classes_of(again)[1:] == made.wanted[1:]


def test_classes_that_are_learnt_are_those_of_the_gold_form_where_others_find_the_same(parser: LabelParser) -> None:
    made, _ = example(parser, "how many countries border Norland", "(COUNT (JOIN (R <borders>) <c0>))", "c0")
    assert made is not None and made.wanted == (KINDS.index("count"), NO_CLASS, NO_CLASS, 1, 0)
