"""Where the sentences of a text end, in English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from kgqa_core.rewriting.align_tokens import fold
from kgqa_core.rewriting.align_words import NEVER_FINAL, PERHAPS_FINAL, STARTERS

_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？]+[”’」』）》\"]*|\n+")
_CLOSING = "\"'”’»)]」』）》"
_WORD_BEFORE = re.compile(r"([^\W_]+(?:\.[^\W_]+)*)$")
_GOES_ON = tuple("，、；：和与及是为的有等在")
_NEXT_WORD = re.compile(r"\s*[\"'“‘«(\[]*([^\W_]*)")


def split(text: str, protected: Sequence[tuple[int, int]] = (), starts: Collection[int] = ()) -> list[tuple[int, int]]:
    """Start and end of every sentence, without the blanks around it.

    protected: spans of names, inside which nothing ends.  starts: places at which a name begins.
    A number that a list is counted with belongs to its item.  The stop of an initial (`J. R. R. Tolkien`), of `Mr.` and
    the like never ends a sentence; that of `Inc.`, `F.C.`, or of a name's own end does only where the next word is a
    pronoun, an article or the like, or begins a name.

    >>> text = "Mr. J. R. Smith has 3.5 shares of Arsenal F.C. He sold 2. No. 5 stayed."
    >>> [text[start:end] for start, end in split(text)]
    ['Mr. J. R. Smith has 3.5 shares of Arsenal F.C.', 'He sold 2.', 'No. 5 stayed.']
    >>> [text[a:b] for text in ["他生于1997年。他来自中国！"] for a, b in split(text)]
    ['他生于1997年。', '他来自中国！']
    """
    found: list[tuple[int, int]] = []
    start = 0
    for match in _END.finditer(text):
        first, end = match.start(), match.end()
        stops = first + len(match.group().rstrip(_CLOSING))
        if any(a <= first and stops < b for a, b in protected):
            continue
        own = any(a < first < b == stops for a, b in protected)
        longer = any(a < first < b < stops for a, b in protected)
        named_before = own or longer or any(first == b for _, b in protected)
        if own and match.group()[0] in "。！？" and text[end : end + 1] in _GOES_ON:
            continue
        if match.group() == "." and text[start:first].strip().isdigit():
            continue
        if match.group()[0] in ".!?…" and not longer and not _ends(text, match, own, named_before, starts):
            continue
        _add(text, start, end, found)
        start = end
    _add(text, start, len(text), found)
    return found


def _ends(text: str, match: re.Match[str], own: bool, named_before: bool, starts: Collection[int]) -> bool:
    first, end = match.span()
    following = _NEXT_WORD.match(text, end)
    word = following[1] if following else ""
    place = following.start(1) if following else end
    if not text[end:].strip():
        return True
    begins = fold(word) in STARTERS and word[:1].isupper()
    named = place in starts
    before = _WORD_BEFORE.search(text[:first])
    last = fold(before[1]) if before else ""
    short = last.replace(".", "")
    if text[first] == ".":
        if short in NEVER_FINAL:
            return False
        if short == "no" and word[:1].isdigit():
            return False
        if len(short) == 1 and short.isalpha() and before is not None and before[1].isupper():
            return begins or (named and named_before)
        if "." in last or short in PERHAPS_FINAL:
            return begins or named
    if own:
        return begins or named
    return named or not word[:1].islower()


def _add(text: str, start: int, end: int, found: list[tuple[int, int]]) -> None:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    stripped = piece.strip()
    if not stripped:
        return
    if found and not any(character.isalnum() for character in stripped):
        found[-1] = (found[-1][0], start + left + len(stripped))
        return
    found.append((start + left, start + left + len(stripped)))
