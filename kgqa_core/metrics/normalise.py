"""Text as the metrics compare it (Sen et al. 2023: lower-cased, without punctuation, articles and extra white space).

What the paper's sentence leaves open is settled here, for names of every language:

* Unicode is brought to NFKC first, so that `Ａ` is `a` and a decomposed `é` is a composed one.
* Apostrophes and full stops vanish (`O'Brien` is `OBrien`, `U.S.` is `US`); other punctuation (Unicode category P,
  currency signs and ASCII symbols) becomes a space (`Guinea-Bissau` is `Guinea Bissau`), and so does a full stop
  after a digit (`1.Paris`).
* A decimal point, a sign and thousands separators belong to their number: `1,234`, `1234` and `1234.0` are one token,
  `3.14` is not `314`, and `-5` is not `5`.
* Articles are the English `a`, `an`, `the`, where they stand as words of their own.
* Writing without spaces has no token boundaries: each Chinese or Japanese character is a token (Korean has spaces).
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal, InvalidOperation
from functools import lru_cache

ARTICLES = frozenset({"a", "an", "the"})

_VANISH = str.maketrans("", "", "'’‘ʼ`´")
_CJK_RANGES = (
    (0x2E80, 0x2FDF),  # radicals
    (0x3005, 0x3007),  # iteration mark, zero
    (0x3040, 0x30FF),  # kana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)
_CJK = "".join(f"{chr(low)}-{chr(high)}" for low, high in _CJK_RANGES)
_NUMBER = re.compile(
    rf"(?:(?<![\w.])|(?<=[{_CJK}]))"  # not inside a word
    r"(?P<sign>(?<![\w)])[-−+])?"  # a sign, unless it joins two words or numbers
    r"(?P<digits>\d{1,3}(?:,\d{2,3})*,\d{3}|\d+|(?=\.\d))(?P<fraction>\.\d+)?(?P<exponent>e[+-]?\d{1,3})?(?![\d])",
    re.IGNORECASE,
)
_LIST_POINT = re.compile(r"(?<=\d)\.")
_TOKEN = re.compile(r"\S+")
_WORD = re.compile(rf"[{_CJK}]|[^\s{_CJK}]+")
# Private-use characters hold a number's sign and point while punctuation is removed.
_POINT, _MINUS = "\ue000", "\ue001"


def is_cjk(character: str) -> bool:
    """Whether a character belongs to a writing system without spaces between words."""
    code = ord(character)
    return code >= 0x2E80 and any(low <= code <= high for low, high in _CJK_RANGES)


def count_words(text: str) -> int:
    """Length of a text in words; each Chinese or Japanese character is one.

    >>> count_words("(Paris, capital of, France)"), count_words("导演 Zhang Yimou")
    (4, 4)
    """
    return len(_WORD.findall(text))


@lru_cache(maxsize=65536)
def tokens(text: str) -> tuple[str, ...]:
    """Normalised tokens of a text; empty when nothing but punctuation and articles is left.

    >>> tokens("The U.S. has 1,234.0 states!")
    ('us', 'has', '1234', 'states')
    """
    text = unicodedata.normalize("NFKC", text).lower()
    text = text.translate(_VANISH).replace(_POINT, " ").replace(_MINUS, " ")
    text = _NUMBER.sub(_canonical_number, text)
    text = _LIST_POINT.sub(" ", text)
    text = "".join(map(_replace, text))
    text = text.replace(_POINT, ".").replace(_MINUS, "-")
    results: list[str] = []
    for word in _TOKEN.findall(text):
        if word not in ARTICLES:
            results += [word] if word.isascii() else _WORD.findall(word)
    return tuple(results)


def normalise(text: str) -> str:
    """The tokens of a text as one string, with a space between two unless one of them is CJK.

    Because the joint depends only on the two neighbours, a run of tokens is always a substring of the whole.

    >>> normalise("Guinea-Bissau"), normalise("马丁·路德")
    ('guinea bissau', '马丁路德')
    """
    return join(tokens(text))


def join(words: tuple[str, ...]) -> str:
    """Tokens as one string, with a space between two unless one is CJK; a negative number always stands apart."""
    parts: list[str] = []
    for word in words:
        if parts and (word[0] == "-" or not (is_cjk(parts[-1][-1]) or is_cjk(word[0]))):
            parts.append(" ")
        parts.append(word)
    return "".join(parts)


def _canonical_number(match: re.Match[str]) -> str:
    digits = match["digits"].replace(",", "") or "0"
    sign = "-" if match["sign"] in ("-", "−") else ""
    text = digits + (match["fraction"] or "") + (match["exponent"] or "")
    if match["fraction"] or match["exponent"]:
        try:
            value = Decimal(text)
            if abs(value.adjusted()) <= 40:
                text = format(value.normalize(), "f")
        except InvalidOperation:
            pass
    if sign and not text.strip("0."):
        sign = ""
    return sign.replace("-", _MINUS) + text.replace(".", _POINT)


def _replace(character: str) -> str:
    if character == ".":
        return ""
    category = unicodedata.category(character)
    if category[0] == "P" or category == "Sc" or (category[0] == "S" and character < "\x80"):
        return " "
    if category in ("Cc", "Cf"):
        return " " if character.isspace() else ""
    return character
