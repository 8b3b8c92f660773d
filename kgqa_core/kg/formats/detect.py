"""Which reader reads a file: the configured one, or the one that understands most of its first lines.

Every reader looks at the first lines.  Of those that understand most of them, one that knows more than a syntax goes
first, then the one that the name of the file speaks for, then the one that understands clearly more.  `.nt` and `.nq`
are N-Triples and N-Quads however many of their lines are bad, unless a line declares a prefix or a base.  Compression
is no part of it: a file is decompressed by its first bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.kg.formats import columns
from kgqa_core.kg.formats.base import FormatReader, StatementBatch
from kgqa_core.kg.formats.source import Source


@dataclass(slots=True)
class Format:
    """A reader, imported when one is first used.  about: one line for `kgqa kg formats`."""

    name: str
    about: str

    def reader(self) -> FormatReader:
        """The reader itself."""
        return _reader(self.name)

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """Share of the lines that the reader understands."""
        return self.reader().sniff(lines, options)

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The statements of a source in pieces."""
        return self.reader().read(source, options)


def _reader(name: str) -> FormatReader:
    """The reader of a name; the imports are written out, so that a cache key sees the code of every reader."""
    from kgqa_core.kg.formats import delimited, freebase, kgtk, names, ntriples, turtle
    from kgqa_core.kg.formats.wikidata import json as wikidata_json
    from kgqa_core.kg.formats.wikidata import rdf as wikidata_rdf

    readers: dict[str, Callable[[], Any]] = {
        "columns": columns.Columns,
        "wikidata-json": wikidata_json.WikidataJson,
        "kgtk": kgtk.Kgtk,
        "wikidata-rdf": wikidata_rdf.WikidataRdf,
        "freebase": freebase.Freebase,
        "ntriples": ntriples.NTriples,
        "nquads": ntriples.NQuads,
        "turtle": turtle.Turtle,
        "trig": turtle.TriG,
        "statements": delimited.Statements,
        "delimited": delimited.Delimited,
        "names": names.Names,
    }
    reader: FormatReader = readers[name]()
    return reader


_FORMATS = (
    Format("columns", "CSV or TSV with a header, its columns given roles by kg.columns"),
    Format("wikidata-json", "Wikidata's JSON: the dump, JSON lines, single entities"),
    Format("kgtk", "KGTK's TSV with node1, label, node2: edges, names, aliases, qualifiers"),
    Format("wikidata-rdf", "Wikidata's RDF, truthy or full with statement nodes"),
    Format("freebase", "Freebase's RDF dump"),
    Format("ntriples", "N-Triples 1.1: one statement a line"),
    Format("nquads", "N-Quads 1.1: N-Triples with named graphs"),
    Format("turtle", "Turtle 1.1: prefixes, lists, nested nodes"),
    Format("trig", "TriG 1.1: Turtle with named graphs"),
    Format("statements", "S,P,O and pairs of qualifier and value, as WD50K writes them"),
    Format("delimited", "three fields a line, cut by tab, '|', ';' or kg.delimiter"),
    Format("names", "key, tab, name and perhaps a language"),
)


class _Readers(Mapping[str, Format]):
    def __init__(self, formats: tuple[Format, ...]) -> None:
        self._formats = {one.name: one for one in formats}

    def __getitem__(self, name: str) -> Format:
        return self._formats[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._formats)

    def __len__(self) -> int:
        return len(self._formats)


READERS: Mapping[str, Format] = _Readers(_FORMATS)
"""Every format by name; of formats that understand a file equally well the earlier one reads it."""

_SPECIFIC = ("columns", "wikidata-json", "kgtk", "wikidata-rdf", "freebase", "statements")
"""Formats whose readers know more of a file than its syntax; where they understand most of it, they read it."""

