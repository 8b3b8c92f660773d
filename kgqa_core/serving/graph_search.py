"""Entities by name, from the mention dictionary: whole names, names that begin so, parts of names, typing errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kgqa_core.dkg.csr import Dkg
from kgqa_core.linking.fold import fold
from kgqa_core.linking.mentions import PART, MentionDictionary
from kgqa_core.linking.typos import SHORTEST, nearest

How = Literal["exact", "prefix", "part", "typo"]

MOST_READ = 1_000_000
"""Candidates of names with one beginning that are compared by degree; what comes after them in the alphabet is not."""

NameMatch = tuple[int, str, How]
"""(entity, folded name, how it matches)."""


def names_like(mentions: MentionDictionary, dkg: Dkg, text: str, limit: int) -> list[NameMatch]:
    """At most `limit` entities whose name is a text or like it, each once.

    In this order, and by degree within each, ties by id: those that have it as a whole name, those with a name that
    begins so, those with a part of a name that is or begins so.  Parts that very many names have are not found.
    """
    folded = fold(text)
    return _once(_beginning_with(mentions, dkg, folded, limit), limit) if folded else []


def nearest_names(mentions: MentionDictionary, dkg: Dkg, text: str, limit: int) -> list[NameMatch]:
    """At most `limit` entities with a name at the least number of typing errors, each once; whole names come first.

    One error is forgiven from 4 letters on, two from 8.
    """
    folded = fold(text)
    allowed = max((errors for errors, letters in SHORTEST.items() if len(folded) >= letters), default=0)
    numbers = [number for number, _ in nearest(folded, mentions, allowed)] if allowed else []
    if not numbers:
        return []
    rows = np.concatenate([np.arange(mentions.rows[number], mentions.rows[number + 1]) for number in numbers])
    parts = mentions.entity_flags[rows] & PART != 0
    kinds = (rows[~parts], rows[parts])
    return _once((match for kind in kinds for match in _by_degree(mentions, dkg, kind, "typo", limit)), limit)


def _once(matches: Iterator[NameMatch], limit: int) -> list[NameMatch]:
    results: dict[int, NameMatch] = {}
    for match in matches:
        results.setdefault(match[0], match)
        if len(results) == limit:
            break
    return list(results.values())


def _beginning_with(mentions: MentionDictionary, dkg: Dkg, folded: str, limit: int) -> Iterator[NameMatch]:
    low, high = mentions.names.beginning_with(folded)
    exact_name = mentions.names.find(folded)
    first, last = int(mentions.rows[low]), int(mentions.rows[high])
    last = min(last, first + MOST_READ)
    rows = np.arange(first, last)
    parts = mentions.entity_flags[first:last] & PART != 0
    exact = np.zeros(len(rows), dtype=bool)
    if exact_name >= 0:
        exact = (rows >= mentions.rows[exact_name]) & (rows < mentions.rows[exact_name + 1])
    levels: tuple[tuple[How, NDArray[np.bool_]], ...] = (
        ("exact", exact & ~parts),
        ("prefix", ~exact & ~parts),
        ("part", parts),
    )
    for how, chosen in levels:
        yield from _by_degree(mentions, dkg, rows[chosen], how, limit)


def _by_degree(
    mentions: MentionDictionary, dkg: Dkg, rows: NDArray[np.int64], how: How, limit: int
) -> Iterator[NameMatch]:
    """The best connected entities of some places among the candidates; each once, with its first name."""
    entities, first = np.unique(mentions.entities[rows], return_index=True)
    starts, stops = dkg.row_bounds(entities)
    for index in np.lexsort((entities, starts - stops))[: 2 * limit].tolist():  # some were found before
        name = int(np.searchsorted(mentions.rows, rows[first[index]], side="right")) - 1
        yield int(entities[index]), mentions.names[name], how
