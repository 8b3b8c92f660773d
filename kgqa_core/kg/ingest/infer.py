"""Datatypes of relations whose source has none, and numbers in strings: decided for a relation as a whole.

Runs between staging and `interpret.select`.  A relation of texts without type (`TEXT`) whose values nearly all are
numbers, dates or booleans gets literals of that datatype.  Of strings that nearly all are numbers with units
(`kg.text_numbers`) the text stays what it is, and gets a number and a unit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import duckdb
import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.base import LITERAL, TEXT
from kgqa_core.kg.ingest.staging import Staged
from kgqa_core.kg.names import bare_key, key_name, relation_name
from kgqa_core.kg.sql import drop, execute_with, number, quoted
from kgqa_core.kg.text_dates import SHAPE, date_formats
from kgqa_core.kg.text_numbers import LIKE, LONGEST, decimal_mark, quantity
from kgqa_core.kg.vocabulary import STRING, XSD
from kgqa_core.monitor import Monitor

SHARE = 0.9
"""Share of a relation's values that must be of a kind."""

FEWEST = 2
"""A relation with fewer values shows nothing."""

HEADS = 0.25
"""Share of a relation's distinct values that may have facts of their own; where more have, they are entities."""

MARKED = 0.05
"""Share of a relation's strings that must have a unit, a decimal mark or groups of digits; the others may be codes."""

SAMPLE = 10_000
"""Distinct values from which the decimal mark and the unit of a relation are found."""

ROWS = 50_000
"""Distinct values that are in memory at once."""

INTEGER = r"^[+-]?(0|[1-9]\d{0,17})$"
"""Without leading zeros, which codes have."""

_PATTERNS = {
    "boolean": "^(?i:true|false)$",
    "integer": INTEGER,
    "decimal": r"^[+-]?(0|[1-9]\d{0,17})\.\d+$",
    "double": r"^[+-]?(0|[1-9]\d*)(\.\d+)?[eE][+-]?\d{1,3}$",
    "date": r"^-?\d{4,6}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$",
    "dateTime": r"^-?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?$",
    "gYearMonth": r"^-?\d{4,6}-(0[1-9]|1[0-2])$",
}
_KIND = "CASE " + " ".join(f"WHEN regexp_matches(key, '{p}') THEN '{name}'" for name, p in _PATTERNS.items()) + " END"
_NUMBERS, _DATES = ("integer", "decimal", "double"), ("date", "dateTime", "gYearMonth")
_YEAR = r"regexp_matches(key, '^-?\d{4}$')"
_RECENT = r"regexp_matches(key, '^(1\d{3}|20\d{2})$')"
_TIMED = re.compile(
    r"\b(year|date|born|birth|died|death|founded|released?|since|until|published|built|established|opened|closed|"
    r"started?|ended?|created|formed|launched|elected|joined|hired|signed|introduced|completed|made)\b|\bin$"
)
"""Names of relations whose whole numbers of four digits are years."""
_TYPED = rf"{_PATTERNS['boolean']}|^-?\d{{4,6}}-\d\d(-|$)|{SHAPE}"
"""What only values without datatype may be, as one pattern."""

_STRINGS = f"SELECT tag FROM tags WHERE datatype IN ('', {quoted(STRING)})"

TYPE_NAMES = frozenset({"a", "isa", "isan", "instanceof", "type", "hastype"})
"""What relations that give types are called, without spaces and in lower case."""

NAMING = ("label", "pref label", "name", "full name", "fn", "formatted name", "display name", "title")
"""What relations that give names are called, best first."""


def infer(connection: duckdb.DuckDBPyConnection, options: KgOptions, staged: Staged, monitor: Monitor) -> KgOptions:
    """Changes what was staged: terms, `raw`, and `text_numbers(tid, number, unit)`; notes what was guessed.

    `inferred(relation, datatype, parsed, left_as_text)` has a row for each relation that was changed; its datatype is
    null where strings stay strings, `type` or `label` where it gives these.  Returns the options with those relations.
    """
    run = connection.execute
    run("CREATE TABLE inferred(relation VARCHAR, datatype VARCHAR, parsed BIGINT, left_as_text BIGINT)")
    run("CREATE TABLE text_numbers(tid INTEGER, number DOUBLE, unit VARCHAR)")
    options = _with_names(connection, _with_types(connection, options, staged, monitor), staged, monitor)
    if not options.infer_values:
        return options
    sql = "SELECT tid FROM terms WHERE tag = 0 AND list_contains($1, key)"
    texts = run(sql, [sorted(staged.text_predicates)]).fetchall() if staged.text_predicates else []
    patterns = f"regexp_matches(key, {quoted(LIKE)})" + (f" OR regexp_matches(key, '{_TYPED}')" if texts else "")
    first = "key < ':' OR key >= '\u00a2' OR key[1:3] IN ('EUR', 'USD', 'GBP', 'CHF', 'JPY', 'INR', 'US$')"
    first += " OR strlen(key) < 6" if texts else ""
    tags = _STRINGS + (" OR tag = 0" if texts else "")
    run(
        f"CREATE TABLE value_like AS SELECT tid FROM terms "
        f"WHERE tag IN ({tags}) AND strlen(key) <= {LONGEST} AND ({first}) AND ({patterns})"
    )
    if number(connection, "SELECT count(*) FROM value_like"):
        _Relations(connection, options, staged, {tid for (tid,) in texts}, monitor).infer()
    run("DROP TABLE value_like")
    return options


