"""Commands killed at seeded moments: what is visible after each kill, what is left running, what a rerun ends with.

A `Command` runs in a `Place`, a folder of its own with a home and a TMPDIR.  `Series` measures it undisturbed, then
kills it: half of the moments lie in the first five seconds, the others in the whole of its time and while it writes.
After every few kills the command runs to its end, which must be that of the undisturbed one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from kgqa_core.errors import ArtifactError
from kgqa_core.llm.cache import FILE
from kgqa_core.store.artifacts import MANIFEST, content_digest, hash_file, verify
from kgqa_core.store.locks import held, idle
from tests.support.chaos import Model, marked, moments, wait_for
from tests.support.command import environment

MARK = "KGQA_KILL_MARK"
START_SECONDS = 5.0
"""Length of the stratum of kills that meet a command while it starts."""
CONCURRENCY = 2
"""Requests under way at once in the commands that pay; what one kill may cost at most."""
AFTERMATH_SECONDS = 15.0
"""Longest that a process which the command started may live on, or hold its stdout open, after the kill."""
TERM_SECONDS = 30.0
"""Longest wait for a command that was sent SIGTERM or SIGINT; then it counts as not ended."""
LIMIT_SECONDS = 600.0
KILLS_PER_PLACE = 4
READY = b"Ctrl-C"
"""Printed by a command that stays, once it is ready."""
START, ANY, WRITING = "first 5 s", "any time", "while writing"
"""Strata of the moments; the last begins when the first temporary file is there."""
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}

State = dict[str, str]
"""Digest of each output and artifact that can be seen, by its path; `half` where it is not whole."""


@dataclass(frozen=True)
class Place:
    """Where one command runs.  inputs: the folder that all places share and none may change."""

    folder: Path
    inputs: Path
    base_url: str = ""

    @property
    def home(self) -> Path:
        """Its home."""
        return self.folder / "home"

    @property
    def tmp(self) -> Path:
        """Its folder of temporary files."""
        return self.folder / "tmp"


@dataclass(frozen=True)
class Command:
    """A command of the table.

    words: its arguments in a place.  prepare: fills a new place.  outputs: patterns of the files and folders of a place
    that it writes or removes.  flow: it runs on the tests' Prefect server.  pays: it sends requests to the model.
    prints: what it prints as JSON is a result too, without the names in the set.  stays: it runs until it is stopped.
    """

    name: str
    words: Callable[[Place], Sequence[str | Path]]
    prepare: Callable[[Place], object] = lambda place: None
    outputs: tuple[str, ...] = ()
    flow: bool = False
    pays: bool = False
    prints: frozenset[str] | None = None
    stays: bool = False


@dataclass
class Row:
    """A line of the table: one command, one signal, kills in the first five seconds or later.

    survived: kills after which the same command ended with the digests of an undisturbed one.  half: kills after which
    a half result could be seen.  orphans: kills after which a process lived on; held: after which one kept the caller's
    stdout open.  slow: signals that had not ended the command after TERM_SECONDS.  left: kills after which a temporary
    file remained that the rerun did not sweep.
    lost: paid replies that the cache lacks in the end.  repeated: replies that were sent again, because they were under
    way at a kill; paid_twice: those beyond CONCURRENCY a kill.
    """

    command: str
    signal: str
    phase: str
    kills: int = 0
    survived: int = 0
    half: int = 0
    orphans: int = 0
    held: int = 0
    slow: int = 0
    left: int = 0
    lost: int = 0
    repeated: int = 0
    paid_twice: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


class Attempt:
    """One process of a command, with its stdout in a pipe as a caller reads it."""

    def __init__(self, command: Command, place: Place, env: Mapping[str, str]) -> None:
        self.command, self.place, self.mark = command, place, secrets.token_hex(8)
        own = {"KGQA_HOME": str(place.home), "TMPDIR": str(place.tmp), "OPENAI_API_KEY": "none", **env, MARK: self.mark}
        self._err = place.folder.parent / f"{self.mark}.err"
        words = [sys.executable, "-m", "flows.cli", *map(str, command.words(place))]
        with self._err.open("wb") as err:
            self.process = subprocess.Popen(
                words, env=environment(**own), cwd=place.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=err, start_new_session=True,
            )  # fmt: skip
        self.started = time.monotonic()
        self.out = b""
        self._closed = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while part := os.read(self.process.stdout.fileno(), 65536):
            self.out += part
        self.process.stdout.close()
        self._closed.set()

    @property
    def err(self) -> str:
        """What it wrote to stderr."""
        return self._err.read_text(errors="replace")

    def ended_by(self, seconds: float) -> bool:
        """Whether it has ended when it has run this long."""
        try:
            self.process.wait(max(0.0, self.started + seconds - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def ended_writing(self, seconds: float) -> bool:
        """Whether it has ended this long after it began to write, by the temporary files of its place."""
        before = _writing(self.place)
        while self.process.poll() is None and _writing(self.place) == before:
            time.sleep(0.002)
        return self.ended_by(time.monotonic() - self.started + seconds)

    def send(self, name: str) -> bool:
        """Send a signal, Ctrl-C to the whole group as a terminal does; whether the process ends in time."""
        with contextlib.suppress(ProcessLookupError):
            if name == "SIGINT":
                os.killpg(self.process.pid, signal.SIGINT)
            else:
                self.process.send_signal(SIGNALS[name])
        try:
            self.process.wait(TERM_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        return True

    def finish(self) -> float:
        """Seconds until its end; one that stays is stopped when it is ready."""
        if self.command.stays:
            wait_for(lambda: READY in self.out or self.process.poll() is not None, "it does not start", LIMIT_SECONDS)
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(LIMIT_SECONDS)
        seconds = time.monotonic() - self.started
        assert self._closed.wait(AFTERMATH_SECONDS), f"stdout is held open by {self.alive()}"
        return seconds

    def alive(self) -> list[psutil.Process]:
        """Living processes that it started."""
        family = {one.pid: one for one in marked(self.mark, MARK)}
        with contextlib.suppress(psutil.Error):
            for one in psutil.process_iter():
                with contextlib.suppress(psutil.Error, ProcessLookupError):
                    if os.getpgid(one.pid) == self.process.pid and one.status() != psutil.STATUS_ZOMBIE:
                        family[one.pid] = one
        family.pop(self.process.pid, None)
        return list(family.values())

    def aftermath(self) -> tuple[list[str], bool]:
        """Command lines of what lives on, and whether stdout is held; what lives on is ended here."""
        until = time.monotonic() + AFTERMATH_SECONDS
        while (left := self.alive()) and time.monotonic() < until:
            time.sleep(0.1)
        held = not self._closed.wait(max(0.2, until - time.monotonic()) if not left else 0.2)
        lines = []
        for one in left:
            with contextlib.suppress(psutil.Error):
                lines.append(" ".join(one.cmdline())[-90:])
                one.kill()
        return lines, held

    def close(self) -> None:
        """End it and all that it started."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for one in self.alive():
            with contextlib.suppress(psutil.Error):
                one.kill()
        self._closed.wait(5)
        self._err.unlink(missing_ok=True)


