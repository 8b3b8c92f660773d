"""The one cache policy: what goes into a stage's key.

    key = SHA-256 of  stage name
                    + content digests of the input artifacts
                    + options and seed
                    + digests of external files (graph dumps, question files, model weights)
                    + digest of the code that the stage runs
                    + versions of the packages that it names

The code digest covers the stage's body and the import closure, inside kgqa_core, of the functions that the body names:
comments, formatting and docstrings do not count.  Modules that only declare things whose values are in the key anyway
(options, error classes, progress) are left out, or every new option would rebuild every graph.  So is the package
itself, which hands on names of the whole library.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from prefect.cache_policies import CachePolicy

from kgqa_core.config import Options
from kgqa_core.store.artifacts import ArtifactRef, canonical_json

PACKAGE = "kgqa_core"
DECLARATIONS = frozenset({"kgqa_core.config", "kgqa_core.errors", "kgqa_core.monitor", "kgqa_core.store.artifacts"})


class StageKey(CachePolicy):
    """A Prefect cache policy that hands over the key that the stage has computed.

    home: root of the artifacts; results of one home are no results of another, though both may share Prefect's store.
    """

    def __init__(self, key: str, home: Path) -> None:
        super().__init__()
        self.key, self.home = key, hashlib.sha256(str(home).encode()).hexdigest()[:12]

    def compute_key(self, task_ctx: Any, inputs: Any, flow_parameters: Any, **kwargs: Any) -> str:
        """The stage's key in this home."""
        return f"kgqa-{self.home}-{self.key}"


def stage_key(
    name: str,
    functions: Sequence[Callable[..., Any]],
    arguments: Mapping[str, Any],
    external: Mapping[str, str],
    packages: Iterable[str],
) -> tuple[str, dict[str, Any]]:
    """The key of a stage call and the parts that it is made of, which the manifest has too.

    functions: the stage's body, and what it calls where the arguments decide that.
    """
    parts = {
        "stage": name,
        "inputs": {key: _digests(value) for key, value in arguments.items() if _is_artifact(value)},
        "options": {key: _plain(value) for key, value in arguments.items() if not _is_artifact(value)},
        "outside": dict(external),
        "code": code_digest(*functions),
        "packages": {package: _version(package) for package in sorted(packages)},
    }
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest(), parts


@functools.cache
def code_digest(*functions: Callable[..., Any]) -> str:
    """SHA-256 over the syntax trees of functions, of the library modules that they name and of all that these import.

    A function counts alone, and with its whole module where it names what that defines: what else is in its file is of
    others.
    """
    closure: dict[str, Path] = {}
    lines = []
    for function in functions:
        body = _body(function)
        lines.append(hashlib.sha256(ast.dump(body).encode()).hexdigest())
        for module in _named_modules(function, body):
            closure |= import_closure(module)
    lines += [f"{name} {_code(path, name).digest}" for name, path in sorted(closure.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _body(function: Callable[..., Any]) -> ast.Module:
    """The syntax tree of a function's statements, without its decorators, annotations and docstring."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    [definition] = tree.body
    if not isinstance(definition, ast.FunctionDef):
        raise TypeError(f"{function} is not defined by def, so that its code has no digest")
    return ast.Module(body=[part for part in definition.body if not _is_text(part)], type_ignores=[])


def _named_modules(function: Callable[..., Any], body: ast.Module) -> list[str]:
    """Modules of the library that a function's statements name, or import inside the function."""
    modules = []
    for node in ast.walk(body):
        if isinstance(node, ast.Name):
            value = function.__globals__.get(node.id)
            own = (
                function.__module__ if node.id in function.__globals__ else None
            )  # a constant has no module of its own
            name = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", own)
            if isinstance(name, str) and _in_package(name):
                modules.append(name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules += _imports(node, function.__module__)
    return modules


def _in_package(name: str) -> bool:
    return name == PACKAGE or name.startswith(PACKAGE + ".")


def import_closure(module: str) -> dict[str, Path]:
    """Module names and files of `module` and of what it imports inside kgqa_core, at any depth of the code."""
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or name == PACKAGE or _declares(name):
            continue
        path = _module_file(name)
        if path is None:
            continue
        found[name] = path
        waiting += _code(path, name).imports
    return found


def _declares(name: str) -> bool:
    """Whether a module only declares what the key has by value."""
    return any(name == module or name.startswith(module + ".") for module in DECLARATIONS)


def _version(package: str) -> str:
    """Version of a package without the build for CPU or CUDA, so that machines of both kinds share artifacts."""
    return importlib.metadata.version(package).partition("+")[0]


def _module_file(name: str) -> Path | None:
    """The file of a module of the package, found by its place: Python's own look-up would import all above it."""
    if not _in_package(name):
        return None
    place = _root(PACKAGE).joinpath(*name.split(".")[1:])
    for file in (place / "__init__.py", place.with_name(place.name + ".py")):
        if file.is_file():
            return file
    return None


@functools.cache
def _root(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(package)
    return Path(spec.origin).parent


class _Code(NamedTuple):
    """imports: names that a module may import.  digest: of its syntax tree, without docstrings."""

    imports: tuple[str, ...]
    digest: str


@functools.cache
def _code(path: Path, name: str) -> _Code:
    """A module's file, read once for all stages of this process."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports: list[str] = []
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports += _imports(node, package)
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [part for part in node.body if not _is_text(part)]
    return _Code(tuple(imports), hashlib.sha256(ast.dump(tree).encode()).hexdigest())


def _imports(node: ast.Import | ast.ImportFrom, package: str) -> list[str]:
    """Names that an import statement in a module of `package` may import."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    if node.level:
        parents = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*parents, base] if base else parents)
    return [base, *(f"{base}.{alias.name}" for alias in node.names)]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_artifact(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(isinstance(part, ArtifactRef) for part in value.values())
    return isinstance(value, ArtifactRef)


def _digests(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: part.digest for key, part in value.items()}
    return value.digest


def _plain(value: Any) -> Any:
    return value.decisive() if isinstance(value, Options) else value
