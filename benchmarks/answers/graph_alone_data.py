"""Graphs of graph_alone.py: their files and settings, questions in everyday wording, and a few that train.

The questions are written from general knowledge of what each graph is about; what the graph holds on the few things
that they name was looked up in its files.  No question set was looked at.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.conditions import PROFILES
from kgqa_core.config import make_profile, read_profile
from kgqa_core.datasets.load import read_raw
from kgqa_core.types import INVERSE
from tests.support.toy import write_graph

TSV_LINES = 200
FIELDS = ("id", "question", "topic_entities", "answers")


@dataclass(frozen=True)
class Ask:
    """A question that is put to the finished system.  expected: the complete answer; nothing if the graph has none."""

    question: str
    expected: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """A graph of the benchmark.

    description: one sentence.  files: in the shared data; none where the file is made.  settings: of `kgqa run`.
    profile: the shipped profile whose training split gives the few own questions; without it they are `OWN`.
    """

    description: str
    asks: tuple[Ask, ...]
    files: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    profile: str | None = None

    def paths(self, shared: Path, work: Path) -> list[Path]:
        """The files of the graph; the made one is written first."""
        if self.files:
            return [shared / name for name in self.files]
        made = work / "graph.tsv"
        write_graph(made, TSV_LINES)
        return [made]

    def few(self, number: int, shared: Path, seed: int) -> list[dict[str, Any]]:
        """Rows of so many own questions: those that are written here, or a sample of a training split.

        Raises ValueError where there are fewer.
        """
        rows = [_row(f"own-{n:02d}", *one) for n, one in enumerate(OWN, 1)]
        if self.profile is not None:
            tree = read_profile(PROFILES / f"{self.profile}.yaml")
            tree["questions"]["path"] = tree["questions"]["path"].replace("../shared/data", str(shared))
            profile = make_profile(tree)
            rows = [row for row in read_raw(profile.questions, profile.seed) if row["split"] == "train"]
        if number > len(rows):
            raise ValueError(f"{number} own questions are asked for, but there are {len(rows)}")
        chosen = sorted(random.Random(seed).sample(rows, number), key=lambda row: row["id"])
        if self.profile == "wikidata-mini":
            chosen = complete(chosen, _triples(shared / self.files[0]))
        return [{name: row[name] for name in FIELDS} | {"relation_path": row["relation_paths"]} for row in chosen]


def complete(rows: Sequence[Mapping[str, Any]], triples: Iterable[Sequence[str]]) -> list[dict[str, Any]]:
    """Rows of one hop with all answers: SimpleQuestions names one of everything that a relation leads to."""
    wanted = {(row["topic_entities"][0], row["relation_paths"][0][0]) for row in rows}
    ends: dict[tuple[str, str], list[str]] = defaultdict(list)
    for head, relation, tail in triples:
        for start, step, end in ((head, relation, tail), (tail, INVERSE + relation, head)):
            if (start, step) in wanted:
                ends[start, step].append(end)
    return [
        {
            **row,
            "answers": list(
                dict.fromkeys([*row["answers"], *ends[row["topic_entities"][0], row["relation_paths"][0][0]]])
            ),
        }
        for row in rows
    ]


def _triples(path: Path) -> Iterable[list[str]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield line.rstrip("\n").split("\t")[:3]


def _row(name: str, text: str, topic: str, answers: str, path: str) -> dict[str, Any]:
    return {
        "id": name, "question": text, "topic_entities": [topic], "answers": answers.split(", "),
        "relation_paths": [path.split()],
    }  # fmt: skip


def jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    """A question file."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


