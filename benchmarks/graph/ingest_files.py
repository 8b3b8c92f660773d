"""Realistic N-Triples of any size: skewed entities, names in several languages, typed literals, some escapes."""

from __future__ import annotations

import bz2
import gzip
import shutil
from pathlib import Path

import numpy as np

PIECE = 200_000
"""Lines that are made at once."""

_LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_LANGUAGES = ("en", "de", "fr", "ja", "pt-br")
_WORDS = "river north old grand museum of city lake saint upper station bridge castle school valley great".split()


def write(path: Path, lines: int, seed: int = 0, only: int | None = None) -> None:
    """Writes so many lines; the same lines and seed give the same file.

    65 % of the statements end in an entity; of the rest two thirds are labels (at most one an entity and language, so
    that some are repeated), the others numbers, dates and texts, some of them with escapes.  There is an entity for
    every eight lines; some are named much oftener than others.  only: how many of the lines are written.
    """
    generator = np.random.default_rng(seed)
    entities = max(10, lines // 8)
    # A shuffle that is no table: keys do not come in the order of how often they are used.
    factor = 2_654_435_761 % entities | 1
    while np.gcd(factor, entities) != 1:
        factor += 2
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        wanted = lines if only is None else min(only, lines)
        for first in range(0, wanted, PIECE):
            count = min(PIECE, wanted - first)
            subjects = (entities * generator.random(count) ** 3).astype(np.int64) * factor % entities
            objects = (entities * generator.random(count) ** 4).astype(np.int64) * factor % entities
            relations = (400 * generator.random(count) ** 2).astype(np.int64)
            kinds, values = generator.random(count), generator.integers(0, lines, count)
            rows = zip(
                subjects.tolist(), relations.tolist(), objects.tolist(), kinds.tolist(), values.tolist(), strict=True
            )
            stream.writelines(_line(*row) for row in rows)


def _line(subject: int, relation: int, thing: int, kind: float, value: int) -> str:
    head = f"<http://example.org/resource/E{subject}>"
    if kind < 0.65:
        return f"{head} <http://example.org/ontology/relation{relation}> <http://example.org/resource/E{thing}> .\n"
    if kind < 0.88:
        word, other = _WORDS[subject % 16], _WORDS[subject // 16 % 16]
        return f'{head} {_LABEL} "{word} {other} {subject}"@{_LANGUAGES[value % 5]} .\n'
    if kind < 0.94:
        return f'{head} <http://example.org/ontology/count{relation % 60}> "{value}"^^<{_XSD}integer> .\n'
    if kind < 0.97:
        day = f"{1500 + value % 520}-{1 + value % 12:02}-{1 + value % 28:02}"
        return f'{head} <http://example.org/ontology/day{relation % 20}> "{day}"^^<{_XSD}date> .\n'
    text = f'caf\\u00E9 {value % 100_000} \\"{_WORDS[value % 16]}\\" größe'
    return f'{head} <http://example.org/ontology/note{relation % 20}> "{text}" .\n'


def compress(path: Path, suffix: str) -> Path:
    """The file compressed beside itself, as `.gz`, `.zst` or `.bz2`."""
    target = path.with_name(path.name + suffix)
    with path.open("rb") as source:
        if suffix == ".zst":
            import zstandard

            with target.open("wb") as out:
                zstandard.ZstdCompressor(level=3).copy_stream(source, out)
        elif suffix == ".gz":
            with gzip.open(target, "wb", 6) as packed:
                shutil.copyfileobj(source, packed, 1 << 20)
        else:
            with bz2.open(target, "wb") as slow:
                shutil.copyfileobj(source, slow, 1 << 20)
    return target


def head_of(path: Path, lines: int) -> Path:
    """A file of the first lines."""
    target = path.with_name(f"{path.stem}-{lines}{path.suffix}")
    with path.open("rb") as source, target.open("wb") as out:
        for _, line in zip(range(lines), source, strict=False):
            out.write(line)
    return target
