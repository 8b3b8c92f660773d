"""Questions answered over a knowledge graph that you own, with the facts that prove each answer.

    import kgqa

    system = kgqa.System.from_graph("graph.ttl")  # or what a run trained: kgqa.System.from_run(".kgqa")
    answer = system.ask("Which countries border Slovenia?")
    answer.answer, answer.confidence, answer.proof

The public interface of the library, which docs/library.md describes.  Names are loaded when they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import kgqa_core

if TYPE_CHECKING:
    from kgqa_core import Answer, Answers, Home, InputError, KgqaError, KgStore, Question, System, errors

    __version__: str

__all__ = ["Answer", "Answers", "Home", "InputError", "KgStore", "KgqaError", "Question", "System", "errors"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("kgqa")
    if name == "errors":
        return importlib.import_module("kgqa_core.errors")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(kgqa_core, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
