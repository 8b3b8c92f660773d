"""Questions that a graph cannot answer: of a relation, a fact or an entity that it does not hold.

They are what the drops of `builders.answerability` would leave, made without changing the graph: what an ontology of
its kind often has and this one lacks (RELATION), what things of a kind have and this one has not (FACT), and names
that nothing in it bears (ENTITY).  The reasons are those of abstention.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kgqa_core.builders.questions.draft import Draft
from kgqa_core.builders.questions.paths import PathHop, Walker
from kgqa_core.builders.questions.relation_words import is_person, relation_words
from kgqa_core.builders.questions.wording import WordedQuestion
from kgqa_core.datasets.derived.thesaurus import RelationEntry, thesaurus
from kgqa_core.errors import FormError
from kgqa_core.logic.forms import Class, Form, Holds, Join, elements
from kgqa_core.metrics.normalise import is_cjk
from kgqa_core.rewriting.phrases import plural
from kgqa_core.search.schema_profile import RelationProfile
from kgqa_core.types import ENTITY, FACT, RELATION

_FRAMES = ("what is the {n} of {x}", "{x}'s {n}", "{n} of {x}", "what {n} does {x} have", "tell me the {n} of {x}",
           "do you know the {n} of {x}", "which {n} does {x} have", "who or what is the {n} of {x}")  # fmt: skip
_BEST = ("what is the {best} {t}", "which {t} is the {best}", "which is the {best} {t}")
_BEST_OF = ("what is the {best} {t} of {x}", "the {best} {t} in {x}", "{best} {t} in {x}")
_COMPARED = ("is {x} {more} than {y}", "which is {more}, {x} or {y}", "{x} or {y}, which one is {more}",
             "who or what is {more}: {x} or {y}")  # fmt: skip
_TYPES = ("how many {t} does {x} have", "how many {t} are there in {x}", "list the {t} in {x}", "which {t} are in {x}",
          "{t} of {x}", "name all {t} of {x}", "what {t} belong to {x}", "does {x} have any {t}")  # fmt: skip
_BEFORE = ("Lake", "Mount", "New", "North", "South", "East", "West", "Upper", "Old", "Port", "Saint", "Great", "Little",
           "Fort", "Royal", "Young")  # fmt: skip
_BEHIND = ("Sea", "Islands", "Union", "University", "Bay", "Valley", "Records", "II", "Park", "League", "Festival",
           "Castle", "Airlines", "Junior", "Museum", "Bridge", "Street", "Returns", "Forest")  # fmt: skip
"""Words that make another name of a name."""
_ADJECTIVES = (
    "landlocked abandoned haunted volcanic democratic ancient endangered fictional animated dangerous "
    "wealthy famous retired married polluted vegetarian independent catholic rainy medieval modern wooden "
    "illegal extinct communist sunny tropical underrated controversial affordable blind bilingual left-handed"
).split()
"""Properties that things of many kinds may have."""
_EXTENDED, _MODIFIED = 0.4, 0.2
"""Share of the missing entities that are a name with another word, and of the missing relations that are adjectives."""
_TRIES = 30


@dataclass(frozen=True, slots=True)
class Unanswerable:
    """One question without an answer.

    reason: ENTITY, RELATION or FACT.  missing: what the graph does not hold, in words.  form: what the question would
    be if it did, None where a relation or an entity of it has no key here.  topics: keys of entities that it does hold.
    """

    worded: WordedQuestion
    reason: str
    missing: str
    topics: tuple[str, ...]
    form: Form | None = None
    keys: tuple[str, ...] = ()


class UnanswerableSampler:
    """Draws questions of each reason.  write: words a form; drafts: answerable ones, whose entities are replaced."""

    def __init__(
        self, walker: Walker, write: Callable[[Form, str], WordedQuestion], drafts: Sequence[Draft], seed: int
    ) -> None:
        self.walker, self.write, self.profile, self.graph = walker, write, walker.profile, walker.graph
        self.drafts = [draft for draft in drafts if elements(draft.form).entities]
        self.rng = random.Random(f"unanswerable/{seed}")
        self.names = {name.casefold() for name in self.profile.names if name is not None}
        self.nodes = np.flatnonzero(self.profile.askable)
        self.hops = walker.hops(lambda hop: not hop.relation.is_type)
        worded = {key: relation_words(relation, self.profile) for key, relation in self.profile.relations.items()}
        self.kinds = {key: (words.head, words.tail) for key, words in worded.items()}
        self.entries = self._absent_entries()
        self.measures = self._absent_measures()
        self.types = self._absent_types()
        self.adjectives = self._absent_adjectives()
        self._parts: tuple[list[str], list[str]] | None = None

    def draw(self, size: int) -> list[Unanswerable]:
        """`size` questions, of each reason about as many; fewer where the graph is too small."""
        results: dict[str, Unanswerable] = {}
        makers = [self.relation, self.fact, self.entity] if self.profile.language == "en" else [self.fact, self.entity]
        misses = 0
        while len(results) < size and misses < _TRIES * len(makers):
            one = makers[len(results) % len(makers) if misses < _TRIES else self.rng.randrange(len(makers))]()
            if one is None or one.worded.text in results:
                misses += 1
                continue
            results[one.worded.text] = one
            misses = 0
        return list(results.values())

    # -- a relation that is not there ----------------------------------------------------------------------------

    def _absent_entries(self) -> list[RelationEntry]:
        """Common relations of which no relation, qualifier or type of the graph has any of the words."""
        book = thesaurus()
        here = {relation.label.casefold() for relation in self.profile.relations.values()}
        here |= {label.casefold() for label in self.profile.qualifiers.values()}
        here |= {each.label.casefold() for each in self.profile.types.values()}
        for label in list(here):
            entry = book.relation(label)
            if entry is not None:
                here |= {word.casefold() for word in (*entry.labels, *entry.nouns)}
        words = {word for label in here for word in re.findall(r"[a-z]{4,}", label)}
        entries = [one for one in dict.fromkeys(book.relations.values()) if one.labels[0].isascii()]
        return [
            entry
            for entry in entries
            if entry.nouns or entry.ask
            if not any(word in words for name in (*entry.labels, *entry.nouns) for word in name.split())
        ]

    def _absent_measures(self) -> list[RelationEntry]:
        """Those with comparatives or superlatives that belong to no relation of the graph."""
        book, taken = thesaurus(), set[str]()
        for relation in self.profile.relations.values():
            entry = book.relation(relation.label) or RelationEntry()
            taken.update(entry.most, entry.least, entry.more_than, entry.less_than)
        return [
            entry for entry in self.entries if entry.more_than and taken.isdisjoint((*entry.most, *entry.more_than))
        ]

    def _labels(self) -> list[str]:
        """The labels of the relations and types of the graph."""
        relations = [relation.label for relation in self.profile.relations.values()]
        return relations + [one.label for one in self.profile.types.values()]

    def _absent_types(self) -> list[str]:
        """Usual types that neither a type nor a relation of the graph has as a word."""
        here = {word for label in self._labels() for word in re.findall(r"[a-z]+", label.casefold())}
        here |= {word.removesuffix("s") for word in here}
        return [
            word for word, others in thesaurus().types.items()
            if here.isdisjoint(part for name in (word, *others) for part in name.split())
        ]  # fmt: skip

    def relation(self) -> Unanswerable | None:
        """A usual relation, measure or type that the graph lacks, of an entity whose kind often has it."""
        kind = self.rng.random()
        if self.adjectives and self.rng.random() < _MODIFIED:
            return self._modified(self.rng.choice(self.adjectives))
        if self.measures and kind < 0.25:
            return self._measure(self.rng.choice(self.measures))
        if self.types and kind < 0.5:
            return self._type(self.rng.choice(self.types))
        return self._relation() if self.entries else None

    def _absent_adjectives(self) -> list[str]:
        """Adjectives that no relation, type or name of the graph has as a word."""
        here = {word for label in self._labels() for word in label.casefold().split()}
        return [word for word in _ADJECTIVES if word not in here and word not in self.names]

    def _modified(self, adjective: str) -> Unanswerable | None:
        """An answerable question in which what is looked for has one more property, which the graph does not know."""
        if not self.drafts:
            return None
        draft = self.rng.choice(self.drafts)
        try:
            worded = self.write(draft.form, f"missing/{draft.key}")
        except FormError:
            return None
        text, nouns = worded.text, {noun for pair in self.kinds.values() for noun in pair if noun}
        longest = "|".join(re.escape(noun) for noun in sorted({*nouns, *map(plural, nouns)}, key=len, reverse=True))
        indices = [found.start() for found in re.finditer(rf"\b(?:{longest})\b", text)] if longest else []
        inside = [range(text.find(name), text.find(name) + len(name)) for name in worded.mentions]
        indices = [index for index in indices if not any(index in own for own in inside)]
        if not indices:
            return None
        index = self.rng.choice(indices)
        text = f"{text[:index]}{adjective} {text[index:]}"
        article = r"\1n " if adjective[0] in "aeiou" else r"\1 "
        text = re.sub(rf"\b([Aa])n? (?={adjective})", article, text)
        return Unanswerable(WordedQuestion(text, worded.mentions), RELATION, adjective, draft.topics)

    def _measure(self, entry: RelationEntry) -> Unanswerable | None:
        """The best by a measure that the graph lacks, or which of two has more of it."""
        hop = self.walker.pick([hop for hop in self.hops if _fits(self._kind(hop), entry.head)])
        nodes = [] if hop is None else [self.walker.topic(hop) for _ in range(2)]
        if hop is None or None in nodes or nodes[0] == nodes[1]:
            return None
        (one, key), (other, second) = (
            (str(self.profile.names[node]), self.walker.keys[node]) for node in nodes if node is not None
        )
        kind = self._kind(hop)
        words = {"best": self.rng.choice((entry.most or entry.more_than) + entry.least), "t": kind}
        words |= {"more": self.rng.choice(entry.more_than + entry.less_than), "x": one, "y": other}
        frames = self.rng.choice([_COMPARED, _COMPARED, _BEST_OF, _BEST] if entry.most and kind else [_COMPARED])
        text = self.rng.choice(frames).format(**words)
        named = tuple(name for name, mark in ((one, "{x}"), (other, "{y}")) if frames is _COMPARED or mark == "{x}")
        if frames is _BEST:
            return Unanswerable(_worded(text), RELATION, entry.labels[0], ())
        return Unanswerable(_worded(text, *named), RELATION, entry.labels[0], (key, second)[: len(named)])

    def _type(self, kind: str) -> Unanswerable | None:
        """The things of a type that the graph does not have, of one of its entities."""
        hop = self.walker.pick(self.hops)
        node = None if hop is None else self.walker.topic(hop)
        if node is None:
            return None
        name = str(self.profile.names[node])
        text = self.rng.choice(_TYPES).format(t=plural(kind), x=name)
        return Unanswerable(_worded(text, name), RELATION, kind, (self.walker.keys[node],))

    def _relation(self) -> Unanswerable | None:
        """A usual relation that the graph lacks, of an entity whose kind often has it."""
        entry = self.rng.choice(self.entries)
        hop = self.walker.pick([hop for hop in self.hops if _fits(self._kind(hop), entry.head)])
        node = None if hop is None else self.walker.topic(hop)
        if node is None:
            return None
        name, noun = str(self.profile.names[node]), entry.nouns[0] if entry.nouns else entry.labels[0]
        noun = self.rng.choice(entry.nouns) if entry.nouns else noun
        if entry.ask and self.rng.random() < 0.5:
            text = self.rng.choice(entry.ask).replace("<x>", name)
        else:
            text = self.rng.choice(_FRAMES).format(n=noun, x=name)
        return Unanswerable(_worded(text, name), RELATION, entry.labels[0], (self.walker.keys[node],))

    def _kind(self, hop: PathHop) -> str:
        """What the entities at which a hop starts are called."""
        return self.kinds[hop.relation.key][hop.backward]

    # -- a fact that is not there --------------------------------------------------------------------------------

    def fact(self) -> Unanswerable | None:
        """A relation that things of its kind have, of one that has it not; or the second of two such relations."""
        kind = self.rng.random()
        if kind < 0.6:
            return self._second_fact() if kind < 0.2 else self._fact_of_other()
        hop = self.walker.pick(self.hops)
        node = None if hop is None else self._without(hop)
        if hop is None or node is None:
            return None
        return self._of_form(Join((hop.step,), self.walker.entity(node)), hop.relation)

    def _without(self, hop: PathHop) -> int | None:
        """An entity like those at which a hop starts, at which it does not."""
        like = self.walker.topic(hop)
        if like is None:
            return None
        around = [other for other in self.walker.around(like) if other.relation.id != hop.relation.id]
        for _ in range(4):
            other = self.walker.pick(around)
            node = None if other is None else self.walker.topic(other)
            if node is not None and not len(self._reached(node, hop)):
                return node
        return None

    def _reached(self, node: int, hop: PathHop) -> np.ndarray:
        start = np.array([node], dtype=np.int64)
        return self.graph.hop(start, hop.relation.id, backward=hop.backward)[1]

    def _second_fact(self) -> Unanswerable | None:
        path = self.walker.walk(1)
        if path is None or self.graph.literal[path.nodes[0]] or path.hops[0].relation.is_type:
            return None
        reached = self._kind(PathHop(path.hops[0].relation, not path.hops[0].backward))
        hop = self.walker.pick([hop for hop in self.hops if self._kind(hop) == reached])
        if hop is None or len(self.graph.hop(path.nodes, hop.relation.id, backward=hop.backward)[1]):
            return None
        form = Join((hop.step, *(each.step for each in path.hops)), self.walker.entity(path.topic))
        return self._of_form(form, hop.relation)

    def _fact_of_other(self) -> Unanswerable | None:
        """A relation that what a thing leads to has, and the thing itself has not, asked of the thing."""
        path = self.walker.walk(1)
        if path is None or self.graph.literal[path.nodes[0]] or path.hops[0].relation.is_type:
            return None
        hop = self.walker.pick(self.walker.around(int(path.nodes[0])))
        if hop is None or hop.relation.is_type or hop.relation.id == path.hops[0].relation.id:
            return None
        return self._of_form(Join((hop.step,), self.walker.entity(path.topic)), hop.relation)

    def _of_form(self, form: Form, relation: RelationProfile) -> Unanswerable | None:
        try:
            if self.graph.execute(form).nodes:
                return None
            worded = self.write(form, f"missing/{form}")
        except FormError:
            return None
        return Unanswerable(worded, FACT, relation.label, elements(form).entities, form, (relation.key,))

    # -- an entity that is not there -----------------------------------------------------------------------------

    def entity(self) -> Unanswerable | None:
        """An answerable question with the name of one entity replaced by one that nothing in the graph bears."""
        if not self.drafts:
            return None
        draft = self.rng.choice(self.drafts)
        if isinstance(draft.form, Holds) and isinstance(draft.form.of, Class):
            return None
        try:
            worded = self.write(draft.form, f"missing/{draft.key}")
        except FormError:
            return None
        lost = self.rng.randrange(len(worded.mentions))
        like = worded.mentions[lost]
        name = self.extended(like) if self.rng.random() < _EXTENDED else self.invented(like)
        if name is None or worded.text.count(worded.mentions[lost]) == 0:
            return None
        text = worded.text.replace(worded.mentions[lost], name)
        mentions = tuple(name if index == lost else other for index, other in enumerate(worded.mentions))
        used = elements(draft.form)
        topics = tuple(key for index, key in enumerate(used.entities) if index != lost)
        return Unanswerable(WordedQuestion(text, mentions), ENTITY, name, topics)

    def extended(self, name: str) -> str | None:
        """A name with one more word, that is not in the graph."""
        if any(map(is_cjk, name)) or not name[:1].isupper():
            return None
        longer = f"{self.rng.choice(_BEFORE)} {name}"
        if self.rng.random() < 0.5:
            longer = f"{name} {self.rng.choice(_BEHIND)}"
        return None if longer.casefold() in self.names else longer

    def invented(self, like: str) -> str | None:
        """A name made of parts of others, shaped like this one, that is not in the graph."""
        if self._parts is None:
            named = [name.split() for name in self.profile.names if name is not None and name[:1].isupper()]
            self._parts = ([parts[0] for parts in named], [parts[-1] for parts in named if len(parts) > 1])
        firsts, lasts = self._parts
        for _ in range(_TRIES):
            if any(map(is_cjk, like)):
                other = str(self.profile.names[int(self.rng.choice(self.nodes))])
                name = like[: max(1, len(like) // 2)] + other[len(other) // 2 :]
            elif len(like.split()) > 1 and lasts and firsts:
                name = f"{self.rng.choice(firsts)} {self.rng.choice(lasts)}"
            else:
                one, other = (self.rng.choice(firsts or [like]) for _ in range(2))
                name = (one[: max(2, len(one) // 2)] + other[len(other) // 2 :]).capitalize()
            if name.casefold() not in self.names and len(name) > (1 if any(map(is_cjk, name)) else 3):
                return name
        return None


def _fits(kind: str, wanted: str) -> bool:
    """Whether things of a kind usually have a relation whose heads are so called."""
    if not wanted:
        return True
    same = {wanted, *thesaurus().type(wanted)}
    if wanted == "place":
        same |= {"city", "country", "town", "region", "state", "village"}
    return kind in same or (wanted == "person" and is_person(kind))


def _worded(text: str, *names: str) -> WordedQuestion:
    shown = text if text.startswith(names) else text[:1].upper() + text[1:]
    asks = re.match(r"(tell me)\b", text) is None and re.search(r"\b(what|who|which|where|when|how|do|does|is)\b", text)
    return WordedQuestion(shown + ("?" if asks else ""), names)
