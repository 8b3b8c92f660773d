"""Stage `label_parser`: the label parser adapted to one graph, by its training questions and generated ones.

What was learnt is kept where the dev questions gain by it (`LabelParserOptions.adapt`), else the head start is kept.
Half of the training questions start from their gold topics, the others from those that the tagger finds, where a
dictionary is given and finds the gold ones among others, so that names that mean nothing here are met in training.
"""

from __future__ import annotations

import functools
import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.config import LabelParserOptions, LinkingOptions
from kgqa_core.datasets.derived.gold_forms import gold_form
from kgqa_core.datasets.derived.noise import Noise
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import ALSO_TRAIN
from kgqa_core.errors import FormError, TrainingError
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import OPAQUE
from kgqa_core.linking.questions import link_question
from kgqa_core.linking.tagger import Tagger, open_tagger
from kgqa_core.logic.forms import elements
from kgqa_core.logic.parser import parse
from kgqa_core.metrics.significance import bootstrap_interval, mcnemar
from kgqa_core.retrieval.linked_candidates import CANDIDATES, with_candidates
from kgqa_core.search.candidates import LabelQuery
from kgqa_core.search.graph import LabelGraph
from kgqa_core.search.reading import corrected
from kgqa_core.symbolic.by_labels.calibrate import AS_IT_IS, Calibration, Choice, answer_key, calibrate, choose
from kgqa_core.symbolic.by_labels.encoder import ADAPTED
from kgqa_core.symbolic.by_labels.examples import LabelExample, candidate_of, make_examples
from kgqa_core.symbolic.by_labels.learnt_words import learnt_words
from kgqa_core.symbolic.by_labels.model import LabelModel, average, keep_phrases, learned, load, save, untrained
from kgqa_core.symbolic.by_labels.parser import LabelParser
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.symbolic.by_labels.train import FitOptions, fit
from kgqa_core.types import INVERSE, Question
from kgqa_core.workspace import Workspace

GENERATED = "questions.jsonl"
Labelled = tuple[Question, str | None, float]
"""A question, its gold form (None: the graph holds no answer), and its weight."""
Subject = tuple[frozenset[int], frozenset[str]]
"""Topic entities and relations of a question."""
ADAPTED_FROM_PACKAGED = 1
"""Last layers of the encoder whose adapters learn from the packaged starting point; without it all do."""
START_WEIGHT = 0.7
"""Share of the packaged starting point in the weights that training ends with, for what other graphs taught it."""
GOLD_TOPICS = 0.5
"""Share of training questions that start from gold topics."""
FURTHER_SHARE, FURTHER_RATE = 0.25, 0.3
"""Of the last steps, which teach the questions of `also_train`: the share of these, and that of the learning rates."""
CHANCE = 0.05
"""Largest p of McNemar's test with which a gain counts: the bootstrap of a few differing questions is too sure."""


