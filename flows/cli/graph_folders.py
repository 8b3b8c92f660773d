"""`kgqa kg build`, `update`, `diff` and `dkg`: folders of their own, outside any home and without a run."""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.config import DkgOptions, make_profile
from kgqa_core.dkg.export import export
from kgqa_core.dkg.export import update as update_dkg
from kgqa_core.errors import ArtifactError, InputError
from kgqa_core.kg.build import build
from kgqa_core.kg.update.delta import options_of, update
from kgqa_core.kg.update.diff import LISTS, compare
from kgqa_core.spool import spool_in
from kgqa_core.store.artifacts import ArtifactRef, read_manifest
from kgqa_core.store.outputs import claim_files
from kgqa_core.store.publish import claim_folder, source_of
from kgqa_core.store.scratch import scratch_folder
from kgqa_core.workspace import Workspace
from tasks.engine.progress import StageMonitor

log = logging.getLogger("kgqa")


def build_folder(
    files: Sequence[str], out: Path, settings: Mapping[str, Any], *, force: bool = False
) -> dict[str, Any]:
    """Build the graph of `files` in the folder `out`, whole or not at all; its counts and seconds.

    settings: further keys of the profile's `kg` section.  force: replace a graph of other files, or one that holds
    more.  Raises KgInputError for unusable files, OutputError when `out` holds something else and StorageError when it
    cannot be written; an earlier graph in `out` stays until the new one is complete.
    """
    started = time.monotonic()
    section = {"name": out.name, "files": [str(path) for path in files], "fetched": _fetched_beside(out), **settings}
    profile = make_profile({"kg": section})
    inputs = [*files, *profile.kg.reading_files().values()]
    claim = claim_folder("kg", out, source=source_of("kg build", files=files), inputs=inputs, force=force)
    _spool_beside(out)
    with StageMonitor("kg", lambda rows: None) as monitor, _clearing(profile.kg.fetched, _fetched_beside(out)):
        ref = claim.publish(lambda folder, work: build(Workspace(folder, work, monitor=monitor), options=profile.kg))
    return _result(ref, out, started)


def update_folder(
    old: Path,
    out: Path,
    *,
    files: Sequence[str] = (),
    added: Sequence[str] = (),
    removed: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Bring the graph in the folder `old` up to date in `out`, whole or not at all; counts, `changes` and seconds.

    files: the new dump, whole; or added and removed: files of statements that came and went.  settings: further keys of
    the profile's `kg` section in place of those that `old` was built with.  `out` may be `old`, which stays until the
    new graph is complete.  Lists of what changed are in `out`/volatile/diff.  force: replace
    another graph in `out`, or one that holds more.  Raises OutputError for such an `out`, and what `kg.delta.update`
    raises.
    """
    started = time.monotonic()
    try:
        read_manifest(old)
    except ArtifactError:
        raise ArtifactError(f"there is no graph folder {old}; `kgqa kg build FILE… --out {old}` makes one") from None
    named = {"name": out.name} if out.resolve() != old.resolve() else {}
    chosen = make_profile(
        {
            "kg": {
                **options_of(old),
                **named,
                "files": [str(path) for path in files],
                "fetched": _fetched_beside(out),
                **(settings or {}),
            }
        }
    ).kg
    claim = claim_folder(
        "kg",
        out,
        source=source_of("kg update", old=old, files=files, added=added, removed=removed),
        inputs=(old, *files, *chosen.reading_files().values(), *added, *removed),
        replaces=old,
        force=force,
    )
    _spool_beside(out)
    with StageMonitor("kg", lambda rows: None) as monitor, _clearing(chosen.fetched, _fetched_beside(out)):
        ref = claim.publish(
            lambda folder, work: update(
                Workspace(folder, work, monitor=monitor), old=old, options=chosen, added=added, removed=removed
            )
        )
    return _result(ref, out, started)


def diff_folders(old: Path, new: Path, out: Path | None = None, *, force: bool = False) -> dict[str, Any]:
    """What differs between two graph folders by key: counts, and lists in the folder `out` where it is given.

    force: replace earlier lists.  Raises ArtifactError for a folder without graph, OutputError when `out` has lists.
    """
    claim = claim_files(out, LISTS, inputs=(old, new), force=force) if out is not None else None
    lists = claim.writing() if claim is not None else scratch_folder(None, "kgqa-diff")
    with StageMonitor("kg", lambda rows: None) as monitor, lists as folder:
        return compare(Workspace(folder, monitor=monitor), old, new)


def export_folder(
    kg: Path,
    out: Path,
    *,
    old_dkg: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Export the differentiable KG of the graph folder `kg` to `out`, whole or not at all; counts and seconds.

    old_dkg: that of an earlier state of the graph, whose files are shared where no array changed; it may be `out`.
    settings: keys of the profile's `dkg` section.  force: replace that of another graph, or one that holds more.
    Raises OutputError for such an `out`, and what `dkg.export` raises.
    """
    started = time.monotonic()
    options = DkgOptions(**(settings or {}))
    inputs = [kg] if old_dkg is None else [kg, old_dkg]
    claim = claim_folder("dkg", out, source=source_of("kg dkg", kg=kg), inputs=inputs, replaces=old_dkg, force=force)
    with StageMonitor("dkg", lambda rows: None) as monitor:

        def fill(folder: Path, work: Path) -> dict[str, Any]:
            if old_dkg is None:
                return export(Workspace(folder, work, monitor=monitor), kg=kg, options=options)
            return update_dkg(Workspace(folder, work, monitor=monitor), kg=kg, old_dkg=old_dkg, options=options)

        ref = claim.publish(fill)
    return _result(ref, out, started)


def _fetched_beside(out: Path) -> str:
    """Where what is fetched from servers lies until the graph is finished."""
    place = out.expanduser().resolve()
    return str(place.parent / f".{place.name}.fetched")


@contextlib.contextmanager
def _clearing(fetched: str | None, folder: str) -> Iterator[None]:
    """Deletes what was fetched once the graph is finished, and when it cannot be used; what the user named stays.

    A kill, a full disk or a server that does not answer leave it for the next command.
    """
    try:
        yield
    except InputError:
        if fetched == folder:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if fetched == folder:
        shutil.rmtree(folder, ignore_errors=True)


def _spool_beside(out: Path) -> None:
    """Pipes are copied to the disk that the graph will be on."""
    spool_in(next(folder for folder in out.expanduser().resolve().parents if folder.is_dir()))


def _result(ref: ArtifactRef, out: Path, started: float) -> dict[str, Any]:
    counts = read_manifest(ref.folder)["counts"]
    return {**counts, "seconds": round(time.monotonic() - started, 2), "out": str(out), "digest": ref.digest}
