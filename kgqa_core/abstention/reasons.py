"""Why a graph does not hold an answer, and the nearest thing that it does hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kgqa_core.abstention.evidence import Evidence, RelationPath
from kgqa_core.abstention.labels import ENTITY, FACT, RELATION
from kgqa_core.datasets.files.masking import mask_topic
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.lookup import BY_TAIL, is_indexed
from kgqa_core.rewriting.phrases import phrase
from kgqa_core.search.graph import TYPE_KEYS
from kgqa_core.types import INVERSE, TYPE, UNREAD, UNSURE, Question

FOLLOWED = 200
"""Entities of a hop from which the next is looked for."""
_MASK = "…"
"""Stands in a text for a name that the graph has."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a question is not answered.

    kind: as of `Answer`.  missing: what is not there, in words, where it is known.  nearest: what is there and comes
    nearest: a name, a relation that the topic has, or a fact of another entity.  confidence: that this is the reason,
    where there is one; None where it was not learnt.
    """

    kind: str
    missing: str | None = None
    nearest: str | None = None
    confidence: float | None = None


def by_rule(evidence: Evidence) -> str | None:
    """The reason that needs no training: nothing was linked, or no retriever found any fact; None for neither, and
    for what was computed from the graph."""
    if evidence.model_answer is not None and evidence.model_answer.computed:
        return None
    if not evidence.question.topic_entities:
        return ENTITY
    retrieved = evidence.retrieved.values()
    return FACT if retrieved and not any(result.facts or result.entities for result in retrieved) else None


class Explainer:
    """Finds what is missing and what comes nearest, in one graph."""

    def __init__(self, store: KgStore) -> None:
        self.store = store

    def explain(self, evidence: Evidence, kind: str, strange: Sequence[str] = (), share: float | None = None) -> Reason:
        """The reason `kind`, with what is missing and what is nearest.

        strange: runs of words of the question that no answerable one has, longest first.  share: the reason's
        confidence.
        """
        if kind in (TYPE, UNREAD, UNSURE):
            return Reason(kind, ", ".join(strange) or None, confidence=share)
        makers = {ENTITY: self._entity, RELATION: self._relation, FACT: self._fact}
        return replace(makers[kind](evidence, strange), confidence=share)

    def _entity(self, evidence: Evidence, strange: Sequence[str]) -> Reason:
        question = evidence.question
        named = [key for key in question.topic_keys if not question.topic_entities]
        wanted = next(iter(named), None) or next(iter(strange), None) or self._name(question)
        near = self.store.suggest(wanted) if wanted else None
        return Reason(ENTITY, wanted, near if near and wanted and near.casefold() != wanted.casefold() else None)

    def _name(self, question: Question) -> str | None:
        """What may be a name beside those of its topics, in the text of a question."""
        return _name_in(mask_topic(question, _MASK, self.store.surface_forms(question.topic_entities)))

    def _relation(self, evidence: Evidence, strange: Sequence[str]) -> Reason:
        wanted = " ".join(strange[:1]) or None
        topics = evidence.question.topic_entities
        has = self._relations_of(topics) if topics else Counter[str]()
        guessed = [self._label(path[0]) for path, _ in evidence.paths if path]
        labels = Counter({label: 0 for key in has if (label := self._label(key))})
        for key, count in has.items():
            labels[self._label(key)] += count
        if not labels:
            return Reason(RELATION, wanted)
        text = " ".join([wanted or evidence.question.text, *guessed[:1]])
        return Reason(RELATION, wanted, min(labels, key=lambda label: (-likeness(label, text), -labels[label], label)))

    def _fact(self, evidence: Evidence, strange: Sequence[str]) -> Reason:
        paths = [path for path, _ in evidence.paths if path] or self._paths_of_facts(evidence)
        if not paths or not evidence.question.topic_entities:
            return Reason(FACT)
        entities = list(evidence.question.topic_entities)
        for relation in paths[0]:
            reached = self._follow(entities, relation)
            if not reached:
                name = self.store.names(entities[:1])[entities[0]]
                return Reason(FACT, f"{name}, {self._label(relation)}", self._example(entities[0], relation))
            entities = reached
        return Reason(FACT, next(iter(strange), None))

    def _paths_of_facts(self, evidence: Evidence) -> list[RelationPath]:
        """The relation of the best fact of the first retriever that has one, as a path."""
        best = next((retrieved.facts[0] for retrieved in evidence.retrieved.values() if retrieved.facts), None)
        if best is None:
            return []
        [(_, relation, _)] = self.store.triples([best.triple]).values()
        return [(("" if best.direction > 0 else INVERSE) + self._keys[relation],)]

    def _relations_of(self, entities: Sequence[int]) -> Counter[str]:
        """Directed keys of the relations that entities have, with how many facts."""
        sql = (
            f"SELECT relation, $2 AS direction, count(*) FROM {self._triples} "
            "WHERE {end} IN (SELECT unnest($1::BIGINT[])) GROUP BY relation"
        )
        relations: Counter[str] = Counter()  # without the members of a type, which are no relation of it
        for end, mark in (("head", ""), ("tail", INVERSE)):
            for relation, direction, count in self.store.connection.execute(
                sql.format(end=end), [list(entities), mark]
            ).fetchall():
                if not (direction and self._keys[relation] in TYPE_KEYS):
                    relations[direction + self._keys[relation]] += count
        return relations

    def _follow(self, entities: Sequence[int], relation: str) -> list[int]:
        number = self._ids.get(relation.removeprefix(INVERSE))
        if number is None:
            return []
        one, other = ("tail", "head") if relation.startswith(INVERSE) else ("head", "tail")
        rows = self.store.connection.execute(
            f"SELECT DISTINCT {other} FROM {self._triples} WHERE relation = $1 "
            f"AND {one} IN (SELECT unnest($2::BIGINT[])) ORDER BY 1 LIMIT {FOLLOWED}",
            [number, list(entities)],
        ).fetchall()
        return [entity for (entity,) in rows]

    def _example(self, entity: int, relation: str) -> str | None:
        """A fact of the relation about another entity: of the same type and the best known, where there is one."""
        number = self._ids.get(relation.removeprefix(INVERSE))
        if number is None:
            return None
        end = "tail" if relation.startswith(INVERSE) else "head"
        row = self.store.connection.execute(
            f"SELECT t.head, t.tail FROM {self._triples} t JOIN entities e ON e.id = t.{end} "
            "WHERE t.relation = $1 ORDER BY EXISTS (SELECT 1 FROM types a JOIN types b ON a.type = b.type "
            "WHERE a.entity = e.id AND b.entity = $2) DESC, e.popularity DESC, t.id LIMIT 1",
            [number, entity],
        ).fetchone()
        if row is None:
            return None
        names = self.store.names(row)
        return f"({names[row[0]]}, {self._label(relation.removeprefix(INVERSE))}, {names[row[1]]})"

    @property
    def _triples(self) -> str:
        """The table of triples; the copy in memory where the graph has one, which an overlay would work out anew."""
        return BY_TAIL if is_indexed(self.store) else "triples"

    @cached_property
    def _keys(self) -> list[str]:
        return self.store.relation_keys()

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {key: number for number, key in enumerate(self._keys)}

    @cached_property
    def _names(self) -> list[str]:
        return self.store.relation_names()

    def _label(self, relation: str) -> str:
        """The words of a directed relation."""
        key = relation.removeprefix(INVERSE)
        number = self._ids.get(key)
        name = key if number is None else self._names[number]
        if not relation.startswith(INVERSE):
            return name
        words = phrase(name)
        return f"what {words.one} it" if words.is_verb else f"{name} of"


def likeness(one: str, other: str) -> float:
    """Share of the letters in a row, three at a time, that the first text has in common with the second; in [0, 1]."""
    threes, others = _threes(one), _threes(other)
    return len(threes & others) / len(threes) if threes else 0.0


def _threes(text: str) -> set[str]:
    padded = f" {' '.join(text.casefold().split())} "
    return {padded[index : index + 3] for index in range(len(padded) - 2)}


def _name_in(text: str) -> str | None:
    """What may be a name: the longest run of capitalised words after the first one."""
    runs: list[list[str]] = [[]]
    for word in text.split()[1:]:
        if word[:1].isupper():
            runs[-1].append(word)
        if not word[:1].isupper() or word[-1] in ",;:":
            runs.append([])
    longest = max(runs, key=lambda run: sum(map(len, run)))
    return " ".join(longest).rstrip(",;:?!. ") or None
