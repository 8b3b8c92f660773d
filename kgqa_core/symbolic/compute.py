"""Computes answers from a retriever's triples or a parser's forms: of a question file, and of one question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from kgqa_core.config import LlmOptions, SymbolicOptions
from kgqa_core.datasets.derived.splits import QuestionSample
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import StorageError
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import Wording, tell_apart
from kgqa_core.logic.look import by_name
from kgqa_core.retrieval.linked_candidates import CANDIDATES, with_linked_candidates
from kgqa_core.retrieval.retrieved import read_retrieved
from kgqa_core.symbolic.answer import listed
from kgqa_core.symbolic.arguments import paths_of, read_proposed
from kgqa_core.symbolic.tables import COMPUTED, PROOF, PROOF_SCHEMA, SCHEMA, ComputedAnswer
from kgqa_core.types import Question, Retrieved
from kgqa_core.workspace import Workspace

if TYPE_CHECKING:
    from kgqa_core.symbolic.auto import AutoSolver


@dataclass(frozen=True)
class ComputeInputs:
    """Folders of the artifacts that answers are computed from.

    facts: of one retriever.  label_parser: ranks what all roads propose.  parsed: forms of a parser, if there is one.
    """

    kg: Path
    questions: Path
    facts: Path
    label_parser: Path
    parsed: Path | None = None


def compute(
    workspace: Workspace,
    inputs: ComputeInputs,
    sample: QuestionSample,
    options: SymbolicOptions,
    min_confidence: float | None = None,
    llm: LlmOptions | None = None,
) -> dict[str, Any]:
    """Writes computed.parquet, a row a question, and proof.parquet, and returns counts.

    min_confidence: below which `auto` declines; its own where this is None.  llm: where `options.chooser` is asked.
    Raises QuestionFileError when the split is empty, ArtifactError, and what `PlanChooser` raises.
    """
    asked = {"cache": workspace.cache, "budget": workspace.budget, "model": workspace.model}
    chosen = sample.of(read_questions(inputs.questions))
    with KgStore.open(inputs.kg) as store:
        retrieved = read_retrieved(inputs.facts, [question.id for question in chosen])
        paths = paths_of(store, chosen, [retrieved.get(question.id, Retrieved(question.id)) for question in chosen])
        forms = read_proposed(inputs.parsed) if inputs.parsed is not None else None
        chosen = with_linked_candidates(chosen, inputs.questions, CANDIDATES)
        solver = open_solver(store, options, inputs.label_parser, min_confidence, llm=llm or LlmOptions(), **asked)
        solved = solver.solve(chosen, paths, forms, workspace.monitor)
        write(workspace.out, solved, proofs(store, solved))
    kinds = Counter(answer.kind for answer in solved if answer.form is not None)
    roads = Counter(answer.road for answer in solved if answer.road is not None)
    return {
        "questions": len(solved),
        "computed": kinds.total(),
        "without_paths": sum(not paths.get(question.id) for question in chosen),
        "kinds": dict(sorted(kinds.items())),
        **({"roads": dict(sorted(roads.items()))} if roads else {}),
        "truncated": sum(answer.truncated for answer in solved),
        "timeouts": solver.timeouts,
        **({"chooser": dict(sorted(solver.chooser.counts.items()))} if solver.chooser is not None else {}),
    }


def open_solver(
    store: KgStore, options: SymbolicOptions, label_parser: Path, min_confidence: float | None = None, **asked: Any
) -> AutoSolver:
    """The solver of `auto` with a trained label parser.  asked: of `PlanChooser.open`, for `options.chooser`."""
    from kgqa_core.symbolic.auto import AutoSolver
    from kgqa_core.symbolic.by_labels.model import load
    from kgqa_core.symbolic.chooser import PlanChooser

    chooser = PlanChooser.open(options.chooser, **asked) if options.chooser is not None else None
    return AutoSolver(store, options, load(label_parser), min_confidence, chooser)


def proofs(store: KgStore, solved: Sequence[ComputedAnswer]) -> Mapping[str, list[tuple[int, str]]]:
    """The triples that prove each question's answer, with their texts."""
    used = sorted({triple for one in solved for triple in one.proof})
    wording = Wording(store, used, qualifiers=True)
    return {
        one.question: list(zip(one.proof, wording.texts([(triple, 1) for triple in one.proof]), strict=True))
        for one in solved
    }


