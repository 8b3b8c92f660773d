"""What every test gets: no telemetry, a home of its own, and the folder of shared data where there is one."""

from __future__ import annotations

import functools
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.examples import QUICK

REPOSITORY = Path(__file__).resolve().parent.parent

IN_MEMORY = Path("/dev/shm")
"""Where a quick run keeps its temporary folders: half of it is waiting for a disk otherwise."""
IN_MEMORY_FREE = 6 << 30
"""Bytes that must be free there; a run takes 1 to 2 GB."""

os.environ.update(
    {
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "false",
        "RAY_USAGE_STATS_ENABLED": "0",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "600",
    }
)
for _name in (
    "PREFECT_API_URL", "MLFLOW_TRACKING_URI", "OPENAI_API_KEY", "OPENAI_BASE_URL", "PYTHONDONTWRITEBYTECODE",
):  # fmt: skip
    os.environ.pop(_name, None)
sys.dont_write_bytecode = False  # else every process that a test starts compiles all modules anew


UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault
settings.register_profile("kgqa", UNHURRIED)
settings.register_profile("kgqa-quick", UNHURRIED, max_examples=25)
settings.load_profile("kgqa")


def pytest_configure(config: pytest.Config) -> None:
    """Try properties on fewer examples where slow tests are left out."""
    if "not slow" in config.option.markexpr:
        os.environ[QUICK] = "1"
        settings.load_profile("kgqa-quick")
        if "TMPDIR" not in os.environ and IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free >= IN_MEMORY_FREE:
            os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported with the tests stays: the garbage collector passes over its millions of objects ever after."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(5_000, 20, 50)
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file at a time; those that need the Prefect server or the forking process go to one worker, which starts them.

    Each takes ten seconds of processor to start, and what needs them is less than half of the tests' time.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return SERVED if needs_server(file) else file

    return Scheduling(config, log)


SERVED = "what needs the Prefect server"


@functools.cache
def needs_server(file: str) -> bool:
    """Whether a file of tests names what starts the Prefect server or the forking process."""
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    return any(name in text for name in ("forked_command", "prefect_server", "films_home"))


def pytest_sessionfinish() -> None:
    """End the tests' forking process and Prefect server, where they were started."""
    for name in ("tests.support.forked_command", "tests.support.prefect_server"):
        if name in sys.modules:
            sys.modules[name].stop()


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home for this test alone, so that no test sees the user's runs."""
    home = tmp_path / "home"
    monkeypatch.setenv("KGQA_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data: KGQA_SHARED_DATA, else `../shared/data` beside the repository; skips where absent."""
    given = os.environ.get("KGQA_SHARED_DATA")
    folder = Path(given) if given else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set KGQA_SHARED_DATA to the folder that holds zjqa, metaqa, …")
    return folder


@pytest.fixture(scope="module")
def prefect_server() -> Iterator[str]:
    """Flows of a module run on the tests' Prefect server, whose address this is."""
    from tests.support.prefect_server import on_shared_server

    with on_shared_server() as address:
        yield address
