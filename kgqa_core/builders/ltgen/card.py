"""The data card of a benchmark: what is in it, how it was made, from what, and how to use it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from kgqa_core.builders.ltgen.prompts import ANNOTATION_RULE, CONV, QA, VERSION
from kgqa_core.builders.ltgen.statistics import rows
from kgqa_core.config import WritingOptions
from kgqa_core.prompts import prompt_digest
from kgqa_core.store.artifacts import MANIFEST

TITLES = {"qa": "LTGen-QA", "conv": "LTGen-Conv"}


def write_card(
    out: Path, *, kg: Path, sample: Path, kind: str, options: WritingOptions, table: Mapping[str, Any], seed: int
) -> None:
    """Writes README.md; the same inputs and options give the same text."""
    meta = json.loads((sample / "meta.json").read_text(encoding="utf-8"))
    rules = ["identifiers, names, media and categories"] * meta["filters"]["informative_only"]
    rules += [one_line(name) for name in meta["filters"]["drop_relations"]]
    rejected = [{"reason": reason, "rejected": number} for reason, number in table["rejects"].items()]
    text = (
        _environment()
        .get_template("card.md.j2")
        .render(
            title=TITLES[kind], kind=kind, meta=meta, graph=meta["graph"], digest=_digest(kg), seed=seed,
            table=markdown(rows(table)), rejected=markdown(rejected) if rejected else "Nothing.",
            splits=", ".join(f"{number:,} {split}" for split, number in table["splits"].items()),
            rules=", ".join(rules) or "no kind of relation", writer=options.writer, prompts=table["prompts"],
            prompt=prompt_digest(QA if kind == "qa" else CONV), version=VERSION, rule=ANNOTATION_RULE,
            talk=table.get("turns_without_triples"), n=lambda number: f"{number:,}",
        )
    )  # fmt: skip
    (out / "README.md").write_text(text, encoding="utf-8")


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


def _digest(kg: Path) -> str:
    path = kg / MANIFEST
    return f", digest `{json.loads(path.read_text(encoding='utf-8'))['digest'][:16]}`" if path.is_file() else ""


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("kgqa_core.builders.ltgen", "templates"),
        autoescape=False,  # Markdown, whose cells are escaped above
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
