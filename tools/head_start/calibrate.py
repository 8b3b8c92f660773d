"""Fits the calibration of the packaged head start on development questions of several graphs.

    python -m tools.head_start.calibrate --data ../shared/data --cases ../shared/cases --work DIR
        [--json benchmarks/results/head_start_calibration.json]

Writes calibration.json beside the head start, with what it was fitted on.  The figures are cross-fitted: the confidence
of a graph's questions is of a calibration that no question of this graph was in.  Graphs and rows lie in DIR and are
not made twice.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results_file
from benchmarks.answers import quiz
from benchmarks.answers.cases import joined
from benchmarks.answers.people import NEAR, PEOPLE, is_exact
from benchmarks.conditions import conditions
from kgqa_core.answering.reply import Answer
from kgqa_core.builders.questions.generate import make
from kgqa_core.config import KgOptions, LabelParserOptions, LinkingOptions, make_profile, read_profile
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions
from kgqa_core.datasets.load import read_raw
from kgqa_core.errors import KgqaError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.dictionary import build as build_mentions
from kgqa_core.linking.tagger import open_tagger
from kgqa_core.metrics.confidence import expected_calibration_error
from kgqa_core.search.graph import LabelGraph
from kgqa_core.store.publish import publish_folder
from kgqa_core.symbolic.by_labels.calibrate import AS_IT_IS, Calibration, choose, fit_rows
from kgqa_core.symbolic.by_labels.model import CALIBRATION, load
from kgqa_core.symbolic.by_labels.packaged import HEAD_START
from kgqa_core.symbolic.by_labels.parser import LabelParser, answer_nodes, answers_of
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.symbolic.by_labels.stage import link_some
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.toy import write_graph

log = logging.getLogger("head_start")
ROOT = Path(__file__).resolve().parents[2]
SEED = 7
GENERATED = 150
"""Questions made from each graph."""
SAMPLED, SIMPLE = 200, 400
"""Questions drawn from the dev split of a data set, and from the training split of SimpleQuestions over Wikidata."""
SMALL = ("dev2", "dev3", "dev4", "dev5")
"""Sets of people's questions over small graphs of their own."""
QUIZZES = (quiz.MINTAKA, quiz.QALD)
"""Sets of quiz questions whose licence allows it; most have no answer in the graph."""
THRESHOLD = LabelParserOptions().threshold
WEIGHTS = {"people": 1.0, "dev": 0.5, "quiz": 0.35, "simple": 0.25, "generated": 0.25}
"""Of a question by where it is from: generated ones are many, and in other words than people's."""
RIDGE_WEIGHT = 33.0
"""Weight of all questions together against `calibrate.RIDGE`."""
FIELDS = ("benchmark", "conditions/...", "questions/...", "cross_fitted/...")


@dataclass(frozen=True)
class Row:
    """A question with its graph and source, what a calibration reads of its best answer, and whether this is right."""

    graph: str
    source: str
    inputs: list[float]
    right: bool


def _files(folder: Path, *names: str) -> tuple[str, ...]:
    return tuple(str(folder / name) for name in names)


def _json_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def graphs(data: Path, cases: Path, work: Path) -> Iterator[tuple[str, KgOptions]]:
    """Names and files of the graphs."""
    yield "atlas", make_profile(read_profile(ROOT / "flows" / "profiles" / "atlas.yaml")).kg
    yield (
        "wikidata_mini",
        KgOptions(files=_files(data / "wikidata_mini", "triples.tsv", "labels.en.tsv", "qualifiers.tsv")),
    )
    yield "metaqa", KgOptions(files=_files(data / "metaqa", "kb_reconstructed.txt"), format="delimited", delimiter="|")
    register = work / "register.tsv"
    write_graph(register, 600, seed=5)
    yield "register", KgOptions(files=(str(register),))
    for part in SMALL:
        for folder in sorted((PEOPLE / part / "graphs").iterdir()):
            yield (
                f"{part}-{folder.name}",
                KgOptions(files=_files(folder, *sorted(path.name for path in folder.iterdir()))),
            )
    for folder in sorted(cases.iterdir()):
        if (folder / "questions.jsonl").is_file():
            names = [path.name for path in sorted(folder.iterdir()) if path.name not in ("case.md", "questions.jsonl")]
            names = [name for name in names if name.endswith((".ttl", ".nt"))] or names  # beside what they were made of
            yield folder.name, KgOptions(files=_files(folder, *names))


