"""KGTK's values as terms: the first character is the kind of a value (KGTK file format, version 2).

    "text"                      a string; `\\|`, `\\"`, `\\t`, `\\n` and Python's other escapes
    'text'@zh-cn                a text in a language
    ^1952-03-11T00:00:00Z/11    a time and its precision; calendars are not written
    +12, 3.1e2, +5Q11573, 10m/s2, +5[+4,+6]Q11573   a number, its tolerance (dropped), its unit
    @52.5/13.4                  latitude and longitude
    !12345^^type                a literal of any type
    True, False, somevalue, novalue   symbols that stand for values
    anything else               a symbol: the key of an entity

Times, coordinates and numbers take the lexical forms that Wikidata's other formats give them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import polars as pl

from kgqa_core.kg.formats.base import ENTITY, LITERAL
from kgqa_core.kg.formats.wikidata.json_values import (
    DATE_TIME,
    DECIMAL,
    STRING,
    STRINGS,
    WIKIBASE,
    WKT,
    XSD,
    degrees,
)

_TERM = ("object", "kind", "datatype", "detail", "reason")
_TEXT = pl.col("text")
_NONE = pl.lit(None, dtype=pl.String)

_SIMPLE = {
    "\\" + written: character for written, character in zip("tnrbfav0\\\"'|", "\t\n\r\b\f\a\v\0\\\"'|", strict=True)
}
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([^0-9A-Za-z])|([tnrbfav0]))")
_ONLY_SIMPLE = r"^(?:[^\\]|\\[tnrbfav0\\\"'|])*$"

_SPECIAL = {
    "True": ("true", XSD + "boolean"),
    "False": ("false", XSD + "boolean"),
    "somevalue": ("somevalue", WIKIBASE + "somevalue"),
    "novalue": ("novalue", WIKIBASE + "novalue"),
}

_NUMBER = (
    r"^([+-]?(?:0[xX][0-9A-Fa-f]+|0[bB][01]+|0[oO][0-7]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))"
    r"(?:\[([^,\[\]]+),([^,\[\]]+)\])?(\S*)$"
)
_TIME = (
    r"^\^([+-]?)([0-9]{1,16})(?:-([0-9]{2})(?:-([0-9]{2})(?:T([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})?))?)?)?(?:/([0-9]{1,2}))?$"
)


def parse(values: pl.DataFrame) -> pl.DataFrame:
    """Terms of `text` (and `type`, Wikidata's datatype or null): object, kind, datatype, detail and reason.

    reason: why a value is none, else null.  Rows keep their order.
    """
    if not values.height:
        return pl.DataFrame(schema={**dict.fromkeys(_TERM, pl.String), "kind": pl.Int8}).select(*_TERM)
    first = _TEXT.str.slice(0, 1)
    classes = (
        pl.when(first == '"').then(pl.lit("string"))
        .when(first == "'").then(pl.lit("text"))
        .when(first == "^").then(pl.lit("time"))
        .when(first == "@").then(pl.lit("place"))
        .when(first == "!").then(pl.lit("typed"))
        .when(_TEXT.str.contains(r"^[+-]?\.?[0-9]")).then(pl.lit("number"))
        .when(_TEXT.is_in(list(_SPECIAL))).then(pl.lit("special"))
        .otherwise(pl.lit("symbol"))
    )  # fmt: skip
    rows = values.with_row_index("row").with_columns(_class=classes)
    parts = [
        _HANDLERS[str(name)](part).select("row", *_TERM)
        for (name,), part in rows.group_by("_class", maintain_order=True)
    ]
    return pl.concat(parts).sort("row").drop("row") if len(parts) > 1 else parts[0].drop("row")


def symbols(values: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Keys of symbols, and reasons where a value is none."""
    result = parse(pl.DataFrame({"text": values, "type": pl.Series([None] * len(values), dtype=pl.String)}))
    literal = (pl.col("kind") == LITERAL) & pl.col("reason").is_null()
    result = result.with_columns(reason=pl.when(literal).then(pl.lit("a literal")).otherwise(pl.col("reason")))
    return result["object"], result["reason"]


def _symbol(rows: pl.DataFrame) -> pl.DataFrame:
    rows = _unescaped(rows.with_columns(body=_TEXT))
    return _finish(rows, kind=ENTITY)


def _special(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(
        object=_TEXT.replace_strict({name: text for name, (text, _) in _SPECIAL.items()}),
        kind=pl.lit(LITERAL, dtype=pl.Int8),
        datatype=_TEXT.replace_strict({name: datatype for name, (_, datatype) in _SPECIAL.items()}),
        detail=_NONE,
        reason=_NONE,
    )


def _string(rows: pl.DataFrame) -> pl.DataFrame:
    rows = _unescaped(rows.with_columns(body=_TEXT.str.extract(r'(?s)^"((?:[^\\]|\\.)*)"$')))
    datatype = pl.col("type").replace_strict(STRINGS, default=STRING, return_dtype=pl.String)
    return _finish(rows, datatype, fault="an unterminated string")


def _language(rows: pl.DataFrame) -> pl.DataFrame:
    parts = _TEXT.str.extract_groups(r"(?s)^'(?<body>(?:[^\\]|\\.)*)'@(?<tag>[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)$")
    rows = _unescaped(rows.with_columns(parts.alias("parts")).unnest("parts"))
    return _finish(
        rows, pl.lit("@") + pl.col("tag").str.to_lowercase(), fault="no text in quotes with @ and a language"
    )


def _number(rows: pl.DataFrame) -> pl.DataFrame:
    parts = rows.select("row", _TEXT.str.extract_groups(_NUMBER).alias("parts")).unnest("parts")
    parts = parts.rename({"1": "amount", "2": "low", "3": "high", "4": "unit"})
    amount = pl.col("amount")
    based = amount.str.contains("^[+-]?0[xXbBoO]")
    number = pl.when(based).then(amount.map_elements(_based, return_dtype=pl.String)).otherwise(amount)
    plain = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
    wrong = pl.col("low").is_not_null() & ~(pl.col("low").str.contains(plain) & pl.col("high").str.contains(plain))
    wrong |= pl.col("unit").str.contains(r"^[0-9.,+\[\]]|^-")
    parts = parts.with_columns(body=pl.when(~wrong).then(number), detail=pl.when(pl.col("unit") != "").then("unit"))
    exponent = amount.str.contains("[eE]") & ~based
    rows = rows.join(parts, on="row", how="left", maintain_order="left")
    datatype = pl.when(exponent).then(pl.lit(XSD + "double")).otherwise(pl.lit(DECIMAL))
    return _finish(rows, datatype, "detail", fault="no number (with a tolerance and a unit)")


def _based(text: str) -> str:
    return str(int(text, 0))


def _time(rows: pl.DataFrame) -> pl.DataFrame:
    parts = rows.select("row", _TEXT.str.extract_groups(_TIME).alias("parts")).unnest("parts")
    parts = parts.rename(dict(zip("123456", ("sign", "digits", "month", "day", "clock", "precision"), strict=True)))
    precision = pl.col("precision").cast(pl.Int32)
    month, day = pl.col("month").cast(pl.Int32), pl.col("day").cast(pl.Int32)
    before = pl.col("sign") == "-"
    written = pl.col("digits").str.strip_chars_start("0")
    number = written.cast(pl.Int64, strict=False)
    # Dates before the common era: XSD 1.1 has a year 0, which Wikidata has not.
    shift = before & (precision.fill_null(9) >= 9)
    year = pl.when(shift).then((number - 1).cast(pl.String)).otherwise(written).str.pad_start(4, "0")
    sign = pl.when(before & (year != "0000")).then(pl.lit("-")).otherwise(pl.lit(""))
    month = pl.when(precision <= 9).then(1).otherwise(month.clip(1, 12))
    true_year = pl.when(before).then(1 - number).otherwise(number)
    leap = (true_year % 4 == 0) & ((true_year % 100 != 0) | (true_year % 400 == 0))
    days = pl.when(month == 2).then(28 + leap.cast(pl.Int32)).when(month.is_in([4, 6, 9, 11])).then(30).otherwise(31)
    day = pl.when(precision <= 10).then(1).otherwise(pl.min_horizontal(day.clip(1), days))
    two = {"month": month.cast(pl.String).str.pad_start(2, "0"), "day": day.cast(pl.String).str.pad_start(2, "0")}
    head = sign + year
    dated = head + "-" + two["month"] + "-" + two["day"]
    zero = written == ""
    parts = parts.with_columns(
        body=pl.when(zero).then(_NONE)
        .when(pl.col("clock").is_not_null()).then(dated + "T" + pl.col("clock"))
        .when(pl.col("day").is_not_null()).then(dated)
        .when(pl.col("month").is_not_null()).then(head + "-" + two["month"])
        .otherwise(head),
        datatype=pl.when(pl.col("clock").is_not_null()).then(pl.lit(DATE_TIME))
        .when(pl.col("day").is_not_null()).then(pl.lit(XSD + "date"))
        .when(pl.col("month").is_not_null()).then(pl.lit(XSD + "gYearMonth"))
        .otherwise(pl.lit(XSD + "gYear")),
        detail=precision.cast(pl.String),
    )  # fmt: skip
    return _finish(rows.join(parts, on="row", how="left", maintain_order="left"), pl.col("datatype"), "detail",
                   fault="no date (with a precision)")  # fmt: skip


def _place(rows: pl.DataFrame) -> pl.DataFrame:
    number = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    parts = _TEXT.str.extract_groups(f"^@(?<latitude>{number})/(?<longitude>{number})$")
    rows = rows.with_columns(parts.alias("parts")).unnest("parts")
    point = pl.lit("Point(") + _degrees("longitude") + " " + _degrees("latitude") + ")"
    return _finish(rows.with_columns(body=point), pl.lit(WKT), fault="no latitude and longitude")


def _degrees(name: str) -> pl.Expr:
    """A coordinate in Wikidata's form; text that has it already is not computed."""
    column = pl.col(name)
    short = column.str.contains(r"^-?(?:0|[1-9][0-9]{0,2})(?:\.[0-9]{0,10}[1-9])?$") & (column != "-0")
    computed = pl.when(~short).then(column).map_elements(lambda text: degrees(float(text)), return_dtype=pl.String)
    return pl.when(short).then(column).otherwise(computed)


def _typed(rows: pl.DataFrame) -> pl.DataFrame:
    parts = _TEXT.str.extract_groups(r"(?s)^!(?<body>(?:[^\\]|\\.)*?)\^\^?(?<name>[^\s^]+)$")
    rows = _unescaped(rows.with_columns(parts.alias("parts")).unnest("parts"))
    name = pl.col("name")
    xsd = name.str.starts_with("xsd:")
    return _finish(rows, pl.when(xsd).then(pl.lit(XSD) + name.str.slice(4)).otherwise(name), fault="no ^^ and type")


_HANDLERS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "symbol": _symbol,
    "special": _special,
    "string": _string,
    "text": _language,
    "number": _number,
    "time": _time,
    "place": _place,
    "typed": _typed,
}


def _finish(
    rows: pl.DataFrame,
    datatype: pl.Expr = _NONE,
    detail: str | None = None,
    *,
    kind: int = LITERAL,
    fault: str = "",
) -> pl.DataFrame:
    """Terms of rows with a `body`, which is null where the value is none, and perhaps `bad`, a bad escape."""
    bad = pl.col("bad") if "bad" in rows.columns else _NONE
    return rows.select(
        "row",
        object="body",
        kind=pl.lit(kind, dtype=pl.Int8),
        datatype=datatype,
        detail=pl.col(detail) if detail else _NONE,
        reason=pl.when(bad.is_not_null())
        .then(pl.lit("bad escape ") + bad)
        .when(pl.col("body").is_null())
        .then(pl.lit(fault))
        .when(pl.col("body") == "")
        .then(pl.lit("an empty symbol") if kind == ENTITY else _NONE),
    )


def _unescaped(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with the escapes of `body` decoded; `bad` is an escape that is none, else null."""
    body = pl.col("body")
    if not rows["body"].str.contains("\\", literal=True).any():
        return rows.with_columns(bad=_NONE)
    simple = body.str.contains(_ONLY_SIMPLE)
    decoded = pl.when(~simple).then(body).map_elements(_unescape, return_dtype=pl.String)
    rows = rows.with_columns(body=pl.when(simple).then(body.str.replace_many(_SIMPLE)).otherwise(decoded), raw=body)
    wrong = pl.col("raw").is_not_null() & body.is_null()
    rest = pl.when(wrong).then(pl.col("raw")).map_elements(_bad_escape, return_dtype=pl.String)
    return rows.with_columns(bad=rest).drop("raw")


def _unescape(text: str) -> str | None:
    """Text with its escapes decoded; None when one of them is none."""
    if _bad_escape(text) is not None:
        return None
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    return chr(int(code, 16)) if code else (match[4] or _SIMPLE["\\" + match[5]])


def _bad_escape(text: str) -> str | None:
    at = text.find("\\")
    while at >= 0:
        match = _ESCAPE.match(text, at)
        code = match and (match[2] or match[3])
        if match is None or (code and (int(code, 16) > 0x10FFFF or 0xD800 <= int(code, 16) <= 0xDFFF)):
            return text[at : at + 6]
        at = text.find("\\", match.end())
    return None
