"""The form of a question that is made of its paths and type."""

from __future__ import annotations

from kgqa_core.datasets.derived.gold_forms import gold_form
from kgqa_core.errors import FormTimeout
from kgqa_core.types import Question


def test_a_gold_form_that_takes_too_long_teaches_nothing():
    class Late:
        def execute(self, form):
            raise FormTimeout("too long")

    ways = {"complexity": "count", "relation_paths": (("<inv>-in",),)}
    question = Question("q", "How many?", topic_entities=(0,), answer_keys=("3",), **ways)
    assert gold_form(question, {0: "fr"}, Late()) is None
