"""Every metric of a run's scores as one record: what computes, orders, labels or explains metrics reads `METRICS`.

A new metric is a function and its record here.  Groups say what a metric is computed from:

    output           gold answers, and what an answerer put out
    long_tail        the same, of questions of the long tail that have answers
    entailment       a classifier's scores of a response against its reference
    verdict          what a judge says of an output
    entities, facts  ranked entities, or all ends of the facts, and the gold entities
    hops, paths      ranked relation paths, and the gold numbers of hops or the gold paths
    pairs            rank of each gold entity-relation pair among the facts
    links            linked topics, and the gold ones
    link_candidates  topics that linking considered, surest first, and the gold ones
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from kgqa_core.metrics import entailment, links, retrieval, text

Group = Literal[
    "output", "long_tail", "entailment", "verdict", "entities", "facts", "hops", "paths", "pairs", "links",
    "link_candidates",
]  # fmt: skip

Table = Literal["table_1", "set_tests", "run_comparison"]
"""Table 1 of a report, with the gain over no knowledge; tests between experiments of one question set; two runs on a
terminal."""


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """A metric of one question.

    functions: group → what computes it; each takes what the group says.  values: `yes_no` is 0 or 1, `share` in [0, 1],
    `difference` in [-1, 1].  tables: those with room for a few metrics only.
    """

    name: str
    label: str
    meaning: str
    functions: Mapping[Group, Callable[..., float]]
    values: Literal["yes_no", "share", "difference"] = "yes_no"
    higher_is_better: bool = True
    tables: tuple[Table, ...] = ()

    @property
    def explanation(self) -> str:
        """The meaning with what is unusual about its values, as reports print it: in percent."""
        if not self.higher_is_better:
            return f"{self.meaning} (lower is better)"
        return f"{self.meaning}, from −100 to 100" if self.values == "difference" else self.meaning


_SPECS = (
    MetricSpec(
        "exact",
        "Exact",
        "the whole answer is a name or alias of a gold answer, after normalisation; numbers by value",
        {"output": text.exact},
        tables=("table_1", "set_tests", "run_comparison"),
    ),
    MetricSpec(
        "contains",
        "Contains",
        "a name or alias of a gold answer occurs in the answer (Hit), on token boundaries (Sen et al. 2023)",
        {"output": text.contains},
        tables=("table_1", "set_tests", "run_comparison"),
    ),
    MetricSpec(
        "contains_substring",
        "Contains, as substring",
        "the same as plain substring: “4” counts in “14”",
        {"output": text.contains_substring},
    ),
    MetricSpec(
        "hit_rra",
        "Hit (RRA)",
        "the name of a gold answer occurs in the answer (Hit, there hit@1), only lower-cased (Wu et al. 2023)",
        {"output": text.hit_rra},
        tables=("set_tests", "run_comparison"),
    ),
    MetricSpec(
        "hit_rra_substring",
        "Hit (RRA), as substring",
        "the same as plain substring, as published",
        {"output": text.hit_rra_substring},
    ),
    MetricSpec(
        "f1",
        "F1",
        "balance of precision and recall over the set of answers that the output lists",
        {"output": text.f1},
        values="share",
        tables=("set_tests", "run_comparison"),
    ),
    MetricSpec(
        "judged",
        "Judged",
        "a language model finds that the answer means a gold answer (evaluation.judge); no verdict counts as no",
        {"verdict": lambda verdict: float(verdict is True)},
        tables=("run_comparison",),
    ),
    MetricSpec(
        "hits_at_1",
        "Hits@1",
        "the first is a gold answer: of a retriever's ranked entities, of the names that a model lists",
        {"output": text.first_hit, "entities": partial(retrieval.hit, k=1)},
        tables=("run_comparison",),
    ),
    MetricSpec(
        "hits_at_5",
        "Hits@5",
        "a gold answer is among its first five entities",
        {"entities": partial(retrieval.hit, k=5)},
    ),
    MetricSpec(
        "recall_of_answers",
        "Recall of answers",
        "a gold answer is an end of a retrieved fact",
        {"facts": retrieval.hit},
        tables=("run_comparison",),
    ),
    MetricSpec(
        "hop_accuracy",
        "Hop accuracy",
        "the first predicted path has the annotated number of hops (annotated questions only)",
        {"hops": retrieval.hop_accuracy},
        tables=("run_comparison",),
    ),
    MetricSpec(
        "path_at_1",
        "Path@1",
        "the first predicted path is an annotated one (annotated questions only)",
        {"paths": partial(retrieval.hit, k=1)},
    ),
    MetricSpec(
        "path_at_5",
        "Path@5",
        "an annotated path is among the first five predicted (annotated questions only)",
        {"paths": partial(retrieval.hit, k=5)},
    ),
    MetricSpec(
        "pair_recall",
        "Pair recall",
        "share of the entity-relation pairs of the reference that the facts hold (Huang et al. 2024)",
        {"pairs": partial(retrieval.recall_at, None)},
        values="share",
    ),
    MetricSpec(
        "km",
        "KM",
        "a reference answer occurs in the response (questions of the long tail that have answers only)",
        {"long_tail": text.km},
    ),
    MetricSpec(
        "rkm",
        "rKM",
        "share of the reference answers that occur in the response (likewise)",
        {"long_tail": text.rkm},
        values="share",
    ),
    MetricSpec("ekm", "eKM", "all reference answers occur in the response (likewise)", {"long_tail": text.ekm}),
    MetricSpec(
        "nli_entailment",
        "E",
        "probability that the response entails the reference, by a classifier",
        {"entailment": entailment.entailment},
        values="share",
    ),
    MetricSpec(
        "nli_contradiction",
        "C",
        "probability that the response contradicts the reference",
        {"entailment": entailment.contradiction},
        values="share",
        higher_is_better=False,
    ),
    MetricSpec(
        "nli_overall",
        "E − C",
        "difference of both",
        {"entailment": entailment.overall},
        values="difference",
    ),
    MetricSpec(
        "link_precision",
        "Link precision",
        "share of the linked topics that are gold ones (questions with gold topics in the graph only)",
        {"links": links.link_precision},
        values="share",
    ),
    MetricSpec(
        "link_recall",
        "Link recall",
        "share of the gold topics that were linked (likewise)",
        {"links": links.link_recall},
        values="share",
    ),
    MetricSpec(
        "link_f1",
        "Link F1",
        "balance of both, question by question (likewise)",
        {"links": links.link_f1},
        values="share",
    ),
    MetricSpec(
        "link_recall_at_5",
        "Link recall@5",
        "share of the gold topics among the tagger's first five candidates (likewise)",
        {"link_candidates": links.link_recall_at_5},
        values="share",
    ),
)

METRICS: Mapping[str, MetricSpec] = {spec.name: spec for spec in _SPECS}
"""Metrics by name, in the order of the tables."""


def metric_names(*groups: Group) -> tuple[str, ...]:
    """Metrics of any of the groups, in the order of the tables."""
    return tuple(name for name, spec in METRICS.items() if any(group in spec.functions for group in groups))


def metrics_shown(table: Table) -> tuple[str, ...]:
    """Metrics that a table with little room shows, in its order."""
    return tuple(name for name, spec in METRICS.items() if table in spec.tables)


def measure(group: Group, *inputs: Any) -> dict[str, float]:
    """Metric → value of every metric of a group, from what the group says; `TypeError` for other inputs."""
    return {name: METRICS[name].functions[group](*inputs) for name in metric_names(group)}


def metric_label(name: str) -> str:
    """`hits_at_1` → `Hits@1`; a metric of another version keeps its name."""
    return METRICS[name].label if name in METRICS else name


def metric_order(name: str) -> tuple[int, str]:
    """Sorts metrics as the tables show them; those of another version last, by name."""
    return (tuple(METRICS).index(name) if name in METRICS else len(METRICS)), name


def improvement(metric: str, low: float, high: float) -> tuple[float, float]:
    """The ends of a difference's interval as an improvement: turned round where less of the metric is better."""
    worse = metric in METRICS and not METRICS[metric].higher_is_better
    return (-high, -low) if worse else (low, high)