class Series:
    """All kills of one command, after an undisturbed run of it."""

    def __init__(
        self,
        command: Command,
        folder: Path,
        inputs: Path,
        *,
        model: Model | None = None,
        env: Mapping[str, str] | None = None,
        seed: int = 5,
    ) -> None:
        self.command, self.folder, self.inputs, self.model, self.env = command, folder, inputs, model, dict(env or {})
        self.draw = random.Random(f"{seed}/{command.name}")
        self.rows: dict[tuple[str, str], Row] = {}
        self.ended_first = 0
        place, paid = self._place(), self._count()
        self.before = self._state(place)
        attempt = Attempt(command, place, self.env)
        try:
            self.seconds = attempt.finish()
            assert attempt.process.returncode == 0, f"{command.name}:\n{attempt.err[-4000:]}"
            orphans, open_out = attempt.aftermath()
            assert not orphans and not open_out, f"{command.name} leaves {orphans} when nobody disturbs it"
            self.wanted = self._state(place, attempt)
            self.strays, self.entries = strays(place), replies_in(place)
        finally:
            attempt.close()
        self.replies = self._count() - paid
        shutil.rmtree(place.folder)

    def run(
        self, kills: int, names: Sequence[str] = ("SIGKILL",), shares: tuple[float, float] = (0.5, 0.25)
    ) -> list[Row]:
        """So many kills; signals in turns.

        shares: of kills in the first five seconds, and while it writes; the others lie in the whole of its time.
        """
        early, writing = (round(kills * share) for share in shares)
        writing = 0 if self.command.stays else writing
        late = kills - early - writing
        waiting = [(moment, START) for moment in moments(self.draw, early, min(START_SECONDS, self.seconds))]
        waiting += [(moment, ANY) for moment in moments(self.draw, late, self.seconds)]
        waiting += [(self.draw.uniform(0.0, 0.05), WRITING) for _ in range(writing)]
        self.draw.shuffle(waiting)
        plan = [(moment, phase, names[n % len(names)]) for n, (moment, phase) in enumerate(waiting)]
        misses = 0
        while plan:
            place, paid = self._place(), self._count()
            hit: list[Row] = []
            done = False
            while plan and len(hit) < KILLS_PER_PLACE and not done:
                moment, phase, name = plan[-1]
                attempt = Attempt(self.command, place, self.env)
                try:
                    if attempt.ended_by(moment) if phase != WRITING else attempt.ended_writing(moment):
                        self._check_end(attempt, place)
                        done, misses = True, misses + 1
                        self.ended_first += 1
                        later = (
                            (self.draw.uniform(0.0, self.seconds), ANY) if phase == WRITING else (moment * 0.8, phase)
                        )
                        plan[-1] = (*later, name)
                        assert misses < 5 * (kills + 1), f"{self.command.name} is too quick to be killed"
                        break
                    row = self._row(name, phase)
                    self._kill(attempt, place, row, name)
                    hit.append(row)
                    plan.pop()
                finally:
                    attempt.close()
            if hit:
                self._settle(place, paid, hit)
            shutil.rmtree(place.folder)
        return list(self.rows.values())

    def _kill(self, attempt: Attempt, place: Place, row: Row, name: str) -> None:
        row.kills += 1
        if not attempt.send(name):
            row.slow += 1
            row.notes["does not end on the signal"] += 1
        row.codes[str(attempt.process.returncode)] += 1
        orphans, open_out = attempt.aftermath()
        row.orphans += bool(orphans)
        row.held += open_out
        row.notes.update(f"lives on: {line}" for line in orphans)
        if "Traceback" in attempt.err:
            row.notes["traceback: " + attempt.err.strip().splitlines()[-1][:100]] += 1
        halves = {
            path: seen
            for path, seen in self._state(place).items()
            if seen not in (self.before.get(path), self.wanted.get(path))
        }
        halves |= {path: "gone" for path in self.before if path in self.wanted and path not in self._state(place)}
        row.half += bool(halves)
        row.notes.update(f"half: {path}" for path in halves)

    def _settle(self, place: Place, paid: int, hit: list[Row]) -> None:
        attempt = Attempt(self.command, place, self.env)
        try:
            attempt.finish()
            self._check_end(attempt, place)
            orphans, open_out = attempt.aftermath()
            state = self._state(place, attempt)
        finally:
            attempt.close()
        same = state == self.wanted and not orphans and not open_out
        held_locks = [path for path in (place.home / "locks").rglob("*") if path.is_file() and not idle(path)]
        left = sorted(set(strays(place)) - set(self.strays))
        again = self.model.twice(paid) if self.model is not None and self.command.pays else 0
        lost = max(0, self.entries - replies_in(place)) if self.command.pays else 0
        beyond = max(0, again - len(hit) * CONCURRENCY)
        for row in hit:
            row.survived += same and not held_locks
            row.left += bool(left)
        last = hit[-1]
        last.repeated += again
        last.paid_twice += beyond
        last.lost += lost
        last.notes.update(f"left: {name}" for name in left)
        last.notes.update(f"held after the rerun: {path.name}" for path in held_locks)
        if state != self.wanted:
            last.notes.update(f"differs: {path}" for path in sorted(dict(state.items() ^ self.wanted.items())))

    def _check_end(self, attempt: Attempt, place: Place) -> None:
        """A rerun ends well, or refuses to overwrite what is there: the whole result, where the kill came after it."""
        code = attempt.process.returncode
        whole = all(self.wanted.get(path) == seen for path, seen in self._state(place).items())
        refused = code in (1, 2) and "exists" in attempt.err and self.command.outputs and whole
        assert code == 0 or refused, f"{self.command.name}: code {code}\n{attempt.err[-4000:]}"

    def _row(self, name: str, phase: str) -> Row:
        return self.rows.setdefault((name, phase), Row(self.command.name, name, phase))

    def _place(self) -> Place:
        folder = self.folder / secrets.token_hex(4)
        place = Place(folder, self.inputs, self.model.base_url if self.model is not None else "")
        place.tmp.mkdir(parents=True)
        self.command.prepare(place)
        return place

    def _count(self) -> int:
        return self.model.count() if self.model is not None else 0

    def _state(self, place: Place, attempt: Attempt | None = None) -> State:
        seen = {}
        for path in sorted(path for name in self.command.outputs for path in place.folder.glob(name)):
            seen[str(path.relative_to(place.folder))] = _digest(path) or "half"
        if not self.command.pays:
            seen["replies"] = str(replies_in(place))
        for path in (place.home / "artifacts").glob("*/*"):
            if not path.parent.name.endswith("-part") and not path.name.startswith("."):
                seen[f"{path.parent.name}/{path.name}"] = _digest(path, artifact=True) or "half"
        if attempt is not None and self.command.prints is not None:
            found = json.loads(attempt.out.decode().strip().splitlines()[-1])
            plain = {key: value for key, value in found.items() if key not in self.command.prints}
            seen["stdout"] = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
        return seen


