"""What the machine does while a run is under way, as MLflow's system metrics of the run."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from typing import Any

from tasks.tracking.mlflow_store import import_client
from tasks.tracking.tracker import RunValues, Tracker

log = logging.getLogger("kgqa.tracking")
SECONDS = 10.0
"""Between two samples, as in MLflow, unless MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL says another number."""
SWITCH = "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"


@contextlib.contextmanager
def system_metrics(tracker: Tracker, run: str | None) -> Iterator[None]:
    """Send `system/…` of this machine to a tracked run while the block lasts, and once at its end.

    MLflow's own monitors measure: CPU, memory, disk and network, and GPUs where `nvidia-ml-py` is installed.
    MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING=false switches them off.
    """
    if run is None or os.environ.get(SWITCH, "true").strip().lower() in ("false", "0"):
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_sample, args=(tracker, run, ended), name="kgqa-system-metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _sample(tracker: Tracker, run: str, ended: threading.Event) -> None:
    try:
        monitors = _monitors()
        seconds = float(os.environ.get("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL") or SECONDS)
        for step in range(1_000_000):
            last = ended.wait(seconds)
            rows: list[tuple[str, float, int]] = []
            for monitor in monitors:
                monitor.collect_metrics()
                rows += [(f"system/{name}", float(value), step) for name, value in monitor.aggregate_metrics().items()]
                monitor.clear_metrics()
            tracker.record(RunValues(run, metrics=rows))
            if last:
                return
    except Exception as fault:  # a run does not fail for what it is not about
        log.warning("no system metrics of this run any more: %s", fault)


def _monitors() -> list[Any]:
    import_client("")
    from mlflow.system_metrics.metrics.cpu_monitor import CPUMonitor
    from mlflow.system_metrics.metrics.disk_monitor import DiskMonitor
    from mlflow.system_metrics.metrics.gpu_monitor import GPUMonitor
    from mlflow.system_metrics.metrics.network_monitor import NetworkMonitor

    monitors: list[Any] = [CPUMonitor(), DiskMonitor(), NetworkMonitor()]
    with contextlib.suppress(ImportError, RuntimeError):  # no package, or no GPU
        monitors.append(GPUMonitor())
    return monitors
