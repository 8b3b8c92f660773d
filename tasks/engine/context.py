"""What a stage's body works with, and how a stage is named, keyed and run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kgqa_core.store.artifacts import ArtifactRef
from kgqa_core.workspace import Workspace

Counts = Mapping[str, Any]
"""What a stage counts of its artifact, for its manifest, Prefect and MLflow."""

Call = Any
"""The arguments of a stage's call, as attributes: `call.options.name`."""


Merge = Callable[[Workspace, Sequence[Path], Call], Counts]


@dataclass(frozen=True)
class StageOptions:
    """How a stage is named, keyed and run.

    label: what run names have after the kind.  variant: tells apart several stages of one kind in a run
    (`facts/rigel`); it is the label where there is none.  external: digests of files that the arguments only name
    (dumps, models), so that they enter the key.  code: the function that the body calls, where that depends on the
    arguments; else the code digest follows the library functions that the body names.  packages: third-party packages
    whose version decides the outcome, or a function from the arguments to these.  retries: further tries when an
    endpoint fails; nothing else gets better by trying again.  merge: joins the parts of a stage whose body does shares
    of the work (`workspace.part`), where `divides` of the arguments.  pays: it sends requests that count against the
    budget.  trains: its artifact is a trained model.  deployment: the deployment `flow/name` that computes it on a GPU
    worker, unless `only_here` of the arguments.
    """

    kind: str
    label: Callable[[Call], str] = lambda call: ""
    variant: Callable[[Call], str] = lambda call: ""
    external: Callable[[Call], Mapping[str, str]] = lambda call: {}
    code: Callable[[Call], Callable[..., Any]] | None = None
    packages: Iterable[str] | Callable[[Call], Iterable[str]] = ()
    tags: Iterable[str] = ("cpu",)
    retries: int = 0
    merge: Merge | None = None
    divides: Callable[[Call], bool] = lambda call: True
    pays: bool = False
    trains: bool = False
    deployment: str | None = None
    only_here: Callable[[Call], bool] = lambda call: False


class ArtifactWriter(Protocol):
    """What fills the folder of an artifact: a stage, wherever it runs."""

    def fill(self, workspace: Workspace, arguments: Mapping[str, Any]) -> Counts:
        """Fill `workspace.out` and return counts."""
        ...


def folder(ref: ArtifactRef | None) -> Path | None:
    """Folder of an artifact that a stage may lack."""
    return ref.folder if ref is not None else None


def folders(refs: Mapping[str, ArtifactRef]) -> dict[str, Path]:
    """Folders of artifacts, by name."""
    return {name: ref.folder for name, ref in refs.items()}


def grouped(group: str, refs: Mapping[str, ArtifactRef]) -> dict[str, ArtifactRef]:
    """Artifacts by `group/NAME`, for a stage that takes several groups as one argument."""
    return {f"{group}/{name}": ref for name, ref in refs.items()}


def group_folders(refs: Mapping[str, ArtifactRef], group: str | None = None) -> dict[str, Path]:
    """Folders of a group of artifacts by NAME; without a group, of the artifacts that belong to none."""
    if group is None:
        return {name: ref.folder for name, ref in refs.items() if "/" not in name}
    return {name.removeprefix(f"{group}/"): ref.folder for name, ref in refs.items() if name.startswith(f"{group}/")}
