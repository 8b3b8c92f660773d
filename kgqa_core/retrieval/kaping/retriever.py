"""KAPING (Baek et al. 2023): the triples near the topic entities that are most similar to the question.

Question and triples are encoded by one sentence encoder and compared by cosine; nothing is trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kgqa_core.config import KapingOptions, RetrievalOptions
from kgqa_core.dkg.csr import Dkg, join_ranges
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import find_nameless, name_triples, triple_text
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn.sentence_encoder import CachedEncoder, SentenceEncoder
from kgqa_core.nn.vectors import ONE, Vectors, dots, open_vectors
from kgqa_core.retrieval.api import Retriever
from kgqa_core.store.shards import LOADING
from kgqa_core.types import Fact, Question, Retrieved

IntArray = NDArray[np.int64]
NAMELESS = "CVT"
"""What a text calls any node without name, so that it depends on the triple alone."""


@dataclass(frozen=True)
class Neighbourhood:
    """Edges near some topics, by hop and then by triple; a triple has one, or two that lead to either end.

    triple, target: int64 [n].  hop, direction: int8 [n].  cut: edges or triples left out.
    """

    triple: IntArray
    target: IntArray
    hop: NDArray[np.int8]
    direction: NDArray[np.int8]
    cut: int

    @property
    def triples(self) -> IntArray:
        """The distinct triples, ascending."""
        return np.unique(self.triple)


def neighbourhood(dkg: Dkg, topics: Sequence[int], *, hops: int, most: int, edge_budget: int) -> Neighbourhood:
    """The triples of one hop from the topics, in both directions, then those of two, at most `most`.

    Within a hop every directed relation keeps its triple of smallest id before any keeps its second, and so on, so that
    a relation that leads to thousands crowds out no other.  A triple counts at its nearest hop.  `edge_budget` edges a
    hop are read, those of the smallest entities first; what was not read counts as cut, edge by edge.
    """
    sources = np.unique(np.asarray(topics, dtype=np.int64))
    frontier, seen = sources, np.empty(0, dtype=np.int64)
    parts: list[tuple[IntArray, IntArray, NDArray[np.int8], NDArray[np.int8]]] = []
    cut = 0
    for hop in range(1, hops + 1):
        edges, unread = _rows(dkg, frontier, edge_budget if len(seen) < most else 0)
        triple = dkg.triple_of(edges)
        edges, triple = _take(edges, triple, ~np.isin(triple, seen))
        target = dkg.tail[edges].astype(np.int64)
        selected, missed = _spread(triple, dkg.rel[edges], most - len(seen))
        cut += unread + missed
        frontier = np.setdiff1d(target, sources)
        direction = dkg.direction_of(edges)
        order = np.lexsort((-direction, triple))
        order = order[np.isin(triple[order], selected)]
        part = triple[order], target[order], np.full(len(order), hop, dtype=np.int8), direction[order]
        parts.append(part)
        seen = np.union1d(seen, selected)
    triple, target, hop_of, direction = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Neighbourhood(triple, target, hop_of, direction, cut)


def triple_sentences(store: KgStore, triples: Sequence[int]) -> list[str]:
    """Each triple as the encoder reads it.  Raises GraphMismatch for an id that the graph has not."""
    names = name_triples(store, triples)
    ends = store.triples(triples)
    nameless = find_nameless(store, {end for head, _, tail in ends.values() for end in (head, tail)})
    texts = []
    for triple in triples:
        (head, _, tail), (subject, relation, value) = ends[triple], names[triple]
        texts.append(
            triple_sentence(
                NAMELESS if head in nameless else subject, relation, NAMELESS if tail in nameless else value
            )
        )
    return texts


def triple_sentence(head: str, relation: str, tail: str) -> str:
    """One triple for a sentence encoder, in brackets as KAPING writes it, underscores read as blanks.

    With MiniLM, brackets have an answer among ten facts for 0.84 of 250 dev questions of ZJQA, bare words for 0.82.

    >>> triple_sentence("Paris", "capital_of", "France")
    '(Paris, capital of, France)'
    """
    return triple_text(head, relation.replace("_", " "), tail)


def _spread(triple: IntArray, relation: NDArray[np.unsignedinteger], most: int) -> tuple[IntArray, int]:
    """At most so many distinct triples, ascending, the relations taking turns; and how many were left out."""
    order = np.lexsort((triple, relation))
    _, first, count = np.unique(relation[order], return_index=True, return_counts=True)
    turn = np.empty(len(order), dtype=np.int64)
    turn[order] = np.arange(len(order)) - np.repeat(first, count)
    by_turn = triple[np.lexsort((triple, turn))]
    distinct, index = np.unique(by_turn, return_index=True)
    selected = by_turn[np.sort(index)[:most]]
    return np.sort(selected), len(distinct) - len(selected)


def _rows(dkg: Dkg, entities: IntArray, budget: int) -> tuple[IntArray, int]:
    """Edges out of some entities, at most `budget`, and how many were left out."""
    starts, stops = dkg.row_bounds(entities)
    degrees = stops - starts
    before = np.cumsum(degrees) - degrees
    counts = np.clip(budget - before, 0, degrees)
    return join_ranges(starts, starts + counts), int(degrees.sum() - counts.sum())


def _take(edges: IntArray, triple: IntArray, mask: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    return edges[mask], triple[mask]


CHUNK = 50_000
"""Triples of neighbourhoods that are compared at once; their vectors lie in memory."""
HELD = 150_000
"""Triples whose vectors are held in memory for the questions that follow."""
UNREADABLE = 0.2
"""Share of unknown tokens in the questions from which on a note says so."""


class Kaping(Retriever):
    """Ranks triples of one and two hops by their similarity to the question, k in all.

    kg: the graph store, which names the triples.  cache: folder that keeps vectors for all runs; None keeps none.
    Raises ArtifactError without a graph store, ModelError when the encoder is none.
    """

    name = "kaping"

    def __init__(
        self, dkg: Dkg, kaping: KapingOptions, options: RetrievalOptions, kg: Path | None, cache: Path | None = None
    ) -> None:
        if kg is None:
            raise ArtifactError("retriever 'kaping' reads the names of triples; pass the graph store as `kg`")
        self.dkg, self.kaping, self.options, self.kg, self.cache = dkg, kaping, options, kg, cache

    @cached_property
    def _encoder(self) -> SentenceEncoder:
        """What encodes questions and triples: read once, for its weights are hashed."""
        with LOADING:
            return SentenceEncoder(self.kaping.encoder)

    def retrieve(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Retrieved]:
        """k facts by falling similarity and ranked entities of each question; empty where it has no topic entity.

        An entity counts as its best triple does, from which it is the end that lies away from the topic.
        """
        retrieved: dict[int, Retrieved] = {}
        groups: dict[tuple[int, ...], list[int]] = {}
        for number, question in enumerate(questions):
            if question.topic_entities:
                groups.setdefault(tuple(sorted(set(question.topic_entities))), []).append(number)
        known = sum(map(len, groups.values()))
        if not known:
            return [Retrieved(question.id) for question in questions]
        encoder = self._encoder
        texts = sorted({questions[number].text for numbers in groups.values() for number in numbers})
        unknown = encoder.unknown_share(texts)
        if unknown > UNREADABLE:
            monitor.note(
                f"encoder {self.kaping.encoder!r} does not know {unknown:.0%} of the questions' tokens; "
                "set kaping.encoder to one for their language"
            )
        with open_vectors(self.cache, encoder.digest, encoder.width) as store, KgStore.open(self.kg) as graph:
            cached = CachedEncoder(encoder, store)
            question_vectors = dict(zip(texts, cached.vectors(texts, monitor), strict=True))
            triple_vectors = _TripleVectors(graph, cached)
            for chunk in self._chunks(sorted(groups)):
                vectors = triple_vectors.vectors(np.unique(np.concatenate([near.triple for _, near in chunk])), monitor)
                for topics, near in chunk:
                    numbers = groups[topics]
                    columns = np.stack([question_vectors[questions[number].text] for number in numbers])
                    scores = dots(vectors.of(near.triples), columns)
                    for number, column in zip(numbers, scores.T, strict=True):
                        retrieved[number] = self._ranked(questions[number].id, topics, near, column)
                monitor.progress(len(retrieved), known, "questions")
        return [retrieved.get(number) or Retrieved(question.id) for number, question in enumerate(questions)]

    def _chunks(self, topics: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[tuple[int, ...], Neighbourhood]]]:
        """Neighbourhoods in order of topics, some `CHUNK` triples at a time."""
        chunk: list[tuple[tuple[int, ...], Neighbourhood]] = []
        size = 0
        for entities in topics:
            near = neighbourhood(
                self.dkg, entities, hops=self.kaping.hops, most=self.kaping.max_triples,
                edge_budget=self.options.edge_budget,
            )  # fmt: skip
            if chunk and size + len(near.triple) > CHUNK:
                yield chunk
                chunk, size = [], 0
            chunk.append((entities, near))
            size += len(near.triple)
        if chunk:
            yield chunk

    def _ranked(
        self, question: str, topics: tuple[int, ...], near: Neighbourhood, score: NDArray[np.int64]
    ) -> Retrieved:
        """The best triples and entities.  score: of near.triples, int64; ties go to the smaller id."""
        triples = near.triples
        best = np.lexsort((triples, -score))[: self.options.k]
        # The first edge of a triple goes along it where both directions do.
        _, first = np.unique(near.triple, return_index=True)
        facts = tuple(
            Fact(rank, _cosine(score[index]), int(near.hop[first[index]]), int(triples[index]), int(direction))
            for rank, (index, direction) in enumerate(zip(best, near.direction[first[best]], strict=True))
        )
        away = ~np.isin(near.target, topics)
        target, weight = near.target[away], score[np.searchsorted(triples, near.triple[away])]
        order = np.lexsort((target, -weight))
        _, top = np.unique(target[order], return_index=True)
        best_edges = order[np.sort(top)][: self.options.candidates]
        entities = tuple((int(target[index]), _cosine(weight[index])) for index in best_edges)
        return Retrieved(question, facts, entities, near.cut)


class _VectorTable:
    """Vectors of triples, looked up by id."""

    def __init__(self, triples: NDArray[np.int64], rows: Vectors) -> None:
        self.triples, self.rows = triples, rows

    def of(self, triples: NDArray[np.int64]) -> Vectors:
        """The vectors of some triples of the table, int16 [n, width]."""
        return self.rows[np.searchsorted(self.triples, triples)]


class _TripleVectors:
    """Vectors of a graph's triples; those of the last chunks stay at hand."""

    def __init__(self, graph: KgStore, encoder: CachedEncoder) -> None:
        self.graph, self.encoder = graph, encoder
        self.held = _VectorTable(np.empty(0, dtype=np.int64), np.empty((0, encoder.encoder.width), dtype=np.int16))

    def vectors(self, triples: NDArray[np.int64], monitor: Monitor) -> _VectorTable:
        """A table that has all of some ascending triples."""
        missing = np.setdiff1d(triples, self.held.triples, assume_unique=True)
        if len(self.held.triples) + len(missing) > HELD:
            rest = np.intersect1d(self.held.triples, triples, assume_unique=True)
            self.held = _VectorTable(rest, self.held.of(rest))
        if len(missing):
            texts = triple_sentences(self.graph, missing.tolist())
            distinct = list(dict.fromkeys(texts))
            index_of = {text: index for index, text in enumerate(distinct)}
            new = self.encoder.vectors(distinct, monitor)[[index_of[text] for text in texts]]
            joined = np.concatenate([self.held.triples, missing])
            order = np.argsort(joined)
            self.held = _VectorTable(joined[order], np.concatenate([self.held.rows, new])[order])
        return self.held


def _cosine(dot: np.int64) -> float:
    """A dot product in fixed point as a score in [0, 1]; what points away from the question scores 0."""
    return round(min(1.0, max(0.0, int(dot) / ONE**2)), 6)
