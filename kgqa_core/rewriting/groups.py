"""Facts as the groups that are put into words together: reasoning paths, or what is known of one entity."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import polars as pl

from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import ArtifactError, GraphMismatch
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import cvt_names, find_nameless
from kgqa_core.prompts import DESCRIBE, described_triples, rewrite_prompt, spaced_triples
from kgqa_core.store.tables import read_frame
from kgqa_core.types import Fact

Named = tuple[str, str, str]

MOST = 10
"""Triples of one group; longer ones are written in parts."""


@dataclass(frozen=True, slots=True)
class TripleGroup:
    """Triples of one prompt.  path: number of the reasoning path, -1 without one; named: by name, as stored."""

    path: int
    triples: tuple[int, ...]
    named: tuple[Named, ...]

    def prompt(self, language: str, wording: str = "rra2023") -> str:
        """The rewriter's prompt: T1, or with wording `mvp2022` what models of the MVP type read."""
        if wording == "mvp2022":
            return " ".join(DESCRIBE.replace("{triples}", described_triples(self.named)).split())
        return rewrite_prompt(spaced_triples(self.named), language)


@dataclass(frozen=True, slots=True)
class _Row:
    path: int
    triple: int
    start: int
    end: int


def read_groups(
    kg: Path, questions: Path, facts: Path, retriever: str, language: str | None
) -> list[tuple[str, str, list[TripleGroup]]]:
    """(question, language, groups) in order of question ids; a question without facts has no groups.

    Reasoning paths come first, by number, each from its start; a triple stands once in a path.  Then facts without path
    that are in none, those that start at one entity together, in the order of each entity's best fact; what hangs on a
    nameless node follows the fact that leads there.  Nameless nodes are CVT1, CVT2, … from the start of each path and
    entity.  language: of all prompts; each question's own when None.
    Raises ArtifactError when an artifact is missing or the facts are another retriever's, GraphMismatch when they were
    retrieved from another graph.
    """
    languages = {question.id: question.language for question in read_questions(questions)}
    rows = _read(facts, retriever)
    unknown = sorted(set(rows["question"].unique()).difference(languages))
    if unknown:
        raise ArtifactError(
            f"{facts} has facts for question {unknown[0]!r} and {len(unknown) - 1} others that {questions} has not; "
            "retrieve again for these questions"
        )
    with KgStore.open(kg) as store:
        names = _Names.of(store, rows["triple"].unique().sort().to_list())
    results: dict[str, list[TripleGroup]] = {}
    columns = rows.select("question", "path", "triple", "direction").iter_rows()
    for question, own in groupby(columns, itemgetter(0)):
        results[question] = names.grouped([(path, triple, direction) for _, path, triple, direction in own])
    return [(question, language or languages[question], results.get(question, [])) for question in sorted(languages)]


def group_facts(store: KgStore, facts: Sequence[Fact]) -> list[TripleGroup]:
    """The groups of one question's facts, as `read_groups` makes them.  Raises GraphMismatch for another graph's."""
    ordered = sorted(
        facts, key=lambda fact: (fact.path, fact.hop if fact.path >= 0 else 0, fact.rank, fact.triple, fact.direction)
    )
    names = _Names.of(store, sorted({fact.triple for fact in ordered}))
    return names.grouped([(fact.path, fact.triple, fact.direction) for fact in ordered])


