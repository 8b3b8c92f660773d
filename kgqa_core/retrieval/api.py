"""What a retriever is: how it is described, trained and opened, what it returns, and the order of its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kgqa_core.config import LlmOptions, Profile, RetrievalOptions
from kgqa_core.errors import ArtifactError
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.types import Fact, Question, Retrieved
from kgqa_core.workspace import Workspace

if TYPE_CHECKING:
    from kgqa_core.dkg.csr import Dkg
    from kgqa_core.llm.budget import Budget
    from kgqa_core.llm.protocol import LanguageModel

LEAST_SCORE = 1e-3
"""Facts that weigh less are noise and are left out."""


class Retriever(Protocol):
    """Retrieves facts and candidate answers for questions whose topic entities are known.

    candidates: of each linked mention, that it starts from; 0 where it starts from topics alone.
    predicts_paths, ranks_pairs: whether `Retrieved.paths` and `Retrieved.pairs` say something.
    counts: what a run should know of the retrieval, added up over all calls.
    """

    name: str
    candidates: int = 0
    predicts_paths: bool = False
    ranks_pairs: bool = False

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts for the manifest beside those of all retrievers."""
        return {}

    def retrieve(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Retrieved]:
        """One `Retrieved` per question, in their order; empty where a question has no topic entity."""

    def batch_starts(self, questions: Sequence[Question]) -> Sequence[int]:
        """Indices of the questions that begin a batch: dividing the questions there does not change the results."""
        return range(len(questions))


@dataclass(frozen=True)
class RetrieverInputs:
    """What a retriever is opened with.

    options: of all retrievers.  section: its own options, those of `RetrieverSpec.section`; the defaults where absent.
    trained: folder of what its training made.  questions: those of the run, of a
    baseline that counts what training has.  kg: the graph store, for names of entities and triples.  cache: folder
    of the home with vectors, completions and AMR graphs.  llm, budget: of a retriever that queries a language model.
    model: of a forecast, in its place.
    """

    dkg: Dkg
    options: RetrievalOptions
    seed: int = 7
    section: Any = None
    trained: Path | None = None
    kg: Path | None = None
    cache: Path | None = None
    llm: LlmOptions | None = None
    budget: Budget | None = None
    model: LanguageModel | None = None
    monitor: Monitor = QUIET
    questions: Path | None = None

    def trained_folder(self, name: str, stage: str) -> Path:
        """The folder of the trained retriever.  Raises ArtifactError without one."""
        if self.trained is None:
            raise ArtifactError(f"retriever {name!r} needs a trained retriever; run the {stage} stage first")
        return self.trained


@dataclass(frozen=True)
class TrainingInputs:
    """What a retriever is trained with: artifact folders and its options.

    kg: the graph store, for names.  further_sets: question sets beside `questions`, by name.  feedback: relation paths
    that answers of an earlier run speak for.
    """

    dkg: Path
    questions: Path
    options: Any
    seed: int
    kg: Path | None = None
    further_sets: Mapping[str, Path] | None = None
    feedback: Path | None = None


@dataclass(frozen=True)
class ExternalInput:
    """A file or model beside artifacts that training or retrieval reads.

    role: what it is for, its name in the key of the stage.  field: of the options, that names it.  name: as they do.
    optional: a file that may be absent.
    """

    role: str
    kind: Literal["encoder", "model", "file"]
    field: str
    name: str
    optional: bool = False


@dataclass(frozen=True)
class RetrieverSpec:
    """A retriever as the registry has it: everything that is known of it outside its folder.

    name: as profiles, experiments and artifacts have it.  label: in reports.  place: among the rows of report tables.
    open: returns the retriever, and imports what needs numpy or torch only then.  section: of the profile, with its
    options; None where it has none.  baseline: it starts from gold topics or gold paths, so that no user can ask it.
    blind: it does not read the question; a set on which it scores high is easy.
    limit: the option that cuts its search short, for messages, `{options}` being those of retrieval.
    reads: what retrieval reads beside artifacts, by its options.
    pays: it queries a language model.  divisible: its questions may be divided among workers.
    packages: whose version decides what it retrieves.  extra: of kgqa that it needs, by its options (`extras.EXTRAS`).

    Of what is trained: artifact: its kind, the name of the stage too; None where nothing is.  artifact_label: in
    reports.  train: fills a folder and returns counts.  trains_on: what training reads beside artifacts.
    training_label: what the title of the stage has after its kind.  training_packages: whose version decides what is
    learnt.  further_sets: it learns from `questions.more` too.  feedback_run: the earlier run whose answers it learns
    from.  learns_links: whether it learns from linked questions.
    learns_from: fields of questions (`datasets.files.jsonl`), by its options; a training question needs one of them, of
    all fields where there are none.
    headline: its scores open a report, its facts are the examples there, and an abstainer learns from them.
    """

    name: str
    label: str
    place: int
    open: Callable[[RetrieverInputs], Retriever]
    section: str | None = None
    baseline: bool = False
    blind: bool = False
    limit: str = "retrieval.edge_budget of {options.edge_budget}"
    reads: Callable[[Any], Sequence[ExternalInput]] = lambda options: ()
    pays: bool = False
    divisible: bool = False
    packages: tuple[str, ...] = ()
    extra: Callable[[Any], str | None] = lambda options: None
    artifact: str | None = None
    artifact_label: str = ""
    train: Callable[[Workspace, TrainingInputs], Mapping[str, Any]] | None = None
    trains_on: Callable[[Any], Sequence[ExternalInput]] = lambda options: ()
    training_label: Callable[[Any], str] = lambda options: ""
    training_packages: tuple[str, ...] = ()
    further_sets: bool = False
    feedback_run: Callable[[Any], str | None] = lambda options: None
    learns_links: Callable[[Any], bool] = lambda options: False
    learns_from: Callable[[Any], tuple[str, ...]] = lambda options: ()
    headline: bool = False

    def options(self, profile: Profile) -> Any:
        """Its own options in a profile; None where it has none."""
        return None if self.section is None else getattr(profile, self.section)


def ranked(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Facts hop by hop, the heaviest first within a hop, ties by triple, a triple once per hop; ranks from 0."""
    distinct: dict[tuple[int, int], Fact] = {}
    for fact in sorted(facts, key=lambda fact: (fact.hop, -fact.score, fact.triple, -fact.direction)):
        if fact.score >= LEAST_SCORE:
            distinct.setdefault((fact.hop, fact.triple), fact)
    return tuple(
        Fact(rank, fact.score, fact.hop, fact.triple, fact.direction, fact.path)
        for rank, fact in enumerate(distinct.values())
    )
