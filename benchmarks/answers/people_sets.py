"""Checks a hand-written set of people's questions: executes every form on its graph and compares the stored answers.

    python -m benchmarks.answers.people_sets SET --work DIR [--shared DIR] [--fill]

SET is a folder under benchmarks/people with files named after GRAPHS, which are built in DIR on first use.
--fill writes the answers that the forms have into the files instead of comparing them.  Of a set whose rows have no
form (`locked2`: some answers are what no form says) the rows alone are checked.  Counts are printed as JSON; faults are
named by id on standard error and end with 1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.conditions import ROOT
from kgqa_core.config import KgOptions
from kgqa_core.errors import KgqaError
from kgqa_core.kg.build import build as build_kg
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import answer_texts, execute
from kgqa_core.logic.lookup import index
from kgqa_core.logic.parser import parse
from kgqa_core.store.publish import publish_folder
from kgqa_core.workspace import Workspace

TABLES = ("triples", "labels.en", "qualifiers")
GRAPHS = {
    "atlas": ("bundled:atlas",),
    "wikidata_mini": tuple(f"wikidata_mini/{table}.tsv" for table in TABLES),
    "northwind": ("../cases/real-northwind/converted.ttl",),
}
"""The files of each graph, from the folder of shared data unless bundled."""
TYPES = "generic multi-hop intersection difference count comparative superlative ordinal yes/no".split()
REASONS = ("missing relation", "missing entity", "missing fact", "not a question for this graph")
FIELDS = "id question s_expression answers answerable reason missing type style".split()
OPERATIONS = (
    "direct", "path of two", "path of three", "type condition", "number condition", "date condition", "text", "boolean",
    "negation", "absence", "union", "intersection", "subtract", "rank", "rank inside a path", "first k", "count", "sum",
    "average", "share", "group", "compare", "yes/no", "where/when",
)  # fmt: skip
"""Types of the questions of a set without forms."""
COMPARISONS = (
    "than x", "than average", "same as", "only", "exactly", "every", "best of each", "best group", "median",
    "two properties", "other than",
)  # fmt: skip
"""Further types, which `dev7` has."""
FREE_FIELDS = "id question answers answerable empty reason missing type style".split()
FREE_REASONS = (*REASONS, "missing type")
EMPTY = ([], ["0"], ["no"])
UNNAMED = re.compile(r"Q\d+")
"""The name of an entity of Wikidata that has no label."""


def graph(name: str, work: Path, shared: Path) -> Path:
    """Folder of a graph, made on first use."""
    folder = work / name
    if not folder.is_dir():
        files = tuple(path if path.startswith("bundled:") else str(shared / path) for path in GRAPHS[name])
        options = KgOptions(files=files)
        publish_folder("kg", folder, lambda out, scratch: build_kg(Workspace(out, scratch), options=options))
    return folder


def answers(text: str, store: KgStore) -> list[str]:
    """The complete answers of a form, by name and in order; a number or `yes` or `no` of a form with such a value.

    Raises KgqaError for a form that cannot be run and ValueError for one with no answer or too many.
    """
    form = parse(text)
    result = execute(form, store, proof=False)
    if result.empty or result.truncated:
        raise ValueError("no answer" if result.empty else "too many answers")
    return sorted(set(answer_texts(form, result, store.names(result.nodes))))


def free_faults(row: dict[str, Any]) -> list[str]:
    """What is wrong with a question of a set without forms."""
    if list(row) != FREE_FIELDS:
        return ["its fields are " + ", ".join(row)]
    if row["answerable"]:
        good = row["type"] in OPERATIONS + COMPARISONS and row["reason"] is row["missing"] is None
        good = good and row["empty"] == (row["answers"] in EMPTY) and row["answers"] == sorted(set(row["answers"]))
    else:
        good = row["type"] is None and row["answers"] == [] and not row["empty"] and row["missing"]
        good = good and row["reason"] in FREE_REASONS
    return [] if good else ["its answers, type or reason do not fit"]


def faults(row: dict[str, Any], store: KgStore | None) -> list[str]:
    """What is wrong with a question; without a graph, of one without a form."""
    if store is None:
        return free_faults(row)
    if list(row) != FIELDS:
        return ["its fields are " + ", ".join(row)]
    if not row["answerable"]:
        empty = row["s_expression"] is None and row["type"] is None and row["answers"] == []
        return [] if empty and row["reason"] in REASONS else ["not answerable, but with an answer or without a reason"]
    if row["type"] not in TYPES or row["reason"] is not None or row["missing"] is not None:
        return ["its type or reason does not fit"]
    try:
        found = answers(row["s_expression"], store)
    except (KgqaError, ValueError) as fault:
        return [str(fault)]
    unnamed = [answer for answer in found if UNNAMED.fullmatch(answer)]
    return [f"{len(unnamed)} answers have no name"] * bool(unnamed) + ["the answers differ"] * (found != row["answers"])


def check(path: Path, store: KgStore | None, fill: bool) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Counts of a file, and the faults of its questions by id."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if fill and store is not None:
        for row in rows:
            if row["answerable"]:
                with contextlib.suppress(KgqaError, ValueError):  # `faults` names it
                    row["answers"] = answers(row["s_expression"], store)
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_text("".join(lines), encoding="utf-8")
    wrong = {row["id"]: found for row in rows if (found := faults(row, store))}
    for field in ("id", "question"):
        counted = Counter(row[field].lower() for row in rows)
        for row in rows:
            if counted[row[field].lower()] > 1:
                wrong.setdefault(row["id"], []).append(f"another has its {field}")
    counts = {
        "questions": len(rows),
        "answerable": sum(row["answerable"] for row in rows),
        "types": dict(Counter(row["type"] for row in rows if row["answerable"]).most_common()),
        "reasons": dict(Counter(row["reason"] for row in rows if not row["answerable"]).most_common()),
        "styles": dict(Counter(tag for row in rows for tag in row["style"]).most_common()),
        "yes_no": dict(Counter(row["answers"][0] for row in rows if row["type"] == "yes/no" and row["answers"])),
        "several_answers": sum(len(row["answers"]) > 1 for row in rows),
        "empty": sum(row.get("empty", False) for row in rows),
    }
    return counts, wrong


def main() -> None:
    """Reads the arguments, checks both files, prints the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("set")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--shared", type=Path, default=Path("../shared/data"))
    parser.add_argument("--fill", action="store_true")
    given = parser.parse_args()
    folder = ROOT / "benchmarks" / "people" / given.set
    counts, wrong = {}, {}
    for path in sorted(folder.glob("*.jsonl")):
        with contextlib.ExitStack() as stack:
            store = None
            if '"s_expression"' in path.read_text(encoding="utf-8"):
                store = stack.enter_context(KgStore.open(graph(path.stem, given.work, given.shared)))
                index(store)
            counts[path.stem], found = check(path, store, given.fill)
            wrong |= found
    print(json.dumps(counts, ensure_ascii=False, indent=2))
    for key, found in wrong.items():
        print(f"{key}: {'; '.join(found)}", file=sys.stderr)
    sys.exit(1 if wrong or not counts else 0)


if __name__ == "__main__":
    main()
