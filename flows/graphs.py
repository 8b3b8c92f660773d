"""`kgqa kg build`, `update`, `diff` and `dkg`: folders of their own, outside any home and without a run."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.artifacts import MANIFEST, ArtifactRef, publish_folder, read_manifest, verify
from kgqa_core.config import DkgOptions, make_profile
from kgqa_core.dkg.export import export
from kgqa_core.dkg.update import update as update_dkg
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.build import build
from kgqa_core.kg.delta import options_of, update
from kgqa_core.kg.diff import compare
from tasks.progress import StageMonitor

log = logging.getLogger("kgqa")


def build_folder(files: Sequence[str], out: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Build the graph of `files` in the folder `out`, whole or not at all; its counts and seconds.

    settings: further keys of the profile's `kg` section.  Raises KgInputError for unusable files and StorageError when
    `out` cannot be written; an earlier graph in `out` stays until the new one is complete.
    """
    started = time.monotonic()
    profile = make_profile({"kg": {"name": out.name, "files": [str(path) for path in files], **settings}})
    with StageMonitor("kg", lambda rows: None) as monitor:
        ref = publish_folder(
            "kg", out, lambda folder, work: build(folder, options=profile.kg, monitor=monitor, work=work)
        )
    return _result(ref, out, started)


def update_folder(
    old: Path,
    out: Path,
    *,
    files: Sequence[str] = (),
    added: Sequence[str] = (),
    removed: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Bring the graph in the folder `old` up to date in `out`, whole or not at all; counts, `changes` and seconds.

    files: the new dump, whole; or added and removed: files of statements that came and went.  settings: further keys of
    the profile's `kg` section in place of those that `old` was built with.  `out` may be `old`, which stays until the
    new graph is complete.  Lists of what changed are in `out`/volatile/diff.  Raises what `kg.delta.update` raises.
    """
    started = time.monotonic()
    try:
        read_manifest(old)
    except ArtifactError:
        raise ArtifactError(f"there is no graph folder {old}; `kgqa kg build FILE… --out {old}` makes one") from None
    named = {"name": out.name} if out.resolve() != old.resolve() else {}
    chosen = make_profile(
        {"kg": {**options_of(old), **named, "files": [str(path) for path in files], **(settings or {})}}
    ).kg
    with StageMonitor("kg", lambda rows: None) as monitor:
        ref = publish_folder(
            "kg",
            out,
            lambda folder, work: update(
                folder, old=old, options=chosen, added=added, removed=removed, monitor=monitor, work=work
            ),
        )
    return _result(ref, out, started)


def diff_folders(old: Path, new: Path, out: Path | None = None) -> dict[str, Any]:
    """What differs between two graph folders by key: counts, and lists in the folder `out` where it is given.

    Raises ArtifactError for a folder without graph.
    """
    with StageMonitor("kg", lambda rows: None) as monitor:
        return compare(old, new, out=out, monitor=monitor)


def export_folder(
    kg: Path, out: Path, *, old_dkg: Path | None = None, settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Export the differentiable KG of the graph folder `kg` to `out`, whole or not at all; counts and seconds.

    old_dkg: that of an earlier state of the graph, from which what did not change is taken; it may be `out`.
    settings: keys of the profile's `dkg` section.  Raises what `dkg.export` raises.
    """
    started = time.monotonic()
    options = DkgOptions(**(settings or {}))
    with StageMonitor("dkg", lambda rows: None) as monitor:

        def fill(folder: Path, work: Path) -> dict[str, Any]:
            if old_dkg is None:
                return export(folder, kg=kg, options=options, monitor=monitor, work=work)
            return update_dkg(folder, kg=kg, old_dkg=old_dkg, options=options, monitor=monitor, work=work)

        ref = publish_folder("dkg", out, fill)
    return _result(ref, out, started)


def graph_in(folder: Path) -> ArtifactRef:
    """The graph in a folder that `kgqa kg build` wrote.  Raises ArtifactError where there is none, or it is damaged."""
    folder = folder.expanduser()
    what = f"there is no graph folder {folder}"
    if (folder / MANIFEST).is_file():
        if (kind := read_manifest(folder)["kind"]) == "kg":
            return verify(folder.resolve())
        what = f"{folder} holds an artifact of kind {kind}, not a graph"
    raise ArtifactError(f"{what}; `kgqa kg build FILE… --out DIR` makes one")


def _result(ref: ArtifactRef, out: Path, started: float) -> dict[str, Any]:
    counts = read_manifest(ref.folder)["counts"]
    return {**counts, "seconds": round(time.monotonic() - started, 2), "out": str(out), "digest": ref.digest}
