"""The path retriever: predicted relation paths, grounded in the graph from the question's topics."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from kgqa_core.config import RetrievalOptions
from kgqa_core.datasets.masking import is_mentioned, mask_topic, topic_names
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.paths import ReasoningPath, ground, spread
from kgqa_core.errors import ArtifactError, GraphMismatch
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn.encoders import TOPIC
from kgqa_core.retrieval.api import LEAST_SCORE, Retriever
from kgqa_core.retrieval.hop_path.classifier import PathModel, PathPrediction, load_model
from kgqa_core.types import Fact, Question, Retrieved

BATCH = 256
"""Questions whose paths are predicted at once; equal wordings are encoded once."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenedPaths:
    """Classifiers opened on a graph.

    relations: directed relation id of each class, -1 where the graph has none.
    beam: relations that continue each partial path.  reasoning_paths: chains returned for a question.
    gold_hops: take the number of hops from the question where it has one.
    """

    model: PathModel
    relations: NDArray[np.int64]
    beam: int
    reasoning_paths: int
    gold_hops: bool


def load(folder: Path, dkg: Dkg) -> OpenedPaths:
    """The path retriever stored in `folder`, opened on a graph; relations that the graph lacks are not predicted.

    Raises ArtifactError when the folder is damaged, GraphMismatch when the graph has none of the relations.
    """
    model, config = load_model(folder)
    how = config.get("retrieval")
    if not isinstance(how, dict) or how.keys() != {"beam", "reasoning_paths", "gold_hops"}:
        raise ArtifactError(f"{folder / 'config.json'} does not say how to retrieve; train the path retriever again")
    known = dkg.relation_ids
    relations = np.array([known.get(key, -1) for key in model.keys], dtype=np.int64)
    missing = [key for key, relation in zip(model.keys, relations.tolist(), strict=True) if relation < 0]
    if len(missing) == len(relations):
        raise GraphMismatch(
            f"the path retriever in {folder} knows {len(missing)} relations ({', '.join(missing[:3])}, …), and this "
            "graph has none of them; train it on this graph"
        )
    if missing:
        logger.warning("%d relations of training are not in this graph: %s", len(missing), ", ".join(missing[:5]))
    return OpenedPaths(model, relations, **how)


