"""`kgqa` in a fork of a process that has imported the commands: a process of its own that starts within milliseconds.

For refusals and for what a command prints and writes.  What starts a server, is killed, or must be the same in two
processes is run by `tests.support.command.kgqa`: forks share a hash seed, a Prefect folder and settings of Prefect.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from tests.support.command import ROOT, Outcome, environment

IMPORTED = (
    "mlflow", "flows.cli.app", "flows.preflight", "flows.pipeline", "flows.answer", "flows.cli.graph_folders",
    "kgqa_core.llm.builtin.model", "transformers.models.llama.modeling_llama", "kgqa_core.symbolic.auto",
)  # fmt: skip
SETTINGS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "600",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "TRANSFORMERS_VERBOSITY": "error",
}
"""What commands set before they import Prefect, MLflow and Transformers."""

_running = ExitStack()
_guard = threading.Lock()


class Forker:
    """The process that forks.  Its output goes to this process's stderr."""

    def __init__(self, folder: Path) -> None:
        from tests.support.prefect_server import shared_environment

        self.folder = folder
        given = environment(**SETTINGS, **shared_environment(), PREFECT_HOME=str(folder / "prefect"))
        words = [sys.executable, "-m", "tests.support.forked_command"]
        self.process = subprocess.Popen(
            words, env=given, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    def run(self, words: list[str], env: Mapping[str, str], cwd: Path, timeout: float) -> Outcome:
        """Run a command.  Raises TimeoutExpired, after which there is no forker any more."""
        assert self.process.stdin and self.process.stdout
        files = [str(self.folder / name) for name in ("out", "err")]
        self.process.stdin.write(json.dumps([words, dict(env), str(cwd), files]).encode() + b"\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(words, timeout)
        code = int(self.process.stdout.readline())
        return Outcome(code, *(Path(name).read_text(encoding="utf-8") for name in files))

    def stop(self) -> None:
        """End the process: it forks until its stdin is closed."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@functools.cache
def forker() -> Forker:
    """That of this pytest process, started by the first call and ended by `stop`, with the session."""
    folder = _running.enter_context(tempfile.TemporaryDirectory(prefix="kgqa-forks-", ignore_cleanup_errors=True))
    made = Forker(Path(folder))
    _running.callback(made.stop)
    return made


def forked_kgqa(
    *words: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 600
) -> Outcome:
    """Run a command and wait for it; flows run on the tests' Prefect server.  env: not for settings of Prefect."""
    with _guard:
        return forker().run([str(word) for word in words], env or {}, cwd or Path.cwd(), timeout)


def stop() -> None:
    """End the forking process, if there is one."""
    _running.close()


def serve(requests: IO[str], replies: IO[str]) -> None:
    """Be `kgqa` in a fork for each request, and reply with its exit code."""
    from flows.cli.start import main

    for line in requests:
        words, env, cwd, files = json.loads(line)
        child = os.fork()
        if child:
            replies.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
            replies.flush()
            continue
        requests.close()
        replies.close()
        os.environ.update(env)
        os.chdir(cwd)
        for number, path in enumerate(files, start=1):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(handle, number)
            os.close(handle)
        os._exit(call_as_script(main, ["kgqa", *words]))  # libraries end threads that a fork does not have


def call_as_script(main: Callable[[], None], words: list[str]) -> int:
    """The exit code of a main function that is called as the interpreter calls a script."""
    sys.argv = words
    sys.modules["__main__"].__package__ = None  # else usage messages name this module
    code = 0
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            code = end.code or 0
        else:
            print(end.code, file=sys.stderr)
            code = 1
    except KeyboardInterrupt:
        traceback.print_exc()
        code = 130
    except BaseException:
        traceback.print_exc()
        code = 1
    with contextlib.suppress(Exception):
        threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    return code


def start() -> None:
    """Import the commands, then serve requests from stdin."""
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for name in IMPORTED:
        importlib.import_module(name)
    for record in importlib.import_module("flows.cli.commands").COMMANDS:
        record.load()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    serve(requests, replies)


if __name__ == "__main__":
    start()
    os._exit(0)  # to take its modules apart takes seconds, which the session would wait for
