"""Artifacts go to the object store whole, come back verified, and no fault of the store undoes finished work."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.errors import ArtifactError, ConfigError
from kgqa_core.store import remote as store_module
from kgqa_core.store.artifacts import Home, read_manifest, verify
from kgqa_core.store.digest import hash_file
from kgqa_core.store.home import note_unpushed, unpushed
from kgqa_core.store.remote import INDEX_BYTES, DigestMismatch, RemoteStore, StoreFault, safe_name
from kgqa_core.store.verified import RECORD
from tests.support.object_store import CREDENTIALS, ObjectStore

KEY = "a" * 64


def fill(out: Path, work: Path) -> dict[str, int]:
    (out / "facts.json").write_text('{"facts": 3}')
    (out / "deep" / "er").mkdir(parents=True)
    (out / "deep" / "er" / "weights.bin").write_bytes(bytes(range(256)) * 2000)
    (out / "empty").touch()
    (out / "volatile").mkdir()
    (out / "volatile" / "seconds").write_text("1.5")
    return {"facts": 3}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No store of another test, no waiting between tries."""
    monkeypatch.setattr(store_module, "_KNOWN", {})
    monkeypatch.setattr(store_module, "WAITS", (0.01, 0.01))
    for name in [*os.environ]:
        if name.startswith(("AWS_", "KGQA_STORE")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def s3_server() -> Iterator[ObjectStore]:
    server = ObjectStore()
    yield server
    server.kill()


@pytest.fixture(params=["file", "s3"])
def shared_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Both kinds of store, set as a user would."""
    if request.param == "file":
        (tmp_path / "store").mkdir()
        monkeypatch.setenv("KGQA_STORE", f"file://{tmp_path / 'store'}")
    else:
        server: ObjectStore = request.getfixturevalue("s3_server")
        server.reset()
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
    return str(request.param)


@pytest.fixture
def folder_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A store in a folder; its artifacts of KEY."""
    (tmp_path / "store").mkdir()
    monkeypatch.setenv("KGQA_STORE", f"file://{tmp_path / 'store'}")
    return tmp_path / "store" / "artifacts" / "facts" / KEY[:20]


def names(folder: Path) -> dict[str, bytes]:
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if name != RECORD}


def forbidden(out: Path, work: Path) -> dict[str, int]:
    raise AssertionError("it was there already")


def test_what_one_home_made_another_fetches_to_the_byte(shared_store: str, tmp_path: Path) -> None:
    one, two = Home(tmp_path / "one").prepare(), Home(tmp_path / "two").prepare()
    made, _ = one.compute("facts", KEY, fill, {"run_id": "r1"})
    assert unpushed(one.root) == []
    fetched, again = two.compute("facts", KEY, forbidden, {})
    assert not again and fetched.digest == made.digest
    assert names(fetched.folder) == names(made.folder)
    assert fetched.folder == two.folder("facts", KEY) and not list((two.root / "tmp").iterdir())
    assert two.find("facts", "b" * 64) is None


def test_parts_of_an_artifact_stay_at_home(folder_store: Path, tmp_path: Path) -> None:
    home = Home(tmp_path / "one").prepare()
    home.compute("facts-part", KEY, fill, {})
    assert not list((tmp_path / "store").iterdir()) and unpushed(home.root) == []


def test_the_index_is_written_after_all_files(folder_store: Path, tmp_path: Path, monkeypatch: Any) -> None:
    written: list[str] = []
    replace = os.replace

    def watched(source: Any, target: Any) -> None:
        if "store" in Path(target).parts:
            written.append(Path(target).name)
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    Home(tmp_path / "one").prepare().compute("facts", KEY, fill, {})
    assert written[-1] == "index.json" and len(written) == 6


