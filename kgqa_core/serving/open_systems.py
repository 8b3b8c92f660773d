"""The systems of one finished run, opened when they are first needed, for several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kgqa_core.answering.reply import Answer

if TYPE_CHECKING:
    from kgqa_core.system import System  # with torch, which a graph can be looked into without

MOST_OPEN = 2
"""Systems that stay open, of different knowledge; the one that was not used for longest goes first."""


class OpenSystems:
    """Answers with the system of a run, or of other knowledge of the same run.

    open: opens the one for a `retriever/format`, or the run's own for None.  An `ask_record.AskSystem`.
    One question is answered at a time: a system reads through one connection and one model.
    """

    def __init__(self, open: Callable[[str | None], System]) -> None:
        self._open = open
        self._systems: dict[str | None, System] = {}
        self._lock = threading.Lock()

    def load(self) -> None:
        """Open the run's own system.  Raises KgqaError."""
        with self._lock:
            self._system(None)

    def __call__(
        self,
        question: str,
        topics: Sequence[str] = (),
        dialogue: Sequence[tuple[str, str]] = (),
        knowledge: str | None = None,
        min_confidence: float | None = None,
    ) -> Answer:
        """The answer; see `AskSystem`.  Raises InputError for knowledge that was not trained, and what it raises."""
        with self._lock:
            own = self._systems.get(None)
            system = self._system(None if own is not None and knowledge == own.knowledge else knowledge)
            if min_confidence is not None:
                system = system.at_confidence(min_confidence)
            return system.ask(question, topics, dialogue)

    def _system(self, knowledge: str | None) -> System:
        found = self._systems.pop(knowledge, None) or self._open(knowledge)
        self._systems[knowledge] = found
        while len(self._systems) > MOST_OPEN:
            oldest = next(name for name in self._systems if name is not None and name != knowledge)
            self._systems.pop(oldest).store.close()
        return found
