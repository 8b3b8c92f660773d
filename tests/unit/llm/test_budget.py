"""Limits are never exceeded: by the ledger, by several processes, by restarts, and by the server's own count."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from kgqa_core.config import BudgetOptions, LlmOptions, Price
from kgqa_core.errors import BudgetReached, EndpointError, KgqaError, ModelError
from kgqa_core.llm.budget import Budget, Spent
from kgqa_core.llm.cache import FILE, open_cache
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.paid import PromptBatch, generate_cached
from kgqa_core.llm.protocol import Completion, GenerationParams
from tests.support.chat_server import ROOT, ChatServer, Fault, Rates
from tests.support.device import DEVICE

MODEL = "openai:stub"
PRICES = {MODEL: Price(prompt=2.0, completion=10.0)}
PARAMS = GenerationParams(max_new_tokens=8)

SPENDER = """
import sys
from pathlib import Path
from kgqa_core.config import BudgetOptions
from kgqa_core.errors import BudgetReached
from kgqa_core.llm.budget import Budget
budget = Budget(BudgetOptions(max_calls=50), {}, Path(sys.argv[1]), "stage")
made = 0
try:
    while True:
        budget.settle(budget.reserve("openai:stub", 10, 5), 3, 1)
        made += 1
except BudgetReached:
    print(made)
