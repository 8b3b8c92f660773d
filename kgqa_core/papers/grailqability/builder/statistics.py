"""The tables of a benchmark after Tables 1 and 2 of Patidar et al. 2023, and its data card.

The same inputs and options give the same text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.datasets.derived.gold_forms import COMPUTED, GIVEN, PATH
from kgqa_core.logic.forms import elements
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.parser import parse
from kgqa_core.papers.benchmark_files import card_templates, markdown
from kgqa_core.papers.grailqability.builder.records import (
    FULL,
    IID,
    KINDS,
    LEVELS,
    PARTIAL,
    RELATION,
    TYPE,
    BenchmarkQuestion,
    Drop,
    IdealRecord,
)
from kgqa_core.types import SPLITS

Pair = tuple[BenchmarkQuestion, IdealRecord]


def statistics(
    questions: Sequence[BenchmarkQuestion], ideal: Sequence[IdealRecord], drops: Sequence[Drop], *,
    goals: Mapping[str, Any], full_zero_shot: Mapping[str, Any],
    left_out: Mapping[str, int], graphs: Mapping[str, Mapping[str, int]], agreeing: int,
) -> dict[str, Any]:  # fmt: skip
    """Every table as JSON.

    goals: what was requested (`p_u`, `quotas` by kind, `zero_shot`, `full`, `labels`).  full_zero_shot: what was
    wanted, what dev and test have room for, and what stood in the way (`splits.SplitResult`).  left_out: questions by
    reason.
    graphs: counts of the `ideal` and the `modified` graph.  agreeing: questions whose ideal result is the annotation.
    """
    pairs = list(zip(questions, ideal, strict=True))
    return {
        "questions": len(pairs),
        "splits": [_split_row(name, [p for p in pairs if p[0].split == name]) for name in SPLITS]
        + [_split_row("all", pairs)],
        "drops": [_drop_row(kind, pairs, drops, goals["quotas"]) for kind in KINDS] + [_drop_row("all", pairs, drops)],
        "unanswerable_by_split": [
            {"drop": kind, **_cells([p for p in pairs if not p[0].answerable and kind in (p[1].drop, "all")])}
            for kind in (*KINDS, "all")
        ],
        "by_complexity": _by(pairs, lambda pair: pair[0].complexity or "-"),
        "by_hops": _by(pairs, lambda pair: str(pair[0].hops) if pair[0].hops is not None else "-"),
        "origin_of_forms": dict(sorted(Counter(record.origin for record in ideal).items())),
        "agreeing_with_annotation": agreeing,
        "goals": dict(goals),
        "full_zero_shot": {**full_zero_shot, **_reached(ideal, full_zero_shot)},
        "left_out": dict(left_out),
        "graphs": {name: dict(counts) for name, counts in graphs.items()},
    }


def _reached(ideal: Sequence[IdealRecord], full: Mapping[str, Any]) -> dict[str, Any]:
    """Zero-shot questions and full ones, their share, that among dropped types and relations alone, and why not more.

    The files that the authors publish divide the zero-shot questions of dropped types and relations only.
    """
    zero_shot = [record for record in ideal if record.level in (PARTIAL, FULL)]
    of_schema = [ideal_record for ideal_record in zero_shot if ideal_record.drop in (TYPE, RELATION)]
    reached = sum(ideal_record.level == FULL for ideal_record in zero_shot)
    record: dict[str, Any] = {
        "zero_shot": len(zero_shot),
        "reached": reached,
        "share": round(reached / max(1, len(zero_shot)), 4),
        "share_of_schema_drops": round(
            sum(ideal_record.level == FULL for ideal_record in of_schema) / max(1, len(of_schema)), 4
        ),
        "why_not_more": None,
    }
    if reached < full["wanted"]:
        obstacle, room = full["obstacle"], full["room"]
        if obstacle is None:
            record["why_not_more"] = (
                "what the remaining questions of these relations and types miss is touched by more questions than dev "
                f"and test have room for ({room['answerable']:,} answerable, {room['unanswerable']:,} unanswerable, "
                f"{room['zero_shot']:,} of them zero-shot)"
            )
        else:
            names = [*obstacle["relations"], *obstacle["types"]]
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            record["why_not_more"] = (
                f"training would have to do without {', '.join(names[:3])}{more}, the cheapest choice: with what is "
                f"held out already, that puts {obstacle['answerable']:,} answerable and {obstacle['unanswerable']:,} "
                f"unanswerable questions, {obstacle['zero_shot']:,} of them zero-shot, into dev and test, which have "
                f"room for {room['answerable']:,}, {room['unanswerable']:,} and {room['zero_shot']:,}"
            )
    return record


def _split_row(name: str, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Table 1: what a split holds.  Forms, relations, types and entities are those of the ideal forms, each once."""
    forms = {record.s_expression: parse(record.s_expression) for _, record in pairs}
    used = [elements(form) for form in forms.values()]
    lost = [(question, record) for question, record in pairs if not question.answerable]
    return {
        "split": name,
        "questions": len(pairs),
        "A": len(pairs) - len(lost),
        "A_changed": sum(q.answerable and set(q.answers) != set(record.answers) for q, record in pairs),
        "U": len(lost),
        "U_share": round(len(lost) / len(pairs), 4) if pairs else 0.0,
        "NK": sum(question.s_expression is None for question, _ in lost),
        "NA_only": sum(question.s_expression is not None for question, _ in lost),
        **{level: sum(record.level == level for _, record in lost) for level in LEVELS},
        "forms": len({str(normalise(form)) for form in forms.values()}),
        "relations": len({key for used_elements in used for key in used_elements.relations}),
        "types": len({key for used_elements in used for key in used_elements.classes}),
        "entities": len({key for used_elements in used for key in used_elements.entities}),
    }


