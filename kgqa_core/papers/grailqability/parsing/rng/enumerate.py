"""Candidate forms of a question, from the entities found in it (Ye et al. 2022, section 3.1): made, never run.

They are what the form search finds over the summary of the graph (`slot_search`).  A topic may be all things of its
types, so that forms whose facts are missing are candidates too; one without types all that have a relation of its.
Forms have slots, and topics that start alike share a pool.  What is over the cap is cut from the end, and counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgqa_core.config import RngOptions
from kgqa_core.datasets.derived.form_values import datatypes
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import Form, Literal
from kgqa_core.logic.measures import TIME as TIME_DIMENSION
from kgqa_core.logic.memory import NONE, Ints, MemoryGraph
from kgqa_core.logic.normalise import normalise
from kgqa_core.papers.grailqability.parsing.rng.retrieved_items import RetrievedItems
from kgqa_core.papers.grailqability.parsing.rng.slot_search import SlotSearch
from kgqa_core.papers.grailqability.parsing.rng.slots import NUMBER, STRING, TIME, VALUE, View
from kgqa_core.papers.grailqability.parsing.word_overlap import RelationLikeness
from kgqa_core.papers.grailqability.parsing.words import key_words, stems
from kgqa_core.search.search import FormSearch
from kgqa_core.search.summary import SummaryGraph

NO_FORM = 0
"""Number of the candidate that stands for "the graph has no form"."""
FACTS = 0.4
"""Likeness that a relation has because the graph has it from the topic; half of it from what is beside that."""

Named = frozenset[int]
"""Types that a question names."""


@dataclass
class Forms:
    """Every form with slots that was met, normalised and numbered; `None`, which is first, stands for "no form"."""

    forms: list[Form | None] = field(default_factory=lambda: [None])
    numbers: dict[Form, int] = field(default_factory=dict)

    def number(self, form: Form) -> int:
        """The number of a form; a new form gets the next one."""
        if form not in self.numbers:
            normal = normalise(form)
            if normal not in self.numbers:
                self.numbers[normal] = len(self.forms)
                self.forms.append(normal)
            self.numbers[form] = self.numbers[normal]
        return self.numbers[form]


@dataclass(frozen=True)
class Pool:
    """Numbers of candidate forms in their order, and how many more were cut."""

    numbers: NDArray[np.int64]
    cut: int = 0


class Enumerator:
    """Makes candidate forms over one graph.

    types: whether forms with conditions on types are candidates.  datatypes: of the numbers of each relation.
    labels: words of the graph's types and relations, by key.
    retrieved: what a retriever finds a question to speak of, where there is one.
    """

    retrieved: RetrievedItems | None = None

    def __init__(self, store: KgStore, graph: MemoryGraph, options: RngOptions, *, types: bool = False) -> None:
        self.store, self.graph, self.options, self.types = store, graph, options, types
        self.forms = Forms()
        self.summary = SummaryGraph(store, graph, types=types)
        self.search = FormSearch(self.summary, options.hops)
        self.datatypes = datatypes(store)
        names = store.names(self.summary.type_ids.tolist())
        pairs = zip(self.summary.type_ids.tolist(), self.summary.type_keys, strict=True)
        self.class_words = {key: key_words(names.get(number, key)) for number, key in pairs}
        self.labels = self.class_words | dict(zip(store.relation_keys(), store.relation_names(), strict=True))
        self.likeness = RelationLikeness([self.labels.get(key, key) for key in self.summary.keys])
        self._heads: dict[str, list[int]] = {}
        for number, key in enumerate(self.summary.type_keys):
            for stem in stems(self.class_words[key])[-1:]:
                self._heads.setdefault(stem, []).append(number)
        self._pools: dict[tuple[object, ...], Pool] = {}
        self._starts: dict[int, Ints] = {}

    def named(self, text: str, whole: str) -> Named:
        """The types that a text names: by the last word of a label, or in a script without spaces by all of it.

        whole: the question with all its mentions as slots.
        """
        if not self.types:
            return frozenset()
        found = {number for stem in set(stems(text)) for number in self._heads.get(stem, ())}
        if re.search(r"[\u3040-\u9fff]", text):
            found |= {n for n, key in enumerate(self.summary.type_keys) if self.class_words[key] in text}
        if self.retrieved is not None:
            found |= self.retrieved.of(whole)[2]
        return frozenset(found)

    def starts(self, key: str) -> Ints:
        """Nodes of what a topic may be; none for what is not in the graph."""
        entity = self.graph.know([key]).get(key)
        if entity is None:
            return NONE
        node = int(self.summary.node_of[entity])
        if node not in self._starts:
            self._starts[node] = self.summary.like(entity, facts=self.options.starts == "facts")
        return self._starts[node]

    def wide(self, starts: Ints) -> bool:
        """Whether a topic has too many paths of one relation and of two for all to be tried."""
        ways = self.summary.directed_relations(starts).tolist() if len(starts) else []
        paths = sum(1 + len(self.summary.beside(way)) for way in ways)
        return self.options.hops > 1 and paths > self.options.max_paths

    def pool(
        self, starts: tuple[Ints, ...], view: View, named: Named = frozenset(), alone: bool = False,
        keys: tuple[str, ...] = (), whole: str = "",
    ) -> Pool:  # fmt: skip
        """The candidates of a view whose mentions are topics that start so.

        named: types that the question names.  alone: whether it has no mention at all.  keys: of the topics.  whole:
        the question with all its mentions as slots.
        """
        value = view.value
        kinds: tuple[object, ...] = (
            tuple(one.tobytes() for one in starts), named, alone and not starts,
            tuple(one is not None for one in (value.number, value.time, value.string)) if value else None,
        )  # fmt: skip
        wide = any(map(self.wide, starts))
        kinds = (*kinds, view.text, keys, whole) if wide else kinds
        if kinds in self._pools:
            return self._pools[kinds]
        made: dict[int, None] = {}
        if all(map(len, starts)) and not (len(starts) > 1 and value) and (starts or value or self.types):
            search = SlotSearch(
                self.search, starts, self._values(view),
                named or (range(len(self.class_words)) if alone and not starts else ()), self.options, types=self.types,
                likeness=self._likeness(view, keys, whole) if wide else None,
            )  # fmt: skip
            made = dict.fromkeys(map(self.forms.number, search.slotted()))
        numbers = np.array(list(made), dtype=np.int64)
        most = self.options.max_forms
        self._pools[kinds] = Pool(numbers[:most], max(0, len(numbers) - most))
        return self._pools[kinds]

    def _likeness(self, view: View, keys: tuple[str, ...], whole: str) -> NDArray[np.float64]:
        """How like a question each directed relation is, where not all paths are tried."""
        likeness = self.likeness.of(view.text)
        if self.retrieved is not None:
            places, likely, _ = self.retrieved.of(whole)
            likeness[places] = np.maximum(likeness[places], likely)
        there = np.zeros(2 * len(likeness))
        for entity in self.graph.know(keys).values():
            node = self.summary.node_of[[entity]]
            own = self.summary.directed_relations(node)
            near = [self.summary.follow(node, way) for way in own.tolist()]
            further = self.summary.directed_relations(np.unique(np.concatenate([NONE, *near])))
            there[further], there[own] = np.maximum(there[further], FACTS / 2), FACTS
        return np.tile(likeness, 2) + there

    def _values(self, view: View) -> dict[Literal, Ints]:
        """The slots that a relation may have for a value, by the nodes of what it may be."""
        if view.value is None:
            return {}
        memory, own = self.summary.memory, view.value
        values: dict[Literal, Ints] = {}
        for node in np.flatnonzero(memory.literal).tolist():
            dimension = memory.dimensions[memory.dim[node]] if memory.dim[node] >= 0 else None
            kind = {None: STRING, TIME_DIMENSION: TIME}.get(dimension, NUMBER)
            if {STRING: own.string, TIME: own.time, NUMBER: own.number}[kind] is not None:
                values[Literal(VALUE, kind, dimension or None if kind == NUMBER else None)] = np.array([node])
        return values
