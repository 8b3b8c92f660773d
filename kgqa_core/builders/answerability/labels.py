"""What the modified graph says of each question: answerable or not, form known or not, and its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kgqa_core.builders.answerability.drops import Dropped
from kgqa_core.builders.answerability.ideal import Ideal, result_of
from kgqa_core.builders.answerability.trace import Tracer
from kgqa_core.logic.execute import Result
from kgqa_core.logic.forms import Count, Form, Holds
from kgqa_core.logic.lookup import endings
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.monitor import QUIET, Monitor


@dataclass(frozen=True, slots=True)
class Label:
    """known: the modified graph has everything that the form names.  result: there, None where the form is not known.

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
    ideals: Sequence[Ideal], dropped: Dropped, tracer: Tracer, modified: MemoryGraph, monitor: Monitor = QUIET
) -> list[Label]:
    """The label of each question; modified: the overlay, in which what cannot be traced is run."""
    labels = []
    for number, ideal in enumerate(ideals):
        of_form = {dropped.relations[r] for r in ideal.relations if r in dropped.relations}
        of_form |= {dropped.entities[e] for e in ideal.names if e in dropped.entities}
        taken = dropped.taken[ideal.support]
        of_facts = set(np.unique(taken[taken >= 0]).tolist()) | _unnamed(ideal, dropped, tracer)
        result = None if of_form else result_of(ideal.form, tracer, modified)
        answerable = result is not None and answers(ideal.form, ideal.value, result, _left(ideal, tracer))
        step = int(dropped.step_of[number])
        if not answerable and not of_form and not of_facts:
            of_facts = _members(ideal, dropped, tracer)
        if not answerable and step < 0:
            step = max(of_facts, default=len(dropped.steps) - 1)
        labels.append(
            Label(
                answerable=answerable, known=not of_form, result=result, step=-1 if answerable else step,
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


def answers(form: Form, ideal: int | bool | None, result: Result, left: bool) -> bool:
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
