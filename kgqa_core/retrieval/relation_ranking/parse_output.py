"""Reads the relations that a language model names, one a line, whatever it puts around them.

A line counts for the first candidate that it names and that no earlier line took: as it stands, whatever its case,
without bullet, number, quotes, brackets and delimiters, and at last without an explanation after it.  A line that names
several candidates between commas counts for all of them.  What names none is unknown and kept.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_BULLET = re.compile(r"^(?:[-*+•‣◦·–—>#]+|\(?\d{1,3}\s*[.):\]]|\(?[a-zA-Z][.)])\s+|^(?:[•‣◦·]|\d{1,3}[.):\]])\s*")
_HEADING = re.compile(r"^(?:relations?|rank(?:ing)?)\s*\d*\s*:\s*", re.IGNORECASE)
_AFTER = re.compile(r"\s+[-–—]\s+|\s*[:=]\s|\s+\(|\s*→\s*|\s+->\s+")
_AROUND = "\"'`´‘’“”„«»‹›<>*_[](){} \t.,;:"
_PAIRS = (("<<<", ">>>"), ("**", "**"), ('"', '"'), ("'", "'"), ("`", "`"), ("“", "”"), ("«", "»"), ("[", "]"))


@dataclass(frozen=True)
class Said:
    """What a text says of its candidates.

    places: candidates in the order in which they are named.  unknown: lines that name none, as they stand.
    """

    places: tuple[int, ...]
    unknown: tuple[str, ...]


def read_ranking(text: str, candidates: Sequence[str], most: int) -> Said:
    """The first `most` candidates that the lines of a text name, and the lines that name none."""
    exact, folded = dict[str, list[int]](), dict[str, list[int]]()
    for place, candidate in enumerate(candidates):
        exact.setdefault(" ".join(candidate.split()), []).append(place)
        folded.setdefault(fold(candidate), []).append(place)
    taken: dict[int, None] = {}
    unknown: list[str] = []

    def take(name: str) -> bool:
        places = exact.get(" ".join(name.split())) or folded.get(fold(name)) or []
        free = [place for place in places if place not in taken]
        if free:
            taken[free[0]] = None
        return bool(places)

    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or not fold(stripped):
            continue
        if any(take(form) for form in _forms(stripped)):
            continue
        bare = _HEADING.sub("", stripped)
        named = [part for part in re.split(r"[,;|、，；]", bare.replace("<<<", "").replace(">>>", "")) if fold(part)]
        hits = [part for part in named if any(_known(form, exact, folded) for form in _forms(part.strip()))]
        if len(named) > 1 and hits:
            for part in hits:
                any(take(form) for form in _forms(part.strip()))
            continue
        if any(take(form) for form in _shortened(stripped)):
            continue
        unknown.append(stripped)
    return Said(tuple(taken)[:most], tuple(unknown))


def fold(text: str) -> str:
    """A name as it is compared: width, case, underscores, blanks and outer signs do not count.

    >>> fold(" `Place_of  birth`. ")
    'place of birth'
    """
    plain = unicodedata.normalize("NFKC", text).casefold().replace("_", " ")
    inverse = plain.strip(_AROUND.replace("<", "")).startswith("<inv>-")
    if inverse:
        plain = plain.strip(_AROUND.replace("<", "")).removeprefix("<inv>-")
    return ("<inv>-" if inverse else "") + " ".join(plain.strip(_AROUND).split())


def _known(form: str, exact: dict[str, list[int]], folded: dict[str, list[int]]) -> bool:
    return " ".join(form.split()) in exact or fold(form) in folded


def _forms(line: str) -> Iterator[str]:
    """A line with less and less around it."""
    yield line
    seen = {line}
    waiting = [line]
    while waiting:
        form = waiting.pop(0)
        for less in (*_unwrapped(form), _BULLET.sub("", form, count=1), _HEADING.sub("", form, count=1)):
            short = less.strip()
            if short and short not in seen:
                seen.add(short)
                waiting.append(short)
                yield short


def _unwrapped(form: str) -> Iterator[str]:
    for left, right in _PAIRS:
        if form.startswith(left) and form.endswith(right) and len(form) > len(left) + len(right):
            yield form[len(left) : -len(right)]
    if form[-1:] in ".,;:":
        yield form[:-1]


def _shortened(line: str) -> Iterator[str]:
    """A line up to each sign after which an explanation may stand, the longest first."""
    for form in list(_forms(line)):
        for cut in sorted((match.start() for match in _AFTER.finditer(form)), reverse=True):
            yield from _forms(form[:cut].strip()) if form[:cut].strip() else ()
