"""Tables of the docs as records: texts and rows with templates, filled from the JSON of a result file by one function.

A template is one of `str.format` over the values of its scope: the document and, in a row, the row's own before it.
`{row}` is all of the row, `{key}` its name or number (of nested rows `{key1}`, `{key2}` … from the outside), `[@key]`
an index by it.  A field that ends with `?` is `–` where it is missing, with `?1.0` that number.  A specification may
begin with `*100 ` or `/1e6 `, which scale, or with one of WORDS.

>>> rows = Rows("of", "set | %", "{key} | {share:*100 .1f}")
>>> write({"n": 2000, "of": {"a": {"share": 0.5}}}, ["{n:,} questions:", rows])
'2,000 questions:\\n\\n| set | % |\\n|---|---:|\\n| a | 50.0 |\\n'
"""

from __future__ import annotations

import string
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from benchmarks.conditions import commit_name

MADE = (
    "{conditions[date]}, commit {conditions[commit]:commit}, {conditions[cores]} cores, threads of a process: "
    "{conditions[threads]}, seed {conditions[seed]}."
)
"""The sentence of conditions that some tables begin with; `conditions_line` is for files that may lack some."""


@dataclass(frozen=True)
class Table:
    """A generated table, or a paragraph with figures, of a page.

    result: name of the result file.  parts: of `write`, or a function of the document where it cannot be said so.
    """

    name: str
    page: str
    result: str
    parts: Sequence[Part] | Callable[[Any], str]

    def write(self, found: Any) -> str:
        """Its Markdown."""
        return self.parts(found) if callable(self.parts) else write(found, self.parts)


@dataclass(frozen=True)
class Rows:
    """A table: a row for each item of the document that a path leads to.

    each: names with `/` between them; `*` stands for all that is there, a last `.` for the thing itself.  head, cells:
    templates with ` | ` between them.  names: what the rows' names are shown as `{name}`, in this order; other rows are
    left out.  right: all columns but the first to the right, else those that hold numbers alone.
    """

    each: str
    head: str
    cells: str
    names: Mapping[str, Any] = field(default_factory=dict)
    right: bool = False


@dataclass(frozen=True)
class Each:
    """Parts that are written for each item that a path leads to."""

    each: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Given:
    """Parts that are written where the document has something by a name."""

    name: str
    parts: Sequence[Part]


Part = str | Rows | Each | Given | Callable[[Mapping[str, Any]], str]


def write(found: Any, parts: Sequence[Part]) -> str:
    """The Markdown of parts, a blank line between them; a document that is a list is `rows`."""
    scope = found if isinstance(found, Mapping) else {"rows": found}
    return "\n\n".join(part.strip("\n") for part in _parts(scope, parts)) + "\n"


def _parts(scope: Mapping[str, Any], parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield text(part, scope)
        elif isinstance(part, Rows):
            cells = part.cells.split(" | ")
            rows = [[text(cell, inner) for cell in cells] for inner in _scopes(scope, part.each, part.names)]
            yield table([text(heading, scope) for heading in part.head.split(" | ")], rows, right=part.right)
        elif isinstance(part, Each):
            for inner in _scopes(scope, part.each, {}):
                yield from _parts(inner, part.parts)
        elif isinstance(part, Given):
            if scope.get(part.name):
                yield from _parts(scope, part.parts)
        else:
            yield part(scope)


def _scopes(
    scope: Mapping[str, Any], path: str, names: Mapping[str, Any], depth: int = 1
) -> Iterator[Mapping[str, Any]]:
    """The scope of each item below a path."""
    first, star, rest = path.partition("/*/")
    value: Any = scope["row"] if first == "." and "row" in scope else scope
    for name in first.split("/") if first != "." else ():
        value = value[name]
    pairs = list(value.items() if isinstance(value, Mapping) else enumerate(value))
    if names and not star:
        pairs = [(name, value[name]) for name in names if name in value]
    for key, own in pairs:
        known = {"key": key, f"key{depth}": key, "row": own} | ({"name": names[key]} if key in names else {})
        inner = ChainMap(known, dict(own) if isinstance(own, Mapping) else {}, scope)  # type: ignore[arg-type]
        yield from _scopes(inner, rest, names, depth + 1) if star else (inner,)


class _Filled(string.Formatter):
    """str.format with what the module's docstring adds."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        name, optional, default = field_name.replace("[@key]", f"[{kwargs.get('key')}]").partition("?")
        value: Any = kwargs
        try:
            for part in name.replace("]", "").split("["):
                value = value[int(part) if isinstance(value, list | tuple) else part]
        except (KeyError, IndexError):
            if not optional:
                raise
            value = float(default) if default else None
        return value, name

    def format_field(self, value: Any, format_spec: str) -> str:
        first, space, rest = format_spec.partition(" ")
        if first in WORDS:
            return WORDS[first](value, rest)
        if value is None:
            return "–"
        if space and first[0] in "*/":
            value, format_spec = (value * float(first[1:]) if first[0] == "*" else value / float(first[1:])), rest
        return str(super().format_field(value, format_spec))


WORDS: Mapping[str, Callable[[Any, str], str]] = {
    "commit": lambda value, _: commit_name(value),
    "min": lambda value, rest: format(min(value), rest),
    "max": lambda value, rest: format(max(value), rest),
    "none": lambda value, rest: format(value, rest) if value else "none",
    "pairs": lambda value, _: ", ".join(f"{name} {own}" for name, own in value.items()),
    "yes": lambda value, _: "–" if value is None else "yes" if value else "no",
}
"""What a specification may begin with, and what it does with the value and the rest of the specification."""


def text(template: str, scope: Mapping[str, Any]) -> str:
    """A template with the values of a scope."""
    return _Filled().vformat(template, (), scope)


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], right: bool = False) -> str:
    """A Markdown table; numbers to the right, or with `right` all columns but the first."""
    body = [[_cell(cell, right) for cell in row] for row in rows]
    numeric = [right and i > 0 or (not right and bool(body) and all(_is_number(row[i]) for row in body))
               for i in range(len(head))]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join("---:" if one else "---" for one in numeric) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in body)]) + "\n"


def _cell(cell: Any, right: bool) -> str:
    if right and isinstance(cell, int | float) and not isinstance(cell, bool):
        return f"{cell:,}"
    return str(cell) if right else str(cell).replace("|", "\\|")


def _is_number(text: str) -> bool:
    return (
        text.replace(",", "").replace(".", "").replace("×", "").replace(" ms", "").replace("–", "0").strip().isdigit()
    )


def late(module: str, name: str) -> Callable[[Any], str]:
    """A function of a module that imports much, such as torch: it is imported when the table is written."""
    return lambda found: str(getattr(import_module(module), name)(found))


def interval(own: Mapping[str, Any]) -> str:
    """A share with its interval."""
    return "{share:.3f} [{low:.3f}, {high:.3f}]".format(**own)


def conditions_line(conditions: Mapping[str, Any] | None) -> str:
    """Commit, date, seed, cores and threads in a sentence; says so where an older file does not hold them."""
    if not conditions or "commit" not in conditions:
        return "Commit not recorded (made before the scripts wrote it)."
    threads = conditions["threads"] or "as many as cores"
    return (
        f"Commit {commit_name(conditions['commit'])}, "
        f"{conditions['date']}, seed {conditions['seed']}, {conditions['cores']} cores, threads: {threads}."
    )


def percent(value: float, places: int = 1) -> str:
    """A share in percent."""
    return f"{100 * value:.{places}f}"
