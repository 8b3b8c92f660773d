"""Answers development questions from a graph alone, with the thesaurus and without what of it is made for the graph.

    python -m benchmarks.answers.thesaurus --work DIR [--shared ../shared] [--only NAME …] [--most 300]
        [--json benchmarks/results/thesaurus.json]

Sets: people's questions over Atlas and wikidata_mini (benchmarks/people/dev), MetaQA's dev questions by hops and
SimpleQuestions' valid questions.  The packaged head start answers; nothing is trained.  *without*: no entry of the
thesaurus that matches a relation of the graph by label or key is there (`Thesaurus.without`), so that its relations
have Wikidata's other names; types, general words and what the head start learnt with the whole thesaurus stay.
*neither*: without these names, too, so that relations have the words of their labels alone.

exact: of the answerable questions, with an interval (95 %).  declined: of the answerable ones.  wrong_above: of all
questions, those answered wrongly with a confidence above 0.8.  hits_at_1, missed_above: the same where the first
answer is a gold one, and where it is none; MetaQA's graph lacks some 4 % of its facts, so that few of its longer
answers can be whole.  entries: of the thesaurus, and how many match.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks import results_file
from benchmarks.answers.auto_figures import is_exact, is_hit, reply_of
from benchmarks.answers.auto_work import Answering, Work
from benchmarks.answers.people import SURE, measure, rows_of, share
from benchmarks.conditions import RESULTS, ROOT, conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import KgOptions
from kgqa_core.datasets.derived.thesaurus import WITHOUT, thesaurus
from kgqa_core.kg.build import build as build_kg
from kgqa_core.kg.names import relation_name
from kgqa_core.kg.store import KgStore
from kgqa_core.search import question_words
from kgqa_core.search.graph import words_of
from kgqa_core.store.publish import publish_folder
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

FIELDS = (*CONDITIONS, "benchmark", "most", "sets/*/entries/*", "sets/*/with/...", "sets/*/without/...",
          "sets/*/neither/...")  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

SEED = 7
PEOPLE = {"people, atlas": ("atlas", "atlas"), "people, wikidata_mini": ("wikidata", "wikidata_mini")}
"""Graph of `Work` and file of the set."""
PUBLISHED: Mapping[str, tuple[str, int, str]] = {
    **{f"metaqa dev, {hops} hops": ("metaqa", hops, "dev") for hops in (1, 2, 3)},
    "simplequestions valid": ("wikidata", 1, "dev"),
}


def relation_names(store: KgStore) -> list[str]:
    """Labels and keys of the relations of a graph, in words."""
    keys = store.relation_keys()
    texts = [*store.relation_names(), *keys, *map(relation_name, keys)]
    return sorted({words_of(text).casefold() for text in texts})


@contextlib.contextmanager
def without_entries(store: KgStore) -> Iterator[None]:
    """Leaves out the entries of the thesaurus that match a relation of a graph, in this process and those it starts."""
    before = os.environ.get(WITHOUT)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "names.txt"
        file.write_text("\n".join(relation_names(store)), encoding="utf-8")
        os.environ[WITHOUT] = str(file)
        try:
            yield
        finally:
            os.environ.pop(WITHOUT)
            if before is not None:
                os.environ[WITHOUT] = before


@contextlib.contextmanager
def without_entries_of(options: KgOptions) -> Iterator[None]:
    """`without_entries` of a graph that is still to be built."""
    with tempfile.TemporaryDirectory() as folder:
        kg = Path(folder) / "kg"
        publish_folder("kg", kg, lambda out, scratch: build_kg(Workspace(out, scratch), options=options))
        with KgStore.open(kg) as store, without_entries(store):
            yield


def entries() -> int:
    """Entries of the thesaurus as it is now."""
    return len({id(entry) for entry in thesaurus().relations.values()})


def figures(work: Work, name: str) -> dict[str, Any]:
    """Figures of a set, of the packaged head start."""
    graph, hops = (PEOPLE[name][0], 2) if name in PEOPLE else PUBLISHED[name][:2]
    options = work.options(graph, hops=max(hops, 2), steps=0, adapt="never")
    parser = work.parser(graph, work.untrained(graph), options)
    rows = rows_of("dev", PEOPLE[name][1])[: work.most] if name in PEOPLE else []
    asked = [Question(row["id"], row["question"]) for row in rows]
    if name in PUBLISHED:
        asked = work.sample(work.split(graph, PUBLISHED[name][2], hops), work.most, name)
    with Answering(work, graph, parser, linked=name in PEOPLE) as answering:
        solved = answering.solve(asked)
    if rows:
        replies = [reply_of(q, one, calibrated=True) for q, one in zip(asked, solved, strict=True)]
        found = measure(rows, replies, [0.0])
        return {
            "questions": len(rows), "exact": found["exact"], "declined": found["wrongly_declined"],
            "declined_rightly": found["declined_of_unanswerable"], "wrong_above": found["wrong_above"][str(SURE)],
        }  # fmt: skip
    good = [is_exact(q, one.keys, one.answers) for q, one in zip(asked, solved, strict=True)]
    given = [bool(one.answers) for one in solved]
    sure = [(one.confidence or 0) > SURE for one in solved]
    loud = [mine and answered and not right for mine, answered, right in zip(sure, given, good, strict=True)]
    hits = [is_hit(q, one.keys) for q, one in zip(asked, solved, strict=True)]
    missed = [mine and answered and not hit for mine, answered, hit in zip(sure, given, hits, strict=True)]
    return {
        "questions": len(asked), "exact": share(good), "hits_at_1": share(hits),
        "declined": share([not answered for answered in given]),
        "wrong_above": share(loud), "missed_above": share(missed),
    }  # fmt: skip


def compare(work: Work, name: str) -> dict[str, Any]:
    """Figures of a set with the entries for its graph and without them."""
    graph = (PEOPLE.get(name) or PUBLISHED[name])[0]
    whole, made = entries(), {"with": figures(work, name)}
    with KgStore.open(work.kg(graph)) as store, without_entries(store):
        made["without"], left = figures(work, name), entries()
        with mock.patch.object(question_words, "public_names", lambda _: None):
            question_words._entry.cache_clear()
            made["neither"] = figures(work, name)
        question_words._entry.cache_clear()
    return {"entries": {"all": whole, "matching": whole - left}, **made}


def main() -> None:
    """Reads the command line, answers, counts and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--only", nargs="+", choices=(*PEOPLE, *PUBLISHED), default=(*PEOPLE, *PUBLISHED))
    parser.add_argument("--most", type=int, default=300)
    parser.add_argument("--json", type=Path, default=RESULTS / "thesaurus.json")
    given = parser.parse_args()
    shared = given.shared / "data" if (given.shared / "data").is_dir() else given.shared
    work = Work(given.work.resolve(), shared.resolve(), SEED, most=given.most)
    document = {"benchmark": "thesaurus", "most": given.most, "conditions": conditions(SEED), "sets": {}}
    for name in given.only:
        document["sets"][name] = compare(work, name)
        print(name, document["sets"][name], flush=True)
    results_file.write(given.json, document, FIELDS)


if __name__ == "__main__":
    main()
