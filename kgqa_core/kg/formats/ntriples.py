r"""N-Triples 1.1: one statement a line, `<s> <p> <o> .`, read with two regular expressions.

The usual line is matched as a whole by a vectorised expression.  Only statements with `\u` or `\U` are decoded one
by one, and only rejected lines are looked at again for the reason.  Beyond the grammar: IRIs must be absolute, as the
specification says in prose; language tags are folded to lower case.  Blank nodes of equal label are one node in all
files of a graph, as if the files were one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.base import ENTITY, LITERAL, MAX_REJECT_TEXT, PLAIN, REJECTS, STATEMENTS, Batch, empty
from kgqa_core.kg.formats.source import Block, Source

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"

_HEX4, _HEX8 = r"\\u[0-9A-Fa-f]{4}", r"\\U[0-9A-Fa-f]{8}"
_IRI_BODY = rf'[A-Za-z][A-Za-z0-9+.\-]*:(?:[^\x00-\x20<>"{{}}|^`\\]|{_HEX4}|{_HEX8})*'
_BASE = (
    r"A-Za-z\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{2FF}\u{370}-\u{37D}\u{37F}-\u{1FFF}\u{200C}-\u{200D}"
    r"\u{2070}-\u{218F}\u{2C00}-\u{2FEF}\u{3001}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFFD}\u{10000}-\u{EFFFF}"
)
_PN_U = rf"{_BASE}_:"
_PN = rf"{_PN_U}\-0-9\u{{B7}}\u{{300}}-\u{{36F}}\u{{203F}}-\u{{2040}}"
_BLANK = rf"_:[{_PN_U}0-9](?:[{_PN}.]*[{_PN}])?"
_STRING = rf"(?:[^\x22\\\n\r]|\\[tbnrf\x22'\\]|{_HEX4}|{_HEX8})*"
_LANG = r"[A-Za-z]+(?:-[A-Za-z0-9]+)*"
_W = r"[ \t]*"

STATEMENT = (
    rf"^{_W}(?:<(?P<si>{_IRI_BODY})>|(?P<sb>{_BLANK})){_W}<(?P<p>{_IRI_BODY})>{_W}"
    rf'(?:<(?P<oi>{_IRI_BODY})>|(?P<ob>{_BLANK})|"(?P<ol>{_STRING})"'
    rf"(?:{_W}@(?P<lang>{_LANG})|{_W}\^\^{_W}<(?P<dt>{_IRI_BODY})>)?)"
    rf"{_W}\.{_W}(?:#.*)?$"
)
"""A statement in the syntax of Rust's regular expressions, which polars uses."""

IGNORED = r"^[ \t]*(?:#.*)?$"

_PYTHON = re.compile(re.sub(r"\\u\{([0-9A-F]+)\}", lambda m: f"\\U{int(m[1], 16):08X}", STATEMENT))
_ECHARS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_SHORT = {"\\" + name: character for name, character in _ECHARS.items()}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_IRI_FORBIDDEN = re.compile(r'[\x00-\x20<>"{}|^`\\]')
_RAW = ("si", "sb", "p", "oi", "ob", "ol", "lang", "dt")


class NTriples:
    """Reader of N-Triples."""

    name = "ntriples"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """Share of the lines that are statements."""
        return sum(bool(_PYTHON.match(line)) for line in lines) / max(1, len(lines))

    def read(self, source: Source, options: KgOptions) -> Iterator[Batch]:
        """Statements of an N-Triples file."""
        for block in source.blocks():
            yield read_block(block)


def read_block(block: Block) -> Batch:
    """The statements of some lines; a line with lone carriage returns is several lines, as the grammar says."""
    lines = block.lines
    if lines["text"].str.contains("\r", literal=True).any():
        lines = lines.with_columns(pl.col("text").str.split("\r")).explode("text")
    parsed = lines.with_columns(pl.col("text").str.extract_groups(STATEMENT).alias("g")).unnest("g")
    matched = pl.col("p").is_not_null()
    other = parsed.filter(~matched).select("line", "text")
    blank = other["text"].str.contains(IGNORED)
    bad = other.filter(~blank)
    good = parsed.filter(matched)
    plain, bad_escapes = good.select("line", *_RAW), empty(REJECTS)
    if good["text"].str.contains("\\", literal=True).any():
        coded = good["text"].str.contains(r"\\[uU]")
        plain = plain.filter(~coded).with_columns(pl.col("ol").str.replace_many(_SHORT))
        if coded.any():
            decoded, bad_escapes = _decode(good.filter(coded))
            plain = pl.concat([plain, decoded])
    rejects = pl.DataFrame(
        {
            "line": bad["line"],
            "reason": [why(text) for text in bad["text"]],
            "text": bad["text"].str.slice(0, MAX_REJECT_TEXT),
        },
        schema=REJECTS,
    )
    literal = pl.col("ol").is_not_null()
    statements = plain.select(
        subject=pl.coalesce("si", "sb"),
        predicate="p",
        object=pl.coalesce("oi", "ob", "ol"),
        kind=pl.when(literal).then(LITERAL).otherwise(ENTITY).cast(pl.Int8),
        datatype=pl.when(literal).then(
            pl.coalesce(pl.lit("@") + pl.col("lang").str.to_lowercase(), "dt", pl.lit(XSD_STRING))
        ),
    ).select(pl.col(name).cast(kind) for name, kind in STATEMENTS.items() if name in PLAIN)
    return Batch(statements, pl.concat([block.rejects, rejects, bad_escapes]), int(blank.sum()), block.fraction)


