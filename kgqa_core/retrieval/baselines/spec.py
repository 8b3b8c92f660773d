"""The baselines in the registry."""

from __future__ import annotations

from kgqa_core.retrieval.api import Retriever, RetrieverInputs, RetrieverSpec


def open_random(inputs: RetrieverInputs) -> Retriever:
    """Random facts, which need no training."""
    from kgqa_core.retrieval.baselines.retriever import RandomFacts

    return RandomFacts(inputs.dkg, inputs.options.k, inputs.seed)


def open_oracle(inputs: RetrieverInputs) -> Retriever:
    """Facts of the gold relation paths, which need no training."""
    from kgqa_core.retrieval.baselines.retriever import Oracle

    return Oracle(inputs.dkg, inputs.options.k)


SPECS = (
    RetrieverSpec("random", "Random", 0, open_random, baseline=True, divisible=True, packages=("torch",)),
    RetrieverSpec("oracle", "Oracle", 8, open_oracle, baseline=True, divisible=True, packages=("torch",)),
)
