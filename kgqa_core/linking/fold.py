"""Names and texts as the mention dictionary compares them: in one case, width and accent, without punctuation.

A text is a row of atoms.  An atom is a word, or one character of a script that is written without spaces (Han, kana,
Thai, Lao, Khmer, Burmese), so that names can be found in Chinese text.  The folded text joins its atoms, with a space
between two words and nothing beside a character of an unspaced script; a name is a slice of it.

* Compatibility forms are resolved (NFKC), case is folded, accents of Latin, Greek and Cyrillic letters and the vowel
  points of Hebrew and Arabic are removed; vowel signs of Indic scripts and voicing marks of kana stay.
* Punctuation parts words: `Guinea-Bissau` is `guinea bissau`, `O'Brien` is `o brien` (and also `obrien`, see `keys`).
* Initials become one word: `J. K. Rowling` and `JK Rowling` are `jk rowling`, `U.S.` is `us`.
* `&` is `and`; `+` and `#` belong to the word before them (`C++`).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

WORD, SIGN, GAP = 0, 1, 2
"""Kinds of characters: of a word, an atom of its own, between atoms."""

_UNSPACED = re.compile(
    "[\u0e00-\u0e4f\u0e80-\u0edf\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u2e80-\u2fdf\u3005-\u3007\u3040-\u30fa"
    "\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]"
)
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0655\u0670"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u200b-\u200d\ufe00-\ufe0f]"
)
_LETTERS = str.maketrans(
    {"ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ı": "i", "ŧ": "t", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ə": "e"}
)
_ASCII_GAPS = str.maketrans(
    {chr(code): " " for code in range(128) if not chr(code).isalnum() and chr(code) not in "+#&"}
)
_PLAIN = re.compile(r"[A-Za-z0-9 \-,:;!?()/\"_]*")
_INITIAL = re.compile(r"[.．](\s\w[.．]|\w.?)", re.DOTALL)
_APOSTROPHES = re.compile(r"(?<=\w)['’‘ʼ`´](?=\w)")
_BRACKET = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_ARTICLE = re.compile(r"the\s+(?=\w)", re.IGNORECASE)

LONGEST = 200
"""Most characters of a name; longer ones are sentences and are dropped."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A text folded.

    data: UTF-8 of the folded text.  begin, end: int32 [atoms], where each atom lies in data, the space before it
    left out.  first, last: int32 [atoms], the stretch of the original text that each atom stands for.
    """

    data: NDArray[np.uint8]
    begin: NDArray[np.int32]
    end: NDArray[np.int32]
    first: NDArray[np.int32]
    last: NDArray[np.int32]

    def atoms(self) -> list[str]:
        """Each atom."""
        return [self.slice(index, index) for index in range(len(self.begin))]

    def slice(self, first: int, last: int) -> str:
        """The folded text from one atom to another, both included."""
        return bytes(self.data[self.begin[first] : self.end[last]]).decode("utf-8", "surrogatepass")


def fold(name: str) -> str:
    """The folded form of a name; empty when it is nothing but punctuation.

    >>> fold("Ｓão  Tomé & Príncipe"), fold("O'Brien"), fold("第19届 亚运会"), fold("J. K. Rowling")
    ('sao tome and principe', 'o brien', '第19届亚运会', 'jk rowling')
    """
    if _PLAIN.fullmatch(name):
        return " ".join(name.lower().translate(_ASCII_GAPS).split())
    return _joined([(text, kind) for text, kind, _, _ in _atoms(name)])


def keys(name: str) -> list[tuple[str, bool]]:
    """(folded form, whether it is the whole name) of everything that a name is found by, without repetition.

    A name with an apostrophe is found without it too, one in brackets at its end without them, one that begins with
    `the` without it.
    """
    whole = fold(name[:LONGEST]) if len(name) <= LONGEST else ""
    if not whole:
        return []
    results = {whole: True}
    bare = _BRACKET.sub("", name) if name[-1] in ")）" else name
    if bare != name and (key := fold(bare)):
        results.setdefault(key, False)
    if _APOSTROPHES.search(name) and (key := fold(_APOSTROPHES.sub("", name))):
        results.setdefault(key, False)
    if (article := _ARTICLE.match(bare)) and (key := fold(bare[article.end() :])):
        results.setdefault(key, False)
    return list(results.items())


def fold_text(text: str) -> Folded:
    """A text folded, with the position of each atom in it."""
    atoms = _atoms(text)
    parts: list[bytes] = []
    begin, end, index, before = [], [], 0, SIGN
    for folded, kind, _, _ in atoms:
        if kind == WORD and before == WORD:
            parts.append(b" ")
            index += 1
        data = folded.encode("utf-8", "surrogatepass")
        begin.append(index)
        index += len(data)
        end.append(index)
        parts.append(data)
        before = kind
    return Folded(
        np.frombuffer(b"".join(parts), dtype=np.uint8),
        np.array(begin, dtype=np.int32),
        np.array(end, dtype=np.int32),
        np.array([first for _, _, first, _ in atoms], dtype=np.int32),
        np.array([last for _, _, _, last in atoms], dtype=np.int32),
    )


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is written without spaces between words."""
    return character > "\u0dff" and _UNSPACED.match(character) is not None


