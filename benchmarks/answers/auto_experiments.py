"""The experiments of `benchmarks/answers/auto.py`: each yields its parts, one after the other, with their figures."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.answers.auto_figures import (
    Group,
    figures,
    has_gold_path,
    milliseconds,
    names_gold,
    reply_of,
    wording_of,
)
from benchmarks.answers.auto_work import Answering, Work
from benchmarks.answers.people import among_ten, measure, rows_of, share
from kgqa_core.config import LinkingOptions, NoiseOptions
from kgqa_core.datasets.published.atlas import rows as atlas_rows
from kgqa_core.kg.store import KgStore
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import Question
from tools.atlas.templates import TemplateWordings, compose, templates

Parts = Iterator[tuple[str, dict[str, Any]]]
SAMPLE = 1000
"""Test questions of a set at most where --most does not say; all of Atlas."""
SIZES = (0, 20, 100, 1000)
"""Real training questions of the experiment `few`."""
MIDDLE = 2000
"""Triples of an entity at most through which two others count as two relations apart (no type, no country)."""


def atlas(work: Work) -> Parts:
    """Trained on Atlas as its profile is; gold topics, then linked ones."""
    parser = work.parser("atlas", work.questions("atlas"), work.options("atlas"))
    for name, linked in (("gold topics", False), ("linked topics", True)):
        yield name, _atlas(work, parser, linked)


def atlas_no_questions(work: Work) -> Parts:
    """No Atlas question is learnt from: generated ones alone, then the head start as it is."""
    for name, changes in (("generated alone", {}), ("head start alone", {"steps": 0})):
        parser = work.parser("atlas", work.few("atlas", 0), work.options("atlas", **changes))
        for topics, linked in (("gold topics", False), ("linked topics", True)):
            yield f"{name}, {topics}", _atlas(work, parser, linked)


def metaqa(work: Work) -> Parts:
    """The graph alone: no question of MetaQA is used for anything but the test."""
    for name, changes in (("generated alone", {}), ("head start alone", {"steps": 0})):
        parser = work.parser("metaqa", work.few("metaqa", 0), work.options("metaqa", hops=3, **changes))
        with Answering(work, "metaqa", parser, linked=False) as answering:
            for hops in (1, 2, 3):
                test = work.sample(work.split("metaqa", "test", hops), SAMPLE, f"metaqa {hops}")
                yield f"{name}, {hops} hops", _scored(answering, test, random=True)


def simplequestions(work: Work) -> Parts:
    """wikidata_mini alone; relation: share whose form has the gold relation in the gold direction."""
    parser = work.parser("wikidata", work.few("wikidata", 0), work.options("wikidata"))
    test = work.sample(work.split("wikidata", "test"), SAMPLE, "simplequestions")
    with KgStore.open(work.kg("wikidata")) as store:
        topics = {entity for question in test for entity in question.topic_entities}
        names, keys = store.names(topics), store.entity_keys(topics)
    named = {entity for entity in topics if names[entity] != keys[entity]}
    labelled: Group = lambda question: "no label" if named.isdisjoint(question.topic_entities) else "label"  # noqa: E731
    for name, linked in (("gold topics", False), ("linked topics", True)):
        with Answering(work, "wikidata", parser, linked) as answering:
            solved = answering.solve(test)
            right = [has_gold_path(question, one.form) for question, one in zip(test, solved, strict=True)]
            scored = _scored(answering, test, {"topic": labelled}, solved=solved)
            every = zip(test, answering.solve_all(test), strict=True)
            scored["never_declining"]["relation"] = share(
                [has_gold_path(question, one.form) for question, one in every]
            )
            yield name, scored | {"relation": share(right), "relation_by_topic": _by(test, right, labelled)}


def zjqa(work: Work) -> Parts:
    """The Chinese graph alone."""
    parser = work.parser("zjqa", work.few("zjqa", 0), work.options("zjqa"))
    test = work.sample(work.split("zjqa", "test"), SAMPLE, "zjqa")
    with Answering(work, "zjqa", parser, linked=False) as answering:
        yield "generated alone", _scored(answering, test, {"hops": lambda question: str(question.hops)}, random=True)


def few(work: Work) -> Parts:
    """Some real training questions beside the generated ones; confidence is calibrated on generated questions."""
    for graph, hops, title, changes in (("metaqa", 2, "metaqa 2 hops", {"hops": 3}), ("atlas", None, "atlas", {})):
        test = work.sample(work.split(graph, "test", hops), SAMPLE, f"{graph} {hops}" if hops else graph)
        for size in SIZES:
            parser = work.parser(graph, work.few(graph, size, hops), work.options(graph, **changes))
            with Answering(work, graph, parser, linked=False) as answering:
                yield f"{title}, {size} questions", _scored(answering, test)


def ablation(work: Work) -> Parts:
    """People's questions over Atlas (dev) with parts of the training left out."""
    own, none, plain = work.questions("atlas"), work.few("atlas", 0), work.profile("atlas").linking
    exact = plain.model_copy(update={"typos": 0})
    variants: tuple[tuple[str, Path, dict[str, Any], LinkingOptions], ...] = (
        ("full", own, {}, plain),
        ("without noise", own, {"noise": NoiseOptions.none()}, plain),
        ("without the packaged adapter", own, {"start": "nothing"}, plain),
        ("without typo tolerance of linking", own, {}, exact),
        ("without training (head start alone)", own, {"steps": 0}, plain),
        ("without generated questions", own, {"generated": 0}, plain),
        ("with generated questions alone", none, {}, plain),
    )
    for name, questions, changes, linking in variants:
        parser = work.parser("atlas", questions, work.options("atlas", **changes), linking)
        yield name, _people(work, "atlas", parser, "dev", linking)


