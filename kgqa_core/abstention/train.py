"""Stage `abstainer`: learns from questions that are known to be answerable or not when the graph holds an answer.

Classifiers are fitted on training questions and calibrated on dev questions, where the threshold is tuned too.  The
wordings are those of all training questions; the features of a training question leave out its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kgqa_core.abstention.calibrated_classifier import AdditiveClassifier
from kgqa_core.abstention.evidence import Evidence, read_evidence
from kgqa_core.abstention.features import feature_names, findings
from kgqa_core.abstention.labels import REASONS, AnswerabilityLabel, read_labels
from kgqa_core.abstention.model import Abstainer, Array, masked_words, names_of, read_features, with_differences
from kgqa_core.abstention.wording_similarity import QuestionWordings, TypicalFindings
from kgqa_core.config import AbstentionOptions, RetrieverVariant
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import TrainingError
from kgqa_core.kg.store import KgStore
from kgqa_core.metrics.confidence import (
    auroc,
    best_threshold,
    coverage_threshold,
    expected_calibration_error,
    log_loss,
)
from kgqa_core.workspace import Workspace

PRIOR_PRECISION = 1.0
"""How much of its freedom a classifier gives up for simplicity."""
LEAST = 10
"""Examples of each kind that a classifier needs."""


def train(
    workspace: Workspace,
    *,
    kg: Path,
    questions: Path,
    labels: Path,
    facts: Mapping[str, Path],
    answers: Mapping[str, Path],
    name: str,
    options: AbstentionOptions,
) -> dict[str, Any]:
    """Writes abstainer.json, wordings.safetensors and features.parquet, and returns counts.

    questions: with the topics that retrieval started from.  labels: folder with labels.parquet.  facts: artifact of
    each retriever, by name.  answers: of the splits train and dev.  name: of what the model read.
    Raises TrainingError without answerable and unanswerable questions in training and dev.
    """
    known, everything = read_labels(labels), read_questions(questions)
    plain = {RetrieverVariant.parse(name).retriever: folder for name, folder in facts.items()}
    retrievers = tuple(sorted(plain))
    labelled = [question for question in everything if question.id in known]
    sets = {
        split: read_evidence([question for question in labelled if question.split == split], plain, [answers[split]])
        for split in ("train", "dev")
    }
    _check(sets, known)
    with KgStore.open(kg) as store:
        learning = [question for question in labelled if question.split == "train"]
        texts = masked_words([Evidence(question) for question in learning], store)
        wordings = QuestionWordings.learn(texts, [known[question.id].answerable for question in learning])
        workspace.monitor.progress(1, 3, "steps")
        good = {split: [known[item.question.id].answerable for item in evidence] for split, evidence in sets.items()}
        masked = {split: masked_words(evidence, store) for split, evidence in sets.items()}
        answerable_by_split = {"train": good["train"], "dev": None}
        groups = options.features
        read = {
            split: read_features(evidence, store, wordings, retrievers, groups, answerable_by_split[split])
            for split, evidence in sets.items()
        }
    usual = None
    if "wording" in groups:
        indices = findings(feature_names(retrievers, groups))
        usual = TypicalFindings.learn(wordings, masked["train"], read["train"][:, indices], good["train"])
    read = {
        split: with_differences(evidence, masked[split], usual, retrievers, groups, answerable_by_split[split])
        for split, evidence in read.items()
    }
    workspace.monitor.progress(2, 3, "steps")
    names = names_of(retrievers, groups)
    answerable = AdditiveClassifier.fit(names, read["train"], good["train"], PRIOR_PRECISION)
    answerable = answerable.calibrated(read["dev"], good["dev"])
    confidence = answerable.confidence(read["dev"])
    threshold = (  # half of the last digit is taken off, so that rounding does not raise it
        best_threshold(confidence, good["dev"])
        if options.coverage is None
        else coverage_threshold(confidence[np.array(good["dev"])], options.coverage) - 5e-7
    )
    why = _reasons(names, sets, read, known, PRIOR_PRECISION)
    Abstainer(retrievers, groups, name, round(threshold, 6), answerable, why, wordings, usual).save(workspace.out)
    _write(workspace.out, names, sets, read)
    workspace.monitor.progress(3, 3, "steps")
    return {
        "questions": {split: len(evidence) for split, evidence in sets.items()},
        "answerable": {split: sum(evidence) for split, evidence in good.items()},
        "features": len(names),
        "wordings": len(wordings.indices),
        "reasons": sorted(why),
        "temperature": answerable.temperature,
        "threshold": round(threshold, 6),
        "dev_auroc": round(auroc(confidence, good["dev"]), 6),
        "dev_ece": round(expected_calibration_error(confidence, good["dev"]), 6),
        "dev_loss": round(log_loss(answerable.logits(read["dev"]), good["dev"]), 6),
    }


def _check(sets: Mapping[str, Sequence[Evidence]], known: Mapping[str, AnswerabilityLabel]) -> None:
    for split, evidence in sets.items():
        kinds = Counter(known[item.question.id].answerable for item in evidence)
        if min(kinds[True], kinds[False]) < LEAST:
            raise TrainingError(
                f"of the {split} questions that the model answered {kinds[True]} are answerable and {kinds[False]} "
                f"are not; {LEAST} of each are needed; raise abstention.training_questions, or make a set that has "
                "them with `kgqa answerability build`"
            )


def _reasons(
    names: Sequence[str],
    sets: Mapping[str, Sequence[Evidence]],
    read: Mapping[str, Array],
    known: Mapping[str, AnswerabilityLabel],
    strength: float,
) -> dict[str, AdditiveClassifier]:
    """A classifier of each reason against the others, from unanswerable questions; none at all where a reason that
    occurs has too few, for the others would share out what belongs to it.  Dev questions calibrate where they have
    enough of both outcomes."""
    reasons = {split: [known[item.question.id].why for item in evidence] for split, evidence in sets.items()}
    indices = {
        split: [index for index, why in enumerate(evidence) if why is not None] for split, evidence in reasons.items()
    }
    classifiers: dict[str, AdditiveClassifier] = {}
    for reason in REASONS:
        here, there = ([reasons[split][index] == reason for index in indices[split]] for split in ("train", "dev"))
        if not any(here + there):
            continue
        if not _enough(here):
            return {}
        evidence = AdditiveClassifier.fit(names, read["train"][indices["train"]], here, strength)
        classifiers[reason] = evidence.calibrated(read["dev"][indices["dev"]], there) if _enough(there) else evidence
    return classifiers


def _enough(outcomes: Sequence[bool]) -> bool:
    return min(sum(outcomes), len(outcomes) - sum(outcomes)) >= LEAST


def _write(out: Path, names: Sequence[str], sets: Mapping[str, Sequence[Evidence]], read: Mapping[str, Array]) -> None:
    """features.parquet: what was learnt from, a row a question."""
    frames = [
        pl.DataFrame(
            {"question": [item.question.id for item in evidence], "split": [split] * len(evidence)}
        ).with_columns(pl.Series(name, read[split][:, index].round(6)) for index, name in enumerate(names))
        for split, evidence in sets.items()
    ]
    table = pl.concat(frames).with_columns(pl.col(pl.Float64).fill_nan(None)).sort("question")
    table.write_parquet(out / "features.parquet", compression="zstd", statistics=False)
