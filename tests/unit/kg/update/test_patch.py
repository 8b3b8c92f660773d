"""An update changes a copy of the old graph where the change decides no more than a part of it, and says where not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import StorageError
from kgqa_core.kg.build import build
from kgqa_core.kg.formats.base import REJECTS, empty
from kgqa_core.kg.formats.ntriples import read_chunk
from kgqa_core.kg.formats.source import Chunk
from kgqa_core.kg.store import FILE, KgStore
from kgqa_core.kg.update import patch
from kgqa_core.kg.update.delta import update
from kgqa_core.kg.update.diff import differences
from kgqa_core.kg.update.statement_set import StatementSet
from kgqa_core.monitor import Monitor
from kgqa_core.workspace import Workspace

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
ALIAS = "<http://www.w3.org/2004/02/skos/core#altLabel>"
GRAPH = [
    "<http://x/b> <http://x/near> <http://x/c> .",
    "<http://x/b> <http://x/near> <http://x/d> .",
    "<http://x/c> <http://x/far> <http://x/d> .",
    '<http://x/d> <http://x/size> "3" .',
    f'<http://x/b> {LABEL} "B"@en .',
    f'<http://x/near> {LABEL} "near"@en .',
    f'<http://x/tall> {LABEL} "tall"@en .',
]


class Notes(Monitor):
    """Keeps what is noted."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)

    def progress(self, *_: Any) -> None:
        """Nothing."""


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def updated(folder: Path, added: list[str], removed: list[str], dump: bool, before: list[str] = GRAPH,
            **options: Any) -> tuple[Path, Path, list[str]]:  # fmt: skip
    """The graph brought up to date, the graph built anew, and why the long way was gone."""
    after = [line for line in before if line not in removed] + added
    chosen = KgOptions(format="ntriples", **{"infer_types": False} | options)
    old, new, rebuilt = (folder / name for name in ("old", "new", "rebuilt"))
    for place, lines in ((old, before), (rebuilt, after)):
        place.mkdir()
        build(
            Workspace(place), options=chosen.model_copy(update={"files": (write(folder / f"{place.name}.nt", lines),)})
        )
    new.mkdir()
    monitor = Notes()
    if dump:
        update(
            Workspace(new, monitor=monitor),
            old=old,
            options=chosen.model_copy(update={"files": (str(folder / "rebuilt.nt"),)}),
        )
    else:
        pair = {"added": added, "removed": removed}
        files = {name: [write(folder / f"{name}.nt", lines)] for name, lines in pair.items() if lines}
        update(Workspace(new, monitor=monitor), old=old, options=chosen, **files)
    return new, rebuilt, [note for note in monitor.notes if "made anew" in note]


CHANGES = [
    (["<http://x/e> <http://x/near> <http://x/b> ."], []),
    ([f'<http://x/c> {LABEL} "C"@en .', '<http://x/b> <http://x/size> "3" .'], [GRAPH[0]]),
    # A relation that appears takes the names of the entity of its key, one that goes gives them back.
    (["<http://x/b> <http://x/tall> <http://x/c> ."], []),
    ([], GRAPH[:2]),
    # A relation is an entity, too, while something is said about it.
    (["<http://x/near> <http://x/far> <http://x/c> ."], []),
    ([], ['<http://x/d> <http://x/size> "3" .']),
    ([], [GRAPH[2]]),
]
"""Statements that come, and that go."""


@pytest.mark.parametrize(
    ("added", "removed", "dump"),
    [
        pytest.param(*change, dump, marks=() if (number % 2 == 0) == dump else pytest.mark.slow)
        for number, change in enumerate(CHANGES)
        for dump in (False, True)
    ],
)
def test_a_change_is_made_in_a_copy(tmp_path: Path, dump: bool, added: list[str], removed: list[str]) -> None:
    new, rebuilt, long_way = updated(tmp_path, added, removed, dump)
    assert long_way == []
    assert differences(new, rebuilt) == {}
    with KgStore.open(new) as one, KgStore.open(rebuilt) as other:
        assert one.counts() == other.counts()
        ids = [i for (i,) in one.connection.execute("SELECT id FROM triples").fetchall()]
    assert ids == list(range(len(ids))), "a triple's id is its place"


