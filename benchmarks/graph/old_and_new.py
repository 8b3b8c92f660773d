"""Two commits of this project side by side on one machine: what a user waits for, and what was trained.

    python -m benchmarks.graph.old_and_new --work DIR [--old 808ac56] [--new HEAD] [--rounds 3]
        [--parts install,demo,busy,whole,cached,ask,help,test] [--json benchmarks/results/old_and_new.json]

Each commit is a clean clone in DIR with a virtual environment of its own.  Parts, each measured on the old commit and
then on the new one, in turn: `install`: make install.  demo: `kgqa demo` in an empty home (what the README tells a
newcomer to run).  busy: the same beside two processes that compute without end, of the new commit only.  whole: all
experiments of the bundled graph, in an empty home; its stages and their seconds: the old commit's demo, which is
measured once for both parts, and the new one's `kgqa run --profile atlas`.  cached: `whole` again.  ask: one question,
without a server, as a whole process.  help: `kgqa --help`.  test: make test, whose packages are installed before.
ask, help and cached are medians of --rounds.  What is measured stands in the JSON and is not measured again unless
--again says so, or the commit or the machine is another one; a part that was killed begins anew.  Nothing else should
run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import RESULTS, ROOT, commit_name, conditions, processor
from benchmarks.graph.kg_subset_page import table
from benchmarks.results_file import CONDITIONS

FIELDS = (
    *CONDITIONS, "commits/*", "product_ms", "machine", "parts/*/old/...", "parts/*/new/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
QUESTION = "What is the capital of France?"
PARTS = ("install", "demo", "busy", "whole", "cached", "ask", "help", "test")
ENVIRONMENT = ("PYTHONPATH", "KGQA_HOME", "OMP_NUM_THREADS", "VIRTUAL_ENV")
"""Variables that a clean shell does not have."""


class Checkout:
    """A commit in a folder of its own.  label: `old` or `new`."""

    def __init__(self, label: str, commit: str, work: Path) -> None:
        self.label, self.folder = label, work / label
        if not (self.folder / ".git").exists():
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.folder)], check=True)
        subprocess.run(["git", "-C", str(self.folder), "fetch", "--quiet", str(ROOT)], check=True)
        subprocess.run(["git", "-C", str(self.folder), "checkout", "--quiet", commit], check=True)
        self.kgqa = str(self.folder / ".venv" / "bin" / "kgqa")

    def run(self, *command: str, log: str) -> tuple[float, str]:
        """Seconds of a command and what it printed, which is kept in a log.  Raises SystemExit where it failed."""
        environment = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT}
        began = time.perf_counter()
        done = subprocess.run(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        seconds = time.perf_counter() - began
        (self.folder.parent / f"{self.label}-{log}.log").write_text(done.stdout, encoding="utf-8")
        if done.returncode:
            raise SystemExit(
                f"{' '.join(command)} of {self.label} ended with {done.returncode}:\n{done.stdout[-2000:]}"
            )
        return seconds, done.stdout

    def home(self, name: str, *, fresh: bool = False) -> Path:
        """A home of this checkout; the old commit's demo is all that it runs."""
        name = "whole" if self.label == "old" and name == "demo" else name
        home = self.folder.parent / f"{self.label}-{name}-home"
        if fresh:
            shutil.rmtree(home, ignore_errors=True)
        return home

    def stages(self, home: Path) -> dict[str, float]:
        """Seconds of the stages of the newest run that computed any."""
        records = [json.loads(file.read_text(encoding="utf-8")) for file in home.glob("runs/*/run.json")]
        first = min(records, key=lambda record: str(record["run_id"]))
        found: dict[str, float] = {}
        for stage in first["stages"]:
            name = str(stage["name"])
            found[name] = round(found.get(name, 0.0) + float(stage.get("seconds") or 0.0), 1)
        return found


def install(one: Checkout, rounds: int) -> dict[str, Any]:
    """make install."""
    shutil.rmtree(one.folder / ".venv", ignore_errors=True)
    return {"seconds": round(one.run("make", "install", log="install")[0], 1)}


