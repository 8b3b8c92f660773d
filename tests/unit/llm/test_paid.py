"""Asking through the cache: nothing is paid twice, rejected completions are spent, order and bytes are kept."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kgqa_core.config import BudgetOptions, LlmOptions
from kgqa_core.errors import BudgetReached, EndpointError, ModelError
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import FILE, open_cache
from kgqa_core.llm.factory import identify
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.paid import AGAIN, GROUP, Outcome, PromptBatch, generate_cached, identity_of, insist, peek
from kgqa_core.llm.protocol import Completion, GenerationParams, LanguageModel, OnResult
from kgqa_core.monitor import Quiet
from tests.support.chat_server import ROOT, ChatServer, Fault, ServerProcess

PARAMS = GenerationParams(max_new_tokens=8)
CONCURRENCY = 8


def ask(model: LanguageModel, prompts: Sequence[str], params: GenerationParams, **more: Any) -> list[Outcome]:
    return generate_cached(model, PromptBatch(prompts, params, **more))


ASKER = """
import json, sys
from pathlib import Path
from kgqa_core.config import LlmOptions
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.paid import PromptBatch, generate_cached
from kgqa_core.llm.protocol import GenerationParams
url, folder, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
llm = LlmOptions(base_url=url, concurrency=8, retries=9)
model = OpenAIModel("stub", llm, first_wait=0.005)
found = generate_cached(model, PromptBatch(
    [f"graph {n // 2}" for n in range(count)], GenerationParams(max_new_tokens=8, temperature=0.7),
    samples=[n % 2 for n in range(count)], cache=open_cache(folder), attempts=3,
    validate=lambda _, text: None if len(text.split()) == 8 and text[0] > "3" else f"starts with {text[:1]}",
))
out = [[None if each.completion is None else each.completion.text, each.spent] for each in found]
(folder / "out.json").write_text(json.dumps(out))
"""


def make(server: ChatServer, budget: Budget | None = None, **given: object) -> OpenAIModel:
    options: dict[str, object] = {"timeout_seconds": 2.0, "retries": 1, "concurrency": 4} | given
    llm = LlmOptions.model_validate({"base_url": server.base_url, **options})
    return OpenAIModel("stub", llm, budget=budget, first_wait=0.01)


def texts(found: Sequence[Outcome]) -> list[str | None]:
    return [None if each.completion is None else each.completion.text for each in found]


class Local:
    """A model whose completions depend on the prompts asked together, as those of a batched model may."""

    name, revision, batch_sensitive = "hf:fake", "1", True

    def __init__(self, stop_after: int | None = None) -> None:
        self.calls: list[list[str]] = []
        self.stop_after = stop_after

    def generate(
        self, prompts: Sequence[str], params: GenerationParams,
        on_result: OnResult | None = None,
    ) -> list[Completion]:  # fmt: skip
        self.calls.append(list(prompts))
        out = [Completion(f"{prompt} with {sum(map(len, prompts))} seed {params.seed}") for prompt in prompts]
        for place, completion in enumerate(out):
            if self.stop_after is not None:
                self.stop_after -= 1
                if self.stop_after < 0:
                    raise KeyboardInterrupt
            if on_result is not None:
                on_result(place, completion)
        return out


def test_outcomes_come_in_the_order_of_the_prompts_and_equal_ones_are_asked_once() -> None:
    with ChatServer() as server:
        server.always("p1", Fault(delay=0.1))
        prompts = [f"p{n % 5}" for n in range(12)]
        found = ask(make(server), prompts, PARAMS)
    assert texts(found) == [f"echo {prompt}" for prompt in prompts]
    assert Counter(server.prompts) == Counter({f"p{n}": 1 for n in range(5)})
    assert all(each.spent == () and not each.cached for each in found)


def test_nothing_is_asked_for_no_prompts() -> None:
    with ChatServer() as server:
        assert ask(make(server), [], PARAMS) == [] == server.prompts


def test_what_is_in_the_cache_is_not_asked_again(tmp_path: Path) -> None:
    with ChatServer() as server:
        first = ask(make(server), ["a", "b"], PARAMS, cache=open_cache(tmp_path))
        second = ask(make(server), ["c", "b", "a"], PARAMS, cache=open_cache(tmp_path))
        assert texts(second) == ["echo c", "echo b", "echo a"]
        assert [each.cached for each in second] == [False, True, True] and not first[0].cached
        assert sorted(server.prompts) == ["a", "b", "c"]
        ask(make(server), ["a"], GenerationParams(max_new_tokens=9), cache=open_cache(tmp_path))
    assert server.prompts.count("a") == 2


def test_samples_are_requests_of_their_own_with_their_own_seeds(tmp_path: Path) -> None:
    params = GenerationParams(max_new_tokens=8, temperature=0.7, seed=5)
    with ChatServer() as server:
        for _ in range(2):
            found = ask(make(server), ["a"] * 3, params, samples=[0, 1, 2], cache=open_cache(tmp_path))
    assert len(found) == 3 == len(server.bodies)
    assert len({body["seed"] for body in server.bodies}) == 3 and server.bodies[0]["seed"] == 5


def test_rejected_completions_are_spent_and_never_served(tmp_path: Path) -> None:
    def check(place: int, text: str) -> str | None:
        return "says bad" if "bad" in text else None

    with ChatServer() as server:
        for _ in range(3):
            found = ask(
                make(server), ["good", "bad"], PARAMS, cache=open_cache(tmp_path), validate=check, attempts=3,
                retry_temperature=0.9,
            )  # fmt: skip
            assert texts(found) == ["echo good", None]
            assert found[1].spent == ("says bad",) * 3
        assert Counter(server.prompts) == Counter({"bad": 3, "good": 1}), "bounded over all runs"
        tries = [body for body in server.bodies if body["messages"][0]["content"] == "bad"]
        assert [body["temperature"] for body in tries] == [0, 0.9, 0.9]
        assert len({body.get("seed") for body in tries}) == 3
        more = ask(make(server), ["bad"], PARAMS, cache=open_cache(tmp_path), validate=check, attempts=4,
                   retry_temperature=0.9)  # fmt: skip
    assert server.prompts.count("bad") == 4 and len(more[0].spent) == 4
    stats = open_cache(tmp_path).stats()
    assert (stats["accepted"], stats["spent"]) == (1, 4)


def test_a_later_attempt_is_taken_and_the_rejected_one_stays_on_record(tmp_path: Path) -> None:
    with ChatServer() as server:
        server.fail("a", Fault(content="nonsense"))
        for cached in (False, True):
            found = ask(make(server), ["a"], PARAMS, cache=open_cache(tmp_path), attempts=2,
                        validate=lambda _, text: None if text.startswith("echo") else "no echo")  # fmt: skip
            assert found == [Outcome(Completion("echo a", "stop", 1, 2), ("no echo",), cached, 2, 3)]
            assert found[0].calls == 2
    assert len(server.prompts) == 2


def test_refusals_and_empty_completions_are_rejected_without_being_shown_to_the_check() -> None:
    seen: list[str] = []
    with ChatServer() as server:
        server.always("no", Fault(refusal="I cannot help"))
        server.always("void", Fault(content=" "))
        server.always("cut", Fault(finish="length"))
        prompts = ["no", "void", "cut"]
        found = ask(make(server), prompts, PARAMS, validate=lambda _, text: seen.append(text))  # type: ignore[func-returns-value]
        plain = ask(make(server), prompts, PARAMS)
    assert [each.spent for each in found] == [("refused",), ("empty",), ()]
    assert seen == ["echo cut"]
    assert [each.completion.finish for each in plain if each.completion] == ["refusal", "empty", "length"]


def test_a_failed_item_is_told_and_asked_again_in_the_next_run(tmp_path: Path) -> None:
    with ChatServer() as server:
        server.fail("b", Fault(status=500), Fault(status=500))
        found = ask(make(server), ["a", "b", "c"], PARAMS, cache=open_cache(tmp_path))
        assert [each.completion.finish for each in found if each.completion] == ["stop", "error", "stop"]
        again = ask(make(server), ["a", "b", "c"], PARAMS, cache=open_cache(tmp_path))
    assert texts(again) == ["echo a", "echo b", "echo c"]
    assert Counter(server.prompts) == Counter({"a": 1, "b": 3, "c": 1})


def test_one_prompt_that_always_fails_does_not_stop_a_resumed_run(tmp_path: Path) -> None:
    with ChatServer() as server:
        server.always("bad", Fault(status=500))
        for _ in range(2):
            found = ask(make(server), ["a", "bad"], PARAMS, cache=open_cache(tmp_path))
            assert [each.completion.finish for each in found if each.completion] == ["stop", "error"]


def test_an_endpoint_that_goes_down_keeps_what_it_answered(tmp_path: Path) -> None:
    with ChatServer() as server:
        server.always("p7", Fault(status=401))
        with pytest.raises(EndpointError, match="status 401"):
            ask(make(server), [f"p{n}" for n in range(20)], PARAMS, cache=open_cache(tmp_path))
    assert open_cache(tmp_path).stats()["entries"] >= 7


def test_a_failing_check_keeps_what_was_answered_before(tmp_path: Path) -> None:
    def check(place: int, text: str) -> str | None:
        if place == 5:
            raise ModelError("the check is broken")
        return None

    with ChatServer() as server, pytest.raises(ModelError, match="broken"):
        ask(make(server, concurrency=1), [f"p{n}" for n in range(9)], PARAMS, cache=open_cache(tmp_path),
            validate=check)  # fmt: skip
    assert open_cache(tmp_path).stats()["entries"] == 5


def test_progress_counts_all_prompts_to_the_end(tmp_path: Path) -> None:
    class Listener(Quiet):
        def __init__(self) -> None:
            self.seen: list[tuple[float, float | None, str]] = []

        def progress(self, done: float, total: float | None, what: str) -> None:
            self.seen.append((done, total, what))

    for _ in range(2):
        listener = Listener()
        with ChatServer() as server:
            ask(make(server), ["a", "b", "a"], PARAMS, cache=open_cache(tmp_path), monitor=listener, what="texts")
        assert listener.seen[-1] == (3, 3, "texts") and [done for done, _, _ in listener.seen] == sorted(
            done for done, _, _ in listener.seen
        )


def test_a_local_models_groups_are_repeated_whole_so_that_a_resumed_run_writes_the_same(tmp_path: Path) -> None:
    prompts = [f"prompt {n} {'x' * (n % 50)}" for n in range(GROUP * 2 + 40)]
    undisturbed = ask(Local(), prompts, PARAMS)
    stopped = Local(stop_after=GROUP + 9)
    with pytest.raises(KeyboardInterrupt):
        ask(stopped, prompts, PARAMS, cache=open_cache(tmp_path))
    again = Local()
    resumed = ask(again, prompts, PARAMS, cache=open_cache(tmp_path))
    assert texts(resumed) == texts(undisturbed)
    assert [len(call) for call in again.calls] == [GROUP, 40], "the first group was there, the torn one is repeated"
    final = Local()
    assert texts(ask(final, prompts, PARAMS, cache=open_cache(tmp_path))) == texts(undisturbed) and not final.calls


def test_the_order_of_a_local_models_prompts_does_not_change_what_it_writes(tmp_path: Path) -> None:
    prompts = [f"prompt {n} {'x' * (n % 50)}" for n in range(GROUP + 40)]
    shuffled = Random(3).sample(prompts, len(prompts))
    straight = dict(zip(prompts, texts(ask(Local(), prompts, PARAMS, cache=open_cache(tmp_path))), strict=True))
    model = Local()
    assert texts(ask(model, shuffled, PARAMS, cache=open_cache(tmp_path))) == [straight[each] for each in shuffled]
    assert not model.calls


def test_the_budget_stops_after_what_is_under_way_and_the_next_run_goes_on(tmp_path: Path) -> None:
    prompts = [f"p{n}" for n in range(30)]
    with ChatServer() as server:
        server.slowness = 0.01
        budget = Budget(BudgetOptions(max_calls=10), {}, tmp_path / FILE, "stage")
        with pytest.raises(BudgetReached, match=r"10 of 10 calls.*10 answers.*20 are left.*llm\.budget\.max_calls"):
            ask(make(server, budget=budget), prompts, PARAMS, cache=open_cache(tmp_path))
        assert open_cache(tmp_path).stats()["entries"] == 10 == len(server.prompts)
        with pytest.raises(BudgetReached, match="10 answers are there and kept, 20 are left"):
            ask(make(server, budget=budget), prompts, PARAMS, cache=open_cache(tmp_path))
        raised = Budget(BudgetOptions(max_calls=30), {}, tmp_path / FILE, "stage")
        found = ask(make(server, budget=raised), prompts, PARAMS, cache=open_cache(tmp_path))
    assert texts(found) == [f"echo {prompt}" for prompt in prompts]
    assert sorted(server.prompts) == sorted(prompts)


def test_peek_tells_what_would_not_be_asked_and_writes_nothing(tmp_path: Path) -> None:
    prompts = ["a", "bad", "c", "a"]

    def check(_: int, text: str) -> str | None:
        return "bad" if "bad" in text else None

    with ChatServer() as server:
        identity = identify("openai:stub", LlmOptions(base_url=server.base_url))

        def seen(prompts: list[str], **more: object) -> list[str | None]:
            found = peek(identity, PromptBatch(prompts, PARAMS, cache=open_cache(tmp_path), **more))  # type: ignore[arg-type]
            texts = [each.completion.text if each.completion else " ".join(each.spent) for each in found]
            return [text if each.cached else None for text, each in zip(texts, found, strict=True)]

        assert seen(prompts, validate=check) == [None] * 4
        ask(make(server), ["a", "bad"], PARAMS, cache=open_cache(tmp_path), validate=check)
        for validate in (None, check):
            assert seen(prompts, validate=validate)[::2] == ["echo a", None]
        assert seen(prompts, validate=check) == ["echo a", "bad", None, "echo a"]
        assert seen(prompts, validate=check, attempts=2)[1] is None
        assert seen(["a"], samples=[1]) == [None] and len(server.prompts) == 2
    assert peek(None, PromptBatch(["a"], PARAMS, cache=open_cache(tmp_path))) == [Outcome(None)]
    assert open_cache(tmp_path).stats()["spent"] == 1
    ask(Local(), ["x", "y"], PARAMS, cache=open_cache(tmp_path))
    identity = identity_of(Local())
    assert [each.cached for each in peek(identity, PromptBatch(["x", "y"], PARAMS, cache=open_cache(tmp_path)))] == [
        True
    ] * 2
    [alone] = peek(identity, PromptBatch(["x"], PARAMS, cache=open_cache(tmp_path)))
    assert not alone.cached, "asked alone it may answer otherwise"


def asker(url: str, folder: Path, count: int) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    return subprocess.Popen([sys.executable, "-c", ASKER, url, str(folder), str(count)], cwd=ROOT)


MISBEHAVING = ("--reply", "words", "--latency", "0.01", "--throttled", "0.05", "--failing", "0.05", "--hang-up", "0.03",
               "--cut", "0.03", "--garbage", "0.03", "--empty", "0.05",
               "--nonsense", "0.05")  # fmt: skip


@pytest.mark.slow
def test_killed_runs_pay_nothing_twice_beyond_what_was_under_way_and_end_the_same(tmp_path: Path) -> None:
    count, random = 400, Random(11)
    with ServerProcess(*MISBEHAVING) as server:
        assert asker(server.base_url, tmp_path / "calm", count).wait(400) == 0
        calm = server.stats()
    with ServerProcess(*MISBEHAVING) as server:
        kills = 0
        while True:
            before, enough = server.stats()["requests"], random.randint(20, 90)
            process = asker(server.base_url, tmp_path / "killed", count)
            while process.poll() is None and (kills >= 6 or server.stats()["requests"] - before < enough):
                time.sleep(0.01)
            if process.poll() is not None:
                assert process.returncode == 0
                break
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            time.sleep(0.3)  # what was under way is answered to nobody
        disturbed = server.stats()
    assert kills >= 4
    assert (tmp_path / "killed" / "out.json").read_bytes() == (tmp_path / "calm" / "out.json").read_bytes()
    out = json.loads((tmp_path / "calm" / "out.json").read_text())
    assert any(text is None for text, _ in out) and any(spent and text for text, spent in out)
    assert all(counts["answered"] == 1 for counts in calm["prompts"].values()), "undisturbed: each reply paid once"
    assert set(disturbed["prompts"]) == set(calm["prompts"])
    extra = [counts["answered"] - 1 for counts in disturbed["prompts"].values()]
    assert min(extra) == 0 and sum(extra) <= kills * CONCURRENCY


@pytest.mark.slow
def test_two_processes_at_once_on_one_cache_end_the_same(tmp_path: Path) -> None:
    count = 120
    with ServerProcess(*MISBEHAVING) as server:
        folder = tmp_path / "both"
        processes = [asker(server.base_url, folder, count) for _ in range(2)]
        assert [process.wait(400) for process in processes] == [0, 0]
        both = json.loads((folder / "out.json").read_text())
        before = server.stats()["requests"]
        assert asker(server.base_url, folder, count).wait(400) == 0
        assert server.stats()["requests"] == before, "all of it was kept"
        assert json.loads((folder / "out.json").read_text()) == both
    with ServerProcess(*MISBEHAVING) as server:
        assert asker(server.base_url, tmp_path / "alone", count).wait(400) == 0
    assert json.loads((tmp_path / "alone" / "out.json").read_text()) == both


@pytest.mark.parametrize("passes", [0, 1, AGAIN, AGAIN + 5])
def test_what_an_endpoint_failed_on_is_asked_again_so_many_times_and_then_logged(
    passes: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[int] = []

    def once(*_: object) -> list[Outcome]:
        passed.append(len(passed))
        failed = Completion("", "error") if passed[-1] < passes else Completion("yes", "stop")
        return [Outcome(Completion("yes", "stop")), Outcome(None, ("empty",)), Outcome(failed)]

    monkeypatch.setattr("kgqa_core.llm.paid.generate_cached", once)
    found = insist(Local(), PromptBatch(["a", "b", "c"], PARAMS, what="rankings"))
    assert len(passed) == min(passes, AGAIN) + 1 and found[2].failed == (passes > AGAIN)
    assert ("no answer to 1 of 3 prompts for rankings" in caplog.text) == (passes > AGAIN)
