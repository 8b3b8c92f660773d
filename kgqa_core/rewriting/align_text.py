"""The tokens, words and sentences of a text, as they are compared with the names of triples."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
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
    results: list[Token] = []
    for match in _PIECE.finditer(text):
        kind, piece, start = str(match.lastgroup), match.group(), match.start()
        if kind == "number":
            results.append(Token(number_norm(piece), start, match.end(), kind))
        elif kind == "initials":
            letters = re.sub(r"[\s.]", "", piece)
            results.append(Token(fold(letters), start, match.end(), kind))
        elif kind == "and":
            results.append(Token("and", start, match.end(), "word"))
        else:
            _words(piece, start, results)
    return tuple(results)


@lru_cache(maxsize=32768)
def norms(text: str) -> tuple[str, ...]:
    """The folded words of a text.

    >>> norms("J. R. R. Tolkien's 1,000 films"), norms("马丁")
    (('jrr', 'tolkien', '1000', 'film'), ('马', '丁'))
    """
    return tuple(token.norm for token in tokenise(text))


def _words(piece: str, start: int, tokens: list[Token]) -> None:
    run = 0
    for index, character in enumerate(piece):
        if is_cjk(character):
            if index > run:
                tokens.append(_word(piece[run:index], start + run))
            tokens.append(Token(fold(character), start + index, start + index + 1, "cjk"))
            run = index + 1
    if run < len(piece):
        tokens.append(_word(piece[run:], start + run))


def _word(word: str, start: int) -> Token:
    bare = _POSSESSIVE.sub("", word)
    return Token(stem(fold(_APOSTROPHES.sub("", bare or word))), start, start + len(word), "word")


STARTERS = frozenset(
    "he she it they his her its their him them i we you who whom whose which what where when while why how "
    "this that these those the a an one two three some many several most all both each every any no not none other "
    "others another such in on at as for with from by to of about after before since during until among between "
    "through throughout within without under over into around across along upon despite besides like unlike and but "
    "or nor so yet if though although because however additionally also moreover furthermore finally meanwhile "
    "similarly likewise therefore thus then there here now today currently previously formerly later earlier "
    "originally overall together apart alongside including based born located situated known named called "
    "directed written starring released produced founded established played".split()
)
"""Words that begin a sentence without being names, folded."""

TITLES = frozenset(
    "mr mrs ms miss dr prof professor sir dame lord lady king queen prince princess president chancellor "
    "prime minister vice governor senator mayor general captain colonel saint st jr sr ii iii iv vi vii viii "
    "director directors actor actress actors writer writers author film films movie movies tv dvd ceo".split()
)
"""Words that may stand before or behind a name in capitals without being one."""

CALENDAR = frozenset(
    "january february march april may june july august september october november december monday tuesday "
    "wednesday thursday friday saturday sunday ad bc bce ce am pm".split()
)
"""Parts of dates; the dates themselves are compared by value."""

CONNECTORS = frozenset("of the de la le du des del della di da do dos van von der den el al bin for in on at".split())
"""Small words inside names."""

PRONOUNS = frozenset(
    "he she it they his her its their hers theirs him them himself herself itself themselves this these those both "
    "all former latter respectively also each another other others who which same there".split()
)
"""English words by which a sentence refers back to the one before it."""

CHINESE_PRONOUNS = ("他", "她", "它", "其", "该", "此", "这", "那", "并", "也", "还", "同时", "另外", "此外")
"""Chinese words by which a sentence refers back."""

NEVER_FINAL = frozenset(
    "mr mrs ms messrs dr prof gen sen rep gov capt cpt lt col sgt maj rev hon st mt ft vs eg ie cf vol fig approx "
    "mme mlle".split()
)
"""Abbreviations whose full stop never ends a sentence."""

PERHAPS_FINAL = frozenset(
    "jr sr inc ltd co corp bros etc dept est univ assn jan feb mar apr jun jul aug sep sept oct nov dec esq phd llc "
    "plc gmbh ave blvd rd".split()
)
"""Abbreviations whose full stop ends a sentence only where the next word clearly begins one."""

NATIONS = {
    "american": ("america", "united states", "usa", "us"),
    "argentine": ("argentina",),
    "british": ("britain", "united kingdom", "england", "uk", "great britain"),
    "chinese": ("china",),
    "cypriot": ("cyprus",),
    "czech": ("czechia", "czechoslovakia"),
    "dane": ("denmark",),
    "danish": ("denmark",),
    "dutch": ("netherland", "holland"),
    "emirati": ("united arab emirates",),
    "english": ("england",),
    "filipino": ("philippine",),
    "finn": ("finland",),
    "french": ("france",),
    "german": ("germany",),
    "greek": ("greece",),
    "icelandic": ("iceland",),
    "iraqi": ("iraq",),
    "irish": ("ireland",),
    "italian": ("italy",),
    "norwegian": ("norway",),
    "peruvian": ("peru",),
    "pole": ("poland",),
    "polish": ("poland",),
    "portuguese": ("portugal",),
    "scottish": ("scotland",),
    "soviet": ("soviet union", "ussr"),
    "spaniard": ("spain",),
    "spanish": ("spain",),
    "swede": ("sweden",),
    "swedish": ("sweden",),
    "swiss": ("switzerland",),
    "thai": ("thailand",),
    "turkish": ("turkey",),
    "welsh": ("wale", "wales"),
}
"""People and languages whose word shares too little with that of their country, folded and without plural."""

DEMONYM_ENDINGS = frozenset(
    ["", "n", "an", "ian", "ean", "ese", "ish", "i", "ic", "er", "ite", "is", "s", "nian", "vian", "an's", "al", "ni"]
)
"""What a nationality adds to the stem of its country."""


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
    results: list[tuple[int, int]] = []
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
        _add(text, start, end, results)
        start = end
    _add(text, start, len(text), results)
    return results


def _ends(text: str, match: re.Match[str], own: bool, named_before: bool, starts: Collection[int]) -> bool:
    first, end = match.span()
    following = _NEXT_WORD.match(text, end)
    word = following[1] if following else ""
    index = following.start(1) if following else end
    if not text[end:].strip():
        return True
    begins = fold(word) in STARTERS and word[:1].isupper()
    named = index in starts
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


def _add(text: str, start: int, end: int, spans: list[tuple[int, int]]) -> None:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    stripped = piece.strip()
    if not stripped:
        return
    if spans and not any(character.isalnum() for character in stripped):
        spans[-1] = (spans[-1][0], start + left + len(stripped))
        return
    spans.append((start + left, start + left + len(stripped)))
