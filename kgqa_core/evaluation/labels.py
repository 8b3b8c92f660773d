"""Words for experiments, metrics and numbers, the same on the console and on the page."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kgqa_core.answering.registry import KNOWLEDGE_FORMATS
from kgqa_core.config import PASSAGES, TOPICS, Experiment, RetrieverVariant
from kgqa_core.retrieval.registry import RETRIEVERS
from kgqa_core.types import COMPLEXITY_TYPES

RETRIEVER_LABELS = {
    "-": "As given",
    "none": "No knowledge",
    "passages": "Passages",
    **{spec.name: spec.label for spec in sorted(RETRIEVERS.values(), key=lambda spec: spec.place)},
}
"""Retrievers in the order of the tables."""

HEADLINE = tuple(
    str(RetrieverVariant(spec.name, topics))
    for topics in ("gold", "linked")
    for spec in RETRIEVERS.values()
    if spec.headline
)
"""Retrievers whose scores open a report and whose facts are its examples, best known first."""

LINKS = "linked/-/-"
"""Name that the scores of linking itself stand under among the experiments."""

METRICS = {
    "exact": "Exact",
    "contains": "Contains",
    "contains_substring": "Contains, as substring",
    "hit_rra": "Hit (RRA)",
    "hit_rra_substring": "Hit (RRA), as substring",
    "f1": "F1",
    "judged": "Judged",
    "hits_at_1": "Hits@1",
    "hits_at_5": "Hits@5",
    "recall_of_answers": "Recall of answers",
    "hop_accuracy": "Hop accuracy",
    "path_at_1": "Path@1",
    "path_at_5": "Path@5",
    "pair_recall": "Pair recall",
    "km": "KM",
    "rkm": "rKM",
    "ekm": "eKM",
    "nli_entailment": "E",
    "nli_contradiction": "C",
    "nli_overall": "E − C",
    "link_precision": "Link precision",
    "link_recall": "Link recall",
    "link_f1": "Link F1",
    "link_recall_at_5": "Link recall@5",
}

MEANINGS = {
    "exact": "the whole answer is a name or alias of a gold answer, after normalisation; numbers by value",
    "contains": "a name or alias of a gold answer occurs in the answer (Hit), on token boundaries (Sen et al. 2023)",
    "contains_substring": "the same as plain substring: “4” counts in “14”",
    "hit_rra": "the name of a gold answer occurs in the answer (Hit, there hit@1), only lower-cased (Wu et al. 2023)",
    "hit_rra_substring": "the same as plain substring, as published",
    "f1": "balance of precision and recall over the set of answers that the output lists",
    "judged": "a language model finds that the answer means a gold answer (evaluation.judge); no verdict counts as no",
    "hits_at_1": "the first is a gold answer: of a retriever's ranked entities, of the names that a model lists",
    "hits_at_5": "a gold answer is among its first five entities",
    "recall_of_answers": "a gold answer is an end of a retrieved fact",
    "hop_accuracy": "the first predicted path has the annotated number of hops (annotated questions only)",
    "path_at_1": "the first predicted path is an annotated one (annotated questions only)",
    "path_at_5": "an annotated path is among the first five predicted (annotated questions only)",
    "pair_recall": "share of the entity-relation pairs of the reference that the facts hold (Huang et al. 2024)",
    "km": "a reference answer occurs in the response (questions of the long tail that have answers only)",
    "rkm": "share of the reference answers that occur in the response (likewise)",
    "ekm": "all reference answers occur in the response (likewise)",
    "nli_entailment": "probability that the response entails the reference, by a classifier",
    "nli_contradiction": "probability that the response contradicts the reference (lower is better)",
    "nli_overall": "difference of both, from −100 to 100",
    "link_precision": "share of the linked topics that are gold ones (questions with gold topics in the graph only)",
    "link_recall": "share of the gold topics that were linked (likewise)",
    "link_f1": "balance of both, question by question (likewise)",
    "link_recall_at_5": "share of the gold topics among the tagger's first five candidates (likewise)",
}


_FROM_LINKS = ", linked topics"


def knowledge_label(experiment: str) -> str:
    """What the model of an experiment reads: `Rigel facts`; with the format unless it is triples."""
    parsed = Experiment.parse(experiment)
    plain, form = parsed.retriever, parsed.format
    label = RETRIEVER_LABELS.get(plain, plain)
    label = label if plain in ("-", "none", PASSAGES, TOPICS) else f"{label} facts"
    spec = KNOWLEDGE_FORMATS.get(form)
    return f"{label}{spec.label if spec is not None else ''}{_FROM_LINKS if parsed.linked else ''}"


def retriever_label(experiment: str) -> str:
    """Name of a retriever alone."""
    parsed = Experiment.parse(experiment)
    return RETRIEVER_LABELS.get(parsed.retriever, parsed.retriever) + (_FROM_LINKS if parsed.linked else "")


def knowledge_place(experiment: str) -> tuple[int, int, str]:
    """Sorts experiments as the tables show them: by retriever, then by format, then by name."""
    parsed = Experiment.parse(experiment)
    retriever, form = parsed.retriever, parsed.format
    retrievers, formats = list(RETRIEVER_LABELS), ["-", *KNOWLEDGE_FORMATS]
    return (
        retrievers.index(retriever) if retriever in retrievers else len(retrievers),
        formats.index(form) if form in formats else len(formats),
        experiment,
    )


def group_order(group: str) -> tuple[int, int, str]:
    """Sorts groups of questions: complexity types as Mintaka has them, then numbers, then names."""
    place = COMPLEXITY_TYPES.index(group) if group in COMPLEXITY_TYPES else len(COMPLEXITY_TYPES)
    return place, int(group) if group.isdecimal() else 0, group


def model_experiments(experiments: Iterable[str]) -> dict[str, list[str]]:
    """Answerer → its experiments in the order of Table 1; retrievers alone are left out."""
    found: dict[str, list[str]] = {}
    for experiment in experiments:
        model = Experiment.parse(experiment).answerer
        if model != "-":
            found.setdefault(model, []).append(experiment)
    return {model: sorted(found[model], key=knowledge_place) for model in sorted(found)}


def retriever_experiments(experiments: Iterable[str]) -> list[str]:
    """Retrievers alone, in the order of the registry."""
    alone = [name for name in experiments if Experiment.parse(name).alone and name != LINKS]
    order = {name: place for place, name in enumerate(RETRIEVERS)}
    return sorted(alone, key=lambda name: (order.get(Experiment.parse(name).retriever, len(order)), name))


def main_split(splits: Collection[str]) -> str | None:
    """The split that tables show: test, or else dev, or else train."""
    return next((split for split in ("test", "dev", "train") if split in splits), None)


def percent(value: float) -> str:
    """0.8731 → `87.3`."""
    return f"{round(100 * value, 1) + 0.0:.1f}".replace("-", "−")


def p_text(p: float) -> str:
    """0.0132 → `p = 0.013`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def gain_text(gain: float | None) -> str:
    """83.4 → `+83 %`; an improvement over zero has no percentage."""
    if gain is None:
        return "from 0"
    return f"{gain:+,.0f} %".replace("-", "−")


def seconds_text(seconds: float) -> str:
    """75.2 → `1 min 15 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"
