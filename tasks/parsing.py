"""Stages of the semantic parsers: the questions they learn from, their training, and what they say of questions."""

from __future__ import annotations

from kgqa_core.config import DecodeOptions, ParsingOptions, Profile
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.external_digests import encoder_digest
from tasks.engine.stage import stage


@stage("examples", runs="kgqa_core.parsing.of_questions:examples", packages=("duckdb", "numpy", "polars"))
def parsing_examples(kg: ArtifactRef, questions: ArtifactRef, linked: ArtifactRef | None = None) -> ArtifactRef:
    """Give each question its gold form and its topics, annotated or linked."""
    raise AssertionError


def _rng_models(options: ParsingOptions) -> dict[str, str]:
    """Digests of the pretrained models that a ranker and its generator start from."""
    written = {"generator": encoder_digest(options.generator.model)} if options.generator.use else {}
    return {"encoder": encoder_digest(options.encoder)} | written


@stage(
    "parser",
    runs="kgqa_core.parsing.rng.train:train",
    label=lambda arguments: "rank and generate",
    outside=lambda arguments: _rng_models(arguments["options"]),
    packages=("torch", "transformers", "tokenizers", "numpy", "scipy"),
    tags=("gpu",),
)
def train_rng(kg: ArtifactRef, examples: ArtifactRef, options: ParsingOptions, seed: int) -> ArtifactRef:
    """Train the ranker of enumerated forms (Ye et al. 2022)."""
    raise AssertionError


@stage(
    "parsed",
    runs="kgqa_core.parsing.rng.parse:predict",
    label=lambda arguments: "rank and generate",
    packages=("torch", "transformers", "tokenizers", "numpy", "scipy"),
)
def parse_rng(
    kg: ArtifactRef,
    examples: ArtifactRef,
    parser: ArtifactRef,
    options: ParsingOptions,
    splits: tuple[str, ...] = ("dev", "test"),
) -> ArtifactRef:
    """Enumerate, rank and run the forms of each question."""
    raise AssertionError


@stage(
    "parser",
    runs="kgqa_core.parsing.decode.train:train",
    label=lambda arguments: "retrieve and decode",
    outside=lambda arguments: {
        "encoder": encoder_digest(arguments["options"].encoder), "model": encoder_digest(arguments["options"].model)
    },
    packages=("torch", "transformers", "tokenizers"),
    tags=("gpu",),
)  # fmt: skip
def train_decode(kg: ArtifactRef, examples: ArtifactRef, options: DecodeOptions, seed: int) -> ArtifactRef:
    """Train the retriever of schema items and the decoder over what it retrieves (Chen et al. 2021)."""
    raise AssertionError


@stage(
    "parsed",
    runs="kgqa_core.parsing.decode.parse:predict",
    label=lambda arguments: "retrieve and decode",
    packages=("torch", "transformers", "tokenizers"),
)
def parse_decode(
    kg: ArtifactRef,
    examples: ArtifactRef,
    parser: ArtifactRef,
    options: DecodeOptions,
    splits: tuple[str, ...] = ("dev", "test"),
) -> ArtifactRef:
    """Retrieve schema items for each question, decode forms that fit the graph, and run them."""
    raise AssertionError


def train_and_parse(name: str, kg: ArtifactRef, examples: ArtifactRef, profile: Profile) -> ArtifactRef:
    """What the parser `name`, trained on the examples of split train, says of those of dev and test."""
    if name == "rng":
        return parse_rng(kg, examples, train_rng(kg, examples, profile.parsing, profile.seed), profile.parsing)
    if name == "decode":
        options = profile.parsing.decode
        return parse_decode(kg, examples, train_decode(kg, examples, options, profile.seed), options)
    raise AssertionError(name)
