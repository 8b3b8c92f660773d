"""The Atlas questions, made from the graph with a seed: the same seed gives the same questions, byte for byte.

    python -m tools.atlas.questions OUT.jsonl --seed 8

Those of seed 7 are packaged, so users of the library do not run this.

A question goes to a split by its topic entities and relation paths, so no test question asks about the same topic
and path as a training question.  About one topic entity in fifteen is held out: it is a topic in test only.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import logging
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from kgqa_core.datasets.published.atlas import GRAPH
from kgqa_core.types import COMPLEXITY_TYPES, SPLITS
from tools.atlas.drafts import QuestionDraft, World
from tools.atlas.graph import AtlasGraph
from tools.atlas.operators import OPERATORS
from tools.atlas.paths import generic, multi_hop
from tools.atlas.templates import TemplateWordings, templates

log = logging.getLogger("kgqa")

HELD_OUT_SHARE = 0.065
TEST_SHARE = 0.10
DEV_SHARE = 0.10
TEST_WORDING_SHARE = 0.35
"""Share of test questions that are put in a wording that no other split has."""
HELD_OUT_KINDS = ("country", "city", "subdivision", "language", "currency")

QUOTAS = {"generic": 5000, "multi-hop": 5000}
"""Questions of the path types in all."""
SUPPLY = 500
"""Drafts of one template that are looked at before the quotas are shared out."""
OPERATOR_QUOTA = 118
ORDINAL_QUOTA = 180
"""Questions of one operator template at most; there are few ordinal templates."""

_WORD = re.compile(r"\w+(?:[-'’.]\w+)*")


def generate(graph: Path | AtlasGraph, seed: int = 7) -> list[dict[str, Any]]:
    """Questions from an Atlas graph file or a graph in memory, sorted by id; takes seconds.

    Each has id, question, topic_entities, answers, answer_type, relation_path (the first), relation_paths (all),
    s_expression (or None), complexity, hops, split and template.  Raises KgInputError when the file cannot be read.
    """
    world = World(graph if isinstance(graph, AtlasGraph) else AtlasGraph.read(graph))
    held_out = set(_held_out(world, seed))
    rows: list[dict[str, Any]] = []
    texts: set[str] = set()
    for quota, wordings, drafts in _supplies(world, seed):
        made = 0
        balance: Counter[tuple[str, str]] = Counter()
        for draft in drafts:
            if made >= quota:
                break
            split = _split(draft, held_out, seed)
            if draft.complexity == "yes/no" and _tips(balance, split, draft.answers[0]):
                continue
            text = _question_text(world, draft, wordings, split, texts, seed)
            if text is None:
                continue
            texts.add(text.casefold())
            balance[split, draft.answers[0]] += 1
            made += 1
            rows.append(_row(draft, text, split))
    return _numbered(rows)


def test_only_entities(seed: int = 7) -> list[str]:
    """Sorted keys of the entities that may be topics of test questions only."""
    return _held_out(_bundled_world(), seed)


def write_jsonl(path: Path, seed: int = 7) -> int:
    """Writes the bundled graph's questions as a question file, one JSON object a line; returns how many."""
    rows = generate(GRAPH, seed)
    data = "".join(f"{json.dumps(row, ensure_ascii=False, sort_keys=True)}\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return len(rows)


@lru_cache(maxsize=1)
def _bundled_world() -> World:
    return World(AtlasGraph.read())


def _supplies(world: World, seed: int) -> Iterator[tuple[int, TemplateWordings, Iterator[QuestionDraft]]]:
    """Every template with its quota; the path types share theirs out evenly, leftovers going to the later ones."""
    for complexity, maker in (("generic", generic), ("multi-hop", multi_hop)):
        supplies = [
            (wordings, list(islice(drafts, SUPPLY)))
            for _, wordings, drafts in maker(world, random.Random(f"{seed}/{complexity}"))
        ]
        left = QUOTAS[complexity]
        supplies.sort(key=lambda supply: len(supply[1]))
        for index, (wordings, drafts) in enumerate(supplies):
            quota = min(len(drafts), left // (len(supplies) - index))
            left -= quota
            yield quota, wordings, iter(drafts)
    for name, make in OPERATORS.items():
        quota = ORDINAL_QUOTA if name.startswith("nth_") else OPERATOR_QUOTA
        yield quota, templates().operators[name], make(name, world, random.Random(f"{seed}/{name}"))


def _unit(*parts: object) -> float:
    """A number in [0, 1) that depends on nothing but the parts."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _held_out(world: World, seed: int) -> list[str]:
    return sorted(
        key for kind in HELD_OUT_KINDS for key in world.pools[kind] if _unit(seed, "held out", key) < HELD_OUT_SHARE
    )


def _split(draft: QuestionDraft, held_out: set[str], seed: int) -> str:
    if held_out.intersection(draft.topics):
        return "test"
    index = _unit(seed, "split", draft.group)
    return "test" if index < TEST_SHARE else "dev" if index < TEST_SHARE + DEV_SHARE else "train"


def _tips(balance: Counter[tuple[str, str]], split: str, answer: str) -> bool:
    """Whether one more such answer would leave yes and no uneven in a split."""
    other = "no" if answer == "yes" else "yes"
    return balance[split, answer] > balance[split, other]


def _question_text(
    world: World, draft: QuestionDraft, wordings: TemplateWordings, split: str, texts: set[str], seed: int
) -> str | None:
    """A wording that is not used yet and names no other entity; None where there is none."""
    rng = random.Random(f"{seed}/words/{draft.template}/{draft.group}/{draft.slots}")
    special = split == "test" and rng.random() < TEST_WORDING_SHARE
    choices = list(wordings.test if special else wordings.seen)
    for wording in rng.sample(choices, min(len(choices), 6)):
        text = _worded(world, draft, wording)
        if text.casefold() not in texts and _mentions(world, text) == {world.graph.labels[t] for t in draft.topics}:
            return text
    return None


def _worded(world: World, draft: QuestionDraft, wording: str) -> str:
    text = wording
    for slot, value in draft.slots.items():
        text = text.replace(f"{{{slot}}}", world.name(value))
        text = text.replace("{b}", world.graph.labels.get(value, value))
    return text[0].upper() + text[1:]


def _mentions(world: World, text: str) -> set[str]:
    """Labels written in a text, longest first and not overlapping, case-sensitive."""
    words = [(found.start(), found.end()) for found in _WORD.finditer(text)]
    found, start = set(), 0
    while start < len(words):
        step = 1
        for end in range(min(len(words), start + 7), start, -1):
            piece = text[words[start][0] : words[end - 1][1]]
            if piece in world.spoken_labels:
                found.add(piece)
                step = end - start
                break
        start += step
    return found


def _row(draft: QuestionDraft, text: str, split: str) -> dict[str, Any]:
    return {
        "question": text,
        "topic_entities": list(draft.topics),
        "answers": list(draft.answers),
        "answer_type": draft.answer_type,
        "relation_path": list(draft.paths[0]),
        "relation_paths": [list(path) for path in draft.paths],
        "s_expression": draft.s_expression,
        "complexity": draft.complexity,
        "hops": draft.hops,
        "split": split,
        "template": draft.template,
    }


def _numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with ids such as `atlas-test-multi-hop-0012`, sorted by split, complexity and number."""
    order = defaultdict(list)
    for row in rows:
        order[row["split"], row["complexity"]].append(row)
    numbered = []
    for split in SPLITS:
        for complexity in COMPLEXITY_TYPES:
            name = complexity.replace("/", "-")
            for number, row in enumerate(order[split, complexity]):
                numbered.append({"id": f"atlas-{split}-{name}-{number:04d}", **row})
    return sorted(numbered, key=lambda row: str(row["id"]))


def main(arguments: list[str] | None = None) -> int:
    """Command line: returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.atlas.questions", description=__doc__)
    parser.add_argument("out", type=Path, help="question file to write; gzipped where its name ends so")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    log.info("%d questions written to %s", write_jsonl(options.out, options.seed), options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
