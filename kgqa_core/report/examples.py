"""Worked examples: questions that show what retrieval repairs and what it does not."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from kgqa_core.config import Experiment
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.evaluation.labels import HEADLINE, knowledge_order, model_experiments
from kgqa_core.evaluation.roads import read_roads
from kgqa_core.kg.store import KgStore
from kgqa_core.metrics.text import GoldAnswers, contains
from kgqa_core.report.data import Example, ExampleFact, ExampleOutput
from kgqa_core.types import COMPLEXITY_TYPES, Question

FILE = "examples.json"
MOST_FACTS = 24
MOST_RANKED = 5
PLAN = ("fixed", "wrong", "right", "fixed", "wrong", "broken", "fixed", "right")
"""Kinds in the order in which examples are chosen, repeatedly."""


def write_examples(folder: Path, examples: Sequence[Example]) -> None:
    """Writes `examples.json`, from which `read_examples` has them again."""
    (folder / FILE).write_bytes(msgspec.json.encode(examples))


def read_examples(folder: Path) -> list[Example]:
    """The examples of a run's folder; none where it has no file of them, as runs of earlier versions."""
    path = folder / FILE
    return msgspec.json.decode(path.read_bytes(), type=list[Example]) if path.is_file() else []


def gather_examples(
    kg: Path,
    questions: Path,
    facts: Mapping[str, Path],
    answers: Mapping[str, Path],
    n: int,
    seed: int,
    knowledge: Mapping[str, Path] | None = None,
) -> list[Example]:
    """At most n examples: fixed by retrieval, still wrong, right and broken in turn, over the complexity types.

    facts, answers and knowledge as for `score`.  Facts shown are those of `rigel`, else of the first retriever that
    learns, else of the first; sentences made from them are shown too.  A question is right where the output contains a
    gold answer (`contains`), its kind that of the triples.  The same seed gives the same examples.
    """
    if n <= 0:
        return []
    retriever = next((name for name in (*HEADLINE, *sorted(facts)) if name in facts), HEADLINE[0])
    outputs = _read_outputs(answers)
    answered = {question for table in outputs.values() for question in table}
    records = [record for record in read_questions(questions) if record.unlinkable is None]
    if not answered and retriever in facts:
        known = set(pl.read_parquet(facts[retriever] / "facts.parquet", glob=False)["question"].unique().to_list())
        answered = {record.id for record in records if record.split == "test" and record.id in known}
    candidates = [record for record in records if record.id in answered]
    roads = read_roads(answers.values())
    deciding = _deciding(outputs, retriever)
    kinds = {record.id: _kind(_judge(record, deciding, roads), retriever) for record in candidates}
    chosen = _choose(candidates, kinds, n, seed)
    judged = {record.id: _judge(record, outputs, roads) for _, record in chosen}
    read = _read_sentences(knowledge or {}, retriever, [record.id for _, record in chosen])
    return _describe(kg, facts.get(retriever), chosen, judged, read)


def _read_outputs(answers: Mapping[str, Path]) -> dict[str, dict[str, str]]:
    """Experiment → question id → output, in the order of Table 1.

    Of the first answerer; where it has no answers without knowledge (`auto`), of the next as well, to one that has.
    """
    tables: dict[str, dict[str, str]] = {}
    for _, folder in sorted(answers.items()):
        frame = pl.read_parquet(folder / "answers.parquet", glob=False).select(
            "question", "retriever", "format", "model", "output"
        )
        for question, retriever, form, model, output in frame.iter_rows():
            tables.setdefault(f"{retriever}/{form}/{model}", {})[question] = output or ""
    shown: list[str] = []
    for names in model_experiments(tables).values():
        shown += names
        if any(Experiment.parse(name).without_knowledge for name in names):
            break
    return {name: tables[name] for name in shown}


def _judge(
    record: Question, outputs: Mapping[str, Mapping[str, str]], roads: Mapping[str, Mapping[str, str]]
) -> tuple[ExampleOutput, ...]:
    gold = GoldAnswers(record.answer_names)
    results = []
    for name, table in outputs.items():
        output, road = table.get(record.id, ""), roads.get(name, {}).get(record.id)
        results.append(ExampleOutput(name, output, bool(contains(gold, output)), road))
    return tuple(results)


def _deciding(outputs: Mapping[str, Mapping[str, str]], retriever: str) -> dict[str, Mapping[str, str]]:
    """The outputs that decide of which kind a question is: the retriever's, and those without knowledge."""
    variants = (retriever, "none")
    return {name: table for name, table in outputs.items() if str(Experiment.parse(name).variant) in variants}


