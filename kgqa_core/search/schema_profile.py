"""What a graph offers to questions: its types, and of each relation its ends, its direction, its values and its words.

Built on `logic.schema.Schema` and some passes of SQL over the triples.  Names: an entity's label, else, where a graph
gives none, its key if that can be read; who has neither is in no question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.kg.filters import is_informative
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import ALIAS, DESCRIPTION, LABEL, OPAQUE, RDF_TYPE, RDFS
from kgqa_core.logic.measures import TIME, UNITS
from kgqa_core.logic.schema import Schema
from kgqa_core.metrics.normalise import is_cjk
from kgqa_core.rewriting.phrases import words

TYPE_KEYS = frozenset({RDF_TYPE, "P31", "P279", RDFS + "subClassOf"})
"""Relations that say what type a thing has: they are worded as types, and no path goes on along them."""

_NAMES = frozenset({LABEL, ALIAS, DESCRIPTION})
_FEWEST = 0.02
"""Share of all entities at the end of a relation that a type must have for it to be named at all."""
_DOMINANT = 0.5
"""Share of the ends of a relation that have a type when the relation is said to be of that type."""
_LONGEST_NAME = 60
_LONGEST_CHINESE = 20
_YEAR = re.compile(r"[12][0-9]{3}")
"""A key that names something although it is a number."""
_ODD = re.compile(r"[\x00-\x1f<>{}|\\^`?!;]|https?:")


@dataclass(frozen=True, slots=True)
class TypeProfile:
    """A type: its key, its id, its label in one, and how many entities have it or one below it."""

    key: str
    id: int
    label: str
    entities: int


@dataclass(frozen=True, slots=True)
class RelationProfile:
    """One relation.

    label: in plain words.  triples, heads, tails: how many.  domain, range: the type that most of an end's entities
    have, or None; `_sure` where it is most of all, and not only of those that have a type.  entities: whether tails are
    entities.  dimensions: those of values that compare (`time`, a base unit's key, "" for bare numbers).  units: keys
    of the units that the values are written in.
    """

    key: str
    id: int
    label: str
    triples: int
    heads: int
    tails: int
    domain: str | None
    domain_sure: bool
    range: str | None
    range_sure: bool
    entities: bool
    dimensions: frozenset[str]
    units: tuple[str, ...] = ()
    is_type: bool = False

    @property
    def functional(self) -> bool:
        """Whether a head has one tail, but for one in ten."""
        return self.triples <= 1.1 * self.heads

    @property
    def inverse_functional(self) -> bool:
        """Whether a tail has one head, but for one in ten."""
        return self.triples <= 1.1 * self.tails

    @property
    def dated(self) -> bool:
        """Whether its values are dates."""
        return TIME in self.dimensions


@dataclass(frozen=True)
class GraphProfile:
    """The profile of a graph.

    names: [entities] the name by which a question calls each node, None for those that it cannot.  askable: [entities]
    whether a question may start at it: it has a name, and of those with that name it has the most triples.  qualifiers:
    label of each relation that qualifies statements.  language: `zh` where the relations have Chinese names, else `en`.
    """

    schema: Schema
    relations: Mapping[str, RelationProfile]
    types: Mapping[str, TypeProfile]
    names: tuple[str | None, ...]
    askable: NDArray[np.bool_]
    qualifiers: Mapping[str, str]
    units: Mapping[str, str]
    language: str


def profile(store: KgStore) -> GraphProfile:
    """The profile of a graph that is open."""
    schema = Schema.read(store)
    names, askable = _names(store)
    labels = dict(zip(store.relation_keys(), store.relation_names(), strict=True))
    relations = _relations(store, schema, labels)
    run = store.connection.execute
    rows = run("SELECT k.key, k.id, count(*) FROM types y JOIN entities k ON k.id = y.type GROUP BY ALL").fetchall()
    types = {key: TypeProfile(key, i, str(names[i]), n) for key, i, n in sorted(rows) if names[i] is not None}
    unit_rows = run("SELECT DISTINCT unit FROM entities WHERE unit IS NOT NULL ORDER BY unit").fetchall()
    known = store.resolve([unit for (unit,) in unit_rows])
    units = {unit: str(names[ids[0]]) for unit, ids in known.items() if ids and names[ids[0]] is not None}
    chinese = sum(any(map(is_cjk, relation.label)) * relation.triples for relation in relations.values())
    total = sum(relation.triples for relation in relations.values())
    return GraphProfile(
        schema=schema,
        relations=relations,
        types=types,
        names=tuple(names),
        askable=askable,
        qualifiers={key: plain_label(labels[key]) for key in schema.qualifiers},
        units=units,
        language="zh" if total and chinese > total / 2 else "en",
    )


def _relations(store: KgStore, schema: Schema, labels: Mapping[str, str]) -> dict[str, RelationProfile]:
    run = store.connection.execute
    sizes = {
        i: numbers
        for i, *numbers in run(
            "SELECT relation, count(DISTINCT head), count(DISTINCT tail), "
            "count(*) FILTER (e.kind = 'entity') FROM triples t JOIN entities e ON e.id = t.tail GROUP BY relation"
        ).fetchall()
    }
    ends = [
        _dominant(
            run(
                f"SELECT t.relation, k.key, count(DISTINCT t.{end}) FROM triples t JOIN types y ON y.entity = t.{end} "
                "JOIN entities k ON k.id = y.type GROUP BY ALL"
            ).fetchall(),
            {i: numbers[index] for i, numbers in sizes.items()},
        )
        for index, end in enumerate(("head", "tail"))
    ]
    units: dict[int, list[str]] = {}
    for i, unit in run(
        "SELECT relation, unit FROM triples t JOIN entities e ON e.id = t.tail WHERE unit IS NOT NULL "
        "GROUP BY ALL ORDER BY relation, count(*) DESC, unit"
    ).fetchall():
        units.setdefault(i, []).append(unit)
    results = {}
    for i, key in run("SELECT id, key FROM relations ORDER BY key").fetchall():
        observed = schema.relations[key]
        if i not in sizes or key in _NAMES or not is_informative(key, (labels[key],)):
            continue
        label = plain_label(labels[key])
        if not re.search(r"\w", label) or OPAQUE.match(labels[key]) or _ODD.search(label):
            continue
        heads, tails, entities = sizes[i]
        (domain, domain_sure), (range_, range_sure) = (end.get(i, (None, False)) for end in ends)
        results[key] = RelationProfile(
            key=key,
            id=i,
            label=label,
            triples=observed.triples,
            heads=heads,
            tails=tails,
            domain=domain,
            domain_sure=domain_sure,
            range=range_,
            range_sure=range_sure,
            entities=entities > observed.triples / 2,
            dimensions=observed.measured,
            units=tuple(units.get(i, ())),
            is_type=key in TYPE_KEYS,
        )
    return results


def plain_label(label: str) -> str:
    """A relation's label as plain words, without brackets and commas.

    >>> plain_label("director / manager"), plain_label("crew member(s)"), plain_label("starred_actors")
    ('director or manager', 'crew member', 'starred actors')
    """
    text = re.sub(r"\s*\([^)]*\)", "", words(label)).replace(" / ", " or ").replace(",", "")
    return " ".join(text.split())


def _dominant(rows: list[tuple[int, str, int]], sizes: Mapping[int, int]) -> dict[int, tuple[str, bool]]:
    """The type of most entities at an end of each relation, and whether most of all entities there have it.

    Where few have a type at all, it is that of most of those that have one.  Of several the one with fewest.
    """
    typed: dict[int, int] = {}
    for relation, _, number in rows:
        typed[relation] = max(typed.get(relation, 0), number)
    results: dict[int, list[tuple[int, str]]] = {}
    for relation, key, number in rows:
        if number >= _DOMINANT * typed[relation]:
            results.setdefault(relation, []).append((number, key))
    chosen = {relation: min(choices) for relation, choices in results.items()}
    return {
        relation: (key, number >= _DOMINANT * sizes[relation])
        for relation, (number, key) in chosen.items()
        if number >= max(2, _FEWEST * sizes[relation]) or number == sizes[relation]
    }


def _names(store: KgStore) -> tuple[list[str | None], NDArray[np.bool_]]:
    """The names of all nodes, and which of them a question may start at."""
    run = store.connection.execute
    (total,) = run("SELECT coalesce(max(id), -1) + 1 FROM entities").fetchall()[0]
    rows: list[tuple[Any, ...]] = run(
        "SELECT id, key, kind = 'literal', popularity FROM entities ORDER BY id"
    ).fetchall()
    labelled = {i for (i,) in run("SELECT DISTINCT id FROM labels WHERE label IS NOT NULL").fetchall()}
    best = store.names([i for i, _, literal, _ in rows if not literal])
    names: list[str | None] = [None] * int(total)
    askable = np.zeros(int(total), dtype=np.bool_)
    first: dict[str, tuple[int, int]] = {}
    for i, key, literal, popularity in rows:
        if literal:
            names[i] = key
            continue
        if i not in labelled and OPAQUE.match(key) and not _YEAR.fullmatch(key):
            continue
        name = best[i].replace("_", " ").strip()
        if not _speakable(name):
            continue
        names[i] = name
        rank = (-(popularity or 0), i)
        same = name.casefold()
        if same not in first or rank < first[same]:
            first[same] = rank
    askable[[i for _, i in first.values()]] = True
    values = run(
        "SELECT DISTINCT tail FROM triples JOIN entities e ON e.id = tail WHERE e.kind = 'entity' "
        "AND tail NOT IN (SELECT head FROM triples)"
    ).fetchall()
    askable[[i for (i,) in values if i not in labelled and _value_like(names[i])]] = False
    return names, askable


def _value_like(name: str | None) -> bool:
    """Whether a key without a label is a value, or a sentence, rather than a name: `600m`, `1981年3月12日`."""
    if name is None or _YEAR.fullmatch(name):
        return False
    chinese = any(map(is_cjk, name))
    return name[0].isdigit() or (chinese and (len(name) > _LONGEST_CHINESE or bool(re.search("[，。；、]", name))))


def _speakable(name: str) -> bool:
    return bool(re.search(r"\w", name)) and len(name) <= _LONGEST_NAME and not _ODD.search(name)


def base_label(unit: str) -> str | None:
    """What English calls one of the units of `logic.measures`, in several; None for an unknown one."""
    return _UNIT_WORDS.get(unit)


_UNIT_WORDS = {
    "Q11573": "metres", "Q174789": "millimetres", "Q174728": "centimetres", "Q828224": "kilometres", "Q3710": "feet",
    "Q253276": "miles", "Q25343": "square metres", "Q712226": "square kilometres", "Q35852": "hectares",
    "Q232291": "square miles", "Q11570": "kilograms", "Q41803": "grams", "Q191118": "tonnes", "Q100995": "pounds",
    "Q11574": "seconds", "Q7727": "minutes", "Q25235": "hours", "Q573": "days", "Q25267": "degrees Celsius",
    "Q180154": "kilometres per hour", "Q11582": "litres", "Q218593": "inches", "Q482798": "yards", "Q81292": "acres",
}  # fmt: skip
assert set(_UNIT_WORDS) <= set(UNITS)
