"""The first hour with a table of one's own: ten questions, what mends those that fail, and the same asked again.

    python -m benchmarks.operation.first_hour --work DIR [--json benchmarks/results/first_hour.json]
        [--out benchmarks/results/first_hour.md]

The table is benchmarks/operation/hire.csv, a shop that hires out tools (60 rows, invented).  Every question is a
`kgqa ask --kg hire.csv` in a process of its own, without a server.  `kgqa improve` lists what failed; a name, two
corrections and a reading mend it, and all ten are asked again, with two in the wording of a correction about
other things.  The questions are the first ten of a list that was written before any was asked.  Seconds are of the
clock, with other work on the machine: the transcript leaves them out, and benchmarks/operation/first_answer.py measures
what it takes.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.answers.graph_alone import kgqa, line_count
from benchmarks.answers.graph_alone_text import as_expected, command, conditions_line, trim_ask, without_paths
from benchmarks.conditions import RESULTS, conditions
from benchmarks.results_file import CONDITIONS

FIELDS = (*CONDITIONS, "rows", "right/*", "steps/*/printed", "steps/*/seconds", "steps/*/title",
          "steps/*/typed", "?steps/*/right")  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""
SECONDS = re.compile(r"(,|  ) ?\d+\.\d\d s *$", re.MULTILINE)
"""What `kgqa ask` says of its time."""
TABLE = Path(__file__).parent / "hire.csv"
PETROL = (
    "chainsaw 35 cm", "chainsaw 50 cm", "dumper 500 kg", "lawn mower", "long reach hedge trimmer", "plate compactor",
    "post hole borer", "rotavator", "scarifier", "strimmer", "stump grinder", "trench rammer", "wood chipper",
)  # fmt: skip
CHEAP = ("hedge trimmer", "lawn mower", "lawn roller", "leaf blower", "strimmer", "wheelbarrow")
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "Who hired the pressure washer?": ("Rosa Lindqvist",),
    "When is the wallpaper steamer due back?": ("2026-12-14",),
    "What does the tile cutter cost per day?": ("20.00",),
    "Which branch has the concrete mixer?": ("Station Yard",),
    "Which tools run on petrol?": PETROL,
    "What is the most expensive tool to hire?": ("mini digger",),
    "How many items are there at Mill Lane?": ("22",),
    "Which garden tools cost less than 20 a day?": CHEAP,
    "Which brand makes the belt sander?": ("Boldt",),
    "Which things has Oakfield School got?": ("dumper 500 kg", "floor polisher", "mitre saw"),
}
"""Questions with their answers."""
ALIKE: Mapping[str, tuple[str, ...]] = {
    "What does the core drill cost per day?": ("44.00",),
    "Which cleaning tools cost less than 20 a day?": ("wet and dry vacuum", "window vacuum"),
}
"""In the words of what was mended, about other things."""
NAMES = "relations:\n  day rate: [cost, price]\n"
CORRECTED = ("What is the most expensive tool to hire?", "Which garden tools cost less than 20 a day?")
"""Questions whose answers are corrected."""


class Walk:
    """What was typed, what came, and how long it took.  work: the folder in which a newcomer stands."""

    def __init__(self, work: Path) -> None:
        self.work, self.steps = work, list[dict[str, Any]]()

    def type(self, *words: str, title: str = "", gold: Sequence[str] | None = None, log: bool = False) -> None:
        """Runs `kgqa` with these words.  gold: the answers of a question.  log: whether its log is shown as well."""
        log_file = self.work / "kgqa.log"
        log_file.unlink(missing_ok=True)
        printed, seconds = kgqa([*words, "--home", str(self.work / ".kgqa")], self.work, log_file)
        told = log_file.read_text(encoding="utf-8") if log else ""
        shown = without_paths(told + trim_ask(printed), {str(self.work): "."})
        self._add(title, command(["kgqa", *words]), shown, seconds, {} if gold is None else
                  {"right": as_expected(printed, gold)})  # fmt: skip

    def write(self, name: str, text: str, title: str = "") -> None:
        """Writes a file, as with an editor."""
        (self.work / name).write_text(text, encoding="utf-8")
        self._add(title, f"$ cat {name}", text.rstrip("\n"), 0.0, {})

    def ask(self, questions: Mapping[str, Sequence[str]], *options: str, title: str) -> str:
        """Asks questions, each in a process; how many were right."""
        first = len(self.steps)
        for number, (text, gold) in enumerate(questions.items()):
            self.type("ask", "--kg", TABLE.name, *options, text, title=title * (not number), gold=gold, log=not first)
        return f"{sum(step['right'] for step in self.steps[first:])} of {len(questions)}"

    def _add(self, title: str, typed: str, printed: str, seconds: float, more: dict[str, Any]) -> None:
        self.steps.append({"title": title, "typed": typed, "printed": printed, "seconds": seconds, **more})
        print(f"{seconds:6.1f} s  {more.get('right', '')!s:5} {typed}", flush=True)


def walk(work: Path) -> dict[str, Any]:
    """The whole hour; what the JSON has of it."""
    shutil.copy(TABLE, work / TABLE.name)
    hour, kg = Walk(work), ("--kg", TABLE.name)
    before = hour.ask(QUESTIONS, title="Ten questions")
    hour.write("asked.txt", "".join(f"{text}\n" for text in QUESTIONS), title="What failed, and what mends it")
    hour.type("improve", *kg, "--questions", "asked.txt")
    hour.type("ask", *kg, "--reading", "1", CORRECTED[1], title="A reading by its number", gold=CHEAP)
    hour.write("names.yaml", NAMES, title="A name, two corrections")
    rows = [{"id": str(n), "question": text, "answers": QUESTIONS[text]} for n, text in enumerate(CORRECTED, start=1)]
    hour.write("right.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    hour.type("feedback", "import", "right.jsonl")
    named = ("--names", "names.yaml")
    after = hour.ask(QUESTIONS, *named, title="Asked again")
    alike = hour.ask(ALIKE, *named, title="In the same words about other things")
    return {
        "conditions": conditions(0),
        "rows": line_count(TABLE) - 1,
        "right": {"before": before, "after": after, "alike": alike},
        "steps": hour.steps,
    }


def transcript(found: Mapping[str, Any]) -> str:
    """The hour in Markdown."""
    right = found["right"]
    return "\n".join([
        "# The first hour with a table of one's own", "",
        f"A table of {found['rows']} rows, `benchmarks/operation/hire.csv`: what a shop hires out, to whom, at which "
        f"branch. {conditions_line(found['conditions'])} By `benchmarks/operation/first_hour.py`; each command is a "
        "process of its own, without a server; seconds are left out, and of a long proof all but the first lines.", "",
        "Installed before, by `pip install kgqa` ([sizes and seconds](../../docs/install.md#what-it-takes)).", "",
        "| | |", "|---|--:|",
        f"| right at first | {right['before']} |",
        f"| after a name and two corrections | {right['after']} |",
        f"| in the same words about other things | {right['alike']} |",
        *_sections(found["steps"]), "",
    ])  # fmt: skip


def _sections(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for number, step in enumerate(steps):
        if step["title"]:
            yield from (*(["```"] if number else []), "", f"## {step['title']}", "", "```console")
        yield from (step["typed"], *map(str.rstrip, SECONDS.sub("", step["printed"]).splitlines()))
        if "right" in step:
            yield f"# {'right' if step['right'] else 'not answered, or wrong'}"
    yield "```"


def main() -> None:
    """Walks and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--json", type=Path, default=RESULTS / "first_hour.json")
    parser.add_argument("--out", type=Path, default=RESULTS / "first_hour.md")
    given = parser.parse_args()
    work = given.work.resolve()
    work.mkdir(parents=True)
    found = walk(work)
    results_file.write(given.json, found, FIELDS)
    given.out.write_text(transcript(found), encoding="utf-8")


if __name__ == "__main__":
    main()
