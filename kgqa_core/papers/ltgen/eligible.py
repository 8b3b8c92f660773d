"""Entities that an LTGen benchmark may be about: named, with a moderate number of triples that say something.

Huang et al. (2024, section 3) take all triples with the entity as subject or object, drop those of non-informative
relations, and entities with fewer than 5 or more than 100 triples.  A triple also needs names at both ends: nobody can
ask in words about `Q4115189`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kgqa_core.config import SamplingOptions
from kgqa_core.errors import InputError, nearest
from kgqa_core.kg.filters import is_informative
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import QUIET, Monitor

OPAQUE = (
    r"^(_:.*|(.*[/#])?\.well-known/genid/.*|(https?://rdf\.freebase\.com/ns/)?/?[mg][./]0?[0-9a-z_]+"
    r"|(.*[/#:])?[QPL][1-9][0-9]*(-[FS][0-9]+)?|(.*[/#:])?[0-9]+"
    r"|(.*[/:])?[QPLqpl]?([1-9][0-9]*[-$])?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$"
)
"""Keys that name nothing in words: numbers, ids of Wikidata and Freebase, blank nodes, statements."""

ROWS = 10_000
"""Candidates that are read from the database at once."""

SEEN = r"[^\s\p{Z}\p{C}]"
"""A sign that is neither blank nor invisible."""


@dataclass(frozen=True, slots=True)
class EligibleEntity:
    """An entity that may be drawn.  degree: of the whole graph.  views: those that the graph has.  triples: usable."""

    entity: int
    key: str
    degree: int
    views: int | None
    triples: int


@dataclass(frozen=True)
class Eligible:
    """Candidates in the order of the draw, and what was left out and why."""

    candidates: list[EligibleEntity]
    counts: dict[str, int]


def find_eligible(store: KgStore, options: SamplingOptions, seed: int, monitor: Monitor = QUIET) -> Eligible:
    """The entities that may be drawn, in an order that follows from the seed and their keys alone.

    Makes the temporary table `usable(id, head, relation, tail)` in the store's connection, which `pairs_of` and
    `triples_of` read.  Raises InputError when no entity is left.
    """
    run = store.connection.execute
    dropped = dropped_relations(store, options, monitor)
    run("CREATE OR REPLACE TEMP TABLE dropped AS SELECT unnest(?::INTEGER[]) AS relation", [dropped])
    run(
        f"""
        CREATE OR REPLACE TEMP TABLE named AS SELECT id FROM entities WHERE regexp_matches(key, '{SEEN}')
        AND (kind = 'literal' OR id IN (SELECT id FROM labels WHERE regexp_matches(label, '{SEEN}'))
        OR NOT regexp_matches(key, '{OPAQUE}'))"""
    )
    run(
        """
        CREATE OR REPLACE TEMP TABLE usable AS SELECT id, head, relation, tail FROM triples
        WHERE relation NOT IN (FROM dropped) AND head IN (FROM named) AND tail IN (FROM named) AND head <> tail"""
    )
    run(
        """
        CREATE OR REPLACE TEMP TABLE both_ways AS SELECT end_id AS id, count(*) AS triples FROM (
          SELECT head AS end_id FROM usable UNION ALL SELECT tail FROM usable) GROUP BY 1"""
    )
    result = run(
        """
        SELECT e.id, e.key, e.popularity, e.views, b.triples FROM both_ways b JOIN entities e USING (id)
        WHERE e.kind = 'entity' AND b.triples BETWEEN ? AND ? ORDER BY sha256(? || e.key), e.key""",
        [options.min_triples, options.max_triples, f"ltgen/{seed}/"],
    )
    candidates: list[EligibleEntity] = []
    while rows := result.fetchmany(ROWS):
        candidates += (EligibleEntity(*row) for row in rows)
    counts = _counts(store, options)
    if not candidates:
        raise InputError(
            f"no entity of {store.path} has {options.min_triples} to {options.max_triples} triples with names at "
            f"both ends ({counts['entities']:,} entities, {counts['triples_usable']:,} such triples); change "
            "ltgen.sampling.min_triples and max_triples, or build the graph with labels"
        )
    return Eligible(candidates, counts | {"eligible": len(candidates)})


def dropped_relations(store: KgStore, options: SamplingOptions, monitor: Monitor = QUIET) -> list[int]:
    """Ids of the relations whose triples are left out, by the rule of `kg.informative_only` and by key or label."""
    rows = store.connection.execute(
        "SELECT r.id, r.key, list(l.label ORDER BY l.label) FILTER (l.lang IN ('en', 'mul', '')), "
        "list(l.label ORDER BY l.label) FILTER (l.label IS NOT NULL) "
        "FROM relations r LEFT JOIN relation_labels l USING (id) GROUP BY ALL ORDER BY r.id"
    ).fetchall()
    wanted = {name.casefold() for name in options.drop_relations}
    met: set[str] = set()
    dropped = []
    for number, key, english, labels in rows:
        own_names = {name.casefold() for name in (key, *(labels or ()))} & wanted
        met |= own_names
        if own_names or (options.informative_only and not is_informative(key, english or ())):
            dropped.append(int(number))
    for name in sorted(wanted - met):
        known = [text for _, key, _, labels in rows for text in (key, *(labels or ()))]
        monitor.note(f"ltgen.sampling.drop_relations names {name!r}, no relation of the graph{nearest(name, known)}")
    return dropped


def triples_of(store: KgStore, entities: Iterable[int]) -> dict[int, list[int]]:
    """Usable triples of some entities, both ways, in order of id.  Needs `find_eligible` before."""
    rows = store.connection.execute(
        "WITH drawn AS (SELECT DISTINCT unnest($1::BIGINT[]) AS entity) "
        "SELECT entity, u.id FROM drawn JOIN usable u ON u.head = entity "
        "UNION SELECT entity, u.id FROM drawn JOIN usable u ON u.tail = entity ORDER BY 1, 2",
        [list(entities)],
    ).fetchall()
    triples_of_entity: dict[int, list[int]] = {}
    for entity, triple in rows:
        triples_of_entity.setdefault(entity, []).append(triple)
    return triples_of_entity


def pairs_of(store: KgStore, entities: Iterable[int], max_answers: int) -> dict[int, list[tuple[bool, list[int]]]]:
    """Subject-relation pairs of some entities: whether the entity is the subject, and all usable triples of the pair.

    Where the entity is the object, the pair is that of the triple's subject, with all its objects.  Pairs of more than
    max_answers triples are left out.  In order of the first triple.
    """
    rows = store.connection.execute(
        """
        WITH drawn AS (SELECT DISTINCT unnest($1::BIGINT[]) AS entity), pairs AS (
          SELECT DISTINCT entity, TRUE AS forward, u.head, u.relation FROM drawn JOIN usable u ON u.head = entity
          UNION SELECT DISTINCT entity, FALSE, u.head, u.relation FROM drawn JOIN usable u ON u.tail = entity)
        SELECT entity, forward, list(u.id ORDER BY u.id) AS triples
        FROM pairs p JOIN usable u ON u.head = p.head AND u.relation = p.relation
        GROUP BY entity, forward, p.head, p.relation HAVING count(*) <= $2
        ORDER BY entity, triples[1], forward DESC""",
        [list(entities), max_answers],
    ).fetchall()
    pairs: dict[int, list[tuple[bool, list[int]]]] = {}
    for entity, forward, triples in rows:
        pairs.setdefault(entity, []).append((bool(forward), list(triples)))
    return pairs


def _counts(store: KgStore, options: SamplingOptions) -> dict[str, int]:
    row = store.connection.execute(
        """
        SELECT (SELECT count(*) FROM triples), (SELECT count(*) FROM usable),
          (SELECT count(*) FROM triples WHERE relation IN (FROM dropped)),
          (SELECT count(*) FROM entities WHERE kind = 'entity'),
          (SELECT count(*) FROM entities WHERE kind = 'entity' AND id NOT IN (FROM named)),
          (SELECT count(*) FROM both_ways JOIN entities USING (id) WHERE kind = 'entity' AND triples < $1),
          (SELECT count(*) FROM both_ways JOIN entities USING (id) WHERE kind = 'entity' AND triples > $2)""",
        [options.min_triples, options.max_triples],
    ).fetchone()
    names = (
        "triples", "triples_usable", "triples_not_informative", "entities", "without_name", "too_few_triples",
        "too_many_triples",
    )  # fmt: skip
    return dict(zip(names, map(int, row or ()), strict=True))
