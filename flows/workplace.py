"""The pull step of the deployments in prefect.yaml: a worker runs them in its own copy of this project."""

from __future__ import annotations

import os
from pathlib import Path

from kgqa_core.errors import ConfigError

ROOT = Path(__file__).resolve().parent.parent


def enter() -> dict[str, str]:
    """Go to the project of the code that is imported here, where relative paths of a profile and of the home start.

    A worker that has kgqa as an installed package, without its project, stays where it is and must have KGQA_HOME.
    Raises ConfigError when it does not: the home would be a temporary folder.
    """
    if (ROOT / "prefect.yaml").is_file():
        os.chdir(ROOT)
    elif not Path(os.environ.get("KGQA_HOME", "")).is_absolute():
        raise ConfigError(
            f"kgqa is installed in {ROOT} without its project, so this worker needs KGQA_HOME: the absolute path of "
            "the home that it shares with the runs that call it"
        )
    return {"directory": os.getcwd()}
