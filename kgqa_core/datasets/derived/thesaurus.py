"""English words for relations and types that are common in ontologies, keyed by the words of a label.

`data/thesaurus.yaml` is written from general knowledge of English: it belongs to no graph and no question set.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from kgqa_core.datasets.files.packaged_yaml import read_yaml
from kgqa_core.errors import ConfigError

FILES = tuple(Path(__file__).parent / "data" / name for name in ("thesaurus.yaml", "thesaurus_zh.yaml"))
"""English, and Chinese."""
_LISTS = ("labels", "nouns", "passive", "active", "verb", "ask", "back", "most", "least", "more_than", "less_than",
          "more", "less")  # fmt: skip
_WORD = re.compile(r"[^\W_]+")
_BRACKETS = re.compile(r"[(\[][^)\]]*[)\]]")
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


@dataclass(frozen=True)
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

    def measure(self, label: str, units: Collection[str] = ()) -> RelationEntry | None:
        """The entry of the measure that a longer label ends with, as of `unit price` and `top speed (km/h)`.

        units: words behind it, as in `duration minutes`.
        """
        words = _BRACKETS.sub(" ", label.casefold().replace("-", " ")).partition(" of ")[0].split()
        while words and words[-1] in units:
            words.pop()
        found = (self.relations.get(" ".join(words[start:])) for start in range(len(words)))
        return next((entry for entry in found if entry is not None and (entry.most or entry.least)), None)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Every word that words a relation or a type, in lower case."""
        texts = list(self.types)
        for entry in self.relations.values():
            texts += [*entry.labels, *entry.nouns, *entry.passive, *entry.active, *entry.ask, *entry.back]
            texts += [text for pair in entry.verb for text in pair]
        return frozenset(word for text in texts for word in _WORD.findall(text.lower()))

    def type(self, label: str) -> tuple[str, ...]:
        """Other words for a type's label; none where it is not listed."""
        return self.types.get(label.casefold(), ())


@cache
def thesaurus() -> Thesaurus:
    """The packaged thesaurus."""
    return read_thesaurus(*FILES)


def read_thesaurus(*paths: Path) -> Thesaurus:
    """A thesaurus of files of this format.  Raises ConfigError for an unknown field, and for a label used twice."""
    relations: dict[str, RelationEntry] = {}
    types: list[list[str]] = []
    words: list[list[str]] = []
    for path in paths:
        table: dict[str, Any] = read_yaml(path.read_text(encoding="utf-8"))
        for row in table["relations"]:
            entry = _entry(row, path)
            for label in entry.labels:
                if label in relations:
                    raise ConfigError(f"{path.name}: the relation label {label!r} is in two entries; leave it in one")
                relations[label] = entry
        types += table.get("types", [])
        words += table.get("words", [])
    return Thesaurus(relations, _groups(types), _groups(words))


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
    results: dict[str, dict[str, None]] = {}
    for row in rows:
        for word in row:
            others = results.setdefault(word, {})
            others.update(dict.fromkeys(other for other in row if other != word))
    return {word: tuple(others) for word, others in results.items()}
