"""The SQLite database of MLflow's store: it appears whole, or not at all.

MLflow makes its tables in many steps, each committed by itself, and cannot go on where a process was killed between
two of them.  Nothing else of ours is imported: images of servers have this package alone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import sqlite3
import time
from importlib.metadata import version
from pathlib import Path

log = logging.getLogger("kgqa.tracking")

SQLITE = "sqlite:///"
DRAFT = ".draft"
"""Ends the name of a database that is being made."""
DRAFT_SECONDS = 30.0
"""A draft that was not written for so long has no process: its steps take a part of a second each."""
MADE = Path(__file__).with_name("__pycache__")
"""Holds the empty database of this installation."""
INCOMPLETE = ".incomplete"
"""Ends the name of a database that was never finished, and was set aside."""


def ensure_database(uri: str) -> None:
    """Make the database that an SQLite address names, where there is none; other addresses are left alone.

    Of two processes that make it at once, the first to end wins.  A database that was never finished and holds no run
    is set aside under another name and made anew.
    """
    if not uri.startswith(SQLITE):
        return
    path = Path(uri.removeprefix(SQLITE))
    unfinished = path.exists() and _is_unfinished(path)
    if path.exists() and not unfinished:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    _clear_drafts(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}{DRAFT}")
    try:
        _make_tables(draft)
        if unfinished:
            os.replace(path, path.with_name(path.name + INCOMPLETE))
            log.warning("the MLflow database %s was never finished and holds no run; it is now *%s", path, INCOMPLETE)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _clear_drafts(path: Path) -> None:
    """Delete the drafts of processes that were killed: those that nobody has written for a while."""
    for draft in path.parent.glob(f".{path.name}.*{DRAFT}*"):
        with contextlib.suppress(OSError):
            if draft.stat().st_mtime < time.time() - DRAFT_SECONDS:
                draft.unlink()


def _make_tables(path: Path) -> None:
    """An empty database, a copy of the one that this installation made first: MLflow takes two seconds to make one."""
    made = MADE / f"mlflow-{version('mlflow')}.db"
    if made.is_file():
        shutil.copyfile(made, path)
        return
    from mlflow.store.db import utils

    engine = utils.create_sqlalchemy_engine(f"{SQLITE}{path}")
    try:
        utils._initialize_tables(engine)
    finally:
        engine.dispose()
    with contextlib.suppress(OSError):
        made.parent.mkdir(exist_ok=True)
        draft = made.with_name(f".{made.name}.{secrets.token_hex(4)}{DRAFT}")
        shutil.copyfile(path, draft)
        os.replace(draft, made)


def _is_unfinished(path: Path) -> bool:
    """Whether a database has tables of a broken-off migration, or lacks those that MLflow begins with; and no run."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            broken = "alembic_version" not in names or any(name.startswith("_alembic_tmp_") for name in names)
            return broken and ("runs" not in names or connection.execute("SELECT 1 FROM runs").fetchone() is None)
    except sqlite3.Error:
        return False  # locked or damaged: MLflow says what it is
