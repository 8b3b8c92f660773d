"""What is imported is declared, what is declared is pinned, and the tests run with the versions that are declared."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from kgqa_core.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = [Requirement(line) for line in PROJECT["dependencies"]]
OPTIONAL = {extra: [Requirement(line) for line in lines] for extra, lines in PROJECT["optional-dependencies"].items()}
PINS = {
    canonicalize_name(name): version
    for name, _, version in (line.partition("==") for line in (ROOT / "constraints.txt").read_text("utf-8").split())
}
PACKAGES = [name for name in ("kgqa", "kgqa_core", "tasks", "flows") if (ROOT / name).is_dir()]
OURS = {*PACKAGES, "tools", "tests", "benchmarks"}
PYTHONS = ("3.11.15", "3.12.0", "3.13.0", "3.14.0")
"""Versions of Python for which every package is pinned."""
UNDECLARED = {"amrlib"}
"""A user's own parser of AMR, with which nothing here is tested: `AmrlibParser` says how to install it."""


def test_each_module_that_is_imported_belongs_to_a_declared_package() -> None:
    at_start, later = _imports(PACKAGES)
    core, run = _modules(CORE), _modules(OPTIONAL["run"])
    assert _imports(["kgqa", "kgqa_core"])[0] & run - core == set(), "the library asks and serves without them"
    core |= run  # which flows and tasks are written with
    extra = _modules(requirement for name, own in OPTIONAL.items() if name != "dev" for requirement in own)
    assert at_start - core == set(), "imported when a module is, but no package of `dependencies` has it"
    assert later - core - extra == UNDECLARED, "imported in a function, but neither core nor an extra has it"


def test_tools_tests_and_benchmarks_import_what_dev_installs() -> None:
    at_start, later = _imports([name for name in ("tools", "tests", "benchmarks") if (ROOT / name).is_dir()])
    declared = _modules([*CORE, *(requirement for own in OPTIONAL.values() for requirement in own)])
    written = {"sample"}  # by tests/tasks/test_key.py
    assert (at_start | later) - declared - written == set()


def test_each_core_package_is_imported() -> None:
    at_start, later = _imports(PACKAGES)
    assert {item.name for item in (*CORE, *OPTIONAL["run"]) if not _modules([item]) & (at_start | later)} == set()


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_an_extra_installs_the_modules_that_it_names(extra: str) -> None:
    assert set(EXTRAS[extra]) <= _modules(OPTIONAL[extra])
    assert set(EXTRAS[extra]).isdisjoint(_modules(CORE))


def test_every_package_of_the_closure_is_pinned_once() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    assert len(PINS) == len(lines)
    wanted = [*CORE, *(requirement for own in OPTIONAL.values() for requirement in own)]
    closure = set().union(*(_closure(wanted, python) for python in PYTHONS))
    assert closure - set(PINS) == {"pip"}, "which pip-audit needs and each environment has"
    assert set(PINS) - closure - _names(OPTIONAL["atlas"]) == set()


def test_the_floor_of_each_package_is_the_version_that_is_pinned() -> None:
    for requirement in [*CORE, *(each for own in OPTIONAL.values() for each in own)]:
        floors = [each.version for each in requirement.specifier if each.operator in (">=", "==")]
        if requirement.name != PROJECT["name"] and floors:
            assert [Version(floor) for floor in floors] == [Version(PINS[canonicalize_name(requirement.name)])]
        assert floors or requirement.name in (PROJECT["name"], "sqlalchemy")


def _imports(folders: Iterable[str]) -> tuple[set[str], set[str]]:
    """Third-party modules that the code of some folders imports when it is imported itself, and those in functions."""
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    ours = OURS | set(sys.stdlib_module_names)
    at_start, later = (set().union(*(_imports_of(path)[delayed] for path in files)) - ours for delayed in (False, True))
    return at_start, later


@functools.cache
def _imports_of(path: Path) -> tuple[set[str], set[str]]:
    """Modules that a file imports when it is imported itself, and those in functions."""
    imported: tuple[set[str], set[str]] = set(), set()
    todo: list[tuple[Any, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), False)]
    while todo:
        node, delayed = todo.pop()
        delayed = delayed or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or _only_for_types(node)
        imported[delayed].update(_named(node))
        inner = (getattr(node, name, ()) for name in ("body", "orelse", "handlers", "finalbody", "cases"))
        todo += [(each, delayed) for statements in inner if isinstance(statements, list) for each in statements]
    return imported


def _only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module.partition(".")[0]


@functools.cache
def _owners() -> dict[str, set[str]]:
    """Packages that install each top-level module here; to find them takes seconds."""
    found = importlib.metadata.packages_distributions()
    return {module: {canonicalize_name(owner) for owner in owners} for module, owners in found.items()}


def _names(requirements: Iterable[Requirement]) -> set[str]:
    return {canonicalize_name(requirement.name) for requirement in requirements}


def _modules(requirements: Iterable[Requirement]) -> set[str]:
    """Top-level modules that the packages named, not those that they need in turn, install."""
    names = _names(requirements)
    return {module for module, owners in _owners().items() if names & owners}


def _closure(requirements: Iterable[Requirement], python: str) -> set[str]:
    """Names of some packages and of all that they need in turn, on this machine with a version of Python."""
    markers = {"python_version": ".".join(python.split(".")[:2]), "python_full_version": python}
    todo, seen = list(requirements), set()
    while todo:
        requirement = todo.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if name == PROJECT["name"] or (name, extras) in seen:
            continue
        if requirement.marker is not None and not requirement.marker.evaluate({**markers, "extra": ""}):
            continue
        seen.add((name, extras))
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # an extra that `dev` leaves out
        for need in map(Requirement, needs):
            if need.marker is None or any(need.marker.evaluate({**markers, "extra": extra}) for extra in ("", *extras)):
                need.marker = None
                todo.append(need)
    return {name for name, _ in seen}
