"""The stage that builds an answerability benchmark: questions over an ideal graph, and the graph with parts gone.

What the modified graph says of each question is its label: answerable or not, form known or not, and its answers.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kgqa_core.config import AnswerabilityOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import InputError
from kgqa_core.kg.overlay import Hidden, graph_digest, write_overlay
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import Result, answer_texts
from kgqa_core.logic.forms import Count, Form, Holds
from kgqa_core.logic.lookup import endings
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.papers.grailqability.builder.drops import Dropped, Dropper
from kgqa_core.papers.grailqability.builder.full_zero_shot import FormGroup
from kgqa_core.papers.grailqability.builder.graph_with_drops import GraphWithDrops
from kgqa_core.papers.grailqability.builder.ideal import Ideal, find_ideals, form_key, reasons, result_of
from kgqa_core.papers.grailqability.builder.records import (
    FACT,
    GRAPH,
    KINDS,
    RELATION,
    STATISTICS,
    TYPE,
    BenchmarkQuestion,
    Drop,
    IdealRecord,
    write_benchmark,
)
from kgqa_core.papers.grailqability.builder.splits import Shares, SplitResult, levels, split
from kgqa_core.papers.grailqability.builder.statistics import statistics, write_card
from kgqa_core.papers.grailqability.builder.trace import Tracer
from kgqa_core.papers.grailqability.builder.uses import ElementIndexes, types_of
from kgqa_core.store.artifacts import write_json
from kgqa_core.store.publish import publish_folder
from kgqa_core.types import SPLITS, Question
from kgqa_core.workspace import Workspace

SCHEMA_SHARE = 0.9
"""Share of the entities at one end of a relation that are of a type when the relation belongs to it."""


@dataclass(frozen=True, slots=True)
class GraphOutcome:
    """What the modified graph says of a question.

    known: the question has a form.  result: there, None where the graph lacks what the form names.
    step: the drop that made the question unanswerable, or -1.  missing: steps that took what its form names, or else
    what answered it.  touched: steps that took anything that its form names or its ideal answers rest on.
    """

    answerable: bool
    known: bool
    result: Result | None
    step: int
    missing: tuple[int, ...]
    touched: tuple[int, ...]


def label_all(
    ideals: Sequence[Ideal],
    dropped: Dropped,
    tracer: Tracer,
    modified: MemoryGraph,
    labelling: str = "published",
    monitor: Monitor = QUIET,
) -> list[GraphOutcome]:
    """The label of each question; modified: the overlay, in which what cannot be traced is run.

    labelling: `published` gives no form to a question that a dropped type made unanswerable (Patidar et al. 2023),
    `ours` as long as the graph lacks nothing that its form names.
    """
    labels = []
    for number, ideal in enumerate(ideals):
        of_form = {dropped.relations[r] for r in ideal.relations if r in dropped.relations}
        of_form |= {dropped.entities[e] for e in ideal.names if e in dropped.entities}
        removed_at = dropped.removed_at[ideal.support]
        of_facts = set(np.unique(removed_at[removed_at >= 0]).tolist()) | _unnamed(ideal, dropped, tracer)
        result = None if of_form else result_of(ideal.form, tracer, modified)
        answerable = result is not None and answers(ideal.form, ideal.value, result, _left(ideal, tracer))
        step = int(dropped.step_of[number])
        if not answerable and not of_form and not of_facts:
            of_facts = _members(ideal, dropped, tracer)
        if not answerable and step < 0:
            step = max(of_facts, default=len(dropped.steps) - 1)
        of_type = labelling == "published" and not answerable and dropped.steps[step].kind == TYPE
        labels.append(
            GraphOutcome(
                answerable=answerable, known=not (of_form or of_type), result=result, step=-1 if answerable else step,
                missing=() if answerable else tuple(sorted(of_form or of_facts)),
                touched=tuple(sorted(of_form | of_facts)),
            )
        )  # fmt: skip
        if number % 500 == 499 or number + 1 == len(ideals):
            monitor.progress(number + 1, len(ideals), "labels")
    return labels


def _unnamed(ideal: Ideal, dropped: Dropped, tracer: Tracer) -> set[int]:
    """Steps that dropped types below those that a form names, or relations that end what its times begin."""
    below = {t for named in ideal.classes for t in tracer.members.below(named)}
    ends = {tracer.relation_ids.get(key) for key in endings(ideal.form)} - {None}
    return {step for t, step in dropped.entities.items() if t in below} | {
        step for r, step in dropped.relations.items() if r in ends
    }


def _members(ideal: Ideal, dropped: Dropped, tracer: Tracer) -> set[int]:
    """Steps that dropped members of the classes that a form names: it may ask for nothing else."""
    classes = {t for named in ideal.classes for t in (named, *tracer.members.below(named))}
    whole = tracer.members.entity[np.isin(tracer.members.type, sorted(classes))]
    return {dropped.entities[e] for e in whole.tolist() if e in dropped.entities}


def answers(form: Form, ideal: float | bool | None, result: Result, left: bool) -> bool:
    """Whether a result answers a question; left: whether anything is known of what a yes/no question asks about.

    A count of nothing is no answer, nor is a yes that has become a no, or a no about something of which nothing is
    known.
    """
    if isinstance(form, Count):
        return bool(result.value)
    if isinstance(form, Holds):
        return result.value == ideal and (bool(ideal) or left)
    return bool(result.nodes)


def _left(ideal: Ideal, tracer: Tracer) -> bool:
    """Whether the set that a `no` speaks about has members left."""
    return not isinstance(ideal.form, Holds) or bool(len(tracer.denote(ideal.form.of).nodes))


def build(
    workspace: Workspace, *, kg: Path, questions: Path, options: AnswerabilityOptions, seed: int
) -> dict[str, Any]:
    """Writes the files of `records` into `out` and returns counts.

    kg: the ideal graph, which is not touched.  questions: an artifact of questions that are linked to it.
    Raises InputError when too few questions have a form, or no drop makes one unanswerable.
    """
    sample = _sample(read_questions(questions), options.limit, seed)
    with KgStore.open(kg) as store:
        tracer = Tracer(GraphWithDrops(store))
        ideals, left_out = find_ideals(sample, tracer, workspace.monitor)
        if len(ideals) < 10:
            raise InputError(
                f"{len(ideals)} of {len(sample)} questions have a form with an answer ({reasons(left_out)}); a "
                "benchmark needs ten at least. Give questions with s_expression or relation_path"
            )
        dropped = _drop(ideals, tracer, options, seed, workspace.monitor)
        if not dropped.steps:
            raise InputError(f"nothing could be dropped for p_u = {options.p_u} of {len(ideals)} questions; raise it")
        ref = publish_folder(
            "kg", workspace.out / GRAPH, lambda folder, _: _overlay(folder, kg, dropped, options, seed)
        )
        with KgStore.open(ref.folder) as modified:
            labels = label_all(ideals, dropped, tracer, MemoryGraph(modified), options.labels, workspace.monitor)
            graphs = {"ideal": store.counts(), "modified": modified.counts()}
        where, level, full = _splits(ideals, labels, dropped, options, seed)
        rows = _rows(ideals, labels, where, level, dropped, store)
        drops = _drop_rows(dropped, Counter(label.step for label in labels), tracer.graph)
        named_full = _full_zero_shot(full, store, options.full_zero_shot)
        about = {"name": store.meta.get("name") or "the graph", "digest": graph_digest(store.path)}
    without = ({"id": name, "reason": reason} for name, reason in sorted(left_out.items()))
    write_benchmark(workspace.out, rows, drops, without)
    table = statistics(
        [record for record, _ in rows], [record for _, record in rows], drops, left_out=reasons(left_out),
        graphs=graphs, goals=_goals(options, dropped, seed), full_zero_shot=named_full,
        agreeing=sum(ideal.agrees for ideal in ideals),
    )  # fmt: skip
    write_json(workspace.out / STATISTICS, table)
    write_card(workspace.out, table=table, graph=about, questions=sample[0].source or "questions")
    return _counts(table)


def _sample(questions: Sequence[Question], limit: int | None, seed: int) -> list[Question]:
    """The questions, or a seeded draw of them, by id."""
    there = sorted(questions, key=lambda question: question.id)
    if limit is not None and limit < len(there):
        there = sorted(random.Random(f"answerability/{seed}").sample(there, limit), key=lambda each: each.id)
    return there


def _drop(
    ideals: Sequence[Ideal], tracer: Tracer, options: AnswerabilityOptions, seed: int, monitor: Monitor
) -> Dropped:
    types = types_of(tracer.store, SCHEMA_SHARE) if options.drop_shares[0] > 0 else []
    uses = ElementIndexes(ideals, tracer.graph)
    dropper = Dropper(ideals, uses, tracer, types, largest=options.largest_drop_share, seed=seed)
    return dropper.drop(options.p_u, options.drop_shares, monitor)


def _overlay(folder: Path, kg: Path, dropped: Dropped, options: AnswerabilityOptions, seed: int) -> dict[str, Any]:
    facts = tuple(step.element for step in dropped.steps if step.kind == FACT)
    hidden = Hidden(tuple(sorted(dropped.entities)), tuple(sorted(dropped.relations)), facts)
    note = {"made_by": "grailqability", "seed": seed, "options": options.decisive(), "steps": len(dropped.steps)}
    return write_overlay(folder, base=kg, hidden=hidden, note=note)


def _splits(
    ideals: Sequence[Ideal],
    labels: Sequence[GraphOutcome],
    dropped: Dropped,
    options: AnswerabilityOptions,
    seed: int,
) -> tuple[list[str], list[str | None], SplitResult]:
    """Split and level of each question, and how groups were split."""
    members: dict[str, list[int]] = {}
    for index, ideal in enumerate(ideals):
        members.setdefault(form_key(ideal.form), []).append(index)
    groups = [
        FormGroup(
            members=tuple(indices),
            kind=None if labels[first].answerable else dropped.steps[labels[first].step].kind,
            missing=frozenset(labels[first].missing),
            touched=frozenset(labels[first].touched),
            elements=elements_of(ideals[first]),
        )
        for first, indices in ((indices[0], indices) for indices in members.values())
    ]
    shares = Shares(options.split_shares, options.zero_shot, options.full_zero_shot)
    result = split(groups, shares, seed)
    chosen = result.where
    where = [""] * len(ideals)
    level: list[str | None] = [None] * len(ideals)
    for group, chosen_split, new in zip(groups, chosen, levels(groups, chosen), strict=True):
        for member in group.members:
            where[member], level[member] = chosen_split, new
    return where, level, result


def _full_zero_shot(result: SplitResult, store: KgStore, goal: float) -> dict[str, Any]:
    """What the splitter says of full zero-shot questions, with keys in place of ids."""
    answerable, unanswerable, zero_shot = result.room
    record: dict[str, Any] = {
        "goal": goal,
        "wanted": result.wanted,
        "room": {"answerable": answerable, "unanswerable": unanswerable, "zero_shot": zero_shot},
        "obstacle": None,
    }
    if result.obstacle is not None:
        relations = store.relation_keys()
        ids = [(element[0], int(element[1:])) for element in sorted(result.obstacle.elements)]
        types = store.entity_keys([number for kind, number in ids if kind == "t"])
        record["obstacle"] = {
            "relations": sorted(relations[number] for kind, number in ids if kind == "r"),
            "types": sorted(types[number] for kind, number in ids if kind == "t"),
            "answerable": result.obstacle.answerable,
            "unanswerable": result.obstacle.unanswerable,
            "zero_shot": result.obstacle.zero_shot,
        }
    return record


def elements_of(ideal: Ideal) -> frozenset[str]:
    """What a form names, with a letter for its kind."""
    kinds = (("r", ideal.relations), ("t", ideal.classes), ("e", ideal.mentions))
    return frozenset(f"{kind}{i}" for kind, ids in kinds for i in ids)


def _rows(
    ideals: Sequence[Ideal], labels: Sequence[GraphOutcome], where: Sequence[str], level: Sequence[str | None],
    dropped: Dropped, store: KgStore,
) -> list[tuple[BenchmarkQuestion, IdealRecord]]:  # fmt: skip
    """The questions with their ideal halves, by split and id."""
    known = {i for ideal in ideals for i in (*ideal.nodes, *ideal.question.topic_entities)}
    known |= {i for label in labels if label.result is not None for i in label.result.nodes}
    keys = store.entity_keys(sorted(known))
    rows = []
    for ideal, label, index, new in zip(ideals, labels, where, level, strict=True):
        question, form = ideal.question, str(ideal.form)
        rows.append(
            (
                BenchmarkQuestion(
                    id=question.id, question=question.text, split=index, answerable=label.answerable,
                    s_expression=form if label.known else None,
                    answers=answer_texts(ideal.form, label.result, keys, answerable=label.answerable),
                    answer_type=question.answer_type,
                    topic_entities=tuple(keys[entity] for entity in question.topic_entities if entity in keys),
                    complexity=question.complexity, hops=question.hops, language=question.language,
                ),
                IdealRecord(
                    id=question.id, s_expression=form,
                    answers=answer_texts(ideal.form, Result(nodes=ideal.nodes, value=ideal.value), keys),
                    drop=None if label.answerable else dropped.steps[label.step].kind,
                    step=None if label.answerable else label.step, missing=label.missing, level=new,
                    origin=ideal.origin,
                ),
            )
        )  # fmt: skip
    order = {name: number for number, name in enumerate(SPLITS)}
    return sorted(rows, key=lambda row: (order[row[0].split], row[0].id))


def _drop_rows(dropped: Dropped, lost: Mapping[int, int], graph: GraphWithDrops) -> list[Drop]:
    """The drops; lost: questions that each step made unanswerable."""
    relations = graph.store.relation_keys()
    ends = {int(end) for step in dropped.steps if step.kind == FACT for end in _fact(graph, step.element)[::2]}
    keys = graph.store.entity_keys(sorted(ends | set(dropped.entities)))
    rows = []
    for step in dropped.steps:
        if step.kind == FACT:
            head, relation, tail = _fact(graph, step.element)
            element: tuple[str, ...] = (keys[head], relations[relation], keys[tail])
        else:
            element = (relations[step.element] if step.kind == RELATION else keys[step.element],)
        rows.append(
            Drop(
                step=step.number, kind=step.kind, element=element, popularity=step.popularity,
                affected=round(step.affected, 6), weight=round(step.weight, 9), unanswerable=lost[step.number],
                facts=len(step.triples), relations=tuple(sorted(relations[r] for r in step.relations)),
                entities=tuple(sorted(keys[e] for e in step.entities)),
            )
        )  # fmt: skip
    return rows


def _fact(graph: GraphWithDrops, triple: int) -> tuple[int, int, int]:
    return int(graph.head[triple]), int(graph.relation[triple]), int(graph.tail[triple])


def _goals(options: AnswerabilityOptions, dropped: Dropped, seed: int) -> dict[str, Any]:
    return {
        "p_u": options.p_u, "parts": list(options.drop_shares), "quotas": dropped.quotas,
        "zero_shot": options.zero_shot, "full": options.full_zero_shot,
        "splits": list(options.split_shares), "labels": options.labels, "seed": seed,
    }  # fmt: skip


def _counts(table: dict[str, Any]) -> dict[str, Any]:
    """The manifest's counts."""
    every = table["splits"][-1]
    return {
        "questions": every["questions"],
        "answerable": every["A"],
        "unanswerable": every["U"],
        **{f"by_{row['drop']}": row["U"] for row in table["drops"] if row["drop"] in KINDS},
        "zero_shot": every["partial"] + every["full"],
        "full_zero_shot": every["full"],
        "drops": sum(row["elements"] for row in table["drops"] if row["drop"] in KINDS),
        "left_out": sum(table["left_out"].values()),
        "triples_left": table["graphs"]["modified"]["triples"],
    }
