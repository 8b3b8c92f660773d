"""Runs every question of a benchmark on both graphs, and checks every label and every rule of the splits.

The rules are written here a second time.  Forms are run by SQL (`logic.execute`), what is missing is looked up in the
modified graph, who misses what is worked out again from the drops and the proofs of the ideal answers, and the drops
are made once more, one after the other, to see which of them took a question's answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgqa_core.builders.answerability.records import (
    FACT,
    FULL,
    GRAPH,
    IID,
    PARTIAL,
    Benchmark,
    BenchmarkQuestion,
    IdealRecord,
    read_benchmark,
)
from kgqa_core.builders.answerability.replay import ROWS, ProofBySql, RemovedByDrops, Replay
from kgqa_core.errors import FormError, FormTimeout, InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import Result, answer_texts, execute
from kgqa_core.logic.forms import Count, Form, Holds, elements
from kgqa_core.logic.lookup import index
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.parser import parse
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.types import SPLITS

SPLIT_SLACK, SHARE_SLACK = 0.005, 0.01
"""How far a split's size, and its share of unanswerable questions, may be from what was requested."""


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


def verify(folder: Path, *, kg: Path | None = None, monitor: Monitor = QUIET) -> dict[str, Any]:
    """The rules with how often each was checked and what broke it: `{"clean", "questions", "checks": […]}`.

    kg: the ideal graph, where it is not the one that the overlay names.  Raises InputError, ArtifactError.
    """
    benchmark = read_benchmark(folder)
    with KgStore.open(folder / GRAPH) as modified:
        base = kg or modified.base
        if base is None:
            raise InputError(f"{folder / GRAPH} is no overlay; it is not the graph of an answerability benchmark")
        with KgStore.open(base) as ideal:
            checks = _Verifier(benchmark, ideal, modified, monitor).run()
    return {
        "clean": not any(check.faults for check in checks),
        "questions": len(benchmark.questions),
        "checks": [
            {"rule": check.rule, "checked": check.checked, "faults": len(check.faults), "first": check.faults[:5]}
            for check in checks
        ],
    }


