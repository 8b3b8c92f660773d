"""The rules that the verifier counts, and a question as it sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgqa_core.logic.forms import Form, elements
from kgqa_core.logic.parser import parse
from kgqa_core.papers.grailqability.builder.records import BenchmarkQuestion, IdealRecord


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
    """A question of the benchmark, as it ideally is, and what its ideal form names.  names: entities and classes."""

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
