"""What a form reads of a question: the words of its relations, types, units and values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np

from kgqa_core.datasets.derived.thesaurus import Thesaurus, thesaurus
from kgqa_core.linking.english import singulars
from kgqa_core.linking.words import common_verbs, english_words
from kgqa_core.logic.forms import (
    BEST_MEMBERS,
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
    Holds,
    Join,
    Literal,
    Minus,
    Nth,
    Or,
)
from kgqa_core.logic.memory import NONE, Ints
from kgqa_core.search.candidates import (
    Candidate,
    LabelQuery,
    Slot,
    among,
    classes_of,
    has_value,
    is_false,
    labels_of,
    nodes_of,
)
from kgqa_core.search.cues import LOOKED_AT, cues_of
from kgqa_core.search.graph import PROFESSIONS, WORD, LabelGraph
from kgqa_core.search.phrases import DATED, SLOTS, RelationWords, has_any
from kgqa_core.search.question_words import (
    MONIES,
    OF_ENDS,
    PERSONS,
    adjectives,
    amounts,
    entry_of,
    is_mutual,
    is_person,
    kinds,
    other_types,
    question_words,
)
from kgqa_core.search.reading import ABOVE, CONTENT_FREE, stem, stems

_ENDINGS = ("ness", "ings", "ing", "ers", "er", "ors", "or", "ed", "ies", "es", "e", "ly", "y", "s")
LOCATED = "located in"
"""A label of the relation from a place to one that it is part of, in the thesaurus."""
_IRREGULAR = {
    past: verb
    for verb, pasts in (
        ("lead", "led"), ("write", "wrote written"), ("win", "won"), ("sell", "sold"), ("buy", "bought"),
        ("make", "made"), ("hold", "held"), ("build", "built"), ("teach", "taught"), ("found", "founded"),
        ("give", "gave given"), ("speak", "spoke spoken"), ("sing", "sang sung"), ("drive", "drove driven"),
        ("grow", "grew grown"), ("choose", "chose chosen"), ("fight", "fought"), ("feed", "fed"), ("keep", "kept"),
        ("pay", "paid"), ("run", "ran running"), ("spend", "spent"), ("send", "sent"), ("meet", "met meeting"),
        ("bring", "brought"), ("catch", "caught"), ("draw", "drew drawn"), ("throw", "threw thrown"), ("lend", "lent"),
        ("begin", "began begun"), ("hang", "hung"), ("deal", "dealt"), ("wear", "wore worn"), ("eat", "ate eaten"),
        ("ride", "rode ridden"), ("fly", "flew flown flies"), ("steal", "stole stolen"), ("breed", "bred"),
        ("person", "people persons ppl"), ("child", "children"), ("man", "men"), ("woman", "women"),
        ("swim", "swam swum swimming"), ("weave", "wove woven"), ("strike", "struck"), ("shoot", "shot"),
        ("become", "became"), ("go", "went gone"), ("come", "came"), ("see", "saw seen"), ("get", "got gotten"),
        ("take", "took taken"), ("lose", "lost"), ("say", "said"), ("know", "knew known"), ("break", "broke broken"),
        ("rise", "rose risen"), ("fall", "fell fallen"), ("stand", "stood"), ("lie", "lying lay lain"),
        ("leave", "left leaving"), ("tell", "told"), ("think", "thought"), ("sit", "sat sitting"), ("have", "had has"),
        ("sleep", "slept"), ("blow", "blew blown"), ("hide", "hid hidden"), ("freeze", "froze frozen"),
        ("forget", "forgot forgotten"), ("drink", "drank drunk"), ("seek", "sought"), ("stick", "stuck"),
        ("swear", "swore sworn"), ("wake", "woke woken"), ("shake", "shook shaken"), ("bind", "bound"),
        ("license", "licence licences"), ("defend", "defence defense"),
    )
    for past in pasts.split()
}  # fmt: skip
"""Verbs by their past forms, nouns by their plurals."""
_SHORT = re.compile(r"([^\Waeiou]?[aeiou][^\Waeiouwxy])(?:ed|ing)")
"""A short verb that ends in a mute e: `hired`, `dating`, `used`."""
_BASES = (
    (r"(\w+)(?:ing|ed|es|s|d)", r"\1"), (r"(\w+?)(\w)\2(?:ing|ed)", r"\1\2"), (r"(\w+)(?:ing|ed)", r"\1e"),
    (r"(\w+)i(?:es|ed)", r"\1y"),
)  # fmt: skip
"""Forms of regular verbs, and what each is made of."""
GENERIC = frozenset("thing place location person people organization organisation work group item object".split())
"""Nouns under which others fall."""
_DEEDS = ("ment", "ation", "ion", "al")
"""Endings of nouns for what somebody does."""
_DOER = re.compile(r"(?:er|or|ist|ian|ect)s?$")
RATES = frozenset("rate rent wage price cost fee pay charge salary".split())
_NO_SIZES = RATES.union("level rank rating score age floor year".split())
NEIGHBOURS, ONE_EACH = 64, 1.05
"""Things beside a mention at most whose own neighbours are looked at; mean number of things up to which a relation
leads to one."""
_OF_SORTS = frozenset("model type kind class species breed variant version series edition product".split())
"""Labels of what a thing is one of, and has in common with others: the seats of a model are those of its vehicles."""
_CODES = re.compile(r"\b(?:id|code|no|nr|index|key)$")
"""Ends of labels of numbers that measure nothing."""
_PLAIN_COMPARATIVES = frozenset("more less fewer higher lower highest lowest".split())
FEW_MEASURES = 3
"""Measures that an adjective has at most which says of what it is: *heavier*, not *larger*."""
MOST_TYPES = 40
"""Types of a graph that states for each thing which it is."""
_LYING = frozenset("located situated lies lying found based is".split())
_TIMES = frozenset("latest earliest last first later earlier".split())
COUNTRIES = frozenset(("country", "countries", "nation", "nations"))
"""Words that name a kind of thing, and paraphrase no relation."""
_ANY_MEASURE = frozenset("best worst highest lowest greatest fewest latest earliest".split())
_JUDGED = re.compile(r"\b(?:best|worst)[ -](?:\w+(?:ed|ing)|paid|sold)\b")
"""What is best by a measure that is named: *best paid*."""
_SIZES = frozenset("largest biggest smallest larger bigger smaller greatest greater".split())
"""Adjectives that may be of how many there are."""
_ARTICLES = frozenset(("a", "an", "the"))
_NO_NAMES = frozenset(
    "a an the of in on at by to from for with is are was were do does did has have had what which who whom whose how "
    "that many much it n".split()
)
"""Words of wordings that name no relation."""


@lru_cache(maxsize=1 << 14)
def is_verb(word: str) -> bool:
    """Whether a word is a form of a verb more often than of a noun or an adjective.

    >>> [word for word in ("runs", "kept", "crossing", "scored", "buildings", "landlocked", "people") if is_verb(word)]
    ['runs', 'kept', 'crossing', 'scored']
    """
    word = _IRREGULAR.get(word, word)
    bases = {word, *(match.expand(base) for form, base in _BASES if (match := re.fullmatch(form, word)))}
    return not common_verbs().isdisjoint(bases) or (word.endswith("ed") and word not in english_words())


@lru_cache(maxsize=1 << 14)
def root(word: str) -> str:
    """A word without endings of plurals, of verbs and of nouns that are made of verbs.

    >>> root("speaking") == root("speaks"), root("directors") == root("directed"), root("country") == root("county")
    (True, True, False)
    >>> root("hired") == root("hire"), root("remotely") == root("remote")
    (True, True)
    """
    word = stem(_IRREGULAR.get(word, word))
    if short := _SHORT.fullmatch(word):
        return f"{short[1]}e"
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word.removesuffix(ending)
            return root(word) if ending == "ly" or (ending in ("ed", "ing") and word.endswith(("er", "or"))) else word
    return word


@lru_cache(maxsize=1 << 10)
def deeds(label: str) -> frozenset[str]:
    """Roots of the verbs of what the records of a type are of, by its label: *repair*, *treat* of *treatment*."""
    noun = root(label.rpartition(" ")[2])
    return frozenset((noun,)) | {
        root(noun[: -len(end)]) for end in _DEEDS if noun.endswith(end) and len(noun) - len(end) >= 4
    }


def roots(*texts: str) -> set[str]:
    """The roots of the words of some texts."""
    return {root(word) for text in texts for word in WORD.findall(text.lower())} - set(SLOTS)


def relation_nouns() -> Mapping[str, frozenset[str]]:
    """Roots of the nouns of the thesaurus that name relations, each with the first labels of these."""
    return _relation_nouns(thesaurus())


@cache
def _relation_nouns(known: Thesaurus) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for entry in known.relations.values():
        for noun in entry.nouns:
            if " " not in noun:
                found[root(noun)] = found.get(root(noun), frozenset()) | {entry.labels[0]}
    return found


@cache
def _place_roots() -> frozenset[str]:
    return frozenset(map(root, question_words()["places"]))


@lru_cache(maxsize=1)
def _beside() -> set[str]:
    return roots(*question_words()["beside"])


@lru_cache(maxsize=1)
def _ratings() -> set[str]:
    """Roots of the labels of relations that say how good something is."""
    return roots("rating score points rank ranking grade stars quality level performance elo")


@lru_cache(maxsize=16)
def _asked(text: str) -> set[str]:
    return roots(text)


@dataclass(frozen=True)
class FormReading:
    """What a form reads.  words: roots of all its wordings; labels: of the graph's labels of what it names; phrase: of
    its phrase."""

    best: Candidate
    words: set[str]
    labels: set[str]
    phrase: set[str]
    number: bool
    """Whether it finds one number, or how many there are."""
    typed: bool
    """Whether the graph has a type of anything in it."""

    @cached_property
    def relations(self) -> set[str]:
        """Keys of the relations in it."""
        return {step.relation for node in nodes_of(self.best.form) for step in getattr(node, "path", ())}

    @cached_property
    def ranks(self) -> list[Arg | Nth | Greater | CompareTo | Aggregate]:
        """Its parts that rank, or compare things."""
        ranking = (Arg, Nth, Greater, CompareTo)
        return [
            node
            for node in nodes_of(self.best.form)
            if isinstance(node, ranking) or (isinstance(node, Aggregate) and node.how in BEST_MEMBERS)
        ]

    @cached_property
    def ends(self) -> list[Aggregate]:
        """Its parts that compute the largest or the smallest value, or their difference."""
        ends = (*BESTS, "range")
        if isinstance(self.best.form, Aggregate) and self.best.form.pick and self.best.form.path:
            return [self.best.form]
        return [node for node in nodes_of(self.best.form) if isinstance(node, Aggregate) and node.how in ends]

    @cached_property
    def compares(self) -> list[Compare]:
        """Its parts that compare with a value."""
        return [node for node in nodes_of(self.best.form) if isinstance(node, Compare)]

    @cached_property
    def valued(self) -> bool:
        """Whether it has a value of the question."""
        return any(has_value(node) for node in nodes_of(self.best.form))

    @cached_property
    def takes_away(self) -> bool:
        """Whether it leaves something out."""
        return any(isinstance(node, Minus) or is_false(node) for node in nodes_of(self.best.form))

    @cached_property
    def leads_to_one(self) -> bool:
        """Whether it goes from a mention along relations to one thing, which little can narrow."""
        path = all(isinstance(node, (Join, Entity)) for node in nodes_of(self.best.form))
        return path and isinstance(self.best.form, Join) and self.best.nodes is not None and len(self.best.nodes) == 1

    @property
    def counts(self) -> bool:
        """Whether it counts things by no number of theirs."""
        return isinstance(self.best.form, Count) and not self.compares


class FormReader:
    """Tells what forms over one graph read.

    wordings: of each directed relation; words: of each relation.
    """

    def __init__(
        self, graph: LabelGraph, wordings: Sequence[tuple[str, ...]], words: Sequence[RelationWords] = ()
    ) -> None:
        self.graph, self.wordings = graph, wordings
        tails = [entry_of(graph, n).tail or (word.noun if word.predicate == f"that {label.lower()}" else "")
                 for n, (word, label) in enumerate(zip(words, graph.labels, strict=False))]  # fmt: skip
        self.ends = tails + [word.head for word in words]
        """What the things at the end of each directed relation are called."""
        self._known: dict[int, tuple[set[str], set[str]]] = {}
        self._wholes: dict[int, list[set[str]]] = {}
        self._unit_roots: dict[frozenset[int], set[str]] = {}
        self._having_value: dict[str, Ints] = {}
        self._amounts = amounts(graph)

    def read(self, best: Candidate, texts: Sequence[str], used: Sequence[Slot], asked: set[str]) -> FormReading:
        """What a candidate reads.  texts: its phrase and the noun of what it finds; asked: roots of the question."""
        types = classes_of(nodes_of(best.form), self.graph)
        words = roots(*texts).union(*(self.roots_of(directed)[1] for directed in best.ways))
        ends = map(self.graph.end_type, best.ways[:-1])
        words = words.union(*(deeds(self.graph.type_labels[end]) for end in ends if self.graph.is_nameless(end)))
        steps = (node.path[-1] for node in nodes_of(best.form) if has_any(node))  # type: ignore[attr-defined]
        words |= roots(*(self.ends[self.graph.inverse(self.graph.directed_relation(step))] for step in steps))
        topics = {index for slot in used for index in self.graph.types_of(entity_of(slot, best.form))}
        found = best.nodes[:LOOKED_AT].tolist() if best.nodes is not None else []
        if found:  # of several types of persons those of which it finds some
            any_of = {part for node in nodes_of(best.form) if isinstance(node, Or) for part in node.parts}
            either = classes_of(any_of, self.graph)
            types -= either.difference(*(self.graph.types_of(node) for node in found))
            words |= self._type_roots(set.intersection(*(set(self.graph.types_of(node)) for node in found)))
        words |= self._type_roots(types | set(best.types) | topics)
        indices, labels = (types | set(best.types) | topics) - {-1}, self.graph.type_labels
        twice = {
            index for index in indices if roots(labels[index]) <= asked
        }  # of `states of the country x` one is read
        labelled = roots(*(labels[index] for index in twice))
        heads = {root(name.split()[-1]) for index in twice for name in self._names(index)}
        words -= heads.difference(labelled, *(self.roots_of(directed)[1] for directed in best.ways))
        number = best.nodes is None or (len(best.nodes) == 1 and bool(self.graph.memory.dim[best.nodes[0]] >= 0))
        read = roots(*labels_of(best.form, self.graph))
        return FormReading(best, words, read, roots(*texts), number, bool(best.types or topics))

    def other_types(self, best: Candidate, query: LabelQuery) -> set[str]:
        """Roots of the labels of types that a question names and that nothing has of what a form finds by one relation
        of theirs: suppliers by a country which customers have, too."""
        form = best.form
        if len(self.graph.type_labels) > MOST_TYPES:
            return set()  # whose things may well be of types that nobody stated
        while isinstance(form, (Minus, Arg, Nth)):
            form = form.of
        if not isinstance(form, Join) or len(form.path) > 1 or form.path[0].inverse or best.nodes is None:
            return set()
        found = {index for node in best.nodes[:LOOKED_AT].tolist() for index in self.graph.types_of(node)}
        named = {index for index, _ in query.types}
        return (
            roots(*(self.graph.type_labels[index] for index in named)) if found and named.isdisjoint(found) else set()
        )

    def values(self, best: Candidate, query: LabelQuery) -> set[str]:
        """Roots of the names of the entities that a form has which are categories and no mentions of the question."""
        mentions, names = {key for slot in query.slots for _, key, _ in slot.entities}, self.graph.value_names
        keys = {node.key for node in nodes_of(best.form) if isinstance(node, Entity)} - mentions
        return roots(*(names[key] for key in keys if key in names))

    def unnamed(
        self, form: FormReading, used: Sequence[Slot], asked: set[str], rest: set[str], learnt: set[str]
    ) -> int:
        """How many relations of a form no word names, nor are plain from the things at both of their ends.

        asked: roots of the question; rest: without the noun of what it asks for, which names nothing on the path to it.
        learnt: keys of the relations that its words stand for in training questions.  Of a yes none is
        counted, of a no about things that are tied otherwise every one that no word names; where nothing is found one
        more, if no word names two.
        """
        graph, lacked = self.graph, [node.without for node in nodes_of(form.best.form) if isinstance(node, Minus)]
        measures = (node for node in (*form.ranks, *form.compares) if node not in lacked)
        measured = {graph.directed_relation(node.path[-1]) for node in measures}
        absent = {graph.directed_relation(node.path[-1]) for node in lacked if isinstance(node, Compare)}
        entities = [entity_of(slot, form.best.form) for slot in used]
        topics = {index for entity in entities for index in graph.types_of(entity)}
        joins = [node for node in nodes_of(form.best.form) if isinstance(node, Join)]
        inner = [step for node in joins for step in node.path[1:]]
        inner += [step for node in joins if isinstance(node.of, Join) for step in node.of.path]
        inside = {graph.directed_relation(step) % graph.relations for step in inner}
        apart = {
            graph.directed_relation(node.path[-1]) % graph.relations
            for node in joins
            if isinstance(node.of, Class)
            and not any(name <= asked for name in self._type_names({graph.type_of_key.get(node.of.key, -1)}))
        }  # from all things of a type that the question does not name
        mentions = {key for slot in used for node, key, _ in slot.entities if node not in graph.categories}
        told = {
            graph.directed_relation(node.path[-1]) % graph.relations
            for node in joins
            if isinstance(node.of, (Entity, Literal)) and str(getattr(node.of, "key", "")) not in mentions
        }  # to a value that the question has: `goalkeepers` by their position
        number, tied, wordless = 0, False, 0
        if isinstance(form.best.form, Holds):
            if form.best.value:
                return 0  # both ends are named
            near = {one for entity in entities for one in graph.neighbours(entity)}
            tied = not near.isdisjoint(entities)  # perhaps they ask for this
        for directed in {*form.best.ways} - measured:
            relation = directed % graph.relations
            if directed < graph.relations and graph.to_blank[relation] and len(form.best.ways) > 1:
                continue  # as the address in the city of an address
            if len(form.best.ways) > 1 and directed not in absent and graph.is_nameless(graph.end_type(directed)):
                continue  # as the visit on the way from a patient to the doctor
            if self._is_way(directed, form.best.ways):
                continue
            ends = int(graph.head_type[relation]), int(graph.tail_type[relation])
            named = self.roots_of(relation)[1] | self.roots_of(relation + graph.relations)[1]
            label = roots(graph.labels[relation]) - _no_names()
            words = graph.labels[relation].lower().split()
            if len(words) > 1 and words[0] in _LYING and root(words[-1]) in asked and directed >= graph.relations:
                continue  # `cities in x`, located in it
            if (root("where") in asked and not label.isdisjoint(_place_roots())) or self._is_asked_by(directed, asked):
                continue
            if relation not in inside and label and label <= asked and label not in self._type_names({*ends}):
                continue  # all of it, and it is the name of neither end: `topping` between pizzas and food toppings
            kinds_of_ends = {end for end in ends if not graph.is_nameless(end)}  # `picked` of a picking
            worded = (named - self._type_roots(kinds_of_ends) - _no_names()) & asked
            number += directed < graph.relations and graph.keys[relation] in ABOVE and not worded
            if worded or graph.keys[relation] in learnt:
                continue
            reached = {ends[directed < graph.relations]}
            if (
                relation in inside
                and graph.is_measure(form.best.ways[-1])
                and not (any(name <= asked for name in self._type_names(reached)))
            ):  # the area of Berlin is not that of the country with the capital Berlin
                number += 1
                continue
            unlike = directed in absent and not any(name <= asked for name in self._type_names(reached))
            if relation in apart or unlike or graph.to_truths[relation]:
                number += 1
                continue
            if -1 in ends:  # what it is between has no names of types
                asks = directed < graph.relations and relation not in inside and ends[1] < 0
                asks |= form.counts and relation not in told
                asks &= bool(stems([graph.labels[relation]]) - CONTENT_FREE) and not graph.is_type[relation]
                number += asks and graph.measured[relation] <= 0.5 and graph.triples[relation] > 0  # else a qualifier
                continue
            wordless += relation not in told
            same_kind = ends[0] == ends[1] or graph.is_symmetric(relation)
            if same_kind and not (is_mutual(graph, relation) and asked & _beside()):  # supervisors
                number += 1
                continue
            if tied:
                number += 1
                continue
            same = (graph.head_type == ends[0]) & (graph.tail_type == ends[1])
            same |= (graph.head_type == ends[1]) & (graph.tail_type == ends[0])
            same &= graph.triples != graph.triples[relation]  # itself, and one that says the same backwards
            plain = not same.any() or roots(graph.labels[relation]) in self._type_names({*ends})
            nouns = rest if relation in inside else asked
            known = directed >= graph.relations or ends[1] in topics  # what belongs to a thing is plain
            known |= "who" in asked and graph.is_nameless(ends[0]) and self._persons_of(ends[0]) == [relation]
            number += not (plain and (known or any(name <= nouns for name in self._type_names({ends[1]}))))
        return number + (form.best.finds_nothing and wordless > 1)

    def _is_way(self, directed: int, ways: Sequence[int]) -> bool:
        """Whether a relation leads to what a thing is one of, and no other one to what has the next relation, which the
        thing itself does not have: as from a vehicle to its model, which has seats."""
        graph, after = self.graph, ways.index(directed) + 1
        start, end = graph.end_type(graph.inverse(directed)), graph.end_type(directed)
        if after == len(ways) or min(start, end) < 0 or graph.fan_out[directed] > ONE_EACH:
            return False
        if _OF_SORTS.isdisjoint(graph.type_labels[end].split()):
            return False
        near = graph.relations_of_types([start]).tolist()
        ends = {one: graph.end_type(one) for one in near if graph.end_type(one) >= 0}
        have = [one for one, kind in ends.items() if ways[after] in graph.relations_of_types([kind])]
        return have == [directed] and ways[after] not in near

    def _persons_of(self, kind: int) -> list[int]:
        """Relations of records of a type to single persons."""
        ends = enumerate(zip(self.graph.head_type.tolist(), self.graph.tail_type.tolist(), strict=True))
        return [n for n, (head, tail) in ends if head == kind and tail >= 0 and is_person(self.graph.type_labels[tail])]

    def _is_asked_by(self, directed: int, asked: set[str]) -> bool:
        """Whether a question is one of the whole questions of the thesaurus for a directed relation."""
        if directed not in self._wholes:
            entry = entry_of(self.graph, directed % self.graph.relations)
            texts = entry.back if directed >= self.graph.relations else entry.ask
            self._wholes[directed] = [roots(text) - _ARTICLES for text in texts]
        return asked - _ARTICLES in self._wholes[directed]

    def is_all_of_type(self, best: Candidate, query: LabelQuery) -> bool:
        """Whether a form finds all things of the type asked for nearest to a mention, by one relation or two.

        None of these holds both ways: what others of its kind have to do with a thing is not asked by a word for it.
        """
        if best.nodes is None or not 0 < len(best.ways) <= 2 or len(best.slots) != 1:
            return False
        if len(best.ways) == 2 and any(self.graph.is_symmetric(way % self.graph.relations) for way in best.ways):
            return False
        every = np.array([entity_of(query.slots[best.slots[0]], best.form)])
        for hop in range(1, len(best.ways) + 1):
            if len(every) > NEIGHBOURS:
                return False
            ends = [
                self.graph.follow(every, one)
                for one in self.graph.directed_relations(every).tolist() if self.graph.to_entities(one)
            ]  # fmt: skip
            every = np.unique(np.concatenate(ends)) if ends else best.nodes[:0]
            found = [every[among(every, self.graph.members(index))] for index, _ in query.types]
            if hop == len(best.ways) or any(map(len, found)):
                return hop == len(best.ways) and any(np.array_equal(nodes, best.nodes) for nodes in found)
        return False

    def _members(self, best: Candidate) -> Ints | None:
        """What a form finds, or computes a number of; None where it does neither."""
        of = getattr(best.form, "of", None) if best.nodes is None else None
        return self.graph.memory.nodes(of) if isinstance(of, (And, Arg, Compare, Join, Minus, Or)) else best.nodes

    def says_value(self, word: str, best: Candidate) -> bool:
        """Whether a plural is part of the name of a value that some of the things have which a form finds or computes
        of: *elephants* of the species *African elephant*."""
        own = root(word)
        if not word.endswith("s") or own not in self._value_words:
            return False
        if own not in self._having_value:
            memory = self.graph.memory
            self._having_value[own] = np.unique(memory.head[np.isin(memory.tail, self._value_words[own])])
        return bool(among(self._having_value[own], self._of_all(best)).any())

    def is_loose(self, word: str, best: Candidate, known: set[str]) -> bool:
        """Whether a plural is only a looser word for a type than its names, and that for a value which some of what a
        form finds have: *beasts* for creatures of which some are of the family *beast*."""
        own, labels = root(word), {self.graph.type_labels[index] for index in best.types}
        if own in known or not self.says_value(word, best):
            return False
        names = roots(*labels, *(name for label in labels for name in thesaurus().type(label)))
        return own in roots(*(name for label in labels for name in other_types(label))) - names

    def _of_all(self, best: Candidate) -> Ints:
        """What a form finds or computes of, also where this is a whole type."""
        of, nodes = getattr(best.form, "of", None), self._members(best)
        nodes = self.graph.memory.nodes(of) if nodes is None and isinstance(of, Class) else nodes
        return nodes if nodes is not None else NONE

    @cached_property
    def _value_words(self) -> dict[str, list[int]]:
        """By the roots of their words, the values with these in their names."""
        found: dict[str, list[int]] = {}
        for name, values in self.graph.values_by_name.items():
            for word in roots(name):
                found.setdefault(word, []).extend(values)
        return found

    def finds_persons(self, best: Candidate) -> bool:
        """Whether a form finds or counts single persons, by their types or by what a relation to them is called."""
        graph, some = self.graph, self._of_all(best)[:LOOKED_AT].tolist()
        labels = {graph.type_labels[index] for node in some for index in graph.types_of(node)}
        return any(map(is_person, labels or (self.ends[way] for way in best.ways[-1:])))

    def named_kinds(self, best: Candidate) -> set[str]:
        """Roots of the words that are in most names of the things without a type that a form finds, ranks or computes
        of: *slot* of `slot 1` and `slot 2`."""
        graph, ranks = self.graph, isinstance(best.form, (Arg, Nth)) and not isinstance(best.form.of, Class)
        nodes = graph.memory.nodes(best.form.of) if ranks else self._members(best)  # type: ignore[attr-defined]
        if nodes is None or not len(nodes):
            return set()
        words = (graph.name_words[graph.inverse(way)] for way in graph.directed_relations(nodes[:1]).tolist())
        return {root(word) for own in words for word in own}

    def is_called(self, word: str, best: Candidate) -> bool:
        """Whether a noun is the name of a relation to what a form finds or computes of, whose type the graph lacks."""
        graph, nodes = self.graph, self._members(best)
        found = nodes is not None and len(nodes) > 0
        if nodes is not None and not found:  # things of which its first relation tells something
            first = next((node.path[0] for node in nodes_of(best.form) if isinstance(node, Join)), None)
            if first is not None and not first.inverse:
                nodes = graph.heads_of(graph.memory.relation_ids[first.relation])
        if nodes is None or not len(nodes):
            return False
        some, least = nodes[:LOOKED_AT], len(nodes[:LOOKED_AT]) / (1 if found else 2)
        named = (n for n in self.owners.get(root(word), ()) if roots(graph.labels[n]) == {root(word)})
        return any(
            graph.tail_type[n] < 0 and sum(map(len, (graph.follow(some[m : m + 1], n + graph.relations)[:1]
                                                     for m in range(len(some))))) >= least
            for n in named
        )  # fmt: skip

    def is_of_other_kind(self, word: str, best: Candidate) -> bool:
        """Whether a usual noun for a kind is none of those for the things without a type that a form finds: what their
        relations call them, and their categories."""
        nodes, graph = self._members(best), self.graph
        usual = root(word) in relation_nouns() or not kinds().isdisjoint(singulars(word))
        if nodes is None or not len(nodes) or not self.ends or not usual or PERSONS.intersection(singulars(word)):
            return False
        ways = graph.directed_relations(nodes[:LOOKED_AT]).tolist()
        if _DOER.search(word) and (
            roles := [way for way in ways if graph.labels[way % graph.relations] in PROFESSIONS]
        ):
            return root(word) not in {root(name) for way in roles for name in self._categories(way, nodes[:LOOKED_AT])}
        known = self._nouns(ways)
        return bool(known) and known.isdisjoint(map(root, singulars(word)))

    def fits_kind(self, word: str, best: Candidate) -> bool:
        """Whether a noun is for things at all, or is known to be for the things without a type that a form finds."""
        nodes = self._members(best)
        if nodes is None or not len(nodes) or word in GENERIC or not PERSONS.isdisjoint(singulars(word)):
            return True
        known = self._nouns(self.graph.directed_relations(nodes[:LOOKED_AT]).tolist())
        return not known.isdisjoint(map(root, singulars(word)))

    def _nouns(self, ways: Sequence[int]) -> set[str]:
        """Roots of the nouns for what stands where some directed relations begin; none of those for anything."""
        called = {self.ends[self.graph.inverse(way)] for way in ways} - {"", *GENERIC}
        return {root(noun) for one in called for name in (one, *other_types(one)) for noun in name.split()[-1:]}

    def _categories(self, relation: int, nodes: Ints) -> Iterator[str]:
        """Names of the values by which things are categorized that a relation leads to."""
        values = set(self.graph.follow(nodes, relation).tolist())
        for name, own in self.graph.values_by_name.items() if len(values) <= LOOKED_AT else ():
            if not values.isdisjoint(own):
                yield name

    def means_other(self, word: str, form: FormReading) -> bool:
        """Whether the thesaurus has a word as a name of relations alone that no relation of a form is one of."""
        meant = relation_nouns().get(root(word), frozenset())
        entries = [entry_of(self.graph, way % self.graph.relations) for way in form.best.ways]
        return bool(meant) and meant.isdisjoint(entry.name for entry in entries)

    def leads_on(self, word: str, best: Candidate) -> bool:
        """Whether a noun names another relation that what a form finds has, so that its tail is asked for.

        Of `country` so does the relation of a place to one that it is part of.
        """
        if best.nodes is None or not len(best.nodes):
            return False
        ahead = [one for one in self.graph.directed_relations(best.nodes).tolist() if one < self.graph.relations]
        own = self.owners.get(root(word), set()) - {one % self.graph.relations for one in best.ways}
        within = word in COUNTRIES and any(LOCATED in entry_of(self.graph, one).labels for one in ahead)
        return within or not own.isdisjoint(ahead)

    def measures(self, word: str, form: FormReading, query: LabelQuery) -> bool:
        """Whether an adjective or adverb fits what a form ranks or compares by.

        The thesaurus has it for that relation or does not know one of them, or the question names the relation.
        """
        known, nodes = adjectives().get(word), form.ranks or form.compares or form.ends
        if form.ends and not form.ends[0].pick and not form.ranks and not self._asks_measure(word, form, query):
            return False
        dates = (self.graph.dated[self.graph.memory.relation_ids[node.path[-1].relation]] > DATED for node in nodes)
        if word in ("most", "least") and all(dates) and "most recent" not in query.text.lower():
            return False
        asked = _asked(query.text)
        judges = word in ("best", "worst") and not _JUDGED.search(query.text.lower())
        if known is None and (judges or (word.endswith("est") and word not in _ANY_MEASURE)):
            keys = [node.path[-1].relation for node in nodes]  # an opinion, as in `nicest`, which no area tells
            named = roots(*(self.graph.labels[self.graph.memory.relation_ids[key]] for key in keys))
            return not (named.isdisjoint(asked | _ratings()) or any(node.counted for node in nodes))
        if known is None or any(node.counted for node in nodes):
            return known is None or word in _SIZES
        for node in (*form.ranks, *form.compares, *form.ends):
            relation = self.graph.memory.relation_ids[node.path[-1].relation]
            labels = entry_of(self.graph, relation).labels
            plain = word in question_words()["superlatives"] or word in _PLAIN_COMPARATIVES
            plain |= not roots(self.graph.labels[relation]).isdisjoint(asked)
            if not labels and len(known) <= FEW_MEASURES and not plain:
                continue  # `heaviest`, of what nobody weighs
            if not labels and word in _SIZES and not plain and self._is_no_size(relation):
                continue
            coded = _CODES.search(self.graph.labels[relation].lower()) is not None
            sides = known.get(labels[0], frozenset()) if labels else frozenset(BESTS if not coded else ())
            ends = OF_ENDS.search(self.graph.labels[relation]) is not None
            if not sides and self.graph.dated[relation] > DATED and (not ends or word in _TIMES):
                sides = known.get("point in time", frozenset())
            end = (node.best or node.how) if isinstance(node, Aggregate) else getattr(node, "best", "")
            end = end if end in BESTS else ""
            if end in sides or (sides and not end):
                return True
            if not sides and roots(self.graph.labels[relation]) & asked:
                return True
        return False

    def _is_no_size(self, relation: int) -> bool:
        """Whether numbers say nothing of how large things are: prices and rates, years, and those of persons."""
        head, words = int(self.graph.head_type[relation]), self.graph.labels[relation].lower().split()
        persons = head >= 0 and is_person(self.graph.type_labels[head])
        return persons or self.graph.leads_to_years(relation) or not _NO_SIZES.isdisjoint(words)

    def _asks_measure(self, word: str, form: FormReading, query: LabelQuery) -> bool:
        """Whether a question asks for the largest value and not for what has it: `how long is the longest river`, `the
        highest salary`."""
        kind = cues_of(query.text, yes_no=False).kind
        before, _, rest = query.text.lower().partition(word)
        near = roots(*before.split()[-3:], *rest.split()[:2])  # `the population of the biggest city`
        labels = (self.graph.labels[self.graph.memory.relation_ids[node.path[-1].relation]] for node in form.ends)
        return (
            kind == "number"
            or (kind == "time" and word in _TIMES)
            or (kind not in ("which", "person", "place") and any(roots(one) & near for one in labels))
        )

    def is_dated(self, form: FormReading) -> bool:
        """Whether what a form compares with a value of the question is a date, or is asked for by *when*."""
        for node in nodes_of(form.best.form):
            if any(isinstance(where.value, Literal) for where in getattr(node, "where", ())):
                return True
            if isinstance(getattr(node, "value", getattr(node, "of", None)), Literal):
                relation = self.graph.memory.relation_ids[node.path[-1].relation]  # type: ignore[attr-defined]
                if self.graph.dated[relation] > 0 or entry_of(self.graph, relation).wh == "when":
                    return True
                if self.graph.leads_to_years(relation):
                    return True
        return False

    def has_reasons(self, form: FormReading) -> bool:
        """Whether a relation or type of a form is a reason or a method, or is asked for by *why* or *how*."""
        entries = [entry_of(self.graph, directed % self.graph.relations) for directed in form.best.ways]
        asks = [text for entry in entries for text in entry.ask]
        labels = form.labels.union(*(self.roots_of(directed)[0] for directed in form.best.ways))
        return not labels.isdisjoint(map(root, question_words()["reasons"])) or any(
            cues_of(text, yes_no=False).kind == "reason" for text in asks
        )

    def is_named(self, form: FormReading, asked: set[str]) -> bool:
        """Whether a word that is for no type names the relation by which a path comes to what it finds."""
        assert isinstance(form.best.form, Join)
        directed = self.graph.directed_relation(form.best.form.path[0])
        return bool((self.roots_of(directed)[0] - self._type_roots(self._ends(directed))) & asked)

    def is_money(self, word: str, form: FormReading) -> bool:
        """Whether a form has an amount that a word for money names: *money*, or a currency where the graph states
        none."""
        found = self._amounts.intersection(form.best.ways)
        return bool(found) and (word in MONIES or not self.units(frozenset(form.best.ways)))

    def units(self, directed_relations: frozenset[int]) -> set[str]:
        """Roots of the units of what a form's relations measure; looked up once for the same relations."""
        if directed_relations in self._unit_roots:
            return self._unit_roots[directed_relations]
        memory, measures = self.graph.memory, filter(self.graph.is_measure, directed_relations)
        tails = [memory.tail[memory.relation == directed][:LOOKED_AT].tolist() for directed in measures]
        units = self.graph.store.connection.execute(
            "SELECT DISTINCT unit FROM entities WHERE unit IS NOT NULL AND id IN (SELECT unnest($1::INTEGER[]))",
            [sum(tails, [])],
        ).fetchall()
        keys = [key for (key,) in units]  # a unit that is no entity is called as its key
        self._unit_roots[directed_relations] = roots(
            *keys, *self.graph.store.names(memory.know(keys).values()).values()
        )
        return self._unit_roots[directed_relations]

    @cached_property
    def whole_labels(self) -> frozenset[str]:
        """The labels of relations, in small letters."""
        return frozenset(label.lower() for label in self.graph.labels)

    @cached_property
    def types(self) -> set[str]:
        """Roots of the names of all types."""
        return self._type_roots(set(range(len(self.graph.type_labels))))

    @cached_property
    def lexicon(self) -> set[str]:
        """Roots of the words for relations and types that are common in graphs, and of those of this one."""
        return roots(*thesaurus().vocabulary, *kinds(), *self.graph.labels, *self.graph.type_labels)

    def roots_of(self, directed: int) -> tuple[set[str], set[str]]:
        """Roots that name a directed relation, and of all its wordings."""
        if directed not in self._known:
            relation = directed % self.graph.relations
            label = self.graph.labels[relation]
            entry = entry_of(self.graph, relation)
            verbs = [text for pair in entry.verb for text in pair]
            named = roots(*self.wordings[directed], *entry.nouns, *verbs) - self._type_roots(self._ends(directed))
            others = (*entry.labels, *entry.active, *entry.passive, *entry.ask, *entry.back, *entry.more, *entry.less)
            words = roots(*self.wordings[directed], *entry.nouns, *verbs, *others, entry.head, entry.tail, label)
            self._known[directed] = (named | roots(label)) - {root(word) for word in ("the", "of", "is", "are")}, words
        return self._known[directed]

    @cached_property
    def owners(self) -> dict[str, set[int]]:
        """By root, the relations whose label or nouns have it."""
        owners: dict[str, set[int]] = {}
        for relation, label in enumerate(self.graph.labels):
            heads = (noun.partition(" of ")[0].split()[-1:] for noun in entry_of(self.graph, relation).nouns)
            for word in (
                roots(label, *(word for head in heads for word in head)) - _no_names()
            ):  # no films by *film genre*
                owners.setdefault(word, set()).add(relation)
        return owners

    def _ends(self, directed: int) -> set[int]:
        """Types at the ends of a relation."""
        relation = directed % self.graph.relations
        return {int(self.graph.head_type[relation]), int(self.graph.tail_type[relation])}

    def _type_roots(self, types: set[int]) -> set[str]:
        """Roots of the labels of types and of other words for these."""
        return set[str]().union(*self._type_names(types)) - {"kind", "of"}  # of `kind of sport`

    def _type_names(self, types: set[int]) -> list[set[str]]:
        """The roots of each label of types, of each other name of these and of the noun that tells them alone."""
        heads = ((index, self.graph.type_labels[index].rpartition(" ")[2]) for index in types if index >= 0)
        alone = [{root(head)} for index, head in heads if self.graph.types_by_head.get(head) == index]
        return alone + [roots(name) for index in types if index >= 0 for name in self._names(index)]

    def _names(self, type_index: int) -> tuple[str, ...]:
        """The label of a type, the words of its key and its other names."""
        label = self.graph.type_labels[type_index]
        return label, self.graph.type_key_words[type_index], *thesaurus().type(label), *other_types(label)


def entity_of(slot: Slot, form: Form) -> int:
    """The entity of a mention that a form has; the likeliest one where it has none."""
    keys = {node.key for node in nodes_of(form) if isinstance(node, Entity)}
    return next((entity for entity, key, _ in slot.entities if key in keys), slot.entities[0][0])


@cache
def _no_names() -> set[str]:
    return {root(word) for word in _NO_NAMES}
