"""Words of a question that its best form leaves unread, and that so forbid a confident answer.

A word is read where a mention or value of the form stands for it, where it is in a wording of a relation or type of the
form, where the form does the operation that it names, where it is grammar, or where the encoder finds it as near to a
wording as a paraphrase is.  A word that stands alone may paraphrase a relation that no other word of the question
names; beside a word that is read it restricts that one, and has to be nearer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache

import torch

from kgqa_core.datasets.thesaurus import RelationEntry, thesaurus
from kgqa_core.linking.english import singulars
from kgqa_core.linking.words import usualness
from kgqa_core.logic.forms import BESTS, Arg, Class, Compare, Count, Greater, Literal, Nth
from kgqa_core.symbolic.by_labels.candidates import Candidate, LabelQuery, Slot, labels_of, nodes_of
from kgqa_core.symbolic.by_labels.graph import WORD, LabelGraph
from kgqa_core.symbolic.by_labels.phrases import NUMBER, SLOTS
from kgqa_core.symbolic.by_labels.question_words import (
    adjectives,
    grammar_of,
    idle_phrases,
    is_measure,
    is_superlative,
    kinds,
    mixed_letters,
    other_types,
    question_words,
)
from kgqa_core.symbolic.by_labels.reading import stem
from kgqa_core.symbolic.by_labels.scorer import EncodedTexts, LabelScorer

NEAR, ALONE, PARAPHRASE = 0.75, 0.65, 0.5
"""Likeness to a wording of the form from which on a word is read: of a name or a word beside one that is read, of one
that stands alone, and that where no other word of the question names some relation of the form."""
MISTYPED = 0.75
"""Share of letters that a word which English hardly has shares with the one of the form that it was meant for."""
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth")
_ENDINGS = ("ings", "ing", "ers", "er", "ors", "or", "ed", "ies", "es", "e", "ly", "y", "s")
_SIZES = frozenset("largest biggest smallest larger bigger smaller greatest greater".split())
"""Adjectives that may be of how many there are."""
_DETERMINERS = frozenset("which what whose many all the every any".split())
"""Words before a noun for what is asked, or for a mention, which nothing tells more of where the graph has no types."""
_PREPOSITIONS = frozenset(("in", "at", "on", "from", "for", "with", "to", "by", "under", "of"))
_PEOPLE = frozenset(("people", "ppl", "persons"))
GRAMMAR, READ, LIKELY, LEFT = "grammar", "read", "likely", ""
"""What accounts for a word; nothing for one that is left."""


@dataclass(slots=True)
class _Token:
    text: str
    start: int
    end: int
    state: str = LEFT


@dataclass(frozen=True)
class _Form:
    """What a form reads.  words: roots of all its wordings; labels: of the graph's labels of what it names."""

    best: Candidate
    words: set[str]
    labels: set[str]
    number: bool
    """Whether it finds one number, or how many there are."""
    typed: bool
    """Whether the graph has a type of anything in it."""

    @cached_property
    def ranks(self) -> list[Arg | Nth | Greater]:
        return [node for node in nodes_of(self.best.form) if isinstance(node, (Arg, Nth, Greater))]

    @cached_property
    def compares(self) -> list[Compare]:
        return [node for node in nodes_of(self.best.form) if isinstance(node, Compare)]

    @cached_property
    def valued(self) -> bool:
        return any(isinstance(getattr(node, "value", node), Literal) for node in nodes_of(self.best.form))

    @property
    def counts(self) -> bool:
        """Whether it counts things by no number of theirs."""
        return isinstance(self.best.form, Count) and not self.compares


