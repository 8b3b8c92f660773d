"""Names that differ from a stretch of text by a typing error or two.

Sorted names are walked as a tree of characters, with a row of distances: ranges of names that share a beginning are the
nodes, and a node whose row holds no distance within reach is left with all its names.  Distances count insertions,
deletions, changes, and swaps of neighbours (restricted Damerau-Levenshtein), by character.  On a million names this is
3 to 70 times as fast as rapidfuzz, and the names stay memory-mapped.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from kgqa_core.linking.english import demonyms
from kgqa_core.linking.fold import Folded, is_unspaced
from kgqa_core.linking.mentions import MANY, NUMBER, PARTIAL, MentionDictionary, Strings
from kgqa_core.linking.words import FUNCTION_WORDS, usualness
from kgqa_core.question_limits import check_time

SHORTEST = {1: 4, 2: 8}
"""Characters that a name needs for so many errors; those of unspaced scripts count double."""
SHORT = 5
"""Characters below which only letters that are left out, swapped or doubled are an error."""
ARTICLES = frozenset("the el la le los las les il der die das al san".split())
"""Words of grammar that a name may begin with."""
WORDS, SIGNS = 6, 12
"""Longest stretches that are looked at, in words and in characters of unspaced scripts."""
LONGEST = 1_000
"""Characters of the longest stretch that is looked at; the table of distances has the square of it."""
MOST_READ, MOST_NAMES = 512, 32
"""Most names read from one place of a text on, and most returned for one stretch: those of the best-known entities."""
MOST_STRETCHES = 256
"""Positions of a text from which on names with typing errors are looked for, at most; a question has fewer words."""
NearTexts = dict[int, list[tuple[int, int]]]
"""Size of a beginning of a text → (place, errors) of the nearest sorted texts."""
LEAST_ADJECTIVE = 5
"""Letters of an adjective that is typed wrongly, at least."""
SOME = 5
"""Neighbours of the entity of a mistyped part of names, at least."""
_DIGITS = re.compile(r"\d+")
FREQUENT = 10
"""Usualness above which a word's forms are known, too."""
_ENDINGS = ("s", "es", "ed", "d", "ing", "er", "est", "ly", "ness", "most", "less", "able", "like")


def near_names(
    folded: Folded, covered: Sequence[tuple[int, int]], mentions: MentionDictionary, typos: int, *, usual: bool = False
) -> list[tuple[int, int, int, int]]:
    """(first atom, last atom, name, errors) of names within `typos` insertions, deletions, changes or swaps.

    Only stretches are looked at that hold a word that is unknown: neither one of the dictionary's `words` nor a usual
    one, nor a form of one.  covered: spans of names (start, end of the text; in order, apart); a stretch cuts none,
    and is more than them.  The nearest names of a stretch are returned, all at the least distance; none where one of
    the dictionary's `words` is as near.
    Two words or more that are usual, but none of grammar, relations or types, are looked at for one error, too.
    usual: such words count as unknown by themselves, and so do characters of unspaced scripts.
    """
    results: list[tuple[int, int, int, int]] = []
    for first, lasts, unknown in _to_correct(folded, covered, mentions, usual):
        check_time()
        text = folded.slice(first, lasts[-1])
        spaced = not _unspaced(text)
        sizes = [len(folded.slice(first, last)) for last in lasts]
        near_ones = _near_beginnings(text, sizes, mentions.names, [1 if usual or not new else typos for new in unknown])
        for last, size in zip(lasts, sizes, strict=True):
            names = _possible(text[:size], near_ones.get(size, []), mentions)
            if names and not usual and _nearest(text[:size], mentions.words, names[0][1]):
                continue
            names = [(name, errors) for name, errors in names if _known_enough(name, usual and spaced, mentions)]
            results += [(first, last, name, errors) for name, errors in names]
    return results


