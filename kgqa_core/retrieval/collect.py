"""Stage `collect`: what a retriever returns for the dev and test questions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import RetrievalOptions, RetrieverVariant
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.retrieval.api import RetrieverInputs
from kgqa_core.retrieval.linked_candidates import with_linked_candidates
from kgqa_core.retrieval.registry import open_retriever, retriever_spec
from kgqa_core.store.shards import LOADING, add_counts, join_rows, read_parts, share, write_part
from kgqa_core.types import SPLITS, SPLITS_COLLECTED, Question, Retrieved
from kgqa_core.workspace import Workspace

Paths = Mapping[str, Sequence[tuple[tuple[str, ...], float]]]
"""Question id → predicted relation paths as keys, with their scores, best first."""

Pairs = Mapping[str, Sequence[tuple[int, int, float]]]
"""Question id → (entity, directed relation, score) of the ranked pairs, best first."""


def collect(workspace: Workspace, questions: Path, name: str, inputs: RetrieverInputs) -> dict[str, Any]:
    """Writes facts.parquet, entities.parquet, facts_meta.parquet and meta.json, and returns counts.

    Retrievers that predict relation paths write paths.parquet too, those that rank relations relations.parquet.
    name: of a retriever; with `@linked` where the questions are those with linked topics.
    inputs: what the retriever is opened with; its questions, cache, budget and monitor are those given here.
    Of a part only its share of the questions is retrieved for, whole batches of them; `merge` joins the parts.
    Raises GraphMismatch when the retriever was trained for other relations, ArtifactError when something is missing.
    """
    options, splits = inputs.options, SPLITS if inputs.options.training else SPLITS_COLLECTED
    inputs = replace(
        inputs,
        questions=questions,
        cache=workspace.cache or workspace.work,
        budget=workspace.budget,
        model=workspace.model,
        monitor=workspace.monitor,
    )
    with LOADING:
        opened = open_retriever(RetrieverVariant.parse(name).retriever, inputs)
    wanted = [question for question in read_questions(questions) if question.split in splits]
    if opened.candidates:
        wanted = with_linked_candidates(wanted, questions, opened.candidates)
    wanted = wanted[share(workspace.part, opened.batch_starts(wanted), len(wanted))]
    retrieved = opened.retrieve(wanted, workspace.monitor)
    write_retrieved(workspace.out, name, retrieved)
    counts = _counts(retrieved) | dict(opened.counts)
    if opened.predicts_paths:
        write_paths(workspace.out, {row.question: row.paths for row in retrieved})
        counts["with_paths"] = sum(bool(row.paths) for row in retrieved)
    if opened.ranks_pairs:
        write_pairs(workspace.out, {row.question: row.pairs for row in retrieved}, inputs.dkg.relation_keys)
    hits = _hits(wanted, retrieved)
    if workspace.part is not None:
        write_part(workspace.out, counts, hits=hits)
        return counts
    return _finish(workspace, counts, hits, name, options)


def merge(workspace: Workspace, parts: Sequence[Path], *, name: str, options: RetrievalOptions) -> dict[str, Any]:
    """Joins the folders of all parts of `collect`, and returns its counts.

    Tables and counts are those of a `collect` that was not divided.  Raises ArtifactError when a part is damaged.
    """
    results = read_parts(parts)
    for table in ("facts.parquet", "entities.parquet", "facts_meta.parquet", "paths.parquet", "relations.parquet"):
        if (parts[0] / table).is_file():
            join_rows(parts, table).write_parquet(workspace.out / table, compression="zstd", statistics=False)
    hits = add_counts([result["hits"] for result in results])
    return _finish(workspace, add_counts([result["counts"] for result in results]), hits, name, options)


def _finish(
    workspace: Workspace,
    counts: dict[str, Any],
    hits: Mapping[str, Mapping[str, int]],
    name: str,
    options: RetrievalOptions,
) -> dict[str, Any]:
    """Writes meta.json and notes what was cut; returns the counts with hits@1 over all of each split."""
    shares = {split: round(row["right"] / row["asked"], 6) for split, row in hits.items() if row["asked"]}
    counts = counts | {"hits_at_1": shares}
    if counts["truncated_questions"]:
        limit = retriever_spec(RetrieverVariant.parse(name).retriever).limit.format(options=options)
        workspace.monitor.note(
            f"{limit} cut {counts['truncated_questions']} questions short "
            f"({counts['truncated_edges']} edges); raise it to follow them all"
        )
    (workspace.out / "meta.json").write_text(json.dumps(counts, sort_keys=True, indent=1), encoding="utf-8")
    return counts


def write_retrieved(out: Path, name: str, retrieved: Sequence[Retrieved]) -> None:
    """Three tables, rows in order of question id and rank."""
    rows = sorted(retrieved, key=lambda row: row.question)
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
        for question, predicted in sorted(paths.items())
        for rank, (path, score) in enumerate(predicted)
    ]
    columns = {"question": pl.String, "rank": pl.Int32, "hops": pl.Int32, "path": pl.List(pl.String)}
    _write(out / "paths.parquet", rows, columns | {"score": pl.Float64})


def write_pairs(out: Path, pairs: Pairs, relation_keys: Sequence[str]) -> None:
    """One row for each pair of a topic entity and a relation that was selected, in order of question id and rank."""
    rows = [
        (question, rank, entity, relation_keys[relation], score)
        for question, ranked in sorted(pairs.items())
        for rank, (entity, relation, score) in enumerate(ranked)
    ]
    columns = {"question": pl.String, "rank": pl.Int32, "entity": pl.Int64, "relation": pl.String, "score": pl.Float64}
    _write(out / "relations.parquet", rows, columns)


def _counts(retrieved: Sequence[Retrieved]) -> dict[str, Any]:
    """Counts for the log: questions, facts, questions without facts or cut short."""
    return {
        "questions": len(retrieved),
        "facts": sum(len(row.facts) for row in retrieved),
        "without_facts": sum(not row.facts for row in retrieved),
        "truncated_questions": sum(row.truncated > 0 for row in retrieved),
        "truncated_edges": sum(row.truncated for row in retrieved),
    }


def _hits(questions: Sequence[Question], retrieved: Sequence[Retrieved]) -> dict[str, dict[str, int]]:
    """How many questions of each split there are, and for how many the best entity is an answer."""
    best = {row.question: row.entities[0][0] for row in retrieved if row.entities}
    hits = {}
    for split in SPLITS_COLLECTED:
        of_split = [question for question in questions if question.split == split]
        right = sum(best.get(question.id) in question.answers for question in of_split)
        hits[split] = {"right": right, "asked": len(of_split)}
    return hits


def _write(path: Path, rows: list[Any], schema: dict[str, Any]) -> None:
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(path, compression="zstd", statistics=False)
