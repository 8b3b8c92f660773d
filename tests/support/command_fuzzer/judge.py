"""What a case broke: exit code, traceback, the user's files, processes, the message, the time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ALLOWED = (0, 1, 2, 130)
TERMINATED = 143
"""Exit code of a command that was sent SIGTERM."""
MOST_LINES = 20
FOREIGN = ("notes.txt", "draft.txt")
"""Files of the user wherever they lie."""
TRACEBACK = re.compile(
    r"Traceback \(most recent call last\)|Exception ignored in|Fatal Python error|^\s*File \"[^\"]+\", line \d+, in ",
    re.MULTILINE,
)

Entry = tuple[str, int, int, int, str]
"""Kind, mode, size, modification time and digest of a path."""


@dataclass(frozen=True)
class Ended:
    """How a case ended.  code: exit code, negative for a signal.  stopped: we sent SIGTERM when its time was over."""

    code: int
    out: str
    err: str
    seconds: float
    cpu: float
    stopped: bool = False
    hung: bool = False
    processes: tuple[str, ...] = ()


@dataclass
class Verdict:
    """What is wrong with a case, and how it ended."""

    number: int
    command: str
    parameter: str
    role: str
    kind: str
    call: str
    code: int
    seconds: float
    cpu: float
    violations: list[str] = field(default_factory=list)
    message: str = ""


def snapshot(root: Path) -> dict[str, Entry]:
    """Every path under `root` with kind, mode, size, time and digest; a folder's time and size do not count."""
    found: dict[str, Entry] = {}
    waiting = [os.fsencode(root)]
    while waiting:
        folder = waiting.pop()
        for one in os.scandir(folder):
            about = one.stat(follow_symlinks=False)
            name = os.fsdecode(os.path.relpath(one.path, os.fsencode(root)))
            kind = stat.filemode(about.st_mode)[0]
            if kind == "d":
                found[name] = (kind, about.st_mode, 0, 0, "")
                waiting.append(one.path)
            else:
                whole = kind == "-"  # a pipe's time is that of whoever writes into it
                about_file = (about.st_size, about.st_mtime_ns, _digest(one.path)) if whole else (0, 0, "")
                found[name] = (kind, about.st_mode, *about_file)
    return found


def _digest(path: bytes) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest()


def lost(
    before: Mapping[str, Entry], after: Mapping[str, Entry], *, outputs: Iterable[str], replaceable: Iterable[str]
) -> list[str]:
    """What a command did to files that are not its own: gone, changed, or new where nothing was to be written.

    outputs: paths, relative as the names are, under which it may write what is new.  replaceable: what it may change.
    """
    may_write, may_change = tuple(outputs), tuple(replaceable)
    found = []
    for name, entry in before.items():
        if _under(name, may_change) and os.path.basename(name) not in FOREIGN:
            continue
        if name not in after:
            found.append(f"gone: {name}")
        elif after[name] != entry:
            found.append(f"changed: {name}")
    for name in after.keys() - before.keys():
        if not _under(name, (*may_write, *may_change)):
            found.append(f"litter: {name}")
    return sorted(found)


def _under(name: str, places: tuple[str, ...]) -> bool:
    return any(name == place or name.startswith(f"{place}/") for place in places)


def judge(ended: Ended, *, value: str | None, word: str, changes: Iterable[str]) -> list[str]:
    """Everything that is wrong, in words.  value: the hostile one.  word: the option or argument that it was for."""
    wrong = [_shown(change) for change in changes]
    text = ended.err + ended.out
    if ended.code not in ALLOWED and not (ended.stopped and ended.code == TERMINATED):
        wrong.append(f"exit code {ended.code}")
    if ended.hung:
        wrong.append(f"does not end ({ended.seconds:.0f} s, {ended.cpu:.0f} s of processor)")
    if TRACEBACK.search(text):
        wrong.append("traceback")
    if "\x1b" in text or "\x07" in text:
        wrong.append("an escape sequence reaches the terminal")
    wrong += [f"process left: {one}" for one in ended.processes]
    if ended.code in (1, 2) and not wrong:
        lines = ended.err.count("\n")
        if lines >= MOST_LINES:
            wrong.append(f"message of {lines} lines")
        if value is not None and not names(text, value, word):
            wrong.append("the message does not name the value")
        if not ended.err.strip():
            wrong.append("no message on stderr")
    return wrong


def names(text: str, value: str, word: str) -> bool:
    """Does a message name a value?  Escapes, line breaks and shortening are granted; an empty value by its option."""
    plain = _squashed(text)
    if not value.strip():
        return _squashed(word).lower() in plain.lower() or "''" in text
    base = os.path.basename(value.rstrip("/")) if "/" in value and len(os.path.basename(value)) > 2 else value
    runs = re.findall(r"[^\W_]+", base.encode("utf-8", "replace").decode().replace("?", " "))
    wanted = [run[:12] for run in runs if len(run) > 2] or [run for run in runs if run] or [base]
    with contextlib.suppress(ValueError, OverflowError):
        wanted.append(str(float(value)))  # a number may be written otherwise than it was given
    quoted = [one or other for one, other in re.findall(r"\"([^\"]+)\"|'([^']+)'", text)]
    if value.startswith("-") and f"No such option: {value[:2]}" in text:
        return True
    return any(_squashed(run) in plain for run in wanted) or any(part in value for part in quoted)


def _squashed(text: str) -> str:
    """A text without white space and the lines of boxes."""
    return re.sub(r"[\s│╭╮╰╯─┃]+", "", text)


def _shown(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n")


def last_lines(text: str, number: int = 6) -> str:
    """The end of what a command said, in one line."""
    return _shown(" ⏎ ".join(text.strip().splitlines()[-number:]))[-600:]


def row(verdict: Verdict) -> dict[str, Any]:
    """A verdict as it is written."""
    return dict(vars(verdict))
