"""Whether sentences say what their triples say: each sentence with the triples behind it and what it invents.

The alignment is by names and values, not by meaning: a sentence that joins the right names by a wrong relation, or in
the wrong direction, passes.  Nor can Chinese names without marks be spotted as invented, since nothing sets them
apart; there, numbers, dates, quoted names (《…》, “…”) and Latin letters are compared.  In languages other than English
and Chinese only numbers and dates are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from kgqa_core.kg.verbalise import is_cvt
from kgqa_core.rewriting.align_mentions import (
    WORDS,
    Lexicon,
    NameMention,
    TextValue,
    confirmed_by,
    confirmed_by_any,
    demonym,
    is_name_like,
    owner,
    relation_words,
    runs,
    supported,
    values,
)
from kgqa_core.rewriting.align_text import (
    ARTICLES,
    CHINESE_PRONOUNS,
    CONNECTORS,
    PRONOUNS,
    Token,
    norms,
    split,
    tokenise,
)

Triple = tuple[str, str, str]

_QUOTED = re.compile(r"《([^《》]+)》|“([^“”]+)”|「([^「」]+)」|『([^『』]+)』|\"([^\"]+)\"")
_LATIN = re.compile(r"[A-Za-zÀ-ž][A-Za-zÀ-ž'’.-]*(?: [A-Za-zÀ-ž][A-Za-zÀ-ž'’.-]*)*")
_UNITS = frozenset("m cm mm km kg g t s h m2 km2 c".split())
_STOPS = ".!?…。！？"
_LONG = 6
_LONG_CHINESE = 10
_LONG_SHARE = 0.75
_PAIRED = 6
_PAIRED_SHARE = 0.6
_PLACES = frozenset("省市县区州镇乡村的")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence.  triples: places of the triples that it states; invented: names and numbers that are in none."""

    text: str
    triples: tuple[int, ...] = ()
    invented: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """What a text makes of its triples.  untold: places of the triples that no sentence states."""

    sentences: tuple[Sentence, ...] = ()
    untold: tuple[int, ...] = ()

    @property
    def invented(self) -> tuple[str, ...]:
        """Names and numbers of all sentences that are in no triple, in order."""
        return tuple(each for sentence in self.sentences for each in sentence.invented)

    @property
    def faithful(self) -> bool:
        """Whether nothing is invented and nothing left out."""
        return not self.untold and not self.invented


def check(text: str, triples: Sequence[Triple], language: str = "en") -> Faithfulness:
    """Aligns a text with the triples that it was written from.

    triples: (head, relation, tail) by name; nameless nodes are called `CVT1`, `CVT2`.  language: `zh…` is Chinese.

    A name is mentioned by its words in order, whatever their case, accents, articles and punctuation, the longest
    name winning where two overlap; by a part in capitals that no other name has (a surname); by its nationality; by
    its words without those of the relation (`Spanish` for `Spanish Language` of `official_language`).  A number or a
    date is mentioned by an equal value, however written, or by a date that says more; a description of
    6 words (10 Chinese characters) or more by three quarters of its words.

    A triple is stated by a sentence that mentions head and tail.  Where a sentence refers back (a pronoun, `the film`
    at its start; in Chinese also a sentence that names no head), what the sentence before mentions or refers to
    counts too, but one end must be in the sentence itself.  A nameless end is there when another neighbour of it is.

    Invented are spans of capitalised words outside all mentions that no single name of the triples, their relations,
    titles or nationalities account for, and numbers and dates that no triple bears out.
    Each sentence's text is in Unicode form NFC.
    """
    text = unicodedata.normalize("NFC", text)
    chinese = language.partition("-")[0] == "zh"
    plain = [tuple(unicodedata.normalize("NFC", part) for part in triple) for triple in triples]
    names = tuple(dict.fromkeys(end for head, _, tail in plain for end in (head, tail) if not _nameless(end)))
    lexicon = Lexicon(names, relation_words(relation for _, relation, _ in plain))
    tokens = tokenise(text)
    mentions = lexicon.mentions(text, tokens)
    spans = split(text, _protected(text, mentions, names), {mention.start for mention in mentions})
    numbers = values(text)
    known = [value for triple in plain for part in triple for value in values(part)]

    behind_each: list[set[int]] = []
    sentences: list[Sentence] = []
    before: set[int] = set()
    ends = _ends(plain, names)
    heads = {number for first, _ in ends for number in first}
    spread = _spread(lexicon, [{token.norm for token in tokens if a <= token.start < b} for a, b in spans])
    for start, end in spans:
        inside = [token for token in tokens if start <= token.start < end]
        here = [mention for mention in mentions if start <= mention.start < end]
        stated = [value for value in numbers if start <= value.start < end]
        named = {number for mention in here for number in mention.names}
        covered = {
            index
            for index, token in enumerate(inside)
            if any(mention.start <= token.start < mention.end for mention in here)
        }
        capitals = runs(text, inside, covered, 0)
        for run in capitals:
            number = owner(run, lexicon)
            if number is not None:
                named.add(number)
        back = _refers_back(text[start:end], inside, chinese, bool(named & heads))
        words = {token.norm for token in inside}
        named |= _by_value(names, stated, words)
        named |= _nationalities([token for index, token in enumerate(inside) if index not in covered], lexicon, named)
        named |= spread[len(sentences)]
        if chinese:
            named |= _chinese_forms(lexicon, [token.norm for token in inside], named)
        carried = before if back else set()
        trimmed = _trimmed(plain, names, lexicon, words)
        behind = _stated_triples(ends, named, carried, trimmed)
        invented = _invented_numbers(text, start, stated, known, here)
        if chinese:
            invented += _invented_chinese(text[start:end], plain, lexicon)
        elif language.partition("-")[0] == "en":
            invented += [
                (run[0].start, text[run[0].start : run[-1].end])
                for run in capitals
                if not supported(run, lexicon) and is_name_like(run, text, bool(inside) and run[0] is inside[0])
            ]
        texts = tuple(dict.fromkeys(each for _, each in sorted(invented)))
        sentences.append(Sentence(text[start:end], tuple(sorted(behind)), texts))
        behind_each.append(behind)
        before = named | carried
    everything = set().union(*behind_each) if behind_each else set()
    return Faithfulness(tuple(sentences), tuple(index for index in range(len(plain)) if index not in everything))


