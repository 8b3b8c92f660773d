"""The last act of a run of several question sets: its report, its record, and what the trackers show of it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import yaml

from kgqa_core.config import Profile
from kgqa_core.evaluation.set_tables import FILE
from kgqa_core.store.artifacts import ArtifactRef, read_manifest
from tasks.engine.prefect_pages import cell, link_line, show_page, table
from tasks.engine.run import Run, environment, flow_run_id
from tasks.tracking.addresses import mlflow_page, report_page
from tasks.tracking.tracker import DataSet, RunDatasets, RunFile, RunValues


def publish_table(run: Run, profile: Profile, tables: ArtifactRef) -> dict[str, Any]:
    """Write the run's report and record, and show both in Prefect and MLflow.

    tables: artifact of `table_sets`.  Returns home, run_id, report, mlflow_run_id, sets and failed_sets.
    """
    from kgqa_core.report import set_tables
    from kgqa_core.report.examples import read_examples

    data = json.loads((tables.folder / FILE).read_text(encoding="utf-8"))
    run.folder.mkdir(parents=True, exist_ok=True)
    plain = profile.model_dump(mode="json")
    about = environment()
    report = set_tables.write(
        run.folder,
        set_tables.SetsData(
            title=" · ".join((profile.kg.name, *profile.set_names)),
            description=profile.description,
            tables=data,
            runs=run.sets,
            said=run.decisions,
            failed=run.failed_sets,
            environment={
                "run": run.id,
                "seed": profile.seed,
                "commit": about["git"],
                "python": about["python"],
                **about["packages"],
                **{f"scores of {name}": digest for name, digest in _digests(tables).items()},
            },
            configuration=yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100),
            examples={name: read_examples(run.folder.parent / set_run) for name, set_run in run.sets.items()},
            created=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        ),
    )
    tracker = run.tracker
    tracker.record(
        RunValues(run.tracked, metrics=[*_scores(data), *_tests(data)]),
        RunDatasets(run.tracked, [DataSet(name, digest, {}, "scores") for name, digest in _digests(tables).items()]),
        RunFile(run.tracked, str(report)),
        RunFile(run.tracked, str(tables.folder / FILE), "tables"),
    )
    page = mlflow_page(run.home, tracker.experiment, tracker.known(run.tracked))
    links = link_line({"this run in MLflow": page, "its report": report_page(page)})
    rows = [{"question set": name, "run": run_id, "decision": cell(run.decisions.get(name, ""))}
            for name, run_id in run.sets.items()]  # fmt: skip
    rows += [{"question set": name, "run": "failed", "decision": cell(why)} for name, why in run.failed_sets.items()]
    show_page("kgqa-table", [f"## {cell(' · '.join(profile.set_names))}", links, table(rows)], "Question sets of a run")
    run.save(
        status="done",
        report=str(report),
        flow_run_id=flow_run_id(),
        mlflow_experiment_id=tracker.experiment,
        aggregates={"scores": {}, "tables": data},
    )
    return {
        "home": str(run.home.root),
        "run_id": run.id,
        "report": str(report),
        "mlflow_run_id": tracker.known(run.tracked),
        "sets": dict(run.sets),
        "failed_sets": dict(run.failed_sets),
    }


def _digests(tables: ArtifactRef) -> dict[str, str]:
    """Digest of the scores of each question set."""
    inputs: Mapping[str, Any] = read_manifest(tables.folder).get("made_of", {}).get("inputs", {})
    return dict(inputs.get("scores", {}))


def _scores(tables: Mapping[str, Any]) -> list[tuple[str, float, int]]:
    """The scores of every set under the names that they have in the runs of the sets, with the set before them."""
    return [
        (f"{name}/{experiment}/{split}/{metric}", float(cell["value"]), 0)
        for name, of_set in tables["sets"].items()
        for experiment, splits in of_set["scores"].items()
        for split, metrics in splits.items()
        for metric, cell in metrics.items()
    ]


def _tests(tables: Mapping[str, Any]) -> list[tuple[str, float, int]]:
    """Differences of models that read the same, and p corrected for the number of tests, as metrics."""
    rows = []
    for row in tables["models"]:
        name = f"{row['set']}/{row['experiment']}/against {row['against']}/{row['metric']}"
        rows.append((f"{name}_difference", float(row["value"]), 0))
        if row["p"] is not None:
            rows.append((f"{name}_p_holm", float(row["p_holm"]), 0))
    return rows
