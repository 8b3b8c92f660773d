"""What was read out of a source file is kept for the same bytes alone, and a damaged file of it is left aside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tasks.code_cache import FILE, MOST, CodeCache, Entry
from tasks.import_closure import _parsed, module_code

DIGEST = "ab" * 32


def _counted(calls: list[int]) -> Entry:
    calls.append(1)
    return ("os", "sys"), DIGEST


def _get(cache: CodeCache, source: bytes, name: str = "a") -> int:
    """How often the entry was made for this."""
    calls: list[int] = []
    assert cache.get(source, name, lambda: _counted(calls)) == (("os", "sys"), DIGEST)
    return len(calls)


def test_an_entry_is_made_once_for_the_same_bytes_name_and_reader(tmp_path: Path) -> None:
    cache = CodeCache(tmp_path / FILE, b"reader")
    assert [_get(cache, b"x"), _get(cache, b"x"), _get(cache, b"y"), _get(cache, b"x", "b")] == [1, 0, 1, 1]
    cache.save()
    again = CodeCache(tmp_path / FILE, b"reader")
    assert [_get(again, b"x"), _get(again, b"y"), _get(again, b"z")] == [0, 0, 1]
    assert _get(CodeCache(tmp_path / FILE, b"another reader"), b"x") == 1


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"k": 1}', '{"k": [["os"], "no digest"]}', '{"k": [["os"]]}'])
def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: str) -> None:
    (tmp_path / FILE).write_text(damage)
    cache = CodeCache(tmp_path / FILE, b"reader")
    assert _get(cache, b"x") == 1
    cache.save()
    assert _get(CodeCache(tmp_path / FILE, b"reader"), b"x") == 0


def test_without_a_home_nothing_is_written(tmp_path: Path) -> None:
    cache = CodeCache(tmp_path / "none" / FILE, b"reader")
    assert _get(cache, b"x") == 1
    cache.save()
    assert not (tmp_path / "none").exists()


def test_a_large_file_loses_what_is_not_needed(tmp_path: Path) -> None:
    rows = {f"{number:064x}": [["os"], DIGEST] for number in range(MOST)}
    (tmp_path / FILE).write_text(json.dumps(rows))
    cache = CodeCache(tmp_path / FILE, b"reader")
    assert _get(cache, b"x") == 1
    cache.save()
    assert len(json.loads((tmp_path / FILE).read_text())) == 1


def test_a_module_is_read_as_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text('"""Says é."""\nimport os.path\nfrom . import near\nfrom ..up import there\n', encoding="utf-8")
    read = module_code(path, "pack.inner.own")
    assert read == _parsed(path.read_bytes(), "pack.inner")
    assert read.imports == ("os.path", "pack.inner", "pack.inner.near", "pack.up", "pack.up.there")
