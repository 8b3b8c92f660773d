"""The blocks of docs/library.md run one after the other and print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT

BLOCK = re.compile(r"^```(?P<kind>python|text)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    shutil.copy(ROOT / "docs" / "quickstart" / "europe.ttl", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KGQA_HOME", str(tmp_path / "home"))
    names: dict[str, Any] = {"__name__": "library_page"}
    printed, shown = "", 0
    for block in BLOCK.finditer(page):
        if block["kind"] == "text":
            assert printed == block["text"]
            shown += 1
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block["text"], "docs/library.md", "exec"), names)
        printed = out.getvalue()
    assert shown > 5
