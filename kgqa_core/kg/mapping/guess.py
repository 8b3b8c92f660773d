"""A mapping guessed from the beginnings of tables: types, keys, names, foreign keys, datatypes, what to leave out.

What was guessed and may be wrong is said in notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import polars as pl

from kgqa_core.kg.formats.property_graph import ENTITY_DATATYPE, NUMERALS
from kgqa_core.kg.mapping.model import ColumnMap, Mapping, TableMap
from kgqa_core.kg.mapping.read import MIDNIGHT
from kgqa_core.kg.mapping.sample import Table
from kgqa_core.kg.mapping.words import base_words, is_identifier, is_reference, singular, split_words

PLACEHOLDERS = ("null", "n/a", "#n/a", "none", "nil", "nan", "-", "--", "?", "unknown", "<null>", r"\n")
"""Cells that usually stand for no value, in lower case."""
CONTAINED = 0.95
"""Share of a column's values that a key must hold for the column to be its foreign key."""
KEY_COLUMNS, MAX_KEY = 10, 4
"""Columns among which a key of several is looked for, and how many it may have."""
REPEATED = 0.8
"""Distinct values to values of a column of text, up to which its values are entities."""
MIN_CONSTANT = 10
"""Rows from which a column with one value only is left out."""
SEPARATORS = ("; ", ";", " | ", "|")
"""What may stand between the values of a cell."""
LINK_COLUMNS = 2
"""Columns beside its foreign keys that a table of links may have."""

_PARENTS = {
    "parent",
    "manager",
    "supervisor",
    "boss",
    "superior",
    "superordinate",
    "predecessor",
    "successor",
    "mentor",
}
_PEOPLE = {"person", "user", "employee", "contact", "member", "staff", "account"}
_ROLE = ("er", "or", "ee", "ist", "ian", "by", "to", "parent", "lead", "head", "boss")
_REPORTS = ["reports", "to"]
_FIRST, _LAST = {"first name", "given name", "forename"}, {"last name", "family name", "surname"}
_ORGANISATION = {"company name", "organisation name", "organization name", "business name"}
_DATE = r"^\d{4}-\d\d-\d\d$"
_DATE_TIME = r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?$"
_BINARY = r"^(0x[0-9A-Fa-f]{32,}|data:[a-z]+/|[A-Za-z0-9+/=]{200,}$)"


def guess(tables: Sequence[Table]) -> tuple[Mapping, list[str]]:
    """The mapping of some tables, and what was guessed, in words."""
    return _Guess(tables).mapping()


