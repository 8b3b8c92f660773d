"""Stage `collect`: what a retriever finds for the dev and test questions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from kgqa_core.config import RetrievalOptions
from kgqa_core.datasets.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import ArtifactError
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.retrieval.oracle import Oracle
from kgqa_core.retrieval.protocol import Retriever
from kgqa_core.retrieval.random_facts import RandomFacts
from kgqa_core.types import Question, Retrieved

SPLITS_COLLECTED = ("dev", "test")
"""Training questions are not retrieved for: nothing downstream reads them yet, and they are the most."""

Name = Literal["rigel", "random", "oracle"]


def collect(
    out: Path,
    *,
    dkg: Path,
    questions: Path,
    name: Name,
    options: RetrievalOptions,
    seed: int,
    retriever: Path | None = None,
    kg: Path | None = None,
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes facts.parquet, entities.parquet, facts_meta.parquet and meta.json, and returns counts.

    retriever: the trained retriever, needed by `rigel` alone.  kg: the graph store, where training had it too.
    Raises GraphMismatch when the retriever was trained for other relations, ArtifactError when it is missing.
    """
    graph = Dkg.open(dkg)
    asked = [question for question in read_questions(questions) if question.split in SPLITS_COLLECTED]
    found = open_retriever(name, graph, options, seed, asked, retriever, kg).retrieve(asked, monitor)
    write_retrieved(out, name, found)
    counts = summary(asked, found)
    if counts["truncated_questions"]:
        monitor.note(
            f"the edge budget of {options.edge_budget} cut {counts['truncated_questions']} questions short "
            f"({counts['truncated_edges']} edges); raise retrieval.edge_budget to follow them all"
        )
    (out / "meta.json").write_text(json.dumps(counts, sort_keys=True, indent=1), encoding="utf-8")
    return counts


def open_retriever(
    name: Name,
    dkg: Dkg,
    options: RetrievalOptions,
    seed: int,
    questions: Sequence[Question],
    retriever: Path | None = None,
    kg: Path | None = None,
) -> Retriever:
    """The retriever of a name.  questions: those that will be asked, whose topics' names are looked up in `kg`."""
    if name == "random":
        return RandomFacts(dkg, options.k, seed)
    if name == "oracle":
        return Oracle(dkg, options.k)
    if retriever is None:
        raise ArtifactError("retriever 'rigel' needs a trained retriever; run the retriever stage first")
    from kgqa_core.retrieval.rigel import load
    from kgqa_core.retrieval.rigel_retriever import RigelRetriever
    from kgqa_core.retrieval.text import topic_names

    return RigelRetriever(dkg, load(retriever, dkg), options, topic_names(kg, questions))


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
