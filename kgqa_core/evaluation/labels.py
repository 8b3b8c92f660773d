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


def knowledge_order(experiment: str) -> tuple[int, int, str]:
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
    index = COMPLEXITY_TYPES.index(group) if group in COMPLEXITY_TYPES else len(COMPLEXITY_TYPES)
    return index, int(group) if group.isdecimal() else 0, group


def model_experiments(experiments: Iterable[str]) -> dict[str, list[str]]:
    """Answerer → its experiments in the order of Table 1; retrievers alone are left out."""
    results: dict[str, list[str]] = {}
    for experiment in experiments:
        model = Experiment.parse(experiment).answerer
        if model != "-":
            results.setdefault(model, []).append(experiment)
    return {model: sorted(results[model], key=knowledge_order) for model in sorted(results)}


def retriever_experiments(experiments: Iterable[str]) -> list[str]:
    """Retrievers alone, in the order of the registry."""
    alone = [name for name in experiments if Experiment.parse(name).alone and name != LINKS]
    order = {name: index for index, name in enumerate(RETRIEVERS)}
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
