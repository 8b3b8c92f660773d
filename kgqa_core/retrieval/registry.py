"""One way to open a retriever by its name, for the stage that collects facts and for the system that is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.config import LlmOptions, RelationRankingOptions, RetrievalOptions
from kgqa_core.datasets.masking import topic_names
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import ArtifactError, ConfigError, nearest
from kgqa_core.llm.budget import Budget
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.retrieval.api import Retriever
from kgqa_core.retrieval.baselines import Oracle, RandomFacts
from kgqa_core.retrieval.relation_ranking.ranker import Ranker
from kgqa_core.types import Question

TRAINED = ("rigel", "hop_path")
"""Retrievers that are trained; they read questions without the names of their topics, and so ask for these names."""

Opener = Callable[[dict[int, list[str]]], Retriever]
"""Makes a retriever for questions whose topic entities have these surface forms; what is loaded is loaded before."""


@dataclass(frozen=True)
class Sources:
    """What a retriever may be opened with; see `make_opener`."""

    dkg: Dkg
    options: RetrievalOptions
    seed: int
    retriever: Path | None
    kg: Path | None
    cache: Path | None
    ranking: RelationRankingOptions
    llm: LlmOptions
    budget: Budget | None
    monitor: Monitor

    def trained(self, name: str) -> Path:
        """The folder of the trained retriever.  Raises ArtifactError without one."""
        if self.retriever is None:
            raise ArtifactError(f"retriever {name!r} needs a trained retriever; run the {name} stage first")
        return self.retriever


def make_opener(
    name: str,
    dkg: Dkg,
    options: RetrievalOptions,
    seed: int,
    retriever: Path | None = None,
    kg: Path | None = None,
    cache: Path | None = None,
    ranking: RelationRankingOptions | None = None,
    llm: LlmOptions | None = None,
    budget: Budget | None = None,
    monitor: Monitor = QUIET,
) -> Opener:
    """Loads what the retriever of a name needs, once for all questions.

    seed: of `random` and of what rankings draw.  retriever: the trained retriever, of `rigel` and `hop_path`, and the
    trained rankers, of `rank_pair` and `rank_amr`.  kg: the graph store, for names of entities and triples.
    cache: folder that keeps vectors, of `kaping` and `rank_embedding`, what a language model said, and AMR graphs.
    ranking, llm, budget: of `rank_…`; the defaults where absent.  monitor: is told what a ranker has to do without.
    Raises ConfigError for an unknown name, ArtifactError when what it needs is missing, GraphMismatch when the
    retriever was trained for other relations.
    """
    if name not in _OPENERS:
        raise ConfigError(f"retriever {name!r} is unknown{nearest(name, _OPENERS)}; known: {', '.join(_OPENERS)}")
    sources = Sources(
        dkg, options, seed, retriever, kg, cache, ranking or RelationRankingOptions(), llm or LlmOptions(), budget,
        monitor,
    )  # fmt: skip
    return _OPENERS[name](sources)


def open_retriever(
    name: str,
    dkg: Dkg,
    options: RetrievalOptions,
    seed: int,
    questions: Sequence[Question],
    retriever: Path | None = None,
    kg: Path | None = None,
    cache: Path | None = None,
    ranking: RelationRankingOptions | None = None,
    llm: LlmOptions | None = None,
    budget: Budget | None = None,
    monitor: Monitor = QUIET,
) -> Retriever:
    """The retriever of a name.  questions: those that will be asked, whose topics' names are looked up in `kg`.

    Raises what `make_opener` raises.
    """
    opener = make_opener(name, dkg, options, seed, retriever, kg, cache, ranking, llm, budget, monitor)
    return opener(topic_names(kg, questions) if name in TRAINED else {})


def _rigel(sources: Sources) -> Opener:
    folder = sources.trained("rigel")
    from kgqa_core.retrieval.rigel.network import load
    from kgqa_core.retrieval.rigel.retriever import RigelRetriever

    network = load(folder, sources.dkg)
    return lambda names: RigelRetriever(sources.dkg, network, sources.options, names, kg=sources.kg)


def _hop_path(sources: Sources) -> Opener:
    folder = sources.trained("hop_path")
    from kgqa_core.retrieval.hop_path.retriever import HopPathRetriever, load

    classifiers = load(folder, sources.dkg)
    return lambda names: HopPathRetriever(sources.dkg, classifiers, sources.options, names, kg=sources.kg)


def _kaping(sources: Sources) -> Opener:
    from kgqa_core.retrieval.kaping.retriever import Kaping

    kaping = Kaping(sources.dkg, sources.options, sources.kg, sources.cache)
    return lambda names: kaping


def _rank_llm(sources: Sources) -> Opener:
    from kgqa_core.llm.cache import open_cache
    from kgqa_core.llm.factory import load_model
    from kgqa_core.retrieval.relation_ranking.llm import LlmRanker

    model = load_model(sources.ranking.model, sources.llm, budget=sources.budget)
    return _ranking(sources, LlmRanker(model, sources.ranking.max_new_tokens, open_cache(sources.cache)))


def _rank_embedding(sources: Sources) -> Opener:
    from kgqa_core.nn.sentence_encoder import SentenceEncoder
    from kgqa_core.retrieval.relation_ranking.ranker import EmbeddingRanker

    encoder = SentenceEncoder(sources.ranking.sentence_encoder, section="relation_ranking")
    return _ranking(sources, EmbeddingRanker(encoder, sources.cache))


def _rank_trained(name: str) -> Callable[[Sources], Opener]:
    def opener(sources: Sources) -> Opener:
        from kgqa_core.retrieval.relation_ranking.trained import open_trained

        folder = sources.trained("relation_ranker")
        return _ranking(sources, open_trained(folder, name, sources.ranking, sources.cache, sources.monitor))

    return opener


def _ranking(sources: Sources, ranker: Ranker) -> Opener:
    from kgqa_core.retrieval.relation_ranking.retriever import RelationRanking

    found = RelationRanking(sources.dkg, ranker, sources.ranking, sources.options, sources.seed, sources.kg)
    return lambda names: found


_OPENERS: dict[str, Callable[[Sources], Opener]] = {
    "rigel": _rigel,
    "hop_path": _hop_path,
    "kaping": _kaping,
    "rank_llm": _rank_llm,
    "rank_embedding": _rank_embedding,
    "rank_pair": _rank_trained("pair"),
    "rank_amr": _rank_trained("amr"),
    "random": lambda sources: lambda names: RandomFacts(sources.dkg, sources.options.k, sources.seed),
    "oracle": lambda sources: lambda names: Oracle(sources.dkg, sources.options.k),
}
"""How each retriever is opened; those that need torch are imported only then."""
