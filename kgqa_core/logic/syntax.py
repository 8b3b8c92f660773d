"""How keys and literals are written in an s-expression, so that what is printed reads back as the same thing.

m.0abc  Q42  urn:x:y     an entity (or, after JOIN, a relation): a bare key
film.film                a class: a bare key of Freebase's shape, words with dots between, that is no machine id
<any key>                an entity or relation whatever its key holds; `\\` comes before `>`, `\\` and line breaks
(TYPE key)               a class whatever its key
5  1.5  2010-05-01       a number or a date; other datatypes are written out
1.5^^xsd:float           a literal with its datatype, the prefix `xsd:` or the whole IRI
"any text"  "chat"@fr    a string, and one with its language
180^^xsd:decimal[Q174728]  a quantity with the key of its unit
"""

from __future__ import annotations

import re

from kgqa_core.kg.vocabulary import STRING, XSD

INTEGER, DECIMAL, DOUBLE = (XSD + name for name in ("integer", "decimal", "double"))
DATE, YEAR, MONTH, DATE_TIME = (XSD + name for name in ("date", "gYear", "gYearMonth", "dateTime"))

MACHINE_ID = re.compile(r"[mg]\.[0-9a-z_]+")
"""An entity of Freebase."""

_CLASS = re.compile(r"[A-Za-z_]\w*(\.\w+)+", re.ASCII)
_BARE = re.compile(r"""[^\s()<>"\[\]^\\]+""")
_ESCAPES = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_UNESCAPES = {match: "\\" + letter for letter, match in _ESCAPES.items()}

SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (INTEGER, re.compile(r"[+-]?[0-9]+")),
    (DECIMAL, re.compile(r"[+-]?[0-9]*\.[0-9]+")),
    (DOUBLE, re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+")),
    (DATE, re.compile(r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}")),
    (MONTH, re.compile(r"-?[0-9]{4,}-[0-9]{2}")),
    (DATE_TIME, re.compile(r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})?")),
)
"""Datatype of a bare number or date, by its shape.  A year alone is an integer: write `2010^^xsd:gYear`."""


def bare_datatype(text: str) -> str | None:
    """The datatype of a text that is a literal as it stands, such as `5` or `2010-05-01`."""
    return next((datatype for datatype, shape in SHAPES if shape.fullmatch(text)), None)


def is_class_like(text: str) -> bool:
    """Whether a bare key reads as a class: words with dots between, and no machine id."""
    return _CLASS.fullmatch(text) is not None and MACHINE_ID.fullmatch(text) is None


def escaped(text: str, end: str) -> str:
    """`text` with a backslash before `end`, backslashes and line breaks."""
    return "".join(_UNESCAPES.get(c, "\\" + c if c == end else c) for c in text)


def unescaped(text: str) -> str:
    """The inverse of `escaped`."""
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text, flags=re.DOTALL)


def relation_text(key: str) -> str:
    """A relation's key, in angle brackets where it could not be read bare."""
    return key if _BARE.fullmatch(key) else f"<{escaped(key, '>')}>"


def entity_text(key: str) -> str:
    """An entity's key, in angle brackets where it would read as something else."""
    plain = _BARE.fullmatch(key) and not is_class_like(key) and bare_datatype(key) is None
    return key if plain else f"<{escaped(key, '>')}>"


def class_text(key: str) -> str:
    """A class's key, as (TYPE key) where it would read as an entity."""
    return key if is_class_like(key) else f"(TYPE {relation_text(key)})"


def literal_text(text: str, datatype: str, unit: str | None) -> str:
    """A literal with its datatype and unit, as short as it can be read."""
    quoted = f'"{escaped(text, chr(34))}"'
    if datatype.startswith("@") and re.fullmatch(r"@[\w-]*", datatype):
        shown = quoted + datatype
    elif datatype == STRING:
        shown = quoted
    else:
        name = datatype if _BARE.fullmatch(datatype) else f"<{escaped(datatype, '>')}>"
        shown = f"{text if _BARE.fullmatch(text) else quoted}^^{name}"
    if unit is None:
        return shown
    return f"{shown}[{unit if _BARE.fullmatch(unit) else '<' + escaped(unit, '>') + '>'}]"
