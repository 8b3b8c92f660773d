"""Stages that train the retriever, collect facts for every question, and put them into words."""

from __future__ import annotations

from kgqa_core.artifacts import ArtifactRef
from kgqa_core.config import AnsweringOptions, RetrievalOptions, RetrieverOptions
from tasks.outside import encoder_digest
from tasks.stage import stage


@stage(
    "retriever",
    runs="kgqa_core.retrieval.train:train",
    label=lambda arguments: f"rigel {arguments['options'].hops} hops",
    outside=lambda arguments: {"encoder": encoder_digest(arguments["options"].encoder)},
    packages=("torch", "transformers", "tokenizers"),
    tags=("gpu",),
)
def train_retriever(
    kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, options: RetrieverOptions, seed: int
) -> ArtifactRef:
    """Train Rigel from question-answer pairs (Sen et al. 2023)."""
    raise AssertionError


@stage(
    "facts",
    runs="kgqa_core.retrieval.collect:collect",
    variant=lambda arguments: arguments["name"],
    packages=("torch",),
)
def retrieve(
    kg: ArtifactRef,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    retriever: ArtifactRef | None,
    name: str,
    options: RetrievalOptions,
    seed: int,
) -> ArtifactRef:
    """Collect each question's facts and ranked entities with one retriever."""
    raise AssertionError


@stage("knowledge", runs="kgqa_core.kg.verbalise:write_knowledge", variant=lambda arguments: arguments["retriever"])
def write_knowledge(
    kg: ArtifactRef, questions: ArtifactRef, facts: ArtifactRef, retriever: str, qualifiers: bool
) -> ArtifactRef:
    """Write each question's facts as triple-form text."""
    raise AssertionError


def retrieve_all(
    kg: ArtifactRef,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    retriever: ArtifactRef,
    options: RetrievalOptions,
    seed: int,
) -> dict[str, ArtifactRef]:
    """Facts of every configured retriever; only Rigel's depend on the trained model."""
    return {
        name: retrieve(kg, dkg, questions, retriever if name == "rigel" else None, name, options, seed)
        for name in options.retrievers
    }


def write_all(
    kg: ArtifactRef, questions: ArtifactRef, facts: dict[str, ArtifactRef], options: AnsweringOptions
) -> dict[str, ArtifactRef]:
    """Triple-form text of every retriever's facts."""
    return {name: write_knowledge(kg, questions, found, name, options.qualifiers) for name, found in facts.items()}
