"""Gold subgraphs of questions that have a SPARQL query and no annotated relation path (Wu et al. 2023, section 3.2).

The triples of the form where the query has one, else of the query executed, changed to return intermediate entities.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType

from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import execute
from kgqa_core.logic.parser import parse
from kgqa_core.logic.sparql_dialect import standard
from kgqa_core.logic.sparql_execution.engine import NotExecuted
from kgqa_core.logic.sparql_execution.run import SparqlRunner
from kgqa_core.logic.sparql_execution.scopes import read_scopes
from kgqa_core.logic.sparql_graph import key_of
from kgqa_core.types import Question

FORM, QUERY = "form", "query"
"""Origins of such a subgraph."""

SECONDS = 10.0
"""Time of one form, and of one request of a query."""


@dataclass(frozen=True, slots=True)
class QueryTriples:
    """Triple ids of a question's query, in order of solutions, and whether they are of solutions with a gold answer."""

    triples: tuple[int, ...]
    reached: bool
    origin: str


def relations_text(question: Question) -> str:
    """The relations of a question's query, `r_1 & r_2` in the order of its patterns; empty where it cannot be read."""
    if not question.sparql:
        return ""
    try:
        scope = read_scopes(standard(question.sparql)).scope
    except FormError:
        return ""
    while scope.queries and not scope.triples:
        scope = scope.queries[0].scope
    steps = (step for pattern in scope.shown() for step in pattern.path)
    return " & ".join(dict.fromkeys(key_of(iri) for step in steps for iri, _ in step.relations))


@dataclass
class QueryGraphs:
    """Finds these triples over an open graph; a context manager, for queries run in a process of their own.

    reasons: why queries gave nothing, counted.
    """

    store: KgStore
    reasons: Counter[str] = field(default_factory=Counter)
    _runner: SparqlRunner | None = None

    def __enter__(self) -> QueryGraphs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            self._runner.close()

    def find(self, question: Question, max_triples: int) -> QueryTriples | None:
        """Triples of a question's form or query; None, with a reason counted, where there are none.

        Those of a form that has more than `max_triples` are taken from the query, whose solutions say what belongs
        together: whole solutions, those with gold answers first, until the next one does not fit; the first is there
        whatever its size.
        """
        if not question.sparql:
            return None
        of_form = self._of_form(question, max_triples)
        if of_form is not None:
            return of_form
        if self._runner is None:
            self._runner = SparqlRunner(self.store, seconds=SECONDS)
        try:
            result = self._runner.run(question.sparql, gold=question.answers)
        except FormTimeout:
            return self._nothing("it takes too long")
        except NotExecuted as fault:
            return self._nothing(fault.reason)
        except FormError:
            return self._nothing("no standard SPARQL")
        gold, solutions = frozenset(question.answers), result.solutions
        if not solutions:
            return self._nothing("it names what the graph lacks" if result.missing else "it has no solution")
        chosen: dict[int, None] = {}
        reached = False
        for solution in solutions:
            fresh = [triple for triple in solution.triples if triple not in chosen]
            if chosen and len(chosen) + len(fresh) > max_triples:
                break
            chosen.update(dict.fromkeys(fresh))
            reached = reached or not gold.isdisjoint(solution.nodes)
        return QueryTriples(tuple(chosen), reached, QUERY)

    def _of_form(self, question: Question, max_triples: int) -> QueryTriples | None:
        if question.s_expression is None:
            return None
        try:
            result = execute(
                parse(question.s_expression), self.store, rows=max_triples, seconds=SECONDS, without_named=True
            )
        except (FormError, FormTimeout):
            return None
        if not result.proof or result.truncated:
            return None
        return QueryTriples(result.proof, not set(question.answers).isdisjoint(result.nodes), FORM)

    def _nothing(self, reason: str) -> QueryTriples | None:
        self.reasons[reason] += 1
        return None
