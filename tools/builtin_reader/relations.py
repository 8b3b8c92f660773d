"""Relations of the invented graphs: labels as graphs write them, and the ways in which people ask for them.

The tables are in relations.yaml.  In questions and inverse nouns `{x}` stands for the entity that is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of the invented graphs.

    labels: what a graph may call it.  head, tail: kinds of name.  nouns: what people call it.
    questions, inverse_questions, inverse_nouns: phrases with `{x}` for the given entity.
    """

    labels: tuple[str, ...]
    head: str
    tail: str
    nouns: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    inverse_questions: tuple[str, ...] = ()
    inverse_nouns: tuple[str, ...] = ()
    chinese: bool = False


def _relation(row: dict[str, Any], *, chinese: bool) -> Relation:
    lists = ("labels", "nouns", "questions", "inverse_questions", "inverse_nouns")
    return Relation(
        head=row["head"], tail=row["tail"], chinese=chinese, **{name: tuple(row.get(name, ())) for name in lists}
    )


_TABLES = yaml.safe_load((Path(__file__).parent / "relations.yaml").read_text(encoding="utf-8"))
ENGLISH = tuple(_relation(row, chinese=False) for row in _TABLES["english"])
CHINESE = tuple(_relation(row, chinese=True) for row in _TABLES["chinese"])

NUMERIC = ("number", "measure")
LITERAL = ("number", "measure", "date", "year", "code", "sex", "sentence")
