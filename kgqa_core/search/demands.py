"""Words that demand a part of a form: *the same*, *only*, *exactly*, *every*, *than it*, *together*.

Elsewhere they are grammar.  A candidate without the part gives way to one that has it; where none has, the word is
unread, which forbids a confident answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Protocol

from kgqa_core.logic.forms import Aggregate, Compare, CompareTo, Entity, Form, Greater, Join, Literal, Step
from kgqa_core.logic.measures import measure
from kgqa_core.search.candidates import Candidate, computations, nodes_of
from kgqa_core.search.phrases import NUMBER, SLOTS

_SLOT = f"[{''.join(SLOTS)}]"
SAME = re.compile(r"\b(?:the|a|his|her|their|its) same (?!time\b|thing\b)|\bsame \w+ as\b")
ONLY = re.compile(rf"(?<!the )(?<!not )\b(?:only|exclusively|solely|nothing but)(?: [a-z]+)?(?: the)? {_SLOT}\b")
"""What is said of one thing and of no other: *borders only x*."""
EXACTLY = re.compile(rf"\b(?:exactly|precisely|only|just) {NUMBER}\b")
EVERY = re.compile(
    r"^\W*(?:which|what|who)\b(?!.*\b(?:total|sum|average|mean|number|most|least|fewest|of)\b)(?: \S+)+?"
    r" (?:all|every|each)(?: of)?(?: the)? [a-z]+\W*$"
)
"""What has a relation to all of some things: *who works on all projects*."""
_THAN_PRONOUN = re.compile(r"\bthan (?:it|him|her|them)\b(?! \w)")
_THAN = re.compile(rf"(?<!other )(?<!rather )\bthan (?:the )?{_SLOT}\b")
THAN_AVERAGE = re.compile(
    r"\bthan (?:(?:the|its|their|an|on) )?(?:average|mean|median)\b|\b(?:above|below)[- ]average\b"
)
"""What no form says yet."""
_COMPARATIVE = re.compile(r"\b([a-z]+er) than\b")
_TOGETHER = re.compile(rf"\b{_SLOT} and {_SLOT} (?:put )?(?:together|combined)\b")


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


def _meets(pattern: re.Pattern[str], form: Form) -> bool:
    """Whether a form has the part that a pattern of the question demands."""
    if pattern is SAME:
        return bool(returns(form))
    if pattern is ONLY:
        return 1.0 in _counts(form, "le")
    if pattern is EXACTLY:
        equal = any(isinstance(node, Join) and isinstance(node.of, Literal) for node in nodes_of(form))
        return equal or not {*_counts(form, "ge")}.isdisjoint(_counts(form, "le"))
    if pattern is EVERY:
        return any(limit > 1 for limit in _counts(form, "ge"))
    if pattern is _THAN_PRONOUN:
        return sum(isinstance(node, Entity) for node in nodes_of(form)) > 1 and _compares(form)
    if pattern is _THAN:
        return _compares(form)
    if pattern is THAN_AVERAGE:
        return any(isinstance(node, CompareTo) and isinstance(node.one, Aggregate) for node in nodes_of(form))
    return "sum" in computations(form)


_DEMANDS = (SAME, ONLY, EXACTLY, EVERY, _THAN_PRONOUN, _THAN, THAN_AVERAGE, _TOGETHER)


def names_comparison(text: str, label_words: Collection[str]) -> bool:
    """Whether a relation is called by the comparative before *than*: terms that are *narrower* than another."""
    return any(match[1] in label_words for match in _COMPARATIVE.finditer(text.lower()))


def _asked(text: str, label_words: Collection[str]) -> list[re.Pattern[str]]:
    """The demands of a question."""
    than = (_THAN, _THAN_PRONOUN) if names_comparison(text, label_words) else ()
    return [pattern for pattern in _DEMANDS if pattern not in than and pattern.search(text.lower())]


def unmet(text: str, best: Candidate, label_words: Collection[str]) -> list[str]:
    """Words of a question that demand what a form does not have.  label_words: of the labels of the graph."""
    found = ((pattern, pattern.search(text.lower())) for pattern in _asked(text, label_words))
    return [_said(match[0]) for pattern, match in found if match and not _meets(pattern, best.form)]


def _said(words: str) -> str:
    """The word that demands something: *only* of *only the x*."""
    plain = [word for word in words.split() if word not in (*SLOTS, NUMBER, "the", "a", "and")]
    return " ".join(plain[-2:]) if plain[-2:][0] in ("all", "every", "each") else plain[0]


def demanded(text: str, candidates: Sequence[Candidate], words: Nearness) -> list[list[bool]]:
    """Of each demand of a question which candidates meet it."""
    asked = _asked(text, words.index.graph.label_words)
    found = [[_meets(pattern, one.form) for one in candidates] for pattern in asked]
    if SAME in asked and "same" in words.words:  # of the relation that the noun behind it names, where one is
        at = words.words.index("same") + 1
        named = [any(words.says(step, at, at + 2) for step in returns(one.form)) for one in candidates]
        found[asked.index(SAME)] = named if any(named) else found[asked.index(SAME)]
    return found
