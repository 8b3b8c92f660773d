"""The process that runs SPARQL: pyoxigraph over the triples that it is sent, for it cannot be interrupted.

It reads JSON lines and writes one for each.  `{"triples": N-Triples, "literals": [terms]}` takes the place of what was
there, and the reply has the literals as the engine stores them (`"01"^^xsd:integer` is `"1"`).  `{"query": SPARQL,
"prefixes": {…}, "most": N}` is answered with `rows`, lists of terms as N-Triples writes them (null where unbound), or
`truth`; at most N rows, `more` says that there were others.  A fault is `{"error": …}`.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyoxigraph as ox

from kgqa_core.parent import end_with_parent

MODULE = "kgqa_core.logic.sparql_execution.worker"
MEMORY = 4 << 30
"""Bytes of address space that the process may have."""

XSD = "http://www.w3.org/2001/XMLSchema#"
DATE_TIME, YEAR, CONTAINS = (f"urn:kgqa:sparql:{name}" for name in ("dateTime", "year", "contains"))


def _date_time(term: Any) -> Any:
    match = re.match(r"(-?\d{4,})(?:-(\d\d))?(?:-(\d\d))?(T[\d:.]+)?", getattr(term, "value", ""))
    if match is None:
        return None
    text = f"{match[1]}-{match[2] or '01'}-{match[3] or '01'}{match[4] or 'T00:00:00'}"
    return ox.Literal(text, datatype=ox.NamedNode(XSD + "dateTime"))


def _year(term: Any) -> Any:
    match = re.match(r"[+]?(-?)0*(\d{1,})-?", getattr(term, "value", ""))
    if match is None:
        return None
    return ox.Literal(match[1] + match[2], datatype=ox.NamedNode(XSD + "integer"))


def _contains(text: Any, part: Any) -> Any:
    return ox.Literal(getattr(part, "value", "") in getattr(text, "value", ""))


FUNCTIONS: dict[ox.NamedNode, Callable[..., Any]] = {
    ox.NamedNode(DATE_TIME): _date_time,
    ox.NamedNode(YEAR): _year,
    ox.NamedNode(CONTAINS): _contains,
}


class Worker:
    """Answers one request after the other over the triples that were loaded last."""

    def __init__(self) -> None:
        self.store = ox.Store()

    def reply(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The reply to a request; a fault of the query is one too."""
        try:
            if "triples" in request:
                return self.load(request["triples"], request["literals"])
            return self.query(request["query"], request["prefixes"], request["most"])
        except (SyntaxError, ValueError, OSError, RuntimeError) as fault:
            return {"error": f"{type(fault).__name__}: {fault}"}

    def load(self, triples: str, literals: Sequence[str]) -> dict[str, Any]:
        """Forgets what was loaded; the literals as they are stored."""
        self.store = ox.Store()
        self.store.load(triples.encode(), format=ox.RdfFormat.N_TRIPLES)
        scratch = ox.Store()
        lines = (f"<urn:{number}> <urn:p> {literal} .\n" for number, literal in enumerate(literals))
        scratch.load("".join(lines).encode(), format=ox.RdfFormat.N_TRIPLES)
        stored = {quad.subject.value: str(quad.object) for quad in scratch}
        return {"literals": [stored[f"urn:{number}"] for number in range(len(literals))]}

    def query(self, text: str, prefixes: Mapping[str, str], most: int) -> dict[str, Any]:
        """The rows of a query, or whether it is true."""
        result = self.store.query(text, prefixes=dict(prefixes), custom_functions=FUNCTIONS)
        if isinstance(result, ox.QueryBoolean):
            return {"truth": bool(result)}
        assert isinstance(result, ox.QuerySolutions)  # `scopes` reads SELECT and ASK alone
        variables = [variable.value for variable in result.variables]
        rows: list[list[str | None]] = []
        for solution in result:
            if len(rows) == most:
                return {"variables": variables, "rows": rows, "more": True}
            rows.append([None if term is None else str(term) for term in solution])
        return {"variables": variables, "rows": rows, "more": False}


def main() -> None:
    """Serves requests until the input ends, or the process that started it does while a query runs."""
    end_with_parent()
    with suppress(ValueError, OSError):  # a lower limit is set already, or the system has none
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    worker = Worker()
    for line in sys.stdin:
        reply = worker.reply(json.loads(line))
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
