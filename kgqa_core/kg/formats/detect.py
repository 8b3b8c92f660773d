"""Which reader reads a file: the configured one, or the one that understands most of its first lines.

Every reader looks at the first lines.  Of those that understand most of them, one that knows more than a syntax goes
first, then the one that the name of the file speaks for, then the one that understands clearly more.  `.nt` and `.nq`
are N-Triples and N-Quads however many of their lines are bad, unless a line declares a prefix or a base.  Compression
is no part of it: a file is decompressed by its first bytes.
"""

from __future__ import annotations

import re
from pathlib import Path

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats import columns, tables
from kgqa_core.kg.formats.api import FormatReader
from kgqa_core.kg.formats.delimited import DELIMITED
from kgqa_core.kg.formats.registry import FORMATS, check_format
from kgqa_core.kg.formats.source import Source

_PROLOGUE = re.compile(r"\s*(?:@(?:prefix|base)\s|(?:prefix|base)\s+\S*\s*<)", re.IGNORECASE)
"""A declaration, which only Turtle and TriG have."""

PACKED = {".gz", ".bgz", ".bz2", ".zst", ".zstd", ".xz"}

_ROBOT = "robot convert --input {file} --output ontology.ttl"
_NETWORKX = """python -c "import networkx as n; n.write_graphml(n.{read}('{{file}}'), 'graph.graphml')\""""
_OTHERS = {
    "an ontology in OWL/XML": (r"<(?:owl:)?Ontology\s[^>]*http://www\.w3\.org/2002/07/owl#", _ROBOT),
    "an ontology in OWL's functional syntax": (r"^\s*(?:Prefix|Ontology)\s*\(", _ROBOT),
    "an ontology in Manchester syntax": (r"^\s*(?:Ontology|Class|Individual|ObjectProperty):\s", _ROBOT),
    "an ontology in OBO": (r"^format-version:\s", _ROBOT),
    "a graph in GEXF": (r"<gexf\s", _NETWORKX.format(read="read_gexf")),
    "a graph in GML": (r"^\s*graph\s*\[", _NETWORKX.format(read="read_gml")),
    "a graph in Pajek's format": (r"^\*[Vv]ertices\s", _NETWORKX.format(read="read_pajek")),
    "a graph in DOT": (r"^\s*(?:strict\s+)?(?:di)?graph\s[^\[<]*\{", _NETWORKX.format(read="nx_pydot.read_dot")),
}
"""What is known and not read: how it is recognised, and the command that converts it."""

_XML = ("<?xml", "<rdf:RDF", "<!DOCTYPE")


def hinted(path: Path) -> tuple[str, ...]:
    """The formats that a file's name speaks for, the likelier first; endings of compression do not count."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in PACKED]
    words = path.name.lower().replace("-", ".").replace("_", ".").split(".")
    named = [spec.name for word in words for spec in FORMATS.values() if word in spec.words]
    named += [spec.name for spec in FORMATS.values() if suffixes and suffixes[-1] in spec.endings]
    return tuple(dict.fromkeys(named))


def reader_of(source: Source, options: KgOptions) -> FormatReader:
    """The reader of a source.

    Raises KgInputError for an unknown format, when no reader understands the file, or when a column of kg.columns is
    missing.
    """
    check_format(options.format)
    if options.format != "auto":
        return FORMATS[options.format].reader()
    if source.is_parquet:
        return FORMATS[tables.FORMAT.name].reader()
    lines = source.head()
    sample = [line for line in lines if not line.lstrip().startswith("#")] or lines
    hints = hinted(source.path)
    order = list(FORMATS)
    shares = {name: spec.reader().sniff(sample, options) for name, spec in FORMATS.items()}

    def rank(name: str) -> tuple[bool, int, float, int]:
        most = shares[name] >= 0.5
        hint = len(hints) - hints.index(name) if most and name in hints else 0
        return most and FORMATS[name].specific, hint, round(shares[name], 1), -order.index(name)

    best = max(order, key=rank)
    for form, (pattern, command) in _OTHERS.items():
        if (shares[best] < 0.5 or pattern.startswith("<")) and re.search(pattern, "\n".join(sample), re.MULTILINE):
            command = command.format(file=source.path.name)
            raise KgInputError(f"{source.path} is {form}, which we do not read; convert it, with `{command}`")
    if not shares[columns.FORMAT.name] and (fault := columns.header_fault(sample, options, shares[best])):
        raise KgInputError(f"{source.path} {fault}")
    if not shares[tables.FORMAT.name] and (fault := tables.header_fault(sample, options, shares[best])):
        raise KgInputError(f"{source.path} {fault}")
    if sample and sample[0].startswith(_XML) and not FORMATS[best].specific:
        raise KgInputError(
            f"{source.path} is XML, of which we read RDF/XML and GraphML; make a table of it with a stylesheet, "
            f"`xsltproc to-csv.xsl {source.path.name} > table.csv`, and let `kgqa kg map table.csv` map that"
        )
    by_ending = next((name for name in hints if FORMATS[name].ending_decides), None)
    if by_ending is not None and not FORMATS[best].specific and not any(map(_PROLOGUE.match, sample)):
        return FORMATS[by_ending].reader()
    likely = next((name for name in reversed(hints) if shares[name] or FORMATS[name].name_suffices), None)
    if likely == DELIMITED.name and not shares[best] and (fault := tables.undeclared(sample, options)):
        raise KgInputError(f"{source.path} {fault}")
    if shares[best] < 0.5 and likely is not None:
        best = likely
    elif sample and shares[best] < 0.5:
        raise KgInputError(
            f"{source.path} is in no format that we know, for example {sample[0][:80]!r}; we read "
            f"{', '.join(FORMATS)} (`kgqa kg formats`): name it with `--format NAME`; of a table say what its columns "
            "are with kg.columns or kg.table, or convert RDF with `riot --output=nt FILE > graph.nt`"
        )
    return FORMATS[best].reader()
