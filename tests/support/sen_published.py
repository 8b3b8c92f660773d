"""A small Wikidata with P646, and the four question sets of Sen et al. 2023 in their makers' formats, of real data.

The graph is what `wikidata_mini` has around the questions; WebQSP's mids come from FB15k-237's map.  Questions are of
WebQSP's and LC-QuAD 2's training files and Mintaka's dev file alone: no test file is opened.  ComplexWebQuestions is
not here, so that its rows are WebQSP's first parses, written in its format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENTITY, DIRECT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
OF_ENTITY = 8
"""Triples of an entity that the graph keeps, beside those between entities of the questions and what queries ask."""


@dataclass(frozen=True)
class SenData:
    """graph: N-Triples.  folders: of the sets, by name.  nameless: mids whose items have a label and no P646."""

    graph: Path
    folders: dict[str, Path]
    nameless: tuple[str, ...]

    @property
    def settings(self) -> list[str]:
        """Settings of the profile that name the files."""
        return [f"questions.{name}.path={folder}" for name, folder in self.folders.items()]


def write_sen_data(data: Path, folder: Path, each: int) -> SenData:
    """Graph and sets of `each` questions in a folder.  data: the folder of real data."""
    labels = dict(_rows(data / "wikidata_mini" / "labels.en.tsv"))
    triples = [tuple(row) for row in _rows(data / "wikidata_mini" / "triples.tsv")]
    ends = {end for head, _, tail in triples for end in (head, tail)}
    pairs = {(head, relation) for head, relation, _ in triples}
    mids = _mids(data / "fb15k237" / "entity2wikidata.json", ends)
    webqsp = _webqsp(data / "webqsp" / "WebQSP.train.json", mids, 2 * each)
    mintaka = _mintaka(data / "mintaka" / "mintaka_dev.json", ends, each)
    lcquad2 = _lcquad2(data / "lcquad2_train" / "lcquad2_questions.jsonl", pairs, each)
    seeds = {mids[key] for question in webqsp for key in _keys(question["Parses"][0]) if key in mids}
    seeds |= {entity for row in mintaka for entity in _entities(row)}
    seeds |= {entity for row in lcquad2 for entity in re.findall(r"wd:(Q\d+)", row["sparql_wikidata"])}
    first = webqsp[0]["Parses"][0]
    named = {labels[mids[key]]: key for key in _keys(first) if key in mids and mids[key] in labels}
    nameless = tuple(key for name, key in named.items() if name == first["TopicEntityName"])
    graph = folder / "wikidata.nt"
    folder.mkdir(parents=True, exist_ok=True)
    bridged = {key: item for key, item in mids.items() if key not in nameless}
    asked = {found for row in lcquad2 for found in re.findall(r"wd:(Q\d+) wdt:(P\d+)", row["sparql_wikidata"])}
    _write_graph(graph, _around(triples, seeds, asked), labels, bridged)
    folders = {name: folder / name for name in ("webquestions", "cwq", "mintaka", "lcquad2")}
    for path in folders.values():
        path.mkdir(exist_ok=True)
    cut = each * 3 // 4
    for split, rows in (("train", webqsp[:cut]), ("test", webqsp[cut:each])):
        _write(folders["webquestions"] / f"WebQSP.{split}.json", {"Questions": rows})
    for split, rows in (("train", webqsp[each : each + cut]), ("dev", webqsp[each + cut :])):
        _write(folders["cwq"] / f"ComplexWebQuestions_{split}.json", [_complex(question) for question in rows])
    for split, rows in (("train", mintaka[: cut - 4]), ("dev", mintaka[cut - 4 : cut]), ("test", mintaka[cut:])):
        _write(folders["mintaka"] / f"mintaka_{split}.json", rows)
    for split, rows in (("train", lcquad2[:cut]), ("test", lcquad2[cut:])):
        _write(folders["lcquad2"] / f"{split}.json", rows)
    return SenData(graph, folders, nameless)


def _rows(path: Path) -> Iterable[list[str]]:
    with path.open(encoding="utf-8") as stream:
        yield from (line.rstrip("\n").split("\t") for line in stream)


def _mids(path: Path, ends: set[str]) -> dict[str, str]:
    pairs = json.loads(path.read_text(encoding="utf-8"))
    items = {mid[1:].replace("/", "."): about["wikidata_id"] for mid, about in pairs.items()}
    return {mid: item for mid, item in sorted(items.items()) if item in ends}


def _keys(parse: dict[str, Any]) -> list[str]:
    return [parse["TopicEntityMid"], *(answer["AnswerArgument"] for answer in parse["Answers"])]


def _webqsp(path: Path, mids: dict[str, str], count: int) -> list[dict[str, Any]]:
    """Questions whose first topic and one answer have an item."""
    rows = []
    for question in json.loads(path.read_text(encoding="utf-8-sig"))["Questions"]:
        parse = question["Parses"][0]
        topic, *answers = _keys(parse)
        if topic in mids and any(answer in mids for answer in answers) and topic not in answers:
            rows.append({**question, "Parses": [parse]})
    return rows[:count]


def _complex(question: dict[str, Any]) -> dict[str, Any]:
    parse = question["Parses"][0]
    answers = [
        {"answer_id": answer["AnswerArgument"], "answer": answer["EntityName"], "aliases": []}
        for answer in parse["Answers"]
        if answer["EntityName"]
    ]
    kind = "composition" if len(parse["InferentialChain"] or ()) > 1 else "conjunction"
    return {
        "ID": f"{question['QuestionId']}_cwq", "webqsp_ID": question["QuestionId"], "question": question["RawQuestion"],
        "webqsp_question": question["RawQuestion"], "machine_question": question["RawQuestion"],
        "sparql": parse["Sparql"], "compositionality_type": kind, "answers": answers,
    }  # fmt: skip


def _entities(row: dict[str, Any]) -> list[str]:
    topics = [mention["name"] for mention in row["questionEntity"] if mention["entityType"] == "entity"]
    answers = row["answer"]["answer"] or ()
    return [*topics, *(answer["name"] for answer in answers if isinstance(answer, dict))]


def _mintaka(path: Path, ends: set[str], count: int) -> list[dict[str, Any]]:
    """Questions all of whose entities are in the graph, of each complexity type in turn."""
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads(path.read_text(encoding="utf-8")):
        entities = _entities(row)
        if row["answer"]["answerType"] == "entity" and len(entities) > 1 and ends.issuperset(entities):
            by_kind.setdefault(row["complexityType"], []).append(row)
    every = [(number, kind, row) for kind, rows in sorted(by_kind.items()) for number, row in enumerate(rows)]
    return [row for _, _, row in sorted(every, key=lambda each: each[:2])[:count]]


def _lcquad2(path: Path, pairs: set[tuple[str, str]], count: int) -> list[dict[str, Any]]:
    """Training questions of one triple that the graph answers, and a tenth more that it does not."""
    answered, others = [], []
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            found = re.search(r"\{ ?wd:(Q\d+) wdt:(P\d+) \?answer ?\}", row["sparql_wikidata"])
            if row["split"] != "train" or found is None:
                continue
            written = {"uid": row["id"], "question": row["question"], "sparql_wikidata": row["sparql_wikidata"]}
            (answered if (found[1], found[2]) in pairs else others).append(written)
    every = answered[: count - count // 10]
    for number, row in enumerate(others[: count // 10]):
        every.insert(number * 10, row)
    return every


def _around(triples: list[tuple[str, ...]], seeds: set[str], asked: set[tuple[str, str]]) -> list[tuple[str, ...]]:
    counts: dict[str, int] = {}
    kept = []
    for triple in triples:
        here = [end for end in (triple[0], triple[2]) if end in seeds]
        if any(counts.get(end, 0) < OF_ENTITY for end in here) or len(here) == 2 or triple[:2] in asked:
            kept.append(triple)
            counts.update({end: counts.get(end, 0) + 1 for end in here})
    return kept


def _write_graph(path: Path, triples: list[tuple[str, ...]], labels: dict[str, str], mids: dict[str, str]) -> None:
    used = {part for triple in triples for part in triple}
    lines = [f"<{ENTITY}{head}> <{DIRECT}{relation}> <{ENTITY}{tail}> .\n" for head, relation, tail in triples]
    lines += [f"<{ENTITY}{key}> <{LABEL}> {json.dumps(labels[key])}@en .\n" for key in sorted(used) if key in labels]
    lines += [f'<{ENTITY}{item}> <{DIRECT}P646> "/{mid.replace(".", "/")}" .\n'
              for mid, item in mids.items() if item in used]  # fmt: skip
    path.write_text("".join(lines), encoding="utf-8")


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
