"""Files that have not changed are not read again, and every change is seen: by size, times, inode or content."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from kgqa_core.errors import ArtifactError, ConfigError
from kgqa_core.store import artifacts, verified
from kgqa_core.store.artifacts import ArtifactRef, Home, hash_file, verify

KEY = "a" * 64


@pytest.fixture
def made(tmp_path: Path) -> ArtifactRef:
    """An artifact that another process has made: this one remembers nothing of it."""

    def fill(out: Path, work: Path) -> dict[str, int]:
        (out / "rows.txt").write_text("one two three")
        (out / "inner").mkdir()
        (out / "inner" / "more.txt").write_text("four")
        return {"rows": 1}

    ref, _ = Home(tmp_path / "home").prepare().compute("rows", KEY, fill, {})
    _age(ref.folder)
    return ref


def _age(folder: Path) -> None:
    """What time would do: the record is younger by the margin than the files, and no process remembers them."""
    record = folder / verified.RECORD
    later = record.stat().st_mtime_ns + verified.MARGIN_NS
    os.utime(record, ns=(later, later))
    artifacts._VERIFIED.clear()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files whose bytes are read."""
    names: list[str] = []

    def hashed(path: Path) -> str:
        names.append(path.name)
        return hash_file(path)

    monkeypatch.setattr(artifacts, "hash_file", hashed)
    return names


def _change(file: Path) -> None:
    """Other bytes of the same number in the same file, with the times of before as far as they can be set."""
    before = file.stat()
    with file.open("r+b") as stream:
        stream.write(b"ONE")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = file.stat()
    assert (before.st_size, before.st_mtime_ns, before.st_ino) == (after.st_size, after.st_mtime_ns, after.st_ino)


def test_a_new_process_reads_no_file_of_an_artifact_that_did_not_change(made: ArtifactRef, read: list[str]) -> None:
    assert verify(made.folder) == made and read == []
    assert Home(made.folder.parents[2]).find("rows", KEY) == made and read == []


def test_a_change_of_the_same_size_with_the_old_time_is_seen(made: ArtifactRef, read: list[str]) -> None:
    _change(made.folder / "rows.txt")
    with pytest.raises(ArtifactError, match=r"rows\.txt is missing or damaged"):
        verify(made.folder)
    assert "rows.txt" in read


def test_another_file_with_the_same_size_and_time_is_seen(made: ArtifactRef) -> None:
    file = made.folder / "rows.txt"
    before = file.stat()
    other = file.with_name("other")
    other.write_text("ONE two three")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, file)
    with pytest.raises(ArtifactError, match=r"rows\.txt"):
        verify(made.folder)


def test_a_missing_or_shorter_file_is_seen(made: ArtifactRef) -> None:
    (made.folder / "inner" / "more.txt").write_text("fou")
    with pytest.raises(ArtifactError, match=r"more\.txt"):
        verify(made.folder)
    (made.folder / "inner" / "more.txt").unlink()
    with pytest.raises(ArtifactError, match=r"more\.txt"):
        verify(made.folder)


def test_a_copied_home_is_read_once_and_then_trusted(made: ArtifactRef, read: list[str], tmp_path: Path) -> None:
    home = Home(Path(shutil.copytree(made.folder.parents[2], tmp_path / "copy")))
    _age(home.folder("rows", KEY))
    found = home.find("rows", KEY)
    assert found is not None and found.digest == made.digest and sorted(read) == ["more.txt", "rows.txt"]
    _age(found.folder)
    assert home.find("rows", KEY) == found and len(read) == 2


def test_a_copy_that_was_changed_on_the_way_is_seen(made: ArtifactRef, tmp_path: Path) -> None:
    home = Home(Path(shutil.copytree(made.folder.parents[2], tmp_path / "copy")))
    _age(home.folder("rows", KEY))
    _change(home.folder("rows", KEY) / "rows.txt")
    assert home.find("rows", KEY) is None


