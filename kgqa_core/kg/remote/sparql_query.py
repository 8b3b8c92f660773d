"""A query of the user's as one that gives statements: SELECT with ?s, ?p, ?o, or CONSTRUCT with its template.

A CONSTRUCT is sent as the SELECT of its variables, so that it can be paged by rows, and its template is filled here
(SPARQL 1.1, section 16.2): statements with an unbound variable are left out, blank nodes are new for each solution.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from kgqa_core.errors import KgInputError

Row = Mapping[str, Mapping[str, str]]

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)|(?P<iri><[^<>"{}|^`\\\x00-\x20]*>)
    |(?P<string>\"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<variable>[?$]\w+)|(?P<word>[A-Za-z_][\w.-]*:?[\w.%-]*)|(?P<sign>[{}])|(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_VARIABLE = "urn:kgqa:variable:"


@dataclass(frozen=True, slots=True)
class StatementQuery:
    """A query whose rows give statements.

    prologue: PREFIX and BASE.  dataset: FROM clauses.  pattern: what stands in the WHERE of a SELECT.  variables: the
    variables that are selected.  template: of a CONSTRUCT, its triples, variables as IRIs; None where rows are
    statements themselves.
    """

    prologue: str
    dataset: str
    pattern: str
    variables: tuple[str, ...]
    template: tuple[tuple[Any, Any, Any], ...] | None

    def select(self, limit: int, offset: int) -> str:
        """A page of the rows, in a defined order."""
        names = " ".join(f"?{name}" for name in self.variables)
        order = f"ORDER BY {names} LIMIT {limit} OFFSET {offset}"
        return f"{self.prologue}SELECT DISTINCT {names} {self.dataset} WHERE {{ {self.pattern} }} {order}"

    def count(self) -> str:
        """How many rows there are, as ?n."""
        names = " ".join(f"?{name}" for name in self.variables)
        inner = f"{{ SELECT DISTINCT {names} WHERE {{ {self.pattern} }} }}"
        return f"{self.prologue}SELECT (COUNT(*) AS ?n) {self.dataset} WHERE {{ {inner} }}"

    def statements(self, row: Row) -> Iterator[tuple[Any, Any, Any]]:
        """The terms of the statements of a row, as the JSON format has them; None for one that is unbound."""
        if self.template is None:
            yield row.get("s"), row.get("p"), row.get("o")
            return
        solution = hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:16]
        for triple in self.template:
            subject, predicate, thing = (_filled(term, row, solution) for term in triple)
            bound = subject is not None and predicate is not None and thing is not None
            if bound and "literal" not in (subject or {}).get("type", "") and (predicate or {}).get("type") == "uri":
                yield subject, predicate, thing


def read_query(text: str, graphs: tuple[str, ...] = ()) -> StatementQuery:
    """The query of `kg.sparql.query`, or of the file that `@FILE` names.  Raises KgInputError."""
    if text.startswith("@"):
        path = Path(text[1:]).expanduser()
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise KgInputError(f"{path}, the query of kg.sparql.query, cannot be read ({fault}); check it") from None
    tokens = [match for match in _TOKEN.finditer(text) if match.lastgroup != "comment"]
    words = {at: token[0].upper() for at, token in enumerate(tokens) if token.lastgroup == "word"}
    start = next((at for at, word in words.items() if word in ("SELECT", "CONSTRUCT", "ASK", "DESCRIBE")), None)
    if start is None or words[start] not in ("SELECT", "CONSTRUCT"):
        raise KgInputError(f"kg.sparql.query is neither a SELECT nor a CONSTRUCT query ({text.strip()[:80]!r})")
    prologue = _joined(tokens[:start]) + " " if start else ""
    body, dataset = _without_dataset(tokens[start:], words, start)
    dataset += "".join(f"FROM <{graph}> " for graph in graphs if not dataset)
    if words[start] == "SELECT":
        return StatementQuery(prologue, dataset, f"{{ {_joined(body)} }}", ("s", "p", "o"), None)
    return _construct(prologue, dataset, body)


def _construct(prologue: str, dataset: str, tokens: list[re.Match[str]]) -> StatementQuery:
    """A CONSTRUCT query; tokens: from this word on."""
    groups = _groups(tokens)
    if not groups:
        raise KgInputError("kg.sparql.query is a CONSTRUCT query without { template }; see SPARQL 1.1, section 16.2")
    short = any(token[0].upper() == "WHERE" for token in tokens[: groups[0][0]])  # CONSTRUCT WHERE { template }
    if len(groups) == 1 and not short:
        raise KgInputError("kg.sparql.query is a CONSTRUCT query without WHERE { … }; see SPARQL 1.1, section 16.2")
    template = _joined(tokens[groups[0][0] + 1 : groups[0][1]])
    where = template if short else _joined(tokens[groups[1][0] + 1 : groups[1][1]])
    modifiers = _joined(tokens[groups[0 if short else 1][1] + 1 :])
    variables = list(dict.fromkeys(
        token[0][1:] for token in tokens[groups[0][0] : groups[0][1]] if token.lastgroup == "variable"
    ))  # fmt: skip
    turtle = prologue + _TOKEN.sub(
        lambda match: f"<{_VARIABLE}{match[0][1:]}>" if match.lastgroup == "variable" else match[0], template
    )
    turtle = turtle if turtle.rstrip().endswith(".") else turtle + " ."
    try:
        triples = tuple(
            (quad.subject, quad.predicate, quad.object)
            for quad in ox.parse(turtle.encode(), format=ox.RdfFormat.TURTLE, base_iri="urn:kgqa:")
        )
    except SyntaxError as fault:
        raise KgInputError(
            f"the template of kg.sparql.query is not understood: {fault.msg}; write it plainly"
        ) from None
    if not variables:
        raise KgInputError("the template of kg.sparql.query has no variable; a SELECT query with ?s, ?p and ?o will do")
    names = " ".join(f"?{name}" for name in variables)
    pattern = f"{{ SELECT DISTINCT {names} WHERE {{ {where} }} {modifiers} }}"
    return StatementQuery(prologue, dataset, pattern, tuple(variables), triples)


def _groups(tokens: list[re.Match[str]]) -> list[tuple[int, int]]:
    """Indexes of the braces of the outermost groups."""
    groups, depth, begin = [], 0, 0
    for at, token in enumerate(tokens):
        if token[0] == "{" and token.lastgroup == "sign":
            begin, depth = (at, 1) if not depth else (begin, depth + 1)
        elif token[0] == "}" and token.lastgroup == "sign":
            depth -= 1
            if not depth:
                groups.append((begin, at))
    if depth:
        raise KgInputError("kg.sparql.query has a '{' that is never closed")
    return groups


def _without_dataset(
    tokens: list[re.Match[str]], words: Mapping[int, str], start: int
) -> tuple[list[re.Match[str]], str]:
    """The tokens without FROM clauses, and these clauses."""
    body, dataset, at, depth = [], "", 0, 0
    while at < len(tokens):
        token = tokens[at]
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if not depth and words.get(start + at) == "FROM":
            clause = [token[0]]
            at += 1
            while at < len(tokens) and (tokens[at][0].isspace() or tokens[at][0].upper() == "NAMED"):
                clause.append(tokens[at][0])
                at += 1
            clause.append(tokens[at][0] if at < len(tokens) else "")
            dataset += "".join(clause) + " "
        else:
            body.append(token)
        at += 1
    return body, dataset


def _joined(tokens: list[re.Match[str]]) -> str:
    return "".join(token[0] for token in tokens).strip()


def _filled(term: Any, row: Row, solution: str) -> Mapping[str, str] | None:
    """A term of the template for a row; None where its variable is unbound."""
    if isinstance(term, ox.NamedNode):
        if term.value.startswith(_VARIABLE):
            return row.get(term.value.removeprefix(_VARIABLE))
        return {"type": "uri", "value": term.value}
    if isinstance(term, ox.BlankNode):
        return {"type": "bnode", "value": f"{solution}x{term.value}"}
    literal = {"type": "literal", "value": term.value}
    if term.language:
        return literal | {"xml:lang": term.language}
    return literal | {"datatype": term.datatype.value}
