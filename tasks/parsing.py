"""Stages of the semantic parsers: the questions they learn from, their training, and what they say of questions."""

from __future__ import annotations

from typing import Literal

from kgqa_core.config import DecodeOptions, Profile, RngOptions
from kgqa_core.store.artifacts import ArtifactRef
from kgqa_core.workspace import Workspace
from tasks.engine.context import Counts, folder
from tasks.engine.external_digests import encoder_digest
from tasks.engine.stage import stage


@stage("examples", packages=("duckdb", "numpy", "polars"))
def parsing_examples(
    workspace: Workspace, kg: ArtifactRef, questions: ArtifactRef, linked: ArtifactRef | None = None
) -> Counts:
    """Give each question its gold form and its topics, annotated or linked."""
    from kgqa_core.papers.grailqability.parsing.examples import examples

    return examples(workspace, kg=kg.folder, questions=questions.folder, linked=folder(linked))


def _rng_models(options: RngOptions) -> dict[str, str]:
    """Digests of the pretrained models that a ranker and its generator start from."""
    written = {"generator": encoder_digest(options.generator.model)} if options.generator.enabled else {}
    return {"encoder": encoder_digest(options.encoder)} | written


@stage(
    "parser",
    label=lambda call: "rank and generate",
    external=lambda call: _rng_models(call.options),
    packages=("torch", "transformers", "tokenizers", "numpy", "scipy"),
    tags=("gpu",),
)
def train_rng(workspace: Workspace, kg: ArtifactRef, examples: ArtifactRef, options: RngOptions, seed: int) -> Counts:
    """Train the ranker of enumerated forms (Ye et al. 2022)."""
    from kgqa_core.papers.grailqability.parsing.rng.train import train

    return train(workspace, kg=kg.folder, examples=examples.folder, options=options, seed=seed)


@stage(
    "parsed",
    label=lambda call: "rank and generate",
    packages=("torch", "transformers", "tokenizers", "numpy", "scipy"),
)
def parse_rng(
    workspace: Workspace,
    kg: ArtifactRef,
    examples: ArtifactRef,
    parser: ArtifactRef,
    options: RngOptions,
    splits: tuple[str, ...] = ("dev", "test"),
) -> Counts:
    """Enumerate, rank and run the forms of each question."""
    from kgqa_core.papers.grailqability.parsing.rng.parse import predict

    return predict(
        workspace, kg=kg.folder, examples=examples.folder, parser=parser.folder, options=options, splits=splits
    )


@stage(
    "parser",
    label=lambda call: "retrieve and decode",
    external=lambda call: {
        "encoder": encoder_digest(call.options.encoder), "model": encoder_digest(call.options.model)
    },
    packages=("torch", "transformers", "tokenizers"),
    tags=("gpu",),
)  # fmt: skip
def train_decode(
    workspace: Workspace, kg: ArtifactRef, examples: ArtifactRef, options: DecodeOptions, seed: int
) -> Counts:
    """Train the retriever of schema items and the decoder over what it retrieves (Chen et al. 2021)."""
    from kgqa_core.papers.grailqability.parsing.decode.train import train

    return train(workspace, kg=kg.folder, examples=examples.folder, options=options, seed=seed)


@stage(
    "parsed",
    label=lambda call: "retrieve and decode",
    packages=("torch", "transformers", "tokenizers"),
)
def parse_decode(
    workspace: Workspace,
    kg: ArtifactRef,
    examples: ArtifactRef,
    parser: ArtifactRef,
    options: DecodeOptions,
    splits: tuple[str, ...] = ("dev", "test"),
) -> Counts:
    """Retrieve schema items for each question, decode forms that fit the graph, and run them."""
    from kgqa_core.papers.grailqability.parsing.decode.parse import predict

    return predict(
        workspace, kg=kg.folder, examples=examples.folder, parser=parser.folder, options=options, splits=splits
    )


def train_and_parse(
    name: Literal["rng", "decode"], kg: ArtifactRef, examples: ArtifactRef, profile: Profile
) -> ArtifactRef:
    """What the parser `name`, trained on the examples of split train, says of those of dev and test."""
    if name == "rng":
        return parse_rng(kg, examples, train_rng(kg, examples, profile.parsing.rng, profile.seed), profile.parsing.rng)
    options = profile.parsing.decode
    return parse_decode(kg, examples, train_decode(kg, examples, options, profile.seed), options)
