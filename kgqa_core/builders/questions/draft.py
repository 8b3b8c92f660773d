"""A question before it has words: its form, what the form gives, and the kind that it was made as."""

from __future__ import annotations

from dataclasses import dataclass

from kgqa_core.logic.forms import Form, elements
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.paths import to_paths

COMPLEXITY = {
    "one_hop": "generic", "two_hops": "multi-hop", "three_hops": "multi-hop", "siblings": "multi-hop",
    "typed": "generic", "members": "generic", "intersection": "intersection", "union": "generic",
    "total": "count", "average": "count", "share": "count", "group": "count", "first_k": "superlative",
    "greatest_value": "superlative", "least_value": "superlative",
    "difference": "difference", "count": "count", "best_of_path": "superlative", "best_of_type": "superlative",
    "best_of_typed_path": "superlative", "ordinal": "ordinal", "comparative": "comparative", "bounds": "comparative",
    "yes_no": "yes/no", "existence": "yes/no", "qualified": "generic", "after_best": "superlative",
    "absence": "difference", "text_value": "generic", "empty": "intersection",
}  # fmt: skip
"""Kind, a field of `KindShares` → Mintaka's type that reports count it under."""
YES_NO = tuple(kind for kind, complexity in COMPLEXITY.items() if complexity == "yes/no")
"""Kinds that are answered with yes or no."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One question without its words.

    nodes: ids of the answers, ascending; empty where `value` (of a count or a yes/no) is the answer.
    """

    kind: str
    form: Form
    nodes: tuple[int, ...] = ()
    value: float | bool | None = None

    @property
    def key(self) -> str:
        """What is the same for two questions that mean the same by their shape."""
        return str(normalise(self.form))

    @property
    def topics(self) -> tuple[str, ...]:
        """Keys of the entities that the form names, else of its types, which are entities of the graph too."""
        used = elements(self.form)
        return used.entities or used.classes

    @property
    def group(self) -> str:
        """What no two splits share: the entities and the relation paths, else the form."""
        paths = sorted(" ".join(path.relations) for path in to_paths(self.form) if path.relations)
        return "|".join((*sorted(self.topics), "", *paths)) if paths else self.key
