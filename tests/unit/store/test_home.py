"""A home can be copied and moved: its records name what lies in it wherever it lies, also those of older homes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from kgqa_core.errors import StorageError
from kgqa_core.runs.records import newest_run, stage_artifact
from kgqa_core.store.artifacts import Home, write_json
from kgqa_core.store.home import SCHEMA_VERSION, located, portable, version_of
from kgqa_core.store.inventory import runs, stored
from tests.support.finished import binary, finished_run, questions

RUN = "20260101-000000-aaaa"


@pytest.fixture
def old(tmp_path: Path) -> Home:
    """A home whose records have absolute paths, as older versions wrote them."""
    home = Home(tmp_path / "old")
    asked = questions(["where?", "when?"])
    finished_run(home, RUN, binary([1.0, 0.0]), asked, settings={"kg": {"files": ["/data/graph.tsv"]}})
    home.let_go()
    return home


@pytest.mark.parametrize("there", [True, False], ids=["the original is there", "the original is gone"])
@pytest.mark.parametrize("named", [True, False], ids=["done", "failed"])
def test_a_copy_of_an_old_home_uses_its_own_files(old: Home, tmp_path: Path, there: bool, named: bool) -> None:
    if not named:  # only the record of a run that is done says which home it is of
        path = old.root / "runs" / RUN / "run.json"
        record = json.loads(path.read_text())
        write_json(path, {key: value for key, value in record.items() if key != "home"})
    copy = Home(tmp_path / "copy")
    shutil.copytree(old.root, copy.root)
    if not there:
        shutil.rmtree(old.root)
    record = newest_run(copy)
    for stage in ("questions", "scores"):
        assert stage_artifact(record, stage).folder.is_relative_to(copy.root)
    assert record["home"] == str(copy.root) and record["profile"]["kg"]["files"] == ["/data/graph.tsv"]
    if named:
        assert record["report"] == str(copy.root / "runs" / RUN / "report.html")
    [run] = runs(copy.root)
    assert run.uses == {artifact.id for artifact in stored(copy.root)}


def test_records_name_no_place_and_are_read_where_the_home_is(tmp_path: Path) -> None:
    root = tmp_path / "home"
    record = {
        "home": str(root), "inside": [f"{root}/artifacts/kg/a", str(root)], "beside": f"{root}-2/x", "user": "a/g.tsv",
        "text": "the {home} of all", "n": 1, "none": None,
    }  # fmt: skip
    written = json.loads(json.dumps(portable(record, root)))
    assert str(root) not in json.dumps({key: value for key, value in written.items() if key != "beside"})
    moved = tmp_path / "moved"
    assert located(written, moved) == record | {"home": str(moved), "inside": [f"{moved}/artifacts/kg/a", str(moved)]}


@pytest.mark.parametrize("schema", ["-1", "1.5", "true", '"1"', "1e999", "null", "[" * 100_000])
def test_a_version_that_is_none_is_said(tmp_path: Path, schema: str) -> None:
    Home(tmp_path).prepare()
    (tmp_path / "home.json").write_text(f'{{"schema": {schema}}}')
    for use in (Home(tmp_path).prepare, Home(tmp_path).look):
        with pytest.raises(StorageError, match=r"home.json is damaged \(.*; delete the file if no newer kgqa"):
            use()


def test_an_old_home_that_is_only_looked_at_stays_as_it_is(old: Home) -> None:
    (old.root / "home.json").unlink()
    old.look()
    assert version_of(old.root) == 0
    old.prepare()
    assert version_of(old.root) == SCHEMA_VERSION


@pytest.mark.parametrize(
    "words",
    [
        ["serve"], ["ask", "where?"], ["report"], ["compare", "newest", "champion"], ["mcp"], ["gc"], ["home"],
        ["answer", "--questions", "q.jsonl", "--out", "a.jsonl"], ["link", "where?"], ["feedback", "list"],
        ["feedback", "confirm", "1"], ["cache", "stats"], ["kg", "stats"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_home_that_is_not_there_is_named_and_not_made(words: list[str], tmp_path: Path) -> None:
    told = CliRunner().invoke(app, [*words, "--home", str(tmp_path / "typo")])
    assert f"there is no home at {tmp_path / 'typo'}" in str(told.exception), told.output
    assert not (tmp_path / "typo").exists()
