"""One way to write a result file: whole, with its conditions, and with the fields that its script declares.

A script of this folder declares `FIELDS`, a literal tuple of patterns.  A pattern is a path through the document with
`/` between its parts: `*` and the other signs of `fnmatch` stand for names, items of a list are `*`, a last part `...`
for whatever is below, and `?` before the pattern says that it may be missing.  docs/evaluation.md says how the
tables of the docs follow from the files.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from benchmarks.conditions import RESULTS, changes

CONDITIONS = ("conditions/seed", "conditions/commit", "conditions/date", "conditions/cores", "conditions/threads")
"""The fields of `benchmarks.conditions.conditions`, where a document has them at its top."""


def fields_below(place: str) -> tuple[str, ...]:
    """CONDITIONS below a place such as `cells/*`."""
    return tuple(f"{place}/{field}" for field in CONDITIONS)


def write(path: Path, document: Any, fields: Sequence[str], sort_keys: bool = False) -> None:
    """Writes a document whole; what its script did not declare is written all the same and named on stderr.

    Raises SystemExit for a file of benchmarks/results where the tree has changes: what was measured is then in the
    system's folder for temporary files.
    """
    changed = changes() if path.resolve().parent == RESULTS else []
    if changed:
        path, refused = Path(tempfile.mkdtemp(prefix="kgqa-refused-")) / path.name, path.name
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".tmp")
    scratch.write_text(
        json.dumps(document, indent=1, ensure_ascii=False, sort_keys=sort_keys, default=str) + "\n", encoding="utf-8"
    )
    os.replace(scratch, path)
    for problem in problems(json.loads(path.read_text(encoding="utf-8")), fields):
        print(f"{path.name}: {problem}", file=sys.stderr)
    if changed:
        raise SystemExit(
            f"{refused} is not written, for nobody could measure again what a tree with changes gave: commit "
            f"{', '.join(changed[:3])}{' …' if len(changed) > 3 else ''} and run again.  What was measured is in {path}"
        )


def problems(document: Any, fields: Sequence[str]) -> list[str]:
    """What of a document its fields do not declare, and which declared fields it lacks; sorted."""
    optional = {field.removeprefix("?") for field in fields if field.startswith("?")}
    patterns = [tuple(field.removeprefix("?").split("/")) for field in fields]
    used: set[tuple[str, ...]] = set()
    unknown: set[str] = set()
    for place in set(_leaves(document)):
        matching = [pattern for pattern in patterns if _matches(pattern, place)]
        used.update(matching)
        if not matching:
            unknown.add("/".join(place))
    lacking = {"/".join(pattern) for pattern in patterns if pattern not in used} - optional
    return [f"no script declares {name!r}" for name in sorted(unknown)] + [
        f"lacks {name!r}" for name in sorted(lacking)
    ]


def declared(script: Path) -> tuple[str, ...]:
    """The FIELDS of a script, read without importing it.

    Raises ValueError where it has none, or where they are no literal.
    """
    for node in ast.parse(script.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "FIELDS" for t in node.targets):
            return tuple(_literal(node.value))
    raise ValueError(f"{script} declares no FIELDS: a tuple of what it writes into its result file")


def _literal(value: ast.expr) -> Iterator[str]:
    """The patterns of `("a", *fields_below("b"), *CONDITIONS)`."""
    if not isinstance(value, ast.Tuple):
        raise ValueError(f"FIELDS is a literal tuple, not {ast.unparse(value)}")
    for item in value.elts:
        text = ast.unparse(item)
        if isinstance(item, ast.Starred):
            if text == "*CONDITIONS":
                yield from CONDITIONS
            elif isinstance(item.value, ast.Call) and ast.unparse(item.value.func) == "fields_below":
                yield from fields_below(ast.literal_eval(item.value.args[0]))
            else:
                raise ValueError(f"FIELDS holds strings, *CONDITIONS and *fields_below(…), not {text}")
        else:
            yield str(ast.literal_eval(item))


def _leaves(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, Mapping) and value:
        for name, own in value.items():
            yield from _leaves(own, (*place, str(name)))
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for own in value:
            yield from _leaves(own, (*place, "*"))
    else:
        yield place


def _matches(pattern: Sequence[str], place: Sequence[str]) -> bool:
    if pattern[-1] == "...":
        pattern = pattern[:-1]
        if len(place) < len(pattern):
            return False
        place = place[: len(pattern)]
    return len(pattern) == len(place) and all(map(fnmatchcase, place, pattern))
