"""Systems of a run that are opened when they are needed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kgqa_core.answering.reply import Answer
from kgqa_core.errors import InputError
from kgqa_core.serving.open_systems import MOST_OPEN, OpenSystems
from kgqa_core.system import System


class Fake:
    """A system that counts who is in it."""

    def __init__(self, knowledge: str, least: float = 0.5) -> None:
        self.knowledge, self.least, self.closed = knowledge, least, False
        self.store = SimpleNamespace(close=lambda: setattr(self, "closed", True))
        self.inside = threading.Semaphore(1)

    def at_confidence(self, least: float) -> Fake:
        return Fake(self.knowledge, least)

    def ask(self, text: str, topics: Sequence[str] = (), dialogue: Sequence[tuple[str, str]] = ()) -> Answer:
        assert self.inside.acquire(blocking=False), "one question at a time"
        self.inside.release()
        return Answer("1", text, f"{self.knowledge} {self.least}")


@pytest.fixture
def opened() -> list[Fake]:
    return []


@pytest.fixture
def systems(opened: list[Fake]) -> OpenSystems:
    def open(knowledge: str | None) -> System:
        if knowledge == "nothing":
            raise InputError("this run cannot answer from 'nothing'")
        opened.append(Fake(knowledge or "own/triples"))
        return cast(System, opened[-1])

    return OpenSystems(open)


def test_a_system_is_opened_once_and_the_confidence_is_of_one_question(
    systems: OpenSystems, opened: list[Fake]
) -> None:
    systems.load()
    assert systems("a").output == "own/triples 0.5" and systems("a", min_confidence=0.0).output == "own/triples 0.0"
    assert systems("a").output == "own/triples 0.5"
    assert systems("a", knowledge="own/triples").output == "own/triples 0.5" and len(opened) == 1


def test_few_systems_stay_open_and_the_own_one_always(systems: OpenSystems, opened: list[Fake]) -> None:
    systems.load()
    for name in ("x", "y", "x", "y"):
        assert systems("a", knowledge=name).output == f"{name} 0.5"
    assert [one.knowledge for one in opened] == ["own/triples", "x", "y", "x", "y"]
    assert not opened[0].closed and sum(not one.closed for one in opened) == MOST_OPEN
    with pytest.raises(InputError, match="cannot answer from 'nothing'"):
        systems("a", knowledge="nothing")
    assert systems("a").output == "own/triples 0.5"


def test_several_threads_ask_one_after_the_other(systems: OpenSystems, opened: list[Fake]) -> None:
    def ask(n: int) -> Any:
        return systems(f"{n}?", knowledge=("x", None)[n % 2]).question

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(40))) == [f"{n}?" for n in range(40)]
    assert len(opened) == 2
