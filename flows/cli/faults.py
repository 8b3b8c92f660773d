"""How a command ends: every fault becomes one message and an exit code, and no raw text reaches the terminal."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from typer import Abort
from typer.exceptions import TyperException

from flows.cli import interrupt
from flows.cli._output import err
from flows.cli.usage import shown
from kgqa_core.errors import PASSWORD, ConfigError, KgqaError, StorageError, without_passwords
from kgqa_core.extras import advice, extra_of
from kgqa_core.report.terminal import VisibleRecord, VisibleText
from kgqa_core.store.files import full_disk, full_folder, has_no_room, is_full

SEEN = "everybody on this machine can read in the list of processes, and the shell keeps; change it"
"""What is wrong with a password among the arguments of a command."""
NO_SERVER = "ephemeral Prefect API server"
"""What Prefect's error says when its temporary server does not start."""


def run_command(command: Callable[..., Any], *, verbose: bool) -> int:
    """Run a Typer application on the arguments of this process; the exit code.

    0 done, 1 failure, 2 bad input or usage, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    try:
        interrupt.watch()
        _guard_output()
        _warn_of_passwords(sys.argv[1:])
        code = command(standalone_mode=False)
    except BaseException as fault:
        if isinstance(fault, SystemExit) and not interrupt.raised():
            raise
        if interrupt.received() or isinstance(fault, KeyboardInterrupt):
            return interrupt.report()
        return _tell(fault, verbose=verbose)
    if interrupt.raised():  # Typer has made an exit code of the exception
        return interrupt.report()
    return code if isinstance(code, int) else 0


def _guard_output() -> None:
    """Text that a terminal cannot show, or should not, is escaped wherever it is written."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    logging.setLogRecordFactory(VisibleRecord)
    threading.excepthook = _tell_of_thread


def _warn_of_passwords(words: Sequence[str]) -> None:
    for word in words:
        if PASSWORD.search(word):
            err.print(f"warning: the argument {without_passwords(word)} holds a password, which {SEEN}", soft_wrap=True)


def _tell(fault: BaseException, *, verbose: bool) -> int:
    """Print a fault's message; the exit code."""
    if isinstance(fault, TyperException):
        return _tell_usage(fault)
    if isinstance(fault, Abort):
        _error("aborted")
        return 1
    if isinstance(fault, ModuleNotFoundError) and fault.name and (extra := extra_of(fault.name)):
        fault = ConfigError(advice(extra, "this command", [fault.name]))
    known = fault if isinstance(fault, KgqaError) else _full(fault)
    if known is not None:
        if verbose:
            _traceback(fault)
        _error(str(known))
        return known.exit_code
    from tasks.engine import server_lost

    if server_lost.wants_login(fault):
        _error(
            f"the Prefect server at {server_lost.address()} refuses this login; set PREFECT_API_AUTH_STRING (the "
            "servers of `kgqa ui` have theirs in prefect/auth_string of their home)"
        )
        server_lost.leave(2)
    if server_lost.is_loss(fault):
        _error(
            f"the Prefect server at {server_lost.address()} is away or fails; finished stages are kept. Start the same "
            "command again when it is well, or with another PREFECT_API_URL"
        )
        server_lost.leave(1)
    if isinstance(fault, OSError) and isinstance(fault.filename, str | bytes) and not verbose:
        # a file or folder that a reader or writer did not look at first: what the system says of it
        _error(f"{shown(os.fsdecode(fault.filename), 500)}: {fault.strerror}")
        return 1
    _traceback(fault)
    _error(f"{type(fault).__name__}: {fault}\nThis is a fault of kgqa; please report it with the lines above.")
    return 1


def _full(fault: BaseException) -> StorageError | None:
    """A full disk behind a fault that is not ours: of SQLite under Prefect or MLflow, of DuckDB, of any file."""
    home = Path(os.environ.get("KGQA_HOME") or ".kgqa")
    if is_full(fault):
        named = [Path(word).absolute() for word in sys.argv[1:] if os.sep in word or os.path.exists(word)]
        for folder in (home, *(path if path.is_dir() else path.parent for path in named), Path(tempfile.gettempdir())):
            with contextlib.suppress(OSError, ValueError):
                if has_no_room(folder):
                    return StorageError(full_disk(home) if folder == home else full_folder(folder))
        return StorageError(f"no space left where this command writes ({fault}); free some and start it again")
    from tasks.engine import server_lost

    with contextlib.suppress(OSError):
        lost = server_lost.is_loss(fault) or NO_SERVER in str(fault)
        if lost and has_no_room(home):
            return StorageError(full_disk(home))
    return None


def _tell_usage(fault: TyperException) -> int:
    """What is wrong with the options: usage, a pointer to the help, the message."""
    context = getattr(fault, "ctx", None)
    if type(fault).__name__ == "NoArgsIsHelpError":  # the help is printed already
        return fault.exit_code
    if context is not None:
        err.print(context.get_usage(), highlight=False, soft_wrap=True)
        err.print(f"Try '{context.command_path} --help' for help.", highlight=False, soft_wrap=True)
    message = fault.format_message()
    options = [name for parameter in context.command.params for name in parameter.opts] if context is not None else []
    if message.startswith("Got unexpected extra argument") and "--kg" in options:
        message += "; a graph is named by --kg"
    _error(message)
    return fault.exit_code


def _error(message: str) -> None:
    text = VisibleText.assemble(("error:", "bold red"), f" {without_passwords(message)}")
    err.print(text, highlight=False, soft_wrap=True)


def _traceback(fault: BaseException) -> None:
    import traceback

    text = without_passwords("".join(traceback.format_exception(fault)))
    err.print(text, highlight=False, soft_wrap=True)


def _tell_of_thread(fault: threading.ExceptHookArgs) -> None:
    """A fault that ends a thread of a library."""
    if fault.exc_value is not None and not issubclass(fault.exc_type, SystemExit):
        name = fault.thread.name if fault.thread is not None else "a thread"
        logging.getLogger("kgqa").warning("%s ended with %s: %s", name, fault.exc_type.__name__, fault.exc_value)
