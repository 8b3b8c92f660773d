"""What pyoxigraph says about a line of N-Triples or N-Quads, and the named differences that our reader may have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph as ox

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.api import FormatReader
from kgqa_core.kg.formats.ntriples import NQuads, NTriples
from kgqa_core.kg.formats.source import Source

Row = tuple[str, str, str, int, str | None]

LANG_STRINGS = {
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString",
}

WE_ACCEPT_MORE = {
    "IRI beyond RFC 3987": "the grammar of IRIREF allows it, and dumps are full of them",
    "language tag beyond BCP 47": "the grammar of LANGTAG allows it (`@en-u`, `@abcdefghijkl`)",
    "langString without a language": "an ill-typed literal, but well-formed",
    "byte-order mark": "taken off at the beginning of a file, as editors of Windows write it",
}
"""Differences of lines that we accept and pyoxigraph's strict mode rejects, and why."""

WE_REJECT_MORE = {
    "triple term": "RDF 1.2, not N-Triples 1.1",
    "no UTF-8 in a comment": "the document is to be UTF-8; a line that is none is not understood, comment or not",
}
"""Differences of lines that pyoxigraph's strict mode accepts and we reject, and why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What our reader made of some lines: statements, how often each line was rejected, and what it ignored."""

    rows: Counter[Row]
    rejected: Counter[int]
    ignored: int


def ours(lines: Sequence[bytes], folder: Path, *, quads: bool = False) -> Reading:
    """Our reading of the lines as one file; the first line has number 1."""
    reader: FormatReader = NQuads() if quads else NTriples()
    path = folder / "lines.nt"
    path.write_bytes(b"\n".join(lines) + b"\n")
    rows: Counter[Row] = Counter()
    rejected: Counter[int] = Counter()
    ignored = 0
    for batch in reader.read(Source(path, "lines.nt"), KgOptions()):
        rows.update(batch.statements.select("subject", "predicate", "object", "kind", "datatype").rows())
        rejected.update(batch.rejects["line"].to_list())
        ignored += batch.ignored
    return Reading(rows, rejected, ignored)


def parse(line: bytes, *, lenient: bool, quads: bool = False) -> list[ox.Quad] | None:
    """The statements of one line, none for a comment; None where pyoxigraph rejects it."""
    form = ox.RdfFormat.N_QUADS if quads else ox.RdfFormat.N_TRIPLES
    try:
        return list(ox.parse(line, format=form, lenient=lenient))
    except SyntaxError:
        return None


def row(quad: ox.Quad) -> Row:
    """A statement as our reader's columns; RDF 1.2 terms have no such form and raise TypeError."""
    thing = quad.object
    if isinstance(thing, ox.Literal):
        datatype = f"@{thing.language.lower()}" if thing.language else thing.datatype.value
        return _key(quad.subject), quad.predicate.value, thing.value, 1, datatype
    return _key(quad.subject), quad.predicate.value, _key(thing), 0, None


def _key(term: object) -> str:
    if isinstance(term, ox.BlankNode):
        return f"_:{term.value}"
    if isinstance(term, ox.NamedNode):
        return str(term.value)
    raise TypeError(f"{type(term).__name__} is no term of N-Triples 1.1")


def beyond_grammar(quad: ox.Quad) -> set[str]:
    """Why strict mode rejects a statement that lenient mode accepts: names of WE_ACCEPT_MORE, empty for no such reason.

    Each term is given to pyoxigraph's own checks, one by one.
    """
    found = set()
    if isinstance(quad.object, ox.Literal):
        if quad.object.language is not None:
            try:
                ox.Literal("x", language=quad.object.language)
            except ValueError:
                found.add("language tag beyond BCP 47")
        elif quad.object.datatype.value in LANG_STRINGS:
            found.add("langString without a language")
    for iri in _iris(quad):
        try:
            ox.NamedNode(iri)
        except ValueError:
            found.add("IRI beyond RFC 3987")
    return found


def rdf12(quad: ox.Quad) -> str | None:
    """The name in WE_REJECT_MORE of what RDF 1.2 added in a statement, or None."""
    if isinstance(quad.object, ox.Triple):
        return "triple term"
    return None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What our reader has to make of one line: exactly this statement, or a reject, or nothing (it is ignored).

    difference: how this differs from strict mode, a name of WE_ACCEPT_MORE or WE_REJECT_MORE, several joined by ` + `;
    None where it agrees.
    """

    row: Row | None = None
    rejected: bool = False
    difference: str | None = None


def verdict(line: bytes, *, first: bool = False, quads: bool = False) -> Verdict:
    """The verdict on a line without line ends; `first` of a file.

    Strict accepts: we accept the same statement, RDF 1.2 apart.  Strict rejects: we reject, unless lenient accepts and
    every reason of strict is a term that the grammar of 1.1 allows.
    """
    if first and line.startswith(b"\xef\xbb\xbf"):
        inner = verdict(line[3:], quads=quads)
        return Verdict(inner.row, inner.rejected, _joined({"byte-order mark", inner.difference}))
    strict = parse(line, lenient=False, quads=quads)
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return Verdict(rejected=True, difference=None if strict is None else "no UTF-8 in a comment")
    if strict is not None:
        if not strict:
            return Verdict()
        (quad,) = strict
        new = rdf12(quad)
        return Verdict(rejected=True, difference=new) if new else Verdict(row(quad))
    lenient = parse(line, lenient=True, quads=quads)
    if (
        _escapes_surrogates(text)
        or not lenient
        or rdf12(lenient[0]) is not None
        or getattr(lenient[0].object, "direction", None) is not None  # such lines are read strictly
        or any(_NO_IRI.search(iri) for iri in _iris(lenient[0]))
    ):
        return Verdict(rejected=True)
    reasons = beyond_grammar(lenient[0])
    return Verdict(row(lenient[0]), False, _joined(reasons)) if reasons else Verdict(rejected=True)


_NO_IRI = re.compile(r"""^(?![A-Za-z][A-Za-z0-9+.\-]*:)|[\x00-\x20<>"{}|^`\\]""")
"""Of a decoded IRI: not absolute, or with a character that the grammar keeps out."""

_TOKEN = re.compile(r"""<[^>]*>|"(?:[^"\\]|\\.)*"|\#.*""")
_SURROGATE = re.compile(r"(?<!\\)(?:\\\\)*(?:\\u|\\U0000)[dD][89a-fA-F][0-9a-fA-F]{2}")


def _escapes_surrogates(line: str) -> bool:
    """Whether an IRI or a string of the line escapes a surrogate."""
    return any(token[0] in '<"' and _SURROGATE.search(token) for token in _TOKEN.findall(line))


def _iris(quad: ox.Quad) -> list[str]:
    terms = [quad.subject, quad.predicate, quad.object, quad.graph_name]
    if isinstance(quad.object, ox.Literal) and not quad.object.language:
        terms.append(quad.object.datatype)
    return [term.value for term in terms if isinstance(term, ox.NamedNode)]


def _joined(names: set[str | None] | set[str]) -> str | None:
    return " + ".join(sorted(name for name in names if name)) or None
