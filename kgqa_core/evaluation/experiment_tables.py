"""Tables that compare experiments: Helpful and Harmful (Wu et al. 2023), cost, and linked against gold topics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import Experiment, Price
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.evaluation.aggregate import complexity_groups, grouped, hop_groups
from kgqa_core.evaluation.labels import LINKS, main_split
from kgqa_core.evaluation.paired import difference
from kgqa_core.metrics.normalise import count_words
from kgqa_core.metrics.registry import measure
from kgqa_core.metrics.significance import mcnemar, three_digits
from kgqa_core.store.tables import read_frame
from kgqa_core.types import Question

METRICS = ("hit_rra", "exact")
"""Metrics that say right or wrong, by which experiments are compared."""

GROUPS = {"by_hops": hop_groups, "by_complexity": complexity_groups}


def compare(rows: Mapping[str, Mapping[str, Mapping[str, float]]], records: Sequence[Question]) -> list[dict[str, Any]]:
    """One row for each experiment, baseline and metric: `experiment, baseline, metric, split, helpful, harmful, n, p`.

    rows: experiment → question id → metric → value.  helpful: questions that the baseline gets wrong and the experiment
    right; harmful: the other way round; n: questions that both have scores of, in the split that the tables show.
    p: McNemar's exact test, three digits, not corrected for the number of comparisons.  `by_hops` and `by_complexity`
    hold helpful, harmful and n of each group.
    """
    by_id = {record.id: record for record in records}
    compared = []
    for experiment in sorted(rows):
        for baseline in baselines(experiment, rows):
            shared = [question for question in rows[experiment] if question in rows[baseline]]
            split = main_split({by_id[question].split for question in shared})
            members = [question for question in shared if by_id[question].split == split]
            parts = {key: grouped(members, by_id, groups) for key, groups in GROUPS.items()}
            for metric in METRICS if members else ():
                judge = _judge(rows[baseline], rows[experiment], metric)
                total = judge(members)
                groups = {key: {name: judge(part) for name, part in results.items()} for key, results in parts.items()}
                p = three_digits(mcnemar(total["helpful"], total["harmful"]))
                named = {"experiment": experiment, "baseline": baseline, "metric": metric, "split": split}
                compared.append({**named, **total, "p": p, **groups})
    return compared


def baselines(experiment: str, experiments: Iterable[str]) -> list[str]:
    """What an experiment is compared with: the same answerer without knowledge, and with each retriever's triples.

    >>> baselines("rigel/template/builtin", ["none/none/builtin", "rigel/triples/builtin", "rigel/-/-"])
    ['none/none/builtin', 'rigel/triples/builtin']
    """
    own = Experiment.parse(experiment)
    if "-" in (own.retriever, own.format, own.answerer) or own.retriever == "none":
        return []
    others = [(name, Experiment.parse(name)) for name in sorted(experiments) if name != experiment]
    return [
        name
        for name, base in others
        if base.answerer == own.answerer and (base.without_knowledge or base.format == "triples")
    ]


def _judge(
    baseline: Mapping[str, Mapping[str, float]], scored: Mapping[str, Mapping[str, float]], metric: str
) -> Callable[[Sequence[str]], dict[str, int]]:
    def count(questions: Sequence[str]) -> dict[str, int]:
        pairs = [(baseline[question][metric] >= 1, scored[question][metric] >= 1) for question in questions]
        return {"helpful": pairs.count((False, True)), "harmful": pairs.count((True, False)), "n": len(pairs)}

    return count


FINISHES = ("stop", "length", "refusal", "empty", "error")


def cost(
    answers: Mapping[str, pl.DataFrame],
    knowledge: Mapping[str, Path],
    evaluated: Collection[str],
    prices: Mapping[str, Price] | None = None,
) -> dict[str, dict[str, Any]]:
    """Experiment → what a question costs on average, over all its questions.

    answers: experiment → its rows.  knowledge: any name → a knowledge artifact; they are matched by the columns
    `retriever` and `format`.  Keys, where they are known: `questions`; means `words` and `characters` of the knowledge
    (0 where a question has none) and `without_knowledge`, questions that have none; means `prompt_tokens` and
    `completion_tokens`, by the answerer's own count; `cost_per_1000`, the money for 1,000 questions were each asked by
    itself, by `prices`, the making of the knowledge not included; `finish`, how many answers ended in which way.
    """
    lengths = _lengths(knowledge, evaluated)
    results: dict[str, dict[str, Any]] = {}
    for experiment, frame in sorted(answers.items()):
        parsed = Experiment.parse(experiment)
        read = str(parsed.variant), parsed.format
        n = len(evaluated)
        if not n:
            continue
        entry: dict[str, Any] = {"questions": n}
        if parsed.without_knowledge:
            entry |= {"words": 0.0, "characters": 0.0, "without_knowledge": n}
        elif read in lengths:
            words, characters, empty = lengths[read]
            entry |= {"words": round(words / n, 2), "characters": round(characters / n, 2), "without_knowledge": empty}
        if {"prompt_tokens", "tokens"} <= set(frame.columns):
            prompt, completion = int(frame["prompt_tokens"].sum()), int(frame["tokens"].sum())
            entry |= {"prompt_tokens": round(prompt / n, 2), "completion_tokens": round(completion / n, 2)}
            price = (prices or {}).get(parsed.answerer)
            if price is not None:
                total = (prompt * price.prompt + completion * price.completion) / 1_000_000
                entry["cost_per_1000"] = round(1000 * total / n, 6)
        if "finish" in frame.columns:
            counted = dict(frame["finish"].value_counts().iter_rows())
            entry["finish"] = {name: counted[name] for name in FINISHES if name in counted}
        results[experiment] = entry
    return results


def _lengths(knowledge: Mapping[str, Path], evaluated: Collection[str]) -> dict[tuple[str, str], tuple[int, int, int]]:
    """(retriever, format) → words and characters of all texts, and number of questions without text."""
    wanted = pl.Series(sorted(evaluated), dtype=pl.String).implode()
    lengths: dict[tuple[str, str], tuple[int, int, int]] = {}
    for _, folder in sorted(knowledge.items()):
        frame = read_frame(folder / "knowledge.parquet", ("question", "retriever", "format", "text"))
        frame = frame.filter(pl.col("question").is_in(wanted))
        for (retriever, form), part in frame.group_by("retriever", "format", maintain_order=True):
            texts = [text.strip() for text in part["text"].to_list() if text and text.strip()]
            words, characters = sum(map(count_words, texts)), sum(map(len, texts))
            lengths[str(retriever), str(form)] = (words, characters, len(evaluated) - len(texts))
    return lengths


COMPARED = ("hits_at_1", "exact", "km")
"""Metrics in which the cost of linking is given, where an experiment has them."""

Scores = Mapping[str, Mapping[str, Mapping[str, float]]]
"""experiment → question id → metric → value."""


def score_links(folder: Path, records: Sequence[Question]) -> dict[str, dict[str, float]]:
    """Question id → metric → value of the dev and test questions that have gold topics in the graph.

    folder: a `linked` artifact.  records: the questions with their gold topics.
    Raises ArtifactError when the artifact is damaged.
    """
    linked = {question.id: question.topic_entities for question in read_questions(folder)}
    ranked: dict[str, dict[int, None]] = {}
    links = read_frame(folder / "links.parquet", ("question", "entity", "rho"))
    for question, entity in links.sort("question", pl.col("rho").neg(), "entity").select("question", "entity").rows():
        ranked.setdefault(question, {})[entity] = None
    rows = {}
    for record in records:
        if record.split == "train" or record.id not in linked or not record.topic_entities:
            continue
        candidates, gold = list(ranked.get(record.id, ())), record.topic_entities
        rows[record.id] = measure("links", linked[record.id], gold) | measure("link_candidates", candidates, gold)
    return rows


def linking_costs(rows: Scores, records: Sequence[Question], seed: int = 0) -> list[dict[str, Any]]:
    """One row for each experiment with linked topics that was also made with gold ones, and for each metric compared.

    Rows: `experiment, against, metric, split, gold, linked, loss, low, high, n, only_gold, only_linked, p`.
    loss: mean of (gold − linked) over the n questions of both, in the split that tables show, with its paired 95 %
    interval.  only_gold: questions that score higher from gold topics; only_linked: the other way round.
    """
    split_of = {record.id: record.split for record in records}
    rows_by_experiment = []
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
            results = difference(pl.DataFrame(pairs, schema=schema, orient="row"), seed=seed).rounded()
            rows_by_experiment.append(
                {
                    "experiment": experiment, "against": against, "metric": metric, "split": split,
                    "gold": results["after"], "linked": results["before"], "loss": results["value"],
                    "low": results["low"], "high": results["high"], "n": results["n"],
                    "only_gold": results["won"], "only_linked": results["lost"], "p": results["p"],
                }
            )  # fmt: skip
    return rows_by_experiment


def link_rows(folder: Path | None, records: Sequence[Question]) -> dict[str, dict[str, dict[str, float]]]:
    """The scores of linking as an experiment of its own; nothing without a `linked` artifact."""
    return {} if folder is None else {LINKS: score_links(folder, records)}
