"""What is computed for a batch of questions, from what a retriever has just found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.config import SymbolicOptions
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import Wording
from kgqa_core.symbolic.answer import listed
from kgqa_core.symbolic.arguments import best_of, walked
from kgqa_core.symbolic.operator import load
from kgqa_core.symbolic.solve import Solved, Solver
from kgqa_core.symbolic.tables import read_computed, read_proof
from kgqa_core.types import Question, Retrieved

Paths = Mapping[str, Sequence[tuple[tuple[str, ...], float]]]
"""Question id → relation paths as keys, with their scores."""

SHOWN = 50
"""Rows of proof that a reply holds at most."""


class Calculator:
    """Computes answers for questions as they come, on an open graph with a trained classifier of operations."""

    def __init__(self, store: KgStore, operator: Path, options: SymbolicOptions) -> None:
        self.options = options
        self.solver = Solver(store, load(operator), options)

    def compute(self, questions: Sequence[Question], retrieved: Sequence[Retrieved]) -> list[Solved]:
        """What is computed for each question, from the paths that its retriever predicts, or else from its facts.

        retrieved: of each question.
        """
        if any(one.paths for one in retrieved):
            return self.solver.solve(questions, {one.question: best_of(dict(one.paths)) for one in retrieved})
        store = self.solver.store
        ends = store.triples({fact.triple for one in retrieved for fact in one.facts})
        relations = store.relation_keys()
        paths = {
            question.id: walked(one.facts, question.topic_entities, ends, relations)
            for question, one in zip(questions, retrieved, strict=True)
        }
        return self.solver.solve(questions, paths)

    def reply(self, solved: Solved) -> dict[str, Any]:
        """operation, form (as text, None where none found anything), computed (the answer as text) and proof, texts of
        the first triples that it rests on, and proof_rows, how many there are."""
        rows = solved.proof[:SHOWN]
        texts = Wording(self.solver.store, rows, qualifiers=True).texts([(triple, 1) for triple in rows])
        form = None if solved.form is None else str(solved.form)
        return _reply(solved.kind, form, solved.answers, texts, len(solved.proof))


def replies(computed: Path) -> dict[str, dict[str, Any]]:
    """What a `computed` artifact holds of each question, as `Calculator.reply` says it.  Raises ArtifactError."""
    proof: dict[str, list[str]] = {}
    for question, text in read_proof(computed).iter_rows():
        proof.setdefault(question, []).append(text)
    found = {}
    columns = ("question", "kind", "form", "answers")
    for question, kind, form, answers in read_computed(computed, columns).iter_rows():
        texts = proof.get(question, [])
        found[question] = _reply(kind, form, answers, texts[:SHOWN], len(texts))
    return found


def _reply(kind: str, form: str | None, answers: Sequence[str], proof: list[str], rows: int) -> dict[str, Any]:
    return {"operation": kind, "form": form, "computed": listed(answers), "proof": tuple(proof), "proof_rows": rows}
