"""Words for relations and types that are common in ontologies, keyed by the words of a label: by hand, and Wikidata's.

The hand-written entries were written with the relations of graphs that are scored in view (docs/test_sets.md).
Evaluations therefore give their figures without the entries of the scored graph, too: `Thesaurus.without`, which the
variable WITHOUT switches on.  A relation without an entry has the other names that Wikidata's properties have.
"""

from __future__ import annotations

import gzip
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from kgqa_core.datasets.files.packaged_yaml import read_yaml
from kgqa_core.errors import ConfigError

FILES = tuple(Path(__file__).parent / "data" / name for name in ("thesaurus.yaml", "thesaurus_zh.yaml"))
"""English, and Chinese."""
PUBLIC = FILES[0].with_name("relation_names.tsv.gz")
"""Labels and aliases of Wikidata's properties (CC0); tools/relation_names.py writes it."""
WITHOUT = "KGQA_THESAURUS_WITHOUT"
"""The environment variable that names a file of relation names, one a line, whose entries are left out."""
_LISTS = ("labels", "nouns", "passive", "active", "verb", "ask", "back", "most", "least", "more_than", "less_than",
          "more", "less")  # fmt: skip
_WORD = re.compile(r"[^\W_]+")
_PAID = ("price", "cost", "fee", "rent", "wage", "salary", "rate")
"""What is paid per hour, piece or kilogram."""
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

    @property
    def name(self) -> str:
        """Its first label, by which it is told from others; "" of one without labels."""
        return self.labels[0] if self.labels else ""


@dataclass(frozen=True, eq=False)
class Thesaurus:
    """relations: label → entry.  types: singular label → other words for it.  words: word → other words.

    It is equal to itself alone, so that what is derived from one can be cached by it.
    """

    relations: Mapping[str, RelationEntry]
    types: Mapping[str, tuple[str, ...]]
    words: Mapping[str, tuple[str, ...]]

    def relation(self, label: str) -> RelationEntry | None:
        """The entry of a relation's label in plain words, in any case and with or without a leading `has` or `is`."""
        return next((self.relations[form] for form in _forms(label) if form in self.relations), None)

    def without(self, names: Iterable[str]) -> Thesaurus:
        """This thesaurus without each entry that matches one of these names: those of the relations of a scored graph.

        An entry matches where `relation` gives it for a name by any of its labels, and that of a measure where a label
        of it is whole words of the name, as `price` of `unit price`.  What remains gives nothing for any of the names.
        names: labels and keys, in plain words.  Types and general words stay.
        """
        named = list(names)
        forms = {form for name in named for form in _forms(name)}
        padded = [f" {' '.join(_BRACKETS.sub(' ', name.casefold().replace('-', ' ')).split())} " for name in named]
        matching = {
            id(entry) for label, entry in self.relations.items()
            if label in forms or ((entry.most or entry.least) and any(f" {label} " in name for name in padded))
        }  # fmt: skip
        rest = {label: entry for label, entry in self.relations.items() if id(entry) not in matching}
        return Thesaurus(rest, self.types, self.words)

    def measure(self, label: str, units: Collection[str] = ()) -> RelationEntry | None:
        """The entry of the measure that a longer label ends with, as of `unit price` and `top speed (km/h)`.

        units: words behind it, as in `duration minutes` and `height in cm`.
        """
        plain, per, _ = _BRACKETS.sub(" ", label.casefold().replace("-", " ")).partition(" of ")[0].partition(" per ")
        if per and plain.split()[-1:] not in ([own] for own in _PAID):
            return None  # `inhabitants per km2`
        words = plain.split()
        size = len(words)
        while words and (words[-1] in units or (words[-1] == "in" and len(words) < size)):
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


def thesaurus() -> Thesaurus:
    """The packaged thesaurus, without the entries that match a name in the file of the variable WITHOUT, if it is set.

    Raises ConfigError where that file cannot be read.
    """
    return _packaged(os.environ.get(WITHOUT, ""))


@cache
def _packaged(names: str) -> Thesaurus:
    if not names:
        return read_thesaurus(*FILES)
    try:
        lines = Path(names).read_text(encoding="utf-8").splitlines()
    except OSError as fault:
        raise ConfigError(
            f"{WITHOUT} names {names!r}, which cannot be read ({fault.strerror}); "
            "name a file of relation names, one a line, or unset it"
        ) from fault
    return _packaged("").without(lines)


def public_names(label: str) -> RelationEntry | None:
    """Other names of a relation by its label: those of the property of Wikidata that alone is called so."""
    names = _public()
    return next((names[form] for form in _forms(label) if form in names), None)


_OPEN = (" by", " of", " from", " to", " in", " at", " for", " with", " on")
"""Ends of labels that what they lead to completes."""


@cache
def _public() -> Mapping[str, RelationEntry]:
    """The packaged names: nouns, participles and verbs of each property, by its label and by nouns of it alone."""
    by_label: dict[str, RelationEntry] = {}
    for line in gzip.decompress(PUBLIC.read_bytes()).decode().splitlines():
        label, *columns = line.split("\t")
        nouns, passive, verbs = (tuple(filter(None, column.split("|"))) for column in columns)
        pairs = [verb.partition("~") for verb in verbs]
        nouns = () if label.endswith(_OPEN) else nouns  # `after a work by` is no noun, nor are its other names
        by_label[label] = RelationEntry(nouns=nouns, passive=passive, verb=tuple((one, many) for one, _, many in pairs))
    aliases = Counter(name for entry in by_label.values() for name in entry.nouns)
    own = {name: entry for entry in by_label.values() for name in entry.nouns if aliases[name] == 1}
    return own | by_label


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


_BESIDES = re.compile(
    r"^(?:current|main|primary) (?=\w)|(?<=\w) (?:names?|ids?|this (?:season|year|month|week)|so far|to date)$"
)


def _forms(label: str) -> tuple[str, ...]:
    """A label as entries are looked up by it: as it is, without a leading `has` or `is`, and without what a table says
    besides, as in `supplier name` and `goals this season`."""
    key = " ".join(label.casefold().replace("-", " ").replace(",", "").split())
    return key, key.removeprefix("has "), key.removeprefix("is "), _BESIDES.sub("", key)


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
