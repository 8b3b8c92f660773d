"""The builtin model with its linear layers in int8 against fp32: processor time, and what it answers.

    python -m benchmarks.models.int8 --work DIR [--questions 1000] [--rounds 3] [--json benchmarks/results/int8.json]

Dev questions of Atlas with the facts of gold topics' gold paths, as triples, in the prompt of the run.  Each round
answers all of them with both, in turn; exact and contains of both, and the questions on which only one is exact
(McNemar).  equal: answers that are the same letter by letter.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks import results_file
from benchmarks.conditions import RESULTS, conditions
from benchmarks.papers.rra_work import SEED, RraWork, SetPlan, some
from benchmarks.results_file import CONDITIONS
from kgqa_core.answering.answer import answer
from kgqa_core.config import AnsweringOptions, LlmOptions
from kgqa_core.evaluation.score import score_outputs
from kgqa_core.kg.verbalise import write_knowledge
from kgqa_core.metrics.significance import bootstrap_interval, mcnemar, three_digits
from kgqa_core.monitor import QUIET

FIELDS = (
    *CONDITIONS, "questions", "rounds", "numbers/*/exact/...", "numbers/*/contains/...", "numbers/*/cpu_seconds",
    "ratio", "equal", "fixed", "broken", "p",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""


def measure(work: RraWork, count: int, rounds: int) -> dict[str, Any]:
    """Both kinds of numbers."""
    dev = [replace(one, split="test") for one in some([q for q in work.questions() if q.split == "dev"], count, "int8")]
    sample = work.answered(count, dev)
    facts = work.facts("oracle", count, dev, "oracle")
    knowledge = work.folder / "knowledge_int8"
    knowledge.mkdir(exist_ok=True)
    write_knowledge(knowledge, kg=work.kg(), questions=sample, facts=facts, retriever="oracle")
    outputs: dict[str, dict[str, str]] = {}
    times: dict[str, list[float]] = {"fp32": [], "int8": []}
    for number in range(rounds):
        for dtype in sorted(times, reverse=number % 2 == 1):
            out = work.folder / f"answers_{dtype}"
            out.mkdir(exist_ok=True)
            began = time.process_time()
            answer(
                out, questions=sample, knowledge=knowledge, name="oracle/triples",
                options=AnsweringOptions(answerer="builtin"), llm=LlmOptions(dtype=dtype), seed=SEED, cache=None,
                monitor=QUIET,
            )  # fmt: skip
            times[dtype].append(time.process_time() - began)
            frame = pl.read_parquet(out / "answers.parquet")
            outputs[dtype] = dict(zip(frame["question"], frame["output"], strict=True))
    scores = {dtype: score_outputs(dev, found) for dtype, found in outputs.items()}
    every = sorted(scores["fp32"])
    exact = {dtype: [own[question]["exact"] for question in every] for dtype, own in scores.items()}
    pairs = list(zip(exact["fp32"], exact["int8"], strict=True))
    fixed, broken = sum(b > a for a, b in pairs), sum(b < a for a, b in pairs)
    spent = {dtype: statistics.median(values) for dtype, values in times.items()}
    return {
        "questions": len(every), "rounds": rounds,
        "numbers": {
            dtype: {
                "exact": bootstrap_interval(exact[dtype], seed=SEED).rounded(4),
                "contains": bootstrap_interval([own[q]["contains"] for q in every], seed=SEED).rounded(4),
                "cpu_seconds": round(spent[dtype], 2),
            }
            for dtype, own in scores.items()
        },
        "ratio": round(spent["int8"] / spent["fp32"], 3),
        "equal": sum(outputs["fp32"][q] == outputs["int8"][q] for q in every),
        "fixed": fixed, "broken": broken, "p": three_digits(mcnemar(fixed, broken)),
    }  # fmt: skip


def table(found: Mapping[str, Any]) -> str:
    """The table of docs/models.md."""
    made = found["conditions"]
    lines = [
        f"`benchmarks/models/int8.py`, {found['questions']:,} dev questions of Atlas with gold facts, "
        f"{made['threads']} thread(s), commit {made['commit'][:8]}, seed {made['seed']}, median of "
        f"{found['rounds']} rounds.",
        "", "| `llm.dtype` | exact | contains | processor seconds |", "|---|--:|--:|--:|",
    ]  # fmt: skip
    for dtype, own in found["numbers"].items():
        cells = [
            f"{100 * own[m]['value']:.1f} ({100 * own[m]['low']:.1f}–{100 * own[m]['high']:.1f})"
            for m in ("exact", "contains")
        ]
        lines.append(f"| {dtype} | {' | '.join(cells)} | {own['cpu_seconds']:.1f} |")
    lines += [
        "",
        f"int8 takes {found['ratio']:.2f}× the processor time; {found['equal']:,} of {found['questions']:,} outputs "
        f"are equal; of exact answers it gains {found['fixed']} and loses {found['broken']} (McNemar's p "
        f"{found['p']:g}).",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=RESULTS / "int8.json")
    given = parser.parse_args()
    found = measure(RraWork(SetPlan("atlas"), given.work), given.questions, given.rounds)
    results_file.write(given.json, {"conditions": conditions(SEED), **found}, FIELDS)
    print(table({"conditions": conditions(SEED), **found}))


if __name__ == "__main__":
    main()
