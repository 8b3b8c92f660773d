"""KAPING in the registry."""

from __future__ import annotations

from kgqa_core.config import KapingOptions
from kgqa_core.retrieval.api import ExternalInput, Retriever, RetrieverInputs, RetrieverSpec


def open_kaping(inputs: RetrieverInputs) -> Retriever:
    """KAPING, which needs no training."""
    from kgqa_core.retrieval.kaping.retriever import Kaping

    return Kaping(inputs.dkg, inputs.section or KapingOptions(), inputs.options, inputs.kg, inputs.cache)


SPEC = RetrieverSpec(
    name="kaping",
    label="KAPING",
    place=1,
    open=open_kaping,
    section="kaping",
    limit="kaping.max_triples (or retrieval.edge_budget of {options.edge_budget})",
    reads=lambda options: (ExternalInput("encoder", "encoder", "encoder", options.encoder),),
    divisible=True,
    packages=("torch",),
)