def test_a_graph_that_states_no_types_is_made_anew_as_types_may_follow_from_the_change(tmp_path: Path) -> None:
    new, rebuilt, [note] = updated(tmp_path, CHANGES[0][0], [], True, infer_types=True)
    assert "no types are stated" in note and differences(new, rebuilt) == {}


@pytest.mark.parametrize("dump", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_first_alias_decides_more_than_a_part(tmp_path: Path, dump: bool) -> None:
    new, rebuilt, long_way = updated(tmp_path, [f'<http://x/c> {ALIAS} "Cee"@en .'], [], dump)
    assert "the usual statement of a alias" in long_way[0]
    assert differences(new, rebuilt) == {}


@pytest.mark.parametrize("dump", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_large_change_goes_the_long_way(tmp_path: Path, dump: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patch, "FLOOR", 1)
    added = ["<http://x/e> <http://x/near> <http://x/b> .", "<http://x/e> <http://x/near> <http://x/c> ."]
    new, rebuilt, long_way = updated(tmp_path, added, [], dump)
    assert "more than 1 statements" in long_way[0]
    assert differences(new, rebuilt) == {}


def test_an_entity_that_appears_has_the_bridge_that_a_filter_kept_from_being_a_triple(tmp_path: Path) -> None:
    before = [*GRAPH, '<http://x/q> <http://x/mid> "/m/0q" .']
    added = ["<http://x/b> <http://x/near> <http://x/q> ."]
    options = {"bridges": ("http://x/mid",), "drop_relations": ("http://x/mid",)}
    new, rebuilt, long_way = updated(tmp_path, added, [], False, before, **options)
    assert long_way == []
    assert differences(new, rebuilt) == {}
    with KgStore.open(new) as store:
        assert store.connection.execute("SELECT value FROM bridges").fetchall() == [("m.0q",)]


def test_an_update_that_fails_leaves_no_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(patch, "apply", broken)
    with pytest.raises(StorageError, match="no space left"):
        updated(tmp_path, ["<http://x/e> <http://x/near> <http://x/b> ."], [], False)
    assert not (tmp_path / "new" / FILE).exists()
    assert [path.name for path in (tmp_path / "new").iterdir()] == []


def test_a_statement_has_one_hash_however_it_is_given() -> None:
    lines = [f"<x:a> <x:p> {end} ." for end in ("<x:b>", '"x:b"', '"x:b"@en', '"x:b"^^<http://x/t>')]
    chunk = Chunk("".join(f"{line}\n" for line in lines).encode(), 1, 1.0, empty(REJECTS))
    batch = read_chunk(chunk)
    known = StatementSet(10)
    spans = known.of_spans(batch)
    frame = batch.statements
    terms = known.terms(frame["object"], frame["datatype"])
    named = known.of_terms(known.terms(frame["subject"]), known.terms(frame["predicate"]), terms)
    assert (spans == named).all() and len(set(spans[0].tolist())) == len(set(spans[1].tolist())) == 4
    entities, relations = known.terms(pl.Series(["x:b", "x:a"])), known.terms(pl.Series(["x:p"]))
    ids = (pl.Series([number]).to_numpy() for number in (1, 0, 0))
    assert (known.of_ids(*ids, entities, relations)[:, 0] == spans[:, 0]).all()


def test_a_set_knows_what_was_stated_and_how_often() -> None:
    known = StatementSet(3)
    keys = known.terms(pl.Series(["a", "b", "c", "d"]))
    known.add(keys[:, :3])
    known.remove(keys[:, 2:3])
    there, again = known.state(keys)
    assert (there.tolist(), again) == ([True, True, False, False], 0)
    assert known.state(keys[:, [0, 0, 3]])[1] == 2
    other = StatementSet(3)
    other.add(other.terms(pl.Series(["a", "b"])))
    other.state(other.terms(pl.Series(["a"])))
    assert other.left == 1
    assert other.unstated(other.terms(pl.Series(["a", "b"]))).tolist() == [False, True]
