"""Stage `feedback`: relation paths that led a language model to right answers, as signal for a retriever's training.

A question that was answered right with facts speaks for the chains of these facts that lead from a topic to a gold
answer: their relation paths, weighted by the product of the facts' scores, the weights of a question adding up to 1.
Where there are answers without facts, too, a question that was right without them speaks for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.datasets.derived.splits import same_text
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.paths import relation_ids
from kgqa_core.metrics.text import GoldAnswers, contains
from kgqa_core.retrieval.retrieved import read_retrieved
from kgqa_core.store.tables import read_frame
from kgqa_core.types import Fact, Question
from kgqa_core.workspace import Workspace

FILE = "feedback.parquet"
SCHEMA: dict[str, Any] = {
    "question": pl.String,
    "text": pl.String,
    "topic": pl.Int64,
    "path": pl.List(pl.String),
    "weight": pl.Float64,
}
"""Columns of feedback.parquet; relations by key, inverses with `<inv>-`."""


def gather(
    workspace: Workspace, *, dkg: Path, questions: Path, facts: Path, answers: Path, bare: Path | None = None
) -> dict[str, Any]:
    """Writes feedback.parquet, rows sorted by question, topic and path, and returns counts.

    questions, facts, answers: artifacts of one earlier run over this graph; answers with those facts.
    bare: answers without facts.  Raises ArtifactError when a table is missing or damaged.
    """
    graph = Dkg.open(dkg)
    outputs, without = _outputs(answers), _outputs(bare) if bare is not None else {}
    retrieved = read_retrieved(facts, outputs)
    rows: list[tuple[Any, ...]] = []
    counts = {"answered": 0, "right": 0, "right_without_facts": 0, "with_paths": 0}
    for question in read_questions(questions):
        if question.id not in outputs:
            continue
        counts["answered"] += 1
        gold = GoldAnswers(question.answer_names)
        if not contains(gold, outputs[question.id]):
            continue
        counts["right"] += 1
        if question.id in without and contains(gold, without[question.id]):
            counts["right_without_facts"] += 1
            continue
        paths = chains(graph, question, retrieved[question.id].facts if question.id in retrieved else ())
        counts["with_paths"] += bool(paths)
        total = sum(paths.values())
        for (topic, path), weight in sorted(paths.items()):
            keys = [graph.relation_keys[relation] for relation in path]
            if share := round(weight / total, 6):
                rows.append((question.id, question.text, topic, keys, share))
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    frame.write_parquet(workspace.out / FILE, compression="zstd", statistics=False)
    note = f"{counts['with_paths']} of {counts['answered']} answered questions speak for relation paths"
    workspace.monitor.note(note)
    return counts | {"paths": len(rows)}


def chains(dkg: Dkg, question: Question, facts: Sequence[Fact]) -> dict[tuple[int, tuple[int, ...]], float]:
    """(topic, relation path) → weight of the chains of facts that lead from a topic to a gold answer."""
    if not facts:
        return {}
    heads, relations, tails = (column.tolist() for column in dkg.edges([fact.triple for fact in facts]))
    gold = set(question.answers)
    weights: dict[tuple[int, tuple[int, ...]], float] = {}
    reached: list[tuple[int, int, tuple[int, ...], float]]
    reached = [(topic, topic, (), 1.0) for topic in dict.fromkeys(question.topic_entities)]
    for hop in sorted({fact.hop for fact in facts}):
        leaving: dict[int, list[tuple[int, int, float]]] = {}
        for fact, head, relation, tail in zip(facts, heads, relations, tails, strict=True):
            if fact.hop == hop:
                source, target = (head, tail) if fact.direction > 0 else (tail, head)
                directed = relation if fact.direction > 0 else relation + dkg.relations
                leaving.setdefault(source, []).append((directed, target, fact.score))
        step: dict[tuple[int, int, tuple[int, ...]], float] = {}
        for topic, entity, path, weight in reached:
            for directed, target, score in leaving.get(entity, ()):
                key = (topic, target, (*path, directed))
                step[key] = step.get(key, 0.0) + weight * score
        reached = [(topic, entity, path, weight) for (topic, entity, path), weight in step.items()]
        for topic, entity, path, weight in reached:
            if entity in gold and weight > 0:
                weights[topic, path] = weights.get((topic, path), 0.0) + weight
    return weights


def read_feedback(
    folder: Path, dkg: Dkg, questions: Sequence[Question], held_out: Sequence[Question]
) -> dict[int, list[tuple[int, tuple[int, ...], float]]]:
    """Index of a training question → (topic, relation ids, weight) of the paths that feedback speaks for.

    A question is the same when its id and its text are.  held_out: dev and test questions, whose texts are left out
    wherever they stand, as are paths with a relation that this graph lacks.
    Raises ArtifactError when the table cannot be read.
    """
    frame = read_frame(folder / FILE, list(SCHEMA))
    hidden = {same_text(question) for question in held_out}
    numbers = {
        (question.id, question.text): number
        for number, question in enumerate(questions)
        if same_text(question) not in hidden
    }
    paths: dict[int, list[tuple[int, tuple[int, ...], float]]] = {}
    for name, text, topic, keys, weight in frame.rows():
        number = numbers.get((name, text))
        path = relation_ids(dkg, keys)
        if number is not None and path is not None:
            paths.setdefault(number, []).append((topic, path, weight))
    return paths


def _outputs(folder: Path) -> dict[str, str]:
    frame = read_frame(folder / "answers.parquet", ["question", "output"])
    return dict(zip(frame["question"].to_list(), frame["output"].to_list(), strict=True))
