"""Answers the questions of small graphs, each with a system made of its files, and counts wrong answers by confidence.

    python -m benchmarks.answers.cases CASES --work DIR [--only NAME …] [--root CHECKOUT] [--without-thesaurus] …
    python -m benchmarks.answers.cases --ask QUESTIONS=HOME … --work DIR [--root CHECKOUT] [--queue COMMAND]
        [--out FILE]

CASES has a folder for each graph: its files, `questions.jsonl` and `case.md`, whose first command that names a file
says with which settings it is read.  The packaged head start answers at once, as `kgqa ask --kg FILES` does; of a graph
that is refused the message is the result.  --ask: answers question files with finished homes in place of these.
Answers stay in DIR/COMMIT and are not asked for again; judged.json there has each question with its verdict.  --root: a
checkout whose code runs.  --queue: a command that each process is given to, such as one that waits for its turn on the
machine; a process begins no further graph after --seconds.  --without-thesaurus: each graph is read and answered
without the entries of the thesaurus that match its relations (benchmarks/answers/thesaurus.py), in homes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.answers.people import normal
from benchmarks.conditions import ROOT, conditions
from benchmarks.results_file import CONDITIONS

FIELDS = (*CONDITIONS, "benchmark", "thesaurus", "total/...", "graphs/*/refused", "graphs/*/counts/...")
"""What the result file holds (benchmarks/results_file.py)."""

APART = {
    "16-node-link-json": {"node_link.json": "12", "edges_key.json": "3", "cytoscape.json": "4"},
    "19-encodings": {"utf16.tsv": "1", "latin1.tsv": "2"},
    "20-xlsx-and-zip": {"facts.xlsx": "12", "tables.zip": "1"},
    "34-odd-shapes": {"literals.nt": "123", "loops.tsv": "456"},
    "39-ragged-rows": {"orders.csv": ""},
    "40-spo-csv": {"with_header.csv": "123", "no_header.csv": "4", "header.tsv": "5"},
    "services": {"services.csv": "", "services.ttl": "", "services.graphml": ""},
    "real-northwind": {"converted.ttl": ""},
    "real-pizza": {"pizza.nt": ""},
}
"""Files that are graphs of their own, and the last signs of the ids of their questions; all where there is none."""
SURE = (0.5, 0.8)
SECONDS = 120
SHOWN = 10
"""Answers of a question in the result file."""


def jobs_of(folder: Path, work: Path) -> list[dict[str, Any]]:
    """The graphs of a folder: names, files, settings, and question files, which are written into `work`."""
    text, rows = (folder / "case.md").read_text(encoding="utf-8"), rows_of(folder / "questions.jsonl")
    files = sorted(path for path in folder.iterdir() if path.name not in ("case.md", "questions.jsonl"))
    jobs = []
    for name, ends in APART.get(folder.name, {"": ""}).items():
        group = [folder / name] if name else files
        lines = [line for line in text.splitlines() if line.startswith("kgqa ") and group[0].name in line]
        words = shlex.split(lines[0].partition(" #")[0].partition(";")[0]) if lines else []
        settings = [f"kg.{word}" for flag, word in zip(words, words[1:], strict=False) if flag == "--set"]
        title = "/".join(filter(None, (folder.name, name)))
        questions = work / f"{title.replace('/', '-')}.jsonl"
        chosen = [row for row in rows if not ends or row["id"][-1] in ends]
        questions.write_text("".join(json.dumps(row) + "\n" for row in chosen), encoding="utf-8")
        jobs.append(
            {"name": title, "files": [*map(str, group)], "settings": settings, "questions": str(questions)}
        )  # fmt: skip
    return jobs


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def run(
    jobs: Sequence[dict[str, Any]], work: Path, root: Path, queue: Sequence[str], seconds: float
) -> dict[str, dict[str, Any]]:
    """The answers to each job by its name, from processes that run the code of a checkout.

    Raises SystemExit where a process gives none.
    """
    record = work / "answers.jsonl"
    while True:
        results = {row.pop("name"): row for row in (rows_of(record) if record.is_file() else [])}
        left = [job for job in jobs if job["name"] not in results]
        if not left:
            return results
        (work / "jobs.json").write_text(json.dumps(left), encoding="utf-8")
        words = [str(Path(__file__).parent / "case_systems.py"), "jobs.json", "home", str(seconds)]
        with (work / "log").open("a", encoding="utf-8") as log:
            done = subprocess.run(
                [*queue, sys.executable, *words], env=os.environ | {"PYTHONPATH": str(root)}, cwd=work, stderr=log,
                stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False,
            )  # fmt: skip
        if not done.stdout.strip():
            raise SystemExit(f"no answers to {left[0]['name']}; the log is {work / 'log'}")
        with record.open("a", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in done.stdout.splitlines() if line.startswith("{"))


def judged(row: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
    """A question with its answer and what that is: exact, wrong, or rightly or wrongly declined."""
    answerable = row.get("answerable", True)
    verdict = "declined wrongly" if answerable else "declined rightly"
    if reply["answers"]:
        good = joined(reply["answers"]) == joined(row["answers"]) or reply["form"] == row.get("s_expression", "")
        verdict = "exact" if answerable and good else "wrong"  # of more than 200 answers the form alone can be compared
    style = {"style": row["style"]} if "style" in row else {}
    shown = {"gold": row["answers"][:SHOWN], "answers": reply["answers"][:SHOWN]}
    return {"question": row["question"], "verdict": verdict, **style, **reply, **shown}


def joined(answers: Sequence[str]) -> set[str]:
    """Answers as `normal` has them, their words together: keys such as `MeatTopping` are shown as words."""
    return {re.sub(r"(?<=[^\W\d])[ -]+(?=[^\W\d])", "", answer).replace(" ", "") for answer in normal(answers)}


def counts(questions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Questions by verdict, and the wrong answers whose confidence is above SURE or that have none."""
    verdicts = Counter(row["verdict"] for row in questions)
    wrong = [row["confidence"] for row in questions if row["verdict"] == "wrong"]
    above = {f"wrong above {least}": sum(sure is not None and sure > least for sure in wrong) for least in SURE}
    names = ("exact", "declined rightly", "declined wrongly", "wrong", "refused")
    return {"questions": len(questions), **{name: verdicts[name] for name in names}, **above,
            "wrong without confidence": wrong.count(None)}  # fmt: skip


