"""The query changed to return intermediate entities (Wu et al. 2023, section 3.2): every variable of its group."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kgqa_core.logic.sparql_execution.engine import NotExecuted

_TOKEN = re.compile(
    r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|<[^<>\s]*>|[{}]|[?$]\w+|\w+:[\w.%-]*|\bSELECT\b|\bASK\b|\w+""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class QueryText:
    """A query in parts.  start: what stands before SELECT or ASK.  group: what is inside the outermost braces."""

    start: str
    group: str

    def changed(self, variable: str, answers: Sequence[str], order: Sequence[str] = ()) -> str:
        """A query for all variables in the solutions that have one of some answers, or in all without a variable.

        order: variables by which the solutions are ordered.
        """
        values = f" VALUES ?{variable} {{ {' '.join(answers)} }}" if variable else ""
        ordered = f" ORDER BY {' '.join(f'?{name}' for name in order)}" if order else ""
        return f"{self.start} SELECT DISTINCT * WHERE {{ {self.group}{values} }}{ordered}"

    def inner(self) -> str | None:
        """The text of the query that is all that the group has; None where it has more."""
        group = self.group
        while (text := group.strip()).startswith("{") and _closing(text, 0) == len(text) - 1:
            group = text[1:-1]
        return f"{self.start} {text}" if re.match(r"SELECT\b", text, re.IGNORECASE) else None


def split_query(text: str) -> QueryText:
    """The parts of a query in standard SPARQL.  Raises NotExecuted where it has no braces."""
    begins: int | None = None
    for match in _TOKEN.finditer(text):
        if begins is None and match[0].upper() in ("SELECT", "ASK"):
            begins = match.start()
        elif match[0] == "{" and begins is not None:
            end = _closing(text, match.start())
            if end is not None:
                return QueryText(text[:begins], text[match.end() : end])
    raise NotExecuted("it has no group in braces")


def _closing(text: str, place: int) -> int | None:
    """Where the brace at a place is closed."""
    depth = 0
    for match in _TOKEN.finditer(text, place):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0 and match[0] == "}":
            return match.start()
    return None
