"""Commands that read a home do not import pandas, and MLflow finds it again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.command import ROOT

BEGIN = """
import sys, duckdb
from flows.cli._pandas import allow_pandas, without_pandas
"""


def _run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", BEGIN + code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_duckdb_gives_the_same_rows_without_pandas() -> None:
    _run("""
without_pandas()
database = duckdb.connect()
rows = database.execute("SELECT ?::INTEGER + 1, ?::VARCHAR, ?::DOUBLE[]", [1, "é", [0.5]]).fetchall()
assert rows == [(2, "é", [0.5])], rows
import polars
table = polars.DataFrame({"a": [1, 2]}).to_arrow()
database.register("table_1", table)
assert database.execute("SELECT sum(a) FROM table_1 WHERE a > ?", [1]).fetchall() == [(2,)]
assert "pandas" not in sys.modules
""")


@pytest.mark.slow
def test_the_import_of_mlflow_finds_pandas() -> None:
    _run("""
without_pandas()
without_pandas()
duckdb.connect().execute("SELECT ?", [1])
import pyarrow
assert pyarrow.array(["a"]).to_pylist() == ["a"]
import mlflow
import pandas
assert pyarrow.table({"a": [1]}).to_pandas().shape == (1, 1)
assert pandas.DataFrame({"a": [1]}).shape == (1, 1)
without_pandas()
assert sys.modules["pandas"] is pandas and not any(type(one).__name__ == "_NoPandas" for one in sys.meta_path)
""")
