"""Work done whole and in parts: what must come out the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa_core.config import DkgOptions, KgOptions, QuestionsOptions, RetrievalOptions
from kgqa_core.datasets.load import load
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.kg.build import build
from kgqa_core.retrieval.api import RetrieverInputs
from kgqa_core.retrieval.collect import collect
from kgqa_core.store.artifacts import content_digest
from kgqa_core.workspace import Workspace
from tests.support.toy import write_graph, write_questions

Fill = Callable[..., Mapping[str, Any]]


@dataclass(frozen=True)
class Made:
    """What a folder holds: its content digest and its counts."""

    digest: str
    counts: dict[str, Any]


def whole(folder: Path, fill: Fill) -> Made:
    """fill(out) in a folder of its own."""
    folder.mkdir(parents=True)
    counts = dict(fill(folder))
    return Made(content_digest(folder), counts)


def divided(folder: Path, fill: Fill, merge: Fill, parts: int) -> Made:
    """fill(out, part=(k, n)) for every part, the last first, and merge(out, folders)."""
    folders = [folder / f"part{number}" for number in range(parts)]
    for number in reversed(range(parts)):
        folders[number].mkdir(parents=True)
        fill(folders[number], part=(number, parts))
    return whole(folder / "joined", lambda out: merge(out, folders))


@dataclass(frozen=True)
class World:
    """Folders of a small graph, of questions about it, and of facts drawn at random for them."""

    kg: Path
    dkg: Path
    questions: Path
    facts: Path


def make_world(folder: Path, triples: int = 1500, questions: int = 150) -> World:
    """A company register with questions."""
    made = World(*(folder / name for name in ("kg", "dkg", "questions", "facts")))
    for own in (made.kg, made.dkg, made.questions, made.facts):
        own.mkdir(parents=True)
    write_questions(folder / "questions.jsonl", write_graph(folder / "graph.tsv", triples), questions)
    build(Workspace(made.kg), options=KgOptions(name="toy", files=(str(folder / "graph.tsv"),)))
    export(Workspace(made.dkg), kg=made.kg, options=DkgOptions())
    asked = QuestionsOptions(name="toy", source="jsonl", path=str(folder / "questions.jsonl"))
    load(Workspace(made.questions), kg=made.kg, options=asked, seed=7)
    collect(
        Workspace(made.facts), made.questions, "random", RetrieverInputs(Dkg.open(made.dkg), RetrievalOptions(k=6), 7)
    )
    return made
