"""The relation ranker `llm`: a language model is asked for the best relations (Huang et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kgqa_core.llm.cache import ResponseCache
from kgqa_core.llm.paid import Outcome, ask, insist
from kgqa_core.llm.protocol import GenerationParams, LanguageModel
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.prompts import chat
from kgqa_core.retrieval.relation_ranking.parse_output import read_ranking
from kgqa_core.retrieval.relation_ranking.ranker import DECIMALS, Ask, Place

SYSTEM: Final = (
    "You are a helpful assistant. People will provide you with a question, an entity and several relations, and your "
    "task is to rank the relation based on the relevance for answering the question. Only response top-{most} "
    "relations without any other things, one for each line."
)
"""The paper's system prompt, which says `top-5`."""

USER: Final = "Question: <<<{question}>>>\nEntity: <<<{entity}>>>\nRelations: <<<{relations}>>>"
"""The paper's user message; `<<<` and `>>>` are its own."""

SHOWN = 20
"""Unknown lines that are kept as examples."""


def ranking_prompt(asked: Ask, most: int) -> str:
    """The chat that asks for the best relations of an entity.

    Line ends and outer blanks are made single blanks, so that only the prompt's own lines are lines.
    """
    values = {"{question}": asked.question, "{entity}": asked.entity, "{relations}": ", ".join(asked.relations)}
    before, *rest = USER.split("{")
    user = before
    for part in rest:
        name, _, after = part.partition("}")
        user += " ".join(values["{" + name + "}"].split()) + after
    return chat(SYSTEM.replace("{most}", str(most)), user)


class LlmRanker:
    """Asks a language model about each entity that has more relations than are kept.

    The score of the relation that is named first is 1, of the second 1/2, and so on.
    cache: keeps what was answered.  unknown: the first lines that name no candidate.
    counts: asked (prompts), unknown_lines, named (relations), silent (prompts without a known relation), failed.
    """

    name = "llm"

    def __init__(self, model: LanguageModel, max_new_tokens: int, cache: ResponseCache | None = None) -> None:
        self.model, self.cache = model, cache
        self.params = GenerationParams(max_new_tokens=max_new_tokens)
        self.counts = dict.fromkeys(("asked", "unknown_lines", "named", "silent", "failed"), 0)
        self.unknown: list[str] = []

    def rank(self, asked: Sequence[Ask], most: int, monitor: Monitor = QUIET) -> list[list[Place]]:
        """At most `most` places of each; those that the model did not name are left out.

        Raises BudgetReached after what was paid for is kept, EndpointError, ModelError.
        """
        places = [number for number, one in enumerate(asked) if len(one.relations) > most]
        outcomes = self._ask([ranking_prompt(asked[number], most) for number in places], monitor)
        # An entity that has no more relations than are kept keeps all of them, in their order.
        found = [[_place(place, place) for place in range(min(most, len(one.relations)))] for one in asked]
        for number, outcome in zip(places, outcomes, strict=True):
            found[number] = self._read(asked[number], outcome, most)
        return found

    def _read(self, asked: Ask, outcome: Outcome, most: int) -> list[Place]:
        self.counts["asked"] += 1
        completion = outcome.completion
        if completion is None or completion.finish == "error":
            self.counts["failed"] += 1
            return []
        said = read_ranking(completion.text, asked.relations, most)
        self.counts["unknown_lines"] += len(said.unknown)
        self.counts["named"] += len(said.places)
        self.counts["silent"] += not said.places
        self.unknown += said.unknown[: SHOWN - len(self.unknown)]
        return [_place(place, rank) for rank, place in enumerate(said.places)]

    def _ask(self, prompts: Sequence[str], monitor: Monitor) -> list[Outcome]:
        """`ask`; prompts on which the endpoint failed are asked again in further passes."""
        what = "rankings"
        return insist(
            lambda: ask(self.model, prompts, self.params, cache=self.cache, monitor=monitor, what=what),
            self.model, what,
        )  # fmt: skip


def _place(place: int, rank: int) -> Place:
    return place, round(1 / (rank + 1), DECIMALS)
