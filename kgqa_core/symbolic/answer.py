"""The stage that writes what was computed as answers, in the table that a language model's answers have."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import AUTO, Knowledge
from kgqa_core.datasets.files.answers import ROAD_SCHEMA, SCHEMA, save_seconds
from kgqa_core.errors import StorageError
from kgqa_core.prompts import triple_form
from kgqa_core.symbolic.tables import PROOF, ComputedAnswer, read_computed
from kgqa_core.workspace import Workspace


def answer_computed(
    workspace: Workspace,
    *,
    computed: Path,
    name: str,
    answerer: str,
    usage: Mapping[str, tuple[str, int, int]] | None = None,
) -> dict[str, Any]:
    """Writes answers.parquet, its meta.json and proof.parquet, and returns counts.

    computed: artifact folder.  name: `retriever/format` of the experiment.  answerer: what computed.  A question for
    which nothing was found is a row that abstains.  Answers of `auto` have the columns of ROAD_SCHEMA, too.
    usage: finish, prompt tokens and completion tokens of each question, where a language model explored for it.
    """
    started = time.monotonic()
    knowledge = Knowledge.parse(name)
    retriever, form = str(knowledge.variant), knowledge.format
    spent = usage or {}
    rows = []
    for question, answers in read_computed(computed, ("question", "answers")).iter_rows():
        finish, *tokens = spent.get(question, ("stop", 0, 0))
        declined = not answers and finish != "error"
        rows.append((question, retriever, form, answerer, "", listed(answers), declined, finish, *tokens))
    meta = {"experiment": f"{knowledge}/{answerer}", "model": answerer, "revision": "", "prompts": ""}
    counts = {
        "questions": len(rows), "prompts": 0, "cached": 0, "prompt_tokens": sum(row[8] for row in rows),
        "completion_tokens": sum(row[9] for row in rows),
        "finish": dict(sorted(Counter(row[7] for row in rows).items())),
        "errors": sum(row[7] == "error" for row in rows), "abstained": sum(row[6] for row in rows),
        "empty_knowledge": 0,
    }  # fmt: skip
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("question")
    if answerer == AUTO:
        roads = read_computed(computed, ("question", *ROAD_SCHEMA))
        frame = frame.join(roads, on="question", how="left", maintain_order="left")
    try:
        frame.write_parquet(workspace.out / "answers.parquet")
        shutil.copyfile(computed / PROOF, workspace.out / PROOF)
        (workspace.out / "meta.json").write_text(json.dumps(meta, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as fault:
        raise StorageError(
            f"cannot write answers to {workspace.out}: {fault}; free space or choose another --home"
        ) from fault
    save_seconds(workspace.out, counts, time.monotonic() - started)
    return counts


def listed(answers: Sequence[str]) -> str:
    """Several answers as one text, which the metrics cut into its names again.

    >>> listed(["Austria", "Italy"])
    'Austria, Italy'
    """
    return ", ".join(answers)


MAX_RESULTS = 20
"""Names of a computed answer that are put before a language model."""


def with_result(solved: ComputedAnswer, text: str) -> str:
    """Facts as text, with a computed answer before them as triple-form text, one triple for each name.

    The words of the question are the relation, for a small model copies from a triple that sounds like the question; of
    two that are compared the better one has it to the other.

    >>> with_result(ComputedAnswer("q", "count", answers=("15",), topics=("Estonia",), words="How many cities has"), "")
    '(Estonia, How many cities has, 15)'
    """
    relation, topics, answers = solved.words or "answer", solved.topics, solved.answers[:MAX_RESULTS]
    if solved.kind == "compare":
        rows = [(one, relation, other) for one in answers for other in topics if other not in answers]
    else:
        rows = [(topics[0] if topics else "it", relation, answer) for answer in answers]
    return ", ".join(filter(None, (triple_form(rows), text)))
