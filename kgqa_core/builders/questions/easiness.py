"""Which drafts are too easy: random triples of their topics name an answer, or many questions have the same answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from kgqa_core.builders.questions.draft import Draft
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions
from kgqa_core.logic.memory import MemoryGraph


class Easiness:
    """Refuses drafts that are too easy."""

    def __init__(self, graph: MemoryGraph, options: GeneratedQuestionsOptions) -> None:
        self.graph, self.options = graph, options
        self.max_per_answer = max(1, int(options.max_answer_share * options.size))
        self._uses: Counter[tuple[str, float]] = Counter()

    def refuses(self, draft: Draft) -> bool:
        """Whether a draft is too easy; one that is not is counted with its answers.  Yes and no are never too easy."""
        answers = _answers(draft)
        if self.options.max_answer_share < 1 and any(self._uses[answer] >= self.max_per_answer for answer in answers):
            return True
        if self.options.max_random_hit < 1 and draft.nodes:
            topics = list(self.graph.know(draft.topics).values())
            if self.random_hit(topics, draft.nodes) > self.options.max_random_hit:
                return True
        self._uses.update(answers)
        return False

    def random_hit(self, topics: Sequence[int], answers: Sequence[int]) -> float:
        """Probability that random triples of the topics, `random_facts` of them without replacement, name an answer.

        Hypergeometric.  A triple names an answer where one end is a topic and the other an answer; a triple between two
        topics counts once, as the retriever `random` draws it.
        """
        graph = self.graph
        indices = graph.touching(np.array(topics, dtype=np.int64))
        if not len(indices):
            return 0.0
        head, tail, answer, topic = graph.head[indices], graph.tail[indices], np.asarray(answers), np.asarray(topics)
        named = np.isin(head, topic) & np.isin(tail, answer) | np.isin(tail, topic) & np.isin(head, answer)
        total, good = len(indices), int(named.sum())
        missed = 1.0
        for drawn in range(min(self.options.random_facts, total)):
            missed *= max(0, total - good - drawn) / (total - drawn)
        return 1.0 - missed


def _answers(draft: Draft) -> list[tuple[str, float]]:
    """What a draft is answered with: its nodes or a number; nothing for yes and no."""
    if isinstance(draft.value, bool):
        return []
    return [("number", draft.value)] if draft.value is not None else [("node", node) for node in draft.nodes]
