"""TransferNet in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgqa_core.retrieval.api import ExternalInput, Retriever, RetrieverInputs, RetrieverSpec, TrainingInputs
from kgqa_core.workspace import Workspace


def train_transfernet(workspace: Workspace, inputs: TrainingInputs) -> Mapping[str, Any]:
    """Train TransferNet from question-answer pairs (Shi et al. 2021)."""
    from kgqa_core.papers.peers.transfernet.train import train

    return train(workspace, inputs)


def open_transfernet(inputs: RetrieverInputs) -> Retriever:
    """TransferNet with the network that was trained."""
    folder = inputs.trained_folder("transfernet", "transfernet")
    from kgqa_core.papers.peers.transfernet.network import load
    from kgqa_core.retrieval.rigel.retriever import RigelRetriever

    return RigelRetriever(inputs.dkg, load(folder, inputs.dkg), inputs.options, kg=inputs.kg, name="transfernet")


SPECS = (
    RetrieverSpec(
        name="transfernet",
        label="TransferNet",
        place=11,
        open=open_transfernet,
        section="transfernet",
        divisible=True,
        packages=("torch",),
        artifact="transfernet",
        artifact_label="TransferNet",
        train=train_transfernet,
        trains_on=lambda options: (ExternalInput("encoder", "encoder", "encoder", options.encoder),),
        training_packages=("torch", "transformers", "tokenizers"),
        learns_from=lambda options: ("answers",),
    ),
)
