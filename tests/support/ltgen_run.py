"""The writing stages of LTGen in a process of their own, as the chaos tests kill them.

`python -m tests.support.ltgen_run KG SAMPLE OUT CACHE BASE_URL CONCURRENCY [LIMIT=NUMBER …]` writes OUT/qa and
OUT/conv and prints their counts as JSON, or `BudgetReached`.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from kgqa_core.config import BudgetOptions, LlmOptions, Price, WritingOptions

MODEL = "openai:stub"
SEED = 7
KINDS = ("qa", "conv")


def llm(base_url: str, concurrency: int = 16, **limits: float) -> LlmOptions:
    """How the writer is asked."""
    return LlmOptions(
        base_url=base_url, concurrency=concurrency, timeout_seconds=4, retries=8, attempts=3,
        prices={MODEL: Price(prompt=1, completion=2)}, budget=BudgetOptions.model_validate(limits),
    )  # fmt: skip


def main() -> None:
    from kgqa_core.builders.ltgen.write import write
    from kgqa_core.errors import BudgetReached
    from kgqa_core.llm.budget import Budget
    from kgqa_core.llm.cache import FILE

    kg, sample, out, cache, base_url, concurrency, *limits = sys.argv[1:]
    given = llm(
        base_url, int(concurrency), **{name: float(value) for name, _, value in (x.partition("=") for x in limits)}
    )
    Path(cache).mkdir(parents=True, exist_ok=True)
    budget = Budget(given.budget, given.prices, Path(cache) / FILE, "ltgen")
    counts: dict[str, Any] = {}
    try:
        for kind in KINDS:
            folder = Path(out) / kind
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            counts[kind] = write(
                folder, kg=Path(kg), sample=Path(sample), kind=kind, options=WritingOptions(writer=MODEL), llm=given,
                seed=SEED, cache=Path(cache), budget=budget.open(kind),
            )  # fmt: skip
    except BudgetReached as reached:
        sys.stdout.write(f"BudgetReached {reached}\n")
        return
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()