def write(out: Path, solved: Sequence[ComputedAnswer], proof: Mapping[str, Sequence[tuple[int, str]]]) -> None:
    """Writes both tables, rows in order of question."""
    ordered = sorted(solved, key=lambda one: one.question)
    rows = [
        (
            one.question, one.kind, None if one.form is None else str(one.form), list(one.answers), list(one.keys),
            one.weight, one.truncated, one.tried, list(one.topics), one.words, one.confidence, one.min_confidence,
            one.road, one.reason, one.missing,
        )
        for one in ordered
    ]  # fmt: skip
    proved = [
        (one.question, rank, triple, text)
        for one in ordered
        for rank, (triple, text) in enumerate(proof.get(one.question, ()))
    ]
    try:
        frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        frame.write_parquet(out / COMPUTED, compression="zstd", statistics=False)
        frame = pl.DataFrame(proved, schema=PROOF_SCHEMA, orient="row")
        frame.write_parquet(out / PROOF, compression="zstd", statistics=False)
    except OSError as fault:
        raise StorageError(f"cannot write what was computed to {out}: {fault}; free space") from fault


SHOWN = 50
"""Rows of proof that a reply holds at most."""


class Calculator:
    """Computes answers for questions as they come, on an open graph."""

    def __init__(self, store: KgStore, solver: AutoSolver) -> None:
        self.options, self.store, self.solver = solver.options, store, solver

    def at_confidence(self, least: float) -> Calculator:
        """The same calculator with another `min_confidence`."""
        return Calculator(self.store, self.solver.at_confidence(least))

    def at_reading(self, number: int) -> Calculator:
        """The same calculator that gives a certain reading of each question."""
        return Calculator(self.store, self.solver.at_reading(number))

    def compute(self, questions: Sequence[Question], retrieved: Sequence[Retrieved]) -> list[ComputedAnswer]:
        """What is computed for each question, from the paths that its retriever predicts, or else from its facts.

        retrieved: of each question.
        """
        return self.solver.solve(questions, paths_of(self.solver.store, questions, retrieved), suggest=True)

    def _told_apart(self, solved: ComputedAnswer) -> str:
        """The answers as text; where several things share a name, each with what tells it apart."""
        if solved.unnamed:
            return f"{self._told_apart(replace(solved, unnamed=0))} (and {solved.unnamed:,} without a name)"
        if len(set(solved.keys)) <= len(solved.answers):
            return listed(solved.answers)
        found = self.store.resolve(solved.keys)
        ids = [i for key in solved.keys for i in found[key]]
        told = tell_apart(self.store, self.store.names(ids))
        return "; ".join(dict.fromkeys(told[i] for i in ids))

    def reply(self, solved: ComputedAnswer) -> dict[str, Any]:
        """road, operation, form (as text, None where none found anything), form_named (with names for keys), computed
        (the answer as text, in which things of one name are told apart), proof, texts of its first triples, and
        proof_rows, how many there are."""
        rows = solved.proof[:SHOWN]
        texts = Wording(self.store, rows, qualifiers=True).texts([(triple, 1) for triple in rows])
        return {
            "operation": solved.kind, "form": None if solved.form is None else str(solved.form),
            "form_named": None if solved.form is None else str(by_name(solved.form, self.store)),
            "computed": self._told_apart(solved), "answers": tuple(solved.answers), "proof": tuple(texts),
            "proof_rows": len(solved.proof), "road": solved.road, "suggestions": solved.suggestions,
            "readings": solved.readings, "chooser": solved.chooser, "understood": solved.understood,
        }  # fmt: skip