def _nameless(name: str) -> bool:
    return not name.strip() or is_cvt(name.strip())


def _protected(text: str, mentions: Sequence[NameMention], names: Sequence[str]) -> list[tuple[int, int]]:
    """Spans of mentions, with the stops that a name itself ends in."""
    spans = []
    for mention in mentions:
        end = mention.end
        for name in (names[number].rstrip() for number in mention.names):
            own = name[len(name.rstrip(_STOPS)) :]
            core = mention.start + len(text[mention.start : mention.end].rstrip(_STOPS))
            if own and text.startswith(own, core):
                end = max(end, core + len(own))
        spans.append((mention.start, end))
    return spans


def _ends(triples: Sequence[tuple[str, ...]], names: Sequence[str]) -> list[tuple[set[int], set[int]]]:
    """For each triple the names that stand for its head and its tail; a nameless node stands for its neighbours."""
    index = {name: number for number, name in enumerate(names)}
    around: dict[str, set[int]] = {}
    for head, _, tail in triples:
        for node, other in ((head, tail), (tail, head)):
            if _nameless(node) and other in index:
                around.setdefault(node, set()).add(index[other])
    results = []
    for head, _, tail in triples:
        first, second = ({index[end]} if end in index else set(around.get(end, ())) for end in (head, tail))
        if _nameless(head):
            first = first - second or second
        elif _nameless(tail):
            second = second - first or first
        results.append((first, second))
    return results


def _refers_back(sentence: str, tokens: Sequence[Token], chinese: bool, head_named: bool) -> bool:
    if chinese:
        return not head_named or any(word in sentence for word in CHINESE_PRONOUNS)
    words = [sentence_word.norm for sentence_word in tokens]
    if any(word in PRONOUNS or word + "s" in PRONOUNS for word in words):
        return True
    return bool(re.match(r"[\"'“]?The [a-z]", sentence))


def _by_value(names: Sequence[str], stated: Sequence[TextValue], words: set[str]) -> set[int]:
    """Names that are a date or a number, with a unit or a word or two at most, and whose value is stated."""
    results = set()
    for number, name in enumerate(names):
        known = values(name)
        if len(known) != 1:
            continue
        rest = norms(name[: known[0].start] + " " + name[known[0].end :])
        if sum(map(len, rest)) > 12 or len(rest) > 3:
            continue
        in_words = not rest and any(WORDS[word] == known[0].number for word in words if word in WORDS)
        if in_words or any(confirmed_by(known[0], value) for value in stated):
            results.add(number)
    return results


def _nationalities(tokens: Sequence[Token], lexicon: Lexicon, named: set[int]) -> set[int]:
    words = [token.norm for token in tokens if token.kind == "word"]
    return {
        number
        for number, name in enumerate(lexicon.words)
        if number not in named and len(name) <= 3 and any(demonym(word, name) for word in words)
    }


