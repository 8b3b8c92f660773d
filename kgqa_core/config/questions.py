"""Options of question sets."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from kgqa_core.config.base import Execution, Options
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions

MOST_FOLDS = 1_000
"""Parts of a cross-validation at most; each is a run."""


class QuestionSource(Options):
    """Where a question set comes from and how it is split."""

    name: Execution[str] = "questions"
    """Name of the data set, shown in run names and the report."""
    source: str = "jsonl"
    """Loader: `jsonl` for a question file, ours or an official one, which is recognised; `atlas` for the bundled
    questions; that of a benchmark (`kgqa datasets`); or `generated` for questions made from the graph; `path` may name
    a few real ones then."""
    path: Execution[str | None] = None
    """The question file, or the folder of the benchmark; one of the benchmark's files alone is divided by topic."""
    language: str = "en"
    """Language of the questions."""
    hops: tuple[int, ...] = ()
    """Hop counts to take from a benchmark that is divided by hops; empty takes all."""
    train_from: Literal["train", "dev"] = "train"
    """`dev` trains on nine tenths of a benchmark's dev split (MetaQA as it lies here has no train split)."""
    test_from: Literal["test", "dev"] = "test"
    """`dev` measures on a benchmark's dev split, where the answers of test are not published (GrailQA), and holds out a
    tenth of train instead."""
    parses: Literal["first", "all"] = "first"
    """WebQSP: `first` takes topic, chain and answers of the first parse, as Wu et al. 2023 do; `all` takes the answers
    and chains of every parse, and the first logical form with its constraints; questions without any answer are marked
    as not answerable."""
    unscored: bool = False
    """Questions come without gold answers and all are to be answered (`kgqa answer`); their splits are ignored."""
    also_train: Execution[str | None] = None
    """Question file whose questions train besides, such as the feedback that `kgqa feedback export` writes; those with
    split `test` do not, but count for who is champion.  Those that the set itself has for dev or test, in the same
    words, are left out.  Its content decides, not its place."""
    also_train_repeat: int = Field(default=5, ge=1)
    """How often each of them is there, beside the many others."""
    split_shares: tuple[float, float, float] = (0.7, 0.1, 0.2)
    """Shares of train, dev and test by topic entity, where a question file has no splits."""
    dev_size: int | None = Field(default=None, ge=1)
    """Training questions held out as dev where the files have no dev split, or `test_from` takes it; without a number a
    tenth."""
    match_names: bool = False
    """Whether a topic or answer whose id the graph lacks is looked up by the name that the files give it (answers of
    every set with names, topics of WebQSP).  So Freebase's questions reach items of Wikidata that have no P646."""
    require_answers: bool = False
    """Whether questions that neither their file nor, by their query, the graph gives an answer are left out, as Sen et
    al. 2023 do on LC-QuAD 2; otherwise they score 0."""
    folds: int = Field(default=1, ge=1, le=MOST_FOLDS)
    """Parts by topic entity for cross-validation, which the questions of all splits are divided into; with 1 the set's
    own splits hold."""
    fold: int = Field(default=0, ge=0)
    """The part that is the test, from 0; the others train, but for a tenth of their topics, which is dev."""

    @model_validator(mode="after")
    def _fold_is_there(self) -> Self:
        if self.fold >= self.folds:
            raise ValueError(f"fold {self.fold} is not among the {self.folds} of questions.folds, which begin with 0")
        return self


class QuestionsOptions(QuestionSource):
    """The questions that the system is made for, and further sets that the retriever learns from."""

    generated: Execution[GeneratedQuestionsOptions] = GeneratedQuestionsOptions()
    """How questions are made from the graph, where `source` is `generated`."""
    more: Execution[tuple[QuestionSource, ...]] = ()
    """Further question sets over the same graph, each under a name of its own, that the retriever `rigel` is trained on
    too (`rigel.mix` says how often); their dev questions are measured, and nothing of them is answered."""

    @field_validator("more")
    @classmethod
    def _names_differ(cls, more: tuple[QuestionSource, ...]) -> tuple[QuestionSource, ...]:
        names = [source.name for source in more]
        if len(set(names)) < len(names):
            raise ValueError(f"the sets are named {', '.join(names)}; give each a name of its own")
        return more
