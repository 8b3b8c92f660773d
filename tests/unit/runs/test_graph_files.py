"""Graph files answer without a run: they are built once, under what they hold."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.errors import ConfigError, InputError, KgInputError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.runs.graph_files import graph_record
from kgqa_core.store.artifacts import Home
from kgqa_core.symbolic.by_labels.model import load
from kgqa_core.system import System
from kgqa_core.workspace import Workspace

LINE = "Ada Stone\twrote\tThe Grey Harbour\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def _file(folder: Path, text: str = LINE, name: str = "graph.tsv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def _artifacts(home: Home, kind: str = "kg") -> set[str]:
    return {manifest.parent.name for manifest in (home.root / "artifacts" / kind).glob("*/manifest.json")}


def _paths(record: dict[str, Any]) -> list[str]:
    return [stage["artifact"]["path"] for stage in record["stages"]]


def test_a_graph_is_built_once_and_a_changed_file_gives_a_new_build(tmp_path: Path, home: Home) -> None:
    path = _file(tmp_path)
    first, again = graph_record(home, [path]), graph_record(home, [path])
    assert first == again and len(_artifacts(home)) == 1
    other = _file(tmp_path, LINE, "copy.tsv")
    assert _paths(graph_record(home, [other])) == _paths(first)
    _file(tmp_path, LINE + "Ada Stone\twrote\tNight Ferry\n")
    changed = graph_record(home, [path])
    assert changed["run_id"] != first["run_id"] and len(_artifacts(home)) == 2


def test_options_that_decide_the_outcome_give_another_build(tmp_path: Path, home: Home) -> None:
    path = _file(tmp_path, "head,relation,tail\nAda Stone,wrote,Night Ferry\n", "graph.csv")
    columns = {"subject": "head", "predicate": "relation", "object": "tail"}
    plain = graph_record(home, [path])
    assert graph_record(home, [path], {"kg": {"memory_limit": "2GB"}})["run_id"] == plain["run_id"]
    graph_record(home, [path], {"kg": {"columns": columns}})
    assert len(_artifacts(home)) == 2


def test_a_file_that_changes_while_it_is_read_is_not_published(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _file(tmp_path)

    def write_meanwhile(workspace: Workspace, **given: Any) -> dict[str, Any]:
        counts = build(workspace, **given)
        _file(tmp_path, LINE * 2)
        return counts

    monkeypatch.setattr("kgqa_core.kg.build.build", write_meanwhile)
    with pytest.raises(KgInputError, match="while it was read"):
        graph_record(home, [path])
    assert not _artifacts(home)


def test_a_build_that_was_interrupted_is_made_anew(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _file(tmp_path)

    def interrupted(*given: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("kgqa_core.linking.dictionary.build", interrupted)
        with pytest.raises(KeyboardInterrupt):
            graph_record(home, [path])
    assert _artifacts(home) and not _artifacts(home, "mentions")
    graph_record(home, [path])
    assert _artifacts(home, "mentions") and _artifacts(home, "label_parser")


def test_two_at_once_build_a_graph_once(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    path, builds, records = _file(tmp_path), [], []

    def counted(workspace: Workspace, **given: Any) -> dict[str, Any]:
        builds.append(workspace.out)
        return build(workspace, **given)

    monkeypatch.setattr("kgqa_core.kg.build.build", counted)
    home.prepare()
    threads = [threading.Thread(target=lambda: records.append(graph_record(Home(home.root), [path]))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 1 and records[0] == records[1]


def test_several_files_make_one_graph_and_a_graph_folder_is_read_as_it_is(tmp_path: Path, home: Home) -> None:
    one, two = _file(tmp_path), _file(tmp_path, "Ada Stone\tborn in\tPell\n", "more.tsv")
    record = graph_record(home, [one, two])
    folder = Path(_paths(record)[0])
    with KgStore.open(folder) as store:
        assert store.counts()["triples"] == 2
    assert graph_record(home, [folder])["run_id"] == record["run_id"]
    with pytest.raises(KgInputError, match="not a graph"):
        graph_record(home, [_paths(record)[1]])


def test_names_of_a_built_graph_are_given_to_a_copy_under_its_own_digest(tmp_path: Path, home: Home) -> None:
    built = Path(_paths(graph_record(home, [_file(tmp_path)]))[0])

    def named(names: dict[str, Any], folder: Path = built) -> Path:
        return Path(_paths(graph_record(home, [folder], {"kg": {"names": names}}))[0])

    first = named({"entities": {"Ada Stone": ["Addy"]}, "relations": {"wrote": ["penned"]}})
    assert first != built and named({"entities": {"Ada Stone": "Addy"}, "relations": {"wrote": "penned"}}) == first
    again = named({"relations": {"wrote": ["authored"]}}, first)
    with KgStore.open(again) as store:
        assert store.resolve(["Addy"])["Addy"] == store.resolve(["Ada Stone"])["Ada Stone"]
        assert store.meta["own_names"]["relations"] == {"wrote": ["penned", "authored"]}
        assert store.meta["options"]["names"] == store.meta["own_names"]
    with KgStore.open(built) as store:
        assert not store.resolve(["Addy"])["Addy"]
    assert System.from_graph(again, home=home).ask("Who penned The Grey Harbour?").answer == "Ada Stone"
    for names, fault in (
        ({"relations": {"wrotte": ["penned"]}}, "did you mean 'wrote'"),
        ({"hide": ["wrote"]}, "'wrote' can only be hidden where files are read"),
    ):
        with pytest.raises(KgInputError, match=fault):
            named(names)


def test_what_cannot_be_a_graph_is_refused_with_the_way_out(tmp_path: Path, home: Home) -> None:
    with pytest.raises(KgInputError, match="name a graph file"):
        graph_record(home, [])
    with pytest.raises(KgInputError, match="did you mean"):
        graph_record(home, [_file(tmp_path).with_name("grap.tsv")])
    with pytest.raises(KgInputError, match="is empty"):
        graph_record(home, [_file(tmp_path, "", "empty.tsv")])
    with pytest.raises(InputError, match="tsvv"):
        graph_record(home, [_file(tmp_path)], {"kg": {"format": "tsvv"}})
    with pytest.raises(ConfigError, match="fromat"):
        graph_record(home, [_file(tmp_path)], {"kg": {"fromat": "tsv"}})
    assert not _artifacts(home)


def test_one_triple_is_answered_from_and_wordings_are_kept_for_the_next_process(tmp_path: Path, home: Home) -> None:
    path = _file(tmp_path)
    system = System.from_graph(path, home=home)
    answer = system.ask("Who wrote The Grey Harbour?")
    assert answer.answer == "Ada Stone" and answer.proof == ("(Ada Stone, wrote, The Grey Harbour)",)
    assert system.calculator is not None and answer.confidence
    [parser] = (home.root / "artifacts" / "label_parser").iterdir()
    assert set(system.calculator.solver.parser.wordings) == load(parser).phrases.keys()
    again = System.from_graph(path, home=home)
    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(again.ask, ["Who wrote The Grey Harbour?"] * 20)) == [answer] * 20
