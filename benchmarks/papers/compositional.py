"""Questions over Atlas that cannot be answered though training has seen each of their parts: only the whole is new.

    python -m benchmarks.papers.compositional --work DIR [--json OUT]

GrailQAbility's unanswerable questions are i.i.d. or zero-shot.  Here a topic of an answerable question is replaced, in
its form and in its text, by another one.  Each relation and class of the new form, and each of its steps (a relation
with the entity that it starts from), is of the form of an answerable training question; the form itself is in no
split.  Where it finds nothing in the modified graph the question is *compositional*: languages that are spoken in
France and in Jordan.  Where it finds something it is a *control*, which has a replaced topic too.  At most DRAWS of
each are made of a question, drawn by seed; counts and yes/no questions are left out, since they always have an answer.

The benchmark is that of `benchmarks.papers.parsers`, with these questions beside those of its test split; the parsers
are trained and their thresholds tuned as there, once each.  `auto` answers over the modified graph with the packaged
head start; whether what it answers is right is not counted.

declined: share of the questions with no form, an empty result or a count of 0; of `auto`, that it did not answer or
answered that there is none.  Intervals draw source questions, since several questions may come of one.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results_file
from benchmarks.conditions import RESULTS, commit_name, conditions
from benchmarks.papers.parsers import artifact_folders, kgqa, make
from benchmarks.results_file import CONDITIONS
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import answer_texts
from kgqa_core.logic.forms import Count, Form, Holds, elements
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.parser import parse
from kgqa_core.papers.benchmark_files import write_json_lines
from kgqa_core.papers.grailqability.builder.evaluate import PREDICTIONS
from kgqa_core.papers.grailqability.builder.records import (
    GRAPH,
    IDEAL,
    IID,
    BenchmarkQuestion,
    IdealRecord,
    read_benchmark,
)
from kgqa_core.store.artifacts import MANIFEST, read_manifest, write_manifest
from kgqa_core.system import System
from kgqa_core.types import SPLITS

FIELDS = (*CONDITIONS, "questions/*", "compositional/*", "systems/*/*/*")
"""What the result file holds (benchmarks/results_file.py)."""
SEED, DRAWS, RESAMPLED = 7, 3, 1_000
TEST = SPLITS[-1]
GROUPS = ("answerable", "control", "iid, NK", "iid, NA", "zero-shot", "compositional")
SCORED = "answerability_scores"
NOTHING: tuple[list[str], ...] = ([], ["0"], ["none"])
"""Answers that say that there is none."""
STEP = re.compile(r"\(JOIN (\(R [^()\s]+\)|[^()\s]+) ([^()\s]+)\)")
"""A relation with the entity that it starts from, in a form as text."""

Made = tuple[BenchmarkQuestion, IdealRecord, str]
"""A question that was made, its ideal half, and its source."""


class Parts:
    """What the forms of answerable training questions are made of.  every: all forms that there are, as text."""

    def __init__(self, questions: Sequence[BenchmarkQuestion], ideal: Sequence[IdealRecord]) -> None:
        texts = [row.s_expression for row in questions if row.split == "train" and row.answerable and row.s_expression]
        self.every = {record.s_expression for record in ideal}
        self.steps = {step for text in texts for step in STEP.findall(text)}
        self.schema = {key for text in texts for key in _schema(parse(text))}
        self.starts: dict[str, list[str]] = defaultdict(list)
        for relation, entity in sorted(self.steps):
            self.starts[relation].append(entity)

    def has(self, text: str) -> bool:
        """Whether training has each part of a form; the form itself may be new."""
        form, steps = parse(text), STEP.findall(text)
        return (
            _schema(form) <= self.schema
            and self.steps.issuperset(steps)
            and {entity for _, entity in steps} == {*elements(form).entities}
        )


def _schema(form: Form) -> set[str]:
    named = elements(form)
    return {*named.relations, *named.classes}


def replaced(
    question: BenchmarkQuestion, mentions: Mapping[str, str], names: Mapping[str, str], parts: Parts
) -> list[tuple[str, str, str, str]]:
    """Texts and forms with another topic, each with the old and the new one.

    mentions: words of the topics, by key.  names: labels, by key.
    """
    made = []
    for topic, mention in sorted(mentions.items()):
        found = [*re.finditer(rf"(?<!\w){re.escape(mention)}(?!\w)", question.question, re.IGNORECASE)]
        relations = {relation for relation, entity in STEP.findall(question.s_expression or "") if entity == topic}
        if len(found) != 1 or len(relations) != 1 or not parts.has(question.s_expression or ""):
            continue
        [match] = found
        for other in parts.starts[relations.pop()]:
            if other in question.topic_entities or other not in names:
                continue
            name = names[other].casefold() if match[0].islower() else names[other]
            text = question.question[: match.start()] + name + question.question[match.end() :]
            made.append((text, _with_key(question.s_expression or "", topic, other), topic, other))
    return made


def _with_key(form: str, old: str, new: str) -> str:
    return re.sub(r"[^\s()]+", lambda word: new if word[0] == old else word[0], form)


def make_questions(folder: Path, mentions: Mapping[str, Mapping[str, str]], split: str = TEST) -> list[Made]:
    """Compositional questions and controls of the answerable ones of a split."""
    read = read_benchmark(folder)
    parts, generator, made = Parts(read.questions, read.ideal), np.random.default_rng(SEED), list[Made]()
    with KgStore.open(folder / GRAPH) as modified, KgStore.open(folder / GRAPH / "volatile" / "base") as base:
        graphs = [(store, MemoryGraph(store)) for store in (modified, base)]
        topics = sorted({entity for _, entity in parts.steps})
        rows = modified.connection.execute(
            "SELECT key, id FROM entities WHERE key IN (SELECT unnest($1::VARCHAR[]))", [topics]
        ).fetchall()
        labels = modified.names([number for _, number in rows])
        names = {key: labels[number] for key, number in rows if number in labels}

        def answers(form: Form) -> list[tuple[str, ...]]:
            results = [(store, graph.execute(form)) for store, graph in graphs]
            return [answer_texts(form, result, store.entity_keys(sorted(result.nodes))) for store, result in results]

        for question in read.questions:
            if question.split != split or not question.answerable or question.s_expression is None:
                continue
            if isinstance(parse(question.s_expression), Count | Holds):
                continue
            drawn: Counter[bool] = Counter()
            options = replaced(question, mentions[question.id], names, parts)
            for at in generator.permutation(len(options)):
                text, form, topic, other = options[at]
                if form in parts.every or not parts.has(form) or min(drawn[True], drawn[False]) >= DRAWS:
                    continue
                there, ideal = answers(parse(form))
                if drawn[bool(there)] >= DRAWS:
                    continue
                drawn[bool(there)] += 1
                parts.every.add(form)
                name = f"{'control' if there else 'compositional'}-{question.id}-{drawn[bool(there)]}"
                entities = tuple(other if key == topic else key for key in question.topic_entities)
                made.append(
                    (
                        replace(
                            question, id=name, question=text, answerable=bool(there), s_expression=form, answers=there,
                            topic_entities=entities,
                        ),
                        IdealRecord(name, form, ideal, origin="compositional"),
                        question.id,
                    )
                )  # fmt: skip
    return made


def write_benchmark(source: Path, target: Path, made: Sequence[Made]) -> None:
    """A copy of a benchmark whose test split has the questions that were made too."""
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(source, target)
    read = read_benchmark(source)
    pairs = [*zip(read.questions, read.ideal, strict=True), *((question, record) for question, record, _ in made)]
    rows = sorted((pair for pair in pairs if pair[0].split == TEST), key=lambda pair: pair[0].id)
    write_json_lines(target / f"{TEST}.jsonl", (question for question, _ in rows))
    write_json_lines(target / IDEAL / f"{TEST}.jsonl", (record for _, record in rows))
    (target / MANIFEST).unlink()
    write_manifest(target, "answerability", "", dict(read_manifest(source)["counts"]), {})


def group_of(question: BenchmarkQuestion, ideal: IdealRecord) -> str:
    """Which of GROUPS a question belongs to."""
    if ideal.origin == "compositional":
        return "control" if question.answerable else "compositional"
    if question.answerable:
        return "answerable"
    return f"iid, {'NK' if question.s_expression is None else 'NA'}" if ideal.level == IID else "zero-shot"


def shares(declined: Iterable[bool], sources: Sequence[str]) -> dict[str, float]:
    """The share of questions that were declined, and its 95 % interval over source questions."""
    by_source: dict[str, list[bool]] = defaultdict(list)
    for source, each in zip(sources, declined, strict=True):
        by_source[source].append(each)
    table = np.array([(sum(own), len(own)) for own in by_source.values()], dtype=float)
    generator = np.random.default_rng(SEED)
    drawn = table[generator.integers(0, len(table), (RESAMPLED, len(table)))].sum(axis=1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [0.025, 0.975])
    total = table.sum(axis=0)
    return {"declined": round(total[0] / total[1], 4), "low": round(float(low), 4), "high": round(float(high), 4)}


def parsed(folder: Path, home: Path) -> dict[str, dict[str, list[str]]]:
    """The answers of each parser to the test questions, by system and question."""
    found, _ = kgqa("answerability", "evaluate", str(folder), "--parsers", "rng,decode", "--train", "A,A+U", home=home)
    scores = artifact_folders(home, found["run_id"])[SCORED]
    return {
        path.stem: {key: own["answer"] for key, own in json.loads(path.read_text(encoding="utf-8")).items()}
        for path in sorted((scores / PREDICTIONS).glob("*.json"))
    }


def answered(folder: Path, home: Path, questions: Sequence[BenchmarkQuestion]) -> dict[str, list[str]]:
    """The answers of `auto`, by question."""
    system = System.from_graph(folder / GRAPH, home=home)
    return {question.id: system.ask(question.question).listed for question in questions}


def tables(found: Mapping[str, Any]) -> str:
    """The table of the page."""
    lines = ["| declined, % | " + " | ".join(GROUPS) + " |", "|---|" + "--:|" * len(GROUPS)]
    for name, own in found["systems"].items():
        cells = ["{:.0f} ({:.0f}–{:.0f})".format(*(100 * own[group][key] for key in ("declined", "low", "high")))
                 for group in GROUPS]  # fmt: skip
        lines.append(f"| {title(name)} | {' | '.join(cells)} |")
    sizes, made = found["questions"], found["conditions"]
    note = ", ".join(f"{sizes[group]} {group}" for group in GROUPS)
    kinds = found["compositional"]
    note += f" test questions; of the compositional ones {kinds['answered in the ideal graph']} have an "
    note += f"answer in the ideal graph. Seed {made['seed']}, commit {commit_name(made['commit'])}, {made['date']}."
    return "\n".join([*lines, "", note]) + "\n"


def title(name: str) -> str:
    """A row's name in the words of the other tables."""
    parser, *training = name.split("-")
    labels = {"rng": "Rank only", "decode": "Retrieve and decode", "auto": "`auto`, head start"}
    return ", ".join([labels[parser], " + ".join(training)]) if training else labels[parser]


