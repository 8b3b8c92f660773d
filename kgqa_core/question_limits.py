"""How long a question may be: the same in the library, in files, on the command line, and for a server's clients."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from kgqa_core.errors import InputError, QuestionTimeout

CHARACTERS = 4000
"""Characters of a question, and of an earlier turn."""
WORDS = 800
"""Words of a question."""
TOPICS, TOPIC_CHARACTERS = 50, 1000
"""Topics that a question may name, and characters of each."""
TOPIC_ENTITIES = 500
"""Entities that the topics of a question may mean."""
TURNS = 64
"""Earlier turns."""
SECONDS = 20.0
"""In which a question is linked, and in which each step of computing its answer ends."""
TOO_LONG = "the question takes longer than "
"""How the refusal of a question begins whose time is over."""
SHOWN = 100
"""Characters of a refused text that are shown."""


def question_fault(text: str, topics: Sequence[str] = (), dialogue: Sequence[tuple[str, str]] = ()) -> str | None:
    """Why a question cannot be asked, in words; None where it can.

    dialogue: earlier turns as (role, text).

    >>> question_fault("Who?"), question_fault(" ")
    (None, 'the question is empty; it needs a text')
    """
    if not text.strip():
        return "the question is empty; it needs a text"
    for name, values, most in (("topics", topics, TOPICS), ("earlier turns", dialogue, TURNS)):
        if len(values) > most:
            return f"the question has {len(values):,} {name}, and may have {most}"
    for topic in topics:
        if fault := text_fault(f"topic {shown(topic)!r}", topic, TOPIC_CHARACTERS):
            return fault
        if not topic.strip():
            return "a topic is empty; give the key or a name of an entity"
    if fault := text_fault("the question", text):
        return fault
    if (words := len(text.split())) > WORDS:
        return f"the question has {words:,} words, and may have {WORDS}; shorten it"
    return next((fault for _, turn in dialogue if (fault := text_fault("an earlier turn", turn))), None)


def text_fault(name: str, text: str, most: int = CHARACTERS) -> str | None:
    """Why a text cannot be read as a part of a question, None where it can.  name: of the text, in words."""
    if fault := length_fault(name, text, most):
        return fault
    if "\0" in text or not _is_unicode(text):
        return f"{name} holds a NUL or half of a surrogate pair, which no text has; remove it"
    return None


def length_fault(name: str, text: str, most: int = CHARACTERS) -> str | None:
    """Why a text is too long, None where it is not.  name: of the text, in words."""
    return f"{name} has {len(text):,} characters, and may have {most:,}; shorten it" if len(text) > most else None


def check_question(text: str, topics: Sequence[str] = (), dialogue: Sequence[tuple[str, str]] = ()) -> None:
    """Raises InputError for a question that cannot be asked."""
    if fault := question_fault(text, topics, dialogue):
        raise InputError(fault)


def shown(text: str) -> str:
    """The beginning of a text that may be long or no Unicode, fit to be printed and written.

    >>> shown("a\\ud800b")
    'a?b'
    """
    cut = text[:SHOWN].encode("utf-8", "replace").decode("utf-8")
    return cut + "…" if len(text) > SHOWN else cut


_LIMIT: ContextVar[tuple[float, float]] = ContextVar("limit", default=(math.inf, math.inf))
"""Seconds that a question may take, and when on the monotonic clock they are over."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Within it `check_time` ends what takes longer; `next_question` gives each of several the same time."""
    token = _LIMIT.set((seconds, time.monotonic() + seconds))
    try:
        yield
    finally:
        _LIMIT.reset(token)


def next_question() -> None:
    """Begins the time of the next question of a batch."""
    seconds, _ = _LIMIT.get()
    _LIMIT.set((seconds, time.monotonic() + seconds))


def check_time() -> None:
    """Raises QuestionTimeout where the time of the question is over."""
    seconds, end = _LIMIT.get()
    if time.monotonic() > end:
        raise QuestionTimeout(f"{TOO_LONG}{seconds:g} s on this graph; ask for less at a time")


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