def _joined(atoms: list[tuple[str, int]]) -> str:
    parts, before = [], SIGN
    for text, kind in atoms:
        parts.append(" " + text if kind == WORD and before == WORD else text)
        before = kind
    return "".join(parts)


def _atoms(text: str) -> list[tuple[str, int, int, int]]:
    """(folded atom, kind, start, stop) of a text, in order."""
    results: list[tuple[str, int, int, int]] = []
    word: list[str] = []
    start = stop = 0
    index, length = 0, len(text)
    while index < length:
        after = index + 1
        while after < length and _clings(text[after]):
            after += 1
        folded, kind = _character(text[index:after])
        if kind == WORD:
            if folded in ("+", "#") and not word:
                kind = GAP
            elif folded == "&":
                kind = GAP
                if word:
                    results.append(("".join(word), WORD, start, stop))
                    word = []
                results.append(("and", WORD, index, after))
        if kind == WORD:
            if not word:
                start = index
            word.append(folded)
            stop = after
        else:
            if word and folded:
                results.append(("".join(word), WORD, start, stop))
                word = []
            if kind == SIGN:
                results.append((folded, SIGN, index, after))
        index = after
    if word:
        results.append(("".join(word), WORD, start, stop))
    return _initials(results, text) if "." in text or "．" in text else results


def _initials(atoms: list[tuple[str, int, int, int]], text: str) -> list[tuple[str, int, int, int]]:
    """Letters that are parted by full stops, as one word."""
    results: list[tuple[str, int, int, int]] = []
    run = False
    for atom in atoms:
        folded, kind, first, last = atom
        single = kind == WORD and len(folded) == 1 and folded.isalpha()
        if single and run and _INITIAL.fullmatch(text, results[-1][3], min(last + 1, len(text))):
            results[-1] = (results[-1][0] + folded, WORD, results[-1][2], last)
        else:
            results.append(atom)
        run = single
    return results


def _clings(character: str) -> bool:
    """Whether a character belongs to the one before it: a mark, a voicing mark of kana, a vowel or final jamo."""
    if character < "\u0300":
        return False
    code = ord(character)
    return (
        unicodedata.category(character) in ("Mn", "Mc", "Me")
        or code in (0xFF9E, 0xFF9F, 0x200B, 0x200C, 0x200D)
        or 0xFE00 <= code <= 0xFE0F
        or 0x1160 <= code <= 0x11FF
    )


@lru_cache(maxsize=1 << 16)
def _character(cluster: str) -> tuple[str, int]:
    """A character with its marks, folded, and its kind; a gap is a space, or empty where it parts nothing."""
    resolved = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", cluster).casefold())
    bare = unicodedata.normalize("NFKC", _ACCENTS.sub("", resolved)).casefold().translate(_LETTERS)
    bare = "".join(sign for sign in bare if not sign.isspace() and unicodedata.category(sign) != "Cf")
    if not bare:
        invisible = all(unicodedata.category(sign) in ("Mn", "Me", "Cf") for sign in cluster)
        return ("" if invisible else " "), GAP
    if bare in ("&", "+", "#"):
        return bare, WORD
    head = bare[0]
    if is_unspaced(head):
        return bare, SIGN
    letters = "".join(sign for sign in bare if unicodedata.category(sign)[0] in "LNM")
    if letters:  # `㈠` resolves to `(一)`
        return letters, SIGN if is_unspaced(letters[0]) else WORD
    if unicodedata.category(head) in ("So", "Co") and head > "\u2000":
        return bare, SIGN
    return " ", GAP
