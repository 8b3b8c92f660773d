"""The retrievers, by name: a new one is a line here.

Their order is that of lists in messages and of the retrievers that stand for a run, best known first.
"""

from __future__ import annotations

import importlib

from kgqa_core.errors import ConfigError, nearest
from kgqa_core.retrieval import topics
from kgqa_core.retrieval.api import Retriever, RetrieverInputs, RetrieverSpec
from kgqa_core.retrieval.baselines import spec as baselines
from kgqa_core.retrieval.hop_path import spec as hop_path
from kgqa_core.retrieval.kaping import spec as kaping
from kgqa_core.retrieval.rigel import spec as rigel


def _named(module: str) -> tuple[RetrieverSpec, ...]:
    """The records of a module of `papers`, which registers by its name: nothing of the product imports it."""
    specs: tuple[RetrieverSpec, ...] = importlib.import_module(module).SPECS
    return specs


RETRIEVERS: dict[str, RetrieverSpec] = {
    spec.name: spec
    for spec in (
        rigel.SPEC,
        hop_path.SPEC,
        *_named("kgqa_core.papers.peers.transfernet.spec"),
        kaping.SPEC,
        *_named("kgqa_core.papers.ltgen.relation_ranking.spec"),
        *baselines.SPECS,
        topics.SPEC,
    )
}
"""Every retriever, by name."""

TRAINED: dict[str, RetrieverSpec] = {name: spec for name, spec in RETRIEVERS.items() if spec.artifact is not None}
"""Retrievers that are trained, by name; several may share one artifact."""

TRAINED_KINDS: tuple[str, ...] = tuple(dict.fromkeys(spec.artifact for spec in TRAINED.values() if spec.artifact))
"""Kinds of the artifacts of trained retrievers."""


def retriever_spec(name: str) -> RetrieverSpec:
    """The retriever of a plain name, as the registry has it.  Raises ConfigError for an unknown one."""
    if name not in RETRIEVERS:
        raise ConfigError(f"retriever {name!r} is unknown{nearest(name, RETRIEVERS)}; known: {', '.join(RETRIEVERS)}")
    return RETRIEVERS[name]


def open_retriever(name: str, inputs: RetrieverInputs) -> Retriever:
    """The retriever of a name, opened once for all questions.

    Raises ConfigError for an unknown name, ArtifactError when what it needs is missing, GraphMismatch when it was
    trained for other relations.
    """
    return retriever_spec(name).open(inputs)


def trained_by(artifact: str) -> RetrieverSpec:
    """The first retriever whose training makes artifacts of a kind."""
    return next(spec for spec in TRAINED.values() if spec.artifact == artifact)
