"""Relation paths from topic entities, as the retrievers follow them, from and to logical forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgqa_core.errors import FormError
from kgqa_core.logic import forms
from kgqa_core.logic.forms import Form, Step, Steps
from kgqa_core.types import INVERSE


@dataclass(frozen=True, slots=True)
class TopicPath:
    """A topic entity's key and the relation path that leads from it, inverse relations marked `<inv>-`."""

    topic: str
    relations: tuple[str, ...]


def from_path(topics: str | Sequence[str], relation_path: Sequence[str]) -> Form:
    """What a relation path leads to from a topic entity, or from any of several.

    An empty path gives the topics themselves.  Raises FormError for no topic.
    """
    keys = [topics] if isinstance(topics, str) else list(dict.fromkeys(topics))
    if not keys:
        raise FormError("a relation path starts from a topic entity, and there is none")
    start: Form = forms.Entity(keys[0]) if len(keys) == 1 else forms.Or(tuple(map(forms.Entity, keys)))
    steps = tuple(_backwards(relation) for relation in reversed(relation_path))
    return forms.Join(steps, start) if steps else start


def to_paths(form: Form) -> tuple[TopicPath, ...]:
    """The relation paths that a retriever follows to find what a form needs, in the order in which they are written.

    One for each entity of the form, towards the answer; where values are compared they lead on to the values: an ARGMAX
    of the cities of a country by population gives city and population.  The paths of what a MINUS takes away and of the
    other side of a HOLDS or GREATER are among them.  Values of conditions on qualifiers, types and literals give none.
    """
    return tuple(dict.fromkeys(TopicPath(topic, path) for topic, path in _paths(form)))


def _paths(form: Form) -> list[tuple[str, tuple[str, ...]]]:
    match form:
        case forms.Entity(key=key):
            return [(key, ())]
        case forms.Join(path=path, of=of):
            return _extended(_paths(of), tuple(relation_of(_turned(step)) for step in reversed(path)))
        case forms.And(parts=parts):
            whole = [result for part in parts for result in _paths(part)]
            values = [_forward(part.path) for part in parts if isinstance(part, forms.Compare)]
            return [result for value in values for result in _extended(whole, value)] if values else whole
        case forms.Or(parts=parts):
            return [result for part in parts for result in _paths(part)]
        case forms.Minus(of=of, without=without):
            return _paths(of) + _paths(without)
        case forms.Count(of=of):
            return _paths(of)
        case forms.Arg(of=of, path=path) | forms.Nth(of=of, path=path) | forms.TimeConstraint(of=of, path=path):
            return _extended(_paths(of), _forward(path))
        case forms.CompareTo(one=one, path=path):
            return _extended(_paths(one), _forward(path))
        case forms.Greater(one=one, other=other, path=path):
            return _extended(_paths(one) + _paths(other), _forward(path))
        case forms.Aggregate(of=of, path=path, by=by):
            return [result for way in (path, by) if way for result in _extended(_paths(of), _forward(way))]
        case forms.Holds(of=of, one=one) | forms.Share(of=of, one=one):
            return _paths(of) + _paths(one)
    return []


def _extended(paths: list[tuple[str, tuple[str, ...]]], more: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    return [(topic, path + more) for topic, path in paths]


def _forward(path: Steps) -> tuple[str, ...]:
    """The path's relations from what has the values to the values."""
    return tuple(relation_of(step) for step in path)


def _backwards(relation: str) -> Step:
    """The step of an answer, for the relation that leads to it."""
    inverse = relation.startswith(INVERSE)
    return Step(relation.removeprefix(INVERSE), inverse=not inverse)


def _turned(step: Step) -> Step:
    return Step(step.relation, inverse=not step.inverse)


def relation_of(step: Step) -> str:
    """A step as relation paths write it: `<inv>-` before an inverse relation."""
    return INVERSE + step.relation if step.inverse else step.relation
