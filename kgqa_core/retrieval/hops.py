"""How many hops a retriever needs: as many as the training questions' relation paths, or as far as their answers are.

Annotated relation paths count where the graph has their relations; else the distance from the topics to the nearest
answer.  Many unannotated questions are represented by a sample.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kgqa_core.errors import ConfigError
from kgqa_core.types import Question

if TYPE_CHECKING:
    from kgqa_core.dkg.csr import Dkg

LEAST_HOPS = 2
"""Hops of a retriever at least, unless set: M of Sen et al. 2023."""
MOST_HOPS = 4
"""Hops of a retriever at most."""
COVERED = 0.98
"""Share of the training questions whose paths fit into the chosen number of hops, where `MOST_HOPS` allows it."""
SAMPLE = 200
"""Unannotated questions whose distance is measured, at most."""


def needed_hops(questions: Sequence[Question], dkg: Dkg) -> list[int]:
    """Hops that training questions need, ascending: of each annotated one, and of a sample of the others.

    A question with several paths needs the longest.  Those without a topic, or farther from their answers than
    `MOST_HOPS`, are left out.
    """
    from kgqa_core.dkg.paths import distance, relation_ids  # numba takes 0.4 s to import

    training = [question for question in questions if question.split == "train" and question.topic_entities]
    lengths: list[int] = []
    others: list[Question] = []
    for question in sorted(training, key=lambda each: each.id):
        paths = [keys for keys in question.relation_paths if relation_ids(dkg, keys) is not None]
        if paths:
            lengths.append(max(len(keys) for keys in paths))
        elif question.answers:
            others.append(question)
    step = max(1, math.ceil(len(others) / SAMPLE))
    for question in others[::step]:
        far = distance(dkg, question.topic_entities, question.answers, hops=MOST_HOPS)
        lengths += [far] if far is not None else []
    return sorted(lengths)


def choose_hops(lengths: Sequence[int]) -> int:
    """The fewest hops that cover `COVERED` of the lengths (of `needed_hops`), within `LEAST_HOPS` and `MOST_HOPS`."""
    if not lengths:
        return LEAST_HOPS
    covering = sorted(lengths)[math.ceil(COVERED * len(lengths)) - 1]
    return min(max(covering, LEAST_HOPS), MOST_HOPS)


def check_hops(lengths: Sequence[int], limits: Iterable[tuple[str, int | None]]) -> list[str]:
    """A warning for each limit that some training questions exceed; raises ConfigError when all of them do.

    lengths: hops that training questions need.  limits: configuration keys with their values; None is not set.
    """
    warnings = []
    for key, limit in limits:
        over = sum(length > limit for length in lengths) if limit is not None else 0
        if over and over == len(lengths):
            raise ConfigError(
                f"{key} is {limit}, but the training questions need {min(lengths)} to {max(lengths)} hops, so that it "
                f"has nothing to learn from; set {key}={min(max(lengths), MOST_HOPS)}, or leave it out: the number "
                "then comes from the training questions"
            )
        if over:
            warnings.append(f"{over} of {len(lengths)} training questions need more hops than {key}={limit}")
    return warnings
