"""The company register with types, some that count or are answered by yes or no: for answerability."""

from __future__ import annotations

import json
import random
from pathlib import Path

from kgqa_core.config import AnswerabilityOptions, KgOptions, QuestionsOptions
from kgqa_core.datasets.load import load
from kgqa_core.kg.build import build as build_kg
from kgqa_core.papers.grailqability.builder.build import build
from kgqa_core.workspace import Workspace
from tests.support.toy import write_graph, write_questions

KINDS = {"lives_in": ("Person", "Town"), "works_for": ("Person", "Company"), "located_in": ("Town", "Region"),
         "speaks": ("Person", "Language"), "member_of": ("Person", "Club")}  # fmt: skip
TYPE = "rdf:type"
RARE = {"speaks": "What does {} speak?", "born_in": "Where was {} born?", "member_of": "To which club does {} belong?"}
OPTIONS = AnswerabilityOptions(largest_drop_share=0.9)


def write_inputs(folder: Path, questions: int = 84, seed: int = 3) -> tuple[Path, Path]:
    """A graph artifact and a questions artifact in `folder`, `kg` and `questions`."""
    triples = write_graph(folder / "facts.tsv", 3500, seed)
    typed = {(end, TYPE, kind) for head, relation, tail in triples for end, kind in
             zip((head, tail), KINDS.get(relation, ()), strict=False)}  # fmt: skip
    with (folder / "facts.tsv").open("a", encoding="utf-8") as file:
        file.writelines("\t".join(row) + "\n" for row in sorted(typed))
    write_questions(folder / "questions.jsonl", triples, questions - 42)
    with (folder / "questions.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in _computed(triples, seed))
    kg, asked = folder / "kg", folder / "questions"
    kg.mkdir()
    asked.mkdir()
    build_kg(Workspace(kg), options=KgOptions(files=(str(folder / "facts.tsv"),), format="delimited", delimiter="\t"))
    load(Workspace(asked), kg=kg, options=QuestionsOptions(path=str(folder / "questions.jsonl")), seed=7)
    return kg, asked


def write_benchmark(folder: Path, kg: Path, questions: Path, seed: int = 7) -> Path:
    """A benchmark in `folder`, made with OPTIONS."""
    folder.mkdir()
    build(Workspace(folder), kg=kg, questions=questions, options=OPTIONS, seed=seed)
    return folder


def _computed(triples: list[tuple[str, str, str]], seed: int) -> list[dict[str, object]]:
    """12 questions that count employees and 12 whether somebody lives somewhere, half of them to be denied."""
    draw = random.Random(seed)
    staff: dict[str, int] = {}
    homes = {head: tail for head, relation, tail in triples if relation == "lives_in"}
    for _, relation, tail in triples:
        staff[tail] = staff.get(tail, 0) + (relation == "works_for")
    counts = [
        {"id": f"c{n:02}", "question": f"How many people work for {company}?", "topic_entities": [company],
         "answers": [staff[company]], "relation_path": ["<inv>-works_for"], "complexity": "count"}
        for n, company in enumerate(draw.sample(sorted(c for c in staff if staff[c]), 12))
    ]  # fmt: skip
    towns = sorted(set(homes.values()))
    asked = []
    for n, person in enumerate(draw.sample(sorted(homes), 12)):
        town = homes[person] if n % 2 else draw.choice([t for t in towns if t != homes[person]])
        asked.append(
            {"id": f"y{n:02}", "question": f"Does {person} live in {town}?", "topic_entities": [person, town],
             "answers": [bool(n % 2)], "relation_path": ["lives_in"], "complexity": "yes/no"}
        )  # fmt: skip
    return [*counts, *asked, *_rare(triples, draw)]


def _rare(triples: list[tuple[str, str, str]], draw: random.Random) -> list[dict[str, object]]:
    """Six questions about each of three relations, few enough for a type or relation to be dropped."""
    rows: list[dict[str, object]] = []
    for relation, wording in RARE.items():
        found: dict[str, list[str]] = {}
        for head, own, tail in triples:
            if own == relation:
                found.setdefault(head, []).append(tail)
        rows += [
            {"id": f"{relation}{n}", "question": wording.format(head), "topic_entities": [head],
             "answers": found[head], "relation_path": [relation], "complexity": "generic"}
            for n, head in enumerate(draw.sample(sorted(found), 6))
        ]  # fmt: skip
    return rows
