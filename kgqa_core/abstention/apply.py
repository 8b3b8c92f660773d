"""Stage `confidence`: how sure it is of each question that the graph holds its answer, and else why not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.abstention.evidence import Evidence, Judgement, read_evidence
from kgqa_core.abstention.labels import ENTITY, FACT
from kgqa_core.abstention.model import Abstainer, load_abstainer, masked_words
from kgqa_core.abstention.reasons import Explainer, Reason, by_rule
from kgqa_core.config import RetrieverVariant
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.lookup import index
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.store.tables import read_frame
from kgqa_core.types import UNSURE
from kgqa_core.workspace import Workspace

FILE = "confidence.parquet"

SCHEMA = {
    "question": pl.String, "confidence": pl.Float64, "calibrated": pl.Boolean, "answerable": pl.Boolean,
    "reason": pl.String, "missing": pl.String, "nearest": pl.String, "reason_confidence": pl.Float64,
    "min_confidence": pl.Float64,
}  # fmt: skip
"""Columns of confidence.parquet; those of the reason are null where the question counts as answerable."""

PROGRESS_EVERY = 100
LIKELIER = 0.5
"""Confidence from which on a graph more likely holds an answer than not: a decline is not sure then."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to answer a question.

    confidence: that the graph holds the answer, or, of an answerer that judges itself, that its best answer is right,
    given or not; None where that was not learnt, or where there is no answer to be sure of.  calibrated: whether there
    is a learnt confidence.  reason: where it is not to be answered.  min_confidence: what decided: it is answered from
    this confidence on; None where a rule decides.
    """

    confidence: float | None
    calibrated: bool
    answerable: bool
    reason: Reason | None = None
    min_confidence: float | None = None

    def fields(self) -> dict[str, Any]:
        """The fields of an `Answer` that say whether the graph holds it."""
        reason = self.reason
        why = {name: reason and getattr(reason, name) for name in ("missing", "nearest")}
        sure = {name: getattr(self, name) for name in ("answerable", "confidence", "calibrated", "min_confidence")}
        return {**sure, "reason": reason and reason.kind, **why}


class AbstentionJudge:
    """Decides on questions of one graph; an answerer that judges its own answers is believed.

    abstainer: None judges by the rules alone.  min_confidence: in place of the abstainer's threshold.
    """

    def __init__(self, store: KgStore, abstainer: Abstainer | None, min_confidence: float | None = None) -> None:
        self.store, self.abstainer, self.explainer = store, abstainer, Explainer(store)
        tuned = abstainer.threshold if abstainer is not None else None
        self.threshold = tuned if min_confidence is None else min_confidence

    def judge(self, evidence: Sequence[Evidence], monitor: Monitor = QUIET) -> list[Verdict]:
        """A verdict on each question."""
        if not evidence:
            return []
        if any(_judgement(item) for item in evidence):
            return [self._by_answerer(item) if _judgement(item) else self._by_rule(item) for item in evidence]
        if self.abstainer is None:
            return [self._by_rule(item) for item in evidence]
        least = self.abstainer.threshold if self.threshold is None else self.threshold
        read = self.abstainer.read(evidence, self.store)
        confidences = self.abstainer.confidence(read).round(6).tolist()
        chances = self.abstainer.reasons(read)
        texts = masked_words(evidence, self.store)
        verdicts: list[Verdict] = []
        for number, (one, sure, shares, text) in enumerate(zip(evidence, confidences, chances, texts, strict=True), 1):
            if number % PROGRESS_EVERY == 0 or number == len(evidence):
                monitor.progress(number, len(evidence), "questions")
            if sure >= least:
                verdicts.append(Verdict(sure, True, True, None, least))
                continue
            if sure >= LIKELIER and one.model_answer is not None and not one.model_answer.declined:
                verdicts.append(Verdict(sure, True, False, Reason(UNSURE), least))
                continue
            kind, share = _kind(one, shares)
            runs = sorted(self.abstainer.wordings.strange(text), key=lambda run: run[0] - run[1])
            strange = [in_a_row(text[first:stop]) for first, stop in runs]
            verdicts.append(Verdict(sure, True, False, self.explainer.explain(one, kind, strange, share), least))
        return verdicts

    def _by_rule(self, evidence: Evidence) -> Verdict:
        kind = by_rule(evidence)
        declined = (
            evidence.model_answer is not None and evidence.model_answer.declined and not evidence.model_answer.computed
        )
        if kind is None and declined:
            kind = FACT
        answers = kind is None or self.threshold == 0
        reason = None if kind is None or answers else self.explainer.explain(evidence, kind)
        return Verdict(None, False, answers, reason, self.threshold)

    def _by_answerer(self, evidence: Evidence) -> Verdict:
        judgement = _judgement(evidence)
        assert judgement is not None
        strange = [judgement.missing] if judgement.missing else []
        reason = self.explainer.explain(evidence, judgement.reason, strange) if judgement.reason is not None else None
        if (
            reason is not None and reason.kind == FACT and judgement.missing
        ):  # of its own form, not of a retriever's path
            reason = Reason(FACT, judgement.missing)
        sure, least = judgement.confidence, judgement.min_confidence
        return Verdict(sure, sure is not None, reason is None, reason, least)


def _judgement(evidence: Evidence) -> Judgement | None:
    return evidence.model_answer.judgement if evidence.model_answer is not None else None


def apply(
    workspace: Workspace,
    *,
    kg: Path,
    questions: Path,
    facts: Mapping[str, Path],
    answers: Mapping[str, Path],
    abstainer: Path | None,
    min_confidence: float | None = None,
) -> dict[str, Any]:
    """Writes confidence.parquet, a row for each question that the model answered, and returns counts.

    abstainer: None judges by the rules alone.  min_confidence: in place of the abstainer's threshold.
    Raises ArtifactError.
    """
    model = load_abstainer(abstainer) if abstainer is not None else None
    plain = {RetrieverVariant.parse(name).retriever: folder for name, folder in facts.items()}
    if model is not None and (lacking := sorted(set(model.retrievers) - plain.keys())):
        raise ArtifactError(f"the abstainer reads what {', '.join(lacking)} found, which is not there; train another")
    evidence = read_evidence(read_questions(questions), plain, answers.values())
    with KgStore.open(kg) as store:
        index(store)
        judge = AbstentionJudge(store, model, min_confidence)
        verdicts = judge.judge(evidence, workspace.monitor)
    rows = [_row(item, verdict) for item, verdict in zip(evidence, verdicts, strict=True)]
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("question")
    frame.write_parquet(workspace.out / FILE, compression="zstd", statistics=False)
    reasons = Counter(verdict.reason.kind for verdict in verdicts if verdict.reason is not None)
    return {
        "questions": len(rows),
        "answered": sum(verdict.answerable for verdict in verdicts),
        "threshold": verdicts[0].min_confidence if verdicts else None,
        "reasons": dict(sorted(reasons.items())),
    }


def read_verdicts(folder: Path) -> dict[str, Verdict]:
    """Verdicts by question.  Raises ArtifactError."""
    rows = list(read_frame(folder / FILE).iter_rows(named=True))
    return {
        row["question"]: Verdict(
            row["confidence"],
            row["calibrated"],
            row["answerable"],
            Reason(row["reason"], row["missing"], row["nearest"], row["reason_confidence"]) if row["reason"] else None,
            row["min_confidence"],
        )
        for row in rows
    }


def _kind(evidence: Evidence, shares: Mapping[str, float]) -> tuple[str, float | None]:
    """The reason and its share: where nothing was linked that; else the learnt evidence, else that of a rule."""
    if not evidence.question.topic_entities:
        return ENTITY, shares.get(ENTITY)
    if shares:
        best = max(shares, key=lambda kind: (shares[kind], kind))
        return best, round(shares[best], 6)
    return by_rule(evidence) or FACT, None


def _row(evidence: Evidence, verdict: Verdict) -> tuple[Any, ...]:
    reason = verdict.reason
    why = (None,) * 4 if reason is None else (reason.kind, reason.missing, reason.nearest, reason.confidence)
    return (
        evidence.question.id,
        verdict.confidence,
        verdict.calibrated,
        verdict.answerable,
        *why,
        verdict.min_confidence,
    )


def in_a_row(words: Sequence[str]) -> str:
    """Words in a row as a text; signs of Chinese and Japanese, each a word of its own, stand side by side."""
    return re.sub(r"(?<=[\u3040-\u30ff\u3400-\u9fff]) (?=[\u3040-\u30ff\u3400-\u9fff])", "", " ".join(words))
