"""Stage `collect`: what a retriever finds for the dev and test questions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import RetrievalOptions, RetrieverName
from kgqa_core.datasets.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import ArtifactError, ConfigError, nearest
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.retrieval.oracle import Oracle
from kgqa_core.retrieval.protocol import Retriever
from kgqa_core.retrieval.random_facts import RandomFacts
from kgqa_core.types import Question, Retrieved

SPLITS_COLLECTED = ("dev", "test")
"""Training questions are not retrieved for: nothing downstream reads them yet, and they are the most."""

Paths = Mapping[str, Sequence[tuple[tuple[str, ...], float]]]
"""Question id → predicted relation paths as keys, with their scores, best first."""


@dataclass(frozen=True)
class Wanted:
    """What a retriever may be opened with; see `collect`.  questions: those that will be asked."""

    dkg: Dkg
    options: RetrievalOptions
    seed: int
    questions: Sequence[Question]
    retriever: Path | None
    kg: Path | None
    cache: Path | None

    def trained(self, name: str) -> Path:
        """The folder of the trained retriever.  Raises ArtifactError without one."""
        if self.retriever is None:
            raise ArtifactError(f"retriever {name!r} needs a trained retriever; run the {name} stage first")
        return self.retriever

    def topic_names(self) -> dict[int, list[str]]:
        """Surface forms of the questions' topic entities; empty without a graph store."""
        from kgqa_core.retrieval.text import topic_names

        return topic_names(self.kg, self.questions)


def collect(
    out: Path,
    *,
    dkg: Path,
    questions: Path,
    name: RetrieverName,
    options: RetrievalOptions,
    seed: int,
    retriever: Path | None = None,
    kg: Path | None = None,
    monitor: Monitor = QUIET,
    work: Path | None = None,
    cache: Path | None = None,
) -> dict[str, Any]:
    """Writes facts.parquet, entities.parquet, facts_meta.parquet and meta.json, and returns counts.

    Retrievers that predict relation paths write paths.parquet too.
    retriever: the trained retriever, of `rigel` and `hop_path`.  kg: the graph store, where training had it too and for
    the names that `kaping` reads.  cache: folder that keeps vectors of triples for all runs; else `work` keeps them for
    this stage.
    Raises GraphMismatch when the retriever was trained for other relations, ArtifactError when something is missing.
    """
    graph = Dkg.open(dkg)
    asked = [question for question in read_questions(questions) if question.split in SPLITS_COLLECTED]
    opened = open_retriever(name, graph, options, seed, asked, retriever, kg, cache or work)
    found = opened.retrieve(asked, monitor)
    write_retrieved(out, name, found)
    counts = summary(asked, found) | dict(getattr(opened, "counts", {}))
    paths: Paths | None = getattr(opened, "paths", None)
    if paths is not None:
        write_paths(out, paths)
        counts["with_paths"] = sum(bool(own) for own in paths.values())
    if counts["truncated_questions"]:
        monitor.note(
            f"{_LIMITS.get(name, _EDGES).format(options=options)} cut {counts['truncated_questions']} questions short "
            f"({counts['truncated_edges']} edges); raise it to follow them all"
        )
    (out / "meta.json").write_text(json.dumps(counts, sort_keys=True, indent=1), encoding="utf-8")
    return counts


def open_retriever(
    name: RetrieverName,
    dkg: Dkg,
    options: RetrievalOptions,
    seed: int,
    questions: Sequence[Question],
    retriever: Path | None = None,
    kg: Path | None = None,
    cache: Path | None = None,
) -> Retriever:
    """The retriever of a name.  questions: those that will be asked, whose topics' names are looked up in `kg`.

    Raises ConfigError for an unknown name, ArtifactError when what it needs is missing.
    """
    if name not in _OPEN:
        raise ConfigError(f"retriever {name!r} is unknown{nearest(name, _OPEN)}; known: {', '.join(_OPEN)}")
    return _OPEN[name](Wanted(dkg, options, seed, questions, retriever, kg, cache))


