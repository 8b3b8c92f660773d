"""Questions answered over a knowledge graph that you own, with the facts that prove each answer.

The names below, which the package `kgqa` hands on, are loaded when they are used: importing it loads no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgqa_core.answering.reply import Answer, Answers
    from kgqa_core.errors import InputError, KgqaError
    from kgqa_core.kg.store import KgStore
    from kgqa_core.store.artifacts import Home
    from kgqa_core.system import System
    from kgqa_core.types import Question

__all__ = ["Answer", "Answers", "Home", "InputError", "KgStore", "KgqaError", "Question", "System"]

_PLACES = {
    "Answer": "kgqa_core.answering.reply",
    "Answers": "kgqa_core.answering.reply",
    "InputError": "kgqa_core.errors",
    "KgStore": "kgqa_core.kg.store",
    "KgqaError": "kgqa_core.errors",
    "Home": "kgqa_core.store.artifacts",
    "Question": "kgqa_core.types",
    "System": "kgqa_core.system",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
