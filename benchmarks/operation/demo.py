"""What `kgqa demo` printed in a home: its table of scores, its three answers and its last lines.

    python -m benchmarks.operation.demo HOME

Reads the newest run of a home that `kgqa demo` made, asks the demo's questions once more, and writes
`results/demo.json`; the samples of README.md and docs/demo.md come from it.  Run it in the tree that made the home.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.conditions import RESULTS, conditions
from benchmarks.results_file import CONDITIONS, write
from benchmarks.tables import conditions_line

FIELDS = ("scores/*", "answers/*", "run/*", "next/*", *CONDITIONS)


def main() -> None:
    """Writes the result file."""
    from flows.cli import demo
    from flows.cli._runs import run_lines
    from kgqa_core.runs.records import newest_run
    from kgqa_core.store.artifacts import Home
    from kgqa_core.system import System

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    home = Home(parser.parse_args().home)
    record = newest_run(home)
    system = System.from_run(home, record["run_id"])
    found = conditions(record["profile"]["seed"])
    if not found["commit"].startswith(record["environment"]["git"]):
        raise SystemExit(f"the home was made at {record['environment']['git']}, and this tree is {found['commit']}")
    document = {
        "scores": _lines([demo._scores(record["aggregates"])]),
        "answers": _lines([demo._answered(system.ask(text)) for text in demo.QUESTIONS]),
        "run": [_without_paths(line) for line in _lines(run_lines(record))],
        "next": [f"{command:<26}{what}" for command, what in demo.NEXT],
        "conditions": found,
    }
    write(RESULTS / "demo.json", document, FIELDS)


def _lines(shown: Any) -> list[str]:
    console = Console(file=StringIO(), width=200, color_system=None)
    for part in shown:
        console.print(part, soft_wrap=True, highlight=False)
    return [line.rstrip() for line in console.file.getvalue().strip("\n").splitlines()]  # type: ignore[attr-defined]


def _without_paths(line: str) -> str:
    line = re.sub(r"file://\S*?/runs/", "file:///…/.kgqa/runs/", line)
    line = re.sub(r" --home \S+(?=\))", "", line)
    return re.sub(r"(flow-run|experiments)/[^ ]+", r"\1/…", line)


def sample(found: Mapping[str, Any]) -> str:
    """The scores and the answers, as README shows them."""
    return _block([*found["scores"], "", *found["answers"]])


def printed(found: Mapping[str, Any]) -> str:
    """All that the command prints at its end."""
    text = _block([*found["scores"], "", *found["answers"], "", *found["run"], *found["next"]])
    return f"{text}\n\n{conditions_line(found['conditions'])}"


def _block(lines: list[str]) -> str:
    return "\n".join(["```text", *lines, "```"])


if __name__ == "__main__":
    main()
