"""The rules of a benchmark that were checked, and those of its splits: sizes, shares, what training shows, levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kgqa_core.builders.answerability.records import FULL, IID, PARTIAL, Benchmark, BenchmarkQuestion, IdealRecord
from kgqa_core.logic.forms import Form, elements
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.parser import parse
from kgqa_core.types import SPLITS


@dataclass(slots=True)
class Check:
    """A rule.  checked: how often; faults: what breaks it, in words."""

    rule: str
    checked: int = 0
    faults: list[str] = field(default_factory=list)


class Checks:
    """Rules in the order in which they were first checked."""

    def __init__(self) -> None:
        self.by_rule: dict[str, Check] = {}

    def that(self, rule: str, holds: bool, fault: str) -> None:
        """Counts one case of a rule."""
        check = self.by_rule.setdefault(rule, Check(rule))
        check.checked += 1
        if not holds:
            check.faults.append(fault)


@dataclass(frozen=True, slots=True)
class Case:
    """A question as it is asked and as it ideally is, with what its ideal form names; names: entities and classes."""

    question: BenchmarkQuestion
    ideal: IdealRecord
    form: Form
    relations: frozenset[str]
    names: frozenset[str]
    classes: frozenset[str]


def case_of(question: BenchmarkQuestion, ideal: IdealRecord) -> Case:
    """Raises FormError where the ideal form cannot be read."""
    form = parse(ideal.s_expression)
    used = elements(form)
    names = frozenset((*used.entities, *used.classes))
    return Case(question, ideal, form, frozenset(used.relations), names, frozenset(used.classes))


SPLIT_SLACK, SHARE_SLACK = 0.005, 0.01
"""How far a split's size, and its share of unanswerable questions, may be from what was asked for."""


def check_splits(
    checks: Checks, benchmark: Benchmark, cases: Sequence[Case], touched: Sequence[frozenset[int]]
) -> None:
    """Checks sizes, shares, what splits share and levels.  touched: steps that touch each question."""
    goals = benchmark.statistics["goals"]
    for row in benchmark.statistics["splits"]:
        own = [case.question for case in cases if row["split"] in (case.question.split, "all")]
        counted = {"questions": len(own), "U": sum(not question.answerable for question in own),
                "NK": sum(question.s_expression is None for question in own)}  # fmt: skip
        checks.that(
            "the tables count what is there", counted == {name: row[name] for name in counted},
            f"{row['split']}: {counted} are not what statistics.json says",
        )  # fmt: skip
    sizes = Counter(case.question.split for case in cases)
    lost = Counter(case.question.split for case in cases if not case.question.answerable)
    share = sum(lost.values()) / len(cases)
    keys = [str(normalise(case.form)) for case in cases]
    largest = max(Counter(keys).values())
    checks.that(
        "the share of unanswerable questions is p_u",
        abs(share - goals["p_u"]) <= SHARE_SLACK + largest / len(cases), f"{share:.3f} of {goals['p_u']}",
    )  # fmt: skip
    for name, part in zip(SPLITS, goals["splits"], strict=True):
        slack = largest / len(cases)
        have = sizes[name] / len(cases)
        checks.that(
            "splits have their shares", abs(have - part / sum(goals["splits"])) <= SPLIT_SLACK + slack,
            f"{name} has {have:.3f}, not {part}",
        )  # fmt: skip
        inside = lost[name] / max(1, sizes[name])
        checks.that(
            "every split has the share of unanswerable questions",
            abs(inside - share) <= SHARE_SLACK + largest / max(1, sizes[name]),
            f"{name} has {inside:.3f}, all {share:.3f}",
        )
    places: dict[str, set[str]] = {}
    for key, case in zip(keys, cases, strict=True):
        places.setdefault(key, set()).add(case.question.split)
    for form, where in sorted(places.items()):
        checks.that("a form is in one split", len(where) == 1, f"{form} is in {sorted(where)}")
    in_train = frozenset().union(
        *(steps for case, steps in zip(cases, touched, strict=True) if case.question.split == SPLITS[0])
    )
    shown = frozenset(part for case in cases if case.question.split == SPLITS[0] for part in _elements(case))
    for case in cases:
        level = None
        if case.question.split != SPLITS[0] and not case.question.answerable:
            missing = set(case.ideal.missing)
            level = IID if missing <= in_train else PARTIAL if missing & in_train or _elements(case) & shown else FULL
        checks.that(
            "levels are what training has seen", case.ideal.level == level,
            f"{case.question.id} is {case.ideal.level}, but it is {level}",
        )  # fmt: skip
        if case.ideal.level not in (None, IID):
            new = set(case.ideal.missing) - in_train
            checks.that(
                "a zero-shot question misses something that no training question touches", bool(new),
                f"{case.question.id} misses {case.ideal.missing[:5]}",
            )  # fmt: skip
        if case.question.split == SPLITS[0] and case.question.s_expression is None:
            checks.that(
                "training shows no ideal form of a question whose form is gone",
                case.ideal.s_expression not in _shown(case.question), f"{case.question.id} shows it",
            )  # fmt: skip


def _elements(case: Case) -> frozenset[str]:
    used = elements(case.form)
    parts = (("r", used.relations), ("t", used.classes), ("e", used.entities))
    return frozenset(kind + key for kind, keys in parts for key in keys)


def _shown(question: BenchmarkQuestion) -> str:
    """Everything that training reads of a question but its text and topics."""
    return " ".join((str(question.s_expression), *question.answers))
