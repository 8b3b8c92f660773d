"""Tables of the docs as records: texts and rows with templates, filled from the JSON of a result file by one function.

A template is one of `str.format` over the values of its scope: the document and, in a row, the row's own before it.
`{key}` is the row's name or number (of nested rows `{key1}`, `{key2}` … from the outside).  A specification may begin
with `*100 ` or `/1e6 `, which scale, and `commit` shortens a commit.  A field that ends with `?` is `–` where it is
missing.

>>> rows = Rows("of", (("", "{key}"), ("%", "{share:*100 .1f}")))
>>> write({"n": 2000, "of": {"a": {"share": 0.5}}}, ["{n:,} questions:", rows])
'2,000 questions:\\n\\n|  | % |\\n|---|---:|\\n| a | 50.0 |\\n'
"""

from __future__ import annotations

import string
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.conditions import commit_name

MADE = (
    "{conditions[date]}, commit {conditions[commit]:commit}, {conditions[cores]} cores, threads of a process: "
    "{conditions[threads]}, seed {conditions[seed]}."
)
"""The sentence of conditions that some tables begin with; conditions_line has the other."""


@dataclass(frozen=True)
class Rows:
    """A table: a row for each item of the document that a path leads to.

    each: names with `/` between them, `*` for all that is there.  columns: headings and templates.  names: what the
    rows' names are shown as `{name}`, in this order; rows that it lacks are left out.  right: all columns but the first
    to the right, else those that hold numbers alone.
    """

    each: str
    columns: Sequence[tuple[str, str]]
    names: Mapping[str, Any] = field(default_factory=dict)
    right: bool = False


@dataclass(frozen=True)
class Each:
    """Parts that are written for each item that a path leads to."""

    each: str
    parts: Sequence[str | Rows | Each]


@dataclass(frozen=True)
class Given:
    """Parts that are written where the document has a name."""

    name: str
    parts: Sequence[str | Rows | Each]


Part = str | Rows | Each | Given


def write(found: Any, parts: Sequence[Part], between: str = "\n\n") -> str:
    """The Markdown of parts, a blank line between them."""
    scope = found if isinstance(found, Mapping) else {"rows": found}
    return between.join(part.strip("\n") for part in _parts(scope, parts)) + "\n"


def _parts(scope: Mapping[str, Any], parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield text(part, scope)
        elif isinstance(part, Rows):
            yield _rows(scope, part)
        elif isinstance(part, Each):
            for inner in _scopes(scope, part.each):
                yield from _parts(inner, part.parts)
        elif scope.get(part.name):
            yield from _parts(scope, part.parts)


def _rows(scope: Mapping[str, Any], part: Rows) -> str:
    chosen = list(_scopes(scope, part.each))
    if part.names:
        by_name = {inner["key"]: inner for inner in chosen}
        chosen = [ChainMap({"name": shown}, by_name[name]) for name, shown in part.names.items() if name in by_name]
    cells = [[text(cell, inner) for _, cell in part.columns] for inner in chosen]
    return table([text(heading, scope) for heading, _ in part.columns], cells, right=part.right)


def _scopes(scope: Mapping[str, Any], path: str, depth: int = 1) -> Iterator[Mapping[str, Any]]:
    """The scope of each item below a path; a value that is no mapping is `{value}`."""
    first, _, rest = path.partition("/*")
    value: Any = scope
    for name in first.strip("/").split("/"):
        value = value[name] if name else value
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, own in pairs:
        own = own if isinstance(own, Mapping) else {"value": own}
        inner = ChainMap({"key": key, f"key{depth}": key}, dict(own), scope)  # type: ignore[arg-type]
        if "/*" in path:
            yield from _scopes(inner, _below(own, rest), depth + 1)
        else:
            yield inner


def _below(own: Mapping[str, Any], rest: str) -> str:
    return rest.strip("/") if rest else ""


class _Filled(string.Formatter):
    """str.format with scales, commits and missing values."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        try:
            return super().get_field(field_name.rstrip("?"), args, kwargs)
        except (KeyError, IndexError):
            if field_name.endswith("?"):
                return None, field_name
            raise

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            return "–"
        if format_spec == "commit":
            return commit_name(value)
        scale, space, rest = format_spec.partition(" ")
        if space and scale[0] in "*/":
            value, format_spec = (value * float(scale[1:]) if scale[0] == "*" else value / float(scale[1:])), rest
        return str(super().format_field(value, format_spec))


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
