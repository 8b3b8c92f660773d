"""LTGen-QA and LTGen-Conv from Atlas and from the small Wikidata: what is sampled, written, rejected and accepted.

Two writers: the `template` (rules), and a server on loopback that answers in the paper's format and misses it in 26
ways, 3 % of the completions each (`tests.support.ltgen`: 15 faults of form, 11 of content).  Its figures say
that prompts, endpoint, cache, parser and checks work, nothing of any language model.

`wikidata_mini` is built twice: by degree, levels by quantiles; and by mean monthly page views with the paper's levels,
for the entities whose views the PopQA data set states (`longtail/…/DisambPopQA.csv`, columns s_pop and o_pop).

Needs the folder of real data beside the repository, or in KGQA_SHARED_DATA, for all but Atlas.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import DATA, conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import (
    KgOptions,
    LlmOptions,
    PopularityOptions,
    SamplingOptions,
    WritingOptions,
)
from kgqa_core.datasets.files.jsonl import read_question_file
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.metrics.text import GoldAnswers, contains
from kgqa_core.papers.ltgen.card import rows
from kgqa_core.papers.ltgen.sample import draw
from kgqa_core.papers.ltgen.write import write
from kgqa_core.store.artifacts import content_digest
from kgqa_core.workspace import Workspace
from tests.support.chat_server import ServerProcess

FIELDS = (
    *CONDITIONS, "conditions/per_level", "conditions/load/*", "conditions/python",
    "*/draw/*", "*/levels/...", "*/draw_seconds", "*/qa/...", "*/conv/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

SEED = 7
GRAPHS = {
    "atlas": ("bundled:atlas",),
    "wikidata_mini": tuple(
        str(DATA / "wikidata_mini" / name) for name in ("triples.tsv", "labels.en.tsv", "qualifiers.tsv")
    ),
}
DRAWS = {
    "atlas": ("atlas", "degree"),
    "wikidata_mini": ("wikidata_mini", "degree"),
    "views": ("wikidata_mini", "views"),
}


def popqa_views(path: Path) -> Path:
    """A table of the monthly views that PopQA states, `key<TAB>views`."""
    views: dict[str, int] = {}
    source = DATA / "longtail" / "Disambiguated_Datasets" / "DisambPopQA.csv"
    with source.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for uri, number in ((row["s_uri"], row["s_pop"]), (row["o_uri"], row["o_pop"])):
                views[uri.rpartition("/")[2]] = int(number)
    path.write_text("".join(f"{key}\t{number}\n" for key, number in sorted(views.items())), encoding="utf-8")
    return path


def measure(name: str, writer: str, per_level: int, folder: Path, kg: Path) -> dict[str, Any]:
    """One benchmark of both kinds, with the seconds that each part took."""
    popularity = PopularityOptions()
    if DRAWS[name][1] == "views":
        popularity = PopularityOptions(source="table", files=(str(popqa_views(folder / "views.tsv")),))
    sample = folder / "sample"
    sample.mkdir()
    started = time.monotonic()
    sampled = draw(
        Workspace(sample), kg=kg, options=SamplingOptions(per_level=per_level), popularity=popularity, seed=SEED
    )
    found: dict[str, Any] = {
        "draw": sampled, "levels": json.loads((sample / "meta.json").read_text())["levels"],
        "draw_seconds": round(time.monotonic() - started, 1),
    }  # fmt: skip
    for kind in ("qa", "conv"):
        out, cache = folder / kind, folder / "cache"
        out.mkdir()
        cache.mkdir(exist_ok=True)
        options = WritingOptions(writer="template" if writer == "template" else "openai:stub")

        def run(base_url: str | None, out: Path = out, options: WritingOptions = options, kind: Any = kind) -> Any:
            llm = LlmOptions(base_url=base_url)
            return write(
                Workspace(out, cache=folder / "cache"),
                kg=kg,
                sample=sample,
                kind=kind,
                options=options,
                llm=llm,
                seed=SEED,
            )

        started = time.monotonic()
        if writer == "template":
            counts, stats = run(None), {}
        else:
            with ServerProcess("--reply", "tests.support.ltgen:reply", "--seed", "5") as server:
                counts = run(server.base_url)
                stats = {key: value for key, value in server.stats().items() if key != "prompts"}
        table = json.loads((out / "statistics.json").read_text(encoding="utf-8"))
        found[kind] = {
            "table": rows(table), "rejects": table["rejects"], "small_talk": table.get("turns_without_triples"),
            "counts": counts, "server": stats, "seconds": round(time.monotonic() - started, 1),
            "digest": content_digest(out)[:16], "attempts": _attempts(out), "audit": audit(out, kg),
        }  # fmt: skip
    return found


def audit(out: Path, kg: Path) -> dict[str, int]:
    """Faults of the accepted questions, checked again from the file and the graph's tables."""
    found = read_question_file(out / "questions.jsonl")
    with KgStore.open(kg) as store:
        keys = {key for row in found for triple in row["gold_triples"] for key in (triple[0], triple[2])}
        ids: dict[str, list[int]] = {}
        for key, number in store.connection.execute(
            "SELECT key, id FROM entities WHERE list_contains(?::VARCHAR[], key) ORDER BY id", [sorted(keys)]
        ).fetchall():
            ids.setdefault(key, []).append(number)
        relations = {key: number for number, key in enumerate(store.relation_keys())}
        names = store.names(number for numbers in ids.values() for number in numbers)
        stored = set(store.connection.execute("SELECT head, relation, tail FROM triples").fetchall())
    wrong: Counter[str] = Counter(questions=len(found))
    seen: set[str] = set()
    for row in found:
        triples, wording = row["gold_triples"], json.dumps([row["question"], row["dialogue"]])
        wrong["triples"] += len(triples)
        wrong["triple_not_in_graph"] += sum(
            not any((h, relations[r], t) in stored for h in ids[head] for t in ids[tail]) for head, r, tail in triples
        )
        ends = {key for head, _, tail in triples for key in (head, tail)}
        wrong["answer_not_in_triples"] += not set(row["answers"]) <= ends
        gold = GoldAnswers([[names[number]] for key in row["answers"] for number in ids[key]])
        wrong["answer_in_question"] += contains(gold, row["question"]) > 0
        roles = [role for role, _ in row["dialogue"]]
        wrong["turns_not_alternating"] += roles != ["user", "agent"] * (len(roles) // 2)
        wrong["twice"] += wording in seen
        seen.add(wording)
    return dict(wrong)


def _attempts(out: Path) -> dict[str, int]:
    """Whole completions that were rejected, by reason."""
    lines = (out / "rejects.jsonl").read_text(encoding="utf-8").splitlines()
    return dict(Counter(row["reason"] for row in map(json.loads, lines) if row["what"] == "completion"))


def main() -> None:
    """Measures and prints; --json keeps the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", choices=list(DRAWS), default=list(DRAWS))
    parser.add_argument("--writer", nargs="*", choices=["template", "loopback"], default=["template", "loopback"])
    parser.add_argument("--per-level", type=int, default=500)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    os.environ.setdefault("OPENAI_API_KEY", "none")
    result: dict[str, Any] = {
        "conditions": {
            **conditions(SEED), "per_level": given.per_level, "load": os.getloadavg(),
            "python": platform.python_version(),
        }
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        kgs: dict[str, Path] = {}
        for name in given.data:
            graph = DRAWS[name][0]
            if graph not in kgs:
                kgs[graph] = Path(scratch) / graph
                (Path(scratch) / f"{graph}-work").mkdir()
                kgs[graph].mkdir()
                options = KgOptions(name=graph, files=GRAPHS[graph])
                build(Workspace(kgs[graph], Path(scratch) / f"{graph}-work"), options=options)
            for writer in given.writer:
                folder = Path(scratch) / f"{name}-{writer}"
                folder.mkdir()
                found = measure(name, writer, given.per_level, folder, kgs[graph])
                result[f"{name}/{writer}"] = found
                print(f"\n== {name}, {writer}: {json.dumps(found['draw'])}\n{json.dumps(found['levels'])}")
                for kind in ("qa", "conv"):
                    print(f"{kind}, {found[kind]['seconds']} s, {found[kind]['digest']}")
                    for row in found[kind]["table"]:
                        print("  ", row)
                    print("   rejects:", found[kind]["rejects"])
                    print("   audit:", found[kind]["audit"])
                if given.json:
                    results_file.write(given.json, result, FIELDS)


if __name__ == "__main__":
    main()
