"""Answers a hand-written set of people's questions with the system of a finished run, and scores it.

    python -m benchmarks.answers.people SET GRAPH --home DIR [--run ID] [--out FILE] [--transcripts N]

SET is `dev` or `locked`, GRAPH `atlas` or `wikidata_mini`; the run must have been made over that graph.  Figures, as
JSON: exact (the complete answer and nothing else), named (a gold answer is among the answers), declined of what the
graph cannot answer, wrongly declined of what it can, the calibration error of the confidence, by type and by road, and
the time of a question.  `locked` is run once: its figures carry date and commit.  --transcripts prints that many
questions, drawn by seed 7, with what was answered.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results_file
from benchmarks.conditions import ROOT
from kgqa_core.answering.reply import Answer
from kgqa_core.metrics.confidence import expected_calibration_error
from kgqa_core.store.artifacts import Home
from kgqa_core.system import System

FIELDS = (
    "set", "graph", "model", "knowledge", "commit", "date", "questions", "answerable", "exact/...",
    "gold_answer_named/...", "declined_of_unanswerable/...", "wrongly_declined/...", "confidence/...",
    "exact_by_type/...", "exact_by_style/...", "right_by_road/...", "reasons/...", "seconds/*",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

PEOPLE = ROOT / "benchmarks" / "people"
SEED = 7


def rows_of(name: str, graph: str) -> list[dict[str, Any]]:
    """The questions of a set over one graph."""
    path = PEOPLE / name / f"{graph}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def normal(answers: list[str]) -> set[str]:
    """Answers as they are compared: without case, and numbers by their value to six digits."""
    found = set()
    for answer in answers:
        text = " ".join(str(answer).split()).casefold()
        with contextlib.suppress(ValueError):
            text = f"{float(text.replace(',', '')):.6g}"
        found.add(text)
    return found


def measure(rows: list[dict[str, Any]], replies: list[Answer], seconds: list[float]) -> dict[str, Any]:
    """All figures of a set."""
    types: dict[str, list[bool]] = defaultdict(list)
    styles: dict[str, list[bool]] = defaultdict(list)
    roads: dict[str, list[bool]] = defaultdict(list)
    exact, named, declined, wrongly, sure, right = [], [], [], [], [], []
    for row, reply in zip(rows, replies, strict=True):
        found, gold = normal(reply.listed), normal(row["answers"])
        if not row["answerable"]:
            declined.append(reply.answer is None or not found)
        else:
            good = found == gold
            exact.append(good)
            named.append(bool(found & gold))
            wrongly.append(reply.answer is None)
            types[row["type"]].append(good)
            for style in row["style"]:
                styles[style].append(good)
        if reply.road is not None:
            roads[reply.road].append(row["answerable"] and found == gold)
        if reply.answer is not None and reply.calibrated and reply.confidence is not None:
            sure.append(reply.confidence)
            right.append(float(row["answerable"] and found == gold))
    return {
        "questions": len(rows),
        "answerable": len(exact),
        "exact": share(exact),
        "gold_answer_named": share(named),
        "declined_of_unanswerable": share(declined),
        "wrongly_declined": share(wrongly),
        "confidence": {
            "answered_with_confidence": len(sure),
            "ece": round(expected_calibration_error(sure, right), 4) if sure else None,
            "ece_of_chance": ece_of_chance(sure),
        },
        "exact_by_type": {name: [round(sum(own) / len(own), 3), len(own)] for name, own in sorted(types.items())},
        "exact_by_style": {name: [round(sum(own) / len(own), 3), len(own)] for name, own in sorted(styles.items())},
        "right_by_road": {name: [round(sum(own) / len(own), 3), len(own)] for name, own in sorted(roads.items())},
        "reasons": dict(sorted(Counter(reply.reason for reply in replies if reply.reason).items())),
        "seconds": {
            "p50": round(float(np.quantile(seconds, 0.5)), 4),
            "p99": round(float(np.quantile(seconds, 0.99)), 4),
        },
    }


def ece_of_chance(sure: list[float], draws: int = 1000) -> float | None:
    """The mean ECE of as many answers if each confidence were exactly the probability of being right.

    Few answers have a calibration error by chance alone, and an ECE at or below this one cannot be told from none.
    """
    if not sure:
        return None
    chance = np.random.default_rng(SEED).random((draws, len(sure))) < np.array(sure)
    return round(float(np.mean([expected_calibration_error(sure, own.astype(float).tolist()) for own in chance])), 4)


def share(good: list[bool]) -> dict[str, Any]:
    """A share with its interval (normal approximation of the binomial, 95 %)."""
    if not good:
        return {"share": None, "n": 0}
    p = sum(good) / len(good)
    half = 1.96 * (p * (1 - p) / len(good)) ** 0.5
    return {
        "share": round(p, 4),
        "low": round(max(0.0, p - half), 4),
        "high": round(min(1.0, p + half), 4),
        "n": len(good),
    }


def transcripts(rows: list[dict[str, Any]], replies: list[Answer], number: int) -> None:
    """Prints some questions with what was answered."""
    for place in sorted(random.Random(SEED).sample(range(len(rows)), min(number, len(rows)))):
        row, reply = rows[place], replies[place]
        good = normal(reply.listed) == normal(row["answers"]) if row["answerable"] else reply.answer is None
        answered = (
            ", ".join(reply.listed[:5])
            or f"not in this graph: {reply.reason}: {reply.missing} (nearest: {reply.nearest})"
        )
        sure = "-" if reply.confidence is None else f"{reply.confidence:.2f}"
        print(f"{'right' if good else 'WRONG'}  {row['question']}\n       {answered}   confidence {sure}, {reply.form}")
        if not good:
            print(f"       gold: {', '.join(map(str, row['answers'][:5])) or 'not answerable: ' + str(row['reason'])}")


def main() -> None:
    """Reads the command line, answers, scores and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", choices=("dev", "locked"))
    parser.add_argument("graph", choices=("atlas", "wikidata_mini"))
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--run", default=None)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--transcripts", type=int, default=0)
    options = parser.parse_args()
    rows = rows_of(options.set, options.graph)
    system = System.from_run(Home(options.home), options.run)
    system.ask(rows[0]["question"])
    replies, seconds = [], []
    for row in rows:
        started = time.perf_counter()
        replies.append(system.ask(row["question"]))
        seconds.append(time.perf_counter() - started)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    made = {
        "set": options.set,
        "graph": options.graph,
        "model": replies[0].model,
        "knowledge": replies[0].knowledge,
        "commit": commit.stdout.strip(),
        "date": datetime.now(UTC).date().isoformat(),
        **measure(rows, replies, seconds),
    }
    text = json.dumps(made, indent=1)
    if options.out is not None:
        results_file.write(options.out, made, FIELDS)
    if options.transcripts:
        transcripts(rows, replies, options.transcripts)
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
