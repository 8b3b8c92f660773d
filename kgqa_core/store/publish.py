"""Artifacts in folders of the user's own, outside any home: filled beside their place, and put there when complete.

A folder is replaced only when everything in it is what kgqa wrote there, and when it was made from the same source: the
manifest says both.  `force` replaces a folder of the same kind that is another's or holds more, after the log has shown
what goes; a folder of another kind, or without a manifest, and the inputs of the command are never touched.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgqa_core.errors import ArtifactError, OutputError
from kgqa_core.store.artifacts import ArtifactRef, read_manifest, sync_folder, write_manifest
from kgqa_core.store.digest import MANIFEST, VOLATILE, canonical_json, content_files, hash_file
from kgqa_core.store.files import exchange, storage_faults
from kgqa_core.store.outputs import Paths, allowed_folder, expand, listed, move_beside, same_place, state_of
from kgqa_core.store.verified import not_copied

log = logging.getLogger("kgqa")

Stamp = tuple[int, int, int]
"""Size, time of change in nanoseconds and number of a file: another one when the file is."""

_REMAINS = {"lock", "out", "work", "old"}
"""What is in a folder that is being filled."""

Fill = Callable[[Path, Path], Mapping[str, Any]]


@dataclass
class FolderClaim:
    """A folder that may be written as a whole.

    source: what the artifact is made from, as `source_of` has it; a folder with another source is another's.  replaces:
    a folder that the new one supersedes, whatever its source.  set_aside: with `force`, a folder that holds files of
    the user is renamed, not deleted.  own: files of the folder that kgqa wrote, with the stamps at which that was seen.
    going: files of the user that `force` gives up.  other: how what is there is another's.  seen: the place was
    checked before.
    """

    kind: str
    place: Path
    source: Mapping[str, Any] | None = None
    inputs: tuple[Path, ...] = ()
    replaces: Path | None = None
    force: bool = False
    set_aside: bool = False
    own: dict[str, Stamp] = field(default_factory=dict)
    going: dict[str, Stamp] = field(default_factory=dict)
    other: str = ""
    seen: bool = False

    def publish(self, fill: Fill, record: Mapping[str, Any] | None = None) -> ArtifactRef:
        """Fill a folder beside the place with `fill(out, work)` and put it there when complete.

        Raises OutputError when the place has changed meanwhile, and says where the new folder is then; StorageError
        when the disk is full or cannot be written.
        """
        place = self.place
        with storage_faults(place, what="the folder", option="--out"):
            place.parent.mkdir(parents=True, exist_ok=True)
            _clear_remains(place)
            with (
                tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.") as scratch,
                (Path(scratch) / "lock").open("w") as lock,
            ):
                fcntl.flock(lock, fcntl.LOCK_EX)
                out, work = Path(scratch) / "out", Path(scratch) / "work"
                out.mkdir()
                work.mkdir()
                counts = fill(out, work)
                more = {"source": dict(self.source)} if self.source is not None else {}
                more |= {"undigested": _undigested(out)}
                manifest = write_manifest(out, self.kind, "", counts, {**more, **(record or {})})
                self._put(out, Path(scratch) / "old")
                sync_folder(place.parent)
        return ArtifactRef(kind=self.kind, path=str(place), digest=manifest["digest"])

    def publish_copy(self, artifact: Path, finish: Callable[[Path], object] = lambda folder: None) -> Path:
        """Put a copy of an artifact there, with its counts, as `publish` does; the folder.

        finish: completes the copy.
        """

        def fill(out: Path, work: Path) -> Mapping[str, Any]:
            shutil.copytree(artifact, out, dirs_exist_ok=True, ignore=not_copied)
            (out / MANIFEST).unlink()
            finish(out)
            return dict(read_manifest(artifact)["counts"])

        return self.publish(fill).folder

    def check(self) -> None:
        """Raises OutputError when the folder at the place may not be replaced; notes what will go with it."""
        known, announced, first = dict(self.own), dict(self.going), not self.seen
        before, self.other = self.other, ""
        self.own, self.going, self.seen = {}, {}, True
        self._check_inputs()
        if state_of(self.place) is None:
            return
        if not self.place.is_dir() or self.place.is_symlink():
            raise OutputError(f"{self.place} is not a folder; choose another place with --out")
        there = _stamps(self.place)
        if not there:
            return
        manifest = self._manifest()
        extra, changed = _foreign(self.place, manifest, there, known)
        self.own = {name: stamp for name, stamp in there.items() if name not in {*extra, *changed}}
        self.going = {name: there[name] for name in (*extra, *changed)}
        self.other = other = self._other(manifest)
        if self.going and (not self.force or (not first and not self.going.items() <= announced.items())):
            parts = [f"{listed(names)} {what}" for names, what in ((extra, "not written by kgqa"), (changed, "changed"))
                     if names]  # fmt: skip
            raise OutputError(
                f"{self.place} holds files that would be lost: {'; '.join(parts)}. Move them out, choose another place "
                "with --out, or add --force"
            )
        if other and (not self.force or not (first or other == before)):
            raise OutputError(f"{self.place} {other}; choose another place with --out, or add --force to replace it")
        if first and (self.going or other):
            goes = listed([*extra, *changed])
            stays = "stays beside it under another name" if self.set_aside and goes else "goes"
            with_it = f", with {goes}" if goes else ""
            log.warning("--force: %s %s; it %s%s", self.place, other or "holds files of yours", stays, with_it)

    def _check_inputs(self) -> None:
        for given in self.inputs:
            if self.replaces is not None and same_place(given, self.place) and same_place(given, self.replaces):
                continue
            for path in (Path(os.path.abspath(given)), given.resolve()):
                if path == self.place:
                    raise OutputError(f"{self.place} is an input of this command; choose another place with --out")
                if path.is_relative_to(self.place):
                    raise OutputError(
                        f"{self.place} holds {given}, which this command reads; move it elsewhere, or choose another "
                        "place with --out"
                    )
                if self.place.is_relative_to(path) and (path / MANIFEST).is_file():
                    raise OutputError(f"{self.place} is in {given}, which this command reads; choose another place")

    def _manifest(self) -> dict[str, Any]:
        if not (self.place / MANIFEST).is_file():
            raise OutputError(
                f"{self.place} exists and is not a {self.kind} folder; choose another place with --out, or delete it"
            )
        try:
            manifest = read_manifest(self.place)
        except ArtifactError as fault:
            raise OutputError(
                f"{self.place} cannot be replaced ({fault}); choose another place with --out, or delete it"
            ) from None
        if manifest["kind"] != self.kind:
            raise OutputError(
                f"{self.place} exists and is not a {self.kind} folder (its kind is {manifest['kind']}); choose another "
                "place with --out, or delete it"
            )
        return manifest

    def _other(self, manifest: Mapping[str, Any]) -> str:
        """How the artifact of a folder differs in its source from the one to come; empty when it does not."""
        if self.source is None or (self.replaces is not None and same_place(self.replaces, self.place)):
            return ""
        there = manifest.get("source")
        if not isinstance(there, Mapping):
            return f"holds another {self.kind}, of an older kgqa that did not note what it was made from"
        if there.get("id") == self.source["id"] and there.get("id"):
            return ""
        return f"holds another {self.kind}, made by {_described(there)}, not by {_described(self.source)}"

    def _put(self, out: Path, old: Path) -> None:
        """Puts a complete folder in its place; what has come there since the check is never deleted."""
        try:
            self.check()
            if not self.place.exists() or not any(self.place.iterdir()):
                os.rename(out, self.place)
                return
        except (OutputError, FileExistsError, NotADirectoryError, OSError) as fault:
            if isinstance(fault, OSError) and not os.path.lexists(self.place):
                raise
            beside = move_beside(out, self.place, "new")
            why = str(fault) if isinstance(fault, OutputError) else f"{self.place} came there in the meantime"
            raise OutputError(f"{why}. What was made is in {beside}") from None
        if self.set_aside and self.going:
            self._log_moved(move_beside(self.place, self.place, "old"))
            os.rename(out, self.place)
            return
        if exchange(out, self.place):
            os.rename(out, old)
        else:
            os.rename(self.place, old)
            os.rename(out, self.place)
        if _stamps(old) != {**self.own, **self.going}:  # something came between the check and the exchange
            self._log_moved(move_beside(old, self.place, "old"))

    def _log_moved(self, aside: Path) -> None:
        log.warning("what was in %s is in %s", self.place, aside)


def claim_folder(
    kind: str,
    out: Path,
    *,
    source: Mapping[str, Any] | None = None,
    inputs: Paths = (),
    replaces: Path | None = None,
    force: bool = False,
    set_aside: bool = False,
) -> FolderClaim:
    """The folder `out`, when a command that reads `inputs` may put an artifact of this kind there.

    The further arguments are those of `FolderClaim`.  Raises OutputError for a place that may not be written, and for
    a folder that holds something else; with `force` the log says what goes.
    """
    place = allowed_folder(out)
    with contextlib.suppress(OSError):
        _clear_remains(place)
    claim = FolderClaim(kind, place, source, expand(inputs), replaces, force, set_aside)
    claim.check()
    return claim


def publish_folder(kind: str, target: Path, fill: Fill) -> ArtifactRef:
    """Fill a folder beside `target` and put it in its place when complete; an earlier artifact is replaced last.

    For places that the program chose itself; `claim_folder` is for those of users.  Raises OutputError when `target`
    holds something that is not an artifact of this kind as it was written.
    """
    claim = FolderClaim(kind, target.expanduser().resolve())
    _clear_remains(claim.place)
    claim.check()
    return claim.publish(fill)


def source_of(command: str, **parts: Sequence[Path | str] | Path | str | None) -> dict[str, Any]:
    """What a command makes an artifact from, for its manifest: the names, and an id of the place.

    Files of `/dev` and `/proc`, such as pipes, are no source that comes again, and have no id; those of `/dev/shm` are
    files as others.
    """
    named: dict[str, list[str]] = {}
    for part, value in parts.items():
        values = [value] if isinstance(value, str | Path) else list(value or ())
        named[part] = [
            text if text.startswith("bundled:") else os.path.abspath(Path(text).expanduser())
            for text in map(str, values)
        ]
    paths = [text for texts in named.values() for text in texts]
    names = [os.path.basename(text) for text in paths]
    passing = any(text.startswith(("/dev/", "/proc/")) and not text.startswith("/dev/shm/") for text in paths)
    ordered = {part: sorted(texts) for part, texts in named.items()}
    digest = "" if passing else hashlib.sha256(canonical_json([command, ordered]).encode()).hexdigest()
    return {"command": command, "names": names, "id": digest}


def _described(source: Mapping[str, Any]) -> str:
    names = source.get("names")
    return f"`kgqa {source.get('command')}` from {listed([str(name) for name in names]) if names else 'nothing'}"


def _undigested(folder: Path) -> dict[str, dict[str, Any]]:
    """The files of a complete folder that do not count for its digest, as a manifest has files."""
    counted = set(content_files(folder))
    rest = [folder / name for name in _stamps(folder) if folder / name not in counted]
    return {
        file.relative_to(folder).as_posix(): {"bytes": file.stat().st_size, "sha256": hash_file(file)}
        for file in sorted(rest)
        if file != folder / MANIFEST
    }


def _stamps(folder: Path) -> dict[str, Stamp]:
    """Every file and link below a folder, by its relative path; folders without files do not count.

    Raises OutputError when a folder cannot be read, and for a home.
    """

    def refuse(fault: OSError) -> None:
        raise OutputError(f"{folder} cannot be looked through ({fault}); choose another place with --out")

    stamps = {}
    for parent, folders, files in os.walk(folder, onerror=refuse):
        if "home.json" in files and "artifacts" in folders:
            raise OutputError(f"{parent} is a home of kgqa, in {folder}; choose another place with --out")
        for name in [*files, *(name for name in folders if os.path.islink(os.path.join(parent, name)))]:
            path = Path(parent, name)
            state = path.lstat()
            stamps[path.relative_to(folder).as_posix()] = (state.st_size, state.st_mtime_ns, state.st_ino)
    return stamps


def _foreign(
    folder: Path, manifest: Mapping[str, Any], there: Mapping[str, Stamp], known: Mapping[str, Stamp]
) -> tuple[list[str], list[str]]:
    """Files of a folder that its manifest does not name, and those that are not as the manifest says, by name.

    known: files that an earlier look found as they should be; without another stamp they are so still.
    """
    written: dict[str, Any] = {**manifest["files"]}
    listed_ = manifest.get("undigested")
    if isinstance(listed_, Mapping):
        written |= listed_
    until = there[MANIFEST][1]
    extra, changed = [], []
    for name, stamp in sorted(there.items()):
        if name == MANIFEST or known.get(name) == stamp:
            continue
        facts = written.get(name)
        if not isinstance(facts, Mapping):
            parts = name.split("/")
            unlisted = not isinstance(listed_, Mapping) and (VOLATILE in parts[:-1] or parts[-1] == MANIFEST)
            if not (unlisted and stamp[1] <= until):  # folders of older versions do not name such files
                extra.append(name)
        elif not _is_written(folder / name, facts):
            changed.append(name)
    return extra, changed


def _is_written(file: Path, facts: Mapping[str, Any]) -> bool:
    """Whether a file is as a manifest says."""
    if file.is_symlink() or not file.is_file() or file.stat().st_size != facts.get("bytes"):
        return False
    return hash_file(file) == facts.get("sha256")


def _clear_remains(place: Path) -> None:
    """Deletes what killed processes left beside a place; the lock distinguishes them from those still at work."""
    for scratch in place.parent.glob(f".{glob.escape(place.name)}.*/lock"):
        with contextlib.suppress(OSError), scratch.open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.read(1) or not {path.name for path in scratch.parent.iterdir()} <= _REMAINS:
                continue  # not one of ours
            if not place.exists() and (scratch.parent / "old" / MANIFEST).is_file():
                os.rename(scratch.parent / "old", place)
            shutil.rmtree(scratch.parent, ignore_errors=True)
