"""MLflow's database appears whole or not at all, however its making ends."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tasks.servers import database
from tests.support.command import ROOT

MAKE = """
import sys
from pathlib import Path
from tasks.servers import database

database.MADE = Path(sys.argv[2])
database.ensure_database(sys.argv[1])
"""


def tables(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    try:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    finally:
        connection.close()


@pytest.mark.slow
def test_one_killed_while_it_is_made_leaves_none_and_the_next_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, made = tmp_path / "home", tmp_path / "made"
    path = home / "mlflow.db"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    making = subprocess.Popen([sys.executable, "-c", MAKE, f"sqlite:///{path}", str(made)], env=environment)
    try:
        until = time.monotonic() + 120
        while not any(draft.stat().st_size > 50_000 for draft in home.glob(".mlflow.db.*.draft")):
            assert time.monotonic() < until and making.poll() is None
            time.sleep(0.002)
    finally:
        making.send_signal(signal.SIGKILL)
        making.wait()
    assert not path.exists() and not made.exists()
    monkeypatch.setattr(database, "DRAFT_SECONDS", 0.0)
    monkeypatch.setattr(database, "MADE", made)
    database.ensure_database(f"sqlite:///{path}")
    assert "runs" in tables(path) and not any(name.startswith("_alembic_tmp") for name in tables(path))
    assert [left.name for left in home.iterdir()] == ["mlflow.db"]
    state = path.stat()
    database.ensure_database(f"sqlite:///{path}")
    assert path.stat() == state


@pytest.mark.parametrize("with_run", [False, True])
def test_one_that_was_broken_off_is_made_anew_unless_it_holds_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_run: bool
) -> None:
    path = tmp_path / "mlflow.db"
    connection = sqlite3.connect(path)
    for name in ("alembic_version", "runs", "_alembic_tmp_runs"):
        connection.execute(f"CREATE TABLE {name} (a)")
    if with_run:
        connection.execute("INSERT INTO runs VALUES (1)")
    connection.commit()
    connection.close()
    monkeypatch.setattr(database, "_make_tables", lambda draft: sqlite3.connect(draft).close())
    database.ensure_database(f"sqlite:///{path}")
    aside = tmp_path / f"mlflow.db{database.INCOMPLETE}"
    assert (aside.exists(), "_alembic_tmp_runs" in tables(path)) == (not with_run, with_run)


def test_the_store_of_a_server_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_make_tables", lambda draft: pytest.fail("nothing is to be made"))
    for uri in ("http://127.0.0.1:5000", "postgresql://db/mlflow", str(tmp_path)):
        database.ensure_database(uri)