class _Guess:
    def __init__(self, tables: Sequence[Table]) -> None:
        self.notes: list[str] = []
        self.placeholders: dict[str, int] = {}
        self.tables = {table.name: table for table in tables}
        self.frames = {table.name: self._cleaned(table.frame) for table in tables}
        shared = _shared_words([split_words(table.name) for table in tables])
        self.types = {
            name: singular([w for w in split_words(name) if w not in shared] or split_words(name))
            for name in self.tables
        }
        self.keys: dict[str, tuple[str, ...]] = {name: self._single_key(name) for name in self.tables}
        self.foreign = {name: self._foreign_keys(name) for name in self.tables}
        self.pooled = self._pooled()

    def mapping(self) -> tuple[Mapping, list[str]]:
        """The mapping of all tables."""
        maps = {name: self._table(name) for name in self.tables}
        if self.placeholders:
            cells = ", ".join(f"{text} ({n:,})" for text, n in sorted(self.placeholders.items()))
            self.notes.append(f"cells that stand for no value and are left out (`placeholders`): {cells}")
        return Mapping(placeholders=tuple(sorted(self.placeholders)), tables=maps), self.notes

    def _cleaned(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Cells without spaces around them; null where they are empty or a placeholder, which is counted."""
        frame = frame.select(pl.all().str.strip_chars())
        for column in frame.columns:
            stood = frame[column].filter(frame[column].str.to_lowercase().is_in(list(PLACEHOLDERS)))
            for text, n in stood.value_counts(name="cells of one text").iter_rows():
                self.placeholders[text] = self.placeholders.get(text, 0) + n
        return frame.select(
            pl.when((pl.col(name) != "") & ~pl.col(name).str.to_lowercase().is_in(list(PLACEHOLDERS))).then(
                pl.col(name)
            )
            for name in frame.columns
        )

    def _foreign_by_name(self, name: str, column: str) -> bool:
        """Whether a column's name says that it is the key of another table."""
        base = base_words(column)
        others = (words for other, words in self.types.items() if other != name)
        return bool(base) and base != self.types[name] and any(base[-len(words) :] == words for words in others)

    def _unique(self, name: str, columns: Iterable[str]) -> bool:
        frame = self.frames[name].select(columns)
        return frame.height > 0 and not frame.null_count().sum_horizontal()[0] and frame.n_unique() == frame.height

    def _single_key(self, name: str) -> tuple[str, ...]:
        """The column that best identifies a row alone; none where no column does, or the table is one of links."""
        frame, own = self.frames[name], self.types[name]
        references = [column for column in frame.columns if self._foreign_by_name(name, column)]
        ranked: list[tuple[float, int, str]] = []
        for at, column in enumerate(frame.columns):
            words, base = [word.lower() for word in split_words(column)], base_words(column)
            part = base and own[-len(base) :] == base and column not in references
            if is_reference(column) and (not base or base == own or part):
                score = 4.0
            elif column in references:
                score = 0.0 if len(references) > 1 else 1.5
            elif is_reference(column):
                score = 3.0
            else:
                score = 2.0 if self._kind(frame[column]) == "string" and words else 0.5
            if words[-1:] == ["name"] or words in (["name"], ["title"], ["label"]):
                score += 0.1
            if score > 0.5 or at == 0:
                ranked.append((-score, at, column))
        for score, _, column in sorted(ranked):
            long = (frame[column].str.len_chars().max() or 0) > 100  # type: ignore[operator]
            decimal = self._kind(frame[column]) in ("decimal", "date", "dateTime")
            if -score > 0 and not long and not decimal and self._unique(name, [column]):
                return (column,)
        return ()

    def _foreign_keys(self, name: str) -> dict[str, str]:
        """The tables whose keys columns are."""
        result = {}
        for column in self.frames[name].columns:
            values = self.frames[name][column].drop_nulls().unique()
            if not len(values):
                continue
            ranked = []
            for other, key in self.keys.items():
                if len(key) != 1 or (other == name and key == (column,)):
                    continue
                likeness = self._likeness(name, column, other, values)
                inside = values.is_in(self.frames[other][key[0]].drop_nulls().implode()).mean() if likeness else 0
                if likeness and (inside >= CONTAINED or (not self.tables[other].whole and likeness >= 0.9)):  # type: ignore[operator]
                    ranked.append((likeness, inside, other))
            if ranked:
                result[column] = max(ranked, key=lambda row: (row[0], row[1]))[2]
            elif is_identifier(column) and (column,) != self.keys[name] and base_words(column):
                self.notes.append(f"{name}.{column} looks like a key of a table that is not here; it is read as text")
        return result

    def _likeness(self, name: str, column: str, other: str, values: pl.Series) -> float:
        """How much the name of a column is that of another table's key, in [0, 1]."""
        base, words, key = base_words(column), [word.lower() for word in split_words(column)], self.keys[other][0]
        target = self.types[other]
        if (column,) == self.keys[name] and base in ([], self.types[name]):
            return 0.0
        if base and singular(base) == target:
            return 1.0
        if words == [word.lower() for word in split_words(key)] and is_reference(key) and base_words(key):
            return 0.95
        if base and (base[-len(target) :] == target or (is_reference(column) and target[-len(base) :] == base)):
            return 0.9
        if other == name and (base == _REPORTS or _PARENTS & set(base)):
            return 0.8
        if base and other != name and is_identifier(column) and target[-1] in _PEOPLE and base[-1].endswith(_ROLE):
            return 0.7
        coded = values.str.len_chars().min() >= 3 and values.str.contains("[A-Za-z]").all()  # type: ignore[operator]
        return 0.5 if coded and len(values) >= 3 and is_reference(key) else 0.0

    def _pooled(self) -> dict[str, list[pl.Series]]:
        """The values of columns of text by their words, over all tables."""
        pooled: dict[str, list[pl.Series]] = {}
        for name, frame in self.frames.items():
            for column in frame.columns:
                if column not in self.foreign[name] and (column,) != self.keys[name]:
                    separator = self._separator(frame[column])
                    values = frame[column].drop_nulls()
                    values = values.str.split(separator).explode().str.strip_chars() if separator else values
                    pooled.setdefault(" ".join(split_words(column)).lower(), []).append(values)
        return pooled

    def _table(self, name: str) -> TableMap:
        frame, foreign = self.frames[name], self.foreign[name]
        table, key = self.tables[name], self.keys[name]
        kind = " ".join(self.types[name])
        others = [column for column in frame.columns if column not in foreign]
        if len(foreign) >= 2 and len(others) <= LINK_COLUMNS and not key:
            link = tuple(foreign)[:2]
            relation = " ".join(self.types[foreign[link[1]]])
            self.notes.append(f"{name}: links {foreign[link[0]]} and {foreign[link[1]]} by `{relation}`")
            columns = {column: self._column(name, column, set()) for column in frame.columns}
            return TableMap(file=table.file, link=link, relation=relation, columns=columns)
        if not key:
            key = self._composite_key(name)
        names = self._names(name, key)
        seen = "" if table.whole else f" (in the first {frame.height:,} rows)"
        self.notes.append(
            f"{name}: type `{kind}`, key {' + '.join(key) or 'its line, for no columns identify a row'}{seen}, "
            f"name {' + '.join(names) or 'its type and key'}"
        )
        relations: set[str] = set()
        columns = {
            column: self._column(name, column, relations)
            for column in frame.columns
            if ((column,) != key or column in foreign) and ((column,) != names or column in foreign)
        }
        for column, other in foreign.items():
            self.notes.append(f"{name}.{column} is the key of {other}: relation `{columns[column].relation}`")
        return TableMap(file=table.file, type=kind, key=key, name=names, columns=columns)

    def _composite_key(self, name: str) -> tuple[str, ...]:
        """The fewest columns that identify a row together; none where these do not."""
        columns = sorted(
            (column for column in self.frames[name].columns if not self.frames[name][column].null_count()),
            key=lambda column: (column not in self.foreign[name], not is_reference(column)),
        )[:KEY_COLUMNS]
        for size in range(2, MAX_KEY + 1):
            for group in combinations(columns, size):
                if self._unique(name, group):
                    return group
        return ()

    def _names(self, name: str, key: tuple[str, ...]) -> tuple[str, ...]:
        """The columns that name a row."""
        frame, own = self.frames[name], " ".join(self.types[name])
        words = {column: " ".join(split_words(column)).lower() for column in frame.columns}

        def find(wanted: set[str]) -> str | None:
            return next((column for column, text in words.items() if text in wanted and text), None)

        def varied(column: str) -> bool:
            values = frame[column].drop_nulls()
            return len(values) > 0 and values.n_unique() >= len(values) / 2 and self._kind(values) == "string"

        if column := find({"name", "label", "full name", "display name", f"{own} name", f"{own} label"}):
            return (column,)
        first, last = find(_FIRST), find(_LAST)
        if first and last:
            return (first, last)
        for wanted in ({"title", f"{own} title"}, _ORGANISATION):
            if (column := find(wanted)) and varied(column):
                return (column,)
        for column, text in words.items():
            if text.split()[-1:] == ["name"] and varied(column):
                return (column,)
        for column, text in words.items():
            if text in ("description", f"{own} description") and (frame[column].str.len_chars().mean() or 99) <= 40:  # type: ignore[operator]
                return (column,)
        textual = len(key) == 1 and not is_reference(key[0]) and self._kind(frame[key[0]]) == "string"
        return key if textual else ()

    def _column(self, name: str, column: str, relations: set[str]) -> ColumnMap:
        """What a column is.  relations: of the table so far, to which its own is added."""
        values = self.frames[name][column]
        words, foreign = split_words(column), self.foreign[name].get(column)
        relation = " ".join(words)
        if foreign is not None and is_reference(column):
            relation = " ".join(base_words(column) or self.types[foreign])
        relation = next(text for text in (relation, " ".join(words), column) if text not in relations or text == column)
        if foreign is not None:
            relations.add(relation)
            return ColumnMap(relation=relation, table=foreign)
        there = values.drop_nulls()
        omit = ""
        if not len(there):
            omit = "empty"
        elif (there.str.contains(_BINARY).mean() or 0) > 0.5:  # type: ignore[operator]
            omit = "binary"
        elif len(there) == len(values) >= MIN_CONSTANT and there.n_unique() == 1:
            omit = f"constant: {there[0][:60]}"
        if omit:
            self.notes.append(f"{name}.{column} is left out ({omit})")
            return ColumnMap(relation=relation, omit=omit)
        relations.add(relation)
        separator = self._separator(there)
        if separator:
            self.notes.append(f"{name}.{column} has cells of several values, which are split at {separator!r}")
            there = there.str.split(separator).explode().str.strip_chars()
        datatype = self.tables[name].datatypes.get(column) or self._kind(there)
        if datatype == "integer" and set(there.unique()) == {"0", "1"}:
            datatype = "boolean"
        if datatype == "string" and self._repeats(column):
            datatype = ENTITY_DATATYPE
        return ColumnMap(relation=relation, datatype=datatype, separator=separator)

    def _repeats(self, column: str) -> bool:
        """Whether the values of columns of text with this name are short words that come again."""
        values = pl.concat(self.pooled[" ".join(split_words(column)).lower()])
        lengths = values.str.len_chars()
        short = (lengths.mean() or 0) <= 30 and (lengths.max() or 0) <= 80  # type: ignore[operator]
        wordy = (values.str.contains(r"\d").mean() or 0) <= 0.2  # type: ignore[operator]
        return bool(short and wordy and values.n_unique() <= REPEATED * len(values))

    @staticmethod
    def _kind(values: pl.Series) -> str:
        """The datatype that all values have."""
        values = values.drop_nulls()
        if not len(values):
            return "string"
        if values.str.contains("^[+-]?(0|[1-9][0-9]{0,17})$").all():
            return "integer"
        if values.str.contains(NUMERALS["decimal"]).all() and not values.str.contains(r"^[+-]?0\d").any():
            return "decimal" if not values.str.contains("[eE]").any() else "double"
        if values.str.to_lowercase().is_in(["true", "false", "yes", "no"]).all():
            return "boolean"
        if values.str.replace(MIDNIGHT, "").str.contains(_DATE).all():
            return "date"
        return "dateTime" if values.str.contains(_DATE_TIME).all() else "string"

    @staticmethod
    def _separator(values: pl.Series) -> str | None:
        """What stands between the values of cells that have several: parts are short and come again in other cells."""
        values = values.drop_nulls()
        for separator in SEPARATORS:
            cells = values.filter(values.str.contains(separator, literal=True))
            if not len(cells) or len(cells) < 0.05 * len(values):
                continue
            parts = cells.str.split(separator).explode().str.strip_chars()
            lengths = parts.str.len_chars()
            every = values.str.split(separator).list.eval(pl.element().str.strip_chars()).list.unique().explode()
            again = every.filter(every.is_duplicated()).unique()
            if (lengths.mean() or 99) <= 40 and parts.is_in(again.implode()).mean() >= 0.5:  # type: ignore[operator]
                return separator
        return None


def _shared_words(names: Sequence[Sequence[str]]) -> set[str]:
    """The words that begin or end the names of all of three tables or more."""
    if len(names) < 3:
        return set()
    return {names[0][at] for at in (0, -1) if len({words[at] for words in names if words}) == 1}
