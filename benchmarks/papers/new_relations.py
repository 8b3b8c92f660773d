"""Relations that training never saw, by label, aliases and description: SimpleQuestions over Wikidata, ten draws.

    python -m benchmarks.papers.new_relations [--json OUT]

A fifth of the properties is held out; the item retriever of the semantic parsers (two maps over the packaged sentence
encoder, and word overlap) learns the property of 3,000 training questions about the others, and names that of the
questions of the published *valid* split about the held-out ones, among all properties of the set.  Ten draws of the
properties.  What a property is read by:

  label                     its label
  label, aliases            each of its names apart, of which the most similar counts
  label, description        `label: description`
  all                       each name, and the description, apart
  (untrained)               the same before training: the encoder's cosine and the word overlap alone

top 1, top 5: share of the questions of a draw; mean over the draws with the 95 % interval of Student's t; difference:
that of a row's shares and those of `label (untrained)` in the same draw.  `known` are
valid questions about the other properties.  Names are Wikidata's (`relation_names`, CC0).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from benchmarks import results_file
from benchmarks.conditions import DATA, commit_name, conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import DecodeOptions
from kgqa_core.nn.encoders import new_encoder
from kgqa_core.papers.grailqability.parsing.frozen_reader import FrozenReader
from kgqa_core.papers.grailqability.parsing.item_retriever import ItemRetriever, Items, TwoTower
from kgqa_core.papers.grailqability.parsing.item_training import ItemTexts, learn_items
from kgqa_core.workspace import Workspace

FIELDS = (*CONDITIONS, "draws", "properties", "questions/*", "rows/*/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED, DRAWS, HELD_OUT, LEARNT = 7, 10, 0.2, 3_000
OPTIONS = DecodeOptions(encoder="minilm", retriever_epochs=5, patience=5, batch_size=64, learning_rate=0.001)
BASE = "label (untrained)"
PROPERTIES = DATA / "relation_names" / "wikidata_properties.jsonl"

Names = Mapping[str, Sequence[str]]


def questions(split: str) -> list[tuple[str, str]]:
    """Text and property of the questions of a published split."""
    path = DATA / "simplequestions_wikidata" / f"annotated_wd_data_{split}_answerable.txt"
    rows = [line.rstrip("\n").split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row[3], "P" + row[1][1:]) for row in rows]


def kinds(used: set[str]) -> dict[str, dict[str, list[str]]]:
    """What each property is read by, in each way, of the properties that have a label."""
    rows = [json.loads(line) for line in PROPERTIES.read_text(encoding="utf-8").splitlines()]
    known = {row["id"]: row for row in rows if row["id"] in used and row.get("label")}
    made: dict[str, Callable[[dict[str, Any]], list[str]]] = {
        "label": lambda row: [row["label"]],
        "label, aliases": lambda row: [row["label"], *(row.get("aliases") or ())],
        "label, description": lambda row: [": ".join(filter(None, (row["label"], row.get("description"))))],
        "all": lambda row: [row["label"], *(row.get("aliases") or ()), *filter(None, [row.get("description")])],
    }
    return {kind: {key: list(dict.fromkeys(make(row))) for key, row in known.items()} for kind, make in made.items()}


def items_of(names: Names) -> tuple[Items, dict[str, list[int]]]:
    """An item for each name of each property, and the items of a property."""
    every = sorted((f"{key} {number:03}", text) for key, texts in names.items() for number, text in enumerate(texts))
    place: dict[str, list[int]] = {}
    for index, (item, _) in enumerate(every):
        place.setdefault(item.partition(" ")[0], []).append(index)
    return Items(tuple(item for item, _ in every), (), dict(every)), place


def ranks(retriever: ItemRetriever, texts: Sequence[tuple[str, str]], items: Items, place: dict[str, list[int]]) -> Any:
    """The rank of each question's property, from 0."""
    scores = retriever.scores([text for text, _ in texts], items)
    keys = list(place)
    best = torch.stack([scores[:, place[key]].max(dim=1).values for key in keys], dim=1).numpy()
    own = best[np.arange(len(texts)), [keys.index(key) for _, key in texts]]
    return (best > own[:, None]).sum(axis=1)


def summary(values: Any) -> dict[str, dict[str, float]]:
    """Of the draws' top 1 and top 5: mean and the interval of Student's t.  values: [draws, 2]"""
    made = {}
    for name, own in zip(("top_1", "top_5"), np.array(values).T, strict=True):
        half = stats.t.ppf(0.975, len(own) - 1) * own.std(ddof=1) / len(own) ** 0.5
        made[name] = {
            "mean": round(own.mean(), 4),
            "low": round(own.mean() - half, 4),
            "high": round(own.mean() + half, 4),
        }
    return made