def result(job: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
    """The questions of a job with their answers, and their counts; the message of a graph that was refused."""
    rows, refused = rows_of(Path(job["questions"])), reply.get("refused")
    if refused is None:
        asked = [judged(*pair) for pair in zip(rows, reply["replies"], strict=True)]
    else:
        refused = refused.replace(str(Path(job["files"][0]).parent), ".") if "files" in job else refused
        asked = [{"id": row["id"], "question": row["question"], "verdict": "refused"} for row in rows]
    return {"refused": refused, "counts": counts(asked), "questions": asked}


def main() -> None:
    """Reads the command line, answers, counts and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, nargs="?")
    parser.add_argument("--ask", nargs="+", default=(), metavar="QUESTIONS=HOME")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=())
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--queue", type=shlex.split, default=())
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--without-thesaurus", action="store_true")
    given = parser.parse_args()
    root = given.root.resolve()
    made = conditions(7, root)
    work = given.work.resolve() / (made["commit"][:7] + ("-without" if given.without_thesaurus else ""))
    work.mkdir(parents=True, exist_ok=True)
    jobs: list[dict[str, Any]] = []
    for folder in sorted(path for path in given.cases.resolve().iterdir() if path.is_dir()) if given.cases else ():
        jobs += jobs_of(folder, work) if not given.only or folder.name in given.only else ()
    for questions, _, home in (pair.partition("=") for pair in given.ask):
        name = "/".join((*Path(questions).with_suffix("").parts[-2:], Path(home).name))
        jobs.append({"name": name, "questions": str(Path(questions).resolve()), "home": str(Path(home).resolve())})
    for job in jobs:
        job["without_thesaurus"] = given.without_thesaurus
    answered = run(jobs, work, root, given.queue, given.seconds)
    graphs = {job["name"]: result(job, answered[job["name"]]) for job in jobs}
    total = counts([row for graph in graphs.values() for row in graph["questions"]])
    (work / "judged.json").write_text(json.dumps(graphs, indent=1), encoding="utf-8")
    if given.out is not None:
        kept = {name: {key: graph[key] for key in ("refused", "counts")} for name, graph in graphs.items()}
        told = "without the entries of the graph" if given.without_thesaurus else "whole"
        whole = {"benchmark": "cases", "conditions": made, "thesaurus": told, "total": total, "graphs": kept}
        results_file.write(given.out, whole, FIELDS)
    for name, graph in graphs.items():
        print(name, graph["refused"] or graph["counts"])
    print("all", total)


if __name__ == "__main__":
    main()
