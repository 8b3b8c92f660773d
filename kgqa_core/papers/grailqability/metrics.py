"""Metrics of logical forms and answers where there may be none, as GrailQAbility scores them (Patidar et al. 2023).

Every metric is in [0, 1], higher is better.  Answers are sets of texts: keys of entities, literals, a count as `"5"`.
The gold of a question that the graph cannot answer is the empty set, of a count `"0"`; a gold form is None where the
graph has none (NK), and a predicted form is None or empty where the system finds none.

    EM     the forms are the same graph, or there is none and none is predicted
    F1(R)  answers against those of the modified graph
    F1(L)  answers against those or the ideal graph's, the better of precision and of recall *each for itself*

By the rules of the published script EM = 1 forces F1 = 1, whatever the answers are.  By those of the paper's text F1
is of the answers alone, and F1(L) is the larger of F1 against the modified and F1 against the ideal answers.  By both,
two empty sets agree, and a question without prediction scores 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

SameForm = Callable[[str, str], bool]
"""Whether two forms, as text, are isomorphic; False for what cannot be read."""

Rules = Literal["script", "paper"]
"""Whose definitions of F1 count: those of the published evaluation script, or of the paper's text."""

NO_FORM = frozenset({"", "NK", "NLF", "no logical form"})
"""How systems write that there is no form."""


@dataclass(frozen=True, slots=True)
class GoldForm:
    """What a question is scored against.  form: None for NK.  ideal: answers of the ideal graph, never empty."""

    form: str | None
    answers: frozenset[str]
    ideal: frozenset[str]


@dataclass(frozen=True, slots=True)
class Predicted:
    """A system's prediction.  form: None for NK.  formless: the system has no forms, and so no NK either."""

    form: str | None = None
    answers: frozenset[str] = frozenset()
    formless: bool = False


def exact_match(gold: GoldForm, predicted: Predicted | None, same: SameForm) -> float:
    """1 when the predicted form is isomorphic to the gold one, or both are none (Gu et al. 2021)."""
    if predicted is None or predicted.formless:
        return 0.0
    none = predicted.form is None or predicted.form.strip() in NO_FORM
    if gold.form is None or none:
        return float(gold.form is None and none)
    return float(predicted.form is not None and same(predicted.form, gold.form))


def f1_regular(gold: GoldForm, predicted: Predicted | None, same: SameForm, rules: Rules = "script") -> float:
    """F1(R): answers against the modified graph's; two empty sets agree (Patidar et al. 2023)."""
    if predicted is None:
        return 0.0
    if rules == "script" and exact_match(gold, predicted, same):
        return 1.0
    return _answers_f1(gold.answers, predicted.answers)


def f1_lenient(gold: GoldForm, predicted: Predicted | None, same: SameForm, rules: Rules = "script") -> float:
    """F1(L): answers against the better of the modified and the ideal graph's (Patidar et al. 2023).

    The script takes the better precision and the better recall, each for itself.  An empty prediction agrees with an
    empty modified gold only.
    """
    if predicted is None:
        return 0.0
    if rules == "paper":
        return max(_answers_f1(answers, predicted.answers) for answers in (gold.answers, gold.ideal))
    if exact_match(gold, predicted, same) or (not gold.answers and not predicted.answers):
        return 1.0
    if not predicted.answers:
        return 0.0
    common, ideal = len(gold.answers & predicted.answers), len(gold.ideal & predicted.answers)
    precision = max(common, ideal) / len(predicted.answers)
    recall = max(common / max(1, len(gold.answers)), ideal / max(1, len(gold.ideal)))
    return _f1(precision, recall)


def scores(gold: GoldForm, predicted: Predicted | None, same: SameForm, rules: Rules = "script") -> Mapping[str, float]:
    """Every metric of one question, in the order of the paper's Table 3: F1(L), F1(R), EM."""
    return {
        "F1(L)": f1_lenient(gold, predicted, same, rules),
        "F1(R)": f1_regular(gold, predicted, same, rules),
        "EM": exact_match(gold, predicted, same),
    }


METRICS = ("F1(L)", "F1(R)", "EM")
"""Names of the metrics, in the order of the paper's Table 3."""


def _answers_f1(gold: frozenset[str], predicted: frozenset[str]) -> float:
    """F1 of two sets; 1 where both are empty."""
    if not gold and not predicted:
        return 1.0
    common = len(gold & predicted)
    return _f1(common / len(predicted), common / len(gold)) if common else 0.0


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
