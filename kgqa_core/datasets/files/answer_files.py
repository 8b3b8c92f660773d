"""Files of predicted answers, as `kgqa answer` and other systems write them, and the nodes that their answers name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kgqa_core.datasets.files.jsonl import read_by_id
from kgqa_core.kg.store import KgStore

FIELDS = ("answers", "prediction", "output", "answer")
"""Fields that may hold the answers of a row, the one that counts first."""

_T = TypeVar("_T")


def read_answer_file(path: Path, read: Callable[[str, Mapping[str, Any], str], _T]) -> dict[str, _T]:
    """Question id → what `read` makes of its row, in the order of the file.

    read: of the id, the row, and the name of the field that holds the answers; it raises ValueError for a faulty row.
    Raises QuestionFileError, which names lines and fields.
    """

    def read_row(key: str, value: Mapping[str, Any]) -> _T:
        name = next((name for name in FIELDS if name in value), None)
        if name is None:
            raise ValueError(
                "field 'answers' is missing; name the file that `kgqa answer` wrote, or one whose field 'prediction' "
                "has the answer"
            )
        return read(key, value, name)

    return read_by_id(path, read_row, "id and answers")


@dataclass(frozen=True, slots=True)
class NamedNode:
    """A node of a graph that a name means.  entity: whether it is no literal."""

    key: str
    entity: bool


def nodes_named(texts: Iterable[str], store: KgStore) -> dict[str, list[NamedNode]]:
    """Text → the nodes that it means in a graph, the most popular first, ties by id."""
    resolved = store.resolve(sorted(set(texts)))
    ids = sorted({node for nodes in resolved.values() for node in nodes})
    rows = store.connection.execute(
        "SELECT id, key, kind, coalesce(popularity, 0) FROM entities WHERE id IN (SELECT unnest(?::BIGINT[]))", [ids]
    ).fetchall()
    known = {node: (-popularity, node, NamedNode(key, kind == "entity")) for node, key, kind, popularity in rows}
    return {text: [node for *_, node in sorted(known[node] for node in nodes)] for text, nodes in resolved.items()}
