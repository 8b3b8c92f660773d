"""What scoring adds for questions of the long tail (Huang et al. 2024): groups, pairs that facts hold, entailment.

A question is one of the long tail where it has a level, a reference response or gold triples.  Others are scored as
ever, without these metrics, so that nothing changes for data sets that have none of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import polars as pl

from kgqa_core.errors import ArtifactError
from kgqa_core.kg.store import KgStore
from kgqa_core.metrics.registry import metric_names
from kgqa_core.metrics.retrieval import Alternatives, Pair, gold_pairs, recall_at, triple_pairs
from kgqa_core.metrics.significance import bootstrap_interval
from kgqa_core.store.tables import read_frame
from kgqa_core.types import Question

ENTAILMENT = "entailment.parquet"
"""Table of an `entailment` artifact."""

RANKERS = "rank_"
"""Begins the names of retrievers that rank relations, which are measured by pairs on every data set."""

STEPS = (1, 2, 3, 5, 10, 20, 50)
"""Numbers of entity-relation pairs, in the order of a retriever's facts, of which `recall_by_k` tells the recall."""

MOST = 3
"""Reference triples up to which their number is a group of its own."""

Ranks = dict[str, list[int | None]]
"""Question id → for each of its gold pairs, how many pairs its facts tell up to and with it, or None."""


def is_long_tail(record: Question) -> bool:
    """Whether a question has what only questions of the long tail have."""
    return bool(record.level or record.gold_triples or (record.reference or "").strip())


def level_groups(record: Question) -> tuple[str, ...]:
    """The question's level as a group, or none when it has none."""
    return (record.level,) if record.level else ()


def triple_groups(record: Question) -> tuple[str, ...]:
    """The question's number of reference triples as a group, `1`, `2`, `3` or `>3`; none when it has no such triple."""
    number = len(set(record.gold_triples))
    return () if not number else (str(number) if number <= MOST else f">{MOST}",)


def wanted_pairs(kg: Path, records: Sequence[Question], retrievers: Collection[str]) -> dict[str, list[Alternatives]]:
    """Question id → the pairs that it needs, where pair recall applies.

    It applies to questions of the long tail, and to all that are annotated where a ranker of relations is compared.
    """
    everywhere = any(name.startswith(RANKERS) for name in retrievers)
    chosen = [record for record in records if everywhere or is_long_tail(record)]
    keys = sorted({end for record in chosen for head, _, tail in record.gold_triples for end in (head, tail)})
    entities: dict[str, list[int]] = {}
    if keys:
        with KgStore.open(kg) as store:
            entities = store.resolve(keys)
    wanted = {record.id: gold_pairs(record, entities) for record in chosen}
    return {question: pairs for question, pairs in wanted.items() if pairs}


def pair_ranks(kg: Path, folder: Path, wanted: Mapping[str, Sequence[Alternatives]]) -> Ranks:
    """Where the facts of a retriever hold the wanted pairs; questions without facts have them nowhere.

    Facts tell pairs in the order of their ranks, each one pair: that of the end that it was followed from.
    """
    if not wanted:
        return {}
    columns = ("question", "triple", "rank", "direction")
    frame = read_frame(folder / "facts.parquet", columns).select(columns)
    frame = frame.filter(pl.col("question").is_in(pl.Series(sorted(wanted), dtype=pl.String).implode()))
    with KgStore.open(kg) as store:
        triples, relations = store.triples(frame["triple"].unique()), store.relation_keys()
    ranks: Ranks = {question: [None] * len(pairs) for question, pairs in wanted.items()}
    for (question,), part in frame.sort("question", "rank").group_by("question", maintain_order=True):
        indices_of: dict[Pair, int] = {}
        held: dict[Pair, int] = {}
        for triple, direction in part.select("triple", "direction").iter_rows():
            head, relation, tail = triples[triple]
            both = triple_pairs(head, relations[relation], tail)
            index = indices_of.setdefault(both[direction < 0], len(indices_of) + 1)
            for pair in both:
                held.setdefault(pair, index)
        ranks[str(question)] = [
            min((held[pair] for pair in pairs if pair in held), default=None) for pairs in wanted[str(question)]
        ]
    return ranks


def recall_by_k(
    ranks: Mapping[str, Ranks], evaluated: Collection[str], *, samples: int, seed: int
) -> dict[str, dict[str, dict[str, float | int]]]:
    """Experiment → k → mean pair recall, with its interval, of the first k pairs of its facts.

    ranks: by experiment.  evaluated: ids of the questions that count.
    """
    results = {}
    for experiment, rank in sorted(ranks.items()):
        counted = [indices for question, indices in sorted(rank.items()) if question in evaluated]
        if counted:
            results[experiment] = {
                str(k): bootstrap_interval(
                    [recall_at(k, indices) for indices in counted], samples=samples, seed=seed
                ).rounded()
                for k in STEPS
            }
    return results


def read_entailment(folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Experiment → question → scores of an `entailment` artifact.

    Raises ArtifactError when it is missing, damaged, or judges a response twice.
    """
    metrics = metric_names("entailment")
    frame = read_frame(folder / ENTAILMENT, ("question", "retriever", "format", "model", *metrics))
    results: dict[str, dict[str, dict[str, float]]] = {}
    for question, retriever, form, model, *values in frame.iter_rows():
        own = results.setdefault(f"{retriever}/{form}/{model}", {})
        if question in own:
            raise ArtifactError(f"{folder} judges question '{question}' twice; delete it and run again")
        own[question] = dict(zip(metrics, values, strict=True))
    return results
