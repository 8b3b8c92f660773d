"""The table of a KG-to-Text corpus: its columns, verdicts on texts, dev split, acceptance, and how it is written."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import CorpusOptions, Price
from kgqa_core.errors import StorageError

KEPT = "kept"
WRONG = "QA wrong"
QA_FAILED = "QA failed"
SPARE = "spare"
"""Verdict of an accepted text that was not needed, since a better candidate was kept."""
IN_DEV = "in dev"
"""Verdict of an imported training pair whose graph is in the dev file."""

IMPORTED = "imported"

CORPUS: dict[str, pl.DataType] = {
    "pair": pl.String(),
    "question": pl.String(),
    "relation_path": pl.String(),
    "hops": pl.Int32(),
    "triples": pl.List(pl.Int64()),
    "triple_text": pl.String(),
    "named": pl.List(pl.List(pl.String())),
    "language": pl.String(),
    "instruction": pl.String(),
    "text": pl.String(),
    "verdict": pl.String(),
    "qa_answer": pl.String(),
    "candidate": pl.Int32(),
    "faithfulness": pl.Float64(),
    "spent": pl.List(pl.String()),
    "split": pl.String(),
    "teacher": pl.String(),
    "qa_model": pl.String(),
    "source": pl.String(),
    "teacher_prompt_tokens": pl.Int64(),
    "teacher_tokens": pl.Int64(),
    "qa_prompt_tokens": pl.Int64(),
    "qa_tokens": pl.Int64(),
}
"""Columns of corpus.parquet.

pair: digest of instruction and text, which rows of different questions may share.  triples: ids, named: (head,
relation, tail) by name; both in the order of triple_text.  spent: reasons of rejected attempts.  split: `train` or
`dev` by graph; null for rows that were not kept, and for a pair that an earlier row has, so that training sees it once.
source: file and row of an imported pair.  The teacher's tokens stand in the first row of a text that several questions
share; those of rejected attempts are only in the response cache.
"""

ACCEPTANCE: dict[str, pl.DataType] = {
    "relation_path": pl.String(),
    "hops": pl.Int32(),
    "asked": pl.Int64(),
    "kept": pl.Int64(),
    "acceptance": pl.Float64(),
    "rejected": pl.String(),
    "teacher_tokens": pl.Int64(),
    "qa_tokens": pl.Int64(),
}
"""Columns of acceptance.parquet: questions asked and kept by relation path; `rejected` counts rejected texts by reason,
as JSON; tokens are of prompts and completions together."""


def pair_digest(prompt: str, text: str) -> str:
    """First 16 hexadecimal digits of the SHA-256 of an instruction and a text."""
    return hashlib.sha256(f"{prompt}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def split_dev(rows: Sequence[dict[str, Any]], identities: Sequence[str], share: float, seed: int) -> None:
    """Puts the kept rows of a seeded share of the graphs into dev; at least one graph where there are two.

    identities: of each row's graph, in the order of the rows.
    """
    kept = [(row, identity) for row, identity in zip(rows, identities, strict=True) if row["verdict"] == KEPT]
    graphs = sorted(
        {identity for _, identity in kept},
        key=lambda identity: hashlib.sha256(f"dev/{seed}/{identity}".encode()).digest(),
    )
    number = min(max(1, round(share * len(graphs))), len(graphs) - 1) if graphs else 0
    dev = set(graphs[:number])
    seen: set[str] = set()
    for row, identity in kept:
        if row["pair"] not in seen:
            row["split"] = "dev" if identity in dev else "train"
        seen.add(row["pair"])


def acceptance(corpus: pl.DataFrame) -> pl.DataFrame:
    """Questions asked and kept by relation path, with the reasons of rejected texts and the tokens spent."""
    rows = []
    generated = corpus.filter(pl.col("question").is_not_null())
    for (path, hops), part in generated.group_by("relation_path", "hops", maintain_order=True):
        questions = part["question"].n_unique()
        kept = part.filter(pl.col("verdict") == KEPT)["question"].n_unique()
        reasons = Counter(verdict for verdict in part["verdict"] if verdict not in (KEPT, SPARE))
        tokens = [_sum(part, f"{who}_prompt_tokens", f"{who}_tokens") for who in ("teacher", "qa")]
        rejected = json.dumps(dict(sorted(reasons.items())), ensure_ascii=False)
        rows.append((path, hops, questions, kept, round(kept / questions, 6), rejected, *tokens))
    return pl.DataFrame(rows, schema=ACCEPTANCE, orient="row").sort("hops", "relation_path")


def count(corpus: pl.DataFrame, table: pl.DataFrame) -> dict[str, Any]:
    """Totals of a generated corpus for the manifest.  table: its `acceptance`."""
    asked, kept = int(table["asked"].sum()), int(table["kept"].sum())
    rejected = Counter(verdict for verdict in corpus["verdict"] if verdict not in (KEPT, SPARE))
    by_hops = {
        str(hops): {"asked": int(part["asked"].sum()), "kept": int(part["kept"].sum())}
        for (hops,), part in table.group_by("hops", maintain_order=True)
    }
    good = corpus.filter(pl.col("verdict") == KEPT)
    return {
        "asked": asked,
        "kept": kept,
        "acceptance": round(kept / asked, 6) if asked else 0.0,
        **{f"rejected_{reason}": number for reason, number in sorted(rejected.items())},
        "spare": int((corpus["verdict"] == SPARE).sum()),
        "spent_attempts": int(corpus["spent"].list.len().sum()),
        "pairs": good["pair"].n_unique(),
        "train": int((good["split"] == "train").sum()),
        "dev": int((good["split"] == "dev").sum()),
        "by_hops": by_hops,
        "prompt_tokens": _sum(corpus, "teacher_prompt_tokens", "qa_prompt_tokens"),
        "completion_tokens": _sum(corpus, "teacher_tokens", "qa_tokens"),
    }


def write_tables(out: Path, frame: pl.DataFrame, table: pl.DataFrame, meta: Mapping[str, Any]) -> None:
    """Writes corpus.parquet, acceptance.parquet and meta.json.  Raises StorageError."""
    try:
        frame.write_parquet(out / "corpus.parquet")
        table.write_parquet(out / "acceptance.parquet")
        (out / "meta.json").write_text(json.dumps(meta, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
    except OSError as fault:
        raise StorageError(f"cannot write the corpus to {out}: {fault}; free space or choose another --home") from fault


def write_cost(out: Path, frame: pl.DataFrame, options: CorpusOptions, prices: Mapping[str, Price]) -> None:
    """volatile/cost.parquet: money by relation path and hops; prices are no part of what a corpus is."""
    cost = pl.lit(0.0)
    for who, model in (("teacher", options.teacher), ("qa", options.qa_model)):
        price = prices.get(model, Price())
        cost += pl.col(f"{who}_prompt_tokens").sum() * price.prompt + pl.col(f"{who}_tokens").sum() * price.completion
    if any(model in prices for model in (options.teacher, options.qa_model)):
        folder = out / "volatile"
        folder.mkdir(exist_ok=True)
        table = frame.group_by("relation_path", "hops").agg((cost / 1e6).alias("cost")).sort("hops", "relation_path")
        table.write_parquet(folder / "cost.parquet")


def _sum(frame: pl.DataFrame, *columns: str) -> int:
    return sum(int(frame[column].sum()) for column in columns)
