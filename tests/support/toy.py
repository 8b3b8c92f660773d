"""A company register made from a seed: a graph, questions about it, and a project that changes as real ones do."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RELATIONS = ("lives_in", "works_for", "born_in", "based_in", "located_in", "founded_by", "speaks", "member_of")
WORDINGS = {
    ("lives_in",): ("Where does {} live?", "In which town does {} live?", "What is the home of {}?"),
    ("works_for",): ("Who does {} work for?", "Which company employs {}?", "What is the employer of {}?"),
    ("based_in",): ("Where is {} based?", "In which town is the seat of {}?", "What is the base of {}?"),
    ("works_for", "based_in"): (
        "In which town is the employer of {} based?",
        "Where is the company that {} works for based?",
    ),
    ("lives_in", "located_in"): ("In which region does {} live?", "Which region is the home town of {} located in?"),
    ("<inv>-works_for",): ("Who works for {}?", "Name somebody who is employed by {}."),
}


def write_graph(path: Path, triples: int = 5000, seed: int = 3) -> list[tuple[str, str, str]]:
    """Write `triples` distinct tab-separated triples and return them."""
    draw = random.Random(seed)
    people = [f"{first} {last}" for first in _words(draw, 50) for last in _words(draw, 20)]
    towns, companies, regions = _words(draw, 120), [f"{word} Ltd" for word in _words(draw, 150)], _words(draw, 12)
    languages, clubs = _words(draw, 15), [f"{word} Club" for word in _words(draw, 40)]
    rows: dict[tuple[str, str, str], None] = {}
    for town in towns:
        rows[(town, "located_in", draw.choice(regions))] = None
    for company in companies:
        rows[(company, "based_in", draw.choice(towns))] = None
        rows[(company, "founded_by", draw.choice(people))] = None
    for person in people:
        rows[(person, "lives_in", draw.choice(towns))] = None
        rows[(person, "born_in", draw.choice(towns))] = None
        rows[(person, "works_for", draw.choice(companies))] = None
    while len(rows) < triples:
        rows[
            (draw.choice(people), *draw.choice([("speaks", draw.choice(languages)), ("member_of", draw.choice(clubs))]))
        ] = None
    chosen = list(rows)[:triples]
    path.write_text("".join("\t".join(row) + "\n" for row in chosen), encoding="utf-8")
    return chosen


def write_questions(path: Path, triples: list[tuple[str, str, str]], number: int = 300, seed: int = 4) -> None:
    """Write `number` questions over the triples, with topics, answers and relation paths, as JSON lines."""
    draw = random.Random(seed)
    forward: dict[tuple[str, str], list[str]] = {}
    for head, relation, tail in triples:
        forward.setdefault((head, relation), []).append(tail)
        forward.setdefault((tail, f"<inv>-{relation}"), []).append(head)
    rows: dict[str, dict[str, object]] = {}
    starts = sorted(forward)
    while len(rows) < number:
        relations = draw.choice(list(WORDINGS))
        topic = draw.choice(
            [head for head, relation in draw.choices(starts, k=400) if relation == relations[0]] or [""]
        )
        answers = {topic} if topic else set()
        for relation in relations:
            answers = {tail for head in answers for tail in forward.get((head, relation), [])}
        text = draw.choice(WORDINGS[relations]).format(topic)
        if answers and text not in rows:
            rows[text] = {
                "id": f"q{len(rows):04d}",
                "question": text,
                "topic_entities": [topic],
                "answers": sorted(answers),
                "relation_path": list(relations),
                "complexity": "generic" if len(relations) == 1 else "multi-hop",
            }
    path.write_text("".join(json.dumps(row) + "\n" for row in rows.values()), encoding="utf-8")


def _words(draw: random.Random, number: int) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < number:
        words[
            "".join(draw.choice("bdfgklmnprstvz") + draw.choice("aeiou") for _ in range(draw.choice((2, 3)))).title()
        ] = None
    return list(words)


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
            "rigel": {"encoder": "scratch", "scratch_width": 64, "epochs": 2, "min_steps": 300},
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
