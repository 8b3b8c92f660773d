"""Relation linking as published for QALD-9 and LC-QuAD 1: a question, its linked entities and their candidates.

A line is JSON with `q_id`, `source` and `target`: `Who developed Skype? [Skype | Software | developer, genre]` and
`[Skype | developer]`.  The candidates come in the order of an earlier ranking, so they are sorted here.  Gold pairs of
an entity that is not linked (`[What | elevation]`, of a later hop) are counted and are no pairs to rank.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.errors import InputError
from kgqa_core.input_files import read_document

_BLOCK = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")


@dataclass(frozen=True)
class Linked:
    """A question with one of its entities.

    relations: the candidates, sorted.  gold: relations of the entity that the question's query has, also those that are
    no candidates.
    """

    question_id: str
    question: str
    entity: str
    relations: tuple[str, ...]
    gold: frozenset[str]


@dataclass(frozen=True)
class LinkingSet:
    """The linked entities of a file, in its order.

    counts: questions, entities, gold (pairs of linked entities), no_candidate (of these), unlinked (gold pairs left
    out).
    """

    linked: tuple[Linked, ...]
    counts: dict[str, int]


def read_linking(path: Path) -> LinkingSet:
    """The entities of a file that have a candidate.  Raises InputError for a line that is none, by its number."""
    linked: list[Linked] = []
    counts = Counter[str](questions=0, entities=0, gold=0, no_candidate=0, unlinked=0)
    lines = read_document(path, needs="lines of JSON with q_id, source and target").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            own, unlinked = read_line(str(row["q_id"]), row["source"], row["target"])
        except (ValueError, KeyError, TypeError) as fault:
            raise InputError(f"{path} line {number} is no JSON with q_id, source and target ({fault!r})") from None
        counts["questions"] += 1
        counts["entities"] += len(own)
        counts["gold"] += sum(len(one.gold) for one in own)
        counts["no_candidate"] += sum(len(one.gold - set(one.relations)) for one in own)
        counts["unlinked"] += unlinked
        linked += own
    return LinkingSet(tuple(linked), dict(counts))


def read_line(question_id: str, source: str, target: str) -> tuple[list[Linked], int]:
    """The linked entities of one question, and how many gold pairs are of none of them.

    >>> read_line("2", "Who made it? [Skype | Software | genre, developer]", "[Skype | developer] [Who | name]")[1]
    1
    """
    blocks = [_parts(block) for block in _BLOCK.findall(source)]
    first = _BLOCK.search(source)
    question = " ".join(source[: first.start() if first else len(source)].split())
    gold: dict[str, set[str]] = {}
    for parts in (_parts(block) for block in _BLOCK.findall(target)):
        if len(parts) > 1 and parts[-1]:
            gold.setdefault(parts[0], set()).add(parts[-1])
    candidates: dict[str, set[str]] = {}
    for parts in blocks:
        names = {name.strip() for name in parts[-1].split(",")} - {""}
        if len(parts) > 2 and names:
            candidates.setdefault(parts[0], set()).update(names)
    own = [
        Linked(question_id, question, entity, tuple(sorted(names)), frozenset(gold.get(entity, ())))
        for entity, names in candidates.items()
    ]
    return own, sum(len(names) for entity, names in gold.items() if entity not in candidates)


def _parts(block: str) -> Sequence[str]:
    return [part.strip() for part in block.split("|")]
