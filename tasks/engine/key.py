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
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect.cache_policies import CachePolicy

from kgqa_core.config import Options
from kgqa_core.store.artifacts import ArtifactRef, canonical_json
from tasks.import_closure import import_closure as import_closure_in
from tasks.import_closure import imported_names, is_text, module_code

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
    lines += [f"{name} {module_code(path, name).digest}" for name, path in sorted(closure.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _body(function: Callable[..., Any]) -> ast.Module:
    """The syntax tree of a function's statements, without its decorators, annotations and docstring."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    [definition] = tree.body
    if not isinstance(definition, ast.FunctionDef):
        raise TypeError(f"{function} is not defined by def, so that its code has no digest")
    return ast.Module(body=[part for part in definition.body if not is_text(part)], type_ignores=[])


def _named_modules(function: Callable[..., Any], body: ast.Module) -> list[str]:
    """Modules of the library that a function's statements name, or import inside the function."""
    modules = []
    for node in ast.walk(body):
        if isinstance(node, ast.Name):
            value = function.__globals__.get(node.id)
            here = function.__module__ if node.id in function.__globals__ else None  # a constant has no module
            name = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", here)
            if isinstance(name, str) and _in_package(name):
                modules.append(name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules += imported_names(node, function.__module__)
    return modules


def _in_package(name: str) -> bool:
    return name == PACKAGE or name.startswith(PACKAGE + ".")


@functools.cache
def import_closure(module: str) -> Mapping[str, Path]:
    """Module names and files of `module` and of what it imports inside kgqa_core, less what only declares values."""
    return import_closure_in(module, (PACKAGE,), lambda name: name == PACKAGE or _declares(name))


def _declares(name: str) -> bool:
    """Whether a module only declares what the key has by value."""
    return any(name == module or name.startswith(module + ".") for module in DECLARATIONS)


def _version(package: str) -> str:
    """Version of a package without the build for CPU or CUDA, so that machines of both kinds share artifacts.

    Empty where it is not installed: what cannot do without it is refused before a run starts.
    """
    try:
        return importlib.metadata.version(package).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return ""


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