def _drop_row(
    kind: str, pairs: Sequence[Pair], drops: Sequence[Drop], quotas: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Table 2: what a kind of drop took, and the questions that it made unanswerable."""
    of_kind = [drop for drop in drops if kind in (drop.kind, "all")]
    lost = [(q, record) for q, record in pairs if not q.answerable and kind in (record.drop, "all")]
    return {
        "drop": kind,
        "quota": sum(drop.unanswerable for drop in of_kind) if quotas is None else quotas.get(kind, 0),
        "elements": len(of_kind),
        "facts": sum(drop.facts for drop in of_kind),
        "U": len(lost),
        "U_share": round(len(lost) / len(pairs), 4) if pairs else 0.0,
        "NK": sum(question.s_expression is None for question, _ in lost),
        "NA_only": sum(question.s_expression is not None for question, _ in lost),
    }


def _cells(pairs: Sequence[Pair]) -> dict[str, int]:
    """Unanswerable questions of one kind by split and level."""
    cells = {"train": sum(q.split == "train" for q, _ in pairs)}
    for split in ("dev", "test"):
        for level in (IID, PARTIAL, FULL):
            cells[f"{split}_{level}"] = sum(q.split == split and record.level == level for q, record in pairs)
    return cells


def _by(pairs: Sequence[Pair], key: Callable[[Pair], str]) -> list[dict[str, Any]]:
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(key(pair), []).append(pair)
    return [
        {"of": name, "A": sum(q.answerable for q, _ in group), "U": sum(not q.answerable for q, _ in group)}
        for name, group in sorted(groups.items())
    ]


TABLES = {
    "splits": "Table 1: what the splits hold",
    "drops": "Table 2: what was dropped, and what it did",
    "unanswerable_by_split": "Unanswerable questions by drop, split and level",
    "by_complexity": "By complexity",
    "by_hops": "By hops",
}
"""Tables of the statistics, with their titles."""

COLUMNS = {
    "splits": (
        "split", "questions", "A", "A_changed", "U", "U_share", "NK", "NA_only", *LEVELS, "forms", "relations",
        "types", "entities",
    ),
    "drops": ("drop", "quota", "elements", "facts", "U", "U_share", "NK", "NA_only"),
    "unanswerable_by_split": (
        "drop", "train", *(f"{split}_{level}" for split in ("dev", "test") for level in (IID, PARTIAL, FULL))
    ),
    "by_complexity": ("of", "A", "U"),
    "by_hops": ("of", "A", "U"),
}  # fmt: skip
"""Columns of each table in the order in which they are read; files have them in that of their names."""


def ordered(table: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The rows of a table of the statistics, with their columns in order."""
    return [{column: row[column] for column in COLUMNS[name]} for row in table[name]]


def turned(rows: Sequence[Mapping[str, Any]], head: str) -> list[dict[str, Any]]:
    """Rows as columns: a table of many columns and few rows that fits a terminal."""
    first, *names = rows[0]
    return [{head: name.replace("_", " "), **{str(row[first]): row[name] for row in rows}} for name in names]


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
        card_templates("kgqa_core.papers.grailqability.builder")
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
