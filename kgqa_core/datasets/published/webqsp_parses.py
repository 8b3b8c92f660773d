"""The parses of WebQSP with everything that their annotation says, and the logical form of each (Yih et al. 2016).

A parse starts at its topic and follows the inferential chain; node 0 is where the first relation leads, node 1 where
the second does.  A constraint is a relation of a node (`SourceNodeIndex`) to an entity or value: equal to it, or, of
dates, not after and not before it.  `Time` says which constraints make one condition on time.  `Order` ranks the
members of a node by a value.  Parses that were written by hand have no chain, and their SPARQL is all that there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa_core.datasets.published.base import Reject
from kgqa_core.datasets.published.json_rows import need, need_text, objects, optional_text, read_each
from kgqa_core.errors import FormError
from kgqa_core.kg.vocabulary import STRING, XSD
from kgqa_core.logic.forms import And, Arg, Compare, Entity, Form, Join, Literal, Nth, Step, TimeConstraint
from kgqa_core.logic.lookup import ending

OPERATORS = {"Equal": "eq", "LessOrEqual": "le", "GreaterOrEqual": "ge", "LessThan": "lt", "GreaterThan": "gt"}

_DATATYPES = {"DateTime": "date", "Number": "decimal"}


@dataclass(frozen=True, slots=True)
class ParseConstraint:
    """A relation of a node to an entity or value.

    operator: `eq`, `le`, `ge`, `lt` or `gt`.  entity: whether the argument is a Freebase id.  node: 0 or 1.
    value_type: `String`, `DateTime` or `Number`.
    """

    operator: str
    entity: bool
    argument: str
    name: str | None
    node: int
    relation: str
    value_type: str


@dataclass(frozen=True, slots=True)
class ParseOrder:
    """The members of a node from the place `start` (0 is the first), `count` of them, ranked by a relation's value.

    relation: None where the answers are dates and ranked by themselves.
    """

    falling: bool
    start: int
    count: int
    node: int
    relation: str | None
    value_type: str


@dataclass(frozen=True, slots=True)
class ParseTime:
    """A condition on time; constraints: the numbers of its constraints.  start, end: `0000-00-00` where it is now."""

    now: bool
    start: str
    end: str
    constraints: tuple[int, ...]
    mention: str | None


@dataclass(frozen=True, slots=True)
class ParseAnswer:
    """An answer: a Freebase id with its name, or a value."""

    argument: str
    entity: bool
    name: str | None


@dataclass(frozen=True, slots=True)
class WebQspParse:
    """One parse.

    complete: whether the annotators call question and parse good and complete, as the official evaluation requires.
    by_hand: its SPARQL was written by hand, so that chain, constraints, time and order do not say it all.
    """

    id: str
    topic: str | None
    topic_name: str | None
    mention: str | None
    chain: tuple[str, ...]
    constraints: tuple[ParseConstraint, ...]
    time: ParseTime | None
    order: ParseOrder | None
    sparql: str | None
    answers: tuple[ParseAnswer, ...]
    complete: bool
    by_hand: bool


@dataclass(frozen=True, slots=True)
class WebQspQuestion:
    """A question with all its parses."""

    id: str
    text: str
    split: str
    parses: tuple[WebQspParse, ...]


def read_questions(path: Path, rows: Sequence[Any], split: str) -> Iterator[WebQspQuestion | Reject]:
    """The questions of a document of WebQSP, in file order."""
    return read_each(path, rows, lambda value: read_question(value, split), "WebQSP")


def read_question(value: Mapping[str, Any], split: str) -> WebQspQuestion:
    """One question.  Raises ValueError that names the field."""
    name = need_text(value, "QuestionId", "its id, such as WebQTrn-0")
    text = need_text(value, "RawQuestion", "its text")
    return WebQspQuestion(name, text, split, tuple(map(_parse, objects(value, "Parses", "a list of parses"))))


def _parse(value: dict[str, Any]) -> WebQspParse:
    comment = value.get("AnnotatorComment") or {}
    sparql = optional_text(value, "Sparql")
    order, time = value.get("Order"), value.get("Time")
    chain = value.get("InferentialChain") or []
    if not isinstance(chain, list) or not all(isinstance(relation, str) for relation in chain):
        raise ValueError(f"field 'InferentialChain' must list relations, but it is {chain!r}")
    constraints = objects(value, "Constraints", "a list of constraints") if value.get("Constraints") else []
    answers = objects(value, "Answers", "a list of answers") if value.get("Answers") else []
    return WebQspParse(
        optional_text(value, "ParseId") or "",
        optional_text(value, "TopicEntityMid"),
        optional_text(value, "TopicEntityName"),
        optional_text(value, "PotentialTopicEntityMention"),
        tuple(chain),
        tuple(map(_constraint, constraints)),
        _time(time) if time else None,
        _order(order) if order else None,
        sparql,
        tuple(map(_answer, answers)),
        comment.get("QuestionQuality") == "Good" and comment.get("ParseQuality") == "Complete",
        sparql is not None and sparql.upper().startswith("#MANUAL"),
    )


def _constraint(value: Mapping[str, Any]) -> ParseConstraint:
    operator = need_text(value, "Operator", f"one of {', '.join(OPERATORS)}")
    if operator not in OPERATORS:
        raise ValueError(f"field 'Operator' must be one of {', '.join(OPERATORS)}, but it is {operator!r}")
    return ParseConstraint(
        OPERATORS[operator],
        need_text(value, "ArgumentType", "`Entity` or `Value`") == "Entity",
        need_text(value, "Argument", "a Freebase id or a value"),
        optional_text(value, "EntityName"),
        need(value, "SourceNodeIndex", int, "the number of a node"),
        need_text(value, "NodePredicate", "a relation"),
        optional_text(value, "ValueType") or "String",
    )


def _order(value: Mapping[str, Any]) -> ParseOrder:
    return ParseOrder(
        need_text(value, "SortOrder", "`Ascending` or `Descending`") == "Descending",
        need(value, "Start", int, "a place from 0"),
        need(value, "Count", int, "how many"),
        need(value, "SourceNodeIndex", int, "the number of a node"),
        optional_text(value, "NodePredicate"),
        optional_text(value, "ValueType") or "DateTime",
    )


def _time(value: Mapping[str, Any]) -> ParseTime:
    return ParseTime(
        bool(value.get("IsRelativeToNow")),
        need_text(value, "Start", "a date"),
        need_text(value, "End", "a date"),
        tuple(need(value, "AssociatedConstraints", list, "numbers of constraints")),
        optional_text(value, "PotentialTimeMention"),
    )


def _answer(value: Mapping[str, Any]) -> ParseAnswer:
    return ParseAnswer(
        need_text(value, "AnswerArgument", "a Freebase id or a value"),
        optional_text(value, "AnswerType") == "Entity",
        optional_text(value, "EntityName"),
    )


def form_of(parse: WebQspParse) -> Form:
    """The form of a parse: of its chain with every constraint, or else of its SPARQL.

    The SPARQL alone counts where it was written by hand; on the others of train the two never differ.  Raises FormError
    where no form writes it.
    """
    if not parse.by_hand and parse.chain and parse.topic is not None:
        try:
            return form_of_chain(parse)
        except FormError:
            if parse.sparql is None:
                raise
    if parse.sparql is None:
        raise FormError("the parse has neither an inferential chain nor SPARQL")
    from kgqa_core.logic.sparql import from_sparql  # rdflib takes 0.2 s to import

    return from_sparql(parse.sparql)


def form_of_chain(parse: WebQspParse) -> Form:
    """The form of topic, chain, constraints, time and order.  Raises FormError where no form writes them."""
    if parse.topic is None:
        raise FormError("the parse has no topic")
    form: Form = Entity(parse.topic)
    for node, relation in enumerate(parse.chain):
        form = _constrained(Join((Step(relation, inverse=True),), form), node, parse)
    nodes = {one.node for one in parse.constraints} | ({parse.order.node} if parse.order else set())
    if not nodes <= set(range(len(parse.chain))):
        raise FormError("a constraint is on a node that the chain does not have")
    return form


def _constrained(form: Form, node: int, parse: WebQspParse) -> Form:
    """A node with its constraints, its condition on time and its order, in this order."""
    timed = set(parse.time.constraints) if parse.time else set()
    own = [(number, one) for number, one in enumerate(parse.constraints) if one.node == node]
    parts = [form, *(_part(one) for number, one in own if number not in timed)]
    form = And(tuple(parts)) if len(parts) > 1 else form
    times = [one for number, one in own if number in timed]
    if times:
        form = _at_time(form, times)
    if parse.order is not None and parse.order.node == node:
        form = _ranked(form, parse.order)
    return form


def _part(one: ParseConstraint) -> Form:
    step = (Step(one.relation),)
    if one.operator == "eq":
        return Join(step, Entity(one.argument) if one.entity else Literal(one.argument, STRING))
    if one.entity:
        raise FormError(f"an entity is compared by {one.operator}")
    return Compare(one.operator, step, Literal(one.argument, XSD + _DATATYPES.get(one.value_type, "string")))


def _at_time(form: Form, times: Sequence[ParseConstraint]) -> Form:
    begins = [one for one in times if one.operator == "le"]
    ends = [one for one in times if one.operator == "ge"]
    if (len(begins), len(ends)) != (1, 1) or ending(begins[0].relation) != ends[0].relation:
        raise FormError("a condition on time that is no beginning and end")
    first, last = ends[0].argument, begins[0].argument
    year = re.fullmatch(r"(-?\d{4,})-01-01", first)
    if year and last == f"{year[1]}-12-31":
        value = Literal(year[1], XSD + "gYear")
    elif first == last:
        value = Literal(first, XSD + "date")
    else:
        raise FormError("a condition on a stretch of time that is neither a year nor a day")
    return TimeConstraint(form, (Step(begins[0].relation),), value)


def _ranked(form: Form, order: ParseOrder) -> Form:
    if order.relation is None:
        raise FormError("the answers are ranked by themselves; a form ranks by a relation")
    best, path = "max" if order.falling else "min", (Step(order.relation),)
    if order.count != 1:
        raise FormError(f"the best {order.count}; a form ranks one place")
    return Nth(order.start + 1, best, form, path) if order.start else Arg(best, form, path)
