"""Searches the forms of a question bottom-up: plans are extended and joined, and the best of each level are kept."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from kgqa_core.datasets.derived.thesaurus import thesaurus
from kgqa_core.errors import FormError
from kgqa_core.kg.vocabulary import XSD
from kgqa_core.linking.english import singulars
from kgqa_core.logic.forms import (
    BESTS,
    EVERY_WAY,
    OPS,
    UNITS_OF_TIME,
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
    Share,
    Steps,
    TimeSpan,
)
from kgqa_core.logic.measures import measure
from kgqa_core.logic.memory import NONE, TESTS, Ints, once
from kgqa_core.logic.result import Row, share
from kgqa_core.rewriting.phrases import phrase
from kgqa_core.search.candidates import (
    KINDS,
    LEAST_KIND,
    OR,
    Candidate,
    LabelQuery,
    among,
    best_of,
    computations,
    contains,
    inside,
    kind_of,
    numbers_of,
    types_in_form,
)
from kgqa_core.search.cues import cues_of
from kgqa_core.search.demands import EVERY, EXACTLY, LASTS, ONLY, SAME, THAN_AVERAGE
from kgqa_core.search.form_reading import deeds, root
from kgqa_core.search.graph import PURE, WORD, LabelGraph
from kgqa_core.search.phrases import BIRTH, DATED, NUMBER, RelationWords
from kgqa_core.search.question_words import (
    PERSONS,
    adjectives,
    entry_of,
    grammar_of,
    individuals,
    is_mutual,
    is_superlative,
    question_words,
)
from kgqa_core.search.words import Floats, WordCover

LEVELS, BEAM, QUOTA = 4, 64, 8
"""How often plans are extended; how many of a level are, and how many at least of those about the same mentions."""
FOLLOWED, SIDE = 40, 10
"""Relations that are followed in a level, and plans about the same mentions that are joined with others."""
MOST, LARGE, MOST_ROWS, MOST_HEADS = 320, 50_000, 1_000, 2
"""Candidates of a question; members of a set that is extended; rows of a table; relations by whose heads a noun for
things without a type is read."""
MEASURES, LACKED, EMPTIES, OTHERWISE, JUDGED, AGGREGATED, COUNTED = 6, 6, 6, 3, 20, 20, 80
"""Measures of a set, relations that it may lack, pairs whose intersection is empty, and that are united by unlike
relations; sets that are judged by yes or no about the same mentions, those that something is computed of, and those
that are counted besides types."""
SINGLE, SEVERAL = 1.05, 1.15
"""Mean number of things from which on a relation leads to several; and from which on, where it leads to none from a
thing that others have it to, there are none: no animals in an enclosure, while its size is not known."""
COVERAGE, COST, TYPED, UNSURE, PRIOR, PLAIN = 1.2, 0.08, 0.2, 0.05, 0.1, 0.55
"""score = mean likeness of the relations, `PLAIN` where there are none, + COVERAGE · share of the words explained
- COST · relations + UNSURE · log confidence of the links + PRIOR · log probability of the operation, + TYPED where a
relation leads to the type that is asked for."""
EMPTY, IDLE, GAIN = 0.1, 0.08, 0.02
"""What an empty set loses, and a relation that explains less than `GAIN` more of the words."""
GENDER, GENDERS = "gender", ("female", "male")
"""A label of the relation to it in the thesaurus, and the lists of nouns for persons."""
ANYBODY = frozenset("everyone everybody anyone anybody someone somebody whoever those".split())
WITH = frozenset(("with", "having", "have", "has"))
"""Words before what things have."""
MOST_PERSONS = 6
"""Types of single persons that are persons together."""
NEARLY, OF_SOME = 0.9, 0.1
"""Shares from which on none of the things of a type may have a relation to a mention: of them that have it at all, and
of what others have it to that some of them have it to."""
FEW_MEASURES, FEW_GROUPS = 2, 20
"""Measures of an adjective that tells by which things are ranked; numbers by which things are grouped: *per floor*."""
SMALL_NUMBERS = "two three four five six seven eight nine ten".split()
_SIZES = frozenset("largest smallest biggest tiniest larger smaller bigger".split())
_OF_SIZE = frozenset("size area surface".split())
_SETTLEMENTS = frozenset("city town village settlement municipality capital".split())
_LANDS = frozenset("country state province region continent island county territory district canton department".split())
"""Labels of types whose things are large by how many live there, and by their area."""
_BEFORE_LIMITS = frozenset("than over under above below in since before after until till by exceeding from".split())
"""Words before numbers that conditions compare with, and that say of no ranking how many are wanted."""
DEATH, MOST_DATES, LONG = "date of death", 12, 1000
"""The name of the relation to it in the thesaurus; relations to dates that spans of time are looked for between; days
from which on these are told in years."""
LISTED = -2
"""In place of the place of a type: several that the question lists."""
_NOBODY = frozenset("nobody noone anybody anyone".split())
ONE = Literal("1", f"{XSD}decimal")
_ORDER = {Class: 0, Compare: 2, CompareTo: 2}
_HAS_NONE = re.compile(r"\b(?:(?:has|have|had|with) no|(?:does|do|did) not have|without)\b")
"""What says that something is not there at all: *who has no boss*."""
_RANGE = re.compile(
    rf"\b(?:between|from) (?:[a-z]+ ){{0,2}}{NUMBER}(?: \S+)? (?:and|to|until|till|through|[-–]) {NUMBER}\b"
    rf"|\b{NUMBER} ?(?:to|[-–]) ?{NUMBER}\b"
)
"""A range of numbers or dates, both ends within."""


@dataclass(slots=True, eq=False)
class Plan:
    """A form with what it denotes and what it explains of the question."""

    form: Form
    nodes: Ints
    cover: Floats
    relations: tuple[int, ...] = ()
    slots: tuple[int, ...] = ()
    value: float | bool | None = None
    table: tuple[Row, ...] = ()
    likeness: float = 0.0
    rho: float = 1.0
    cost: float = 0.0
    things: bool = True
    chain: int = -1
    """Relations of the path that leads here from an entity; -1 for what is no such path."""
    records: int = 0
    """Records without names on this path, which lengthen it by nothing."""
    start: Ints | None = None
    kind: str = "none"
    missing: bool = False
    score: float = 0.0
    ranked: bool = False
    last: int = -1
    """The relation that leads to its members; -1 for what is no path."""
    texts: frozenset[int] = frozenset()
    """The text values that it has, by their first words, and relations to true and false, below 0."""
    away: bool = False
    """Whether it takes something away."""
    owner: Plan | None = None
    """What its members are records without names of, as the games of which they are ratings."""

    @property
    def is_set(self) -> bool:
        """Whether it denotes nodes, and no value or table."""
        return self.value is None and not self.table

    @property
    def group(self) -> object:
        """What it says of the question's mentions: plans of a level compete within it."""
        return (frozenset(self.slots), self.ranked, self.texts, self.away)


class FormSearch:
    """Makes the candidates of questions on one graph by search."""

    def __init__(self, graph: LabelGraph, hops: int = 2, words: Sequence[RelationWords] = ()) -> None:
        self.graph, self.hops = graph, hops
        self.nouns = [(root(word.head), root(word.noun)) for word in words] or [("", "")] * graph.relations
        self._person_nouns: dict[int, set[str]] = {}
        self._called: dict[str, dict[int, Ints]] = {}

    @cached_property
    def label_roots(self) -> list[set[str]]:
        """The roots of the words of each relation's label."""
        return [{root(word) for word in WORD.findall(label.lower())} for label in self.graph.labels]

    def called(self, noun: str) -> dict[int, Ints]:
        """Directed relations that lead to what is called by a noun, of which the graph states no type: what these are,
        ascending.  *Bands* are what `band` leads to, *books* also what has a publisher, *battles* what is mostly named
        so.  noun: its root."""
        if noun not in self._called:
            graph, found = self.graph, dict[int, Ints]()
            for one, words in enumerate(graph.name_words):
                if noun in map(root, words):
                    found[one] = graph.reached_by(one)
            named = bool(found)  # battles are what is called so
            for one, (head, tail) in enumerate(self.nouns):
                plain = graph.entity_tails[one] > 0.5 and graph.tail_type[one] < 0
                own = self.label_roots[one] == {noun} and not phrase(graph.labels[one].lower()).is_verb
                if plain and (own or (noun == tail and not named)):
                    found[one] = graph.tails_of(one)
                if noun == head and graph.head_type[one] < 0:
                    found[one + graph.relations] = graph.heads_of(one)
            most = sorted(found, key=lambda one: (one >= graph.relations, -len(found[one]), one))
            heads = [one for one in most if one >= graph.relations]
            self._called[noun] = {one: found[one] for one in most if one not in heads[MOST_HEADS:]}
        return self._called[noun]

    @cached_property
    def genders(self) -> dict[str, tuple[Form, Ints]]:
        """Of each of GENDERS that the graph has, a form of those who have it, and these, ascending."""
        graph, found = self.graph, dict[str, tuple[Form, Ints]]()
        for relation in range(graph.relations):
            if GENDER not in entry_of(graph, relation).labels:
                continue
            nodes = graph.tails_of(relation)[:LARGE].tolist()
            names, keys = graph.store.names(nodes), graph.store.entity_keys(nodes)
            for node, gender in product(nodes, GENDERS):
                if names[node].lower() in question_words()[gender]:
                    form = graph.join((relation + graph.relations,), graph.named(node, keys[node]))
                    found.setdefault(gender, (form, graph.follow(np.array([node]), relation + graph.relations)))
        return found

    def person_nouns(self, directed: int) -> set[str]:
        """Nouns for what a directed relation leads to that are not its label: `brother` and `sister` of siblings."""
        if directed in self._person_nouns:
            return self._person_nouns[directed]
        relation, known = directed % self.graph.relations, thesaurus()
        entry, label = entry_of(self.graph, relation), set(WORD.findall(self.graph.labels[relation].lower()))
        entries = [entry] if directed < self.graph.relations or is_mutual(self.graph, relation) else []
        if directed >= self.graph.relations:  # parents of who is a child
            verbs = {word for pair in entry.verb for word in pair[0].split()}
            entries += [other for word in verbs if (other := known.relation(word)) is not None and word in other.nouns]
        nouns = {word for one in entries for text in (*one.labels, *one.nouns) for word in WORD.findall(text)} - label
        self._person_nouns[directed] = nouns
        return nouns

    def make(self, query: LabelQuery, fit: Any, kinds: Sequence[float]) -> list[Candidate]:
        """The candidates of a question, the likeliest first, each form once.

        fit: likeness [2 * relations] of each directed relation, and the cover of the question's words by them.
        kinds: log of each of `KINDS`.
        """
        return PlanSearch(self, query, fit, kinds).candidates()


