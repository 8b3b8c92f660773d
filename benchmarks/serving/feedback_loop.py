"""The loop from a wrong answer to a right one, against a real server: a transcript and its scores.

    python -m benchmarks.serving.feedback_loop --work DIR [--json benchmarks/results/feedback_loop.json]
        [--out benchmarks/results/feedback_loop.md]

The graph is the 200 lines of benchmarks.answers.graph_alone (invented names).  `kgqa run --kg` makes the system; `kgqa
serve` answers; three answers in one wording are corrected over HTTP and confirmed; `kgqa refresh` trains with two of
them beside the questions made from the graph, and the third is held out; the champion rule decides; the server follows,
and is asked again: the corrected questions, the same wording about other companies (never corrected), and questions
that were right before.  Commands are processes of their own.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import RESULTS, conditions
from benchmarks.kgqa_command import kgqa, kgqa_json
from benchmarks.results_file import CONDITIONS
from tests.support.kgqa_serve import Running, served
from tests.support.toy import write_graph

FIELDS = (*CONDITIONS, "runs/...", "asked/...", "refresh/...", "scores/...", "seconds/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED, LINES = 7, 200
CORRECTED = 3
"""Companies about which the wording below is corrected."""
LIKE = "in which region is the seat of {}"
OTHERS = 8
"""Companies about which the same is asked without a correction."""
BEFORE = (
    ("who started Gekobo Ltd", ("Tasafu Molo",)), ("which companies did Biba Suma set up?", ("Bubofa Ltd", "Vimo Ltd")),
    ("how many towns are there in Budi?", ("6",)), ("who is the mayor of Mevetu", ()), ("who founded Acme Ltd?", ()),
)  # fmt: skip
"""Questions with their answers, none where the graph has none; most are right before."""


def companies(path: Path) -> dict[str, str]:
    """Company → region of its town, as the lines of the graph say."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    based = {head: tail for head, relation, tail, *_ in rows if relation == "based_in"}
    region = {head: tail for head, relation, tail, *_ in rows if relation == "located_in"}
    return {company: region[town] for company, town in sorted(based.items()) if town in region}


def answers(server: Running, questions: Sequence[tuple[str, tuple[str, ...]]]) -> list[dict[str, Any]]:
    """What the server says of questions, and whether it is exactly right."""
    found = []
    for text, gold in questions:
        reply = server.call("/ask", {"question": text})
        found.append(
            {
                "question": text, "gold": list(gold), "answers": reply["answers"],
                "confidence": reply.get("confidence"),
                "form": reply.get("form"), "why": reply.get("reason"), "run": reply["run"],
                "right": sorted(reply["answers"]) == sorted(gold),
            }
        )  # fmt: skip
    return found


def transcript(found: dict[str, Any]) -> str:
    """The loop in Markdown."""
    said = found["conditions"]
    lines = [
        "# Wrong answers, three corrections, a refresh, right answers", "",
        f"Commit {said['commit']}, {said['date']}, {said['cores']} cores, threads of a process: {said['threads']}, "
        f"seed {said['seed']}. 200 lines of invented companies and towns; by `benchmarks/serving/feedback_loop.py`.",
        "",
        "```console", "$ kgqa run --kg graph.tsv", f"… {found['seconds']['run']:,.0f} s, run {found['runs']['before']}",
        "$ kgqa serve &", *_shown(found["asked"]["before"]),
    ]  # fmt: skip
    for number, row in enumerate(found["asked"]["before"][:CORRECTED], start=1):
        body = {"answer_id": "…", "verdict": "down", "correction": row["gold"]}
        lines += [f"$ curl -X POST …/feedback -d '{json.dumps(body)}'", f"$ kgqa feedback confirm {number}"]
    lines += [
        "$ kgqa refresh --kg graph.tsv", f"… {found['seconds']['refresh']:,.0f} s, run {found['runs']['after']}: "
        f"{found['refresh']['why']}; {found['refresh']['champion']}",
        f"… the server follows within {found['seconds']['swap']:.1f} s", *_shown(found["asked"]["after"]), "```", "",
        "| | before | after |", "|---|--:|--:|",
    ]  # fmt: skip
    for name, row in found["scores"].items():
        lines.append(f"| {name} | {row['before']} | {row['after']} |")
    return "\n".join(lines) + "\n"


def _shown(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = []
    for row in rows:
        answer = ", ".join(row["answers"]) or f"(not in this graph: {row['why']})"
        lines += [f"$ kgqa ask {row['question']!r}", f"{answer}   {'right' if row['right'] else 'WRONG'}"]
    return lines


def main() -> None:
    """Runs the loop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", type=Path, default=RESULTS / "feedback_loop.json")
    parser.add_argument("--out", type=Path, default=RESULTS / "feedback_loop.md")
    given = parser.parse_args()
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    home, graph = work / "home", work / "graph.tsv"
    write_graph(graph, LINES)
    where = companies(graph)
    like = [(LIKE.format(name), (where[name],)) for name in list(where)[: CORRECTED + OTHERS]]
    groups = {
        "the corrected questions, the third of them held out": like[:CORRECTED],
        "the same about other companies": like[CORRECTED:],
        "others": list(BEFORE),
    }
    settings = [word for one in given.set for word in ("--set", one)]
    run, run_seconds = kgqa_json("run", "--kg", str(graph), *settings, home=home)
    with served(home) as server:
        before = {name: answers(server, rows) for name, rows in groups.items()}
        for question, right in like[:CORRECTED]:
            name = server.call("/ask", {"question": question})["answer_id"]
            kept = server.call("/feedback", {"answer_id": name, "verdict": "down", "correction": list(right)})
            kgqa("feedback", "confirm", str(kept["id"]), home=home)
        refreshed, refresh_seconds = kgqa_json("refresh", "--kg", str(graph), *settings, home=home)
        began = time.perf_counter()
        while server.call("/ready")["run"] != refreshed["run_id"] and time.perf_counter() - began < 60:
            time.sleep(0.2)
        swap_seconds = time.perf_counter() - began
        after = {name: answers(server, rows) for name, rows in groups.items()}
    found = {
        "conditions": conditions(SEED),
        "runs": {"before": run["run_id"], "after": refreshed["run_id"]},
        "asked": {"before": sum(before.values(), []), "after": sum(after.values(), [])},
        "refresh": {
            "why": refreshed["refresh"]["why"],
            "champion": (refreshed.get("champion") or {}).get("why", ""),
        },
        "scores": {
            name: {
                when: f"{sum(row['right'] for row in rows[name])} of {len(rows[name])}"
                for when, rows in (("before", before), ("after", after))
            }
            for name in groups
        },
        "seconds": {"run": round(run_seconds, 1), "refresh": round(refresh_seconds, 1), "swap": round(swap_seconds, 1)},
    }
    results_file.write(given.json, found, FIELDS)
    given.out.write_text(transcript(found), encoding="utf-8")
    print(json.dumps(found["scores"], indent=1))


if __name__ == "__main__":
    main()
