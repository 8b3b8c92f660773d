"""Graphs, questions, path retrievers and rewriters of `benchmarks/papers/rra_published.py` in a folder, each made once.

Options are those of flows/profiles/*-rra-published.yaml, and of the profile without this ending for what is ours.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.conditions import PROFILES
from kgqa_core.config import HopPathOptions, LlmOptions, Profile, make_profile, read_profile
from kgqa_core.datasets.derived.folds import topic_folds
from kgqa_core.datasets.files.question import read_questions, write_questions
from kgqa_core.datasets.load import load
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import Log
from kgqa_core.retrieval.api import RetrieverInputs, TrainingInputs
from kgqa_core.retrieval.collect import write_retrieved
from kgqa_core.retrieval.hop_path.retriever import HopPathRetriever
from kgqa_core.retrieval.hop_path.retriever import load as load_paths
from kgqa_core.retrieval.hop_path.train import train as train_paths
from kgqa_core.retrieval.registry import open_retriever, retriever_spec
from kgqa_core.rewriting.alpaca import read_pairs
from kgqa_core.rewriting.corpus import generate
from kgqa_core.rewriting.train import train as train_rewriter
from kgqa_core.types import SPLITS, Question, Retrieved
from kgqa_core.workspace import Workspace

PUBLISHED = "rra-published"
FOLDS = 5
SEED = 7
DEV_SHARE = 10
"""One of so many training questions of a fold stops its training."""


@dataclass(frozen=True)
class SetPlan:
    """A question set of the benchmark.

    folds: parts by topic, each the test of a retriever that the others train; 1 keeps the set's own splits.
    training: questions that a retriever learns from at most.  pairs: of the rewriter's corpus at most.
    retrieved: test questions that retrieval is measured on at most.
    """

    name: str
    folds: int = 1
    training: int = 6000
    pairs: int = 1500
    retrieved: int = 2000


SETS = (
    SetPlan("zjqa", folds=FOLDS),
    SetPlan("metaqa"),
    SetPlan("atlas", training=12_000, pairs=800),
    SetPlan("webqsp", pairs=3000),
)


def some(questions: Sequence[Question], count: int, what: str) -> list[Question]:
    """A draw by seed, in order of id."""
    order = sorted(questions, key=lambda question: question.id)
    if count < len(order):
        order = random.Random(f"{SEED} {what}").sample(order, count)
    return sorted(order, key=lambda question: question.id)


class RraWork:
    """What a set needs, in `folder`; what is there is not made again.  profile: the published one when absent."""

    def __init__(self, plan: SetPlan, folder: Path, profile: Profile | None = None) -> None:
        self.plan, self.folder = plan, folder / plan.name
        self.profile = profile or self._profile(f"{plan.name}-{PUBLISHED}")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cache = folder / "cache"
        self._folds: dict[str, int] | None = None

    def _profile(self, name: str) -> Profile:
        return make_profile(read_profile(PROFILES / f"{name}.yaml"))

    def once(self, name: str, make: Callable[[Path], Any]) -> Path:
        """A folder that `make` filled, whole or not at all."""
        target = self.folder / name
        if not target.exists():
            part = self.folder / f"{name}.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            make(part)
            part.rename(target)
        return target

    def kg(self) -> Path:
        return self.once("kg", lambda out: build(Workspace(out, monitor=Log()), options=self.profile.kg))

    def dkg(self) -> Path:
        return self.once("dkg", lambda out: export(Workspace(out), kg=self.kg(), options=self.profile.dkg))

    def questions(self) -> list[Question]:
        """All questions as they are linked, by id."""
        options = self.profile.questions
        folder = self.once("questions", lambda out: load(Workspace(out), kg=self.kg(), options=options, seed=SEED))
        return sorted(read_questions(folder), key=lambda question: question.id)

    def fold_of(self, question: Question) -> int:
        """The fold whose test a question is, by its topic."""
        if self._folds is None:
            groups = {each.id: min(each.topic_keys, default=each.id) for each in self.questions()}
            self._folds = topic_folds(groups, self.plan.folds, SEED)
        return self._folds[question.id]

    def tests(self, fold: int) -> list[Question]:
        """Test questions of a fold; they are called `test`."""
        every = self.questions()
        if self.plan.folds == 1:
            return [question for question in every if question.split == "test"]
        return [replace(question, split="test") for question in every if self.fold_of(question) == fold]

    def sample(self, count: int) -> list[tuple[int, list[Question]]]:
        """Questions that are answered, by fold: as many of each."""
        share = count // self.plan.folds
        return [(fold, some(self.tests(fold), share, f"answered {fold}")) for fold in range(self.plan.folds)]

    def path_model(self, fold: int) -> Path:
        """The path retriever that the rest of a fold trained."""
        options: HopPathOptions = self.profile.hop_path
        rest = [question for question in self.questions() if question.split != "test"]
        if self.plan.folds > 1:
            rest = [question for question in self.questions() if self.fold_of(question) != fold]
            rest = some(rest, self.plan.training, f"training {fold}")
            held = {question.id for question in some(rest, len(rest) // DEV_SHARE, f"dev {fold}")}
            rest = [replace(question, split="dev" if question.id in held else "train") for question in rest]
        else:
            learn = some([q for q in rest if q.split == SPLITS[0]], self.plan.training, "training")
            held_out = [q for q in rest if q.split == SPLITS[1]]
            rest = learn + some(held_out, self.plan.training // DEV_SHARE, "dev")

        def make(out: Path) -> None:
            given = out / "given"
            given.mkdir()
            write_questions(given, rest)
            inputs = TrainingInputs(self.dkg(), given, options, SEED, kg=self.kg())
            train_paths(Workspace(out, self.folder, monitor=Log()), inputs)

        return self.once(f"paths_{fold}", make)

    def trained(self, fold: int, retriever: str) -> Path | None:
        """What another retriever learnt from the same questions as `path_model`; None for one that learns nothing."""
        spec = retriever_spec(retriever)
        if (learn := spec.train) is None:
            return None
        given = self.path_model(fold) / "given"
        options = spec.options(self.profile)

        def make(out: Path) -> None:
            learn(
                Workspace(out, self.folder, monitor=Log()), TrainingInputs(self.dkg(), given, options, SEED, self.kg())
            )

        return self.once(f"{retriever}_{fold}", make)

    def rewriter(self, answered: int) -> Path:
        """The rewriter, which learns from no pair that names a topic of an answered question."""
        options = self.profile.rewriter

        def make(out: Path) -> None:
            corpus = self.once("corpus", lambda folder: self._corpus(folder, answered))
            train_rewriter(Workspace(out, self.folder, monitor=Log()), corpus=corpus, options=options, seed=SEED)

        return self.once("rewriter", make)

    def _corpus(self, out: Path, answered: int) -> None:
        options = self.profile.corpus
        if not options.alpaca_file:
            given = out / "given"
            given.mkdir()
            write_questions(given, [question for question in self.questions() if question.split == "train"])
            options = options.model_copy(update={"size": self.plan.pairs})
            llm = LlmOptions()
            generate(
                Workspace(out, cache=self.cache, monitor=Log()),
                kg=self.kg(),
                dkg=self.dkg(),
                questions=given,
                options=options,
                llm=llm,
                seed=SEED,
            )
            return
        pairs = [pair for pair in read_pairs(Path(options.alpaca_file)) if pair.fault is None]
        topics = {entity for _, own in self.sample(answered) for question in own for entity in question.topic_entities}
        with KgStore.open(self.kg()) as store:
            names = {name for name in store.names(sorted(topics)).values()}
        clean = [pair for pair in pairs if not names & {end for head, _, tail in pair.named for end in (head, tail)}]
        chosen = sorted(random.Random(f"{SEED} pairs").sample(range(len(clean)), min(self.plan.pairs, len(clean))))
        held = set(chosen[::DEV_SHARE])
        rows = [
            (
                clean[place].source,
                clean[place].instruction,
                clean[place].text,
                "kept",
                "dev" if place in held else "train",
            )
            for place in chosen
        ]
        schema = ["pair", "instruction", "text", "verdict", "split"]
        pl.DataFrame(rows, schema=schema, orient="row").write_parquet(out / "corpus.parquet")

    def retrieve(self, fold: int, questions: Sequence[Question], **switches: Any) -> list[Retrieved]:
        """Reasoning paths as the switches `sampling` and `named_first` have them."""
        dkg = Dkg.open(self.dkg())
        trained = replace(load_paths(self.path_model(fold), dkg), **switches)
        return HopPathRetriever(dkg, trained, self.profile.retrieval, kg=self.kg()).retrieve(questions)

    def facts(self, name: str, fold: int, questions: Sequence[Question], retriever: str, **switches: Any) -> Path:
        """An artifact of facts for some questions."""

        def make(out: Path) -> None:
            if retriever == "hop_path":
                found = self.retrieve(fold, questions, **switches)
            else:
                inputs = RetrieverInputs(
                    Dkg.open(self.dkg()), self.profile.retrieval, seed=SEED, kg=self.kg(), cache=self.cache,
                    section=retriever_spec(retriever).options(self.profile), trained=self.trained(fold, retriever),
                )  # fmt: skip
                found = open_retriever(retriever, inputs).retrieve(questions)
            write_retrieved(out, retriever, found)

        return self.once(f"facts_{name}_{fold}", make)

    def answered(self, fold: int, questions: Sequence[Question]) -> Path:
        """An artifact of the questions that are answered."""
        return self.once(f"answered_{fold}", lambda out: write_questions(out, questions))
