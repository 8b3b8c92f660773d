"""Answers a file of questions by a system, batch after batch: the work of `kgqa answer`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kgqa_core.answering.reply import MODEL_FAILED, Answer
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import read_rejects
from kgqa_core.errors import BudgetReached
from kgqa_core.llm.models import Models
from kgqa_core.runs.finished import SystemParts
from kgqa_core.store.files import write_json
from kgqa_core.store.outputs import FileClaim
from kgqa_core.store.shards import LOADING, add_counts, read_parts, share, write_part
from kgqa_core.system import System
from kgqa_core.tracing import NO_TRACER, QuestionTracer
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

BATCH = 64
"""Questions that are answered together; a killed run answers at most so many again."""
FILE = "answered.jsonl"
"""One row of `Answer.to_row` a question."""


def answer_questions(
    workspace: Workspace,
    *,
    questions: Path,
    parts: SystemParts,
    models: Models,
    tracer: QuestionTracer = NO_TRACER,
    confirmed: Callable[[], Sequence[Question]] = tuple,
) -> dict[str, Any]:
    """Writes answered.jsonl, the answers in the order of the questions, and returns counts.

    questions: artifact folder.  confirmed: as of `System`.  The work folder keeps each batch that is answered, unless
    the language model failed on a question of it, so that a killed run goes on where it was.  Of a part only its share
    of the batches is answered; `merge` joins the parts.  Raises what `System.open` and `System.answer` raise.
    """
    every = read_questions(questions)
    own = share(workspace.part, range(0, len(every), BATCH), len(every))
    system: System | None = None
    lines: list[str] = []
    for start in range(own.start, own.stop, BATCH):
        batch = every[start : min(start + BATCH, own.stop)]
        kept = workspace.work / f"answered-{start}.json" if workspace.work is not None else None
        if kept is not None and kept.is_file():
            lines += json.loads(kept.read_text(encoding="utf-8"))
        else:
            if system is None:
                with LOADING:
                    system = System.open(parts, models)
                system.tracer, system.confirmed = tracer, confirmed
            try:
                answers = answer_batch(system, batch)
            except BudgetReached as reached:
                left = own.stop - start
                raise BudgetReached(reached.limit, reached.spent, reached.needed, len(lines), left) from None
            answered = [json.dumps(answer.to_row(), ensure_ascii=False) for answer in answers]
            if kept is not None and not any(answer.model_failed for answer in answers):
                write_json(kept, answered)
            lines += answered
        workspace.monitor.progress(len(lines), own.stop - own.start, "questions")
    (workspace.out / FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    counts = _counts([json.loads(line) for line in lines])
    if workspace.part is not None:
        write_part(workspace.out, counts)
    return counts


def merge(workspace: Workspace, parts: Sequence[Path]) -> dict[str, Any]:
    """Joins the folders of all parts of `answer_questions`, and returns its counts."""
    counts = add_counts([one["counts"] for one in read_parts(parts)])
    (workspace.out / FILE).write_bytes(b"".join((folder / FILE).read_bytes() for folder in parts))
    return counts


def answer_batch(system: System, batch: Sequence[Question]) -> list[Answer]:
    """The answers of a system to questions of a file, in their order.

    A question is rejected where it names a topic that the graph has not, unless it is answered all the same.
    """
    reads_graph = system.retriever is not None
    if not reads_graph:
        batch = [one if one.topic_entities else replace(one, topic_keys=()) for one in batch]
    unknown = {one.id: one.unlinkable for one in batch if one.topic_keys and not one.topic_entities}
    answered = {one.id: one for one in system.answer([one for one in batch if one.id not in unknown])}
    answers = []
    for question in batch:
        answer = answered.get(question.id) or Answer(question.id, question.text, None, knowledge=system.knowledge)
        if reads_graph and question.id in unknown:
            answer = replace(answer, reject=unknown[question.id])
        answers.append(answer)
    return answers


def write_answers(claim: FileClaim, out: Path, questions: Path, answered: Path, run_id: str) -> dict[str, Any]:
    """Writes `out`: the rows of `answered`, and the rejects of `questions` (folders); returns what was done."""
    rows = [json.loads(line) for line in (answered / FILE).read_text(encoding="utf-8").splitlines()]
    rows += [Answer(reject.row, "", None, reject=reject.reason).to_row() for reject in read_rejects(questions)]
    with claim.writing() as path, path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    rejects = [{"id": row["id"], "reason": row["reject"]} for row in rows if row["reject"]]
    declined = Counter(row["declined"] for row in rows if row.get("declined"))
    return {
        "answered": len(rows) - len(rejects),
        "declined": dict(sorted(declined.items())),
        "out": str(out),
        "rejects": rejects,
        "run_id": run_id,
    }


def _counts(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    rejects = [row["reject"] for row in rows if row["reject"]]
    reasons = Counter(str(row["reason"]) for row in rows if row.get("reason"))
    return {
        "questions": len(rows),
        "answered": sum(row["answer"] is not None for row in rows),
        "rejected": len(rejects),
        "failed": sum(why.startswith(MODEL_FAILED) for why in rejects),
        "reasons": dict(sorted(reasons.items())),
    }
