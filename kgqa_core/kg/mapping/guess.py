"""A mapping guessed from the beginnings of tables: types, keys, names, foreign keys, datatypes, what to leave out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import polars as pl

from kgqa_core.kg.formats.nested_json import BLANK
from kgqa_core.kg.formats.property_graph import ENTITY_DATATYPE, NUMERALS
from kgqa_core.kg.formats.table_rows import COMMA_NUMBER
from kgqa_core.kg.mapping.model import ColumnMap, Mapping, TableMap
from kgqa_core.kg.mapping.read import MIDNIGHT
from kgqa_core.kg.mapping.sample import INNER, Table
from kgqa_core.kg.text_dates import date_formats
from kgqa_core.kg.vocabulary import RDF_TYPE
from kgqa_core.kg.words import (
    GENERAL,
    NAMES,
    base_words,
    is_id,
    is_reference,
    lower_words,
    singular,
    split_words,
)

PLACEHOLDERS = ("null", "n/a", "#n/a", "none", "nil", "nan", "-", "--", "?", "unknown", "<null>", r"\n")
"""Cells that usually stand for no value, in lower case."""
CONTAINED, HALF = 0.95, 0.5
"""Share of a column's values that a key must hold for the column to be its foreign key; of names in its own table."""
KEY_COLUMNS, MAX_KEY = 10, 4
"""Columns among which a key of several is looked for, and how many it may have."""
CALLED, MAX_CALLED = 0.9, 40
"""Distinct values to values of a column called as its table, from which it names rows; their mean characters."""
REPEATED = 0.8
"""Distinct values to values of a column of text, up to which its values are entities."""
MIN_CONSTANT = 10
"""Rows from which a column with one value only is left out."""
SEPARATORS = ("; ", ";", " | ", "|")
"""What may stand between the values of a cell."""
LINK_COLUMNS = 2
"""Columns beside its foreign keys that a table of links may have."""

_PARENTS = frozenset("parent manager supervisor boss superior predecessor successor mentor".split())
_TYPES = ("type", "label", "labels", "types", "kind", "class", "category")
"""Columns with the types of rows, in files with such a name, best first."""
_NO_NOUNS = frozenset("name title label email mail url uri phone login username sku isbn date text".split())
"""Words of key columns that do not say what a row is."""
_PEOPLE = frozenset("person user employee contact member staff account".split())
_ROLE = ("er", "or", "ee", "ist", "ian", "by", "to", "lead", "head")
_FIRST, _LAST = {"first name", "given name", "forename"}, {"last name", "family name", "surname"}
_ORGANISATION = {"company name", "organisation name", "organization name", "business name"}
_DATE = r"^\d{4}-\d\d-\d\d$"
_DATE_TIME = r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?$"
_BINARY = r"^(0x[0-9A-Fa-f]{32,}|data:[a-z]+/|[A-Za-z0-9+/=]{200,}$)"


def guess(tables: Sequence[Table]) -> tuple[Mapping, list[str]]:
    """The mapping of some tables, and what was guessed and may be wrong, in words."""
    made = _Guess(tables)
    maps = {name: made.table(name) for name in made.tables}
    if made.placeholders:
        cells = ", ".join(f"{text} ({n:,})" for text, n in sorted(made.placeholders.items()))
        made.notes.append(f"cells that stand for no value and are left out (`placeholders`): {cells}")
    return Mapping(placeholders=tuple(sorted(made.placeholders)), tables=maps), made.notes


