"""The `scores` stage: every metric for every question of every experiment, and aggregates with intervals.

An experiment is `retriever/format/answerer`; `rigel/-/-` is a retriever alone.  No question leaves a denominator: a
question that cannot be linked to the graph scores 0, and so does one without an answer.  Only where the answering stage
asked a sample (`limit`) are the sampled questions the denominator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import EvaluationOptions, Price
from kgqa_core.datasets.derived.splits import read_leakage
from kgqa_core.datasets.files.answers import ROAD_SCHEMA
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import ArtifactError
from kgqa_core.evaluation.aggregate import Rows, aggregate
from kgqa_core.evaluation.experiment_tables import compare, cost, link_rows, linking_costs
from kgqa_core.evaluation.judge import read_judged
from kgqa_core.evaluation.labels import main_split
from kgqa_core.evaluation.long_tail import is_long_tail, pair_ranks, read_entailment, recall_by_k, wanted_pairs
from kgqa_core.evaluation.roads import by_road
from kgqa_core.kg.store import KgStore
from kgqa_core.metrics.registry import Group, measure, metric_names
from kgqa_core.metrics.retrieval import RelationPath
from kgqa_core.metrics.text import GoldAnswers
from kgqa_core.store.artifacts import write_json
from kgqa_core.store.tables import read_frame
from kgqa_core.types import SPLITS, Question
from kgqa_core.workspace import Workspace


@dataclass(frozen=True)
class ScoringInputs:
    """Folders of the artifacts that are scored.

    linked: a `linked` artifact, whose topics are scored too.  facts: retriever name → its `facts` artifact.
    knowledge: any name → a `knowledge` artifact, for its length.  answers: any name → an `answers` artifact; an
    experiment's name comes from the rows, and from the mapping's key (`retriever/format/model`) when there are none.
    entailment, judged: any name → an artifact of that kind; the experiments are those of its rows.
    """

    kg: Path
    questions: Path
    facts: Mapping[str, Path]
    answers: Mapping[str, Path]
    knowledge: Mapping[str, Path] = field(default_factory=dict)
    linked: Path | None = None
    entailment: Mapping[str, Path] = field(default_factory=dict)
    judged: Mapping[str, Path] = field(default_factory=dict)


def score(
    workspace: Workspace,
    inputs: ScoringInputs,
    options: EvaluationOptions,
    seed: int,
    limit: int | None = None,
    prices: Mapping[str, Price] | None = None,
) -> dict[str, Any]:
    """Writes `scores.parquet` (experiment, split, question, metric, value) and `aggregates.json`; returns counts.

    limit: the answering stage's limit, so that unanswered questions of a sample are known from those outside it.
    prices: of endpoint models, for the column of costs.
    The aggregates hold the means of `aggregate`, the `comparisons` of `compare` and the `cost` of `cost`; where
    pairs are wanted, `recall_by_k`; where answers have roads, `by_road`.
    Raises ArtifactError when an artifact is missing, or answers a question twice.
    """
    records = read_questions(inputs.questions)
    leakage = read_leakage(inputs.questions)
    leaked = frozenset(leakage.get("leaked", ()))
    rows: Rows = {}
    wanted, ranks = wanted_pairs(inputs.kg, records, inputs.facts), {}
    for number, (name, folder) in enumerate(sorted(inputs.facts.items())):
        workspace.monitor.progress(number, len(inputs.facts) + len(inputs.answers), "experiments")
        alone = rows[f"{name}/-/-"] = _score_retriever(inputs.kg, folder, records)
        ranks[f"{name}/-/-"] = pair_ranks(
            inputs.kg, folder, {key: pairs for key, pairs in wanted.items() if key in alone}
        )
        for question, pair_positions in ranks[f"{name}/-/-"].items():
            alone[question] |= measure("pairs", pair_positions)
    given = {
        name: frame for key, folder in sorted(inputs.answers.items()) for name, frame in _read_answers(key, folder)
    }
    evaluated = _evaluated(records, given.values(), limit)
    golds = {record.id: GoldAnswers(record.answer_names) for record in records if record.id in evaluated}
    evaluated_records = [record for record in records if record.id in evaluated]
    for number, (name, frame) in enumerate(sorted(given.items()), start=len(inputs.facts)):
        workspace.monitor.progress(number, len(inputs.facts) + len(given), "experiments")
        outputs = dict(zip(frame["question"].to_list(), frame["output"].to_list(), strict=True))
        rows[name] = score_outputs(evaluated_records, outputs, golds)
    _add_entailment(rows, evaluated_records, inputs.entailment)
    _add_verdicts(rows, evaluated_records, inputs.judged)
    rows |= link_rows(inputs.linked, records)
    same_text = frozenset(leakage.get("test", {}).get("same_text", ()))
    aggregates = aggregate(rows, records, leaked, same_text, samples=options.bootstrap, seed=seed)
    if roads := by_road(given, rows, records, samples=options.bootstrap, seed=seed):
        aggregates["by_road"] = roads
    aggregates["comparisons"] = compare(rows, records)
    if inputs.linked is not None:
        aggregates["linking"] = linking_costs(rows, records, seed)
    if wanted:
        main = main_split({record.split for record in records if any(record.id in own for own in rows.values())})
        counted = {record.id for record in records if record.split == main}
        aggregates["recall_by_k"] = recall_by_k(ranks, counted, samples=options.bootstrap, seed=seed)
    aggregates["cost"] = cost(given, inputs.knowledge, evaluated, prices)
    aggregates["leakage"] = {"leaked": len(leaked), **leakage.get("counts", {})}
    table = _write_scores(workspace.out, rows, records)
    write_json(workspace.out / "aggregates.json", aggregates)
    workspace.monitor.progress(1, 1, "experiments")
    return {
        "experiments": len(rows),
        "rows": table.height,
        "questions": len(records),
        "unlinkable": sum(aggregates["n_unlinkable"].values()),
        "leaked": len(leaked),
    }


def score_outputs(
    records: Iterable[Question], outputs: Mapping[str, str | None], golds: Mapping[str, GoldAnswers] | None = None
) -> dict[str, dict[str, float]]:
    """Question id → metric → value of a model's outputs; a question without output, or not linked, scores 0.

    Questions of the long tail that have gold answers are also measured by knowledge match.
    """
    scores: dict[str, dict[str, float]] = {}
    for record in records:
        output = outputs.get(record.id)
        matched = is_long_tail(record) and bool(record.answer_names)
        if record.unlinkable is not None or not output:
            groups: tuple[Group, ...] = ("output", "long_tail") if matched else ("output",)
            scores[record.id] = dict.fromkeys(metric_names(*groups), 0.0)
            continue
        gold = golds[record.id] if golds is not None else GoldAnswers(record.answer_names)
        scores[record.id] = measure("output", gold, output) | (measure("long_tail", gold, output) if matched else {})
    return scores


def _add_entailment(rows: Rows, evaluated: Sequence[Question], judged: Mapping[str, Path]) -> None:
    """Adds the scores of a classifier where a question has a reference; what was lost, or is not linked, scores 0."""
    for _, folder in sorted(judged.items()):
        for experiment, values in read_entailment(folder).items():
            own = rows.get(experiment, {})
            for record in evaluated:
                if record.id in own and (record.reference or "").strip():
                    lost = record.unlinkable is not None or record.id not in values
                    own[record.id] |= dict.fromkeys(metric_names("entailment"), 0.0) if lost else values[record.id]


def _add_verdicts(rows: Rows, evaluated: Sequence[Question], judged: Mapping[str, Path]) -> None:
    """Adds whether a judge found the answer correct; what was lost, or is not linked, is not."""
    for _, folder in sorted(judged.items()):
        for experiment, values in read_judged(folder).items():
            own = rows.get(experiment, {})
            for record in evaluated:
                if record.id in own:
                    lost = record.unlinkable is not None
                    own[record.id] |= measure("verdict", None if lost else values.get(record.id))


def _score_retriever(kg: Path, folder: Path, records: Sequence[Question]) -> dict[str, dict[str, float]]:
    """Scores of the splits that the retriever has facts of, every question of them counted."""
    ranked: dict[str, list[int]] = {}
    entities = read_frame(folder / "entities.parquet", ("question", "rank", "entity")).sort("question", "rank")
    for (question,), part in entities.filter(pl.col("rank") < 5).group_by("question", maintain_order=True):
        ranked[str(question)] = part["entity"].to_list()
    results = _fact_entities(kg, folder / "facts.parquet")
    paths = _read_paths(folder / "paths.parquet")
    split_of = {record.id: record.split for record in records}
    splits = {split_of[question] for question in (*ranked, *results) if question in split_of} or {"test"}
    rows = {}
    for record in records:
        if record.split not in splits:
            continue
        gold = frozenset(record.answers) if record.unlinkable is None else frozenset[int]()
        rows[record.id] = measure("entities", ranked.get(record.id, []), gold)
        rows[record.id] |= measure("facts", results.get(record.id, ()), gold)
        if paths:
            rows[record.id] |= score_paths(record, paths.get(record.id, ()))
    return rows


def score_paths(record: Question, ranked: Sequence[RelationPath]) -> dict[str, float]:
    """Metrics of predicted relation paths, best first; those that the question is not annotated for are left out.

    The annotated hops are the question's own number, or else the lengths of its annotated paths.
    """
    gold = frozenset(record.relation_paths)
    hops = {record.hops} if record.hops is not None else {len(path) for path in gold}
    return (measure("hops", ranked, hops) if hops else {}) | (measure("paths", ranked, gold) if gold else {})


def _read_paths(file: Path) -> dict[str, list[RelationPath]]:
    """Question id → its predicted relation paths, best first; nothing for retrievers that predict none."""
    if not file.is_file():
        return {}
    paths: dict[str, list[RelationPath]] = {}
    frame = read_frame(file, ("question", "rank", "path")).sort("question", "rank")
    for question, path in frame.select("question", "path").iter_rows():
        paths.setdefault(question, []).append(tuple(path))
    return paths


def _fact_entities(kg: Path, facts: Path) -> dict[str, set[int]]:
    """Question id → heads and tails of its facts."""
    frame = read_frame(facts, ("question", "triple")).select("question", "triple").unique().sort("question", "triple")
    with KgStore.open(kg) as store:
        ends = {triple: (head, tail) for triple, (head, _, tail) in store.triples(frame["triple"]).items()}
    fact_entities: dict[str, set[int]] = {}
    for question, triple in frame.iter_rows():
        if triple not in ends:
            raise ArtifactError(
                f"{facts} names triple {triple}, which is not in the graph {kg}; run the pipeline again"
            )
        fact_entities.setdefault(question, set()).update(ends[triple])
    return fact_entities


def _read_answers(key: str, folder: Path) -> list[tuple[str, pl.DataFrame]]:
    """(experiment, its answers) of an artifact."""
    columns = ("question", "retriever", "format", "model", "output")
    frame = read_frame(folder / "answers.parquet", columns, ("prompt_tokens", "tokens", "finish", *ROAD_SCHEMA))
    if frame.is_empty():
        return [(key, frame)] if key.count("/") >= 2 else []
    parts = []
    for (retriever, form, model), part in frame.group_by("retriever", "format", "model", maintain_order=True):
        name = f"{retriever}/{form}/{model}"
        twice = part.filter(pl.col("question").is_duplicated())["question"]
        if len(twice):
            raise ArtifactError(f"{folder} answers question '{twice[0]}' twice as {name}; delete it and run again")
        parts.append((name, part))
    return parts


def _evaluated(records: Sequence[Question], frames: Iterable[pl.DataFrame], limit: int | None) -> frozenset[str]:
    """Ids of the questions that were given to language models, answered or not.

    They are the whole splits in which any experiment has an answer; under a limit, the questions that any experiment
    answered, filled up to the limit in order of id should some have been lost everywhere.
    """
    answered = {question for frame in frames for question in frame["question"].to_list()}
    splits = {record.split for record in records if record.id in answered} or {"test"}
    everyone = [record.id for record in records if record.split in splits]
    if limit is None or limit >= len(everyone):
        return frozenset(everyone)
    sample = [question for question in everyone if question in answered]
    rest = [question for question in everyone if question not in answered]
    return frozenset(sample + rest[: max(0, limit - len(sample))])


def _write_scores(out: Path, rows: Rows, records: Sequence[Question]) -> pl.DataFrame:
    split_of = {record.id: record.split for record in records}
    cells = [
        (experiment, split_of[question], question, metric, value)
        for experiment, scored in rows.items()
        for question, values in scored.items()
        for metric, value in values.items()
    ]
    schema = {"experiment": pl.String, "split": pl.String, "question": pl.String, "metric": pl.String}
    frame = pl.DataFrame(cells, schema=schema | {"value": pl.Float64}, orient="row")
    frame = frame.sort("experiment", pl.col("split").cast(pl.Enum(SPLITS)), "question", "metric")
    frame = frame.with_columns(pl.col("value").round(6))
    frame.write_parquet(out / "scores.parquet", compression="zstd", statistics=False)
    return frame
