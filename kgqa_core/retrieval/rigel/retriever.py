"""Rigel as a retriever: the heaviest triples of each hop, and the entities ranked by Σ a_t x_t."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgqa_core.config import RetrievalOptions
from kgqa_core.datasets.files.masking import topic_names
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights, trace
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.retrieval.api import LEAST_SCORE, Retriever, ranked
from kgqa_core.retrieval.rigel.network import Trained, plan_batch
from kgqa_core.retrieval.rigel.questions import entity_descriptions, prepare
from kgqa_core.retrieval.rigel.walk import RelationPlan, Walk, WalkOptions, propagate
from kgqa_core.types import Fact, Question, Retrieved

EPSILON = 1e-5
"""Relations that weigh less are not followed.  Light ones still are: where the heavy path ends in nothing, as it does
in a graph with missing triples, they are what is left to rank."""
BATCH = 64
MIN_HOP_ATTENTION = 0.05
"""Facts of trailing hops whose joint attention is below this are left out."""
POOL = 500
"""Heaviest edges of a hop among which equal weights are decided by what fits together."""


class RigelRetriever(Retriever):
    """Retrieves with a trained network, Rigel's or another that makes plans of relations.

    kg: the graph store, for the names under which topics are mentioned, which are masked (topic keys alone without it),
    and for types and descriptions of candidates, where the network weights its start.
    """

    def __init__(
        self, dkg: Dkg, trained: Trained, options: RetrievalOptions, kg: Path | None = None, name: str = "rigel"
    ) -> None:
        self.dkg, self.trained, self.options, self.kg, self.name = dkg, trained, options, kg, name
        self.candidates = trained.extension.candidates if trained.extension.soft_start else 0
        trained.network.to("cpu")

    def retrieve(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Retrieved]:
        """Facts hop by hop and ranked entities of each question; empty where it has no topic entity."""
        results: dict[int, Retrieved] = {}
        known = [number for number, question in enumerate(questions) if question.topic_entities]
        names, texts = topic_names(self.kg, questions), None
        if self.trained.extension.soft_start:
            texts = entity_descriptions(self.kg, [questions[number] for number in known])
        for start in range(0, len(known), BATCH):
            numbers = known[start : start + BATCH]
            batch = self._batch([questions[number] for number in numbers], names, texts)
            for number, retrieved in zip(numbers, batch, strict=True):
                results[number] = retrieved
            monitor.progress(len(results), len(known), "questions")
        return [results.get(number) or Retrieved(question.id) for number, question in enumerate(questions)]

    def batch_starts(self, questions: Sequence[Question]) -> list[int]:
        """Indices of the questions that begin a batch of `retrieve`."""
        known = [number for number, question in enumerate(questions) if question.topic_entities]
        return [0, *known[BATCH::BATCH]]

    def _batch(
        self, questions: Sequence[Question], names: dict[int, list[str]], texts: dict[int, str] | None
    ) -> list[Retrieved]:
        network, reader, extension = self.trained.network, self.trained.reader, self.trained.extension
        network.eval()
        prepared, _ = prepare(questions, reader, names, self.dkg, extension.apart, texts)
        with torch.inference_mode():
            queries = plan_batch(network, reader, prepared, torch.arange(len(questions)), torch.device("cpu"))
            options = WalkOptions(self.trained.exclude_topic, EPSILON, self.options.edge_budget, self.trained.clamp)
            walked, scores = propagate(self.dkg, queries, extension.intersect, options)
            legs = [1] * len(questions) if queries.ptr is None else queries.ptr.diff().tolist()
            owner = [number for number, count in enumerate(legs) for _ in range(count)]
            facts = self._facts([questions[number] for number in owner], owner, legs, queries.plan, walked, scores)
        entities = scores.top(self.options.candidates)
        truncated = (
            walked.truncated
            if queries.ptr is None
            else torch.zeros(len(questions), dtype=torch.int64).index_add(0, torch.tensor(owner), walked.truncated)
        )
        attention = [[0.0] * network.hops for _ in questions]
        facts_of: list[list[Fact]] = [[] for _ in questions]
        for row, number in enumerate(owner):
            facts_of[number] += facts[row]
            shares = zip(attention[number], queries.plan.attention[row].tolist(), strict=True)
            attention[number] = [sum_ + hop_share / legs[number] for sum_, hop_share in shares]
        return [
            Retrieved(
                question.id,
                ranked(facts_of[row]),
                tuple((entity, round(weight, 6)) for entity, weight in entities[row]),
                int(truncated[row]),
                tuple(round(weight, 6) for weight in attention[row]),
            )
            for row, question in enumerate(questions)
        ]

    def _facts(
        self,
        questions: Sequence[Question],
        owner: Sequence[int],
        legs: Sequence[int],
        plan: RelationPlan,
        walked: Walk,
        ranking: EntityWeights,
    ) -> list[list[Fact]]:
        """The k heaviest triples of each hop up to the last one, for each leg; legs of a question share its k.

        questions, owner: of each leg, and its index in `ranking`, the entities' scores.  legs: of each question.

        Many weigh the same.  Of those, the hop that counts most takes the ones that lead to the best entities, each
        entity once before any twice; the hops before it take those that lead there, the hops after it those that go on.
        """
        last = [_last_hop(weights) for weights in plan.attention.tolist()]
        main = [min(int(hop) + 1, final) for hop, final in zip(plan.attention.argmax(1), last, strict=True)]
        traced = [
            trace(
                self.dkg,
                walked.sets[hop],
                plan.relations[hop],
                POOL,
                epsilon=LEAST_SCORE,
                edge_budget=self.options.edge_budget,
            )
            for hop in range(max(last))
        ]
        scores = [
            (ranking.entity[start:stop].numpy(), ranking.weight[start:stop].numpy())
            for start, stop in zip(ranking.ptr[:-1].tolist(), ranking.ptr[1:].tolist(), strict=True)
        ]
        every = [_hops(self.dkg, edges) for edges in traced]
        facts: list[list[Fact]] = []
        for row, question in enumerate(questions):
            topics = list(question.topic_entities) if self.trained.exclude_topic else []
            hops = [every[hop][row].tidy(topics) for hop in range(last[row])]
            centre = main[row] - 1
            k = -(-self.options.k // legs[owner[row]])
            hops[centre] = hops[centre].best(k, *_by_entity(hops[centre], *scores[owner[row]]))
            for hop in range(centre - 1, -1, -1):
                apart = ~np.isin(hops[hop].target, hops[hop + 1].source)
                hops[hop] = hops[hop].best(k, apart)
            for hop in range(centre + 1, last[row]):
                apart = ~np.isin(hops[hop].source, hops[hop - 1].target)
                hops[hop] = hops[hop].best(k, apart)
            facts.append([fact for number, hop in enumerate(hops, start=1) for fact in hop.facts(number)])
        return facts


@dataclass(frozen=True)
class _Hop:
    """Edges of one question's hop, heaviest first: where from, where to, triple, direction, weight; each [n]."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    triple: NDArray[np.int64]
    direction: NDArray[np.int8]
    weight: NDArray[np.float64]

    def take(self, indices: Any) -> _Hop:
        """Some of the edges."""
        return _Hop(
            self.source[indices],
            self.target[indices],
            self.triple[indices],
            self.direction[indices],
            self.weight[indices],
        )

    def tidy(self, unwanted: Sequence[int]) -> _Hop:
        """Without edges to unwanted entities; of a triple that is followed in both directions the heavier one."""
        rest = self.take(~np.isin(self.target, unwanted)) if unwanted else self
        return rest.take(np.unique(rest.triple, return_index=True)[1])

    def best(self, k: int, *ties: NDArray[Any]) -> _Hop:
        """The k heaviest; equal weights (to three decimals) by the ties, smallest first, then by triple."""
        return self.take(np.lexsort((self.triple, *reversed(ties), -self.weight.round(3)))[:k])

    def facts(self, hop: int) -> list[Fact]:
        """The edges as facts, not ranked yet; path counts above 1 score 1."""
        columns = zip(self.weight.tolist(), self.triple.tolist(), self.direction.tolist(), strict=True)
        return [Fact(0, round(min(1.0, weight), 6), hop, triple, direction) for weight, triple, direction in columns]


