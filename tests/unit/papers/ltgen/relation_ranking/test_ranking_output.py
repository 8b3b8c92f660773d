"""The output of a language model is parsed whatever it puts around the relations, and what it invents counts apart."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgqa_core.papers.ltgen.relation_ranking import llm
from kgqa_core.papers.ltgen.relation_ranking import ranker as embedding
from kgqa_core.papers.ltgen.relation_ranking import ranker as ranker_module
from kgqa_core.papers.ltgen.relation_ranking.llm import fold, read_ranking

CANDIDATES = ("developer", "date of birth", "<inv>-capital", "capital", "place_of_death", "4name", "genre, style", "x")
WORDS = ("born", "in", "date_of", "place", "2nd", "of", "name", "spouse", "x", "seat", "12")
NAMES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=8, unique_by=fold
)
DRESS = ("{}", "- {}", "* {}", "• {}", "{n}. {}", "{n}) {}", "({n}) {}", '"{}"', "'{}'", "`{}`", "**{}**", "<<<{}>>>",
         "{n}. **{}**", "- `{}`", '{n}. "{}".', "  {}  ", "{}.", "{},",
         "Relation: {}", "Relation {n}: {}", "“{}”")  # fmt: skip


def test_the_examples_in_the_modules_hold() -> None:
    for module in (ranker_module, embedding, llm):
        assert doctest.testmod(module).failed == 0
        assert doctest.testmod(module).attempted > 0


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(NAMES, st.data())
def test_dressed_candidates_are_read_in_the_order_of_the_output(names: list[str], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(names))))
    lines = []
    for number, place in enumerate(order, start=1):
        name = names[place].strip()
        cased = data.draw(st.sampled_from((name, name.upper(), name.title(), name.replace("_", " "))))
        lines.append(data.draw(st.sampled_from(DRESS)).format(cased, n=number))
    found = read_ranking("\n".join(lines), names, len(names))
    assert found.indices == tuple(order)
    assert found.unknown == ()


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(NAMES, st.text(max_size=80), st.integers(1, 5))
def test_any_text_gives_distinct_candidates_and_loses_no_line(names: list[str], text: str, most: int) -> None:
    found = read_ranking(text, names, most)
    assert len(set(found.indices)) == len(found.indices) <= most
    assert set(found.indices) <= set(range(len(names)))
    lines = [line.strip() for line in text.splitlines()]
    assert all(line in lines for line in found.unknown)
    if not read_ranking(text, names, len(names)).indices:
        assert list(found.unknown) == [line for line in lines if line and fold(line)]


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("developer - the company that made it", 0),
        ("1. developer: who wrote the program", 0),
        ("developer (P178)", 0),
        ("Date Of Birth", 1),
        ("DATE_OF_BIRTH.", 1),
        ("<inv>-capital", 2),
        ("2. <inv>-Capital", 2),
        ("`<inv>-capital`", 2),
        ("<<<<inv>-capital>>>", 2),
        ("capital", 3),
        ("place of death", 4),
        ("4name", 5),
        ("3. 4name", 5),
        ("genre, style", 6),
        ("x", 7),
    ],
)
def test_one_line_names_one_candidate(line: str, place: int) -> None:
    assert read_ranking(line, CANDIDATES, 5) == llm.ParsedRanking((place,), ())


def test_several_candidates_in_one_line_count_in_their_order() -> None:
    assert read_ranking("capital, developer, nonsense", CANDIDATES, 5).indices == (3, 0)
    assert read_ranking("Relations: <<<capital; date of birth>>>", CANDIDATES, 5).indices == (3, 1)


def test_what_is_no_candidate_is_reported_verbatim() -> None:
    text = "Sure! Here are the top-5 relations:\n\n1. developer\n2. inventor\n```\n3. developer\n- capital"
    found = read_ranking(text, CANDIDATES, 5)
    assert found.indices == (0, 3)  # a name that occurs twice counts once
    assert found.unknown == ("Sure! Here are the top-5 relations:", "2. inventor")


def test_relations_of_equal_words_are_matched_one_after_the_other() -> None:
    assert read_ranking("name\nName\nname", ("name", "other", "name"), 5).indices == (0, 2)


def test_the_case_as_it_stands_goes_before_any_other() -> None:
    assert read_ranking("Date", ("date", "Date"), 5).indices == (1,)


def test_no_more_are_returned_than_are_wanted() -> None:
    assert read_ranking("capital\nx\ndeveloper", CANDIDATES, 2).indices == (3, 7)
