"""The path retriever in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgqa_core.retrieval.api import ExternalInput, Retriever, RetrieverInputs, RetrieverSpec, TrainingInputs
from kgqa_core.workspace import Workspace


def train_hop_path(workspace: Workspace, inputs: TrainingInputs) -> Mapping[str, Any]:
    """Train the hop and relation classifiers of the path retriever (Wu et al. 2023)."""
    from kgqa_core.retrieval.hop_path.train import train

    return train(workspace, inputs)


def open_hop_path(inputs: RetrieverInputs) -> Retriever:
    """The path retriever with the classifiers that were trained."""
    folder = inputs.trained_folder("hop_path", "hop_path")
    from kgqa_core.retrieval.hop_path.retriever import HopPathRetriever, load

    return HopPathRetriever(inputs.dkg, load(folder, inputs.dkg), inputs.options, kg=inputs.kg)


SPEC = RetrieverSpec(
    name="hop_path",
    label="HopPath",
    place=3,
    open=open_hop_path,
    section="hop_path",
    divisible=True,
    packages=("torch",),
    artifact="hop_path",
    artifact_label="Path retriever",
    train=train_hop_path,
    trains_on=lambda options: (ExternalInput("encoder", "encoder", "encoder", options.encoder),),
    training_label=lambda options: "" if options.max_hops is None else f"{options.max_hops} hops",
    training_packages=("torch", "transformers", "tokenizers"),
    learns_from=lambda options: ("relation_paths", "answers") if options.searched_paths else ("relation_paths",),
    headline=True,
)
