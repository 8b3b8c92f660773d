"""What forms find, weighed in: dev questions choose how much an empty result and "no form" count."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from kgqa_core.errors import ArtifactError
from kgqa_core.logic.execute import Result
from kgqa_core.logic.forms import Form
from kgqa_core.logic.parser import parse
from kgqa_core.papers.grailqability.parsing.examples import ParseExample
from kgqa_core.papers.grailqability.parsing.parsed_forms import Scored
from kgqa_core.papers.grailqability.parsing.rng.results import (
    FILE,
    GENERATOR,
    ResultWeights,
    choose_all,
    choose_weights,
    load_weights,
    save_weights,
    weighed,
)

A, B = "(JOIN (R made) x)", "(JOIN (R wrote) x)"


class Found:
    """Runs nothing: forms with `made` find nothing, others one entity."""

    def run(self, form: Form | None) -> Result | None:
        return None if form is None else Result() if "made" in str(form) else Result(nodes=(1,))


def scored(*rows: tuple[str | None, float]) -> list[Scored]:
    return [(None if text is None else parse(text), math.log(share), 1.0) for text, share in rows]


def texts(forms: Sequence[Scored]) -> list[str | None]:
    return [None if form is None else str(form) for form, _, _ in forms]


def example(number: int, form: str | None) -> ParseExample:
    return ParseExample(str(number), "?", split="dev", form=form, known=True)


def test_a_form_that_finds_nothing_loses_and_shares_stay_shares() -> None:
    own = scored((A, 0.6), (B, 0.3), (None, 0.1))
    assert weighed(own, Found(), ResultWeights(), 30) == own
    found = weighed(own, Found(), ResultWeights(empty=2.0, no_form=0.5), 30)
    assert texts(found) == [B, None, A]
    assert sum(math.exp(score) for _, score, _ in found) == pytest.approx(1.0)
    odds = {text: score for text, (_, score, _) in zip(texts(found), found, strict=True)}
    assert odds[B] - odds[A] == pytest.approx(math.log(0.3 / 0.6) + 2.0)
    assert odds[None] - odds[B] == pytest.approx(math.log(0.1 / 0.3) + 0.5)


def test_what_is_beyond_the_executed_forms_counts_as_empty() -> None:
    own = scored((A, 0.6), (B, 0.4))
    assert texts(weighed(own, Found(), ResultWeights(empty=5.0), 1)) == [A, B]
    assert texts(weighed(own, Found(), ResultWeights(empty=5.0), 2)) == [B, A]


def test_dev_questions_choose_the_weights() -> None:
    forms = scored((A, 0.6), (B, 0.4))
    right, exact = choose_weights([example(1, B), example(2, B)], [forms, forms], Found(), 30)
    assert right.empty > math.log(1.5) and right.no_form == 0 and exact == {"unweighed": 0.0, "weighed": 1.0}
    right, exact = choose_weights([example(1, A)], [forms], Found(), 30)
    assert right == ResultWeights() and exact == {"unweighed": 1.0, "weighed": 1.0}


def test_no_form_is_weighed_where_it_is_ranked() -> None:
    forms = scored((None, 0.7), (B, 0.3))
    right, _ = choose_weights([example(1, B)], [forms], Found(), 30)
    assert right.no_form < 0
    wider, _ = choose_weights([example(1, B)], [forms], Found(), 30, wider=3.0)
    assert (right.no_form, wider.no_form) == (-1.0, -1.5)
    assert choose_weights([ParseExample("1", "?", split="dev")], [forms], Found(), 30) == (ResultWeights(), {})


def test_weights_are_kept_and_damage_is_named(tmp_path) -> None:
    assert load_weights(tmp_path) == ResultWeights()
    save_weights(tmp_path, ResultWeights(1.5, -0.5), {"weighed": 0.5})
    assert load_weights(tmp_path) == ResultWeights(1.5, -0.5)
    (tmp_path / FILE).write_text('{"empty": null}')
    with pytest.raises(ArtifactError, match="damaged"):
        load_weights(tmp_path)


def test_dev_questions_choose_how_much_a_generator_counts_and_nothing_where_it_mends_nothing() -> None:
    ranked, generated = scored((B, 0.9), (None, 0.1)), scored((A, 0.9), (B, 0.1))
    tried = []

    def mixed(weight: float) -> list[list[Scored]]:
        tried.append(weight)
        return [generated if weight >= 0.3 else ranked]

    best, exact = choose_all([example(1, "(JOIN (R wrote) x)")], mixed, Found(), 30, GENERATOR)
    assert (best.generator, exact["weighed"], tuple(tried)) == (0.0, 1.0, GENERATOR)
    best, _ = choose_all([example(1, A)], mixed, Found(), 30, GENERATOR)
    assert best.generator == 0.3
