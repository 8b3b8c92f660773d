"""Wikidata's JSON with fewer claims: an entity of the subset stays one line, with ranks and qualifiers.

Claims stay that are kept as statements, references and sitelinks go.  A line whose entity is not of the subset is only
looked at for its id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from kgqa_core.kg.formats.base import ENTITY
from kgqa_core.kg.formats.wikidata.json import MAX_DOCUMENT, spans_lines
from kgqa_core.kg.formats.wikidata.json_entity import (
    CATEGORY,
    CLAIMS,
    FEATURE,
    FORM,
    LANGUAGE,
    SAME_AS,
    SENSE,
    TEXTS,
    Unreadable,
    decode,
    readable_claims,
)
from kgqa_core.kg.subset.codes import codes_of
from kgqa_core.kg.subset.edges import EdgeBlock
from kgqa_core.kg.subset.keep import KeepRule, PartCounts, note_facts
from kgqa_core.kg.subset.part import PartWriter
from kgqa_core.kg.subset.read import DumpFile
from kgqa_core.kg.subset.roles import TYPE, Relations
from kgqa_core.monitor import Monitor

LEFT_OUT = ("sitelinks", "references")

_START = re.compile(rb'\s*,?\s*\{\s*"type"\s*:\s*"[a-z]+"\s*,\s*"id"\s*:\s*"([^"\\]+)"')


class Statement(NamedTuple):
    """Subject, property and the entity that is its value; None for a literal."""

    subject: str
    relation: str
    entity: str | None


Decide = Callable[[Statement], bool]


def write_entities(
    file: DumpFile, wanted: KeepRule, part_counts: PartCounts, out: PartWriter, monitor: Monitor
) -> None:
    """Writes the entities of a file that belong to the subset."""
    relations = file.relations()
    for texts, lines, fraction in _documents(file):
        part_counts.counts["lines"] += lines
        entities = _chosen(texts, wanted)
        statements: list[Statement] = []

        def collect(statement: Statement, statements: list[Statement] = statements) -> bool:
            statements.append(statement)
            return True

        for entity in entities:
            _filtered(entity, collect, file.options.ranks, wanted, PartCounts(part_counts.hits))
        decisions = iter(_decisions(statements, relations, wanted, part_counts))

        def decided(_: Statement, decisions: Iterator[bool] = decisions) -> bool:
            return next(decisions)

        for entity in entities:
            reduced, facts = _filtered(entity, decided, file.options.ranks, wanted, part_counts)
            _write(reduced, facts, wanted, out)
        monitor.progress(round(100 * fraction, 1), 100, f"% · entities of {file.source.label}")


def _documents(file: DumpFile) -> Iterator[tuple[list[bytes], int, float]]:
    """Texts of JSON documents, how many lines they were, and the share of the file read."""
    if spans_lines(file.source.head()):
        with file.source.stream() as stream:
            data = b"".join(iter(lambda: stream.read(1 << 20), b""))
        assert len(data) <= MAX_DOCUMENT
        yield [data], data.count(b"\n") + 1, 1.0
        return
    for chunk in file.source.chunks():
        yield chunk.data.split(b"\n")[:-1], chunk.data.count(b"\n") + chunk.rejects.height, chunk.fraction


def _chosen(texts: list[bytes], wanted: KeepRule) -> list[dict[str, Any]]:
    """The entities that may belong to the subset."""
    keys, indexes, entities = [], [], []
    whole: list[dict[str, Any]] = []
    for index, text in enumerate(texts):
        if match := _START.match(text):
            keys.append(match[1].decode(errors="replace"))
            indexes.append(index)
            continue
        whole += _entities(text)
    if keys:
        codes = codes_of(keys)
        for at in np.flatnonzero(wanted.names.has(codes) | wanted.relations.has(codes)).tolist():
            entities += _entities(texts[indexes[at]])
    if whole:
        codes = codes_of([str(entity.get("id", entity.get("entity"))) for entity in whole])
        chosen = wanted.names.has(codes) | wanted.relations.has(codes)
        entities += [entity for entity, is_chosen in zip(whole, chosen.tolist(), strict=True) if is_chosen]
    return entities


def _entities(text: bytes) -> list[dict[str, Any]]:
    """Entities of a line or document; none where it is no JSON, which the first pass has rejected."""
    text = text.strip(b" \t\r\n").removesuffix(b",").removeprefix(b",").strip(b" \t\r\n")
    if text in (b"", b"[", b"]"):
        return []
    for candidate in (text, text[1:] * text.startswith(b"["), text[:-1] * text.endswith(b"]")):
        try:
            value = decode(candidate)
            break
        except Unreadable:
            continue
    else:
        return []
    if isinstance(value, dict) and "id" not in value and isinstance(value.get("entities"), dict | list):
        value = value["entities"]
        value = list(value.values()) if isinstance(value, dict) else value
    values = value if isinstance(value, list) else [value]
    return [value for value in values if _has_key(value)]


def _has_key(value: Any) -> bool:
    """Whether a value is an entity that is there, or a redirect."""
    return isinstance(value, dict) and isinstance(value.get("id", value.get("entity")), str) and "missing" not in value


def _decisions(
    statements: list[Statement], relations: Relations, wanted: KeepRule, part_counts: PartCounts
) -> list[bool]:
    """Which statements are kept; they are counted."""
    subject = codes_of(statement.subject for statement in statements)
    thing = codes_of(statement.entity for statement in statements)
    thing[np.array([statement.entity is None for statement in statements], dtype=np.bool_)] = 0
    by_statement = codes_of(statement.relation for statement in statements)
    local = relations.numbers(by_statement, lambda row: statements[row].relation)
    number = np.array([wanted.numbers[key] for key in relations.keys], dtype=np.int64)[local]
    typed = np.array([role == TYPE for role in relations.roles], dtype=np.bool_)[local]
    allowed = np.array(relations.allowed, dtype=np.bool_)[local]
    facts = wanted.reach.keeps(EdgeBlock(subject, thing, number, allowed))
    types = typed & (thing != 0) & wanted.reach.reached.has(subject) & ~facts
    facts |= types
    note_facts(subject[facts], thing[facts], number[facts], types[facts], wanted, part_counts)
    decisions: list[bool] = facts.tolist()
    return decisions


def _filtered(
    entity: dict[str, Any], decide: Decide, ranks: str, wanted: KeepRule, part_counts: PartCounts
) -> tuple[dict[str, Any], int]:
    """An entity with the claims that are kept, and their number; `decide` is called in the same order each time."""
    key = entity.get("id")
    if key is None:
        return entity, int(decide(Statement(entity["entity"], SAME_AS, entity.get("redirect"))))
    out: dict[str, Any] = {}
    facts = 0
    for name, value in entity.items():
        if name in LEFT_OUT:
            continue
        if name in TEXTS:
            out[name] = _texts_in_languages(value, wanted, part_counts)
        elif name in CLAIMS:
            claims = _claims(key, value, decide, ranks)
            out[name] = claims
            facts += sum(map(len, claims.values()))
        elif name in ("forms", "senses"):
            parts = []
            for part in value if isinstance(value, list) else [value]:
                if not isinstance(part, dict) or not isinstance(part.get("id"), str):
                    continue
                linked = decide(Statement(key, FORM if name == "forms" else SENSE, part["id"]))
                reduced, inner = _filtered(part, decide, ranks, wanted, part_counts)
                if linked or inner:
                    parts.append(reduced)
                    facts += linked + inner
            out[name] = parts
        elif name in ("grammaticalFeatures", "lexicalCategory") or (name == "language" and "lemmas" in entity):
            predicate = {"grammaticalFeatures": FEATURE, "lexicalCategory": CATEGORY, "language": LANGUAGE}[name]
            values = value if isinstance(value, list) else [value]
            linked_values = [
                text for text in values if isinstance(text, str) and text and decide(Statement(key, predicate, text))
            ]
            facts += len(linked_values)
            if linked_values:
                out[name] = linked_values if isinstance(value, list) else linked_values[0]
        else:
            out[name] = value
    return out, facts


def _claims(key: str, value: Any, decide: Decide, ranks: str) -> dict[str, list[Any]]:
    read = list(readable_claims(value))
    preferred = {property_ for _, property_, _, rank in read if rank > 0} if ranks == "truthy" else set()
    claims: dict[str, list[Any]] = {}
    for claim, property_, (thing, kind, _, _), rank in read:
        if ranks != "all" and (rank < 0 or (property_ in preferred and rank == 0)):
            continue
        if decide(Statement(key, property_, thing if kind == ENTITY else None)):
            reduced = {name: part for name, part in claim.items() if name not in LEFT_OUT}
            claims.setdefault(property_, []).append(reduced)
    return claims


def _texts_in_languages(value: Any, wanted: KeepRule, part_counts: PartCounts) -> Any:
    """Labels, descriptions or aliases in the languages that are kept."""
    if isinstance(value, dict) and wanted.languages:
        value = {language: text for language, text in value.items() if wanted.speaks(language)}
    if isinstance(value, dict):
        part_counts.counts["names"] += sum(len(texts) if isinstance(texts, list) else 1 for texts in value.values())
    return value


def _write(entity: dict[str, Any], facts: int, wanted: KeepRule, out: PartWriter) -> None:
    key = entity.get("id", entity.get("entity"))
    line = msgspec.json.encode(entity) + b"\n"
    code = codes_of([key])
    if facts or ("id" in entity and bool(wanted.names.has(code)[0])):
        out.lines(line)
    elif "id" in entity:
        out.relation_names(code, line)
