"""Answers question files, each with a home that is given or with a system that is made of graph files.

    PYTHONPATH=CHECKOUT python benchmarks/answers/case_systems.py JOBS HOME SECONDS

JOBS is a JSON list in a file; a job has a name, a question file, and the folder of a home (and a run's id), or graph
files and settings; a system answers from these at once, its graph built in HOME.  A line of JSON is printed for each
job: its answers, or why its graph was refused.  `without_thesaurus` in a job: without the entries of the thesaurus that
match a relation of its graph.  After SECONDS no further job begins.  It imports the checkout's code alone and writes no
result (benchmarks/answers/cases.py does).
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from flows.cli._session import choose_profile
from kgqa_core.config import KgOptions
from kgqa_core.errors import KgqaError
from kgqa_core.system import System

FIELDS = ("confidence", "calibrated", "min_confidence", "form", "road", "reason", "missing")


def system_of(job: dict[str, Any], home: Path) -> System:
    """The system of a run of a job's home, or one that answers from its files at once."""
    if "home" in job:
        return System.from_run(job["home"], job.get("run"))
    kg = options_of(job).model_dump(mode="json", exclude_defaults=True, exclude={"name", "files"})
    return System.from_graph(*job["files"], home=home, settings={"kg": kg})


def options_of(job: dict[str, Any]) -> KgOptions:
    """With which options the files of a job are read."""
    return choose_profile(None, [Path(file) for file in job["files"]], settings=job["settings"]).kg


def leaving_out(job: dict[str, Any], stack: contextlib.ExitStack) -> None:
    """Leaves out the entries of the thesaurus for a job's graph, where it says so, until the stack is closed."""
    if not job.get("without_thesaurus"):
        return
    from benchmarks.answers.thesaurus import without_entries, without_entries_of

    if "home" in job:
        stack.enter_context(without_entries(System.from_run(job["home"], job.get("run")).store))
    else:
        stack.enter_context(without_entries_of(options_of(job)))


def answers(system: System, questions: Path) -> list[dict[str, Any]]:
    """What a system answers to a question file, and how it judged the answers."""
    replies = []
    for line in questions.read_text(encoding="utf-8").splitlines():
        row, began = json.loads(line), time.perf_counter()
        reply = system.ask(row["question"])
        judgement = {name: getattr(reply, name) for name in FIELDS}
        seconds = round(time.perf_counter() - began, 3)
        replies.append({"id": row["id"], "answers": reply.listed, **judgement, "seconds": seconds})
    return replies


def main() -> None:
    """Reads the command line, makes systems, asks and prints."""
    jobs, home, seconds = sys.argv[1:]
    began = time.monotonic()
    for job in json.loads(Path(jobs).read_text(encoding="utf-8")):
        if time.monotonic() - began > float(seconds):
            break
        try:
            with contextlib.ExitStack() as stack:
                leaving_out(job, stack)
                result: dict[str, Any] = {"replies": answers(system_of(job, Path(home)), Path(job["questions"]))}
        except KgqaError as fault:
            result = {"refused": str(fault)}
        except Exception as fault:  # a defect of the checkout, which is a result too
            result = {"refused": f"{type(fault).__name__}: {fault}"}
        print(json.dumps({"name": job["name"], **result}), flush=True)


if __name__ == "__main__":
    main()
