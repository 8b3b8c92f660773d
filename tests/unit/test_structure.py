"""The structure of the code: no circles among modules, nothing imports the offline tools, stages have bodies."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parents[2]
PACKAGES = ("kgqa", "kgqa_core", "tasks", "flows", "tools")


def modules() -> dict[str, Path]:
    """Every module of ours by name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((HOUSE / package).rglob("*.py")):
            found[".".join(path.relative_to(HOUSE).with_suffix("").parts).removesuffix(".__init__")] = path
    return found


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements outside `if TYPE_CHECKING`, and what holds some."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            continue
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        yield node
        yield from runtime_nodes(node)


def imports(tree: ast.Module, known: dict[str, Path]) -> set[str]:
    """Modules of ours that a module imports, at its top or inside a function."""
    found: set[str] = set()
    for node in runtime_nodes(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in names}
    return found & known.keys()


def twice(tree: ast.Module) -> list[str]:
    """Names that a module assigns more than once outside functions."""
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    names = Counter(one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
    return [constant for constant, count in names.items() if count > 1]


@pytest.fixture(scope="module")
def read() -> dict[str, tuple[set[str], list[str]]]:
    """Of each module, what it imports of ours and the names that it assigns twice; the code is parsed once."""
    known, results = modules(), {}
    for name, path in known.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        results[name] = imports(tree, known) - {name}, twice(tree)
    return results


@pytest.fixture(scope="module")
def graph(read: dict[str, tuple[set[str], list[str]]]) -> dict[str, set[str]]:
    return {name: used for name, (used, _) in read.items()}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            part = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(part) > 1:
                found.append(sorted(part))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


def test_no_modules_import_each_other_in_a_circle(graph: dict[str, set[str]]) -> None:
    assert circles(graph) == []


def test_no_module_gives_a_constant_a_second_value(read: dict[str, tuple[set[str], list[str]]]) -> None:
    assert {name: constants for name, (_, constants) in read.items() if constants} == {}


def test_nothing_imports_the_offline_tools(graph: dict[str, set[str]]) -> None:
    users = {
        name: other for name, used in graph.items() for other in used if other.startswith("tools.")
        and not name.startswith("tools.")
    }  # fmt: skip
    assert users == {}


def test_every_stage_has_a_body_that_calls_the_library() -> None:
    seen = 0
    for path in (HOUSE / "tasks").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            names = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
            if any(isinstance(one, ast.Name) and one.id == "stage" for one in names):
                seen += 1
                last = node.body[-1]
                while isinstance(last, ast.Try | ast.With):
                    last = last.body[-1]
                assert isinstance(last, ast.Return) and isinstance(last.value, ast.Call), f"{path.name}:{node.name}"
    assert seen > 40
