"""Answers a hand-written set of people's questions, and scores it.

    python -m benchmarks.answers.people SET GRAPH=FILES GRAPH=FILES … [--out FILE] [--without-thesaurus]
    python -m benchmarks.answers.people SET GRAPH=HOME … [--run ID] [--out FILE] [--transcripts N]

SET is a folder of benchmarks/people and GRAPH a file in it.  FILES, separated by commas, are of that graph
(`bundled:atlas`): the packaged head start answers at once, as `kgqa ask --kg FILES` does; KGQA_HOME is where the graph
is built.  Of a HOME the system of a run answers, which must have been made over that graph.  Figures, as JSON: exact
(the complete answer and nothing else), named (a gold answer is among the answers), declined of what the graph cannot
answer, wrongly declined of what it can, wrong with a high confidence, the calibration error of the confidence, by type
and by road, the share whose right answer one of the ten best plans finds (what a chooser may reach), and the time of a
question; of several graphs these are of all questions together, and `graphs` has them apart.
--without-thesaurus: each graph is answered without the entries of the thesaurus that match its relations
(benchmarks/answers/thesaurus.py); what the run trained stays.
A locked set is run once: from a clean tree, since its figures carry date and commit, and without --transcripts, which
prints that many questions, drawn by seed 7, with what was answered.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results_file
from benchmarks.conditions import ROOT, conditions
from kgqa_core.answering.reply import Answer
from kgqa_core.linking.questions import link_question
from kgqa_core.metrics.confidence import expected_calibration_error
from kgqa_core.retrieval.linked_candidates import CANDIDATES, with_candidates
from kgqa_core.store.artifacts import Home
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.by_labels.calibrate import choices
from kgqa_core.symbolic.by_labels.parser import answer_nodes, answers_of
from kgqa_core.symbolic.chooser import PLANS
from kgqa_core.system import System
from kgqa_core.types import Question

FIELDS = (
    "set", "graph", "model", "knowledge", "commit", "date", "questions", "answerable", "exact/...",
    "gold_answer_named/...", "declined_of_unanswerable/...", "wrongly_declined/...", "confidence/...",
    "exact_by_type/...", "exact_by_style/...", "right_by_road/...", "reasons/...", "seconds/*",
    "?thesaurus", "?wrong_above/...", "?exact_if_empty/...", "?among_ten/...", "?graphs/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

PEOPLE = ROOT / "benchmarks" / "people"
SEED = 7
SURE = 0.8
NEAR = {"average": 0.005, "share": 0.005}
"""Types of questions whose answer is rounded, and by how much of it an answer may differ."""
PAIR = re.compile(r"(.+?)\s*[:=(|]\s*(-?\d[\d.]*)\)?")
"""An answer by group: `Elm Ward: 4`."""


def rows_of(name: str, graph: str) -> list[dict[str, Any]]:
    """The questions of a set over one graph."""
    path = PEOPLE / name / f"{graph}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def normal(answers: list[str]) -> set[str]:
    """Answers as they are compared: without case, and numbers by their value to six digits, those of groups too."""
    found = set()
    for answer in answers:
        text, name = " ".join(str(answer).split()).casefold(), ""
        if pair := PAIR.fullmatch(text):
            name, text = f"{pair[1]}: ", pair[2]
        with contextlib.suppress(ValueError):
            text = f"{float(text.replace(',', '')):.6g}"
        found.add(name + text)
    return found


def is_exact(row: dict[str, Any], reply: Answer) -> bool:
    """Whether an answer was given that is complete and has nothing else; of no answers, none or the word `none`."""
    found, gold = normal(reply.listed), normal(row["answers"])
    if reply.answer is None or (row["type"] in NEAR and len(found) != 1):
        return False
    if row["type"] in NEAR:
        with contextlib.suppress(ValueError):
            return math.isclose(float(found.pop().rstrip(" %")), float(gold.pop()), rel_tol=NEAR[row["type"]])
        return False
    if row["type"] == "group" and found != gold:  # averages are shown to two digits
        given, right = (dict(text.rpartition(": ")[::2] for text in own) for own in (found, gold))
        with contextlib.suppress(ValueError):
            return given.keys() == right.keys() and all(
                math.isclose(float(given[name]), float(value), rel_tol=NEAR["average"]) for name, value in right.items()
            )
        return False
    return found - {"none"} == gold


def measure(rows: list[dict[str, Any]], replies: list[Answer], seconds: list[float]) -> dict[str, Any]:
    """All figures of a set."""
    types: dict[str, list[bool]] = defaultdict(list)
    styles: dict[str, list[bool]] = defaultdict(list)
    roads: dict[str, list[bool]] = defaultdict(list)
    exact, named, declined, wrongly, sure, right, empty, loud = [], [], [], [], [], [], [], []
    for row, reply in zip(rows, replies, strict=True):
        good = bool(row["answerable"]) and is_exact(row, reply)
        loud.append(reply.answer is not None and not good and (reply.confidence or 0) > SURE)
        if not row["answerable"]:
            declined.append(reply.answer is None)
        else:
            exact.append(good)
            named.append(good or bool(normal(reply.listed) & normal(row["answers"])))
            if row.get("empty"):
                empty.append(good)
            wrongly.append(reply.answer is None)
            types[row["type"]].append(good)
            for style in row["style"]:
                styles[style].append(good)
        if reply.road is not None:
            roads[reply.road].append(good)
        if reply.answer is not None and reply.calibrated and reply.confidence is not None:
            sure.append(reply.confidence)
            right.append(float(good))
    return {
        "questions": len(rows),
        "answerable": len(exact),
        "exact": share(exact),
        "gold_answer_named": share(named),
        "declined_of_unanswerable": share(declined),
        "wrongly_declined": share(wrongly),
        "wrong_above": {str(SURE): share(loud)},
        **({"exact_if_empty": share(empty)} if empty else {}),
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
        good = is_exact(row, reply) if row["answerable"] else reply.answer is None
        answered = ", ".join(reply.listed[:5]) or str(reply.decline).partition("\n")[0]
        sure = "-" if reply.confidence is None else f"{reply.confidence:.2f}"
        print(f"{'right' if good else 'WRONG'}  {row['question']}\n       {answered}   confidence {sure}, {reply.form}")
        if not good:
            print(f"       gold: {', '.join(map(str, row['answers'][:5])) or 'not answerable: ' + str(row['reason'])}")


def among_ten(rows: list[dict[str, Any]], solver: AutoSolver, started: list[Question]) -> list[bool]:
    """Of each answerable question whether its right answer is one of its ten best plans', which a chooser sees.

    started: the questions with their linked topics.
    """
    good = []
    for row, ranked in zip(rows, solver.parser.parse(started), strict=True):
        if row["answerable"]:
            plans = [one.best for one in choices(ranked, PLANS) if one.best is not None and not one.empty]
            found = [answers_of(plan, solver.store.names(answer_nodes(plan))) for plan in plans]
            good.append(any(is_exact(row, Answer("", "", "", answers=answers)) for answers in found))
    return good


def system_of(source: str, run: str | None = None) -> System:
    """The system of a home's run, or one that answers at once from graph files, separated by commas."""
    if (Path(source) / "home.json").is_file():
        return System.from_run(Home(Path(source)), run)
    return System.from_graph(*source.split(","))


