"""A graph in five lines for people: what was read, what is in it, what was guessed, what to do, what is left out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from kgqa_core.kg.look.stats import reading
from kgqa_core.kg.sql import number
from kgqa_core.kg.store import KgStore

SHOWN, LONGEST = 4, 320
"""Files, types, relations, notes and reasons that a line names, and characters of a note."""


def summary(store: KgStore) -> list[str]:
    """The five lines that `kgqa kg build` ends with, from the graph and what was counted while it was read."""
    read, counts = reading(store), store.counts()
    folder = shlex.quote(str(store.path.parent))
    return [
        _read(read, counts),
        _holds(store, counts),
        f"Guessed and noted: {_listed(_notes(read, store.meta), '; ') or 'nothing'}.",
        f"Next: {_next(store, folder)}",
        _left_out(read, counts, folder),
    ]


def _read(read: Mapping[str, Any], counts: Mapping[str, int]) -> str:
    files = _listed([f"{label} as {format}" for label, format in read.get("files", {}).items()])
    repeated = f", {read['duplicates']:,} of them stated before" if read.get("duplicates") else ""
    statements = f"{read['statements']:,} statements{repeated}" if "statements" in read else "an update"
    return f"Read: {f'{files}: ' if files else ''}{statements}; {counts['triples']:,} triples."


def _holds(store: KgStore, counts: Mapping[str, int]) -> str:
    run = store.connection.execute
    rows = run("SELECT type, count(*) AS n FROM types GROUP BY type ORDER BY n DESC, type").fetchall()
    names = store.names(type for type, _ in rows[:SHOWN])
    types = _listed([f"{n:,} {names[type]}" for type, n in rows[:SHOWN]], more=len(rows) - SHOWN)
    relations = run("SELECT relation FROM triples GROUP BY relation ORDER BY count(*) DESC, relation").fetchall()
    labels = store.relation_names()
    frequent = _listed([labels[relation] for (relation,) in relations[:SHOWN]], more=len(relations) - SHOWN)
    return (
        f"Holds: {counts['entities']:,} things ({types or 'none with a type'}) and {counts['literals']:,} values, in "
        f"{len(relations):,} relations ({frequent})."
    )


def _notes(read: Mapping[str, Any], meta: Mapping[str, Any]) -> list[str]:
    """What a build noted; of a graph without such a record, what its meta says."""
    if "notes" in read:
        return list(read["notes"])
    read_as = meta.get("read_as", {}).items()
    guesses = [f"{label}: {'; '.join(map(': '.join, sorted(found.items())))}" for label, found in read_as]
    return guesses + list(meta.get("tables", {}).get("notes", ()))


def _next(store: KgStore, folder: str) -> str:
    steps = []
    if not number(store.connection, "SELECT count(*) FROM types"):
        steps.append("name the relation that says what things are, if there is one: --set 'kg.type_predicates=[…]'")
    unnamed = number(
        store.connection,
        "SELECT count(*) FROM entities WHERE kind = 'entity' AND id NOT IN (SELECT id FROM labels WHERE label IS NOT "
        "NULL) AND regexp_matches(key, '[/#:][0-9._-]+$|^[QP][1-9][0-9]*$|^[mg]\\.0')",
    )
    if unnamed:
        steps.append(f"{unnamed:,} things are called by their keys: add a file of labels (key, tab, label)")
    return "; ".join([*steps, f"`kgqa kg stats --kg {folder}`, then `kgqa run --kg FILES` to ask questions"]) + "."


def _left_out(read: Mapping[str, Any], counts: Mapping[str, int], folder: str) -> str:
    rules = [f"{rule}: {n:,}" for rule, n in read.get("filtered_by_rule", {}).items() if n]
    by_rule = f"left out by rule: {_listed(rules)}" if rules else ""
    if not counts.get("rejects"):
        return f"{by_rule[:1].upper()}{by_rule[1:]}." if by_rule else "No statement is left out."
    reasons = _listed([f"{reason}: {n:,}" for reason, n in read.get("rejects_by_reason", {}).items()], "; ")
    return (
        f"{counts['rejects']:,} of {read.get('statements', counts['triples']):,} statements are rejected and left out"
        f"{f'; {by_rule}' if by_rule else ''}. Reasons: {reasons or 'see the list'}; list: "
        f"`kgqa kg sql --kg {folder} 'SELECT * FROM rejects'`"
    )


def _listed(texts: Sequence[str], separator: str = ", ", more: int = 0) -> str:
    """The first texts, cut where they are long, and how many there are beside."""
    more = max(more, len(texts) - SHOWN)
    cut = [text[: LONGEST - 1].rpartition("; ")[0] or text[: LONGEST - 1] for text in texts[:SHOWN]]
    short = [text if len(text) <= LONGEST else f"{part}…" for text, part in zip(texts, cut, strict=False)]
    return separator.join([*short, *([f"{more:,} more"] if more > 0 else [])])
