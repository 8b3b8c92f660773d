"""The graph in one DuckDB file: its schema, and a read-only view of it.

Ids of a build are dense from 0 and do not depend on the order of the input: entities by key, then literals by
(key, datatype), where the datatype of a string with a language is `@en`; relations by key; triples by
(head, relation, tail).  An update keeps ids of entities and relations, so there may be free ones between.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl

from kgqa_core.closing import Closing
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.attach import attach, base_of
from kgqa_core.kg.bridges import CANONICAL_SQL, canonical
from kgqa_core.kg.names import END_SQL, NAME_SQL, bare_key, key_name, language_order, relation_name
from kgqa_core.kg.sql import quoted, registered
from kgqa_core.store.artifacts import VOLATILE

SCHEMA_VERSION = 2

FILE = "kg.duckdb"
_FEW = 100
"""Rows that are given to a query as its parameters, for a table that is registered costs more."""
_MOST_KNOWN, _MOST_ROWS, _MOST_TEXTS = 4096, 1000, 50_000
"""Queries whose rows are cached, rows of one, and ids whose names and keys are cached."""

READING = f"{VOLATILE}/reading.json"
"""What a build counted while it read, beside its graph."""

REMOVED = "<removed>-"
"""Prefix of what stands in the place of a relation that an update removed."""

SCHEMA: dict[str, str] = {
    "entities": "id INTEGER, key VARCHAR, kind VARCHAR, datatype VARCHAR, number DOUBLE, unit VARCHAR, "
    "time TIMESTAMP, precision INTEGER, calendar VARCHAR, popularity BIGINT, views BIGINT, detail VARCHAR",
    "labels": "id INTEGER, lang VARCHAR, label VARCHAR, description VARCHAR",
    "aliases": "id INTEGER, lang VARCHAR, alias VARCHAR",
    "relations": "id INTEGER, key VARCHAR, datatype VARCHAR",
    "relation_labels": "id INTEGER, lang VARCHAR, label VARCHAR",
    "triples": "id BIGINT, head INTEGER, relation INTEGER, tail INTEGER, rank TINYINT",
    "qualifiers": "triple BIGINT, statement INTEGER, relation INTEGER, value INTEGER",
    "types": "entity INTEGER, type INTEGER",
    "subtypes": "type INTEGER, super INTEGER",
    "supertypes": "type INTEGER, super INTEGER",
    "bridges": "entity INTEGER, relation VARCHAR, value VARCHAR",
    "amends": "subject VARCHAR, predicate VARCHAR, object VARCHAR, datatype VARCHAR, detail VARCHAR, stated BOOLEAN",
    "filtered": "rule VARCHAR, statements BIGINT",
    "rejects": "source VARCHAR, line BIGINT, reason VARCHAR, text VARCHAR",
    "meta": "key VARCHAR, value VARCHAR",
}
"""Columns of every table.

