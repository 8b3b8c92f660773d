"""Which reader reads a file: the configured one, or the one that understands most of its first lines."""

from __future__ import annotations

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.kg.formats.base import Reader
from kgqa_core.kg.formats.delimited import Delimited
from kgqa_core.kg.formats.ntriples import NTriples
from kgqa_core.kg.formats.source import Source

READERS: dict[str, Reader] = {reader.name: reader for reader in (NTriples(), Delimited())}
"""Every reader by name; of readers that understand a file equally well the earlier one reads it."""

_BY_NAME = {".nt": "ntriples", ".tsv": "delimited", ".csv": "delimited", ".psv": "delimited"}

_LOOKS_LIKE = (("@prefix", "Turtle"), ("PREFIX ", "Turtle"), ("<?xml", "RDF/XML"), ("{", "JSON"), ("[", "JSON"))


def check_format(name: str) -> None:
    """Raises KgInputError when no reader has this name."""
    if name != "auto" and name not in READERS:
        known = ["auto", *READERS]
        raise KgInputError(f"kg.format {name!r} is unknown{nearest(name, known)}; known are {', '.join(known)}")


def reader_of(source: Source, options: KgOptions) -> Reader:
    """The reader of a source.  Raises KgInputError for an unknown format, or when no reader understands the file."""
    check_format(options.format)
    if options.format != "auto":
        return READERS[options.format]
    lines = source.head()
    meant = [line for line in lines if not line.lstrip().startswith("#")] or lines
    suffixes = [suffix.lower() for suffix in source.path.suffixes if suffix.lower() != ".gz"]
    hinted = _BY_NAME.get(suffixes[-1]) if suffixes else None
    shares = {name: reader.sniff(meant, options) for name, reader in READERS.items()}
    best = max(READERS, key=lambda name: (shares[name], name == hinted, -list(READERS).index(name)))
    if shares[best] < 0.5 and hinted is not None:
        best = hinted
    elif meant and shares[best] < 0.5:
        looks = next((f" (it looks like {what})" for start, what in _LOOKS_LIKE if meant[0].startswith(start)), "")
        raise KgInputError(
            f"{source.path} is in no format that we know{looks}: most of its lines are neither N-Triples nor three "
            f"fields cut by tab, '|' or ';', for example {meant[0][:80]!r}; name kg.format ({', '.join(READERS)}) and "
            "kg.delimiter, or convert it to N-Triples"
        )
    return READERS[best]
