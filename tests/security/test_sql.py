"""`kgqa kg sql` reads one graph: it writes nothing, and reaches no other file, no network and no setting."""

from __future__ import annotations

import hashlib
from pathlib import Path

import duckdb
import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import InputError
from kgqa_core.kg.build import build
from kgqa_core.kg.look.query import query
from kgqa_core.workspace import Workspace

BAD = (
    "ATTACH '{folder}/other.duckdb'",
    "ATTACH '{folder}/kg/kg.duckdb' AS again",
    "DETACH kg",
    "COPY triples TO '{folder}/out.csv'",
    "COPY (SELECT 1) TO '{folder}/out.parquet' (FORMAT parquet)",
    "COPY triples FROM '{folder}/secret.csv'",
    "EXPORT DATABASE '{folder}/out'",
    "IMPORT DATABASE '{folder}'",
    "SELECT * FROM read_csv('{folder}/secret.csv')",
    "SELECT * FROM read_text('{folder}/secret.csv')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM read_json('{folder}/secret.csv')",
    "SELECT * FROM read_parquet('{folder}/*.parquet')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM sniff_csv('{folder}/secret.csv')",
    "SELECT * FROM '{folder}/secret.csv'",
    "FROM 'https://127.0.0.1:9/x.csv'",
    "FROM read_csv('http://127.0.0.1:9/x.csv')",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{folder}/secret.csv'",
    "SET enable_external_access = true",
    "SET GLOBAL allowed_directories = ['/']",
    "RESET enable_external_access",
    "RESET lock_configuration",
    "SET temp_directory = '{folder}/out'",
    "SET log_query_path = '{folder}/out.log'",
    "PRAGMA enable_profiling = 'json'",
    "PRAGMA profiling_output = '{folder}/out.json'",
    "SELECT 1; SET lock_configuration = false",
    "SELECT 1; COPY triples TO '{folder}/out.csv'",
    "SELECT 1; ATTACH '{folder}/other.duckdb'; SELECT 2",
    "SELECT 1; DROP TABLE triples",
    "INSERT INTO meta VALUES ('x', '1')",
    "UPDATE entities SET key = 'x'",
    "DELETE FROM triples",
    "TRUNCATE triples",
    "ALTER TABLE triples ADD COLUMN x INTEGER",
    "CREATE TABLE kg.mine AS SELECT 1",
    "CREATE VIEW kg.mine AS SELECT 1",
    "CREATE PERSISTENT SECRET s (TYPE s3, KEY_ID 'x')",
    "CREATE SECRET s (TYPE s3, KEY_ID 'x')",
    "SELECT getenv('HOME')",
    "CHECKPOINT",
    "CALL enable_logging(storage='file', storage_path='{folder}/log')",
    "SELECT 1; FROM Enable_Logging(storage='file', storage_path='{folder}/log'); SELECT 2",
    "EXPLAIN ANALYZE FROM enable_profiling(format='json', save_location='{folder}/out.json')",
    "USE memory",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph and files beside it."""
    folder = tmp_path_factory.mktemp("sql")
    (folder / "graph.tsv").write_text("a\tknows\tb\nb\tknows\tc\n")
    (folder / "secret.csv").write_text("a\ncanary\n")
    (folder / "kg").mkdir()
    build(Workspace(folder / "kg"), options=KgOptions(files=(str(folder / "graph.tsv"),)))
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 'canary' AS a) TO '{folder / 'secret.parquet'}'")
    return folder


def state(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("statement", BAD)
def test_a_statement_that_writes_or_reaches_out_is_refused(statement: str, folder: Path) -> None:
    before = state(folder)
    with pytest.raises(InputError) as caught:
        query(folder / "kg", statement.format(folder=folder))
    assert "canary" not in str(caught.value)
    assert state(folder) == before


@pytest.mark.parametrize("text", ["", "  ", "-- nothing", ";", "/* nothing */ ;;"])
def test_a_text_without_a_statement_is_said(text: str, folder: Path) -> None:
    with pytest.raises(InputError, match="there is no statement"):
        query(folder / "kg", text)


def test_what_is_refused_is_named(folder: Path) -> None:
    for statement, word in (("CALL enable_logging()", "CALL"), ("FROM enable_logging()", "enable_logging")):
        with pytest.raises(InputError, match=f"^{word} is refused"):
            query(folder / "kg", statement)


def test_nothing_is_spilled_to_disk(folder: Path) -> None:
    assert query(folder / "kg", "SELECT current_setting('temp_directory') AS place")["rows"] == [[""]]


@pytest.mark.parametrize("statement", ["ATTACH ':memory:' AS m", "VACUUM kg.triples"])
def test_a_statement_that_is_let_through_changes_no_file(statement: str, folder: Path) -> None:
    before = state(folder)
    query(folder / "kg", statement)
    assert state(folder) == before


def test_a_temporary_table_ends_with_its_statement(folder: Path) -> None:
    before = state(folder)
    found = query(folder / "kg", "CREATE TEMP TABLE t AS SELECT key FROM entities; SELECT count(*) AS n FROM t")
    assert found["rows"] == [[3]] and state(folder) == before
    with pytest.raises(InputError, match="does not exist"):
        query(folder / "kg", "SELECT * FROM t")


def test_the_message_shows_the_statement_without_its_escape_sequences(folder: Path) -> None:
    with pytest.raises(InputError, match=r"^'\\x1b\]0;owned\\x07': Parser Error"):
        query(folder / "kg", "\x1b]0;owned\x07")