@dataclass(frozen=True, slots=True)
class _Names:
    """Triples of a graph with the names of their ends.  nameless: ends that have none."""

    stored: Mapping[int, tuple[int, int, int]]
    entities: Mapping[int, str]
    relations: Sequence[str]
    nameless: Collection[int]

    @classmethod
    def of(cls, store: KgStore, triples: Sequence[int]) -> _Names:
        stored = store.triples(triples)
        missing = [triple for triple in triples if triple not in stored]
        if missing:
            raise GraphMismatch(
                f"triple {missing[0]} and {len(missing) - 1} others are not in {store.path}; "
                "the facts come from another graph: retrieve again"
            )
        ids = {end for head, _, tail in stored.values() for end in (head, tail)}
        return cls(stored, store.names(ids), store.relation_names(), find_nameless(store, ids))

    def grouped(self, facts: Sequence[tuple[int, int, int]]) -> list[TripleGroup]:
        """Groups of (path, triple, direction) in the order of `_read`."""
        walked = []
        for path, triple, direction in facts:
            head, _, tail = self.stored[triple]
            walked.append(_Row(path, triple, *((head, tail) if direction >= 0 else (tail, head))))
        groups = []
        for path, parts in [*_paths(walked), *((-1, parts) for parts in _stars(walked, self.nameless))]:
            ends = [end for part in parts for triple in part for end in self.stored[triple][::2]]
            called = cvt_names(ends, self.nameless)
            groups += [
                TripleGroup(path, tuple(part), tuple(self._named(triple, called) for triple in part)) for part in parts
            ]
        return groups

    def _named(self, triple: int, called: Mapping[int, str]) -> Named:
        head, relation, tail = self.stored[triple]
        first, last = (called.get(end, self.entities[end]) for end in (head, tail))
        return first, self.relations[relation], last


def _paths(rows: Sequence[_Row]) -> list[tuple[int, list[list[int]]]]:
    """Triples of each reasoning path, in parts."""
    paths: dict[int, dict[int, None]] = {}
    for row in rows:
        if row.path >= 0:
            paths.setdefault(row.path, {})[row.triple] = None
    return [(path, _packed([[triple] for triple in paths[path]])) for path in sorted(paths)]


def _stars(rows: Sequence[_Row], nameless: Collection[int]) -> list[list[list[int]]]:
    """Triples without path by the entity that they start at, in parts that keep a nameless node's triples together."""
    on_paths = {row.triple for row in rows if row.path >= 0}
    free = [row for row in rows if row.path < 0 and row.triple not in on_paths]
    leads: dict[int, int] = {}
    for row in free:
        if row.end in nameless:
            leads.setdefault(row.end, row.start)
    stars: dict[int, dict[tuple[str, int], dict[int, None]]] = {}
    seen: set[int] = set()
    for row in free:
        if row.triple in seen:
            continue
        seen.add(row.triple)
        root, cluster = _root(row, leads, nameless)
        stars.setdefault(root, {}).setdefault(cluster, {})[row.triple] = None
    return [_packed([list(triples) for triples in clusters.values()]) for clusters in stars.values()]


def _root(row: _Row, leads: Mapping[int, int], nameless: Collection[int]) -> tuple[int, tuple[str, int]]:
    """The entity that a fact belongs to, and what it is written with: a nameless node, or itself."""
    cluster = ("node", row.end) if row.end in nameless else ("triple", row.triple)
    node = row.start
    passed: set[int] = set()
    while node in nameless and node in leads and node not in passed:
        passed.add(node)
        cluster = ("node", node)
        node = leads[node]
    return node, cluster


def _packed(clusters: Sequence[list[int]]) -> list[list[int]]:
    """Clusters one after the other in parts of at most MOST; a cluster is cut only if it is longer than that."""
    parts: list[list[int]] = []
    for cluster in clusters:
        for start in range(0, len(cluster), MOST):
            piece = cluster[start : start + MOST]
            if parts and len(parts[-1]) + len(piece) <= MOST:
                parts[-1].extend(piece)
            else:
                parts.append(list(piece))
    return parts


def _read(facts: Path, retriever: str) -> pl.DataFrame:
    """Facts in order of question, path, hop and rank."""
    path = facts / "facts.parquet"
    columns = ["question", "retriever", "rank", "path", "hop", "triple", "direction"]
    rows = read_frame(path, columns)
    others = sorted(set(rows["retriever"].unique()).difference([retriever]))
    if others:
        raise ArtifactError(f"{facts} holds facts of {', '.join(others)}, not of {retriever}")
    on_path = pl.when(pl.col("path") >= 0).then(pl.col("hop")).otherwise(0)
    return rows.sort("question", "path", on_path, "rank", "triple", "direction")
