"""A graph as the label parser sees it: what its relations and types are called, and what follows what.

A directed relation is the relation's id, plus `relations` where it is followed from tail to head.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from kgqa_core.kg.names import BLANK_NODE, in_words, is_blank_node, key_name, relation_name
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.text_numbers import units
from kgqa_core.kg.vocabulary import XSD
from kgqa_core.linking.words import FUNCTION_WORDS, usualness
from kgqa_core.logic.forms import Entity, Form, Join, Literal, Step, Steps
from kgqa_core.logic.measures import in_other_unit, measure
from kgqa_core.logic.memory import NONE, Ints, MemoryGraph, distinct, joined_ranges, once
from kgqa_core.question_limits import check_time

TYPE_KEYS = frozenset({"P31", "rdf:type", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"})
"""Relations that state types, which `Class` stands for in the other direction."""
MOST_ENDS = 60
"""Entities whose relations are looked up one by one; of more a sample."""
MOST_MEASURED = 10_000
"""Values of a relation whose units are looked at."""
PURE, LEAST_TYPED, NAMELESS = 0.85, 0.1, 0.9
"""Share of a relation's typed heads that must have a type for it to stand for them, and of its heads that are typed;
of the things of a type that must have no name for all to have none."""
ORDERED = 0.95
"""Share of the things with two dates that have one before the other, from which on it is a beginning."""
YEARS = 1000, 2100
"""Numbers that may be years, where a relation leads to such alone."""
YES, NO = ("true", "1", "yes"), ("false", "0", "no")
"""What is true, and what is not, in small letters."""
LONGEST_TEXT, MOST_WORDS, MOST_TEXTS, MOST_VALUES = 24, 3, 2_000_000, 100_000
"""Characters and words of a text by which things can be asked for; how many such texts are held, and values."""
MOST_LONG_TEXTS = 20_000
"""Longer texts whose words are held."""
PROFESSIONS = frozenset(("profession", "occupation", "job", "job title"))
"""Labels of relations to what persons are by trade."""
BOTH_ENDS = 0.2
"""Share of the things at one end of a relation that are at the other one too, above which it is between things of one
kind."""
MOST_CATEGORIES, MOST_TRADES = 64, 500
"""Entities at most that a relation leads to which are the categories of something."""
LONGEST_TYPE, MOST_HEADED = 5, 100
"""Words of the label of a type that questions name; types of a graph in which the noun of a label tells its type."""
WORD = re.compile(r"[^\W_]+")
"""A word of a question or a label."""
_LETTERS = re.compile(r"[^\W\d_]+(?:[ '’-][^\W\d_]+)*")
"""A name of letters alone."""
_SHORT_CODE = re.compile(r"([a-z]{1,4})[-_ .]?\d+")
"""A code that begins as what it stands for."""
_SEPARATORS = re.compile(r"[_\-./:#]+")
_ABBREVIATED = {"dob": "date of birth", "dod": "date of death"} | dict(
    pair.split("=")
    for pair in (
        "dept=department mgr=manager emp=employee qty=quantity amt=amount addr=address cust=customer lng=longitude "
        "desc=description prod=product tel=telephone mfr=manufacturer yr=year wt=weight ht=height lang=language "
        "lat=latitude lon=longitude pop=population cat=category acct=account org=organization mgmt=management "
        "dist=distance dur=duration temp=temperature supp=supplier proj=project"
    ).split()
)
"""Abbreviations of column names."""
MEMORIZED = 64 << 20
"""Bytes of keys and values that a `Memo` holds."""
Value = TypeVar("Value", Ints, tuple[Ints, NDArray[np.float64]])


class Memo(Generic[Value]):
    """What was computed of sets of nodes, for the same sets come again and again; emptied when it is full."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes | int, ...], Value] = {}
        self._bytes = 0

    def get(self, key: tuple[bytes | int, ...]) -> Value | None:
        """The value of a key, None where it is not known."""
        return self._known.get(key)

    def put(self, key: tuple[bytes | int, ...], value: Value) -> Value:
        """Holds a value, and returns it."""
        parts = value if isinstance(value, tuple) else (value,)
        size = sum(len(part) for part in key if isinstance(part, bytes)) + sum(own.nbytes for own in parts)
        if self._bytes + size > MEMORIZED:
            self._known, self._bytes = {}, 0
        self._bytes += size
        self._known[key] = value
        return value


