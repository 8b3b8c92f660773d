"""The stage that writes what was computed as answers, in the table that a language model's answers have."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import AUTO, SYMBOLIC, Knowledge
from kgqa_core.datasets.answers import ROAD_SCHEMA, SCHEMA, save_seconds
from kgqa_core.errors import StorageError
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.symbolic.tables import PROOF, judges, read_computed


def answer_computed(
    out: Path,
    *,
    computed: Path,
    name: str,
    answerer: str = SYMBOLIC,
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes answers.parquet, its meta.json and proof.parquet, and returns counts.

    computed: artifact folder.  name: `retriever/format` of the experiment.  answerer: what computed.  A question for
    which nothing was found is a row that abstains.  Answers of `auto` have the columns of ROAD_SCHEMA, too.
    """
    started = time.monotonic()
    knowledge = Knowledge.parse(name)
    retriever, form = str(knowledge.variant), knowledge.format
    rows = [
        (question, retriever, form, answerer, "", listed(answers), not answers, "stop", 0, 0)
        for question, answers in read_computed(computed, ("question", "answers")).iter_rows()
    ]
    meta = {"experiment": f"{knowledge}/{answerer}", "model": answerer, "revision": "", "prompts": ""}
    counts = {
        "questions": len(rows), "prompts": 0, "cached": 0, "prompt_tokens": 0, "completion_tokens": 0,
        "finish": {"stop": len(rows)}, "errors": 0, "abstained": sum(row[6] for row in rows), "empty_knowledge": 0,
    }  # fmt: skip
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("question")
    if answerer == AUTO and judges(computed):
        roads = read_computed(computed, ("question", *ROAD_SCHEMA))
        frame = frame.join(roads, on="question", how="left", maintain_order="left")
    try:
        frame.write_parquet(out / "answers.parquet")
        shutil.copyfile(computed / PROOF, out / PROOF)
        (out / "meta.json").write_text(json.dumps(meta, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as fault:
        raise StorageError(f"cannot write answers to {out}: {fault}; free space or choose another --home") from fault
    save_seconds(out, counts, time.monotonic() - started)
    return counts


def listed(answers: Sequence[str]) -> str:
    """Several answers as one text, which the metrics cut into its names again.

    >>> listed(["Austria", "Italy"])
    'Austria, Italy'
    """
    return ", ".join(answers)