def _spread(lexicon: Lexicon, sentences: Sequence[set[str]]) -> list[set[int]]:
    """Descriptions that the text gives in other words, each at the sentence that has the most of them."""
    everything = set().union(*sentences) if sentences else set()
    results: list[set[int]] = [set() for _ in sentences]
    for number, name in enumerate(lexicon.words):
        chinese = sum(1 for word in name if len(word) == 1 and not word.isascii())
        if len(name) < (_LONG_CHINESE if chinese else _LONG):
            continue
        content = {word for word in name if word not in ARTICLES and word not in CONNECTORS}
        if content and len(content & everything) >= _LONG_SHARE * len(content):
            shares = [len(content & words) for words in sentences]
            results[shares.index(max(shares))].add(number)
    return results


def _chinese_forms(lexicon: Lexicon, words: Sequence[str], named: set[int]) -> set[int]:
    """Chinese names in a sentence that puts or leaves a word inside them: `山东青岛` for `山东省青岛市`."""
    results = set()
    bare = "".join(word for word in words if word not in _PLACES)
    pairs = set(pairwise(words))
    for number, name in enumerate(lexicon.words):
        if number in named or not name or all(word.isascii() for word in name):
            continue
        short = "".join(word for word in name if word not in _PLACES)
        shared = len(pairs.intersection(pairwise(name)))
        if any(word.isdigit() and word not in words for word in name):
            continue
        if (
            (len(short) >= 3 and short in bare)
            or (_PAIRED <= len(name) < _LONG_CHINESE and shared >= _PAIRED_SHARE * (len(name) - 1))
            or (name in (("男",), ("女",)) and name[0] in words)
        ):
            results.add(number)
    return results


def _trimmed(
    triples: Sequence[tuple[str, ...]], names: Sequence[str], lexicon: Lexicon, words: set[str]
) -> list[tuple[bool, bool]]:
    """Whether head and tail of each triple are there by their words without those of the relation."""
    index = {name: number for number, name in enumerate(names)}
    results = []
    for head, relation, tail in triples:
        stated = relation_words([relation])
        flags = []
        for end in (head, tail):
            name = lexicon.words[index[end]] if end in index else ()
            rest = [word for word in name if word not in stated and word not in ARTICLES]
            flags.append(bool(rest) and len(rest) < len(name) and all(word in words for word in rest))
        results.append((flags[0], flags[1]))
    return results


def _stated_triples(
    ends: Sequence[tuple[set[int], set[int]]],
    named: set[int],
    carried: set[int],
    trimmed: Sequence[tuple[bool, bool]],
) -> set[int]:
    results = set()
    for number, ((first, second), (short_first, short_second)) in enumerate(zip(ends, trimmed, strict=True)):
        here = (bool(first & named) or short_first, bool(second & named) or short_second)
        far = (here[0] or bool(first & carried), here[1] or bool(second & carried))
        if (here[0] or here[1]) and far[0] and far[1]:
            results.add(number)
    return results


def _counts_items(text: str, start: int, value: TextValue) -> bool:
    """Whether a number stands at the start of its sentence as the number of an item in a list."""
    return value.start == start and bool(re.match(r"[.、)）]\s*\S", text[value.end : value.end + 4]))


def _invented_numbers(
    text: str, start: int, stated: Sequence[TextValue], known: Sequence[TextValue], mentions: Sequence[NameMention]
) -> list[tuple[int, str]]:
    return [
        (value.start, text[value.start : value.end].strip())
        for value in stated
        if not any(mention.start <= value.start < mention.end for mention in mentions)
        and not _counts_items(text, start, value)
        and not confirmed_by_any(value, known)
    ]


def _invented_chinese(sentence: str, triples: Sequence[tuple[str, ...]], lexicon: Lexicon) -> list[tuple[int, str]]:
    """Quoted names and Latin words of a Chinese sentence that are in no triple."""
    pieces = ["".join(norms(part)) for triple in triples for part in triple]
    results = []
    for match in _QUOTED.finditer(sentence):
        name = next(group for group in match.groups() if group is not None)
        folded = "".join(norms(name))
        if folded and not any(folded in piece for piece in pieces):
            results.append((match.start(), name))
    known = {word for piece in lexicon.words for word in piece} | lexicon.relation
    for match in _LATIN.finditer(sentence):
        words = norms(match.group())
        if not all(word in known or word in _UNITS for word in words):
            results.append((match.start(), match.group()))
    return results