def train(
    workspace: Workspace,
    *,
    kg: Path,
    questions: Path,
    generated: Path | None,
    mentions: Path | None,
    options: LabelParserOptions,
    linking: LinkingOptions,
    seed: int,
) -> dict[str, Any]:
    """Writes model.safetensors, config.json and phrases.safetensors; returns counts, and the outcome in words.

    questions: of the run, those with gold forms or with paths that make one are learnt from.  generated: a folder with
    questions made from the graph.  mentions: a dictionary of its names.
    Raises TrainingError when there is no question to learn from, though steps are to be trained.
    """
    chooser = random.Random(seed)
    with KgStore.open(kg) as store:
        start = load(None, merge=False) if options.start == "packaged" else LabelModel(untrained(seed), 2)
        graph, scorer = LabelGraph(store), LabelScorer(start.network)
        parser = LabelParser(graph, scorer, options.hops)
        tagger = open_tagger(mentions, kg, linking) if mentions is not None else None
        every, noise = read_questions(questions), Noise(options.noise, seed)
        own = _of_run(every, questions / "unanswerable.jsonl", graph)
        made = _of_file(generated / GENERATED, graph, _tested(every)) if generated is not None else {}
        besides = [one for one in own.get("train", []) if one[0].source == ALSO_TRAIN]
        drawn = _drawn([one for one in own.get("train", []) if one[0].source != ALSO_TRAIN], options.examples, chooser)
        drawn += besides
        learning = _typed(drawn, noise, store) + made.get("train", [])
        counts: dict[str, Any] = {
            "questions": {"own": len(own.get("train", [])), "generated": len(made.get("train", []))}
        }
        left = made.get("dev", []) + made.get("test", [])
        compares = options.adapt == "auto" and options.start == "packaged"
        trains = bool(options.steps) and options.adapt != "never"
        trains = trains and (not compares or bool(own.get("train") and (own.get("dev") or left)))
        linked: list[Labelled] = []
        if trains:
            if not learning:
                raise TrainingError(
                    "no training question has a gold form, and no question is generated; set label_parser.generated "
                    "above 0, or label_parser.steps to 0 to answer with the packaged head start alone"
                )
            workspace.monitor.note(f"label parser: {len(learning):,} questions to learn from")
            linked = link_some(learning, tagger, linking, chooser)
        own_dev = _typed(_drawn(own.get("dev", []), options.calibration_questions, chooser), noise, store)
        dev = own_dev + _drawn(left, options.calibration_questions, chooser)
        dev = link_some(dev, tagger, linking, chooser, gold=0.0)
        first = replace(start.calibration or AS_IT_IS, threshold=options.threshold)
        learnt_on = dev if trains or (own_dev and options.adapt != "never") else []
        result = packaged = _judge(parser, dev, first, len(learnt_on)) if compares or not trains else None
        outcome = "the packaged head start, not trained on this graph,"
        if trains:
            start.network.encoder.learn(ADAPTED_FROM_PACKAGED if options.start == "packaged" else ADAPTED)
            start.network.encoder.remember(states=True)
            examples, results = make_examples(parser, linked, seed, monitor=workspace.monitor)
            if not examples:
                raise TrainingError(
                    f"none of {len(learning):,} questions has a form that can be run in this graph; set "
                    "label_parser.generated above 0, or label_parser.steps to 0"
                )
            counts |= results
            plan = FitOptions(
                options.steps, options.batch_size, options.candidates, options.encoder_learning_rate,
                options.learning_rate, options.missing_relation_rate, checkpoint_seconds=options.checkpoint_seconds,
            )  # fmt: skip
            before = {name: value.clone() for name, value in learned(start.network).items()}
            trained = fit(scorer, examples, plan, seed, workspace.monitor, workspace.work, keep=True)
            if options.start == "packaged":
                average(start.network, before, START_WEIGHT)
            further = _learn_besides(
                scorer, examples, {one.id for one, _, _ in besides}, plan, options, seed, workspace
            )
            counts |= {"further": further} if further else {}
            counts["training"] = {name: round(value, 4) for name, value in trained.items()}
            parser.clear()
            result = _judge(parser, dev, first, len(learnt_on))
            outcome = f"trained on {len(learning):,} questions, it"
            if packaged is not None:
                counts["gain"], kept, why = _compare(packaged, result, len(own_dev) or len(dev), bool(besides), seed)
                outcome = outcome.removesuffix("it") + f"{why}; it"
                if not kept:
                    average(start.network, before, 1.0)
                    result = packaged
        assert result is not None
        words = _words(own.get("train", []) + made.get("train", []), graph)
    save(workspace.out, LabelModel(start.network, options.hops, result.calibration, words=words))
    keep_phrases(workspace.out, parser.wordings)
    return counts | {"dev": result.counts, "outcome": f"{outcome} {_in_words(result, dev)}"}


@dataclass(frozen=True)
class _Judged:
    """How a label parser answers dev questions.

    exact [questions]: 1 where the right answer is given, or a question without one declined, else 0.
    """

    counts: dict[str, int]
    calibration: Calibration
    exact: NDArray[np.float64]


def _judge(parser: LabelParser, dev: Sequence[Labelled], start: Calibration, learnt: int) -> _Judged:
    """learnt: so many of the questions, from the first, move the calibration from its start."""
    choices, right, counts = judged(parser, dev)
    calibration = calibrate(choices[:learnt], right[:learnt], start.threshold, start)
    given = [not one.empty and calibration.confidence(one) >= calibration.threshold for one in choices]
    rows = zip(dev, right, given, strict=True)
    exact = [good and sure if form is not None else not sure for (_, form, _), good, sure in rows]
    return _Judged(counts, calibration, np.array(exact, dtype=np.float64))


def _compare(
    before: _Judged, after: _Judged, number: int, corrected: bool, seed: int
) -> tuple[dict[str, float], bool, str]:
    """The gain on the first so many questions, whether what was learnt is kept, and the decision in words.

    corrected: what people corrected was learnt, which no dev question shows; it is kept where nothing shows a loss.
    """
    old, new = before.exact[:number], after.exact[:number]
    change = bootstrap_interval(new - old, seed=seed)
    p = mcnemar(int((new > old).sum()), int((new < old).sum()))
    gains = change.low > 0 and p < CHANCE
    kept = gains or (corrected and change.high >= 0)
    verdict = "kept" if gains else "kept for its corrections" if kept else "not kept: the packaged head start is"
    why = (
        f"{verdict} ({number} dev questions: {_percent(old.mean())} exact before, {_percent(new.mean())} after, "
        f"difference {_percent(change.value)} [{_percent(change.low)}, {_percent(change.high)}], p = {p:.2g})"
    )
    return change.rounded() | {"before": round(float(old.mean()), 6), "p": p, "kept": kept}, kept, why


