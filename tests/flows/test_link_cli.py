"""`kgqa link` shows what a text names, for people and for programs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from flows.ltgen import check
from kgqa_core.config import KgOptions, make_profile
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.build import build
from kgqa_core.store.publish import publish_folder
from kgqa_core.workspace import Workspace


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A graph of three towns, one of them with a name that would be markup."""
    path = tmp_path / "towns.tsv"
    path.write_text("Gothenburg\tcountry\tSweden\nUppsala\tcountry\tSweden\n[bold]Visby\tcountry\tSweden\n", "utf-8")
    options = KgOptions(files=(str(path),), format="delimited", delimiter="\t")
    publish_folder("kg", tmp_path / "kg", lambda out, work: build(Workspace(out, work), options=options))
    return tmp_path / "kg"


def test_json_tells_mentions_candidates_and_rho(graph: Path) -> None:
    result = CliRunner().invoke(app, ["link", "Is Uppsala north of Gothenburg?", "--kg", str(graph), "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout.strip().splitlines()[-1])
    assert {row["label"] for row in told["entities"]} == {"Uppsala", "Gothenburg"}
    assert [mention["text"] for mention in told["mentions"]] == ["Uppsala", "Gothenburg"]
    assert all(0.22 <= row["rho"] <= 1 for row in told["entities"])


def test_the_table_says_what_is_taken_and_names_are_no_markup(graph: Path) -> None:
    result = CliRunner().invoke(app, ["link", "Where is [bold]Visby?", "--kg", str(graph)])
    assert result.exit_code == 0, result.output
    assert "[bold]Visby" in result.stdout and "linked: " in result.stdout


def test_names_are_whole_on_a_narrow_terminal_and_each_verdict_is_true(graph: Path) -> None:
    said = CliRunner().invoke(app, ["link", "Is Uppsala in Sweden?", "--kg", str(graph), "--threshold", "1"]).stdout
    assert "Uppsala" in said.split("linked: ")[0]
    assert said.count("below the") == 1 and said.count("linked") == 2  # the best is taken all the same


def test_a_folder_without_graph_is_refused_with_the_way_to_make_one(graph: Path, tmp_path: Path) -> None:
    for folder, why in ((tmp_path / "nothing", "there is no graph folder"), (_mentions(graph), "of kind mentions")):
        result = CliRunner().invoke(app, ["link", "x", "--kg", str(folder)])
        assert result.exit_code == 1
        assert why in str(result.exception) and "kgqa kg build" in str(result.exception)
        with pytest.raises(ArtifactError, match=why):
            check(make_profile({}), str(folder))


def test_the_dictionary_is_the_one_that_a_run_makes_and_is_made_once(graph: Path, own_home: Path) -> None:
    from kgqa_core.store.artifacts import verify
    from tasks.linking import build_mentions

    found = _mentions(graph)
    assert build_mentions.find(verify(graph)).folder == found
    CliRunner().invoke(app, ["link", "x", "--kg", str(graph)])
    assert list((own_home / "artifacts" / "mentions").iterdir()) == [found]


def test_a_run_is_linked_as_its_profile_says(graph: Path, own_home: Path) -> None:
    found = _mentions(graph)
    profile = make_profile({"linking": {"typos": 1}}).model_dump(mode="json")
    stage = {"name": "kg", "artifact": {"kind": "kg", "path": str(graph), "digest": ""}}
    run = own_home / "runs" / "20260101-000000-0000"
    run.mkdir(parents=True)
    record = {"run_id": run.name, "status": "done", "profile": profile, "stages": [stage]}
    (run / "run.json").write_text(json.dumps(record), encoding="utf-8")
    asked = ["link", "Where is Gothenbrug?", "--mentions", str(found)]
    assert "linked: Gothenburg" in CliRunner().invoke(app, asked).stdout
    assert "nothing in" in CliRunner().invoke(app, [*asked, "--typos", "0"]).stdout


def _mentions(graph: Path) -> Path:
    """The mention dictionary that the command makes of a graph."""
    assert CliRunner().invoke(app, ["link", "x", "--kg", str(graph)]).exit_code == 0
    [found] = (Path(os.environ["KGQA_HOME"]) / "artifacts" / "mentions").iterdir()
    return found


def test_typing_errors_are_forgiven_unless_switched_off(graph: Path) -> None:
    asked = ["link", "Where is Gothenbrug?", "--kg", str(graph)]
    assert "Gothenburg" in CliRunner().invoke(app, asked).stdout
    assert "nothing in" in CliRunner().invoke(app, [*asked, "--typos", "0"]).stdout


def test_turns_before_the_text_are_read(graph: Path) -> None:
    told = CliRunner().invoke(app, ["link", "And its mayor?", "--turn", "Where is Uppsala?", "--kg", str(graph)])
    assert "linked: Uppsala" in told.stdout