def demo(one: Checkout, rounds: int) -> dict[str, Any]:
    """What the README says first, in an empty home."""
    home = one.home("demo", fresh=True)
    seconds, _ = one.run(one.kgqa, "demo", "--home", str(home), log="demo")
    return {"seconds": round(seconds, 1), "stages": one.stages(home)}


def busy(one: Checkout, rounds: int) -> dict[str, Any]:
    """The demo, beside two busy processes."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        home = one.home("busy", fresh=True)
        seconds, _ = one.run(one.kgqa, "demo", "--home", str(home), log="busy")
    finally:
        for process in spinning:
            process.kill()
            process.wait()
    return {"seconds": round(seconds, 1), "stages": one.stages(home)}


def whole(one: Checkout, rounds: int) -> dict[str, Any]:
    """Every experiment of the bundled graph."""
    home = one.home("whole", fresh=True)
    seconds, _ = one.run(*_whole(one), "--home", str(home), log="whole")
    return {"seconds": round(seconds, 1), "stages": one.stages(home)}


def _whole(one: Checkout) -> tuple[str, ...]:
    return (one.kgqa, "demo") if one.label == "old" else (one.kgqa, "run", "--profile", "atlas")


def cached(one: Checkout, rounds: int) -> dict[str, Any]:
    """The same again."""
    return _several(rounds, lambda: one.run(*_whole(one), "--home", str(one.home("whole")), log="cached")[0])


def ask(one: Checkout, rounds: int) -> dict[str, Any]:
    """One question, as a process."""
    words = (one.kgqa, "ask", QUESTION, "--home", str(one.home("whole")))
    return _several(rounds, lambda: one.run(*words, log="ask")[0])


def help_(one: Checkout, rounds: int) -> dict[str, Any]:
    """kgqa --help."""
    return _several(rounds, lambda: one.run(one.kgqa, "--help", log="help")[0])


def test(one: Checkout, rounds: int) -> dict[str, Any]:
    """make test; its packages are there."""
    if "install-dev" in (one.folder / "Makefile").read_text(encoding="utf-8"):
        one.run("make", "install-dev", log="install-dev")
    seconds, printed = one.run("make", "test", log="test")
    passed = re.findall(r"(\d+) passed", printed.replace(",", ""))
    return {"seconds": round(seconds, 1), "passed": int(passed[-1]) if passed else 0}


def _several(rounds: int, measure: Callable[[], float]) -> dict[str, Any]:
    times = [round(measure(), 2) for _ in range(rounds)]
    return {"seconds": statistics.median(times), "all": times}


MEASURES: Mapping[str, Callable[[Checkout, int], dict[str, Any]]] = {
    "install": install, "demo": demo, "busy": busy, "whole": whole, "cached": cached, "ask": ask, "help": help_,
    "test": test,
}  # fmt: skip


def tables(found: Mapping[str, Any]) -> str:
    """The tables of docs/performance.md."""
    made, commits = found["conditions"], found["commits"]
    rows = [
        (name, f"{one['old']['seconds']:,.1f}", f"{one['new']['seconds']:,.1f}",
         f"{one['new']['seconds'] / one['old']['seconds']:.2f}×")
        for name, one in found["parts"].items() if {"old", "new"} <= set(one)
    ]  # fmt: skip
    text = (
        f"## What a user waits for on {found['machine']}, before and now\n\n"
        f"`benchmarks/graph/old_and_new.py`, commits {commit_name(commits['old'])} and {commit_name(commits['new'])} "
        f"in turn, {made['cores']} cores of {found['machine']}, {made['date']}; the yardstick, a float32 product of "
        f"1024³, takes "
        f"{found['product_ms']:.1f} ms here. *demo*: what the README starts, formerly every experiment, now the best "
        "system beside its baselines; *whole*: every experiment, of which there are more now (`auto` and what it "
        "needs); *test*: with all packages installed.\n\n" + table(("seconds", "before", "now", "ratio"), rows)
    )
    if "busy" in found["parts"] and "demo" in found["parts"]:
        beside, alone = (found["parts"][part]["new"]["seconds"] for part in ("busy", "demo"))
        text += (
            f"\nThe demo beside two processes that compute without end takes {beside:,.0f} s, "
            f"{beside / alone:.1f}× its time alone.\n"
        )
    whole = found["parts"].get("whole", {})
    if {"old", "new"} <= set(whole):
        before, now = whole["old"]["stages"], whole["new"]["stages"]
        names = [name for name in dict.fromkeys([*before, *now]) if max(before.get(name, 0), now.get(name, 0)) >= 1]
        cells = [
            (f"`{name}`", *(f"{own[name]:,.1f}" if name in own else "–" for own in (before, now))) for name in names
        ]
        both = [sum(own[name] for name in before if name in now) for own in (before, now)]
        text += (
            "\nStages of *whole* that take a second or more; those that both commits have take "
            f"{both[0]:,.0f} s before and {both[1]:,.0f} s now, {both[1] / both[0]:.2f}×:\n\n"
            + table(("stage", "before", "now"), cells)
        )
    return text


WAITED: Mapping[str, str] = {
    "install": "`make install`, 2.7 GB",
    "demo": "`kgqa demo`, first time",
    "whole": "the whole comparison, `kgqa run --profile atlas` ([what it does](docs/demo.md#the-whole-comparison))",
    "cached": "the same again, all of it cached",
    "ask": "`kgqa ask` as a process, without a server",
    "test": "`make test`",
}
"""Parts that the README tells of, and what it calls them."""


def times(found: Mapping[str, Any]) -> str:
    """The table of the README: what takes how long, and as a multiple of a yardstick."""
    made, product = found["conditions"], found["product_ms"]
    rows = [
        (WAITED[part], _waited(one["new"]["seconds"]), f"{1000 * one['new']['seconds'] / product:,.0f}")
        for part, one in found["parts"].items() if part in WAITED and "new" in one
    ]  # fmt: skip
    text = table((f"on {made['cores']} cores of {found['machine']}", "takes", "yardsticks"), rows)
    return text + (
        "\nA yardstick is one product of float32 matrices of 1024 × 1024, "
        f"{product:.1f} ms here: `python -m timeit -s 'import torch; a = torch.rand(1024, 1024)' 'a @ a'` says what it "
        "takes on your machine.\n"
    )


def _waited(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def main() -> None:
    """Measures what is missing and writes the JSON after each part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--old", default="808ac56")
    parser.add_argument("--new", default="HEAD")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=RESULTS / "old_and_new.json")
    given = parser.parse_args()
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    commits = {
        label: subprocess.run(
            ["git", "-C", str(ROOT), "rev-parse", commit], capture_output=True, text=True, check=True
        ).stdout.strip()
        for label, commit in (("old", given.old), ("new", given.new))
    }
    record: dict[str, Any] = json.loads(given.json.read_text(encoding="utf-8")) if given.json.is_file() else {}
    place = processor(platform.machine())
    former = record.get("commits", {}) if record.get("machine") == place else {}
    kept = {
        part: {label: found for label, found in own.items() if former.get(label) == commits[label]}
        for part, own in record.get("parts", {}).items()
    }
    record = {"commits": commits, "parts": {part: own for part, own in kept.items() if own}}
    record |= {"conditions": conditions(SEED), "product_ms": _product_ms(), "machine": place}
    checkouts = [Checkout(label, commit, work) for label, commit in commits.items()]
    for part in wanted(given.parts):
        own = record["parts"].setdefault(part, {})
        for one in checkouts:
            if part == "busy" and one.label == "old":
                continue  # it took 107 minutes beside four jobs
            if one.label == "old" and part == "whole" and "old" in record["parts"].get("demo", {}):
                own["old"] = record["parts"]["demo"]["old"]
            elif given.again or one.label not in own:
                own[one.label] = MEASURES[part](one, given.rounds)
                print(part, one.label, own[one.label], flush=True)
                results_file.write(given.json, record, FIELDS)


def wanted(text: str) -> Sequence[str]:
    """The parts that a list names.  Raises SystemExit for one that there is not."""
    parts = text.split(",")
    for part in parts:
        if part not in MEASURES:
            raise SystemExit(f"no part {part!r}; there are {', '.join(PARTS)}")
    return parts


def _product_ms() -> float:
    from benchmarks.models.roofline import machine

    return float(machine(7)["product_ms"])


if __name__ == "__main__":
    main()
