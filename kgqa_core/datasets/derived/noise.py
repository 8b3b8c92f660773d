"""The way people type, applied to a question's text: seeded changes that compose.

Each change is a small function `(text as pieces, rng) → pieces`.  A piece is a stretch of text that is a mention of an
entity or is not; only changes whose kind says so touch mentions (case, typing errors, apostrophes), so that the entity
stays nameable.  `KINDS` lists them in the order in which they are applied; `Noise` draws which are made.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from kgqa_core.config.generated_questions import NoiseOptions
from kgqa_core.datasets.derived import noise_words as lists
from kgqa_core.datasets.derived.thesaurus import Thesaurus, thesaurus


class TextPiece(NamedTuple):
    """A stretch of text; mention: whether it names an entity."""

    text: str
    mention: bool = False


Pieces = tuple[TextPiece, ...]
Change = Callable[[Pieces, random.Random], Pieces]


class Noise:
    """Changes to texts, drawn with a seed: the same seed, text and key give the same result."""

    def __init__(self, options: NoiseOptions, seed: int) -> None:
        self.options, self.seed = options, seed

    def apply(self, text: str, mentions: Iterable[str], key: str = "") -> str:
        """The text as somebody might have typed it; mentions: names of entities as they stand in it.

        key: tells equal texts apart that are to be changed in different ways.
        """
        rng = random.Random(f"noise/{self.seed}/{key}/{text}")
        if rng.random() >= self.options.share:
            return text
        changed = pieces(text, mentions)
        for name, change in KINDS.items():
            if rng.random() < getattr(self.options, name):
                changed = _whole(change(changed, rng), changed)
        if rng.random() < self.options.typing_errors:
            changed = _whole(typing_errors(changed, rng, self.options.word_errors), changed)
        return joined(changed)


def pieces(text: str, mentions: Iterable[str]) -> Pieces:
    """The text cut at its mentions; a longer name wins over one that it contains."""
    names = sorted({name for name in mentions if name}, key=lambda name: (-len(name), name))
    if not names:
        return (TextPiece(text),)
    parts = re.split("(" + "|".join(map(re.escape, names)) + ")", text)
    return tuple(TextPiece(part, index % 2 == 1) for index, part in enumerate(parts) if part)


def joined(parts: Pieces) -> str:
    """The text of pieces."""
    return "".join(part.text for part in parts)


def lower_case(parts: Pieces, rng: random.Random) -> Pieces:
    """All in lower case, mentions too."""
    return tuple(part._replace(text=part.text.lower()) for part in parts)


def punctuation(parts: Pieces, rng: random.Random) -> Pieces:
    """The mark at the end left out, or doubled now and then."""
    last = parts[-1]
    bare = last.text.rstrip(" ?!.") if not last.mention else last.text
    return (*parts[:-1], last._replace(text=bare + ("??" if rng.random() < 0.05 else "")))


def apostrophes(parts: Pieces, rng: random.Random) -> Pieces:
    """Apostrophes left out."""
    return tuple(part._replace(text=re.sub("['\u2019](?=s\\b|re\\b|m\\b|t\\b)", "", part.text)) for part in parts)


def articles(parts: Pieces, rng: random.Random) -> Pieces:
    """Articles left out."""
    return _outside(parts, lambda text: re.sub(r"\b(?:the|an?) ", "", text, flags=re.IGNORECASE))


def contractions(parts: Pieces, rng: random.Random) -> Pieces:
    """`what is` as `what's`."""
    return _outside(parts, lambda text: _CONTRACTED.sub(lambda match: f"{match[1]}'{match[2][-1]}", text))


def question_words(parts: Pieces, rng: random.Random) -> Pieces:
    """Leading question words left out, and the article after them half of the time."""
    if parts[0].mention:
        return parts
    lead = _LEAD.match(parts[0].text)
    if lead is None:
        return parts
    rest = parts[0].text[lead.end() :]
    if rng.random() < 0.5:
        rest = re.sub(r"^(?:the|an?) ", "", rest)
    return _end_mark((TextPiece(rest), *parts[1:]))


def imperative(parts: Pieces, rng: random.Random) -> Pieces:
    """`what are the …` as `list the …`."""
    if parts[0].mention:
        return parts
    lead = _LEAD.match(parts[0].text)
    if lead is None or not parts[0].text[lead.end() :].startswith("the "):
        return parts
    return _end_mark((TextPiece(f"{rng.choice(lists.IMPERATIVES)} {parts[0].text[lead.end() :]}"), *parts[1:]))


def telegraphic(parts: Pieces, rng: random.Random) -> Pieces:
    """`capital of X` as `capital X` or `X capital`, where that is the whole text."""
    if len(parts) < 2 or parts[0].mention or not parts[1].mention:
        return parts
    rest = joined(parts[2:]).strip(" ?!.")
    lead = _LEAD.sub("", parts[0].text)
    noun = re.fullmatch(r"(?:the )?(\S+(?: \S+){0,3}) (?:of|in|for) ", lead)
    if noun is None or rest:
        return parts
    return (TextPiece(noun[1] + " "), parts[1]) if rng.random() < 0.5 else (parts[1], TextPiece(" " + noun[1]))


def keywords(parts: Pieces, rng: random.Random) -> Pieces:
    """Function words left out."""

    def without_function_words(text: str) -> str:
        words = re.findall(r"\S+|\s+", text)
        return "".join(word for word in words if word.strip(" ?!.,'").casefold() not in lists.FUNCTION_WORDS)

    left = tuple(part if part.mention else part._replace(text=without_function_words(part.text)) for part in parts)
    if not any(re.search(r"\w", part.text) for part in left if not part.mention):
        return parts
    return _end_mark(left)


def numerals(parts: Pieces, rng: random.Random) -> Pieces:
    """`second` as `2nd` and `two` as `2`, and back."""
    return _outside(parts, lambda text: _NUMERAL.sub(lambda match: lists.NUMERALS[match[0].casefold()], text))


def abbreviations(parts: Pieces, rng: random.Random) -> Pieces:
    """Common short forms of words."""
    return _outside(parts, lambda text: _SHORT.sub(lambda match: lists.ABBREVIATIONS[match[0].casefold()], text))


def synonyms(parts: Pieces, rng: random.Random) -> Pieces:
    """Another word for one relation or type that the text names."""
    matches = [
        (number, match)
        for number, part in enumerate(parts)
        if not part.mention
        for match in _synonym_pattern(thesaurus()).finditer(part.text)
    ]
    if not matches:
        return parts
    number, match = rng.choice(matches)
    text, word = parts[number].text, rng.choice(_synonym_table(thesaurus())[match[0].casefold()])
    return (*parts[:number], TextPiece(text[: match.start()] + word + text[match.end() :]), *parts[number + 1 :])


def relative_clauses(parts: Pieces, rng: random.Random) -> Pieces:
    """`whose R is X` as `with R X`, `with X as R` or `that has X as its R`."""
    for index, (before, name) in enumerate(zip(parts, parts[1:], strict=False)):
        match = re.search(r"\bwhose (\w+(?: \w+){0,3}) (?:is|are) $", before.text)
        if match is None or before.mention or not name.mention:
            continue
        kept, noun = before.text[: match.start()], match[1]
        replaced = rng.choice(
            (
                (TextPiece(f"{kept}with {noun} "), name),
                (TextPiece(f"{kept}with "), name, TextPiece(f" as {noun}")),
                (TextPiece(f"{kept}that have "), name, TextPiece(f" as their {noun}")),
            )
        )
        return (*parts[:index], *replaced, *parts[index + 2 :])
    return parts


def passive(parts: Pieces, rng: random.Random) -> Pieces:
    """`who directed X` as `X was directed by whom` or `by whom was X directed`."""
    if len(parts) < 2 or parts[0].mention or joined(parts[2:]).strip(" ?"):
        return parts
    match = re.fullmatch(r"[Ww]ho (\w+ed) ", parts[0].text)
    if match is None:
        return parts
    if rng.random() < 0.5:
        return (parts[1], TextPiece(f" was {match[1]} by {rng.choice(('who', 'whom'))}?"))
    return (TextPiece(f"{rng.choice(('By whom', 'By who'))} was "), parts[1], TextPiece(f" {match[1]}?"))


def preambles(parts: Pieces, rng: random.Random) -> Pieces:
    """Politeness and talk before or after the question."""
    kind = rng.random()
    if kind < 0.35:
        return _after(parts, rng.choice(lists.AFTER))
    before = rng.choice(lists.BEFORE)
    first = parts[0]
    if not first.mention and re.match(r"[A-Z][a-z']*\b", first.text) and not first.text.startswith("I "):
        first = first._replace(text=first.text[0].lower() + first.text[1:])
    parts = (TextPiece(before + " "), first, *parts[1:])
    return _after(parts, rng.choice(lists.AFTER)) if kind > 0.9 else parts


def typing_errors(parts: Pieces, rng: random.Random, share: float) -> Pieces:
    """Errors of the hand in a share of the words of five letters or more; of mentions a third of that."""

    def typed(text: str, rate: float) -> str:
        return re.sub(
            r"[^\W\d_]{5,}", lambda match: _misspelt(match[0], rng) if rng.random() < rate else match[0], text
        )

    return tuple(part._replace(text=typed(part.text, share / 3 if part.mention else share)) for part in parts)


KINDS: Mapping[str, Change] = {
    "synonyms": synonyms,
    "relative_clauses": relative_clauses,
    "passive": passive,
    "imperative": imperative,
    "question_words": question_words,
    "telegraphic": telegraphic,
    "keywords": keywords,
    "contractions": contractions,
    "numerals": numerals,
    "abbreviations": abbreviations,
    "articles": articles,
    "preambles": preambles,
    "apostrophes": apostrophes,
    "punctuation": punctuation,
    "lower_case": lower_case,
}
"""Name of the rate in `NoiseOptions` → change, in the order in which they are made; typing errors come last."""

_LEAD = re.compile(
    r"(?:what|who|where|when|which)(?:'s|'re| is| are| was| were) |which (?=\w)|what (?=\w+s )|"
    r"(?:give|show|tell|find|name|list)(?: me)? (?=the )",
    re.IGNORECASE,
)
_CONTRACTED = re.compile(r"\b(what|who|where|when|how|that|there) (is)\b", re.IGNORECASE)


def _words(table: Mapping[str, str]) -> re.Pattern[str]:
    longest = sorted(table, key=lambda word: (-len(word), word))
    return re.compile(r"(?<![\w.,])(?:" + "|".join(map(re.escape, longest)) + r")(?![\w/]|[.,]\d)", re.IGNORECASE)


_NUMERAL, _SHORT = _words(lists.NUMERALS), _words(lists.ABBREVIATIONS)


@cache
def _synonym_table(book: Thesaurus) -> Mapping[str, Sequence[str]]:
    """Word → other words: nouns of relations, types in one and several, and general words."""
    table: dict[str, list[str]] = {}
    for label, entry in book.relations.items():
        if label in entry.nouns:
            table.setdefault(label, [noun for noun in entry.nouns if noun != label])
    for name, more in book.types.items():
        table.setdefault(name, list(more))
    for name, others in list(table.items()):
        table.setdefault(_several(name), [_several(other) for other in others])
    table.update({word: list(more) for word, more in book.words.items()})
    return {word: more for word, more in table.items() if more}


@cache
def _synonym_pattern(book: Thesaurus) -> re.Pattern[str]:
    return _words(dict.fromkeys(_synonym_table(book), ""))


def _several(noun: str) -> str:
    """The plural of a noun that the thesaurus has: `cities`, `places of birth`."""
    first, of, rest = noun.partition(" of ")
    if first.endswith(("s", "people")):
        return noun
    if first.endswith(("person", "child")):
        return re.sub("person$", "people", re.sub("child$", "children", first)) + of + rest
    if re.search(r"[^aeiou]y$", first):
        return f"{first[:-1]}ies{of}{rest}"
    return f"{first}{'es' if first.endswith(('x', 'z', 'ch', 'sh')) else 's'}{of}{rest}"


def _misspelt(word: str, rng: random.Random) -> str:
    """A word with one error of the hand: a neighbouring key, two letters swapped, one dropped or one doubled."""
    index = rng.randrange(1, len(word) - 1)
    kind = rng.choice(("near", "swap", "drop", "double"))
    if kind == "swap":
        return word[:index] + word[index + 1] + word[index] + word[index + 2 :]
    if kind == "drop":
        return word[:index] + word[index + 1 :]
    if kind == "double":
        return word[: index + 1] + word[index:]
    near = lists.NEAR_KEYS.get(word[index].lower())
    return word if near is None else word[:index] + rng.choice(near) + word[index + 1 :]


def _outside(parts: Pieces, change: Callable[[str], str]) -> Pieces:
    return tuple(part if part.mention else part._replace(text=change(part.text)) for part in parts)


def _after(parts: Pieces, words: str) -> Pieces:
    return (*_end_mark(parts), TextPiece(words))


def _end_mark(parts: Pieces) -> Pieces:
    """Without the mark at the end."""
    if parts[-1].mention:
        return parts
    return (*parts[:-1], parts[-1]._replace(text=parts[-1].text.rstrip(" ?!.")))


def _whole(parts: Pieces, before: Pieces) -> Pieces:
    """Pieces with single spaces and without those that are empty; as before, where no word is left."""
    results = [part._replace(text=re.sub(r"  +", " ", part.text)) for part in parts if part.text]
    if not results or not re.search(r"\w", joined(tuple(results))):
        return before
    results[0] = results[0]._replace(text=results[0].text.lstrip())
    results[-1] = results[-1]._replace(text=results[-1].text.rstrip())
    return tuple(part for part in results if part.text) or before
