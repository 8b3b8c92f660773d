"""SPARQL of question sets over a graph: answers, and the triples of each solution (Wu et al. 2023, section 3.2).

The slice of the graph that a query can look at goes to an engine of SPARQL 1.1, which runs the query, and then the
query changed to return intermediate entities: all variables of the solutions that have the answers found.  The patterns
with these values are the triples of a solution.  What a form cannot write (qualifiers as answers, OPTIONAL, GROUP BY,
cycles) is executed so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rdflib import Literal, Variable

from kgqa_core.closing import Closing
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import STRING
from kgqa_core.logic.sparql_dialect import PREFIXES, expanded, standard
from kgqa_core.logic.sparql_execution.changed import split_query
from kgqa_core.logic.sparql_execution.engine import SECONDS, NotExecuted, SparqlEngine
from kgqa_core.logic.sparql_execution.graph import Slice, literal_term
from kgqa_core.logic.sparql_execution.scopes import PathStep, PlainTerm, ScopedQuery, TriplePattern, read_scopes
from kgqa_core.logic.sparql_execution.slice import MOST, slice_of

ROWS = 10_000
"""Rows that a result may have, and solutions that are looked at."""

RESTRICTED = 500
"""Answers whose solutions are looked at, gold ones first."""


@dataclass(frozen=True, slots=True)
class QuerySolution:
    """One solution: its answers, and its triples in the order of the patterns."""

    nodes: frozenset[int]
    triples: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What a query gives.

    nodes: answers that are nodes of the graph, ascending.  values: other answers, as texts (counts, years).  truth: of
    ASK.  solutions: those with gold answers first, then by their terms.  missing: constants and relations of the query
    that the graph lacks.
    """

    nodes: tuple[int, ...] = ()
    values: tuple[str, ...] = ()
    truth: bool | None = None
    solutions: tuple[QuerySolution, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is no answer at all."""
        return not self.nodes and not self.values and self.truth is None


class SparqlRunner(Closing):
    """Runs queries over an open graph; a context manager, for it has a process of its own.

    seconds: of making a slice, and of one request to the engine.  most: RDF triples of a query's slice.
    """

    def __init__(self, store: KgStore, *, seconds: float = SECONDS, most: int = MOST) -> None:
        self.store, self.most, self.seconds = store, most, seconds
        self.engine = SparqlEngine(seconds)

    def close(self) -> None:
        """Ends the process."""
        self.engine.close()

    def run(self, text: str, *, gold: Collection[int] = (), solutions: bool = True) -> QueryResult:
        """The answers of a query and its solutions.

        gold: node ids whose solutions come first.  Raises NotExecuted (its `reason` is for counting), FormTimeout, and
        FormError for what is no SPARQL.
        """
        written = standard(text)
        query = read_scopes(written)
        written = expanded(written)
        part = slice_of(query, self.store, self.most, self.seconds)
        literals = part.literals()
        stored = dict(zip(literals, self.engine.load(part.text, literals), strict=True))
        nodes = {stored.get(term, term): node for term, node in sorted(part.nodes.items(), reverse=True)}
        reply = self.engine.query(written, PREFIXES, ROWS)
        if reply.get("more"):
            raise NotExecuted(f"it has more than {ROWS:,} results")
        answers = _answers(query, reply)
        results = sorted({nodes[term] for term in answers if term in nodes})
        result = QueryResult(
            nodes=tuple(results),
            values=tuple(sorted({_text(term) for term in answers if term not in nodes})),
            truth=reply.get("truth"),
            missing=tuple(part.missing),
        )
        if not solutions or result.empty or result.truth is False:
            return result
        triples = _by_ends(part, stored)
        parts = list(self.solutions(written, query, answers, triples, nodes, frozenset(gold)))
        return replace(result, solutions=tuple(parts))

    def solutions(
        self, text: str, query: ScopedQuery, answers: Sequence[str], triples: _Triples, nodes: Mapping[str, int],
        gold: frozenset[int],
    ) -> Iterator[QuerySolution]:  # fmt: skip
        """The solutions of the changed query that have a triple, each set of triples once."""
        parts = split_query(text)
        inner, scope = parts.inner(), query.scope
        if inner is not None and scope.queries:
            nested = scope.queries[0]
            reply = self.engine.query(inner, PREFIXES, ROWS)
            yield from self.solutions(inner, nested, _answers(nested, reply), triples, nodes, gold)
            return
        variable = _answer_variable(query)
        first = sorted(dict.fromkeys(answers), key=lambda term: (nodes.get(term) not in gold, term))
        terms = [term for term in first if term.startswith(("<", '"'))][:RESTRICTED] if variable else []
        wanted = variable if terms else ""
        reply = self.engine.query(parts.changed(wanted, terms), PREFIXES, ROWS)
        if reply["more"]:  # which ones come first is for the engine to say, unless they are ordered
            reply = self.engine.query(parts.changed(wanted, terms, sorted(reply["variables"])), PREFIXES, ROWS)
        columns = [variable] if variable else [column.variable for column in query.columns if not column.function]

        def ends(row: Mapping[str, str | None]) -> frozenset[int]:
            return frozenset(nodes[row[name] or ""] for name in columns if row.get(name) in nodes)

        rows = [dict(zip(reply["variables"], row, strict=True)) for row in reply["rows"]]
        rows.sort(key=lambda row: (gold.isdisjoint(ends(row)), *(row[name] or "" for name in sorted(row))))
        patterns = list(scope.shown())
        seen: set[tuple[int, ...]] = set()
        for row in rows:
            own = tuple(dict.fromkeys(number for pattern in patterns for number in triples.of(pattern, row)))
            if own and own not in seen:
                seen.add(own)
                yield QuerySolution(ends(row), own)


class _Triples:
    """Triples of a slice by their ends, with the terms of the engine."""

    def __init__(self) -> None:
        self.out: dict[tuple[str, str], list[tuple[str, int | None]]] = defaultdict(list)
        self.into: dict[tuple[str, str], list[tuple[str, int | None]]] = defaultdict(list)
        self.relations: set[str] = set()

    def of(self, pattern: TriplePattern, row: Mapping[str, str | None]) -> Iterator[int]:
        """The triples of a pattern with the values of a solution: of a path, a shortest way between its ends."""
        start, end = _value(pattern.subject, row), _value(pattern.object, row)
        if start is None or end is None:
            return
        for number in self.way(start, pattern.path, end) or ():
            if number is not None:
                yield number

    def way(self, start: str, path: Sequence[PathStep], end: str) -> list[int | None] | None:
        """Triples from a term to another along a path, the first of the shortest; None where there is no way."""
        front: list[tuple[str, int]] = [(start, 0)]
        came: dict[tuple[str, int], tuple[tuple[str, int], int | None] | None] = {front[0]: None}
        while front:
            following: list[tuple[str, int]] = []
            for state in front:
                if state == (end, len(path)):
                    return _back(came, state)
                for after, number, moved in self.moves(state, path):
                    if after not in came:
                        came[after] = (state, number) if moved else (state, None)
                        following.append(after)
            front = following
        return None

    def moves(
        self, state: tuple[str, int], path: Sequence[PathStep]
    ) -> Iterator[tuple[tuple[str, int], int | None, bool]]:
        """The states after one, with the triple that leads there; moved is false where a repeated step is skipped."""
        term, index = state
        if index == len(path):
            return
        step = path[index]
        if step.repeat in ("*", "?"):
            yield (term, index + 1), None, False
        relations = step.relations or tuple((iri[1:-1], False) for iri in sorted(self.relations))
        for iri, inverse in relations:
            for other, number in (self.into if inverse else self.out).get((term, f"<{iri}>"), ()):
                yield (other, index + 1), number, True
                if step.repeat in ("*", "+"):
                    yield (other, index), number, True


def _back(
    came: Mapping[tuple[str, int], tuple[tuple[str, int], int | None] | None], state: tuple[str, int]
) -> list[int | None]:
    results: list[int | None] = []
    before = came[state]
    while before is not None:
        results.append(before[1])
        before = came[before[0]]
    return results[::-1]


def _by_ends(part: Slice, stored: Mapping[str, str]) -> _Triples:
    triples = _Triples()
    for (subject, relation, value), number in sorted(part.triples.items(), key=lambda one: one[0]):
        subject, value = stored.get(subject, subject), stored.get(value, value)
        triples.out[subject, relation].append((value, number))
        triples.into[value, relation].append((subject, number))
        triples.relations.add(relation)
    return triples


def _value(term: Variable | PlainTerm, row: Mapping[str, str | None]) -> str | None:
    """A term of a pattern in a solution, as the engine writes it."""
    if isinstance(term, Variable):
        return row.get(str(term))
    if isinstance(term, Literal):
        return literal_term(str(term), f"@{term.language}" if term.language else str(term.datatype or STRING))
    return f"<{term}>"


def _answers(query: ScopedQuery, reply: Mapping[str, Any]) -> list[str]:
    """The terms of the columns that hold answers, in order of rows: without computed ones where others are there."""
    if "truth" in reply:
        return []
    plain = {column.name for column in query.columns if not column.function}
    columns = [k for k, name in enumerate(reply["variables"]) if not plain or name in plain]
    return [row[k] for row in reply["rows"] for k in columns if row[k] is not None]


def _answer_variable(query: ScopedQuery) -> str:
    """The variable that answers are values of; empty for counts, sums and ASK."""
    plain = [column for column in query.columns if not column.function and column.variable]
    if len(plain) == 1:
        return plain[0].variable
    best = [column for column in query.columns if column.function in ("MAX", "MIN") and column.variable]
    return best[0].variable if len(query.columns) == len(best) == 1 else ""


def _text(term: str) -> str:
    """The text of a term: of a literal without its datatype and language, of others whole."""
    if not term.startswith('"'):
        return term.strip("<>")
    text = term[1 : term.rindex('"')]
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "r": "\r", "t": "\t"}.get(match[1], match[1]), text)