OWN = (
    ("who founded Gufe Ltd", "Gufe Ltd", "Tesu Seda", "founded_by"),
    ("whos the founder of Mazu Ltd?", "Mazu Ltd", "Kovo Titapi", "founded_by"),
    ("who started Nipi Ltd", "Nipi Ltd", "Leku Ronite", "founded_by"),
    ("Who set up Pavi Ltd?", "Pavi Ltd", "Pesigi Sefebu", "founded_by"),
    ("where is Kugu Ltd based", "Kugu Ltd", "Lome", "based_in"),
    ("In which town is Fokavi Ltd?", "Fokavi Ltd", "Zogoli", "based_in"),
    ("what town does Lazomi Ltd have its office in", "Lazomi Ltd", "Sono", "based_in"),
    ("Where is the head office of Leki Ltd?", "Leki Ltd", "Tami", "based_in"),
    ("what region is Gemi in", "Gemi", "Surina", "located_in"),
    ("Which region does Kebofu belong to?", "Kebofu", "Bebu", "located_in"),
    ("where is Rizi", "Rizi", "Visepo", "located_in"),
    ("in what part of the country is Zanare", "Zanare", "Poduvi", "located_in"),
    ("which companies are in Mevetu?", "Mevetu", "Bego Ltd, Paviru Ltd", "<inv>-based_in"),
    ("what companies sit in Gemi", "Gemi", "Kelu Ltd, Vimogu Ltd", "<inv>-based_in"),
    ("what did Rile Dema found", "Rile Dema", "Leki Ltd", "<inv>-founded_by"),
    ("which company was started by Kurifi Buri", "Kurifi Buri", "Nenamu Ltd", "<inv>-founded_by"),
    ("what towns are there in Visepo", "Visepo", "Dufe, Fidu, Fobo, Pafo, Rizi", "<inv>-located_in"),
    ("in which region is Bubofa Ltd based?", "Bubofa Ltd", "Lukena", "based_in located_in"),
    ("in what region does Levime Ltd sit", "Levime Ltd", "Rusa", "based_in located_in"),
    ("in which town is the company of Sini Kulu", "Sini Kulu", "Fibabi", "<inv>-founded_by based_in"),
)
"""Own questions about the TSV: text, topic, answers, relation path."""

GRAPHS = {
    "tsv": Graph(
        "A register of 40 companies, their founders and towns, with invented names, made by the test suite.",
        (
            Ask("who started Gekobo Ltd", ("Tasafu Molo",)),
            Ask("which companies did Biba Suma set up?", ("Bubofa Ltd", "Vimo Ltd")),
            Ask("in which region is the seat of Tevite Ltd", ("Lukena",)),
            Ask("how many towns are there in Budi?", ("6",)),
            Ask("who is the mayor of Mevetu"),
            Ask("who founded Acme Ltd?"),
        ),
    ),
    "wikidata_mini": Graph(
        "A part of Wikidata: triples, labels and qualifiers.",
        (
            Ask("which instruments did Ludwig van Beethoven play?", ("piano", "violin")),
            Ask("where does nintendo have its head office", ("Kyoto",)),
            Ask("who was Albert Einstein's wife", ("Mileva Marić",)),
            Ask("how many awards has Bob Dylan got?", ("18",)),
            Ask("how many people live in Tokyo"),
            Ask("What is Nintendo's phone number?"),
        ),
        tuple(f"wikidata_mini/{name}.tsv" for name in ("triples", "labels.en", "qualifiers")),
        profile="wikidata-mini",
    ),
    "metaqa": Graph(
        "Films with directors, writers, actors, genres, years, languages and tags; names only, no types.",
        (
            Ask("who directed Jaws", ("Steven Spielberg",)),
            Ask("when did Inception come out?", ("2010",)),
            Ask(
                "what other movies did the director of Lost in Translation make",
                ("Marie Antoinette", "Somewhere", "The Bling Ring", "The Virgin Suicides"),
            ),
            Ask("how many films did Sofia Coppola direct?", ("5",)),
            Ask("how much money did Titanic make"),
            Ask("Where was Tom Hanks born?"),
        ),
        ("metaqa/kb_reconstructed.txt",),
        ("kg.format=delimited", "kg.delimiter=|", "label_parser.hops=3"),
        "metaqa",
    ),
}
