"""Words for experiments, metrics and numbers, the same on the console and on the page."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kgqa_core.types import COMPLEXITY_TYPES

RETRIEVERS = {
    "-": "As given",
    "none": "No knowledge",
    "random": "Random",
    "kaping": "KAPING",
    "rigel": "Rigel",
    "hop_path": "HopPath",
    "oracle": "Oracle",
}
"""Retrievers in the order of the tables."""

FORMATS = ("-", "none", "triples", "template", "rewritten")
"""Formats in the order of the tables."""

METRICS = {
    "exact": "Exact",
    "contains": "Contains",
    "contains_substring": "Contains, as substring",
    "hit_rra": "Hit@1 (RRA)",
    "hit_rra_substring": "Hit@1 (RRA), as substring",
    "f1": "F1",
    "hits_at_1": "Hits@1",
    "hits_at_5": "Hits@5",
    "recall_of_answers": "Recall of answers",
    "hop_accuracy": "Hop accuracy",
    "path_at_1": "Path@1",
    "path_at_5": "Path@5",
}

MEANINGS = {
    "exact": "the whole answer is a name or alias of a gold answer, after normalisation; numbers by value",
    "contains": "a name or alias of a gold answer occurs in the answer, on token boundaries (Sen et al. 2023)",
    "contains_substring": "the same as plain substring: “4” counts in “14”",
    "hit_rra": "the name of a gold answer occurs in the answer, both only lower-cased (Wu et al. 2023), on boundaries",
    "hit_rra_substring": "the same as plain substring, as published",
    "f1": "balance of precision and recall over the set of answers that the output lists",
    "hits_at_1": "the retriever's first-ranked entity is a gold answer",
    "hits_at_5": "a gold answer is among its first five entities",
    "recall_of_answers": "a gold answer is an end of a retrieved fact",
    "hop_accuracy": "the first predicted path has the annotated number of hops (annotated questions only)",
    "path_at_1": "the first predicted path is an annotated one (annotated questions only)",
    "path_at_5": "an annotated path is among the first five predicted (annotated questions only)",
}


def split_experiment(experiment: str) -> tuple[str, str, str]:
    """(retriever, format, answerer) of an experiment's name; the answerer's name may hold slashes."""
    retriever, form, model = ([*experiment.split("/", 2), "-", "-"])[:3]
    return retriever, form, model


def knowledge_label(experiment: str) -> str:
    """What the model of an experiment reads: `Rigel facts`; with the format unless it is triples."""
    retriever, form, _ = split_experiment(experiment)
    label = RETRIEVERS.get(retriever, retriever)
    label = label if retriever in ("-", "none") else f"{label} facts"
    return label if form in ("none", "triples", "-") else f"{label} ({form})"


def retriever_label(experiment: str) -> str:
    """Name of a retriever alone."""
    retriever = split_experiment(experiment)[0]
    return RETRIEVERS.get(retriever, retriever)


def knowledge_place(experiment: str) -> tuple[int, int, str]:
    """Sorts experiments as the tables show them: by retriever, then by format, then by name."""
    retriever, form, _ = split_experiment(experiment)
    retrievers = list(RETRIEVERS)
    return (
        retrievers.index(retriever) if retriever in retrievers else len(retrievers),
        FORMATS.index(form) if form in FORMATS else len(FORMATS),
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
        _, _, model = split_experiment(experiment)
        if model != "-":
            found.setdefault(model, []).append(experiment)
    return {model: sorted(found[model], key=knowledge_place) for model in sorted(found)}


def retriever_experiments(experiments: Iterable[str]) -> list[str]:
    """Retrievers alone, Rigel first."""
    alone = [experiment for experiment in experiments if split_experiment(experiment)[1:] == ("-", "-")]
    first = {"rigel": 0, "hop_path": 1, "kaping": 2, "random": 3, "oracle": 4}
    return sorted(alone, key=lambda name: (first.get(split_experiment(name)[0], 9), name))


def main_split(splits: Collection[str]) -> str | None:
    """The split that tables show: test, or else dev, or else train."""
    return next((split for split in ("test", "dev", "train") if split in splits), None)


def percent(value: float) -> str:
    """0.8731 → `87.3`."""
    return f"{100 * value:.1f}"


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