def ceiling(rows: list[dict[str, Any]], system: System) -> list[bool]:
    """`among_ten` of a system; of one that has no plans nothing."""
    if system.tagger is None or system.calculator is None or not system.answerer.computes:
        return []
    linked = [link_question(system.tagger, Question(row["id"], row["question"]), system.linking) for row in rows]
    return among_ten(rows, system.calculator.solver, [with_candidates(*one, CANDIDATES) for one in linked])


def ask(rows: list[dict[str, Any]], system: System) -> tuple[list[dict[str, Any]], list[Answer], list[float]]:
    """The questions with what a system answers, and the seconds of each."""
    system.ask(rows[0]["question"])
    replies, seconds = [], []
    for row in rows:
        started = time.perf_counter()
        replies.append(system.ask(row["question"]))
        seconds.append(time.perf_counter() - started)
    return rows, replies, seconds


@contextlib.contextmanager
def thesaurus_of(source: str, run: str | None, without: bool) -> Iterator[None]:
    """The whole thesaurus, or with `without` that without the entries for the graph of a system."""
    if not without:
        yield
        return
    from benchmarks.answers.thesaurus import without_entries

    with without_entries(system_of(source, run).store):
        yield


def main() -> None:
    """Reads the command line, answers, scores and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", choices=sorted(path.name for path in PEOPLE.iterdir() if path.is_dir()))
    parser.add_argument("graphs", nargs="+", metavar="GRAPH=FILES")
    parser.add_argument("--run", default=None)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--transcripts", type=int, default=0)
    parser.add_argument("--without-thesaurus", action="store_true")
    options = parser.parse_args()
    sources = {name: source for name, _, source in (pair.partition("=") for pair in options.graphs)}
    names = sorted(path.stem for path in (PEOPLE / options.set).glob("*.jsonl"))
    if unknown := sorted(sources.keys() - {*names}):
        parser.error(f"no questions over {', '.join(unknown)} in {options.set}, which has {', '.join(names)}")
    if alone := [name for name, source in sources.items() if not source]:
        parser.error(f"no graph for {', '.join(alone)}: say GRAPH=FILES, or GRAPH=HOME")
    if options.set.startswith("locked"):
        if options.transcripts:
            parser.error(f"{options.set} is a test set whose questions nobody looks at: leave out --transcripts")
        if conditions(SEED)["commit"].endswith("with changes"):
            parser.error(f"{options.set} is run from a clean tree: commit the changes first")
    asked, ten = {}, {}
    for name, source in sources.items():
        with thesaurus_of(source, options.run, options.without_thesaurus):
            system = system_of(source, options.run)
            asked[name] = ask(rows_of(options.set, name), system)
            ten[name] = ceiling(asked[name][0], system)
    apart = {name: measure(*own) | {"among_ten": share(ten[name])} for name, own in asked.items()}
    rows, replies, seconds = ([item for own in asked.values() for item in own[part]] for part in range(3))
    made = {
        "set": options.set,
        "graph": ", ".join(sources),
        "model": replies[0].model,
        "knowledge": replies[0].knowledge,
        "commit": conditions(SEED)["commit"],
        "thesaurus": "without the entries of the graph" if options.without_thesaurus else "whole",
        "date": conditions(SEED)["date"],
        **measure(rows, replies, seconds),
        "among_ten": share([good for own in ten.values() for good in own]),
        **({"graphs": apart} if len(asked) > 1 else {}),
    }
    text = json.dumps(made, indent=1)
    if options.out is not None:
        results_file.write(options.out, made, FIELDS)
    if options.transcripts:
        transcripts(rows, replies, options.transcripts)
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