class _Guess:
    """What is known of all tables, by their names."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.notes: list[str] = []
        self.placeholders: Counter[str] = Counter()
        self.tables = {table.name: table for table in tables}
        self.frames = {table.name: self._cleaned(table.frame) for table in tables}
        words = {name: split_words(name) for name in self.tables}
        ends = [{each[at] for each in words.values() if each} for at in (0, -1)] if len(words) > 2 else []
        shared = {word for end in ends if len(end) == 1 for word in end}
        self.types = {n: singular([w for w in each if w not in shared] or each) for n, each in words.items()}
        self.keys = {name: self._single_key(name) for name in self.tables}
        self.by_name: dict[tuple[str, str], str] = {}  # the column with a table's names that a foreign key refers to
        self.called = {name: self._names(name, key) for name, key in self.keys.items()}
        self.foreign = {name: self._foreign_keys(name) for name in self.tables}
        self.pooled: dict[str, list[pl.Series]] = {}  # values of columns by their words
        for name, frame in self.frames.items():
            for column in frame.columns:
                if column not in self.foreign[name] and (column,) != self.keys[name]:
                    self.pooled.setdefault(lower_words(column), []).append(self._values(name, column)[0])

    def _cleaned(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Cells without spaces around them; null where they are empty or a placeholder, which is counted."""
        frame = frame.select(pl.all().str.strip_chars())
        stands = pl.all().str.to_lowercase().is_in(list(PLACEHOLDERS))
        for column, is_placeholder in zip(frame, frame.select(stands), strict=True):
            self.placeholders.update(column.filter(is_placeholder).to_list())
        return frame.select(pl.when((pl.all() != "") & ~stands).then(pl.all()))

    def _values(self, name: str, column: str) -> tuple[pl.Series, str | None]:
        """As of `_split`; of a column of lists the elements of these."""
        values = self.frames[name][column].drop_nulls()
        if column in self.tables[name].lists:
            return values.str.split(INNER).explode(), None
        return _split(values)

    def _unique(self, name: str, columns: Iterable[str]) -> bool:
        frame = self.frames[name].select(columns)
        if not self.tables[name].lists.isdisjoint(frame.columns):
            return False
        return frame.height > 0 and not frame.null_count().sum_horizontal()[0] and frame.n_unique() == frame.height

    def _single_key(self, name: str) -> tuple[str, ...]:
        """The column that best identifies a row alone; none where no column does, or the table is one of links."""
        frame, own = self.frames[name], self.types[name]
        if (told := self.tables[name].key) is not None:
            return (told,)
        others = [words for other, words in self.types.items() if other != name and words != own]
        bases = {column: base_words(column) for column in frame.columns}
        foreign = [c for c, base in bases.items() if base != own and any(base[-len(o) :] == o for o in others if base)]

        def score(column: str) -> float:
            base, kind, words = bases[column], _kind(frame[column]), lower_words(column)
            named = 0.1 if words.split()[-1:] == ["name"] or words in ("title", "label") else 0.0
            if column not in foreign and is_reference(column):
                return 4.0 if base == own[-len(base) :] or not base else 3.0
            if column in foreign:
                return 0.0 if len(foreign) > 1 else 1.5
            if kind == "string" and self._holds_names(frame, column):
                return 5.0
            return 2.0 + named if kind == "string" else 0.5 if column == frame.columns[0] else 0.0

        for column in sorted(frame.columns, key=score, reverse=True):
            fits = _longest(frame[column]) <= 100 and _kind(frame[column]) not in ("decimal", "date", "dateTime")
            if score(column) and fits and self._unique(name, [column]):
                return (column,)
        return ()

    def _holds_names(self, frame: pl.DataFrame, column: str) -> bool:
        """Whether half of the values of another column of text, such as `boss`, are in this one."""
        keys = frame[column].drop_nulls().implode()
        others = (frame[c].drop_nulls().unique() for c in frame.columns
                  if c != column and not is_reference(c) and _kind(frame[c]) == "string")  # fmt: skip
        return any(len(values) > 1 and _mean(values.is_in(keys)) >= HALF for values in others)

    def _composite_key(self, name: str) -> tuple[str, ...]:
        """The fewest columns that identify a row together; none where these do not."""
        frame, foreign = self.frames[name], self.foreign[name]
        columns = [column for column in frame.columns if not frame[column].null_count()]
        columns.sort(key=lambda column: (column not in foreign, not is_reference(column)))
        if len(frame.columns) == 2 and _kind(frame[frame.columns[0]]) == "string" and self._unique(name, frame.columns):
            return (frame.columns[0],)  # what has several values
        groups = (group for size in range(2, MAX_KEY + 1) for group in combinations(columns[:KEY_COLUMNS], size))
        return next((group for group in groups if self._unique(name, group)), ())

    def _foreign_keys(self, name: str) -> dict[str, str]:
        """The tables whose keys columns are, or whose names (`by_name`)."""
        result = {}
        for column in self.frames[name].columns:
            if column in self.tables[name].foreign:
                result[column] = self.tables[name].foreign[column]
                continue
            values = self._values(name, column)[0].drop_nulls().unique()
            ranked: list[tuple[float, float, str, str]] = []
            pairs = [(other, key) for other, key in self.keys.items()]
            pairs += [(other, key) for other, key in self.called.items()
                      if key != self.keys[other] and other != name and self._unique(other, key)]  # fmt: skip
            for other, key in pairs:
                if (
                    len(key) != 1
                    or not len(values)
                    or (other == name and self.frames[name][column].equals(self.frames[name][key[0]]))
                ):
                    continue
                likeness = self._likeness(name, column, other, key[0], values)
                inside: Any = values.is_in(self.frames[other][key[0]].drop_nulls().implode()).mean()
                enough = HALF if self._called_by_key(other) and other == name else CONTAINED
                if likeness and (inside >= enough or (not self.tables[other].whole and likeness >= 0.9)):
                    ranked.append((likeness, inside, other, key[0]))
            if ranked:
                _, _, result[column], referred = max(ranked, key=lambda row: row[:2])
                if (referred,) != self.keys[result[column]]:
                    self.by_name[name, column] = referred
            elif is_id(column) and (column,) != self.keys[name] and base_words(column) and len(values):
                self.notes.append(f"{name}.{column} looks like a key of a table that is not here; it is read as text")
        return result

    def _likeness(self, name: str, column: str, other: str, key: str, values: pl.Series) -> float:
        """How much the name of a column is that of another table's key, or of the column of its names, in [0, 1]."""
        base, target, by_name = base_words(column), self.types[other], (key,) != self.keys[other]
        if by_name and base[-1:] == ["name"]:
            base = base[:-1]
        if (column,) == self.keys[name] and base in ([], self.types[name]):
            return 0.0
        if base and singular(base) == target:
            return 1.0
        noun = base_words(key) if is_reference(key) else base if by_name and _NO_NOUNS.isdisjoint(base) else []
        if lower_words(column) == lower_words(key) and noun:
            return 0.95
        if base and (base[-len(target) :] == target or (is_reference(column) and target[-len(base) :] == base)):
            return 0.9
        if by_name:
            return 0.0
        if other == name and (base == ["reports", "to"] or _PARENTS & set(base)):
            return 0.8
        if base and other != name and is_id(column) and target[-1] in _PEOPLE and base[-1].endswith(_ROLE):
            return 0.7
        shortest: Any = values.str.len_chars().min()
        coded = len(values) >= 3 and shortest >= 3 and values.str.contains("[A-Za-z]").all()
        named = self._called_by_key(other) and len(values) > 1 and _kind(values) == "string"
        return 0.5 if coded and is_reference(key) else 0.4 * named

    def _called_by_key(self, name: str) -> bool:
        """Whether the key of a table is one column of text that does not look like ids."""
        key = self.keys[name]
        return len(key) == 1 and not is_reference(key[0]) and _kind(self.frames[name][key[0]]) == "string"

    def table(self, name: str) -> TableMap:
        """The mapping of a table."""
        frame, foreign, file = self.frames[name], self.foreign[name], self.tables[name].file
        key = self.keys[name]
        if len(foreign) >= 2 and len(frame.columns) - len(foreign) <= LINK_COLUMNS and not key:
            link = tuple(foreign)[:2]
            relation = " ".join(self.types[foreign[link[1]]])
            self.notes.append(f"{name}: links {foreign[link[0]]} and {foreign[link[1]]} by `{relation}`")
            columns = {column: self._column(name, column, set()) for column in frame.columns}
            return TableMap(file=file, link=link, relation=relation, columns=columns)
        key = key or self._composite_key(name)
        names = self._names(name, key)
        kind, typed = self._type(name, key, names)
        seen = "" if self.tables[name].whole else f" (in the first {frame.height:,} rows)"
        relations: set[str] = set()
        told = [column for column in frame.columns if column in foreign or (column,) not in (key, names)]
        columns = {column: self._column(name, column, relations) for column in told}
        if typed is not None:
            columns[typed] = ColumnMap(relation=RDF_TYPE, datatype=ENTITY_DATATYPE, separator=columns[typed].separator)
        things = [f"{c} ({foreign[c]})" if c in foreign else c for c, each in columns.items()
                  if c != typed and not each.omit and (c in foreign or each.datatype == ENTITY_DATATYPE)]  # fmt: skip
        values = [c if each.datatype == "string" else f"{c} ({each.datatype})" for c, each in columns.items()
                  if c not in foreign and not each.omit and each.datatype != ENTITY_DATATYPE]  # fmt: skip
        named = f"key {' + '.join(key) or 'its line, for no columns identify a row'}{seen}, name "
        named += " + ".join(names) or "its type and key"
        if names == key and len(key) == 1:
            named = f"key and name in the column {key[0]}{seen}"
        self.notes.append(
            f"{file} is read as a table, a row as one {kind or f'thing of the type in {typed}'}: {named}, "
            f"relations to things {', '.join(things) or 'none'}, values {', '.join(values) or 'none'}"
        )
        prefix = self.tables[name].prefix
        prefix = prefix if prefix != f"{name}/" else None
        return TableMap(file=file, type=kind or None, prefix=prefix, key=key, name=names, columns=columns)

    def _type(self, name: str, key: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, str | None]:
        """What a row of a table is, empty where that is not known; and the column that says it.

        By the noun that its only key and name is called by, else by the file, unless that is called `nodes`.
        """
        frame, words = self.frames[name], self.types[name]
        noun = base_words(key[0]) if len(key) == 1 and (names == key or is_reference(key[0])) else []
        if noun and self._called_by_key(name) and len(self.tables) == 1 and _NO_NOUNS.isdisjoint(noun):
            return " ".join(singular(noun)), None
        if GENERAL.isdisjoint(words):
            return " ".join(words), None
        typed = next((c for said in _TYPES for c in frame.columns if lower_words(c) == said and (c,) not in (key, names)
                      and frame[c].n_unique() < max(3, frame.height)), None)  # fmt: skip
        return "" if typed else " ".join(singular(noun if _NO_NOUNS.isdisjoint(noun) else []) or words), typed

    def _names(self, name: str, key: tuple[str, ...]) -> tuple[str, ...]:
        """The columns that name a row."""
        frame, own = self.frames[name], " ".join(self.types[name])
        words = {
            lower_words(each): each
            for each in reversed(frame.columns)
            if (name, each) not in self.by_name and each not in self.tables[name].lists
        }
        varied = [text for text, column in words.items() if _kind(frame[column]) == "string"
                  and frame[column].drop_nulls().n_unique() >= frame[column].count() / 2]  # fmt: skip
        first, last = (next((words[text] for text in words if text in part), None) for part in (_FIRST, _LAST))
        shown = frame[words[own]].drop_nulls() if own in words else pl.Series(dtype=pl.String)
        called = _kind(shown) == "string" and shown.n_unique() >= CALLED * len(shown) > 0
        described = {text for text in ("description", f"{own} description") if text in words
                     and 0 < _mean(frame[words[text]].str.len_chars()) <= 40}  # fmt: skip
        ranked = [
            {*NAMES, f"{own} name", f"{own} label"} & words.keys(),
            {own} if called and _mean(shown.str.len_chars()) <= MAX_CALLED else set(),
            {"title", f"{own} title"}.intersection(varied),
            _ORGANISATION.intersection(varied),
            {text for text in varied if text.endswith("name")},
            described,
        ]
        if first and last and not ranked[0]:
            return (first, last)
        if (
            self.keys[name] == key
            and self._called_by_key(name)
            and not ranked[0]
            and lower_words(key[0]) not in _NO_NOUNS
        ):
            return key
        for texts in filter(None, ranked):
            return (next(column for column in frame.columns if lower_words(column) in texts),)
        return key if len(key) == 1 and not is_reference(key[0]) and _kind(frame[key[0]]) == "string" else ()

    def _column(self, name: str, column: str, relations: set[str]) -> ColumnMap:
        """What a column is.  relations: of the table so far, to which its own is added."""
        values, foreign = self.frames[name][column], self.foreign[name].get(column)
        words = " ".join(split_words(column))
        relation = " ".join(base_words(column) or self.types[foreign]) if foreign and is_reference(column) else words
        by_name = self.by_name.get((name, column))
        relation = relation.removesuffix(" name") if by_name else relation
        relation = next((text for text in (relation, words) if text not in relations), column)
        relations.add(relation)
        (there, separator), omit = self._values(name, column), ""
        if foreign is not None:
            return ColumnMap(relation=relation, table=foreign, column=by_name, separator=separator)
        if not len(there):
            omit = "empty"
        elif _mean(there.str.contains(_BINARY)) > 0.5:
            omit = "binary"
        elif values.count() == len(values) >= MIN_CONSTANT and there.n_unique() == 1:
            omit = f"constant: {there[0][:60]}"
        if omit:
            self.notes.append(f"{name}.{column} is left out ({omit})")
            return ColumnMap(relation=relation, omit=omit)
        if separator or _split(there, (", ",))[1]:
            how = f"which are split at {separator!r}" if separator else "which `separator: ', '` in the mapping splits"
            self.notes.append(f"{name}.{column} has cells of several values, {how}")
        datatype, format = self.tables[name].datatypes.get(column) or _kind(there), None
        if datatype == "date" and (formats := date_formats(there.str.replace(MIDNIGHT, ""))):
            each = (date_formats(values) for frame in self.frames.values() for values in frame)
            told = {own[0] for own in [*each, formats] if len(own) == 1}.intersection(formats)
            datatype, format = ("date", told.pop()) if len(told) == 1 else ("string", None)
            what = f"are read by {format}" if format else f"fit {' and '.join(formats)}, so it stays text"
            self.notes.append(f"{name}.{column}: its dates {what} (`format` in the mapping)")
        if datatype == "integer" and set(there.unique()) == {"0", "1"}:
            datatype = "boolean"
        if (
            datatype == "string"
            and self.tables[name].prefix != BLANK
            and (self._repeats(column) or _are_names(column, there))
        ):
            datatype = ENTITY_DATATYPE
        return ColumnMap(relation=relation, datatype=datatype, format=format, separator=separator)

    def _repeats(self, column: str) -> bool:
        """Whether the values of columns of text with this name are short words that come again."""
        values = pl.concat(self.pooled.get(lower_words(column), [pl.Series(dtype=pl.String)]))
        short = _mean(values.str.len_chars()) <= 30 and _longest(values) <= 80
        return short and _mean(values.str.contains(r"\d")) <= 0.2 and values.n_unique() <= REPEATED * len(values)


