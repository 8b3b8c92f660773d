"""The `entailment` stage: a classifier reads every response beside its reference, once for all runs that score it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kgqa_core.config import EntailmentOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.evaluation.long_tail import ENTAILMENT
from kgqa_core.evaluation.nli import EntailmentModel, Pair, open_judge, runs
from kgqa_core.metrics.entailment import Scores
from kgqa_core.metrics.registry import measure, metric_names
from kgqa_core.rewriting.align_text import split
from kgqa_core.store.shards import LOADING
from kgqa_core.store.tables import read_frame
from kgqa_core.workspace import Workspace

CHUNK = 512
"""Pairs per chunk that is saved for a later try."""

Key = tuple[str, str, str, str]
"""(question, retriever, format, model)."""


@dataclass(frozen=True)
class _Read:
    """One response: its premises and hypotheses."""

    key: Key
    premises: tuple[str, ...]
    hypotheses: tuple[str, ...]


def entail(
    workspace: Workspace,
    *,
    questions: Path,
    answers: Path,
    model: str,
    options: EntailmentOptions,
    name: str = "",
    judge: EntailmentModel | None = None,
) -> dict[str, Any]:
    """Writes `entailment.parquet` (question, retriever, format, model and the three scores) and returns counts.

    Rows are those of the answers whose question has a reference response; an empty answer says nothing and scores 0.
    model: as `nli.fetch` takes it.  name: what progress calls the experiment.  judge: used instead of
    loading `model`.  The folder `work` keeps what is judged, so that a killed try goes on where it was.
    Counts: responses, pairs (different ones), `cut` (pairs too long for the model even so), `in_runs` (responses that
    are too long to be one premise).
    Raises ModelError, ArtifactError; FileNotFoundError when the model cannot be had.
    """
    references = {
        record.id: reference for record in read_questions(questions) if (reference := (record.reference or "").strip())
    }
    columns = ("question", "retriever", "format", "model", "output")
    frame = read_frame(answers / "answers.parquet", columns).sort(*columns)
    answered = [row for row in frame.iter_rows() if row[0] in references]
    if judge is None and answered:
        with LOADING:
            judge = open_judge(model, max_tokens=options.max_tokens, device=options.device)
    read = (
        [_read(judge, (*row[:4],), row[4] or "", references[row[0]]) for row in answered] if judge is not None else []
    )
    pairs = sorted(
        {(p, h) for one in read for p in one.premises for h in one.hypotheses},
        key=lambda pair: (len(pair[0]) + len(pair[1]), pair),
    )
    progress_name = f"pairs {name}".strip()
    scores = _judged(judge, pairs, workspace, progress_name) if judge is not None else np.zeros((0, 2))
    index = {pair: number for number, pair in enumerate(pairs)}
    measured = (measure("entailment", _matrix(response, index, scores)).values() for response in read)
    rows = [
        (*response.key, *(round(value, 6) for value in values)) for response, values in zip(read, measured, strict=True)
    ]
    schema = dict.fromkeys(columns[:4], pl.String) | dict.fromkeys(metric_names("entailment"), pl.Float64)
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(
        workspace.out / ENTAILMENT, compression="zstd", statistics=False
    )
    return {
        "responses": len(rows),
        "pairs": len(pairs),
        "in_runs": sum(len(one.premises) > 1 for one in read),
        "cut": _cut(judge, pairs),
    }


def has_references(questions: Path) -> bool:
    """Whether any question has a reference response, so that there is anything to judge."""
    return any((record.reference or "").strip() for record in read_questions(questions))


def _read(judge: EntailmentModel, key: Key, prediction: str, reference: str) -> _Read:
    """What is compared of a response: itself with its reference, or, where the two are too long for the classifier,
    runs of its sentences with the sentences of its reference."""
    if not prediction.strip():
        return _Read(key, (), (reference,))
    if sum(judge.lengths([prediction, reference])) <= judge.room:
        return _Read(key, (prediction.strip(),), (reference,))
    hypotheses = tuple(dict.fromkeys(reference[start:end] for start, end in split(reference))) or (reference,)
    whole, *given = judge.lengths([prediction, *hypotheses])
    room = judge.room - max(given)
    if whole <= room:
        return _Read(key, (prediction.strip(),), hypotheses)
    spans = split(prediction)
    parts = runs(judge.lengths([prediction[start:end] for start, end in spans]), room)
    return _Read(key, tuple(prediction[spans[a][0] : spans[b - 1][1]] for a, b in parts), hypotheses)


def _matrix(response: _Read, index: Mapping[Pair, int], scores: Scores) -> Scores:
    """[premises, hypotheses, 2] of one response."""
    rows = [[index[premise, hypothesis] for hypothesis in response.hypotheses] for premise in response.premises]
    return scores[np.array(rows, dtype=np.int64)] if rows else np.zeros((0, len(response.hypotheses), 2))


def _judged(judge: EntailmentModel, pairs: Sequence[Pair], workspace: Workspace, progress_name: str) -> Scores:
    """Scores [pairs, 2], chunk by chunk; chunks saved by an earlier try are reused."""
    results = [np.zeros((0, 2))]
    for start in range(0, len(pairs), CHUNK):
        workspace.monitor.progress(start, len(pairs), progress_name)
        chunk = pairs[start : start + CHUNK]
        checkpoint = None if workspace.work is None else workspace.work / f"judged-{start:09d}.npy"
        scores = _read_checkpoint(checkpoint, len(chunk))
        if scores is None:
            scores = judge.scores(chunk)
            if checkpoint is not None:
                scratch = checkpoint.with_suffix(".tmp")
                with scratch.open("wb") as stream:
                    np.save(stream, scores, allow_pickle=False)
                os.replace(scratch, checkpoint)
        results.append(scores)
    workspace.monitor.progress(len(pairs), len(pairs), progress_name)
    return np.concatenate(results)


def _read_checkpoint(file: Path | None, size: int) -> Scores | None:
    if file is None or not file.is_file():
        return None
    try:
        scores: Scores = np.load(file, allow_pickle=False)
    except (OSError, ValueError):
        return None
    return scores if scores.shape == (size, 2) else None


def _cut(judge: EntailmentModel | None, pairs: Sequence[Pair]) -> int:
    if judge is None:
        return 0
    texts = sorted({text for pair in pairs for text in pair})
    length = dict(zip(texts, judge.lengths(texts), strict=True))
    return sum(length[premise] + length[hypothesis] > judge.room for premise, hypothesis in pairs)
