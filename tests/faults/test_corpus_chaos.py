"""A corpus of 1,000 questions from a server that misbehaves, with the stage killed 20 times.

The server keeps its own count.  What it says depends on a prompt alone, so every run must end with the same corpus.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.datasets.files.question import read_questions
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import FILE
from kgqa_core.llm.forecast import StagePlan
from kgqa_core.rewriting.forecast import pilot_corpus, plan_corpus
from kgqa_core.store.artifacts import content_digest
from kgqa_core.workspace import Workspace
from tests.support import writing_runs
from tests.support.chat_server import ServerProcess
from tests.support.writing_runs import finish, kill, make_atlas

pytestmark = pytest.mark.slow

SIZE = 1_000
KILLS = 20
CONCURRENCY = 16

FAULTS = {
    "throttled": 0.03, "retry-after": 0.05, "failing": 0.02, "hang-up": 0.01, "cut": 0.01, "garbage": 0.005,
    "slow": 0.001, "slow-seconds": 9, "empty": 0.03, "nonsense": 0.03,
}  # fmt: skip
"""Shares of requests; `empty` and `nonsense` are completions that are paid for and no use."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Graph, DKG and questions of Atlas, and the answers that the server knows."""
    folder = tmp_path_factory.mktemp("atlas")
    make_atlas(folder, SIZE + 400, 100)
    chosen = read_questions(folder / "questions")
    answers = {question.text: question.answer_names[0][0] for question in chosen if question.answer_names}
    (folder / "answers.json").write_text(json.dumps(answers), encoding="utf-8")
    return folder


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerProcess]:
    monkeypatch.setenv(writing_runs.ANSWERS, str(folder / "answers.json"))
    with started() as running:
        yield running


def started() -> ServerProcess:
    """A server with its faults."""
    rates = [word for name, share in FAULTS.items() for word in (f"--{name}", str(share))]
    module = "tests.support.writing_runs"
    return ServerProcess(
        "--reply", f"{module}:reply", "--tokens", f"{module}:tokens", "--latency", "0.02", "--seed", "5", *rates
    )  # fmt: skip


def start(folder: Path, at: Path, server: ServerProcess, size: int = SIZE, **limits: float) -> subprocess.Popen[str]:
    """The stage in a process of its own; results and cache are under `at`."""
    words = (folder, at / "out", at / "cache", server.base_url, size, CONCURRENCY)
    return writing_runs.start("corpus", words, **limits)


def worked(stats: dict[str, int]) -> int:
    """Replies that the server worked on."""
    return stats["answered"] + stats["lost"]


def tokens(stats: dict[str, int]) -> int:
    return stats["prompt_tokens"] + stats["completion_tokens"]


def forecast(folder: Path, cache: Path | None, server: ServerProcess, size: int = SIZE) -> list[StagePlan]:
    return plan_corpus(
        folder / "kg", folder / "dkg", folder / "questions", writing_runs.options(size),
        writing_runs.llm(server.base_url, CONCURRENCY), writing_runs.SEED, cache,
    )  # fmt: skip


def compare(
    plans: list[StagePlan], stats: dict[str, int], before: dict[str, int] | None, what: str
) -> tuple[float, float]:
    """How far a forecast's calls and tokens are from the real ones, by the server's count, as shares."""
    calls = worked(stats) - (worked(before) if before else 0)
    spent = tokens(stats) - (tokens(before) if before else 0)
    expected = sum(plan.calls for plan in plans), sum(plan.prompt_tokens + plan.completion_tokens for plan in plans)
    off = expected[0] / calls - 1, expected[1] / spent - 1
    print(
        f"{what}: forecast {expected[0]} calls, {expected[1]} tokens; real {calls} calls, {spent} tokens; "
        f"{off[0]:+.1%}, {off[1]:+.1%}"
    )
    return off


