"""Dry runs of the papers' reproductions: what `kgqa forecast` says of each, on the data that is here.

    python -m benchmarks.papers.dry_runs --work DIR [--json OUT] [--transcript FILE]

Nothing is sent: the models are endpoints that nobody answers at.  Of Sen et al. the made part of the four sets
(`tests.support.sen_published`), of RRA ZJQA with a corpus that a teacher writes anew, of LTGen a benchmark that rules
write over `wikidata_mini`, 20 entities a level of its degree, with REBEL's abstracts as passages.  So the numbers say
what these commands would ask on these data; on the papers' own they are what the same command says there.
GrailQAbility asks no model: its parsers are trained, and its row has the command alone.

The transcript has each command with what it printed.  memory_mb: largest resident set of the command.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import DATA, commit_name, conditions
from benchmarks.results_file import CONDITIONS
from tests.support.sen_published import write_sen_data

FIELDS = (*CONDITIONS, "runs/*/command", "runs/*/memory_mb", "runs/*/stages/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
MODEL = "openai:MODEL"
ENDPOINT = ("llm.base_url=http://127.0.0.1:9/v1", "llm.retries=0")
GRAPH = tuple(str(DATA / "wikidata_mini" / name) for name in ("triples.tsv", "labels.en.tsv", "qualifiers.tsv"))
SHOWN = ("stage", "model", "calls", "prompt_tokens", "completion_tokens", "seconds", "assumptions")


def kgqa(words: Sequence[str], settings: Sequence[str], home: Path) -> tuple[str, str, float]:
    """Standard output, what was printed for people, and the largest resident set in MB.  Raises SystemExit."""
    given = [*words, *(word for setting in settings for word in ("--set", setting)), "--home", str(home), "--json"]
    environment = {**os.environ, "OPENAI_API_KEY": "none", "COLUMNS": "120"}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", *given], stdout=out, stderr=printed, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        texts = [(stream.seek(0), stream.read())[1] for stream in (out, printed)]
    if status:
        raise SystemExit(f"{' '.join(given)} ended with {os.waitstatus_to_exitcode(status)}\n{texts[1][-3000:]}")
    return texts[0], texts[1], usage.ru_maxrss / 1024


def plans(work: Path) -> dict[str, tuple[list[str], list[str]]]:
    """Words and settings of each dry run; makes what they read."""
    sen = write_sen_data(DATA, work / "sen", 24)
    ltgen = work / "ltgen"
    if not ltgen.exists():
        files = [word for file in GRAPH for word in ("--kg", file)]
        build = ["ltgen", "build", *files, "--writer", "template", "--out", str(ltgen)]
        kgqa(build, ["ltgen.sampling.per_level=20"], work / "home")
    models = [*ENDPOINT, f"answering.answerers=[{MODEL}]"]
    return {
        "sen-published": (
            ["forecast", "--profile", "sen-published", "--kg", str(sen.graph)],
            [*sen.settings, "questions.webquestions.dev_size=6", "rigel.encoder=scratch", "rigel.scratch_width=16",
             "rigel.batch_size=4", *models],
        ),
        "zjqa-rra-published": (
            ["forecast", "--profile", "zjqa-rra-published"],
            ["retrieval.retrievers=[hop_path]", "answering.knowledge=[none, hop_path, hop_path/rewritten]",
             "hop_path.max_steps=5000", "corpus.alpaca_file=null", f"corpus.teacher={MODEL}",
             f"corpus.qa_model={MODEL}", *models],
        ),
        "ltgen-published": (
            ["forecast", "--profile", "ltgen-published", *(word for file in GRAPH for word in ("--kg", file))],
            [*(f"questions.ltgen-{kind}.path={ltgen}/{kind}/questions.jsonl" for kind in ("qa", "conv")),
             f"passages.corpus={DATA / 'passages' / 'rebel_sample.jsonl'}", "passages.fields={id: docid}",
             "passages.retriever=bm25", f"relation_ranking.model={MODEL}", "evaluation.nli=null", *models],
        ),
    }  # fmt: skip


def tables(found: dict[str, Any]) -> str:
    """The table of the page: a row for each stage of each run that costs something."""
    lines = ["| profile | stage | calls | tokens in, out | hours |", "|---|---|--:|--:|--:|"]
    for name, run in found["runs"].items():
        for stage in run["stages"]:
            if stage["calls"] or stage["seconds"]:
                tokens = f"{stage['prompt_tokens']:,}, {stage['completion_tokens']:,}" if stage["calls"] else "–"
                hours = f"{(stage['seconds'] or 0) / 3600:.2f}"
                lines.append(f"| `{name}` | {stage['stage']} | {stage['calls'] or '–'} | {tokens} | {hours} |")
    made = found["conditions"]
    memory = ", ".join(f"{run['memory_mb']:,} MB (`{name}`)" for name, run in found["runs"].items())
    note = f"Largest resident set of the forecasts: {memory}. Seed {made['seed']}, "
    return "\n".join([*lines, "", f"{note}commit {commit_name(made['commit'])}, {made['date']}."]) + "\n"


def main() -> None:
    """Plans and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--transcript", type=Path)
    options = parser.parse_args()
    work: Path = options.work.resolve()
    made: dict[str, Any] = {"conditions": conditions(SEED), "runs": {}}
    texts = []
    for name, (words, settings) in plans(work).items():
        out, printed, memory = kgqa(words, settings, work / "home")
        command = " ".join(["kgqa", *words, *(f"--set '{setting}'" for setting in settings)])
        command = command.replace(str(DATA), "DATA").replace(str(work), "WORK")
        stages = json.loads(out.splitlines()[-1])["stages"]
        rows = [{key: stage[key] for key in SHOWN} for stage in stages]
        made["runs"][name] = {"command": command, "memory_mb": round(memory), "stages": rows}
        table = printed[max(0, printed.find("┏")) :] if "┏" in printed else printed
        texts.append(f"$ {command}\n{table.replace(str(DATA), 'DATA').replace(str(work), 'WORK')}")
    if options.transcript:
        options.transcript.write_text("\n".join(texts), encoding="utf-8")
    if options.json:
        results_file.write(options.json, made, FIELDS)
    else:
        print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
