"""A finished system as an MLflow model: chat messages in, the text of a served chat and the whole answer out.

Only `model_code.py`, which MLflow runs, imports this module, since it imports MLflow.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any
from uuid import uuid4

import mlflow
from mlflow.entities import SpanType
from mlflow.exceptions import MlflowException
from mlflow.pyfunc import ResponsesAgent
from mlflow.types.responses import ResponsesAgentRequest, ResponsesAgentResponse, ResponsesAgentStreamEvent
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kgqa_core.answering.reply import Answer
from kgqa_core.errors import InputError
from kgqa_core.serving.ask_record import Ask
from kgqa_core.serving.chat import answer_text, question_of
from kgqa_core.serving.messages import ChatMessage, ChatRequest
from kgqa_core.system import System
from kgqa_core.tracing import QuestionTrace
from tasks.tracking.model_files import saving
from tasks.tracking.model_reference import open_system
from tasks.tracking.traces import SPAN_TYPES, span_attributes, trace_tags

MESSAGE_ID = "answer"


class CustomInputs(BaseModel):
    """What a request may say beside its messages.

    topics: keys or labels of the entities that the question is about; found in it when absent.  min_confidence: in
    [0, 1], below which nothing is answered; the system's own when absent.
    """

    model_config = ConfigDict(extra="forbid")

    topics: list[str] = []
    min_confidence: float | None = Field(default=None, ge=0, le=1)


class SystemAgent(ResponsesAgent):
    """Answers the last user message of a chat; the messages before it are the dialogue.

    The response's text is the answer with its proof as citations, or why there is none; `kgqa_core.serving.chat` writes
    it.  `custom_outputs` has `answer`, as `kgqa ask --json` prints
    it, and `run`, the run whose system answered.
    """

    def __init__(self) -> None:
        self._system: System | None = None
        self._run = ""

    def load_context(self, context: Any) -> None:
        """Open the system that the model refers to.  Raises what `open_system` raises."""
        if not saving():
            reference = context.model_config or {}
            self._run = str(reference["run"])
            self._system = open_system(reference, ActiveTracer(self._run))

    def predict(self, request: ResponsesAgentRequest) -> ResponsesAgentResponse:  # type: ignore[override]
        """The answer to the last user message.  Raises MlflowException for a request that cannot be answered."""
        if saving():  # MLflow checks the shape of a response when it saves; no system is opened for that
            return ResponsesAgentResponse(output=[self.create_text_output_item("", MESSAGE_ID)])
        answer = self._answer(request)
        item = self.create_text_output_item(answer_text(answer), f"{MESSAGE_ID}-{uuid4().hex[:12]}")
        return ResponsesAgentResponse(output=[item], custom_outputs=self._outputs(answer))

    def predict_stream(  # type: ignore[override]
        self, request: ResponsesAgentRequest
    ) -> Generator[ResponsesAgentStreamEvent, None, None]:
        """The same as one event, since an answer is there as a whole."""
        answer = self._answer(request)
        item = self.create_text_output_item(answer_text(answer), f"{MESSAGE_ID}-{uuid4().hex[:12]}")
        yield ResponsesAgentStreamEvent(
            type="response.output_item.done", item=item, custom_outputs=self._outputs(answer)
        )  # fmt: skip

    def _answer(self, request: ResponsesAgentRequest) -> Answer:
        assert self._system is not None, "MLflow calls load_context first"
        try:
            ask = read_request(request)
            system = self._system
            if ask.min_confidence is not None:
                system = system.at_confidence(ask.min_confidence)
            if ask.reading:
                system = system.at_reading(ask.reading)
            return system.ask(ask.question, ask.topics, ask.dialogue)
        except InputError as fault:
            raise MlflowException.invalid_parameter_value(str(fault)) from None

    def _outputs(self, answer: Answer) -> dict[str, Any]:
        return {"answer": answer.to_dict(), "run": self._run}


class ActiveTracer:
    """A `QuestionTracer` that puts the steps of an answer under the span that MLflow has open around `predict`.

    Whether there is one is MLflow's to say: its tracing may be off, and samples by `MLFLOW_TRACE_SAMPLING_RATIO`.
    run: whose system answers.
    """

    def __init__(self, run: str) -> None:
        self.run = run

    def wants(self) -> bool:
        """Whether MLflow traces the call under way."""
        return mlflow.get_current_active_span() is not None

    def record(self, trace: QuestionTrace) -> str | None:
        """Add a span for each step; the id of the trace under way."""
        parent = mlflow.get_current_active_span()
        if parent is None:
            return None
        parent.set_attributes(dict(trace.attributes))
        mlflow.update_current_trace(tags=trace_tags(self.run, "model", trace))
        for step in trace.spans:
            span = mlflow.start_span_no_context(
                step.name,
                span_type=SPAN_TYPES.get(step.name, SpanType.CHAIN),
                parent_span=parent,
                inputs=dict(step.inputs),
                attributes=span_attributes(step),
                start_time_ns=int(step.started * 1e9),
            )
            span.end(outputs=dict(step.outputs), end_time_ns=int((step.started + step.seconds) * 1e9))
        return str(parent.trace_id)


def read_request(request: ResponsesAgentRequest) -> Ask:
    """The question, dialogue and options of a request.  Raises InputError for one that cannot be read."""
    try:
        custom = CustomInputs.model_validate(request.custom_inputs or {})
        messages = [_message(item.model_dump()) for item in request.input]
        chat = ChatRequest(messages=messages, topics=custom.topics, min_confidence=custom.min_confidence)
    except ValidationError as fault:
        faults = "; ".join(f"{'.'.join(map(str, error['loc'])) or 'it'}: {error['msg']}" for error in fault.errors())
        raise InputError(
            f"the request cannot be read ({faults}); input is a list of messages, and custom_inputs may have topics (a "
            "list of texts) and min_confidence (0 to 1)"
        ) from None
    return question_of(chat)


def _message(item: Mapping[str, Any]) -> ChatMessage:
    """A message, or an output item of an earlier response, as one of the chat protocol."""
    content = item.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text") or "") for part in content)
    return ChatMessage(role=str(item.get("role") or item.get("type") or ""), content=content)