_BY_SUFFIX = {
    ".nt": "ntriples",
    ".nq": "nquads",
    ".ttl": "turtle",
    ".n3": "turtle",
    ".trig": "trig",
    ".json": "wikidata-json",
    ".jsonl": "wikidata-json",
    ".ndjson": "wikidata-json",
    ".tsv": "delimited",
    ".csv": "delimited",
    ".psv": "delimited",
}

_BY_WORD = {
    "truthy": "wikidata-rdf",
    "freebase": "freebase",
    "kgtk": "kgtk",
    "labels": "names",
    "names": "names",
    "aliases": "names",
    "descriptions": "names",
}
"""Formats by a word in a name, between dots, hyphens and underscores; a word counts more than the suffix."""

_BY_LINE = ("ntriples", "nquads", "delimited")
"""Formats that a name alone suffices for: each bad line is a reject with its reason."""

_RDF_LINES = ("ntriples", "nquads")
"""Formats that their suffix decides: what is no statement of theirs is a bad line, not another syntax."""

_PROLOGUE = re.compile(r"\s*(?:@(?:prefix|base)\s|(?:prefix|base)\s+\S*\s*<)", re.IGNORECASE)
"""A declaration, which only Turtle and TriG have."""

_PACKED = {".gz", ".bgz", ".bz2", ".zst", ".zstd"}

_LOOKS_LIKE = (("<?xml", "XML"), ("<rdf:RDF", "RDF/XML"), ("<!DOCTYPE", "HTML"), ("{", "JSON"), ("[", "JSON"))


def check_format(name: str) -> None:
    """Raises KgInputError when no reader has this name."""
    if name != "auto" and name not in READERS:
        known = ["auto", *READERS]
        raise KgInputError(f"kg.format {name!r} is unknown{nearest(name, known)}; known are {', '.join(known)}")


def hinted(path: Path) -> tuple[str, ...]:
    """The formats that a file's name speaks for, the likelier first; endings of compression do not count."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _PACKED]
    words = path.name.lower().replace("-", ".").replace("_", ".").split(".")
    results = [_BY_WORD[word] for word in words if word in _BY_WORD]
    if suffixes and suffixes[-1] in _BY_SUFFIX:
        results.append(_BY_SUFFIX[suffixes[-1]])
    return tuple(dict.fromkeys(results))


def reader_of(source: Source, options: KgOptions) -> FormatReader:
    """The reader of a source.

    Raises KgInputError for an unknown format, when no reader understands the file, or when a column of kg.columns is
    missing.
    """
    check_format(options.format)
    if options.format != "auto":
        return READERS[options.format]
    lines = source.head()
    sample = [line for line in lines if not line.lstrip().startswith("#")] or lines
    hints = hinted(source.path)
    order = list(READERS)
    shares = {name: one.sniff(sample, options) for name, one in READERS.items()}

    def rank(name: str) -> tuple[bool, int, float, int]:
        most = shares[name] >= 0.5
        hint = len(hints) - hints.index(name) if most and name in hints else 0
        return most and name in _SPECIFIC, hint, round(shares[name], 1), -order.index(name)

    best = max(order, key=rank)
    if not shares["columns"] and (fault := columns.missing(sample, options, shares[best])):
        raise KgInputError(f"{source.path} {fault}")
    lines_of = next((name for name in hints if name in _RDF_LINES), None)
    if lines_of is not None and best not in _SPECIFIC and not any(map(_PROLOGUE.match, sample)):
        return READERS[lines_of]
    likely = next((name for name in reversed(hints) if shares[name] or name in _BY_LINE), None)
    if shares[best] < 0.5 and likely is not None:
        best = likely
    elif sample and shares[best] < 0.5:
        looks = next((f" (it looks like {what})" for start, what in _LOOKS_LIKE if sample[0].startswith(start)), "")
        raise KgInputError(
            f"{source.path} is in no format that we know{looks}, for example {sample[0][:80]!r}; we read "
            f"{', '.join(READERS)} (`kgqa kg formats`): name kg.format, or kg.delimiter or kg.columns for a table, or "
            "convert it to N-Triples"
        )
    return READERS[best]
