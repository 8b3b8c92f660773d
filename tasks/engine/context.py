"""What a stage's body works with, and how a stage is named, keyed and run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kgqa_core.llm.budget import Budget
from kgqa_core.llm.protocol import LanguageModel
from kgqa_core.monitor import Monitor
from kgqa_core.store.artifacts import ArtifactRef
from kgqa_core.store.shards import Part

Counts = Mapping[str, Any]
"""What a stage counts of its artifact, for its manifest, Prefect and MLflow."""

Call = Any
"""The arguments of a stage's call, as attributes: `call.options.name`."""


@dataclass(frozen=True)
class StageContext:
    """What the body of a stage works with beside its arguments.

    out: empty folder that becomes the artifact when the body returns.  work: folder that a killed stage finds again.
    cache: folder of the home that keeps vectors and completions for all runs.  budget: what may be spent at endpoints,
    of stages that pay.  part: (k, n) when the body is to do the k-th of n shares of the work.  model: of a forecast, in
    place of the language model that the arguments name.
    """

    out: Path
    work: Path
    cache: Path
    monitor: Monitor
    budget: Budget | None = None
    part: Part | None = None
    model: LanguageModel | None = None


Merge = Callable[[StageContext, Sequence[Path], Call], Counts]


@dataclass(frozen=True)
class StageOptions:
    """How a stage is named, keyed and run; see `stage`."""

    kind: str
    label: Callable[[Call], str] = lambda call: ""
    variant: Callable[[Call], str] = lambda call: ""
    external: Callable[[Call], Mapping[str, str]] = lambda call: {}
    code: Callable[[Call], Callable[..., Any]] | None = None
    packages: Callable[[Call], Iterable[str]] = lambda call: ()
    tags: tuple[str, ...] = ("cpu",)
    retries: int = 0
    merge: Merge | None = None
    divides: Callable[[Call], bool] = lambda call: True
    pays: bool = False
    trains: bool = False
    deployment: str | None = None
    only_here: Callable[[Call], bool] = lambda call: False


class Fills(Protocol):
    """What fills the folder of an artifact: a stage, wherever it runs."""

    def fill(self, context: StageContext, arguments: Mapping[str, Any]) -> Counts:
        """Fill `context.out` and return counts."""
        ...


def folder(ref: ArtifactRef | None) -> Path | None:
    """Folder of an artifact that a stage may lack."""
    return ref.folder if ref is not None else None


def folders(refs: Mapping[str, ArtifactRef]) -> dict[str, Path]:
    """Folders of artifacts, by name."""
    return {name: ref.folder for name, ref in refs.items()}
