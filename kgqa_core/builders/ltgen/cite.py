"""Which of the triples or pairs that a model was given it cites, however it writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgqa_core.metrics.normalise import is_cjk, tokens

_NOISE = frozenset(
    "t triple triples selected chosen reference used none na n/a null no empty and or knowledge graph kg subject "
    "relation predicate object head tail entity pair 三 元 组 无".split()
)
"""Words that may stand around a citation."""

_LOOKS_CITED = re.compile(r"[(（\[【{<|→]|->|,|，|;|；| - ")

Tokens = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Citation:
    """places: of the choices that are cited, in order, each once.  foreign: what looks cited and is no choice."""

    places: tuple[int, ...]
    foreign: str = ""


class Citable:
    """The triples (or pairs) of one prompt by name, found in text by their words alone.

    Brackets, commas, bars, arrows, numbering and case do not matter: a citation is the run of the words of all its
    names.  Of two choices that begin alike the longer one is found; of two that read alike the first.
    """

    def __init__(self, choices: Iterable[Sequence[str]]) -> None:
        self._starts: dict[str, list[tuple[Tokens, int]]] = {}
        seen: set[Tokens] = set()
        for place, names in enumerate(choices):
            words = tuple(word for name in names for word in tokens(name))
            if words and words not in seen:
                seen.add(words)
                self._starts.setdefault(words[0], []).append((words, place))
        for found in self._starts.values():
            found.sort(key=lambda each: -len(each[0]))

    def read(self, text: str) -> Citation:
        """What a text cites.  A line of talk, without brackets or separators, cites nothing.

        >>> citable = Citable([("Oslo", "country", "Norway"), ("Oslo", "population", "700000")])
        >>> citable.read("1. <Oslo | country | Norway>, (oslo, population, 700,000)").places
        (0, 1)
        >>> citable.read("(Oslo, mayor, Anne)").foreign
        '(Oslo, mayor, Anne)'
        """
        places: dict[int, None] = {}
        foreign = []
        for line in text.split("\n"):
            found, rest = self._match(line)
            places.update(dict.fromkeys(found))
            if rest and (found or _LOOKS_CITED.search(line)):
                foreign.append(line.strip())
        if foreign and "\n" in text:
            found, rest = self._match(text)
            if not rest:
                return Citation(tuple(dict.fromkeys(found)))
        return Citation(tuple(places), "; ".join(foreign))

    def _match(self, text: str) -> tuple[list[int], list[str]]:
        """Cited places from left to right, and the words that belong to none."""
        words = tokens(text)
        found: list[int] = []
        rest: list[str] = []
        here = 0
        while here < len(words):
            for choice, place in self._starts.get(words[here], ()):
                if words[here : here + len(choice)] == choice:
                    found.append(place)
                    here += len(choice)
                    break
            else:
                if words[here] not in _NOISE and not words[here].isdigit():
                    rest.append(words[here])
                here += 1
        return found, rest


class Mentions:
    """Whether names occur in texts, on the boundaries of words; forms are normalised once."""

    def __init__(self) -> None:
        self._forms: dict[tuple[str, ...], tuple[str, ...]] = {}

    def any(self, forms: tuple[str, ...], text: str) -> bool:
        """Whether a text has one of an entity's forms: its name, or an alias that is no mere abbreviation."""
        padded = _pad(tokens(text))
        return any(form in padded for form in self._padded(forms))

    def part(self, forms: tuple[str, ...], text: str) -> bool:
        """Whether a text has a form, or at least one telling word of the name, as `Curie` of `Marie Curie`."""
        if self.any(forms, text):
            return True
        words = set(tokens(text))
        return any(word in words for word in tokens(forms[0]) if len(word) > 2 or is_cjk(word[0])) if forms else False

    def _padded(self, forms: tuple[str, ...]) -> tuple[str, ...]:
        found = self._forms.get(forms)
        if found is None:
            kept = [tokens(form) for place, form in enumerate(forms) if place == 0 or _tells(form)]
            found = self._forms[forms] = tuple(dict.fromkeys(_pad(words) for words in kept if words))
        return found


def _tells(alias: str) -> bool:
    return len(alias.strip()) > 3 or any(is_cjk(letter) for letter in alias)


def _pad(words: Tokens) -> str:
    return f" {' '.join(words)} " if words else ""
