"""The outcomes of a run of the fuzzer: counted, as JSON, and as the tables of docs/robustness.md.

`python -m tests.support.command_fuzzer --json benchmarks/results/command_fuzzer.json` writes the file,
`make bench-docs` the page.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.command_fuzzer.commands import commands
from tests.support.command_fuzzer.kinds import cases
from tests.support.command_fuzzer.run import ROOT

RESULTS = ROOT / "benchmarks" / "results" / "command_fuzzer.json"
FIELDS = ("commit", "seed", "cases", "of", "seconds", "violations", "kinds/*/*", "commands/*/*", "broken/...")
"""What the result file holds (benchmarks/results_file.py)."""
CODES = (0, 1, 2, 130)
FAMILIES = {
    "missing": "missing", "empty": "empty", "empty name": "empty", "zeros": "empty", "folder": "folder",
    "file": "folder", "pipe": "pipe", "substitution": "pipe", "read-only": "read-only", "space": "hostile name",
    "newline": "hostile name", "dash": "hostile name", "unicode": "hostile name", "long": "hostile name",
    "dots": "hostile name", "markup": "markup", "escape": "terminal escape", "surrogate": "surrogate",
    "surrogate content": "surrogate", "json": "surrogate", "huge": "huge", "huge number": "huge",
    "huge negative": "huge", "endless": "huge", "not a number": "huge", "zero": "huge", "grows": "changing",
    "replaced": "changing", "output is input": "output = input", "existing": "existing output",
    "foreign files": "existing output", "as it should be": "a good call",
}  # fmt: skip
"""What a kind is counted as."""


def family(kind: str) -> str:
    """The kind of input that a kind belongs to."""
    return FAMILIES[kind.removeprefix("text ")]


def write(path: Path, rows: Sequence[Mapping[str, Any]], seed: int, seconds: float) -> None:
    """Write the counts of a run as JSON."""
    result = {
        "commit": _commit(), "seed": seed, "cases": len(rows),
        "of": len(cases(commands(), flows=False)), "seconds": round(seconds),
        "violations": sum(bool(row["violations"]) for row in rows),
        "kinds": _counts((family(row["kind"]), row) for row in rows),
        "commands": _counts((row["command"], row) for row in rows),
        "broken": [{name: row[name] for name in ("command", "parameter", "kind", "code", "violations")}
                   for row in rows if row["violations"]],
    }  # fmt: skip
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _commit() -> str:
    words = ["git", "-C", str(ROOT), "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def _counts(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for name, row in rows:
        own = counts.setdefault(name, Counter())
        own["cases"] += 1
        own["violations"] += bool(row["violations"])
        own[str(row["code"])] += 1
    return {name: dict(sorted(counts[name].items())) for name in sorted(counts)}


def tables(found: Mapping[str, Any]) -> str:
    """The tables of a result."""
    parts = [
        f"{found['cases']:,} of {found['of']:,} cases at commit {found.get('commit', 'not recorded')}, "
        f"seed {found['seed']}, {found['seconds']:,} s; {found['violations']:,} break a rule.\n",
        "## By kind of input\n",
        _table("kind", found["kinds"]),
        "## By command\n",
        _table("command", {f"`{name}`": counts for name, counts in found["commands"].items()}),
    ]
    if found["broken"]:
        lines = [f"- `{one['command']}` {one['parameter']} ({one['kind']}): {'; '.join(one['violations'])}"
                 for one in found["broken"]]  # fmt: skip
        parts += ["## Open\n", "Known breaches, to be mended; any other fails the test.\n", "\n".join(lines) + "\n"]
    return "\n".join(parts)


def _table(head: str, rows: Mapping[str, Mapping[str, int]]) -> str:
    others = sorted({name for row in rows.values() for name in row} - {"cases", "violations", *map(str, CODES)})
    codes = [*map(str, CODES), *others]
    lines = [f"| {head} | cases | " + " | ".join(f"exit {code}" for code in codes) + " | broken |"]
    lines.append("|---" + "|--:" * (len(codes) + 2) + "|")
    total: Counter[str] = Counter()
    for name, row in rows.items():
        total.update(row)
        lines.append(_line(name, row, codes))
    return "\n".join([*lines, _line("all", total, codes)]) + "\n"


def _line(name: str, row: Mapping[str, int], codes: Sequence[str]) -> str:
    cells = (row.get("cases", 0), *(row.get(code, 0) for code in codes), row.get("violations", 0))
    return f"| {name} | " + " | ".join(f"{cell:,}" for cell in cells) + " |"