def _with_types(
    connection: duckdb.DuckDBPyConnection, options: KgOptions, staged: Staged, monitor: Monitor
) -> KgOptions:
    """The options, with a relation that is called as those of types among them, where no statement gives a type."""
    names = {re.sub("[ _-]", "", key).casefold(): key for key in sorted(staged.text_predicates, reverse=True)}
    keys = [names[name] for name in sorted(TYPE_NAMES & names.keys())]
    if not keys or not options.infer_types:
        return options
    sql = "SELECT count(*) FROM raw SEMI JOIN (FROM terms WHERE tag = 0 AND list_contains($1, key)) ON tid = predicate"
    if number(connection, sql, [[bare_key(key) for key in options.type_predicates]]):
        return options
    for key in keys:
        count = number(connection, sql, [[key]])
        connection.execute("INSERT INTO inferred VALUES (?, 'type', ?, 0)", [key, count])
        monitor.note(f"{key}: {count:,} statements are read as types, since none are declared (kg.infer_types)")
    return options.model_copy(update={"type_predicates": (*options.type_predicates, *keys)})


def _with_names(
    connection: duckdb.DuckDBPyConnection, options: KgOptions, staged: Staged, monitor: Monitor
) -> KgOptions:
    """The options, with relations that are called as names among those of labels, where their subjects have none."""
    if not options.infer_types or options.literal:
        return options
    table, labels = "raw_distinct" if staged.distinct else "raw", [*map(bare_key, options.label_predicates)]
    named = f"SELECT subject FROM {table} JOIN terms ON tid = predicate WHERE list_contains($1, key)"
    others = {*labels, *map(bare_key, (*options.alias_predicates, *options.description_predicates))}
    sql = f"SELECT key, tid FROM terms WHERE tid IN (SELECT DISTINCT predicate FROM {table})"
    called = [(relation_name(key).casefold().removeprefix("has "), key, tid)
              for key, tid in connection.execute(sql).fetchall() if key not in others]  # fmt: skip
    for _, key, tid in sorted((NAMING.index(name), key, tid) for name, key, tid in called if name in NAMING):
        [(things, values, labelled)] = connection.execute(
            "SELECT count(DISTINCT subject), count(DISTINCT object), count(DISTINCT subject) FILTER "
            f"(subject IN ({named})) FROM {table} WHERE predicate = {tid} AND object >= {staged.entities}",
            [labels],
        ).fetchall()
        if things >= FEWEST and SHARE * things <= values <= things / SHARE and labelled <= (1 - SHARE) * things:
            labels.append(key)
            connection.execute("INSERT INTO inferred VALUES (?, 'label', ?, 0)", [key, things])
            monitor.note(f"{key_name(key)}: the names of {things:,} things that have no label (kg.infer_types)")
    return options.model_copy(update={"label_predicates": tuple(labels)})


def undecided(statements: pl.DataFrame, options: KgOptions, names: Sequence[str]) -> bool:
    """Whether statements that come or go may change what `infer` decides.  names: predicates of texts."""
    naming = any(relation_name(key) in NAMING for key in {*statements["predicate"]}.difference(names))
    if (naming and options.infer_types) or not options.infer_values or "kind" not in statements.columns:
        return naming and options.infer_types
    text, datatype = pl.col("object"), pl.col("datatype") if "datatype" in statements.columns else pl.lit("")
    like = text.str.contains(LIKE) & (text.str.len_bytes() <= LONGEST)
    untyped = (pl.col("kind") == TEXT) & (like | text.str.contains(_TYPED))
    string = (pl.col("kind") == LITERAL) & datatype.fill_null("").is_in(["", STRING]) & like & text.str.contains(r"\D")
    return bool(statements.select(((untyped | string) & ~pl.col("predicate").is_in(names)).any()).item())


