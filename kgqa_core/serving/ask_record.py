"""A question of a client, and a typed answer as tools and pages show it: bounded, without what the model read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from pydantic import create_model

from kgqa_core.answering.reply import Answer
from kgqa_core.types import Declined

MOST_FACTS = 50
"""Retrieved facts, and texts of proof, that a record holds."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A question of a client; fields as of `System.ask`.

    knowledge: `retriever/format` in place of the server's.  min_confidence: in [0, 1], in place of the system's.
    reading: as of `System.at_reading`; 0 for the best answer where it is sure enough.
    """

    question: str
    topics: tuple[str, ...] = ()
    dialogue: tuple[tuple[str, str], ...] = ()
    knowledge: str | None = None
    min_confidence: float | None = None
    reading: int = 0


AskSystem = Callable[[Ask], Answer]
"""Answers a question with a system that is open; it is called from several threads, and raises KgqaError."""


_FIELDS: dict[str, Any] = {"question": (str, ...), "answer": (str | None, ...), "answers": (list[str], ...)}
_OWN: dict[str, Any] = {name: (str | None, None) for name in ("model_answer", "run", "trace", "answer_id")}
_OWN |= {"facts_total": (int | None, None), "seconds": (float | None, None), "batch": (int | None, None)}
_KINDS = {name: kind for name, kind in get_type_hints(Answer).items() if name not in (*_FIELDS, "id", "output")}
_FIELDS |= {one.name: (_KINDS[one.name], one.default) for one in fields(Answer) if one.name in _KINDS}
_FIELDS |= {**_OWN, "declined": (Declined | None, None), "stages": (dict[str, float] | None, None)}
AskReply: Any = create_model("AskReply", __doc__=Answer.__doc__, **_FIELDS)
"""An answer as `POST /ask` gives it; fields of what was not read or computed are absent."""


_SHOWN = (
    "question", "answer", "answers", "topics", "proof", "proof_rows", "facts", "facts_total", "form", "form_named",
    "road", "wording", "chooser", "understood", "model", "knowledge", "answerable", "confidence", "calibrated",
    "min_confidence", "declined", "reason", "missing", "nearest", "suggestions", "readings", "model_answer", "seconds",
)  # fmt: skip
AskResult: Any = create_model("AskResult", __doc__=Answer.__doc__, **{name: _FIELDS[name] for name in _SHOWN})
"""An answer for agents: without what the model read, and with MOST_FACTS facts and texts of proof."""


def bounded(answer: Answer, seconds: float) -> Any:
    """The `AskResult` of an answer that took so long."""
    record = answer.to_dict() | {"seconds": round(seconds, 3), "facts_total": len(answer.facts)}
    return AskResult(**record | {name: record.get(name, [])[:MOST_FACTS] for name in ("facts", "proof")})
