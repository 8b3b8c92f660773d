"""Figures of the answerer `auto`: exactness, relations, wordings of Atlas, shares with intervals, and their table."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.answers.people import normal, share
from benchmarks.conditions import commit_name
from kgqa_core.answering.reply import Answer
from kgqa_core.logic.forms import Form
from kgqa_core.logic.paths import to_paths
from kgqa_core.metrics.confidence import expected_calibration_error
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import COMPLEXITY_TYPES, Question

SLOT = re.compile(r"(\{\w\})")
SEEN, UNSEEN = "seen wording", "unseen wording"
Group = Callable[[Question], str | None]
"""The group that a question counts in, None for none."""


def is_exact(question: Question, keys: Sequence[str], answers: Sequence[str]) -> bool:
    """Whether the whole answer is the gold one: the same entities, or the same values, numbers compared by value.

    keys, answers: of what was answered, as `ComputedAnswer` has them.  Entities are compared by key, so that two of one
    name differ; values by key or by name.  Nothing is never exact.
    """
    if not keys or not question.answer_keys:
        return False
    if normal(list(keys)) == normal(list(question.answer_keys)):
        return True
    names = [own[0] for own in question.answer_names if own]
    return question.answer_type != "entities" and normal(list(answers)) == normal(names)


def is_hit(question: Question, keys: Sequence[str]) -> bool:
    """Whether the first of the answers is a gold one (Hits@1)."""
    return bool(normal(list(keys[:1])) & normal(list(question.answer_keys)))


def names_gold(question: Question, keys: Sequence[str]) -> bool:
    """Whether a gold answer is among the answers."""
    return bool(normal(list(keys)) & normal(list(question.answer_keys)))


def has_gold_path(question: Question, form: Form | None) -> bool:
    """Whether a form follows one of the gold relation paths, directions included, and no other."""
    if form is None:
        return False
    paths = {path.relations for path in to_paths(form) if path.relations}
    return len(paths) == 1 and paths <= set(question.relation_paths)


def wording_of(text: str, seen: Iterable[str], unseen: Iterable[str]) -> str | None:
    """Whether a question is in a wording of every split (SEEN) or of the test split alone (UNSEEN); None for neither.

    seen, unseen: sentences with slots such as `{x}`.  Of several that match, that with most letters of its own counts.
    """
    matches = [
        (len(SLOT.sub("", wording)), kind)
        for kind, wordings in ((SEEN, seen), (UNSEEN, unseen))
        for wording in wordings
        if re.fullmatch("".join("(.+)" if SLOT.fullmatch(p) else re.escape(p) for p in SLOT.split(wording)), text, re.I)
    ]
    return max(matches)[1] if matches else None


def reply_of(question: Question, solved: ComputedAnswer, calibrated: bool) -> Answer:
    """A computed answer as the typed reply that `people.measure` reads."""
    return Answer(
        id=question.id, question=question.text, output=", ".join(solved.answers) or None,
        answers=solved.answers, road=solved.road, answerable=bool(solved.answers), confidence=solved.confidence,
        calibrated=calibrated, reason=solved.reason, missing=solved.missing,
    )  # fmt: skip


def figures(
    questions: Sequence[Question],
    solved: Sequence[ComputedAnswer],
    groups: Mapping[str, Group] | None = None,
    measures: Mapping[str, Callable[[Question, ComputedAnswer], bool]] | None = None,
) -> dict[str, Any]:
    """Shares of the questions, each with its interval, and `exact` by group.

    measures: further shares, by name.  ece: of the confidence of what was answered, that the answer is exact; None
    where no confidence was learnt.
    """
    exact = [is_exact(q, one.keys, one.answers) for q, one in zip(questions, solved, strict=True)]
    sure = [(one.confidence, good) for one, good in zip(solved, exact, strict=True) if one.keys]
    known = [(confidence, float(good)) for confidence, good in sure if confidence is not None]
    result: dict[str, Any] = {
        "exact": share(exact),
        "hits_at_1": share([is_hit(q, one.keys) for q, one in zip(questions, solved, strict=True)]),
        "declined": share([not one.keys for one in solved]),
        "exact_of_answered": share([good for _, good in sure]),
        "ece": round(expected_calibration_error(*zip(*known, strict=True)), 4) if known else None,
    }
    for name, measure in (measures or {}).items():
        result[name] = share([measure(q, one) for q, one in zip(questions, solved, strict=True)])
    for name, group in (groups or {}).items():
        members: dict[str, list[bool]] = defaultdict(list)
        for question, good in zip(questions, exact, strict=True):
            if (key := group(question)) is not None:
                members[key].append(good)
        result[f"exact_by_{name}"] = {key: share(own) for key, own in sorted(members.items())}
    return result


def milliseconds(seconds: Sequence[float]) -> dict[str, Any]:
    """p50 and p99 of milliseconds a question."""
    p50, p99 = (round(1000 * float(np.quantile(seconds, q)), 1) for q in (0.5, 0.99))
    return {"p50": p50, "p99": p99, "n": len(seconds)}


TARGETS: Mapping[str, str] = {
    "atlas/gold topics/exact": "≥ .95",
    "atlas/gold topics/exact_by_wording/unseen wording": "≥ .90",
    "metaqa/generated alone, 1 hops/hits_at_1": "≥ .95",
    "metaqa/generated alone, 2 hops/hits_at_1": "≥ .93",
    "metaqa/generated alone, 3 hops/hits_at_1": "≥ .85",
    "simplequestions/gold topics/relation": "≥ .70",
    "simplequestions/gold topics/hits_at_1": "≥ .90",
    "zjqa/generated alone/hits_at_1": "≥ .80",
    "people_locked/locked, atlas/exact": "≥ .85",
    "people_locked/locked, wikidata_mini/gold_answer_named": "≥ .65",
    **{
        f"people_locked/locked, {graph}/{figure}": target
        for graph in ("atlas", "wikidata_mini")
        for figure, target in (
            ("declined_of_unanswerable", "≥ .90"),
            ("wrongly_declined", "≤ .05"),
            ("confidence/ece", "≤ .08"),
        )
    },
}
"""Figures that are aimed at, by `experiment/part/figure` as in the JSON; the table shows them."""


def cell(value: Any) -> str:
    """A share as `.941 [.931, .950]`, a number with three places, a dash for nothing."""
    if isinstance(value, Mapping):
        if value.get("share") is None:
            return "–"
        low, high = (_short(value[end]) for end in ("low", "high"))
        return f"{_short(value['share'])} [{low}, {high}]"
    return "–" if value is None else _short(value)


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


_KINDS = "exact_by_type"
ATLAS_ROWS = {kind: f"{_KINDS}/{kind}" for kind in COMPLEXITY_TYPES} | {
    SEEN: f"exact_by_wording/{SEEN}",
    UNSEEN: f"exact_by_wording/{UNSEEN}",
}
NEVER = {
    "Hits@1, never declining": "never_declining/hits_at_1",
    "exact, never declining": "never_declining/exact",
}
PEOPLE_ROWS = {
    "exact": "exact",
    "exact, never declining": "never_declining/exact",
    "exact, of the ten best plans any": "among_ten",
    "gold answer named": "gold_answer_named",
    "gold answer named, never declining": "never_declining/gold_answer_named",
    "declined of unanswerable": "declined_of_unanswerable",
    "wrongly declined": "wrongly_declined",
    "ECE": "confidence/ece",
    "ECE by chance alone": "confidence/ece_of_chance",
}
SHOWN: Mapping[str, Mapping[str, str]] = {
    "atlas": {"exact": "exact"} | ATLAS_ROWS | {"declined": "declined", "ECE": "ece"},
    "atlas_no_questions": {"exact": "exact", "exact, never declining": "never_declining/exact"}
    | ATLAS_ROWS
    | {"declined": "declined", "ECE": "ece"},
    "metaqa": {"Hits@1": "hits_at_1", "exact": "exact"} | NEVER,
    "simplequestions": {
        "relation": "relation",
        "relation, never declining": "never_declining/relation",
        "Hits@1": "hits_at_1",
        "Hits@1, never declining": "never_declining/hits_at_1",
        "relation, topic with a label": "relation_by_topic/label",
    },
    "zjqa": {"Hits@1": "hits_at_1", "exact": "exact"} | NEVER,
    "few": {"Hits@1": "hits_at_1", "exact": "exact"} | NEVER,
    "ablation": {"exact": "exact", "declined of unanswerable": "declined_of_unanswerable"},
    "mintaka": {
        "gold answer named": "named",
        "the same, one relation apart": "named_by_distance/1",
        "the same, two relations apart": "named_by_distance/2",
    },
    "people": PEOPLE_ROWS,
    "people_locked": PEOPLE_ROWS,
}
"""Figures of each experiment in the table, by what they are called."""


def page(found: Mapping[str, Any]) -> str:
    """The table of its page in the docs."""
    return table(found["results"]) + "\n"


def table(results: Mapping[str, Any], targets: Mapping[str, str] = TARGETS) -> str:
    """The markdown table of all results: what, the figure with its 95 % interval, chance, target, questions, time."""
    lines = [
        "| what | figure [95 %] | random candidate | target | questions | ms, p50 / p99 |",
        "|---|---|---|---|---|---|",
    ]
    for experiment, shown in SHOWN.items():
        for part, values in results.get(experiment, {}).get("parts", {}).items():
            if "skipped" in values:
                lines.append(f"| {experiment}, {part}: not measured, {values['skipped']} | – | – | – | – | – |")
                continue
            for name, place in shown.items():
                value = _at(values, place)
                if value is None:
                    continue
                chance = cell(values.get("random_candidate")) if place == "exact" else "–"
                number = value["n"] if isinstance(value, Mapping) else values.get("questions", "–")
                time = values.get("milliseconds")
                shown_time = f"{time['p50']:g} / {time['p99']:g}" if time and name == next(iter(shown)) else "–"
                target = targets.get(f"{experiment}/{part}/{place}", "–")
                lines.append(
                    f"| {experiment}, {part}: {name} | {cell(value)} | {chance} | {target} | {number} | {shown_time} |"
                )
    made: dict[str, list[str]] = {}
    for experiment in SHOWN:
        if "commit" in (one := results.get(experiment, {})):
            changed = ", ".join(
                f"{name} {value}" for name, value in one["settings"].items() if name != "most" and value
            )
            own = f"commit {commit_name(one['commit'])}, {one['date']}" + (
                f"; label_parser: {changed}" if changed else ""
            )
            made.setdefault(own, []).append(experiment)
    lines += ["", *(f"- {', '.join(experiments)}: {own}" for own, experiments in made.items())]
    return "\n".join(lines)


def _at(values: Mapping[str, Any], place: str) -> Any:
    """What stands at `exact_by_type/generic`; None where there is nothing.  A name may hold a slash (`yes/no`)."""
    if place in values:
        return values[place]
    first, slash, rest = place.partition("/")
    return _at(values[first], rest) if slash and isinstance(values.get(first), Mapping) else None
