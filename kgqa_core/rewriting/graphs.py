"""Gold subgraphs of questions (Wu et al. 2023, section 3.2): the triples on the grounding of their annotated relation
paths, else those of their SPARQL query (`query_graphs`), else those of a path that is searched.

The corpus is written from those of training questions, drawn in equal shares of relation paths.  The same function
makes the graphs of test questions, so that what a corpus shares with them can be counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from random import Random
from typing import TypeVar

from kgqa_core.datasets.derived.gold_paths import GoldPath, gold_paths
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.paths import ReasoningPath, ground, relation_ids
from kgqa_core.errors import QuestionFileError
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import cvt_names, find_nameless
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.prompts import spaced_triples
from kgqa_core.rewriting.query_graphs import FORM, QUERY, QueryGraphs, relations_text
from kgqa_core.types import Question

SEARCHED = 1
"""Gold paths that are searched for a question without annotated ones: the one with the best answer F1."""

CHAINS = 2_000
"""Chains of a path that are looked at, in order of entity ids; those that lead to answers come first."""

Named = tuple[str, str, str]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GoldGraph:
    """The gold subgraph of a question.

    relation_path: keys as `r_1 | r_2`, several paths (or the relations of a query) joined by ` & `.  origin: of
    paths `annotated` or `searched`, else `form` or `query`.  triples: ids, in path order.  named: the same by name as
    the graph stores them, nameless nodes as CVT1, CVT2, …
    """

    question: Question
    relation_path: str
    hops: int
    origin: str
    triples: tuple[int, ...]
    named: tuple[Named, ...] = ()

    @property
    def text(self) -> str:
        """Triple-form text as the published corpora write it."""
        return " ".join(spaced_triples(self.named).split())

    @property
    def identity(self) -> str:
        """What two equal sets of triples have in common."""
        return " ".join(map(str, sorted(self.triples)))


@dataclass(frozen=True, slots=True)
class SampledGraphs:
    """Gold graphs in order of question id, and why training questions were left out."""

    graphs: tuple[GoldGraph, ...]
    counts: dict[str, int]


def draw(
    store: KgStore, dkg: Dkg, questions: Sequence[Question], *, size: int, max_triples: int, seed: int,
    monitor: Monitor = QUIET,
) -> SampledGraphs:  # fmt: skip
    """Gold graphs of at most `size` training questions, as many of each relation path as there are.

    Relation paths (of questions without them the relations of their query) take turns in sorted order; the questions
    of one are shuffled with the seed.  A question has no turn without a gold path or query, without a named answer, or
    when its answers are entities and none is in its graph.  counts: train, without_path, without_answer, unreached (of
    those that had their turn), relation_paths; and where there are some, by_form and by_query (graphs of this origin),
    and not_executed, reasons of queries that gave none, whose questions have a searched path instead.
    Raises QuestionFileError when no training question has a gold graph.
    """
    train = sorted((question for question in questions if question.split == "train"), key=lambda each: each.id)
    counts = {"train": len(train), "without_path": 0, "without_answer": 0, "unreached": 0}
    strata: dict[str, list[tuple[Question, list[GoldPath]]]] = {}
    for number, question in enumerate(train, start=1):
        if not any(names for names in question.answer_names):
            counts["without_answer"] += 1
            continue
        paths = gold_paths(question, dkg, searched=0)
        text = path_text(paths) or relations_text(question)
        if not text:
            paths = gold_paths(question, dkg, searched=SEARCHED)
            text = path_text(paths)
        if text:
            strata.setdefault(text, []).append((question, paths))
        else:
            counts["without_path"] += 1
        if number % 500 == 0:
            monitor.progress(number, len(train), "gold paths")
    counts["relation_paths"] = len(strata)
    for text, members in strata.items():
        Random(f"corpus/{seed}/{text}").shuffle(members)
    results: list[GoldGraph] = []
    with QueryGraphs(store) as queries:
        for number, (question, paths) in enumerate(_in_turn([strata[text] for text in sorted(strata)]), start=1):
            if len(results) == size:
                break
            graph = _gold_graph(question, dkg, paths, queries, max_triples)
            if graph is None:
                counts["unreached"] += 1
            else:
                results.append(graph)
            if number % 100 == 0:
                monitor.progress(len(results), size, "gold graphs")
        origins = Counter(f"by_{graph.origin}" for graph in results if graph.origin in (FORM, QUERY))
        counts |= dict(sorted(origins.items()))
        counts |= {f"not_executed: {reason}": n for reason, n in sorted(queries.reasons.items())}
    if not results:
        raise QuestionFileError(
            f"no gold graph for any of {len(train)} training questions ({counts['without_path']} have no gold path, "
            f"{counts['without_answer']} no answer, {counts['unreached']} reach none); give relation paths with the "
            "questions, or import a corpus with corpus.alpaca_file"
        )
    results.sort(key=lambda graph: graph.question.id)
    return SampledGraphs(tuple(name_graphs(store, results)), counts)


def _gold_graph(
    question: Question, dkg: Dkg, paths: Sequence[GoldPath], queries: QueryGraphs, max_triples: int,
    reach: bool = True,
) -> GoldGraph | None:  # fmt: skip
    """The gold graph of a question by its annotated paths, else its query, else a searched path; None without any, and,
    with `reach`, where the answers are entities and none is in it."""
    reach = reach and bool(question.answers)
    if not paths:
        own = queries.find(question, max_triples)
        if own is not None and (own.reached or not reach):
            text = relations_text(question)
            return GoldGraph(question, text, question.hops or text.count(" & ") + 1, own.origin, own.triples)
        paths = gold_paths(question, dkg, searched=SEARCHED)
    triples, reached = ground_gold(question, dkg, paths, max_triples) if paths else ((), False)
    if not triples or (reach and not reached):
        return None
    hops = max(len(path.relations) for path in paths)
    return GoldGraph(question, path_text(paths), hops, paths[0].origin, triples)


def path_text(paths: Iterable[GoldPath]) -> str:
    """The relation paths of a question as one text: `r_1 | r_2`, different ones joined by ` & `."""
    return " & ".join(dict.fromkeys(" | ".join(path.relations) for path in paths))


def ground_gold(
    question: Question, dkg: Dkg, paths: Sequence[GoldPath], max_triples: int
) -> tuple[tuple[int, ...], bool]:
    """Triple ids on the gold paths of a question, and whether they reach an answer.

    Whole chains, those that lead to answers first and the paths taking turns, until the next one does not fit into
    `max_triples`; the first chain is there whatever its length.
    """
    answers = set(question.answers)
    lists: list[list[ReasoningPath]] = []
    for path in paths:
        relations = relation_ids(dkg, path.relations)
        if relations is not None:
            chains, _ = ground(dkg, path.topic, relations, limit=CHAINS, avoid=question.topic_entities)
            lists.append(chains)
    good = _in_turn([[each for each in chains if each.entities[-1] in answers] for chains in lists])
    rest = _in_turn([[each for each in chains if each.entities[-1] not in answers] for chains in lists])
    chosen: dict[int, None] = {}
    reached = False
    for each in chain(good, rest):
        fresh = [edge for edge in dkg.triple_of(each.edges).tolist() if edge not in chosen]
        if chosen and len(chosen) + len(fresh) > max_triples:
            break
        chosen.update(dict.fromkeys(fresh))
        reached = reached or each.entities[-1] in answers
    return tuple(chosen), reached


def name_graphs(store: KgStore, graphs: Sequence[GoldGraph]) -> list[GoldGraph]:
    """The graphs with their triples by name, nameless nodes numbered from CVT1 in each."""
    stored = store.triples({triple for graph in graphs for triple in graph.triples})
    ids = {end for head, _, tail in stored.values() for end in (head, tail)}
    names, relations = store.names(ids), store.relation_names()
    nameless = find_nameless(store, ids)
    results = []
    for graph in graphs:
        rows = [stored[triple] for triple in graph.triples]
        called = cvt_names((end for head, _, tail in rows for end in (head, tail)), nameless)
        named = tuple(
            (called.get(head, names[head]), relations[relation], called.get(tail, names[tail]))
            for head, relation, tail in rows
        )
        results.append(replace(graph, named=named))
    return results


def shared_with(
    questions: Iterable[Question], store: KgStore, dkg: Dkg, identities: Collection[str], max_triples: int
) -> tuple[int, int]:
    """How many of some graphs are also the gold graph of a test question, and of how many."""
    wanted = set(identities)
    hit: set[str] = set()
    touched = 0
    with QueryGraphs(store) as queries:
        for question in questions:
            if question.split != "test":
                continue
            paths = gold_paths(question, dkg, searched=0)
            graph = _gold_graph(question, dkg, paths, queries, max_triples, reach=False)
            if graph is not None and graph.identity in wanted:
                hit.add(graph.identity)
                touched += 1
    return len(hit), touched


def _in_turn(lists: Sequence[Sequence[T]]) -> Iterator[T]:
    """The first of each list, then the second of each, …"""
    for index in range(max(map(len, lists), default=0)):
        yield from (each[index] for each in lists if index < len(each))
