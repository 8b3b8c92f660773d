"""One's own words for a graph: `kgqa kg words`, `--names`, and what a question in them is read as."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml
from typer.testing import CliRunner

from flows.cli import app as cli
from flows.cli._options import ProfileChoice
from flows.cli._session import chosen_profile
from kgqa_core.config import KgOptions, OwnNames
from kgqa_core.errors import ArtifactError, ConfigError, KgInputError
from kgqa_core.kg.build import build as build_graph
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.update.delta import options_of, update
from kgqa_core.search.graph import LabelGraph
from kgqa_core.search.phrases import OwnWords
from kgqa_core.workspace import Workspace

FACTS = """@prefix : <urn:x:> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:reportsTo rdfs:label "reports to" . :Employee rdfs:label "employee" . :Team rdfs:label "team" .
:ann a :Employee ; rdfs:label "Ann Lee" ; :state "on leave" ; :works_in :t ; :row 1 .
:bo a :Employee ; rdfs:label "Bo Wu" ; :reportsTo :ann ; :state "on leave" ; :works_in :t ; :row 2 .
:cy a :Employee ; rdfs:label "Cy Fox" ; :reportsTo :ann ; :state "here" ; :row 3 .
:di a :Employee ; rdfs:label "Di Oz" ; :reportsTo :bo ; :state "here" ; :row 4 .
:t a :Team ; rdfs:label "Blue" .
"""
NAMES = """
entities: {Bo Wu: [Bobby]}
relations: {reports to: [gaffer, works under], works in: squad}
types: {employee: [minion]}
values: {on leave: [away]}
hide: ["urn:x:row"]
"""


@pytest.fixture(autouse=True)
def environment_as_before() -> Iterator[None]:
    """Commands that run in this process set the home of Prefect."""
    with patch.dict(os.environ):
        yield


def build(folder: Path, names: str | None, name: str = "g") -> Path:
    (folder / "facts.ttl").write_text(FACTS)
    (folder / name).mkdir()
    options = KgOptions(
        files=(str(folder / "facts.ttl"),), names=OwnNames.model_validate(yaml.safe_load(names or "{}"))
    )
    build_graph(Workspace(folder / name), options=options)
    return folder / name


def words(graph: Path) -> str:
    return CliRunner().invoke(cli.app, ["kg", "words", "--kg", str(graph)]).stdout


def test_words_that_are_filled_in_are_read_and_listed_again(tmp_path: Path) -> None:
    listed = words(build(tmp_path, None))
    assert "urn:x:reportsTo: []  # reports to: 3 facts, as Bo Wu → Ann Lee" in listed
    assert "urn:x:Employee: []  # employee: 4 things" in listed and "on leave: []  # state: 2 facts" in listed
    filled = listed.replace("reportsTo: []", "reportsTo: [gaffer]").replace("on leave: []", "on leave: [away]")
    filled = filled.replace("hide: []", "hide: ['urn:x:row']")
    (tmp_path / "filled.yaml").write_text(filled)
    command = ["kg", "build", str(tmp_path / "facts.ttl"), "--out", str(tmp_path / "h"), "--names"]
    assert CliRunner().invoke(cli.app, [*command, str(tmp_path / "filled.yaml")]).exit_code == 0
    again = words(tmp_path / "h")
    assert [line for line in filled.splitlines() if ":row: " not in line] == again.replace(
        "hide: [urn:x:row]", "hide: ['urn:x:row']"
    ).splitlines()
    assert words(build(tmp_path, again, "i")) == again


def test_commands_that_look_into_a_graph_take_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGQA_HOME", str(tmp_path / "home"))
    folder, file = build(tmp_path, None), tmp_path / "facts.ttl"
    assert words(file) == words(folder)
    for command in (
        ["sql", "SELECT count(*) FROM triples"],
        ["path", "Bo Wu", "Ann Lee"],
        ["search", "Bo"],
        ["show", "Bo Wu"],
    ):
        of_file, of_folder = (
            CliRunner().invoke(cli.app, ["kg", *command, "--json", "--kg", str(kg)]).stdout for kg in (file, folder)
        )
        assert of_file == of_folder and '"' in of_file
    assert len(list((tmp_path / "home" / "artifacts" / "kg").iterdir())) == 1
    with pytest.raises(ArtifactError, match=f"kgqa kg build {file} --out"):
        KgStore.open(file)


def test_a_graph_has_the_words_of_its_owner_and_not_what_is_hidden(tmp_path: Path) -> None:
    with KgStore.open(build(tmp_path, NAMES)) as store:
        assert "urn:x:row" not in store.relation_keys()
        assert store.entity_keys(store.resolve(["Bobby"])["Bobby"]).popitem()[1] == "urn:x:bo"
        read = OwnWords(LabelGraph(store)).read
        assert read("who is the gaffer of x") == "who is the supervisor of x"
        assert read("who works under x") == "who reports to x"
        assert read("which Minions are away in the squad x") == "which employees are on leave in the team x"
        assert read("how many minionettes") == "how many minionettes"


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        ("relations: {report to: [boss]}", "relations: 'report to' is not in the graph; did you mean 'reports to'?"),
        ("types: {Bo Wu: [boss]}", "types: 'Bo Wu' is not in the graph"),
        ("entities: {Ann Lea: [boss]}", "entities: 'Ann Lea' is not in the graph; did you mean 'Ann Lee'?"),
        ("values: {gone: [away]}", "values: 'gone' is not in the graph"),
        ("hide: [row]", "hide: 'row' is not in the graph; did you mean 'urn:x:row'?"),
    ],
)
def test_names_of_nothing_and_files_of_another_shape_are_refused(tmp_path: Path, names: str, fault: str) -> None:
    with pytest.raises(KgInputError, match=re.escape(fault)):
        build(tmp_path, names)


def test_a_file_of_another_shape_is_refused_with_its_fault(tmp_path: Path) -> None:
    names = tmp_path / "names.yaml"
    for text, fault in (
        ("relation: {a: [b]}", "unknown key 'kg.names.relation'; did you mean 'kg.names.relations'?"),
        ("relations: [a", "cannot be read"),
        ("relations: {a: {b: c}}", "kg.names.relations.a"),
        ("- a", "must be a mapping"),
    ):
        names.write_text(text)
        with pytest.raises(ConfigError, match=re.escape(fault)):
            chosen_profile(ProfileChoice(kg=["bundled:atlas"], names=names))


def test_an_update_keeps_the_names_of_a_graph_and_takes_others(tmp_path: Path) -> None:
    build(tmp_path, NAMES)
    (tmp_path / "more.ttl").write_text("@prefix : <urn:x:> . :ann :row 5 . :t :works_in :t .")
    (tmp_path / "kept").mkdir()
    options = KgOptions(**options_of(tmp_path / "g"))
    update(Workspace(tmp_path / "kept"), old=tmp_path / "g", options=options, added=[str(tmp_path / "more.ttl")])
    with KgStore.open(tmp_path / "kept") as store:
        assert store.resolve(["Bobby"])["Bobby"] and "urn:x:row" not in store.relation_keys()
        assert OwnWords(LabelGraph(store)).read("which minions are away") == "which employees are on leave"


def test_the_content_of_names_is_part_of_a_graphs_key(tmp_path: Path) -> None:
    names = tmp_path / "names.yaml"
    names.write_text("types: {a: [b]}")
    before = chosen_profile(ProfileChoice(kg=["bundled:atlas"], names=names)).kg
    names.write_text("types: {a: c}")
    after = chosen_profile(ProfileChoice(kg=["bundled:atlas"], names=names)).kg
    assert before.decisive() != after.decisive() and after.names.types == {"a": ("c",)}
