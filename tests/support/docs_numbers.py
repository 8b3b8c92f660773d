"""The numbers of README and docs/ outside generated tables, and where each comes from.

    python -m tests.support.docs_numbers        prints those that come from nowhere

A *measurement* is a number with a decimal point or a unit, in prose or a table.  It comes from a result file of its
page (one of a generated table on it, or one that the page names, itself or by its script), as a value, in per cent, in
thousandths or in millionths, or from tests/scoreboard where the page names that.  Any other number, also in code, comes
from any result file or is a literal of a source file.  What is neither stands in docs_numbers.yaml with the reason.
"""

from __future__ import annotations

import bisect
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks import docs_tables

ROOT = docs_tables.ROOT
ALLOWED = Path(__file__).with_suffix(".yaml")
SCALES = (1, 100, 1e-3, 1e-6)
"""What a value of a result file is multiplied by where it is shown."""
NUMBER = re.compile(r"(?<![\w.,:/-])(?:\d[\d,]*\d|\d)(?:\.\d+)?(?![\w]|[.:/-]\d)|(?<![\w.])\.\d+(?!\w)")
"""No part of a version, an address, a date, a time, a name or a commit."""
CODE = re.compile(r"^```.*?^```|^    [^\n]*$|`[^`\n]*`|\]\([^)\n]*\)|<[^>\n]*>", re.DOTALL | re.MULTILINE)
LITERAL = re.compile(r"(?<![\w.])\d[\d_]*(?:\.\d+)?|(?<![\w.])\.\d+")
UNIT = re.compile(r"\s?(?:%|×|per cent|points?\b|m?s\b|seconds|minutes|min\b|hours|h\b|[kMG]B\b|times\b)")
SOURCES = (".py", ".yaml", ".yml", ".toml", ".sh", "Makefile", "Dockerfile")


class Unexplained(NamedTuple):
    """A number that comes from nowhere, and the text about it."""

    page: str
    number: str
    measured: bool
    text: str


def pages() -> list[str]:
    """README and all pages of docs."""
    return ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]


def unexplained(page: str) -> Iterator[Unexplained]:
    """The numbers of a page that come from nowhere and are not allowed."""
    whole = (ROOT / page).read_text(encoding="utf-8")
    text = docs_tables.BLOCK.sub("", whole)
    prose, code = CODE.sub("", text), "\n".join(match[0] for match in CODE.finditer(text))
    files, allowed = _files_of(page, whole), _allowed(page)
    for part in (prose, code):
        for match in NUMBER.finditer(part):
            number = match[0].replace(",", "")
            measured = part is prose and ("." in number or bool(UNIT.match(part, match.end())))
            good = any(_holds(file, number) for file in files) if measured else _known(number)
            if not good and number not in allowed:
                around = part[max(0, match.start() - 60) : match.end() + 40]
                yield Unexplained(page, match[0], measured, " ".join(around.split()))


def _files_of(page: str, text: str) -> list[str]:
    named = {table.result for table in docs_tables.TABLES if table.page == page and table.result}
    for file in docs_tables.RESULTS:
        module = file.script.removesuffix(".py").replace("/", ".")
        if any(name in text for name in (f"{file.name}.json", file.script, module)):
            named.add(file.name)
    return [*sorted(named), *["scoreboard"] * ("tests/scoreboard" in text)]


@cache
def _values(file: str) -> tuple[list[float], frozenset[str]]:
    """The numbers of a result file, sorted, and those in its texts."""
    numbers: set[float] = set()
    texts: set[str] = set()
    boards = sorted((ROOT / "tests" / "scoreboard").glob("*.yaml"))
    found = [yaml.safe_load(b.read_text()) for b in boards] if file == "scoreboard" else docs_tables.load(file)
    for leaf in _leaves(found):
        if isinstance(leaf, int | float) and not isinstance(leaf, bool):
            numbers.add(float(leaf))
        elif isinstance(leaf, str):
            texts.update(number.replace(",", "") for number in NUMBER.findall(leaf))
    return sorted(numbers), frozenset(texts)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _holds(file: str, number: str) -> bool:
    """Whether a result file has a number, rounded as it is shown."""
    values, texts = _values(file)
    half = 0.5 * 10.0 ** -len(number.partition(".")[2])
    for scale in SCALES:
        low, high = ((float(number) + side * half) / scale for side in (-1, 1))
        index = bisect.bisect_left(values, low - 1e-12)
        if index < len(values) and values[index] <= high + 1e-12:
            return True
    return number in texts


@cache
def _literals() -> frozenset[str]:
    """The numbers of all source files."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found: set[str] = set()
    for name in listed.splitlines():
        if name.endswith(SOURCES) and name != str(ALLOWED.relative_to(ROOT)) and (ROOT / name).is_file():
            text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
            found.update(number.replace("_", "") for number in LITERAL.findall(text))
    return frozenset(found)


def _known(number: str) -> bool:
    return number in _literals() or any(_holds(file.name, number) for file in docs_tables.RESULTS)


@cache
def _entries() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = yaml.safe_load(ALLOWED.read_text(encoding="utf-8"))
    return found


def _allowed(page: str) -> set[str]:
    """The numbers of the entries for a page; one key may have several."""
    keys = [str(key) for part in ("everywhere", page) for key in _entries().get(part, {})]
    return {number for key in keys for number in key.replace(",", "").split()}


def main() -> None:
    """Prints what comes from nowhere."""
    for page in pages():
        for found in unexplained(page):
            print("\t".join((found.page, found.number, "measured" if found.measured else "", found.text)))


if __name__ == "__main__":
    main()
