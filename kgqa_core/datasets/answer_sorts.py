"""What a question word wants to know, and what a noun is: a person, a place, a date or a number."""

from __future__ import annotations

import re
from functools import cache

from kgqa_core.datasets.thesaurus import thesaurus

PERSON, PLACE, DATE, NUMBER = "person", "place", "date", "number"
PERSONS = frozenset(
    "person human people man woman actor actress director writer author singer musician politician scientist player "
    "athlete artist painter poet composer producer employee student teacher founder parent child spouse".split()
)
"""Types whose members are somebody: `who` instead of `what`."""
PLACES = frozenset(
    "place city town village country state region continent location municipality district county province island "
    "building venue stadium airport".split()
)
_START = (
    r"(?:^|[,.:;!?-]|\b(?:tell me|know|say|wonder|find out|sure|remember|guess|and|so|but|hey|hi|hello|please|pls|ok|"
    r"well|then|now)\b) *"
)
_WANTED = (
    (PERSON, re.compile(rf"{_START}(?:who|whom|by whom)(?:'?s|'?re)?\b", re.IGNORECASE)),
    (DATE, re.compile(rf"{_START}(?:when|since when|(?:in |on )?(?:what|which) (?:year|date|day))\b", re.IGNORECASE)),
    (PLACE, re.compile(rf"{_START}(?:where)(?:'?s|'?re)?\b", re.IGNORECASE)),
    (PERSON, re.compile("谁|哪位")),
    (DATE, re.compile("什么时候|何时|哪年|哪一年|几时")),
    (PLACE, re.compile("哪里|哪儿|何处|什么地方")),
)
_SORTS = {"who": PERSON, "when": DATE, "where": PLACE, "how many": NUMBER}


def wanted_sort(text: str) -> str:
    """The sort of answer that a question's first question word wants; "" where it does not say.

    >>> wanted_sort("who wrote x"), wanted_sort("hey, when did x open?"), wanted_sort("films of the man who wrote x")
    ('person', 'date', '')
    """
    found = [(match.start(), sort) for sort, pattern in _WANTED if (match := pattern.search(text))]
    return min(found)[1] if found else ""


def is_person(noun: str) -> bool:
    """Whether a type's label is that of somebody."""
    return bool(PERSONS & set(noun.casefold().split()))


@cache
def sort_of_noun(noun: str) -> str:
    """The sort of thing that a noun names, "" where nothing is known.

    >>> sort_of_noun("screenwriter"), sort_of_noun("date of birth"), sort_of_noun("film")
    ('person', 'date', '')
    """
    if is_person(noun):
        return PERSON
    words = noun.casefold().split()
    if noun.casefold() in PLACES or words and words[-1] in PLACES:
        return PLACE
    if words[:2] == ["number", "of"] or noun == "number":
        return NUMBER
    return _sorts().get(noun.casefold(), "")


@cache
def _sorts() -> dict[str, str]:
    """Sorts of the nouns and labels of relations that the thesaurus tells the question word or the end of."""
    found: dict[str, str] = {}
    for entry in thesaurus().relations.values():
        sort = _SORTS.get(entry.wh, "") or (PERSON if entry.tail in PERSONS else PLACE if entry.tail in PLACES else "")
        for noun in (*entry.nouns, *entry.labels) if sort else ():
            found.setdefault(noun, sort)
    return found


@cache
def other_nouns(noun: str) -> tuple[str, ...]:
    """A noun and other words for it: those of a type, or of the relation that is called so.

    >>> other_nouns("film")[:3]
    ('film', 'movie', 'feature film')
    """
    low = noun.casefold()
    entry = thesaurus().relation(low)
    same = entry if entry is not None and (low in entry.nouns or low in entry.labels) else None
    if same is None:
        same = next((own for own in thesaurus().relations.values() if low in own.nouns), None)
    return tuple(dict.fromkeys((low, *thesaurus().type(low), *(same.nouns if same is not None else ()))))