def test_an_artifact_whose_index_is_missing_is_not_seen_and_sending_goes_on_from_there(
    folder_store: Path, tmp_path: Path
) -> None:
    home = Home(tmp_path / "one").prepare()
    ref, _ = home.compute("facts", KEY, fill, {})
    (folder_store / "index.json").unlink()
    assert Home(tmp_path / "two").prepare().find("facts", KEY) is None
    weights = next(folder_store.glob("*/deep/er/weights.bin"))
    weights.write_bytes(b"half")
    kept = next(folder_store.glob("*/facts.json")).stat().st_ino
    RemoteStore.current().push(ref.folder)  # type: ignore[union-attr]
    assert Home(tmp_path / "two").find("facts", KEY) is not None
    assert next(folder_store.glob("*/facts.json")).stat().st_ino == kept


def test_a_kill_while_it_is_sent_leaves_a_note_for_the_next_run(
    folder_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "one").prepare()
    with monkeypatch.context() as patch:
        patch.setattr(RemoteStore, "_write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            home.compute("facts", KEY, fill, {})
    assert Home(tmp_path / "two").prepare().find("facts", KEY) is None
    again = Home(home.root).prepare()
    assert again.find("facts", KEY) is not None and [entry.key for entry in unpushed(home.root)] == [KEY]
    assert again.catch_up() == 1 and unpushed(home.root) == []
    assert Home(tmp_path / "two").find("facts", KEY) is not None


def test_a_damaged_artifact_is_not_sent(folder_store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = os.environ.pop("KGQA_STORE")
    home = Home(tmp_path / "one").prepare()
    ref, _ = home.compute("facts", KEY, fill, {})
    os.environ["KGQA_STORE"] = url
    note_unpushed(home.root, "facts", KEY)
    (ref.folder / "empty").write_text("not empty")
    assert home.catch_up() == 0 and "is damaged and is not sent" in caplog.text
    assert not folder_store.exists()


@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing", "index", "deep", "vast"])
def test_a_damaged_object_is_said_the_artifact_made_anew_and_the_store_mended(
    folder_store: Path, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, _ = Home(tmp_path / "one").prepare().compute("facts", KEY, fill, {})
    weights = next(folder_store.glob("*/deep/er/weights.bin"))
    whole = weights.read_bytes()
    if damage == "truncated":
        weights.write_bytes(whole[:1000])
    elif damage == "flipped":
        weights.write_bytes(whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:])
    elif damage == "missing":
        weights.unlink()
    elif damage == "deep":
        (folder_store / "index.json").write_text("[" * 100_000)
    elif damage == "vast":
        os.truncate(folder_store / "index.json", INDEX_BYTES + 1)
    else:
        (folder_store / "index.json").write_text('{"schema": 1, "kind"')
    two = Home(tmp_path / "two").prepare()
    with caplog.at_level(logging.WARNING, "kgqa"):
        made, fresh = two.compute("facts", KEY, fill, {})
    assert fresh and made.digest == first.digest and not list((two.root / "tmp").iterdir())
    assert "damaged" in caplog.text and "made here" in caplog.text
    assert Home(tmp_path / "three").prepare().find("facts", KEY) is not None, "the store was mended"


def _forge(folder_store: Path, change: Callable[[dict[str, Any]], None]) -> None:
    index = json.loads((folder_store / "index.json").read_text())
    change(index)
    (folder_store / "index.json").write_text(json.dumps(index))


@pytest.mark.parametrize(
    "name",
    ["../../../../escaped", "/tmp/escaped", "deep/../../escaped", "a\\..\\b", "", ".", "x\0y", "//x", "a//b", "./a"],
)
def test_a_name_that_leaves_the_home_is_refused(folder_store: Path, tmp_path: Path, name: str) -> None:
    Home(tmp_path / "one").prepare().compute("facts", KEY, fill, {})
    _forge(folder_store, lambda index: index["files"].update({name: index["files"]["empty"]}))
    before = sorted(tmp_path.rglob("escaped"))
    with pytest.raises(ArtifactError, match="could leave its folder"):
        RemoteStore.current().fetch("facts", KEY, tmp_path / "into")  # type: ignore[union-attr]
    assert Home(tmp_path / "two").prepare().find("facts", KEY) is None
    assert sorted(tmp_path.rglob("escaped")) == before == [] and not Path("/tmp/escaped").exists()


def test_a_folder_of_the_index_and_names_of_the_manifest_cannot_leave_either(
    folder_store: Path, tmp_path: Path
) -> None:
    ref, _ = Home(tmp_path / "one").prepare().compute("facts", KEY, fill, {})
    (tmp_path / "store" / "secret").mkdir()
    _forge(folder_store, lambda index: index.update(folder="../../../secret"))
    with pytest.raises(ArtifactError, match="could leave its folder"):
        RemoteStore.current().fetch("facts", KEY, tmp_path / "into")  # type: ignore[union-attr]
    manifest = read_manifest(ref.folder)
    manifest["files"]["../../outside"] = manifest["files"]["empty"]
    (ref.folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ArtifactError, match="could leave its folder"):
        verify(ref.folder.rename(tmp_path / "elsewhere"))
    with pytest.raises(ArtifactError):
        safe_name(7)


@pytest.mark.parametrize("name", ["d" * 300 + "/x", "é" * 128, "\ud800", "a/" * 500 + "b"])
def test_a_name_that_no_file_can_have_is_refused_and_the_artifact_made_here(
    folder_store: Path, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    Home(tmp_path / "one").prepare().compute("facts", KEY, fill, {})
    _forge(folder_store, lambda index: index["files"].update({name: index["files"]["empty"]}))
    _, fresh = Home(tmp_path / "two").prepare().compute("facts", KEY, fill, {})
    assert fresh and "cannot be written; it is not used; the artifact is made here" in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        {"files": None}, {"files": ["empty"]}, {"files": {"empty": None}}, {"files": {"empty": {"sha256": "0"}}},
        {"files": {"empty": {"bytes": 0, "sha256": 0}}}, {"kind": 7}, {"digest": None}, {"counts": 3}, {"made_of": []},
    ],
)  # fmt: skip
def test_a_manifest_of_another_shape_is_refused_and_the_artifact_made_here(
    folder_store: Path, tmp_path: Path, change: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    ref, _ = Home(tmp_path / "one").prepare().compute("facts", KEY, fill, {})
    path = next(folder_store.glob("*/manifest.json"))
    forged = json.dumps(json.loads(path.read_text()) | change)
    path.write_text(forged)
    facts = {"bytes": path.stat().st_size, "sha256": hash_file(path)}
    _forge(folder_store, lambda index: index["files"].update({"manifest.json": facts}))
    made, fresh = Home(tmp_path / "two").prepare().compute("facts", KEY, fill, {})
    assert fresh and made.digest == ref.digest and "the artifact is made here" in caplog.text
    (ref.folder / "manifest.json").write_text(forged)
    with pytest.raises(ArtifactError):
        read_manifest(ref.folder)


def test_a_symbolic_link_in_a_store_is_not_followed(folder_store: Path, tmp_path: Path) -> None:
    Home(tmp_path / "one").prepare().compute("facts", KEY, fill, {})
    weights = next(folder_store.glob("*/deep/er/weights.bin"))
    (tmp_path / "private").write_bytes(weights.read_bytes())
    weights.unlink()
    weights.symlink_to(tmp_path / "private")
    with pytest.raises(ArtifactError, match="symbolic link"):
        RemoteStore.current().fetch("facts", KEY, tmp_path / "into")  # type: ignore[union-attr]


@pytest.mark.parametrize("what", ["another artifact", "a loose file", "a file and folder"])
def test_an_index_that_does_not_fit_its_manifest_is_refused(folder_store: Path, tmp_path: Path, what: str) -> None:
    Home(tmp_path / "one").prepare().compute("facts", KEY, fill, {})

    def change(index: dict[str, Any]) -> None:
        if what == "another artifact":
            index["digest"] = "0" * 64
        elif what == "a loose file":
            index["files"]["loose"] = index["files"]["empty"]
            next(folder_store.glob("*/empty")).with_name("loose").touch()
        else:
            index["files"]["empty/inner"] = index["files"]["empty"]

    _forge(folder_store, change)
    store = RemoteStore.current()
    assert store is not None
    with pytest.raises(ArtifactError):
        store.fetch("facts", KEY, tmp_path / "into")


def test_two_outcomes_of_one_key_are_reported_and_the_first_stays(
    folder_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Home(tmp_path / "one").prepare().compute("facts", KEY, fill, {})
    first = (folder_store / "index.json").read_bytes()
    url = os.environ.pop("KGQA_STORE")
    two = Home(tmp_path / "two").prepare()

    def other(out: Path, work: Path) -> dict[str, int]:
        monkeypatch.setenv("KGQA_STORE", url)  # the other machine has it only now
        (out / "facts.json").write_text('{"facts": 4}')
        return {}

    with caplog.at_level(logging.ERROR, "kgqa"):
        two.compute("facts", KEY, other, {})
    assert "something that is not in its key decides; the store keeps the first" in caplog.text
    assert (folder_store / "index.json").read_bytes() == first
    [entry] = unpushed(two.root)
    assert entry.conflict and two.catch_up() == 0
    with pytest.raises(DigestMismatch):
        RemoteStore.current().push(two.folder("facts", KEY))  # type: ignore[union-attr]


def test_equal_outcomes_of_two_machines_do_not_mix_their_files(folder_store: Path, tmp_path: Path) -> None:
    url = os.environ["KGQA_STORE"]
    folders = []
    for name in ("one", "two"):
        del os.environ["KGQA_STORE"]
        ref, _ = Home(tmp_path / name).prepare().compute("facts", KEY, fill, {"run_id": name})
        folders.append(ref.folder)
        os.environ["KGQA_STORE"] = url
    store = RemoteStore.current()
    assert store is not None
    store.push(folders[0])
    store.push(folders[1], again=True)
    third = Home(tmp_path / "three").prepare().find("facts", KEY)
    assert third is not None and read_manifest(third.folder)["run_id"] == "two"


class KillAt:
    """A monitor that kills the server as soon as bytes flow."""

    def __init__(self, server: ObjectStore) -> None:
        self.server, self.seen = server, []  # type: ignore[var-annotated]

    def progress(self, done: float, total: float | None, what: str) -> None:
        self.seen.append((done, total, what))
        if self.server.process.poll() is None:
            self.server.kill()

    def metric(self, name: str, value: float, step: int | None = None) -> None: ...

    def note(self, message: str) -> None: ...


def often(waiting: set[Future[None]], timeout: float, return_when: str) -> Any:
    """Tell progress after a moment, so that a quick machine has not sent all by then."""
    return wait(waiting, min(timeout, 0.02), return_when)


def many(out: Path, work: Path) -> dict[str, int]:
    for number in range(60):
        (out / f"part-{number:02d}.bin").write_bytes(bytes([number]) * 400_000)
    return {}


@pytest.mark.slow
def test_a_server_that_dies_while_it_is_sent_to_costs_nothing_and_the_next_run_catches_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = ObjectStore()
    try:
        server.make_bucket()
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(store_module, "WORKERS", 2)
        monkeypatch.setattr(store_module, "wait", often)
        home = Home(tmp_path / "one").prepare()
        killer = KillAt(server)
        with caplog.at_level(logging.DEBUG):
            ref, made = home.compute("facts", KEY, many, {}, killer)
            home.compute("facts", "c" * 64, fill, {})
        assert made and verify(ref.folder) == ref and killer.seen
        assert [entry.key for entry in unpushed(home.root)] == [KEY, "c" * 64]
        warnings = [record for record in caplog.records if record.levelno == logging.WARNING and record.name == "kgqa"]
        assert len(warnings) == 1, "a store that rests is not asked, and not complained of, at each stage"
        assert "is sent by the next run" in warnings[0].getMessage()
        server.start()
        server.make_bucket()
        monkeypatch.setattr(store_module, "_KNOWN", {})  # the next process
        assert home.catch_up() == 2 and unpushed(home.root) == []
        two = Home(tmp_path / "two").prepare()
        fetched = two.find("facts", KEY)
        assert fetched is not None and fetched.digest == ref.digest

        three = Home(tmp_path / "three").prepare()
        fetched, fresh = three.compute("facts", KEY, many, {}, KillAt(server))
        assert fresh and fetched.digest == ref.digest, "dead while fetching: made here"
        assert not list((three.root / "tmp").iterdir())
        written = caplog.text + "".join(
            path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()
        )
        assert not any(secret in written for secret in CREDENTIALS.values())
    finally:
        server.kill()


def test_wrong_credentials_are_named_by_their_variable_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = ObjectStore({"INITIAL_NO_AUTH_ACTION_COUNT": "0"})
    try:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        store = RemoteStore.current()
        assert store is not None
        with pytest.raises(StoreFault) as caught:
            store.fetch("facts", KEY, tmp_path / "into")
        assert "refuses us" in str(caught.value) and "AWS_ACCESS_KEY_ID" in str(caught.value)
        monkeypatch.setattr(store_module, "_KNOWN", {})
        with caplog.at_level(logging.DEBUG):
            Home(tmp_path / "one").prepare().compute("facts", KEY, fill, {})
        assert "AWS_ACCESS_KEY_ID" in caplog.text
        assert not any(secret in caplog.text + str(caught.value) for secret in CREDENTIALS.values())
    finally:
        server.kill()


def test_options_that_cannot_be_used_are_said_at_once_and_without_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGQA_STORE", "s3://bucket")
    monkeypatch.setenv("KGQA_STORE_OPTIONS", '{"key": "canary-1234"')
    with pytest.raises(ConfigError, match="KGQA_STORE_OPTIONS is not a JSON object") as caught:
        Home(tmp_path / "one").prepare()
    assert "canary" not in str(caught.value)
    monkeypatch.delenv("KGQA_STORE_OPTIONS")
    monkeypatch.setenv("KGQA_STORE", "bucket/prefix")
    with pytest.raises(ConfigError, match="is no URL"):
        Home(tmp_path / "one").prepare()
    monkeypatch.setenv("KGQA_STORE", "nonsense://user:canary-5678@host/x?token=canary-9")
    with pytest.raises(ConfigError, match="nonsense://host/x cannot be opened") as caught:
        Home(tmp_path / "one").prepare().find("facts", KEY)
    assert "canary" not in str(caught.value)


def test_a_folder_that_is_not_mounted_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGQA_STORE", f"file://{tmp_path / 'share'}")
    home = Home(tmp_path / "one").prepare()
    home.compute("facts", KEY, fill, {})
    assert not (tmp_path / "share").exists() and len(unpushed(home.root)) == 1


def test_what_a_killed_push_left_in_a_folder_goes_a_day_later(folder_store: Path, tmp_path: Path) -> None:
    ref, _ = Home(tmp_path / "one").prepare().compute("facts", KEY, fill, {})
    weights = next(folder_store.rglob("weights.bin"))
    shutil.rmtree(tmp_path / "store" / "artifacts")
    weights.parent.mkdir(parents=True)
    old, young = (weights.with_name(f".weights.bin.{name}.tmp") for name in ("1234abcd", "5678abcd"))
    for path, age in ((old, 2), (young, 0)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age * 86400,) * 2)
    store = RemoteStore.current()
    assert store is not None
    store.push(ref.folder)  # what another home made has another manifest, hence another folder
    assert weights.is_file() and not old.exists()
    assert young.exists(), "another machine may be at work on it"
