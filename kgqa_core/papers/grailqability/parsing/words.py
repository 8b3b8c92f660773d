"""Words of labels and keys, and their stems."""

from __future__ import annotations

import re

from kgqa_core.kg.names import word_parts
from kgqa_core.search.graph import WORD
from kgqa_core.search.reading import stem

_DOTTED = re.compile(r"[a-z_0-9]+(\.[a-z_0-9]+)+")


def in_words(label: str) -> str:
    """A label in lower-case words: `placeOfBirth`, `place_of_birth` and `people.place of birth` have equal ends.

    >>> in_words("placeOfBirth")
    'place of birth'
    """
    return " ".join(word_parts(label)).lower() or label


def key_words(label: str) -> str:
    """The words of a label, or of the last part of a key such as Freebase's.

    >>> key_words("cvg.computer_game_region")
    'computer game region'
    """
    return in_words(label.rpartition(".")[2] if _DOTTED.fullmatch(label) else label)


def stems(text: str) -> list[str]:
    """The stems of the words of a text, in their order."""
    return [stem(word) for word in WORD.findall(text.lower())]
