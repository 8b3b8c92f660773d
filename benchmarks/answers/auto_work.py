"""Graphs, question sets, generated questions and trained label parsers in a folder, and `auto` opened on them.

Each lies in a folder named by what decides it: options, seed, inputs, code and, of a parser, the packaged head start.
What is there is not made again.  Options are those of flows/profiles/*.yaml.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.conditions import PROFILES
from kgqa_core.config import LabelParserOptions, LinkingOptions, Profile, make_profile, read_profile
from kgqa_core.datasets.files.question import read_questions, write_questions
from kgqa_core.datasets.load import input_files, load
from kgqa_core.kg.build import build as build_kg
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.dictionary import build as build_mentions
from kgqa_core.linking.questions import link_question
from kgqa_core.linking.tagger import open_tagger
from kgqa_core.monitor import Log
from kgqa_core.retrieval.linked_candidates import CANDIDATES, with_candidates
from kgqa_core.store.artifacts import MANIFEST
from kgqa_core.store.digest import canonical_json, hash_file
from kgqa_core.store.publish import publish_folder
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.by_labels.model import load as load_parser
from kgqa_core.symbolic.by_labels.packaged import HEAD_START
from kgqa_core.symbolic.by_labels.stage import train
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tasks.engine.key import code_digest

GRAPHS = {"atlas": "atlas", "metaqa": "metaqa", "zjqa": "zjqa", "wikidata": "wikidata-mini"}
"""Profile of each graph."""
"""Questions that are timed one at a time, and those of which a random candidate is scored."""
MOST_ANSWERS = 1_000_000
"""Answers that are listed: all, so that a large set can be exact."""


class Unnamed(Log):
    """A monitor without notes, for these name questions, which may be of the test."""

    def note(self, message: str) -> None:
        """Ignored."""


@dataclass
class Work:
    """Makes what experiments need.  most: questions of a sample."""

    folder: Path
    shared: Path
    seed: int = 7
    most: int | None = None

    def profile(self, graph: str) -> Profile:
        """The shipped profile over a graph, with the files of the shared data."""
        tree = read_profile(PROFILES / f"{GRAPHS[graph]}.yaml")
        data = str(self.shared)
        tree["kg"]["files"] = [name.replace("../shared/data", data) for name in tree["kg"]["files"]]
        if "path" in tree["questions"]:
            tree["questions"]["path"] = tree["questions"]["path"].replace("../shared/data", data)
        return make_profile(tree)

    def options(self, graph: str, **changes: Any) -> LabelParserOptions:
        """Options of the label parser of a profile, with some changed."""
        options = self.profile(graph).label_parser
        return LabelParserOptions.model_validate({**options.model_dump(), "adapt": "always", **changes})

    def kg(self, graph: str) -> Path:
        """Folder of a graph."""
        options = self.profile(graph).kg
        parts = {"options": options, "files": [_digest(name) for name in options.files], "code": code_digest(build_kg)}
        return self._made("kg", parts, lambda out, work: build_kg(Workspace(out, work), options=options))

    def mentions(self, graph: str) -> Path:
        """Folder of the dictionary of a graph's names."""
        kg, parts = self.kg(graph), {"code": code_digest(build_mentions)}
        return self._made(
            "mentions", parts | {"kg": kg.name}, lambda out, work: build_mentions(Workspace(out, work), kg=kg)
        )

    def questions(self, graph: str) -> Path:
        """Folder of all questions of a profile."""
        kg, options = self.kg(graph), self.profile(graph).questions
        parts = {
            "kg": kg.name, "options": options, "files": [_digest(str(file)) for file in input_files(options)],
            "seed": self.seed, "code": code_digest(load),
        }  # fmt: skip
        return self._made(
            "questions",
            parts,
            lambda out, _: load(Workspace(out, monitor=Unnamed()), kg=kg, options=options, seed=self.seed),
        )

    def split(self, graph: str, split: str, hops: int | None = None) -> list[Question]:
        """Questions of a split, of one number of hops or of all, in order of id."""
        return [q for q in _read(self.questions(graph)) if q.split == split and hops in (None, q.hops)]

    def sample(self, questions: Sequence[Question], most: int | None, name: str) -> list[Question]:
        """At most so many questions, drawn by the seed; all where `most` is None."""
        most = self.most if self.most is not None else most
        if most is None or len(questions) <= most:
            return list(questions)
        return sorted(random.Random(f"{self.seed} {name}").sample(list(questions), most), key=lambda one: one.id)

    def untrained(self, graph: str) -> Path:
        """Folder of the test questions, of which nothing is learnt."""

        def fill(out: Path, work: Path) -> dict[str, Any]:
            write_questions(out, self.split(graph, "test"))
            return {}

        return self._made("untrained", {"questions": self.questions(graph).name}, fill)

    def parser(
        self, graph: str, questions: Path, options: LabelParserOptions, linking: LinkingOptions | None = None
    ) -> Path:
        """Folder of a label parser that is trained on the questions of a folder as a run trains it."""
        kg, mentions, linking = self.kg(graph), self.mentions(graph), linking or self.profile(graph).linking
        parts = {
            "kg": kg.name, "mentions": mentions.name, "questions": questions.name, "options": options,
            "linking": linking, "seed": self.seed, "code": code_digest(train),
            "head_start": _digest(str(HEAD_START)) if options.start == "packaged" else None,
        }  # fmt: skip

        def fill(out: Path, work: Path) -> dict[str, Any]:
            resumed = self.folder / "unfinished" / _key(parts)
            resumed.mkdir(parents=True, exist_ok=True)
            return train(
                Workspace(out, resumed, monitor=Log("loss", 30)),
                kg=kg,
                questions=questions,
                generated=None,
                mentions=mentions,
                options=options,
                linking=linking,
                seed=self.seed,
            )

        return self._made("parser", parts, fill)

    def _made(self, kind: str, parts: Mapping[str, Any], fill: Callable[[Path, Path], Mapping[str, Any]]) -> Path:
        """The folder of an artifact, made where it is not there."""
        folder = self.folder / kind / _key(parts)

        if not (folder / MANIFEST).is_file():
            publish_folder(kind, folder, lambda out, work: {"made": dict(fill(out, work))})
        return folder


