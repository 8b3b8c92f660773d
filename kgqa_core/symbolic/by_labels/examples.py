"""Training examples of the label parser: a question, its candidates, and which of them are right."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.logic.forms import (
    Form,
    Holds,
    Minus,
    elements,
)
from kgqa_core.logic.memory import outside
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.parser import parse
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.search.candidates import (
    KINDS,
    Candidate,
    LabelQuery,
    best_of,
    kind_of,
    slots_of,
    types_in_form,
    ways_of,
)
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic.by_labels.parser import BLOCK, NO_CLASS, LabelParser, classes_of
from kgqa_core.symbolic.by_labels.scorer import HEADS, EncodedTexts
from kgqa_core.types import Question

OTHER_KINDS = 2
"""Kinds beside the right one whose candidates a training question has."""


@dataclass(frozen=True)
class LabelExample:
    """A question with candidates to choose from.

    texts, nouns: phrase of each candidate, and what it finds.  right: whether each candidate is; none is where the
    graph holds no answer.  relations: of each candidate, to leave out what uses one of the right one.  classes
    [candidates, heads]: of each candidate by each head of the scorer; wanted: of the right form; `NO_CLASS` where there
    is none.  weight: how often the question counts.
    """

    question: str
    query: LabelQuery
    texts: list[str]
    nouns: list[str]
    features: NDArray[np.float32]
    right: NDArray[np.bool_]
    relations: list[frozenset[int]]
    classes: NDArray[np.int64]
    wanted: tuple[int, ...]
    weight: float = 1.0


def candidate_of(form: Form, query: LabelQuery, graph: LabelGraph) -> Candidate | None:
    """A form as a candidate of a question; None where it cannot be run in memory or names what the graph has not."""
    try:
        if outside(form) or any(key not in graph.memory.relation_ids for key in elements(form).relations):
            return None
        result = graph.answering.execute(form)
    except (FormError, FormTimeout):
        return None
    nodes = np.array(result.nodes, dtype=np.int64) if result.value is None else None
    types = types_in_form(form, nodes, query, graph)
    first = slots_of(form.of, query) if isinstance(form, (Minus, Holds)) else ()
    return Candidate(
        form,
        KINDS.index(kind_of(form)),
        nodes,
        result.value,
        ways_of(form, graph),
        tuple(dict.fromkeys((*first, *slots_of(form, query)))),
        types,
        rho=1.0,
        score=9.0,
    )


def make_examples(
    parser: LabelParser,
    questions: Sequence[tuple[Question, str | None, float]],
    seed: int,
    most: int = 64,
    monitor: Monitor = QUIET,
) -> tuple[list[LabelExample], dict[str, int]]:
    """Examples of questions with their gold forms (None: the graph holds no answer) and weights; and counts.

    A question whose gold form the parser could not have made keeps it as one more candidate, and is counted as
    `uncovered`; one whose form cannot be run is left out and counted as `without_form`.
    """
    counts = {"examples": 0, "uncovered": 0, "without_form": 0, "unanswerable": 0}
    graph, examples = parser.graph, []
    queries = parser.read([question for question, _, _ in questions])
    flat = [np.zeros(size, dtype=np.float32) for size in HEADS]
    encoded: EncodedTexts | None = None
    for index, ((question, text, weight), query) in enumerate(zip(questions, queries, strict=True)):
        if index % BLOCK == 0:
            monitor.progress(index, len(questions), "questions with candidates")
            encoded = parser.scorer.questions([one.text for one in queries[index : index + BLOCK]])
        chooser = random.Random(f"{seed} {question.id}")
        gold = parse(text) if text is not None else None
        kind = kind_of(gold) if gold is not None else chooser.choice(KINDS[:2])
        log = [-math.inf] * len(KINDS)
        for name in {kind, *chooser.sample(KINDS, OTHER_KINDS)}:
            log[KINDS.index(name)] = 0.0
        assert encoded is not None
        fit = parser.relation_fit(query, encoded, index % BLOCK)
        candidates = parser.maker.make(query, fit, log)[:most]
        made, right = None, [False] * len(candidates)
        if gold is not None:
            made = candidate_of(gold, query, graph)
            if made is None or not made.slots and not elements(gold).classes:
                counts["without_form"] += 1
                continue
            same = _Same(made)
            right = [same.as_gold(candidate) for candidate in candidates]
            if not any(right):
                counts["uncovered"] += 1
                candidates, right = [made, *candidates], [True, *right]
        else:
            counts["unanswerable"] += 1
        texts = parser.texts(query, candidates)
        classes = [classes_of(candidate) for candidate in candidates]
        features = parser.features(query, candidates, flat, fit, classes)
        wanted = (NO_CLASS,) * len(HEADS) if made is None else (KINDS.index(kind), *classes_of(made)[1:])
        examples.append(
            LabelExample(
                question.id, query, texts, parser.nouns(candidates), features, np.array(right, dtype=np.bool_),
                [frozenset(directed % graph.relations for directed in candidate.ways) for candidate in candidates],
                np.array(classes, dtype=np.int64).reshape(-1, len(HEADS)),
                wanted, weight,
            )
        )  # fmt: skip
        counts["examples"] += 1
    return examples, counts


class _Same:
    """Whether candidates are a gold form, or find the same by the same relations and operation."""

    def __init__(self, gold: Candidate) -> None:
        self.gold, self.form, self.elements = gold, normalise(gold.form), elements(gold.form)
        self.best = best_of(gold.form)

    def as_gold(self, candidate: Candidate) -> bool:
        """Whether one candidate is."""
        gold, own = self.gold, elements(candidate.form)
        if own == self.elements and normalise(candidate.form) == self.form:
            return True
        if (
            candidate.kind != gold.kind
            or own.relations != self.elements.relations
            or len(candidate.ways) != len(gold.ways)
        ):
            return False
        if (
            best_of(candidate.form) != self.best
            or type(candidate.form) is not type(gold.form)
            and candidate.nodes is None
        ):
            return False
        if own.entities != self.elements.entities:
            return False
        if gold.nodes is None:
            return candidate.nodes is None and candidate.value == gold.value and not isinstance(gold.value, bool)
        return candidate.nodes is not None and np.array_equal(candidate.nodes, gold.nodes)
