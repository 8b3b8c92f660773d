"""Questions of one form, which stand in one split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class FormGroup:
    """Questions of one form.  members: their indices.  kind: of the drop that made them unanswerable, else None.

    missing, touched: steps, as of `build.GraphOutcome`.  elements: what the form names, `e1`, `r2`, `t3`.
    """

    members: tuple[int, ...]
    kind: str | None
    missing: frozenset[int] = frozenset()
    touched: frozenset[int] = frozenset()
    elements: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """Questions in it."""
        return len(self.members)

    @cached_property
    def schema(self) -> frozenset[str]:
        """The relations and types among its elements."""
        return frozenset(element for element in self.elements if element[0] != "e")
