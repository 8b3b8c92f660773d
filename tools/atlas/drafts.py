"""What a question is before it is put into words, and what the makers of questions need to know about the graph."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from kgqa_core.types import INVERSE
from tools.atlas import vocabulary as v
from tools.atlas.graph import AtlasGraph

Path = tuple[str, ...]

ARTICLE = {
    "Bahamas", "British Indian Ocean Territory", "British Virgin Islands", "Cayman Islands", "Central African Republic",
    "Cocos Islands", "Comoros", "Cook Islands", "Democratic Republic of the Congo", "Dominican Republic",
    "Falkland Islands", "Faroe Islands", "French Southern Territories", "Gambia", "Isle of Man", "Maldives",
    "Marshall Islands", "Northern Mariana Islands", "Palestinian Territory", "Philippines", "Republic of the Congo",
    "Seychelles", "Solomon Islands", "Turks and Caicos Islands", "U.S. Virgin Islands", "United Arab Emirates",
    "United Kingdom", "United States", "United States Minor Outlying Islands", "Vatican", "Åland Islands",
}  # fmt: skip
"""Countries that English names with an article."""

SMALLEST_TOPIC_CITY = 50_000
"""Inhabitants of the smallest city that is a topic, capitals apart."""


@dataclass(frozen=True)
class QuestionDraft:
    """One question without its words.

    slots: letter of the slot in the wording to the entity key or the plain text that fills it.
    topics: topic entities.  paths: relation paths from the topics, in full keys.  answers: keys or literal values.
    """

    template: str
    complexity: str
    slots: dict[str, str]
    topics: tuple[str, ...]
    paths: tuple[Path, ...]
    answers: tuple[str, ...]
    answer_type: str = "entities"
    s_expression: str | None = None

    @property
    def group(self) -> str:
        """Topics and paths, whatever their order: questions of one group go to the same split."""
        return "|".join([*sorted(self.topics), *sorted("/".join(p) for p in self.paths)])

    @property
    def hops(self) -> int:
        """Length of the longest path."""
        return max(len(path) for path in self.paths)


@dataclass
class World:
    """The graph with the pools that topics are drawn from.  Every pool is a sorted list of keys."""

    graph: AtlasGraph
    pools: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        often = Counter(label.casefold() for label in self.graph.labels.values())
        for kind in ("country", "city", "subdivision", "language", "currency", "continent"):
            keys = self.graph.of_kind(kind)
            self.pools[kind] = [k for k in keys if often[self.graph.labels[k].casefold()] == 1 and self._plain(k)]
        capitals = self.graph.edges[INVERSE + v.relation("capital")]
        self.pools["capital"] = [key for key in self.pools["city"] if key in capitals]
        self.pools["city"] = [
            key
            for key in self.pools["city"]
            if key in capitals or (self.graph.number(key, "population") or 0) >= SMALLEST_TOPIC_CITY
        ]

    def _plain(self, key: str) -> bool:
        """Whether a label reads well in a sentence: short, starting and ending with a letter, without odd marks."""
        label = self.graph.labels[key]
        plain = not any(c.isdigit() or c in '/()[],"' for c in label)
        return plain and label[0].isupper() and label[-1].isalpha() and len(label) <= 40

    def shuffled(self, kind: str, rng: random.Random) -> list[str]:
        """A pool in random order."""
        return rng.sample(self.pools[kind], len(self.pools[kind]))

    def reach(self, key: str, path: Iterable[str]) -> list[str]:
        """What a path given by local names reaches from one entity."""
        return self.graph.follow([key], [v.relation(name) for name in path])

    def name(self, key: str) -> str:
        """How a sentence names an entity, with `the` where English wants it; other texts stay as they are."""
        label = self.graph.labels.get(key, key)
        article = v.kind_of(key) == "currency" or (v.kind_of(key) == "country" and label in ARTICLE)
        return f"the {label}" if article else label

    @cached_property
    def spoken_labels(self) -> set[str]:
        """Labels of all entities that are not types, as written: what a reader could take for a topic entity."""
        return {text for key, text in self.graph.labels.items() if v.kind_of(key) not in {"", "type"}}


def full(*names: str) -> Path:
    """A relation path in full keys from local names."""
    return tuple(v.relation(name) for name in names)


def expression(topic: str, path: Path) -> str:
    """A GrailQA s-expression of what a path reaches from a topic: JOIN r e for inverse steps, JOIN (R r) e else."""
    text = topic
    for step in path:
        text = f"(JOIN {step[len(INVERSE) :]} {text})" if step.startswith(INVERSE) else f"(JOIN (R {step}) {text})"
    return text