class PathGraph(MemoryGraph):
    """Runs forms as candidates mean them: a path of two or more relations leaves out where it starts."""

    def __init__(self, memory: MemoryGraph) -> None:
        self.__dict__.update(memory.__dict__)

    def nodes(self, form: Form) -> Ints:
        """Ids of what a form of sets denotes, ascending."""
        check_time()
        if not isinstance(form, Join) or not isinstance(form.of, (Entity, Literal)):
            return super().nodes(form)
        start = nodes = super().nodes(form.of)
        for index, step in enumerate(reversed(form.path)):
            nodes = self.back(nodes, (step,))
            nodes = np.setdiff1d(nodes, start, assume_unique=True) if index else nodes
        return nodes


class LabelGraph:
    """Names, types and neighbourhoods of one open graph, held in memory.

    memory: the graph's triples, which also runs forms; answering: runs them as candidates mean them.  labels
    [relations]: words of each relation.  type_ids, type_labels: types with entities, by index.  head_type, tail_type
    [relations]: index of the type that most heads (or tails) have, -1 where none has one.  measured [relations]: share
    of tails that are numbers or dates; dated: share that are dates; entity_tails: share that are entities.  triples
    [relations].
    """

    def __init__(self, store: KgStore, memory: MemoryGraph | None = None) -> None:
        self.store = store
        self.memory = memory or MemoryGraph(store)
        self.answering = PathGraph(self.memory)
        memory = self.memory
        self.relations = memory.relations
        self.keys = [""] * self.relations
        for key, number in memory.relation_ids.items():
            self.keys[number] = key
        names = dict(zip(store.relation_keys(), store.relation_names(), strict=True))
        self.labels = [spelt_out(words_of(names.get(key, key))) for key in self.keys]
        self.triples = np.bincount(memory.relation, minlength=self.relations)
        self._relations_of_nodes: dict[int, NDArray[np.int64]] = {}
        self._relations_of_sets = Memo[Ints]()
        self._known_values = Memo[tuple[Ints, NDArray[np.float64]]]()
        self._datatypes: dict[int, str] = {}
        self._units: dict[int, tuple[set[str], list[str | None]]] = {}
        self._text_keys: dict[int, str] = {}
        self._heads_of: dict[int, Ints] = {}
        self._tails_of: dict[int, Ints] = {}
        self._nameless: dict[int, bool] = {}
        self._symmetric: dict[int, bool] = {}
        self._precedes: dict[tuple[int, int], bool] = {}
        self._read_types()
        self._read_ends()

    def _read_types(self) -> None:
        run = self.store.connection.execute
        rows = run("SELECT entity, type FROM types ORDER BY entity, type").fetchnumpy()
        entities, types = (np.asarray(rows[name], dtype=np.int64) for name in ("entity", "type"))
        over = run("SELECT type, super FROM supertypes").fetchall()
        self.type_ids = np.unique(np.concatenate([types, np.array([s for _, s in over], dtype=np.int64)]))
        index = {int(t): n for n, t in enumerate(self.type_ids)}
        self.supers: dict[int, set[int]] = {}
        for one, above in over:
            if one in index:
                self.supers.setdefault(index[one], set()).add(index[above])
        keys = self.store.entity_keys(self.type_ids.tolist())
        called = self.store.names(self.type_ids.tolist())
        self.type_keys = [keys[int(t)] for t in self.type_ids]
        self.type_labels = [words_of(called.get(int(t), keys[int(t)])).lower() for t in self.type_ids]
        self.type_key_words = [words_of(key_name(key)).lower() for key in self.type_keys]
        self.type_of_key = {key: n for n, key in enumerate(self.type_keys)}
        self._type_rows = np.searchsorted(entities, np.arange(self.memory.entities + 1))
        self._types = np.searchsorted(self.type_ids, types)
        self.type_sizes = np.bincount(self._types, minlength=len(self.type_ids))

    def _read_ends(self) -> None:
        memory = self.memory
        self.head_type, self.head_share = self._most_common(memory.head)
        self.tail_type, _ = self._most_common(memory.tail)
        count = np.maximum(self.triples, 1)

        def share(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
            return np.bincount(memory.relation[mask[memory.tail]], minlength=self.relations) / count

        number = memory.dim >= 0
        dated = memory.is_date(np.arange(len(memory.dim)))
        self.measured, self.dated, self.entity_tails = share(number), share(dated), share(~memory.literal)
        self.is_type = np.array([key in TYPE_KEYS for key in self.keys])

    def _most_common(self, end: Ints) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The type that most of these ends of each relation have (-1: none), and its share of those that have any."""
        counts = self._type_rows[end + 1] - self._type_rows[end]
        relation = np.repeat(self.memory.relation, counts)
        types = self._types[joined_ranges(self._type_rows[end], counts)]
        size = max(len(self.type_ids), 1)
        pairs, numbers = np.unique(relation * size + types, return_counts=True)
        order = np.lexsort((pairs, numbers))
        results = np.full(self.relations, -1, dtype=np.int64)
        results[pairs[order] // size] = pairs[order] % size
        most = np.zeros(self.relations)
        most[pairs[order] // size] = numbers[order]
        typed = np.bincount(
            self.memory.relation[self._type_rows[end + 1] > self._type_rows[end]], minlength=self.relations
        )
        return results, np.where(typed >= LEAST_TYPED * self.triples, most / np.maximum(typed, 1), 0.0)

    # -- types -------------------------------------------------------------------------------------------------

    def typed(self, nodes: Ints) -> NDArray[np.bool_]:
        """Whether each node has a type."""
        return self._type_rows[nodes + 1] > self._type_rows[nodes]

    def members(self, type_index: int) -> Ints:
        """Entities of a type or of one below it, ascending."""
        return self.memory.members(self.type_keys[type_index])

    def types_of(self, entity: int) -> list[int]:
        """Places of the types of an entity and of those above them, ascending."""
        results = set(self._types[self._type_rows[entity] : self._type_rows[entity + 1]].tolist())
        todo = list(results)
        while todo:
            for above in self.supers.get(todo.pop(), ()):
                if above not in results:
                    results.add(above)
                    todo.append(above)
        return sorted(results)

    @cached_property
    def _of_type(self) -> tuple[dict[int, NDArray[np.int64]], dict[int, NDArray[np.int64]]]:
        """Directed relations that entities of a type have, by its index: out of them, and into them."""
        memory, size = self.memory, max(len(self.type_ids), 1)
        results = []
        for end, shift in ((memory.head, 0), (memory.tail, self.relations)):
            counts = self._type_rows[end + 1] - self._type_rows[end]
            types = self._types[joined_ranges(self._type_rows[end], counts)]
            pairs = np.unique(np.repeat(memory.relation + shift, counts) * size + types)
            by_type: dict[int, NDArray[np.int64]] = {}
            order = np.argsort(pairs % size, kind="stable")
            own, relations = pairs[order] % size, pairs[order] // size
            for first, last in pairwise([*np.flatnonzero(np.diff(own, prepend=-1)).tolist(), len(own)]):
                by_type[int(own[first])] = relations[first:last]
            results.append(by_type)
        return results[0], results[1]

    def relations_of_types(self, types: list[int]) -> NDArray[np.int64]:
        """Directed relations that entities of any of these types have."""
        parts = [own[one] for own in self._of_type for one in types if one in own]
        return once(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)

    @cached_property
    def label_words(self) -> frozenset[str]:
        """Words of the labels of relations and types, in lower case."""
        labels = [*self.labels, *self.type_labels]
        return frozenset(word for label in labels for word in WORD.findall(label.lower()))

    @cached_property
    def types_by_words(self) -> dict[str, list[int]]:
        """Indices of the types whose labels are not too long, by their words, the largest types first.

        Words of a key stand for its type where no label has them: its label may be in another language.
        """
        order = sorted(range(len(self.type_labels)), key=lambda n: (-int(self.type_sizes[n]), n))
        labelled, keyed = (self._by_words(order, texts) for texts in (self.type_labels, self.type_key_words))
        return keyed | labelled

    @cached_property
    def types_by_head(self) -> dict[str, int]:
        """The type whose label of several words ends so, as *call* of *port call*, where it is the only one and nothing
        else is called so; none in a graph of many types."""
        if len(self.type_labels) > MOST_HEADED:
            return {}
        ends = [(label.rpartition(" ")[2], n) for n, label in enumerate(self.type_labels)
                if " " in label and FUNCTION_WORDS.isdisjoint(label.split())]  # fmt: skip
        heads = Counter(head for head, _ in ends)
        other = {*self.types_by_words, *(word for label in self.labels for word in label.lower().split())}
        return {head: index for head, index in ends if heads[head] == 1 and head not in other}

    def _by_words(self, order: Sequence[int], texts: Sequence[str]) -> dict[str, list[int]]:
        """Places of texts, in an order, by the words of those that are not too long."""
        results: dict[str, list[int]] = {}
        for index in order:
            words = WORD.findall(texts[index])
            if words and len(words) <= LONGEST_TYPE:
                results.setdefault(" ".join(words), []).append(index)
        return results

    # -- directed relations ------------------------------------------------------------------------------------------

    def directed_relations(self, nodes: Ints, end_type: int = -1) -> NDArray[np.int64]:
        """Directed relations out of any of some nodes, ascending.

        Of more than `MOST_ENDS` nodes those that a sample has, and those of entities of `end_type`, where it is given.
        """
        check_time()
        if len(nodes) == 1:
            return self._relations_of(int(nodes[0]))
        if len(nodes) <= MOST_ENDS:
            end_type = -1
        key = (nodes.tobytes(), end_type)
        results = self._relations_of_sets.get(key)
        if results is None:
            results = self._relations_of_sets.put(key, self._relations_of_set(nodes, end_type))
        return results

    def _relations_of_set(self, nodes: Ints, end_type: int) -> NDArray[np.int64]:
        if len(nodes) > MOST_ENDS:
            some = self.directed_relations(_some(nodes))
            return np.union1d(some, self.relations_of_types([end_type])) if end_type >= 0 else some
        return once(np.concatenate([self._relations_of(node) for node in nodes.tolist()] or [NONE]))

    def _relations_of(self, node: int) -> NDArray[np.int64]:
        if node not in self._relations_of_nodes:
            leaving, reaching = self.memory.around(node)
            self._relations_of_nodes[node] = np.concatenate((leaving, reaching + self.relations))
        return self._relations_of_nodes[node]

    def values(self, nodes: Ints, directed: int, counted: bool) -> tuple[Ints, NDArray[np.float64]]:
        """(index in `nodes`, value) of what a relation measures of them, or how many it leads each to; ascending."""
        key = (nodes.tobytes(), directed, counted)
        results = self._known_values.get(key)
        return results if results is not None else self._known_values.put(key, self._values(nodes, directed, counted))

    def _values(self, nodes: Ints, directed: int, counted: bool) -> tuple[Ints, NDArray[np.float64]]:
        memory = self.memory
        source, reached = memory.hop(nodes, directed % self.relations, backward=directed >= self.relations)
        if counted:
            counts = np.bincount(source, minlength=len(nodes))
            some = np.flatnonzero(counts)
            return some, counts[some].astype(np.float64)
        dim = memory.dim[reached]
        known = dim >= 0
        if not known.any():
            return NONE, np.zeros(0)
        own = dim[known].astype(np.int64)
        chosen = known
        if own.min() < own.max():
            pairs = once(own * len(nodes) + source[known])  # a member counts once
            chosen = dim == np.bincount(pairs // len(nodes)).argmax()
        return source[chosen], memory.x[reached[chosen]]

    def follow(self, nodes: Ints, directed: int) -> Ints:
        """What a directed relation leads to from any of some nodes, ascending."""
        check_time()
        if len(nodes) == 1:
            return self._follow_one(int(nodes[0]), directed)
        reached = self.memory.hop(nodes, directed % self.relations, backward=directed >= self.relations)[1]
        return distinct(reached, self.memory.entities)

    def _follow_one(self, node: int, directed: int) -> Ints:
        memory = self.memory
        key = node * self.relations + directed % self.relations
        if directed >= self.relations:
            low, high = np.searchsorted(memory._backward, (key, key + 1))
            reached = memory.head[memory._back[low:high]]
        else:
            low, high = np.searchsorted(memory._forward, (key, key + 1))
            reached = memory.tail[low:high]
        if len(reached) > 1 and not (increases := reached[1:] > reached[:-1]).all():
            return reached[np.concatenate(([True], increases))]
        return reached

    def inverse(self, directed: int) -> int:
        """The same relation in the other direction."""
        return directed + self.relations if directed < self.relations else directed - self.relations

    def step(self, directed: int) -> Step:
        """A directed relation as a step of a path."""
        return Step(self.keys[directed % self.relations], directed >= self.relations)

    def directed_relation(self, step: Step) -> int:
        """The directed relation of a step.  Raises KeyError for one that the graph does not have."""
        return self.memory.relation_ids[step.relation] + (self.relations if step.inverse else 0)

    def join(self, relations: tuple[int, ...], of: Form) -> Form:
        """What directed relations, one after the other, lead to from `of`."""
        steps: Steps = tuple(self.step(self.inverse(directed)) for directed in reversed(relations))
        return Join(steps, of) if steps else of

    def named(self, node: int, key: str) -> Form:
        """An entity, or a literal, as a form."""
        if not self.memory.literal[node]:
            return Entity(key)
        return Literal(key, self._datatypes.get(node, XSD + "string"))

    def nodes_of(self, node: int, key: str) -> Ints:
        """What `named` denotes, ascending: an entity alone, of a text all literals that have it."""
        return (
            self.memory.nodes(self.named(node, key)) if self.memory.literal[node] else np.array([node], dtype=np.int64)
        )

    def noun(self, relation: int) -> str:
        """What the heads of a relation are called: their type, where nearly all have it."""
        index = int(self.head_type[relation])
        return self.type_labels[index] if index >= 0 and self.head_share[relation] > PURE else ""

    def noun_above(self, relation: int) -> str:
        """The smallest type above the most common one of a relation's heads that nearly all of them are of."""
        heads, above = self.heads_of(relation), self.supers.get(int(self.head_type[relation]), set())
        heads = heads[self.typed(heads)]
        for index in sorted(above, key=lambda one: (len(self.members(one)), one)):
            if np.isin(heads, self.members(index), assume_unique=True).mean() > PURE:
                return self.type_labels[index]
        return ""

    @cached_property
    def texts(self) -> dict[str, tuple[int, ...]]:
        """Short literals that are texts, in lower case, by which things can be asked for: codes, numbers, names."""
        rows = self.store.connection.execute(
            "SELECT id, key, datatype FROM entities WHERE kind = 'literal' AND number IS NULL AND time IS NULL "
            f"AND length(key) BETWEEN 2 AND {LONGEST_TEXT} ORDER BY id LIMIT {MOST_TEXTS}"
        ).fetchall()
        results: dict[str, tuple[int, ...]] = {}
        for node, key, datatype in rows:
            self._datatypes[node] = datatype
            self._text_keys[node] = key
            results[key.lower()] = (*results.get(key.lower(), ()), node)
        return results

    @cached_property
    def long_texts(self) -> dict[int, str]:
        """Literals that are longer texts, such as descriptions, by their nodes; none of a graph that has many."""
        rows = self.store.connection.execute(
            "SELECT id, key, datatype FROM entities WHERE kind = 'literal' AND number IS NULL AND time IS NULL "
            f"AND (length(key) > {LONGEST_TEXT} OR len(string_split(key, ' ')) > {MOST_WORDS}) "
            f"ORDER BY id LIMIT {MOST_LONG_TEXTS + 1}"
        ).fetchall()
        rows = rows if len(rows) <= MOST_LONG_TEXTS else []
        self._datatypes |= {node: datatype for node, _, datatype in rows}
        return {node: key for node, key, _ in rows}

    @cached_property
    def alike(self) -> NDArray[np.bool_]:
        """Whether each relation is between things of a kind [relations].

        Where a type is not known, those are of a kind where more than `BOTH_ENDS` of the things at the rarer end are
        at the other one too: names that two things share are at both ends of a few.
        """
        alike: NDArray[np.bool_] = self.head_type == self.tail_type
        for relation in np.flatnonzero(np.minimum(self.head_type, self.tail_type) < 0).tolist():
            heads, tails = self.heads_of(relation), self.tails_of(relation)
            both = len(np.intersect1d(heads, tails, assume_unique=True))
            alike[relation] = both > BOTH_ENDS * min(len(heads), len(tails))
        return alike

    def is_symmetric(self, relation: int) -> bool:
        """Whether more than half of the statements of a relation between entities also hold the other way round."""
        if relation not in self._symmetric:
            memory, own = self.memory, self.memory.relation == relation
            heads, tails = memory.head[own].astype(np.int64), memory.tail[own].astype(np.int64)
            both = np.isin(heads * memory.entities + tails, tails * memory.entities + heads) & (heads != tails)
            self._symmetric[relation] = bool(both.sum() * 2 > len(both))
        return self._symmetric[relation]

    @cached_property
    def name_words(self) -> list[frozenset[str]]:
        """Of each directed relation the usual words that are in most names of the things without a type that it leads
        to [2 * relations]: *battle* of `First Battle of Kern` and `Battle of the Reeds`."""
        some = [self._untyped_ends(directed) for directed in range(2 * self.relations)]
        names = self.store.names(sorted({node for nodes in some for node in nodes}))
        words = {node: frozenset(WORD.findall(name.lower())) for node, name in names.items()}
        return [_usual_words([words[node] for node in nodes]) for nodes in some]

    def _untyped_ends(self, directed: int) -> list[int]:
        """Some of the things that a directed relation leads to; none where these have a type or are values."""
        if self.end_type(directed) >= 0 or not self.to_entities(directed):
            return []
        end = self.reached_by(directed)
        return _some(end).tolist()

    @cached_property
    def values_by_name(self) -> dict[str, tuple[int, ...]]:
        """Entities without a type, by names in small letters: cells of a table, genres; also others, where a relation
        leads to a few of which nothing is said, such as the rarity of a card."""
        results: dict[str, tuple[int, ...]] = {}
        for node, name in self._values_named.items():
            results[name.lower()] = (*results.get(name.lower(), ()), node)
        return results

    @cached_property
    def _values_named(self) -> dict[int, str]:
        """The entities of `values_by_name`, ascending, with their names."""
        memory = self.memory
        plain = np.setdiff1d(memory.tail[~memory.literal[memory.tail]], self.type_ids)
        plain = plain[~self.typed(plain)]
        named = sorted(self.store.names(plain.tolist()).items()) if len(plain) <= MOST_VALUES else ()
        return {
            node: name
            for node, name in named
            if len(name) <= LONGEST_TEXT and _LETTERS.fullmatch(name) and node not in self.truths
            and (name.islower() or node in self.categories)
        }  # fmt: skip

    @cached_property
    def categories(self) -> frozenset[int]:
        """What relations lead to that have few different tails, of which nothing is said, and what persons are by
        trade."""
        few = (self.end_counts[1] <= MOST_CATEGORIES) & (self.end_counts[1] * 2 <= self.triples + 1)
        trades = np.array([label in PROFESSIONS for label in self.labels], dtype=np.bool_)
        few |= trades & (self.end_counts[1] <= MOST_TRADES)
        return frozenset(np.setdiff1d(self.memory.tail[few[self.memory.relation]], self.memory.head).tolist())

    @cached_property
    def value_nodes(self) -> frozenset[int]:
        """The entities of `values_by_name` whose names are words in small letters."""
        return frozenset(node for node, name in self._values_named.items() if name.islower())

    @cached_property
    def value_names(self) -> dict[str, str]:
        """The names of `values_by_name` by the keys of their entities."""
        keys = self.store.entity_keys(list(self._values_named))
        return {keys[node]: name.lower() for node, name in self._values_named.items()}

    @cached_property
    def to_truths(self) -> NDArray[np.bool_]:
        """Whether each relation leads to true and false alone [relations]."""
        known = np.isin(self.memory.tail, np.array(sorted(self.truths), dtype=np.int64))
        held = np.bincount(self.memory.relation[known], minlength=self.relations)
        return (held == self.triples) & (held > 0)

    @cached_property
    def truths(self) -> dict[int, bool]:
        """What is true or false: booleans, and *yes* and *no* where relations lead to nothing else."""
        booleans = self.store.connection.execute(
            "SELECT id, key FROM entities WHERE kind = 'literal' AND datatype = $1", [f"{XSD}boolean"]
        ).fetchall()
        self._datatypes |= {node: f"{XSD}boolean" for node, _ in booleans}
        words = [form(word) for word in (*YES, *NO) if word.isalpha() for form in (str.lower, str.capitalize)]
        answers = {node: name.lower() in YES for name, nodes in self.store.resolve(words).items() for node in nodes}
        memory, known = self.memory, np.array(sorted(answers), dtype=np.int64)
        to_answers = np.isin(memory.tail, known)
        other = np.union1d(memory.relation[~to_answers], memory.relation[np.isin(memory.head, known)])
        alone = set(memory.tail[to_answers & ~np.isin(memory.relation, other)].tolist())
        alone -= set(memory.tail[to_answers & np.isin(memory.relation, other)].tolist())
        found = {node: key.lower() in YES for node, key in booleans}
        return found | {node: answers[node] for node in alone}

    def text_of(self, node: int) -> str:
        """A short literal as the graph has it."""
        return self._text_keys[node]

    def to_entities(self, directed: int) -> bool:
        """Whether a directed relation leads to entities."""
        return directed >= self.relations or bool(self.entity_tails[directed] > 0.5)

    def neighbours(self, node: int) -> list[int]:
        """Entities that a node has a relation to, or that have one to it, at most `MOST_ENDS` of each."""
        memory = self.memory
        ends = (memory.tail[memory.head == node], memory.head[memory.tail == node])
        return [one for end in ends for one in end[~memory.literal[end]][:MOST_ENDS].tolist()]

    def in_unit(self, literal: Literal, directed: int) -> Literal | None:
        """A number or date as what a relation leads to has it: of one without a unit in the only one of these, for one
        without units in that of its label; None where they cannot be compared.
        """
        memory, own = self.memory, measure(literal)
        if directed not in self._units:
            tails = memory.tail[memory.relation == directed][:MOST_MEASURED]
            rows = self.store.connection.execute(
                "SELECT DISTINCT unit FROM entities WHERE number IS NOT NULL AND id IN (SELECT unnest($1::INTEGER[]))",
                [tails.tolist()],
            ).fetchall()
            dims = np.unique(memory.dim[tails])
            self._units[directed] = {memory.dimensions[dim] for dim in dims[dims >= 0]}, [unit for (unit,) in rows]
        dimensions, units = self._units[directed]
        if own is None or own.dim in dimensions:
            return literal
        if "" in dimensions and literal.unit and (unit := self.label_units[directed % self.relations]):
            return in_other_unit(literal, unit)
        return replace(literal, unit=units[0]) if own.dim == "" and len(units) == 1 and units[0] else None

    @cached_property
    def label_units(self) -> list[tuple[str, float] | None]:
        """Of each relation the unit that its label ends with, as *height in cm* and *duration min*: key and factor."""
        ends = [WORD.findall(label.lower())[-1:] for label in self.labels]
        found = [units().get(end[0]) if end else None for end in ends]
        return [unit and (unit[1], unit[2]) for unit in found]

    def leads_to_years(self, relation: int) -> bool:
        """Whether a relation leads to whole numbers alone that may be years, early ones by a label as *found in*."""
        memory, tails, words = self.memory, self.tails_of(relation), self.labels[relation].lower().split()
        x, first = memory.x[tails], 1 if "year" in words or words[-1:] in (["in"], ["since"], ["until"]) else YEARS[0]
        year = (memory.dim[tails] >= 0) & (x == np.round(x)) & (x >= first) & (x <= YEARS[1])
        return len(tails) > 0 and bool(year.all())

    @cached_property
    def fan_out(self) -> NDArray[np.float64]:
        """Mean number of things that each directed relation leads to from a thing that has it [2 * relations]."""
        return np.concatenate([self.triples / np.maximum(counts, 1) for counts in self.end_counts])

    @cached_property
    def end_counts(self) -> Ints:
        """How many different heads, and different tails, each relation has [2, relations]."""
        ends = (self.memory.head, self.memory.tail)
        return np.stack([np.bincount(self._ends(end)[0], minlength=self.relations) for end in ends])

    @cached_property
    def to_blank(self) -> NDArray[np.bool_]:
        """Whether all that each relation leads to are blank nodes: what holds the parts of an address."""
        rows = self.store.connection.execute(
            "SELECT id FROM entities WHERE regexp_matches(key, ?)", [BLANK_NODE]
        ).fetchnumpy()
        blank = np.zeros(self.memory.entities, dtype=np.bool_)
        blank[np.asarray(rows["id"], dtype=np.int64)] = True
        held = np.bincount(self.memory.relation[blank[self.memory.tail]], minlength=self.relations)
        return (held == self.triples) & (held > 0)

    @cached_property
    def to_records(self) -> frozenset[int]:
        """Relations that lead to records without names, or to blank nodes."""
        ways = range(self.relations)
        return frozenset(one for one in ways if self.to_blank[one] or self.is_nameless(self.end_type(one)))

    def is_nameless(self, type_index: int) -> bool:
        """Whether things of a type have no names but its label and a code, as *visit V106* or a blank node: records of
        what other things have to do with each other."""
        if type_index < 0:
            return False
        if type_index not in self._nameless:
            members = self.members(type_index)
            some = _some(members).tolist()
            keys, names = self.store.entity_keys(some), self.store.names(some)
            own = {form for word in WORD.findall(self.type_labels[type_index]) for form in (word, f"{word}s")}
            coded = sum(is_blank_node(keys[node]) or _is_code(names[node], own) for node in some)
            self._nameless[type_index] = len(some) > 1 and coded >= NAMELESS * len(some)
        return self._nameless[type_index]

    def heads_of(self, relation: int) -> Ints:
        """What a relation tells something of, each once, ascending."""
        if relation not in self._heads_of:
            self._heads_of[relation] = once(self.memory.head[self.memory.relation == relation])
        return self._heads_of[relation]

    def tails_of(self, relation: int) -> Ints:
        """What a relation leads to, each once, ascending."""
        if relation not in self._tails_of:
            self._tails_of[relation] = once(self.memory.tail[self.memory.relation == relation])
        return self._tails_of[relation]

    def reached_by(self, directed: int) -> Ints:
        """What a directed relation leads to, each once, ascending."""
        return self.tails_of(directed) if directed < self.relations else self.heads_of(directed - self.relations)

    def heads(self) -> list[Ints]:
        """The heads of each relation, each once, ascending."""
        relations, nodes = self._ends(self.memory.head)
        return np.split(nodes, np.searchsorted(relations, np.arange(1, self.relations)))[: self.relations]

    def _ends(self, end: Ints) -> tuple[Ints, Ints]:
        """(relation, node) of each pair of a relation and what stands at this end of it, each once, ascending."""
        size = self.memory.entities
        pairs = np.unique(self.memory.relation.astype(np.int64) * size + end)
        return pairs // size, pairs % size

    def precedes(self, begin: int, end: int) -> bool:
        """Whether of what has both dates nearly all have one before the other, and some not on one day."""
        if (begin, end) not in self._precedes:
            (heads, lo), (others, hi) = (self.values(self.heads_of(one), one, False) for one in (begin, end))
            both = np.intersect1d(self.heads_of(begin)[heads], self.heads_of(end)[others])
            first, last = (
                own[np.searchsorted(self.heads_of(one)[places], both)]
                for one, places, own in ((begin, heads, lo), (end, others, hi))
            )
            ordered = len(both) > 0 and (first <= last).mean() >= ORDERED
            self._precedes[begin, end] = bool(ordered and (first < last).any())
        return self._precedes[begin, end]

    def is_measure(self, directed: int) -> bool:
        """Whether a directed relation leads to numbers or dates."""
        return directed < self.relations and bool(self.measured[directed] > 0.5)

    def end_type(self, directed: int) -> int:
        """Index of the type of most of what a directed relation leads to, -1 where there is none."""
        return int(
            self.head_type[directed - self.relations] if directed >= self.relations else self.tail_type[directed]
        )


def is_long(text: str) -> bool:
    """Whether a text is longer than what things are asked for by whole, such as a description."""
    return len(text) > LONGEST_TEXT or len(text.split(" ")) > MOST_WORDS


def _some(nodes: Ints) -> Ints:
    """`MOST_ENDS` of some nodes at most, evenly apart."""
    return nodes[np.linspace(0, len(nodes) - 1, min(len(nodes), MOST_ENDS)).astype(np.int64)]


def _is_code(name: str, words: set[str]) -> bool:
    """Whether a name is some of the words of a type and a number or code: `visit V106`, `planting-04`, or `F01` of
    a feeding."""
    first, _, rest = name.lower().partition(" ")
    if first in words and _SHORT_CODE.fullmatch(rest):
        return True  # `order SO-1001`
    if short := _SHORT_CODE.fullmatch(name.lower()):
        return any(word.startswith(short[1]) for word in words)
    tokens = WORD.findall(in_words(name).lower())
    plain = {token for token in tokens if not any(map(str.isdigit, token))}
    return bool(plain) and len(plain) < len(tokens) and plain <= words


def _usual_words(names: Sequence[frozenset[str]]) -> frozenset[str]:
    """The usual words that are in more than half of some names, and in two of them."""
    counts = Counter(word for words in names for word in words)
    most = [word for word, count in counts.items() if count > max(len(names) / 2, 1) and usualness(word)]
    return frozenset(word for word in most if word.isalpha() and word not in FUNCTION_WORDS)


def spelt_out(label: str) -> str:
    """A label with usual abbreviations of column names as the words that they stand for; of one word others too.

    >>> spelt_out("dept"), spelt_out("cust addr"), spelt_out("no")
    ('department', 'customer address', 'no')
    """
    return " ".join(_ABBREVIATED.get(word, word) for word in label.split(" "))


def words_of(label: str) -> str:
    """A label or key in words: separators and capitals inside words part them; of an IRI its last part.

    >>> words_of("starred_actors"), words_of("birthPlace"), words_of("directed by")
    ('starred actors', 'birth place', 'directed by')
    """
    if "://" in label or label.startswith("urn:"):
        label = relation_name(label)
    if " " in label.strip():
        return " ".join(label.replace("_", " ").split())
    return " ".join(in_words(word) for word in _SEPARATORS.sub(" ", label).split()) or label
