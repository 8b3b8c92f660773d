"""Words of the names of tables and columns."""

from __future__ import annotations

from kgqa_core.kg.names import word_parts

GENERAL = frozenset("data table sheet node vertex vertice entity item record row export dump file list input fact "
                    "triple edge link claim statement relation graph test train question".split())  # fmt: skip
"""Words of names of files that do not say what is in them."""
NAMES = frozenset(("name", "label", "full name", "display name"))
"""Columns whose values are names."""
_IDS = frozenset("id ids key ref fk pk uid uuid".split())
IDENTIFIERS = _IDS | frozenset(("code", "sku", "slug"))
"""Last words of columns whose values stand for a thing."""
_REFERENCES = IDENTIFIERS | frozenset(("no", "nr", "number"))
_SINGULAR = {"people": "person", "children": "child", "men": "man", "women": "woman", "series": "series",
             "news": "news", "species": "species", "movies": "movie", "cookies": "cookie"}  # fmt: skip


def split_words(name: str) -> list[str]:
    """The words of a name, in lower case but for abbreviations: `supplierID` is `supplier`, `ID`."""
    words = word_parts(name)
    shouted = name.isupper() and (len(words) > 1 or len(name) > 4)
    return [word if word.isupper() and len(word) > 1 and not shouted else word.lower() for word in words]


def lower_words(name: str) -> str:
    """The words of a name in lower case, with spaces between."""
    return " ".join(split_words(name)).lower()


def base_words(name: str, references: frozenset[str] = _REFERENCES) -> list[str]:
    """The words of a column's name in lower case, without those at its end that say that it is a key."""
    words = [word.lower() for word in split_words(name)]
    while words and words[-1] in references:
        words.pop()
    if words and words[-1].endswith("id") and len(words[-1]) > 5 and name.lower() == name:  # supplierid
        words[-1] = words[-1].removesuffix("id")
    return words


def is_reference(name: str, references: frozenset[str] = _REFERENCES) -> bool:
    """Whether a column's name ends as those of keys do."""
    return base_words(name, references) != [word.lower() for word in split_words(name)]


def is_id(name: str) -> bool:
    """Whether a column's name says that its values are ids: `supplier_id`, not `postal_code`."""
    return is_reference(name, _IDS)


def singular(words: list[str]) -> list[str]:
    """Words whose last one is in the singular."""
    last = words[-1].lower() if words else ""
    if last in _SINGULAR:
        last = _SINGULAR[last]
    elif last.endswith("ies") and len(last) > 4:
        last = last[:-3] + "y"
    elif last.endswith(("ches", "shes", "xes", "sses")):
        last = last[:-2]
    elif last.endswith("s") and not last.endswith(("ss", "us", "is")):
        last = last[:-1]
    return [*words[:-1], last] if words else words
