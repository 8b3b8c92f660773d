"""What the report says of sentences: the corpus, the rewriter that learnt from it, and whether they are true."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

from kgqa_core.evaluation.labels import knowledge_label, knowledge_order
from kgqa_core.report.charts import training_curves
from kgqa_core.report.grid import Entry, Grid
from kgqa_core.rewriting.corpus_table import KEPT, SPARE
from kgqa_core.rewriting.paragraphs import ACTIONS
from kgqa_core.store.artifacts import MANIFEST

MOST_PATHS = 40
"""Relation paths that the page lists, those of most questions first; the rest is one row."""
MOST_EXAMPLES = 3
"""Accepted pairs shown; of each kind of reject there is one."""
MOST_SAMPLES = 8


@dataclass(frozen=True, slots=True)
class RewrittenExample:
    """Triples and their text.  verdict: `kept` or the reason of the reject.  other: reference or QA answer."""

    triples: str
    text: str
    verdict: str = ""
    other: str = ""


@dataclass(frozen=True)
class CorpusPart:
    """The corpus on the page.  facts: (name, value) rows.  reasons: (reason, rejected texts), most first."""

    facts: tuple[tuple[str, str], ...]
    by_hops: Grid
    by_path: Grid
    reasons: tuple[tuple[str, int], ...]
    examples: tuple[RewrittenExample, ...]


@dataclass(frozen=True)
class RewriterPart:
    """The rewriter on the page.  curves: (metric, SVG).  samples: of the last epoch."""

    facts: tuple[tuple[str, str], ...]
    curves: tuple[tuple[str, Markup], ...]
    samples: tuple[RewrittenExample, ...]
    epoch: int


def corpus_part(folder: Path | None) -> CorpusPart | None:
    """A corpus artifact for the page; None where there is none."""
    if folder is None or not (folder / "acceptance.parquet").is_file():
        return None
    table = pl.read_parquet(folder / "acceptance.parquet", glob=False)
    money = folder / "volatile" / "cost.parquet"
    if money.is_file():
        table = table.join(
            pl.read_parquet(money, glob=False), on=["relation_path", "hops"], how="left", nulls_equal=True
        )
    corpus = pl.read_parquet(folder / "corpus.parquet", glob=False)
    meta = _json(folder / "meta.json")
    good = corpus.filter(pl.col("verdict") == KEPT).unique("pair", keep="first", maintain_order=True)
    facts = {"teacher": meta.get("teacher", ""), "QA model": meta.get("qa_model", "")}
    facts |= {"pairs to train on": f"{good.filter(split='train').height:,}"}
    facts |= {"pairs held out": f"{good.filter(split='dev').height:,}"}
    reasons = Counter(verdict for verdict in corpus["verdict"] if verdict not in (KEPT, SPARE))
    return CorpusPart(
        tuple((name, str(value)) for name, value in facts.items() if value),
        _acceptance("Acceptance by hops", "Hops", table.sort("hops"), "hops"),
        _acceptance("Acceptance by relation path", "Relation path", _largest(table), "relation_path"),
        tuple(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        _examples(corpus, good),
    )


def rewriter_part(folder: Path | None) -> RewriterPart | None:
    """A rewriter artifact for the page; None where there is none."""
    if folder is None or not (folder / "meta.json").is_file():
        return None
    meta = _json(folder / "meta.json")
    facts = {
        "base": meta.get("base"),
        "adapter": f"{meta['parameters']:,} weights" if "parameters" in meta else None,
        "pairs": ", ".join(f"{n:,} {name}" for name, n in meta.get("pairs", {}).items()),
        "left out as too long": sum(n for n in meta.get("left_out", {}).values() if isinstance(n, int)) or None,
        "best epoch": meta.get("best_epoch"),
        "dev loss": meta.get("dev_loss"),
        "corpus": str(meta.get("corpus_sha256", ""))[:12],
    }
    samples, epoch = _samples(folder / "samples.parquet")
    return RewriterPart(
        tuple((name, str(value)) for name, value in facts.items() if value not in (None, "")),
        tuple(training_curves(folder / "curves.parquet")),
        samples,
        epoch,
    )


def _acceptance(title: str, head: str, table: pl.DataFrame, key: str) -> Grid:
    """Questions, accepted pairs, their share and cost by one column of the acceptance table, with a row for all."""
    parts = [(str(name), part) for (name,), part in table.group_by(key, maintain_order=True)]
    if len(parts) > 1:
        parts.append(("all", table))
    rows = []
    for name, part in parts:
        n_prompts, n_accepted = int(part["asked"].sum()), int(part["kept"].sum())
        share = f"{100 * n_accepted / n_prompts:.1f} %" if n_prompts else None
        tokens = (f"{int(part[column].sum()):,}" for column in ("teacher_tokens", "qa_tokens"))
        cells: tuple[Entry, ...] = (n_prompts, n_accepted, share, *tokens)
        rows.append((name, (*cells, f"{part['cost'].sum():,.2f}") if "cost" in part.columns else cells))
    heads = [head, "Questions", "Accepted", "Acceptance", "Teacher tokens", "QA tokens"]
    return Grid(title, (*heads, "Cost") if "cost" in table.columns else tuple(heads), tuple(rows), compact=True)


def _largest(table: pl.DataFrame) -> pl.DataFrame:
    """The relation paths of most questions; the others as one row."""
    ordered = table.sort("asked", "relation_path", descending=[True, False])
    if ordered.height <= MOST_PATHS:
        return ordered
    rest = f"{ordered.height - MOST_PATHS:,} other paths"
    names = [*ordered["relation_path"].head(MOST_PATHS), *[rest] * (ordered.height - MOST_PATHS)]
    return ordered.with_columns(pl.Series("relation_path", names, dtype=pl.String))


def _examples(corpus: pl.DataFrame, good: pl.DataFrame) -> tuple[RewrittenExample, ...]:
    """A few accepted pairs, and the first reject of each kind, in the order of the corpus."""
    bad = corpus.filter(~pl.col("verdict").is_in([KEPT, SPARE])).unique("verdict", keep="first", maintain_order=True)
    step = max(1, good.height // MOST_EXAMPLES)
    shown = pl.concat([good.gather_every(step).head(MOST_EXAMPLES), bad])
    return tuple(
        RewrittenExample(row["triple_text"] or "", row["text"] or "", row["verdict"], row["qa_answer"] or "")
        for row in shown.iter_rows(named=True)
    )


def _samples(file: Path) -> tuple[tuple[RewrittenExample, ...], int]:
    if not file.is_file():
        return (), 0
    frame = pl.read_parquet(file, glob=False)
    if frame.is_empty():
        return (), 0
    epoch = int(frame["epoch"].max())  # type: ignore[arg-type]
    rows = frame.filter(pl.col("epoch") == epoch).head(MOST_SAMPLES)
    return tuple(
        RewrittenExample(row["instruction"], row["text"], other=row["reference"]) for row in rows.iter_rows(named=True)
    ), epoch


def faithfulness_table(knowledge: Mapping[str, Path]) -> Grid:
    """What the sentences of each knowledge artifact say, and what was done to those that say too much.

    Sentences, those that invent, and what became of them, over all paragraphs; triples that no sentence tells, texts
    that were cut short or never came and tokens, over the different groups that the rewriter wrote for, by its counts.
    """
    results: dict[str, dict[str, Entry]] = {}
    for name, folder in sorted(knowledge.items()):
        if not (folder / "sentences.parquet").is_file():
            continue
        frame = pl.read_parquet(folder / "sentences.parquet", columns=["written", "invented", "action"], glob=False)
        written = frame.filter(pl.col("written") != "")
        counts = _json(folder / MANIFEST).get("counts", {})
        meta = _json(folder / "meta.json")
        label = "/".join((meta["retriever"], meta["format"], "-")) if {"retriever", "format"} <= set(meta) else name
        actions = dict(frame["action"].value_counts().iter_rows())
        tokens = [counts[name] for name in ("prompt_tokens", "completion_tokens") if name in counts]
        results[label] = {
            "Sentences": written.height,
            "Inventing": written.filter(pl.col("invented").list.len() > 0).height,
            **{action.capitalize(): actions.get(action, 0) for action in ACTIONS},
            "Untold triples": counts.get("untold"),
            "Cut short": counts.get("truncated"),
            "Without text": counts.get("no_text"),
            "Tokens to write": sum(tokens) if tokens else None,
        }
    names = sorted(results, key=knowledge_order)
    always = ("Sentences", "Inventing")
    heads = [
        head for head in next(iter(results.values()), {}) if head in always or any(results[n][head] for n in names)
    ]
    rows = tuple((knowledge_label(name), tuple(results[name][head] for head in heads)) for name in names)
    return Grid("Faithfulness of the sentences", ("Knowledge", *heads), rows, compact=True)


def _json(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}
