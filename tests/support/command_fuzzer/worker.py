"""A warm process that runs cases: `python -m tests.support.command_fuzzer.worker ROOT SEED [MODULE:FUNCTION]`.

The heavy libraries are imported once; each case is a forked child in a session of its own, without the privileges by
which root reads and writes everything.  Cases come as JSON lines on stdin, verdicts go as JSON lines to stdout.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.support.command_fuzzer import judge, world
from tests.support.command_fuzzer.commands import commands
from tests.support.command_fuzzer.kinds import Case, Prepared, prepare
from tests.support.forked_command import call_as_script

IDLE_SECONDS, BUSY_SECONDS = float(os.environ.get("KGQA_FUZZER_IDLE_SECONDS", "15")), 60.0
"""A case that does nothing, or works, for as long does not end."""
FLOW_SECONDS = 90.0
SERVE_SECONDS = 25.0
"""What runs a flow, or serves, is sent SIGTERM after as long."""
END_SECONDS = 15.0
"""After SIGTERM a case must end within as long on a busy machine."""
PR_SET_CHILD_SUBREAPER, PR_CAPBSET_DROP = 36, 24
CAPABILITIES = (1, 2, 3)
"""CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER: with them nothing is read-only."""
MARK = "KGQA_FUZZER_CASE"
START = "from flows.cli.start import main; main()"
"""What the installed script does."""
HEAVY = ("prefect", "flows.pipeline", "flows.answer", "flows.cli.graph_folders", "flows.preflight", "flows.forecast",
         "flows.refresh", "flows.ltgen", "flows.answerability", "flows.abstention",
         "kgqa_core.runs.diff", "kgqa_core.report.runs", "mlflow")  # fmt: skip


class Worker:
    """One world and the cases that are run in it, one after another."""

    def __init__(self, root: Path, seed: int, target: str) -> None:
        self.root, self.seed = root, seed
        module, _, name = target.partition(":")
        self.main = getattr(importlib.import_module(module), name)
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.pristine = {name: judge.snapshot(root / "pristine" / name) for name in (world.USER, world.HOME)}

    def run(self, case: Case) -> judge.Verdict:
        """Run a case and judge it; the world is as it was afterwards."""
        user, place = self.root / world.USER, self.root / world.USER / world.CASE
        made = prepare(case, self.root, self.seed)
        before = judge.snapshot(user)
        ended = self._ended(case, made)
        after = judge.snapshot(user)
        if made.changing is not None:
            name = os.path.relpath(made.changing[0], user)
            before.pop(name), after.pop(name, None)
        relative = [os.path.relpath(path, user) for path in made.outputs]
        replaceable = [os.path.relpath(path, user) for path in made.replaceable]
        changes = judge.lost(before, after, outputs=relative, replaceable=replaceable)
        if not (self.root / world.HOME / "notes.txt").is_file():
            changes.append("gone: notes.txt of the home")
        word = "" if case.parameter is None else case.parameter.word or case.parameter.name
        value = None if case.parameter is None or made.changing else made.value
        if case.kind == "surrogate content" and "\\ud800" in ended.err:
            value = None  # what is wrong in the file is named
        wrong = judge.judge(ended, value=value, word=word, changes=changes)
        self._restore(place)
        call = shlex.join(made.words).replace(str(self.root), "")
        return judge.Verdict(
            case.number, case.command.name, word, "" if case.parameter is None else case.parameter.role, case.kind,
            call.encode("utf-8", "backslashreplace").decode()[:400], ended.code, round(ended.seconds, 2),
            round(ended.cpu, 2), wrong, judge.last_lines(ended.err or ended.out),
        )  # fmt: skip

    def _restore(self, place: Path) -> None:
        for folder, names, _ in os.walk(os.fsencode(place)):
            for one in (folder, *(os.path.join(folder, name) for name in names)):
                os.chmod(one, 0o755)
        shutil.rmtree(os.fsencode(place))
        for name, wanted in self.pristine.items():
            live = self.root / name
            if judge.snapshot(live) != wanted:
                shutil.rmtree(os.fsencode(live))
                shutil.copytree(self.root / "pristine" / name, live, symlinks=True)
        place.mkdir()

    def _ended(self, case: Case, made: Prepared) -> judge.Ended:
        outputs = [self.root / f"std{name}" for name in ("out", "err")]
        feeders = [self._feeder(target, content, made.opened) for target, content in made.fed]
        for target, _ in made.fed:
            if isinstance(target, int):
                os.close(target)
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            self._child(case, made, outputs)
        for handle in made.opened:
            os.close(handle)
        over = threading.Event()
        changer = threading.Thread(target=_change, args=(made.changing, over)) if made.changing else None
        if changer:
            changer.start()
        try:
            code, cpu, stopped, hung = self._wait(case, child, started)
        finally:
            over.set()
            if changer:
                changer.join()
        seconds = time.monotonic() - started
        for feeder in feeders:
            _kill(feeder)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(feeder, 0)
        left = self._left()
        out, err = (path.read_bytes().decode("utf-8", "replace") for path in outputs)
        return judge.Ended(code, out, err, seconds, cpu, stopped, hung, tuple(left))

    def _feeder(self, target: Path | int, content: bytes, readers: list[int]) -> int:
        """A process that writes into a pipe once, as `cat file >pipe` does; without content it reads, as `cat pipe`."""
        feeder = os.fork()
        if feeder:
            return feeder
        with contextlib.suppress(BaseException):
            for handle in readers:
                os.close(handle)
            if isinstance(target, Path) and not content:
                reader = os.open(target, os.O_RDONLY)
                while os.read(reader, 65536):
                    pass
                os._exit(0)
            writer = target if isinstance(target, int) else os.open(target, os.O_WRONLY)
            while content:
                content = content[os.write(writer, content) :]
        os._exit(0)

    def _child(self, case: Case, made: Prepared, outputs: list[Path]) -> None:
        code = 70
        try:
            os.setsid()
            os.chdir(self.root / world.USER / world.CASE)
            handles = [os.open(os.devnull, os.O_RDONLY)]
            handles += [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644) for path in outputs]
            for number, handle in enumerate(handles):
                os.dup2(handle, number)
                os.close(handle)
            for handle in made.opened:
                os.set_inheritable(handle, True)
            self._unprivileged()
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.environ["KGQA_HOME"] = str(self.root / world.HOME)
            os.environ[MARK] = f"{self.root}/{case.number}"
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
            if case.process:
                words = [sys.executable, "-c", START, *made.words]
                os.execve(sys.executable, [os.fsencode(word) for word in words], os.environb)
            code = call_as_script(self.main, ["kgqa", *made.words])
        except BaseException as fault:  # what is not of the command is a fault of the fuzzer
            os.write(2, f"fuzzer: {fault!r}\n".encode())
        finally:
            os._exit(code)

    def _unprivileged(self) -> None:
        if os.geteuid() != 0:
            return
        for one in CAPABILITIES:
            self.libc.prctl(PR_CAPBSET_DROP, one, 0, 0, 0)
        head = (ctypes.c_uint32 * 2)(0x20080522, 0)
        data = (ctypes.c_uint32 * 6)()
        self.libc.capget(ctypes.byref(head), ctypes.byref(data))
        for place in (0, 1, 2):
            for one in CAPABILITIES:
                data[place] &= ~(1 << one)
        if self.libc.capset(ctypes.byref(head), ctypes.byref(data)):
            raise OSError(ctypes.get_errno(), "capset")

    def _wait(self, case: Case, child: int, started: float) -> tuple[int, float, bool, bool]:
        """Exit code, seconds of processor, whether it was told to end, and whether it would not end."""
        told = 0.0
        hung = False
        patient = SERVE_SECONDS if case.command.serves else FLOW_SECONDS if case.command.flow else None
        pause = 0.002
        while True:
            pid, status, usage = os.wait4(child, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, bool(told), hung
            now = time.monotonic()
            if told:
                if now - told > END_SECONDS:
                    hung = True
                    _kill(child)
            elif patient is not None and now - started > patient:
                told = now
                os.kill(child, signal.SIGTERM)
            elif patient is None and now - started > IDLE_SECONDS:
                worked = _worked(child)
                if worked < 0.3 * (now - started) or now - started > BUSY_SECONDS:
                    hung, told = True, now
                    os.kill(child, signal.SIGTERM)
            time.sleep(pause)
            pause = min(pause * 1.3, 0.1)

    def _left(self) -> list[str]:
        """What is still running of a case after some seconds; it is ended."""
        until = time.monotonic() + 6.0
        while True:
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            living = _descendants(os.getpid())
            if not living:
                return []
            if time.monotonic() > until:
                for pid in living:
                    _kill(pid)
                return list(living.values())
            time.sleep(0.05)


def _change(changing: tuple[Path, str] | None, over: threading.Event) -> None:
    """Change a file while a command reads it: it grows, or others take its place, until the command ends."""
    assert changing is not None
    path, how = changing
    content = path.read_bytes()
    other = path.with_name(f"{path.name}.other")
    for turn in range(2_000):
        if over.is_set():
            break
        with contextlib.suppress(OSError):
            if how == "grows":
                with path.open("ab") as file:
                    file.write(content[-200:] or b"x\n")
            else:
                other.write_bytes(content[: len(content) // 2] if turn % 2 else content)
                os.replace(other, path)
        over.wait(0.002)
    other.unlink(missing_ok=True)


def _worked(pid: int) -> float:
    """Seconds of processor that a process and what it started have used."""
    total = 0.0
    for one in (pid, *_descendants(pid)):
        with contextlib.suppress(OSError, IndexError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def _descendants(pid: int) -> dict[int, str]:
    """Living processes below a process, and their command lines."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    below.setdefault(int(fields[1]), []).append(int(entry.name))
    found: dict[int, str] = {}
    waiting = list(below.get(pid, ()))
    while waiting:
        one = waiting.pop()
        with contextlib.suppress(OSError):
            found[one] = (Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" "))[:120].decode(
                "utf-8", "replace"
            )
        waiting += below.get(one, ())
    return found


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Serve cases from stdin."""
    root, seed, *target = sys.argv[1:]
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    os.set_inheritable(replies.fileno(), False)
    os.dup2(2, 1)
    folder = Path(root)
    if not (folder / "pristine").is_dir():
        words = [sys.executable, "-m", "tests.support.command_fuzzer.world", root]
        subprocess.run(words, check=True)  # in a process of its own: a fork inherits no threads
    found = {one.name: one for one in commands()}
    if not target:
        for name in ("flows.cli.graph_folders",) if world.LIGHT in os.environ else HEAVY:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    worker = Worker(folder, int(seed), target[0] if target else "flows.cli.start:main")
    replies.write('{"ready": true}\n')
    replies.flush()
    for line in requests:
        given = json.loads(line)
        command = found[given["command"]]
        parameter = next((one for one in command.parameters if one.name == given["parameter"]), None)
        case = Case(given["number"], command, parameter, given["kind"], given["process"])
        replies.write(json.dumps(judge.row(worker.run(case))) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
