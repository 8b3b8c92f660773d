"""Which generated questions the search reads as they are meant: the rest are no questions that anybody would ask."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kgqa_core.builders.questions.draft import Draft
from kgqa_core.builders.questions.wording import WordedQuestion
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import elements, is_table
from kgqa_core.logic.lookup import index
from kgqa_core.monitor import Monitor
from kgqa_core.search.candidates import Candidate
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic.by_labels.model import load
from kgqa_core.symbolic.by_labels.parser import BLOCK, LabelParser
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.types import Question

HOPS = 3
"""Longest path that is searched for, as long as the grammar makes them."""

Worded = tuple[Draft, WordedQuestion]


class ReadBack:
    """Reads questions over one graph with the packaged head start, their entities given.

    first: of so many candidates one has to give the answer.  A phrase is read once, whatever names and numbers it has.
    """

    def __init__(self, store: KgStore, first: int) -> None:
        index(store)
        model = load(None)
        self.graph, self.first = LabelGraph(store), first
        self.parser = LabelParser(self.graph, LabelScorer(model.network, model.phrases), HOPS, model.words)
        self._read: dict[str, bool] = {}

    def reads(self, worded: Sequence[Worded], monitor: Monitor) -> list[bool]:
        """Whether the phrase of each question is read as it is meant."""
        new = list({phrase(one): (draft, one) for draft, one in worded if phrase(one) not in self._read}.values())
        for start in range(0, len(new), BLOCK):
            monitor.progress(start, len(new), "questions read back")
            block = new[start : start + BLOCK]
            ranked = self.parser.parse(list(self._questions(block)))
            for (draft, one), own in zip(block, ranked, strict=True):
                self._read[phrase(one)] = any(answers(each, draft) for each in own.candidates[: self.first])
        return [self._read[phrase(one)] for _, one in worded]

    def _questions(self, worded: Sequence[Worded]) -> Iterator[Question]:
        for number, (draft, one) in enumerate(worded):
            keys = elements(draft.form).entities
            ids = self.graph.memory.know(keys)
            topics = tuple(ids[key] for key in keys)
            yield Question(str(number), one.text, topic_keys=one.mentions, topic_entities=topics)


def phrase(question: WordedQuestion) -> str:
    """A question without its names and numbers."""
    text = question.text
    for name in sorted(question.mentions, key=len, reverse=True):
        text = text.replace(name, "*")
    return re.sub(r"\d[\d.,]*", "#", text).casefold()


def answers(candidate: Candidate, draft: Draft) -> bool:
    """Whether a candidate finds what a draft does; of a table, whether it is the same form but for its shape."""
    if is_table(draft.form):
        return bool(candidate.table) and elements(candidate.form) == elements(draft.form)
    if candidate.nodes is None:
        return (type(candidate.value) is bool) == (type(draft.value) is bool) and candidate.value == draft.value
    return draft.value is None and tuple(candidate.nodes.tolist()) == draft.nodes