def main() -> None:
    """Makes the questions, has them parsed and answered, and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--json", type=Path, default=RESULTS / "compositional.json")
    given = parser.parse_args()
    home, source, target = given.work / "home", given.work / "atlas", given.work / "atlas-compositional"
    given.work.mkdir(parents=True, exist_ok=True)
    if not source.exists():
        make("atlas", given.work)
    with (given.work / "atlas.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    mentions = {row["id"]: dict(zip(row["topic_entities"], row["mentions"], strict=False)) for row in rows}
    made = make_questions(source, mentions)
    write_benchmark(source, target, made)
    read = read_benchmark(target)
    pairs = [pair for pair in zip(read.questions, read.ideal, strict=True) if pair[0].split == TEST]
    groups = {question.id: group_of(question, record) for question, record in pairs}
    sources = {question.id: of for question, _, of in made}
    given_answers = {**parsed(target, home), "auto": answered(target, home, [question for question, _ in pairs])}
    of_kind = [(question, record) for question, record, _ in made if not question.answerable]
    document = {
        "conditions": conditions(SEED),
        "questions": dict(sorted(Counter(groups.values()).items())),
        "compositional": {
            "answered in the ideal graph": sum(bool(record.answers) for _, record in of_kind),
            "source questions": len({sources[question.id] for question, _ in of_kind}),
            **Counter(question.complexity or "" for question, _ in of_kind),
        },
        "systems": {
            name: {
                group: shares(
                    [answers.get(key, []) in NOTHING for key, own in groups.items() if own == group],
                    [sources.get(key, key) for key, own in groups.items() if own == group],
                )
                for group in GROUPS
            }
            for name, answers in given_answers.items()
        },
    }  # fmt: skip
    results_file.write(given.json, document, FIELDS)


if __name__ == "__main__":
    main()
