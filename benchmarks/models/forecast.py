"""How far `kgqa forecast` is from what the run then pays, by the count of a loopback server.

    python -m benchmarks.models.forecast --out benchmarks/results/forecast.json [--profile NAME]

The register of `tests.support.toy` is asked with two profiles, each in a home of its own: one whose rewriter is trained
on a corpus that the server's model writes and reads, and one whose facts that model puts into words.  The model tells a
triple in about twice as many words as the template, answers at some length, and is sometimes no use.  Each profile is
forecast, forecast again after a pilot, and run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

from benchmarks import results_file
from benchmarks.conditions import conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.evaluation.judge import USER
from kgqa_core.prompts import REWRITE
from tests.support import writing_runs
from tests.support.chat_server import ChatServer, Rates
from tests.support.command import kgqa
from tests.support.toy import write_graph, write_questions

FIELDS = (*CONDITIONS, "triples", "questions", "rows/*/...")
MODEL, SEED, PILOT, TRIPLES, QUESTIONS = "openai:stub", 7, 50, 1300, 600
PROFILES = {
    "rewriter trained on a corpus": ("corpus.size=150", "rewriter.epochs=1", "rewriter.max_new_tokens=32"),
    "facts in words of the model": ("rewriter.adapt=false", f"rewriter.base={MODEL}"),
}
SETTINGS = (
    f"corpus.teacher={MODEL}", f"corpus.qa_model={MODEL}", f"evaluation.judge={MODEL}", f"answering.answerer={MODEL}",
    "answering.knowledge=[none, oracle/triples, oracle/rewritten]", "retrieval.retrievers=[oracle]", "llm.attempts=3",
    f"llm.tokenizers={{{MODEL}: builtin}}",
)  # fmt: skip


def reply(prompt: str) -> str:
    """What the model says, from the prompt alone."""
    if prompt.startswith(REWRITE.split("{triples}")[0]):
        return writing_runs.reply(prompt)
    if prompt.startswith(USER.partition("{")[0]):
        return "Yes." if crc32(prompt.encode()) % 2 else "No, it does not."
    if crc32(prompt.encode()) % 8 == 0:
        return "Nobody knows."
    told = prompt.rpartition(" happens to be ")[2].partition(". Question: ")[0]  # the tail of the last triple
    return f"It is {told}." if told != prompt else f"It is number {crc32(prompt.encode()) % 100}."


def sums(plans: Sequence[dict[str, Any]], end: str = "") -> tuple[int, int]:
    """Calls and tokens at the endpoint of all plans, or of an end of their ranges."""
    parts = [(end and plan[end]) or plan for plan in plans if plan["model"] == MODEL]
    return (
        sum(part["calls"] for part in parts),
        sum(part["prompt_tokens"] + part["completion_tokens"] for part in parts),
    )


def measure(name: str, folder: Path) -> list[dict[str, Any]]:
    """One profile: what each forecast says and what is paid after it."""
    triples = write_graph(folder / "register.tsv", TRIPLES)
    write_questions(folder / "asked.jsonl", triples, QUESTIONS)
    rates = Rates(empty=0.03, nonsense=0.03)
    with ChatServer(reply, rates=rates, seed=SEED, keep=False, tokens=writing_runs.tokens) as server:
        settings = (*SETTINGS, *PROFILES[name], f"llm.base_url={server.base_url}")

        def command(*words: str) -> Any:
            outcome = kgqa(
                *words, "--kg", folder / "register.tsv", "--questions", folder / "asked.jsonl", "--home",
                folder / "home", "--json", *[word for setting in settings for word in ("--set", setting)],
                env={"OPENAI_API_KEY": "none"},
            )  # fmt: skip
            if outcome.code:
                raise SystemExit(outcome.err[-4000:])
            return outcome.json

        def paid() -> tuple[int, int]:
            counted = server.stats()
            return counted["answered"], counted["prompt_tokens"] + counted["completion_tokens"]

        cold = command("forecast")["stages"]
        warm = command("forecast", "--pilot", str(PILOT))["stages"]
        piloted = paid()
        command("run")
        whole = paid()
    rest = whole[0] - piloted[0], whole[1] - piloted[1]
    rows = []
    for when, plans, real in (("without a pilot", cold, whole), (f"after a pilot of {PILOT}", warm, rest)):
        row: dict[str, Any] = {"profile": name, "when": when}
        for place, what in enumerate(("calls", "tokens")):
            said, low, high = (sums(plans, end)[place] for end in ("", "low", "high"))
            error = round(said / real[place] - 1, 4)
            row[what] = {"forecast": said, "low": low, "high": high, "paid": real[place], "error": error}
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--profile", choices=PROFILES, action="append")
    given = parser.parse_args()
    rows = []
    for name in given.profile or PROFILES:
        with TemporaryDirectory() as folder:
            rows += measure(name, Path(folder))
        print(json.dumps(rows[-2:]), flush=True)
    document = {"conditions": conditions(SEED), "triples": TRIPLES, "questions": QUESTIONS, "rows": rows}
    results_file.write(given.out, document, FIELDS)


if __name__ == "__main__":
    main()