@lru_cache(maxsize=1 << 14)
def root(word: str) -> str:
    """A word without endings of plurals, of verbs and of nouns that are made of verbs.

    >>> root("speaking") == root("speaks"), root("directors") == root("directed"), root("country") == root("county")
    (True, True, False)
    """
    word = stem(word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


def roots(*texts: str) -> set[str]:
    """The roots of the words of some texts."""
    return {root(word) for text in texts for word in WORD.findall(text.lower())} - set(SLOTS)


class UnreadWords:
    """Finds what forms over one graph leave unread.  wordings: of each directed relation."""

    def __init__(self, graph: LabelGraph, wordings: Sequence[tuple[str, ...]], scorer: LabelScorer) -> None:
        self.graph, self.wordings, self.scorer = graph, wordings, scorer
        self._known: dict[int, tuple[set[str], set[str]]] = {}

    def of(self, query: LabelQuery, best: Candidate, texts: Sequence[str], encoded: EncodedTexts) -> tuple[str, ...]:
        """Runs of words that are left, in the order of the text; a mention by the word of its slot.

        texts: the phrase of the form, and the noun of what it finds.  encoded: the question.
        """
        text, tokens = query.text, [_Token(one[0].lower(), *one.span()) for one in WORD.finditer(query.text)]
        used = [slot for number, slot in enumerate(query.slots) if number in best.slots]
        names = roots(*(name for slot in used for name in slot.names))
        slots = {slot.word: slot in used or (roots(slot.mention) or {""}) <= names for slot in query.slots}
        form, grammar = self._read(best, texts, used), grammar_of(text)
        fixed = {*SLOTS, NUMBER}
        idle = [found.span() for found in idle_phrases().finditer(text.lower())]
        for before, token in zip([_Token("", 0, 0), *tokens], tokens, strict=False):
            if token.text in SLOTS:
                token.state = READ if slots.get(token.text) else LEFT
            elif token.text == NUMBER:
                token.state = READ if form.valued and not (before.text == "in" and form.compares) else LEFT
            elif token.text in ("number", "numbers") and before.state == READ:
                token.state = READ
            elif any(start <= token.start < end for start, end in idle):
                token.state = GRAMMAR
            else:
                token.state = self._state(token.text, form, query) or (GRAMMAR if token.text in grammar else LEFT)
            if token.state == LEFT and token.text not in fixed and not _is_fixed(token.text, form):
                kind = not form.typed and (before.text in _DETERMINERS or not kinds().isdisjoint(singulars(token.text)))
                token.state = READ if kind or root(token.text) in names else LEFT
        left = [n for n, token in enumerate(tokens) if token.state == LEFT and token.text not in fixed]
        doubtful = [n for n in left if not _is_fixed(tokens[n].text, form)]
        if doubtful:
            self._paraphrases(tokens, doubtful, query, form, texts, encoded)
        return tuple(_runs(text, tokens))

    def _read(self, best: Candidate, texts: Sequence[str], used: Sequence[Slot]) -> _Form:
        types = {self.graph.type_of_key.get(node.key, -1) for node in nodes_of(best.form) if isinstance(node, Class)}
        words = roots(*texts).union(*(self._way(way)[1] for way in best.ways))
        topics = {place for slot in used for place in self.graph.types_of(slot.entities[0][0])}
        words |= self._type_roots(types | set(best.types) | topics)
        number = best.nodes is None or (len(best.nodes) == 1 and bool(self.graph.memory.dim[best.nodes[0]] >= 0))
        return _Form(best, words, roots(*labels_of(best.form, self.graph)), number, bool(best.types or topics))

    def _state(self, word: str, form: _Form, query: LabelQuery) -> str:
        """What accounts for a word by itself, grammar left aside."""
        lists = question_words()
        if word in _PEOPLE and form.counts:
            return READ if form.words & {"person", "human", "individual"} else LEFT
        if (word == "person" or word in _PEOPLE) and "who" in form.words:
            return READ  # the thesaurus has it that one asks who
        if root(word) in form.labels:
            return READ
        if is_measure(word) and (form.ranks or (form.compares and not is_superlative(word))):
            return READ if self._measures(word, form, query) else LEFT
        if _ORDINAL.fullmatch(word):
            nth = next((node.n for node in form.ranks if isinstance(node, Nth)), 1)
            return READ if form.ranks and nth == (query.place or 1) else LEFT
        if word in lists["lexical"] or is_superlative(word):
            return LEFT
        if word in lists["counting"]:
            return GRAMMAR if form.number or form.ranks or word in ("much", "many", "how") else LEFT
        if root(word) in form.words or (
            word in lists["beside"] and form.words & {root(one) for one in lists["beside"]}
        ):
            return READ
        if word in lists["negations"] or word in ("but", "non", "apart", "aside", "than"):
            return GRAMMAR  # forms that do not take anything away are no candidates then
        if word in lists["units"]:
            return GRAMMAR if form.number or form.ranks or form.compares else LEFT
        return GRAMMAR if not usualness(word) and sorted(word) in mixed_letters() else LEFT

    def _measures(self, word: str, form: _Form, query: LabelQuery) -> bool:
        """Whether an adjective or adverb fits what a form ranks or compares by.

        The thesaurus has it for that relation or does not know one of them, or the question names the relation.
        """
        known = adjectives().get(word)
        if known is None or any(node.counted for node in (*form.ranks, *form.compares)):
            return known is None or word in _SIZES
        asked = roots(query.text)
        for node in (*form.ranks, *form.compares):
            label = self.graph.labels[self.graph.memory.relation_ids[node.path[-1].relation]]
            entry = thesaurus().relation(label)
            sides = known.get(entry.labels[0], frozenset()) if entry is not None else frozenset(BESTS)
            if (isinstance(node, Compare) and sides) or (not isinstance(node, Compare) and node.best in sides):
                return True
            if not sides and roots(label) & asked:
                return True
        return False

    def _paraphrases(
        self, tokens: list[_Token], doubtful: Sequence[int], query: LabelQuery, form: _Form, texts: Sequence[str],
        encoded: EncodedTexts,
    ) -> None:  # fmt: skip
        """Marks words as likely that are near enough to a wording of the form, or mistyped or shortened ones of it."""
        text, ways = query.text, sorted(set(form.best.ways))
        asked = {root(token.text) for token in tokens}
        unnamed = any(not self._way(way)[0] & asked for way in ways)
        wordings = dict.fromkeys([*texts, *(own for way in ways for own in self.wordings[way])])
        likeness = self._likeness(text, tokens, [own for own in wordings if own], encoded)
        capitals = any(one.text not in SLOTS and text[one.start].islower() for one in tokens)
        for n in doubtful:
            token = tokens[n]
            around = [*tokens[max(n - 1, 0) : n], *tokens[n + 1 : n + 2]]
            if n + 2 < len(tokens) and tokens[n + 1].text in SLOTS:
                around.append(tokens[n + 2])  # as in `landlocked x countries`
            restricts = any(one.state == READ and one.text not in SLOTS and one.text != NUMBER for one in around)
            restricts = restricts and not (token.text in question_words()["prepositions"] or _leads(tokens, n))
            name = n > 0 and capitals and text[token.start].isupper()
            enough = NEAR if restricts or name else PARAPHRASE if unnamed else ALONE
            shortened = text[token.end : token.end + 1] == "." and len(token.text) > 2
            if (
                likeness[n] >= enough
                or _is_mistyped(token.text, form.words)
                or (shortened and any(one.startswith(token.text) for one in form.words))
            ):
                token.state = LIKELY

    @torch.inference_mode()
    def _likeness(self, text: str, tokens: Sequence[_Token], wordings: list[str], encoded: EncodedTexts) -> list[float]:
        """Of each token its likeness to the nearest token of the wordings; 0 where it was not encoded."""
        phrases = self.scorer.phrases(wordings)
        length = int((encoded.weights[0] > 0).sum())
        like = torch.einsum("td,pud->tpu", encoded.tokens[0, :length], phrases.tokens)
        best = like.masked_fill(~(phrases.weights > 0)[None], -1.0).amax((1, 2))[:-1]
        pieces, results, at = list(re.finditer(r"\S+", text)), [0.0] * len(tokens), 1
        for piece, ids in zip(pieces, self.scorer.network.encoder.token_ids([one[0] for one in pieces]), strict=True):
            own = best[at : at + len(ids) - 2]
            at += len(ids) - 2
            for number, token in enumerate(tokens):
                if piece.start() <= token.start < piece.end() and len(own):
                    results[number] = float(own.mean())
        return results

    # -- words of relations and types --------------------------------------------------------------------------

    def _way(self, way: int) -> tuple[set[str], set[str]]:
        """Roots that name a directed relation, and of all its wordings and the types at its ends."""
        if way not in self._known:
            relation = way % self.graph.relations
            label = self.graph.labels[relation]
            entry = thesaurus().relation(label) or RelationEntry()
            verbs = [text for pair in entry.verb for text in pair]
            ends = {int(self.graph.head_type[relation]), int(self.graph.tail_type[relation])}
            named = roots(*self.wordings[way], *entry.nouns, *verbs) - self._type_roots(ends)
            others = (*entry.labels, *entry.active, *entry.passive, *entry.ask, *entry.back, entry.head, entry.tail)
            words = roots(*self.wordings[way], *entry.nouns, *verbs, *others, label) | self._type_roots(ends)
            self._known[way] = (named | roots(label)) - {root(word) for word in ("the", "of", "is", "are")}, words
        return self._known[way]

    def _type_roots(self, places: set[int]) -> set[str]:
        """Roots of the labels of types and of other words for these."""
        labels = [self.graph.type_labels[place] for place in places if place >= 0]
        return roots(*labels, *(other for label in labels for other in (*thesaurus().type(label), *other_types(label))))


def _is_fixed(word: str, form: _Form) -> bool:
    """Whether a word is never a paraphrase: one of time, arithmetic or rank."""
    lists = question_words()
    plain = word in lists["lexical"] or word in lists["counting"] or (word in _PEOPLE and form.counts)
    return plain or is_measure(word) or _ORDINAL.fullmatch(word) is not None


def _leads(tokens: Sequence[_Token], n: int) -> bool:
    """Whether a preposition and a mention that is read follow a word, as in `live in x`."""
    return (
        n + 2 < len(tokens)
        and tokens[n + 1].text in _PREPOSITIONS
        and tokens[n + 2].text in SLOTS
        and tokens[n + 2].state == READ
    )


def _is_mistyped(word: str, words: set[str]) -> bool:
    if len(word) < 4 or usualness(word):
        return False
    return any(SequenceMatcher(None, root(word), one).ratio() >= MISTYPED for one in words if len(one) > 2)


def _runs(text: str, tokens: Sequence[_Token]) -> Iterator[str]:
    """What is left, words side by side as one text and parts of words with a hyphen whole."""
    start = end = -1
    for token in (*tokens, _Token("", len(text), len(text), READ)):
        if token.state == LEFT:
            start, end = token.start if start < 0 else start, token.end
        elif start >= 0 and text[end : token.start] != "-":
            first = text.rfind(" ", 0, start) + 1
            yield text[first if text[first:start].replace("-", "").isalpha() else start : end]
            start = -1
        elif start >= 0:
            end = token.end
