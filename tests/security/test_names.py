"""Names that people give lead to nothing outside the home."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.config import make_profile
from kgqa_core.errors import ArtifactError, InputError
from kgqa_core.runs.records import choose_run, newest_run
from kgqa_core.store.artifacts import Home
from kgqa_core.store.remote import safe_name
from tasks.engine.champion import _file
from tasks.engine.prefect_pages import artifact_key
from tasks.resume.starting_point import starting_point
from tests.security.test_models import calls_of
from tests.support.finished import finished_run, questions

OUTSIDE = (
    "../outside", "../../outside", "/{folder}/outside", "..", ".", "", "runs/../../outside", "a/b", "\0", "*", "?" * 4,
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a finished run, and beside it a folder that looks like one."""
    home = Home(tmp_path / "home")
    asked = questions(["one?"])
    rows = {"rigel/-/-": {"q0000": {"hits_at_1": 1.0}}}
    finished_run(home, "20260101-000000-aaaa", rows, asked)
    record = (home.root / "runs" / "20260101-000000-aaaa" / "run.json").read_bytes()
    for place in (tmp_path / "outside", home.root / "outside"):
        place.mkdir()
        (place / "run.json").write_bytes(record)
    return home


@pytest.mark.parametrize("word", OUTSIDE)
def test_a_run_is_chosen_among_those_of_the_home(word: str, home: Home, tmp_path: Path) -> None:
    word = word.format(folder=tmp_path)
    with pytest.raises(InputError, match="no finished run"):
        newest_run(home, word)
    with pytest.raises(InputError, match="no run"):
        choose_run(home.root, word)
    with pytest.raises(InputError, match="no champion"):
        choose_run(home.root, f"champion:{word}")
    with pytest.raises(ArtifactError, match="no finished run"):
        starting_point(home, make_profile({"kg": {"name": "toy"}, "questions": {"name": "asked"}}), word)


@pytest.mark.parametrize("name", [
    "../x", "/x", "a/../x", "a//b", "./a", "", ".", "..", "a\\b", "a\0b", "a/", "x" * 1001, None, 3, ["a"],
])  # fmt: skip
def test_a_name_in_a_stores_manifest_stays_inside(name: object) -> None:
    with pytest.raises(ArtifactError, match="could leave its folder|cannot be written"):
        safe_name(name)


def test_prefects_keys_are_made_of_letters() -> None:
    assert artifact_key("../../Evil <b>/x") == "evil-b-x" and artifact_key("../..") == "stage"


def test_a_champions_file_lies_in_the_home_whatever_the_graph_is_called(home: Home) -> None:
    for kg, asked in (
        ("../../evil", "x"),
        ("/etc", "/passwd"),
        ("..", ".."),
        ("a/b", "c\\d"),
        ("a\0b", "."),
        ("é" * 300, "x"),
    ):
        path = _file(home, make_profile({"kg": {"name": kg}, "questions": {"name": asked}}))
        assert path.resolve().parent == home.root / "champions" and path.name.isprintable(), path
        assert len(path.name.encode()) < 250


def test_archives_are_read_in_one_file_and_never_unpacked() -> None:
    unpackers = ("tarfile", "zipfile", "shutil.unpack_archive", "py7zr", "rarfile")
    used = [(path, name) for path, name, _ in calls_of(*unpackers)]
    assert {path.name for path, name in used if name.startswith(unpackers)} == {"members.py"}
    assert not [name for path, name in used if path.name == "members.py" and name.endswith((".extract", ".extractall"))]
