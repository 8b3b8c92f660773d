"""Words for experiments, metrics and numbers, the same on the console and on the page."""

from __future__ import annotations

from collections.abc import Collection, Iterable

KNOWLEDGE = {
    "-": "As given",
    "none": "No knowledge",
    "random": "Random facts",
    "rigel": "Rigel facts",
    "oracle": "Oracle facts",
}
"""Retrievers in the order of Table 1."""

METRICS = {
    "exact": "Exact",
    "contains": "Contains",
    "contains_substring": "Contains, as substring",
    "hit_rra": "Hit (RRA)",
    "hit_rra_substring": "Hit (RRA), as substring",
    "f1": "F1",
    "hits_at_1": "Hits@1",
    "hits_at_5": "Hits@5",
    "recall_of_answers": "Recall of answers",
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
}


def split_experiment(experiment: str) -> tuple[str, str, str]:
    """(retriever, format, answerer) of an experiment's name; the answerer's name may hold slashes."""
    retriever, form, model = ([*experiment.split("/", 2), "-", "-"])[:3]
    return retriever, form, model


def knowledge_label(experiment: str) -> str:
    """What the model of an experiment reads: `Rigel facts`; with the format unless it is triples."""
    retriever, form, _ = split_experiment(experiment)
    label = KNOWLEDGE.get(retriever, f"{retriever} facts")
    return label if form in ("none", "triples", "-") else f"{label} ({form})"


def retriever_label(experiment: str) -> str:
    """Name of a retriever alone."""
    retriever = split_experiment(experiment)[0]
    return {"rigel": "Rigel", "random": "Random", "oracle": "Oracle"}.get(retriever, retriever)


def model_experiments(experiments: Iterable[str]) -> dict[str, list[str]]:
    """Answerer → its experiments in the order of Table 1; retrievers alone are left out."""
    found: dict[str, list[str]] = {}
    for experiment in experiments:
        _, _, model = split_experiment(experiment)
        if model != "-":
            found.setdefault(model, []).append(experiment)
    return {model: sorted(found[model], key=_place) for model in sorted(found)}


def retriever_experiments(experiments: Iterable[str]) -> list[str]:
    """Retrievers alone, Rigel first."""
    alone = [experiment for experiment in experiments if split_experiment(experiment)[1:] == ("-", "-")]
    order = {"rigel": 0, "random": 1, "oracle": 2}
    return sorted(alone, key=lambda name: (order.get(split_experiment(name)[0], 9), name))


def main_split(splits: Collection[str]) -> str | None:
    """The split that tables show: test, or else dev, or else train."""
    return next((split for split in ("test", "dev", "train") if split in splits), None)


def percent(value: float) -> str:
    """0.8731 → `87.3`."""
    return f"{100 * value:.1f}"


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


def _place(experiment: str) -> tuple[int, str]:
    order = {name: place for place, name in enumerate(KNOWLEDGE)}
    return order.get(split_experiment(experiment)[0], len(order)), experiment
