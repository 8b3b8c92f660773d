"""The baselines in the registry."""

from __future__ import annotations

from kgqa_core.errors import ArtifactError
from kgqa_core.retrieval.api import Retriever, RetrieverInputs, RetrieverSpec


def open_random(inputs: RetrieverInputs) -> Retriever:
    """Random facts, which need no training."""
    from kgqa_core.retrieval.baselines.retriever import RandomFacts

    return RandomFacts(inputs.dkg, inputs.options.k, inputs.seed)


def open_oracle(inputs: RetrieverInputs) -> Retriever:
    """Facts of the gold relation paths, which need no training."""
    from kgqa_core.retrieval.baselines.retriever import Oracle

    return Oracle(inputs.dkg, inputs.options.k)


def open_frequent(inputs: RetrieverInputs) -> Retriever:
    """Facts of the relation path that is most frequent among the training questions.

    Raises ArtifactError without questions, as for a question that somebody asks.
    """
    from kgqa_core.datasets.files.question import read_questions
    from kgqa_core.retrieval.baselines.retriever import FrequentRelation

    if inputs.questions is None:
        raise ArtifactError("retriever 'frequent' counts the relations of training questions, and there are none here")
    return FrequentRelation(inputs.dkg, inputs.options.k, read_questions(inputs.questions))


SPECS = (
    RetrieverSpec("random", "Random", -1, open_random, baseline=True, blind=True, divisible=True, packages=("torch",)),
    RetrieverSpec(
        "frequent",
        "Most frequent relation",
        0,
        open_frequent,
        baseline=True,
        blind=True,
        divisible=True,
        packages=("torch",),
    ),
    RetrieverSpec("oracle", "Oracle", 8, open_oracle, baseline=True, divisible=True, packages=("torch",)),
)