def _kind(results: Sequence[ExampleOutput], retriever: str) -> str:
    right: dict[str, bool] = {}
    for result in results:  # triples come first
        right.setdefault(str(Experiment.parse(result.experiment).variant), result.correct)
    with_facts, without = right.get(retriever, False), right.get("none", False)
    if with_facts:
        return "right" if without else "fixed"
    return "broken" if without else "wrong"


def _choose(candidates: Sequence[Question], kinds: Mapping[str, str], n: int, seed: int) -> list[tuple[str, Question]]:
    """(kind, question): kinds by PLAN, and within a kind the complexity type shown least so far."""
    pool = sorted(candidates, key=lambda record: record.id)
    random.Random(seed).shuffle(pool)
    order = {name: index for index, name in enumerate(COMPLEXITY_TYPES)}
    shown: dict[str | None, int] = {}
    chosen: list[tuple[str, Question]] = []
    for turn in range(n):
        wanted = PLAN[turn % len(PLAN)]
        offers = [record for record in pool if kinds[record.id] == wanted] or pool
        if not offers:
            break
        best = min(
            offers,
            key=lambda record: (shown.get(record.complexity, 0), order.get(record.complexity or "", len(order))),
        )
        pool.remove(best)
        shown[best.complexity] = shown.get(best.complexity, 0) + 1
        chosen.append((kinds[best.id], best))
    return chosen


def _describe(
    kg: Path,
    facts: Path | None,
    chosen: Sequence[tuple[str, Question]],
    judged: Mapping[str, tuple[ExampleOutput, ...]],
    read: Mapping[str, tuple[tuple[str, str], ...]],
) -> list[Example]:
    ids = [record.id for _, record in chosen]
    rows = _rows(facts, "facts.parquet", ids, MOST_FACTS)
    entities = _rows(facts, "entities.parquet", ids, MOST_RANKED)
    with KgStore.open(kg) as store:
        triples = store.triples({row["triple"] for results in rows.values() for row in results})
        relations = store.relation_names()
        used = {entity for head, _, tail in triples.values() for entity in (head, tail)}
        used |= {row["entity"] for results in entities.values() for row in results}
        used |= {entity for _, record in chosen for entity in record.topic_entities}
        names = store.names(used)

    def name(entity: int) -> str:
        return names.get(entity, str(entity))

    examples = []
    for kind, record in chosen:
        shown = []
        for row in rows.get(record.id, []):
            if row["triple"] not in triples:
                continue
            head, relation, tail = triples[row["triple"]]
            shown.append(
                ExampleFact(
                    head, relations[relation], tail, name(head), name(tail), row["score"], row["hop"], row["direction"]
                )
            )
        examples.append(
            Example(
                question=record.id,
                text=record.text,
                kind=kind,
                complexity=record.complexity,
                hops=record.hops,
                topics=frozenset(record.topic_entities),
                topic_names=tuple(name(entity) for entity in record.topic_entities),
                gold_entities=frozenset(record.answers),
                gold=tuple(names[0] for names in record.answer_names if names),
                facts=tuple(shown),
                ranked=tuple((name(row["entity"]), row["score"]) for row in entities.get(record.id, [])),
                outputs=judged[record.id],
                read=read.get(record.id, ()),
            )
        )
    return examples


def _read_sentences(
    knowledge: Mapping[str, Path], retriever: str, ids: Sequence[str]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Question id → (format, text) of the knowledge that is in sentences."""
    sentences: dict[str, dict[str, str]] = {}
    for _, folder in sorted(knowledge.items()):
        frame = pl.read_parquet(
            folder / "knowledge.parquet", columns=["question", "retriever", "format", "text"], glob=False
        )
        frame = frame.filter(
            (pl.col("retriever") == retriever) & (pl.col("format") != "triples") & pl.col("question").is_in(list(ids))
        )
        for question, form, text in frame.select("question", "format", "text").iter_rows():
            if text and text.strip():
                sentences.setdefault(question, {})[form] = text
    return {
        question: tuple(sorted(texts.items(), key=lambda item: knowledge_order(f"-/{item[0]}/-")))
        for question, texts in sentences.items()
    }


def _rows(folder: Path | None, file: str, ids: Sequence[str], most: int) -> dict[str, list[dict[str, Any]]]:
    """Question id → its first rows in rank order."""
    if folder is None or not (folder / file).is_file():
        return {}
    frame = (
        pl.read_parquet(folder / file, glob=False).filter(pl.col("question").is_in(list(ids))).sort("question", "rank")
    )
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        members = rows.setdefault(row["question"], [])
        if len(members) < most:
            members.append(row)
    return rows
