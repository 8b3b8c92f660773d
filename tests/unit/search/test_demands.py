"""Which words of a question demand a part of a form."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kgqa_core.logic.parser import parse
from kgqa_core.search.demands import unmet

GRAPH: Any = SimpleNamespace(label_words={"narrower", "boss"}, types_by_words={"flat": (0,)})


@pytest.mark.parametrize(
    ("text", "form", "words"),
    [
        ("who has the same boss as x", "(JOIN boss ann)", ["same"]),
        ("who has the same boss as x", "(JOIN boss (JOIN (R boss) ann))", []),
        ("what happened at the same time as x", "(JOIN r ann)", []),
        ("which countries border only x", "(JOIN borders fr)", ["only"]),
        ("which countries border only x", "(AND (JOIN borders fr) (le (COUNT borders) 1))", []),
        ("the only country that borders x", "(JOIN borders fr)", []),
        ("houses with exactly n flats", "(JOIN floor 4)", ["exactly"]),
        ("houses with exactly n flats", "(AND (ge (COUNT (R of)) 4) (le (COUNT (R of)) 4))", []),
        ("houses built in exactly n", "(JOIN built 1990)", []),
        ("who works on all projects", "(JOIN project (TYPE project))", ["all projects"]),
        ("who works on all projects", "(AND (TYPE person) (ge (COUNT project) 8))", []),
        ("total budget of all projects", "(SUM (TYPE project) budget)", []),
        ("which countries are larger than x", "(JOIN borders fr)", ["than"]),
        ("which countries are larger than x", "(AND (TYPE country) (gt area fr))", []),
        ("which terms are narrower than x", "(JOIN narrower yacht)", []),
        ("which neighbours of x are larger than it", "(gt area fr)", ["than"]),
        ("which neighbours of x are larger than it", "(AND (JOIN borders fr) (gt area fr))", []),
        ("countries larger than average", "(TYPE country)", ["than"]),
        ("countries larger than average", "(AND (TYPE country) (gt area (AVG (TYPE country) area)))", []),
        ("which have more people than x and y together", "(GREATER es pt population)", ["together"]),
        ("all but the managers", "(TYPE person)", []),
        ("everybody except the managers", "(MINUS (TYPE person) (ge (COUNT manager) 1))", ["except"]),
        ("everybody except the managers", "(MINUS (TYPE person) (ge (COUNT (R manager)) 1))", []),
    ],
)
def test_a_word_is_unread_where_the_form_lacks_what_it_demands(text: str, form: str, words: list[str]) -> None:
    best: Any = SimpleNamespace(form=parse(form))
    assert [word for word in unmet(text, best, GRAPH) if word in words] == words
    assert bool(unmet(text, best, GRAPH)) is bool(words)
