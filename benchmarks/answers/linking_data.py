"""Bare questions and sentences with the entities that they name, of five data sets over four graphs.

Atlas, ZJQA, SimpleQuestions and MetaQA have splits of their own.  Mintaka (its dev questions) and REBEL have none
here: of Mintaka the first 500 questions, of REBEL the first 300 abstracts are `train`, the rest is `test`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.config import KgOptions, QuestionsOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import load
from kgqa_core.kg.build import build as build_kg
from kgqa_core.linking.dictionary import build as build_mentions
from kgqa_core.linking.mentions import MentionDictionary
from kgqa_core.store.publish import publish_folder
from kgqa_core.workspace import Workspace

SETS = ("atlas", "zjqa", "simplequestions", "metaqa", "mintaka", "rebel")
CHOICE = {"mintaka": 500, "rebel": 300}
"""Questions and abstracts that weights and settings were chosen with."""
_SENTENCE = re.compile(r'(?<=[a-z0-9)\]"])[.!?]\s+(?=[A-Z"])')


@dataclass(frozen=True)
class Data:
    """Texts with the ids of the entities that they name.  kg, mentions: folders."""

    name: str
    rows: list[tuple[str, frozenset[int]]]
    kg: Path
    mentions: Path


def graph_of(name: str) -> str:
    """The graph of a data set."""
    return "wikidata" if name in ("simplequestions", "mintaka", "rebel", "wikidata") else name


def prepare(work: Path, shared: Path, graph: str) -> tuple[Path, Path]:
    """Folders of a graph and its mention dictionary, made on first use."""
    options = {
        "atlas": KgOptions(files=("bundled:atlas",)),
        "zjqa": KgOptions(
            files=(str(shared / "zjqa/indexes/triple.txt"),), format="delimited", delimiter="\t", languages=("zh", "")
        ),
        "metaqa": KgOptions(files=(str(shared / "metaqa/kb_reconstructed.txt"),), format="delimited", delimiter="|"),
        "wikidata": KgOptions(
            files=tuple(str(shared / "wikidata_mini" / f"{n}.tsv") for n in ("triples", "labels.en", "qualifiers"))
        ),
    }[graph]
    kg, mentions = work / graph / "kg", work / graph / "mentions"
    if not kg.is_dir():
        publish_folder("kg", kg, lambda out, scratch: build_kg(Workspace(out, scratch), options=options))
    if not mentions.is_dir():
        publish_folder("mentions", mentions, lambda out, scratch: build_mentions(Workspace(out, scratch), kg=kg))
    return kg, mentions


def read(work: Path, shared: Path, name: str, split: str, seed: int = 7) -> Data:
    """A data set's texts of one split that name an entity of the graph with a label of its own."""
    kg, folder = prepare(work, shared, graph_of(name))
    mentions = MentionDictionary(folder)
    if name == "mintaka":
        rows = _mintaka(shared / "mintaka/mintaka_dev.json", mentions, split)
    elif name == "rebel":
        rows = _rebel(shared / "passages/rebel_sample.jsonl", mentions, split)
    else:
        rows = _questions(work, shared, name, kg, split, seed)
        if name == "simplequestions":
            rows = [(text, gold) for text, gold in rows if all(mentions.labels[e] != mentions.keys[e] for e in gold)]
    return Data(name, rows, kg, folder)


def _questions(
    work: Path, shared: Path, name: str, kg: Path, split: str, seed: int
) -> list[tuple[str, frozenset[int]]]:
    options = {
        "atlas": QuestionsOptions(source="atlas"),
        "zjqa": QuestionsOptions(source="zjqa", path=str(shared / "zjqa"), language="zh"),
        "metaqa": QuestionsOptions(source="metaqa", path=str(shared / "metaqa"), train_from="dev"),
        "simplequestions": QuestionsOptions(source="simplequestions", path=str(shared / "simplequestions_wikidata")),
    }[name]
    folder = work / name / "questions"
    if not folder.is_dir():
        publish_folder("questions", folder, lambda out, _: load(Workspace(out), kg=kg, options=options, seed=seed))
    return [
        (question.text, frozenset(question.topic_entities))
        for question in read_questions(folder)
        if question.split == split and question.topic_entities
    ]


def _labelled(mentions: MentionDictionary) -> dict[str, int]:
    return {key: i for i in range(len(mentions.keys)) if (key := mentions.keys[i]) and mentions.labels[i] != key}


def _mintaka(path: Path, mentions: MentionDictionary, split: str) -> list[tuple[str, frozenset[int]]]:
    ids, rows = _labelled(mentions), []
    questions = json.loads(path.read_text(encoding="utf-8"))
    cut = CHOICE["mintaka"]
    for row in questions[:cut] if split == "train" else questions[cut:]:
        named = [entity["name"] for entity in row["questionEntity"] if entity["entityType"] == "entity"]
        gold = frozenset(ids[key] for key in named if key in ids)
        if gold:
            rows.append((row["question"], gold))
    return rows


def _rebel(path: Path, mentions: MentionDictionary, split: str) -> list[tuple[str, frozenset[int]]]:
    ids, rows = _labelled(mentions), []
    lines = path.read_text(encoding="utf-8").splitlines()
    cut = CHOICE["rebel"]
    for line in lines[:cut] if split == "train" else lines[cut:]:
        row = json.loads(line)
        text = row["text"]
        ends = [0, *(found.end() for found in _SENTENCE.finditer(text)), len(text)]
        for start, end in zip(ends, ends[1:], strict=False):
            gold = frozenset(
                ids[entity["uri"]]
                for entity in row["entities"]
                if entity["uri"] in ids and start <= entity["boundaries"][0] and entity["boundaries"][1] <= end
            )
            if gold:
                rows.append((text[start:end].strip(), gold))
    return rows