def test_killed_20_times_pays_no_prompt_twice_and_makes_the_same_corpus(
    folder: Path, tmp_path: Path, server: ServerProcess
) -> None:
    cold = forecast(folder, None, server)
    counts = json.loads(finish(start(folder, tmp_path / "undisturbed", server)))
    undisturbed = server.stats()
    kept = pl.read_parquet(tmp_path / "undisturbed/out/corpus.parquet")
    assert counts["asked"] == SIZE and 0.8 < counts["acceptance"] < 0.9
    assert kept["question"].n_unique() == SIZE
    assert counts["spent_attempts"] > 20, "the server wrote texts that are none"
    off, _ = compare(cold, undisturbed, None, "with an empty cache, texts assumed as long as the template's")
    assert abs(off) <= 0.1
    low, high = ([getattr(plan, end) for plan in cold] for end in ("low", "high"))
    least, most = (sum(each.prompt_tokens + each.completion_tokens for each in ends) for ends in (low, high))
    print(f"range of the tokens: {least} to {most}")
    assert least <= tokens(undisturbed) <= most, "the server tells twice as much as the template"

    print(
        "undisturbed, by the server:", {name: value for name, value in undisturbed.items() if name != "prompts"}, counts
    )
    draw = random.Random(11)
    with started() as again:
        killed = 0
        for number in range(KILLS):
            requests = None if number % 7 == 3 else draw.randint(0, 110)
            killed += kill(start(folder, tmp_path / "killed", again), again, requests, draw.uniform(0.0, 3.0))
        under_way = again.stats()
        last = json.loads(finish(start(folder, tmp_path / "killed", again)))
        disturbed = again.stats()
    print("killed, by the server:", {name: value for name, value in disturbed.items() if name != "prompts"})
    twice = sum(max(0, each["answered"] - 1) for each in disturbed["prompts"].values())
    twice_undisturbed = sum(max(0, each["answered"] - 1) for each in undisturbed["prompts"].values())
    print(
        f"killed {killed} times, {under_way['answered']} replies before the last run; replies delivered twice: {twice} "
        f"(at most {CONCURRENCY * killed} were under way at kills; {twice_undisturbed} in the undisturbed run)"
    )
    assert killed == KILLS, "every kill met a running stage"
    assert 500 < under_way["answered"] < undisturbed["answered"], "the kills were spread over the run"
    assert twice <= CONCURRENCY * killed
    assert disturbed["answered"] <= len(disturbed["prompts"]) + CONCURRENCY * killed
    assert set(disturbed["prompts"]) == set(undisturbed["prompts"])
    assert last == counts
    assert content_digest(tmp_path / "killed/out") == content_digest(tmp_path / "undisturbed/out")


@pytest.mark.parametrize("pilot", [50, 150])
def test_forecast_after_a_pilot_is_within_a_tenth_of_what_the_rest_takes(
    folder: Path, tmp_path: Path, server: ServerProcess, pilot: int
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    given = writing_runs.llm(server.base_url, CONCURRENCY)
    budget = Budget(given.budget, given.prices, cache / FILE, "corpus")
    parts = (folder / "kg", folder / "dkg", folder / "questions")
    workspace = Workspace(tmp_path, cache=cache, budget=budget)
    pilot_corpus(workspace, *parts, writing_runs.options(SIZE), given, writing_runs.SEED, pilot)
    piloted = server.stats()
    plans = forecast(folder, cache, server)
    assert all(plan.cached and plan.high is None and not plan.assumptions for plan in plans), "all is measured"
    finish(start(folder, tmp_path, server))
    whole = server.stats()
    off = compare(plans, whole, piloted, f"after a pilot of {pilot} questions")
    assert abs(off[0]) <= 0.1 and abs(off[1]) <= 0.1
    assert [(plan.calls, plan.prompt_tokens) for plan in forecast(folder, cache, server)] == [(0, 0), (0, 0)]


@pytest.mark.parametrize("limit", ["max_calls", "max_tokens"])
def test_budget_is_never_exceeded_over_kills_and_restarts(
    folder: Path, tmp_path: Path, server: ServerProcess, limit: str
) -> None:
    limits = {"max_calls": 900, "max_tokens": 60_000}
    draw = random.Random(13)
    for _ in range(6):
        kill(start(folder, tmp_path, server, **{limit: limits[limit]}), server, draw.randint(0, 110), 0.0)
    ends = [finish(start(folder, tmp_path, server, **{limit: limits[limit]})) for _ in range(2)]
    spent = server.stats()
    real = {"max_calls": spent["requests"], "max_tokens": tokens(spent)}[limit]
    print(f"{limit} {limits[limit]}: the server counted {real}; {ends[-1]}")
    assert all(end.startswith("BudgetReached") for end in ends)
    assert real <= limits[limit]
    assert real > limits[limit] / 2, "most of the budget was used"