"""


def limited(**limits: float) -> BudgetOptions:
    return BudgetOptions(**limits)  # type: ignore[arg-type]


def model(server: ChatServer, budget: Budget, **given: object) -> OpenAIModel:
    options: dict[str, object] = {"timeout_seconds": 0.3, "retries": 3, "concurrency": 6} | given
    llm = LlmOptions.model_validate({"base_url": server.base_url, **options})
    return OpenAIModel("stub", llm, budget=budget, first_wait=0.005)


@pytest.mark.parametrize(
    ("limits", "room"),
    [
        ({"max_calls": 3}, 3),
        ({"max_calls": 0}, 0),
        ({"max_tokens": 399}, 3),
        ({"max_cost": 0.0012}, 2),  # 50 prompt tokens and 50 of output cost 0.0006 at most
        ({"max_cost": 0.001199}, 1),
        ({"max_calls": 9, "max_tokens": 200}, 2),
    ],
)
def test_each_limit_stops_the_request_that_would_exceed_it(limits: dict[str, float], room: int) -> None:
    budget = Budget(limited(**limits), PRICES)
    for _ in range(room):
        budget.reserve(MODEL, 50, 50)
    with pytest.raises(BudgetReached):
        budget.reserve(MODEL, 50, 50)
    assert budget.spent().calls == room


def test_the_message_says_what_is_spent_and_how_to_go_on() -> None:
    budget = Budget(limited(max_tokens=150), PRICES)
    budget.reserve(MODEL, 60, 40)
    with pytest.raises(BudgetReached) as caught:
        budget.reserve(MODEL, 60, 40)
    assert "100 of 150 tokens" in str(caught.value) and "raise llm.budget.max_tokens" in str(caught.value)
    assert isinstance(caught.value, KgqaError) and caught.value.exit_code == 1
    again = pickle.loads(pickle.dumps(BudgetReached("max_calls", "3 of 3 calls", "1", 3, 4)))  # noqa: S301 - our own
    assert "3 answers are there and kept, 4 are left" in str(again) and again.left == 4


def test_what_a_request_did_not_need_is_given_back() -> None:
    budget = Budget(limited(max_tokens=150, max_cost=1), PRICES)
    budget.settle(budget.reserve(MODEL, 60, 40), 10, 5)
    assert budget.spent() == Spent(1, 15, pytest.approx(70e-6))
    budget.settle(budget.reserve(MODEL, 60, 40), paid=False)
    assert budget.spent() == Spent(2, 15, pytest.approx(70e-6))
    reservation = budget.reserve(MODEL, 60, 40)
    assert budget.spent().tokens == 115
    budget.settle(reservation, 1, 1)
    budget.settle(reservation, 1, 1)
    assert budget.spent().tokens == 17


def test_a_price_is_needed_only_where_money_is_limited() -> None:
    Budget(limited(max_calls=1), {}).reserve("openai:other", 1, 1)
    with pytest.raises(ModelError, match=r"'openai:other' has no price; put it into llm\.prices"):
        Budget(limited(max_cost=1), PRICES).reserve("openai:other", 1, 1)


def test_tiny_prices_add_up_and_are_rounded_up() -> None:
    budget = Budget(limited(max_cost=1e-6), {MODEL: Price(prompt=0.0375)})
    for _ in range(10):
        budget.reserve(MODEL, 2, 0)  # 75 nanos each
    assert budget.spent().cost == pytest.approx(750e-9)
    for _ in range(3):
        budget.reserve(MODEL, 2, 0)
    with pytest.raises(BudgetReached, match="max_cost"):
        budget.reserve(MODEL, 2, 0)


def test_what_was_spent_and_what_nobody_settled_counts_after_a_restart(tmp_path: Path) -> None:
    ledger = tmp_path / FILE
    first = Budget(limited(max_calls=3), PRICES, ledger, "stage")
    first.settle(first.reserve(MODEL, 60, 40), 10, 5)
    first.reserve(MODEL, 60, 40)
    first.flush()
    again = Budget(limited(max_calls=3), PRICES, ledger, "stage")
    assert again.spent() == Spent(2, 115, pytest.approx(70e-6 + 520e-6))
    again.reserve(MODEL, 1, 1)
    with pytest.raises(BudgetReached):
        again.reserve(MODEL, 1, 1)


def test_accounts_that_are_opened_share_the_limits_and_others_do_not_count(tmp_path: Path) -> None:
    ledger = tmp_path / FILE
    for account, calls in (("corpus", 2), ("foreign", 5)):
        earlier = Budget(limited(), PRICES, ledger, account)
        for _ in range(calls):
            earlier.reserve(MODEL, 1, 1)
    run = Budget(limited(max_calls=4), PRICES, ledger, "run")
    assert run.spent().calls == 0
    corpus = run.open("corpus")
    assert run.spent().calls == corpus.spent().calls == 2
    corpus.reserve(MODEL, 1, 1)
    answers = run.open("answers")
    answers.reserve(MODEL, 1, 1)
    for budget in (run, corpus, answers):
        with pytest.raises(BudgetReached):
            budget.reserve(MODEL, 1, 1)
    assert Budget(limited(), PRICES, ledger, "corpus").spent().calls == 3


def test_two_processes_on_one_ledger_spend_the_limit_together(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SPENDER, str(tmp_path / FILE)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    made = [int(process.communicate(timeout=120)[0]) for process in processes]
    assert sum(made) == 50


@pytest.mark.parametrize("seed", range(20))
def test_random_bookings_never_exceed_a_limit(seed: int) -> None:
    random = Random(seed)
    limits = BudgetOptions(
        max_calls=random.choice([None, random.randrange(60)]),
        max_tokens=random.choice([None, random.randrange(4000)]),
        max_cost=random.choice([None, random.random() * 0.02]),
    )
    budget = Budget(limits, PRICES)
    calls = tokens = 0
    cost = 0.0
    open_ones = []
    for _ in range(120):
        if open_ones and random.random() < 0.5:
            reservation, prompt, new = open_ones.pop(random.randrange(len(open_ones)))
            used, written = random.randint(0, prompt), random.randint(0, new)
            if random.random() < 0.8:  # else killed: the server may have worked on all of it
                budget.settle(reservation, used, written)
            else:
                used, written = prompt, new
            tokens += used + written
            cost += (used * 2.0 + written * 10.0) / 1e6
        else:
            prompt, new = random.randint(1, 200), random.randint(1, 60)
            try:
                open_ones.append((budget.reserve(MODEL, prompt, new), prompt, new))
                calls += 1
            except BudgetReached:
                continue
        spent = budget.spent()
        assert spent.calls == calls and spent.tokens >= tokens and spent.cost >= cost - 1e-9
        assert limits.max_calls is None or calls <= limits.max_calls
        assert limits.max_tokens is None or spent.tokens <= limits.max_tokens
        assert limits.max_cost is None or spent.cost <= limits.max_cost + 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_the_servers_own_count_never_exceeds_a_limit_whatever_goes_wrong(seed: int, tmp_path: Path) -> None:
    """Random faults, and restarts with the same ledger after the budget or the endpoint ended a run."""
    random = Random(seed)
    limits = {"max_calls": random.randint(5, 120)} if seed % 2 else {"max_tokens": random.randint(200, 6000)}
    rates = Rates(throttled=0.1, failing=0.1, hang_up=0.05, cut=0.05, garbage=0.05, slow=0.03, empty=0.05,
                  nonsense=0.05, slow_seconds=0.6)  # fmt: skip
    with ChatServer(lambda prompt: f"{prompt} and {prompt}", rates=rates, seed=seed) as server:
        done = 0
        for _ in range(3):
            budget = Budget(limited(**limits), PRICES, tmp_path / FILE, "stage")
            try:
                found = generate_cached(
                    model(server, budget),
                    PromptBatch(
                        [f"question {n} {'word ' * (n % 9)}" for n in range(60)],
                        PARAMS,
                        cache=open_cache(tmp_path),
                        validate=lambda _, text: None if "and" in text else "nonsense",
                        attempts=2,
                        retry_temperature=0.5,
                    ),
                )
                done = len(found)
            except BudgetReached as reached:
                assert reached.done is not None and reached.left is not None
                assert reached.done + reached.left == 60 and reached.done >= done
                done = reached.done
            except EndpointError:
                pass
    counted = server.stats()
    tokens = counted["prompt_tokens"] + counted["completion_tokens"]
    assert counted["requests"] > 0
    assert counted["requests"] <= limits.get("max_calls", 10**9)
    assert tokens <= limits.get("max_tokens", 10**9)


def test_a_refused_request_costs_a_call_and_a_lost_one_all_its_tokens() -> None:
    for fault, tokens in (
        (Fault(status=429), 0),
        (Fault(status=500), 0),
        (Fault(status=504), 73),
        (Fault(hang_up=True), 73),
        (Fault(cut=True), 73),
        (Fault(garbage=True), 73),
        (Fault(delay=0.8), 73),
    ):
        budget = Budget(limited(max_calls=2), PRICES)
        with ChatServer() as server:
            server.fail("a", fault)
            assert model(server, budget).generate(["a"], PARAMS)[0].text == "echo a"
            assert (budget.spent().calls, budget.spent().tokens) == (2, tokens + 3), fault


def test_a_reply_without_usage_stays_spent_in_full() -> None:
    budget = Budget(limited(), PRICES)
    with ChatServer() as server:
        server.always("", Fault(usage=False))
        model(server, budget).generate(["a"], PARAMS)
    assert budget.spent().tokens == 1 + 64 + 8


def test_a_stop_delivers_what_was_under_way_and_says_what_is_left() -> None:
    budget = Budget(limited(max_calls=7), PRICES)
    results: dict[int, Completion] = {}
    with ChatServer() as server:
        server.slowness = 0.02
        with pytest.raises(BudgetReached, match="7 of 7 calls.*7 answers are there and kept, 13 are left") as caught:
            model(server, budget).generate([f"p{n}" for n in range(20)], PARAMS, on_result=results.__setitem__)
    assert len(server.prompts) == 7 == len(results) == caught.value.done
    assert all(completion.text == f"echo p{place}" for place, completion in results.items())


def test_room_that_requests_under_way_give_back_is_used() -> None:
    """Each request may need 74 to 76 tokens and needs 3; one at a time, nearly all of 800 tokens can be spent."""
    budget = Budget(limited(max_tokens=800), PRICES)
    with ChatServer() as server:
        server.slowness = 0.005
        many = model(server, budget, concurrency=32, timeout_seconds=60.0)
        out = many.generate([f"p{n}" for n in range(200)], PARAMS)
        assert len(out) == 200 and budget.spent().tokens == 600
        with pytest.raises(BudgetReached):
            many.generate([f"q{n}" for n in range(200)], PARAMS)
        assert 800 - 76 < budget.spent().tokens <= 800


def test_local_models_need_no_budget(tmp_path: Path) -> None:
    from kgqa_core.config import LlmOptions
    from kgqa_core.llm.factory import load_model
    from tests.support.models import save_causal

    budget = Budget(limited(max_calls=0), PRICES)
    local = load_model(f"hf:{save_causal(tmp_path / 'm')}", LlmOptions(device=DEVICE), budget=budget)
    assert len(local.generate(["a"], GenerationParams(max_new_tokens=2))) == 1 and budget.spent().calls == 0