class PlanSearch:
    """The search for one question: `plans` by their forms.

    followed: relations that are followed in a level, and at least of plans about the same mentions.
    """

    followed = FOLLOWED, 16

    def __init__(self, owner: FormSearch, query: LabelQuery, fit: Any, kinds: Sequence[float]) -> None:
        self.owner, self.graph, self.query, self.kinds = owner, owner.graph, query, kinds
        self.likeness: Floats = fit.likeness
        self.words: WordCover = fit.cover
        self.relation_cover = self.words.relations
        self.none = np.zeros(len(self.words.weights))
        self.cues = cues_of(query.text, yes_no=False)
        self.has_none = _HAS_NONE.search(query.text.lower()) is not None
        self.wanted = {index for index, _ in query.types}
        self.gendered = {own: question_words()[own] & {*self.words.words} for own in GENDERS}
        self.plans: dict[Form, Plan] = {}
        self.same: dict[tuple[object, ...], Plan] = {}
        self.near: dict[tuple[str, Literal], Ints] = {}
        self.beyond: dict[Form, Ints] = {}
        self.measures: dict[bytes, list[tuple[int, bool]]] = {}
        self.classes = [
            self._plan(Class(self.graph.type_keys[t]), self.graph.members(t), self.words.types[t] * conf)
            for t, conf in query.types
        ]

    @cached_property
    def persons(self) -> list[tuple[Plan, int]]:
        """The types of single persons together, where *who* or *people* are asked for and the question names none; the
        place of the only one, -1 of several."""
        said = np.array([word in PERSONS for word in self.words.words], dtype=np.float64)
        asked = self.cues.kind == "person" or said.any() or not ANYBODY.isdisjoint(self.words.words)
        found = individuals(self.graph) if asked else ()
        if asked and self.has_none:
            found = found or tuple(sorted({
                index for word in PERSONS for index in self.graph.types_by_words.get(word, ())
            }))  # fmt: skip
        who = self.cues.kind == "person" and self.wanted.isdisjoint(found)
        if not 0 < len(found) <= MOST_PERSONS or (self.wanted and not who):
            return []
        classes = tuple(sorted((Class(self.graph.type_keys[one]) for one in found), key=str))
        form = Or(classes) if len(found) > 1 else classes[0]
        nodes = np.unique(np.concatenate([self.graph.members(one) for one in found]))
        return [(self._plan(form, nodes, said), found[0] if len(found) == 1 else -1)]

    # -- plans -------------------------------------------------------------------------------------------------

    def _plan(self, form: Form, nodes: Ints, cover: Floats, **more: Any) -> Plan:
        plan = Plan(form, nodes, cover, **more)
        plan.score = self._score(plan)
        return plan

    def _score(self, plan: Plan) -> float:
        count = len(plan.relations)
        mean = plan.likeness / count if count else PLAIN
        covered = self.words.share(plan.cover)
        unsure = UNSURE * math.log(min(1.0, max(plan.rho, 1e-3)))
        prior = PRIOR * max(self.kinds[KINDS.index(plan.kind)], -8.0)
        return mean + COVERAGE * covered - COST * count - plan.cost + unsure + prior

    def _wants(self, kind: str, words: Floats | None = None) -> bool:
        own = self.kinds[KINDS.index(kind)]
        return own >= LEAST_KIND or own >= max(self.kinds) or (words is not None and bool(words.any()))

    def _items(self) -> list[Plan]:
        graph, items = self.graph, list(self.classes)
        for number, slot in enumerate(self.query.slots):
            best = max(slot.entities[0][2], 1e-3)
            cover = self.none.copy()
            if number in self.words.slots:
                cover[self.words.slots[number]] = 1.0
            for entity, key, rho in slot.entities[:3]:
                nodes = graph.nodes_of(entity, key)
                items.append(
                    self._plan(graph.named(entity, key), nodes, cover, slots=(number,), rho=rho / best, chain=0,
                               start=nodes, things=not graph.memory.literal[entity])
                )  # fmt: skip
        items += self.listed
        items += self._text_values()
        items += self._truths()
        items += self._having()
        called = list(self._called_after_relations())
        self.kinds_called = {plan.form for plan in called}
        compared = bool(self.words.compared)
        alone = compared or not self.query.slots or self.words.away.any()  # else a mention is what a plan starts from
        measures = bool(self.query.values or self.words.rank.any() or self.has_none or compared)
        items += [plan for plan, index in self.persons if alone and (index < 0 or measures)]
        return items + called

    @cached_property
    def listed(self) -> list[Plan]:
        """Things of two types side by side, as in `herbs and flowers`."""
        words, found = self.words.words, list[Plan]()
        joins = [n for n, word in enumerate(words) if word in ("and", "or") and 0 < n < len(words) - 1]
        for p, q in permutations(self.classes, 2):
            if any(p.cover[n - 1] and q.cover[n + 1] and not p.cover[n + 1] for n in joins):
                nodes = np.union1d(p.nodes, q.nodes)
                if len(nodes) > max(len(p.nodes), len(q.nodes)):
                    found.append(self._plan(Or((p.form, q.form)), nodes, np.maximum(p.cover, q.cover)))
        return found

    def _text_values(self) -> Iterator[Plan]:
        """Texts of the graph that stand in the question."""
        for run in self.words.texts:
            cover = self.none.copy()
            cover[run.first : run.last] = 1.0
            for form, nodes in run.values:
                for members in self.classes if run.named else ():
                    if inside(nodes, members.nodes):
                        cover = np.maximum(cover, members.cover)
                        yield self._plan(_both(members.form, form), nodes, cover, texts=frozenset((run.first,)))
                if run.named:
                    continue
                yield self._plan(form, nodes, cover, chain=0, start=nodes, things=False,
                                 texts=frozenset((run.first,)))  # fmt: skip
        for number, slot in enumerate(self.query.slots):
            if number in self.words.slots and not self.graph.memory.literal[slot.entities[0][0]]:
                cover = self.none.copy()
                cover[self.words.slots[number]] = 1.0
                for node in self.graph.texts.get(slot.mention.lower(), ())[:1]:
                    key = self.graph.text_of(node)
                    nodes = self.graph.nodes_of(node, key)
                    yield self._plan(self.graph.named(node, key), nodes, cover, slots=(number,), chain=0, start=nodes,
                                     things=False)  # fmt: skip

    def _truths(self) -> Iterator[Plan]:
        """What has a relation to true or false by whose words the question asks."""
        graph = self.graph
        if not graph.truths:
            return
        nodes = np.array(sorted(graph.truths), dtype=np.int64)
        keys = graph.store.entity_keys(nodes.tolist())
        for relation in np.flatnonzero(np.isin(np.arange(graph.relations), graph.memory.relation)).tolist():
            near = self.words.names(relation) or self.words.has_all(relation)
            if not near or graph.measured[relation] > 0.5:
                continue
            for node in nodes.tolist():
                truth = graph.truths[node]
                heads = graph.follow(np.array([node]), relation + graph.relations)
                if len(heads) and (truth or self.words.away.any()):
                    back, own = (relation + graph.relations,), self.relation_cover[relation]
                    form = graph.join(back, graph.named(node, keys[node]))
                    own = own if truth else np.maximum(own, self.words.away)
                    yield self._plan(
                        form, heads, self._ends(own, heads), relations=back, last=back[0],
                        likeness=float(self.likeness[relation]), texts=frozenset((-1 - relation,)), away=not truth,
                    )  # fmt: skip

    def _having(self) -> Iterator[Plan]:
        """What has a number or date by whose relation the question asks; what it has that compares with a value."""
        graph = self.graph
        computes = any(words.any() for words in self.words.aggregates.values())
        if not (self.words.rank.any() or self.query.values or computes or self.words.compared):
            return
        measured = np.flatnonzero(graph.measured > 0.5)
        if not len(measured):
            return
        fit = self.likeness[measured] + self.relation_cover[measured] @ self.words.weights / self.words.total
        for relation in measured[np.argsort(-fit, kind="stable")[:3]].tolist():
            heads = graph.heads_of(relation)
            if len(heads) > LARGE:
                continue
            form, index = self._heads(relation), int(graph.head_type[relation])
            if not isinstance(form, Class):
                yield self._plan(form, heads, self._ends(self.none, heads), cost=0.15)
            elif index not in self.wanted:
                yield self._plan(form, graph.members(index), self.none, cost=0.1)

    def _heads(self, relation: int) -> Form:
        """What has a relation: the type of its heads, where nearly all have it, else all that has one."""
        index = int(self.graph.head_type[relation])
        if index >= 0 and self.graph.head_share[relation] > PURE:
            return Class(self.graph.type_keys[index])
        return Compare("ge", (self.graph.step(relation),), ONE, counted=True)

    def _called_after_relations(self) -> Iterator[Plan]:
        """All that a relation leads to which is called after it and has no type, as the authors of books."""
        graph = self.graph
        plain = not (self.query.slots or self.query.values or self.query.dropped_words)
        asked = {*self.words.roots}
        found = dict(self.called)
        things = (graph.measured <= 0.5) & (graph.tail_type < 0) & ~graph.to_truths & ~graph.is_type
        for relation in np.flatnonzero(things).tolist() if plain else ():
            label = self.owner.label_roots[relation]
            if label and label <= asked:
                found.setdefault(relation, graph.tails_of(relation))
        for relation, nodes in found.items():
            if not 0 < len(nodes) <= LARGE:
                continue
            if relation >= graph.relations:
                form = self._heads(relation - graph.relations)
                yield self._plan(form, nodes, self._ends(self.none, nodes), cost=0.15)
                continue
            yield self._plan(
                graph.join((relation,), self._heads(relation)), nodes, self._ends(self.relation_cover[relation], nodes),
                relations=(relation,), likeness=float(self.likeness[relation]), last=relation,
            )  # fmt: skip

    # -- search ------------------------------------------------------------------------------------------------

    def candidates(self) -> list[Candidate]:
        """The best plans as candidates."""
        self.run()
        return self._made()

    def run(self) -> None:
        """Makes the plans."""
        beam = self._items()
        for plan in beam:
            self._keep(plan)
        for _ in range(LEVELS):
            new: list[Plan] = []
            new += self._follow(beam)
            for plan in beam:
                new += self._narrow(plan)
                new += self._condition(plan)
                new += self._of_records(plan)
                new += self._compared_with(plan)
                new += self._only(plan)
                new += self._rank(plan)
                new += self._lack(plan)
            new += self._join(beam)
            new += self._with_same()
            fresh = [plan for plan in new if self._keep(plan)]
            beam = self._select(fresh)
            if not beam:
                break
        finals = self._finals()
        for plan in finals:
            self._keep(plan)

    def _keep(self, plan: Plan) -> bool:
        """Whether a plan is better than those of its form, and than those that find and explain the same."""
        known = self.plans.get(plan.form)
        if known is not None and known.score >= plan.score:
            return False
        if plan.is_set and plan.relations and plan.kind != "value":
            best, ways = best_of(plan.form) if plan.ranked else None, tuple(sorted(plan.relations))
            either = isinstance(plan.form, Or)
            same = (plan.nodes.tobytes(), plan.cover.tobytes(), plan.slots, ways, plan.missing, best, either)
            other = self.same.get(same)
            if other is not None and other.form != plan.form:
                if other.score >= plan.score:
                    return False
                self.plans.pop(other.form, None)
            self.same[same] = plan
        self.plans[plan.form] = plan
        return True

    def _select(self, plans: list[Plan]) -> list[Plan]:
        """The best of a level, and some of each group of plans that use the same mentions."""
        plans.sort(key=lambda one: -one.score)
        counts: dict[object, int] = {}
        chosen: list[Plan] = []
        for plan in plans:
            if not len(plan.nodes):
                continue
            key = plan.group
            counts[key] = counts.get(key, 0) + 1
            if len(chosen) < BEAM or counts[key] <= QUOTA:
                chosen.append(plan)
        return chosen[: 2 * BEAM]

    def _follow(self, beam: list[Plan]) -> Iterator[Plan]:
        graph, rows = self.graph, []
        for plan in beam:
            same = plan.chain == 1 and self.words.asks(SAME)  # who has the same salary as somebody
            if not len(plan.nodes) or (plan.relations and not (plan.things or same)):
                continue
            if plan.chain - plan.records >= self.owner.hops or len(plan.relations) >= 4 or len(plan.nodes) > LARGE:
                continue
            if plan.chain < 0 and not (plan.ranked or plan.slots or len(plan.nodes) <= 200):
                continue
            last = plan.last
            relations = graph.directed_relations(plan.nodes, graph.end_type(last) if last >= 0 else -1)
            relations = relations[[not self._useless(one, plan) and not (last >= 0 and self._back(last, one, plan))
                                   for one in relations.tolist()]]  # fmt: skip
            if not len(relations):
                continue
            covered = np.maximum(plan.cover, self.relation_cover[relations]) @ self.words.weights / self.words.total
            count = len(plan.relations) + 1
            scores = (plan.likeness + self.likeness[relations]) / count + COVERAGE * covered - COST * count - plan.cost
            scores += UNSURE * math.log(min(1.0, max(plan.rho, 1e-3)))
            scores += [TYPED * self._wanted_end(plan.nodes, one, count) for one in relations.tolist()]
            rows += [(score, number, plan, one) for number, (score, one) in
                     enumerate(zip(scores.tolist(), relations.tolist(), strict=True))]  # fmt: skip
        rows.sort(key=lambda row: (-row[0], row[1]))
        counts: dict[object, int] = {}
        done = 0
        for _, _, plan, relation in rows:
            key = plan.group
            counts[key] = counts.get(key, 0) + 1
            if done >= self.followed[0] and counts[key] > self.followed[1]:
                continue
            done += 1
            yield from self._followed(plan, relation)
        yield from self._absent(beam)

    def _of_records(self, plan: Plan) -> Iterator[Plan]:
        """Of things what they are ranked and narrowed by that their records have, where a word names it."""
        graph = self.graph
        if not graph.to_records or not plan.things or not 1 < len(plan.nodes) <= LARGE:
            return
        for relation in graph.to_records.intersection(graph.directed_relations(plan.nodes).tolist()):
            own = graph.directed_relations(graph.tails_of(relation)).tolist()
            if any(graph.is_measure(one) and self.words.names(one) for one in own):
                for records in self._followed(plan, relation):
                    yield from self._rank(records)
                    yield from self._condition(records)

    def _followed(self, plan: Plan, relation: int) -> Iterator[Plan]:
        graph = self.graph
        reached = graph.follow(plan.nodes, relation)
        if plan.chain > 0 and plan.start is not None:
            reached = reached[~among(reached, plan.start)]
        if not 0 < len(reached) <= LARGE or (len(plan.nodes) > 1 and graph.truths.keys() >= set(reached[:3].tolist())):
            return
        form = graph.join((relation,), plan.form)
        if any(self.gendered.values()):
            if (told := self._of_gender(form, reached, relation)) is None:
                return
            form, reached = told
        cover = self._ends(np.maximum(plan.cover, self.relation_cover[relation]), reached)
        nameless = graph.is_nameless(graph.end_type(relation))  # a record on the way to what it is about
        if nameless:
            own = deeds(graph.type_labels[graph.end_type(relation)])
            cover = np.maximum(cover, [word in own for word in self.words.roots])
        idle = IDLE * (self.words.share(cover) - self.words.share(plan.cover) < GAIN) + EMPTY * (not len(reached))
        yield self._plan(
            form, reached, cover, relations=(*plan.relations, relation), slots=plan.slots,
            likeness=plan.likeness + float(self.likeness[relation]), rho=plan.rho,
            cost=plan.cost + (-COST if nameless else idle), things=graph.to_entities(relation), start=plan.start,
            owner=plan if relation in graph.to_records else None,
            chain=plan.chain + 1 if plan.chain >= 0 else -1, records=plan.records + nameless,
            kind=plan.kind, ranked=plan.ranked, texts=plan.texts, away=plan.away, last=relation,
        )  # fmt: skip

    def _of_gender(self, form: Form, nodes: Ints, directed: int) -> tuple[Form, Ints] | None:
        """Those of the persons that a directed relation leads to who have the gender of the noun for them.

        All where the question has none or both of them, and where the graph tells the gender of none of these persons;
        None where it tells that of some, and of none that it is this one.
        """
        nouns, genders = self.owner.person_nouns(directed), self.owner.genders
        said = [own for own, words in self.gendered.items() if any(not nouns.isdisjoint(singulars(w)) for w in words)]
        known = sum(int(among(nodes, own).sum()) for _, own in genders.values())
        if len(said) != 1 or said[0] not in genders or not known:
            return form, nodes
        condition, own = genders[said[0]]
        found = nodes[among(nodes, own)]
        return (_both(form, condition), found) if len(found) or known == len(nodes) else None

    @cached_property
    def called(self) -> dict[int, Ints]:
        """What `FormSearch.called` has for the noun that the question asks for."""
        return self.owner.called(self.words.roots[self.words.asked]) if self.words.asked >= 0 else {}

    def _ends(self, cover: Floats, nodes: Ints) -> Floats:
        """The cover with that of the types which all of some nodes have, and of nouns for the tails of a relation."""
        for tails in self.called.values():
            if inside(nodes[:20], tails):
                cover = cover.copy()
                cover[self.words.asked] = 1.0
        for index in self.wanted:
            if inside(nodes[:20], self.graph.members(index)):
                cover = np.maximum(cover, self.words.types[index])
        if self.words.nouns.any() and len(nodes) and not self.graph.typed(nodes[:20]).any():
            cover = np.maximum(cover, self.words.nouns)
        return cover

    def _absent(self, beam: list[Plan]) -> Iterator[Plan]:
        graph = self.graph
        for plan in beam:
            if plan.chain != 0 or not plan.things or len(plan.nodes) != 1:
                continue
            entity = int(plan.nodes[0])
            usual = np.setdiff1d(graph.relations_of_types(graph.types_of(entity)), graph.directed_relations(plan.nodes))
            order = sorted(usual.tolist(), key=lambda one: (-self.likeness[one], one))[:3]
            for one in order:
                if not self._useless(one):
                    cover = np.maximum(plan.cover, self.relation_cover[one])
                    several = one >= graph.relations and graph.fan_out[one] > SEVERAL
                    yield self._plan(
                        graph.join((one,), plan.form), NONE, cover, relations=(one,), slots=plan.slots, rho=plan.rho,
                        likeness=float(self.likeness[one]), missing=not several, cost=EMPTY * several, last=one,
                    )  # fmt: skip

    def _wanted_end(self, nodes: Ints, relation: int, count: int) -> bool:
        if not self.wanted or self.graph.end_type(relation) in self.wanted:
            return bool(self.wanted)
        if count > 1 or not self.graph.to_entities(relation):
            return False
        reached = self.graph.follow(nodes, relation)[:200]
        return any(among(reached, self.graph.members(index)).any() for index in self.wanted)

    def _useless(self, relation: int, plan: Plan | None = None) -> bool:
        """Whether nobody asks by a relation: from types to their members, and for the type of what is no entity."""
        if relation >= self.graph.relations:
            return bool(self.graph.is_type[relation - self.graph.relations])
        return plan is not None and plan.chain != 0 and bool(self.graph.is_type[relation])

    def _back(self, last: int, then: int, plan: Plan) -> bool:
        """Whether a relation leads back to where a plan came from; siblings of an entity are asked for."""
        if then != self.graph.inverse(last):
            return False
        to_value = last < self.graph.relations and not self.graph.to_entities(last)
        return plan.chain < 0 or (to_value and not self.words.asks(SAME))

    def _narrow(self, plan: Plan) -> Iterator[Plan]:
        classes = [*zip(self.classes, (index for index, _ in self.query.types), strict=True), *self.persons]
        classes += [(members, LISTED) for members in self.listed if plan.slots]
        if not plan.relations or not plan.things or not classes:
            return
        if isinstance(plan.form, And) and any(isinstance(part, Class) for part in plan.form.parts):
            return
        if isinstance(plan.form, Or) and len({part.of for part in plan.form.parts if isinstance(part, Join)}) == 1:
            return  # `capital and currency of x`
        seen: set[bytes] = set()
        for members, index in classes:
            member = among(plan.nodes, members.nodes)
            both, out = plan.nodes[member], plan.nodes[~member]
            if len(out) and self.graph.typed(out).mean() < 0.5:
                continue
            less = len(out) > 0 or not (
                index == -1 or _head(plan.form) == members.form or self._called(plan.last, index)
            )
            cover = np.maximum(plan.cover, members.cover)
            if len(both) > 0 and less and both.tobytes() not in seen:
                seen.add(both.tobytes())
                yield self._extended(plan, _both(members.form, plan.form), both, cover, cost=-0.05)
            elif not len(both) and index in self.wanted and plan.chain == 1 and self._may_lead(plan, members):
                yield self._extended(plan, _both(members.form, plan.form), NONE, cover)

    def _may_lead(self, plan: Plan, members: Plan) -> bool:
        """Whether the relation of a plan leads to some members of a type from something else, as `located in` of lakes,
        while nothing else ties any of them to its mention."""
        graph, back = self.graph, self.graph.inverse(plan.last)
        forward = plan.last < graph.relations
        source, other = graph.memory.hop(members.nodes, back % graph.relations, backward=back >= graph.relations)
        every = graph.heads_of(plan.last) if forward else graph.tails_of(plan.last - graph.relations)
        rare = len(np.unique(other)) < OF_SOME * len(every)
        if rare or len(np.unique(source)) < NEARLY * len(members.nodes) or not members.cover.any():
            return False
        near = [one for one in self.plans.values() if one.chain == 1 and one.slots == plan.slots]
        return not any(among(one.nodes, members.nodes).any() for one in near)

    def _called(self, relation: int, index: int) -> bool:
        return (
            index >= 0
            and relation >= self.graph.relations
            and bool(self.graph.noun(relation - self.graph.relations) == self.graph.type_labels[index])
        )

    def _extended(
        self, plan: Plan, form: Form, nodes: Ints, cover: Floats, relation: int | None = None,
        cost: float = 0.0, kind: str | None = None, value: float | bool | None = None, ranked: bool = False,
        away: bool = False,
    ) -> Plan:  # fmt: skip
        relations, likeness = plan.relations, plan.likeness
        if relation is not None:
            relations, likeness = (*relations, relation), likeness + float(self.likeness[relation])
        return self._plan(
            form, nodes, cover, relations=relations, slots=plan.slots, likeness=likeness, rho=plan.rho,
            cost=plan.cost + cost + EMPTY * (value is None and not len(nodes)), things=plan.things,
            kind=kind or plan.kind, value=value, ranked=ranked or plan.ranked, texts=plan.texts,
            missing=plan.missing, last=plan.last, away=away or plan.away,
        )  # fmt: skip

    def _measures(self, plan: Plan) -> list[tuple[int, bool]]:
        key = plan.nodes.tobytes()
        if key not in self.measures:
            graph = self.graph
            end = graph.end_type(plan.last) if plan.last >= 0 else -1
            relations, fan_out = graph.directed_relations(plan.nodes, end).tolist(), graph.fan_out
            numbers = [one for one in relations if graph.is_measure(one)]
            things = [
                one for one in relations
                if not (graph.is_measure(one) or graph.is_type[one % graph.relations]) and fan_out[one] > SINGLE
            ]  # fmt: skip
            fits = self.likeness + self.relation_cover @ self.words.weights / self.words.total
            numbers.sort(key=lambda one: (-fits[one], one))
            things.sort(key=lambda one: (-fits[one], one))
            self.measures[key] = [(one, False) for one in self._of_size(plan, numbers)[:MEASURES]]
            self.measures[key] += [(one, True) for one in things[:MEASURES]]
        return self.measures[key]

    def _of_size(self, plan: Plan, numbers: list[int]) -> list[int]:
        """The measures without the population of what is large by its area, or the area of what is by its population,
        where the question says of things with both only that they are large: *the smallest state*."""
        words, graph = self.words.words, self.graph
        if _SIZES.isdisjoint(words) or not len(plan.nodes):
            return numbers
        if _SIZES.issuperset(word for word in words if is_superlative(word)):
            numbers = [one for one in numbers if graph.dated[one] <= DATED and not graph.leads_to_years(one)]
        kinds = {graph.type_labels[index] for index in graph.types_of(int(plan.nodes[0]))}
        small, large = ("area", "population") if not kinds.isdisjoint(_SETTLEMENTS) else ("population", "area")
        named = {one: entry_of(graph, one % graph.relations).name for one in numbers}
        if {small, large} <= {*named.values()} and kinds & (_SETTLEMENTS | _LANDS):
            own = {root(small), root(large), "people", "person"}
            if own.isdisjoint(self.words.roots):
                return [one for one in numbers if named[one] != small]
        labels = {one: {*graph.labels[one].lower().split()} for one in numbers}
        sized = [one for one in numbers if not _OF_SIZE.isdisjoint(labels[one])]
        if sized and "population" not in named.values() and not any(labels[one] & {*words} for one in numbers):
            return sized  # the largest flat is that with the largest area, not with most rooms
        return numbers

    @cached_property
    def english(self) -> bool:
        """Whether the question has words of English grammar."""
        grammar = question_words()["grammar"]
        return grammar_of(self.query.text) is grammar and not grammar.isdisjoint(self.words.words)

    @cached_property
    def ends(self) -> tuple[str, ...]:
        """The ends of scales that rankings may want: the one that all words say, or both."""
        known = (frozenset[str]().union(*adjectives().get(word, {}).values()) for word in self.words.words)
        said = self.words.ends_said.union(*known)
        return tuple(said) if len(said) == 1 else BESTS

    def _ranked_by(self, plan: Plan) -> list[tuple[int, bool]]:
        """The measures that a set may be ranked by: those of an adjective such as *priciest*, if the set has them."""
        measures, words = self._measures(plan), self.words.words
        plain = [word for word in words if is_superlative(word) and 0 < len(adjectives().get(word, ())) <= FEW_MEASURES]
        told = {one for word in plain for one in self.words.index.measures.get(word, ())}
        return [one for one in measures if one[0] in told and not one[1]] or measures

    def _first(self) -> int:
        """How many of a ranking the question asks for; 0 where it asks for one."""
        word = self.cues.several
        if not word and self.words.rank.any():
            word = next((one for one in self.words.words if one in SMALL_NUMBERS), NUMBER)
        if word == NUMBER:
            places = [n for n, one in enumerate(self.words.words) if one == NUMBER]
            free = {k for k, n in enumerate(places) if self.words.words[max(n - 1, 0)] not in _BEFORE_LIMITS}
            numbers = zip(self.query.values, numbers_of(self.query.values), strict=True)
            values = [value.text for value, k in numbers if value.text.isdigit() and k in free]
            return min(int(values[0]), LARGE) if values and len(values[0]) < 6 else 0
        return SMALL_NUMBERS.index(word) + 2 if word in SMALL_NUMBERS else 0

    def _rank(self, plan: Plan) -> Iterator[Plan]:
        first, place = self._first(), self.query.place or 1
        nth = place > 1 and not first
        if plan.ranked or not plan.things or len(plan.nodes) < 2 or len(plan.nodes) > LARGE:
            return
        if not (self.words.rank.any() or nth or first or not self.query.text.isascii()):
            return
        for relation, counted in self._ranked_by(plan):
            source, x = self.graph.values(plan.nodes, relation, counted)
            if not len(source):
                continue
            steps = (self.graph.step(relation),)
            cover = np.maximum(np.maximum(plan.cover, self.relation_cover[relation]), self.words.rank)
            for best in self.ends if first else ():
                some = Nth(first, best, plan.form, steps, counted, first=True)
                nodes = self.graph.memory.ranked(plan.nodes, some)
                made = self._extended(
                    plan, some, nodes, np.maximum(cover, self.words.value), relation, 0.02, "nth", ranked=True
                )
                yield from (made, *self._owned(plan, made, some))
            for best in self.ends if not self.cues.several else ():
                for n in (1, place) if nth else (1,):
                    nodes = _at(plan.nodes, source, x, best, n)
                    if not len(nodes):
                        continue
                    form: Form = (
                        Nth(n, best, plan.form, steps, counted) if n > 1 else Arg(best, plan.form, steps, counted)
                    )
                    kind = "nth" if n > 1 else "best"
                    made = self._extended(plan, form, nodes, cover, relation, 0.02, kind, ranked=True)
                    yield from (made, *self._owned(plan, made, form))

    def _condition(self, plan: Plan) -> Iterator[Plan]:
        if not self.query.values or not plan.things or len(plan.nodes) > LARGE:
            return
        if self.cues.several == NUMBER and len(self.query.values) == 1:
            return
        unused = [cover for cover in self.words.numbers if not (plan.cover * cover).any()]
        if plan.chain == 0 or (plan.kind == "value" and not unused):
            return
        for form, nodes, relation in self._conditions(plan.nodes, plan):
            value = self.words.values_in(form)
            if plan.kind == "value" and ((plan.cover * value).any() or relation in plan.relations):
                continue
            cover = np.maximum(np.maximum(plan.cover, self.relation_cover[relation]), value)
            cover = np.maximum(cover, self.words.compare)
            made = self._extended(plan, _both(plan.form, form), nodes, cover, relation, 0.02, "value")
            yield from (made, *self._owned(plan, made, form))

    def _owned(self, plan: Plan, made: Plan, form: Form) -> Iterator[Plan]:
        """What records are records of, ranked or narrowed by what was made of the records: games by the score of their
        ratings.  form: the ranking or the condition."""
        owner, graph = plan.owner, self.graph
        if owner is None or not owner.things or not len(made.nodes) or getattr(form, "counted", False):
            return
        source, reached = graph.memory.hop(owner.nodes, plan.last, backward=False)
        nodes = owner.nodes[once(source[among(reached, made.nodes)])]
        path = graph.step(plan.last), graph.step(made.relations[-1])
        match form:
            case Arg() | Nth():
                stated: Form = replace(form, of=owner.form, path=path)
            case Compare() | Join():
                stated = _both(owner.form, replace(form, path=path))
            case _:
                return
        cover = self._ends(made.cover, nodes)
        yield self._plan(
            stated, nodes, cover, relations=made.relations, slots=made.slots, likeness=made.likeness, rho=made.rho,
            cost=made.cost - COST, kind=made.kind, ranked=made.ranked, texts=made.texts, last=owner.last,
        )  # fmt: skip

    def _conditions(self, nodes: Ints, plan: Plan, *, empty: bool = False) -> Iterator[tuple[Form, Ints, int]]:
        relations, hop = self.graph.relations, self.graph.memory.hop
        measures = self._measures(plan)
        hops = [hop(nodes, one % relations, backward=one >= relations) for one, _ in measures]
        found: dict[tuple[int, bool, int], tuple[Form, Ints]] = {}
        number = numbers_of(self.query.values)
        years = {n for n, value in zip(number, self.query.values, strict=True) if value.datatype.endswith("gYear")}
        stated = {n for n, value in zip(number, self.query.values, strict=True) if value.unit}
        fitting, amounts = self.fitting, self.words.index.amounts
        for (place, literal), ((relation, counted), (source, reached)) in product(
            enumerate(self.query.values), zip(measures, hops, strict=True)
        ):
            steps = (self.graph.step(relation),)
            if number[place] in stated and (counted or relation not in fitting.get(number[place], (relation,))):
                continue
            if not literal.unit and number[place] in stated and relation in fitting.get(number[place], ()):
                continue
            if amounts and number[place] in self.words.money and (counted or relation not in amounts):
                continue
            own_unit = literal if counted else self.graph.in_unit(literal, relation)
            if own_unit is None or (counted and years & {number[place]}):
                continue
            if counted and self.words.asks(EXACTLY):
                both = [self._fulfil(op, own_unit, nodes, source, reached, counted) for op in ("ge", "le")]
                if both[0] is not None and both[1] is not None:
                    bounds = (Compare(op, steps, own_unit, counted) for op in ("ge", "le"))
                    yield _both(*bounds), both[0][among(both[0], both[1])], relation
                continue
            ops = OPS if self.words.may_compare or not self.english or counted else ()
            for op in (*ops, *(() if counted else ("eq",))):
                own = self._fulfil(op, own_unit, nodes, source, reached, counted)
                if own is None or (counted and not empty and len(own) == len(np.unique(source))):
                    continue
                if number[place] in stated and not literal.unit and len(own) in (0, len(np.unique(source))):
                    continue  # its unit is another one
                if not (len(own) or empty or self.words.names(relation) or relation in fitting.get(number[place], ())):
                    continue
                form: Form = Join(steps, own_unit) if op == "eq" else Compare(op, steps, own_unit, counted)
                if not self.range:
                    yield form, own, relation
                elif (op == "ge" and place in self.range) or (op == "le" and place in self.range.values()):
                    found[relation, counted, place] = form, own
        for (relation, counted, place), (form, own) in found.items():
            if other := found.get((relation, counted, self.range.get(place, -1))):
                yield _both(form, other[0]), own[among(own, other[1])], relation

    def _compared_with(self, plan: Plan) -> Iterator[Plan]:
        """Members that have more or less of something than a mention has: *larger than x*."""
        if not plan.things or plan.chain == 0 or len(plan.nodes) > LARGE:
            return
        if self.words.asks(THAN_AVERAGE) and plan.kind != "value":
            yield from self._beyond_average(plan)
        for number, word in self.words.compared.items():
            slot = self.query.slots[number]
            behind = self.words.slots.get(number, 0)
            if number in plan.slots and self.words.words[behind - 1] == word:
                continue
            for entity, key, rho in slot.entities[:3]:
                one, own = Entity(key), np.array([entity], dtype=np.int64)
                for relation, counted in self._measures(plan):
                    own_relation = relation % self.graph.relations
                    dated = self.graph.dated[own_relation] > DATED or self.graph.labels[own_relation].endswith(" in")
                    dated &= not counted
                    if not (word == "than" or dated) or not len(self.graph.values(own, relation, counted)[0]):
                        continue
                    for best in self.ends:
                        form = CompareTo("gt" if best == "max" else "lt", (self.graph.step(relation),), one, counted)
                        if form not in self.beyond:
                            self.beyond[form] = self.graph.memory.nodes(form)
                        nodes = plan.nodes[among(plan.nodes, self.beyond[form])]
                        cover = np.maximum(np.maximum(plan.cover, self.relation_cover[relation]), self.words.compare)
                        cover[behind] = 1.0
                        made = self._extended(plan, _both(plan.form, form), nodes, cover, relation, 0.02, "value")
                        made.slots = tuple(dict.fromkeys((*plan.slots, number)))
                        made.rho = plan.rho * rho / max(slot.entities[0][2], 1e-3)
                        made.score = self._score(made)
                        yield made

    def _beyond_average(self, plan: Plan) -> Iterator[Plan]:
        """Members that have more or less of something than all of them have on average."""
        words = self.words.aggregates
        how = "median" if words["median"].any() else "avg"
        for (relation, counted), best in product(self._measures(plan), self.ends):
            steps = (self.graph.step(relation),)
            bound = Aggregate(how, plan.form, steps, counted=counted)
            form = CompareTo("gt" if best == "max" else "lt", steps, bound, counted)
            value = self.graph.memory.aggregate(plan.nodes, bound).value
            if value is None:
                continue
            source, x = self.graph.values(plan.nodes, relation, counted)
            nodes = np.unique(plan.nodes[source[(x > value) if best == "max" else (x < value)]])
            cover = np.maximum(np.maximum(plan.cover, self.relation_cover[relation]), self.words.compare)
            cover = np.maximum(cover, words[how])
            yield self._extended(plan, _both(plan.form, form), nodes, cover, relation, 0.02, "value")

    def _only(self, plan: Plan) -> Iterator[Plan]:
        """Members that a relation leads nowhere else from than to what was found, and those that it leads to all of a
        type from: *border only x*, *work on all projects*."""
        if (
            not (self.words.asks(ONLY) or self.words.asks(EVERY))
            or plan.last < 0
            or not plan.things
            or len(plan.nodes) > LARGE
        ):
            return
        back = self.graph.inverse(plan.last)
        source, reached = self.graph.memory.hop(
            plan.nodes, back % self.graph.relations, backward=back >= self.graph.relations
        )
        counts, steps = np.bincount(source, minlength=len(plan.nodes)), (self.graph.step(back),)
        if self.words.asks(ONLY) and plan.chain == 1:
            form = _both(plan.form, Compare("le", steps, ONE, counted=True))
            yield self._extended(plan, form, plan.nodes[counts == 1], plan.cover)
        for members, (index, _) in zip(self.classes, self.query.types, strict=True) if self.words.asks(EVERY) else ():
            size, every = len(members.nodes), index == self.graph.end_type(back) and inside(reached, members.nodes)
            if every and plan.chain == -1 and size > 1 and len(plan.relations) == 1:
                all_of_them = Literal(str(size), f"{XSD}decimal")
                form = _both(plan.form, Compare("ge", steps, all_of_them, counted=True))
                yield self._extended(plan, form, plan.nodes[counts >= size], plan.cover, cost=-0.05)

    @cached_property
    def fitting(self) -> dict[int, set[int]]:
        """The relations to numbers that each number with a unit can be compared with, of those that have any."""
        measures = np.flatnonzero((self.graph.measured > 0.5) & (self.graph.dated <= DATED)).tolist()
        found = {}
        for number, value in zip(numbers_of(self.query.values), self.query.values, strict=True):
            if value.unit:
                found[number] = {one for one in measures if self.graph.in_unit(value, one) is not None}
        return {n: relations for n, relations in found.items() if relations}

    @cached_property
    def range(self) -> dict[int, int]:
        """Places of the values from which a range of the question goes → those to which it goes."""
        if _RANGE.search(self.query.text) is None:
            return {}
        values, numbers = self.query.values, numbers_of(self.query.values)
        return {
            n: m
            for n, one in enumerate(values)
            for m, other in enumerate(values)
            if (numbers[n], numbers[m]) == (0, 1) and one.datatype == other.datatype and one.unit == other.unit
        }

    def _fulfil(
        self, op: str, literal: Literal, nodes: Ints, source: Ints, reached: Ints, counted: bool
    ) -> Ints | None:
        if counted:
            limit = measure(literal)
            if limit is None or limit.dim != "":
                return None
            counts = np.bincount(source, minlength=len(nodes))
            return nodes[(counts > 0) & TESTS[op](counts, limit.lo)]
        if (op, literal) not in self.near:
            try:
                self.near[op, literal] = self.graph.memory.within(op, literal)
            except FormError:
                return None
        fulfils = np.zeros(len(nodes), dtype=np.bool_)
        fulfils[source[among(reached, self.near[op, literal])]] = True
        return nodes[fulfils]

    def _implied(self, relation: int) -> Iterator[Plan]:
        """The type of what a directed relation leads to, or starts from, where the question names none."""
        index = self.graph.end_type(relation) if relation >= 0 else -1
        if index >= 0 and index not in self.wanted:
            yield self._plan(Class(self.graph.type_keys[index]), self.graph.members(index), self.none, cost=0.1)

    def _lack(self, plan: Plan) -> Iterator[Plan]:
        """Members without a relation, or types with one: `patients with an insurance`."""
        graph, away = self.graph, self.words.away.any()
        if not plan.things or plan.away or plan.chain == 0:
            return
        plain = isinstance(plan.form, Class) and not (self.query.slots or self.query.values or self.words.texts)
        if not away and not (plain and WITH & {*self.words.words}):
            return
        relations = [one for one in graph.directed_relations(plan.nodes).tolist() if not self._useless(one)]
        usual = graph.relations_of_types(graph.types_of(int(plan.nodes[0]))).tolist() if len(plan.nodes) else []
        relations = sorted({*relations, *(one for one in usual if not self._useless(one))})
        relations.sort(key=lambda one: (-self._fits(one), one))
        every = plan
        back = graph.inverse(plan.last) if plan.last >= 0 else -1
        relations = [one for one in relations if one not in (back, plan.last) and self.words.names(one)]
        read = self.relation_cover[[one for one in relations if not graph.is_measure(one)]].max(0, initial=0.0) > 0.5
        for relation in relations[:LACKED]:
            less = not _NOBODY.isdisjoint(self.words.words) or read[self.relation_cover[relation] > 0.5].all()
            if graph.is_measure(relation) and less:
                continue  # `never cited`, beside the number of times; nobody is no number
            ahead = relation - graph.relations
            if (ahead in relations and is_mutual(graph, ahead)) or (away and graph.to_truths[ahead]):
                continue  # which is taken away below; what is not so is stated
            plan = self._of_end(every, graph.inverse(relation))
            source, _ = graph.memory.hop(plan.nodes, relation % graph.relations, backward=relation >= graph.relations)
            lacks = np.ones(len(plan.nodes), dtype=np.bool_)
            lacks[source] = False
            form: Form = plan.form
            if away and relation < graph.relations and is_mutual(graph, relation):  # `never married`, to whomever
                other, _ = graph.memory.hop(plan.nodes, relation, backward=True)
                if lacks[other].any():
                    lacks[other] = False
                    turned = (graph.step(relation + graph.relations),)
                    form = Minus(form, Compare("ge", turned, ONE, counted=True))
            having = Compare("ge", (graph.step(relation),), ONE, counted=True)
            cover = np.maximum(np.maximum(plan.cover, self.relation_cover[relation]), self.words.away)
            if lacks.all():
                continue
            if away:
                yield self._extended(plan, Minus(form, having), plan.nodes[lacks], cover, relation, 0.05,
                                     "difference", away=True)  # fmt: skip
            elif relation >= graph.relations or not (graph.to_truths[relation] or graph.measured[relation] > 0.5):
                yield self._extended(plan, _both(plan.form, having), plan.nodes[~lacks], cover, relation, 0.05, "value")

    def _of_end(self, plan: Plan, directed: int) -> Plan:
        """Of persons of several types those of the types of some of what a directed relation leads to."""
        if not isinstance(plan.form, Or) or not all(isinstance(part, Class) for part in plan.form.parts):
            return plan
        ends = self.graph.reached_by(directed)
        members = {part: self.graph.memory.nodes(part) for part in plan.form.parts}
        kept = [part for part in plan.form.parts if among(members[part], ends).any()]
        if not kept or len(kept) == len(members):
            return plan
        nodes = np.unique(np.concatenate([members[part] for part in kept]))
        return self._plan(Or(tuple(kept)) if len(kept) > 1 else kept[0], nodes, plan.cover)

    def _fits(self, relation: int) -> float:
        return float(self.likeness[relation]) + self.words.share(self.relation_cover[relation])

    def _join(self, beam: list[Plan]) -> Iterator[Plan]:
        groups: dict[tuple[frozenset[int], frozenset[int], bool], list[Plan]] = {}
        for plan in sorted(self.plans.values(), key=lambda one: -one.score):
            told = plan.slots or plan.texts or plan.kind == "value" or plan.ranked
            complement = isinstance(plan.form, Minus) and isinstance(plan.form.of, Class)
            if plan.relations and plan.things and len(plan.nodes) and told and not complement:
                own = groups.setdefault((frozenset(plan.slots), plan.texts, plan.away), [])
                if len(own) < SIDE:
                    own.append(plan)
        latest = {id(plan) for plan in beam}
        words, away = self.words.words, self.words.away
        if OR.search(self.query.text):
            yield from self._or_none(one for own in groups.values() for one in own)
        union = bool(OR.search(self.query.text)) or "nor" in words or (away.any() and "and" in words[away.argmax() :])
        minus = self._wants("difference", self.words.away)
        for (one, first), (other, second) in permutations(groups.items(), 2):
            if one[0] & other[0] or one[1] & other[1]:
                continue
            for (i, p), (j, q) in product(enumerate(first), enumerate(second)):
                if id(p) not in latest and id(q) not in latest:
                    continue
                if p.kind == q.kind == "value" and (p.cover * q.cover * self.words.value).any():
                    continue  # a number is said once
                same = p.relations == q.relations
                listed = same and self._listed(p, q)
                ranked = (p.ranked and not p.slots) or (q.ranked and not q.slots)
                if listed:
                    if _in_order(one) < _in_order(other):
                        yield self._joined(Or((p.form, q.form)), np.union1d(p.nodes, q.nodes), p, q, "none")
                    continue
                if _in_order(one) < _in_order(other) and not ranked:
                    both = p.nodes[among(p.nodes, q.nodes)]
                    if len(both) and (len(both) < len(p.nodes) or len(both) < len(q.nodes)) or same and len(both):
                        yield self._joined(_both(p.form, q.form), both, p, q, "intersect")
                    elif not len(both) and max(i, j) < EMPTIES and self._alike(p, q) and self._may_meet(p, q):
                        yield self._joined(_both(p.form, q.form), NONE, p, q, "intersect")
                    unlike = max(i, j) < OTHERWISE and len(p.nodes) and self._alike(p, q, known=True)
                    united = union and self._alternative(p, q) and (same or unlike)
                    if united and (same or not np.array_equal(p.nodes, q.nodes)):
                        yield self._joined(Or((p.form, q.form)), np.union1d(p.nodes, q.nodes), p, q, "none")
                if minus:
                    yield from self._taken(p, q, max(i, j) < EMPTIES)
        if not minus:
            return
        negated = int(self.words.away.argmax()) if self.words.away.any() else len(words)
        for members in self.classes:
            yield from self._without(members)  # `departments other than x`
        behind = [one for one in self.classes if one.cover.any() and int(one.cover.argmax()) > negated]
        for p, q in product(self.classes, behind):
            if p.form != q.form:
                yield from self._taken(p, q, empty=True)  # `peaks that are no volcanoes`
        for group in list(groups.values()):
            for p in group:
                yield from self._without(p)
                for members in behind if p.slots or p.texts else ():
                    yield from self._taken(p, members, empty=True)
                if (len(p.slots) + len(p.texts) != 1 and not isinstance(p.form, Or)) or id(p) not in latest:
                    continue
                for members in (*self.classes, *self._implied(p.last)):
                    yield from self._taken(members, p, empty=True)

    def _or_none(self, plans: Iterator[Plan]) -> Iterator[Plan]:
        """What a relation leads to from one of two mentions, where it leads to nothing from the other: `x or y`."""
        single = (plan for plan in self.plans.values() if len(plan.relations) == 1 == len(plan.slots))
        empty = [plan for plan in single if plan.is_set and not len(plan.nodes) and not plan.away]
        for p, q in product(plans, empty):
            same = p.relations == q.relations and p.slots != q.slots
            if same and self.words.alternatives and self._alternative(p, q):
                yield self._joined(Or((p.form, q.form)), p.nodes, p, q, "none")

    def _listed(self, p: Plan, q: Plan) -> bool:
        """Whether two plans are of kinds that the question asks for side by side: `painters and poets`."""
        if p.slots or q.slots or len(p.texts) != 1 or len(q.texts) != 1 or min(*p.texts, *q.texts) < 0:
            return False
        first, last = sorted((*p.texts, *q.texts))
        between = [word for word in self.words.words[first + 1 : last] if word not in ("the", "all", "all the")]
        return between == ["and"] and self.words.words[first].endswith("s") and self.words.words[last].endswith("s")

    def _with_same(self) -> Iterator[Plan]:
        """What two relations lead to from one mention: `born and died in x`."""
        near: dict[int, list[Plan]] = {}
        for plan in self.plans.values() if "and" in self.words.words else ():
            if plan.chain == 1 and len(plan.slots) == 1 and len(plan.nodes) and self.words.names(plan.last):
                near.setdefault(plan.slots[0], []).append(plan)
        for plans in near.values():
            for p, q in combinations(plans[:SIDE], 2):
                both = p.nodes[among(p.nodes, q.nodes)]
                if p.last < self.graph.relations and q.last < self.graph.relations and self._side_by_side(p, q):
                    yield self._joined(Or((p.form, q.form)), np.union1d(p.nodes, q.nodes), p, q, "none")
                elif self._alike(p, q) and p.last != q.last and p.things and q.things:
                    yield self._joined(_both(p.form, q.form), both, p, q, "intersect")

    def _side_by_side(self, p: Plan, q: Plan) -> bool:
        """Whether the words on both sides of an *and* name the relations of two plans: `population and area of x`."""
        at, own = self.words.words.index("and"), self.words.index.own
        spans = range(max(at - 2, 0), at), range(at + 1, min(at + 4, len(self.words.roots)))
        said = [n for n, weight in enumerate(self.words.weights) if weight and n not in self.words.slots.values()]
        left, right = ({self.words.roots[n] for n in span if n in said} for span in spans)
        sides = [(not own[one.last].isdisjoint(left), not own[one.last].isdisjoint(right)) for one in (p, q)]
        return sorted(sides) == [(False, True), (True, False)]

    def _alternative(self, p: Plan, q: Plan) -> bool:
        """Whether two plans may be united: they have what stands on both sides of an *or*, and no more."""
        places = [{self.words.slots[n] for n in one.slots if n in self.words.slots} | {n for n in one.texts if n >= 0}
                  for one in (p, q)]  # fmt: skip
        found, sides = places[0] | places[1], self.words.alternatives
        return not sides or found == sides or (sides <= found and isinstance(p.form, Or) | isinstance(q.form, Or))

    def _alike(self, p: Plan, q: Plan, *, known: bool = False) -> bool:
        """Whether two plans find things of a kind; known: and not only may."""
        ends = [self.graph.end_type(plan.last) if plan.last >= 0 else -1 for plan in (p, q)]
        return (ends[0] == ends[1] and not (known and ends[0] < 0)) or (min(ends) < 0 and not known)

    def _may_meet(self, p: Plan, q: Plan) -> bool:
        """Whether something may be in two sets: not what has a type in one, and what has none in the other."""
        some, others = (bool(self.graph.typed(one.nodes[:20]).any()) for one in (p, q))
        return some == others

    def _taken(self, p: Plan, q: Plan, empty: bool) -> Iterator[Plan]:
        left = p.nodes[~among(p.nodes, q.nodes)]
        if q.away or (p.away and not (p.slots and q.slots)):
            return
        idle = len(left) == len(p.nodes)  # none of them, of whom the same relation says something else
        applies = idle and q.last >= 0 and self.graph.inverse(q.last) in self.graph.directed_relations(p.nodes)
        if (not idle or applies) and (len(left) or empty):
            yield self._joined(Minus(p.form, q.form), left, p, q, "difference")

    def _without(self, p: Plan) -> Iterator[Plan]:
        for number, slot in enumerate(self.query.slots):
            if number in p.slots:
                continue
            for entity, key, _ in slot.entities[:3]:
                nodes = self.graph.nodes_of(entity, key)
                if len(p.nodes) > 1 and inside(nodes, p.nodes):
                    left = p.nodes[~among(p.nodes, nodes)]
                    named = self.plans[self.graph.named(entity, key)]
                    yield self._joined(Minus(p.form, named.form), left, p, named, "difference")
                    break

    def _joined(self, form: Form, nodes: Ints, p: Plan, q: Plan, kind: str) -> Plan:
        cover = np.maximum(p.cover, q.cover)
        away = p.away or q.away
        if kind == "difference":
            cover, away = np.maximum(cover, self.words.away), True
        return self._plan(
            form, nodes, cover, relations=(*p.relations, *q.relations), slots=(*p.slots, *q.slots),
            likeness=p.likeness + q.likeness, rho=p.rho * q.rho, cost=p.cost + q.cost + EMPTY * (not len(nodes)),
            kind=kind if kind != "intersect" or (p.slots and q.slots) else max(p.kind, q.kind),
            ranked=p.ranked or q.ranked, texts=p.texts | q.texts, away=away,
            last=p.last if p.last >= 0 or kind == "difference" else q.last,
        )  # fmt: skip

    # -- what is no set ----------------------------------------------------------------------------------------

    def _finals(self) -> Iterator[Plan]:
        graph = self.graph
        sets = sorted((plan for plan in self.plans.values() if plan.is_set), key=lambda one: -one.score)
        things = [plan for plan in sets if plan.things and plan.chain != 0]
        if self._wants("count", self.words.count) and (self.words.count.any() or not self.english):
            kinds = (one for one in things[COUNTED:] if isinstance(one.form, Class) or one.form in self.kinds_called)
            for plan in (*things[:COUNTED], *kinds):
                one = plan.chain > 0 and len(plan.nodes) == 1 and graph.fan_out[plan.relations[-1]] <= SINGLE
                if not one or (self.words.count.any() and self.words.names(plan.relations[-1])):
                    cover = np.maximum(plan.cover, self.words.count)
                    yield self._extended(plan, Count(plan.form), NONE, cover, kind="count", value=len(plan.nodes))
        yield from self._aggregates(things)
        if self.words.lasting.any():
            yield from self._lasting(things)
        if self._wants("compare", self.words.compare) or (self._wants("yes/no") and self.words.compare.any()):
            yield from self._compare()
        if self._wants("yes/no"):
            counts: dict[object, int] = {}
            yield from self._judged()
            for plan in things:
                counts[plan.group] = counts.get(plan.group, 0) + 1
                if counts[plan.group] <= JUDGED:
                    yield from self._holds(plan)

    def _aggregates(self, things: Sequence[Plan]) -> Iterator[Plan]:
        """Sums and averages of sets by a measure, also for each value of a relation; counts of groups; shares."""
        asked = {how: words for how, words in self.words.aggregates.items() if words.any()}
        asked |= dict.fromkeys(self.ends, self.words.rank) if self.words.rank.any() else {}
        grouped = asked.pop("group", None)
        if self.cues.kind == "number" and not asked and grouped is None and self.words.count.any():
            asked["sum"] = self.words.count  # `how many hours were worked on x`, of measures that are named
        if "share" in asked:
            yield from self._shares(things, asked.pop("share"))
        plain = [one for one in things if not one.ranked]
        nearest = [one for one in plain if len(one.relations) <= 1][:AGGREGATED]  # the measure may explain most words
        nearest += [one for one in self.classes if grouped is not None and one not in nearest]
        for plan in (*plain[:AGGREGATED], *(one for one in nearest if one not in plain[:AGGREGATED])):
            measures = self._measures(plan)
            measures = [one for one in measures if not one[1]][:3] + [one for one in measures if one[1]][:3]
            told = computations(plan.form)
            for how, words in asked.items():
                summed = how == "sum" and words is self.words.count
                if summed and not self._is_told(plan):
                    continue
                for relation, counted in self._named(measures) if summed else measures if how not in told else ():
                    form = Aggregate(how, plan.form, (self.graph.step(relation),), counted=counted)
                    yield from self._aggregate(plan, form, words)
            if grouped is None:
                if self.words.rank.any():
                    yield from self._best_groups(plan, measures)
                continue
            for by in self._groupings(plan):
                steps = (self.graph.step(by),)
                yield from self._aggregate(plan, Aggregate("count", plan.form, by=steps), grouped, by)
                others = [one for one in measures if one != (by, False)]
                ranking = [one for one in self._ranked_by(plan) if one in others]
                for best, (relation, counted) in product(self.ends if self.words.rank.any() else (), ranking):
                    form = Aggregate(f"arg{best}", plan.form, (self.graph.step(relation),), steps, counted)
                    yield from self._aggregate(plan, form, np.maximum(self.words.rank, grouped), by)
                for how, words in (asked or {"sum": grouped}).items():
                    for relation, counted in others if asked else self._named(others):
                        form = Aggregate(how, plan.form, (self.graph.step(relation),), steps, counted)
                        yield from self._aggregate(plan, form, np.maximum(words, grouped), by)
            for relation, counted in measures:
                form = Aggregate("values", plan.form, (self.graph.step(relation),), counted=counted)
                yield from self._aggregate(plan, form, grouped)

    def _lasting(self, things: Sequence[Plan]) -> Iterator[Plan]:
        """How long things lasted, from one of their dates to another: that of one, the longest, the one of two."""
        named = [plan for plan in self.plans.values() if plan.chain == 0 and plan.slots and plan.things]
        asked = {how: words for how, words in self.words.aggregates.items() if how in EVERY_WAY and words.any()}
        some = [plan for plan in things if not plan.ranked][:AGGREGATED]
        some += [plan for plan in self.classes if plan not in some]
        if not self.classes and self.words.rank.any():  # *who lived longest*
            some += [self._plan(self._heads(one), self.graph.heads_of(one), self.none) for one in self._births]
        for plan in (*named, *some):
            for span, ends in self._spans(plan):
                several = len(plan.nodes) > 1
                for best in self.ends if several and self.words.rank.any() else ():
                    arg = Arg(best, plan.form, span)
                    nodes = self.graph.memory.ranked(plan.nodes, arg)
                    if len(nodes):
                        yield self._of_span(plan, arg, ends, self.words.rank, nodes, kind="best", ranked=True)
                yield from self._limited(plan, span, ends) if several else ()
                for how, words in asked.items() if several else (("max", self.words.count),):
                    form = Aggregate(how, plan.form, span)
                    value = self.graph.memory.aggregate(plan.nodes, form).value
                    if value is not None:
                        yield self._of_span(plan, form, ends, words, NONE, kind="count", things=False, value=value)
        for p, q in combinations(named, 2) if self.words.compare.any() or self.words.rank.any() else ():
            if p.slots != q.slots and p.nodes[0] != q.nodes[0]:
                both = self._joined(Or((p.form, q.form)), np.union1d(p.nodes, q.nodes), p, q, "compare")
                for (span, ends), best in product(self._spans(both), self.ends):
                    one = Greater(p.form, q.form, span, best)
                    nodes, words = self.graph.memory.nodes(one), np.maximum(self.words.compare, self.words.rank)
                    if len(nodes):
                        yield self._of_span(both, one, ends, words, nodes, kind="compare")

    def _limited(self, plan: Plan, span: Steps, ends: tuple[int, int]) -> Iterator[Plan]:
        """Those that lasted more or less than a number of days or years, and how many these are."""
        numbers = [one for one in self.query.values if one.datatype == f"{XSD}decimal" and not one.unit]
        for number, op in product(numbers, OPS):
            limit = Compare(op, span, number)
            nodes = plan.nodes[among(plan.nodes, self.graph.memory.nodes(limit))]
            words = np.maximum(self.words.values_in(limit), self.words.compare)
            made = self._of_span(plan, _both(plan.form, limit), ends, words, nodes, kind="value")
            if len(nodes):
                yield made
            if self.words.count.any():
                cover = np.maximum(made.cover, self.words.count)
                yield self._extended(made, Count(made.form), NONE, cover, kind="count", value=len(nodes))

    def _of_span(
        self, plan: Plan, form: Form, ends: tuple[int, int], words: Floats, nodes: Ints, **more: Any
    ) -> Plan:  # fmt: skip
        """A plan that measures things by the time between two dates.  ends: their relations; words: also explained."""
        cover = np.maximum.reduce([plan.cover, self.words.lasting, words, *self.relation_cover[list(ends)]])
        return self._plan(
            form, nodes, cover, relations=(*plan.relations, *ends), slots=plan.slots, rho=plan.rho, cost=plan.cost,
            likeness=plan.likeness + float(self.likeness[list(ends)].sum()), texts=plan.texts, **more,
        )  # fmt: skip

    @cached_property
    def _births(self) -> list[int]:
        """The relations to dates of birth."""
        dated = np.flatnonzero(self.graph.dated > DATED).tolist()
        return [one for one in dated if entry_of(self.graph, one).name == BIRTH]

    @cached_property
    def _asked_span(self) -> re.Match[str] | None:
        return LASTS.search(self.query.text.lower())

    def _spans(self, plan: Plan) -> Iterator[tuple[Steps, tuple[int, int]]]:
        """The spans of time that a question may mean between two dates of some things, and their relations: ages from
        birth to a date that it names or to death; else the pair that it names an end of, or the only one."""
        graph, asked = self.graph, self._asked_span
        if asked is None or not len(plan.nodes) or len(plan.nodes) > LARGE:
            return
        ways = (one for one in graph.directed_relations(plan.nodes).tolist() if one < graph.relations)
        dates = [one for one in ways if graph.dated[one] > DATED][:MOST_DATES]
        names, pairs = self.words.names, [pair for pair in permutations(dates, 2) if graph.precedes(*pair)]
        if asked["life"]:  # until death, where it does not say *when*
            pairs = [pair for pair in pairs if pair[0] in self._births]
            said = {pair: 1 for pair in pairs if names(pair[1])}
            if not said and "when" not in self.words.words:
                said = {pair: 1 for pair in pairs if entry_of(graph, pair[1]).name == DEATH}
        else:
            said = {pair: sum(map(names, pair)) for pair in pairs if pair[0] not in self._births}
        most = max(said.values(), default=0)
        for (begin, end), number in said.items():
            if number == most and (most or len(said) == 1):
                found = [TimeSpan(graph.keys[begin], until=graph.keys[end], unit=unit) for unit in UNITS_OF_TIME]
                days, years = (graph.memory.computed(plan.nodes, (span,)) for span in found)
                short = self.words.rank.any() or self.words.compare.any() or days[1].max(initial=0) < LONG
                in_days = short and len(days[0]) == len(years[0])
                unit = asked["unit"] or asked["limit"] or ("days" if in_days else "years")
                yield (found[UNITS_OF_TIME.index(unit)],), (begin, end)

    def _is_told(self, plan: Plan) -> bool:
        """Whether the question says what a set is of, or it is of records, which no question names."""
        end = self.graph.end_type(plan.last) if plan.last >= 0 else -1
        parts = plan.form.parts if isinstance(plan.form, And) else (plan.form,)
        return end in self.wanted or self.graph.is_nameless(end) or any(isinstance(one, Class) for one in parts)

    def _best_groups(self, plan: Plan, measures: Sequence[tuple[int, bool]]) -> Iterator[Plan]:
        """The groups that have the most members, or the highest average or total: *the team with the best average*."""
        told = self.words.aggregates.items()
        words = {how: own for how, own in told if own.any() and how in ("avg", "sum", "median")}
        summed = {word for word, own in zip(self.words.words, words.get("sum", ()), strict=False) if own}
        if any(label.lower() in summed for label in self.graph.labels):
            words.pop("sum", None)  # the highest *total*, which orders have
        if not (words or (plan.kind == "value" and self.query.values) or plan.texts or plan.slots):
            return
        for by in self._groupings(plan):
            if self.graph.end_type(by) not in self.wanted and not self.words.names(by):
                continue
            steps, rank = (self.graph.step(by),), self.words.rank
            for best in self.ends:
                if not words:
                    form = Aggregate("count", plan.form, by=steps, pick=best)
                    yield from self._aggregate(plan, form, np.maximum(rank, self.words.count), by)
                for (how, own), (relation, counted) in product(words.items(), measures):
                    form = Aggregate(how, plan.form, (self.graph.step(relation),), steps, counted, best)
                    yield from self._aggregate(plan, form, np.maximum(own, rank), by)

    def _named(self, measures: Sequence[tuple[int, bool]]) -> list[tuple[int, bool]]:
        """Numbers that the question names: `sales by region` are summed up."""
        graph = self.graph
        return [one for one in measures if not one[1] and self.words.names(one[0]) and graph.dated[one[0]] < DATED]

    def _groupings(self, plan: Plan) -> list[int]:
        ways = self.graph.directed_relations(plan.nodes).tolist()
        if plan.last >= 0 and plan.chain < 0:  # `ships of lines` for each line are its ships
            ways = [one for one in ways if one != self.graph.inverse(plan.last)]
        timed = "year" in self.words.words
        counts = self.graph.end_counts[1]
        few = counts * 3 <= self.graph.triples * 2
        ways = [
            one
            for one in ways
            if not self.graph.is_measure(one)
            or (timed and self._is_year(one))
            or (
                few[one]
                and counts[one] <= FEW_GROUPS
                and self.words.names(one)
                and (not self.words.rank.any() or not self.words.grouped.isdisjoint(self.owner.label_roots[one]))
            )
        ]
        ways = [one for one in ways if not self._useless(one, plan) and (self.graph.to_entities(one) or few[one])]
        said, called = self.words.grouped, self.words.index.type_words

        def fits(one: int) -> float:
            end = self.graph.end_type(one)
            own = self.owner.label_roots[one] if one < self.graph.relations else frozenset[str]()
            told = not said.isdisjoint((*own, *(called(end) if end >= 0 else ())))
            return self._fits(one) + (end in self.wanted) + 2 * told

        return sorted(ways, key=lambda one: (-fits(one), one))[:3]

    def _is_year(self, relation: int) -> bool:
        """Whether a relation leads to years, by which things are grouped: `papers per year`."""
        return bool(self.graph.dated[relation] > DATED) and self.words.names(relation)

    def _aggregate(self, plan: Plan, form: Aggregate, words: Floats, by: int | None = None) -> Iterator[Plan]:
        result = self.graph.memory.aggregate(plan.nodes, form)
        if result.empty or len(result.rows) > MOST_ROWS:
            return
        cover, relations, likeness = np.maximum(plan.cover, words), plan.relations, plan.likeness
        if form.how == "count":
            cover = np.maximum(cover, self.words.count)
        if by is not None and (end := self.graph.end_type(by)) in self.words.types:
            cover = np.maximum(cover, self.words.types[end])
        for one in (*(self.graph.directed_relation(step) for step in form.path), *(() if by is None else (by,))):
            cover = np.maximum(cover, self.relation_cover[one])
            relations, likeness = (*relations, one), likeness + float(self.likeness[one])
        found = form.pick or (form.how in BESTS and not form.by)
        nodes = np.array(sorted(result.nodes), dtype=np.int64) if found else NONE
        yield self._plan(
            form, nodes, cover, relations=relations, slots=plan.slots, likeness=likeness, rho=plan.rho, cost=plan.cost,
            kind="best" if form.pick else "count", things=False, value=result.value, table=result.rows,
            ranked=plan.ranked, texts=plan.texts, away=plan.away,
        )  # fmt: skip

    def _shares(self, things: Sequence[Plan], words: Floats) -> Iterator[Plan]:
        parts = [plan for plan in things if plan.relations and not plan.ranked][:AGGREGATED]
        parts += self.classes if len(self.classes) > 1 else ()  # `what percent of the mountains are volcanoes`
        called = [one for one in things if one.form in self.kinds_called or (one.texts and len(one.relations) == 1
                                                                             and not one.slots)]  # fmt: skip
        for part in parts:
            wholes = [*self.classes, *self._implied(part.last), *called, *parts]
            for whole in (one for one in wholes if not set(one.slots) & set(part.slots) and one.form != part.form):
                within = int(among(whole.nodes, part.nodes).sum())
                made = share(len(whole.nodes), within)
                named = whole.form in {one.form for one in (*self.classes, *called)}
                if made.value is None or within == len(whole.nodes) or not (within or named):
                    continue
                joined = self._joined(Share(whole.form, part.form), whole.nodes, whole, part, "count")
                joined.nodes, joined.value, joined.cover = NONE, made.value, np.maximum(joined.cover, words)
                joined.score = self._score(joined)
                yield joined

    def _compare(self) -> Iterator[Plan]:
        graph = self.graph
        entities = [plan for plan in self.plans.values() if plan.chain == 0 and plan.slots and plan.things]
        for p, q in product(entities, entities):
            if p.slots[0] >= q.slots[0] or p.nodes[0] == q.nodes[0]:
                continue
            both = np.array(sorted((int(p.nodes[0]), int(q.nodes[0]))), dtype=np.int64)
            shared = np.intersect1d(graph.directed_relations(p.nodes), graph.directed_relations(q.nodes))
            for relation, counted in self._measures(Plan(p.form, both, p.cover)):
                if relation not in shared:
                    continue
                cover = np.maximum(np.maximum(p.cover, q.cover), self.relation_cover[relation])
                cover = np.maximum(np.maximum(cover, self.words.compare), self.words.rank)
                if self.words.aggregates["range"].any() or self.words.by_how_much:
                    yield from self._difference(p, q, relation, counted, both, cover)
                for best in BESTS:
                    form = Greater(p.form, q.form, (graph.step(relation),), best, counted)
                    nodes = graph.memory.nodes(form)
                    if not len(nodes):
                        continue
                    made = self._plan(
                        form, nodes, cover, relations=(relation,), slots=(*p.slots, *q.slots),
                        likeness=float(self.likeness[relation]), rho=p.rho * q.rho, kind="compare",
                    )  # fmt: skip
                    yield made
                    for one in (p, q):
                        holds = contains(int(one.nodes[0]), nodes)
                        yield self._plan(Holds(form, one.form), NONE, cover, relations=made.relations, slots=made.slots,
                                         likeness=made.likeness, rho=made.rho, kind="yes/no", value=holds)  # fmt: skip

    def _difference(
        self, p: Plan, q: Plan, relation: int, counted: bool, both: Ints, cover: Floats
    ) -> Iterator[Plan]:  # fmt: skip
        """The difference of a measure of two things; where the question says which of them has more, if that is so."""
        form = Aggregate("range", Or((p.form, q.form)), (self.graph.step(relation),), counted=counted)
        source, x = self.graph.values(both, relation, counted)
        if len(source) != 2 or len(np.unique(source)) < 2:
            return
        result = self.graph.memory.aggregate(both, form)
        name = entry_of(self.graph, relation % self.graph.relations).name
        said = self.words.ends_said.union(*(adjectives().get(word, {}).get(name, ()) for word in self.words.words))
        first = p if self._told_first(p, q) else q
        more = x[0 if first.nodes[0] == both[0] else 1] >= x.max()
        if self.words.by_how_much and len(said) == 1 and (said == {"max"}) != bool(more):
            return
        yield self._plan(
            form, NONE, np.maximum(cover, self.words.aggregates["range"]), relations=(relation,),
            slots=(*p.slots, *q.slots), likeness=float(self.likeness[relation]), rho=p.rho * q.rho, kind="compare",
            things=False, value=result.value,
        )  # fmt: skip

    def _told_first(self, p: Plan, q: Plan) -> bool:
        """Whether the first of two mentions is what has more; not where it stands directly behind *than*."""
        at = self.words.slots.get(p.slots[0], -1)
        return not (at > 0 and self.words.words[at - 1] == "than")

    def _judged(self) -> Iterator[Plan]:
        """Whether a named thing fulfils a condition on a number or date."""
        for plan in [one for one in self.plans.values() if one.chain == 0 and one.slots and one.things]:
            for form, nodes, relation in self._conditions(plan.nodes, plan, empty=True) if self.query.values else ():
                cover = np.maximum(np.maximum(plan.cover, self.relation_cover[relation]), self.words.values_in(form))
                cover = np.maximum(cover, self.words.compare)
                yield self._extended(
                    plan, Holds(form, plan.form), NONE, cover, relation, 0.0, "yes/no", bool(len(nodes))
                )

    def _holds(self, plan: Plan) -> Iterator[Plan]:
        if plan.away and not plan.texts:  # "does x not …?" is answered with yes and with no
            return
        for number, slot in enumerate(self.query.slots):
            if number in plan.slots:
                continue
            best = max(slot.entities[0][2], 1e-3)
            for entity, key, rho in slot.entities[:2]:
                if self.graph.memory.literal[entity]:
                    continue
                holds = contains(entity, plan.nodes)
                if not holds and plan.relations and not self._like(plan, entity):
                    continue
                cover, form = plan.cover.copy(), plan.form
                if number in self.words.slots:
                    cover[self.words.slots[number]] = 1.0
                if not holds and isinstance(form, Class) and (ties := self._ties(entity, form)):
                    form, holds = Or((form, *ties)), True
                made = self._extended(plan, Holds(form, Entity(key)), NONE, cover, kind="yes/no", value=holds)
                made.slots = (*plan.slots, number)
                made.rho *= rho / best
                made.missing = plan.missing
                made.score = self._score(made)
                yield made

    def _ties(self, entity: int, kind: Class) -> list[Form]:
        """How an entity is tied to a type that it does not have, as a country to its form of government."""
        memory, node = self.graph.memory, int(self.graph.type_ids[self.graph.type_of_key[kind.key]])
        relations = memory.relation[(memory.head == entity) & (memory.tail == node)]
        return [Join((self.graph.step(one),), Entity(kind.key)) for one in np.unique(relations).tolist()]

    def _like(self, plan: Plan, entity: int) -> bool:
        end = self.graph.end_type(plan.last) if plan.last >= 0 else -1
        if end < 0 or end in self.graph.types_of(entity):
            return True
        return self.graph.inverse(plan.last) in self.graph.directed_relations(np.array([entity])).tolist()

    def _made(self) -> list[Candidate]:
        order = sorted(self.plans.values(), key=lambda one: (-one.score, str(one.form) if one.score > 1 else ""))
        made = []
        for plan in order:
            if plan.chain == 0:
                continue
            kind = isinstance(plan.form, (Class, Count, Holds, Minus, Or, Share)) or plan.form in self.kinds_called
            if not (plan.relations or kind or (plan.texts and plan.things)):
                continue
            nodes, slots = plan.nodes if plan.is_set else None, tuple(dict.fromkeys(plan.slots))
            types = types_in_form(plan.form, nodes, self.query, self.graph)
            made.append(
                Candidate(
                    plan.form, KINDS.index(kind_of(plan.form)), nodes, plan.value, plan.relations, slots, types,
                    plan.rho, plan.score, plan.missing, table=plan.table,
                )
            )  # fmt: skip
            if len(made) >= MOST:
                break
        return made


def _head(form: Form) -> Form:
    """The set that a form takes its members from."""
    while isinstance(form, (And, Minus, Arg, Nth)):
        form = form.parts[0] if isinstance(form, And) else form.of
    return form


def _both(*forms: Form) -> And:
    """The intersection of forms, its parts in one order whichever was found first."""
    parts = {part for form in forms for part in (form.parts if isinstance(form, And) else (form,))}
    return And(tuple(sorted(parts, key=lambda one: (_ORDER.get(type(one), 1), str(one)))))


def _in_order(group: tuple[frozenset[int], frozenset[int], bool]) -> tuple[list[int], list[int]]:
    return sorted(group[0]), sorted(group[1])


def _at(nodes: Ints, places: Ints, x: Floats, best: str, n: int) -> Ints:
    if not len(places):
        return NONE
    signed = x if best == "max" else -x
    first = np.flatnonzero(np.diff(places, prepend=-1))
    own, members = np.maximum.reduceat(signed, first), nodes[places[first]]
    if n == 1:
        return members[own == own.max()]
    values = np.unique(own)
    return NONE if n > len(values) else members[own == values[-n]]
