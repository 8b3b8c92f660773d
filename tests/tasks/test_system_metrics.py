"""A run has MLflow's system metrics, and no fault of theirs ends it."""

from __future__ import annotations

import json
import logging
from typing import Any, cast

import pytest

from kgqa_core.report.summary import RunSummary
from kgqa_core.store.artifacts import Home
from tasks.tracking import system_metrics as module
from tasks.tracking.mlflow_store import HEADLINES, VIEW_TAG, MlflowStore
from tasks.tracking.system_metrics import SWITCH, system_metrics
from tasks.tracking.tracker import RunStart, RunValues, Tracker, make_handle


class Recorder:
    """Stands for a tracker; only `record` is called."""

    def __init__(self) -> None:
        self.events: list[RunValues] = []

    def record(self, *events: Any) -> None:
        self.events += events


def test_a_run_has_samples_every_few_seconds_and_a_last_one(
    opened: tuple[Home, MlflowStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.05")
    _, store = opened
    run = store.start(RunStart(make_handle("r-system", 1000), "a run", {}))
    recorder = Recorder()
    with system_metrics(cast(Tracker, recorder), run):
        while len(recorder.events) < 2:
            pass
    assert len(recorder.events) >= 3
    for event in recorder.events:
        store.write(event)
    values = store._client.get_run(run).data.metrics
    assert 0 < values["system/system_memory_usage_percentage"] < 100
    assert 0 <= values["system/cpu_utilization_percentage"] <= 100
    assert {name.partition("/")[0] for name in values} == {"system"}
    steps = [one.step for one in store._client.get_metric_history(run, "system/disk_available_megabytes")]
    assert steps == list(range(len(recorder.events)))


@pytest.mark.parametrize(("run", "switch"), [(None, "true"), ("r", "false"), ("r", "0")])
def test_nothing_is_measured_of_a_run_that_is_not_tracked_or_where_it_is_switched_off(
    run: str | None, switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, switch)
    recorder = Recorder()
    with system_metrics(cast(Tracker, recorder), run):
        pass
    assert recorder.events == []


def test_a_fault_of_a_monitor_is_logged_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> list[Any]:
        raise OSError("no /proc here")

    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr(module, "_monitors", broken)
    with caplog.at_level(logging.WARNING, "kgqa.tracking"), system_metrics(cast(Tracker, Recorder()), "r"):
        pass
    assert "no /proc here" in caplog.text


def test_the_table_of_runs_has_the_metrics_that_a_report_opens_with(opened: tuple[Home, MlflowStore]) -> None:
    _, store = opened
    assert set(HEADLINES) == set(RunSummary("e", n=4, answered=2, right=1).metrics)
    view = json.loads(store._client.get_experiment(store.experiment).tags[VIEW_TAG])
    assert view["selectedColumns"] == [f"metrics.`answers/{name}`" for name in HEADLINES]
