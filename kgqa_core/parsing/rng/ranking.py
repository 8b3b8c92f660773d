"""Ranks the candidates of questions: the first stage prunes them, the second one scores what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgqa_core.parsing.rng.enumerate import NO_FORM
from kgqa_core.parsing.rng.ranker import Ranker
from kgqa_core.parsing.rng.readings import Candidates, Ints

BLOCK = 256
"""Questions whose pruned candidates are scored together."""


@dataclass(frozen=True)
class Ranked:
    """Candidates of a question, best first: places in its `Candidates`, and their scores."""

    places: Ints
    scores: NDArray[np.float64]


def rank(
    ranker: Ranker,
    asked: Sequence[tuple[tuple[str, ...], Candidates]],
    forms: Sequence[list[int]],
    *,
    pruned: int,
    no_form: bool,
) -> list[Ranked]:
    """The best candidates of each question: (texts of its views, its candidates).

    forms: token ids of every form, by number.  pruned: candidates that reach the second stage.  no_form: whether "no
    form" is one of them; it is never pruned.  Equal questions are ranked once.
    """
    distinct: dict[tuple[tuple[str, ...], int], int] = {}
    where = [distinct.setdefault((texts, id(own)), len(distinct)) for texts, own in asked]
    firsts = {number: place for place, number in reversed(list(enumerate(where)))}
    mine = [asked[firsts[number]] for number in range(len(distinct))]
    texts = sorted({text for own, _ in mine for text in own})
    place = {text: number for number, text in enumerate(texts)}
    questions = ranker.read(texts)
    question_vectors = ranker.vectors(questions, forms=False).numpy()
    form_vectors = ranker.vectors(forms, forms=True).numpy()
    left = []
    for own, candidates in mine:
        own_texts = np.array([place[text] for text in own])
        scores = (question_vectors[own_texts] @ form_vectors.T)[candidates.views, candidates.forms]
        scores[0] = np.inf if no_form else -np.inf
        best = np.argsort(-scores, kind="stable")[: pruned + no_form]
        left.append(best[scores[best] > -np.inf])
    found: list[Ranked] = []
    for start in range(0, len(mine), BLOCK):
        block = range(start, min(start + BLOCK, len(mine)))
        pairs = [
            (place[mine[n][0][mine[n][1].views[i]]], int(mine[n][1].forms[i])) for n in block for i in left[n].tolist()
        ]
        scores = ranker.second(questions, forms, [q for q, _ in pairs], [f for _, f in pairs])
        ends = np.cumsum([len(left[n]) for n in block])[:-1]
        for n, own_scores in zip(block, np.split(scores, ends), strict=True):
            order = np.argsort(-own_scores, kind="stable")
            found.append(Ranked(left[n][order], own_scores[order]))
    return [found[number] for number in where]


def is_no_form(candidates: Candidates, place: int) -> bool:
    """Whether a candidate says that there is no form."""
    return int(candidates.forms[place]) == NO_FORM
