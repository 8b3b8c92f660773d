"""Runs every question of a benchmark on both graphs, and checks every label and every rule of the splits.

The rules are written here a second time.  Forms are run by SQL (`logic.execute`), what is missing is looked up in the
modified graph, who misses what is worked out again from the drops and the proofs of the ideal answers, and the drops
are made once more, one after the other, to see which of them took a question's answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.errors import FormError, FormTimeout, InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import Result, answer_texts, execute
from kgqa_core.logic.forms import Count, Form, Holds
from kgqa_core.logic.lookup import index
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.papers.grailqability.builder.checks import Case, Check, Checks, case_of
from kgqa_core.papers.grailqability.builder.records import (
    FACT,
    GRAPH,
    TYPE,
    Benchmark,
    read_benchmark,
)
from kgqa_core.papers.grailqability.builder.replay import ROWS, ProofBySql, RemovedByDrops, Replay
from kgqa_core.papers.grailqability.builder.verify_splits import check_shares, check_splits


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
        self.published = benchmark.statistics["goals"].get("labels") == "published"
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
        check_shares(self.checks, self.benchmark, cases)
        return list(self.checks.by_rule.values())

    def _cases(self) -> list[Case]:
        """The questions whose ideal form can be read."""
        cases = []
        for question, ideal in zip(self.benchmark.questions, self.benchmark.ideal, strict=True):
            try:
                cases.append(case_of(question, ideal))
            except FormError as fault:
                self.checks.that("every form runs", False, f"{question.id}: {fault}")
        return cases

    def _dropped(self) -> None:
        """What was dropped is not in the modified graph, nothing else is gone, and the drops say what they did."""
        facts = Counter(self.graph.triples.values())
        lost = Counter(row.step for row in self.benchmark.ideal)
        for drop in self.benchmark.drops:
            left = sorted(set(drop.relations) & self.relations) + sorted(set(drop.entities) & self.there)
            self.checks.that("what was dropped is gone", not left, f"step {drop.step}: {left} is there")
            listed = drop.kind == FACT or set(drop.element) <= {*drop.relations, *drop.entities}
            same = (facts[drop.step], lost[drop.step]) == (drop.facts, drop.unanswerable)
            self.checks.that(
                "a drop tells what it took", listed and same,
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
        if self.published and ideal.drop == TYPE:
            self.checks.that(
                "NK where a dropped type took the answer", question.s_expression is None, f"{name} has a form"
            )
        else:
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
        result: Result | None = None
        if not missing:
            try:
                result = execute(form, self.modified, rows=ROWS, seconds=60, proof=False)
            except FormError:
                return False, ("the form cannot be run",)
        answerable = False
        if result is not None:
            known = True
            if isinstance(form, Holds):
                known = bool(execute(form.of, self.modified, rows=1, seconds=60, proof=False).nodes)
            if isinstance(form, Holds):  # a no needs that something is known, a yes that it is still so
                answerable = result.value == whole.value and (whole.value is True or known)
            else:
                answerable = bool(result.value if isinstance(form, Count) else result.nodes)
        return answerable, self._texts(form, result, answerable)

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
            traceable = [case for case in waiting.get(drop.step, ()) if replay.can(case.form)]
            before = [replay.answers(case.form, case.ideal.answers) for case in traceable]
            replay.make(drop)
            for case, answered_before in zip(traceable, before, strict=True):
                answered_after = replay.answers(case.form, case.ideal.answers)
                self.checks.that(
                    "the drop that a question names took its answer", answered_before and not answered_after,
                    f"{case.question.id}: step {drop.step} "
                    f"{'came after the one that did' if not answered_before else 'did not'}",
                )  # fmt: skip
