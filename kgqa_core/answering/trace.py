"""The trace of one answer: what each step read and gave, as plain values that any keeper of traces can write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from kgqa_core.answering.reply import Answer
from kgqa_core.llm.protocol import Completion
from kgqa_core.tracing import QuestionTrace, Span, StepClock
from kgqa_core.types import Linked, Question

SEARCHED = ("road", "confidence", "answerable", "declined", "reason", "model", "knowledge")
"""Fields of an answer that traces are searched by."""
CANDIDATES_SHOWN = 5
FACTS_SHOWN = 50


def question_trace(
    clock: StepClock,
    question: Question,
    mentions: Sequence[Linked],
    answer: Answer,
    *,
    prompt: str | None = None,
    completion: Completion | None = None,
    batch: int = 1,
) -> QuestionTrace:
    """The trace of a question that was just answered.

    clock: of its batch, which took the steps.  question: with its topics.  mentions: that were linked in it; none where
    it named its topics.  prompt, completion: of the language model that answered, where one did.
    """
    spans = [
        _span(clock, name, *values)
        for name, values in _steps(question, mentions, answer, prompt, completion).items()
        if name in clock.steps
    ]
    return QuestionTrace(
        asked(question), answer.to_dict(), clock.started, clock.seconds, spans, searched(answer), batch
    )  # fmt: skip


def asked(question: Question) -> dict[str, Any]:
    """What a trace says was asked."""
    said: dict[str, Any] = {"question": question.text}
    if question.topic_keys and not question.topic_weights:
        said["topics"] = list(question.topic_keys)
    if question.dialogue:
        said["dialogue"] = [list(turn) for turn in question.dialogue]
    return said


def searched(answer: Answer) -> dict[str, Any]:
    """What traces are searched by: fields of the answer that are there."""
    return {name: value for name in SEARCHED if (value := getattr(answer, name)) is not None}


Step = tuple[Mapping[str, Any], Mapping[str, Any], int | None, int | None]


def _steps(
    question: Question, mentions: Sequence[Linked], answer: Answer, prompt: str | None, completion: Completion | None
) -> dict[str, Step]:
    """Inputs, outputs and tokens of each step that this question took, in order."""
    topics = [asdict(topic) for topic in answer.topics]
    steps: dict[str, Step] = {}
    steps["linking"] = (
        asked(question),
        {"topics": topics, "mentions": [
            {"mention": text, "candidates": [list(candidate) for candidate in candidates[:CANDIDATES_SHOWN]]}
            for text, candidates in mentions
        ]},
        None, None,
    )  # fmt: skip
    if answer.facts or answer.entities or topics:
        facts = [asdict(fact) for fact in answer.facts[:FACTS_SHOWN]]
        results = {"facts": facts, "entities": [asdict(entity) for entity in answer.entities]}
        steps["retrieval"] = ({"topics": [topic["key"] for topic in topics]}, results, None, None)
    if answer.text or answer.passages:
        passages = [asdict(passage) for passage in answer.passages or ()]
        steps["knowledge"] = (
            {"format": answer.knowledge}, {"text": answer.text} | ({"passages": passages} if passages else {}),
            None, None,
        )  # fmt: skip
    if answer.operation is not None:
        effort = answer.effort
        computed = {
            "operation": answer.operation, "form": answer.form, "answers": list(answer.answers or ()),
            "proof": list(answer.proof), "proof_rows": answer.proof_rows, "road": answer.road,
            "chooser": answer.chooser,
        } | ({"steps": list(effort.steps), "end": effort.end} if effort is not None else {})  # fmt: skip
        tokens = (effort.prompt_tokens, effort.completion_tokens) if effort is not None else (None, None)
        steps["forms"] = ({"question": question.text, "facts": len(answer.facts)}, computed, *tokens)
    if completion is not None:
        steps["model"] = (
            {"prompt": prompt, "model": answer.model}, {"text": completion.text, "finish": completion.finish},
            completion.prompt_tokens, completion.completion_tokens,
        )  # fmt: skip
    if answer.wording is not None:
        steps["wording"] = ({"answers": list(answer.answers or ())}, {"text": answer.wording}, None, None)
    return steps


def _span(
    clock: StepClock, name: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any], read: int | None,
    written: int | None,
) -> Span:  # fmt: skip
    return Span(name, *clock.steps[name], inputs, outputs, read, written)
