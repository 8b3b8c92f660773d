"""The abstainer: how sure it is that the graph holds an answer, and which reason it gives where it does not.

Two files: abstainer.json has the classifiers, wordings.safetensors the wordings of training.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from kgqa_core.abstention.calibrated_classifier import AdditiveClassifier
from kgqa_core.abstention.evidence import Evidence
from kgqa_core.abstention.features import feature_names, features, findings
from kgqa_core.abstention.wording_similarity import QuestionWordings, TypicalFindings, Words, words_of
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.store import KgStore
from kgqa_core.store.artifacts import write_json

FILE, WORDINGS = "abstainer.json", "wordings.safetensors"
VERSION = 1
"""Version of the stored layout."""

DOUBT = 1e-6
"""Least probability of either outcome, so that a knob at 1 answers nothing."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Abstainer:
    """Trained classifiers.

    retrievers: whose findings it reads, sorted.  groups: of features, as `AbstentionOptions.features`.
    knowledge: what the language model read.  threshold: confidence below which a question is not answered.
    answerable: the classifier.  why: of each reason, against the others; empty where training had too few of one.
    usual: what is usual for a wording; None where wordings are not read.
    """

    retrievers: tuple[str, ...]
    groups: tuple[str, ...]
    knowledge: str
    threshold: float
    answerable: AdditiveClassifier
    why: Mapping[str, AdditiveClassifier]
    wordings: QuestionWordings
    usual: TypicalFindings | None = None

    def read(self, evidence: Sequence[Evidence], store: KgStore) -> Array:
        """Features [n, …] of questions."""
        read = read_features(evidence, store, self.wordings, self.retrievers, self.groups)
        return with_differences(read, masked_words(evidence, store), self.usual, self.retrievers, self.groups)

    def confidence(self, read: Array) -> Array:
        """[n] probabilities that the graph holds the answer; never quite 0 or 1."""
        return np.clip(self.answerable.confidence(read), DOUBT, 1 - DOUBT)

    def reasons(self, read: Array) -> list[dict[str, float]]:
        """Of each question the probability of each reason, should it be unanswerable; empty where training had not
        enough examples of two, since a lone one would always be certain."""
        if len(self.why) < 2:
            return [{} for _ in read]
        chances = np.stack([classifier.confidence(read) for classifier in self.why.values()], axis=1)
        shares = chances / chances.sum(axis=1, keepdims=True)
        return [dict(zip(self.why, row, strict=True)) for row in shares.round(6).tolist()]

    def save(self, folder: Path) -> None:
        """Writes both files."""
        stored: dict[str, Any] = {
            "version": VERSION, "retrievers": list(self.retrievers), "groups": list(self.groups),
            "knowledge": self.knowledge, "threshold": self.threshold, "answerable": self.answerable.to_json(),
            "why": {reason: classifier.to_json() for reason, classifier in self.why.items()},
            "wordings": self.wordings.to_json(),
        }  # fmt: skip
        write_json(folder / FILE, stored)
        arrays = self.wordings.arrays() | (self.usual.arrays() if self.usual is not None else {})
        save_file({name: np.ascontiguousarray(classifier) for name, classifier in arrays.items()}, folder / WORDINGS)


def read_features(
    evidence: Sequence[Evidence],
    store: KgStore,
    wordings: QuestionWordings,
    retrievers: Sequence[str],
    groups: Sequence[str],
    known_labels: Sequence[bool | None] | None = None,
) -> Array:
    """Features [n, …] of questions, not yet compared.  known_labels: as of `QuestionWordings.features`."""
    texts = masked_words(evidence, store)
    wording = wordings.features(texts, known_labels) if "wording" in groups else np.full((len(evidence), 4), np.nan)
    return features(evidence, wording, retrievers, groups, store)


def with_differences(
    read: Array,
    texts: Sequence[Words],
    usual: TypicalFindings | None,
    retrievers: Sequence[str],
    groups: Sequence[str],
    known_labels: Sequence[bool | None] | None = None,
) -> Array:
    """Features with, behind them, how far each finding is from what is usual."""
    if usual is None:
        return read
    indices = findings(feature_names(retrievers, groups))
    return np.concatenate([read, usual.differences(texts, read[:, indices], known_labels)], axis=1)


def names_of(retrievers: Sequence[str], groups: Sequence[str]) -> tuple[str, ...]:
    """Names of the features that `with_differences` gives."""
    names = feature_names(retrievers, groups)
    return names + tuple(f"usual_{names[index]}" for index in findings(names)) if "wording" in groups else names


def masked_words(evidence: Sequence[Evidence], store: KgStore) -> list[Words]:
    """The words of each question with its topics masked."""
    names = store.surface_forms(sorted({entity for item in evidence for entity in item.question.topic_entities}))
    return [words_of(item.question, names) for item in evidence]


def load_abstainer(folder: Path) -> Abstainer:
    """The abstainer stored in a folder.  Raises ArtifactError."""
    try:
        stored = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if stored.get("version") != VERSION:
            raise ArtifactError(
                f"{folder} has an abstainer of layout {stored.get('version')}, not {VERSION}; train one"
            )
        arrays = load_file(folder / WORDINGS)
        wordings = QuestionWordings.from_arrays(arrays, stored["wordings"])
        return Abstainer(
            tuple(stored["retrievers"]), tuple(stored["groups"]), stored["knowledge"], float(stored["threshold"]),
            AdditiveClassifier.from_json(stored["answerable"]),
            {reason: AdditiveClassifier.from_json(classifier) for reason, classifier in stored["why"].items()},
            wordings, TypicalFindings.from_arrays(wordings, arrays) if "usual_sums" in arrays else None,
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as fault:
        raise ArtifactError(f"{folder} holds no abstainer that can be read ({fault}); train one again") from None
