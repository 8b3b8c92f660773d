"""The annotation sheet of the quality check: a seeded sample as CSV, and as a page that needs nothing but a browser."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from kgqa_core.builders.ltgen.card import TITLES
from kgqa_core.builders.ltgen.prompts import ANNOTATION_RULE
from kgqa_core.datasets.jsonl import read_question_file
from kgqa_core.errors import InputError
from kgqa_core.kg.store import KgStore

COLUMNS = ("id", "level", "dialogue", "query", "answer", "triples", "label", "note")
"""Columns of a sheet; an annotator fills `label` with `correct` or `incorrect`, and `note` at will."""

CORRECT, INCORRECT = "correct", "incorrect"

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_sheet(out: Path, *, benchmark: Path, kg: Path, share: float, seed: int, kind: str = "") -> dict[str, Any]:
    """Writes sheet.csv and sheet.html with a share of the questions of a benchmark, at least one.

    benchmark: folder with questions.jsonl.  share: in (0, 1].  kind: `qa` or `conv`, for the title.  Returns counts:
    items, of, share.  Raises QuestionFileError, and InputError for a share out of range.
    """
    if not 0 < share <= 1:
        raise InputError(f"the share of a sheet must be above 0 and at most 1, but it is {share}")
    questions = read_question_file(benchmark / "questions.jsonl")
    number = max(1, math.ceil(round(share * len(questions), 6)))
    drawn = sorted(questions, key=lambda row: hashlib.sha256(f"sheet/{seed}/{row['id']}".encode()).digest())[:number]
    with KgStore.open(kg) as store:
        rows = _rows(store, drawn)
    with (out / "sheet.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows([_safe(str(row[name])) for name in COLUMNS] for row in rows)
    digest = hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:12]
    page = (
        _environment()
        .get_template("sheet.html.j2")
        .render(
            rows=rows,
            title=TITLES.get(kind, "LTGen"),
            rule=ANNOTATION_RULE,
            name=f"sheet-{digest}",
            of=len(questions),
            columns=COLUMNS,
        )
    )
    (out / "sheet.html").write_text(page, encoding="utf-8")
    return {"items": number, "of": len(questions), "share": share}


def _rows(store: KgStore, questions: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The items of a sheet, triples and answers by name."""
    keys = {key for row in questions for triple in row["gold_triples"] for key in (triple[0], triple[2])}
    found = store.resolve(sorted(keys | {key for row in questions for key in row["answers"]}))
    names = store.names({ids[0] for ids in found.values() if ids})
    relations = dict(zip(store.relation_keys(), store.relation_names(), strict=True))

    def called(key: str) -> str:
        ids = found.get(key)
        return names[ids[0]] if ids else key

    return [
        {
            "id": row["id"],
            "level": row["level"] or "",
            "dialogue": "\n".join(f"{role.title()}: {text}" for role, text in row["dialogue"]),
            "query": row["question"],
            "answer": row["reference"] or "; ".join(called(key) for key in row["answers"]),
            "triples": "\n".join(
                f"({called(head)}, {relations.get(relation, relation)}, {called(tail)})"
                for head, relation, tail in row["gold_triples"]
            ),
            "label": "",
            "note": "",
        }
        for row in questions
    ]


def _safe(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("kgqa_core.builders.ltgen", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
