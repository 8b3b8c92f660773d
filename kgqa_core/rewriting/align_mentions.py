"""Dates and numbers in a text and whether one confirms another; names, and capitalised words that belong to no name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from os.path import commonprefix

from kgqa_core.kg.names import CAMEL
from kgqa_core.rewriting.align_text import (
    ARTICLES,
    CALENDAR,
    CONNECTORS,
    DEMONYM_ENDINGS,
    NATIONS,
    STARTERS,
    TITLES,
    Token,
    fold,
    norms,
    number_norm,
    stem,
    tokenise,
)

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH = "|".join(f"{month}|{month[:3]}\\.?" for month in MONTHS) + r"|sept\.?"
_ORDINAL = r"(?:st|nd|rd|th)?"
_DATES = (
    re.compile(r"(?<!\d)(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)"),
    re.compile(r"(?<!\d)(?P<y>\d{4})-(?P<m>0[1-9]|1[0-2])(?![\d-])"),
    re.compile(r"(?<!\d)(?P<y>\d{4})[/.](?P<m>\d{1,2})[/.](?P<d>\d{1,2})(?!\d)"),
    re.compile(r"(?:(?P<y>\d{4})\s*年\s*)?(?<!\d)(?P<m>\d{1,2})\s*月\s*(?P<d>\d{1,2})(?!\d)(?:\s*[日号])?"),
    re.compile(r"(?<!\d)(?P<y>\d{4})\s*年\s*(?P<m>\d{1,2})\s*月"),
    re.compile(r"(?<!\d)(?P<y>\d{4})\s*年"),
    re.compile(
        rf"\b(?P<d>\d{{1,2}}){_ORDINAL}(?:\s+of)?\s+(?P<mon>{_MONTH})(?:,?\s+(?:of\s+)?(?P<y>\d{{3,4}}))?(?![\w])", re.I
    ),
    re.compile(
        rf"\b(?P<mon>{_MONTH})\s+(?P<d>\d{{1,2}}){_ORDINAL}\b(?:,?\s+(?:of\s+)?(?P<y>\d{{4}}))?(?![\d,]\d)", re.I
    ),
    re.compile(rf"\b(?P<mon>{_MONTH}),?\s+(?:of\s+)?(?P<y>\d{{4}})\b", re.I),
)
_NUMBER = re.compile(
    r"(?P<sign>(?<![\w).\]-])[-−])?(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?P<scale>\s*(?:hundred|thousand|million|billion|trillion)\b|[百千万亿])?",
    re.IGNORECASE,
)
_SCALES = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "百": 100, "千": 1000, "万": 10**4, "亿": 10**8,
}  # fmt: skip
_DECADE = re.compile(r"\s*(?:['’]?s\b|年代)")
_HEIGHT = re.compile(r"(?<!\d)(\d)\s*(?:米|m)\s*(\d{2})(?!\d)")
WORDS = dict(
    zip(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split(),
        map(str, range(1, 17)),
        strict=True,
    )
)
"""Numbers as English words; they can state a triple, but are never called invented."""


@dataclass(frozen=True, slots=True)
class TextValue:
    """A date, as precise as the text says (absent parts are None), or a number by its value.

    start, end: its characters in the text.  decade: the year stands for its ten.
    """

    start: int
    end: int
    number: str | None = None
    year: int | None = None
    month: int | None = None
    day: int | None = None
    decade: bool = False

    @property
    def dated(self) -> bool:
        """Whether this is a date."""
        return self.number is None


@lru_cache(maxsize=16384)
def values(text: str) -> tuple[TextValue, ...]:
    """Dates and numbers of a text from left to right; a number inside a date is not listed on its own.

    >>> [(v.year, v.month, v.day) for v in values("22 January 1997, 1997年1月22日, January 22nd, 1997")]
    [(1997, 1, 22), (1997, 1, 22), (1997, 1, 22)]
    >>> [v.number for v in values("1,234 of 5.0 million")]
    ['1234', '5000000']
    """
    results: list[TextValue] = []
    used = [False] * len(text)
    for pattern in _DATES:
        for match in pattern.finditer(text):
            value = _date(match)
            if value is not None and not any(used[value.start : value.end]):
                results.append(value)
                used[value.start : value.end] = [True] * (value.end - value.start)
    for match in _HEIGHT.finditer(text):
        if not any(used[match.start() : match.end()]):
            results.append(TextValue(match.start(), match.end(), number_norm(f"{match[1]}.{match[2]}")))
            used[match.start() : match.end()] = [True] * (match.end() - match.start())
    for match in _NUMBER.finditer(text):
        if any(used[match.start() : match.end()]):
            continue
        number = number_norm(match["digits"])
        if match["scale"]:
            scaled = Decimal(number) * _SCALES[match["scale"].strip().lower()]
            number = number_norm(format(scaled, "f"))
        decade = bool(len(number) == 4 and number.endswith("0") and _DECADE.match(text, match.end()))
        if match["sign"] and number != "0":
            number = "-" + number
        results.append(TextValue(match.start(), match.end(), number, decade=decade))
    return tuple(sorted(results, key=lambda value: value.start))


def confirmed_by(stated: TextValue, known: TextValue) -> bool:
    """Whether `known` confirms `stated`: the same, or a date that is at least as precise.

    >>> confirmed_by(values("January 1997")[0], values("1997-01-22")[0])
    True
    >>> confirmed_by(values("1997-01-22")[0], values("1997")[0])
    False
    """
    if stated.decade:
        year = known.year if known.dated else _year(known)
        return year is not None and str(year)[:-1] == str(stated.number)[:-1]
    if not stated.dated and not known.dated:
        return stated.number == known.number
    if not stated.dated:
        return stated.number == str(known.year)
    parts = [
        (stated.year, known.year if known.dated else _year(known)),
        (stated.month, known.month),
        (stated.day, known.day),
    ]
    return all(own is None or own == theirs for own, theirs in parts)


def confirmed_by_any(stated: TextValue, known: Collection[TextValue]) -> bool:
    """Whether a known value confirms `stated`, or one its year and another, without a year, its month and day.

    >>> confirmed_by_any(values("2022年4月13日")[0], values("2022年度研讨会, 4月13日"))
    True
    """
    if any(confirmed_by(stated, each) for each in known):
        return True
    if stated.year is None or stated.month is None:
        return False
    days = [each for each in known if each.dated and each.year is None]
    years = [each.year if each.dated else _year(each) for each in known]
    return stated.year in years and any((each.month, each.day) == (stated.month, stated.day) for each in days)


def _year(value: TextValue) -> int | None:
    number = value.number or ""
    return int(number) if number.isdigit() and len(number) <= 4 else None


def _date(match: re.Match[str]) -> TextValue | None:
    parts = match.groupdict()
    if parts.get("mon"):
        key = parts["mon"].lower().rstrip(".")[:3]
        month: int | None = next(index + 1 for index, name in enumerate(MONTHS) if name.startswith(key))
    else:
        month = int(parts["m"]) if parts.get("m") else None
    day = int(parts["d"]) if parts.get("d") else None
    year = int(parts["y"]) if parts.get("y") else None
    if (month is not None and not 1 <= month <= 12) or (day is not None and not 1 <= day <= 31):
        return None
    return TextValue(match.start(), match.end(), None, year, month, day)


_BRACKET = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_STARTER_STEMS = STARTERS | {stem(word) for word in STARTERS}
_TITLE_STEMS = TITLES | {stem(word) for word in TITLES}
_CALENDAR_STEMS = CALENDAR | {stem(word) for word in CALENDAR}
_JOINTS = frozenset({" ", "-", "‐", "‑", ". ", ".", "'", "’", " '", " ’"})
_BETWEEN = frozenset({"of", "in", "the"})
_VERBS = frozenset("is was are were has had have be been did does do".split())


@dataclass(frozen=True, slots=True)
class NameMention:
    """A name in a text.  names: which of the known names (several when they fold to the same words)."""

    names: tuple[int, ...]
    start: int
    end: int


@dataclass(slots=True)
class Lexicon:
    """Names of a graph, ready to be found.  words: folded words of each name; relation: those of the relations."""

    names: tuple[str, ...]
    relation: frozenset[str]
    words: list[tuple[str, ...]] = field(default_factory=list)
    forms: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    bare: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        weaker: list[tuple[tuple[str, ...], int]] = []
        for number, name in enumerate(self.names):
            words = norms(name)
            self.words.append(words)
            if not words:
                self.bare.append((name.strip(), number))
                continue
            self.forms.setdefault(words, []).append(number)
            short = norms(_BRACKET.sub("", name)) or words
            for form in (short, words[1:] if words[0] in ARTICLES else words, short[short[0] in ARTICLES :]):
                if form and form != words and not (len(form) == 1 and form[0] in _STARTER_STEMS):
                    weaker.append((form, number))
        strong = set(self.forms)
        for form, number in weaker:
            owners = self.forms.setdefault(form, [])
            if form not in strong and number not in owners:
                owners.append(number)

    def mentions(self, text: str, tokens: Sequence[Token]) -> list[NameMention]:
        """Names in the text from left to right, the longest first where they overlap."""
        by_first: dict[str, list[tuple[str, ...]]] = {}
        for form in self.forms:
            by_first.setdefault(form[0], []).append(form)
        results: list[tuple[int, int, int, tuple[str, ...]]] = []
        for index, token in enumerate(tokens):
            for form in by_first.get(token.norm, ()):
                last = _follow(tokens, index, form)
                if last is not None:
                    results.append((-len(form), last, index, form))
        used: set[int] = set()
        mentions: list[NameMention] = []
        for _, last, index, form in sorted(results):
            indices = range(index, last + 1)
            if used.isdisjoint(indices):
                used.update(indices)
                mentions.append(NameMention(tuple(self.forms[form]), tokens[index].start, tokens[last].end))
        for name, number in self.bare:
            index = text.find(name) if name else -1
            if index >= 0:
                mentions.append(NameMention((number,), index, index + len(name)))
        return sorted(mentions, key=lambda mention: (mention.start, mention.end))


def _follow(tokens: Sequence[Token], index: int, form: tuple[str, ...]) -> int | None:
    """Where a name that begins at an index ends; `of`, `in`, `the` may stand between its words.

    `Equinox in Scarborough` is `Equinox, Scarborough`.
    """
    for word in form[1:]:
        index += 1
        if index < len(tokens) and tokens[index].norm != word and tokens[index].norm in _BETWEEN:
            index += 1
        if index >= len(tokens) or tokens[index].norm != word:
            return None
    return index


def relation_words(relations: Iterable[str]) -> frozenset[str]:
    """Folded words of relation labels, `location.containedBy` and `in_language` split."""
    results: set[str] = set()
    for relation in relations:
        results.update(norms(CAMEL.sub(" ", re.sub(r"[_./<>-]", " ", relation))))
    return frozenset(results)


def runs(text: str, tokens: Sequence[Token], covered: Collection[int], first: int) -> list[list[Token]]:
    """Spans of capitalised words outside the covered ones, small words within a name included.

    covered: indices of tokens in `tokens` that belong to mentions.  first: index of the first token of the sentence,
    whose capital means little: a common word there begins no span.
    """
    results: list[list[Token]] = []
    run: list[Token] = []
    for index, token in enumerate(tokens):
        word = text[token.start : token.end]
        usable = index not in covered and token.kind in ("word", "initials") and word != "&"
        capital = usable and word[:1].isupper() and not _common(token, word, index == first)
        joined = bool(run) and text[run[-1].end : token.start] in _JOINTS
        if run and not (joined and (capital or (usable and token.norm in CONNECTORS))):
            _close(run, results)
            run = []
        if capital or (run and usable and token.norm in CONNECTORS):
            run.append(token)
    _close(run, results)
    return results


def owner(run: Sequence[Token], lexicon: Lexicon) -> int | None:
    """The only name that has all the words of a span in one piece (a surname, `United States`), or None."""
    words = tuple(token.norm for token in run)
    owners = [
        number
        for number, name in enumerate(lexicon.words)
        if any(name[index : index + len(words)] == words for index in range(len(name) - len(words) + 1))
    ]
    return owners[0] if len(owners) == 1 else None


def supported(run: Sequence[Token], lexicon: Lexicon) -> bool:
    """Whether one name, the relations, a title or a nationality account for every word of a span."""
    left = [
        token
        for token in run
        if token.norm not in CONNECTORS
        and token.norm not in lexicon.relation
        and token.norm not in _TITLE_STEMS
        and token.norm not in _CALENDAR_STEMS
        and not any(demonym(token.norm, name) for name in lexicon.words)
    ]
    if not left:
        return True
    words = {token.norm for token in left}
    if any(words.issubset(name) for name in lexicon.words):
        return True
    return len(words) == 1 and any(_initials(name) == next(iter(words)) for name in lexicon.names)


def demonym(word: str, name: tuple[str, ...]) -> bool:
    """Whether a word is the nationality or language of a name, `indian` of `india`.

    >>> demonym("indian", ("india",)), demonym("french", ("france",)), demonym("spaniel", ("spain",))
    (True, True, False)
    """
    countries = NATIONS.get(word)
    if countries is not None and (" ".join(name) in countries or any(part in countries for part in name)):
        return True
    return any(
        part[:3] == word[:3] and part != word and (_derived(word, part) or _derived(part, word)) for part in name
    )


def _derived(word: str, country: str) -> bool:
    same = len(commonprefix([word, country]))
    if same < 4 and not (same == 3 and len(country) <= 4):
        return False
    lost, ending = country[same:], word[same:]
    return lost in ("", "a", "o", "y", "ia", "e", "i", "um", "us", "land") and ending in DEMONYM_ENDINGS


def _initials(name: str) -> str:
    words = [word for word in re.findall(r"[^\W\d_]+", name) if word[0].isupper()]
    return stem(fold("".join(word[0] for word in words))) if len(words) > 1 else ""


def _common(token: Token, word: str, initial: bool) -> bool:
    """Whether a capital says nothing: `I`, a month, a nameless node, or an ordinary word that begins a sentence."""
    if word in ("I", "CVT") or token.norm in _CALENDAR_STEMS:
        return True
    return initial and (fold(word) in STARTERS or token.norm in _STARTER_STEMS or word.endswith(("ly", "ing")))


def _close(run: list[Token], runs: list[list[Token]]) -> None:
    while run and run[-1].norm in CONNECTORS:
        run.pop()
    if run:
        runs.append(list(run))


def is_name_like(run: Sequence[Token], text: str, initial: bool) -> bool:
    """Whether an unsupported span can be called a name; one word at the start of a sentence only before a verb or 's.

    `Obama was born` names somebody, `Music by …` does not.
    """
    if not initial or len(run) > 1:
        return True
    token = run[0]
    if re.search(r"['’ʼ`][sS]$", text[token.start : token.end]):
        return True
    following = tokenise(text[token.end : token.end + 40])
    return bool(following) and fold(text[token.end :].split(maxsplit=1)[0]) in _VERBS
