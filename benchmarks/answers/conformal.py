"""Conformal thresholds of `auto`'s confidence on people/dev: the coverage that they promise, and what it costs.

    python -m benchmarks.answers.conformal [--json OUT]

Every question is asked with a threshold of 0, so that its best answer and confidence are known.  A question that has a
right best answer is to be answered with probability `coverage`: the threshold is that of split conformal prediction
over the confidences of such questions (`coverage_threshold`).  Drawn halves: 1,000 times a random half of all questions
gives the threshold and the other half is counted.  Other graph: the questions over one graph give the threshold, those
over the other are counted; they are not exchangeable, so that nothing is promised.

covered: share of the questions with a right best answer that are answered; wrong: share of wrong answers among those
given; declined: share of the unanswerable questions that are not answered.  Means over the halves with the 2.5th and
97.5th percentile of halves.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results_file
from benchmarks.answers.people import is_exact, rows_of, system_of
from benchmarks.conditions import DATA, commit_name, conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.metrics.confidence import coverage_threshold

FIELDS = (*CONDITIONS, "set", "questions/*", "right/*", "halves/*/...", "other_graph/*/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
SET = "dev"
GRAPHS = {
    "atlas": "bundled:atlas",
    "wikidata_mini": ",".join(
        str(DATA / "wikidata_mini" / name) for name in ("triples.tsv", "labels.en.tsv", "qualifiers.tsv")
    ),
}
COVERAGES = (0.8, 0.9, 0.95)
DRAWS = 1_000
Names = tuple[str, ...]


@dataclass(frozen=True)
class Scored:
    """A question's best answer: its confidence (0 without one), whether it is right, whether one can be."""

    confidence: float
    right: bool
    answerable: bool


def ask(graph: str) -> list[Scored]:
    """The questions over one graph, each with its best answer."""
    system, scored = system_of(GRAPHS[graph]).at_confidence(0), []
    for row in rows_of(SET, graph):
        reply = system.ask(row["question"])
        given = reply.answer is not None
        right = given and bool(row["answerable"]) and is_exact(row, reply)
        scored.append(Scored((reply.confidence or 0.0) if given else 0.0, right, bool(row["answerable"])))
    return scored


def figures(calibration: Sequence[Scored], counted: Sequence[Scored], coverage: float) -> dict[str, float]:
    """The threshold of some questions, and what it does to others."""
    threshold = coverage_threshold([each.confidence for each in calibration if each.right], coverage)
    given = [each for each in counted if each.confidence >= threshold and each.confidence > 0]
    right = sum(each.right for each in counted)
    impossible = sum(not each.answerable for each in counted)
    return {
        "threshold": threshold,
        "covered": sum(each.right for each in given) / right,
        "wrong": sum(not each.right for each in given) / len(given) if given else 0.0,
        "declined": 1 - sum(not each.answerable for each in given) / impossible,
    }


def halves(scored: Sequence[Scored], coverage: float) -> dict[str, dict[str, float]]:
    """Means and percentiles of `figures` over random halves."""
    generator = np.random.default_rng(SEED)
    drawn = []
    for _ in range(DRAWS):
        order = generator.permutation(len(scored))
        one, other = np.split(order, [len(order) // 2])
        drawn.append(figures([scored[at] for at in one], [scored[at] for at in other], coverage))
    spread = {name: np.array([each[name] for each in drawn]) for name in drawn[0]}
    return {
        name: {
            "mean": round(float(values.mean()), 4),
            "low": round(float(np.quantile(values, 0.025)), 4),
            "high": round(float(np.quantile(values, 0.975)), 4),
        }
        for name, values in spread.items()
    }


def tables(found: dict[str, Any]) -> str:
    """The tables of the page."""
    head = "| coverage | a right best answer is given | wrong among those given | unanswerable declined | threshold |"
    lines = [head, "|---|--:|--:|--:|--:|"]
    for coverage, own in found["halves"].items():
        cells = [_cell(own[name]) for name in ("covered", "wrong", "declined")]
        lines.append(f"| {coverage}, other half | {' | '.join(cells)} | {own['threshold']['mean']:.2f} |")
    for which, parts in found["other_graph"].items():
        for coverage, own in parts.items():
            cells = [f"{100 * own[name]:.1f}" for name in ("covered", "wrong", "declined")]
            lines.append(f"| {coverage}, {which.replace('_', ' ')} | {' | '.join(cells)} | {own['threshold']:.2f} |")
    asked = ", ".join(f"{count} over {name.replace('_', ' ')}" for name, count in found["questions"].items())
    made = found["conditions"]
    right = sum(found["right"].values())
    note = f"Questions: {asked}; {right} have a right best answer. {DRAWS:,} halves, seed {made['seed']}, "
    return "\n".join([*lines, "", f"{note}commit {commit_name(made['commit'])}, {made['date']}."]) + "\n"


def _cell(own: dict[str, float]) -> str:
    return f"{100 * own['mean']:.1f} ({100 * own['low']:.1f}–{100 * own['high']:.1f})"


def main() -> None:
    """Asks, draws and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    asked = {name: ask(name) for name in GRAPHS}
    every = [each for own in asked.values() for each in own]
    made: dict[str, Any] = {
        "conditions": conditions(SEED),
        "set": f"people/{SET}",
        "questions": {name: len(own) for name, own in asked.items()},
        "right": {name: sum(each.right for each in own) for name, own in asked.items()},
        "halves": {str(coverage): halves(every, coverage) for coverage in COVERAGES},
        "other_graph": {
            f"{one} to {other}": {
                str(coverage): {
                    key: round(value, 4) for key, value in figures(asked[one], asked[other], coverage).items()
                }
                for coverage in COVERAGES
            }
            for one, other in (("atlas", "wikidata_mini"), ("wikidata_mini", "atlas"))
        },
    }
    if options.json:
        results_file.write(options.json, made, FIELDS)
    else:
        print(made)


if __name__ == "__main__":
    main()
