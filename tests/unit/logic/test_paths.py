from __future__ import annotations

import pytest

from kgqa_core.errors import FormError
from kgqa_core.logic.parser import parse
from kgqa_core.logic.paths import TopicPath, from_path, to_paths


def test_a_path_leads_from_the_topic_and_a_form_reads_from_the_answer():
    form = from_path("fr", ("capital", "<inv>-in"))
    assert str(form) == "(JOIN in (JOIN (R capital) fr))"
    assert to_paths(form) == (TopicPath("fr", ("capital", "<inv>-in")),)


def test_several_topics_are_any_of_them_and_none_is_refused():
    assert str(from_path(["a", "b", "a"], ["r"])) == "(JOIN (R r) (OR a b))"
    assert to_paths(from_path(["a", "b"], ["r"])) == (TopicPath("a", ("r",)), TopicPath("b", ("r",)))
    assert str(from_path("a", ())) == "a"
    with pytest.raises(FormError):
        from_path([], ["r"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(ARGMAX (JOIN in fr) (JOIN (R s) population))", [("fr", ("<inv>-in", "<inv>-s", "population"))]),
        ("(AND (JOIN in fr) (gt population 5))", [("fr", ("<inv>-in", "population"))]),
        ("(AND a.b (AND (JOIN in fr) (JOIN r m.01)))", [("fr", ("<inv>-in",)), ("m.01", ("<inv>-r",))]),
        ("(GREATER fr de area)", [("fr", ("area",)), ("de", ("area",))]),
        ("(HOLDS (JOIN (R borders) fr) de)", [("fr", ("borders",)), ("de", ())]),
        ("(MINUS (JOIN in fr) (JOIN r de))", [("fr", ("<inv>-in",)), ("de", ("<inv>-r",))]),
        ("(COUNT (JOIN in fr))", [("fr", ("<inv>-in",))]),
        ("(SUM (JOIN in fr) area)", [("fr", ("<inv>-in", "area"))]),
        ("(GROUP (JOIN in fr) r (SUM area))", [("fr", ("<inv>-in", "area")), ("fr", ("<inv>-in", "r"))]),
        ("(SHARE (JOIN in fr) (JOIN r de))", [("fr", ("<inv>-in",)), ("de", ("<inv>-r",))]),
        ("(ARGMAX a.b r)", []),
    ],
)
def test_paths_of_a_form_lead_on_to_the_values(text, expected):
    assert to_paths(parse(text)) == tuple(TopicPath(*one) for one in expected)
