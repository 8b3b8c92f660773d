"""Shows that a graph alone is enough: from its file through `kgqa run` to `kgqa ask`, as a transcript with times.

    python -m benchmarks.answers.graph_alone NAME --work DIR [--shared ../shared] [--few 20 | --questions FILE]
        [--set key=value …] [--without-thesaurus] [--out benchmarks/results/graph_alone_NAME.md]
        [--json benchmarks/results/graph_alone.json]

NAME: tsv (200 lines, made by the test suite), wikidata_mini, metaqa.  The system is made by one `kgqa run --kg …` in
DIR/home-NAME and asked six questions, two of which the graph does not answer, each in a process of its own.
--few N: N own questions train beside those made from the graph (home-NAME_few), hand-written for tsv, else drawn by
seed 7 from the training split of the graph's question set.  --questions: a question file in place of these.
--set: settings of the run, as of `kgqa run`.  --without-thesaurus: run and questions without the entries of the
thesaurus that match a relation of the graph (home-NAME_without, benchmarks/answers/thesaurus.py).  Times of a run are
those of new work where the home is not there yet; what was cached is marked in the transcript.  Neither the
transcript nor the JSON has paths of this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.answers.graph_alone_data import GRAPHS, jsonl
from benchmarks.answers.graph_alone_text import as_expected, command, transcript, trim_ask, trim_run, without_paths
from benchmarks.answers.thesaurus import without_entries_of
from benchmarks.conditions import RESULTS, ROOT, conditions
from benchmarks.results_file import fields_below
from flows.cli._session import choose_profile

FIELDS = (
    *fields_below("results/*"), "benchmark", "results/*/asks/...", "results/*/description", "results/*/few",
    "results/*/files/*", "results/*/run/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

SEED = 7
COLUMNS = "100"
RUN_ID = re.compile(r"runs/([^/\s]+)/report\.html")


def kgqa(words: Sequence[str], work: Path, log: Path) -> tuple[str, float]:
    """Standard output of a command in a process of its own, and its wall time in seconds; its log goes to a file."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": COLUMNS, "NO_COLOR": "1"}
    started = time.perf_counter()
    with log.open("a", encoding="utf-8") as errors:
        done = subprocess.run(
            [sys.executable, "-m", "flows.cli", *words], cwd=work, env=environment, stdout=subprocess.PIPE,
            stderr=errors, stdin=subprocess.DEVNULL, text=True, check=False,
        )  # fmt: skip
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"kgqa {words[0]} ended with {done.returncode}; its log is {log}\n{done.stdout[-2000:]}")
    return done.stdout, round(seconds, 2)


def line_count(path: Path) -> int:
    """Lines of a file."""
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


def measure(title: str, given: argparse.Namespace, work: Path, shared: Path) -> dict[str, Any]:
    """Runs the graph, asks it the questions; what the JSON has of them."""
    graph = GRAPHS[given.name]
    home, log = work / f"home-{title}", work / f"{title}.log"
    files = graph.paths(shared, work)
    places = {str(home): "home", str(work): ".", str(shared): "data", str(ROOT): ".", str(Path.home()): "~"}
    settings = [*graph.settings, *given.set]
    questions, few = given.questions, given.few
    if few:
        questions = work / f"{title}.jsonl"
        questions.write_text(jsonl(graph.few(few, shared, SEED)), encoding="utf-8")
    if questions is not None:
        few = line_count(questions)
        settings.insert(0, "questions.source=generated")

    def words(show: bool) -> list[str]:
        """The command line of the run, with names of files alone where it is shown."""
        own = [] if questions is None else ["--questions", questions.name if show else str(questions)]
        graphs = [word for path in files for word in ("--kg", path.name if show else str(path))]
        changes = [word for setting in settings for word in ("--set", setting)]
        return ["run", *graphs, *own, *changes, "--home", "home" if show else str(home)]

    printed, seconds = kgqa(words(show=False), work, log)
    run_id = RUN_ID.search(printed)
    if run_id is None:
        raise SystemExit(f"kgqa run named no report:\n{printed[-2000:]}")
    record = json.loads((home / "runs" / run_id[1] / "run.json").read_text(encoding="utf-8"))
    run = {
        "command": without_paths(command(["kgqa", *words(show=True)]), places),
        "seconds": seconds,
        "stages": [
            {name: stage[name] for name in ("name", "title", "status", "seconds")} for stage in record["stages"]
        ],
        "printed": without_paths(trim_run(printed), places),
    }
    asks = []
    for ask in graph.asks:
        printed, seconds = kgqa(["ask", ask.question, "--home", str(home)], work, log)
        asks.append(
            {
                "command": command(["kgqa", "ask", ask.question, "--home", "home"]),
                "seconds": seconds,
                "expected": list(ask.expected),
                "as_expected": as_expected(printed, ask.expected),
                "printed": without_paths(trim_ask(printed), places),
            }
        )
        print(f"{'as expected' if asks[-1]['as_expected'] else 'NOT AS EXPECTED'}, {seconds} s: {ask.question}")
    return {
        "description": graph.description,
        "files": {path.name: line_count(path) for path in files},
        "few": few,
        "conditions": conditions(record["profile"]["seed"]),
        "run": run,
        "asks": asks,
    }


def write(title: str, entry: dict[str, Any], out: Path, document: Path) -> None:
    """Writes the transcript, and the entry into the JSON in place of what stood there under its title."""
    whole: dict[str, Any] = {"benchmark": "graph_alone", "results": {}}
    if document.is_file():
        whole = json.loads(document.read_text(encoding="utf-8"))
    whole["results"][title] = entry
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(transcript(title, entry), encoding="utf-8")
    results_file.write(document, whole, FIELDS)


def main() -> None:
    """Reads the command line, runs, asks and writes."""
    results = RESULTS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=tuple(GRAPHS))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    own = parser.add_mutually_exclusive_group()
    own.add_argument("--few", type=int, default=0)
    own.add_argument("--questions", type=Path)
    parser.add_argument("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE")
    parser.add_argument("--without-thesaurus", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", type=Path, default=results / "graph_alone.json")
    given = parser.parse_args()
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    given.questions = given.questions and given.questions.resolve()
    shared = (given.shared / "data" if (given.shared / "data").is_dir() else given.shared).resolve()
    title = given.name + ("_few" if given.few or given.questions else "")
    with contextlib.ExitStack() as stack:
        if given.without_thesaurus:
            title += "_without"
            graph = GRAPHS[given.name]
            stack.enter_context(
                without_entries_of(choose_profile(None, graph.paths(shared, work), settings=graph.settings).kg)
            )
        entry = measure(title, given, work, shared)
    write(title, entry, given.out or results / f"graph_alone_{title}.md", given.json)


if __name__ == "__main__":
    main()