def mintaka(work: Work) -> Parts:
    """Questions of Mintaka's dev set over wikidata_mini, after SimpleQuestions and generated questions."""
    parser = work.parser("wikidata", work.questions("wikidata"), work.options("wikidata"))
    test, distances = mintaka_questions(work)
    test = work.sample(test, None, "mintaka")
    apart: Group = lambda question: str(distances.get(question.id, "more"))  # noqa: E731
    with Answering(work, "wikidata", parser, linked=True) as answering:
        solved = answering.solve(test)
        named = [names_gold(question, one.keys) for question, one in zip(test, solved, strict=True)]
        yield (
            "dev",
            _scored(answering, test, {"type": lambda question: question.complexity}, solved=solved)
            | {"named": share(named), "named_by_distance": _by(test, named, apart)},
        )
    yield "lcquad2 paraphrases", {"skipped": lcquad2_reason(work.shared)}


def people(work: Work) -> Parts:
    """People's questions over both graphs, after the graph's own training questions and generated ones."""
    for graph, name in (("atlas", "atlas"), ("wikidata", "wikidata_mini")):
        parser = work.parser(graph, work.questions(graph), work.options(graph))
        yield f"{work.people_set}, {name}", _people(work, graph, parser, work.people_set)


EXPERIMENTS: Mapping[str, Callable[[Work], Parts]] = {
    "atlas": atlas, "atlas_no_questions": atlas_no_questions, "metaqa": metaqa, "simplequestions": simplequestions,
    "zjqa": zjqa, "few": few, "ablation": ablation, "mintaka": mintaka, "people": people,
}  # fmt: skip


def _scored(
    answering: Answering,
    test: list[Question],
    groups: Mapping[str, Group] | None = None,
    solved: list[ComputedAnswer] | None = None,
    random: bool = False,
) -> dict[str, Any]:
    """Figures of test questions, with chance and speed."""
    solved = answering.solve(test) if solved is None else solved
    every = figures(test, answering.solve_all(test))
    return {
        "questions": len(test),
        **figures(test, solved, groups),
        "never_declining": {name: every[name] for name in ("exact", "hits_at_1")},
        **({"random_candidate": answering.random_candidate(test)} if random else {}),
        "milliseconds": answering.speed(test),
        "answering_seconds": answering.lap(),
        "trained": answering.counts(),
    }


def _atlas(work: Work, parser: Path, linked: bool) -> dict[str, Any]:
    test = work.sample(work.split("atlas", "test"), None, "atlas")
    groups: dict[str, Group] = {
        "type": lambda question: question.complexity,
        "wording": atlas_wording,
    }
    with Answering(work, "atlas", parser, linked) as answering:
        return _scored(answering, test, groups, random=True)


def _people(work: Work, graph: str, parser: Path, name: str, linking: LinkingOptions | None = None) -> dict[str, Any]:
    """Figures of `people.measure`, of questions that are linked and answered one at a time."""
    rows = rows_of(name, "atlas" if graph == "atlas" else "wikidata_mini")[: work.most]
    asked = [Question(row["id"], row["question"]) for row in rows]
    with Answering(work, graph, parser, True, linking) as answering:
        solved = answering.solve(asked)
        seconds = answering.times(asked)
        replies = [reply_of(q, one, answering.calibrated) for q, one in zip(asked, solved, strict=True)]
        every = [
            reply_of(q, one, answering.calibrated) for q, one in zip(asked, answering.solve_all(asked), strict=True)
        ]
        never = measure(rows, every, seconds)
        return {
            **measure(rows, replies, seconds),
            "never_declining": {name: never[name] for name in ("exact", "gold_answer_named")},
            "among_ten": share(among_ten(rows, answering.solver, [answering.start(question) for question in asked])),
            "milliseconds": milliseconds(seconds),
            "answering_seconds": answering.lap(),
            "trained": answering.counts(),
        }