def test_another_manifest_or_a_damaged_record_is_not_trusted(made: ArtifactRef, read: list[str]) -> None:
    manifest, record = made.folder / "manifest.json", made.folder / verified.RECORD
    text = record.read_text()
    for damaged in ("", "{", "[]", '{"manifest": 3, "files": []}', '{"files": {}}', text.replace("rows.txt", "r.txt")):
        record.write_text(damaged)
        artifacts._VERIFIED.clear()
        read.clear()
        assert verify(made.folder) == made and len(read) == 2
    facts = json.loads(manifest.read_text())
    facts["files"]["rows.txt"]["sha256"] = "0" * 64
    manifest.write_text(json.dumps(facts))
    artifacts._VERIFIED.clear()
    with pytest.raises(ArtifactError, match=r"rows\.txt"):
        verify(made.folder)


def test_files_as_young_as_the_record_are_read_again(made: ArtifactRef, read: list[str]) -> None:
    record = made.folder / verified.RECORD
    newest = max((made.folder / "rows.txt").stat().st_ctime_ns, (made.folder / "inner" / "more.txt").stat().st_ctime_ns)
    os.utime(record, ns=(newest, newest + verified.MARGIN_NS - 1))
    assert verify(made.folder) == made and len(read) == 2


def test_a_home_that_cannot_be_written_is_verified_by_content(
    made: ArtifactRef, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (made.folder / verified.RECORD).unlink()

    def refuse(path: Path, value: object) -> None:
        raise PermissionError(path)

    monkeypatch.setattr(verified, "write_json", refuse)
    assert verify(made.folder) == made and len(read) == 2 and not (made.folder / verified.RECORD).exists()


def test_content_is_read_where_it_is_wanted(
    made: ArtifactRef, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    verify(made.folder, content=True)
    assert len(read) == 2
    artifacts._VERIFIED.clear()
    monkeypatch.setenv(verified.VARIABLE, "content")
    verify(made.folder)
    assert len(read) == 4
    artifacts._VERIFIED.clear()
    monkeypatch.setenv(verified.VARIABLE, "contents")
    with pytest.raises(ConfigError, match="'contents'"):
        verify(made.folder)


def test_the_command_finds_bytes_that_a_disk_has_lost(made: ArtifactRef) -> None:
    home = made.folder.parents[2]
    whole = CliRunner().invoke(app, ["home", "--home", str(home), "--verify", "--json"])
    assert whole.exit_code == 0 and json.loads(whole.stdout.splitlines()[-1])["damaged"] == {}
    file = made.folder / "rows.txt"
    _change(file)
    artifacts._VERIFIED.clear()
    state = verified.states(made.folder, ["rows.txt", "inner/more.txt"])
    verified.remember(made.folder, state)  # as after a fault of the disk, which moves no time
    _age(made.folder)
    assert verify(made.folder) == made
    found = CliRunner().invoke(app, ["home", "--home", str(home), "--verify", "--json"])
    damaged = json.loads(found.stdout.splitlines()[-1])
    assert found.exit_code == 1 and [*damaged["damaged"]] == [f"rows/{KEY[:20]}"] and damaged["artifacts"] == 1


def test_a_copy_of_an_artifact_has_no_record_and_no_folder_that_held_nothing_else(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        (folder / "volatile").mkdir(parents=True)
        (folder / "volatile" / "verified.json").write_text("{}", encoding="utf-8")
        (folder / "rows").write_text("1", encoding="utf-8")
    (two / "volatile" / "seconds").write_text("2", encoding="utf-8")
    for folder in (one, two):
        shutil.copytree(folder, folder.with_suffix(".copy"), ignore=verified.not_copied)
    assert [path.name for path in one.with_suffix(".copy").iterdir()] == ["rows"]
    assert [path.name for path in (two.with_suffix(".copy") / "volatile").iterdir()] == ["seconds"]
