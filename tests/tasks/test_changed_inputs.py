"""An input that changes between its digest and its reading, or while it is read, is refused, and nothing is cached."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from kgqa_core.config import KgOptions, Profile, make_profile
from kgqa_core.errors import InputError, KgInputError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import Monitor
from kgqa_core.store.artifacts import ArtifactRef
from kgqa_core.workspace import Workspace
from tasks.engine.external_digests import UNREADABLE, check_unchanged, file_digest, recorded_digests
from tasks.engine.run import tracked_run
from tasks.engine.stage import Stage
from tasks.kg import build_kg
from tasks.questions import load_questions
from tests.support.file_changes import cut, grow, overwrite, swap
from tests.support.toy import write_graph, write_questions

HOUR = 3_600_000_000_000


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "growing": (grow, "grew from"),
    "truncated": (cut, "shrank from"),
    "swapped": (swap, "was replaced by another file"),
    "overwritten": (overwrite, "was changed at|was written"),
}


class _Meddler(Monitor):
    """Changes a file when the first statements of it have been read."""

    def __init__(self, path: Path, change: Callable[[Path], None]) -> None:
        self.path, self.change, self.done = path, change, False

    def progress(self, done: float, total: float | None, unit: str) -> None:
        """Called for every piece of the file."""
        if not self.done and "statements/s" in unit:
            self.done = True
            self.change(self.path)

    def note(self, message: str) -> None:
        """Nothing."""


@pytest.mark.parametrize("how", CHANGES)
def test_a_dump_that_changes_while_a_graph_is_built_from_it_makes_none(tmp_path: Path, how: str) -> None:
    dump, out = tmp_path / "graph.tsv", tmp_path / "out"
    out.mkdir()
    write_graph(dump, 3000)
    change, words = CHANGES[how]
    with pytest.raises(KgInputError, match=rf"graph\.tsv ({words}).* while it was read"):
        build(Workspace(out, monitor=_Meddler(dump, change)), options=KgOptions(files=(str(dump),)))
    assert not list(out.rglob("*.duckdb"))


@pytest.mark.parametrize("how", CHANGES)
def test_a_file_that_is_not_what_its_digest_is_of_is_refused(tmp_path: Path, how: str) -> None:
    dump = tmp_path / "graph.tsv"
    write_graph(dump, 300)
    with recorded_digests() as files:
        file_digest(dump)
    check_unchanged(files)
    change, words = CHANGES[how]
    change(dump)
    with pytest.raises(InputError, match=rf"graph\.tsv ({words}).* while it was read"):
        check_unchanged(files)


def test_a_change_that_no_time_shows_is_seen_in_what_was_just_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kgqa_core.input_files import FileState

    dump = tmp_path / "graph.tsv"
    write_graph(dump, 300)
    os.utime(dump, ns=(time.time_ns() + HOUR,) * 2)
    coarse = FileState.of(dump)
    monkeypatch.setattr(FileState, "of", lambda path: coarse)
    with recorded_digests() as files:
        file_digest(dump)
    check_unchanged(files)
    dump.write_text(dump.read_text().swapcase())
    with pytest.raises(InputError, match="was written while it was read"):
        check_unchanged(files)


def test_new_permissions_are_no_new_content(tmp_path: Path) -> None:
    dump = tmp_path / "graph.tsv"
    write_graph(dump, 300)
    with recorded_digests() as files:
        file_digest(dump)
    dump.chmod(0o600)
    os.link(dump, tmp_path / "backup")
    check_unchanged(files)


def test_a_file_that_comes_after_its_digest_is_not_cached_as_unreadable(tmp_path: Path) -> None:
    with recorded_digests() as files:
        assert file_digest(tmp_path / "graph.tsv") == UNREADABLE
    check_unchanged(files)
    write_graph(tmp_path / "graph.tsv", 300)
    with pytest.raises(InputError, match="came while it was read"):
        check_unchanged(files)


def test_a_file_that_comes_into_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "one.txt").write_text("One.\n")
    with recorded_digests() as files:
        file_digest(tmp_path / "corpus")
    (tmp_path / "corpus" / "two.txt").write_text("Two.\n")
    with pytest.raises(InputError, match=r"two\.txt came while it was read"):
        check_unchanged(files)


@flow(name="graph-and-questions")
def graph_and_questions(profile: Profile) -> tuple[ArtifactRef, ArtifactRef]:
    with tracked_run(profile):
        kg = build_kg(profile.kg)
        return kg, load_questions(kg, profile.questions, profile.seed)


@pytest.mark.parametrize("what", ["graph.tsv", pytest.param("questions.jsonl", marks=pytest.mark.slow)])
def test_a_file_that_is_swapped_between_digest_and_reading_leaves_the_cache_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, prefect_server: None
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(tmp_path / "home"))
    dump, questions = tmp_path / "graph.tsv", tmp_path / "questions.jsonl"
    write_questions(questions, write_graph(dump, 400), 30)
    options = {"name": "toy", "source": "jsonl", "path": str(questions)}
    profile = make_profile({"kg": {"name": "toy", "files": [str(dump)]}, "questions": options})
    first, fill = (tmp_path / what).read_text(), Stage.fill

    def meddled(stage: Stage[Any], *rest: Any) -> Any:
        if (stage.options.kind == "kg") == (what == "graph.tsv"):
            other = "".join(reversed(first.splitlines(keepends=True))).replace("\tbased_in\t", "\tdwells_in\t")
            (tmp_path / "new").write_text(other)
            os.replace(tmp_path / "new", tmp_path / what)
        return fill(stage, *rest)

    monkeypatch.setattr(Stage, "fill", meddled)
    with pytest.raises(InputError, match=rf"{what} was replaced by another file while it was read"):
        graph_and_questions(profile)
    kind = "kg" if what == "graph.tsv" else "questions"
    assert not list((tmp_path / "home" / "artifacts").glob(f"{kind}/*"))
    monkeypatch.setattr(Stage, "fill", fill)
    (tmp_path / what).write_text(first)
    kg, _ = graph_and_questions(profile)
    with KgStore.open(kg.folder) as store:
        keys = {key for (key,) in store.connection.execute("SELECT key FROM relations").fetchall()}
    assert "based_in" in keys and "dwells_in" not in keys, "the graph is that of the first content"
