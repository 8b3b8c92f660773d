"""Passages: pieces of so many words that never cross documents (Karpukhin et al. 2020; KILT).

A word is what stands between blanks.  Scripts without blanks (Han, kana, Thai, Lao, Burmese, Khmer) are counted by
characters, two to a word, for a Chinese word has one or two; signs that close or open a phrase and marks on a letter
stay with their character.
"""

from __future__ import annotations

import re

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Characters of scripts without blanks between words, as the inside of a class of a regular expression."""
LONGEST_WORD = 100
"""Characters; what is longer is no word and is cut."""

_MARKS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3\u3099\u309a"
    "\ufe00-\ufe0f"
)
_OPEN, _CLOSE = "「『（【《〈〔“‘(", "、。，．！？；：」』）】》〉〕”’…—,.!?;:)"
_UNIT = re.compile(
    rf"[{re.escape(_OPEN)}]*(?P<unspaced>[{UNSPACED}])[{_MARKS}{re.escape(_CLOSE)}]*|[^\s{UNSPACED}]{{1,{LONGEST_WORD}}}"
)


def chunk(text: str, words: int) -> list[str]:
    """The passages of a text in one line, `words` words each but for the last.

    >>> chunk("one two three four five", 2)
    ['one two', 'three four', 'five']
    >>> chunk("北京是中国的首都。它很大。", 3)
    ['北京是中国的', '首都。它很大。']
    """
    found: list[str] = []
    begin = end = room = 0
    for unit in _UNIT.finditer(text):
        weight = 1 if unit["unspaced"] else 2
        if room < weight:
            if end > begin:
                found.append(text[begin:end])
            begin, room = unit.start(), 2 * words
        end, room = unit.end(), room - weight
    if end > begin:
        found.append(text[begin:end])
    return found
