"""Which words of a question each relation, type, mention and operation explains."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgqa_core.datasets.derived.thesaurus import thesaurus
from kgqa_core.linking.english import singulars
from kgqa_core.linking.words import FUNCTION_WORDS
from kgqa_core.logic.forms import (
    BESTS,
    Aggregate,
    And,
    Arg,
    Class,
    Compare,
    CompareTo,
    Count,
    Entity,
    Form,
    Greater,
    Join,
    Minus,
    Nth,
    Or,
    Step,
)
from kgqa_core.logic.memory import Ints
from kgqa_core.search.candidates import (
    Candidate,
    LabelQuery,
    computations,
    has_span,
    has_value,
    is_false,
    nodes_of,
    numbers_of,
    texts_of_values,
)
from kgqa_core.search.demands import IN_NAMES, demands_of, names_comparison, spans_said
from kgqa_core.search.form_reading import RATES, root, roots
from kgqa_core.search.graph import WORD, LabelGraph
from kgqa_core.search.phrases import NUMBER, SLOT, SLOTS
from kgqa_core.search.question_words import (
    AGGREGATES,
    MONIES,
    adjectives,
    amounts,
    entry_of,
    grammar_of,
    is_measure,
    is_superlative,
    kinds,
    other_types,
    question_words,
)
from kgqa_core.search.reading import CONTENT_FREE, stem

Floats = NDArray[np.float64]
NEAR, SPAN = 0.45, 0.35
"""Likeness of a word to a relation's words from which it begins to be explained, and over which it grows to 1."""
LONGEST_VALUE, MOST_INSIDE, MOST_NAMED = 4, 12, 20_000
"""Words of a value of the graph, texts that have a word by which they are asked for, things whose names are read."""
SHORTEST_INSIDE = 4
"""Letters of a word that is looked for in texts."""
_BY_HOW_MUCH = re.compile(
    r"\bby how (?:much|many)\b|\bhow many more\b"
    r"|\bhow (?:much|many(?: \w+)?) (?:more|less|fewer|(?!other|under|over)\w+er)\b.*\bthan\b"
)
_ORDINALS = frozenset("first second third fourth fifth sixth seventh eighth ninth tenth".split())
_BEING = frozenset(("is", "are", "was", "were", "has", "have", "had"))
_DETERMINERS = frozenset("which what whose many all the every any of".split())
_SPANS = {
    f"per {words.split()[0]}": frozenset(words.split())
    for words in ("day daily", "hour hourly", "week weekly", "night nightly", "month monthly")
} | {"per year": frozenset(("yearly", "annual"))}
_AWAY, _BOUNDS = frozenset(("but", "except")), frozenset(("least", "most"))
_BEFORE_VERBS = frozenset("do does did will would can could should must".split())
_RANGES = frozenset("between up within s".split())
SIGNS = re.compile(r"[<>≤≥=+-]")
"""Signs that compare."""
_THAN_MENTION = re.compile(
    rf"(?<!other )(?<!rather )\b(?P<word>than|before|after)(?: (?:the|that of|those of|in|of)(?= ))* "
    rf"(?:(?P<slot>{SLOT})\b(?! (?:or|and) {SLOT}\b)|(?:it|him|her|them)\b(?! \w))"
)
"""A mention, or a word for the only one, that others are compared with: *larger than x*, *born before x*."""
_BEFORE_AFTER = frozenset(map(root, "look looks looked looking take takes taking took named called".split()))
_KINDS = frozenset(("kind", "sort", "category"))
_LARGE = frozenset("most highest best last latest top max maximum more greater higher later over above after since "
                  "beyond exceeding exceeds".split())  # fmt: skip
_SMALL = frozenset("least lowest worst first earliest min minimum less fewer fewest lower earlier under below before "
                  "until till".split())  # fmt: skip


