"""Means over questions with bootstrap intervals: overall, by complexity type, by hops, without leaked questions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from kgqa_core.config import Experiment
from kgqa_core.evaluation.labels import main_split
from kgqa_core.evaluation.long_tail import level_groups, triple_groups
from kgqa_core.metrics.registry import metrics_shown
from kgqa_core.metrics.significance import bootstrap_interval
from kgqa_core.types import COMPLEXITY_TYPES, SPLITS, Question

Rows = dict[str, dict[str, dict[str, float]]]
"""experiment → question id → metric → value."""

Cell = dict[str, float | int]
"""`{"value", "low", "high", "n"}`."""

COMBINED = "generic+multi-hop"
"""Group of the two complexity types that a relation path alone can answer."""


def aggregate(
    rows: Mapping[str, Mapping[str, Mapping[str, float]]],
    records: Sequence[Question],
    leaked: Collection[str] = (),
    same_text: Collection[str] = (),
    *,
    samples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """All aggregates of the questions scored in `rows`, floats rounded to six decimals.

    leaked: questions that training has seen, in words or in topic and path.  same_text: those it has seen in words.
    `with_answers`, of experiments in which some question has no gold answer, leaves such questions out, as Wu et al.
    2023 do (11 of WebQSP's test questions).
    `by_complexity` and `by_hops` look at each experiment's test questions, or at the only split it has; so do
    `by_level` and `by_triples` (number of reference triples), which are there where a question has such a group.
    """
    by_id = {record.id: record for record in records}

    def mean(questions: Iterable[str], scored: Mapping[str, Mapping[str, float]]) -> dict[str, Cell]:
        values: dict[str, list[float]] = {}
        for question in questions:
            for metric, value in scored[question].items():
                values.setdefault(metric, []).append(value)
        return {
            metric: bootstrap_interval(numbers, samples=samples, seed=seed).rounded()
            for metric, numbers in values.items()
        }

    result: dict[str, Any] = {
        "scores": {},
        "without_leaked": {},
        "without_same_text": {},
        "by_complexity": {},
        "by_hops": {},
    }
    for experiment, scored in rows.items():
        splits = [split for split in SPLITS if any(by_id[question].split == split for question in scored)]
        members = {split: [question for question in scored if by_id[question].split == split] for split in splits}
        result["scores"][experiment] = {split: mean(members[split], scored) for split in splits}
        for key, seen in (("without_leaked", leaked), ("without_same_text", same_text)):
            result[key][experiment] = {
                split: mean([question for question in members[split] if question not in seen], scored)
                for split in splits
            }
        if any(not by_id[question].answer_keys for question in scored):
            result.setdefault("with_answers", {})[experiment] = {
                split: mean([question for question in members[split] if by_id[question].answer_keys], scored)
                for split in splits
            }
        chosen = main_split(splits)
        if chosen is None:
            continue
        for key, groups in (("by_complexity", complexity_groups), ("by_hops", hop_groups)):
            result[key][experiment] = {
                group: mean(questions, scored) for group, questions in grouped(members[chosen], by_id, groups).items()
            }
        for key, groups in (("by_level", level_groups), ("by_triples", triple_groups)):
            if parts := grouped(members[chosen], by_id, groups):
                result.setdefault(key, {})[experiment] = {group: mean(part, scored) for group, part in parts.items()}
    result["n_unlinkable"] = {
        split: sum(record.unlinkable is not None for record in records if record.split == split)
        for split in SPLITS
        if any(record.split == split for record in records)
    }
    result["gain_over_no_knowledge"] = gains(result["scores"])
    return result


def complexity_groups(record: Question) -> tuple[str, ...]:
    """Groups of Table 2 that a question belongs to."""
    if record.complexity is None:
        return ()
    return (record.complexity, COMBINED) if record.complexity in ("generic", "multi-hop") else (record.complexity,)


def hop_groups(record: Question) -> tuple[str, ...]:
    """The question's number of hops as a group, or none when it is not known."""
    return () if record.hops is None else (str(record.hops),)


def gains(scores: Mapping[str, Mapping[str, Mapping[str, Cell]]]) -> dict[str, dict[str, float | None]]:
    """Relative improvement over the same model without knowledge, in percent, of the metrics of Table 1.

    The paper's Table 1 measures gain this way.  None where the model without knowledge scores 0.
    """
    results: dict[str, dict[str, float | None]] = {}
    for experiment, by_split in scores.items():
        parsed = Experiment.parse(experiment)
        base = scores.get(str(Experiment("none", format="none", answerer=parsed.answerer)))
        split = main_split(by_split)
        if base is None or split is None or split not in base or parsed.without_knowledge:
            continue
        results[experiment] = {}
        for metric in metrics_shown("table_1"):
            before, after = base[split][metric]["value"], by_split[split][metric]["value"]
            results[experiment][metric] = round(100 * (after - before) / before, 6) if before else None
    return results


def grouped(
    questions: Iterable[str], by_id: Mapping[str, Question], groups: Callable[[Question], tuple[str, ...]]
) -> dict[str, list[str]]:
    """Group → its questions; complexity types in the order of Table 2, other groups by name."""
    results: dict[str, list[str]] = {}
    for question in questions:
        for group in groups(by_id[question]):
            results.setdefault(group, []).append(question)
    order = {name: index for index, name in enumerate((*COMPLEXITY_TYPES, COMBINED))}
    return dict(sorted(results.items(), key=lambda item: (order.get(item[0], len(order)), item[0])))