def write_retrieved(out: Path, name: str, found: Sequence[Retrieved]) -> None:
    """Three tables, rows in order of question id and rank."""
    rows = sorted(found, key=lambda retrieved: retrieved.question)
    facts = [
        (row.question, name, fact.rank, fact.score, fact.path, fact.hop, fact.triple, fact.direction)
        for row in rows
        for fact in row.facts
    ]
    entities = [
        (row.question, name, rank, entity, score) for row in rows for rank, (entity, score) in enumerate(row.entities)
    ]
    meta = [(row.question, row.truncated, list(row.hop_attention)) for row in rows]
    common = {"question": pl.String, "retriever": pl.String, "rank": pl.Int32}
    fact_columns = {"score": pl.Float64, "path": pl.Int32, "hop": pl.Int32, "triple": pl.Int64, "direction": pl.Int8}
    _write(out / "facts.parquet", facts, common | fact_columns)
    _write(out / "entities.parquet", entities, common | {"entity": pl.Int64, "score": pl.Float64})
    columns = {"question": pl.String, "truncated": pl.Int64, "hop_attention": pl.List(pl.Float64)}
    _write(out / "facts_meta.parquet", meta, columns)


def write_paths(out: Path, paths: Paths) -> None:
    """One row for each predicted relation path, in order of question id and rank; score: the model's probability."""
    rows = [
        (question, rank, len(path), list(path), score)
        for question, own in sorted(paths.items())
        for rank, (path, score) in enumerate(own)
    ]
    columns = {"question": pl.String, "rank": pl.Int32, "hops": pl.Int32, "path": pl.List(pl.String)}
    _write(out / "paths.parquet", rows, columns | {"score": pl.Float64})


def summary(questions: Sequence[Question], found: Sequence[Retrieved]) -> dict[str, Any]:
    """Counts for the log: questions, facts, questions without facts or cut short, and hits@1 over all of a split."""
    best = {row.question: row.entities[0][0] for row in found if row.entities}
    hits = {}
    for split in SPLITS_COLLECTED:
        own = [question for question in questions if question.split == split]
        if own:
            hits[split] = round(sum(best.get(question.id) in question.answers for question in own) / len(own), 6)
    return {
        "questions": len(found),
        "facts": sum(len(row.facts) for row in found),
        "without_facts": sum(not row.facts for row in found),
        "truncated_questions": sum(row.truncated > 0 for row in found),
        "truncated_edges": sum(row.truncated for row in found),
        "hits_at_1": hits,
    }


def _write(path: Path, rows: list[Any], schema: dict[str, Any]) -> None:
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(path, compression="zstd", statistics=False)


def _rigel(wanted: Wanted) -> Retriever:
    folder = wanted.trained("rigel")
    from kgqa_core.retrieval.rigel import load
    from kgqa_core.retrieval.rigel_retriever import RigelRetriever

    return RigelRetriever(wanted.dkg, load(folder, wanted.dkg), wanted.options, wanted.topic_names())


def _hop_path(wanted: Wanted) -> Retriever:
    folder = wanted.trained("hop_path")
    from kgqa_core.retrieval.hop_path_retriever import HopPathRetriever, load

    trained = load(folder, wanted.dkg)
    return HopPathRetriever(wanted.dkg, trained, wanted.options, wanted.topic_names(), kg=wanted.kg)


def _kaping(wanted: Wanted) -> Retriever:
    from kgqa_core.retrieval.kaping import Kaping

    return Kaping(wanted.dkg, wanted.options, wanted.kg, wanted.cache)


_OPEN: dict[str, Callable[[Wanted], Retriever]] = {
    "rigel": _rigel,
    "hop_path": _hop_path,
    "kaping": _kaping,
    "random": lambda wanted: RandomFacts(wanted.dkg, wanted.options.k, wanted.seed),
    "oracle": lambda wanted: Oracle(wanted.dkg, wanted.options.k),
}
"""How each retriever is opened; those that need torch are imported only then."""

_EDGES = "retrieval.edge_budget of {options.edge_budget}"
_LIMITS = {
    "kaping": "retrieval.kaping.most_triples of {options.kaping.most_triples} (or retrieval.edge_budget of "
    "{options.edge_budget})"
}
"""What cuts a retriever's search short, by its name."""
