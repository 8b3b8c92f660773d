"""Words of a text with their places, folded so that two spellings of one name are the same words.

Case, accents, apostrophes, the stops of initials and a plural `s` make no difference; each Chinese or Japanese
character is a word; a number is a word by its value (`1,234.0` is `1234`).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from kgqa_core.metrics.normalise import is_cjk

ARTICLES = frozenset({"the", "a", "an"})

_PIECE = re.compile(
    r"(?P<initials>(?<![^\W_])(?:[A-ZÀ-ÞĀ-Ž]\.(?:\s?[A-ZÀ-ÞĀ-Ž]\.)+|[A-ZÀ-ÞĀ-Ž](?:\.[A-ZÀ-ÞĀ-Ž])+(?![^\W_])\.?))"
    r"|(?P<number>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"|(?P<word>[^\W\d_][^\W\d_\u0300-\u036f]*[\u0300-\u036f]*(?:[^\W\d_\u0300-\u036f]|[\u0300-\u036f])*"
    r"(?:['’ʼ`](?:[^\W\d_]|[\u0300-\u036f])+)*)"
    r"|(?P<and>&)"
)
_POSSESSIVE = re.compile(r"['’ʼ`][sS]$")
_APOSTROPHES = re.compile(r"['’ʼ`]")
_IRREGULAR = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "ı": "i"})


@dataclass(frozen=True, slots=True)
class Token:
    """A word.  norm: folded; start, end: its characters in the text; kind: `word`, `cjk`, `number` or `initials`."""

    norm: str
    start: int
    end: int
    kind: str


@lru_cache(maxsize=32768)
def fold(word: str) -> str:
    """A word without case, accents and compatibility forms.

    >>> fold("Málaga"), fold("Ａ"), fold("Øre")
    ('malaga', 'a', 'ore')
    """
    plain = unicodedata.normalize("NFKD", word)
    plain = "".join(each for each in plain if not unicodedata.combining(each)).casefold()
    return unicodedata.normalize("NFC", plain.translate(_IRREGULAR))


def stem(word: str) -> str:
    """A folded word without its plural ending; `bus` and `glass` stay.

    >>> stem("comedies"), stem("films"), stem("class")
    ('comedy', 'film', 'class')
    """
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss") and word.isascii():
        return word[:-1]
    return word


def number_norm(digits: str) -> str:
    """A number by its value.

    >>> number_norm("1,234.50"), number_norm("007")
    ('1234.5', '7')
    """
    plain = unicodedata.normalize("NFKC", digits).replace(",", "")
    whole, _, fraction = plain.partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + ("." + fraction if fraction else "")


@lru_cache(maxsize=8192)
def tokenise(text: str) -> tuple[Token, ...]:
    """The words of a text in order."""
    found: list[Token] = []
    for match in _PIECE.finditer(text):
        kind, piece, start = str(match.lastgroup), match.group(), match.start()
        if kind == "number":
            found.append(Token(number_norm(piece), start, match.end(), kind))
        elif kind == "initials":
            letters = re.sub(r"[\s.]", "", piece)
            found.append(Token(fold(letters), start, match.end(), kind))
        elif kind == "and":
            found.append(Token("and", start, match.end(), "word"))
        else:
            _words(piece, start, found)
    return tuple(found)


@lru_cache(maxsize=32768)
def norms(text: str) -> tuple[str, ...]:
    """The folded words of a text.

    >>> norms("J. R. R. Tolkien's 1,000 films"), norms("马丁")
    (('jrr', 'tolkien', '1000', 'film'), ('马', '丁'))
    """
    return tuple(token.norm for token in tokenise(text))


def _words(piece: str, start: int, found: list[Token]) -> None:
    run = 0
    for place, character in enumerate(piece):
        if is_cjk(character):
            if place > run:
                found.append(_word(piece[run:place], start + run))
            found.append(Token(fold(character), start + place, start + place + 1, "cjk"))
            run = place + 1
    if run < len(piece):
        found.append(_word(piece[run:], start + run))


def _word(word: str, start: int) -> Token:
    bare = _POSSESSIVE.sub("", word)
    return Token(stem(fold(_APOSTROPHES.sub("", bare or word))), start, start + len(word), "word")
