"""Which modules of the project a module imports, at any depth, read out of the files: nothing is imported for it."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from tasks.code_cache import CodeCache


class ModuleCode(NamedTuple):
    """imports: names that a module may import, but for those that only type checkers see.

    digest: of its syntax tree, without docstrings.
    """

    imports: tuple[str, ...]
    digest: str


def import_closure(
    module: str, packages: Collection[str], stop: Callable[[str], bool] = lambda name: False
) -> dict[str, Path]:
    """Module names and files of `module` and of what it imports inside some packages, in functions too.

    packages: top-level ones.  stop: whether a module is left out, with what only it imports.
    """
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or stop(name):
            continue
        path = _module_file(name, frozenset(packages))
        if path is None:
            continue
        found[name] = path
        waiting += module_code(path, name).imports
    _cache().save()
    return found


@functools.cache
def module_code(path: Path, name: str) -> ModuleCode:
    """A module's file, read once for all stages of this process, and parsed once for all processes."""
    source = path.read_bytes()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return ModuleCode(*_cache().get(source, package, lambda: _parsed(source, package)))


@functools.cache
def _cache() -> CodeCache:
    return CodeCache.shared(Path(__file__).read_bytes())


_NAMED = re.compile(r"[a-z_]+(?:\.[a-z_0-9]+)+(?::[A-Za-z_]\w*)?$")
"""A text that may name a module, or a part of one, that is loaded when it is needed."""


def _parsed(source: bytes, package: str) -> ModuleCode:
    tree = ast.parse(source)
    imports: list[str] = []
    for_checkers = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if node in for_checkers:
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports += imported_names(node, package)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAMED.match(node.value):
            imports.append(node.value.partition(":")[0])
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [part for part in node.body if not is_text(part)]
    return ModuleCode(tuple(imports), hashlib.sha256(ast.dump(tree).encode()).hexdigest())


def imported_names(node: ast.Import | ast.ImportFrom, package: str) -> list[str]:
    """Names that an import statement in a module of `package` may import."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    if node.level:
        parents = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*parents, base] if base else parents)
    return [base, *(f"{base}.{alias.name}" for alias in node.names)]


def is_text(node: ast.AST) -> bool:
    """Whether a statement is a text alone, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@functools.cache
def _module_file(name: str, packages: frozenset[str]) -> Path | None:
    """The file of a module of the packages, found by its place: Python's own look-up would import all above it."""
    package, *parts = name.split(".")
    if package not in packages:
        return None
    place = package_folder(package).joinpath(*parts)
    for file in (place / "__init__.py", place.with_name(place.name + ".py")):
        if file.is_file():
            return file
    return None


@functools.cache
def package_folder(package: str) -> Path:
    """The folder of a top-level package.  Raises ModuleNotFoundError."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(package)
    return Path(spec.origin).parent
