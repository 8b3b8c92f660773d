"""The ranker `llm`: the paper's prompt, answers that are read, requests that are spared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kgqa_core.config import BudgetOptions, LlmOptions
from kgqa_core.errors import BudgetReached
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.protocol import Completion, GenerationParams, OnResult
from kgqa_core.papers.ltgen.relation_ranking.llm import LlmRanker, ranking_prompt
from kgqa_core.papers.ltgen.relation_ranking.ranker import RankingQuery
from kgqa_core.prompts import messages
from tests.support.chat_server import ChatServer, Fault

RELATIONS = ("developer", "genre", "owner", "user", "license", "logo", "title")
ASK = RankingQuery("Who developed Skype?", "Skype", RELATIONS)


class Says:
    """A model that gives the same answer to every prompt."""

    name, revision, batch_sensitive = "openai:says", "1", False

    def __init__(self, text: str, finish: str = "stop") -> None:
        self.text, self.finish, self.prompts = text, finish, list[str]()

    def generate(
        self,
        prompts: Sequence[str],
        params: GenerationParams,
        on_result: OnResult | None = None,
    ) -> list[Completion]:
        self.prompts += prompts
        found = [Completion(self.text, self.finish) for _ in prompts]  # type: ignore[arg-type]
        for place, completion in enumerate(found):
            assert on_result is not None
            on_result(place, completion)
        return found


def test_the_prompt_is_the_paper_s_to_the_letter() -> None:
    system, user = messages(ranking_prompt(ASK, 5))
    assert system == (
        "You are a helpful assistant. People will provide you with a question, an entity and several relations, and "
        "your task is to rank the relation based on the relevance for answering the question. Only response top-5 "
        "relations without any other things, one for each line."
    )
    assert user == (
        "Question: <<<Who developed Skype?>>>\nEntity: <<<Skype>>>\n"
        "Relations: <<<developer, genre, owner, user, license, logo, title>>>"
    )


def test_the_words_of_a_question_are_never_a_placeholder_of_the_prompt() -> None:
    _, user = messages(ranking_prompt(RankingQuery("who is\n{entity}  {relations}?", "{question}", RELATIONS), 5))
    assert user.startswith("Question: <<<who is {entity} {relations}?>>>\nEntity: <<<{question}>>>\nRelations: <<<dev")


def test_named_relations_score_by_their_rank_and_inventions_are_counted() -> None:
    ranker = LlmRanker(Says("1. owner\n2. maker\n3. Developer"), 64)
    assert ranker.rank([ASK], 5) == [[(2, 1.0), (0, 0.5)]]
    assert ranker.counts == {"asked": 1, "unknown_lines": 1, "named": 2, "silent": 0, "failed": 0}
    assert ranker.unknown == ["2. maker"]


def test_an_entity_with_few_relations_costs_no_request() -> None:
    model = Says("owner")
    ranker = LlmRanker(model, 64)
    few = RankingQuery("Who?", "Skype", RELATIONS[:3])
    found = ranker.rank([few, ASK, RankingQuery("Who?", "Skype", ())], 5)
    assert [[place for place, _ in own] for own in found] == [[0, 1, 2], [2], []]
    assert len(model.prompts) == 1 and ranker.counts["asked"] == 1


def test_an_answer_without_a_candidate_keeps_none() -> None:
    ranker = LlmRanker(Says("I cannot help with that."), 64)
    assert ranker.rank([ASK], 5) == [[]]
    assert (ranker.counts["silent"], ranker.counts["unknown_lines"]) == (1, 1)


def test_a_request_that_fails_is_repeated_and_then_counted() -> None:
    model = Says("", "error")
    ranker = LlmRanker(model, 64)
    assert ranker.rank([ASK], 5) == [[]]
    assert ranker.counts["failed"] == 1 and len(model.prompts) == 3


def test_completions_are_cached_and_not_billed_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    asks = [RankingQuery(f"Who developed program {number}?", "it", RELATIONS) for number in range(6)]
    with ChatServer(lambda prompt: "developer\nowner") as server:
        server.fail("program 3", Fault(status=500), Fault(garbage=True))
        model = load_model("openai:m", LlmOptions(base_url=server.base_url, concurrency=2))
        model.first_wait = 0.01  # type: ignore[attr-defined]
        first = LlmRanker(model, 64, open_cache(tmp_path)).rank(asks, 5)
        sent = len(server.prompts)
        again = LlmRanker(model, 64, open_cache(tmp_path)).rank(asks, 5)
        assert again == first == [[(0, 1.0), (2, 0.5)]] * 6
        assert len(server.prompts) == sent == 8
        roles = [[message["role"] for message in body["messages"]] for body in server.bodies]
        assert roles == [["system", "user"]] * 8


def test_a_budget_stops_the_ranking_and_keeps_what_was_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    asks = [RankingQuery(f"Who developed program {number}?", "it", RELATIONS) for number in range(6)]
    with ChatServer(lambda prompt: "developer") as server:
        llm = LlmOptions(base_url=server.base_url, concurrency=1)
        budget = Budget(BudgetOptions(max_calls=4))
        with pytest.raises(BudgetReached):
            LlmRanker(load_model("openai:m", llm, budget=budget), 64, open_cache(tmp_path)).rank(asks, 5)
        assert len(server.prompts) == 4
        assert LlmRanker(load_model("openai:m", llm), 64, open_cache(tmp_path)).rank(asks, 5) == [[(0, 1.0)]] * 6
        assert len(server.prompts) == 6
