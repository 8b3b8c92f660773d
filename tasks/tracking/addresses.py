"""Where the UIs of Prefect and MLflow can be opened: as the environment says, else as `kgqa ui` of the home does."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from urllib.parse import quote

from kgqa_core.store.artifacts import Home
from tasks.tracking.mlflow_store import VIEW, without_credentials

REPORT = "report.html"
"""Name of a run's report, in its folder and among its files in MLflow."""
RUNS_VIEW = "?workflowType=machine_learning"
"""Opens MLflow's pages of runs; without it the UI shows those of chat traces, whatever the experiment's kind is."""


def ui_addresses(home: Home) -> dict[str, str]:
    """Addresses of `prefect` and `mlflow`; what is not known is left out.

    `PREFECT_UI_URL`, else `PREFECT_API_URL` without `/api`; `MLFLOW_UI_URL`, else `MLFLOW_TRACKING_URI` where that is
    a server; else what `kgqa ui` of this home wrote down.
    """
    try:
        servers = json.loads((home.root / "prefect" / "server.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        servers = {}
    api = os.environ.get("PREFECT_API_URL", "")
    tracking = os.environ.get("MLFLOW_TRACKING_URI", "")
    given = {
        "prefect": os.environ.get("PREFECT_UI_URL") or api.removesuffix("/").removesuffix("/api"),
        "mlflow": os.environ.get("MLFLOW_UI_URL") or (tracking if tracking.startswith("http") else ""),
    }
    addresses = {name: (url or str(servers.get(name) or "")).rstrip("/") for name, url in given.items()}
    return {name: without_credentials(url) for name, url in addresses.items() if url}


def mlflow_page(home: Home, experiment: str | None, run: str | None) -> str | None:
    """Address of a run's page in MLflow, or None while its address or the run is not known."""
    base = ui_addresses(home).get("mlflow")
    return run_page(base, experiment, run) if base and experiment and run else None


def run_page(base: str, experiment: str, run: str) -> str:
    """Address of a run's page in the MLflow UI at `base`."""
    return f"{base}/#/experiments/{experiment}/runs/{run}{RUNS_VIEW}"


def runs_page(base: str, experiment: str) -> str:
    """Address of the table of runs in the MLflow UI at `base`, with the headline metrics as columns."""
    return f"{base}/#/experiments/{experiment}/runs{RUNS_VIEW}&viewStateShareKey={VIEW}"


def compare_page(home: Home, runs: Sequence[tuple[str | None, str | None]]) -> str | None:
    """Address of MLflow's comparison of runs, or None while its address or one of the runs is not known.

    runs: the experiment and the id in MLflow of each.
    """
    base = ui_addresses(home).get("mlflow")
    if not base or not all(experiment and run for experiment, run in runs):
        return None
    ids, experiments = [run for _, run in runs], [*dict.fromkeys(experiment for experiment, _ in runs)]
    return f"{base}/#/compare-runs?runs={quote(json.dumps(ids))}&experiments={quote(json.dumps(experiments))}"


def report_page(page: str | None) -> str | None:
    """Address of the report on a run's page in MLflow, which keeps a copy of it."""
    return f"{page.removesuffix(RUNS_VIEW)}/artifacts/{REPORT}{RUNS_VIEW}" if page else None
