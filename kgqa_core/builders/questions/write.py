"""A language model says generated questions in other words; what no longer asks the same is not taken.

Every call goes through `generate_cached`: cached, paid once, under the run's budget.  A question that no completion
passes for keeps the grammar's words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kgqa_core.config import LlmOptions
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.paid import PromptBatch, insist
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.metrics.normalise import tokens
from kgqa_core.workspace import Workspace

TEMPLATE = "template"
"""Name of the writer that is no model."""

PROMPT = """\
Rewrite the question the way a person would type it to a search engine or a chat, in the same language. Keep the
meaning, every condition, and these names letter for letter: {names}. Do not answer it. Write one line only.

Question: {question}
Logical form: {form}
Rewritten question:"""

_LONGEST = 300
_NEGATION = re.compile(r"\b(not|no|never|except|without|but|other|excluding)\b|n't\b|不|除")


def paraphrase(
    workspace: Workspace, rows: Sequence[dict[str, Any]], options: GeneratedQuestionsOptions, llm: LlmOptions
) -> dict[str, int]:
    """Puts a model's wording in place of `question` of each row that a completion passes for; counts.

    rows: as `generate.make` makes them, before noise.  Raises BudgetReached, EndpointError and ModelError.
    """
    model = load_model(options.writer, llm, budget=workspace.budget)
    batch = PromptBatch(
        [prompt(row) for row in rows],
        GenerationParams(max_new_tokens=options.max_new_tokens),
        cache=open_cache(workspace.cache),
        validate=lambda index, text: fault(rows[index], text),
        attempts=llm.attempts,
        retry_temperature=0.7,
        monitor=workspace.monitor,
        what="wordings",
    )
    written = 0
    for row, outcome in zip(rows, insist(model, batch), strict=True):
        completion = outcome.completion
        if completion is not None and completion.finish != "error" and fault(row, completion.text) is None:
            row["question"] = line(completion.text)
            written += 1
    return {"written": written, "not_written": len(rows) - written}


def prompt(row: dict[str, Any]) -> str:
    """What a model is sent for one question."""
    form = row.get("s_expression") or row.get("missing_form") or "none"
    return PROMPT.format(names=", ".join(row["mentions"]) or "none", question=row["question"], form=form)


def line(text: str) -> str:
    """The question of a completion, without quotation marks around it."""
    lines = [one.strip() for one in text.strip().splitlines() if one.strip()]
    return lines[0].strip("\"'“”` ") if lines else ""


def fault(row: dict[str, Any], text: str) -> str | None:
    """Why a completion is no wording of a question: a name lost, the answer given away, a negation lost, too long."""
    wording = line(text)
    if not wording or len(wording) > _LONGEST:
        return "empty" if not wording else "too long"
    lost = [name for name in row["mentions"] if name.casefold() not in wording.casefold()]
    if lost:
        return f"name lost: {lost[0]}"
    if (_NEGATION.search(row["question"]) is None) != (_NEGATION.search(wording) is None):
        return "negation changed"
    if re.sub(r"\D", "", "".join(_numbers(row["question"], row["mentions"]))) not in re.sub(r"\D", "", wording):
        return "number lost"
    added, answers = set(tokens(wording)) - set(tokens(row["question"])), row.get("answer_names", row["answers"])
    given = [answer for answer in answers if tokens(answer) and set(tokens(answer)) <= added]
    return f"answer in the question: {given[0]}" if given and row.get("answer_type") != "yes/no" else None


def _numbers(text: str, mentions: Sequence[str]) -> list[str]:
    for name in mentions:
        text = text.replace(name, " ")
    return re.findall(r"\d[\d.,]*", text)[:1]
