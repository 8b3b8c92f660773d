"""What each kind of knowledge costs beside its accuracy: length of the text, tokens, money, and lost answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import Experiment, Price
from kgqa_core.metrics.normalise import count_words
from kgqa_core.store.tables import read_frame

FINISHES = ("stop", "length", "refusal", "empty", "error")


def cost(
    answers: Mapping[str, pl.DataFrame],
    knowledge: Mapping[str, Path],
    asked: Collection[str],
    prices: Mapping[str, Price] | None = None,
) -> dict[str, dict[str, Any]]:
    """Experiment → what a question costs on average, over every question asked.

    answers: experiment → its rows.  knowledge: any name → a knowledge artifact; they are matched by the columns
    `retriever` and `format`.  Keys, where they are known: `questions`; means `words` and `characters` of the knowledge
    (0 where a question has none) and `without_knowledge`, questions that have none; means `prompt_tokens` and
    `completion_tokens`, by the answerer's own count; `cost_per_1000`, the money for 1,000 questions were each asked by
    itself, by `prices`, the making of the knowledge not included; `finish`, how many answers ended in which way.
    """
    lengths = _lengths(knowledge, asked)
    found: dict[str, dict[str, Any]] = {}
    for experiment, frame in sorted(answers.items()):
        parsed = Experiment.parse(experiment)
        read = str(parsed.variant), parsed.format
        n = len(asked)
        if not n:
            continue
        entry: dict[str, Any] = {"questions": n}
        if parsed.without_knowledge:
            entry |= {"words": 0.0, "characters": 0.0, "without_knowledge": n}
        elif read in lengths:
            words, characters, empty = lengths[read]
            entry |= {"words": round(words / n, 2), "characters": round(characters / n, 2), "without_knowledge": empty}
        if {"prompt_tokens", "tokens"} <= set(frame.columns):
            prompt, completion = int(frame["prompt_tokens"].sum()), int(frame["tokens"].sum())
            entry |= {"prompt_tokens": round(prompt / n, 2), "completion_tokens": round(completion / n, 2)}
            price = (prices or {}).get(parsed.answerer)
            if price is not None:
                total = (prompt * price.prompt + completion * price.completion) / 1_000_000
                entry["cost_per_1000"] = round(1000 * total / n, 6)
        if "finish" in frame.columns:
            counted = dict(frame["finish"].value_counts().iter_rows())
            entry["finish"] = {name: counted[name] for name in FINISHES if name in counted}
        found[experiment] = entry
    return found


def _lengths(knowledge: Mapping[str, Path], asked: Collection[str]) -> dict[tuple[str, str], tuple[int, int, int]]:
    """(retriever, format) → words and characters of all texts, and number of questions without text."""
    wanted = pl.Series(sorted(asked), dtype=pl.String).implode()
    found: dict[tuple[str, str], tuple[int, int, int]] = {}
    for _, folder in sorted(knowledge.items()):
        frame = read_frame(folder / "knowledge.parquet", ("question", "retriever", "format", "text"))
        frame = frame.filter(pl.col("question").is_in(wanted))
        for (retriever, form), part in frame.group_by("retriever", "format", maintain_order=True):
            texts = [text.strip() for text in part["text"].to_list() if text and text.strip()]
            words, characters = sum(map(count_words, texts)), sum(map(len, texts))
            found[str(retriever), str(form)] = (words, characters, len(asked) - len(texts))
    return found
