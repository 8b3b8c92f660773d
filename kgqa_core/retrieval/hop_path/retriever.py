"""The path retriever: predicted relation paths, grounded in the graph from the question's topics."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kgqa_core.config import RetrievalOptions
from kgqa_core.datasets.files.masking import is_mentioned, mask_topic, topic_names
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.paths import ReasoningPath
from kgqa_core.errors import ArtifactError, GraphMismatch
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn.encoders import TOPIC
from kgqa_core.retrieval.api import Retriever
from kgqa_core.retrieval.hop_path.classifier import RETRIEVAL_OPTIONS, PathModel, PathPrediction, load_model
from kgqa_core.retrieval.hop_path.sampling import GroundedPaths, ends_of, ground_all, sample, sample_sequential
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
    sampling: `sequential` as published, or `proportional`.  named_first: chains through an entity that the question
    names come first.
    """

    model: PathModel
    relations: NDArray[np.int64]
    beam: int
    reasoning_paths: int
    gold_hops: bool
    sampling: Literal["proportional", "sequential"] = "proportional"
    named_first: bool = True


def load(folder: Path, dkg: Dkg) -> OpenedPaths:
    """The path retriever stored in `folder`, opened on a graph; relations that the graph lacks are not predicted.

    Raises ArtifactError when the folder is damaged, GraphMismatch when the graph has none of the relations.
    """
    model, config = load_model(folder)
    how = config.get("retrieval")
    needed = {"beam", "reasoning_paths", "gold_hops"}  # models of earlier versions have no more
    if not isinstance(how, dict) or not needed <= how.keys() <= RETRIEVAL_OPTIONS:
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

    def __init__(self, dkg: Dkg, trained: OpenedPaths, options: RetrievalOptions, kg: Path | None = None) -> None:
        self.kg, self.forms = kg, dict[int, tuple[str, ...]]()
        self.dkg, self.trained, self.options = dkg, trained, options
        self.ids = dict(zip(trained.model.keys, trained.relations.tolist(), strict=True))
        trained.model.network.to("cpu")

    def retrieve(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Retrieved]:
        """Reasoning paths as facts, chain by chain, and ranked entities; none where a question has no topic."""
        retrieved: list[Retrieved] = []
        names = topic_names(self.kg, questions)
        for start in range(0, len(questions), BATCH):
            batch = questions[start : start + BATCH]
            predicted = self._predict(batch, names)
            grounded = [self._ground(*pair) for pair in zip(batch, predicted, strict=True)]
            if self.trained.named_first:
                self._learn_names({entity for grounding in grounded for entity in grounding.between()})
            for question, prediction, grounding in zip(batch, predicted, grounded, strict=True):
                retrieved.append(self._retrieved(question, prediction, grounding, names))
            monitor.progress(len(retrieved), len(questions), "questions")
        return retrieved

    def batch_starts(self, questions: Sequence[Question]) -> list[int]:
        """Indices of the questions that begin a batch of `retrieve`."""
        return list(range(0, len(questions), BATCH))

    def _predict(self, questions: Sequence[Question], names: dict[int, list[str]]) -> list[PathPrediction]:
        """Hop counts and relation paths of questions, the graph unseen but for its relations."""
        model, trained = self.trained.model, self.trained
        texts = [mask_topic(question, model.reader.topic_token, names) for question in questions]
        hops = [question.hops if trained.gold_hops else None for question in questions]
        return model.predict(texts, beam=trained.beam, hops=hops, known=trained.relations >= 0)

    def _ground(self, question: Question, prediction: PathPrediction) -> GroundedPaths:
        paths = [(tuple(self.ids[key] for key in path), score) for path, score in prediction.paths]
        most, budget = self.trained.reasoning_paths, self.options.edge_budget
        return ground_all(self.dkg, question.topic_entities, paths, most, budget)

    def _retrieved(
        self, question: Question, prediction: PathPrediction, grounded: GroundedPaths, names: dict[int, list[str]]
    ) -> Retrieved:
        rest = mask_topic(question, TOPIC, names)

        @cache
        def named(entity: int) -> int:
            forms = self.forms.get(entity, ())
            return max((len(form) for form in forms if is_mentioned(rest, form)), default=0)

        most = self.trained.reasoning_paths
        take = sample_sequential if self.trained.sampling == "sequential" else sample
        chains = take(grounded, most, named)
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
            forms = store.surface_forms(wanted)
        for entity in wanted:
            self.forms[entity] = tuple(form for form in forms.get(entity, ()) if len(form) > 1)

    def _facts(self, chains: Sequence[tuple[float, ReasoningPath]]) -> tuple[Fact, ...]:
        """The triples of chains, in order of chain and hop; one that stands in several chains stands in each."""
        edges = np.array([edge for _, chain in chains for edge in chain.edges], dtype=np.int64)
        triples, directions = self.dkg.triple_of(edges).tolist(), self.dkg.direction_of(edges).tolist()
        steps = [
            (score, path, hop) for path, (score, chain) in enumerate(chains) for hop in range(1, len(chain.edges) + 1)
        ]
        return tuple(
            Fact(rank, round(score, 6), hop, triple, direction, path)
            for rank, ((score, path, hop), triple, direction) in enumerate(zip(steps, triples, directions, strict=True))
        )
