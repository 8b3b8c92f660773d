"""The data card of an answerability benchmark; the same inputs and options give the same text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from kgqa_core.builders.answerability.statistics import TABLES
from kgqa_core.builders.ltgen.card import markdown
from kgqa_core.datasets.gold_forms import COMPUTED, GIVEN, PATH

ORIGINS = {
    GIVEN: "of the data set",
    PATH: "made of relation paths",
    COMPUTED: "made of paths and the type of the question",
}


def write_card(out: Path, *, table: Mapping[str, Any], graph: Mapping[str, Any], questions: str) -> None:
    """Writes README.md.  graph: `name` and `digest` of the ideal graph; questions: name of their source."""
    left_out: Sequence[Mapping[str, Any]] = [
        {"reason": reason, "questions": number} for reason, number in table["left_out"].items()
    ]
    text = (
        _environment()
        .get_template("card.md.j2")
        .render(
            stats=table, graph=graph, questions=questions, tables=TABLES, origins=ORIGINS, left_out=left_out,
            markdown=lambda rows: markdown([{name: shown(value) for name, value in row.items()} for row in rows]),
            n=lambda number: f"{number:,}", share=lambda part: f"{part:.1%}",
        )
    )  # fmt: skip
    (out / "README.md").write_text(text, encoding="utf-8")


def shown(value: Any) -> Any:
    """A number as the tables show it; a share is a fraction."""
    return f"{value:.1%}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("kgqa_core.builders.answerability", "templates"), undefined=StrictUndefined,
        autoescape=False, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
