"""One system answers many clients: in batches, each in its own right, and through a change of champion."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from kgqa_core.errors import EndpointError, InputError, ServerBusy
from kgqa_core.serving.ask_record import Ask
from kgqa_core.serving.service import MOST_KNOWLEDGE, Service
from tests.support.served import EchoSource, EchoSystem


@pytest.fixture
def opened() -> Iterator[Any]:
    """Starts services, of one answering thread unless they say otherwise, and closes them."""
    services: list[Service] = []

    def start(source: Any, **options: Any) -> Service:
        services.append(Service(source, **{"poll_seconds": 0.02, "threads": 1, **options}))
        services[-1].start()
        return services[-1]

    yield start
    for service in services:
        service.close()


def until(true: Any) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_waits_is_answered_together_and_in_order(opened: Any) -> None:
    gate = threading.Event()
    system = EchoSystem(gate=gate)
    service = opened(EchoSource(one=system), max_batch=4)
    first = service.submit([Ask("first")])
    until(lambda: service.waiting == 0)
    rest = service.submit([Ask(f"q{n}") for n in range(9)])
    gate.set()
    assert [one.result(20).answer.output for one in (*first, *rest)] == ["first", *(f"q{n}" for n in range(9))]
    assert system.batches == [1, 4, 4, 1]


def test_a_question_that_cannot_be_asked_fails_alone(opened: Any) -> None:
    gate = threading.Event()
    service = opened(EchoSource(one=EchoSystem(gate=gate)))
    blocked = service.submit([Ask("block")])
    until(lambda: service.waiting == 0)
    good, bad, other = service.submit([Ask("a"), Ask("b", topics=("nowhere",)), Ask("c")])
    gate.set()
    assert blocked[0].result(20) and good.result(20).answer.output == "a" and other.result(20).answer.output == "c"
    with pytest.raises(InputError, match="nowhere"):
        bad.result(20)


def test_a_question_on_which_the_model_fails_is_an_error_and_the_others_of_its_batch_are_answered(opened: Any) -> None:
    gate = threading.Event()
    system = EchoSystem(gate=gate)
    service = opened(EchoSource(one=system))
    first = service.submit([Ask("first")])
    until(lambda: service.waiting == 0)
    good, bad = service.submit([Ask("good"), Ask("failing")])
    gate.set()
    assert first[0].result(20) and good.result(20).answer.output == "good"
    with pytest.raises(EndpointError, match="the language model failed: 500"):
        bad.result(20)
    assert system.batches == [1, 2]


def test_questions_of_another_confidence_or_knowledge_are_answered_by_their_own_system(opened: Any) -> None:
    source = EchoSource(one=EchoSystem())
    service = opened(source)
    answers = [one.result(20).answer for one in service.submit(
        [Ask("a"), Ask("b", min_confidence=0.0), Ask("c"), Ask("d", knowledge="rigel/triples")]
    )]  # fmt: skip
    assert [one.min_confidence for one in answers] == [None, 0.0, None, None]
    assert source.opened == [("one", None), ("one", "rigel/triples")]
    assert service.answer(Ask("e", knowledge="own/triples")).output == "e"
    assert len(source.opened) == 2, "its own knowledge is no other"


def test_few_systems_of_other_knowledge_stay_open(opened: Any) -> None:
    source = OtherSystems(one=EchoSystem())
    service = opened(source)
    for number in range(MOST_KNOWLEDGE + 2):
        assert service.answer(Ask("a", knowledge=f"other{number}/triples")).output == "a"
    gc.collect()
    assert [system() is None for system in source.others] == [True] * 2 + [False] * MOST_KNOWLEDGE


class OtherSystems(EchoSource):
    """A source that opens a system of its own for each knowledge."""

    def __init__(self, **systems: EchoSystem) -> None:
        super().__init__(**systems)
        self.others: list[weakref.ref[EchoSystem]] = []

    def with_knowledge(self, run: str, knowledge: str) -> EchoSystem:
        opened = EchoSystem(knowledge=knowledge)
        self.others.append(weakref.ref(opened))
        return opened


def test_a_full_queue_refuses_and_a_cancelled_question_costs_nothing(opened: Any) -> None:
    gate = threading.Event()
    asked: list[str] = []
    system = EchoSystem(reply=lambda question: asked.append(question.text) or question.text, gate=gate)
    service = opened(EchoSource(one=system), queue=2)
    first = service.submit([Ask("first")])
    until(lambda: service.waiting == 0)
    kept, gone = service.submit([Ask("kept"), Ask("gone")])
    with pytest.raises(ServerBusy, match="2 questions wait and 2 may"):
        service.submit([Ask("too many")])
    assert gone.cancel()
    gate.set()
    assert first[0].result(20) and kept.result(20)
    assert asked == ["first", "kept"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_new_champion_takes_over_and_nothing_is_lost(opened: Any, threads: int) -> None:
    source = EchoSource(old=EchoSystem(), new=EchoSystem())
    service = opened(source, threads=threads)
    stop, found, faults = threading.Event(), [], []

    def client() -> None:
        while not stop.is_set():
            swaps = service.swaps
            try:
                found.append((swaps, service.ask(Ask("q"), 20).run))
            except Exception as fault:
                faults.append(fault)

    clients = [threading.Thread(target=client) for _ in range(4)]
    for one in clients:
        one.start()
    until(lambda: len(found) > 50)
    source.run = "new"
    until(lambda: sum(swaps for swaps, _ in found) > 50)
    stop.set()
    for one in clients:
        one.join(20)
    assert not faults and {run for _, run in found} == {"old", "new"}
    assert {run for swaps, run in found if swaps} == {"new"}, "only what was under way is the old one's"


def test_a_champion_that_cannot_be_opened_leaves_the_old_one(opened: Any) -> None:
    source = EchoSource(old=EchoSystem(), bad=EchoSystem(), good=EchoSystem())
    service = opened(source)
    source.broken, source.run = {"bad"}, "bad"
    until(lambda: service.fault is not None)
    assert "bad" in service.fault and service.ask(Ask("q"), 20).run == "old"
    opened_before = len(source.opened)
    time.sleep(0.2)
    assert len(source.opened) == opened_before, "it is not tried again and again"
    source.run = "good"
    until(lambda: service.swaps == 1)
    assert service.ask(Ask("q"), 20).run == "good" and service.fault is None


def test_closing_answers_what_waits_and_refuses_what_comes(opened: Any) -> None:
    service = opened(EchoSource(one=EchoSystem()))
    waiting = service.submit([Ask(f"q{n}") for n in range(40)])
    service.close()
    assert [one.result(0).answer.output for one in waiting] == [f"q{n}" for n in range(40)]
    with pytest.raises(ServerBusy, match="stopping"):
        service.submit([Ask("late")])


def test_closing_does_not_wait_for_a_batch_that_does_not_end_nor_stumbles_over_who_went() -> None:
    gate = threading.Event()
    service = Service(EchoSource(one=EchoSystem(gate=gate)), threads=1)
    service.start()
    service.submit([Ask("stuck")])
    until(lambda: service.waiting == 0)
    gone, left = service.submit([Ask("gone"), Ask("left")])
    gone.cancel()
    began = time.monotonic()
    service.close(0.2)
    assert time.monotonic() - began < 2
    with pytest.raises(ServerBusy, match="stopping"):
        left.result(0)
    gate.set()


def test_long_questions_and_a_client_of_many_are_answered_after_the_others(opened: Any) -> None:
    gate = threading.Event()
    order: list[str] = []
    system = EchoSystem(reply=lambda question: order.append(question.text[:5]) or question.text, gate=gate)
    service = opened(EchoSource(one=system), max_batch=2)
    service.submit([Ask("first")])
    until(lambda: service.waiting == 0)
    asked = [
        *service.submit([Ask("long " * 700)], "a"),
        *service.submit([Ask(f"many{number}") for number in range(6)], "b"),
        *service.submit([Ask("short")], "c"),
    ]
    gate.set()
    for future in asked:
        future.result(20)
    assert order[0] == "first" and order.index("short") <= 2 and order[-1] == "long "


def test_short_questions_are_answered_while_one_long_one_is_and_another_long_one_waits(opened: Any) -> None:
    begun, order, gate, long = threading.Event(), list[str](), threading.Event(), "long " * 700

    def reply(question: Any) -> str:
        order.append(question.text[:5])
        if question.text == long:
            begun.set()
            assert gate.wait(20)
        return str(question.text)

    service = opened(EchoSource(one=EchoSystem(reply=reply)), threads=2)
    first, second = service.submit([Ask(long), Ask(long)])
    assert begun.wait(20)
    others = service.submit([Ask("short"), Ask("other", min_confidence=0.5), Ask("brief")])
    assert [one.result(20).answer.output for one in others] == ["short", "other", "brief"]
    assert order.count("long ") == 1 and not second.running()
    gate.set()
    assert first.result(20) and second.result(20) and order[-1] == "long "


def test_a_long_question_that_was_cancelled_holds_up_nobody(opened: Any) -> None:
    gate = threading.Event()
    service = opened(EchoSource(one=EchoSystem(gate=gate)))
    service.submit([Ask("first")])
    until(lambda: service.waiting == 0)
    [gone] = service.submit([Ask("long " * 700)])
    [kept] = service.submit([Ask("kept " * 600)], "another")
    assert gone.cancel()
    gate.set()
    assert kept.result(20)


def test_a_server_whose_oldest_question_has_waited_long_is_not_ready(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    service = opened(EchoSource(one=EchoSystem(gate=gate)))
    monkeypatch.setattr("kgqa_core.serving.service.STUCK_SECONDS", 0.1)
    assert service.ready
    [stuck] = service.submit([Ask("stuck")])
    until(lambda: not service.ready)
    gate.set()
    assert stuck.result(20)
    until(lambda: service.ready)


def test_a_fault_of_the_system_reaches_the_client_whose_question_it_is_and_the_others_are_answered(opened: Any) -> None:
    def reply(question: Any) -> str:
        if question.text == "bad":
            raise RuntimeError("broken")
        return str(question.text)

    gate = threading.Event()
    service = opened(EchoSource(one=EchoSystem(reply=reply, gate=gate)))
    first = service.submit([Ask("first")])
    until(lambda: service.waiting == 0)
    good, bad = service.submit([Ask("good"), Ask("bad")])
    gate.set()
    assert first[0].result(20) and good.result(20).answer.output == "good"
    with pytest.raises(RuntimeError, match="broken"):
        bad.result(20)