def _digest(path: Path, *, artifact: bool = False) -> str | None:
    if path.is_file():
        return hash_file(path)
    if not path.is_dir():
        return None
    if artifact or (path / MANIFEST).exists():
        try:
            return verify(path).digest
        except (ArtifactError, OSError):
            return "half"
    return content_digest(path)


def strays(place: Place) -> list[str]:
    """Temporary files and folders of a place, by a name without numbers of processes."""
    found = [f"TMPDIR: {_plain(path.name)}" for path in place.tmp.iterdir()]
    found += [_plain(path.name) for path in place.folder.iterdir() if path.name.startswith(".")]
    for name in ("tmp", "work", "locks/uses"):
        folder = place.home / name
        found += [f"home/{name}/{_plain(path.name)}" for path in (folder.iterdir() if folder.is_dir() else ())]
    for path in place.home.rglob("*"):
        if (path.name.endswith((".tmp", ".part")) or path.name.startswith(".")) and path.parent.name not in (
            "tmp",
            "work",
        ):
            found.append(f"home/{_plain(str(path.relative_to(place.home)))}")
    return found


def replies_in(place: Place) -> int:
    """Replies of the model that the cache of a place's home has."""
    path = place.home / "cache" / FILE
    if not path.is_file():
        return 0
    with contextlib.closing(sqlite3.connect(path)) as base:
        return int(base.execute("SELECT count(*) FROM responses").fetchone()[0])


