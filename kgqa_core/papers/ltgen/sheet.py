"""The annotation sheet of the quality check, and how far two annotators agree on it (Huang et al. 2024).

The sheet is a seeded sample as CSV, and a page that needs nothing but a browser.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa_core.datasets.files.jsonl import read_question_file
from kgqa_core.errors import InputError
from kgqa_core.input_files import read_document
from kgqa_core.kg.store import KgStore
from kgqa_core.metrics.agreement import kappa
from kgqa_core.papers.benchmark_files import card_templates
from kgqa_core.papers.ltgen.card import TITLES
from kgqa_core.papers.ltgen.prompts import ANNOTATION_RULE

SHARE = 0.03
"""Share of the items of a benchmark that its annotation sheet holds."""
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
    sampled = sorted(questions, key=lambda row: hashlib.sha256(f"sheet/{seed}/{row['id']}".encode()).digest())[:number]
    with KgStore.open(kg) as store:
        rows = _rows(store, sampled)
    with (out / "sheet.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows([_safe(str(row[name])) for name in COLUMNS] for row in rows)
    digest = hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:12]
    templates = card_templates("kgqa_core.papers.ltgen").overlay(autoescape=True, keep_trailing_newline=False)
    page = templates.get_template("sheet.html.j2").render(
        rows=rows, title=TITLES.get(kind, "LTGen"), rule=ANNOTATION_RULE, name=f"sheet-{digest}", of=len(questions),
        columns=COLUMNS,
    )  # fmt: skip
    (out / "sheet.html").write_text(page, encoding="utf-8")
    return {"items": number, "of": len(questions), "share": share}


def _rows(store: KgStore, questions: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The items of a sheet, triples and answers by name."""
    keys = {key for row in questions for triple in row["gold_triples"] for key in (triple[0], triple[2])}
    resolved = store.resolve(sorted(keys | {key for row in questions for key in row["answers"]}))
    names = store.names({ids[0] for ids in resolved.values() if ids})
    relations = dict(zip(store.relation_keys(), store.relation_names(), strict=True))

    def called(key: str) -> str:
        ids = resolved.get(key)
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


_WORDS = {
    **dict.fromkeys((CORRECT, "c", "yes", "y", "true", "1", "ok", "right"), True),
    **dict.fromkeys((INCORRECT, "i", "no", "n", "false", "0", "wrong"), False),
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two sheets compared.

    items: that both have annotated.  both_correct … both_incorrect: the four cells.  only_one: items that only one
    annotator has annotated.  raw: share on which they agree.  kappa: Cohen's; None where chance alone would make them
    agree on everything.  error_rate: share of incorrect ones among those on which they agree; None without any.
    """

    items: int
    both_correct: int
    first_only: int
    second_only: int
    both_incorrect: int
    only_one: int
    raw: float
    kappa: float | None
    error_rate: float | None
    disagreed: tuple[str, ...]


def read_sheet(path: Path) -> dict[str, bool | None]:
    """Labels by id: True for correct, None for an item that is not annotated yet.  Columns may stand between commas,
    semicolons or tabs.

    Raises InputError for a file that is no sheet, a label that is none, or an id that is there twice.
    """
    try:
        with io.StringIO(read_document(path, needs="a header with the columns id and label"), newline="") as file:
            head = file.readline()
            file.seek(0)
            reader = csv.DictReader(file, delimiter=max(",;\t", key=head.count))  # spreadsheets save by their locale
            names = reader.fieldnames or []
            if "id" not in names or "label" not in names:
                raise InputError(
                    f"{path} is no annotation sheet: it has the columns {', '.join(names) or 'none'}, not id and label"
                )
            labels: dict[str, bool | None] = {}
            for row in reader:
                key, label = (row["id"] or "").strip(), (row["label"] or "").strip().casefold()
                if not key and not label:
                    continue
                if key in labels:
                    raise InputError(f"{path} line {reader.line_num}: the id '{key}' is there twice")
                if label and label not in _WORDS:
                    raise InputError(
                        f"{path} line {reader.line_num}: the label '{label}' is neither {CORRECT} nor {INCORRECT}"
                    )
                labels[key] = _WORDS[label] if label else None
    except csv.Error as fault:
        raise InputError(f"{path} cannot be read as a CSV sheet: {fault}") from None
    if not labels:
        raise InputError(f"{path} has no items")
    return labels


def compare(first: dict[str, bool | None], second: dict[str, bool | None]) -> Agreement:
    """The agreement of two annotators.  Raises InputError when their sheets are not of the same items, or no item is
    annotated by both."""
    if set(first) != set(second):
        other = sorted(set(first) ^ set(second))
        raise InputError(
            f"the sheets are not of the same items: {len(other)} are in one only, for example '{other[0]}'; compare "
            "two copies of one sheet"
        )
    pairs = [(key, first[key], second[key]) for key in first]
    done = [(key, one, two) for key, one, two in pairs if one is not None and two is not None]
    if not done:
        raise InputError("no item is annotated in both sheets; fill the column label")
    cells = [sum(one == a and two == b for _, one, two in done) for a in (True, False) for b in (True, False)]
    yes, first_only, second_only, no = cells
    total, agreed = len(done), yes + no
    return Agreement(
        items=total, both_correct=yes, first_only=first_only, second_only=second_only, both_incorrect=no,
        only_one=sum((one is None) != (two is None) for _, one, two in pairs),
        raw=agreed / total, kappa=kappa(cells), error_rate=no / agreed if agreed else None,
        disagreed=tuple(key for key, one, two in done if one != two),
    )  # fmt: skip
