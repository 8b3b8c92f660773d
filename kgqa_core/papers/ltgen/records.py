"""What a benchmark is made of: drawn entities with their triples by name, question records, and what was rejected."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import WritingOptions
from kgqa_core.kg.names import key_name
from kgqa_core.kg.store import KgStore
from kgqa_core.types import LEVELS

Names = tuple[str, str, str]

FORMS = 40
"""Names of one entity that are looked for in texts."""


@dataclass(frozen=True, slots=True)
class End:
    """Head or tail of a triple.  forms: its name first, then aliases.  entity: False for a literal."""

    id: int
    key: str
    forms: tuple[str, ...]
    entity: bool

    @property
    def name(self) -> str:
        """What it is called."""
        return self.forms[0]


@dataclass(frozen=True, slots=True)
class Triple:
    """A triple of the graph.  relation: its name."""

    id: int
    head: End
    relation_key: str
    relation: str
    tail: End

    @property
    def names(self) -> Names:
        """The triple in words."""
        return self.head.name, self.relation, self.tail.name

    @property
    def keys(self) -> Names:
        """The triple as question files cite it."""
        return self.head.key, self.relation_key, self.tail.key


@dataclass(frozen=True, slots=True)
class EntityRelationPair:
    """A subject with a relation, and all that it leads to.  forward: the drawn entity is the subject."""

    forward: bool
    triples: tuple[Triple, ...]

    @property
    def head(self) -> End:
        """The subject."""
        return self.triples[0].head

    @property
    def key(self) -> tuple[int, str]:
        """What two equal pairs have in common."""
        return self.head.id, self.triples[0].relation_key

    @property
    def names(self) -> tuple[str, str]:
        """The pair in words."""
        return self.head.name, self.triples[0].relation


@dataclass(frozen=True, slots=True)
class Subject:
    """A drawn entity.  split: of all its questions.  triples: usable ones, both ways, by id."""

    end: End
    level: str
    split: str
    triples: tuple[Triple, ...]
    pairs: tuple[EntityRelationPair, ...]


@dataclass(frozen=True, slots=True)
class BenchmarkItem:
    """A question of the benchmark, as it goes into questions.jsonl.

    number: of the question or turn within its entity.  triples: that the answer rests on.  topics and answers: ends of
    these.
    """

    subject: Subject
    number: int
    text: str
    triples: tuple[Triple, ...]
    topics: tuple[End, ...]
    answers: tuple[End, ...]
    dialogue: tuple[tuple[str, str], ...] = ()
    reference: str | None = None

    def record(self, kind: str) -> dict[str, Any]:
        """The line of the question file."""
        aliases = {answer.key: forms for answer in self.answers if (forms := date_forms(answer))}
        row: dict[str, Any] = {
            "id": f"{kind}/{self.subject.end.key}/{self.number:02d}",
            "question": self.text,
            "topic_entities": [end.key for end in self.topics],
            "answers": [end.key for end in self.answers],
            "split": self.subject.split,
            "level": self.subject.level,
            "gold_triples": [list(triple.keys) for triple in self.triples],
        }
        if aliases:
            row["answer_aliases"] = aliases
        if len(self.topics) == 1 and all(self.topics[0] in (triple.head, triple.tail) for triple in self.triples):
            row["relation_path"] = _paths(self)
            row["hops"] = 1
        if self.dialogue:
            row["dialogue"] = [{"role": role, "text": text} for role, text in self.dialogue]
        if self.reference is not None:
            row["reference"] = self.reference
        return row


@dataclass(frozen=True, slots=True)
class RejectedItem:
    """Something that was written and rejected.

    what: `question`, `turn`, `dialogue` or `completion`.  number: its place in the output, from 1.  attempt: the
    completion that it was in, from 1.  detail: what exactly is wrong.
    """

    subject: Subject
    what: str
    reason: str
    number: int = 0
    text: str = ""
    detail: str = ""
    attempt: int = 1

    def record(self, kind: str) -> dict[str, Any]:
        """The line of rejects.jsonl."""
        return {
            "kind": kind, "entity": self.subject.end.key, "level": self.subject.level, "what": self.what,
            "reason": self.reason, "number": self.number, "attempt": self.attempt, "text": self.text,
            "detail": self.detail,
        }  # fmt: skip


@dataclass(frozen=True)
class ReplyItems:
    """What was made of one completion.  turns: of dialogues, with whether a turn is a question."""

    items: tuple[BenchmarkItem, ...] = ()
    rejects: tuple[RejectedItem, ...] = ()
    turns: tuple[dict[str, Any], ...] = field(default=())


def read_sample(sample: Path, store: KgStore, options: WritingOptions, seed: int) -> list[Subject]:
    """The drawn entities with their triples and pairs by name, by level and place in the draw."""
    frame = pl.read_parquet(sample / "entities.parquet", glob=False)
    pairs = pl.read_parquet(sample / "pairs.parquet", glob=False)
    wanted = set(frame["triples"].explode().to_list()) | set(pairs["triples"].explode().to_list())
    triples = read_triples(store, (triple for triple in wanted if triple is not None))
    pairs_of_entity: dict[int, list[EntityRelationPair]] = {}
    for entity, forward, triple_ids_of_pair in pairs.iter_rows():
        pairs_of_entity.setdefault(entity, []).append(
            EntityRelationPair(forward, tuple(triples[triple] for triple in triple_ids_of_pair))
        )
    subjects = []
    for entity, key, level, _, _, triple_ids in frame.iter_rows():
        cited = tuple(triples[triple] for triple in triple_ids)
        end = next(end for triple in cited for end in (triple.head, triple.tail) if end.id == entity)
        subjects.append(Subject(end, level, _split(key, options, seed), cited, tuple(pairs_of_entity.get(entity, ()))))
    order = {level: index for index, level in enumerate(LEVELS)}
    return sorted(subjects, key=lambda subject: order[subject.level])


def read_triples(store: KgStore, ids: Iterable[int]) -> dict[int, Triple]:
    """Triples by id, with the names of their ends and relations."""
    stored = store.triples(ids)
    ends = {end for head, _, tail in stored.values() for end in (head, tail)}
    forms, keys = store.surface_forms(ends), store.entity_keys(ends)
    literals = {
        i
        for (i,) in store.connection.execute(
            "SELECT id FROM entities WHERE kind = 'literal' AND id IN (SELECT unnest(?::INTEGER[]))", [sorted(ends)]
        ).fetchall()
    }
    clean_names = {i: tuple(" ".join(form.split()) for form in forms[i] if form.strip())[:FORMS] for i in ends}
    made = {i: End(i, keys[i], clean_names[i] or (key_name(keys[i]),), i not in literals) for i in sorted(ends)}
    names, relations = store.relation_names(), store.relation_keys()
    return {
        i: Triple(i, made[head], relations[relation], names[relation], made[tail])
        for i, (head, relation, tail) in stored.items()
    }


def date_forms(end: End) -> list[str]:
    """A date that is a literal, written in English; empty for anything else.

    >>> date_forms(End(0, "1867-11-07", ("1867-11-07",), False))
    ['7 November 1867', 'November 7, 1867']
    """
    match = re.fullmatch(r"\+?(\d{4})-(\d\d)-(\d\d)(?:T00:00:00Z?)?", end.key) if not end.entity else None
    if match is None or not (1 <= int(match[2]) <= 12 and 1 <= int(match[3]) <= 31):
        return []
    year, month, day = str(int(match[1])), MONTHS[int(match[2]) - 1], str(int(match[3]))
    return [f"{day} {month} {year}", f"{month} {day}, {year}"]


MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def shuffled(values: Sequence[Any], key: str) -> list[Any]:
    """Values in an order that follows from a key and their places alone."""
    order = sorted(range(len(values)), key=lambda i: hashlib.sha256(f"{key}/{i}".encode()).digest())
    return [values[index] for index in order]


def _paths(item: BenchmarkItem) -> list[list[str]]:
    """The relation of each triple from the topic."""
    topic = item.topics[0]
    relations: dict[str, None] = {}
    for triple in item.triples:
        relations[triple.relation_key if triple.head.id == topic.id else f"<inv>-{triple.relation_key}"] = None
    return [[relation] for relation in relations]


def _split(key: str, options: WritingOptions, seed: int) -> str:
    share = int.from_bytes(hashlib.sha256(f"split/{seed}/{key}".encode()).digest()[:6], "big") / 2**48
    if share < options.train_share:
        return "train"
    return "dev" if share < options.train_share + options.dev_share else "test"
