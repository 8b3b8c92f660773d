"""Fields of a raw question that its logical form gives: relation paths, complexity type and number of hops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kgqa_core.logic.forms import And, Arg, Compare, Count, Form, Join, Nth, TimeConstraint
from kgqa_core.logic.paths import to_paths


def form_fields(form: Form, topics: Sequence[str]) -> dict[str, Any]:
    """s_expression, relation_paths, complexity and hops of a form, as a raw question has them."""
    paths = [path for path in to_paths(form) if path.relations]
    if sorted(path.topic for path in paths) == sorted(topics):
        paths.sort(key=lambda path: topics.index(path.topic))
    distinct = list(dict.fromkeys(path.relations for path in paths))
    return {
        "s_expression": str(form),
        "relation_paths": [list(path) for path in distinct],
        "complexity": complexity_of(form),
        "hops": max(map(len, distinct), default=None),
    }


def complexity_of(form: Form) -> str:
    """The complexity type (`types.COMPLEXITY_TYPES`) of a form of GrailQA, WebQSP or CWQ."""
    every = list(_parts(form))
    if any(isinstance(part, Count) for part in every):
        return "count"
    if any(isinstance(part, Arg) for part in every):
        return "superlative"
    if any(isinstance(part, Nth) for part in every):
        return "ordinal"
    if any(isinstance(part, Compare) for part in every):
        return "comparative"
    if any(isinstance(part, And) and sum(isinstance(one, (Join, And)) for one in part.parts) > 1 for part in every):
        return "intersection"
    return "multi-hop" if sum(len(part.path) for part in every if isinstance(part, Join)) > 1 else "generic"


def _parts(form: Form) -> Iterator[Form]:
    yield form
    if isinstance(form, And):
        for part in form.parts:
            yield from _parts(part)
    elif isinstance(form, (Join, Count, Arg, Nth, TimeConstraint)):
        yield from _parts(form.of)
