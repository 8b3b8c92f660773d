"""What is ranked for a question: its views, and the candidate forms of each, with the entities that may fill them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.config import RngOptions
from kgqa_core.errors import FormError
from kgqa_core.logic.forms import Form
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.parser import parse
from kgqa_core.papers.grailqability.parsing.examples import ParseExample
from kgqa_core.papers.grailqability.parsing.rng.enumerate import NO_FORM, Enumerator, Named, Pool
from kgqa_core.papers.grailqability.parsing.rng.retrieved_items import whole_of
from kgqa_core.papers.grailqability.parsing.rng.slots import (
    ENTITIES,
    MENTIONS,
    View,
    abstract,
    filled,
    mentions_of,
    views_of,
    whole_text,
)

Ints = NDArray[np.int64]

SHOWN = 20
"""Ids of questions that are left out, which counts name."""
SMALLEST_RHO = 1e-3
"""A linker's confidence counts as at least so much."""


@dataclass(frozen=True)
class Filling:
    """Entities for the slots of a view: their keys, the sum of log ρ, the least ρ, and the forms that they may fill."""

    keys: tuple[str, ...]
    log_rho: float
    rho: float
    pool: Pool

    def has(self, number: int) -> bool:
        """Whether they may fill a form."""
        return bool((self.pool.numbers == number).any())


@dataclass(frozen=True)
class FormCandidates:
    """(view, form) of every candidate, as numbers [candidates]; the first is "no form" of the first view."""

    views: Ints
    forms: Ints


@dataclass(frozen=True)
class Reading:
    """A question with all that it may mean.

    views: those that have candidates, the first one being about as many mentions as may be.  fillings: of each view.
    gold: (view, form) of the gold form, (0, NO_FORM) where it is known that there is none; None where it is not known,
    or not among the candidates.  cut: candidates over the cap.  whole: the question with all its mentions as slots.
    mentions: their numbers, in the order of the text.
    """

    id: str
    views: tuple[View, ...]
    fillings: tuple[tuple[Filling, ...], ...]
    candidates: FormCandidates
    gold: tuple[int, int] | None
    cut: int
    whole: str
    mentions: tuple[int, ...]

    def among_mentions(self, view: int, form: Form) -> Form:
        """A form of a view with the slots of the question's mentions, normalised."""
        slots = [MENTIONS[self.mentions.index(number)] for number in self.views[view].mentions]
        return normalise(filled(form, slots))

    @property
    def texts(self) -> tuple[str, ...]:
        """What is read of each view."""
        return tuple(view.text for view in self.views)


class Readings:
    """Makes readings over one graph; candidates of the same pools are one object."""

    def __init__(self, enumerator: Enumerator, options: RngOptions) -> None:
        self.enumerator, self.options = enumerator, options
        self._candidates: dict[tuple[tuple[int, ...], ...], FormCandidates] = {}

    def of_all(self, examples: Iterable[ParseExample]) -> list[Reading]:
        """The readings of some questions, in their order."""
        selected = list(examples)
        if self.enumerator.retrieved is not None:
            self.enumerator.retrieved.know([whole_of(example, self.options) for example in selected])
        return [self.of(example) for example in selected]

    def of(self, example: ParseExample) -> Reading:
        """The reading of a question."""
        mentions = mentions_of(example.text, example.topics, self.options.mentions)
        views = views_of(example.text, mentions)
        whole = whole_text(example.text, mentions)
        named = self.enumerator.named(views[0].text, whole)
        fillings = [self._fillings(view, example, named, whole, alone=not mentions) for view in views]
        plain = [number for number, view in enumerate(views) if view.value is None]
        full = max(plain, key=lambda number: (len(views[number].mentions), -number))
        chosen = [full, *(n for n in range(len(views)) if n != full and any(len(f.pool.numbers) for f in fillings[n]))]
        views, fillings = [views[n] for n in chosen], [fillings[n] for n in chosen]
        return Reading(
            id=example.id,
            views=tuple(views),
            fillings=tuple(fillings),
            candidates=self._together(fillings),
            gold=self._gold(example, views, fillings),
            cut=sum(filling.pool.cut for of_view in fillings for filling in of_view),
            whole=whole,
            mentions=tuple(number for number, _ in mentions),
        )

    def _fillings(
        self, view: View, example: ParseExample, named: Named, whole: str, *, alone: bool
    ) -> tuple[Filling, ...]:
        among = []
        for number in view.mentions:
            own = sorted((t for t in example.topics if t.number == number), key=lambda t: (-t.rho, t.key))
            among.append(own[: self.options.candidates])
        fillings = []
        for topics in product(*among):
            keys = tuple(topic.key for topic in topics)
            if len(set(keys)) == len(keys):
                starts = tuple(self.enumerator.starts(key) for key in keys)
                pool = self.enumerator.pool(starts, view, named, alone, keys, whole)
                rhos = [min(1.0, max(topic.rho, SMALLEST_RHO)) for topic in topics]
                fillings.append(Filling(keys, sum(map(math.log, rhos)), min(rhos, default=1.0), pool))
        return tuple(fillings)

    def _together(self, fillings: Sequence[tuple[Filling, ...]]) -> FormCandidates:
        key = tuple(tuple(sorted({id(filling.pool) for filling in of_view})) for of_view in fillings)
        if key not in self._candidates:
            views, forms = [np.zeros(1, dtype=np.int64)], [np.full(1, NO_FORM, dtype=np.int64)]
            for number, of_view in enumerate(fillings):
                pools = list({id(filling.pool): filling.pool.numbers for filling in of_view}.values())
                together = pools[0] if len(pools) == 1 else np.unique(np.concatenate([np.zeros(0, np.int64), *pools]))
                views.append(np.full(len(together), number, dtype=np.int64))
                forms.append(together)
            self._candidates[key] = FormCandidates(np.concatenate(views), np.concatenate(forms))
        return self._candidates[key]

    def _gold(
        self, example: ParseExample, views: Sequence[View], fillings: Sequence[tuple[Filling, ...]]
    ) -> tuple[int, int] | None:
        if not example.known:
            return None
        if example.form is None:
            return (0, NO_FORM)
        try:
            form = parse(example.form)
        except FormError:
            return None
        known = self.enumerator.forms.numbers
        for number, (view, of_view) in enumerate(zip(views, fillings, strict=True)):
            for filling in of_view:
                number_of_form = known.get(normal_slots(form, filling.keys, view))
                if number_of_form is not None and filling.has(number_of_form):
                    return (number, number_of_form)
        return None


def normal_slots(form: Form, keys: Sequence[str], view: View) -> Form:
    """A form with the slots of a view, normalised."""
    return normalise(abstract(form, dict(zip(keys, ENTITIES, strict=False)), view.value))


def coverage(selected: Sequence[ParseExample], read: Sequence[Reading]) -> dict[str, Any]:
    """How many gold forms are among the candidates, how many candidates there are, and how many the cap cut."""
    having = {example.id for example in selected if example.form is not None}
    with_form = [reading for reading in read if reading.id in having]
    missed = [reading.id for reading in with_form if reading.gold is None]
    sizes = sorted(len(reading.candidates.forms) - 1 for reading in read)
    return {
        "gold_forms": len(with_form),
        "found": len(with_form) - len(missed),
        "share": round(1 - len(missed) / len(with_form), 6) if with_form else 0.0,
        "missed": missed[:SHOWN],
        "candidates_median": sizes[len(sizes) // 2] if sizes else 0,
        "candidates_most": sizes[-1] if sizes else 0,
        "cut": sum(reading.cut for reading in read),
        "questions_cut": sum(reading.cut > 0 for reading in read),
    }
