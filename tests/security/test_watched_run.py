"""A whole run with keys in its environment and hostile names writes no key and makes nothing that a browser runs."""

from __future__ import annotations

import base64
import gzip
import sqlite3
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest

from kgqa_core.store.home import read_runs
from tests.support.hostile import EVIL, Dangers, dangers
from tests.support.object_store import ObjectStore
from tests.support.watched import KEYS, SECRETS, Watched, traces, watched_run


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """The run, done once."""
    return watched_run(tmp_path_factory.mktemp("watched"))


@pytest.mark.slow
def test_keys_reach_their_own_endpoint_and_are_written_nowhere(watched: Watched) -> None:
    outcome = watched.outcomes["run"]
    assert outcome.code == 0, outcome.err[-4000:]
    assert watched.heard == {f"Bearer {SECRETS[name]}" for name in ("OPENAI_API_KEY", "LAB_KEY")}
    for part in ("runs", "mlflow", "prefect", "cache", "artifacts"):
        assert any(path.is_file() for path in (watched.home / part).rglob("*")), f"nothing was written in {part}"
    assert any(path.is_file() for path in (watched.folder / "place" / "store").rglob("*"))
    assert "[key]" in outcome.err, "no failed try was told of, so nothing was tested"
    assert traces(watched.folder, KEYS) == []


@pytest.mark.slow
def test_names_with_dots_and_slashes_lead_nowhere(watched: Watched) -> None:
    assert sorted(path.name for path in watched.folder.iterdir()) == [
        "asked.jsonl", "graph.tsv", "place", "run.err", "run.out"
    ]  # fmt: skip
    assert sorted(path.name for path in (watched.folder / "place").iterdir()) == ["home", "store"]
    made = {path.parent for path in watched.folder.rglob("*") if "evil" in path.name}
    assert made == {watched.home / "champions", watched.home / "locks"}


@pytest.mark.slow
def test_the_report_shows_hostile_names_and_runs_none(watched: Watched) -> None:
    page = Path(read_runs(watched.home)[0]["report"]).read_text(encoding="utf-8")
    read = Dangers(page)
    assert read.found == []
    assert "../../evil<script>alert(3)</script>" in read.text
    shown = [text for text in EVIL if text in read.text]
    assert len(shown) > len(EVIL) / 2, "the page shows too little of what is hostile"


@pytest.mark.slow
def test_what_prefect_shows_as_markdown_has_no_markup_of_names(watched: Watched) -> None:
    with sqlite3.connect(watched.home / "prefect" / "prefect.db") as connection:
        rows = connection.execute("SELECT type, data FROM artifact WHERE type = 'markdown'").fetchall()
    connection.close()
    assert rows
    assert not any("<script" in str(data) or "<img" in str(data) for _, data in rows)


@pytest.mark.slow
def test_a_run_that_an_endpoint_refuses_tells_no_key(tmp_path: Path) -> None:
    watched = watched_run(tmp_path, broken=True)
    outcome = watched.outcomes["run"]
    assert outcome.code == 1 and "status 401" in outcome.err
    assert traces(watched.folder, KEYS) == []


@pytest.fixture
def object_store() -> Iterator[ObjectStore]:
    store = ObjectStore()
    try:
        store.make_bucket()
        yield store
    finally:
        store.kill()


@pytest.mark.slow
def test_a_corpus_a_training_and_an_object_store_tell_no_key(tmp_path: Path, object_store: ObjectStore) -> None:
    extra = (
        "rewriter.adapt=true", "rewriter.base=builtin", "rewriter.epochs=1", "rewriter.lora_rank=4",
        "rewriter.samples=2", "corpus.qa_model=openai:qa@lab", "corpus.size=12", "corpus.max_new_tokens=60",
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Watched, "environment", lambda self, **more: {**SECRETS, **object_store.environment, **more})
        watched = watched_run(tmp_path, *extra, agreeable=True)
    assert watched.outcomes["run"].code == 0, watched.outcomes["run"].err[-4000:]
    assert "rewriter" in "".join(watched.outcomes["run"].json["stages"])
    kept = tmp_path / "kept"
    count = object_store.copy_into(kept)
    assert count > 10
    keys = [*KEYS, object_store.environment["AWS_SECRET_ACCESS_KEY"]]
    assert traces(tmp_path, keys) == []
    assert dangers(Path(watched.outcomes["run"].json["report"]).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("packed", ["plain", "quoted", "base64", "gzip", "parquet", "sqlite", "duckdb", "name"])
def test_the_search_finds_a_key_however_it_is_packed(packed: str, tmp_path: Path) -> None:
    key, place = SECRETS["OPENAI_API_KEY"], tmp_path / "file"
    if packed == "plain":
        place.write_text(f"x{key}x")
    elif packed == "quoted":
        place.write_text(f"?key={urllib.parse.quote(key, safe='')}&")
    elif packed == "base64":
        place.write_bytes(base64.b64encode(f"user:{key}".encode()))
    elif packed == "gzip":
        place.write_bytes(gzip.compress(key.encode()))
    elif packed == "parquet":
        pl.DataFrame({"n": range(1000), "text": [f"{n} {key}" for n in range(1000)]}).write_parquet(place)
    elif packed == "sqlite":
        with sqlite3.connect(place) as connection:
            connection.execute("CREATE TABLE t(x TEXT)")
            connection.execute("INSERT INTO t VALUES (?)", ["-" * 5000 + key])
        connection.close()
    elif packed == "duckdb":
        with duckdb.connect(str(place)) as base:
            base.execute("CREATE TABLE t AS SELECT ? || n AS x FROM range(9999) r(n)", [key])
    else:
        (tmp_path / f"a{SECRETS['MLFLOW_TRACKING_PASSWORD']}b").touch()
        key = SECRETS["MLFLOW_TRACKING_PASSWORD"]
    assert [found.partition(": ")[2] for found in traces(tmp_path, KEYS)] == [key]
