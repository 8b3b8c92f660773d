"""Hostile values: for every role of a parameter the kinds of input that it may meet, and how one is made."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.support.command_fuzzer.commands import RECIPES, Command, Parameter, Role

NAMES: dict[str, str] = {
    "space": "my file",
    "newline": "two\nlines",
    "dash": "-rf",
    "unicode": "grün ☃ \u202eфайл",
    "long": "n" * 240,
    "dots": "../case/../case/dotted",
    "markup": "[/bold]x[red]y[/]",
    "surrogate": "raw\udcff\udcfebytes",
}
"""Kinds that are a name, and the name; `\\udcff` is the byte 0xFF as Python has it in an argument."""

TEXTS: dict[str, str] = {
    **NAMES,
    "missing": "no such thing",
    "empty": "",
    "long": "n" * 255,
    "dots": "../../../etc/passwd",
    "escape": "\x1b]0;owned\x07\x1b[2J",
    "huge": "h" * 100_000,
    "huge number": "1" + "0" * 400,
    "json": '{"a": "\\ud800"}',
}
NUMBERS: dict[str, str] = {
    "empty": "",
    "huge": "1" + "0" * 30,
    "huge negative": "-1" + "0" * 30,
    "endless": "1e999",
    "not a number": "nan",
    "dash": "-1",
    "zero": "0",
    "markup": "[/bold]3",
    "surrogate": "3\udcff",
    "long": "9" * 255,
    "unicode": "٣",
}
READ = ("missing", "empty", "folder", "pipe", "substitution", "read-only", *NAMES, "surrogate content", "huge",
        "zeros", "grows", "replaced", "empty name")  # fmt: skip
WRITTEN = ("missing", "folder", "pipe", "read-only", *NAMES, "huge", "empty name", "existing", "output is input")
ROLE_KINDS: dict[Role, tuple[str, ...]] = {
    "file": READ,
    "folder": READ,
    "profile": (*READ, *(f"text {name}" for name in TEXTS if name != "empty")),
    "out_file": WRITTEN,
    "out_folder": (*WRITTEN, "foreign files"),
    "home": ("missing", "empty", "file", "pipe", "read-only", *NAMES, "huge", "output is input", "foreign files"),
    "text": tuple(TEXTS),
    "number": tuple(NUMBERS),
}
REFUSED = frozenset({"missing", "empty", "folder", "surrogate content", "empty name", "text missing"})
"""Kinds of input that a flow refuses before it starts, so that trying them costs no flow."""
FEW = frozenset({"missing", "empty", "newline", "markup", "surrogate", "escape", "huge"})
"""Kinds of text that a command which loads models is given."""
THROUGH = frozenset({"space", "markup", "surrogate"})
"""Kinds with which a flow is run to its end; the others that it takes are left to unit tests of the same readers."""

Change = Literal["grows", "replaced"]


@dataclass(frozen=True)
class Case:
    """One call.  parameter: what is hostile, by its place in the command; None of a command called as it should be."""

    number: int
    command: Command
    parameter: Parameter | None
    kind: str
    process: bool = False

    @property
    def title(self) -> str:
        """The case in words."""
        where = "" if self.parameter is None else f" {self.parameter.word or self.parameter.name.upper()}"
        return f"{self.command.name}{where}: {self.kind}{' (own process)' if self.process else ''}"


@dataclass
class Prepared:
    """What a case is called with.

    value: the hostile one.  outputs: where it may write.  fed: pipes that are fed, or read where they are fed nothing.
    replaceable: folders of ours that the command may replace.  changing: a file that the user changes meanwhile.
    """

    words: list[str] = field(default_factory=list)
    value: str = ""
    outputs: list[Path] = field(default_factory=list)
    replaceable: list[Path] = field(default_factory=list)
    fed: list[tuple[Path | int, bytes]] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)
    changing: tuple[Path, Change] | None = None
    home: Path | None = None


def cases(found: list[Command], *, flows: bool, every: bool = True) -> list[Case]:
    """Every case of these commands, numbered.  flows: also those that run a flow to its end, or stop one."""
    rows: list[tuple[Command, Parameter | None, str]] = []
    for command in found:
        if flows or not (command.flow or command.serves):
            rows.append((command, None, "as it should be"))
        for parameter in command.parameters:
            for kind in ROLE_KINDS[parameter.role]:
                if _worth(command, parameter, kind, flows):
                    rows.append((command, parameter, kind))
    return [Case(number, *row) for number, row in enumerate(rows)]


def _worth(command: Command, parameter: Parameter, kind: str, flows: bool) -> bool:
    """Is a case run?  What starts a flow, a server or a model takes seconds, so that only some kinds of it are."""
    if command.serves:
        return flows and (parameter.role == "number" or kind in {"markup", "surrogate", "empty", "file", "pipe"})
    if parameter.role == "number":
        return True
    if parameter.role == "text":
        return (flows or not command.flow) and (kind in FEW or not (command.flow or command.loads))
    if not command.flow:
        return True
    if flows:
        return kind in REFUSED | THROUGH | {"existing", "foreign files", "output is input", "file", "pipe"}
    return kind in REFUSED and parameter.role in ("file", "folder", "profile") and command.name != "answer"


def prepare(case: Case, root: Path, seed: int) -> Prepared:
    """Make the hostile thing of a case in `root/user/case`, and the words of the call."""
    from tests.support.command_fuzzer.world import CASE, HOME, USER

    user = root / USER
    place = user / CASE
    made = Prepared(home=root / HOME)
    draw = random.Random(f"{seed}/{case.title}")
    if case.parameter is not None:
        made.value = _value(case, user, place, made, draw)
    words: list[str] = []
    arguments: list[str] = []
    for one in case.command.parameters:
        if one is case.parameter:
            value = made.value
        elif (
            not one.always
            or _in_place(one, case.parameter)
            or (one.role == "home" and case.parameter is not None and one.word)
        ):
            continue
        else:
            value = _good(one, user, place, made)
        if one.word:
            words += [one.word, value]
        else:
            arguments.append(value)
            if case.command.name == "compare":
                arguments.append("20260201")
    more = list(case.command.more)
    if case.parameter is not None and case.parameter.word in more:  # a number that the good call sets
        at = more.index(case.parameter.word)
        del more[at : at + 2]
    made.words = [*case.command.words, *words, *more, *arguments]
    beside = RECIPES[case.command.name].beside
    made.outputs += [path.with_name(path.name + ending) for path in list(made.outputs) for ending in beside]
    return made


def _in_place(one: Parameter, hostile: Parameter | None) -> bool:
    """Does the hostile parameter stand in for this one, as lists of changes do for a whole dump?"""
    return hostile is not None and one.name == "files" and hostile.name in ("added", "removed")


def _good(parameter: Parameter, user: Path, place: Path, made: Prepared) -> str:
    if parameter.role in ("out_file", "out_folder"):
        made.outputs.append(place / parameter.good)
        return str(place / parameter.good)
    if parameter.role == "home":
        return str(user.parent / parameter.good)
    return str(user / parameter.good) if parameter.role in ("file", "folder", "profile") else parameter.good


def _value(case: Case, user: Path, place: Path, made: Prepared, draw: random.Random) -> str:
    parameter = case.parameter
    assert parameter is not None
    if parameter.role == "number":
        return NUMBERS[case.kind]
    if parameter.role == "text":
        return TEXTS[case.kind]
    if case.kind.startswith("text "):
        return TEXTS[case.kind.removeprefix("text ")]
    if parameter.role in ("out_file", "out_folder"):
        return _output(case, parameter, user, place, made)
    if parameter.role == "home":
        return _home(case.kind, user, place, made)
    return _input(case.kind, user / parameter.good, place, made, draw)


def _input(kind: str, source: Path, place: Path, made: Prepared, draw: random.Random) -> str:
    """A hostile input made of the good one `source`; its path."""
    suffix = "".join(source.suffixes)
    whole = source.is_dir()
    if kind in NAMES:
        name = NAMES[kind][: 250 - len(suffix)] + suffix
        return _copied(source, place, name)
    target = place / f"{kind.replace(' ', '-')}-input{suffix}"
    if kind == "missing":
        return str(target)
    if kind == "empty name":
        return ""
    if kind == "empty":
        target.mkdir() if whole else target.touch()
    elif kind == "folder":  # a file where a folder belongs, and the other way round
        target.write_text("a file\n") if whole else target.mkdir()
    elif kind == "zeros":
        target.write_bytes(bytes(200_000))
    elif kind == "pipe":
        os.mkfifo(target)
        made.fed.append((target, _bytes(source)))
    elif kind == "substitution":
        reader, writer = os.pipe()
        made.opened.append(reader)
        made.fed.append((writer, _bytes(source)))
        return f"/dev/fd/{reader}"
    elif kind == "read-only":
        target = place / "read-only" / source.name
        target.parent.mkdir()
        _copy(source, target)
        for path in [target.parent, *target.parent.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
    elif kind == "surrogate content":
        _with_surrogates(source, target)
    elif kind == "huge":
        _huge(source, target)
    else:
        _copy(source, target)
        inner = sorted(path for path in target.rglob("*") if path.is_file()) if whole else [target]
        made.changing = (draw.choice(inner), "grows" if kind == "grows" else "replaced")
    return str(target)


def _output(case: Case, parameter: Parameter, user: Path, place: Path, made: Prepared) -> str:
    kind, folder = case.kind, parameter.role == "out_folder"
    suffix = Path(parameter.good).suffix
    if kind in NAMES:
        path = NAMES[kind][: 250 - len(suffix)] + suffix
        made.outputs.append(place / path.partition("/")[0] if kind != "dots" else place / os.path.basename(path))
        return path if kind == "dash" else str(place / path)
    if kind == "empty name":
        return ""
    if kind == "output is input":
        return _an_input(case, user, made)
    target = place / f"{kind.replace(' ', '-')}-output{suffix}"
    if kind == "missing":
        target = place / "no-such-folder" / target.name
        made.outputs.append(place / "no-such-folder")
    elif kind == "huge":
        target = place / ("h" * 5000 + suffix)
    elif kind == "pipe":
        os.mkfifo(target)
        made.fed.append((target, b""))
    elif kind == "folder":  # a folder where a file is to be written, and the other way round
        target.write_text("a file of the user\n") if folder else target.mkdir()
    elif kind == "existing":
        if folder:
            shutil.copytree(user / "ltgen", target)
            made.outputs.append(target)
        else:
            target.write_text("a file of the user\n")
    elif kind == "foreign files":
        target.mkdir()
        (target / "notes.txt").write_text("a file of the user\n")
        made.outputs.append(target)
    elif kind == "read-only":
        target = place / "read-only" / target.name
        target.parent.mkdir(mode=0o555)
    return str(target)


def _an_input(case: Case, user: Path, made: Prepared) -> str:
    """An input of the same command; of a command that only reads its home, a file of the home or the graph."""
    for one in case.command.parameters:
        if one.role in ("file", "folder") and one.always:
            if case.command.name == "kg update" and one.name == "old":
                made.replaceable.append(user / one.good)
            return str(user / one.good)
    return str(user / "kg" / "kg.duckdb")


def _home(kind: str, user: Path, place: Path, made: Prepared) -> str:
    target = place / f"{kind}-home"
    made.home = target
    if kind in NAMES:
        target = place / NAMES[kind]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(user.parent / "home", target, symlinks=True)
        made.home = target
        made.replaceable.append(target)
        return NAMES[kind] if kind == "dash" else str(target)
    made.replaceable.append(target)
    if kind == "empty":
        target.mkdir()
    elif kind == "file":
        target.write_text("a file of the user\n")
        made.replaceable.clear()
    elif kind == "pipe":
        os.mkfifo(target)
        made.replaceable.clear()
    elif kind == "read-only":
        shutil.copytree(user.parent / "home", target, symlinks=True)
        for path in [target, *target.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        made.replaceable.clear()
    elif kind == "huge":
        return str(place / ("h" * 5000))
    elif kind == "foreign files":
        target.mkdir()
        (target / "notes.txt").write_text("a file of the user\n")
        (target / "tmp").mkdir()
        (target / "tmp" / "draft.txt").write_text("a file of the user\n")
    elif kind == "output is input":
        made.replaceable.clear()
        made.outputs.append(user / "kg")
        made.home = user / "kg"
        return str(user / "kg")
    return str(target)


def _copied(source: Path, place: Path, name: str) -> str:
    """A copy with a name, and the path by which a user in the folder of the case would give it."""
    (place / name).parent.mkdir(parents=True, exist_ok=True)
    _copy(source, place / name)
    return name if name.startswith("-") else str(place / name)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def _bytes(source: Path) -> bytes:
    """What a pipe is fed with: the file, or some file of a folder."""
    if source.is_file():
        return source.read_bytes()
    return next(path for path in sorted(source.rglob("*")) if path.is_file()).read_bytes()


def _with_surrogates(source: Path, target: Path) -> None:
    """Half a surrogate pair in every JSON string that holds a vowel, and raw bytes that are no UTF-8 elsewhere."""

    def spoil(path: Path) -> None:
        content = path.read_bytes()
        if path.suffix in (".json", ".jsonl", ".yaml"):
            content = content.replace(b"e", b"\\ud800", 40) if path.suffix == ".yaml" else _spoilt(content)
        elif path.suffix in (".tsv", ".nt", ".csv", ".txt"):
            content = content.replace(b"a", b"\xed\xa0\x80\xff", 40)
        path.write_bytes(content)

    _copy(source, target)
    for path in [target, *target.rglob("*")]:
        if path.is_file() and not stat.S_ISFIFO(path.stat().st_mode):
            spoil(path)


def _spoilt(content: bytes) -> bytes:
    """JSON, or lines of it, in which every text value ends in half a surrogate pair."""

    def spoil(value: Any) -> Any:
        if isinstance(value, str):
            return value + "\ud800"
        if isinstance(value, list):
            return [spoil(one) for one in value]
        return {name: spoil(one) for name, one in value.items()} if isinstance(value, dict) else value

    try:
        return json.dumps(spoil(json.loads(content))).encode()
    except ValueError:
        lines = [line for line in content.split(b"\n") if line]
        return b"".join(json.dumps(spoil(json.loads(line))).encode() + b"\n" for line in lines)


def _huge(source: Path, target: Path) -> None:
    """One endless line, numbers of 400 digits in JSON, or a folder whose small files are such."""
    _copy(source, target)
    for path in [target, *target.rglob("*")]:
        if not path.is_file():
            continue
        if path.suffix == ".json":
            path.write_text(json.dumps(_huge_numbers(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")
        elif path.suffix == ".jsonl":
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
            rows = [json.dumps(_huge_numbers(row) | {"id": 10**400}) for row in lines]
            path.write_text("\n".join(rows) + "\n", encoding="utf-8")
        elif path.suffix in (".tsv", ".nt", ".csv", ".yaml"):
            with path.open("ab") as file:
                file.write(b"x" * 8_000_000 + b"\n")


def _huge_numbers(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return 10**400
    if isinstance(value, list):
        return [_huge_numbers(one) for one in value]
    return {name: _huge_numbers(one) for name, one in value.items()} if isinstance(value, dict) else value