def _writing(place: Place) -> list[str]:
    """Names of what is being written: temporary files, outputs, folders of stages."""
    folders = [folder for folder in (place.folder, place.tmp, place.home / "tmp") if folder.is_dir()]
    return sorted(path.name for folder in folders for path in folder.iterdir())


def _plain(name: str) -> str:
    return "".join("N" if character.isdigit() else character for character in name)


def write_rows(path: Path, rows: Sequence[Row], conditions: Mapping[str, Any]) -> None:
    """Add rows to a JSON file; those of the same command, signal and phase are summed.

    conditions: of this series; they are appended to those of earlier ones.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with held(path.with_suffix(".lock"), "adding rows", lambda _: None):
        stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"rows": [], "series": []}
        known: dict[tuple[str, str, str], dict[str, Any]] = {}
        for row in [*stored["rows"], *map(vars, rows)]:
            key = (row["command"], row["signal"], row["phase"])
            if key not in known:
                known[key] = {**row, "codes": Counter(row["codes"]), "notes": Counter(row["notes"])}
                continue
            for name, value in row.items():
                if isinstance(value, Mapping):
                    known[key][name].update(value)
                elif isinstance(value, int):
                    known[key][name] += value
        tree = {"rows": list(known.values()), "series": [*stored["series"], dict(conditions)]}
        path.write_text(json.dumps(tree, indent=1, sort_keys=True) + "\n", encoding="utf-8")
