"""The corpus stage in a process of its own, and what the loopback server says to it.

`python -m tests.support.corpus_run FOLDER OUT CACHE BASE_URL SIZE CONCURRENCY [LIMIT=NUMBER …]` makes a corpus from
`FOLDER/{kg,dkg,questions}` and prints its counts as JSON, or `BudgetReached`.

The server's replies need no state: a text tells each triple of T1 in words of its own, and an answer is the gold answer
of the question in T2, read from the file in KGQA_CHAOS_ANSWERS, or a wrong one for one question in eight.
"""

from __future__ import annotations

import json
import os
import sys
from functools import lru_cache
from pathlib import Path
from zlib import crc32

from kgqa_core.config import BudgetOptions, CorpusOptions, LlmOptions, Price
from kgqa_core.prompts import REWRITE

ANSWERS = "KGQA_CHAOS_ANSWERS"
MODEL = "openai:stub"
SEED = 7


def options(size: int) -> CorpusOptions:
    """Teacher and QA model behind the same endpoint."""
    return CorpusOptions(teacher=MODEL, qa_model=MODEL, size=size, most_triples=12, max_new_tokens=400)


def llm(base_url: str, concurrency: int = 16, **limits: float) -> LlmOptions:
    """How they are asked; the tokenizer is the one that the server counts with."""
    return LlmOptions(
        base_url=base_url, concurrency=concurrency, timeout_seconds=4, retries=8, attempts=3,
        prices={MODEL: Price(prompt=1, completion=2)},
        tokenizers={MODEL: "builtin"}, budget=BudgetOptions.model_validate(limits),
    )  # fmt: skip


def tokens(text: str) -> int:
    """Tokens as the server counts them."""
    from kgqa_core.llm.tokens import counter

    count, _ = counter("builtin", LlmOptions())
    return count(text)


@lru_cache(maxsize=1)
def _answers() -> dict[str, str]:
    found: dict[str, str] = json.loads(Path(os.environ[ANSWERS]).read_text(encoding="utf-8"))
    return found


def reply(prompt: str) -> str:
    """What the server's model says."""
    before, after = REWRITE.split("{triples}")
    if prompt.startswith(before):
        chunks = prompt[len(before) : -len(after)].removeprefix("(").removesuffix(")").split(") (")
        parts = [chunk.split(", ", 2) for chunk in chunks]
        return " ".join(f"As for {part[0]}, its {part[1]} happens to be {part[-1]}." for part in parts)
    question = prompt.rpartition(" Question: ")[2].removesuffix(" Answer:")
    return "nobody knows" if crc32(question.encode()) % 8 == 0 else f"It is {_answers()[question]}."


def main() -> None:
    from kgqa_core.errors import BudgetReached
    from kgqa_core.llm.budget import Budget
    from kgqa_core.llm.cache import FILE
    from kgqa_core.rewriting.corpus import generate

    folder, out, cache, base_url, size, concurrency, *limits = sys.argv[1:]
    given = llm(
        base_url,
        int(concurrency),
        **{name: float(value) for name, _, value in (each.partition("=") for each in limits)},
    )
    Path(out).mkdir(parents=True, exist_ok=True)
    Path(cache).mkdir(parents=True, exist_ok=True)
    budget = Budget(given.budget, given.prices, Path(cache) / FILE, "corpus")
    try:
        counts = generate(
            Path(out), kg=Path(folder) / "kg", dkg=Path(folder) / "dkg", questions=Path(folder) / "questions",
            options=options(int(size)), llm=given, seed=SEED, cache=Path(cache), budget=budget,
        )  # fmt: skip
    except BudgetReached as reached:
        sys.stdout.write(f"BudgetReached {reached}\n")
        return
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()
