"""Writes the packaged other names of relations from Wikidata's property labels and aliases (CC0).

    python -m tools.relation_names ../shared/data/relation_names/wikidata_properties.jsonl

A line has a label, then its nouns, participles and verbs by the shape of each name (`rewriting.phrases`), with `|`
between several.  Left out: properties of external identifiers, names with other signs than letters, of more than five
words, of two letters or all in capitals, and a name of several properties for all but the one with most statements.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kgqa_core.datasets.derived.thesaurus import PUBLIC
from kgqa_core.rewriting.phrases import phrase

NAME = re.compile(r"[A-Za-z][a-z'-]*( [A-Za-z][a-z'-]*){0,4}")

NO_NOUN = re.compile(r"^\w+ed$| (of|by|in|at|for|to|from|on|with|after|as)$|^(in|of|by|at|for|to|from|on|with|after) ")
"""Names that are neither nouns nor whole verbs, such as `published` and `indigenous to`; they are left out."""


def is_name(text: str) -> bool:
    """Whether a label or alias is plain words."""
    return NAME.fullmatch(text) is not None and not text.isupper() and len(text) > 2


def lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each property with other names, sorted."""
    chosen = sorted(
        (row for row in rows if row.get("datatype") != "ExternalId" and is_name(row["label"]) and row.get("aliases")),
        key=lambda row: (-row.get("count_2020", 0), row["id"]),
    )
    used = {row["label"].casefold() for row in chosen}
    made = []
    for row in chosen:
        label, others = row["label"].casefold(), []
        for alias in row["aliases"]:
            text = alias.casefold()
            if is_name(alias) and text not in used:
                used.add(text)
                others.append(text)
        if others:
            made.append("\t".join((label, *map("|".join, parts([label, *others])))))
    return sorted(made)


def parts(names: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
    """Names parted into nouns, participles with what follows them, and verbs in one and several."""
    nouns: list[str] = []
    passive: list[str] = []
    verbs: list[str] = []
    for name in names:
        read = phrase(name)
        if not read.is_verb:
            nouns += [name] * (NO_NOUN.search(name) is None)
        elif read.one.startswith(("is ", "was ")):
            passive.append(name.removeprefix("is ").removeprefix("was "))
        else:
            verbs.append(f"{read.one}~{read.many}")
    return nouns, passive, verbs


def main() -> None:
    """Reads the file that is named and writes the packaged one."""
    with Path(sys.argv[1]).open(encoding="utf-8") as rows:
        text = "\n".join(lines(map(json.loads, rows))) + "\n"
    PUBLIC.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    sys.stdout.write(f"{PUBLIC.name}: {text.count(chr(10)):,} relations, {PUBLIC.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
