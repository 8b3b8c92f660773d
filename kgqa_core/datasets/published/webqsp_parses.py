"""The parses of WebQSP with everything that their annotation says, and the logical form of each (Yih et al. 2016).

A parse starts at its topic and follows the inferential chain; node 0 is where the first relation leads, node 1 where
the second does.  A constraint is a relation of a node (`SourceNodeIndex`) to an entity or value: equal to it, or, of
dates, not after and not before it.  `Time` says which constraints make one condition on time.  `Order` ranks the
members of a node by a value.  Parses that were written by hand have no chain, and their SPARQL is all that there is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from kgqa_core.datasets.published.rows import Text, choose
from kgqa_core.errors import FormError
from kgqa_core.kg.vocabulary import STRING, XSD
from kgqa_core.logic.forms import And, Arg, Compare, Entity, Form, Join, Literal, Nth, Step, TimeConstraint
from kgqa_core.logic.lookup import ending

OPERATORS = {"Equal": "eq", "LessOrEqual": "le", "GreaterOrEqual": "ge", "LessThan": "lt", "GreaterThan": "gt"}

_DATATYPES = {"DateTime": "date", "Number": "decimal"}


class ParseConstraint(Struct, frozen=True):
    """A relation of a node to an entity or value.

    kind: of the argument; `Entity` where it is a Freebase id.  node: 0 or 1.  value_type: `String`, `DateTime` or
    `Number`.
    """

    sign: Text = field(name="Operator")
    kind: Text = field(name="ArgumentType")
    argument: Text = field(name="Argument")
    node: int = field(name="SourceNodeIndex")
    relation: Text = field(name="NodePredicate")
    name: Text | None = field(name="EntityName", default=None)
    value_type: Text = field(name="ValueType", default=Text("String"))

    def __post_init__(self) -> None:
        choose("Operator", self.sign, OPERATORS)

    @property
    def operator(self) -> str:
        """`eq`, `le`, `ge`, `lt` or `gt`."""
        return OPERATORS[self.sign]

    @property
    def entity(self) -> bool:
        """Whether the argument is a Freebase id."""
        return self.kind == "Entity"


class ParseOrder(Struct, frozen=True):
    """The members of a node from the index `start` on, `count` of them, ranked by a relation's value.

    relation: None where the answers are dates and ranked by themselves.
    """

    order: Text = field(name="SortOrder")
    start: int = field(name="Start")
    count: int = field(name="Count")
    node: int = field(name="SourceNodeIndex")
    relation: Text | None = field(name="NodePredicate", default=None)
    value_type: Text = field(name="ValueType", default=Text("DateTime"))

    @property
    def falling(self) -> bool:
        """Whether the largest is the first."""
        return self.order == "Descending"


class ParseTime(Struct, frozen=True):
    """A condition on time; constraints: the numbers of its constraints.  start, end: `0000-00-00` where it is now."""

    start: Text = field(name="Start")
    end: Text = field(name="End")
    constraints: tuple[int, ...] = field(name="AssociatedConstraints")
    now: bool = field(name="IsRelativeToNow", default=False)
    mention: Text | None = field(name="PotentialTimeMention", default=None)


class ParseAnswer(Struct, frozen=True):
    """An answer: a Freebase id with its name, or a value."""

    argument: Text = field(name="AnswerArgument")
    kind: Text | None = field(name="AnswerType", default=None)
    name: Text | None = field(name="EntityName", default=None)

    @property
    def entity(self) -> bool:
        """Whether it is a Freebase id."""
        return self.kind == "Entity"


class ParseComment(Struct, frozen=True):
    """What the annotators say of a question and its parse."""

    question: Text | None = field(name="QuestionQuality", default=None)
    parse: Text | None = field(name="ParseQuality", default=None)


class WebQspParse(Struct, frozen=True):
    """One parse.  chain: relations from the topic to the answers; empty where the parse has none."""

    id: Text = field(name="ParseId", default=Text())
    topic: Text | None = field(name="TopicEntityMid", default=None)
    topic_name: Text | None = field(name="TopicEntityName", default=None)
    mention: Text | None = field(name="PotentialTopicEntityMention", default=None)
    chain: tuple[str, ...] = field(name="InferentialChain", default=())
    constraints: tuple[ParseConstraint, ...] = field(name="Constraints", default=())
    time: ParseTime | None = field(name="Time", default=None)
    order: ParseOrder | None = field(name="Order", default=None)
    sparql: Text | None = field(name="Sparql", default=None)
    answers: tuple[ParseAnswer, ...] = field(name="Answers", default=())
    comment: ParseComment = field(name="AnnotatorComment", default=ParseComment())

    @property
    def by_hand(self) -> bool:
        """Whether its SPARQL was written by hand, so that chain, constraints, time and order do not say it all."""
        return self.sparql is not None and self.sparql.upper().startswith("#MANUAL")


class WebQspQuestion(Struct, frozen=True):
    """A question with all its parses."""

    id: Text = field(name="QuestionId")
    text: Text = field(name="RawQuestion")
    parses: tuple[WebQspParse, ...] = field(name="Parses")


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
    nodes = {constraint.node for constraint in parse.constraints} | ({parse.order.node} if parse.order else set())
    if not nodes <= set(range(len(parse.chain))):
        raise FormError("a constraint is on a node that the chain does not have")
    return form


def _constrained(form: Form, node: int, parse: WebQspParse) -> Form:
    """A node with its constraints, its condition on time and its order, in this order."""
    timed = set(parse.time.constraints) if parse.time else set()
    here = [(number, part) for number, part in enumerate(parse.constraints) if part.node == node]
    parts = [form, *(_part(constraint) for number, constraint in here if number not in timed)]
    form = And(tuple(parts)) if len(parts) > 1 else form
    times = [constraint for number, constraint in here if number in timed]
    if times:
        form = _at_time(form, times)
    if parse.order is not None and parse.order.node == node:
        form = _ranked(form, parse.order)
    return form


def _part(constraint: ParseConstraint) -> Form:
    step = (Step(constraint.relation),)
    if constraint.operator == "eq":
        return Join(step, Entity(constraint.argument) if constraint.entity else Literal(constraint.argument, STRING))
    if constraint.entity:
        raise FormError(f"an entity is compared by {constraint.operator}")
    return Compare(
        constraint.operator, step, Literal(constraint.argument, XSD + _DATATYPES.get(constraint.value_type, "string"))
    )


def _at_time(form: Form, times: Sequence[ParseConstraint]) -> Form:
    begins = [part for part in times if part.operator == "le"]
    ends = [part for part in times if part.operator == "ge"]
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
