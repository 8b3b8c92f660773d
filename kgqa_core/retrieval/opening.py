"""One way to open a retriever by its name, for the stage that collects facts and for the system that is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.config import RetrievalOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import ArtifactError, ConfigError, nearest
from kgqa_core.retrieval.oracle import Oracle
from kgqa_core.retrieval.protocol import Retriever
from kgqa_core.retrieval.random_facts import RandomFacts
from kgqa_core.retrieval.text import topic_names
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
) -> Opener:
    """Loads what the retriever of a name needs, once for all questions.

    seed: of `random`.  retriever: the trained retriever, of `rigel` and `hop_path`.  kg: the graph store, for names of
    entities and triples.  cache: folder that keeps vectors of triples, for `kaping`.
    Raises ConfigError for an unknown name, ArtifactError when what it needs is missing, GraphMismatch when the
    retriever was trained for other relations.
    """
    if name not in _OPENERS:
        raise ConfigError(f"retriever {name!r} is unknown{nearest(name, _OPENERS)}; known: {', '.join(_OPENERS)}")
    return _OPENERS[name](Sources(dkg, options, seed, retriever, kg, cache))


def open_retriever(
    name: str,
    dkg: Dkg,
    options: RetrievalOptions,
    seed: int,
    questions: Sequence[Question],
    retriever: Path | None = None,
    kg: Path | None = None,
    cache: Path | None = None,
) -> Retriever:
    """The retriever of a name.  questions: those that will be asked, whose topics' names are looked up in `kg`.

    Raises what `make_opener` raises.
    """
    opener = make_opener(name, dkg, options, seed, retriever, kg, cache)
    return opener(topic_names(kg, questions) if name in TRAINED else {})


def _rigel(sources: Sources) -> Opener:
    folder = sources.trained("rigel")
    from kgqa_core.retrieval.rigel import load
    from kgqa_core.retrieval.rigel_retriever import RigelRetriever

    network = load(folder, sources.dkg)
    return lambda names: RigelRetriever(sources.dkg, network, sources.options, names)


def _hop_path(sources: Sources) -> Opener:
    folder = sources.trained("hop_path")
    from kgqa_core.retrieval.hop_path_retriever import HopPathRetriever, load

    classifiers = load(folder, sources.dkg)
    return lambda names: HopPathRetriever(sources.dkg, classifiers, sources.options, names, kg=sources.kg)


def _kaping(sources: Sources) -> Opener:
    from kgqa_core.retrieval.kaping import Kaping

    kaping = Kaping(sources.dkg, sources.options, sources.kg, sources.cache)
    return lambda names: kaping


_OPENERS: dict[str, Callable[[Sources], Opener]] = {
    "rigel": _rigel,
    "hop_path": _hop_path,
    "kaping": _kaping,
    "random": lambda sources: lambda names: RandomFacts(sources.dkg, sources.options.k, sources.seed),
    "oracle": lambda sources: lambda names: Oracle(sources.dkg, sources.options.k),
}
"""How each retriever is opened; those that need torch are imported only then."""