class HopPathRetriever(Retriever):
    """Retrieves reasoning paths with trained classifiers.

    kg: the graph store, for the names under which topics are mentioned, which are masked (topic keys alone without it),
    and for those of entities between topic and end; without it none counts as named.
    """

    name = "hop_path"
    predicts_paths = True

    def __init__(
        self,
        dkg: Dkg,
        trained: OpenedPaths,
        options: RetrievalOptions,
        kg: Path | None = None,
        device: torch.device | None = None,
    ) -> None:
        self.kg, self.forms = kg, dict[int, tuple[str, ...]]()
        self.dkg, self.trained, self.options = dkg, trained, options
        self.names: dict[int, list[str]] = {}
        self.device = device or torch.device("cpu")
        self.ids = dict(zip(trained.model.keys, trained.relations.tolist(), strict=True))
        trained.model.network.to(self.device)

    def retrieve(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Retrieved]:
        """Reasoning paths as facts, chain by chain, and ranked entities; none where a question has no topic."""
        found: list[Retrieved] = []
        self.names = topic_names(self.kg, questions)
        for start in range(0, len(questions), BATCH):
            own = questions[start : start + BATCH]
            predicted = self.predict(own)
            grounded = [self._ground(question, prediction) for question, prediction in zip(own, predicted, strict=True)]
            self._learn_names({entity for one in grounded for entity in one.between()})
            for question, prediction, one in zip(own, predicted, grounded, strict=True):
                found.append(self._retrieved(question, prediction, one))
            monitor.progress(len(found), len(questions), "questions")
        return found

    def batch_starts(self, questions: Sequence[Question]) -> list[int]:
        """Places of questions at which a batch of `retrieve` begins."""
        return list(range(0, len(questions), BATCH))

    def predict(self, questions: Sequence[Question]) -> list[PathPrediction]:
        """Hop counts and relation paths of questions, the graph unseen but for its relations."""
        model, trained = self.trained.model, self.trained
        texts = [mask_topic(question, model.reader.topic_token, self.names) for question in questions]
        hops = [question.hops if trained.gold_hops else None for question in questions]
        return model.predict(texts, beam=trained.beam, hops=hops, known=trained.relations >= 0, device=self.device)

    def _ground(self, question: Question, prediction: PathPrediction) -> GroundedPaths:
        paths = [(tuple(self.ids[key] for key in path), score) for path, score in prediction.paths]
        most, budget = self.trained.reasoning_paths, self.options.edge_budget
        return ground_all(self.dkg, question.topic_entities, paths, most, budget)

    def _retrieved(self, question: Question, prediction: PathPrediction, grounded: GroundedPaths) -> Retrieved:
        rest = mask_topic(question, TOPIC, self.names)

        @cache
        def named(entity: int) -> int:
            forms = self.forms.get(entity, ())
            return max((len(form) for form in forms if is_mentioned(rest, form)), default=0)

        chains = sample(grounded, self.trained.reasoning_paths, named)
        entities = ends_of(self.dkg, grounded, self.options.candidates, self.options.edge_budget, named)
        return Retrieved(
            question.id,
            self._facts([(grounded.paths[number][1], chain) for number, chain in chains]),
            tuple((entity, round(score, 6)) for entity, score in entities),
            grounded.cut,
            prediction.hop_probabilities,
            tuple((path, round(score, 6)) for path, score in prediction.paths),
        )

    def _learn_names(self, entities: set[int]) -> None:
        """Looks up the names of entities, those of two characters and more, that are not known yet."""
        wanted = sorted(entities - self.forms.keys())
        if self.kg is None or not wanted:
            return
        with KgStore.open(self.kg) as store:
            found = store.surface_forms(wanted)
        for entity in wanted:
            self.forms[entity] = tuple(form for form in found.get(entity, ()) if len(form) > 1)

    def _facts(self, chains: Sequence[tuple[float, ReasoningPath]]) -> tuple[Fact, ...]:
        """The triples of chains, in order of chain and hop; one that stands in several chains stands in each."""
        edges = np.array([edge for _, chain in chains for edge in chain.edges], dtype=np.int64)
        triples, directions = self.dkg.triple_of(edges).tolist(), self.dkg.direction_of(edges).tolist()
        places = [
            (score, path, hop) for path, (score, chain) in enumerate(chains) for hop in range(1, len(chain.edges) + 1)
        ]
        return tuple(
            Fact(rank, round(score, 6), hop, triple, direction, path)
            for rank, ((score, path, hop), triple, direction) in enumerate(
                zip(places, triples, directions, strict=True)
            )
        )


POOL = 1_000
"""Chains of one topic and relation path among which is chosen, the first ones."""
Paths = Sequence[tuple[tuple[int, ...], float]]
"""Relation ids and score, best first."""


@dataclass(frozen=True)
class GroundedPaths:
    """Chains of relation paths from the topics of a question.

    chains[i][j]: of the ith path from the jth topic, in order of entity ids.  cut: edges that were cut.
    """

    topics: tuple[int, ...]
    paths: Paths
    chains: tuple[tuple[tuple[ReasoningPath, ...], ...], ...]
    cut: int

    def between(self) -> set[int]:
        """Entities within chains, neither topic nor end, of paths that have more chains than one."""
        return {
            entity
            for own in self.chains
            if sum(map(len, own)) > 1
            for chains in own
            for chain in chains
            for entity in chain.entities[1:-1]
        }