def _hops(dkg: Dkg, traced: Sequence[tuple[NDArray[np.int64], NDArray[Any]]]) -> list[_Hop]:
    """Traced edges of each question; looked up together because single look-ups cost more than the rest."""
    edges = np.concatenate([edges for edges, _ in traced])
    weight = np.concatenate([weights for _, weights in traced]).astype(np.float64)
    target = dkg.tail[edges].astype(np.int64)
    joined = _Hop(dkg.source_of(edges), target, dkg.triple_of(edges), dkg.direction_of(edges), weight)
    ends = np.cumsum([len(edges) for edges, _ in traced]).tolist()
    rows = [joined.take(slice(start, stop)) for start, stop in zip([0, *ends], ends, strict=False)]
    return [row.take(row.weight >= LEAST_SCORE) for row in rows]


def _by_entity(hop: _Hop, entity: NDArray[np.int64], score: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """For each edge: how many edges before it lead to the same entity, and minus that entity's score."""
    order = np.argsort(hop.target, kind="stable")
    _, start, count = np.unique(hop.target[order], return_index=True, return_counts=True)
    repeat = np.empty(len(order), dtype=np.int64)
    repeat[order] = np.arange(len(order)) - np.repeat(start, count)
    index = np.searchsorted(entity, hop.target)
    return repeat, -score[np.minimum(index, len(score) - 1)].round(6) if len(score) else np.zeros(len(order))


def _last_hop(attention: Sequence[float]) -> int:
    """The last hop that counts: trailing hops are dropped while their joint attention is below MIN_HOP_ATTENTION."""
    rest = 0.0
    for hop in range(len(attention), 1, -1):
        rest += attention[hop - 1]
        if rest >= MIN_HOP_ATTENTION:
            return hop
    return 1
