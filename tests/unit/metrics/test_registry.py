"""The registry of metrics: every record is whole, and what is computed keeps to its values."""

from __future__ import annotations

import numpy as np
import pytest

from kgqa_core.metrics.registry import METRICS, Group, improvement, measure, metric_label, metric_names, metric_order
from kgqa_core.metrics.text import GoldAnswers

BEST_AND_WORST: dict[Group, tuple[tuple, tuple]] = {
    "output": ((GoldAnswers([("Oslo",)]), "Oslo"), (GoldAnswers([("Oslo",)]), "Rome")),
    "long_tail": ((GoldAnswers([("Oslo",)]), "Oslo"), (GoldAnswers([("Oslo",)]), "Rome")),
    "entailment": ((np.array([[[1.0, 0.0]]]),), (np.array([[[0.0, 1.0]]]),)),
    "verdict": ((True,), (None,)),
    "entities": (([1], {1}), ([2], {1})),
    "facts": (([1], {1}), ([2], {1})),
    "hops": (([("a",)], {1}), ([("a",)], {2})),
    "paths": (([("a",)], {("a",)}), ([("b",)], {("a",)})),
    "pairs": (([1, 2],), ([None],)),
    "links": (([1], [1]), ([2], [1])),
    "link_candidates": (([1], [1]), ([2], [1])),
}


def test_every_record_has_a_name_of_its_own_a_label_a_meaning_and_a_function() -> None:
    assert all(name == spec.name for name, spec in METRICS.items())
    assert len({spec.label for spec in METRICS.values()}) == len(METRICS)
    assert all(spec.label and spec.meaning and spec.functions for spec in METRICS.values())
    assert {group for spec in METRICS.values() for group in spec.functions} == set(BEST_AND_WORST)


@pytest.mark.parametrize("group", BEST_AND_WORST)
def test_the_best_and_the_worst_input_have_the_ends_of_the_range(group: Group) -> None:
    best, worst = (measure(group, *inputs) for inputs in BEST_AND_WORST[group])
    assert tuple(best) == metric_names(group)
    for name in best:
        spec = METRICS[name]
        low = -1.0 if spec.values == "difference" else 0.0
        ends = (1.0, low) if spec.higher_is_better else (low, 1.0)
        assert (best[name], worst[name]) == ends, name


def test_less_contradiction_is_an_improvement_and_unknown_metrics_come_last() -> None:
    assert improvement("nli_contradiction", -0.2, -0.1) == (0.1, 0.2)
    assert improvement("exact", 0.1, 0.2) == improvement("of another version", 0.1, 0.2) == (0.1, 0.2)
    assert sorted(["of another version", "f1", "exact"], key=metric_order) == ["exact", "f1", "of another version"]
    assert (metric_label("hits_at_1"), metric_label("of another version")) == ("Hits@1", "of another version")
    assert METRICS["nli_contradiction"].explanation.endswith("(lower is better)")
