"""How many of the reference answers does a response name?  Knowledge match after Huang et al. 2024 (PAPERS §3).

    km    any reference answer occurs in the output
    rkm   the share that does
    ekm   all do

so that km >= rkm >= ekm.  (The paper prints the 0 and 1 of KM and eKM the wrong way round, and in its Table 4 the heads
of eKM and rKM.)  An answer occurs where its name or one of its aliases is a run of tokens of the output, both
normalised as in `metrics.normalise`: km is `contains`.  Answers of the same first name count as one; a name that two
answers bear names both.  A question without gold answers scores 0.
"""

from __future__ import annotations

from collections.abc import Callable

from kgqa_core.metrics.normalise import tokens
from kgqa_core.metrics.text import Gold


def knowledge_match(gold: Gold, output: str) -> dict[str, float]:
    """`{"km", "rkm", "ekm"}` of an output.

    >>> knowledge_match(Gold([("Paris", "City of Light"), ("Oslo",)]), "It is the City of Light.")
    {'km': 1.0, 'rkm': 0.5, 'ekm': 0.0}
    """
    size, named = gold.size, len(_named(gold, output))
    return {
        "km": float(named > 0),
        "rkm": named / size if size else 0.0,
        "ekm": float(0 < size == named),
    }


def km(gold: Gold, output: str) -> float:
    """1 when any reference answer occurs in the output.  Range 0 or 1, higher is better."""
    return knowledge_match(gold, output)["km"]


def rkm(gold: Gold, output: str) -> float:
    """Share of the reference answers that occur in the output.  Range [0, 1], higher is better."""
    return knowledge_match(gold, output)["rkm"]


def ekm(gold: Gold, output: str) -> float:
    """1 when all reference answers occur in the output.  Range 0 or 1, higher is better."""
    return knowledge_match(gold, output)["ekm"]


KNOWLEDGE_METRICS: dict[str, Callable[[Gold, str], float]] = {"km": km, "rkm": rkm, "ekm": ekm}
"""Metrics of a response to a question of the long tail, in the order of the tables."""


def _named(gold: Gold, output: str) -> set[int]:
    """Answers of which a name occurs in the output."""
    text = f" {' '.join(tokens(output))} "
    return {
        bearer for name, bearers in gold.groups.items() if name and f" {' '.join(name)} " in text for bearer in bearers
    }
