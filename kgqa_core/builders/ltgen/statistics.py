"""The tables of a benchmark: questions, dialogues and turns by level and number of reference triples, and rejects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kgqa_core.builders.ltgen.conv import SMALL_TALK
from kgqa_core.builders.ltgen.records import Item, Reject, Subject
from kgqa_core.types import LEVELS

CITED = ("1", "2", "3", ">3")
"""Groups by number of reference triples, as in the paper."""

COLUMNS = {
    "qa": {"entities": "entities", "entities_asked": "asked", "questions": "questions"},
    "conv": {"entities": "entities", "dialogues": "dialogues", "turns": "turns"},
}
"""What is counted by level, and the heads of its columns, which fit a terminal of 80 characters."""


def statistics(
    kind: str, subjects: Sequence[Subject], items: Sequence[Item], rejects: Sequence[Reject], counts: Mapping[str, int]
) -> dict[str, Any]:
    """What a benchmark has, by level and in all, and what was rejected by reason (small talk apart)."""
    levels = {level: _row(kind, level, subjects, items) for level in LEVELS}
    total = _row(kind, None, subjects, items)
    talk = sum(reject.reason in SMALL_TALK for reject in rejects)
    reasons = Counter(reject.reason for reject in rejects if reject.reason not in SMALL_TALK)
    table: dict[str, Any] = {
        "kind": kind,
        "levels": levels,
        "total": total,
        "splits": dict(sorted(Counter(item.subject.split for item in items).items())),
        "rejects": dict(sorted(reasons.items())),
        "prompts": counts.get("prompts", 0),
    }
    return table | ({"turns_without_triples": talk} if kind == "conv" else {})


def cited_group(number: int) -> str:
    """The group of a number of reference triples.

    >>> cited_group(1), cited_group(7)
    ('1', '>3')
    """
    return str(number) if number <= 3 else ">3"


def rows(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The table as the paper prints it: a row a level and one in all."""
    found = []
    for level, row in [*((level, table["levels"][level]) for level in LEVELS), ("all", table["total"])]:
        counted = {head: row[name] for name, head in COLUMNS[table["kind"]].items()}
        groups = {f"{group} triple" if group == "1" else group: row["by_triples"][group] for group in CITED}
        found.append({"level": level} | counted | groups)
    return found


def _row(kind: str, level: str | None, subjects: Sequence[Subject], items: Sequence[Item]) -> dict[str, Any]:
    mine = [item for item in items if level in (None, item.subject.level)]
    groups = Counter(cited_group(len(item.triples)) for item in mine)
    asked = {item.subject.end.id for item in mine}
    row: dict[str, Any] = {"entities": sum(level in (None, subject.level) for subject in subjects)}
    if kind == "conv":
        row |= {"dialogues": len(asked), "turns": len(mine)}
    else:
        row |= {"entities_asked": len(asked), "questions": len(mine)}
    return row | {"by_triples": {group: groups[group] for group in CITED}}
