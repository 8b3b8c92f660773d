"""Claims of places to write to: what comes there while the work is done is not lost, and neither is the result."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kgqa_core.errors import OutputError
from kgqa_core.store import publish
from kgqa_core.store.artifacts import verify
from kgqa_core.store.files import rename_new
from kgqa_core.store.outputs import claim_file, claim_files, move_beside
from kgqa_core.store.publish import claim_folder, source_of


def fill(text: str, meanwhile: Callable[[], object] = lambda: None) -> publish.Fill:
    def write(out: Path, work: Path) -> dict[str, int]:
        (out / "rows").write_text(text)
        (out / "volatile").mkdir()
        (out / "volatile" / "log").write_text("log")
        meanwhile()
        return {}

    return write


def test_a_file_that_comes_while_another_is_written_stays_and_the_result_is_beside_it(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    why = r"out\.txt exists.*What was made is in .*out\.txt\.new"
    with pytest.raises(OutputError, match=why), claim_file(out).writing() as path:
        path.write_text("ours")
        out.write_text("theirs")
    assert out.read_text() == "theirs" and (tmp_path / "out.txt.new").read_text() == "ours"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_that_comes_at_the_very_last_moment_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.txt"
    monkeypatch.setattr("kgqa_core.store.outputs._check_file", lambda *_: False)
    with pytest.raises(OutputError, match="came there in the meantime"), claim_file(out).writing() as path:
        path.write_text("ours")
        out.write_text("theirs")
    assert out.read_text() == "theirs" and (tmp_path / "out.txt.new").read_text() == "ours"


def test_a_writer_that_fails_leaves_the_earlier_file_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    out.write_text("old")
    with pytest.raises(RuntimeError), claim_file(out, force=True).writing() as path:
        path.write_text("half")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"] and out.read_text() == "old"


def test_several_files_leave_others_in_their_folder_alone(tmp_path: Path) -> None:
    folder = tmp_path / "lists"
    with claim_files(folder, ["a", "b"]).writing() as scratch:
        (scratch / "a").write_text("1")
        (scratch / "b").write_text("1")
    (folder / "mine").write_text("mine")
    with pytest.raises(OutputError, match="a exists"):
        claim_files(folder, ["a", "b"])
    with claim_files(folder, ["a", "b"], force=True).writing() as scratch:
        (scratch / "a").write_text("2")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a": "2", "b": "1", "mine": "mine"}


def test_a_folder_that_changes_while_its_successor_is_made_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    old = claim_folder("rows", out).publish(fill("old"))
    for force in (False, True):
        with pytest.raises(OutputError, match=r"notes \d not written.*What was made is in .*out\.new"):
            note = out / f"notes {int(force)}"
            claim_folder("rows", out, force=force).publish(fill("new", lambda note=note: note.write_text("mine")))
        assert (out / f"notes {int(force)}").read_text() == "mine" and verify(out).digest == old.digest
        (out / f"notes {int(force)}").unlink()
    assert (tmp_path / "out.new" / "rows").read_text() == (tmp_path / "out.new-2" / "rows").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.new", "out.new-2"]


def test_a_folder_that_appears_while_another_is_made_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def come() -> None:
        out.mkdir()
        (out / "thesis").write_text("years of work")

    with pytest.raises(OutputError, match=r"is not a rows folder.*What was made is in .*out\.new"):
        claim_folder("rows", out, force=True).publish(fill("new", come))
    assert (out / "thesis").read_text() == "years of work" and verify(tmp_path / "out.new").kind == "rows"


def test_another_folder_that_appears_meanwhile_is_not_replaced_by_force(tmp_path: Path) -> None:
    out, sources = tmp_path / "out", [source_of("build", files=[name]) for name in ("one", "two")]

    def come() -> None:
        claim_folder("rows", out, source=sources[0]).publish(fill("one"))

    with pytest.raises(OutputError, match=r"holds another rows.*What was made is in .*out\.new"):
        claim_folder("rows", out, source=sources[1], force=True).publish(fill("two", come))
    assert (out / "rows").read_text() == "one" and (tmp_path / "out.new" / "rows").read_text() == "two"
    claim_folder("rows", out, source=sources[1], force=True).publish(fill("two"))
    assert (out / "rows").read_text() == "two"


def test_what_comes_between_the_last_check_and_the_exchange_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, exchange = tmp_path / "out", publish.exchange
    claim_folder("rows", out).publish(fill("old"))

    def late(first: Path, second: Path) -> bool:
        (out / "notes").write_text("mine")
        return exchange(first, second)

    monkeypatch.setattr(publish, "exchange", late)
    new = claim_folder("rows", out).publish(fill("new"))
    assert verify(out) == new and (tmp_path / "out.old" / "notes").read_text() == "mine"


def test_remains_of_killed_processes_are_told_from_folders_of_the_user(tmp_path: Path) -> None:
    for name, more in ((".out.killed", "out"), (".out.backup", "photos")):
        (tmp_path / name / more).mkdir(parents=True)
        (tmp_path / name / "lock").touch()
    (tmp_path / ".out.lists").mkdir()
    (tmp_path / ".out.lists" / "lock").write_text("combination: 1 2 3")
    claim_folder("rows", tmp_path / "out").publish(fill("new"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.backup", ".out.lists", "out"]


@pytest.mark.parametrize("system", [True, False])
def test_renaming_to_a_free_name_never_replaces(tmp_path: Path, system: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not system:
        monkeypatch.setattr("kgqa_core.store.files._rename", lambda *_: False)
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        (tmp_path / f"{name} folder").mkdir()
        (tmp_path / f"{name} folder" / "inside").touch()
    for kind in ("", " folder"):
        with pytest.raises(FileExistsError):
            rename_new(tmp_path / f"one{kind}", tmp_path / f"two{kind}")
        rename_new(tmp_path / f"one{kind}", tmp_path / f"three{kind}")
        assert not (tmp_path / f"one{kind}").exists() and (tmp_path / f"three{kind}").exists()
    (tmp_path / "three.old").touch()
    assert move_beside(tmp_path / "two", tmp_path / "three", "old").name == "three.old-2"


def test_a_source_is_the_same_from_anywhere_and_a_pipe_is_never_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert source_of("build", files=["b", "a"])["id"] == source_of("build", files=[tmp_path / "a", "./b"])["id"]
    assert source_of("build", files=["a"])["id"] != source_of("build", added=["a"])["id"]
    assert source_of("build", files=["/dev/fd/63"])["id"] == source_of("build", files=["/proc/self/fd/3"])["id"] == ""
    assert source_of("build", files=["/dev/shm/a"])["id"] == source_of("build", files=["/dev/shm/./a"])["id"] != ""
    pipe = source_of("build", files=["/dev/fd/63"])
    claim_folder("rows", tmp_path / "out", source=pipe).publish(fill("one"))
    with pytest.raises(OutputError, match="holds another rows"):
        claim_folder("rows", tmp_path / "out", source=pipe)


def test_a_place_whose_name_is_not_utf8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"x\\xff is not UTF-8"):
        claim_file(Path(os.fsdecode(os.fsencode(tmp_path) + b"/x\xff")))


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with claim_file(pipe).writing() as path:
        path.write_text("row\n")
    assert os.read(reader, 10) == b"row\n" and pipe.is_fifo()
    os.close(reader)


def test_a_pipe_that_nobody_reads_is_refused_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr("kgqa_core.store.outputs.READER_SECONDS", 0.1)
    with pytest.raises(OutputError, match="nothing reads the pipe"), claim_file(pipe).writing():
        pytest.fail("there is nobody to write for")
    assert pipe.is_fifo()
