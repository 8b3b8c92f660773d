"""Scored forms of questions, run on the graph and told as rows: what every parser ends with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import Result, answer_texts
from kgqa_core.logic.forms import Count, Form
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.parsing.examples import ParseExample
from kgqa_core.parsing.parsed import Parsed

Scored = tuple[Form | None, float, float]
"""A form, its log-probability and the least ρ of its entities; None is "no form"."""


class Runner:
    """Runs forms on one open graph, each once."""

    def __init__(self, store: KgStore, graph: MemoryGraph) -> None:
        self.store, self.graph = store, graph
        self._results: dict[Form, Result | None] = {}

    def run(self, form: Form | None) -> Result | None:
        """The result of a form; None where it cannot be run."""
        if form is None:
            return None
        if form not in self._results:
            try:
                self._results[form] = self.graph.execute(form)
            except (FormError, FormTimeout):
                self._results[form] = None
        return self._results[form]

    def told(self, ids: Sequence[str], best: Sequence[Sequence[Scored]]) -> list[list[Parsed]]:
        """The forms of each question, in their order, with their answers."""
        results = [[self.run(form) for form, _, _ in own] for own in best]
        nodes = {node for own in results for result in own if result is not None for node in result.nodes}
        keys = self.store.entity_keys(sorted(nodes))
        found = []
        for question, own, run in zip(ids, best, results, strict=True):
            rows = []
            for place, ((form, score, rho), result) in enumerate(zip(own, run, strict=True)):
                more: dict[str, Any] = {}
                if form is not None and result is not None:
                    more = {"answers": answer_texts(form, result, keys), "empty": finds_nothing(form, result)}
                rows.append(Parsed(question, place, None if form is None else str(form), score, rho, **more))
            found.append(rows)
        return found


def finds_nothing(form: Form, result: Result) -> bool:
    """Whether a form finds nothing; a count of 0 is nothing."""
    return result.value == 0 if isinstance(form, Count) else result.empty


def tally(asked: Sequence[ParseExample], rows: Sequence[Parsed]) -> dict[str, Any]:
    """Counts that every parser's stage returns."""
    first = [row for row in rows if row.rank == 0]
    return {
        "questions": len(asked),
        "parsed": len(first),
        "no_form": sum(row.form is None for row in first),
        "empty": sum(row.empty is True for row in first),
        "not_run": sum(row.form is not None and row.empty is None for row in rows),
        "by_split": dict(sorted(Counter(example.split for example in asked).items())),
    }