def _decode(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows with their escapes decoded, and rejects for those that cannot be."""
    good: list[tuple[object, ...]] = []
    bad: list[tuple[int, str, str]] = []
    for line, text, *values in rows.select("line", "text", *_RAW).iter_rows():
        try:
            good.append(
                (
                    line,
                    *(v if v is None or "\\" not in v else unescape(v, n) for n, v in zip(_RAW, values, strict=True)),
                )
            )
        except ValueError as fault:
            bad.append((line, str(fault), text[:MAX_REJECT_TEXT]))
    schema = {"line": pl.Int64(), **dict.fromkeys(_RAW, pl.String())}
    return pl.DataFrame(good, schema=schema, orient="row"), pl.DataFrame(bad, schema=REJECTS, orient="row")


def unescape(text: str, where: str = "ol") -> str:
    """A value with its escapes decoded; `where` other than `ol` is an IRI.  Raises ValueError with the reason."""

    def one(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code is None:
            return _ECHARS[match[3]]
        point = int(code, 16)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise ValueError(f"the escape {match[0]} is not a character")
        return chr(point)

    decoded = _ESCAPE.sub(one, text)
    if where != "ol" and (found := _IRI_FORBIDDEN.search(decoded)):
        raise ValueError(f"an escape puts {found[0]!r} into an IRI, where it may not stand")
    return decoded


_STEPS: tuple[tuple[str, str, str], ...] = (
    ("subject", rf"<{_IRI_BODY}>|{_BLANK}", "the subject is neither an IRI in <> nor a blank node"),
    ("predicate", rf"<{_IRI_BODY}>", "the predicate is not an IRI in <>"),
    ("object", rf'<{_IRI_BODY}>|{_BLANK}|"{_STRING}"', "the object is neither an IRI, nor a blank node, nor a literal"),
)


def _python(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\u\{([0-9A-F]+)\}", lambda m: f"\\U{int(m[1], 16):08X}", pattern))


_COMPILED = [(name, _python(pattern), reason) for name, pattern, reason in _STEPS]
_SUFFIX = _python(rf"{_W}(?:@{_LANG}|\^\^{_W}<{_IRI_BODY}>)")
_LITERAL_SUFFIX_BEGUN = re.compile(r"[ \t]*(@|\^\^?)")
_ANY_ESCAPE = re.compile(r"\\(?:u.{0,4}|U.{0,8}|.?)", re.DOTALL)
_GOOD_ESCAPE = re.compile(rf"\\[tbnrf\"'\\]|{_HEX4}|{_HEX8}")


def why(line: str) -> str:
    """Why a line is no statement, in a few words."""
    rest = line.lstrip(" \t")
    for name, pattern, reason in _COMPILED:
        match = pattern.match(rest)
        if match is None:
            return f"the {name} is missing" if rest.strip(" \t.") == "" else _closer(rest, name) or reason
        rest = rest[match.end() :].lstrip(" \t")
        if name == "object" and match[0].startswith('"'):
            suffix = _SUFFIX.match(rest)
            if suffix is None and (begun := _LITERAL_SUFFIX_BEGUN.match(rest)):
                return "bad language tag" if begun[1] == "@" else "bad datatype"
            rest = rest[suffix.end() :].lstrip(" \t") if suffix else rest
    if not rest.startswith("."):
        return "no final '.'" if not rest or rest.startswith("#") else f"{rest[:20]!r} where the final '.' is due"
    return "text after the final '.'"


def _closer(rest: str, name: str) -> str | None:
    """A closer reason for a term that begins like one but is none."""
    if rest.startswith("<"):
        body, closed, _ = rest[1:].partition(">")
        if not closed:
            return f"the IRI of the {name} has no '>'"
        if bad := _bad_escape(body):
            return f"bad escape {bad} in the IRI of the {name}"
        if found := _IRI_FORBIDDEN.search(body.replace("\\", "")):
            return f"{found[0]!r} in the IRI of the {name}"
        return f"the IRI of the {name} is not absolute"
    if rest.startswith('"') and name == "object":
        if bad := _bad_escape(rest):
            return f"bad escape {bad} in the literal"
        return "unterminated literal"
    return None


def _bad_escape(text: str) -> str | None:
    """The first escape that is none."""
    return next((m[0] for m in _ANY_ESCAPE.finditer(text) if not _GOOD_ESCAPE.fullmatch(m[0])), None)
