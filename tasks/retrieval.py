"""Stages that train the retrievers and collect facts for every question."""

from __future__ import annotations

from kgqa_core.artifacts import ArtifactRef
from kgqa_core.config import HopPathOptions, Profile, RetrievalOptions, RetrieverOptions
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
def train_rigel(
    kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, options: RetrieverOptions, seed: int
) -> ArtifactRef:
    """Train Rigel from question-answer pairs (Sen et al. 2023)."""
    raise AssertionError


@stage(
    "hop_path",
    runs="kgqa_core.retrieval.hop_path_train:train",
    label=lambda arguments: f"{arguments['options'].max_hops} hops",
    outside=lambda arguments: {"encoder": encoder_digest(arguments["options"].encoder)},
    packages=("torch", "transformers", "tokenizers"),
    tags=("gpu",),
)
def train_hop_path(
    kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, options: HopPathOptions, seed: int
) -> ArtifactRef:
    """Train the hop and relation classifiers of the path retriever (Wu et al. 2023)."""
    raise AssertionError


@stage(
    "facts",
    runs="kgqa_core.retrieval.collect:collect",
    variant=lambda arguments: arguments["name"],
    outside=lambda arguments: (
        {"encoder": encoder_digest(arguments["options"].kaping.encoder)} if arguments["name"] == "kaping" else {}
    ),
    packages=("torch",),
    mapped=True,
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


def train_retrievers(
    kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, profile: Profile
) -> dict[str, ArtifactRef]:
    """Those of the configured retrievers that learn, by name."""
    wanted, trained = profile.retrieval.retrievers, {}
    if "rigel" in wanted:
        trained["rigel"] = train_rigel(kg, dkg, questions, profile.retriever, profile.seed)
    if "hop_path" in wanted:
        trained["hop_path"] = train_hop_path(kg, dkg, questions, profile.hop_path, profile.seed)
    return trained


def retrieve_all(
    kg: ArtifactRef,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    trained: dict[str, ArtifactRef],
    options: RetrievalOptions,
    seed: int,
) -> dict[str, ArtifactRef]:
    """Facts of every configured retriever, by name."""
    return {name: retrieve(kg, dkg, questions, trained.get(name), name, options, seed) for name in options.retrievers}
