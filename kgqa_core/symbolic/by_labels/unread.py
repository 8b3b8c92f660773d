"""Words of a question that its best form leaves unread, and that so forbid a confident answer.

A word is read where a mention or value of the form stands for it, where it is in a wording of a relation or type of the
form, where the form does the operation that it names, where it is grammar, where training questions have it with the
relations of the form, or where the encoder finds it as near to a wording as a paraphrase is.  A word that stands alone
may paraphrase a relation that no other word of the question names, and lowers the confidence; beside a word that is
read it restricts that one, and has to be nearer.  A relation of a form that no word names is read where it is the only
one between things that the question names, or is called as one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

import torch

from kgqa_core.datasets.thesaurus import RelationEntry, thesaurus
from kgqa_core.linking.english import singulars
from kgqa_core.linking.words import usualness
from kgqa_core.logic.forms import BESTS, Arg, Class, Compare, Count, Greater, Join, Literal, Nth
from kgqa_core.symbolic.by_labels.candidates import Candidate, LabelQuery, Slot, labels_of, nodes_of
from kgqa_core.symbolic.by_labels.cues import LOOKED_AT, cues_of
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
_BEING = frozenset("is are was were be been isn aren wasn weren".split())
_BEFORE_DATES = frozenset("until till since before after in by during from".split())
_BEFORE_NUMBERS = frozenset("than over above below under exceeding least most exactly about around with".split())
_NO_NAMES = frozenset(
    "a an the of in on at by to from for with is are was were do does did has have had what which who whom whose how "
    "many much it n".split()
)
"""Words of wordings that name no relation."""
GRAMMAR, READ, LIKELY, LEFT = "grammar", "read", "likely", ""
"""What accounts for a word; nothing for one that is left."""


@dataclass(slots=True)
class _Token:
    text: str
    start: int
    end: int
    state: str = LEFT
    alone: bool = False
    """Whether it restricts no other word, and is no name."""


class Unread(NamedTuple):
    """What a form leaves of a question: runs of words, and whether one of them restricts the answer."""

    words: tuple[str, ...] = ()
    restricting: bool = False


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
    def relations(self) -> set[str]:
        return {step.relation for node in nodes_of(self.best.form) for step in getattr(node, "path", ())}

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
    """Finds what forms over one graph leave unread.

    wordings: of each directed relation.  learnt: as of `learnt_words`.
    """

    def __init__(
        self,
        graph: LabelGraph,
        wordings: Sequence[tuple[str, ...]],
        scorer: LabelScorer,
        learnt: Mapping[str, Sequence[str]],
    ) -> None:
        self.graph, self.wordings, self.scorer, self.learnt = graph, wordings, scorer, learnt
        self._known: dict[int, tuple[set[str], set[str]]] = {}
        self._unit_roots: dict[frozenset[int], set[str]] = {}

    def of(self, query: LabelQuery, best: Candidate, texts: Sequence[str], encoded: EncodedTexts) -> Unread:
        """Runs of words that are left, in the order of the text; a mention by the word of its slot; "" for a relation.

        texts: the phrase of the form, and the noun of what it finds.  encoded: the question.
        """
        text, tokens = query.text, [_Token(one[0].lower(), *one.span()) for one in WORD.finditer(query.text)]
        used = [slot for number, slot in enumerate(query.slots) if number in best.slots]
        names = roots(*(name for slot in used for name in slot.names))
        slots = {slot.word: slot in used or (roots(slot.mention) or {""}) <= names for slot in query.slots}
        form, grammar = self._read(best, texts, used, roots(text)), grammar_of(text)
        cues = cues_of(text, yes_no=False)
        fixed = {*SLOTS, NUMBER}
        idle = [found.span() for found in idle_phrases().finditer(text.lower())]
        numbers = iter(_years(query))
        behind = [*(token.text for token in tokens[1:]), ""]
        for before, token, after in zip([_Token("", 0, 0), *tokens], tokens, behind, strict=False):
            if token.text in SLOTS:
                token.state = READ if slots.get(token.text) else LEFT
            elif token.text == NUMBER:
                year = next(numbers, False) and before.text not in _BEFORE_NUMBERS and (
                    before.text in _BEFORE_DATES or after in ("", *grammar)
                )  # fmt: skip
                wrong = (year and not self._dated(form)) or (before.text == "in" and form.compares)
                token.state = READ if form.valued and not wrong else LEFT
            elif token.text in ("number", "numbers") and before.state == READ:
                token.state = READ
            elif any(start <= token.start < end for start, end in idle):
                token.state = GRAMMAR
            else:
                token.state = self._state(token.text, before.text, form, query) or (
                    GRAMMAR if token.text in grammar else LEFT
                )
            if token.state == LEFT and token.text not in fixed and not _is_fixed(token.text, before.text, form):
                kind = not form.typed and (before.text in _DETERMINERS or not kinds().isdisjoint(singulars(token.text)))
                token.state = READ if kind or root(token.text) in names or self._is_learnt(token.text, form) else LEFT
        left = [n for n, token in enumerate(tokens) if token.state == LEFT and token.text not in fixed]
        doubtful = [n for n in left if not _is_fixed(tokens[n].text, tokens[n - 1].text, form)]
        if doubtful:
            self._paraphrases(tokens, doubtful, query, form, texts, encoded)
        reasons = [cues.words] if cues.kind == "reason" and not self._reasons(form) else []
        words = [token for token in tokens if token.text not in fixed]
        head = next((one for one in words if one.state in (READ, LIKELY) and one.text not in grammar), None)
        rest = {root(token.text) for token in words if token is not head}
        learnt = {relation for token in words for relation in self.learnt.get(root(token.text), ())}
        unnamed = self._unnamed(form, used, roots(text), rest, learnt) > sum(token.state == LIKELY for token in tokens)
        bound = any(token.state == LEFT and not token.alone for token in tokens)
        return Unread((*reasons, *_runs(text, tokens), *([""] if unnamed else [])), bool(reasons or unnamed or bound))

    def _read(self, best: Candidate, texts: Sequence[str], used: Sequence[Slot], asked: set[str]) -> _Form:
        types = {self.graph.type_of_key.get(node.key, -1) for node in nodes_of(best.form) if isinstance(node, Class)}
        words = roots(*texts).union(*(self._way(way)[1] for way in best.ways))
        topics = {place for slot in used for place in self.graph.types_of(slot.entities[0][0])}
        words |= self._type_roots(types | set(best.types) | topics)
        places, labels = (types | set(best.types) | topics) - {-1}, self.graph.type_labels
        twice = {place for place in places if roots(labels[place]) <= asked}  # of `states of the country x` one is read
        labelled = roots(*(labels[place] for place in twice))
        words -= self._type_roots(twice).difference(labelled, *(self._way(way)[1] for way in best.ways))
        number = best.nodes is None or (len(best.nodes) == 1 and bool(self.graph.memory.dim[best.nodes[0]] >= 0))
        return _Form(best, words, roots(*labels_of(best.form, self.graph)), number, bool(best.types or topics))

    def _state(self, word: str, before: str, form: _Form, query: LabelQuery) -> str:
        """What accounts for a word by itself and the one before it, grammar left aside."""
        lists = question_words()
        if _counts_people(word, before, form):
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
        if word in lists["stated_units"]:
            return READ if root(word) in self._units(frozenset(form.best.ways)) else LEFT
        if word in lists["units"]:
            return GRAMMAR if form.number or form.ranks or form.compares else LEFT
        return GRAMMAR if not usualness(word) and sorted(word) in mixed_letters() else LEFT

    def _is_learnt(self, word: str, form: _Form) -> bool:
        """Whether training questions have a word with relations of the form alone, or, but for types, with any."""
        relations = self.learnt.get(root(word))
        if relations:
            return form.relations.issuperset(relations)
        return relations is not None and root(word) not in self._types

    @cached_property
    def _types(self) -> set[str]:
        return self._type_roots(set(range(len(self.graph.type_labels))))

    def _units(self, ways: frozenset[int]) -> set[str]:
        """Roots of the units of what a form's relations measure; looked up once for the same relations."""
        if ways in self._unit_roots:
            return self._unit_roots[ways]
        memory, measures = self.graph.memory, filter(self.graph.is_measure, ways)
        tails = [memory.tail[memory.relation == way][:LOOKED_AT].tolist() for way in measures]
        units = self.graph.store.connection.execute(
            "SELECT DISTINCT unit FROM entities WHERE unit IS NOT NULL AND id IN (SELECT unnest($1::INTEGER[]))",
            [sum(tails, [])],
        ).fetchall()
        keys = [key for (key,) in units]  # a unit that is no entity is called as its key
        self._unit_roots[ways] = roots(*keys, *self.graph.store.names(memory.know(keys).values()).values())
        return self._unit_roots[ways]

    def _dated(self, form: _Form) -> bool:
        """Whether what a form compares with a value of the question is a date, or is asked for by *when*."""
        for node in nodes_of(form.best.form):
            if isinstance(getattr(node, "value", getattr(node, "of", None)), Literal):
                relation = self.graph.memory.relation_ids[node.path[-1].relation]  # type: ignore[attr-defined]
                entry = thesaurus().relation(self.graph.labels[relation])
                if self.graph.dated[relation] > 0 or (entry is not None and entry.wh == "when"):
                    return True
        return False

    def _reasons(self, form: _Form) -> bool:
        """Whether a relation or type of a form is a reason or a method, or is asked for by *why* or *how*."""
        entries = [thesaurus().relation(self.graph.labels[way % self.graph.relations]) for way in form.best.ways]
        asks = [text for entry in entries if entry is not None for text in entry.ask]
        labels = form.labels.union(*(self._way(way)[0] for way in form.best.ways))
        return not labels.isdisjoint(map(root, question_words()["reasons"])) or any(
            cues_of(text, yes_no=False).kind == "reason" for text in asks
        )

    def _unnamed(self, form: _Form, used: Sequence[Slot], asked: set[str], rest: set[str], learnt: set[str]) -> int:
        """How many relations of a form no word names, nor are plain from the things at both of their ends.

        asked: roots of the question; rest: without the noun of what it asks for, which names nothing on the way to it.
        learnt: keys of the relations that its words stand for in training questions.
        """
        graph, measured = self.graph, {self.graph.way(node.path[-1]) for node in (*form.ranks, *form.compares)}
        topics = {place for slot in used for entity in slot.entities[:1] for place in graph.types_of(entity[0])}
        joins = [node for node in nodes_of(form.best.form) if isinstance(node, Join)]
        inner = [step for node in joins for step in node.path[1:]]
        inner += [step for node in joins if isinstance(node.of, Join) for step in node.of.path]
        inside = {graph.way(step) % graph.relations for step in inner}
        number = 0
        for way in {*form.best.ways} - measured:
            relation = way % graph.relations
            ends = int(graph.head_type[relation]), int(graph.tail_type[relation])
            named = self._way(relation)[1] | self._way(relation + graph.relations)[1]
            if (
                (named - self._type_roots({*ends}) - _no_names()) & asked
                or -1 in ends
                or graph.keys[relation] in learnt
            ):
                continue
            same = (graph.head_type == ends[0]) & (graph.tail_type == ends[1])
            same |= (graph.head_type == ends[1]) & (graph.tail_type == ends[0])
            same &= graph.triples != graph.triples[relation]  # itself, and one that says the same backwards
            plain = not same.any() or roots(graph.labels[relation]) in self._type_names({*ends})
            nouns = rest if relation in inside else asked
            known = way >= graph.relations or ends[1] in topics  # what belongs to a thing is plain
            number += not (plain and (known or any(name <= nouns for name in self._type_names({ends[1]}))))
        return number

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
        timed = cues_of(text, yes_no=False).kind == "time"  # the verb alone tells which of a thing's dates
        idle = {*SLOTS, NUMBER, *grammar_of(text)}
        capitals = any(one.text not in SLOTS and text[one.start].islower() for one in tokens)
        for n in doubtful:
            token = tokens[n]
            around = [*tokens[max(n - 1, 0) : n], *tokens[n + 1 : n + 2]]
            if n + 2 < len(tokens) and tokens[n + 1].text in SLOTS:
                around.append(tokens[n + 2])  # as in `landlocked x countries`
            restricts = any(one.state == READ and one.text not in idle for one in around)
            restricts |= root(token.text) in self._types or _is_predicate(tokens, n)
            restricts = restricts and not (token.text in question_words()["prepositions"] or _leads(tokens, n))
            name = n > 0 and capitals and text[token.start].isupper()
            token.alone = not (restricts or name or timed)
            enough = NEAR if restricts or name or timed else PARAPHRASE if unnamed else ALONE
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
        """Roots that name a directed relation, and of all its wordings."""
        if way not in self._known:
            relation = way % self.graph.relations
            label = self.graph.labels[relation]
            entry = thesaurus().relation(label) or RelationEntry()
            verbs = [text for pair in entry.verb for text in pair]
            ends = {int(self.graph.head_type[relation]), int(self.graph.tail_type[relation])}
            named = roots(*self.wordings[way], *entry.nouns, *verbs) - self._type_roots(ends)
            others = (*entry.labels, *entry.active, *entry.passive, *entry.ask, *entry.back, entry.head, entry.tail)
            words = roots(*self.wordings[way], *entry.nouns, *verbs, *others, label)
            self._known[way] = (named | roots(label)) - {root(word) for word in ("the", "of", "is", "are")}, words
        return self._known[way]

    def _type_roots(self, places: set[int]) -> set[str]:
        """Roots of the labels of types and of other words for these."""
        return set[str]().union(*self._type_names(places))

    def _type_names(self, places: set[int]) -> list[set[str]]:
        """The roots of each label of types and of each other name of these."""
        labels = [self.graph.type_labels[place] for place in places if place >= 0]
        return [roots(name) for label in labels for name in (label, *thesaurus().type(label), *other_types(label))]


