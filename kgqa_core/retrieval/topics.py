"""The topics alone: a retriever of no facts, for answerers that explore the graph themselves.

Its name says where such an answerer starts: `topics` from the gold topics, `topics@linked` from the linked ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from kgqa_core.config import TOPICS
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.retrieval.api import Retriever, RetrieverSpec
from kgqa_core.types import Question, Retrieved


class Topics(Retriever):
    """Retrieves no facts and no entities."""

    name = TOPICS

    def retrieve(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Retrieved]:
        """An empty `Retrieved` per question."""
        return [Retrieved(question.id) for question in questions]


SPEC = RetrieverSpec(name=TOPICS, label="Topics alone", place=10, open=lambda inputs: Topics(), divisible=True)