def _by(test: list[Question], good: list[bool], group: Group) -> dict[str, Any]:
    members: dict[str, list[bool]] = defaultdict(list)
    for question, own in zip(test, good, strict=True):
        if (key := group(question)) is not None:
            members[key].append(own)
    return {key: share(own) for key, own in sorted(members.items())}


def atlas_wording(question: Question) -> str | None:
    """Whether an Atlas question is in a wording that the training questions have too.

    The question file does not say; it is read from the sentences of the question's template.
    """
    wordings = _wordings(_templates()[question.id])
    return wording_of(question.text, wordings.seen, wordings.test)


@cache
def _templates() -> dict[str, str]:
    """Template of each Atlas question, by id."""
    return {row["id"]: row["template"] for row in atlas_rows()}


@cache
def _wordings(template: str) -> TemplateWordings:
    known = templates()
    attributes = {one.name: one for one in known.attributes}
    first, _, phrase = template.partition("/")
    if not phrase:
        return known.operators[template] if template in known.operators else attributes[template].one
    composed = compose(attributes[first], next(one for one in known.phrases if one.name == phrase))
    assert composed is not None, f"template {template} has no sentences"
    return composed


def mintaka_questions(work: Work) -> tuple[list[Question], dict[str, int]]:
    """Mintaka's dev questions whose answers are entities that wikidata_mini has, by label, as it has those they name.

    Also how many relations, 1 or 2, an answer is apart from an entity of the question, by id; an answer that is further
    away has none, and that an answer is near does not make the graph hold what the question asks.
    """
    rows = json.loads((work.shared / "mintaka" / "mintaka_dev.json").read_text(encoding="utf-8"))
    with KgStore.open(work.kg("wikidata")) as store:
        known = dict(
            store.connection.execute(
                "SELECT key, id FROM entities WHERE id IN (SELECT id FROM labels WHERE label IS NOT NULL)"
            ).fetchall()
        )
        ends = store.connection.execute("SELECT head, tail FROM triples").fetchnumpy()
    heads = np.concatenate([ends["head"], ends["tail"]])
    order = np.argsort(heads, kind="stable")
    tails = np.concatenate([ends["tail"], ends["head"]])[order]
    starts = np.searchsorted(heads[order], np.arange(heads.max() + 2))

    def near(entity: int) -> set[int]:
        return set(tails[starts[entity] : starts[entity + 1]].tolist())

    questions, distances = [], {}
    for row in rows:
        if row["answer"]["answerType"] != "entity":
            continue
        gold = [answer["name"] for answer in row["answer"]["answer"] or ()]
        named = [one["name"] for one in row["questionEntity"] if one["entityType"] == "entity"]
        if not gold or not named or not all(key in known for key in (*gold, *named)):
            continue
        ids = {known[key] for key in gold}
        questions.append(
            Question(
                f"mintaka-{row['id']}", row["question"], answer_keys=tuple(gold), answers=tuple(sorted(ids)),
                complexity=row["complexityType"],
            )
        )  # fmt: skip
        around, ends_near = set().union(*(near(known[key]) for key in named)), set().union(*map(near, ids))
        if around & ids:
            distances[questions[-1].id] = 1
        elif any(starts[one + 1] - starts[one] <= MIDDLE for one in around & ends_near):
            distances[questions[-1].id] = 2
    return sorted(questions, key=lambda one: one.id), distances


def lcquad2_reason(shared: Path) -> str:
    """Why paraphrases of LC-QuAD 2 are not measured.

    Raises ValueError where the shared data has some, for no experiment reads them yet.
    """
    files = sorted((shared / "lcquad2").rglob("*.json*")) if (shared / "lcquad2").is_dir() else []
    if not files:
        return "the shared data has no LC-QuAD 2"
    for file in files:
        with file.open(encoding="utf-8") as lines:
            if "paraphrase" in lines.readline():
                raise ValueError(f"{file} has paraphrases; write the experiment that reads them")
    return "its file has one text of each question, no paraphrase, and no answers"