def questions(name: str, data: Path, cases: Path, store: KgStore) -> Iterator[tuple[str, dict[str, Any]]]:
    """Source and rows of a graph's questions: `answers` by name, none where the graph has no answer."""
    people = [PEOPLE / part / f"{name.removeprefix('real-')}.jsonl" for part in ("dev", "unread_dev")]
    people += [PEOPLE / part / f"{name.removeprefix(f'{part}-')}.jsonl" for part in SMALL if name.startswith(part)]
    for path in (*people, cases / name / "questions.jsonl"):
        for row in _json_rows(path) if path.is_file() else ():
            yield "people", row
    if name == "metaqa":
        tree = read_profile(ROOT / "flows" / "profiles" / "metaqa.yaml")
        tree["questions"]["path"] = tree["questions"]["path"].replace("../shared/data", str(data))
        profile = make_profile(tree)
        rows = [row for row in read_raw(profile.questions, profile.seed) if row["split"] == "dev"]
        for row in random.Random(SEED).sample(sorted(rows, key=lambda row: row["id"]), SAMPLED):
            yield "dev", row
    if name == "wikidata_mini":
        yield from _wikidata_rows(data)
    for row in make(store, GeneratedQuestionsOptions(size=GENERATED, unanswerable=0.25, read_back=0), SEED):
        yield "generated", row