def near_adjectives(
    folded: Folded, covered: Sequence[tuple[int, int]], mentions: MentionDictionary, typos: int
) -> list[tuple[int, int, str, int]]:
    """(first atom, last atom, word, errors) of adjectives of places that unknown words are near to.

    The arguments are those of `near_names`.
    """
    strings = _adjectives()
    results: list[tuple[int, int, str, int]] = []
    for first, lasts, unknown in _to_correct(folded, covered, mentions, usual=False):
        text = folded.slice(first, lasts[-1])
        sizes = [len(folded.slice(first, last)) for last in lasts]
        allowed = [typos if new and size >= LEAST_ADJECTIVE else 0 for size, new in zip(sizes, unknown, strict=True)]
        near_ones = _near_beginnings(text, sizes, strings, allowed)
        for last, size in zip(lasts, sizes, strict=True):
            results += [(first, last, strings[index], errors) for index, errors in near_ones.get(size, [])[:1]]
    return results


@lru_cache(maxsize=1)
def _adjectives() -> Strings:
    return Strings.of(sorted(demonyms(), key=str.encode))


def _to_correct(
    folded: Folded, covered: Sequence[tuple[int, int]], mentions: MentionDictionary, usual: bool
) -> list[tuple[int, list[int], list[bool]]]:
    """(first atom, last atoms, whether a word is unknown up to each) of the stretches that may be typed wrongly."""
    atoms = folded.atoms()
    spaced = [not _unspaced(atom) for atom in atoms]
    inside = _inside(folded, covered)
    content = [where < 0 and _content(atom, mentions) for atom, where in zip(atoms, inside, strict=True)]
    unknown = [
        where < 0 and (_content(atom, mentions) if usual else is_unknown(atom, mentions))
        for atom, where in zip(atoms, inside, strict=True)
    ]
    results: list[tuple[int, list[int], list[bool]]] = []
    if not any(unknown) and sum(content) < 2:
        return results
    for first in range(len(atoms)):
        if spaced[first] and atoms[first] in FUNCTION_WORDS and atoms[first] not in ARTICLES and inside[first] < 0:
            continue
        lasts: list[int] = []
        for last in range(first, min(first + (WORDS if spaced[first] else SIGNS), len(atoms))):
            if (spaced[last] and atoms[last] in FUNCTION_WORDS) or _cuts(inside, first, last):
                continue
            several = spaced[first] and last > first and content[first] and content[last]
            several = several and all(content[at] or atoms[at] in FUNCTION_WORDS for at in range(first, last))
            if any(unknown[first : last + 1]) or several:
                lasts.append(last)
        if lasts:
            results.append((first, lasts, [any(unknown[first : last + 1]) for last in lasts]))
        if len(results) == MOST_STRETCHES:
            break
    return results


def nearest(stretch: str, mentions: MentionDictionary, typos: int) -> list[tuple[int, int]]:
    """(name, errors) of the names at the least distance from a folded text that is in 1..typos; none if it is one.

    Two errors are forgiven in names only that begin with the same character.
    """
    return _nearest(stretch, mentions.names, typos)


def _possible(stretch: str, names: list[tuple[int, int]], mentions: MentionDictionary) -> list[tuple[int, int]]:
    """Names that a stretch may mean, those of the best-known entities where there are many."""
    short = len(stretch) < SHORT and not _unspaced(stretch)
    names = [
        (name, errors)
        for name, errors in names
        if not mentions.flags[name] & NUMBER and not (short and not _slip(stretch, mentions.names[name]))
        and _begins_alike(stretch, mentions.names[name])
        and _DIGITS.findall(stretch) == _DIGITS.findall(mentions.names[name])  # `berth k7` is not Berth K1
    ]  # fmt: skip
    if len(names) > MOST_NAMES:
        entities = mentions.entities[mentions.rows[np.array([name for name, _ in names])]].astype(np.int64)
        degrees = mentions.near_rows[entities + 1] - mentions.near_rows[entities]
        names = [names[index] for index in sorted(np.argsort(-degrees, kind="stable")[:MOST_NAMES].tolist())]
    return names


def _begins_alike(stretch: str, name: str) -> bool:
    """Whether a name has the first character of a short text, or its first two are swapped: *wakanda* is not
    Akanda.
    """
    return len(stretch) >= SHORTEST[2] or stretch[0] == name[0] or stretch[:2] == name[1::-1]


