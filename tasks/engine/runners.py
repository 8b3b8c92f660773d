"""Prefect's task runners by name: where the parts of a map stage run."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner

from kgqa_core.config import RunnerOptions
from kgqa_core.cores import own_cores
from kgqa_core.errors import ConfigError
from kgqa_core.extras import require_extra
from kgqa_core.parent import end_with_parent

log = logging.getLogger("kgqa")

PACKAGES = {"dask": ("prefect_dask", "distributed"), "ray": ("prefect_ray", "ray")}
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS")
RAY_OBJECTS = 128 * 2**20
"""Bytes of memory that a local Ray takes for objects; parts hand over only where they lie."""


def check_runner(options: RunnerOptions) -> None:
    """Raises ConfigError when the packages of a runner are not installed."""
    if options.kind in PACKAGES:
        option = f"operations.runner.kind={options.kind}"
        require_extra("cluster", option, PACKAGES[options.kind], instead=", or choose thread or process")


def workers_of(options: RunnerOptions) -> int:
    """Parts that run at once, as far as we decide it."""
    return 1 if options.kind == "inline" else options.workers or len(own_cores())


def threads_of(options: RunnerOptions) -> int | None:
    """Threads that each worker process may use; None where this process or somebody else's cluster decides."""
    if options.kind in ("inline", "thread") or options.address is not None:
        return None
    return max(1, len(own_cores()) // workers_of(options))


@contextlib.contextmanager
def task_runner(options: RunnerOptions) -> Iterator[TaskRunner[Any]]:
    """A started task runner, for any kind but `inline`; what it started ends with the block.

    Raises ConfigError when its packages are not installed or its cluster does not answer.
    """
    check_runner(options)
    runner = _MAKERS[options.kind](options)
    try:
        runner.__enter__()
        if options.kind == "dask":
            runner.client  # type: ignore[attr-defined]  # noqa: B018 - Prefect connects when it is first asked for
    except (OSError, ConnectionError, RuntimeError) as fault:
        address = options.address or "this machine"
        raise ConfigError(
            f"operations.runner.kind={options.kind} does not start on {address} ({fault}); check "
            "operations.runner.address"
        ) from fault
    try:
        yield runner
    finally:
        try:
            runner.__exit__(None, None, None)
        except Exception as fault:  # finished work must not fail because a cluster does not end in order
            log.warning("the %s runner did not end in order: %s", options.kind, fault)


@contextlib.contextmanager
def server_named() -> Iterator[None]:
    """Inside, tasks that are submitted report to the server of this process, also where it is a temporary one."""
    if PREFECT_API_URL.value():
        yield
        return
    with get_client(sync_client=True) as client:
        address = str(client.api_url).rstrip("/")
    with temporary_settings({PREFECT_API_URL: address}):
        yield


def start_worker(threads: int) -> None:
    """Prepares a worker process: it ends with the process that started it, and keeps to its threads."""
    os.environ.update(dict.fromkeys(THREADS, str(threads)))
    end_with_parent()


def _thread(options: RunnerOptions) -> TaskRunner[Any]:
    return ThreadPoolTaskRunner(max_workers=workers_of(options))


def _process(options: RunnerOptions) -> TaskRunner[Any]:
    threads = threads_of(options) or 1
    return ProcessPoolTaskRunner(max_workers=workers_of(options), initializer=start_worker, initargs=(threads,))


def _dask(options: RunnerOptions) -> TaskRunner[Any]:
    from prefect_dask import DaskTaskRunner

    if options.address is not None:
        return DaskTaskRunner(address=options.address)
    cluster = {
        "n_workers": workers_of(options),
        "threads_per_worker": 1,
        "processes": True,
        "host": "127.0.0.1",
        "dashboard_address": None,
        "memory_limit": 0,
        "env": dict.fromkeys(THREADS, str(threads_of(options))),
    }
    return DaskTaskRunner(cluster_kwargs=cluster)


def _ray(options: RunnerOptions) -> TaskRunner[Any]:
    from prefect_ray import RayTaskRunner

    if options.address is not None:
        return RayTaskRunner(address=options.address)
    settings = {
        "num_cpus": workers_of(options),
        "include_dashboard": False,
        "_node_ip_address": "127.0.0.1",
        "object_store_memory": RAY_OBJECTS,
        "log_to_driver": False,
        "logging_level": logging.WARNING,
    }
    return RayTaskRunner(init_kwargs=settings)


_MAKERS: dict[str, Callable[[RunnerOptions], TaskRunner[Any]]] = {
    "thread": _thread, "process": _process, "dask": _dask, "ray": _ray
}  # fmt: skip