def _wikidata_rows(data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Half of the quiz questions that are in no development set, and some of SimpleQuestions, answers by key."""
    known = {(name, key) for name, key, _ in quiz.listed()}
    for one in quiz.questions(data):
        if one.set in QUIZZES and (one.set, one.id) not in known and zlib.crc32(one.id.encode()) % 2:
            yield "quiz", {"question": one.text, "answers": list(one.gold), "some": True}
    label, tails = quiz.labels(data), defaultdict[tuple[str, str], list[str]](list)
    for head, relation, tail in quiz.triples(data):
        tails[head, relation].append(tail)
        tails[tail, f"R{relation[1:]}"].append(head)
    path = data / "simplequestions_wikidata" / "annotated_wd_data_train_answerable.txt"
    facts = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    facts = [fact for fact in facts if {fact[0], fact[2]} <= label.keys()]
    for head, relation, tail, text in random.Random(SEED).sample(facts, min(SIMPLE, len(facts))):
        yield "simple", {"question": text, "answers": tails.get((head, relation), [tail]), "some": True}


def rows_of(name: str, options: KgOptions, data: Path, cases: Path, work: Path) -> list[Row]:
    """What the head start says of a graph's questions, kept in `work`."""
    kept = work / f"{name}.rows.json"
    if kept.is_file():
        return [Row(**row) for row in json.loads(kept.read_text(encoding="utf-8"))]
    kg, mentions, linking, found = work / name, work / f"{name}-mentions", LinkingOptions(), []
    if not kg.is_dir():
        publish_folder("kg", kg, lambda out, scratch: build(Workspace(out, scratch), options=options))
        publish_folder("mentions", mentions, lambda out, scratch: build_mentions(Workspace(out, scratch), kg=kg))
    with KgStore.open(kg) as store:
        graph, model = LabelGraph(store), load(None)
        parser = LabelParser(graph, LabelScorer(model.network), model.hops)
        sources, rows = zip(*questions(name, data, cases, store), strict=True)
        asked = [(Question(f"{place}", row["question"]), "", 1.0) for place, row in enumerate(rows)]
        linked = link_some(asked, open_tagger(mentions, kg, linking), linking, random.Random(SEED), gold=0.0)
        choices = [choose(ranked) for ranked in parser.parse([question for question, _, _ in linked])]
        nodes = sorted({node for one in choices if one.best is not None for node in answer_nodes(one.best)})
        names, keys = store.names(nodes), store.entity_keys(nodes)
        for source, row, choice in zip(sources, rows, choices, strict=True):
            if choice.best is None:
                continue
            gold, told = row.get("answers") or [], [list(answers_of(choice.best, own)) for own in (names, keys)]
            right = row.get("answerable", True) and not choice.empty and any(is_right(row, own) for own in told)
            if row.get("some") and not choice.empty:  # of a graph that lacks some facts
                right = bool(joined(told[1]) & joined(gold)) and len(told[1]) <= len(gold) + 1
            found.append(Row(name, source, choice.inputs(), right))
    kept.write_text(json.dumps([asdict(row) for row in found]), encoding="utf-8")
    return found


def is_right(row: dict[str, Any], answers: list[str]) -> bool:
    """Whether answers are those of a question, as the benchmarks of cases and of people's questions compare them."""
    if row.get("type") in NEAR and is_exact(row, Answer("", "", ", ".join(answers) or None, answers=tuple(answers))):
        return True
    return joined(answers) - {"none"} == joined(row.get("answers") or [])


def fitted(rows: list[Row]) -> Calibration:
    """A calibration of rows, which count by their source."""
    weights = [WEIGHTS[row.source] * RIDGE_WEIGHT for row in rows]
    return fit_rows([row.inputs for row in rows], [row.right for row in rows], THRESHOLD, AS_IT_IS, weights)


def figures(rows: list[Row], calibrations: dict[str, Calibration]) -> dict[str, Any]:
    """Errors of a confidence.  calibrations: that of each graph."""
    confidence = np.array([calibrations[row.graph].at(row.inputs) for row in rows])
    right = np.array([row.right for row in rows])
    return {
        "questions": len(rows),
        "ece": round(expected_calibration_error(confidence, right), 4),
        "brier": round(float(np.mean((confidence - right) ** 2)), 4),
        "given": {
            "right": int((right & (confidence >= THRESHOLD)).sum()),
            "wrong": int((~right & (confidence >= THRESHOLD)).sum()),
        },
        "above_0.8": {
            "right": int((right & (confidence > 0.8)).sum()),
            "wrong": int((~right & (confidence > 0.8)).sum()),
        },
    }


def main() -> None:
    """Reads the command line, fits and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "cases", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks" / "results" / "head_start_calibration.json")
    parser.add_argument("--only", nargs="+", default=[], help="make the rows of these graphs alone")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    data, cases, work = (path.resolve() for path in (given.data, given.cases, given.work))
    work.mkdir(parents=True, exist_ok=True)
    every: dict[str, list[Row]] = {}
    for name, options in graphs(data, cases, work):
        if given.only and name not in given.only:
            continue
        try:
            every[name] = rows_of(name, options, data, cases, work)
        except KgqaError as fault:  # a case whose files are refused as they are
            log.info(f"{name}: left out, {fault}".splitlines()[0][:200])
            continue
        log.info(f"{name}: {len(every[name])} questions with an answer, {sum(row.right for row in every[name])} right")
    if given.only:
        return
    rows = [row for own in every.values() for row in own]
    group = {name: "cases" if name[:2].isdigit() else name for name in every}
    crossed = {name: fitted([row for row in rows if group[row.graph] != group[name]]) for name in every}
    plain = dict.fromkeys(every, AS_IT_IS)
    sets = {"all": rows} | {source: [row for row in rows if row.source == source] for source in WEIGHTS}
    sets |= {
        f"people, {name}": [row for row in rows if row.source == "people" and group[row.graph] == name]
        for name in sorted(set(group.values()))
    }
    document: dict[str, Any] = {
        "benchmark": "head_start_calibration",
        "conditions": conditions(SEED),
        "questions": {name: len(own) for name, own in every.items()},
        "cross_fitted": {
            name: {"share": figures(own, plain), "calibrated": figures(own, crossed)}
            for name, own in sets.items()
            if own
        },
    }
    results_file.write(given.json, document, FIELDS)
    calibration = asdict(fitted(rows)) | {
        "fitted_on": document["questions"],
        "weights_of_sources": WEIGHTS,
        "commit": document["conditions"]["commit"],
    }
    (HEAD_START / CALIBRATION).write_text(json.dumps(calibration, indent=1) + "\n", encoding="utf-8")
    for name, own in document["cross_fitted"].items():
        log.info("%s: %s", name, json.dumps(own))


if __name__ == "__main__":
    main()
