"""What is here of each data set, and a run on the part that a graph of this workplace holds.

    python -m benchmarks.questions.data_sets --work DIR [--only SET …] [--json FILE] [--data DIR]
    python -m benchmarks.questions.data_sets --table [--json FILE]

Read: files, rows that are questions, those with answers, with a logical form, with relation paths; a set without
answers in its files has those that its queries give on the graph.  linkable: a topic and an answer are in the graph.
Graphs: those of MetaQA and ZJQA, `wikidata_mini`, and for questions over Freebase the graph of the annotations of
WebQSP's train file and of GrailQA's sample (`sparql_road_sets`): these hold little else than what is asked, so that
random facts are good on them.

The run: at most 200 linkable questions of one split, drawn by the seed, with the topics of the file.  random: 10 random
facts of one hop; oracle: the gold relation paths, of the questions that have some; kaping: hops 1, at most 50 triples
compared; auto: the packaged head start alone, nothing trained, no generated questions, declining nothing.  hits_at_1:
the first answer is a gold one; f1: of the whole answer (of a retriever the entities of the highest score), the mean.
Intervals are 95 %, by the normal approximation.  Sets that are finished stay in the JSON; --only makes one again.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results_file
from benchmarks.answers.auto_figures import is_hit
from benchmarks.answers.people import normal, share
from benchmarks.conditions import DATA, RESULTS, commit_name, conditions
from benchmarks.questions.sparql_road_sets import grailqa_queries, graph_of, webqsp_queries
from benchmarks.results_file import fields_below
from kgqa_core.config import (
    KapingOptions,
    KgOptions,
    LabelParserOptions,
    LinkingOptions,
    QuestionsOptions,
    RetrievalOptions,
    SymbolicOptions,
)
from kgqa_core.datasets.files.question import read_questions, write_questions
from kgqa_core.datasets.load import load, read_source
from kgqa_core.datasets.published.registry import BENCHMARKS, local_files
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.errors import KgqaError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import Log
from kgqa_core.retrieval.api import RetrieverInputs
from kgqa_core.retrieval.registry import open_retriever
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.by_labels.model import load as load_parser
from kgqa_core.symbolic.by_labels.stage import train
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

SEED = 7
FIELDS = ("benchmark", *fields_below("sets/*"), "sets/*/...")
"""What the result file holds (benchmarks/results_file.py)."""
SAMPLE = 200
RANDOM_FACTS = 10
log = logging.getLogger("kgqa")


@dataclass(frozen=True)
class LocalSet:
    """How a set is read here and which graph holds a part of it.

    path: below the data folder.  graph: of GRAPHS; None with the reason.  split: that is measured; None for all
    questions, of a file without splits.  retrievers: that are run.  note: of the row.
    """

    path: str
    graph: str | None
    reason: str = ""
    split: str | None = None
    retrievers: tuple[str, ...] = ("random", "oracle", "kaping")
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


NO_FREEBASE, NO_DBPEDIA = "there is no graph of Freebase here", "there is no graph of DBpedia here"

LOCAL: Mapping[str, LocalSet] = {
    "MetaQA": LocalSet("metaqa", "metaqa", split="test", options={"train_from": "dev"}),
    "ZJQA": LocalSet(
        "zjqa", "zjqa", split="test", retrievers=("random", "oracle"), options={"language": "zh"},
        note="the packaged encoder of kaping reads no Chinese",
    ),
    "WebQSP": LocalSet(
        "webqsp", "webqsp", split="dev", options={"parses": "all"}, note="all parses; graph of the annotations of train"
    ),
    "GrailQA": LocalSet("grailqa/tog/graliqa.json", "grailqa", note="graph of its graph queries"),
    "GrailQAbility": LocalSet("grailqa/grailqability", None, "its questions are not here, only the lists of deletions"),
    "Mintaka": LocalSet("mintaka/mintaka_dev.json", "wikidata_mini"),
    "LC-QuAD 2": LocalSet(
        "lcquad2/ibm_genrl/lcquad2_test_validated.jsonl", "wikidata_mini",
        note="621 of its questions train the head start of `auto`",
    ),
    "LC-QuAD 1": LocalSet(
        "relation_linking/lcquad1/lcquad1_test_validated.jsonl", None, NO_DBPEDIA,
        note="one of its files has queries, the others are of relation linking",
    ),
    "QALD-9": LocalSet("relation_linking/qald9", None, f"the official files are not here, and {NO_DBPEDIA}"),
    "SimpleQuestions-Wikidata": LocalSet("simplequestions_wikidata", "wikidata_mini", split="test"),
    "PopQA": LocalSet("longtail/Disambiguated_Datasets/DisambPopQA.csv", "wikidata_mini"),
    "EntityQuestions": LocalSet("longtail/Disambiguated_Datasets/DisambEntityQA.csv", "wikidata_mini"),
    "WiTQA": LocalSet("longtail/Disambiguated_Datasets/DisambWITQA.csv", "wikidata_mini"),
}  # fmt: skip
"""By the name of the registry, those with files here."""


@dataclass
class Graphs:
    """Graphs in a folder, made where they are not there."""

    work: Path
    data: Path

    def folder(self, name: str) -> Path:
        """The folder with `kg` and `dkg` of a graph."""
        folder = self.work / name
        if not (folder / "done").is_file():
            folder.mkdir(parents=True, exist_ok=True)
            self._make(name, folder)
            (folder / "dkg").mkdir(exist_ok=True)
            export(Workspace(folder / "dkg"), kg=folder / "kg")
            (folder / "done").touch()
        return folder

    def _make(self, name: str, folder: Path) -> None:
        annotated = {
            "webqsp": lambda: webqsp_queries(self.data / "webqsp"),
            "grailqa": lambda: grailqa_queries(self.data / "grailqa" / "tog" / "graliqa.json"),
        }
        if name in annotated:
            store = graph_of(list(annotated[name]()), folder)
            assert store is not None
            store.close()
            return
        files = {
            "metaqa": ("metaqa/kb_reconstructed.txt",),
            "zjqa": ("zjqa/indexes/triple.txt",),
            "wikidata_mini": tuple(
                f"wikidata_mini/{part}" for part in ("triples.tsv", "labels.en.tsv", "qualifiers.tsv")
            ),
        }
        (folder / "kg").mkdir(exist_ok=True)
        build(Workspace(folder / "kg"), options=KgOptions(files=tuple(str(self.data / file) for file in files[name])))

    def parser(self, name: str) -> Path:
        """The packaged head start as a trained parser of a graph."""
        folder = self.folder(name) / "parser"
        if not folder.is_dir():
            (self.work / "none").mkdir(exist_ok=True)
            write_questions(self.work / "none", [Question("none", "none")])
            folder.mkdir()
            train(
                Workspace(folder),
                kg=self.folder(name) / "kg",
                questions=self.work / "none",
                generated=None,
                mentions=None,
                options=LabelParserOptions(steps=0, generated=0),
                linking=LinkingOptions(),
                seed=SEED,
            )
        return folder


def measure(name: str, graphs: Graphs) -> dict[str, Any]:
    """The record of one set."""
    local = LOCAL[name]
    spec = next(one for one in BENCHMARKS if one.name == name)
    here = local_files(graphs.data)[name]
    record: dict[str, Any] = {"conditions": conditions(SEED), "files": len(here.files), "note": local.note}
    options = QuestionsOptions.model_validate(
        {"source": spec.source, "path": str(graphs.data / local.path), **local.options}
    )
    try:
        rows, rejects = read_source(options, SEED)
    except KgqaError:
        return record | {"reason": local.reason}
    record |= {
        "questions": len(rows),
        "rejects": len(rejects),
        "with_answers": sum(bool(row["answers"]) for row in rows),
        "with_forms": sum(row["s_expression"] is not None for row in rows),
        "with_paths": sum(bool(row["relation_paths"]) for row in rows),
    }
    if local.graph is None:
        return record | {"reason": local.reason}
    folder = graphs.folder(local.graph)
    own = graphs.work / "questions" / name.replace(" ", "-").lower()
    own.mkdir(parents=True, exist_ok=True)
    load(Workspace(own), kg=folder / "kg", options=options, seed=SEED)
    every = read_questions(own)
    linkable = [one for one in every if one.unlinkable is None]
    measured = [one for one in linkable if local.split in (None, one.split) and one.answers]
    chosen = sorted(random.Random(SEED).sample(measured, min(SAMPLE, len(measured))), key=lambda one: one.id)
    record |= {"graph": local.graph, "linkable": len(linkable), "split": local.split or "all", "sample": len(chosen)}
    return record | {"runs": _runs(chosen, folder, local, graphs)}


def _runs(chosen: Sequence[Question], folder: Path, local: LocalSet, graphs: Graphs) -> dict[str, Any]:
    dkg, runs = Dkg.open(folder / "dkg"), {}
    sections = {"kaping": KapingOptions(hops=1, max_triples=50)}
    for name in local.retrievers:
        questions = [one for one in chosen if name != "oracle" or one.relation_paths]
        started = time.monotonic()
        inputs = RetrieverInputs(
            dkg,
            RetrievalOptions(k=RANDOM_FACTS),
            SEED,
            sections.get(name),
            kg=folder / "kg",
            cache=graphs.work / "cache",
        )
        found = open_retriever(name, inputs).retrieve(questions, Log(every=60))
        ranked = [[entity for entity, score in one.entities if score == one.entities[0][1]] for one in found]
        hits = [bool(own) and own[0] in one.answers for one, own in zip(questions, ranked, strict=True)]
        scores = [_f1(set(own), set(one.answers)) for one, own in zip(questions, ranked, strict=True)]
        runs[name] = _figures(hits, scores, started)
    with KgStore.open(folder / "kg") as store:
        started = time.monotonic()
        solver = AutoSolver(
            store, SymbolicOptions(max_answers=1_000_000), load_parser(graphs.parser(local.graph or "")), 0.0
        )
        solved = solver.solve(list(chosen), monitor=Log(every=60))
    hits = [is_hit(one, own.keys) for one, own in zip(chosen, solved, strict=True)]
    scores = [
        _f1(normal(list(own.keys)), normal(list(one.answer_keys))) for one, own in zip(chosen, solved, strict=True)
    ]
    return runs | {"auto": _figures(hits, scores, started)}


def _f1(found: Any, gold: Any) -> float:
    """Of two sets, in [0, 1]."""
    both = len(found & gold)
    return 2 * both / (len(found) + len(gold)) if both else 0.0


def _figures(hits: Sequence[bool], scores: Sequence[float], started: float) -> dict[str, Any]:
    """Hits@1 and F1 with their intervals, and seconds."""
    f1: dict[str, Any] = {"share": None, "n": 0}
    if scores:
        mean, half = float(np.mean(scores)), 1.96 * float(np.std(scores)) / len(scores) ** 0.5
        low, high = max(0.0, mean - half), min(1.0, mean + half)
        f1 = {"share": round(mean, 4), "low": round(low, 4), "high": round(high, 4), "n": len(scores)}
    return {"hits_at_1": share(list(hits)), "f1": f1, "seconds": round(time.monotonic() - started, 1)}


COUNTED = ("questions", "with_answers", "with_forms", "with_paths", "linkable")


def table(document: Mapping[str, Any]) -> str:
    """The sets as two markdown tables: what is here, and the runs."""
    sets = {name: document["sets"][name] for name in LOCAL if name in document["sets"]}
    lines = [
        "| set | files | questions | with answers | with forms | with paths | linkable | graph |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, own in sets.items():
        cells = [f"{own[key]:,}" if key in own else "–" for key in COUNTED]
        lines.append(f"| {name} | {own['files']} | {' | '.join(cells)} | {own.get('graph') or own['reason']} |")
    lines += [
        "",
        "| set, split, n | | random facts | oracle (n) | kaping | `auto`, head start |",
        "|---|---|---|---|---|---|",
    ]
    for name, own in sets.items():
        for key, title in (("hits_at_1", "Hits@1"), ("f1", "F1")) if "runs" in own else ():
            shown = [
                _shown(own["runs"].get(run, {}).get(key), n=run == "oracle")
                for run in ("random", "oracle", "kaping", "auto")
            ]
            head = f"{name}, {own['split']}, {own['sample']}" if key == "hits_at_1" else ""
            lines.append(f"| {head} | {title} | {' | '.join(shown)} |")
    notes = [f"{name}: {own['note']}" for name, own in sets.items() if own["note"]]
    made = sorted({(commit_name(own["conditions"]["commit"]), own["conditions"]["date"]) for own in sets.values()})
    where = ", ".join(f"commit {commit}, {date}" for commit, date in made)
    return "\n".join([*lines, "", f"Notes. {'; '.join(notes)}. Conditions: {where}; seed {SEED}."])


def _shown(figure: Mapping[str, Any] | None, *, n: bool) -> str:
    if not figure or figure["share"] is None:
        return "–"
    text = f"{figure['share']:.3f} [{figure['low']:.3f}, {figure['high']:.3f}]"
    return f"{text} ({figure['n']})" if n else text


def main() -> None:
    """Reads the command line, and measures or prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder of graphs, questions and vectors, found again")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", action="append", choices=tuple(LOCAL))
    parser.add_argument("--json", type=Path, default=RESULTS / "data_sets.json")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    document: dict[str, Any] = {"benchmark": "data_sets", "sets": {}}
    if given.json.is_file():
        document = json.loads(given.json.read_text(encoding="utf-8"))
    if given.table:
        print(table(document))
        return
    if given.work is None:
        parser.error("--work is needed, or --table")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    graphs = Graphs(given.work.resolve(), given.data.resolve())
    for name in given.only or LOCAL:
        if name in document["sets"] and not given.only:
            continue
        document["sets"][name] = measure(name, graphs)
        ordered = {one: document["sets"][one] for one in LOCAL if one in document["sets"]}
        document = {"benchmark": "data_sets", "sets": ordered}
        results_file.write(given.json, document, FIELDS)
        log.info("%s: %s", name, json.dumps(document["sets"][name], ensure_ascii=False))


if __name__ == "__main__":
    main()
