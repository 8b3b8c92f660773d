"""Which names a text mentions, and which capitalised words in it belong to no name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

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
    stem,
    tokenise,
)

_BRACKET = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
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
        found: list[tuple[int, int, int, tuple[str, ...]]] = []
        for place, token in enumerate(tokens):
            for form in by_first.get(token.norm, ()):
                last = _follow(tokens, place, form)
                if last is not None:
                    found.append((-len(form), last, place, form))
        used: set[int] = set()
        mentions: list[NameMention] = []
        for _, last, place, form in sorted(found):
            places = range(place, last + 1)
            if used.isdisjoint(places):
                used.update(places)
                mentions.append(NameMention(tuple(self.forms[form]), tokens[place].start, tokens[last].end))
        for name, number in self.bare:
            place = text.find(name) if name else -1
            if place >= 0:
                mentions.append(NameMention((number,), place, place + len(name)))
        return sorted(mentions, key=lambda mention: (mention.start, mention.end))


def _follow(tokens: Sequence[Token], place: int, form: tuple[str, ...]) -> int | None:
    """Where a name that begins at a place ends; `of`, `in`, `the` may stand between its words.

    `Equinox in Scarborough` is `Equinox, Scarborough`.
    """
    for word in form[1:]:
        place += 1
        if place < len(tokens) and tokens[place].norm != word and tokens[place].norm in _BETWEEN:
            place += 1
        if place >= len(tokens) or tokens[place].norm != word:
            return None
    return place


def relation_words(relations: Iterable[str]) -> frozenset[str]:
    """Folded words of relation labels, `location.containedBy` and `in_language` taken apart."""
    found: set[str] = set()
    for relation in relations:
        found.update(norms(_CAMEL.sub(" ", re.sub(r"[_./<>-]", " ", relation))))
    return frozenset(found)


def runs(text: str, tokens: Sequence[Token], covered: Collection[int], first: int) -> list[list[Token]]:
    """Spans of capitalised words outside the covered ones, small words within a name included.

    covered: places of tokens in `tokens` that belong to mentions.  first: place of the first token of the sentence,
    whose capital means little: a common word there begins no span.
    """
    found: list[list[Token]] = []
    run: list[Token] = []
    for place, token in enumerate(tokens):
        word = text[token.start : token.end]
        usable = place not in covered and token.kind in ("word", "initials") and word != "&"
        capital = usable and word[:1].isupper() and not _common(token, word, place == first)
        joined = bool(run) and text[run[-1].end : token.start] in _JOINTS
        if run and not (joined and (capital or (usable and token.norm in CONNECTORS))):
            _close(run, found)
            run = []
        if capital or (run and usable and token.norm in CONNECTORS):
            run.append(token)
    _close(run, found)
    return found


def owner(run: Sequence[Token], lexicon: Lexicon) -> int | None:
    """The only name that has all the words of a span in one piece (a surname, `United States`), or None."""
    words = tuple(token.norm for token in run)
    owners = [
        number
        for number, name in enumerate(lexicon.words)
        if any(name[place : place + len(words)] == words for place in range(len(name) - len(words) + 1))
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
    same = 0
    while same < min(len(word), len(country)) and word[same] == country[same]:
        same += 1
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


def _close(run: list[Token], found: list[list[Token]]) -> None:
    while run and run[-1].norm in CONNECTORS:
        run.pop()
    if run:
        found.append(list(run))


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
