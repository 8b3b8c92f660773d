"""English words for relations and types that are common in ontologies, keyed by the words of a label.

`data/thesaurus.yaml` is written from general knowledge of English: it belongs to no graph and no question set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kgqa_core.errors import ConfigError

FILE = Path(__file__).parent / "data" / "thesaurus.yaml"
_LISTS = ("labels", "nouns", "passive", "active", "verb", "ask", "back", "most", "least", "more_than", "less_than",
          "more", "less")  # fmt: skip
_TEXTS = ("head", "tail", "wh")


@dataclass(frozen=True, slots=True)
class RelationEntry:
    """Words for one relation; what each field holds stands at the top of `data/thesaurus.yaml`.

    verb: pairs of the form for one and for several.  ask, back: questions with `<x>`; more, less: bounds with `<v>`.
    """

    labels: tuple[str, ...] = ()
    nouns: tuple[str, ...] = ()
    passive: tuple[str, ...] = ()
    active: tuple[str, ...] = ()
    verb: tuple[tuple[str, str], ...] = ()
    ask: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    most: tuple[str, ...] = ()
    least: tuple[str, ...] = ()
    more_than: tuple[str, ...] = ()
    less_than: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    head: str = ""
    tail: str = ""
    wh: str = ""


@dataclass(frozen=True, slots=True)
class Thesaurus:
    """relations: label → entry.  types: singular label → other words for it.  words: word → other words."""

    relations: Mapping[str, RelationEntry]
    types: Mapping[str, tuple[str, ...]]
    words: Mapping[str, tuple[str, ...]]

    def relation(self, label: str) -> RelationEntry | None:
        """The entry of a relation's label in plain words, in any case and with or without a leading `has` or `is`."""
        key = " ".join(label.casefold().replace("-", " ").replace(",", "").split())
        for form in (key, key.removeprefix("has "), key.removeprefix("is ")):
            if form in self.relations:
                return self.relations[form]
        return None

    def type(self, label: str) -> tuple[str, ...]:
        """Other words for a type's label; none where it is not listed."""
        return self.types.get(label.casefold(), ())


@cache
def thesaurus() -> Thesaurus:
    """The packaged thesaurus."""
    return read_thesaurus(FILE)


def read_thesaurus(path: Path) -> Thesaurus:
    """A thesaurus of the same format.  Raises ConfigError for a field that is unknown, and for a label used twice."""
    table: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    relations: dict[str, RelationEntry] = {}
    for row in table["relations"]:
        entry = _entry(row, path)
        for label in entry.labels:
            if label in relations:
                raise ConfigError(f"{path.name}: the relation label {label!r} is in two entries; leave it in one")
            relations[label] = entry
    return Thesaurus(relations, _groups(table["types"]), _groups(table["words"]))


def _entry(row: Mapping[str, Any], path: Path) -> RelationEntry:
    unknown = sorted(set(row) - {*_LISTS, *_TEXTS})
    if unknown or not row.get("labels"):
        raise ConfigError(f"{path.name}: entry {row.get('labels')} has unknown fields {unknown} or no labels")
    lists = {name: tuple(row.get(name, ())) for name in _LISTS}
    verbs = []
    for text in lists.pop("verb"):
        one, _, many = text.partition("|")
        verbs.append((one, many or one))
    head, tail, wh = (str(row.get(name, "")) for name in _TEXTS)
    return RelationEntry(verb=tuple(verbs), head=head, tail=tail, wh=wh, **lists)


def _groups(rows: list[list[str]]) -> dict[str, tuple[str, ...]]:
    """Word → the other words of every group that it is in, each once."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        for word in row:
            others = found.setdefault(word, {})
            others.update(dict.fromkeys(other for other in row if other != word))
    return {word: tuple(others) for word, others in found.items()}