def record(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """What the meta of a graph says of what was inferred; empty where nothing was."""
    rows = connection.execute("FROM inferred ORDER BY relation").fetchall()
    names = ("datatype", "parsed", "left_as_text")
    return {"inferred": {relation: dict(zip(names, row, strict=True)) for relation, *row in rows}} if rows else {}


class _Relations:
    """The relations that have values which look like numbers, dates or booleans."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, options: KgOptions, staged: Staged, texts: set[int],
        monitor: Monitor,
    ) -> None:  # fmt: skip
        self._connection, self._staged, self._texts, self._monitor = connection, staged, texts, monitor
        self._literals = staged.entities
        self._table = "raw_distinct" if staged.distinct else "(SELECT DISTINCT subject, predicate, object FROM raw)"
        roles = (
            *options.label_predicates, *options.alias_predicates, *options.description_predicates,
            *options.type_predicates, *options.subtype_predicates,
        )  # fmt: skip
        self._roles = [bare_key(role) for role in roles]
        self._changed = False

    def infer(self) -> None:
        """Decides every relation, and changes the tables."""
        run = self._connection.execute
        run("CREATE TABLE conversions(predicate INTEGER, object INTEGER, key VARCHAR, datatype VARCHAR)")
        run("CREATE TABLE read_texts(key VARCHAR, number DOUBLE, unit VARCHAR)")
        predicates = run(
            f"SELECT p.tid, p.key FROM (SELECT predicate, count(*) AS hits FROM {self._table} s "
            f"SEMI JOIN value_like v ON v.tid = s.object GROUP BY predicate) JOIN terms p ON p.tid = predicate "
            f"WHERE hits >= {FEWEST} AND NOT list_contains($1, p.key) ORDER BY p.key",
            [self._roles],
        ).fetchall()
        self._values([tid for tid, _ in predicates])
        for tid, key in predicates:
            self._decide(tid, key)
        if self._changed:
            self._convert()
        run(
            f"INSERT INTO text_numbers SELECT t.tid, arg_min(n.number, n.rowid), arg_min(n.unit, n.rowid) "
            f"FROM read_texts n JOIN terms t ON t.key = n.key "
            f"WHERE tag IN ({_STRINGS}) GROUP BY t.tid"
        )
        for table in ("conversions", "read_texts", "relation_values", "values_of_all"):
            run(f"DROP TABLE IF EXISTS {table}")

    def _values(self, predicates: Sequence[int]) -> None:
        """values_of_all(predicate, tid, key, n, entity, kind, head): the texts of relations; head: it has facts."""
        run, own = self._connection.execute, ", ".join(map(str, predicates)) or "-1"
        untyped = ", ".join(map(str, sorted(self._texts & set(predicates)))) or "-1"
        run(
            f"CREATE TABLE values_of_all AS SELECT v.*, {_KIND} AS kind, s.subject IS NOT NULL AS head FROM "
            f"(SELECT s.predicate, t.tid, t.key, count(*) AS n, t.tag = 0 AS entity FROM {self._table} s "
            f"JOIN terms t ON t.tid = s.object WHERE s.predicate IN ({own}) "
            f"AND (t.tag IN ({_STRINGS}) OR (t.tag = 0 AND s.predicate IN ({untyped}))) GROUP BY ALL) v "
            f"LEFT JOIN (SELECT DISTINCT subject FROM {self._table}) s ON s.subject = v.tid"
        )

    def _decide(self, predicate: int, key: str) -> None:
        """Finds out what the values of one relation are, and notes how they change."""
        untyped = predicate in self._texts
        self._connection.execute(
            "CREATE OR REPLACE TABLE relation_values AS SELECT * EXCLUDE predicate FROM values_of_all "
            f"WHERE predicate = {predicate}"
        )
        total = number(self._connection, "SELECT sum(n) FROM relation_values")
        hits = number(self._connection, "SELECT sum(n) FROM relation_values SEMI JOIN value_like USING (tid)")
        if total < FEWEST or hits < SHARE * total:
            return
        if untyped and self._entities():
            return
        if untyped and (formats := date_formats(self._connection.sql("SELECT key FROM relation_values").pl()["key"])):
            self._dates(predicate, key, formats, total)
        elif (datatype := self._datatype(total, key) if untyped else None) is not None:
            self._typed(predicate, key, datatype, total)
        else:
            self._numbers(predicate, key, total, untyped)

    def _entities(self) -> bool:
        """Whether the values are things: too many have facts, or nearly all keys of subjects are numbers."""
        if number(self._connection, f"SELECT count(*) FILTER (head) > {HEADS} * count(*) FROM relation_values"):
            return True
        return self._numbered

    @cached_property
    def _numbered(self) -> bool:
        """Whether nearly all keys of subjects are numbers."""
        [(numeric, total)] = self._connection.execute(
            f"SELECT count(*) FILTER (regexp_matches(key, '{INTEGER}')), count(*) "
            f"FROM (SELECT DISTINCT subject FROM {self._table}) JOIN terms ON tid = subject"
        ).fetchall()
        return bool(numeric >= SHARE * total)

    def _datatype(self, total: int, key: str) -> str | None:
        """The datatype of values that are written as XML Schema has them; `date` stands for each one with a year."""
        recent = f"SELECT count(*) FILTER (NOT {_RECENT}) = 0 FROM relation_values WHERE kind IS NOT NULL"
        if (
            _TIMED.search(relation_name(key).replace("_", " ").casefold())
            and self._connection.execute(recent).fetchall()[0][0]
        ):
            return "date"
        rows = self._connection.execute(
            f"SELECT kind, sum(n), coalesce(sum(n) FILTER ({_YEAR}), 0) FROM relation_values GROUP BY kind"
        ).fetchall()
        counts, years = Counter({kind: int(n) for kind, n, _ in rows}), sum(int(n) for *_, n in rows)
        dates = sum(counts[kind] for kind in _DATES)
        numbers = [kind for kind in _NUMBERS if counts[kind]]
        if sum(counts[kind] for kind in numbers) >= SHARE * total:
            return numbers[-1]
        if dates and dates + years >= SHARE * total:
            return "date"
        return "boolean" if counts["boolean"] >= SHARE * total else None

    def _typed(self, predicate: int, key: str, datatype: str, total: int) -> None:
        """Makes literals of this datatype of the values, and texts of those that do not fit and have no facts."""
        cases = f"WHEN kind IN {_NUMBERS} THEN '{XSD}{datatype}'"
        if datatype == "date":
            cases = f"WHEN kind IN {_DATES} THEN '{XSD}' || kind WHEN {_YEAR} THEN '{XSD}gYear'"
        elif datatype == "boolean":
            cases = f"WHEN kind = 'boolean' THEN '{XSD}boolean'"
        run, text = self._connection.execute, "lower(key)" if datatype == "boolean" else "key"
        run(f"CREATE OR REPLACE TABLE relation_values AS SELECT *, CASE {cases} END AS datatype FROM relation_values")
        parsed = number(self._connection, "SELECT sum(n) FROM relation_values WHERE datatype IS NOT NULL")
        run(
            f"INSERT INTO conversions SELECT {predicate}, tid, {text}, coalesce(datatype, {quoted(STRING)}) "
            "FROM relation_values WHERE datatype IS NOT NULL OR (entity AND NOT head)"
        )
        self._changed = True
        self._note(key, XSD + datatype, parsed, total - parsed, f"{datatype}s")

    def _dates(self, predicate: int, key: str, formats: Sequence[str], total: int) -> None:
        """Dates of a format that is not ISO's; texts where day and month cannot be told apart."""
        told = len(formats) == 1
        text = f"strftime(strptime(key, {quoted(formats[0])}), '%Y-%m-%d'), '{XSD}date'" if told else f"key, '{STRING}'"
        self._connection.execute(f"INSERT INTO conversions SELECT {predicate}, tid, {text} FROM relation_values")
        self._changed = True
        what = f"dates of the form {formats[0]}" if told else f"dates, for {' and '.join(formats)} fit all"
        self._note(key, XSD + "date" if told else STRING, told * total, (not told) * total, what)

    def _numbers(self, predicate: int, key: str, total: int, untyped: bool) -> None:
        """Numbers with units, in strings."""
        sql = "SELECT key, n FROM relation_values ORDER BY key"
        sample = [text for text, _ in self._connection.execute(f"{sql} LIMIT {SAMPLE}").fetchall()]
        mark = decimal_mark(sample)
        read = [value for value in (quantity(text, mark.mark) for text in sample) if value is not None]
        families = Counter(value.family for value in read)
        if not read or len(read) < SHARE * len(sample):
            return
        family = min(families, key=lambda name: (-families[name], name))
        if not untyped and sum(value.marked for value in read) < MARKED * len(read):
            return
        schema = {"key": pl.String(), "number": pl.Float64(), "unit": pl.String(), "n": pl.Int64()}
        frames = []
        self._connection.execute(sql)
        while batch := self._connection.fetchmany(ROWS):
            pairs = ((text, n, quantity(text, mark.mark)) for text, n in batch)
            rows = [(text, q.number, q.unit, n) for text, n, q in pairs if q is not None and q.family == family]
            frames.append(pl.DataFrame(rows, schema=schema, orient="row"))
        results = pl.concat(frames)
        parsed = int(results["n"].sum())
        if parsed < SHARE * total:
            return
        execute_with(self._connection, "INSERT INTO read_texts SELECT key, number, unit FROM batch", results)
        if untyped:
            self._connection.execute(
                f"INSERT INTO conversions SELECT {predicate}, tid, key, {quoted(STRING)} FROM relation_values "
                "WHERE entity AND (NOT head OR key IN (SELECT key FROM read_texts))"
            )
            self._changed = True
        unit = f" of {family}" if family else ""
        decimal = " with a decimal comma" if mark.mark == "," else ""
        what = f"numbers{unit}{decimal}, which keep their text"
        self._note(key, STRING if untyped else None, parsed, total - parsed, what)
        if mark.unclear is not None:
            shown = quantity(mark.unclear, mark.mark)
            self._monitor.note(
                f"{key_name(key)}: {mark.unclear!r} can be read in two ways, and is read as "
                f"{shown.number if shown else 0:,g}: no other value shows which mark is the decimal one"
            )

    def _note(self, key: str, datatype: str | None, parsed: int, left: int, what: str) -> None:
        self._connection.execute("INSERT INTO inferred VALUES (?, ?, ?, ?)", [key, datatype, parsed, left])
        rest = f"; {left:,} stay text" if left else ""
        self._monitor.note(f"{key_name(key)}: {parsed:,} values are read as {what}{rest} (kg.infer_values)")

    def _convert(self) -> None:
        """Makes the literals of `conversions`, in canonical order, and puts them into the statements."""
        run, literals = self._connection.execute, self._literals
        run(
            "INSERT INTO tags SELECT (SELECT max(tag) FROM tags) + row_number() OVER (ORDER BY datatype), datatype, "
            "NULL FROM (SELECT DISTINCT datatype FROM conversions) ANTI JOIN "
            "(FROM tags WHERE tag > 0 AND detail IS NULL) USING (datatype)"
        )
        run(
            f"""
            CREATE TABLE all_literals AS
            SELECT ({literals} - 1 + row_number() OVER (ORDER BY key, datatype, detail NULLS FIRST))::INTEGER AS tid,
                   key, tag, max(tid) AS old
            FROM (SELECT tid, key, tag FROM terms WHERE tag > 0 UNION ALL
                  SELECT NULL, key, tag FROM (SELECT DISTINCT key, datatype FROM conversions)
                  JOIN (FROM tags WHERE tag > 0 AND detail IS NULL) USING (datatype))
            JOIN tags USING (tag) GROUP BY key, tag, datatype, detail"""
        )
        run(f"DELETE FROM terms WHERE tid >= {literals}")
        run("INSERT INTO terms SELECT tid, key, tag FROM all_literals ORDER BY tid")
        run(
            "CREATE TABLE moved AS SELECT c.predicate, c.object, l.tid FROM conversions c "
            "JOIN tags g ON g.datatype = c.datatype AND g.tag > 0 AND g.detail IS NULL "
            "JOIN all_literals l ON l.key = c.key AND l.tag = g.tag"
        )
        changed = "coalesce(m.tid, l.tid, s.object)::INTEGER AS object"
        joins = (
            "LEFT JOIN moved m ON m.predicate = s.predicate AND m.object = s.object "
            "LEFT JOIN all_literals l ON l.old = s.object"
        )
        if self._staged.distinct:
            run(
                f"CREATE TABLE changed AS SELECT subject, predicate, object, sum(copies)::BIGINT AS copies FROM "
                f"(SELECT s.subject, s.predicate, {changed}, s.copies FROM raw_distinct s {joins}) "
                "GROUP BY ALL ORDER BY ALL"
            )
            run("DELETE FROM raw_distinct; INSERT INTO raw_distinct FROM changed; DROP TABLE changed")
        else:
            run(f"CREATE TABLE changed AS SELECT s.n, s.subject, s.predicate, {changed}, s.rank FROM raw s {joins}")
            drop(self._connection, "raw")
            run("ALTER TABLE changed RENAME TO raw")
        run("UPDATE raw_qualifiers SET object = l.tid FROM all_literals l WHERE l.old = raw_qualifiers.object")
        run("DROP TABLE all_literals; DROP TABLE moved")
