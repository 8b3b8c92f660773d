"""The real graph of the head start: a sample of Wikidata without any fact that a scored question rests on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import execute
from kgqa_core.logic.parser import parse
from kgqa_core.workspace import Workspace

Fact = tuple[str, str, str]
PEOPLE = Path(__file__).parents[2] / "benchmarks" / "people"


def scored_facts(data: Path, graph: Path) -> set[Fact]:
    """Facts that scored questions rest on: of SimpleQuestions dev and test, of people's questions over this graph.

    data: the folder of public data.  graph: `wikidata_mini` as built.
    """
    found: set[Fact] = set()
    for split in ("valid", "test"):
        path = data / "simplequestions_wikidata" / f"annotated_wd_data_{split}_answerable.txt"
        for line in path.read_text(encoding="utf-8").splitlines():
            head, relation, tail = line.split("\t")[:3]
            found.add((tail, "P" + relation[1:], head) if relation.startswith("R") else (head, relation, tail))
    with KgStore.open(graph) as store:
        triples: set[int] = set()
        for split in ("dev", "locked"):
            for row in _rows(PEOPLE / split / "wikidata_mini.jsonl"):
                if row["s_expression"]:
                    triples.update(execute(parse(row["s_expression"]), store).proof)
        ends = store.triples(sorted(triples))
        keys = store.entity_keys({node for head, _, tail in ends.values() for node in (head, tail)})
        relations = store.relation_keys()
        found |= {(keys[head], relations[relation], keys[tail]) for head, relation, tail in ends.values()}
    return found


def scored_pairs(data: Path) -> set[tuple[str, str]]:
    """(entity of a question, entity of its answer) of Mintaka dev, in both orders."""
    found: set[tuple[str, str]] = set()
    for row in json.loads((data / "mintaka" / "mintaka_dev.json").read_text(encoding="utf-8")):
        topics = [one["name"] for one in row["questionEntity"] or () if one["entityType"] == "entity"]
        answers = [one["name"] for one in (row["answer"]["answer"] or ()) if isinstance(one, dict)]
        found |= {pair for topic in topics for answer in answers for pair in ((topic, answer), (answer, topic))}
    return found


def build_real_graph(data: Path, whole: Path, work: Path) -> Path:
    """Builds the graph without these facts into `work/wikidata`, and returns its folder.  whole: `wikidata_mini`."""
    out, files = work / "wikidata", [work / "triples.tsv", data / "wikidata_mini" / "labels.en.tsv"]
    if out.is_dir():
        return out
    facts, pairs = scored_facts(data, whole), scored_pairs(data)
    triples = data / "wikidata_mini" / "triples.tsv"
    with files[0].open("w", encoding="utf-8") as target, triples.open(encoding="utf-8") as source:
        for line in source:
            head, relation, tail = line.rstrip("\n").split("\t")
            if (head, relation, tail) not in facts and (head, tail) not in pairs:
                target.write(line)
    from kgqa_core.config import KgOptions

    out.mkdir(parents=True)
    build(Workspace(out), options=KgOptions(files=tuple(str(file) for file in files)))
    return out


def _rows(path: Path) -> Iterator[dict[str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
