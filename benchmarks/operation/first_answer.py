"""How long the first answer from a graph file takes, and the second: whole processes of `kgqa ask --kg`.

    python -m benchmarks.operation.first_answer --work DIR [--rounds 3] [--graphs lines_300 triples_27000 wikidata_mini]
        [--by-run] [--json benchmarks/results/first_answer.json]

lines_300: TSV as the tests make it.  triples_27000: the first so many of `wikidata_mini`, with its labels.
wikidata_mini: all of it.  first: in an empty home.  second: another question, in the home that the first has made.
--by-run: the same by `kgqa run` without training and `kgqa ask`, as it was done before.  Seconds are medians of the
rounds; processor: of the process and its children, which a busy machine lengthens less.  Kernels are compiled before.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import DATA, RESULTS, conditions, processor
from benchmarks.kgqa_command import kgqa
from benchmarks.latency import median_seconds
from benchmarks.results_file import CONDITIONS
from tests.support.toy import write_graph

FIELDS = (*CONDITIONS, "product_ms", "machine", "load", "rounds", "graphs/*/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
QUESTIONS = {
    "lines_300": ("Where is Serade located?", "Who is Sobuva Ltd founded by?"),
    "triples_27000": ("Who wrote Dracula?", "Where was Alan Turing born?"),
    "wikidata_mini": ("Who wrote Dracula?", "Where was Alan Turing born?"),
}
UNTRAINED = (
    "label_parser.steps=0", "retrieval.retrievers=[topics]", "answering.knowledge=[topics]", "answering.more=[]",
)  # fmt: skip


def files_of(name: str, work: Path) -> list[Path]:
    """The files of a graph; what is made is written first."""
    shared = [DATA / "wikidata_mini" / f"{part}.tsv" for part in ("triples", "labels.en", "qualifiers")]
    made = work / f"{name}.tsv"
    if name == "wikidata_mini":
        return shared
    if name == "lines_300":
        write_graph(made, 300)
        return [made]
    with shared[0].open(encoding="utf-8") as lines:
        made.write_text("".join(line for line, _ in zip(lines, range(27_000), strict=False)), encoding="utf-8")
    return [made, shared[1]]


def timed(words: Sequence[str | Path], home: Path) -> tuple[float, float]:
    """Seconds of a command, by the clock and by the processor.  Raises SystemExit where it failed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _, seconds = kgqa(*map(str, words), home=home)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(name: str, work: Path, rounds: int, by_run: bool) -> dict[str, Any]:
    """Medians of the first and the second answer of a graph."""
    named = [word for file in files_of(name, work) for word in ("--kg", file)]
    taken: dict[str, list[tuple[float, float]]] = {}
    home = work / f"home-{name}"
    for _ in range(rounds):
        for part, question in zip(("first", "second"), QUESTIONS[name], strict=True):
            if part == "first":
                shutil.rmtree(home, ignore_errors=True)
            taken.setdefault(part, []).append(timed(["ask", *named, question], home))
    if by_run:
        shutil.rmtree(home, ignore_errors=True)
        settings = [word for text in UNTRAINED for word in ("--set", text)]
        run, first, second = (
            timed(words, home)
            for words in (["run", *named, *settings], *(["ask", question] for question in QUESTIONS[name]))
        )
        taken |= {"first, by a run": [(run[0] + first[0], run[1] + first[1])], "second, by a run": [second]}
    shutil.rmtree(home, ignore_errors=True)
    return {
        part: {
            "seconds": round(statistics.median(wall for wall, _ in times), 2),
            "processor": round(statistics.median(cpu for _, cpu in times), 2),
            "all": [round(wall, 2) for wall, _ in times],
        }
        for part, times in taken.items()
    }


def main() -> None:
    """Measures each graph and writes the JSON."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--graphs", nargs="+", default=list(QUESTIONS), choices=list(QUESTIONS))
    parser.add_argument("--by-run", action="store_true")
    parser.add_argument("--json", type=Path, default=RESULTS / "first_answer.json")
    given = parser.parse_args()
    for name in ("PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS"):  # a user has neither
        os.environ.pop(name, None)
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    product = torch.rand(1024, 1024)
    record: dict[str, Any] = {
        "conditions": conditions(SEED), "machine": processor(platform.machine()), "load": os.getloadavg()[0],
        "product_ms": round(1000 * median_seconds(lambda: product @ product, 7), 2), "rounds": given.rounds,
    }  # fmt: skip
    measure("lines_300", work, 1, False)  # compiles the kernels and the modules
    record["graphs"] = {name: measure(name, work, given.rounds, given.by_run) for name in given.graphs}
    results_file.write(given.json, record, FIELDS)


if __name__ == "__main__":
    main()