class WordIndex:
    """By word, the directed relations of a graph whose wordings have it."""

    def __init__(self, graph: LabelGraph, words: Sequence[set[str]]) -> None:
        self.graph = graph
        self.kind_labels = {
            label.lower() for n, label in enumerate(graph.labels) if label.lower() in _KINDS and not graph.is_type[n]
        }
        self.own = [frozenset(map(root, own)) for own in words]
        self.relations: dict[str, list[int]] = {}
        for relation, own in enumerate(self.own):
            for word in own:
                self.relations.setdefault(word, []).append(relation)
        self._types: dict[int, frozenset[str]] = {}
        self.measures: dict[str, list[int]] = {}
        for word, sides in adjectives().items():
            for relation in range(graph.relations):
                labels = entry_of(graph, relation).labels
                if labels and labels[0] in sides and graph.is_measure(relation):
                    self.measures.setdefault(word, []).append(relation)
        self.amounts = amounts(graph)
        self.measures |= dict.fromkeys(MONIES, sorted(self.amounts))

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Words that types, or things without a type, are called by."""
        named = frozenset(root(word) for words in self.graph.name_words for word in words)
        return named.union(*(self.type_words(index) for index in range(len(self.graph.type_labels))))

    @cached_property
    def text_words(self) -> dict[str, tuple[int, ...]]:
        """Longer texts of the graph, such as descriptions, by the roots of their words; none where there are many."""
        graph, found = self.graph, dict[str, list[int]]()
        for node, text in graph.long_texts.items():
            for word in {root(word) for word in WORD.findall(text.lower())}:
                found.setdefault(word, []).append(node)
        for text, nodes in graph.texts.items() if found and len(graph.texts) <= MOST_NAMED else ():
            words = {root(word) for word in WORD.findall(text)}
            for word in words & found.keys() if len(words) > 1 else ():
                found[word] += nodes  # `customs inspection`, where longer ones have customs too
        return {word: tuple(dict.fromkeys(nodes)) for word, nodes in found.items() if len(nodes) <= MOST_INSIDE}

    def is_kind(self, word: str) -> bool:
        """Whether a word that says little elsewhere is the label of a relation here: the *kind* of a creature."""
        return not self.kind_labels.isdisjoint(singulars(word))

    def type_words(self, index: int) -> frozenset[str]:
        """Words that a type is called by."""
        if index not in self._types:
            label = self.graph.type_labels[index]
            texts = (label, *other_types(label))
            self._types[index] = frozenset(root(stem(word)) for text in texts for word in WORD.findall(text))
        return self._types[index]


class TextRun(NamedTuple):
    """Words of a question, from `first` to before `last`, that are a text of the graph: its forms and their nodes.

    inside: whether it is a word within longer texts, such as descriptions.  named: whether it tells what is in names.
    """

    first: int
    last: int
    values: tuple[tuple[Form, Ints], ...]
    inside: bool = False
    named: bool = False


class WordCover:
    """Of one question the weight of each word, and to what degree each part of a form explains it, 0 to 1.

    words: of the query's text.  relations: [2 * relations, words].  types: of each that the question names [words].
    texts: runs of words that are values of the graph.
    """

    def __init__(self, index: WordIndex, query: LabelQuery, nearness: Floats) -> None:
        self.query, self.index = query, index
        self.words = [" ".join(WORD.findall(piece.lower())) for piece in query.text.split()]
        roots = self.roots = [root(word) for word in self.words]
        size = len(self.words)
        self.weights, self.slots = np.ones(size), dict[int, int]()
        self.rank, self.count, self.compare, self.away, self.value = (np.zeros(size) for _ in range(5))
        self.nouns, self.lasting = np.zeros(size), np.zeros(size)
        self.aggregates = {how: np.zeros(size) for how in AGGREGATES}
        self.numbers = list[Floats]()
        lists, idle = question_words(), grammar_of(query.text) | CONTENT_FREE
        for n, word in enumerate(self.words):
            if word in _BOUNDS and n and self.words[n - 1] == "at":
                self.compare[n] = 1
            elif self.words[n : n + 2] == ["no", "of"]:
                self.count[n], self.weights[n] = 1, 0.5
            elif is_superlative(word) or word in _ORDINALS:
                self.rank[n] = 1
            elif " ".join(self.words[n : n + 2]) in lists["negations"]:
                self.away[n : n + 2] = 1
            elif word in lists["negations"] or word in _AWAY or word.endswith(("n't", "n’t", "n t")):
                self.away[n] = 1
            elif word in lists["counting"]:
                self.count[n], self.weights[n] = 1, 0.5
                self.aggregates["sum"][n] = word in lists["sums"]
            elif (word in lists["comparatives"] and not is_particle(self.words, n)) or self._is_comparative(n):
                self.compare[n] = 1
            elif word in SLOTS:
                self.slots[SLOTS.index(word)], self.weights[n] = n, 1.5
            elif word == NUMBER or (word in lists["units"] and n and self.words[n - 1] == NUMBER):
                self.value[n] = 1
                if word == NUMBER:
                    self.numbers.append(np.zeros(size))
                self.numbers[-1][n] = 1
            elif word == "by" and self._groups(n):
                self.aggregates["group"][n] = 1
            elif how := next((how for how, name in AGGREGATES.items() if word in lists[name]), ""):
                whole = self.words[n + 1 : n + 2]  # `average height`, where others have a height
                alone = any([label.lower()] == whole for label in index.graph.labels)
                self.aggregates[how][n] = alone or not self._is_in_label(n)
            elif (
                (all(part in idle for part in word.split()) and not index.is_kind(word))
                or is_particle(self.words, n)
                or (self.words[n : n + 2] == ["year", NUMBER])
            ):
                self.weights[n] = 0.0
            elif not (roots[n] in index.relations or roots[n] in index.kinds):
                self.nouns[n] = is_head(self.words, word)
        self.asked = asked_noun(self.words, index, idle)
        self.total = max(float(self.weights.sum()), 1.0)
        self.relations = np.clip((nearness - NEAR) / SPAN, 0.0, 1.0)
        for n, word in enumerate(self.words):
            if word in SLOTS or word == NUMBER:
                self.relations[:, n] = 0.0
            elif self.weights[n]:
                self.relations[index.relations.get(roots[n], []), n] = 1.0
                self.relations[index.measures.get(word, []), n] = 1.0
        self.types = {
            number: np.array([float(word in index.type_words(number)) for word in roots]) for number, _ in query.types
        }

        low = query.text.lower()
        for span in spans_said(low):
            first, last = (len(low[:at].split()) for at in span)
            self.lasting[first:last] = 1
        self.lasting[list(self.slots.values())] = 0
        self.texts = tuple(self._texts(index.graph))
        for run in self.texts:
            self.rank[run.first : run.last] = 0  # `first officers`

    def _is_comparative(self, n: int) -> bool:
        """Whether a word is a comparative of the thesaurus, as *dearer* in `is x dearer than y`."""
        return self.words[n].endswith("er") and self.words[n + 1 : n + 2] == ["than"] and self.words[n] in adjectives()

    def _is_in_label(self, n: int) -> bool:
        """Whether a word and the next one are part of the label of a relation, as in `price per kg`, or say it in other
        words, as `per day` the `day rate`."""
        pair, labels = " ".join(self.words[n : n + 2]), [label.lower() for label in self.index.graph.labels]
        spans = _SPANS.get(pair, frozenset())
        return " " in pair and any(
            f" {pair}" in f" {label}" or not (spans.isdisjoint(own := label.split()) or RATES.isdisjoint(own))
            for label in labels
        )

    def _may_be_value(self, run: slice, name: str) -> bool:
        """Whether words are none for relations or kinds, and do not stand where a verb does: `what does x play`.

        name: of the value; the plural of a category is for what has it: `composers`.
        """
        known, doing, before = thesaurus().vocabulary, {"do", "does", "did"}, self.words[run.start - 1 : run.start]
        genders = question_words()["female"] | question_words()["male"]
        graph = self.index.graph
        several = name != " ".join(self.words[run]) and not graph.categories.isdisjoint(graph.values_by_name[name])
        if self.explained(run) or any(
            stem(word) in known and word not in genders and not several for word in self.words[run]
        ):
            return False
        verb = before and (before[0] in (*doing, "who", "that", "to") or before[0] in SLOTS)
        return not (verb and (before[0] not in SLOTS or not doing.isdisjoint(self.words[: run.start])))

    def _groups(self, n: int) -> bool:
        """Whether *by* stands before a type or relation by which something is grouped: `goals by team`."""
        index, behind = self.index, self.roots[n + 1 : n + 2]
        ways = index.relations.get(behind[0], ()) if behind else ()
        known = (
            bool(behind)
            and self.words[n + 1] not in (*FUNCTION_WORDS, *SLOTS)
            and (behind[0] in index.kinds or any(not index.graph.is_measure(way) for way in ways))
        )
        if not known or self.rank.any() or not n or self.words[n - 1].endswith("ed"):
            return False
        return f"{self.words[n - 1]} by" not in {label.lower() for label in index.graph.labels}

    def _texts(self, graph: LabelGraph) -> Iterator[TextRun]:
        idle = question_words()["units"] | FUNCTION_WORDS
        taken = np.array([word in SLOTS or word == NUMBER for word in self.words], dtype=np.bool_)
        if part := IN_NAMES.search(low := self.query.text.lower()):
            first, last = (len(low[:at].split()) for at in part.span())
            taken[first:last] = True
            yield TextRun(first, last, tuple(self._named(graph, part["word"])), named=True)
        for length, first in ((m, n) for m in range(LONGEST_VALUE, 0, -1) for n in range(len(self.words) - m + 1)):
            run = slice(first, first + length)
            if taken[run].any() or not self.weights[run].any() or idle.issuperset(self.words[run]):
                continue
            if self.rank[run].all():
                continue  # the currency of code TOP
            text = " ".join(self.words[run])
            known = next((one for one in (text, *singulars(text)) if one in graph.texts), None)
            leaf = next((one for one in (text, *singulars(text)) if one in graph.values_by_name), None)
            if known is not None or (leaf is not None and self._may_be_value(run, leaf)):
                taken[run] = True
                nodes = graph.texts[known] if known is not None else graph.values_by_name[leaf or ""]
                texts = {} if known is not None else graph.store.entity_keys(list(nodes))
                keys = [(node, texts[node] if texts else graph.text_of(node)) for node in nodes[:2]]
                forms = tuple((graph.named(node, key), graph.nodes_of(node, key)) for node, key in keys)
                yield TextRun(first, first + length, forms)
        yield from self._inside_texts(graph, taken)

    def _named(self, graph: LabelGraph, word: str) -> Iterator[tuple[Form, Ints]]:
        """Things of each type of the question in whose names a word begins with some letters."""
        begins = re.compile(rf"(?<!\w){re.escape(word)}", re.IGNORECASE)
        for number in self.types:
            names = graph.store.names(graph.members(number)[:MOST_NAMED].tolist())
            nodes = [node for node, name in names.items() if begins.search(name)]
            if nodes:
                parts = tuple(Entity(key) for key in graph.store.entity_keys(nodes).values())
                yield Or(parts) if len(parts) > 1 else parts[0], np.array(nodes, dtype=np.int64)

    def _inside_texts(self, graph: LabelGraph, taken: NDArray[np.bool_]) -> Iterator[TextRun]:
        """Words that say nothing of relations, types and operations, but stand in descriptions and the like."""
        told = self.rank + self.count + self.compare + self.away + sum(self.aggregates.values(), np.zeros(len(taken)))
        for n, word in enumerate(self.words):
            own = self.roots[n]
            known = own in self.index.relations or own in self.index.kinds or word in question_words()["lexical"]
            before = n - 1 - (self.words[n - 1] in SLOTS)
            verb = n > 0 and self.words[before] in _BEFORE_VERBS
            if taken[n] or told[n] or known or verb or not self.weights[n] or len(word) < SHORTEST_INSIDE:
                continue
            if nodes := self.index.text_words.get(own):
                texts = {node: graph.long_texts.get(node) or graph.text_of(node) for node in nodes}
                literals = [(graph.named(node, text), node) for node, text in texts.items()]
                form = Or(tuple(one for one, _ in literals)) if len(literals) > 1 else literals[0][0]
                yield TextRun(n, n + 1, ((form, np.array(sorted(nodes), dtype=np.int64)),), inside=True)

    @cached_property
    def grouped(self) -> frozenset[str]:
        """Roots of the two words behind the last word for groups, as *per* or *each*."""
        places = np.flatnonzero(self.aggregates["group"])
        return frozenset(self.roots[int(places[-1]) + 1 :][:2]) if len(places) else frozenset()

    @cached_property
    def groups_named(self) -> frozenset[int]:
        """The relations whose labels have one of these words."""
        labels = enumerate(self.index.graph.labels)
        return frozenset(n for n, label in labels if self.grouped and not roots(label).isdisjoint(self.grouped))

    @cached_property
    def alternatives(self) -> set[int]:
        """Places of what stands next before and next behind an *or* between conditions, mentions or texts."""
        places = sorted((*self.slots.values(), *(run.first for run in self.texts if not run.inside)))
        at = next((n for n, word in enumerate(self.words) if word == "or"), 0)
        if self.words[at + 1 : at + 2] and (end_said(self.words, at + 1) or self.words[at + 1] == "not"):
            return set()
        sides = {*[n for n in places if n < at][-1:], *[n for n in places if n > at][:1]} if at else set()
        return sides if len(sides) == 2 else set()

    @cached_property
    def ends_said(self) -> set[str]:
        """The ends of scales that words of the question are for."""
        return {end_said(self.words, n) for n in range(len(self.words))} - {""}

    @cached_property
    def compared(self) -> dict[int, str]:
        """The mentions whose own values others are compared with, and the word before each."""
        judges = self.words[:1] and self.words[0] in ("is", "are", "was", "were", "do", "does", "did", "has", "have")
        if judges or self.by_how_much or names_comparison(self.query.text, self.index.graph):
            return {}
        found = _THAN_MENTION.finditer(self.query.text.lower())
        slots = {SLOTS.index(match["slot"]) if match["slot"] else 0: match["word"] for match in found
                 if match["slot"] or len(self.query.slots) == 1}  # fmt: skip
        compares = self.compare.any() or bool(self.ends_said)
        return {number: word for number, word in slots.items() if compares and number < len(self.query.slots)}

    def asks(self, demand: re.Pattern[str]) -> bool:
        """Whether the question has one of the demands of `search.demands`."""
        return demand in demands_of(self.query.text)

    @cached_property
    def by_how_much(self) -> bool:
        """Whether the question asks by how much one thing has more than another."""
        return _BY_HOW_MUCH.search(self.query.text) is not None

    @cached_property
    def may_compare(self) -> bool:
        """Whether a word or sign of the question compares."""
        words = self.words
        told = bool(self.ends_said) or {"from", "to"} <= {*words} or any(is_measure(w) or w in _RANGES for w in words)
        return told or SIGNS.search(self.query.text) is not None

    @cached_property
    def money(self) -> set[int]:
        """The numbers of the question that a currency stands behind, by their order."""
        places = [n for n, word in enumerate(self.words) if word == NUMBER]
        currencies = question_words()["currencies"]
        return {k for k, n in enumerate(places) if not currencies.isdisjoint(self.words[n + 1 : n + 2])}

    def explained(self, run: slice) -> bool:
        """Whether words are for relations or types, too."""
        return all(stem(word) in self.index.graph.label_words for word in self.words[run])

    def values_in(self, form: Form) -> Floats:
        """The cover of the numbers and dates that a form compares with; of all where it is none of the text."""
        texts = texts_of_values(form)
        values = zip(self.query.values, numbers_of(self.query.values), strict=True)
        used = {number for value, number in values if value.text in texts and number < len(self.numbers)}
        return np.maximum.reduce([self.numbers[number] for number in used]) if used else self.value

    def states_behind(self, form: Form, at: int) -> bool:
        """Whether a form states a relation to true or false by words behind a place of the question."""
        graph = self.index.graph
        steps = (step for node in nodes_of(form) if isinstance(node, Join) for step in node.path)
        relations = [graph.memory.relation_ids[step.relation] for step in steps]
        said = {root for root in self.roots[at + 1 :]}
        return any(graph.to_truths[one] and not said.isdisjoint(self.index.own[one]) for one in relations)

    def said(self, form: Form) -> set[int]:
        """Places of the words that name types or relations of a form."""
        graph, found = self.index.graph, list[Floats]()
        for node in nodes_of(form):
            if isinstance(node, Class):
                found += [self.types[n] for n in (graph.type_of_key.get(node.key, -1),) if n in self.types]
            found += [self.relations[graph.directed_relation(step)] for step in getattr(node, "path", ())]
        return {n for cover in found for n in np.flatnonzero(cover * (self.weights > 0) > 0.5).tolist()}

    def has_all(self, relation: int) -> bool:
        """Whether the question has all words of a relation but forms of *be* and *have*."""
        own = self.index.own[relation] - _BEING
        return bool(own) and own.issubset(self.roots)

    def says(self, relation: Step, first: int, last: int) -> bool:
        """Whether one of the words from `first` to before `last` names a relation."""
        directed = self.index.graph.directed_relation(relation)
        return bool(self.relations[directed, first:last].max(initial=0.0) > 0.5)

    def names(self, relation: int) -> bool:
        """Whether a word of the question names a directed relation."""
        return bool((self.relations[relation] * self.weights).max(initial=0.0) >= 0.5)

    def share(self, cover: Floats) -> float:
        """The weight of what is explained, of all."""
        return float(cover @ self.weights) / self.total

    def of(self, one: Candidate) -> tuple[float, float, float, float]:
        """Of a candidate the share that it explains, the largest weight of a word that it leaves; whether a word of
        rankings is left, and whether it ranks without one (0.5 or 0)."""
        nodes = nodes_of(one.form)
        cover = self.relations[list(one.ways)].max(0, initial=0.0)
        for number in one.types:
            if number in self.types:
                cover = np.maximum(cover, self.types[number])
        for number in one.slots:
            if number in self.slots:
                cover[self.slots[number]] = 1.0
        computed = computations(one.form)
        ranks = any(
            isinstance(node, (Arg, Nth, Greater)) or (isinstance(node, Aggregate) and node.best) for node in nodes
        )
        for words, has in (
            (self.rank, ranks),
            (self.count, isinstance(one.form, Count) or "count" in computed),
            *((words, how in computed) for how, words in self.aggregates.items()),
            (self.compare, any(isinstance(node, (Compare, CompareTo, Greater)) for node in nodes)),
            (self.away, any(isinstance(node, Minus) or is_false(node) for node in nodes)),
            (self.values_in(one.form), any(map(has_value, nodes))),
            (self.value, any(isinstance(node, Nth) for node in nodes)),
            (self.lasting, has_span(one.form)),
        ):
            if has:
                cover = np.maximum(cover, words)
        if self.nouns.any() and is_untyped(one.form, self.index.graph):
            cover = np.maximum(cover, self.nouns)
        for run in self.texts:
            if any(node == form for node in nodes for form, _ in run.values):
                cover[run.first : run.last] = 1.0
        left = float(((1.0 - cover) * self.weights).max(initial=0.0))
        asked = bool(self.rank.any() or self.compare.any())
        return self.share(cover), left, 0.5 * (bool(self.rank.any()) and not ranks), 0.5 * (ranks and not asked)


def is_particle(words: Sequence[str], n: int) -> bool:
    """Whether a word belongs to the verb before it, as in `look after`, and compares nothing."""
    return words[n] == "after" and n > 0 and root(words[n - 1]) in _BEFORE_AFTER


def end_said(words: Sequence[str], n: int) -> str:
    """The end of a scale that a word is for, `max` or `min`; "" for other words."""
    word = words[n]
    if (word not in _LARGE and word not in _SMALL) or is_particle(words, n):
        return ""
    bound = word in ("most", "least") and n > 0 and words[n - 1] == "at"
    return "max" if (word in _LARGE) != bound else "min"


def asked_noun(words: Sequence[str], index: WordIndex, idle: frozenset[str]) -> int:
    """Place of the noun for what a question asks for, before its first preposition or verb; -1 where there is none.

    A noun here is a word for a type or a relation.
    """
    lists, found = question_words(), -1
    start = max((n for n, word in enumerate(words) if word in ("which", "what")), default=0)
    for n, word in enumerate(words[start:], start):
        if word in SLOTS and n + 1 < len(words) and words[n + 1] not in idle:
            continue  # as in `x bands from y`
        if word in ("who", "where", "when", "do", "does", "did", "is", "are", "was", "were", *SLOTS):
            break
        if word == "of" and words[n - 1] in (*lists["counting"], *lists["shares"]):
            continue
        if word in _DETERMINERS or word in ("list", "show", "give", "me", "how", "the", "a", "and", "or"):
            continue
        if found >= 0 and (word in idle or word in lists["negations"] or word.endswith("ed")):
            break
        if index.measures.get(word) is None and (root(word) in index.relations or root(word) in index.kinds):
            found = n
    return found


def is_head(words: Sequence[str], word: str) -> bool:
    """Whether a word of a question stands where the noun for what it asks for, or for what it is about, does."""
    n = words.index(word)
    if n and words[n - 1] == "of" and not word.endswith("s") and kinds().isdisjoint((word,)):
        return False  # a name
    return (words[n - 1] if n else "which") in _DETERMINERS or (n > 1 and words[n - 2] in _BOUNDS)


def is_untyped(form: Form, graph: LabelGraph) -> bool:
    """Whether a graph has no type for the things that a form finds, counts or computes of: any noun may be theirs."""
    while isinstance(form, (And, Minus, Arg, Nth, Count)) or (isinstance(form, Aggregate) and form.how not in BESTS):
        form = form.parts[0] if isinstance(form, And) else form.of
    if isinstance(form, Compare):
        return bool(graph.head_type[graph.memory.relation_ids[form.path[-1].relation]] < 0)
    if not isinstance(form, Join):
        return False
    directed = graph.inverse(graph.directed_relation(form.path[0]))
    return graph.to_entities(directed) and graph.end_type(directed) < 0
