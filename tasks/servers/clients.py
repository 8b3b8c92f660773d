"""The environment by which Prefect's and MLflow's clients in this process find the servers and the store of a home."""

from __future__ import annotations

import os
from pathlib import Path

from tasks.servers import login


def point_clients(home: Path) -> None:
    """Set what Prefect's and MLflow's clients read, before Prefect is imported; what the user has set stays."""
    defaults = {
        "PREFECT_HOME": str(home / "prefect"),
        "PREFECT_LOCAL_STORAGE_PATH": str(home / "prefect" / "results"),
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_CLIENT_MAX_RETRIES": "4",
        "PREFECT_CLIENT_RETRY_EXTRA_CODES": "500",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300",
        "DO_NOT_TRACK": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    if "PREFECT_API_URL" not in os.environ:
        server = login.running_server(home)
        if server:
            os.environ["PREFECT_API_URL"] = server
    login.hand_to_clients(home, os.environ)
