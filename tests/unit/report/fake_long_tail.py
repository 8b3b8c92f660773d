"""Made-up aggregates of a run over a long-tail benchmark; numbers are invented."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kgqa_core.report.data import ReportData
from tests.unit.report.fake import cell, fake_report

LEVELS = {"I": 1.12, "II": 1.04, "III": 0.95, "IV": 0.86}
TRIPLES = {"1": 1.05, "2": 0.95, "3": 0.9, ">3": 0.8}
STEPS = (1, 2, 3, 5, 10, 20, 50)
SETTINGS = {
    "none/none": (0.405, 96),
    "passages/passages": (0.51, 1403),
    "rank_pair/triples": (0.771, 412),
    "rank_pair@linked/triples": (0.702, 398),
    "rank_pair/both": (0.79, 1790),
    "rank_pair@linked/both": (0.741, 1755),
}
"""KM and prompt tokens of each setting."""
RETRIEVERS = {"rank_pair": 0.95, "rank_pair@linked": 0.67, "rank_llm": 0.89, "rank_llm@linked": 0.62, "random": 0.31}


def signed(value: float, n: int) -> dict[str, float | int]:
    half = 1.2 / n**0.5
    return {"value": round(value, 6), "low": round(value - half, 6), "high": round(value + half, 6), "n": n}


def responses(value: float, n: int, judged: bool) -> dict[str, Any]:
    found = {"exact": cell(0.1 * value, n), "contains": cell(value, n), "hit_rra": cell(0.9 * value, n)}
    found |= {"contains_substring": cell(value, n), "hit_rra_substring": cell(0.9 * value, n), "f1": cell(0.2, n)}
    found |= {"km": cell(value, n), "rkm": cell(0.95 * value, n), "ekm": cell(0.9 * value, n)}
    if judged:
        entails, contradicts = 0.8 * value, 0.45 - 0.4 * value
        found |= {"nli_entailment": cell(entails, n), "nli_contradiction": cell(contradicts, n)}
        found |= {"nli_overall": signed(entails - contradicts, n)}
    return found


def fake_long_tail(models: tuple[str, ...] = ("builtin",), *, judged: bool = True) -> dict[str, Any]:
    """Aggregates with levels, reference triples, pair recall and, where judged, entailment."""
    scores: dict[str, Any] = {}
    by_level: dict[str, Any] = {}
    by_triples: dict[str, Any] = {}
    costs: dict[str, Any] = {}
    for place, model in enumerate(models):
        for setting, (value, tokens) in SETTINGS.items():
            name, value = f"{setting}/{model}", value * (1 - 0.15 * place)
            scores[name] = {"test": responses(value, 6000, judged)}
            by_level[name] = {group: responses(value * more, 1500, judged) for group, more in LEVELS.items()}
            by_triples[name] = {group: responses(value * more, 900, judged) for group, more in TRIPLES.items()}
            costs[name] = {"questions": 6000, "prompt_tokens": tokens * (1 + 0.1 * place), "finish": {"stop": 6000}}
    for retriever, recall in RETRIEVERS.items():
        name = f"{retriever}/-/-"
        alone = {"hits_at_1": cell(0.0, 6000), "hits_at_5": cell(0.2, 6000), "recall_of_answers": cell(recall, 6000)}
        scores[name] = {"test": alone | {"pair_recall": cell(recall, 6000)}}
        by_level[name] = {group: {"pair_recall": cell(min(1, recall * m), 1500)} for group, m in LEVELS.items()}
        by_triples[name] = {group: {"pair_recall": cell(min(1, recall * m), 900)} for group, m in TRIPLES.items()}
    steps = {name: {str(k): cell(v * k / (k + 1.3), 6000) for k in STEPS} for name, v in RETRIEVERS.items()}
    return {
        "scores": scores,
        "by_level": by_level,
        "by_triples": by_triples,
        "recall_by_k": {f"{name}/-/-": own for name, own in steps.items()},
        "cost": costs,
        "by_complexity": {},
        "by_hops": {},
        "n_unlinkable": {"test": 0},
        "leakage": {"leaked": 0},
    }


def long_tail_report(models: tuple[str, ...] = ("builtin",), *, judged: bool = True) -> ReportData:
    """A page of that run."""
    return replace(fake_report(), title="Long tail of Atlas", aggregates=fake_long_tail(models, judged=judged))
