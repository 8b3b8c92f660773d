"""Stages that index a corpus, find passages for every question, and put them before the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kgqa_core.config import PASSAGES, PassagesOptions, Profile
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.external_digests import encoder_digest, file_digest
from tasks.engine.stage import stage

PACKAGES = ("torch", "transformers", "tokenizers", "faiss-cpu", "bm25s")


def _encoder(options: PassagesOptions) -> dict[str, str]:
    return {"encoder": encoder_digest(options.encoder)} if options.retriever != "bm25" else {}


def _corpus(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Digests of encoder and corpus; a file's name counts, for documents without id are called by it."""
    options: PassagesOptions = arguments["options"]
    if not options.corpus:
        return _encoder(options)
    corpus = Path(options.corpus).expanduser()
    name = "corpus" if corpus.is_dir() else f"corpus {corpus.name}"
    return _encoder(options) | {name: file_digest(corpus)}


@stage(
    "passage_index",
    runs="kgqa_core.passages.index:build",
    label=lambda arguments: f"{arguments['options'].retriever} {Path(arguments['options'].corpus or '').name}",
    outside=_corpus,
    packages=PACKAGES,
    tags=("gpu",),
)
def index_passages(options: PassagesOptions, seed: int) -> ArtifactRef:
    """Cut a corpus into passages and index their vectors, their words, or both."""
    raise AssertionError


@stage(
    "passages",
    runs="kgqa_core.passages.retrieve:retrieve",
    label=lambda arguments: arguments["options"].retriever,
    outside=lambda arguments: _encoder(arguments["options"]),
    packages=PACKAGES,
)
def retrieve_passages(
    index: ArtifactRef, questions: ArtifactRef, options: PassagesOptions, training: bool = False
) -> ArtifactRef:
    """Find the passages that go with each question."""
    raise AssertionError


@stage(
    "knowledge",
    runs="kgqa_core.passages.retrieve:write_knowledge",
    variant=lambda arguments: f"{arguments['retriever']}/both" if arguments["triples"] else PASSAGES,
)
def write_passages(
    questions: ArtifactRef, passages: ArtifactRef, triples: ArtifactRef | None = None, retriever: str = PASSAGES
) -> ArtifactRef:
    """Write each question's passages as text, below a retriever's triples where these are given."""
    raise AssertionError


def index_of(profile: Profile) -> ArtifactRef | None:
    """The passage index, where the profile has knowledge that holds passages."""
    if not profile.reads_passages:
        return None
    plain = PassagesOptions()
    own = profile.passages.model_copy(update={"k": plain.k, "history": plain.history})  # no part of an index
    return index_passages(own, profile.seed)


def passages_of(questions: ArtifactRef, profile: Profile) -> ArtifactRef | None:
    """The passages of every question, where any knowledge holds some."""
    index = index_of(profile)
    if index is None:
        return None
    return retrieve_passages(index, questions, profile.passages, profile.retrieval.training)
