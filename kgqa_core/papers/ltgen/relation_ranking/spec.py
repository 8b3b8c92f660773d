"""The retrievers that rank relations, in the registry: one for each ranker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kgqa_core.config import LlmOptions, RelationRankingOptions
from kgqa_core.retrieval.api import ExternalInput, Retriever, RetrieverInputs, RetrieverSpec, TrainingInputs
from kgqa_core.workspace import Workspace

if TYPE_CHECKING:
    from kgqa_core.papers.ltgen.relation_ranking.ranker import Ranker

ARTIFACT = "relation_ranker"


def train_rankers(workspace: Workspace, inputs: TrainingInputs) -> Mapping[str, Any]:
    """Train the rankers of relations, with AMR graphs where there are any (Huang et al. 2024)."""
    from kgqa_core.papers.ltgen.relation_ranking.train import train

    return train(workspace, inputs)


def llm_ranker(inputs: RetrieverInputs, options: RelationRankingOptions) -> Ranker:
    """The ranker that queries a language model."""
    from kgqa_core.llm.cache import open_cache
    from kgqa_core.llm.factory import load_model
    from kgqa_core.papers.ltgen.relation_ranking.llm import LlmRanker

    model = inputs.model or load_model(options.model, inputs.llm or LlmOptions(), budget=inputs.budget)
    return LlmRanker(model, options.max_new_tokens, open_cache(inputs.cache))


def embedding_ranker(inputs: RetrieverInputs, options: RelationRankingOptions) -> Ranker:
    """The ranker that compares sentence vectors."""
    from kgqa_core.nn.sentence_encoder import SentenceEncoder
    from kgqa_core.papers.ltgen.relation_ranking.ranker import EmbeddingRanker

    return EmbeddingRanker(SentenceEncoder(options.sentence_encoder, section="relation_ranking"), inputs.cache)


def trained_ranker(name: str) -> Callable[[RetrieverInputs, RelationRankingOptions], Ranker]:
    """Opens the trained ranker `pair` or `amr`."""

    def open_ranker(inputs: RetrieverInputs, options: RelationRankingOptions) -> Ranker:
        folder = inputs.trained_folder(ARTIFACT, ARTIFACT)
        from kgqa_core.papers.ltgen.relation_ranking.trained import open_trained

        return open_trained(folder, name, options, inputs.cache, inputs.monitor)

    return open_ranker


def _amr(options: RelationRankingOptions) -> list[ExternalInput]:
    inputs = []
    if options.amr_parser:
        inputs.append(ExternalInput("amr_parser", "file", "amr_parser", options.amr_parser.partition(":")[2], True))
    if options.amr_graphs:
        inputs.append(ExternalInput("amr_graphs", "file", "amr_graphs", options.amr_graphs, True))
    return inputs


def _trains_on(options: RelationRankingOptions) -> list[ExternalInput]:
    sets = [
        ExternalInput(f"training_set_{number}", "file", "training_sets", name)
        for number, name in enumerate(options.training_sets)
    ]
    return [ExternalInput("encoder", "encoder", "encoder", options.encoder), *sets, *_amr(options)]


def _spec(
    name: str,
    label: str,
    place: int,
    ranker: Callable[[RetrieverInputs, RelationRankingOptions], Ranker],
    reads: Callable[[RelationRankingOptions], Sequence[ExternalInput]],
    *,
    pays: bool = False,
    trained: bool = False,
) -> RetrieverSpec:
    def open_ranking(inputs: RetrieverInputs) -> Retriever:
        from kgqa_core.papers.ltgen.relation_ranking.retriever import RelationRanking

        options = inputs.section or RelationRankingOptions()
        opened = ranker(inputs, options)
        return RelationRanking(inputs.dkg, opened, options, inputs.options, inputs.seed, inputs.kg)

    spec = RetrieverSpec(
        name=name,
        label=label,
        place=place,
        open=open_ranking,
        section="relation_ranking",
        limit="relation_ranking.max_relations",
        reads=reads,
        pays=pays,
        packages=("torch", "torch_geometric", "transformers", "tokenizers", "openai"),
        extra=lambda options: "amr" if name == "rank_amr" or (trained and _amr(options)) else None,
    )
    if not trained:
        return spec
    return replace(
        spec,
        artifact=ARTIFACT,
        artifact_label="Relation rankers",
        train=train_rankers,
        trains_on=_trains_on,
        training_label=lambda options: options.encoder,
        training_packages=("torch", "torch_geometric", "transformers", "tokenizers"),
        learns_from=lambda options: () if options.training_sets else ("relation_paths", "gold_triples"),
    )


SPECS = (
    _spec(
        "rank_llm",
        "LLM ranking",
        4,
        llm_ranker,
        lambda options: (ExternalInput("model", "model", "model", options.model),),
        pays=True,
    ),
    _spec(
        "rank_embedding",
        "Embedding ranking",
        5,
        embedding_ranker,
        lambda options: (ExternalInput("encoder", "encoder", "sentence_encoder", options.sentence_encoder),),
    ),
    _spec("rank_pair", "Pair ranking", 6, trained_ranker("pair"), lambda options: (), trained=True),
    _spec("rank_amr", "AMR ranking", 7, trained_ranker("amr"), _amr, trained=True),
)
