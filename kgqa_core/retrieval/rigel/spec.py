"""Rigel in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgqa_core.retrieval.api import ExternalInput, Retriever, RetrieverInputs, RetrieverSpec, TrainingInputs
from kgqa_core.workspace import Workspace


def train_rigel(workspace: Workspace, inputs: TrainingInputs) -> Mapping[str, Any]:
    """Train Rigel from question-answer pairs (Sen et al. 2023)."""
    from kgqa_core.retrieval.rigel.train import train

    return train(workspace, inputs)


def open_rigel(inputs: RetrieverInputs) -> Retriever:
    """Rigel with the network that was trained."""
    folder = inputs.trained_folder("rigel", "rigel")
    from kgqa_core.retrieval.rigel.network import load
    from kgqa_core.retrieval.rigel.retriever import RigelRetriever

    return RigelRetriever(inputs.dkg, load(folder, inputs.dkg), inputs.options, kg=inputs.kg)


SPEC = RetrieverSpec(
    name="rigel",
    label="Rigel",
    place=2,
    open=open_rigel,
    section="rigel",
    divisible=True,
    packages=("torch",),
    artifact="retriever",
    artifact_label="Rigel",
    train=train_rigel,
    trains_on=lambda options: (ExternalInput("encoder", "encoder", "encoder", options.encoder),),
    training_label=lambda options: "rigel" if options.hops is None else f"rigel {options.hops} hops",
    training_packages=("torch", "transformers", "tokenizers"),
    further_sets=True,
    feedback_run=lambda options: options.feedback,
    learns_links=lambda options: options.soft_start,
    learns_from=lambda options: ("answers",),
    headline=True,
)
