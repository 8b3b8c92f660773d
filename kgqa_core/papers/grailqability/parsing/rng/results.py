"""What ranked forms find in the graph, weighed in: a form that finds nothing loses, and "no form" wins or loses.

RnG-KBQA takes the first form that has a result (Ye et al. 2022, section 3.4).  Questions whose facts are missing
(GrailQAbility's NA) have a gold form without one, so that how much an empty result counts is chosen here by exact match
on dev questions; so is how likely "no form" must be where it is ranked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from kgqa_core.errors import ArtifactError
from kgqa_core.logic.forms import Form
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.parser import parse
from kgqa_core.papers.grailqability.parsing.examples import ParseExample
from kgqa_core.papers.grailqability.parsing.parsed_forms import Runner, Scored, is_empty, normalise_scores
from kgqa_core.store.artifacts import write_json

FILE = "results.json"
EMPTY = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
NO_FORM = (0.0, -0.5, 0.5, -1.0, 1.0, -1.5, 1.5, -2.0, 2.0, -3.0, 3.0)
"""Weights that are tried, the first of equals being taken."""
EXECUTED_FORMS = 30
"""Best forms of a question that are run to see whether they find something."""
QUESTIONS = 400
"""Dev questions by which they are chosen, at most."""


GENERATOR = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7)
"""Weights of a generator beside the ranker that are tried, the first of equals being taken."""


@dataclass(frozen=True)
class ResultWeights:
    """What a form's log-probability loses where it finds nothing in the graph, what "no form" gains, and the weight of
    a generator beside the ranker."""

    empty: float = 0.0
    no_form: float = 0.0
    generator: float = 0.0


def weighed(scored: Sequence[Scored], runner: Runner, weights: ResultWeights, executed: int) -> list[Scored]:
    """The forms of a question, best first, with what the first `executed` of them find; the others stay behind them."""
    if not weights.empty and not weights.no_form:
        return list(scored)
    first = [
        (form, score + weights.no_form if form is None else score - weights.empty * is_empty(form, runner), rho)
        for form, score, rho in scored[:executed]
    ]
    return normalise_scores([*first, *((form, score - weights.empty, rho) for form, score, rho in scored[executed:])])


def choose_all(
    examples: Sequence[ParseExample], mixed: Callable[[float], Sequence[Sequence[Scored]]], runner: Runner,
    executed: int, generator: Sequence[float],
) -> tuple[ResultWeights, dict[str, float]]:  # fmt: skip
    """The weights of the best exact match on these questions, and that match without and with them.

    mixed: the forms of each question with a weight of the generator, one of `generator`; the other arguments are those
    of `choose_weights`.
    """
    chosen: list[tuple[ResultWeights, dict[str, float]]] = []
    for weight in generator:
        weights, exact = choose_weights(examples, mixed(weight), runner, executed)
        chosen.append((replace(weights, generator=weight), exact))
    return max(chosen, key=lambda choice: choice[1].get("weighed", 0.0))


def choose_weights(
    examples: Sequence[ParseExample], scored: Sequence[Sequence[Scored]], runner: Runner, executed: int,
    wider: float = 1.0,
) -> tuple[ResultWeights, dict[str, float]]:  # fmt: skip
    """The weights of the best exact match on these questions, and that match without and with them.

    scored: forms of each question, best first, unweighed.  wider: factor of the weights that are tried.  Questions of
    which no form is known, nor that there is none, are left out.
    """
    known = [(example, forms) for example, forms in zip(examples, scored, strict=True) if example.known and forms]
    cases = []
    for one, forms in known:
        gold = None if one.form is None else normalise(parse(one.form))
        rows = [
            (score, form is None, form is not None and is_empty(form, runner), _equal(form, gold))
            for form, score, _ in forms[:executed]
        ]
        cases.append(rows)
    if not cases:
        return ResultWeights(), {}
    ranks_none = any(none for rows in cases for _, none, _, _ in rows)

    def exact(weights: ResultWeights) -> float:
        right = 0
        for rows in cases:
            best = max(
                rows, key=lambda row: row[0] + (weights.no_form if row[1] else 0.0) - (weights.empty if row[2] else 0.0)
            )
            right += best[3]
        return right / len(cases)

    pairs = product(EMPTY, NO_FORM if ranks_none else (0.0,))
    tried = [ResultWeights(wider * empty, wider * no_form) for empty, no_form in pairs]
    best = max(tried, key=exact)
    return best, {"unweighed": round(exact(ResultWeights()), 4), "weighed": round(exact(best), 4)}


def save_weights(folder: Path, weights: ResultWeights, dev: dict[str, float]) -> None:
    """Writes results.json."""
    write_json(folder / FILE, {**asdict(weights), "dev_em": dev})


def load_weights(folder: Path) -> ResultWeights:
    """What `save_weights` wrote; no weights where it did not.  Raises ArtifactError when the file is damaged."""
    path = folder / FILE
    if not path.is_file():
        return ResultWeights()
    try:
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return ResultWeights(float(stored["empty"]), float(stored["no_form"]), float(stored.get("generator", 0.0)))
    except (ValueError, KeyError, TypeError) as fault:
        raise ArtifactError(f"{path} is damaged: {fault!r}; delete the parser's folder and run again") from None


def _equal(form: Form | None, gold: Form | None) -> bool:
    return form is None if gold is None else form is not None and normalise(form) == gold