kind: `entity` or `literal`.  datatype of a literal: the IRI of its datatype, or `@` and its language; of a relation:
`entity` when all its objects are entities, the datatype when all are literals of one, else `mixed`.
number: finite value of a numeric literal, or a date's decimal year, which sorts dates however far; unit: the key of a
number's unit.  time, precision, calendar: a date in UTC, 9 for a year, 10 month, 11 day, 14 second (Wikidata's scale),
`gregorian` or `julian`.  popularity: degree; views: page views, where a file of them was given; detail: what else tells
a literal apart, as `base.TERM`.  qualifiers: `statement` numbers the distinct sets of qualifiers of one triple from 0.
subtypes: as stated; supertypes: up to 100 levels above the types that entities have.  bridges: ids of an entity in
other graphs, Freebase's as `m.0abc`.  filtered: statements left out, by rule; rules that begin with `qualifier` count
qualifiers.  labels: one row per entity and language; `lang` is empty for a label without language.  amends: statements
that no other table tells, or (`stated` false) that one tells and nobody made, see `kg.restate`.  rank: -1 deprecated, 0
normal, 1 preferred.  meta: values are JSON.
"""


def create_tables(connection: duckdb.DuckDBPyConnection, database: str) -> None:
    """Creates the empty tables of SCHEMA in an attached database."""
    for table, columns in SCHEMA.items():
        connection.execute(f"CREATE TABLE {database}.{table}({columns})")


BLANK_NODES_NAMED = "blank_nodes_named"
"""The count of blank nodes that were named by what they hold (`ingest/made_names.py`), where any were."""


class KgStore(Closing):
    """A graph that was built, opened for reading; use it as a context manager.

    Ids that are not in the graph are left out of answers.  Many processes may hold one graph open, and many threads of
    one read it; `connection` reads its tables and no other file.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path, meta: dict[str, Any] | None = None) -> None:
        self._opened, self._thread, self._lock = connection, threading.local(), threading.Lock()
        self._thread.connection = connection
        self.path = path
        self.meta: dict[str, Any] = meta or {
            key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM meta").fetchall()
        }
        self.languages: tuple[str, ...] = tuple(self.meta.get("languages", ("en", "")))
        self._known: dict[tuple[object, ...], list[tuple[Any, ...]]] = {}
        self._names: dict[int, str] = {}
        self._keys: dict[int, str] = {}

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """This thread's connection, as one serves one at a time; only that of the first has its temporary tables."""
        own: duckdb.DuckDBPyConnection | None = getattr(self._thread, "connection", None)
        if own is None:
            own = self._thread.connection = self._another()
        return own

    def _another(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            connection = self._opened.cursor()
        connection.execute("USE kg")
        return connection

    @property
    def base(self) -> Path | None:
        """The file of the graph beneath, where this one is an overlay (`kg.overlay`)."""
        return base_of(self.path)

    @classmethod
    def open(cls, folder_or_file: Path) -> KgStore:
        """The graph in a kg artifact's folder, or in a DuckDB file.  Raises ArtifactError."""
        path = Path(folder_or_file)
        path = path / FILE if path.is_dir() else path
        if not path.is_file():
            raise ArtifactError(f"there is no graph at {path}; `kgqa kg build FILE… --out DIR` makes one")
        try:
            # An instance of its own, so that other readers of the file in this process may have other settings.
            connection = duckdb.connect(":memory:", config={"threads": 2})
            try:
                attach(connection, path)
                connection.execute("USE kg")
                store = cls(connection, path)
                if store.meta.get("schema_version") != SCHEMA_VERSION:
                    raise ArtifactError(
                        f"{path} has graph schema {store.meta.get('schema_version')!r}, but this version reads "
                        f"{SCHEMA_VERSION}; build the graph again"
                    )
            except BaseException:
                connection.close()
                raise
        except (duckdb.Error, ValueError) as fault:
            if not is_database(path):
                raise ArtifactError(
                    f"{path} is not a built graph; if it is a graph file, `kgqa kg build {path} --out FOLDER` builds it"
                ) from None
            raise ArtifactError(
                f"{path} is not a graph of ours, or is damaged ({_first_line(fault)}); build it again"
            ) from None
        return store

    def for_thread(self) -> KgStore:
        """The same open graph, with a connection that is interrupted and closed alone; it also goes with this one."""
        return KgStore(self._another(), self.path, self.meta)

    def close(self) -> None:
        """Lets the file go."""
        self._opened.close()

    # -- sizes -------------------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """What the build counted: entities (without literals), literals, relations, triples, rejects, …"""
        return dict(self.meta["counts"])

    # -- names -------------------------------------------------------------------------------------------------

    def names(self, ids: Iterable[int], languages: Sequence[str] | None = None) -> dict[int, str]:
        """The best label of each id, else what its key says (`names.key_name`); a literal's key.

        languages: in order of preference, by default the graph's; what comes after them is as `names.language_order`.
        """
        if languages is None:
            return self._cached(self._names, ids, lambda new: self._find_names(new, None))
        return self._find_names(ids, languages)

    def _find_names(self, ids: Iterable[int], languages: Sequence[str] | None) -> dict[int, str]:
        wanted = self._frame(ids)
        if not wanted.height:
            return {}
        rows = self._rows(
            f"""
            SELECT e.id, e.key, e.kind = 'literal', best.label FROM wanted w JOIN entities e USING (id)
            LEFT JOIN (SELECT l.id, arg_min(l.label, ({self._language_rank("l.lang", languages)}, l.lang)) AS label
                       FROM labels l JOIN wanted USING (id) WHERE l.label IS NOT NULL GROUP BY l.id) best
                   ON best.id = e.id
            ORDER BY e.id""",
            wanted,
        )
        return {i: label if label is not None else key if literal else key_name(key) for i, key, literal, label in rows}

    def surface_forms(self, ids: Iterable[int]) -> dict[int, list[str]]:
        """Every name of each id: the best one first, then other labels, then aliases, without repetition."""
        wanted = self._frame(ids)
        if not wanted.height:
            return {}
        forms = {i: [name] for i, name in self.names(wanted["id"].to_list()).items()}
        rows = self._query(
            f"""
            SELECT id, form FROM (
              SELECT id, label AS form, 0 AS kind, lang FROM labels JOIN wanted USING (id) WHERE label IS NOT NULL
              UNION ALL SELECT id, alias, 1, lang FROM aliases JOIN wanted USING (id))
            ORDER BY id, kind, {self._language_rank("lang", None)}, lang, form""",
            wanted,
        )
        for i, form in rows:
            if form not in forms[i]:
                forms[i].append(form)
        return forms

    def description(self, i: int) -> str | None:
        """The description of an entity in the best language that has one."""
        row = self.connection.execute(
            f"SELECT description FROM labels WHERE id = ? AND description IS NOT NULL "
            f"ORDER BY {self._language_rank('lang', None)}, lang LIMIT 1",
            [i],
        ).fetchone()
        return None if row is None else str(row[0])

    def entity_keys(self, ids: Iterable[int]) -> dict[int, str]:
        """The key of each entity or literal."""
        sql = "SELECT id, key FROM wanted JOIN entities USING (id) ORDER BY id"
        return self._cached(self._keys, ids, lambda new: dict(self._rows(sql, self._frame(new))))

    def entity_ids(self, keys: Iterable[str]) -> dict[str, int]:
        """The id of each of these keys that an entity of the graph has, in order of id."""
        sql = "SELECT key, id FROM entities WHERE kind = 'entity' AND key IN (SELECT unnest($1::VARCHAR[])) ORDER BY id"
        return dict(self.connection.execute(sql, [sorted(keys)]).fetchall())

    def relation_keys(self) -> list[str]:
        """Keys of the relations; the position is the id.  An id that an update left free has the key `<removed>-ID`."""
        return self._by_id(self._query("SELECT id, key FROM relations ORDER BY id"))

    def relation_names(self) -> list[str]:
        """Best labels of the relations, else names of their keys (`names.relation_name`); the position is the id."""
        rows = self._query(
            f"""
            SELECT id, key, (SELECT arg_min(label, ({self._language_rank("lang", None)}, lang)) FROM relation_labels l
                             WHERE l.id = r.id) FROM relations r ORDER BY r.id"""
        )
        return self._by_id([(i, label if label is not None else relation_name(key)) for i, key, label in rows])

    # -- finding -----------------------------------------------------------------------------------------------

    def resolve(self, texts: Sequence[str]) -> dict[str, list[int]]:
        """Ids that each text may mean, ascending: a key, else bridge, else label, else alias, else name or literal.

        A bridge is an id of another graph, as `/m/0abc`; the name is that of an entity without label, or the end of its
        key.  A text in angle brackets is an IRI.  Texts that mean nothing have an empty list.
        """
        results: dict[str, list[int]] = {text: [] for text in texts}
        steps = (
            "SELECT DISTINCT w.text, e.id FROM wanted w JOIN entities e ON e.key = w.bare AND e.kind = 'entity'",
            _BRIDGED,
            "SELECT DISTINCT w.text, l.id FROM wanted w JOIN labels l ON l.label = w.text",
            "SELECT DISTINCT w.text, a.id FROM wanted w JOIN aliases a ON a.alias = w.text",
            *(
                f"""SELECT DISTINCT w.text, e.id FROM wanted w JOIN (
                    SELECT id, {name.format(key="key")} AS name FROM entities
                    WHERE kind = 'entity' AND id NOT IN (SELECT id FROM labels WHERE label IS NOT NULL)
                  ) e ON e.name = w.text"""
                for name in (NAME_SQL, END_SQL)
            ),
            "SELECT DISTINCT w.text, e.id FROM wanted w JOIN entities e ON e.key = w.text AND e.kind = 'literal'",
        )
        for step in steps:
            missing = [text for text, ids in results.items() if not ids]
            if not missing:
                break
            if step is _BRIDGED and not self.counts().get("bridges") and all(canonical(t) == t for t in missing):
                continue
            bare = [bare_key(text) for text in missing]
            frame = pl.DataFrame({"text": missing, "bare": bare}, schema={"text": pl.String, "bare": pl.String})
            for text, i in self._query(f"{step} ORDER BY 1, 2", frame):
                results[text].append(i)
        return results

    def bridges(self, ids: Iterable[int]) -> dict[int, list[tuple[str, str]]]:
        """(relation, value) of each entity's ids in other graphs, in order; entities without are left out."""
        results: dict[int, list[tuple[str, str]]] = {}
        sql = "SELECT entity, relation, value FROM wanted JOIN bridges ON entity = id ORDER BY ALL"
        for i, relation, value in self._query(sql, self._frame(ids)):
            results.setdefault(i, []).append((relation, value))
        return results

    def suggest(self, text: str) -> str | None:
        """The label, alias or key nearest to a text, for a hint in an error; None when nothing is near."""
        # nothing that is shorter than a fifth of the text is so similar
        row = self.connection.execute(
            f"""
            SELECT form FROM (
              SELECT label AS form, 0 AS kind FROM labels WHERE label IS NOT NULL UNION ALL SELECT alias, 1 FROM aliases
              UNION ALL SELECT {NAME_SQL.format(key="key")}, 0 FROM entities WHERE kind = 'entity'
              UNION ALL SELECT key, 2 FROM entities WHERE kind = 'entity')
            WHERE 6 * strlen(form) >= strlen($1) AND jaro_winkler_similarity(lower(form), lower($1)) > 0.84
            ORDER BY damerau_levenshtein(lower(form), lower($1)), kind, form LIMIT 1""",
            [text],
        ).fetchone()
        return None if row is None else str(row[0])

    def triples(self, ids: Iterable[int]) -> dict[int, tuple[int, int, int]]:
        """(head, relation, tail) of each triple id."""
        sql = "SELECT t.id, head, relation, tail FROM wanted JOIN triples t USING (id) ORDER BY t.id"
        return {i: (head, relation, tail) for i, head, relation, tail in self._query(sql, self._frame(ids))}

    def qualifiers(self, triples: Iterable[int]) -> dict[int, list[list[tuple[int, int]]]]:
        """(relation, value) of each qualified statement of each triple, in order; triples without are left out."""
        results: dict[int, list[list[tuple[int, int]]]] = {}
        sql = "SELECT triple, statement, relation, value FROM wanted JOIN qualifiers ON triple = id ORDER BY ALL"
        for triple, statement, relation, value in self._query(sql, self._frame(triples)):
            statements = results.setdefault(triple, [])
            if statement == len(statements):
                statements.append([])
            statements[statement].append((relation, value))
        return results

    def derivations(self, triples: Iterable[int]) -> dict[int, str]:
        """Why each triple that no file states is there: the axiom that it follows from; others are left out."""
        if not self.counts().get("derived"):
            return {}
        sql = (
            "SELECT x.id, min(a.detail) FROM wanted JOIN triples x USING (id) JOIN entities h ON h.id = x.head "
            "JOIN relations r ON r.id = x.relation JOIN entities t ON t.id = x.tail JOIN amends a ON NOT a.stated "
            "AND a.subject = h.key AND a.predicate = r.key AND a.object = t.key "
            "AND a.datatype IS NOT DISTINCT FROM t.datatype WHERE a.detail IS NOT NULL GROUP BY x.id ORDER BY x.id"
        )
        return dict(self._query(sql, self._frame(triples)))

    def list_order(self, triples: Iterable[int]) -> dict[int, int]:
        """The places of those tails of triples that are members of RDF lists, one list after the other."""
        why = self.derivations(triples)
        place = {triple: int(text.split()[1]) for triple, text in why.items() if text.endswith(" of a list")}
        rows = sorted((*ends[:2], place[triple], ends[2]) for triple, ends in self.triples(place).items())
        return {tail: n for n, tail in enumerate(dict.fromkeys(tail for *_, tail in rows))}

    # -- plumbing ----------------------------------------------------------------------------------------------

    @staticmethod
    def _by_id(rows: Sequence[tuple[int, str]]) -> list[str]:
        """Texts at the places of their ids, with placeholders at those that are free."""
        texts = [f"{REMOVED}{number}" for number in range(rows[-1][0] + 1)] if rows else []
        for i, text in rows:
            texts[i] = text
        return texts

    def _query(self, sql: str, wanted: pl.DataFrame | None = None) -> list[tuple[Any, ...]]:
        """Rows of a query, which are cached where it is about few things or none."""
        if wanted is not None and wanted.height > _FEW:
            return self._rows(sql, wanted)
        asked = (sql, *(() if wanted is None else wanted.rows()))
        if (known := self._known.get(asked)) is not None:
            return known
        rows = self._rows(sql, wanted)
        if len(rows) <= _MOST_ROWS:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[asked] = rows
        return rows

    def _rows(self, sql: str, wanted: pl.DataFrame | None) -> list[tuple[Any, ...]]:
        if wanted is None:
            return self.connection.execute(sql).fetchall()
        if wanted.height > _FEW:
            with registered(self.connection, wanted=wanted):
                return self.connection.execute(sql).fetchall()
        given = ", ".join(
            f"unnest(${n}::{'BIGINT' if kind == pl.Int64 else 'VARCHAR'}[]) AS {name}"
            for n, (name, kind) in enumerate(wanted.schema.items(), 1)
        )
        lists = [column.to_list() for column in wanted]
        return self.connection.execute(f"WITH wanted AS (SELECT {given}) {sql}", lists).fetchall()

    @staticmethod
    def _cached(
        known: dict[int, str], ids: Iterable[int], find: Callable[[list[int]], dict[int, str]]
    ) -> dict[int, str]:
        """What is known of ids, ascending, and what is found of the others; threads share what is known."""
        wanted = sorted(set(map(int, ids)))
        found = {i: text for i in wanted if (text := known.get(i)) is not None}
        if new := [i for i in wanted if i not in found]:
            own = find(new)
            if len(own) <= _MOST_TEXTS:
                if len(known) + len(own) > _MOST_TEXTS:
                    known.clear()
                known.update(own)
            found |= own
        return {i: found[i] for i in wanted if i in found}

    @staticmethod
    def _frame(ids: Iterable[int]) -> pl.DataFrame:
        array = np.unique(np.fromiter(ids, dtype=np.int64))
        return pl.DataFrame({"id": array}, schema={"id": pl.Int64})

    def _language_rank(self, column: str, languages: Sequence[str] | None) -> str:
        order = language_order(self.languages if languages is None else languages)
        cases = " ".join(
            f"WHEN starts_with({column}, {quoted(lang[:-1])}) THEN {rank}"
            if lang.endswith("*")
            else f"WHEN {column} = {quoted(lang)} THEN {rank}"
            for rank, lang in enumerate(order)
        )
        return f"CASE {cases} ELSE {len(order)} END" if order else "0"


_BRIDGED = f"""
    SELECT DISTINCT w.text, b.entity FROM wanted w JOIN bridges b ON b.value = {CANONICAL_SQL.format(text="w.bare")}
    UNION SELECT w.text, e.id FROM wanted w JOIN entities e
    ON e.key = {CANONICAL_SQL.format(text="w.bare")} AND e.kind = 'entity' AND e.key <> w.bare"""
"""Entities by their id in another graph, or by another spelling of a Freebase key."""


def is_database(path: Path) -> bool:
    """Whether a file begins as those of DuckDB do, or cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except OSError:
        return True


def write_meta(connection: duckdb.DuckDBPyConnection, database: str, meta: Mapping[str, Any]) -> None:
    """Puts JSON values into the meta table, in key order."""
    rows = [(key, json.dumps(value, sort_keys=True, ensure_ascii=False)) for key, value in sorted(meta.items())]
    connection.executemany(f"INSERT INTO {database}.meta VALUES (?, ?)", rows)


def _first_line(fault: Exception) -> str:
    return str(fault).strip().splitlines()[0] if str(fault).strip() else type(fault).__name__
