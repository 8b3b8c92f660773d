"""Entity linking with bare questions: the tagger against exact match and against commonness alone.

    python -m benchmarks.answers.linking --work DIR --shared ../shared/data [--sets atlas zjqa …] [--split test]
        [--json OUT]

exact: stretches that are written as a label or alias, letter by letter, the longest first; of several entities the most
common.  commonness: every folded name but for words of grammar, the longest first, and its most common entity; no link
probability, no vote, no context.  tagger: as configured; with `--more` also without context, with encoded descriptions
and with typing errors forgiven.  All take five entities of a text at most.

precision, recall, f1: over all pairs of text and entity.  f1_macro, recall_at_5: means over texts (`metrics.links`);
recall_at_5 looks at the first five candidates however sure the method is.  REBEL's are sentences, not questions: there
the tagger takes entities side by side too, and as many as there are (`top` 50) in rows marked so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.answers.linking_data import SETS, Data, read
from benchmarks.conditions import conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import LinkingOptions
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.fold import fold_text
from kgqa_core.linking.mentions import FUNCTION, Mention, MentionDictionary
from kgqa_core.linking.tagger import open_tagger
from kgqa_core.metrics.links import link_f1, link_recall_at_5

FIELDS = (
    *CONDITIONS, "machine/cpus", "machine/load/*", "machine/python", "quality/*/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

Found = tuple[list[int], list[int]]
"""Linked entities, and all candidates in order."""
TOP = 5


def exact(data: Data) -> Callable[[str], Found]:
    """Longest stretches that are a label or alias as it is written."""
    mentions = MentionDictionary(data.mentions)
    with KgStore.open(data.kg) as store:
        rows = store.connection.execute(
            "SELECT label, id FROM labels WHERE label IS NOT NULL UNION SELECT alias, id FROM aliases"
        ).fetchall()
    names: dict[str, set[int]] = {}
    for name, i in rows:
        names.setdefault(name, set()).add(i)
    for i in range(len(mentions.labels)):
        names.setdefault(mentions.labels[i], set()).add(i)
    degree = mentions.near_rows[1:] - mentions.near_rows[:-1]

    def link(text: str) -> Found:
        folded = fold_text(text)
        spans = [
            (start, end)
            for start in folded.first.tolist()
            for end in [*folded.last.tolist(), *(last + 1 for last in folded.last.tolist())]
            if start < end <= start + 80 and text[start:end] in names
        ]
        found = _longest(spans)
        ranked = [sorted(names[text[start:end]], key=lambda e: (-degree[e], e)) for start, end in found]
        return _cut(ranked)

    return link


def commonness(data: Data) -> Callable[[str], Found]:
    """Longest names and their most common entity."""
    mentions = MentionDictionary(data.mentions)

    def link(text: str) -> Found:
        folded = fold_text(text)
        names = {
            (int(folded.first[first]), int(folded.last[last])): name
            for first, last, name in mentions.names.spots(folded)
            if not mentions.flags[name] & FUNCTION
        }
        return _cut([[e for e, _ in mentions.candidates(names[span], 10)] for span in _longest(list(names))])

    return link


def tagger(data: Data, **options: Any) -> Callable[[str], Found]:
    """The tagger of the library."""
    linker = open_tagger(data.mentions, data.kg, LinkingOptions(**options))

    def link(text: str) -> Found:
        found = linker.link(text)
        return [entity for entity, _ in linker.select(found)], [entity for entity, _ in ranking(found)]

    return link


def ranking(mentions: Sequence[Mention]) -> list[tuple[int, float]]:
    """(entity, ρ) of all candidates, whatever ρ is: those of chosen mentions first, best first, ties by id."""
    best: dict[int, tuple[bool, float]] = {}
    for mention in mentions:
        for candidate in mention.candidates:
            best[candidate.entity] = max(best.get(candidate.entity, (False, 0.0)), (mention.chosen, candidate.rho))
    order = sorted(best.items(), key=lambda item: (not item[1][0], -item[1][1], item[0]))
    return [(entity, rho) for entity, (_, rho) in order]


def _longest(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    linked: list[tuple[int, int]] = []
    for span in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if all(span[1] <= other[0] or span[0] >= other[1] for other in linked):
            linked.append(span)
    return linked


def _cut(ranked: Sequence[Sequence[int]]) -> Found:
    """The first candidates of the longest mentions; then the second ones and so on."""
    best = list(dict.fromkeys(row[0] for row in ranked))
    deeper = [row[n] for n in range(1, 10) for row in ranked if n < len(row)]
    return best[:TOP], list(dict.fromkeys([*best, *deeper]))


def measure(data: Data, link: Callable[[str], Found]) -> dict[str, Any]:
    """Scores of a method over a data set."""
    link(data.rows[0][0])
    busy = time.process_time()
    found = [link(text) for text, _ in data.rows]
    busy = time.process_time() - busy
    right = sum(len(set(linked) & gold) for (linked, _), (_, gold) in zip(found, data.rows, strict=True))
    n_linked = sum(len(set(linked)) for linked, _ in found)
    wanted = sum(len(gold) for _, gold in data.rows)
    precision, recall = right / max(n_linked, 1), right / max(wanted, 1)
    number = len(data.rows)
    return {
        "texts": number,
        "gold": wanted,
        "precision": precision,
        "recall": recall,
        "f1": 2 * right / max(n_linked + wanted, 1),
        "f1_macro": sum(link_f1(t, gold) for (t, _), (_, gold) in zip(found, data.rows, strict=True)) / number,
        "recall_at_5": sum(link_recall_at_5(r, gold) for (_, r), (_, gold) in zip(found, data.rows, strict=True))
        / number,
        "cpu_ms_a_text": busy / number * 1e3,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--shared", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--split", default="test")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--more", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    table: dict[str, Any] = {}
    for name in given.sets:
        data = read(given.work, given.shared, name, given.split)
        data = Data(data.name, data.rows[: given.limit], data.kg, data.mentions)
        text = {"appositions": "all"} if name == "rebel" else {}
        methods: dict[str, Callable[[str], Found]] = {
            "exact": exact(data), "commonness": commonness(data), "tagger": tagger(data, **text)
        }  # fmt: skip
        if name == "rebel":
            methods["tagger, top 50"] = tagger(data, top=50, **text)
        if given.more:
            methods["tagger, no context"] = tagger(data, context="none", **text)
            methods["tagger, no fallback"] = tagger(data, fallback=False, **text)
            methods["tagger, typos 1"] = tagger(data, typos=1, **text)
            methods["tagger, encoder"] = tagger(data, context="encoder", **text)
        table[name] = {}
        for method, link in methods.items():
            row = table[name][method] = measure(data, link)
            line = " ".join(
                f"{key} {100 * row[key]:.1f}" for key in ("precision", "recall", "f1", "f1_macro", "recall_at_5")
            )
            print(f"{name:16s} {method:20s} n {row['texts']:6d} {line}  {row['cpu_ms_a_text']:.2f} ms", flush=True)
    if given.json:
        machine = {"cpus": os.cpu_count(), "load": os.getloadavg(), "python": platform.python_version()}
        whole = json.loads(given.json.read_text()) if given.json.is_file() else {}
        quality = whole.get("quality", {})
        for name, rows in table.items():
            quality.setdefault(f"{name}/{given.split}", {}).update(rows)
        whole |= {"conditions": conditions(0), "quality": quality, "machine": machine}
        results_file.write(given.json, whole, FIELDS)


if __name__ == "__main__":
    main()
