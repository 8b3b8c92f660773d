"""Retrieval by relation ranking (Huang et al. 2024): the triples of a question's entities behind their best relations.

All triples of the topic entities, followed and against their direction → the relations of each entity are ranked → of
the best ones a random sample of triples each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kgqa_core.config import RelationRankingOptions, RetrievalOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.papers.ltgen.relation_ranking.ranker import RankedRelation, Ranker, RankingQuery
from kgqa_core.retrieval.api import Retriever
from kgqa_core.retrieval.relation_texts import relation_texts
from kgqa_core.types import INVERSE, Fact, Question, Retrieved

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class EntityRelations:
    """The directed relations of one entity, ascending by id.

    relation, first, count: int64 [n]; the edges of relation i are first[i] … first[i] + count[i] - 1.
    cut: edges of relations that were left out.
    """

    entity: int
    relation: IntArray
    first: IntArray
    count: IntArray
    cut: int = 0


def candidates(dkg: Dkg, entity: int, most: int) -> EntityRelations:
    """The relations that lead out of an entity and, as inverses, into it: at most `most`, those of most triples.

    Ties go to the smaller id.  Raises GraphMismatch for an entity that the graph has not.
    """
    starts, stops = dkg.row_bounds(np.array([entity], dtype=np.int64))
    start, stop = int(starts[0]), int(stops[0])
    row = dkg.rel[start:stop]
    relation, first, count = np.unique(row, return_index=True, return_counts=True)
    chosen = np.sort(np.argsort(-count, kind="stable")[:most])
    cut = len(row) - int(count[chosen].sum())
    return EntityRelations(entity, relation[chosen].astype(np.int64), start + first[chosen], count[chosen], cut)


def draw_edges(relations: EntityRelations, index: int, most: int, seed: int, question: str) -> IntArray:
    """At most `most` edges of one relation, ascending; which ones depends on seed, question, entity and relation."""
    first, count = int(relations.first[index]), int(relations.count[index])
    if count <= most:
        return first + np.arange(count, dtype=np.int64)
    named = f"{seed}\n{question}\n{relations.entity}\n{int(relations.relation[index])}"
    digest = hashlib.sha256(named.encode("utf-8", "surrogatepass")).digest()
    generator = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    return first + np.sort(generator.choice(count, size=most, replace=False)).astype(np.int64)


def directed_texts(dkg: Dkg) -> list[str]:
    """The words of the 2R directed relations; an inverse one says so by its prefix."""
    forward = relation_texts(dkg)
    return [*forward, *(INVERSE + text for text in forward)]


class RelationRanking(Retriever):
    """Keeps the best relations of every topic entity, and some of their triples.

    name: of the retriever, `rank_` and the ranker's.  kg: the graph store, for the names of topics; their keys serve
    without it.
    """

    ranks_pairs = True

    def __init__(
        self,
        dkg: Dkg,
        ranker: Ranker,
        ranking: RelationRankingOptions,
        options: RetrievalOptions,
        seed: int,
        kg: Path | None = None,
    ) -> None:
        self.name = f"rank_{ranker.name}"
        self.dkg, self.ranker, self.ranking, self.options, self.seed, self.kg = dkg, ranker, ranking, options, seed, kg
        self.texts = directed_texts(dkg)

    @property
    def counts(self) -> Mapping[str, int]:
        """The ranker's, added up over all questions."""
        return self.ranker.counts

    def retrieve(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Retrieved]:
        """Facts by falling score of their relation, and the entities that they lead to; none without a topic."""
        names = self._names(questions)
        near: dict[int, EntityRelations] = {}
        indices: list[tuple[int, EntityRelations]] = []
        queries: list[RankingQuery] = []
        for number, question in enumerate(questions):
            keys = dict(zip(question.topic_entities, question.topic_keys, strict=False))
            for entity in dict.fromkeys(question.topic_entities):
                if entity not in near:
                    near[entity] = candidates(self.dkg, entity, self.ranking.max_relations)
                texts = tuple(self.texts[relation] for relation in near[entity].relation.tolist())
                queries.append(RankingQuery(question.text, names.get(entity) or keys.get(entity, ""), texts))
                indices.append((number, near[entity]))
        rankings = self.ranker.rank(queries, self.ranking.relations, monitor)
        by_question: list[list[tuple[EntityRelations, list[RankedRelation]]]] = [[] for _ in questions]
        for (number, relations), ranking in zip(indices, rankings, strict=True):
            by_question[number].append((relations, ranking))
        return [self._retrieved(question, parts) for question, parts in zip(questions, by_question, strict=True)]

    def _retrieved(
        self, question: Question, parts: Sequence[tuple[EntityRelations, list[RankedRelation]]]
    ) -> Retrieved:
        ranked = sorted(
            ((-score, turn, rank, relations, index) for turn, (relations, ranking) in enumerate(parts)
             for rank, (index, score) in enumerate(ranking)),
            key=lambda item: item[:3],
        )  # fmt: skip
        topics = set(question.topic_entities)
        facts: dict[int, Fact] = {}
        entities: dict[int, float] = {}
        for score, _, _, relations, index in ranked:
            edges = draw_edges(relations, index, self.ranking.triples, self.seed, question.id)
            triples, directions = self.dkg.triple_of(edges).tolist(), self.dkg.direction_of(edges).tolist()
            for triple, direction, end in zip(triples, directions, self.dkg.tail[edges].tolist(), strict=True):
                facts.setdefault(triple, Fact(len(facts), -score, 1, triple, direction))
                if end not in topics:
                    entities.setdefault(end, -score)
        return Retrieved(
            question.id,
            tuple(facts.values()),
            tuple(list(entities.items())[: self.options.candidates]),
            sum(relations.cut for relations, _ in parts),
            pairs=tuple(
                (relations.entity, int(relations.relation[index]), -score) for score, _, _, relations, index in ranked
            ),
        )

    def _names(self, questions: Sequence[Question]) -> dict[int, str]:
        """Names of all topic entities; none without a graph store."""
        if self.kg is None:
            return {}
        with KgStore.open(self.kg) as store:
            return store.names(sorted({entity for question in questions for entity in question.topic_entities}))
