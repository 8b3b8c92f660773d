"""Gold answers of questions whose file has a query and no answers: what the query gives on the graph.

Its form is run where it has one, else the query itself (`logic.sparql_execution`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import execute
from kgqa_core.logic.forms import Form, Holds, elements
from kgqa_core.logic.parser import parse
from kgqa_core.logic.result import Result, value_text
from kgqa_core.types import Question

IN_MEMORY = 20_000_000
"""Triples of the largest graph that is held in memory to run many forms."""

MOST = 10_000
"""Answers that a query may have; one with more has none here."""

NO_RESULT = "its query has no result in this graph"
NO_FORM = "no gold answer is given, and no form writes its query, which is not executed"


def by_query(questions: Sequence[Question], store: KgStore) -> list[Question]:
    """The questions, those without answers with the result of their form or query, or with the reason why they have
    none.

    The result is that of this graph, which may hold a part only of what the data set was made on.  A count of 0 is no
    answer, and `no` is one only where the graph holds something that the form is true of.  Entities that the query
    names are no answers of its form, for forms do not write `!=`.  Of a query without form, several columns are one
    set, and only entities and literals of the graph, counts and `yes` are answers.
    """
    waiting = [question for question in questions if not question.answer_keys and question.s_expression]
    run = _runner(store, len(waiting))
    results: dict[str, Result | None] = {}
    named: dict[str, frozenset[str]] = {}
    for question in waiting:
        try:
            form = parse(question.s_expression or "")
            results[question.id], named[question.id] = _result(form, run), frozenset(elements(form).entities)
        except FormError:
            results[question.id] = None
    results |= _executed([one for one in questions if not one.answer_keys and not one.s_expression], store)
    nodes = sorted({node for result in results.values() if result for node in result.nodes[: MOST + 1]})
    keys, names, types = store.entity_keys(nodes), store.surface_forms(nodes), _types(store, nodes)
    for question_id, result in results.items():
        if result is not None and result.nodes:
            without = named.get(question_id, frozenset())
            left = tuple(node for node in result.nodes if keys.get(node) not in without)
            results[question_id] = replace(result, nodes=left)
    completed = []
    for question in questions:
        if question.answer_keys:
            completed.append(question)
        elif question.id not in results:
            completed.append(_without(question, NO_FORM))
        else:
            completed.append(_answered(question, results[question.id], keys, names, types))
    return completed


def _executed(questions: Sequence[Question], store: KgStore) -> dict[str, Result | None]:
    """The results of queries, of questions that have one and a topic in the graph; None for an empty one.

    A query that is not executed has no entry.
    """
    from kgqa_core.logic.sparql_execution.run import SparqlRunner  # rdflib takes 0.2 s to import

    results: dict[str, Result | None] = {}
    with SparqlRunner(store) as runner:
        for question in questions:
            if not question.sparql or not question.topic_entities:
                continue
            try:
                result = runner.run(question.sparql, solutions=False)
            except (FormError, FormTimeout):
                continue
            number = result.values[0] if len(result.values) == 1 and not result.nodes else ""
            counted = int(number) if number.isdecimal() and "COUNT" in question.sparql.upper() else None
            value = True if result.truth else counted
            results[question.id] = Result(result.nodes, value) if result.nodes or value else None
    return results


def _result(form: Form, run: Callable[[Form], Result]) -> Result | None:
    """The result of a form; None for a `no` where the graph has no `yes` for anything, and so may lack the facts."""
    result = run(form)
    return None if isinstance(form, Holds) and result.value is False and run(form.of).empty else result


def _runner(store: KgStore, forms: int) -> Callable[[Form], Result]:
    triples = store.counts().get("triples", 0)
    if forms > 20 and triples <= IN_MEMORY:
        from kgqa_core.logic.memory import MemoryGraph

        return MemoryGraph(store).execute

    def one(form: Form) -> Result:
        return execute(form, store, rows=MOST + 1, proof=False)

    return one


def _types(store: KgStore, ids: Sequence[int]) -> dict[int, str]:
    """Answer type of each node."""
    rows = store.connection.execute(
        "SELECT id, CASE WHEN kind = 'entity' THEN 'entities' WHEN precision IS NOT NULL THEN 'date' "
        "WHEN number IS NOT NULL THEN 'number' ELSE 'text' END FROM entities WHERE id IN (SELECT unnest(?::BIGINT[]))",
        [list(ids)],
    ).fetchall()
    return dict(rows)


def _answered(
    question: Question,
    result: Result | None,
    keys: Mapping[int, str],
    names: Mapping[int, list[str]],
    types: Mapping[int, str],
) -> Question:
    if result is None or result.empty or len(result.nodes) > MOST or result.value == 0 and result.value is not False:
        return _without(question, NO_RESULT)
    reason = question.unlinkable if not question.topic_entities else None
    if result.value is not None:
        truth, text = isinstance(result.value, bool), value_text(result.value)
        return replace(
            question,
            answer_type="yes/no" if truth else "number",
            answer_keys=(text,),
            answers=(),
            answer_names=((text,),),
            unlinkable=reason,
        )
    kinds = {types[node] for node in result.nodes}
    return replace(
        question,
        answer_type=kinds.pop() if len(kinds) == 1 else "entities",
        answer_keys=tuple(keys[node] for node in result.nodes),
        answers=result.nodes,
        answer_names=tuple(tuple(names[node]) or (keys[node],) for node in result.nodes),
        unlinkable=reason,
    )


def _without(question: Question, reason: str) -> Question:
    return replace(question, unlinkable=reason) if question.topic_entities else question