class Answering:
    """`auto` on one graph with a trained parser, opened as a context manager.  linked: topics are found in the text."""

    def __init__(
        self, work: Work, graph: str, parser: Path, linked: bool, linking: LinkingOptions | None = None
    ) -> None:
        profile = work.profile(graph)
        self.linking = linking or profile.linking
        mentions = work.mentions(graph)
        self.store = KgStore.open(work.kg(graph))
        self.tagger = open_tagger(mentions, work.kg(graph), self.linking) if linked else None
        options = profile.symbolic.model_copy(update={"max_answers": MOST_ANSWERS})
        self.solver = AutoSolver(self.store, options, load_parser(parser), profile.abstention.min_confidence)

    def __enter__(self) -> Answering:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.store.close()

    def start(self, question: Question) -> Question:
        """The question with the topics that answering starts from."""
        if self.tagger is None:
            return question
        linked, mentions = link_question(self.tagger, question, self.linking)
        return with_candidates(linked, mentions, CANDIDATES)

    def solve(self, questions: Sequence[Question]) -> list[ComputedAnswer]:
        """What is computed for each question."""
        return self.solver.solve([self.start(question) for question in questions], monitor=Log(every=30))


@cache
def _read(folder: Path) -> list[Question]:
    return read_questions(folder)


@cache
def _digest(name: str) -> str:
    """Digest of a file, or of the files of a folder; a name that is neither counts itself."""
    path = Path(name)
    if path.is_dir():
        return _key({file.name: hash_file(file) for file in sorted(path.iterdir())})
    return hash_file(path) if path.is_file() else name


def _key(parts: Mapping[str, Any]) -> str:
    plain = {
        name: part.model_dump(mode="json") if hasattr(part, "model_dump") else part for name, part in parts.items()
    }
    return hashlib.sha256(canonical_json(plain).encode()).hexdigest()[:16]
