"""Helpful and Harmful: which questions one kind of knowledge fixes and breaks against another (Wu et al. 2023).

The baselines of an experiment are the same answerer without knowledge and with the bare triples of every retriever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kgqa_core.config import Experiment
from kgqa_core.evaluation.aggregate import complexity_groups, grouped, hop_groups
from kgqa_core.evaluation.labels import main_split
from kgqa_core.metrics.significance import mcnemar, three_digits
from kgqa_core.types import Question

METRICS = ("hit_rra", "exact")
"""Metrics that say right or wrong, by which experiments are compared."""

GROUPS = {"by_hops": hop_groups, "by_complexity": complexity_groups}


def compare(rows: Mapping[str, Mapping[str, Mapping[str, float]]], records: Sequence[Question]) -> list[dict[str, Any]]:
    """One row for each experiment, baseline and metric: `experiment, baseline, metric, split, helpful, harmful, n, p`.

    rows: experiment → question id → metric → value.  helpful: questions that the baseline gets wrong and the experiment
    right; harmful: the other way round; n: questions that both were asked, in the split that the tables show.
    p: McNemar's exact test, three digits, not corrected for the number of comparisons.  `by_hops` and `by_complexity`
    hold helpful, harmful and n of each group.
    """
    by_id = {record.id: record for record in records}
    compared = []
    for experiment in sorted(rows):
        for baseline in baselines(experiment, rows):
            shared = [question for question in rows[experiment] if question in rows[baseline]]
            split = main_split({by_id[question].split for question in shared})
            members = [question for question in shared if by_id[question].split == split]
            parts = {key: grouped(members, by_id, groups) for key, groups in GROUPS.items()}
            for metric in METRICS if members else ():
                judge = _judge(rows[baseline], rows[experiment], metric)
                total = judge(members)
                groups = {key: {name: judge(part) for name, part in found.items()} for key, found in parts.items()}
                p = three_digits(mcnemar(total["helpful"], total["harmful"]))
                named = {"experiment": experiment, "baseline": baseline, "metric": metric, "split": split}
                compared.append({**named, **total, "p": p, **groups})
    return compared


def baselines(experiment: str, experiments: Iterable[str]) -> list[str]:
    """What an experiment is compared with: the same answerer without knowledge, and with each retriever's triples.

    >>> baselines("rigel/template/builtin", ["none/none/builtin", "rigel/triples/builtin", "rigel/-/-"])
    ['none/none/builtin', 'rigel/triples/builtin']
    """
    own = Experiment.parse(experiment)
    if "-" in (own.retriever, own.format, own.answerer) or own.retriever == "none":
        return []
    others = [(name, Experiment.parse(name)) for name in sorted(experiments) if name != experiment]
    return [
        name
        for name, base in others
        if base.answerer == own.answerer and (base.without_knowledge or base.format == "triples")
    ]


def _judge(
    baseline: Mapping[str, Mapping[str, float]], scored: Mapping[str, Mapping[str, float]], metric: str
) -> Callable[[Sequence[str]], dict[str, int]]:
    def count(questions: Sequence[str]) -> dict[str, int]:
        pairs = [(baseline[question][metric] >= 1, scored[question][metric] >= 1) for question in questions]
        return {"helpful": pairs.count((False, True)), "harmful": pairs.count((True, False)), "n": len(pairs)}

    return count
