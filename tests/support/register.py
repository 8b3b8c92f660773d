"""A toy project that changes as real ones do: a company register, its questions, a profile, and two newer dumps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.toy import write_graph, write_questions

TRIPLES, QUESTIONS, NEW_FACTS = 1500, 240, 8
LATE = "based_in"
"""The relation that only the last dump has; a third of the questions ask for it."""


@dataclass(frozen=True)
class Register:
    """Files of the project.

    first: the register without one relation.  facts: a few facts more.  relation: that relation too.
    """

    first: Path
    facts: Path
    relation: Path
    questions: Path

    def profile(self, graph: Path | None = None, **sections: Any) -> dict[str, Any]:
        """A profile of half a minute's work on two cores, as a flow takes it.  sections: merged over it, one deep."""
        base: dict[str, Any] = {
            "name": "register",
            "description": "A toy register: who works where, and in which town.",
            "kg": {"name": "register", "files": [str(graph or self.first)]},
            "questions": {"name": "asked", "source": "jsonl", "path": str(self.questions)},
            "retriever": {"encoder": "scratch", "scratch_width": 64, "epochs": 2, "min_steps": 300},
            "hop_path": {"encoder": "scratch", "max_hops": 2, "epochs": 2, "batch_size": 32},
            "retrieval": {"retrievers": ["rigel", "hop_path", "random"]},
            "answering": {"knowledge": ["none", "rigel"], "limit": 12},
            "evaluation": {"bootstrap": 200},
            "operations": {"champion_experiment": "rigel/-/-", "champion_metric": "hits_at_1"},
        }
        for name, section in sections.items():
            merged = isinstance(section, dict) and isinstance(base.get(name), dict)
            base[name] = {**base[name], **section} if merged else section
        return base


def write_register(folder: Path) -> Register:
    """Write the project's files into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    found = Register(*(folder / name for name in ("first.tsv", "facts.tsv", "relation.tsv", "asked.jsonl")))
    triples = write_graph(found.relation, TRIPLES)
    write_questions(found.questions, triples, QUESTIONS)
    known = [row for row in triples if row[1] != LATE]
    asked = {name for row in _rows(found.questions) for name in (*row["topic_entities"], *row["answers"])}
    unasked = [row for row in known if row[1] == "born_in" and row[0] not in asked]
    held_back = set(unasked[:NEW_FACTS])
    assert len(held_back) == NEW_FACTS
    _write(found.facts, known)
    _write(found.first, [row for row in known if row not in held_back])
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _write(path: Path, rows: list[tuple[str, str, str]]) -> None:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
