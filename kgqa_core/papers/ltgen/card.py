"""The tables and the data card of a benchmark: what is in it, how it was made, from what, and how to use it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.config import WritingOptions
from kgqa_core.papers.benchmark_files import card_templates, markdown, one_line
from kgqa_core.papers.ltgen.conv import SMALL_TALK
from kgqa_core.papers.ltgen.prompts import ANNOTATION_RULE, CONV, QA, VERSION
from kgqa_core.papers.ltgen.records import BenchmarkItem, RejectedItem, Subject
from kgqa_core.prompts import prompt_digest
from kgqa_core.store.artifacts import MANIFEST
from kgqa_core.types import LEVELS

CITED = ("1", "2", "3", ">3")
"""Groups by number of reference triples, as in the paper."""

COLUMNS = {
    "qa": {"entities": "entities", "entities_asked": "asked", "questions": "questions"},
    "conv": {"entities": "entities", "dialogues": "dialogues", "turns": "turns"},
}
"""What is counted by level, and the heads of its columns, which fit a terminal of 80 characters."""


def statistics(
    kind: str,
    subjects: Sequence[Subject],
    items: Sequence[BenchmarkItem],
    rejects: Sequence[RejectedItem],
    counts: Mapping[str, int],
) -> dict[str, Any]:
    """What a benchmark has, by level and in all, and what was rejected by reason (small talk apart)."""
    levels = {level: _row(kind, level, subjects, items) for level in LEVELS}
    total = _row(kind, None, subjects, items)
    talk = sum(reject.reason in SMALL_TALK for reject in rejects)
    reasons = Counter(reject.reason for reject in rejects if reject.reason not in SMALL_TALK)
    table: dict[str, Any] = {
        "kind": kind,
        "levels": levels,
        "total": total,
        "splits": dict(sorted(Counter(item.subject.split for item in items).items())),
        "rejects": dict(sorted(reasons.items())),
        "prompts": counts.get("prompts", 0),
    }
    return table | ({"turns_without_triples": talk} if kind == "conv" else {})


def cited_group(number: int) -> str:
    """The group of a number of reference triples.

    >>> cited_group(1), cited_group(7)
    ('1', '>3')
    """
    return str(number) if number <= 3 else ">3"


def rows(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The table as the paper prints it: a row a level and one in all."""
    table_rows = []
    for level, row in [*((level, table["levels"][level]) for level in LEVELS), ("all", table["total"])]:
        counted = {head: row[name] for name, head in COLUMNS[table["kind"]].items()}
        groups = {f"{group} triple" if group == "1" else group: row["by_triples"][group] for group in CITED}
        table_rows.append({"level": level} | counted | groups)
    return table_rows


def _row(kind: str, level: str | None, subjects: Sequence[Subject], items: Sequence[BenchmarkItem]) -> dict[str, Any]:
    of_level = [item for item in items if level in (None, item.subject.level)]
    groups = Counter(cited_group(len(item.triples)) for item in of_level)
    subject_ids = {item.subject.end.id for item in of_level}
    row: dict[str, Any] = {"entities": sum(level in (None, subject.level) for subject in subjects)}
    if kind == "conv":
        row |= {"dialogues": len(subject_ids), "turns": len(of_level)}
    else:
        row |= {"entities_asked": len(subject_ids), "questions": len(of_level)}
    return row | {"by_triples": {group: groups[group] for group in CITED}}


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
        card_templates("kgqa_core.papers.ltgen")
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


def _digest(kg: Path) -> str:
    path = kg / MANIFEST
    return f", digest `{json.loads(path.read_text(encoding='utf-8'))['digest'][:16]}`" if path.is_file() else ""
