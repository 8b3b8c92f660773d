"""Questions answered over a knowledge graph that you own, with the facts that prove each answer.

    from kgqa_core import System

    system = System.from_run(".kgqa")            # what the champion of that home trained
    answer = system.ask("Which countries border Slovenia?")
    answer.answer, answer.confidence, answer.proof

The names below are loaded when they are used, so that `import kgqa_core` loads no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgqa_core.answering.reply import Answer
    from kgqa_core.store.artifacts import Home
    from kgqa_core.system import System
    from kgqa_core.types import Question

__all__ = ["Answer", "Home", "Question", "System"]

_PLACES = {
    "Answer": "kgqa_core.answering.reply",
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
