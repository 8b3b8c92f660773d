"""Files of benchmarks: JSON lines, and data cards in Markdown with their tables, cells and templates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def write_json_lines(path: Path, rows: Iterable[Any]) -> None:
    """Writes dictionaries and dataclasses as JSON lines with sorted keys; the folder is made."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            value = row if isinstance(row, dict) else asdict(row)
            file.write(json.dumps(value, ensure_ascii=False, sort_keys=True) + "\n")


def markdown(table: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a Markdown table."""
    names = list(table[0])
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    for row in table:
        cells = [f"{row[name]:,}" if isinstance(row[name], int) else one_line(str(row[name])) for name in names]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def one_line(text: str) -> str:
    """A text as a cell of a Markdown table: no line breaks, no markup."""
    return " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace("|", r"\|")


@cache
def card_templates(package: str) -> Environment:
    """The templates of the data cards of a package, in its folder `templates`; a name without value is an error."""
    return Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=False,  # Markdown, whose cells `one_line` escapes
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
