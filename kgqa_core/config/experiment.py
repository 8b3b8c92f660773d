"""Names of knowledge, answerers and retrievers, as profiles, records and artifacts spell them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from kgqa_core.errors import ConfigError

FORMATS = ("none", "triples", "template", "rewritten", "both")
"""Forms of knowledge: none, triple-form text, sentences by rule, sentences by the rewriter, triples and passages."""


PASSAGES = "passages"
"""Knowledge that comes from text: its name as retriever and as format."""


SYMBOLIC, HYBRID = "symbolic", "hybrid"
"""Answerers that compute: alone, and for a language model."""


LINKED = "@linked"
"""Ends the name of a retriever that starts from linked topics."""


def split_knowledge(name: str) -> tuple[str, str]:
    """Retriever and format of a `knowledge` entry: `rigel` is `("rigel", "triples")`, `none` is `("none", "none")`,
    `passages` is `("passages", "passages")`.

    Raises ConfigError for a format that is unknown.
    """
    retriever, slash, form = name.partition("/")
    own = {"none": "none", PASSAGES: PASSAGES}
    if not slash or (retriever == "none" and not form):
        form = own.get(retriever, "triples")
    if (form not in (*FORMATS, PASSAGES)) or own.get(retriever) != (form if form in own.values() else None):
        raise ConfigError(
            f"answering.knowledge {name!r} has no known format; write none, passages, or retriever/format with a "
            f"format among {', '.join(FORMATS[1:])}"
        )
    return retriever, form


def split_answerer(spec: str) -> tuple[Literal["model", "symbolic", "hybrid"], str | None]:
    """How an answerer works and the name of its language model, None for `symbolic`.

    >>> split_answerer("hybrid"), split_answerer("symbolic"), split_answerer("openai:gpt")
    (('hybrid', 'builtin'), ('symbolic', None), ('model', 'openai:gpt'))
    """
    kind, colon, model = spec.strip().partition(":")
    if kind == SYMBOLIC and not colon:
        return "symbolic", None
    if kind == HYBRID:
        return "hybrid", model or "builtin"
    return "model", spec


def split_retriever(name: str) -> tuple[str, bool]:
    """A retriever's plain name, and whether it starts from linked topics: `rigel@linked` is `("rigel", True)`."""
    return name.removesuffix(LINKED), name.endswith(LINKED)


def check_knowledge(wanted: Iterable[str], collected: Iterable[str]) -> None:
    """Raise ConfigError when the language model is to be given facts that no configured retriever collects."""
    there = sorted(collected)
    for name in wanted:
        retriever, _ = split_knowledge(name)
        if retriever not in ("none", PASSAGES) and retriever not in there:
            raise ConfigError(
                f"answering.knowledge asks for {name!r}, but retrieval.retrievers collects only {', '.join(there)}; "
                "add it there or leave it out here"
            )
