"""Words that demand a part of a form: *the same*, *only*, *exactly*, *every*, *than it*, *together*.

Elsewhere they are grammar.  A candidate without the part gives way to one that has it; where none has, the word is
unread, which forbids a confident answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

from kgqa_core.linking.english import singulars
from kgqa_core.logic.forms import (
    Aggregate,
    And,
    Arg,
    Compare,
    CompareTo,
    Count,
    Entity,
    Form,
    Greater,
    Join,
    Literal,
    Minus,
    Nth,
    Or,
    Step,
)
from kgqa_core.logic.measures import measure
from kgqa_core.search.candidates import Candidate, computations, has_span, nodes_of
from kgqa_core.search.graph import LabelGraph
from kgqa_core.search.phrases import DATED, NUMBER, SLOT, SLOTS, has_any

SAME = re.compile(r"\b(?:the|a|his|her|their|its) same (?!time\b|thing\b)|\bsame (?!time\b|thing\b)\w+ as\b")
ONLY = re.compile(rf"(?<!the )(?<!not )\b(?:only|exclusively|solely)(?: [a-z]+){{0,2}}(?: the| an?)? {SLOT}\b")
"""What is said of one thing and of no other: *borders only x*."""
EXACTLY = re.compile(rf"\b(?:exactly|precisely|only|just) {NUMBER}\b(?: (?P<noun>[a-z]+))?")
_NO_EVERY = r"total|sum|average|mean|number|most|least|fewest|first|last|[a-z]{2,}est"
EVERY = re.compile(
    rf"^(?!.*\b(?:{_NO_EVERY})\b)(?:.*?\b[a-z]+ (?<!of )(?<!for )(?<!list )(?<!show )(?<!and )(?<!are )"
    r"every(?: single| one of)?(?: of)?(?: the)? [a-z]+"
    r"|\W*(?:which|what|who)\b(?: \S+)+? (?<!of )(?<!are )all(?: of)?(?: the)? [a-z]+\W*$)"
)
"""What has a relation to all of some things: *who works on all projects*."""
_THAN_PRONOUN = re.compile(r"\bthan (?:it|him|her|them)\b(?! \w)")
_THAN = re.compile(rf"(?<!other )(?<!rather )\bthan (?:the )?{SLOT}\b")
THAN_AVERAGE = re.compile(
    r"\bthan (?:(?:the|its|their|an|on) )?(?:average|mean|median)\b|\b(?:above|below)[- ]average\b"
)
"""What all have on average, as of those that have more."""
EXCEPT_DOERS = re.compile(
    r"\b(?:except|excluding|other than|apart from|besides|but not)(?: for)?(?: the)? "
    r"(?!(?:with|those|for)\b)[a-z]{3,}(?:er|or|ant|ist)s\b"
)
"""*All but the managers* leaves out those who are some, not those who have one."""
_NEITHER = re.compile(r"\bneither (?:\S+ )+?nor\b")
IN_NAMES = re.compile(
    r"\b(?:(?P<has>with|has|have|having|contains?|containing)(?: the words?)?|called|named) "
    r"(?P<word>(?!(?:[xyzw]|in|at|by|on|of|the|an?|after|for|to|from|as|when|if|and|or|with|it|so)\b)[\w’'-]+)"
    r"(?(has)(?: somewhere)? in (?:their|its|the|his|her) (?:names?|titles?))\b"
)
"""What things have in their names: *customers with bike in the name*, *pupils called Vale*."""
_LASTING = r"(?:last|take|took|stay|run|ran|live|continue|go on|remain)(?:s|d|ed|ing)?"
_EXTENT = r"(?: (?:for )?(?:the )?(?:long|short)(?:er|est))"
LASTS = re.compile(
    r"\b(?P<life>how old (?:was|were)\b(?=.*\b(?:when|at death)\b)|(?:at )?(?:what|which) age\b|age at death"
    r"|age(?= of\b.*\bwhen\b)|life ?spans?"
    r"|how (?:long|many years)(?= did\b.* lived?\b(?! (?:in|at|with|on|here|there)\b))"
    rf"|lived{_EXTENT}|(?:long|short)(?:er|est)[- ]lived)\b"
    r"|\bhow many (?P<unit>days|years)(?= (?:did|do|does|was|were|passed|went)\b)"
    rf"|\bhow long(?= (?:did|do|does)\b.* {_LASTING}\b| (?:was|were)\b| {_LASTING}\b)"
    rf"|\b(?:for|{_LASTING})(?: (?:more|less|fewer|longer|over|under|at|least|most|than|exactly))*"
    rf" {NUMBER} (?P<limit>days|years)\b"
    rf"|\b(?:{_LASTING}|(?:was|were) (?!here|there)\w+){_EXTENT}\b"
)
"""What asks for the time between two dates: *how old was x when*, *how many days was x open*, *took longest*."""
_LASTING_VERB = re.compile(rf"\b{_LASTING}\b")
_TIMES = frozenset("duration time minute hour day week month year length".split())
"""Words of relations to how long something lasts, or is."""
_COMPARATIVE = re.compile(r"\b([a-z]+er) than\b")
_TOGETHER = re.compile(rf"\b{SLOT} and {SLOT} (?:put )?(?:together|combined)\b")


class Nearness(Protocol):
    """What the demands read of `search.words.WordCover`."""

    words: list[str]
    index: Any

    def says(self, relation: Step, first: int, last: int) -> bool:
        """Whether one of the words from `first` to before `last` names a relation."""


def returns(form: Form) -> tuple[Step, ...]:
    """The relations of a form that lead back over themselves, as from a person to those who have the same boss."""
    joins = [node for node in nodes_of(form) if isinstance(node, Join)]
    paths = [node.path + (node.of.path if isinstance(node.of, Join) else ()) for node in joins]
    pairs = [pair for path in paths for pair in zip(path, path[1:], strict=False)]
    return tuple(one for one, other in pairs if other == Step(one.relation, not one.inverse))


def _counts(form: Form, op: str) -> list[float]:
    """The numbers that a form compares counts with so."""
    found = (node for node in nodes_of(form) if isinstance(node, Compare) and node.counted and node.op == op)
    return [limit.lo for node in found if (limit := measure(node.value)) is not None]


def _compares(form: Form) -> bool:
    return any(isinstance(node, (CompareTo, Greater, Aggregate)) for node in nodes_of(form))


def spans_said(low: str) -> list[tuple[int, int]]:
    """Where a text in small letters asks for the time between two dates, and its verbs; none if it does not."""
    patterns = (LASTS, _LASTING_VERB) if LASTS in demands_of(low) else ()
    return [match.span() for pattern in patterns for match in pattern.finditer(low)]


def _lasts(one: Candidate, text: str, graph: LabelGraph) -> bool:
    """Whether a candidate measures by spans of time, or by a number that a question names or that is of times."""
    if has_span(one.form):
        return True
    nodes = nodes_of(one.form)
    ranks = (node for node in nodes if isinstance(node, (Arg, Nth, Greater, Aggregate)) and node.path)
    by = [graph.directed_relation(node.path[-1]) for node in ranks]
    if one.nodes is not None and len(one.nodes) and (graph.memory.dim[one.nodes] >= 0).all():
        by.append(one.ways[-1])
    said = _TIMES.union(*map(singulars, text.split()))
    called = (
        {one for word in graph.labels[way % graph.relations].lower().split() for one in singulars(word)} for way in by
    )
    numbers = [
        graph.is_measure(n) and graph.dated[n] <= DATED and said & own for n, own in zip(by, called, strict=True)
    ]
    counts = isinstance(one.form, Count) or "count" in computations(one.form)
    return not counts and all(numbers)


def _meets(pattern: re.Pattern[str], one: Candidate, text: str, graph: LabelGraph) -> bool:
    """Whether a candidate has the part that a pattern of the question demands."""
    form = one.form
    if pattern is LASTS:
        return _lasts(one, text, graph)
    if pattern is SAME:
        return bool(returns(form))
    if pattern is ONLY:
        return 1.0 in _counts(form, "le")
    if pattern is EXACTLY:
        counted = {one for match in EXACTLY.finditer(text) for one in singulars(match["noun"] or "")}
        counted &= graph.types_by_words.keys()
        equal = any(isinstance(node, Join) and isinstance(node.of, Literal) for node in nodes_of(form))
        return (equal and not counted) or not {*_counts(form, "ge")}.isdisjoint(_counts(form, "le"))
    if pattern is EVERY:
        return any(limit > 1 for limit in _counts(form, "ge"))
    if pattern is _THAN_PRONOUN:
        return sum(isinstance(node, Entity) for node in nodes_of(form)) > 1 and _compares(form)
    if pattern is _THAN:
        return _compares(form)
    if pattern is THAN_AVERAGE:
        bounds = [
            node.one for node in nodes_of(form) if isinstance(node, CompareTo) and isinstance(node.one, Aggregate)
        ]
        of_all = [{node for node in nodes_of(one) if isinstance(node, Entity)} for one in bounds]
        return any(own == {node for node in nodes_of(form) if isinstance(node, Entity)} for own in of_all)
    if pattern is EXCEPT_DOERS:
        without = (node.without for node in nodes_of(form) if isinstance(node, Minus))
        return not any(has_any(one) and not one.path[0].inverse for one in without)
    if pattern is IN_NAMES:
        parts = [part for node in nodes_of(form) if isinstance(node, And) for part in node.parts]
        parts += [one for part in parts if isinstance(part, Or) for one in part.parts]
        return any(isinstance(part, Entity) for part in parts)
    if pattern is _NEITHER:
        taken = [node.without for node in nodes_of(form) if isinstance(node, Minus)]
        return len(taken) > 1 or any(isinstance(one, Or) for one in taken)
    return "sum" in computations(form)


_DEMANDS = (
    LASTS,
    _NEITHER,
    IN_NAMES,
    EXCEPT_DOERS,
    SAME,
    ONLY,
    EXACTLY,
    EVERY,
    _THAN_PRONOUN,
    _THAN,
    THAN_AVERAGE,
    _TOGETHER,
)


def names_comparison(text: str, graph: LabelGraph) -> bool:
    """Whether a relation is called by the comparative before *than*: terms that are *narrower* than another."""
    return any(match[1] in graph.label_words for match in _COMPARATIVE.finditer(text.lower()))


@lru_cache(maxsize=1024)
def demands_of(text: str) -> tuple[re.Pattern[str], ...]:
    """The patterns of demands that a question has."""
    low = text.lower()
    return tuple(pattern for pattern in _DEMANDS if pattern.search(low))


def _asked(text: str, graph: LabelGraph) -> list[re.Pattern[str]]:
    """The demands of a question."""
    than = (_THAN, _THAN_PRONOUN) if names_comparison(text, graph) else ()
    return [pattern for pattern in demands_of(text) if pattern not in than]


def unmet(text: str, best: Candidate, graph: LabelGraph) -> list[str]:
    """Words of a question that demand what a form does not have."""
    low = text.lower()
    found = ((pattern, pattern.search(low)) for pattern in _asked(text, graph))
    return [_said(match[0]) for pattern, match in found if match and not _meets(pattern, best, low, graph)]


def _said(words: str) -> str:
    """The word that demands something: *only* of *only the x*."""
    plain = [word for word in words.split() if word not in (*SLOTS, NUMBER, "the", "a", "and")]
    return " ".join(plain[-2:]) if plain[-2:][0] in ("all", "every", "each") else plain[0]


def demanded(text: str, candidates: Sequence[Candidate], words: Nearness) -> list[list[bool]]:
    """Of each demand of a question which candidates meet it."""
    graph = words.index.graph
    asked = _asked(text, graph)
    found = [[_meets(pattern, one, text.lower(), graph) for one in candidates] for pattern in asked]
    if SAME in asked and "same" in words.words:  # of the relation that the noun behind it names, where one is
        at = words.words.index("same") + 1
        named = [any(words.says(step, at, at + 2) for step in returns(one.form)) for one in candidates]
        found[asked.index(SAME)] = named if any(named) else found[asked.index(SAME)]
    return found
