"""TransferNet beside Rigel: the same questions, encoder, hops and passes, on MetaQA's questions of two hops.

    python -m benchmarks.papers.peers --work DIR [--json OUT]

Both learn from nine tenths of dev (train is not here), with an encoder learnt from nothing, topics masked and taken out
of the entity set after each step, and are scored on test by Hits@1; TransferNet also after its own number of passes.
Random facts and gold paths stand beside them.  Intervals are the report's bootstrap ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import commit_name, conditions
from benchmarks.results_file import CONDITIONS

FIELDS = (*CONDITIONS, "rows/*/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
PASSES = (3, 12)
"""Rigel's of the profile `metaqa`, and TransferNet's default."""
SETTINGS = (
    "questions.hops=[2]", "rigel.hops=2", f"rigel.epochs={PASSES[0]}", "transfernet.hops=2",
    "transfernet.encoder=scratch", "transfernet.exclude_topic=true",
    "retrieval.retrievers=[rigel, transfernet, random, oracle]",
    "answering.answerers=[builtin]", "answering.knowledge=[none]", "answering.limit=10",
)  # fmt: skip


def scores(work: Path, passes: int) -> dict[str, Any]:
    """Hits@1 on test of each retriever, TransferNet after some passes."""
    settings = [word for setting in (*SETTINGS, f"transfernet.epochs={passes}") for word in ("--set", setting)]
    words = ["run", "--profile", "metaqa", *settings, "--home", str(work / "home"), "--json"]
    done = subprocess.run([sys.executable, "-m", "flows.cli", *words], stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout.strip().splitlines()[-1])["scores"]
    return {name.partition("/")[0]: own["test"]["hits_at_1"] for name, own in found.items() if name.endswith("/-/-")}


def tables(found: dict[str, Any]) -> str:
    """The table of the page."""
    lines = ["| retriever | passes | Hits@1 |", "|---|--:|--:|"]
    for row in found["rows"].values():
        own = row["hits_at_1"]
        cell = f"{100 * own['value']:.1f} ({100 * own['low']:.1f}–{100 * own['high']:.1f})"
        lines.append(f"| {row['retriever']} | {row['passes'] or '–'} | {cell} |")
    made = found["conditions"]
    note = f"{own['n']:,} test questions of two hops; seed {made['seed']}, "
    note += f"commit {commit_name(made['commit'])}, {made['date']}."
    return "\n".join([*lines, "", note]) + "\n"


def main() -> None:
    """Trains, scores and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    for passes in PASSES:
        for name, own in scores(options.work, passes).items():
            seen = {"rigel": PASSES[0], "transfernet": passes}.get(name)
            rows.setdefault(f"{name} {seen or ''}".strip(), {"retriever": name, "passes": seen, "hits_at_1": own})
    made = {"conditions": conditions(SEED), "rows": rows}
    if options.json:
        results_file.write(options.json, made, FIELDS)
    else:
        print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
