"""The blocks of docs/extending.md, written into a copy of the project as the page shows them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.support.command import ROOT

BLOCK = re.compile(r"(?:^`(?P<file>\S+)`\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    """The section of the page below a heading."""
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    return next(part for part in page.split("\n## ") if part.startswith(title + "\n"))


def copy_packages(project: Path, *packages: str) -> None:
    """Copy packages of the project into a folder, with their compiled files, since most modules stay unchanged."""
    for package in packages:
        shutil.copytree(ROOT / package, project / package)


def follow(text: str, project: Path) -> set[str]:
    """Write the files that a section shows and make its changes; the files that were touched."""
    touched: set[str] = set()
    file = ""
    for block in BLOCK.finditer(text):
        file = block["file"] or file
        if block["kind"] == "python":
            (project / file).parent.mkdir(exist_ok=True)
            assert not (project / file).exists()
            (project / file).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "diff":
            lines = block["text"].splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] in " -")
            after = "".join(line[1:] for line in lines if line[0] in " +")
            code = (project / file).read_text(encoding="utf-8")
            assert code.count(before) == 1, f"{file} has {code.count(before)} times: {before}"
            (project / file).write_text(code.replace(before, after), encoding="utf-8")
        else:
            continue
        touched.add(file)
    return touched
