"""Linking of the names that people type: recall and precision on questions as they are, in lower case, and mistyped.

    python -m benchmarks.answers.people_linking --work DIR --shared ../shared/data [--sets atlas …] [--seed 7]
        [--json OUT] [--failures N]

Sets: atlas and simplequestions (dev), mintaka (dev), people_atlas and people_wikidata (benchmarks/people/dev; gold are
the entities of the s-expressions but for types; questions without one are left out).  best: recall of gold entities
among those that are linked; all: among the candidates of all mentions; precision of those that are linked; p50: of
milliseconds a question.  types: recall of the types of the s-expressions by `find_types`.  mistyped: one letter of a
word of the gold entities' names, or where the text has none of any content word, is dropped, doubled, changed or
swapped with the next; drawn by the seed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.answers.linking_data import graph_of, prepare, read
from benchmarks.conditions import ROOT, conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import LinkingOptions
from kgqa_core.linking.fold import fold
from kgqa_core.linking.mentions import TYPE, MentionDictionary
from kgqa_core.linking.tagger import Tagger, open_tagger
from kgqa_core.linking.words import FUNCTION_WORDS

FIELDS = (
    *CONDITIONS, "typos", "rows/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

SETS = ("atlas", "simplequestions", "mintaka", "people_atlas", "people_wikidata")
PEOPLE = ROOT / "benchmarks" / "people" / "dev"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LEAST = 5
"""Letters of a word that gets a typing error."""
Row = tuple[str, frozenset[int], frozenset[int]]
"""A question, and the entities and types that it names."""


def rows_of(name: str, work: Path, shared: Path, people: Path) -> list[Row]:
    """Questions of a set with what they name."""
    if not name.startswith("people"):
        splits = ("train", "test") if name == "mintaka" else ("dev",)
        return [(text, gold, frozenset()) for split in splits for text, gold in read(work, shared, name, split).rows]
    mentions = MentionDictionary(prepare(work, shared, name.removeprefix("people_"))[1])
    ids = {mentions.keys[i]: i for i in range(len(mentions.keys))}
    types = {int(e) for e, flag in zip(mentions.entities, mentions.entity_flags, strict=True) if flag & TYPE}
    file = people / ("atlas.jsonl" if name.endswith("atlas") else "wikidata_mini.jsonl")
    results = []
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        named = {ids[term] for term in re.findall(r"[^\s()]+", row.get("s_expression") or "") if term in ids}
        if named:
            results.append((row["question"], frozenset(named - types), frozenset(named & types)))
    return results


def mistyped(text: str, names: list[str], rng: random.Random) -> str:
    """The text with one typing error."""
    words = [(m.start(), m.end()) for m in re.finditer(r"[^\W\d_]+", text)]
    long = [(a, b) for a, b in words if b - a >= LEAST and fold(text[a:b]) not in FUNCTION_WORDS]
    parts = {part for name in names for part in fold(name).split()}
    inside = [(a, b) for a, b in long if fold(text[a:b]) in parts]
    if not (inside or long):
        return text
    start, end = rng.choice(inside or long)
    word, place = text[start:end], rng.randrange(1, end - start - 1)
    kind = rng.randrange(4)
    if kind == 0:
        word = word[:place] + word[place + 1 :]
    elif kind == 1:
        word = word[:place] + word[place] + word[place:]
    elif kind == 2:
        word = word[:place] + rng.choice([letter for letter in LETTERS if letter != word[place]]) + word[place + 1 :]
    else:
        word = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    return text[:start] + word + text[end:]


def measure(tagger: Tagger, rows: list[Row], write: Callable[[Row], str], failures: int) -> dict[str, Any]:
    """Recall, precision and time over a set written in one way."""
    best = every = linked = wanted = types = wanted_types = 0
    seconds: list[float] = []
    for row in rows:
        text, gold, kinds = write(row), row[1], row[2]
        started = time.perf_counter()
        mentions = tagger.link(text)
        seconds.append(time.perf_counter() - started)
        selected = [entity for entity, _ in tagger.select(mentions) if entity not in kinds]
        best += len(gold & set(selected))
        every += len(gold & {entity for entity, _ in tagger.ranking(mentions)})
        linked, wanted = linked + len(selected), wanted + len(gold)
        if kinds:
            types += len(kinds & {one.entity for one in tagger.find_types(text)})
            wanted_types += len(kinds)
        if failures and set(selected) != gold:
            failures -= 1
            label = tagger.mentions.labels
            print(f"    {text} | linked {[label[e] for e in selected]} gold {[label[e] for e in sorted(gold)]}")
    return {
        "questions": len(rows),
        "best": round(best / max(wanted, 1), 4),
        "all": round(every / max(wanted, 1), 4),
        "precision": round(best / max(linked, 1), 4),
        "types": round(types / wanted_types, 4) if wanted_types else None,
        "p50_ms": round(1000 * statistics.median(seconds), 2),
        "p99_ms": round(1000 * sorted(seconds)[int(0.99 * (len(seconds) - 1))], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--shared", type=Path, default=Path("../shared/data"))
    parser.add_argument("--people", type=Path, default=PEOPLE, help="folder of the hand-written questions")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--ways", nargs="+", choices=("typed", "lower", "mistyped"),
                        default=["typed", "lower", "mistyped"])  # fmt: skip
    parser.add_argument("--typos", type=int, default=LinkingOptions().typos)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--failures", type=int, default=0, help="how many questions with other links to print")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    table: dict[str, Any] = {}
    for name in given.sets:
        if name.startswith("people") and not given.people.is_dir():
            print(f"{name}: {given.people} is not there")
            continue
        rows = rows_of(name, given.work, given.shared, given.people)[: given.limit]
        kg, folder = prepare(given.work, given.shared, graph_of(name.removeprefix("people_")))
        tagger = open_tagger(folder, kg, LinkingOptions(typos=given.typos))
        labels = tagger.mentions.labels
        rng = random.Random(given.seed)
        ways: dict[str, Callable[[Row], str]] = {
            "typed": lambda row: row[0],
            "lower": lambda row: row[0].lower(),
            "mistyped": lambda row, labels=labels, rng=rng: mistyped(row[0], [labels[e] for e in sorted(row[1])], rng),
        }
        tagger.link(rows[0][0])
        for way in given.ways:
            result = table[f"{name}/{way}"] = measure(tagger, rows, ways[way], given.failures)
            print(f"{name:16s} {way:9s}", " ".join(f"{key} {value}" for key, value in result.items()), flush=True)
    if given.json:
        document = {"conditions": conditions(given.seed), "typos": given.typos, "rows": table}
        results_file.write(given.json, document, FIELDS)


if __name__ == "__main__":
    main()
