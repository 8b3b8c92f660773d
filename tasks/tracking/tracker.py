"""What a run tells its tracker: events, each one record that a store writes or that waits in a file until it can.

Parameters are the dotted keys of the profile; metrics of a training step keep their name (`loss`, `dev_hits_at_1`),
scores are called `experiment/split/metric`; `docs/tracking.md` lists all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

PENDING = "pending-"


class DataSet(NamedTuple):
    """A data set as a run read it: numbers among its counts are remembered, and what it was read for."""

    name: str
    digest: str
    counts: Mapping[str, Any]
    context: str


def now() -> int:
    """This moment in milliseconds."""
    return int(time.time() * 1000)


class RunEvent(msgspec.Struct, frozen=True, tag_field="call"):
    """Something of a run.  run: id of the tracked run, or the handle that stands for it; None: it is not tracked."""

    run: str | None

    def is_empty(self) -> bool:
        """Whether there is nothing to remember."""
        return self.run is None


class RunStart(RunEvent, frozen=True, tag="start"):
    """A run is opened, nested under `parent` where given."""

    name: str
    tags: Mapping[str, str]
    parent: str | None = None


class RunValues(RunEvent, frozen=True, tag="log"):
    """Parameters, measured values as (name, value, step), and tags of a run."""

    params: Mapping[str, Any] = {}
    metrics: Sequence[tuple[str, float, int]] = ()
    tags: Mapping[str, str] = {}
    at: int = msgspec.field(default_factory=now)

    def is_empty(self) -> bool:
        """Whether there is nothing to remember."""
        return self.run is None or not (self.params or self.metrics or self.tags)


class RunFile(RunEvent, frozen=True, tag="file"):
    """A file, or the files of a folder, to keep with a run."""

    path: str
    folder: str | None = None


class RunDatasets(RunEvent, frozen=True, tag="datasets"):
    """Data sets that the run read."""

    read: Sequence[DataSet]

    def is_empty(self) -> bool:
        """Whether there is nothing to remember."""
        return self.run is None or not self.read


class RunModel(RunEvent, frozen=True, tag="model"):
    """The system of a run, as a model that loads (`tasks.tracking.model_reference`)."""

    reference: Mapping[str, Any]


class ModelVersion(RunEvent, frozen=True, tag="register"):
    """The files that a run keeps under `folder`, without one the model that it logged, are a version of a model."""

    model: str
    folder: str
    tags: Mapping[str, str]
    description: str


class RunEnd(RunEvent, frozen=True, tag="end"):
    """A run is closed as FINISHED, FAILED or KILLED."""

    status: str = "FINISHED"
    at: int = msgspec.field(default_factory=now)


class ModelAliases(msgspec.Struct, frozen=True, tag_field="call", tag="aliases"):
    """The aliases of a registered model follow `truth`: a JSON file, alias → `{"run_id"}` or null."""

    model: str
    truth: str

    def is_empty(self) -> bool:
        """Whether there is nothing to remember."""
        return False


Event: TypeAlias = RunStart | RunValues | RunFile | RunDatasets | RunModel | ModelVersion | RunEnd | ModelAliases


class Tracker(Protocol):
    """Where runs are remembered."""

    @property
    def experiment(self) -> str | None:
        """Id of the experiment, for links."""
        ...

    def start(self, name: str, tags: Mapping[str, str], parent: str | None = None) -> str | None:
        """Open a run, nested under `parent` where given; its id, or None when nothing is remembered."""
        ...

    def record(self, *events: Event) -> None:
        """Remember events, in their order."""
        ...

    def known(self, run: str | None) -> str | None:
        """The id that a run has where runs are remembered, or None while it is not there."""
        ...

    def retry(self) -> None:
        """Send what could not be sent before, should the place where runs are remembered be back."""
        ...


class NoTracker:
    """Remembers nothing."""

    experiment: str | None = None

    def start(self, name: str, tags: Mapping[str, str], parent: str | None = None) -> str | None:
        """No run is opened."""
        return None

    def record(self, *events: Event) -> None:
        """Ignored."""

    def known(self, run: str | None) -> str | None:
        """No run is known."""
        return None

    def retry(self) -> None:
        """Nothing waits."""


def make_handle(run_id: str, at: int) -> str:
    """What stands for a tracked run until it has an id, and finds it: our run, and the moment (ms) it was opened at."""
    return f"{PENDING}{at}-{run_id}"


def read_handle(handle: str) -> tuple[str, int]:
    """The run and the moment that a handle was made of.

    >>> read_handle(make_handle("20260101-120000-ab12", 1767268800000))
    ('20260101-120000-ab12', 1767268800000)
    """
    at, _, run_id = handle.removeprefix(PENDING).partition("-")
    return run_id, int(at)