def ground_all(dkg: Dkg, topics: Sequence[int], paths: Paths, most: int, budget: int) -> GroundedPaths:
    """Grounds the paths, best first, that can have one of `most` places.  budget: edges for one path and topic."""
    distinct = tuple(dict.fromkeys(topics))
    place_scores: list[float] = []
    chains: list[tuple[tuple[ReasoningPath, ...], ...]] = []
    cut = 0
    for relations, score in paths:
        if len(place_scores) >= most and sorted(place_scores, reverse=True)[most - 1] >= score:
            break
        limit = POOL if len(distinct) > 1 or len(relations) > 1 else most
        own = []
        for topic in distinct:
            found, missed = ground(dkg, topic, relations, limit=max(limit, most), avoid=distinct, budget=budget)
            own.append(tuple(found))
            cut += missed
        chains.append(tuple(own))
        place_scores += [score / (rank + 1) for rank in range(min(most, sum(map(len, own))))]
    return GroundedPaths(distinct, paths, tuple(chains), cut)


def sample(found: GroundedPaths, most: int, named: Callable[[int], int]) -> list[tuple[int, ReasoningPath]]:
    """(number of its relation path, chain) of up to `most` chains, best path first.

    named: length of the longest name of an entity that stands in the question, 0 for none.
    """
    places = [
        (-found.paths[number][1] / (rank + 1), number, rank, chain)
        for number, own in enumerate(found.chains)
        for rank, chain in enumerate(_ordered(own, found.topics, named)[:most])
    ]
    worthy = [place for place in places if found.paths[place[1]][1] >= LEAST_SCORE]
    chosen = sorted(worthy or places, key=lambda place: place[:3])[:most]
    return [(number, chain) for _, number, _, chain in sorted(chosen, key=lambda place: place[1:3])]


def ends_of(
    dkg: Dkg, found: GroundedPaths, most: int, budget: int, named: Callable[[int], int]
) -> list[tuple[int, float]]:
    """The entities that the paths lead to with their best path's score, at most `most`.

    The best path's come first; of one path those that more topics reach, then those behind an entity that the question
    names, then those of more chains, then by id.
    """
    ranked: dict[int, float] = {}
    for number, (relations, score) in enumerate(found.paths):
        if len(ranked) >= most:
            break
        reached: Counter[int] = Counter()
        ways: Counter[int] = Counter()
        for topic in found.topics:
            entities, chains, _ = spread(dkg, topic, relations, avoid=found.topics, budget=budget)
            reached.update(entities.tolist())
            ways.update(dict(zip(entities.tolist(), chains.tolist(), strict=True)))
        behind: dict[int, int] = {}
        for own in found.chains[number] if number < len(found.chains) else ():
            for chain in own:
                end = chain.entities[-1]
                behind[end] = max(behind.get(end, 0), _longest(chain, named))
        order = sorted(reached, key=lambda end: (-reached[end], -behind.get(end, 0), -ways[end], end))
        for entity in order:
            ranked.setdefault(entity, score)
    return list(ranked.items())[:most]


def _ordered(
    own: Sequence[Sequence[ReasoningPath]], topics: Sequence[int], named: Callable[[int], int]
) -> list[ReasoningPath]:
    """All chains of one relation path, the best first."""
    shared = Counter(end for chains in own for end in _ends(chains))
    inner = set(topics)

    def worth(chain: ReasoningPath) -> tuple[int, int]:
        end = chain.entities[-1]
        return -(shared[end] + (end in inner)), -_longest(chain, named)

    turns = zip_longest(*(sorted(chains, key=worth) for chains in own))
    return sorted((chain for turn in turns for chain in turn if chain is not None), key=worth)


def _longest(chain: ReasoningPath, named: Callable[[int], int]) -> int:
    return max((named(entity) for entity in chain.entities[1:-1]), default=0)


def _ends(chains: Iterable[ReasoningPath]) -> set[int]:
    return {chain.entities[-1] for chain in chains}