def _are_names(column: str, values: pl.Series) -> bool:
    """Whether values are what things are called: `Paris`, `Ana de la Cruz`; but not parts of a row's own name."""
    named = _mean(values.str.contains(r"^\p{Lu}[^\d@_:]*$")) >= CONTAINED and _longest(values) <= 40
    return named and _mean(values.str.count_matches(" ")) <= 2 and lower_words(column) not in _FIRST | _LAST


def _mean(values: pl.Series) -> float:
    return float(values.mean() or 0)  # type: ignore[arg-type]


def _longest(values: pl.Series) -> int:
    longest: Any = values.str.len_chars().max()
    return longest or 0


def _kind(values: pl.Series) -> str:
    """The datatype that all values have."""
    values = values.drop_nulls()
    if not len(values):
        return "string"
    if values.str.contains("^[+-]?(0|[1-9][0-9]{0,17})$").all():
        return "integer"
    if values.str.contains(NUMERALS["decimal"]).all() and not values.str.contains(r"^[+-]?0\d").any():
        return "double" if values.str.contains("[eE]").any() else "decimal"
    comma = values.str.contains(f"^{COMMA_NUMBER}$")
    if comma.any() and (comma | values.str.contains(NUMERALS["integer"])).all():
        return "decimal" if not values.filter(comma).str.contains(r"^[+-]?\d{1,3},\d{3}$").all() else "string"
    if values.str.to_lowercase().is_in(["true", "false", "yes", "no"]).all():
        return "boolean"
    if values.str.replace(MIDNIGHT, "").str.contains(_DATE).all():
        return "date"
    other = "date" if date_formats(values.str.replace(MIDNIGHT, "")) else "string"
    return "dateTime" if values.str.contains(_DATE_TIME).all() else other


def _split(values: pl.Series, separators: Sequence[str] = SEPARATORS) -> tuple[pl.Series, str | None]:
    """The values of a column, and what stands between those of a cell; they are short and come again in other cells."""
    values = values.drop_nulls()
    for separator in separators:
        cells = values.filter(values.str.contains(separator, literal=True))
        if not len(cells) or len(cells) < 0.05 * len(values):
            continue
        lists = values.str.split(separator).list.eval(pl.element().str.strip_chars())
        every = lists.list.unique().explode()
        again = every.filter(every.is_duplicated()).unique()
        parts = cells.str.split(separator).explode().str.strip_chars()
        if _mean(parts.str.len_chars()) <= 40 and _mean(parts.is_in(again.implode())) >= 0.5:
            return lists.explode(), separator
    return values, None
