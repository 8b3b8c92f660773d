"""What a form finds, as texts: how benchmarks and systems write the answers of forms."""

from __future__ import annotations

from collections.abc import Mapping

from kgqa_core.logic.execute import Result
from kgqa_core.logic.forms import Count, Form, Holds

NOTHING = "0"
"""Answer of a count that counts nothing (the published gold of an unanswerable count question)."""


def answer_texts(
    form: Form, result: Result | None, keys: Mapping[int, str], *, answerable: bool = True
) -> tuple[str, ...]:
    """Keys of entities and literals, a number, or `yes` or `no`; keys: of every node of the result.

    What cannot be answered has none; a count of it is `"0"`.
    """
    if not answerable:
        return (NOTHING,) if isinstance(form, Count) else ()
    assert result is not None
    if isinstance(form, Count):
        return (str(result.value),)
    if isinstance(form, Holds):
        return ("yes" if result.value else "no",)
    return tuple(dict.fromkeys(keys[node] for node in result.nodes))
