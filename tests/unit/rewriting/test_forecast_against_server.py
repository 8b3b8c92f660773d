"""Forecasts against the count of a loopback server, which tells stories of its own and is often no use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from kgqa_core.config import BudgetOptions, CorpusOptions, LlmOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import BudgetReached
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import FILE
from kgqa_core.llm.forecast import StagePlan
from kgqa_core.prompts import REWRITE
from kgqa_core.rewriting.corpus import generate
from kgqa_core.rewriting.forecast import pilot_corpus, plan_corpus
from kgqa_core.rewriting.template import paragraph, sentences
from kgqa_core.workspace import Workspace
from tests.support import writing_runs
from tests.support.chat_server import ChatServer, Rates
from tests.support.writing_runs import make_atlas

SIZE, PILOT, SEED = 240, 60, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Graph, DKG and questions of Atlas."""
    return make_atlas(tmp_path_factory.mktemp("atlas"), SIZE + 100, 0)


class Teller:
    """Replies of a teacher and QA model.  long: tells every triple in a long-winded sentence of its own; otherwise as
    many words as the template takes.  garbage: share of texts, in 256ths, that are none at a first attempt."""

    def __init__(self, folder: Path, *, long: bool) -> None:
        self.long = long
        self.answers = {
            each.text: each.answer_names[0][0] for each in read_questions(folder / "questions") if each.answer_names
        }

    def __call__(self, prompt: str) -> str:
        before, after = REWRITE.split("{triples}")
        if not prompt.startswith(before):
            question = prompt.rpartition(" Question: ")[2].removesuffix(" Answer:")
            return "nobody knows" if crc32(question.encode()) % 8 == 0 else f"It is {self.answers[question]}."
        if self.long:
            return writing_runs.reply(prompt)
        text = prompt[len(before) : -len(after)].removeprefix("(").removesuffix(")")
        parts = [tuple(each.split(", ", 2)) for each in text.split(") (")]
        return paragraph(sentences(parts, variant=1))  # type: ignore[arg-type]


@pytest.fixture(params=[pytest.param("long", marks=pytest.mark.slow), "like the template"])
def server(folder: Path, request: pytest.FixtureRequest) -> Iterator[ChatServer]:
    rates = Rates(empty=0.03, nonsense=0.03)
    model = Teller(folder, long=request.param == "long")
    with ChatServer(model, rates=rates, seed=5, keep=False, tokens=writing_runs.tokens) as running:
        yield running


class Work:
    """One corpus and its forecasts."""

    def __init__(self, folder: Path, at: Path, server: ChatServer, *, counted: bool = True, **limits: Any) -> None:
        self.folder, self.at, self.server = folder, at, server
        self.llm = LlmOptions(
            base_url=server.base_url, attempts=3, budget=BudgetOptions(**limits),
            tokenizers={writing_runs.MODEL: "builtin"} if counted else {},
        )  # fmt: skip
        self.options = CorpusOptions(
            teacher=writing_runs.MODEL, qa_model=writing_runs.MODEL, size=SIZE, max_triples=12, max_new_tokens=400
        )
        self.cache = at / "cache"
        self.cache.mkdir(parents=True)

    @property
    def parts(self) -> tuple[Path, Path, Path]:
        return self.folder / "kg", self.folder / "dkg", self.folder / "questions"

    def budget(self) -> Budget:
        return Budget(self.llm.budget, {}, self.cache / FILE, "corpus")

    def plan(self) -> list[StagePlan]:
        return plan_corpus(*self.parts, self.options, self.llm, SEED, self.cache)

    def pilot(self, number: int = PILOT) -> None:
        workspace = Workspace(self.at, cache=self.cache, budget=self.budget())
        pilot_corpus(workspace, *self.parts, self.options, self.llm, SEED, number)

    def make(self) -> dict[str, Any]:
        out = self.at / "out"
        out.mkdir()
        kg, dkg, questions = self.parts
        return generate(
            Workspace(out, cache=self.cache, budget=self.budget()),
            kg=kg,
            dkg=dkg,
            questions=questions,
            options=self.options,
            llm=self.llm,
            seed=SEED,
        )

    def billed(self) -> tuple[int, int]:
        """Calls and tokens, as the server counts them."""
        counted = self.server.stats()
        return counted["answered"], counted["prompt_tokens"] + counted["completion_tokens"]


def sums(plans: list[StagePlan], end: str = "") -> tuple[int, int]:
    """Calls and tokens of all plans, or of the low or high end of their ranges."""
    parts: list[Any] = [getattr(plan, end) or plan for plan in plans] if end else list(plans)
    return sum(each.calls for each in parts), sum(each.prompt_tokens + each.completion_tokens for each in parts)


def off(forecast: tuple[int, int], real: tuple[int, int]) -> tuple[float, float]:
    return forecast[0] / real[0] - 1, forecast[1] / real[1] - 1


@pytest.mark.parametrize("counted", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["tokenizer", "estimate"])
def test_a_pilot_brings_calls_and_tokens_within_a_tenth_and_costs_nothing_twice(
    folder: Path, tmp_path: Path, server: ChatServer, counted: bool
) -> None:
    work = Work(folder, tmp_path, server, counted=counted)
    cold = work.plan()
    assert work.billed() == (0, 0), "a forecast without a pilot asks nobody"
    work.pilot()
    piloted = work.billed()
    warm = work.plan()
    work.pilot()
    assert work.billed() == piloted, "the same pilot again is free"
    counts = work.make()
    whole = work.billed()
    assert whole[0] == sum(1 for _ in server.stats()["prompts"]), "the run took over what the pilot had paid for"
    rest = whole[0] - piloted[0], whole[1] - piloted[1]
    errors = {"cold": off(sums(cold), whole), "warm": off(sums(warm), rest)}
    print(json.dumps(errors), sums(cold, "low"), sums(cold, "high"), whole, counts["spent_attempts"])
    assert all(plan.low is None and plan.high is None and plan.cached for plan in warm), "all is measured"
    assert abs(errors["warm"][0]) <= 0.1 and abs(errors["warm"][1]) <= 0.1
    low, high = sums(cold, "low"), sums(cold, "high")
    assert low[0] <= whole[0] <= high[0] and low[1] <= whole[1] <= high[1]
    assert abs(errors["cold"][0]) <= 0.1, "calls need no pilot"
    if counted and not server.reply.long:  # type: ignore[attr-defined]
        assert abs(errors["cold"][1]) <= 0.1, "nor do tokens, where texts are as long as is stated"
    assert sums(work.plan()) == (0, 0)


@pytest.mark.parametrize("server", ["long"], indirect=True)
def test_a_pilot_stays_within_the_budget_and_is_counted_by_it(folder: Path, tmp_path: Path, server: ChatServer) -> None:
    work = Work(folder, tmp_path, server, max_calls=30)
    with pytest.raises(BudgetReached):
        work.pilot()
    assert server.stats()["requests"] <= 30
    assert work.budget().spent().calls == server.stats()["requests"]