def _in_words(result: _Judged, dev: Sequence[Labelled]) -> str:
    """How many dev questions are answered right, and how many without an answer are declined."""
    has_answer = np.array([form is not None for _, form, _ in dev], dtype=bool)
    right, declined = bootstrap_interval(result.exact[has_answer]), result.exact[~has_answer]
    if not right.n:
        return "is not measured, for no dev question has a form"
    interval = f"{_percent(right.value)} [{_percent(right.low)}, {_percent(right.high)}]"
    more = f" and declines {int(declined.sum())} of {declined.size} that the graph does not answer"
    return f"answers {interval} of {right.n} dev questions right" + (more if declined.size else "")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %".replace("-", "−")


def _words(some: Sequence[Labelled], graph: LabelGraph) -> dict[str, list[str]]:
    """What the words of questions with a form stand for, with their typing errors mended; English alone."""
    asked = [(question, form) for question, form, _ in some if form is not None and question.language == "en"]
    names = graph.store.surface_forms({entity for question, _ in asked for entity in question.topic_entities})
    rows = (
        (question.text, form, {name for entity in question.topic_entities for name in names[entity]})
        for question, form in asked
    )
    return learnt_words(rows, functools.cache(lambda word: corrected(word, graph)))


def _learn_besides(
    scorer: LabelScorer,
    examples: Sequence[LabelExample],
    besides: set[str],
    plan: FitOptions,
    options: LabelParserOptions,
    seed: int,
    workspace: Workspace,
) -> dict[str, int]:
    """Trains on the questions of these ids among others, which keep what is known; counts, none where nothing is done.

    Gently: at a share of the learning rates, and as many steps as `also_train_steps`, or more for many questions.
    """
    own = [example for example in examples if example.question in besides]
    if not own or not options.also_train_steps:
        return {}
    steps = min(plan.steps, max(options.also_train_steps, len(own) // 4))
    others = [example for example in examples if example.question not in besides]
    random.Random(seed).shuffle(others)
    others = others[: round(steps * plan.batch_size * (1 - FURTHER_SHARE))]
    wanted = max(len(own), round(len(others) * FURTHER_SHARE / (1 - FURTHER_SHARE)))
    mixed = others + [own[index % len(own)] for index in range(wanted)]
    gentle = replace(
        plan, steps=steps, learning_rate=plan.learning_rate * FURTHER_RATE, head_rate=plan.head_rate * FURTHER_RATE
    )
    folder = None
    if workspace.work is not None:
        folder = workspace.work / "further"
        folder.mkdir(exist_ok=True)
    fit(scorer, mixed, gentle, seed, workspace.monitor, folder, keep=True)
    return {"questions": len(own), "steps": steps}


def judged(parser: LabelParser, dev: Sequence[Labelled]) -> tuple[list[Choice], list[bool], dict[str, int]]:
    """The choice of each question, whether it is right, and how they were answered."""
    choices, right, hits = [], [], Counter[str]()
    ranked = parser.parse([question for question, _, _ in dev])
    for (_, text, _), one in zip(dev, ranked, strict=True):
        choice = choose(one)
        gold = candidate_of(parse(text), LabelQuery(""), parser.graph) if text is not None else None
        good = gold is not None and choice.best is not None and answer_key(choice.best) == answer_key(gold)
        declined = choice.best is None or choice.empty or choice.none >= choice.share
        hits["answerable" if text is not None else "unanswerable"] += 1
        hits["right"] += good and not choice.empty
        hits["declined rightly"] += declined and text is None
        hits["declined wrongly"] += declined and text is not None
        choices.append(choice)
        right.append(good and not choice.empty)
    return choices, right, dict(sorted(hits.items()))


def _of_run(every: Sequence[Question], unanswerable: Path, graph: LabelGraph) -> dict[str, list[Labelled]]:
    """Questions of a run with their gold forms, by split, and those of a file that the graph does not answer.

    Those about an entity that the graph has no name of are left out: nobody can ask for it in words.
    """
    everything = [one for one in every if one.split in ("train", "dev") and one.unlinkable is None]
    topics = {entity for question in everything for entity in question.topic_entities}
    keys, names = graph.store.entity_keys(topics), graph.store.names(topics)
    nameless = {entity for entity in topics if names[entity] == keys[entity] and OPAQUE.match(keys[entity])}
    results: dict[str, list[Labelled]] = defaultdict(list)
    for question in everything:
        form = gold_form(question, keys, graph.memory)
        if form is not None and nameless.isdisjoint(question.topic_entities):
            results[question.split].append((question, str(form), 1.0))
    for row in _rows(unanswerable):
        if row.get("split") in ("train", "dev"):
            results[row["split"]].append((question_without_answer(row, graph), None, 1.0))
    return results


def _tested(every: Sequence[Question]) -> set[Subject]:
    """What the test questions of a run are about: their topics, and the relations of their paths or form."""
    results: set[Subject] = set()
    for question in every:
        if question.split != "test":
            continue
        topics = frozenset(question.topic_entities)
        results |= {(topics, frozenset(one.removeprefix(INVERSE) for one in path)) for path in question.relation_paths}
        if question.s_expression:
            try:
                results.add((topics, frozenset(elements(parse(question.s_expression)).relations)))
            except FormError:
                continue
    return results


def _of_file(path: Path, graph: LabelGraph, tested: set[Subject]) -> dict[str, list[Labelled]]:
    """Generated questions with their forms, by split, without those about what a test question is about."""
    results: dict[str, list[Labelled]] = defaultdict(list)
    for row in _rows(path):
        if row.get("answerable") is False or not row.get("s_expression"):
            results[row["split"]].append((question_without_answer(row, graph), None, 1.0))
            continue
        try:
            used = elements(parse(row["s_expression"]))
        except FormError:
            continue
        ids = graph.memory.know(used.entities)
        if (frozenset(ids.values()), frozenset(used.relations)) in tested:
            continue
        question = Question(row["id"], row["question"], topic_keys=tuple(ids), topic_entities=tuple(ids.values()))
        results[row["split"]].append((question, row["s_expression"], 1.0))
    return results


def question_without_answer(row: dict[str, Any], graph: LabelGraph) -> Question:
    """A question that the graph does not answer, with the topics that it has of it."""
    ids = graph.memory.know(row.get("topic_entities") or ())
    return Question(row["id"], row["question"], topic_keys=tuple(ids), topic_entities=tuple(ids.values()))


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _typed(some: Sequence[Labelled], noise: Noise, store: KgStore) -> list[Labelled]:
    """Questions as people might have typed them; those in other languages than English stay."""
    names = store.names({entity for question, _, _ in some for entity in question.topic_entities})
    results = []
    for question, form, weight in some:
        if question.language == "en":
            mentions = [names[entity] for entity in question.topic_entities if names[entity] in question.text]
            question = replace(question, text=noise.apply(question.text, mentions, question.id))
        results.append((question, form, weight))
    return results


def _drawn(some: list[Labelled], most: int, chooser: random.Random) -> list[Labelled]:
    """At most so many questions, those of rare shapes (relations and operation) first, the rest drawn."""
    if len(some) <= most:
        return list(some)
    groups: dict[str, list[Labelled]] = defaultdict(list)
    for one in sorted(some, key=lambda one: one[0].id):
        groups[_shape(one[1])].append(one)
    for own in groups.values():
        chooser.shuffle(own)
    order = sorted(groups)
    results: list[Labelled] = []
    while len(results) < most:
        for shape in order:
            if groups[shape] and len(results) < most:
                results.append(groups[shape].pop())
        order = [shape for shape in order if groups[shape]]
    return results


def _shape(form: str | None) -> str:
    if form is None:
        return "-"
    parsed = parse(form)
    return f"{type(parsed).__name__} {' '.join(elements(parsed).relations)}"


def link_some(
    some: Sequence[Labelled],
    tagger: Tagger | None,
    options: LinkingOptions,
    chooser: random.Random,
    gold: float = GOLD_TOPICS,
) -> list[Labelled]:
    """Questions with linked topics, but for a share with gold ones, and those whose gold topics are not found."""
    if tagger is None:
        return list(some)
    results: list[Labelled] = []
    for question, form, weight in some:
        if form is not None and chooser.random() < gold:
            results.append((question, form, weight))
            continue
        linked, mentions = link_question(tagger, question, options)
        linked = with_candidates(linked, mentions, CANDIDATES)
        lost = form is not None and not np.isin(question.topic_entities, linked.topic_entities).all()
        results.append((question if lost and gold else linked, form, weight))
    return results