class _Verifier:
    def __init__(self, benchmark: Benchmark, ideal: KgStore, modified: KgStore, monitor: Monitor) -> None:
        self.benchmark, self.ideal, self.modified, self.monitor = benchmark, ideal, modified, monitor
        self.checks = Checks()
        self.graph = RemovedByDrops(benchmark.drops, ideal)
        self.keys: dict[int, str] = {}
        self.rests = ProofBySql(ideal)
        for store in (ideal, modified):
            index(store)
            store.connection.execute("SET threads = 1")  # more of them cost more than so small queries take
        run = modified.connection.execute
        self.there = {key for (key,) in run("SELECT key FROM entities WHERE kind = 'entity'").fetchall()}
        self.relations = {key for (key,) in run("SELECT key FROM relations").fetchall()}

    def run(self) -> list[Check]:
        self._dropped()
        cases = self._cases()
        touched = []
        for number, case in enumerate(cases, start=1):
            try:
                touched.append(self._question(case))
            except (FormError, FormTimeout) as fault:
                touched.append(frozenset())
                self.checks.that("every form runs", False, f"{case.question.id}: {fault}")
            if number % 100 == 0 or number == len(cases):
                self.monitor.progress(number, len(cases), "questions on both graphs")
        self._causes(cases)
        check_splits(self.checks, self.benchmark, cases, touched)
        return list(self.checks.by_rule.values())

    def _cases(self) -> list[Case]:
        """The questions whose ideal form can be read."""
        found = []
        for question, ideal in zip(self.benchmark.questions, self.benchmark.ideal, strict=True):
            try:
                found.append(case_of(question, ideal))
            except FormError as fault:
                self.checks.that("every form runs", False, f"{question.id}: {fault}")
        return found

    def _dropped(self) -> None:
        """What was dropped is not in the modified graph, nothing else is gone, and the drops say what they did."""
        facts = Counter(self.graph.triples.values())
        lost = Counter(row.step for row in self.benchmark.ideal)
        for drop in self.benchmark.drops:
            left = sorted(set(drop.relations) & self.relations) + sorted(set(drop.entities) & self.there)
            self.checks.that("what was dropped is gone", not left, f"step {drop.step}: {left} is there")
            own = drop.kind == FACT or set(drop.element) <= {*drop.relations, *drop.entities}
            same = (facts[drop.step], lost[drop.step]) == (drop.facts, drop.unanswerable)
            self.checks.that(
                "a drop tells what it took", own and same,
                f"step {drop.step} says {drop.element[0]}, {drop.facts} facts, {drop.unanswerable} questions; it took "
                f"{facts[drop.step]} and {lost[drop.step]}",
            )  # fmt: skip
        before = self.ideal.counts()["triples"]
        after, gone = self.modified.counts()["triples"], len(self.graph.triples)
        self.checks.that(
            "nothing else is gone", before - gone == after,
            f"{before:,} triples less {gone:,} dropped are not {after:,}",
        )  # fmt: skip

    def _question(self, case: Case) -> frozenset[int]:
        """Checks the labels of a question; returns the steps that touch it."""
        question, ideal, form = case.question, case.ideal, case.form
        name = question.id
        whole = self.rests.run(form)
        texts = self._texts(form, whole)
        self.checks.that(
            "the ideal form gives the ideal answers", not whole.truncated and texts == ideal.answers,
            f"{name}: {texts[:3]} are not {ideal.answers[:3]}",
        )  # fmt: skip
        missing = sorted(case.relations - self.relations) + sorted(case.names - self.there)
        self.checks.that(
            "NK where the graph lacks what the form names, and only there",
            (question.s_expression is None) == bool(missing),
            f"{name} is {question.form_label}, and the graph lacks {missing}",
        )
        self.checks.that(
            "a form that is known is the ideal one",
            question.s_expression in (None, ideal.s_expression),
            f"{name}: {question.s_expression} is not {ideal.s_expression}",
        )
        answerable, texts = self._modified(form, whole, bool(missing))
        self.checks.that(
            "A where the modified graph answers, else NA", question.answerable == answerable,
            f"{name} is {question.answer_label}, but the modified graph gives {texts[:3]}",
        )  # fmt: skip
        self.checks.that(
            "the answers are those of the modified graph", question.answers == texts,
            f"{name}: {question.answers[:3]} are not {texts[:3]}",
        )  # fmt: skip
        of_form = {self.graph.relations[k] for k in case.relations if k in self.graph.relations}
        of_form |= {self.graph.entities[k] for k in case.names if k in self.graph.entities}
        of_facts = {self.graph.triples[t] for t in self._support(form, whole) if t in self.graph.triples}
        of_facts |= self.graph.unnamed(form, case.classes)
        if not question.answerable and not of_form and not of_facts:
            of_facts = self.graph.members(case.classes)
        lost = () if question.answerable else tuple(sorted(of_form or of_facts))
        self.checks.that(
            "what a question misses is what took it", ideal.missing == lost,
            f"{name}: {ideal.missing[:5]} are not {lost[:5]}",
        )  # fmt: skip
        cause = ideal.step is None or (
            ideal.step in of_form | of_facts and self.benchmark.drops[ideal.step].kind == ideal.drop
        )
        self.checks.that(
            "every unanswerable question has its drop, and no other has one",
            cause and (ideal.drop is None) == question.answerable and (ideal.step is None) == question.answerable,
            f"{name}: drop {ideal.drop}, step {ideal.step} of {sorted(of_form | of_facts)[:5]}",
        )
        return frozenset(of_form | of_facts)

    def _modified(self, form: Form, whole: Result, missing: bool) -> tuple[bool, tuple[str, ...]]:
        """Answerability and answers in the modified graph."""
        found: Result | None = None
        if not missing:
            try:
                found = execute(form, self.modified, rows=ROWS, seconds=60, proof=False)
            except FormError:
                return False, ("the form cannot be run",)
        answerable = False
        if found is not None:
            known = True
            if isinstance(form, Holds):
                known = bool(execute(form.of, self.modified, rows=1, seconds=60, proof=False).nodes)
            if isinstance(form, Holds):  # a no needs that something is known, a yes that it is still so
                answerable = found.value == whole.value and (whole.value is True or known)
            else:
                answerable = bool(found.value if isinstance(form, Count) else found.nodes)
        return answerable, self._texts(form, found, answerable)

    def _support(self, form: Form, whole: Result) -> Iterable[int]:
        """The triples that the ideal answer rests on; of a `no` those of the form that it denies."""
        if isinstance(form, Holds) and whole.value is False:
            return self.rests.of(form.of)
        return self.rests.of(form, whole)

    def _texts(self, form: Form, result: Result | None, answerable: bool = True) -> tuple[str, ...]:
        missing = [node for node in result.nodes if node not in self.keys] if result is not None else []
        if missing:
            self.keys.update(self.ideal.entity_keys(missing))
        return answer_texts(form, result, self.keys, answerable=answerable)

    def _causes(self, cases: Sequence[Case]) -> None:
        """Makes the drops again: before its step a question has an answer, after it none."""
        replay = Replay(self.ideal, self.benchmark.drops, self.graph)
        waiting: dict[int, list[Case]] = {}
        for case in cases:
            if case.ideal.step is not None:
                waiting.setdefault(case.ideal.step, []).append(case)
        for drop in self.benchmark.drops:
            own = [case for case in waiting.get(drop.step, ()) if replay.can(case.form)]
            before = [replay.answers(case.form, case.ideal.answers) for case in own]
            replay.make(drop)
            for case, answered_before in zip(own, before, strict=True):
                answered_after = replay.answers(case.form, case.ideal.answers)
                self.checks.that(
                    "the drop that a question names took its answer", answered_before and not answered_after,
                    f"{case.question.id}: step {drop.step} "
                    f"{'came after the one that did' if not answered_before else 'did not'}",
                )  # fmt: skip


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