def tables(found: dict[str, Any]) -> str:
    """The table of the page."""
    head = f"| read by | held out: top 1 | minus *{BASE}* | top 5 | minus *{BASE}* | known: top 1 |"
    lines = [head, "|---|--:|--:|--:|--:|--:|"]
    for row, parts in found["rows"].items():
        cells = []
        for name in ("top_1", "top_5"):
            change = parts.get("difference", {}).get(name)
            shown = "{mean:+.3f} ({low:+.3f} to {high:+.3f})".format(**change) if change else "–"
            cells += [_cell(parts["held out"][name]), shown]
        cells.append(_cell(parts["known"]["top_1"]) if "known" in parts else "–")
        lines.append(f"| {row} | {' | '.join(cells)} |")
    made, sizes = found["conditions"], found["questions"]
    note = f"{found['draws']} draws of {found['properties']} properties, {sizes['learnt']:,} questions learnt in each, "
    note += f"{sizes['valid']:,} of valid; seed {made['seed']}, commit {commit_name(made['commit'])}, {made['date']}."
    return "\n".join([*lines, "", note]) + "\n"


def _cell(own: dict[str, float]) -> str:
    return f"{own['mean']:.3f} ({own['low']:.3f}–{own['high']:.3f})"


def main() -> None:
    """Draws, trains, ranks and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    train, valid = questions("train"), questions("valid")
    ways = kinds({key for _, key in (*train, *valid)})
    properties = sorted(ways["label"])
    train, valid = ([row for row in rows if row[1] in ways["label"]] for rows in (train, valid))
    labels = sorted({text for names in ways.values() for texts in names.values() for text in texts})
    encoder, reader, _ = new_encoder(OPTIONS, lambda _: labels, "parsing.decode", ("[E1]",))
    frozen = FrozenReader(encoder, reader, ("[E1]",))
    drawn: dict[str, dict[str, list[list[float]]]] = {}
    for draw in range(DRAWS):
        generator = np.random.default_rng([SEED, draw])
        held = set(generator.choice(properties, size=round(HELD_OUT * len(properties)), replace=False).tolist())
        known = [row for row in train if row[1] not in held]
        chosen = [known[at] for at in generator.choice(len(known), size=LEARNT, replace=False)]
        tests = {
            "held out": [row for row in valid if row[1] in held],
            "known": [row for row in valid if row[1] not in held],
        }
        for kind, names in ways.items():
            items, place = items_of(names)
            seen = Items(tuple(key for key in items.keys if key.partition(" ")[0] not in held), (), items.words)
            index = {key: number for number, key in enumerate(seen.keys)}
            gold = [frozenset(index[items.keys[at]] for at in place[key]) for _, key in chosen]
            torch.manual_seed(SEED)
            retriever = ItemRetriever(TwoTower(encoder), reader, frozen)
            before = ranks(retriever, tests["held out"], items, place)
            with tempfile.TemporaryDirectory() as folder:
                texts = {"train": ItemTexts.of([text for text, _ in chosen], gold), "dev": ItemTexts([], [])}
                learn_items(
                    Workspace(Path(folder)), retriever, texts, seen, OPTIONS, SEED, f"{draw} {kind}", "parsing.decode"
                )
            measured = {f"{kind} (untrained)": {"held out": before}} | {
                kind: {which: ranks(retriever, rows, items, place) for which, rows in tests.items()}
            }
            for row, parts in measured.items():
                for which, values in parts.items():
                    cell = [float((values == 0).mean()), float((values < 5).mean())]
                    drawn.setdefault(row, {}).setdefault(which, []).append(cell)
        print(draw, {row: parts["held out"][-1] for row, parts in drawn.items()}, flush=True)
    first = np.array(drawn[BASE]["held out"])
    made = {
        "conditions": conditions(SEED), "draws": DRAWS, "properties": len(properties),
        "questions": {"train": len(train), "valid": len(valid), "learnt": LEARNT},
        "rows": {
            row: {which: summary(own) for which, own in parts.items()}
            | ({"difference": summary(np.array(parts["held out"]) - first)} if row != BASE else {})
            for row, parts in drawn.items()
        },
    }  # fmt: skip
    if options.json:
        results_file.write(options.json, made, FIELDS)
    else:
        print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
