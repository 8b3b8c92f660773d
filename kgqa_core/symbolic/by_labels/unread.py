"""Words of a question that its best form leaves unread, and that so forbid a confident answer.

A word is read where a mention or value of the form stands for it, where it is in a wording of a relation or type of the
form, where the form does the operation that it names, where it is grammar, where training questions have it with the
relations of the form, or where the encoder finds it as near to a wording as a paraphrase is.  A word that stands alone
may paraphrase a relation that no other word of the question names, and lowers the confidence; beside a word that is
read it restricts that one, and has to be nearer.  Where a form leads from a mention to one thing by relations that are
all named, a verb between the two says no more, nor does an adjective such as *official*.  A relation of a form that no
word names is read where it is the only one between things that the question names, or is called as one of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

import torch

from kgqa_core.kg.text_numbers import units
from kgqa_core.linking.english import singulars
from kgqa_core.linking.words import usualness
from kgqa_core.logic.forms import Aggregate, Class, Count, Literal, Nth, Or
from kgqa_core.rewriting.phrases import plural
from kgqa_core.search.candidates import (
    Candidate,
    LabelQuery,
    computations,
    has_span,
    nodes_of,
    numbers_of,
    texts_of_values,
)
from kgqa_core.search.cues import cues_of
from kgqa_core.search.demands import IN_NAMES, spans_said, unmet
from kgqa_core.search.form_reading import (
    COUNTRIES,
    FormReader,
    FormReading,
    entity_of,
    is_verb,
    relation_nouns,
    root,
    roots,
)
from kgqa_core.search.graph import WORD, LabelGraph, is_long
from kgqa_core.search.phrases import NUMBER, SLOTS, RelationWords, has_any
from kgqa_core.search.question_words import (
    AGGREGATES,
    MONIES,
    PERSONS,
    grammar_of,
    idle_phrases,
    is_measure,
    is_superlative,
    kinds,
    mixed_letters,
    question_words,
)
from kgqa_core.search.reading import stem
from kgqa_core.search.words import is_head, is_untyped
from kgqa_core.symbolic.by_labels.qualified import qualifier_words
from kgqa_core.symbolic.by_labels.scorer import EncodedTexts, LabelScorer

RESTRICTING, UNNAMED, BOUND, ALONE_LEFT, LIKELY_READ, UNFINISHED = 1.0, 0.5, 1.5, 0.8, 2.0, 1.0
"""What the score of a form loses where it leaves a word that restricts, for a relation that no word names, for each
such word, for each that stands alone, for each that is read as a paraphrase, and where there is any of these; half the
coefficients of a conditional logit over dev questions, at which fewer wrong answers were given."""
LIGHT = 50
"""`usualness` from which on a verb says little by itself: *kept in x*, *lying in x*, not *forbidden in x*."""
NEAR, ALONE, PARAPHRASE = 0.75, 0.65, 0.5
"""Likeness to a wording of the form from which on a word is read: of a name or a word beside one that is read, of one
that stands alone, and that where no other word of the question names some relation of the form."""
MISTYPED = 0.75
"""Share of letters that a word which English hardly has shares with the one of the form that it was meant for."""
_OF_ONE = re.compile(r"\b(?:who|what)(?: is| was|'s|s) the $", re.IGNORECASE)
"""What stands before a noun for what something has, as in `who is the drummer of x`, and not for a kind."""
_NOUNS = re.compile(r"\b(?P<first>[a-z]{3,}) (?:of (?:the |his |her |their )?|s )(?P<second>[a-z]{3,})\b(?= of| s)?")
"""Two nouns one after the other along a path: *children of the parents*."""
_CHAIN = re.compile(
    r"\b(?P<noun>[a-z]{3,}?)(?:s|ren)? (?:(?:of|s) (?:(?:the|a|an|his|her|their) )?)+(?P=noun)(?:s|ren)?\b"
)
"""A noun of a noun: *boss of the boss*, *children s children*."""
_OPEN_ENDED = re.compile(r" (?:or|and) (?:later|earlier|after|before|since|newer|older|onwards?)\b| onwards?\b")
"""What stands behind the first or last year of an open range: *in 2019 or later*."""
_BUT_HAS = re.compile(r"\bbut (?:(?:do|does|did) )?(?:have|has|had) (?=(?:an?|any|some) \w)", re.IGNORECASE)
"""What demands that there is something at all: *not sponsored by x but do have a sponsor*."""
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth")
_NAMES_ONE = re.compile(r"\W*(?:what is|name|give me|tell me|find|show me) an? $", re.IGNORECASE)
_DETERMINERS = frozenset("which what whose many all the every any".split())
"""Words before a noun for what is asked, or for a mention, which nothing tells more of where the graph has no types."""
_PREPOSITIONS = frozenset(("in", "at", "on", "from", "for", "with", "to", "by", "under", "of"))
_DATES = frozenset("date dates day".split())
_SHORT_DOER = re.compile(r"(\w{2,3})ers?")
_FIGURES = frozenset("number numbers figure figures value values".split())
"""Nouns behind the name of a relation that say no more than it does."""
_TELLING = frozenset(
    "mention mentions mentioning mentioned say says saying said word words talk talks about describe describes "
    "described according text texts description descriptions note notes comment comments".split()
)
"""Words for what a text says, where a form asks for words within texts."""
_BEING = frozenset("is are was were be been isn aren wasn weren".split())
_BEFORE_OBJECTS = frozenset("a an the in at on for with to by".split())
_BEHIND_NAMES = frozenset("of for in do does has is".split())
_BEFORE_DATES = frozenset("until till since before after in by during from".split())
_BEFORE_NUMBERS = frozenset("than over above below under exceeding least most exactly about around with".split())
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
    """What a form leaves of a question.

    words: runs of words, "" for a relation that no word names.  restricting: whether one of them restricts the answer.
    alone, bound: words that stand alone, and that restrict another one.  likely: those read as paraphrases.  kinds: the
    names of types of which the form has nothing.  verbs: whether all that is left are verbs of frequent use, which say
    little.
    """

    words: tuple[str, ...] = ()
    restricting: bool = False
    alone: int = 0
    bound: int = 0
    likely: int = 0
    kinds: int = 0
    verbs: bool = False

    @property
    def unnamed(self) -> bool:
        """Whether no word names some relation of the form."""
        return "" in self.words

    @property
    def loss(self) -> float:
        """What the score of the form loses."""
        loss = RESTRICTING * self.restricting + UNNAMED * self.unnamed + LIKELY_READ * min(self.likely, 3)
        loss += UNFINISHED * bool(self.words or self.likely or self.restricting)
        return loss + BOUND * min(self.bound + self.kinds, 3) + ALONE_LEFT * min(self.alone, 3)


class UnreadWords:
    """Finds what forms over one graph leave unread.

    wordings: of each directed relation; words: of each relation.  learnt: as of `learnt_words`.
    """

    def __init__(
        self,
        graph: LabelGraph,
        wordings: Sequence[tuple[str, ...]],
        words: Sequence[RelationWords],
        scorer: LabelScorer,
        learnt: Mapping[str, Sequence[str]],
    ) -> None:
        self.wordings, self.scorer, self.learnt = wordings, scorer, learnt
        self.reader = FormReader(graph, wordings, words)

    def of(self, query: LabelQuery, best: Candidate, texts: Sequence[str], encoded: EncodedTexts) -> Unread:
        """Runs of words that are left, in the order of the text; a mention by the word of its slot; "" for a relation.

        texts: the phrase of the form, and the noun of what it finds.  encoded: the question.
        """
        text, tokens = query.text, [_Token(one[0].lower(), *one.span()) for one in WORD.finditer(query.text)]
        used = [slot for number, slot in enumerate(query.slots) if number in best.slots]
        others = self.reader.other_types(best, query)
        meant = [entity_of(slot, best.form) for slot in used if len(slot.entities) > 1]
        names = roots(
            *(name for slot in used if len(slot.entities) == 1 for name in slot.names),
            *self.reader.graph.store.names(meant).values(),
        )
        form, grammar = self.reader.read(best, texts, used, roots(text)), grammar_of(text)
        names |= self.reader.values(best, query) | self.reader.named_kinds(best)
        literals = [node.text for node in nodes_of(best.form) if isinstance(node, Literal)]
        values, inside = roots(*literals), any(map(is_long, literals))
        known = names | form.words  # a mention may be the name of the type of what is found
        slots = {slot.word: slot in used or (roots(slot.mention) or {""}) <= known for slot in query.slots}
        cues = cues_of(text, yes_no=False)
        fixed = {*SLOTS, NUMBER}
        idle = [match.span() for match in idle_phrases().finditer(text.lower())]
        idle += [match.span() for match in IN_NAMES.finditer(text.lower())]  # which is demanded
        idle += spans_said(text.lower()) if has_span(best.form) else []
        numbers, named_kinds = iter(_years(query)), 0
        others_used = iter(self._unused_numbers(query, best))
        untyped, asked = is_untyped(best.form, self.reader.graph), [token.text for token in tokens]
        behind = [*(token.text for token in tokens[1:]), ""]
        for before, token, after in zip([_Token("", 0, 0), *tokens], tokens, behind, strict=False):
            if token.text in SLOTS:
                token.state = READ if slots.get(token.text) else LEFT
            elif token.text == NUMBER:
                year = next(numbers, False) and before.text not in _BEFORE_NUMBERS and (
                    before.text in _BEFORE_DATES or before.text == "year" or after in ("", *grammar)
                )  # fmt: skip
                wrong = (year and not self.reader.is_dated(form)) or (
                    before.text == "in" and form.compares and not _OPEN_ENDED.match(text[token.end :])
                )
                called = root(before.text) in self.reader.types and not before.text.endswith("s")  # `line 7`
                wrong = wrong or (called and not year)
                first = any(isinstance(node, Nth) and node.first for node in form.ranks)
                unused = next(others_used, False)
                token.state = READ if (form.valued and not wrong and not unused) or first else LEFT
            elif inside and token.text in _TELLING:
                token.state = GRAMMAR
            elif token.text == "year" and after == NUMBER:
                token.state = GRAMMAR if form.valued else LEFT
            elif (token.text in _FIGURES and before.state == READ and "count" not in computations(best.form)) or (
                _ORDINAL.fullmatch(token.text) and root(token.text) in values  # `first officers`
            ):
                token.state = READ
            elif root(token.text) in others:
                token.state = LEFT
            elif any(start <= token.start < end for start, end in idle):
                token.state = GRAMMAR
            else:
                token.state = self._state(token.text, before.text, form, query) or (
                    GRAMMAR if token.text in grammar else LEFT
                )
                if token.state == READ and self.reader.is_loose(token.text, best, form.phrase | names):
                    token.state = LEFT
            if (
                token.state == LEFT
                and token.text not in fixed
                and root(token.text) not in others
                and not _is_fixed(token.text, before.text, form)
            ):
                other = self._is_of_others(token.text, form)
                ends = after in (*SLOTS, "", *grammar)  # no part of a compound
                called = before.text in _DETERMINERS or (
                    before.text in ("a", "an") and _NAMES_ONE.match(text[: token.start]) is not None
                )
                called |= ends and not (other or kinds().isdisjoint(singulars(token.text)))
                kind = called and not form.typed
                kind |= untyped and root(token.text) not in self.reader.types and is_head(asked, token.text)
                kind &= not other or (bool(self.reader.types) and not kinds().isdisjoint(singulars(token.text)))
                kind = kind and not (_OF_ONE.search(text[: token.start]) and after == "of")
                kind = kind and not (after == "of" and root(token.text) in relation_nouns())
                kind = kind and not self.reader.leads_on(token.text, best)
                kind = kind and not self.reader.is_of_other_kind(token.text, best)
                kind = kind and not (
                    cues.kind == "person" and self.reader.types and not self.reader.finds_persons(best)
                )
                kind = kind and not (other and token.text in self.reader.whole_labels)
                fits = other and self.reader.is_called(token.text, best)
                fits = fits or (kind and self.reader.fits_kind(token.text, best))
                kind = kind and (fits or not form.counts)
                named_kinds += kind
                if fits or root(token.text) in names or self._is_learnt(token.text, form):
                    token.state = READ
                elif kind:
                    token.state = READ if called else LIKELY
        self._repeated(tokens, best)
        labels = self.reader.graph.type_labels
        lacking = {
            word
            for index, _ in query.types
            if index not in best.types
            for word in (labels[index], plural(labels[index]))
        }  # types of which the form has nothing
        lacking |= {token.text for token in tokens if root(token.text) in others}
        left = [n for n, token in enumerate(tokens) if token.state == LEFT and token.text not in fixed]
        doubtful = [n for n in left if not _is_fixed(tokens[n].text, tokens[n - 1].text, form)]
        named = [n for n in doubtful if text[tokens[n].start].isupper()]
        beside = {slot.word: self._beside(entity_of(slot, best.form)) for slot in used} if named else {}
        for n in named:
            around = {token.text for token in tokens[max(n - 2, 0) : n + 3]}
            around = around if around.isdisjoint(("and", "or")) else set()
            if any(word in around and root(tokens[n].text) in names for word, names in beside.items()):
                tokens[n].state = READ
        if doubtful := [n for n in doubtful if tokens[n].state == LEFT and tokens[n].text not in COUNTRIES]:
            self._paraphrases(tokens, doubtful, query, form, texts, encoded, lacking)
        reasons = [cues.words] if cues.kind == "reason" and not self.reader.has_reasons(form) else []
        if not inside and "according to" in text and "according" not in qualifier_words(best.form, self.reader.graph):
            reasons.append("according to")
        if (further := _BUT_HAS.search(text)) and not any(map(has_any, nodes_of(best.form))):
            reasons.append(further[0].strip())
        reasons += unmet(text, best, self.reader.graph)
        words = [token for token in tokens if token.text not in fixed]
        head = next((word for word in words if word.state in (READ, LIKELY) and word.text not in grammar), None)
        rest = {root(token.text) for token in words if token is not head}
        learnt = {relation for token in words for relation in self.learnt.get(root(token.text), ())}
        likely = sum(token.state == LIKELY for token in tokens)
        unnamed = self.reader.unnamed(form, used, roots(text), rest, learnt) > likely + named_kinds
        unnamed = unnamed and not self.reader.is_all_of_type(best, query)
        if best.finds_nothing and not (used or query.types):  # of nothing that is named
            asked_for = roots(text) - {root(unit) for unit in units()}
            measures = {self.reader.graph.directed_relation(node.path[-1]) for node in form.compares}
            unnamed |= not all(self.reader.roots_of(one)[1] & asked_for - grammar for one in measures)
        alone, bound = (
            sum(token.state == LEFT and token.alone is apart for token in tokens) for apart in (True, False)
        )
        runs = (*reasons, *_runs(text, tokens), *([""] if unnamed else []))
        whole = best.form.of if isinstance(best.form, (Count, Aggregate)) else best.form
        parts = whole.parts if isinstance(whole, Or) else (whole,)
        bare = all(isinstance(one, Class) for one in parts)  # answers nothing more
        lost = sum(token.state == LEFT and token.text in lacking for token in tokens)
        restricting = bool(reasons or unnamed or bound or (bare and alone))
        lasting = {
            token.text if after != "of" else ""  # `cause of`
            for token, after in zip(tokens, behind, strict=True)
            if token.state == LEFT and token.text not in question_words()["prepositions"]
        }
        verbs = bool(lasting) and all(is_verb(word) and usualness(word) >= LIGHT for word in lasting)
        verbs = verbs and not (reasons or unnamed or bare or cues.kind == "time" or {"do", "does", "did"} & {*asked})
        verbs = verbs and (self.reader.is_dated(form) or not form.compares)  # `weigh more than 3 kilos`
        return Unread(runs, restricting, alone, bound, likely, lost, verbs)

    def _unused_numbers(self, query: LabelQuery, best: Candidate) -> list[bool]:
        """Of each number of a text whether a form that has one of them lacks it; of none where units change numbers."""
        used, places = texts_of_values(best.form), numbers_of(query.values)
        texts = [
            {v.text for v, k in zip(query.values, places, strict=True) if k == n}
            for n in range(max(places, default=-1) + 1)
        ]
        known = [not own.isdisjoint(used) for own in texts]
        plain = not any(value.unit for value in query.values)
        return [plain and any(known) and not one for one in known]

    def _state(self, word: str, before: str, form: FormReading, query: LabelQuery) -> str:
        """What accounts for a word by itself and the one before it, grammar left aside."""
        lists = question_words()
        if word in qualifier_words(form.best.form, self.reader.graph):
            return READ
        if before == "many" and form.counts and word in lists["units"] | lists["stated_units"]:
            return LEFT  # `how many kg`, of things
        people = word in PERSONS and self.reader.finds_persons(form.best)
        if _counts_people(word, before, form):
            return READ if people else LEFT
        if word in PERSONS and ("who" in form.words or people):
            return READ  # the thesaurus has it that one asks who
        if root(word) in form.labels:
            return READ
        if word in ("often", "frequently") and any(node.counted for node in (*form.ranks, *form.compares)):
            return READ
        group = form.best.form
        if is_superlative(word) and isinstance(group, Aggregate) and group.pick and not group.path:
            return READ  # the group with the most members
        if is_measure(word) and (form.ranks or form.ends or (form.compares and not is_superlative(word))):
            return READ if self.reader.measures(word, form, query) else LEFT
        if _ORDINAL.fullmatch(word):
            nth = next((node.n for node in form.ranks if isinstance(node, Nth)), 1)
            return READ if form.ranks and nth == (query.place or 1) else LEFT
        how = next((how for how, name in AGGREGATES.items() if word in lists[name]), "")
        if how in computations(form.best.form):
            return READ
        if word == "between" and "range" in computations(form.best.form):
            return GRAMMAR
        if word in lists["units"] and form.compares:
            return GRAMMAR
        if word in lists["lexical"] or is_superlative(word) or (how and word not in lists["counting"]):
            return LEFT
        if word in lists["negations"] and form.takes_away:
            return GRAMMAR
        if word in lists["counting"]:
            return GRAMMAR if form.number or form.ranks or word in ("much", "many", "how") else LEFT
        if form.words & {root(word), *_verbs_of_doer(word)} or (
            word in lists["beside"] and form.words & {root(one) for one in lists["beside"]}
        ):
            return READ
        if word in lists["negations"] or word in ("but", "non", "apart", "aside", "than"):
            return GRAMMAR  # forms that do not take anything away are no candidates then
        if word in _DATES and any(
            self.reader.graph.dated[way % self.reader.graph.relations] > 0.5 for way in form.best.ways
        ):
            return GRAMMAR
        if form.compares and word in units() and self._has_label_unit(form):
            return READ
        if word in MONIES or word in lists["stated_units"]:
            known = root(word) in self.reader.units(frozenset(form.best.ways))
            money = word in MONIES or word in lists["currencies"]
            return READ if known or (money and self.reader.is_money(word, form)) else LEFT
        if word in lists["units"]:
            return GRAMMAR if form.number or form.ranks or form.compares else LEFT
        return GRAMMAR if not usualness(word) and sorted(word) in mixed_letters() else LEFT

    def _has_label_unit(self, form: FormReading) -> bool:
        """Whether the label of a relation of a form says in which unit its numbers are."""
        graph = self.reader.graph
        return any(graph.label_units[way % graph.relations] for way in form.best.ways)

    def _repeated(self, tokens: Sequence[_Token], best: Candidate) -> None:
        """Marks as left the nouns of a chain such as `the boss of the boss of x` that are more than the relations of a
        form which they name."""
        said = " ".join(token.text for token in tokens)
        for noun in {match["noun"] for match in _CHAIN.finditer(said)}:
            own = [token for token in tokens if root(token.text) == root(noun)]
            named = sum(root(noun) in self.reader.roots_of(directed)[1] for directed in best.ways)
            for token in own[max(named, 1) :] if named and root(noun) not in self.reader.types else ():
                token.state = LEFT
        joined = {"and", "or", "nor"} & {token.text for token in tokens}
        for directed in {way for way in best.ways if self._is_alike(way)} if not joined else ():
            relation = directed % self.reader.graph.relations
            words = set(WORD.findall(self.reader.graph.labels[relation].lower())) - question_words()["grammar"]
            label = {root(word) for word in words} - self.reader.types
            told = [token for token in tokens if root(token.text) in label]
            used = sum(way % self.reader.graph.relations == relation for way in best.ways)
            for token in told[used:]:  # `states that border states that border x`
                token.state = LEFT
        for directed in {way for way in best.ways if best.ways.count(way) == 1 and self._is_alike(way)}:
            words = self.reader.roots_of(directed)[1] & self.reader.roots_of(self.reader.graph.inverse(directed))[1]
            for match in _NOUNS.finditer(said):
                pair = [root(match["first"]), root(match["second"])]
                if words.difference(self.reader.types).issuperset(pair) and (
                    self.reader.graph.inverse(directed) not in best.ways
                ):
                    next(token for token in tokens if token.text == match["first"]).state = LEFT

    def _is_alike(self, directed: int) -> bool:
        return bool(self.reader.graph.alike[directed % self.reader.graph.relations])

    def _beside(self, entity: int) -> set[str]:
        """Roots of the names of what an entity has a relation to, as `y , Massachusetts` has one of them."""
        graph = self.reader.graph
        return roots(*graph.store.names(graph.neighbours(entity)).values())

    def _is_learnt(self, word: str, form: FormReading) -> bool:
        """Whether training questions have a word with relations of the form alone, or, but for types, with any."""
        relations = self.learnt.get(root(word))
        if relations:
            return form.relations.issuperset(relations)
        return relations is not None and root(word) not in self.reader.types

    def _is_of_others(self, word: str, form: FormReading) -> bool:
        """Whether a word names relations of the graph, and none of the form."""
        named = self.reader.owners.get(root(word), set())
        return bool(named) and named.isdisjoint(one % self.reader.graph.relations for one in form.best.ways)

    def _paraphrases(
        self, tokens: list[_Token], doubtful: Sequence[int], query: LabelQuery, form: FormReading, texts: Sequence[str],
        encoded: EncodedTexts, lacking: Collection[str] = (),
    ) -> None:  # fmt: skip
        """Marks words as likely that are near enough to a wording of the form, or mistyped or shortened ones of it, and
        as grammar what says nothing more of the one thing that the form leads to.
        """
        text, directed_relations = query.text, sorted(set(form.best.ways))
        asked = {root(token.text) for token in tokens}
        unnamed = any(not self.reader.roots_of(directed)[0] & asked for directed in directed_relations)
        wordings = dict.fromkeys([*texts, *(own for directed in directed_relations for own in self.wordings[directed])])
        likeness = self._likeness(text, tokens, [wording for wording in wordings if wording], encoded)
        timed = cues_of(text, yes_no=False).kind == "time"  # the verb alone tells which of a thing's dates
        idle = {*SLOTS, NUMBER, *grammar_of(text)}
        asks_one = form.leads_to_one and not (form.number or unnamed or timed) and self.reader.is_named(form, asked)
        capitals = any(one.text not in SLOTS and text[one.start].islower() for one in tokens)
        for n in doubtful:
            token = tokens[n]
            around = [*tokens[max(n - 1, 0) : n], *tokens[n + 1 : n + 2]]
            if n + 2 < len(tokens) and tokens[n + 1].text in SLOTS:
                around.append(tokens[n + 2])  # as in `landlocked x countries`
            restricts = any(one.state == READ and one.text not in idle for one in around)
            restricts |= root(token.text) in self.reader.types or _is_predicate(tokens, n)
            restricts |= [one.text for one in tokens[n + 1 : n + 2]] == ["of"] and _is_read(tokens[n + 2 : n + 3])
            behind = [one.text for one in tokens[n + 1 :]]
            restricts |= bool(form.ranks) and behind == ["the", "most"]  # `who earns the most`
            restricts = restricts and not (token.text in question_words()["prepositions"] or _leads(tokens, n))
            restricts = restricts and not (asks_one and self._is_head(tokens, n))
            other = self._is_of_others(token.text, form)
            restricts |= other and (unnamed or tokens[n - 1].text in _DETERMINERS)  # `which authors`, of books
            name = n > 0 and capitals and text[token.start].isupper()
            token.alone = not (restricts or name or timed)
            other |= self.reader.means_other(token.text, form)
            other |= form.counts and n > 0 and tokens[n - 1].text == "many"  # what is counted is called so
            enough = NEAR if restricts or name or timed or other else PARAPHRASE if unnamed else ALONE
            shortened = text[token.end : token.end + 1] == "." and len(token.text) > 2
            usual = form.leads_to_one and token.text in question_words()["usual"]
            if token.text in lacking:
                continue
            if self.reader.says_value(token.text, form.best):
                token.alone = False
                continue
            if stem(token.text) in query.dropped_words:  # a mention says no other word for what it is no name of
                token.alone = False
                continue
            if usual or (asks_one and not name and self._joins(tokens, n)):
                token.state = GRAMMAR
            elif (
                likeness[n] >= enough
                or _is_mistyped(token.text, form.words)
                or (shortened and any(word.startswith(token.text) for word in form.words))
            ):
                token.state = LIKELY

    def _is_head(self, tokens: Sequence[_Token], n: int) -> bool:
        """Whether a word by which no relation is called ends a name of what is asked for, as in `two-letter sign`."""
        behind = tokens[n + 1].text if n + 1 < len(tokens) else "of"
        inside = n > 0 and tokens[n - 1].state == READ and tokens[n - 1].text not in SLOTS
        return inside and behind in _BEHIND_NAMES and root(tokens[n].text) not in self.reader.lexicon

    def _joins(self, tokens: Sequence[_Token], n: int) -> bool:
        """Whether a word is a verb between what is asked for and a mention, as in `letters abbreviate x`, by which no
        relation is called that one knows.
        """
        word, before, behind = tokens[n].text, tokens[n - 1], tokens[n + 1 :]
        if not n or not behind or not usualness(word) or root(word) in self.reader.lexicon or before.state != READ:
            return False
        object_of = next((token for token in behind if token.state != GRAMMAR), behind[-1])
        starts = behind[0].text in SLOTS or behind[0].text in _BEFORE_OBJECTS
        agrees = before.text not in SLOTS and before.text.endswith("s") != word.endswith("s")
        return starts and agrees and object_of.state == READ

    @torch.inference_mode()
    def _likeness(self, text: str, tokens: Sequence[_Token], wordings: list[str], encoded: EncodedTexts) -> list[float]:
        """Of each token its likeness to the nearest token of the wordings; 0 where it was not encoded."""
        phrases = self.scorer.phrases(wordings)
        length = int((encoded.weights[0] > 0).sum())
        like = torch.einsum("td,pud->tpu", encoded.tokens[0, :length], phrases.tokens)
        best = like.masked_fill(~(phrases.weights > 0)[None], -1.0).amax((1, 2))[:-1]
        pieces, results, at, number = list(re.finditer(r"\S+", text)), [0.0] * len(tokens), 1, 0
        for piece, ids in zip(pieces, self.scorer.network.encoder.token_ids([one[0] for one in pieces]), strict=True):
            own = best[at : at + len(ids) - 2]
            at += len(ids) - 2
            likeness = float(own.mean()) if len(own) else 0.0
            while number < len(tokens) and tokens[number].start < piece.end():
                results[number] = likeness
                number += 1
        return results


def _verbs_of_doer(word: str) -> set[str]:
    """Roots of the verbs of which a short noun for who does something may be made: `use` of `users`."""
    short = _SHORT_DOER.fullmatch(word)
    return {root(short[1]), root(f"{short[1]}e")} if short else set()


def _counts_people(word: str, before: str, form: FormReading) -> bool:
    """Whether a question asks how many people there are, of a form that counts things."""
    return word in PERSONS and form.counts and before in ("many", "of")


def _is_fixed(word: str, before: str, form: FormReading) -> bool:
    """Whether a word is never a paraphrase: one of time, arithmetic or rank."""
    lists = question_words()
    plain = word in lists["lexical"] or word in lists["counting"] or _counts_people(word, before, form)
    return plain or is_measure(word) or word in lists["stated_units"] or _ORDINAL.fullmatch(word) is not None


def _years(query: LabelQuery) -> Iterator[bool]:
    """Of each number of a text whether it may be a year."""
    for value, after in zip(query.values, (*query.values[1:], None), strict=False):
        if value.unit is None and not value.datatype.endswith("gYear"):
            yield after is not None and after.datatype.endswith("gYear")


def _leads(tokens: Sequence[_Token], n: int) -> bool:
    """Whether a preposition and a mention that is read follow a word, as in `live in x`; not `currency symbol of x`."""
    if n + 2 >= len(tokens) or tokens[n + 1].text not in _PREPOSITIONS:
        return False
    compound = tokens[n + 1].text == "of" and n > 0 and tokens[n - 1].state == READ
    return not compound and tokens[n + 2].text in SLOTS and tokens[n + 2].state == READ


def _is_read(tokens: Sequence[_Token]) -> bool:
    """Whether there is a word that is read and no mention, as behind *cause of* in `cause of death`."""
    return any(token.state == READ and token.text not in SLOTS for token in tokens)


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
