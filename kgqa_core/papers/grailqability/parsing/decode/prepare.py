"""Questions over one graph: how they are worded, what is retrieved for them, and the rows that the decoder reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from torch import Tensor

from kgqa_core.config import DecodeOptions
from kgqa_core.errors import FormError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import Form, elements
from kgqa_core.logic.parser import parse
from kgqa_core.logic.schema import Schema, types_of
from kgqa_core.papers.grailqability.parsing.decode.actions import END, NUMBER, written
from kgqa_core.papers.grailqability.parsing.decode.automaton import Automaton, Limits, walk
from kgqa_core.papers.grailqability.parsing.decode.grammar import Kinds
from kgqa_core.papers.grailqability.parsing.decode.rows import DecoderRow, Near, Worded, chosen, make_row, near, worded
from kgqa_core.papers.grailqability.parsing.examples import ParseExample
from kgqa_core.papers.grailqability.parsing.item_retriever import Items, items_of


@dataclass(frozen=True)
class Ground:
    """A graph as the decoder sees it."""

    schema: Schema
    kinds: Kinds
    items: Items

    @classmethod
    def of(cls, store: KgStore) -> Ground:
        """The schema and items of an open graph."""
        schema = Schema.read(store)
        return cls(schema, Kinds(schema), items_of(store, schema))

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Index of each item in `items.keys`."""
        return {key: number for number, key in enumerate(self.items.keys)}


@dataclass(frozen=True)
class QuestionBatch:
    """Questions over a graph, worded.  types, nearby: types and relations of their topics."""

    ground: Ground
    examples: Sequence[ParseExample]
    words: Sequence[Worded]
    types: Mapping[str, frozenset[str]]
    nearby: Near

    @classmethod
    def of(
        cls, examples: Sequence[ParseExample], store: KgStore, ground: Ground, options: DecodeOptions
    ) -> QuestionBatch:
        """What an open graph knows of some questions."""
        keys = {topic.key for example in examples for topic in example.topics}
        types = types_of(store, keys)
        named = frozenset(ground.items.classes)
        words = [worded(example, types, options.mentions, options.candidates, named) for example in examples]
        mentioned = {topic.key for worded_question in words for topic, _ in worded_question.topics}
        return cls(ground, examples, words, types, near(store, mentioned))

    @property
    def texts(self) -> list[str]:
        """The masked text of each question."""
        return [words.text for words in self.words]

    def rows(self, scores: Tensor, options: DecodeOptions, gold: Sequence[Form | None] = ()) -> list[DecoderRow]:
        """The row of each question, what gold forms need being always retrieved.

        scores: [questions, items].  Items stand by their score, so that their order does not depend on what is gold.
        """
        items, rows = self.ground.items, []
        for number, words in enumerate(self.words):
            anchored = {key for topic, _ in words.topics for key in self.nearby.get(topic.key, ())}
            relations, classes = chosen(scores[number], items, anchored, options.relations, options.classes)
            form = gold[number] if gold else None
            if form is not None:
                needed = elements(form)
                relations = _with(needed.relations, relations, options.relations)
                classes = _with(needed.classes, classes, options.classes)
            item_scores = {
                key: float(scores[number, self.ground.index[key]])
                for key in (*relations, *classes)
                if key in self.ground.index
            }
            relations, classes = (
                sorted((key for key in keys if key in item_scores), key=lambda key: (-item_scores[key], key))
                for keys in (relations, classes)
            )
            rows.append(make_row(words, relations, classes, item_scores, items, self.nearby, self.types))
        return rows

    def automaton(self, row: DecoderRow, options: DecodeOptions, *, no_form: bool) -> Automaton:
        """What may be decoded of a row."""
        limits = Limits(options.max_actions)
        return Automaton(self.ground.kinds, row.slots, self.types, no_form=no_form, limits=limits)

    def with_gold(
        self, rows: Sequence[DecoderRow], gold: Sequence[Form | None], options: DecodeOptions
    ) -> list[DecoderRow | str]:
        """The rows with the actions of their gold forms, or the reason why a form cannot be decoded."""
        with_actions: list[DecoderRow | str] = []
        for row, form in zip(rows, gold, strict=True):
            try:
                line = [*written(form, row.slots), NUMBER[END]]
            except FormError as fault:
                with_actions.append(str(fault))
                continue
            if walk(self.automaton(row, options, no_form=True), line) is None:
                with_actions.append(
                    f"{form} is longer than {options.max_actions} actions, or its parts do not go together"
                )
                continue
            with_actions.append(replace(row, actions=tuple(line)))
        return with_actions


def gold_forms(examples: Sequence[ParseExample]) -> list[Form | None]:
    """The gold form of each question, read."""
    known: dict[str, Form] = {}
    for example in examples:
        if example.form is not None and example.form not in known:
            known[example.form] = parse(example.form)
    return [None if example.form is None else known[example.form] for example in examples]


def recall(rows: Sequence[DecoderRow], gold: Sequence[Form | None]) -> float | None:
    """Share of gold forms all of whose relations and types were retrieved; None without any."""
    hits = [
        {*used.relations, *used.classes} <= {*row.slots.relations, *row.slots.classes}
        for row, form in zip(rows, gold, strict=True)
        if form is not None
        for used in (elements(form),)
    ]
    return sum(hits) / len(hits) if hits else None


def _with(needed: Sequence[str], retrieved: Sequence[str], most: int) -> list[str]:
    """What is needed, then the first of what was retrieved, as long as there is room."""
    return list(dict.fromkeys((*needed, *retrieved)))[:most]
