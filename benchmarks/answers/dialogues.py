"""Asks the dialogues of `benchmarks/dialogues` and scores their second and third turns.

    python -m benchmarks.answers.dialogues SET --home DIR [--out FILE] [--transcripts]

SET is a folder of benchmarks/dialogues.  Its graphs are built in DIR and answer without training; one whose file is not
beside the checkout is left out.  A turn is right where its answer is complete and has nothing else, or, where the graph
cannot answer it, where it is declined.  The locked set is run once, from a clean tree, and without --transcripts, which
prints every turn.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.answers.people import SEED, is_exact, share
from benchmarks.conditions import DATA, ROOT, conditions
from kgqa_core.answering.reply import Answer
from kgqa_core.datasets.published.atlas import GRAPH
from kgqa_core.system import System

FIELDS = ("conditions/*", "set", "dialogues", "turns/...", "first_turns/...", "graphs/...", "wrong_above/...")
"""What the result file holds (benchmarks/results_file.py)."""
DIALOGUES = ROOT / "benchmarks" / "dialogues"
CASES = DATA.parent / "cases"
SURE = 0.8


def graphs() -> dict[str, Path]:
    """The file of each graph."""
    return {
        "atlas": GRAPH,
        "northwind": CASES / "real-northwind" / "converted.ttl",
        "starwars": CASES / "real-starwars" / "graph.ttl",
    }


def is_right(turn: dict[str, Any], reply: Answer) -> bool:
    """Whether a turn is answered with all and nothing else, or declined where it cannot be answered."""
    return is_exact(turn | {"type": None}, reply) if turn["answerable"] else reply.answer is None


def ask(system: System, rows: list[dict[str, Any]], *, shown: bool) -> list[list[tuple[bool, bool]]]:
    """Of each dialogue and turn whether it is right, and whether it is wrong with much confidence."""
    results = []
    for row in rows:
        dialogue: list[tuple[str, str]] = []
        results.append([])
        for turn in row["turns"]:
            reply = system.ask(turn["question"], dialogue=dialogue)
            good = is_right(turn, reply)
            results[-1].append((good, not good and reply.answer is not None and (reply.confidence or 0) > SURE))
            dialogue += [("user", turn["question"]), ("agent", ", ".join(reply.listed[:5]) or "no answer")]
            if shown:
                print("right" if good else "WRONG", row["id"], turn["question"], "→", reply, "|", reply.understood)
    return results


def main() -> None:
    """Reads the command line, asks, scores and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", choices=sorted(path.name for path in DIALOGUES.iterdir() if path.is_dir()))
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--transcripts", action="store_true")
    options = parser.parse_args()
    run = conditions(SEED)
    if options.set == "locked" and (options.transcripts or run["commit"].endswith("with changes")):
        parser.error("locked is a test set: commit the changes first, and leave out --transcripts")
    apart = {}
    for name, path in graphs().items():
        if not path.is_file():
            print(f"{name}: {path.name} is not beside the checkout", file=sys.stderr)
            continue
        lines = (DIALOGUES / options.set / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        apart[name] = ask(
            System.from_graph(path, home=options.home), list(map(json.loads, lines)), shown=options.transcripts
        )
    results = [row for rows in apart.values() for row in rows]
    later = [turn for row in results for turn in row[1:]]
    made = {
        "conditions": run,
        "set": options.set,
        "dialogues": len(results),
        "turns": share([good for good, _ in later]),
        "first_turns": share([row[0][0] for row in results]),
        "wrong_above": {str(SURE): share([loud for _, loud in later])},
        "graphs": {name: share([good for row in rows for good, _ in row[1:]]) for name, rows in apart.items()},
    }
    if options.out is not None:
        results_file.write(options.out, made, FIELDS)
    print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
