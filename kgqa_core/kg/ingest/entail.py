"""What the vocabulary of OWL, SKOS and RDF says: facts that follow are derived, and what declares is no fact.

Works on the staged statements, as integers, before their meaning is worked out, and does nothing to a graph without
such vocabulary.  Derived statements are added to those that were read, at most `MAX_DERIVED`.  The table `entailed`
keeps what was changed: statements that were read and are no longer there (stated), and those that nobody made, each
with the axiom that it follows from; `restate.record` stores it as amends.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from kgqa_core.config import KgOptions
from kgqa_core.kg.ingest import class_facts
from kgqa_core.kg.ingest.staging import Staged
from kgqa_core.kg.names import bare_key, is_blank_node
from kgqa_core.kg.sql import execute_with, number, quoted
from kgqa_core.kg.vocabulary import (
    ALIAS,
    CONSTRUCT_TYPES,
    LANGUAGES,
    OWL,
    PROPERTY_AXIOMS,
    PROPERTY_TYPES,
    RDF,
    RDF_TYPE,
    RDFS,
    SKOS,
    THING_TYPES,
)
from kgqa_core.monitor import QUIET, Monitor

MAX_DERIVED = 1_000_000
"""Statements that the axioms of properties may derive."""

MAX_AXIOMS = 1_000_000
"""Statements of lists and class expressions that are interpreted; a graph with more keeps them as they are."""

LEVELS = 100
"""Steps of a transitive relation that are followed."""

MAX_NAMES = 100_000
"""Names of a graph from which on they are no facts."""

DESCRIBED = "urn:kgqa:description"
"""The relation of things, and not of classes, to what describes them."""

RULE = "vocabulary: "
"""Rules of statements that are no facts begin with this."""

SAME = OWL + "sameAs"
PREFERRED = SKOS + "prefLabel"
CONSTRUCTS = tuple(OWL + name for name in ("onProperty", "unionOf", "intersectionOf", "complementOf", "oneOf"))
LISTS = (RDF + "first", RDF + "rest")
AXIOMS = (RDFS + "domain", RDFS + "range", RDFS + "subPropertyOf")
TRIGGERS = frozenset((*AXIOMS, *LISTS, *PROPERTY_TYPES, *THING_TYPES, *CONSTRUCT_TYPES))

Axiom = tuple[int, bool, int, str]
"""(relation, whether turned, relation that follows, why)."""


def entail(
    connection: duckdb.DuckDBPyConnection, options: KgOptions, staged: Staged, monitor: Monitor = QUIET
) -> dict[str, int]:
    """Derives statements and takes declarations out of the staged ones; `derived`, how many came, if any did or went.

    Needs `terms` and `raw` (or `raw_distinct` beneath it).  What was taken out is in `filtered`, by rule.
    """
    if options.literal:
        return {}
    tids = _vocabulary(connection)
    source = "raw_distinct" if staged.distinct else "raw"
    turned = {key: tids[key] for axiom in PROPERTY_AXIOMS for key in (axiom[0], axiom[2]) if key in tids}
    predicates = connection.execute(
        f"SELECT DISTINCT predicate FROM {source} WHERE list_contains($1, predicate)", [list(turned.values())]
    ).fetchall() if turned else []  # fmt: skip
    if not predicates and not any(key.startswith(OWL) or key in TRIGGERS for key in tids):
        return {}
    for relation in sorted({relation for *_, relation in _name_relations(connection, options, source)}):
        if not number(connection, "SELECT count(*) FROM terms WHERE tag = 0 AND key = ?", [relation]):
            _add_term(connection, source, relation)
    for first, _, then in PROPERTY_AXIOMS:
        for present, absent in ((first, then), (then, first)):
            if (turned.get(present, -1),) in predicates and absent not in tids:
                _add_term(connection, source, absent)
    return _Entailment(connection, options, staged, monitor, _vocabulary(connection)).run()


def _vocabulary(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """The terms of the vocabularies that are there."""
    spaces = (OWL, RDF, RDFS, SKOS)
    named = " OR ".join(f"(key >= '{space}' AND key < '{space[:-1]}$')" for space in spaces)
    return dict(connection.execute(f"SELECT key, tid FROM terms WHERE tag = 0 AND ({named})").fetchall())


def _name_relations(
    connection: duckdb.DuckDBPyConnection, options: KgOptions, source: str
) -> list[tuple[int, int, str]]:
    """(predicate, tag, relation) of names that are facts, too: `Portuguese name`, of aliases `other name`, as IRIs.

    Also of what describes things, as `description`.
    """
    if connection.execute("SELECT 1 FROM terms WHERE tag = 0 AND regexp_matches(key, '^P[0-9]+$') LIMIT 1").fetchone():
        return []  # Wikidata's: in hundreds of languages, and none in its other formats
    roles = dict.fromkeys(map(bare_key, options.label_predicates), "")
    roles |= dict.fromkeys(map(bare_key, options.alias_predicates), "urn:kgqa:other%20name")
    roles |= dict.fromkeys(map(bare_key, options.description_predicates), DESCRIBED)
    rows = connection.execute(
        "SELECT predicate, g.tag, any_value(p.key), any_value(lower(g.datatype[2:])), count(*) "
        f"FROM {source} JOIN terms p ON p.tid = predicate JOIN terms t ON t.tid = object JOIN tags g ON g.tag = t.tag "
        "WHERE list_contains($1, p.key) AND g.tag > 0 GROUP BY predicate, g.tag",
        [list(roles)],
    ).fetchall()
    wanted = {language.casefold().partition("-")[0] for language in options.languages}
    called = {tag: f"urn:kgqa:{language}%20name" for tag, language in LANGUAGES.items() if tag not in wanted}
    named = [(p, tag, roles[key] or called.get(language.partition("-")[0], "")) for p, tag, key, language, _ in rows]
    return [row for row in named if row[2]] if sum(row[-1] for row in rows) <= MAX_NAMES else []


def _add_term(connection: duckdb.DuckDBPyConnection, source: str, key: str) -> None:
    """Adds an entity that no statement has to the terms, in its place in their order."""
    run = connection.execute
    tid = number(connection, "SELECT count(*) FROM terms WHERE tag = 0 AND key < ?", [key])
    run(f"UPDATE terms SET tid = tid + 1 WHERE tid >= {tid}")
    run("INSERT INTO terms VALUES (?, ?, 0)", [tid, key])
    for table, columns in ((source, ("subject", "predicate", "object")), ("raw_qualifiers", ("predicate", "object"))):
        for column in columns:
            run(f"UPDATE {table} SET {column} = {column} + 1 WHERE {column} >= {tid}")


class _Entailment:
    """The staged statements of one build, with the integers of the vocabulary that they have."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, options: KgOptions, staged: Staged, monitor: Monitor,
        tids: dict[str, int],
    ) -> None:  # fmt: skip
        self.connection, self.options, self.monitor, self.tids = connection, options, monitor, tids
        self.distinct = staged.distinct
        self.table = "raw_distinct" if staged.distinct else "raw"
        self.literals = number(connection, "SELECT count(*) FROM terms WHERE tag = 0")
        self.type = tids.get(RDF_TYPE, -1)
        self.derived: dict[str, int] = defaultdict(int)

    def run(self) -> dict[str, int]:
        """Applies every rule; what `entail` returns."""
        run, start = self.connection.execute, time.monotonic()
        run(
            "CREATE TABLE entailed(subject INTEGER, predicate INTEGER, object INTEGER, stated BOOLEAN, reason VARCHAR);"
            "CREATE TABLE same(tid INTEGER, representative INTEGER)"
        )
        before = number(self.connection, "SELECT coalesce(sum(statements), 0) FROM filtered")
        self._merge_same()
        declared = self._instances(PROPERTY_TYPES)
        axioms = self._property_axioms()
        facts = self._structures()
        self._declarations()
        self._derive_properties(axioms)
        self._insert(facts)
        self._drop_properties(declared)
        self._label_by_alias()
        self._names()
        left = number(self.connection, "SELECT coalesce(sum(statements), 0) FROM filtered") - before
        total = sum(self.derived.values())
        if not total and not left:
            run("DROP TABLE entailed; DROP TABLE same")
            return {}
        parts = "".join(f", {count:,} {reason}" for reason, count in sorted(self.derived.items()))
        functional = len(self._instances((OWL + "FunctionalProperty",)))
        self.monitor.note(
            f"vocabulary: {total:,} statements follow{parts}; {left:,} declare and are no facts; {functional:,} "
            f"relations are functional; {time.monotonic() - start:.1f} s (kg.literal=true takes the files as they are)"
        )
        return {"derived": total}

    # -- rules ---------------------------------------------------------------------------------------------------

    def _merge_same(self) -> None:
        """Makes one entity of those that owl:sameAs equates.

        It has the smallest key of those that head other statements, else the smallest of all.
        """
        if SAME not in self.tids:
            return
        same, run = self.tids[SAME], self.connection.execute
        where = f"predicate = {same} AND object < {self.literals}"
        pairs = np.array(self._pairs(SAME), dtype=np.int64).reshape(-1, 2)
        members, ends = np.unique(pairs, return_inverse=True)
        ends = ends.reshape(-1, 2)
        links = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(members), len(members)))
        _, group = connected_components(links, directed=False)
        self._fill("members", tid=members.astype(np.int32), component=group.astype(np.int32))
        run(
            f"""
            INSERT INTO same SELECT tid, representative FROM (
              SELECT tid, first_value(tid) OVER (PARTITION BY component ORDER BY tid NOT IN (
                SELECT subject FROM {self.table} WHERE predicate <> {same}), tid) AS representative FROM members)
            WHERE tid <> representative; DROP TABLE members"""
        )
        self._take_out(where, "owl:sameAs")
        touched = " OR ".join(f"{column} IN (SELECT tid FROM same)" for column in ("subject", "predicate", "object"))
        columns = ", ".join(
            f"coalesce((SELECT any_value(representative) FROM same WHERE tid = {column}), {column}) AS {column}"
            for column in ("subject", "predicate", "object")
        )
        extra = "copies" if self.distinct else "n, rank"
        run(f"CREATE TABLE moved AS SELECT {columns}, {extra} FROM {self.table} WHERE {touched}")
        run(f"INSERT INTO entailed SELECT DISTINCT subject, predicate, object, true, NULL FROM {self.table} "
            f"WHERE {touched}; DELETE FROM {self.table} WHERE {touched}")  # fmt: skip
        run(f"INSERT INTO entailed SELECT DISTINCT subject, predicate, object, false, 'owl:sameAs' FROM moved "
            f"ANTI JOIN {self.table} USING (subject, predicate, object)")  # fmt: skip
        if self.distinct:
            run("""
                CREATE TABLE merged AS SELECT subject, predicate, object, sum(copies)::BIGINT AS copies FROM (
                  FROM moved UNION ALL BY NAME (FROM raw_distinct SEMI JOIN moved USING (subject, predicate, object)))
                GROUP BY ALL;
                DELETE FROM raw_distinct WHERE (subject, predicate, object) IN (
                  SELECT (subject, predicate, object) FROM merged);
                INSERT INTO raw_distinct BY NAME FROM merged; DROP TABLE merged""")
        else:
            run("INSERT INTO raw BY NAME FROM moved")
        run("DROP TABLE moved")

    def _property_axioms(self) -> list[Axiom]:
        """The directed relations that follow from each, closed."""
        edges: dict[tuple[int, bool], dict[tuple[int, bool], str]] = defaultdict(dict)

        def add(first: int, turned: bool, then: int, why: str) -> None:
            edges[first, False].setdefault((then, turned), why)
            edges[first, True].setdefault((then, not turned), why)

        for name, turned in (("subPropertyOf", False), ("equivalentProperty", False), ("inverseOf", True)):
            key = (RDFS if name == "subPropertyOf" else OWL) + name
            for first, then in self._pairs(key):
                why = f"{'sub-property' if name == 'subPropertyOf' else 'inverse' if turned else 'equivalent'} of"
                add(first, turned, then, why)
                if name != "subPropertyOf":
                    add(then, turned, first, why)
        for relation in self._instances((OWL + "SymmetricProperty",)):
            add(relation, True, relation, "symmetric")
        for first_key, why, then_key in PROPERTY_AXIOMS:
            if first_key in self.tids and then_key in self.tids:
                add(self.tids[first_key], True, self.tids[then_key], why)
                add(self.tids[then_key], True, self.tids[first_key], why)
        axioms: list[Axiom] = []
        for start in [node for node in edges if not node[1]]:
            seen, waiting = {start: ""}, [start]
            while waiting:
                node = waiting.pop()
                for other, why in edges.get(node, {}).items():
                    if other not in seen:
                        seen[other] = why
                        waiting.append(other)
            axioms += [(start[0], turned, then, why) for (then, turned), why in seen.items() if why]
        return axioms

    def _derive_properties(self, axioms: Sequence[Axiom]) -> None:
        """Adds what the axioms of properties derive, until nothing new follows or there are too many."""
        run = self.connection.execute
        transitive = sorted(self._instances((OWL + "TransitiveProperty",)))
        rows = list(zip(*axioms, strict=True)) or [(), (), (), ()]
        self._fill("axioms", relation=np.array(rows[0], np.int32), turned=np.array(rows[1], np.bool_),
                   follows=np.array(rows[2], np.int32), reason=np.array(rows[3], dtype=object))  # fmt: skip
        for _ in range(LEVELS):
            came = 0
            if axioms:
                came += self._add(
                    f"""
                    SELECT CASE WHEN turned THEN object ELSE subject END AS subject, follows AS predicate,
                           CASE WHEN turned THEN subject ELSE object END AS object, reason AS kind,
                           reason || ' ' || t.key AS reason
                    FROM {self.table} JOIN axioms ON relation = predicate JOIN terms t ON t.tid = relation
                    WHERE object < {self.literals} OR NOT turned"""
                )
            for relation in transitive:
                came += self._close(relation)
            if not came or not transitive:
                break
        run("DROP TABLE axioms")

    def _close(self, relation: int) -> int:
        """Adds the transitive closure of a relation, a step at a time; how many statements came."""
        came = 0
        for _ in range(LEVELS):
            step = self._add(
                f"""
                SELECT a.subject, {relation} AS predicate, b.object, 'transitive' AS kind,
                       'transitive ' || (SELECT key FROM terms WHERE tid = {relation}) AS reason
                FROM {self.table} a JOIN {self.table} b ON b.subject = a.object
                WHERE a.predicate = {relation} AND b.predicate = {relation} AND a.subject <> b.object"""
            )
            came += step
            if not step:
                break
        return came

    def _structures(self) -> list[tuple[int, int, int, str, str]]:
        """Takes lists, class expressions and other constructs out; the statements that they make."""
        run = self.connection.execute
        present = [self.tids[key] for key in (*CONSTRUCTS, *LISTS) if key in self.tids]
        where = f"predicate IN ({', '.join(map(str, present)) or '-1'})"
        size = number(self.connection, f"SELECT count(*) FROM {self.table} WHERE {where}")
        if size > MAX_AXIOMS:
            self.monitor.note(
                f"{size:,} statements of lists and class expressions, over {MAX_AXIOMS:,}, are plain relations"
            )
            return []
        lists = class_facts.Lists(dict(self._pairs(LISTS[0], every=True)), dict(self._pairs(LISTS[1])),
                                  self.tids.get(RDF + "nil", -1))  # fmt: skip
        constructs = {s for (s,) in run(f"SELECT DISTINCT subject FROM {self.table} WHERE {where}").fetchall()}
        sql = "SELECT tid, key FROM terms WHERE tid IN (SELECT unnest($1::INTEGER[]))"
        keys = dict(run(sql, [sorted(constructs)]).fetchall())
        constructs = {tid for tid in constructs if tid in lists.first or is_blank_node(keys[tid])}
        constructs |= self._instances(CONSTRUCT_TYPES)
        facts: list[tuple[int, int, int, str, str]] = []
        own = sorted({tid for key, tid in self.tids.items() if key.startswith(OWL) or key in LISTS})
        self._fill("constructs", tid=np.array(sorted(constructs), np.int32))
        for subject, relation, node in run(
            f"SELECT DISTINCT subject, predicate, object FROM {self.table} SEMI JOIN constructs ON tid = object "
            "WHERE NOT list_contains($1, predicate) AND subject NOT IN (SELECT tid FROM constructs)",
            [own],
        ).fetchall():
            if node in lists.first:
                facts += [(subject, relation, member, "member of a list", f"member {n} of a list")
                          for n, member in enumerate(dict.fromkeys(lists.members(node)), 1)]  # fmt: skip
        if OWL + "onProperty" in self.tids or OWL + "equivalentClass" in self.tids:
            facts += self._classes(lists, constructs)
        empty = self.tids.get(RDF + "nil", -1)
        self._take_out(f"subject IN (SELECT tid FROM constructs) OR object IN (SELECT tid FROM constructs) "
                       f"OR object = {empty}", "lists and class expressions")  # fmt: skip
        run("DROP TABLE constructs")
        return facts

    def _classes(self, lists: class_facts.Lists, constructs: set[int]) -> Iterator[tuple[int, int, int, str, str]]:
        """What class expressions say of the classes that have names; such classes are instances of those above them."""
        pairs = {
            name: self._pairs((RDFS if name == "subClassOf" else OWL) + name, every=True)
            for name in class_facts.PREDICATES
        }
        return class_facts.facts(pairs, lists, constructs, self.tids.get(RDFS + "subClassOf", -1), self.type)

    def _declarations(self) -> None:
        """Takes out what declares classes and things, and every axiom."""
        types = [self.tids[key] for key in (*PROPERTY_TYPES, *THING_TYPES, *CONSTRUCT_TYPES) if key in self.tids]
        if types:
            self._take_out(f"predicate = {self.type} AND object IN ({', '.join(map(str, types))})", "declarations")
        axioms = [tid for key, tid in self.tids.items() if key in AXIOMS or (key.startswith(OWL) and key != SAME)]
        if axioms:
            self._take_out(f"predicate IN ({', '.join(map(str, axioms))})", "axioms")

    def _drop_properties(self, declared: set[int]) -> None:
        """Takes out what is said of declared properties but the names of those that are relations here."""
        if not declared:
            return
        options, run = self.options, self.connection.execute
        keys = (*options.label_predicates, *options.alias_predicates, *options.description_predicates)
        self._fill("declared", tid=np.array(sorted(declared), np.int32))
        run(f"CREATE TABLE used AS SELECT DISTINCT predicate AS tid FROM {self.table}")
        run("CREATE TABLE naming AS SELECT tid FROM terms WHERE tag = 0 AND list_contains($1, key)",
            [[bare_key(key) for key in keys]])  # fmt: skip
        self._take_out(
            "object IN (SELECT tid FROM declared) OR (subject IN (SELECT tid FROM declared) AND NOT (subject IN "
            "(SELECT tid FROM used) AND predicate IN (SELECT tid FROM naming)))", "about relations")  # fmt: skip
        run("DROP TABLE declared; DROP TABLE used; DROP TABLE naming")

    def _label_by_alias(self) -> None:
        """Gives what SKOS names by alternative labels alone the first of them as its label."""
        alternative, preferred = self.tids.get(ALIAS), self.tids.get(PREFERRED)
        if alternative is not None and preferred is not None:
            named = [bare_key(key) for key in self.options.label_predicates]
            self._add(
                f"""
                SELECT subject, {preferred} AS predicate, min(object) AS object, 'label' AS kind, 'altLabel' AS reason
                FROM {self.table} JOIN terms ON tid = object WHERE predicate = {alternative} AND tag > 0
                AND subject NOT IN (SELECT subject FROM {self.table} WHERE predicate IN (
                  SELECT tid FROM terms WHERE tag = 0 AND key IN ({", ".join(map(quoted, named))})))
                GROUP BY subject, tag"""
            )

    def _names(self) -> None:
        """Makes facts of the names and descriptions of things that questions can ask for."""
        types = f" UNION ALL SELECT object FROM {self.table} WHERE predicate = {self.type}"
        for predicate, tag, relation in _name_relations(self.connection, self.options, self.table):
            self._add(
                f"SELECT subject, (SELECT tid FROM terms WHERE tag = 0 AND key = '{relation}') AS predicate, object, "
                f"'names' AS kind, 'a name' AS reason FROM {self.table} JOIN terms ON tid = object "
                f"WHERE predicate = {predicate} AND tag = {tag} AND subject NOT IN (SELECT predicate FROM {self.table}"
                f"{types if relation == DESCRIBED else ''})"
            )

    # -- plumbing ------------------------------------------------------------------------------------------------

    def _pairs(self, key: str, every: bool = False) -> list[tuple[int, int]]:
        """(subject, object) of a predicate, in order; only of entities unless `every`."""
        if key not in self.tids:
            return []
        entities = "" if every else f" AND object < {self.literals}"
        return self.connection.execute(
            f"SELECT DISTINCT subject, object FROM {self.table} WHERE predicate = {self.tids[key]}{entities} "
            "ORDER BY 1, 2"
        ).fetchall()

    def _instances(self, types: Iterable[str]) -> set[int]:
        """Subjects of type statements."""
        wanted = [self.tids[key] for key in types if key in self.tids]
        sql = (
            f"SELECT subject FROM {self.table} WHERE predicate = {self.type} AND list_contains($1, object) "
            f"UNION SELECT subject FROM entailed WHERE stated AND predicate = {self.type} AND list_contains($1, object)"
        )
        return {tid for (tid,) in self.connection.execute(sql, [wanted]).fetchall()} if wanted else set()

    def _take_out(self, where: str, rule: str) -> None:
        """Takes statements out, and counts them as left out under a rule."""
        run = self.connection.execute
        copies = "coalesce(sum(copies), 0)" if self.distinct else "count(*)"
        run(
            f"INSERT INTO filtered SELECT $1, {copies} AS n FROM {self.table} WHERE {where} HAVING n > 0", [RULE + rule]
        )
        run(
            "INSERT INTO entailed SELECT DISTINCT subject, predicate, object, true, NULL "
            f"FROM {self.table} WHERE {where}"
        )
        run(f"DELETE FROM {self.table} WHERE {where}")

    def _insert(self, facts: Sequence[tuple[int, int, int, str, str]]) -> None:
        """Adds statements."""
        if facts:
            columns = list(zip(*facts, strict=True))
            self._fill(
                "facts_to_add",
                **{name: np.array(columns[k], np.int32) for k, name in enumerate(("subject", "predicate", "object"))},
                kind=np.array(columns[3], dtype=object), reason=np.array(columns[4], dtype=object),
            )  # fmt: skip
            self._add("FROM facts_to_add")
            self.connection.execute("DROP TABLE facts_to_add")

    def _add(self, sql: str) -> int:
        """Adds what a query with (subject, predicate, object, kind, reason) finds and is not there; how many came."""
        run = self.connection.execute
        room = MAX_DERIVED - sum(self.derived.values())
        run(
            f"""
            CREATE OR REPLACE TEMP TABLE coming AS
            SELECT subject, predicate, object, min(kind) AS kind, min(reason) AS reason
            FROM (SELECT DISTINCT * FROM ({sql})) ANTI JOIN {self.table} USING (subject, predicate, object)
            GROUP BY ALL LIMIT {room + 1}"""
        )
        came = number(self.connection, "SELECT count(*) FROM coming")
        if came > room:
            self.monitor.note(f"more than {MAX_DERIVED:,} statements would follow from an axiom; those are left out")
            return 0
        for kind, count in run("SELECT kind, count(*) FROM coming GROUP BY kind").fetchall():
            self.derived[kind] += count
        more = "1 AS copies"
        if not self.distinct:
            order = "row_number() OVER (ORDER BY subject, predicate, object)"
            more = f"0::TINYINT AS rank, (SELECT coalesce(max(n), -1) FROM raw) + {order} AS n"
        run(f"INSERT INTO {self.table} BY NAME SELECT subject, predicate, object, {more} FROM coming")
        run("INSERT INTO entailed SELECT subject, predicate, object, false, reason FROM coming")
        return came

    def _fill(self, table: str, **columns: Any) -> None:
        execute_with(self.connection, f"CREATE TABLE {table} AS SELECT * FROM batch", pa.table(columns))