def _near_beginnings(text: str, sizes: Sequence[int], strings: Strings, typos: Sequence[int]) -> NearTexts:
    """(place, errors) of the sorted texts nearest to each beginning of a text, by its size; none to one of them."""
    length = [size + sum(_unspaced(sign) for sign in text[:size]) for size in sizes]
    errors = [
        max((e for e in range(1, most + 1) if own >= SHORTEST[e]), default=0)
        for own, most in zip(length, typos, strict=True)
    ]
    return _search(text, sizes, errors, strings)


def _nearest(stretch: str, strings: Strings, typos: int) -> list[tuple[int, int]]:
    return _search(stretch, [len(stretch)], [typos], strings).get(len(stretch), [])


def _search(
    text: str, sizes: Sequence[int], errors: Sequence[int], strings: Strings
) -> dict[int, list[tuple[int, int]]]:
    codes = np.array([ord(sign) for sign in text[:LONGEST]], dtype=np.int64)
    results: dict[int, list[tuple[int, int]]] = {}
    exact: set[int] = set()
    for most in (1, 2):
        wanted = [
            (size, most)
            for size, size_errors in zip(sizes, errors, strict=True)
            if size_errors >= most and size <= LONGEST and size not in exact and size not in results
        ]
        if not wanted:
            continue
        from kgqa_core.linking.kernels import near  # with numba

        low, high = 0, len(strings)
        if most > 1:
            low, high = strings.beginning_with(text[0])
        ends, allowed = (np.array(column, dtype=np.int64) for column in zip(*wanted, strict=True))
        rows = near(strings.blob, strings.offsets, low, high, codes, ends, allowed, MOST_READ)
        for end, name, distance in rows.tolist():
            if distance:
                results.setdefault(end, []).append((name, distance))
            else:
                exact.add(end)
    for end, matches in results.items():
        least = min(distance for _, distance in matches)
        results[end] = [] if end in exact else [pair for pair in matches if pair[1] == least]
    return results


def _known_enough(name: int, usual: bool, mentions: MentionDictionary) -> bool:
    """Whether a name may be meant by words typed wrongly: a part of names only with some facts, by usual words many."""
    least = MANY if usual else SOME if mentions.flags[name] & PARTIAL else 0
    return mentions.degree(int(mentions.entities[int(mentions.rows[name])])) >= least


def _slip(stretch: str, name: str) -> bool:
    """Whether a short stretch differs from a name by a letter left out, doubled or swapped only, not the first."""
    return stretch[0] == name[0] and (len(name) >= SHORT or set(name) == set(stretch))


def _inside(folded: Folded, covered: Sequence[tuple[int, int]]) -> list[int]:
    """The covered place that each atom lies in, or -1."""
    ends = [end for _, end in covered]
    results = []
    for first, last in zip(folded.first.tolist(), folded.last.tolist(), strict=True):
        index = bisect_right(ends, first)
        results.append(index if index < len(ends) and last > covered[index][0] else -1)
    return results


def _cuts(inside: Sequence[int], first: int, last: int) -> bool:
    """Whether a stretch of atoms holds a part of a covered place only."""
    left = inside[first] >= 0 and first > 0 and inside[first - 1] == inside[first]
    right = inside[last] >= 0 and last + 1 < len(inside) and inside[last + 1] == inside[last]
    return left or right


def _content(atom: str, mentions: MentionDictionary) -> bool:
    if _unspaced(atom):
        return atom not in FUNCTION_WORDS
    return atom not in FUNCTION_WORDS and len(atom) >= SHORT and mentions.words.find(atom) < 0


def is_unknown(atom: str, mentions: MentionDictionary) -> bool:
    """Whether a word is neither known nor a form of a known one; no character of an unspaced script is."""
    if (
        _unspaced(atom)
        or atom in FUNCTION_WORDS
        or usualness(atom)
        or mentions.words.find(atom) >= 0
        or atom.isnumeric()
    ):
        return False
    for ending in _ENDINGS:
        stem = atom.removesuffix(ending)
        if stem != atom and len(stem) >= 3 and any(_known(form, mentions) for form in (stem, stem + "e", stem[:-1])):
            return False
    return True


def _known(word: str, mentions: MentionDictionary) -> bool:
    return len(word) >= 3 and (usualness(word) > FREQUENT or mentions.words.find(word) >= 0)


def _unspaced(text: str) -> bool:
    return is_unspaced(text[0])
