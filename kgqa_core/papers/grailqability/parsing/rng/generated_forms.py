"""The input of the generator, and how its output and the ranker's order become one ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kgqa_core.config import RngOptions
from kgqa_core.logic.forms import Form, elements
from kgqa_core.nn.checkpoint import TrainingState
from kgqa_core.papers.grailqability.parsing.rng import generate
from kgqa_core.papers.grailqability.parsing.rng.enumerate import NO_FORM, Forms
from kgqa_core.papers.grailqability.parsing.rng.generate import Generator, prompt_of, read_form
from kgqa_core.papers.grailqability.parsing.rng.ranker import FormRanker, RankedForms, ReadTexts, rank
from kgqa_core.papers.grailqability.parsing.rng.readings import Reading
from kgqa_core.papers.grailqability.parsing.rng.slots import MENTIONS, filled, values_in
from kgqa_core.workspace import Workspace

FLOOR = 1.0
"""What only one of both has counts as that much less likely than the least likely that the other has."""


def train_generator(
    workspace: Workspace,
    readings: Mapping[str, Sequence[Reading]],
    forms: Forms,
    ranker: FormRanker,
    rows: ReadTexts,
    options: RngOptions,
    seed: int,
    key: str,
) -> tuple[Generator, TrainingState]:
    """A generator that learns from the questions of `train`, with the forms that the trained ranker finds best.

    rows: every form, by number.  options: `learn_unanswerable` says whether some question has no form.
    """
    prompts = {}
    no_form, most = options.learn_unanswerable, options.generator.input_forms
    for name in ("train", "dev"):
        learnt = [
            reading
            for reading in readings[name]
            if reading.gold is not None and (no_form or reading.gold[1] != NO_FORM)
        ]
        queries = [(reading.texts, reading.candidates) for reading in learnt]
        ranked = rank(ranker, queries, rows, pruned=options.preselected_forms, no_form=no_form)
        prompts[name] = list(
            dict.fromkeys(
                prompt_of(reading.whole, best_forms(reading, r, forms, most), _gold(reading, forms))
                for reading, r in zip(learnt, ranked, strict=True)
            )
        )
    return generate.fit(
        workspace, prompts["train"], prompts["dev"], options.generator, seed, ranker.device,
        checkpoint_seconds=options.checkpoint_seconds, key=key,
    )  # fmt: skip


def best_forms(reading: Reading, ranked: RankedForms, forms: Forms, most: int) -> list[Form | None]:
    """The best forms of a question with slots of its mentions, each once."""
    best: dict[Form | None, None] = {}
    for index in ranked.indices.tolist():
        form = forms.forms[int(reading.candidates.forms[index])]
        best[None if form is None else reading.among_mentions(int(reading.candidates.views[index]), form)] = None
        if len(best) == most:
            break
    return list(best)


def prompt_text(reading: Reading, ranked: RankedForms, forms: Forms, most: int) -> str:
    """What the generator reads of a question."""
    return prompt_of(reading.whole, best_forms(reading, ranked, forms, most)).text


def readable(written: Sequence[tuple[str, float]]) -> tuple[dict[Form | None, float], int]:
    """Forms that were written with their log-probabilities, best first, and how many could not be read."""
    scores: dict[Form | None, float] = {}
    unreadable = 0
    for text, score in written:
        fine, form = read_form(text)
        if not fine:
            unreadable += 1
        else:
            scores[form] = float(np.logaddexp(scores[form], score)) if form in scores else score
    return scores, unreadable


def named(form: Form, reading: Reading, text: str) -> tuple[Form, float, float] | None:
    """A written form with the likeliest entity of each mention, the sum of log ρ and the least one.

    None where it names a slot that the question has not.
    """
    sure = {
        view.mentions[0]: max(own, key=lambda filling: filling.log_rho)
        for view, own in zip(reading.views, reading.fillings, strict=True)
        if len(view.mentions) == 1 and own
    }
    used = [slot for slot in elements(form).entities if slot in MENTIONS]
    indices = [MENTIONS.index(slot) for slot in used]
    if any(index >= len(reading.mentions) or reading.mentions[index] not in sure for index in indices):
        return None
    fillings = [sure[reading.mentions[index]] for index in indices]
    values = values_in(text)
    whole = filled(form, [filling.keys[0] for filling in fillings], values[0] if values else None, used)
    return whole, sum(f.log_rho for f in fillings), min((f.rho for f in fillings), default=1.0)


def together(
    ranker: Mapping[Form | None, float], generator: Mapping[Form | None, float], weight: float
) -> dict[Form | None, float]:
    """Log-probabilities of all forms that either scores: the weighted mean, what one has not being at its floor."""
    every = dict.fromkeys([*ranker, *generator])
    least = [min(scores.values(), default=0.0) - FLOOR for scores in (ranker, generator)]
    mixed = {form: (1 - weight) * ranker.get(form, least[0]) + weight * generator.get(form, least[1]) for form in every}
    total = float(np.logaddexp.reduce(list(mixed.values()))) if mixed else 0.0
    return {form: score - total for form, score in mixed.items()}


def _gold(reading: Reading, forms: Forms) -> Form | None:
    assert reading.gold is not None
    view, number = reading.gold
    form = forms.forms[number]
    return None if form is None else reading.among_mentions(view, form)
