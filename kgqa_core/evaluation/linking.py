"""What linking finds of the gold topics, and what it costs: each retriever from linked topics against gold ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import Experiment
from kgqa_core.datasets.question import read_questions
from kgqa_core.evaluation.labels import LINKS, main_split
from kgqa_core.evaluation.paired import difference
from kgqa_core.metrics.links import link_f1, link_precision, link_recall, link_recall_at_5
from kgqa_core.store.tables import read_frame
from kgqa_core.types import Question

COMPARED = ("hits_at_1", "exact", "km")
"""Metrics that the cost of linking is told in, where an experiment has them."""

Scores = Mapping[str, Mapping[str, Mapping[str, float]]]
"""experiment → question id → metric → value."""


def score_links(folder: Path, records: Sequence[Question]) -> dict[str, dict[str, float]]:
    """Question id → metric → value of the dev and test questions that have gold topics in the graph.

    folder: a `linked` artifact.  records: the questions with their gold topics.
    Raises ArtifactError when the artifact is damaged.
    """
    found = {question.id: question.topic_entities for question in read_questions(folder)}
    ranked: dict[str, dict[int, None]] = {}
    links = read_frame(folder / "links.parquet", ("question", "entity", "rho"))
    for question, entity in links.sort("question", pl.col("rho").neg(), "entity").select("question", "entity").rows():
        ranked.setdefault(question, {})[entity] = None
    rows = {}
    for record in records:
        if record.split == "train" or record.id not in found or not record.topic_entities:
            continue
        own, gold = found[record.id], record.topic_entities
        rows[record.id] = {
            "link_precision": link_precision(own, gold),
            "link_recall": link_recall(own, gold),
            "link_f1": link_f1(own, gold),
            "link_recall_at_5": link_recall_at_5(list(ranked.get(record.id, ())), gold),
        }
    return rows


def linking_costs(rows: Scores, records: Sequence[Question], seed: int = 0) -> list[dict[str, Any]]:
    """One row for each experiment with linked topics that was also made with gold ones, and for each metric compared.

    Rows: `experiment, against, metric, split, gold, linked, loss, low, high, n, only_gold, only_linked, p`.
    loss: mean of (gold − linked) over the n questions of both, in the split that tables show, with its paired 95 %
    interval.  only_gold: questions that score higher from gold topics; only_linked: the other way round.
    """
    split_of = {record.id: record.split for record in records}
    told = []
    for experiment in sorted(rows):
        parsed = Experiment.parse(experiment)
        against = str(replace(parsed, topics="gold"))
        if not parsed.linked or against not in rows:
            continue
        shared = sorted(set(rows[experiment]) & set(rows[against]))
        split = main_split({split_of[question] for question in shared})
        members = [question for question in shared if split_of[question] == split]
        for metric in COMPARED:
            pairs = [
                (rows[experiment][question][metric], rows[against][question][metric])
                for question in members
                if metric in rows[experiment][question] and metric in rows[against][question]
            ]
            if not pairs:
                continue
            schema = {"before": pl.Float64, "after": pl.Float64}
            found = difference(pl.DataFrame(pairs, schema=schema, orient="row"), seed=seed).rounded()
            told.append(
                {
                    "experiment": experiment, "against": against, "metric": metric, "split": split,
                    "gold": found["after"], "linked": found["before"], "loss": found["value"],
                    "low": found["low"], "high": found["high"], "n": found["n"],
                    "only_gold": found["won"], "only_linked": found["lost"], "p": found["p"],
                }
            )  # fmt: skip
    return told


def link_rows(folder: Path | None, records: Sequence[Question]) -> dict[str, dict[str, dict[str, float]]]:
    """The scores of linking as an experiment of its own; nothing without a `linked` artifact."""
    return {} if folder is None else {LINKS: score_links(folder, records)}
