"""A full or read-only disk and damaged files: said clearly, nothing half-published, finished work kept."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import duckdb
import polars as pl
import pytest
import torch
from typer.testing import CliRunner

from flows.cli import app
from kgqa_core.artifacts import Home, verify
from kgqa_core.errors import StorageError
from kgqa_core.housekeeping import plan, sweep
from kgqa_core.publish import publish_folder
from kgqa_core.survey import survey
from kgqa_core.training.checkpoint import Progress, restore, store

Fill = Callable[[Path, Path], Mapping[str, int]]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"mount does not work here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def little(out: Path, work: Path) -> Mapping[str, int]:
    (out / "little.json").write_text('{"n": 1}')
    return {}


def plain(out: Path, work: Path) -> Mapping[str, int]:
    (work / "checkpoint").write_text("step 7")
    (out / "big.bin").write_bytes(os.urandom(20_000_000))
    return {}


def parquet(out: Path, work: Path) -> Mapping[str, int]:
    pl.DataFrame({"n": [os.urandom(1000).hex() for _ in range(20_000)]}).write_parquet(out / "rows.parquet")
    return {}


def database(out: Path, work: Path) -> Mapping[str, int]:
    with duckdb.connect(str(out / "kg.duckdb")) as base:
        base.execute("CREATE TABLE t AS SELECT i, hash(i) AS h, hash(h)::VARCHAR AS s FROM range(2_000_000) r(i)")
    return {}


def choke(folder: Path) -> None:
    """Fill what is left of a file system."""
    with (folder / "ballast").open("wb", buffering=0) as stream:
        try:
            while stream.write(bytes(4096)):
                pass
        except OSError:
            pass


@pytest.mark.parametrize("fill", [plain, parquet, database])
def test_a_stage_that_fills_the_disk_leaves_finished_work_and_nothing_half(small: Path, fill: Fill) -> None:
    home = Home(small / "home").prepare()
    kept, _ = home.compute("facts", "a" * 64, little, {})
    with pytest.raises(StorageError, match="no space left for the home .*--home. Finished stages are kept"):
        home.compute("facts", "b" * 64, fill, {})
    assert not list((home.root / "tmp").iterdir())
    assert [path.name for path in (home.root / "artifacts" / "facts").iterdir()] == ["a" * 20]
    assert Home(home.root).prepare().compute("facts", "a" * 64, fill, {}) == (kept, False)
    made, fresh = home.compute("facts", "b" * 64, little, {})
    assert fresh and verify(made.folder) == made and not list((home.root / "work").iterdir())


def test_on_a_disk_that_is_full_to_the_last_byte_work_is_found_and_room_is_made(small: Path) -> None:
    home = Home(small / "home").prepare()
    kept, _ = home.compute("facts", "a" * 64, little, {})
    (home.root / "tmp" / "facts-dead").mkdir()
    (home.root / "tmp" / "facts-dead" / "half").write_bytes(bytes(2_000_000))
    (home.root / "locks" / "facts-dead.lock").touch()
    home.let_go()
    choke(small)
    with pytest.raises(StorageError, match="no space left"):
        Home(home.root).prepare()
    reader = Home(home.root)
    assert reader.find("facts", "a" * 64) == kept
    assert reader.compute("facts", "a" * 64, plain, {}) == (kept, False)
    with pytest.raises(StorageError, match="no space left"):
        reader.compute("facts", "b" * 64, little, {})
    assert survey(home.root)["places"]["artifacts"]["bytes"] > 0
    assert any(item.name == "facts-dead" for item in plan(home.root).items)
    told = CliRunner().invoke(app, ["gc", "--home", str(home.root), "--yes"])
    assert told.exit_code == 0, told.output
    assert not (home.root / "tmp" / "facts-dead").exists() and kept.folder.exists()
    assert Home(home.root).prepare().compute("facts", "b" * 64, little, {})[1]


def test_a_graph_beside_which_the_disk_fills_stays_as_it_was(small: Path) -> None:
    target = small / "graph"
    old = publish_folder("kg", target, little)
    with pytest.raises(StorageError, match="no space left"):
        publish_folder("kg", target, plain)
    assert verify(target) == old and [path.name for path in small.iterdir()] == ["graph"]


def test_a_read_only_home_is_said_and_can_still_be_read(small: Path) -> None:
    home = Home(small / "home").prepare()
    kept, _ = home.compute("facts", "a" * 64, little, {})
    home.let_go()
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    with pytest.raises(StorageError, match="cannot be written .*choose another with --home"):
        Home(home.root).prepare()
    reader = Home(home.root)
    assert reader.find("facts", "a" * 64) == kept
    with pytest.raises(StorageError, match="cannot be written"):
        reader.compute("facts", "b" * 64, little, {})
    shown = CliRunner().invoke(app, ["home", "--home", str(home.root)])
    assert shown.exit_code == 0 and "facts" in shown.output
    with pytest.raises(StorageError, match="cannot be written"):
        sweep(home.root)


class Notes:
    """A monitor that keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def progress(self, done: float, total: float | None, what: str) -> None: ...

    def metric(self, name: str, value: float, step: int | None = None) -> None: ...

    def note(self, message: str) -> None:
        self.said.append(message)


@pytest.mark.parametrize("name", ["little.json", "manifest.json"])
def test_a_flipped_bit_is_found_said_and_mended(tmp_path: Path, name: str) -> None:
    home = Home(tmp_path / "home").prepare()
    ref, _ = home.compute("facts", "a" * 64, little, {})
    file = ref.folder / name
    content = bytearray(file.read_bytes())
    content[0] ^= 1
    file.write_bytes(bytes(content))
    notes = Notes()
    assert home.compute("facts", "a" * 64, little, {}, notes) == (ref, True)
    assert notes.said == [f"the facts artifact {'a' * 20} is damaged; it is built again"]
    assert not list((home.root / "tmp").iterdir())


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.99])
def test_a_half_written_checkpoint_is_ignored_and_said(
    tmp_path: Path, kept: float, caplog: pytest.LogCaptureFixture
) -> None:
    torch.manual_seed(0)
    network = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(network.parameters())
    path = tmp_path / "checkpoint.safetensors"
    store(path, Progress("key"), network, optimizer, {})
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with caplog.at_level(logging.WARNING, "kgqa"):
        assert restore(path, "key", network, optimizer) is None
    assert "is damaged and not used" in caplog.text and "begins anew" in caplog.text
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
