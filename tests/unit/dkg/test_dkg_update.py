"""The DKG of an updated graph is that of a full export, in the old files where no array changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import DkgOptions
from kgqa_core.dkg.export import export, update
from kgqa_core.errors import KgInputError
from kgqa_core.workspace import Workspace
from tests.unit.dkg.test_dkg_export import make_graph

TRIPLES = [(0, 0, 1), (0, 1, 2), (1, 0, 2), (1, 1, 0)]


def exported(folder: Path, kg: Path, **options: Any) -> Path:
    folder.mkdir()
    export(Workspace(folder), kg=kg, options=DkgOptions(**options))
    return folder


def updated(folder: Path, kg: Path, old: Path) -> dict[str, Any]:
    folder.mkdir()
    return update(Workspace(folder), kg=kg, old_dkg=old)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_without_a_change_the_files_are_those_of_the_old_dkg(tmp_path: Path) -> None:
    kg = make_graph(tmp_path / "kg", TRIPLES)
    old = exported(tmp_path / "old", kg)
    counts = updated(tmp_path / "new", kg, old)
    assert counts["made"] == "kept" and files(tmp_path / "new") == files(old)
    assert (tmp_path / "new" / "tail.npy").stat().st_ino == (old / "tail.npy").stat().st_ino
    again = export(Workspace(exported(tmp_path / "full", kg)), kg=kg)
    assert counts == again | {"made": "kept"}


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda old: (old / "tail.npy").write_bytes(b"no array"), id="damaged"),
        pytest.param(lambda old: [path.unlink() for path in old.iterdir()], id="missing"),
        pytest.param(lambda old: export(Workspace(old), kg=old.parent / "kg", options=INVERSES), id="another option"),
        pytest.param(
            lambda old: export(Workspace(old), kg=make_graph(old.parent / "b", TRIPLES[:3])), id="another graph"
        ),
    ],
)
def test_other_arrays_are_not_used(tmp_path: Path, spoil: Any) -> None:
    kg = make_graph(tmp_path / "kg", TRIPLES)
    old = exported(tmp_path / "old", kg)
    spoil(old)
    before = files(old)
    assert updated(tmp_path / "new", kg, old)["made"] == "exported"
    assert files(tmp_path / "new") == files(exported(tmp_path / "full", kg))
    assert files(old) == before


def test_a_graph_that_lost_every_triple_is_refused(tmp_path: Path) -> None:
    old = exported(tmp_path / "old", make_graph(tmp_path / "a", TRIPLES))
    with pytest.raises(KgInputError, match="no triples"):
        updated(tmp_path / "new", make_graph(tmp_path / "b", []), old)


INVERSES = DkgOptions(literal_inverses=True)
