"""Stages that index a corpus, find passages for every question, and put them before the model."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.config import PASSAGES, Knowledge, PassagesOptions, Profile
from kgqa_core.store.artifacts import ArtifactRef
from kgqa_core.workspace import Workspace
from tasks.engine.context import Call, Counts, folder
from tasks.engine.external_digests import encoder_digest, file_digest
from tasks.engine.stage import stage

PACKAGES = ("torch", "transformers", "tokenizers", "faiss-cpu", "bm25s")


def _encoder(options: PassagesOptions) -> dict[str, str]:
    return {"encoder": encoder_digest(options.encoder)} if options.retriever != "bm25" else {}


def _corpus(call: Call) -> dict[str, str]:
    """Digests of encoder and corpus; a file's name counts, for documents without id are called by it."""
    options: PassagesOptions = call.options
    if not options.corpus:
        return _encoder(options)
    corpus = Path(options.corpus).expanduser()
    name = "corpus" if corpus.is_dir() else f"corpus {corpus.name}"
    return _encoder(options) | {name: file_digest(corpus)}


@stage(
    "passage_index",
    label=lambda call: f"{call.options.retriever} {Path(call.options.corpus or '').name}",
    external=_corpus,
    packages=PACKAGES,
    tags=("gpu",),
)
def index_passages(workspace: Workspace, options: PassagesOptions, seed: int) -> Counts:
    """Cut a corpus into passages and index their vectors, their words, or both."""
    from kgqa_core.passages.index import build

    return build(workspace, options=options, seed=seed)


@stage(
    "passages",
    label=lambda call: call.options.retriever,
    external=lambda call: _encoder(call.options),
    packages=PACKAGES,
)
def retrieve_passages(
    workspace: Workspace, index: ArtifactRef, questions: ArtifactRef, options: PassagesOptions, training: bool = False
) -> Counts:
    """Find the passages that go with each question."""
    from kgqa_core.passages.search import retrieve

    return retrieve(workspace, index=index.folder, questions=questions.folder, options=options, training=training)


@stage(
    "knowledge",
    variant=lambda call: str(Knowledge.parse(f"{call.retriever}/both")) if call.triples else PASSAGES,
)
def write_passages(
    workspace: Workspace,
    questions: ArtifactRef,
    passages: ArtifactRef,
    triples: ArtifactRef | None = None,
    retriever: str = PASSAGES,
) -> Counts:
    """Write each question's passages as text, below a retriever's triples where these are given."""
    from kgqa_core.passages.search import write_knowledge

    return write_knowledge(
        workspace, questions=questions.folder, passages=passages.folder, triples=folder(triples), retriever=retriever
    )


def index_of(profile: Profile) -> ArtifactRef | None:
    """The passage index, where the profile has knowledge that holds passages."""
    if not profile.reads_passages:
        return None
    plain = PassagesOptions()
    options = profile.passages.model_copy(update={"k": plain.k, "history": plain.history})  # no part of an index
    return index_passages(options, profile.seed)


def passages_of(questions: ArtifactRef, profile: Profile) -> ArtifactRef | None:
    """The passages of every question, where any knowledge holds some."""
    index = index_of(profile)
    if index is None:
        return None
    return retrieve_passages(index, questions, profile.passages, profile.retrieval.training)
