"""Is what a teacher wrote usable as the text of a graph?  Cheap checks, each with the reason that it gives."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kgqa_core.kg.verbalise import is_cvt
from kgqa_core.metrics.normalise import tokens
from kgqa_core.rewriting.faithfulness import check

EMPTY = "teacher empty"
REFUSED = "teacher refused"
TRUNCATED = "teacher truncated"
FAILED = "teacher failed"
GARBAGE = "garbage"
UNFAITHFUL = "unfaithful"

_REFUSAL = re.compile(
    r"\s*(?:(?:i'?m|i am) (?:sorry|unable|afraid|not able)|sorry\b|as an? (?:ai|language model|assistant)"
    r"|i (?:cannot|can'?t|could not|do not have|don'?t have)|unfortunately,? i"
    r"|(?:很)?抱歉|对不起|我无法|我不能|作为(?:一个|一名)?(?:AI|人工智能|语言模型))",
    re.IGNORECASE,
)
_ENDS = ".!?…。！？；;\"'”’」』）)]》"
Named = tuple[str, str, str]


def reject(text: str, named: Sequence[Named], language: str = "en") -> str | None:
    """Why a text is no text of a graph, or None when it may be one.

    named: the graph's triples by name.  Rejected are: nothing; a refusal; a text that breaks off before the end of
    a sentence (unless it ends with a name); one that names no entity of the graph; one with a name or number that is in
    no triple (`faithfulness.check`).  What a text leaves out does not reject it; `faithfulness` ranks by that.
    """
    stripped = text.strip()
    if not stripped:
        return EMPTY
    entities = [end for head, _, tail in named for end in (head, tail) if not is_cvt(end)]
    if _REFUSAL.match(stripped.replace("’", "'")) and not any(stripped.startswith(name) for name in entities if name):
        return REFUSED
    plain = _padded(stripped)
    if not any(_padded(name) in plain if _padded(name) else name.strip() in stripped for name in entities):
        return GARBAGE
    if stripped[-1] not in _ENDS and not any(stripped.endswith(name) for name in entities if name):
        return TRUNCATED
    return UNFAITHFUL if check(stripped, named, language).invented else None


def faithfulness(text: str, named: Sequence[Named], language: str = "en") -> float:
    """Share of the triples that a text states, less what it invents: in [0, 1], higher is better."""
    if not named:
        return 0.0
    checked = check(text, named, language)
    wrong = len(checked.invented)
    return round((len(named) - len(checked.untold)) / (len(named) + wrong), 6)


def _padded(text: str) -> str:
    """A text as it is searched, on the boundaries of its tokens; empty when nothing is left of it."""
    normal = tokens(text)
    return f" {' '.join(normal)} " if normal else ""
