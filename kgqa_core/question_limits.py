"""How long a question may be: the same in the library, in files, on the command line, and for a server's clients."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa_core.errors import InputError

CHARACTERS = 4000
"""Characters of a question, and of an earlier turn."""
WORDS = 800
"""Words of a question."""
TOPICS, TOPIC_CHARACTERS = 50, 1000
"""Topics that a question may name, and characters of each."""
TURNS = 64
"""Earlier turns."""
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


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
