"""Stages that let a model write, in a process of their own that tests kill, and what the loopback server says to one.

`python -m tests.support.writing_runs corpus FOLDER OUT CACHE BASE_URL SIZE CONCURRENCY [LIMIT=NUMBER …]` makes a corpus
from `FOLDER/{kg,dkg,questions}`; `… ltgen KG SAMPLE OUT CACHE BASE_URL CONCURRENCY [LIMIT=NUMBER …]` writes OUT/qa and
OUT/conv.  Both print counts as JSON, or `BudgetReached`.

The server's replies for a corpus need no state: a text tells each triple of T1 in words of its own, and an answer is
the gold answer of the question in T2, by the file in KGQA_CHAOS_ANSWERS, or a wrong one for one question in eight.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

from kgqa_core.config import (
    BudgetOptions,
    CorpusOptions,
    KgOptions,
    LlmOptions,
    Price,
    QuestionsOptions,
    WritingOptions,
)
from kgqa_core.prompts import REWRITE
from kgqa_core.workspace import Workspace
from tests.support.chat_server import ServerProcess
from tests.support.command import ROOT

ANSWERS = "KGQA_CHAOS_ANSWERS"
MODEL = "openai:stub"
SEED = 7
KINDS = ("qa", "conv")


def make_atlas(folder: Path, train: int, test: int) -> Path:
    """`folder/{kg,dkg,questions}` of the bundled graph, with so many questions for training and test."""
    from kgqa_core.datasets.files.question import read_questions, write_questions
    from kgqa_core.datasets.load import load
    from kgqa_core.dkg.export import export
    from kgqa_core.kg.build import build

    for part in ("kg", "dkg", "all", "questions", "work"):
        (folder / part).mkdir()
    build(Workspace(folder / "kg", folder / "work"), options=KgOptions(files=("bundled:atlas",)))
    export(Workspace(folder / "dkg"), kg=folder / "kg")
    load(Workspace(folder / "all"), kg=folder / "kg", options=QuestionsOptions(source="atlas"), seed=7)
    everything = read_questions(folder / "all")
    draw = random.Random(3)
    chosen = draw.sample([question for question in everything if question.split == "train"], train)
    chosen += draw.sample([question for question in everything if question.split == "test"], test)
    write_questions(folder / "questions", chosen)
    return folder


def options(size: int) -> CorpusOptions:
    """Teacher and QA model behind the same endpoint."""
    return CorpusOptions(teacher=MODEL, qa_model=MODEL, size=size, max_triples=12, max_new_tokens=400)


def llm(base_url: str, concurrency: int = 16, tokenizer: str | None = "builtin", **limits: float) -> LlmOptions:
    """How models are asked.  tokenizer: the one that the server of a corpus counts with."""
    return LlmOptions(
        base_url=base_url, concurrency=concurrency, timeout_seconds=4, retries=8, attempts=3,
        prices={MODEL: Price(prompt=1, completion=2)},
        tokenizers={MODEL: tokenizer} if tokenizer else {}, budget=BudgetOptions.model_validate(limits),
    )  # fmt: skip


def tokens(text: str) -> int:
    """Tokens as the server counts them."""
    from kgqa_core.llm.tokens import counter

    count, _ = counter("builtin", LlmOptions())
    return count(text)


@lru_cache(maxsize=1)
def _answers() -> dict[str, str]:
    answers: dict[str, str] = json.loads(Path(os.environ[ANSWERS]).read_text(encoding="utf-8"))
    return answers


def reply(prompt: str) -> str:
    """What the server's model says."""
    before, after = REWRITE.split("{triples}")
    if prompt.startswith(before):
        chunks = prompt[len(before) : -len(after)].removeprefix("(").removesuffix(")").split(") (")
        parts = [chunk.split(", ", 2) for chunk in chunks]
        return " ".join(f"As for {part[0]}, its {part[1]} happens to be {part[-1]}." for part in parts)
    question = prompt.rpartition(" Question: ")[2].removesuffix(" Answer:")
    return "nobody knows" if crc32(question.encode()) % 8 == 0 else f"It is {_answers()[question]}."


def start(stage: str, words: Sequence[object], **limits: float) -> subprocess.Popen[str]:
    """The stage in a process of its own.  words: what follows its name in the command, limits aside."""
    command = [sys.executable, "-m", __name__, stage, *words, *(f"{name}={value}" for name, value in limits.items())]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([str(word) for word in command], env=environment, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    """The last line that a process prints, once it has ended well."""
    out, _ = process.communicate(timeout=900)
    assert process.returncode == 0
    return out.strip().splitlines()[-1]


def kill(process: subprocess.Popen[str], server: ServerProcess, requests: int | None, seconds: float = 0.0) -> bool:
    """Kills a process when it has sent so many more requests, or (None) so long after its start.

    Returns False when it had ended before.
    """
    before = server.stats()["requests"]
    if requests is None:
        time.sleep(seconds)
    while requests is not None and process.poll() is None and server.stats()["requests"] <= before + requests:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


def write_corpus(folder: Path, size: int, out: Path, given: LlmOptions, cache: Path, budget: Any) -> dict[str, Any]:
    """The corpus in `out`; its counts."""
    from kgqa_core.rewriting.corpus import generate

    out.mkdir(parents=True, exist_ok=True)
    return generate(
        Workspace(out, cache=cache, budget=budget),
        kg=folder / "kg",
        dkg=folder / "dkg",
        questions=folder / "questions",
        options=options(size),
        llm=given,
        seed=SEED,
    )


def write_ltgen(kg: Path, sample: Path, out: Path, given: LlmOptions, cache: Path, budget: Any) -> dict[str, Any]:
    """Both kinds of items in `out`; the counts of each."""
    from kgqa_core.papers.ltgen.write import write

    counts = {}
    for kind in KINDS:
        folder = out / kind
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        counts[kind] = write(
            Workspace(folder, cache=cache, budget=budget.open(kind)),
            kg=kg,
            sample=sample,
            kind=kind,
            options=WritingOptions(writer=MODEL),
            llm=given,
            seed=SEED,
        )
    return counts


def main() -> None:
    from kgqa_core.errors import BudgetReached
    from kgqa_core.llm.budget import Budget
    from kgqa_core.llm.cache import FILE

    stage, *words = sys.argv[1:]
    if stage == "corpus":
        folder, out, cache, base_url, size, concurrency, *limits = words
    else:
        kg, sample, out, cache, base_url, concurrency, *limits = words
    named = {name: float(value) for name, _, value in (each.partition("=") for each in limits)}
    given = llm(base_url, int(concurrency), "builtin" if stage == "corpus" else None, **named)
    Path(cache).mkdir(parents=True, exist_ok=True)
    budget = Budget(given.budget, given.prices, Path(cache) / FILE, stage)
    try:
        if stage == "corpus":
            counts = write_corpus(Path(folder), int(size), Path(out), given, Path(cache), budget)
        else:
            counts = write_ltgen(Path(kg), Path(sample), Path(out), given, Path(cache), budget)
    except BudgetReached as reached:
        sys.stdout.write(f"BudgetReached {reached}\n")
        return
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()