def _counts_people(word: str, before: str, form: _Form) -> bool:
    """Whether a question asks how many people there are, of a form that counts things."""
    return word in _PEOPLE and form.counts and before in ("many", "of")


def _is_fixed(word: str, before: str, form: _Form) -> bool:
    """Whether a word is never a paraphrase: one of time, arithmetic or rank."""
    lists = question_words()
    plain = word in lists["lexical"] or word in lists["counting"] or _counts_people(word, before, form)
    return plain or is_measure(word) or word in lists["stated_units"] or _ORDINAL.fullmatch(word) is not None


@cache
def _no_names() -> set[str]:
    return {root(word) for word in _NO_NAMES}


def _years(query: LabelQuery) -> Iterator[bool]:
    """Of each number of a text whether it may be a year."""
    for value, after in zip(query.values, (*query.values[1:], None), strict=True):
        if not value.datatype.endswith("gYear"):
            yield after is not None and after.datatype.endswith("gYear")


def _leads(tokens: Sequence[_Token], n: int) -> bool:
    """Whether a preposition and a mention that is read follow a word, as in `live in x`."""
    return (
        n + 2 < len(tokens)
        and tokens[n + 1].text in _PREPOSITIONS
        and tokens[n + 2].text in SLOTS
        and tokens[n + 2].state == READ
    )


def _is_predicate(tokens: Sequence[_Token], n: int) -> bool:
    """Whether a word tells what something is, as in `are coastal` or `is a monarchy`."""
    before = [token.text for token in tokens[max(n - 2, 0) : n]]
    return bool(before) and (before[-1] in _BEING or (before[-1] in ("a", "an", "t") and before[0] in _BEING))


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
