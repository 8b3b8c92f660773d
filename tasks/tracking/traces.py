"""Traces of answered questions in MLflow, and what people say of them as assessments.

A trace lies in the experiment of the runs and names the run whose system answered.  It is sent by a thread of its own,
so that no answer waits for MLflow; where that is away, traces are dropped, since they are samples, and the log says so
once.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import math
import os
import queue
import random
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kgqa_core.errors import InputError, KgqaError
from kgqa_core.store.artifacts import Home
from kgqa_core.tracing import NO_TRACER, QuestionTrace, QuestionTracer, Span
from tasks.tracking.mlflow_store import RUN_ID, MlflowStore, tracking_uri, without_credentials

log = logging.getLogger("kgqa.tracking")

SPAN_TYPES = {
    "linking": "PARSER", "retrieval": "RETRIEVER", "knowledge": "CHAIN", "forms": "CHAIN", "model": "LLM",
    "wording": "LLM",
}  # fmt: skip
"""MLflow's type of each step; any other is a CHAIN."""
WAITING = 1000
"""Traces that wait to be sent at most; further ones are dropped."""
PATIENCE = 30.0
"""Seconds between two tries to reach MLflow."""
CLOSING = 20.0
"""Longest wait in seconds for traces that are not sent yet, when a tracer is closed."""
PREVIEW = 1000
FEEDBACK, CORRECTION = "correct", "answers"
"""Names of the assessments that feedback becomes."""


class ShareSampler:
    """Says yes to a share of the calls: to every tenth for 0.1, from a random one on.

    >>> each = ShareSampler(0.25, start=0.0)
    >>> [each() for _ in range(8)]
    [False, False, False, True, False, False, False, True]
    """

    def __init__(self, share: float, start: float | None = None) -> None:
        self.share, self._sum = share, random.random() if start is None else start
        self._lock = threading.Lock()

    def __call__(self) -> bool:
        """Whether this one is of the sample."""
        with self._lock:
            before = math.floor(self._sum)
            self._sum += self.share
            return math.floor(self._sum) > before


class MlflowTracer:
    """A `QuestionTracer` that writes a share of the traces to MLflow.

    run: id of the run whose system answers; mlflow_run: of it in MLflow, where known.  command: what answers, such as
    `ask`.  connect: opens the store, may raise.
    """

    def __init__(
        self,
        home: Home,
        share: float,
        *,
        run: str,
        mlflow_run: str | None = None,
        command: str = "ask",
        connect: Callable[[], MlflowStore] | None = None,
    ) -> None:
        self._sampler = ShareSampler(share)
        self._connect, self._where = connect or (lambda: MlflowStore(home)), without_credentials(tracking_uri(home))
        self._run, self._command = run, command
        self._metadata = {"mlflow.sourceRun": mlflow_run} if mlflow_run else {}
        self._store: MlflowStore | None = None
        self._next = 0.0
        self._said = False
        self.sent = self.dropped = 0
        self._queue: queue.Queue[tuple[str, QuestionTrace] | None] = queue.Queue(WAITING)
        self._thread: threading.Thread | None = None

    def wants(self) -> bool:
        """Whether the next question is of the sample."""
        return self._sampler()

    def record(self, trace: QuestionTrace) -> str | None:
        """Let a trace be sent; its id in MLflow."""
        name = f"tr-{secrets.token_hex(16)}"
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_all, name="kgqa-traces", daemon=True)
            self._thread.start()
        try:
            self._queue.put_nowait((name, trace))
        except queue.Full:
            self._drop("more traces come than it takes")
            return None
        return name

    def close(self, seconds: float = CLOSING) -> None:
        """Wait until what was recorded is sent, or dropped, but no longer than so many seconds."""
        if self._thread is None:
            return
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=seconds)
        self._thread.join(seconds)
        if self._thread.is_alive():
            log.warning("MLflow at %s takes long; traces of the last questions may be lost", self._where)
        self._thread = None

    def _send_all(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                self._send(*item)
            except Exception as fault:  # whatever MLflow raises: no answer may fail for it
                self._next = time.monotonic() + PATIENCE
                self._drop(without_credentials(str(fault)).partition("\n")[0][:200] or type(fault).__name__)

    def _send(self, name: str, trace: QuestionTrace) -> None:
        if time.monotonic() < self._next:
            self.dropped += 1
            return
        if self._store is None:
            self._store = self._connect()
        send_trace(self._store, name, trace, trace_tags(self._run, self._command, trace), self._metadata)
        self.sent += 1
        self._said = False

    def _drop(self, why: str) -> None:
        self.dropped += 1
        if not self._said:
            self._said = True
            log.warning("MLflow at %s takes no traces (%s); they are dropped", self._where, why)


def open_tracer(home: Home, share: float, record: Mapping[str, Any], command: str) -> QuestionTracer:
    """The tracer of a run's system; one that keeps nothing where the share is 0, or the home that has MLflow's store
    cannot be written.  `close_tracer` ends it.

    record: of the run.  Raises InputError for a share outside [0, 1].
    """
    if not 0 <= share <= 1:
        raise InputError(f"the share of traced questions is {share}; give a number from 0 (none) to 1 (all)")
    if share == 0 or not (home.writable or os.environ.get("MLFLOW_TRACKING_URI")):
        return NO_TRACER
    return MlflowTracer(
        home, share, run=str(record["run_id"]), mlflow_run=record.get("mlflow_run_id"), command=command
    )  # fmt: skip


def close_tracer(tracer: QuestionTracer) -> None:
    """Wait until a tracer has sent what it has."""
    if isinstance(tracer, MlflowTracer):
        tracer.close()


def send_trace(
    store: MlflowStore, name: str, trace: QuestionTrace, tags: Mapping[str, str], metadata: Mapping[str, str]
) -> None:
    """Write a trace with its spans.  name: its id, `tr-` and 32 hexadecimal digits.  Raises what MLflow raises."""
    from mlflow.entities.trace_info import TraceInfo
    from mlflow.entities.trace_location import TraceLocation
    from mlflow.entities.trace_state import TraceState
    from mlflow.tracing.client import TracingClient

    info = TraceInfo(
        trace_id=name,
        trace_location=TraceLocation.from_experiment_id(store.experiment),
        request_time=_ms(trace.started),
        execution_duration=max(0, _ms(trace.seconds)),
        state=TraceState.OK,
        request_preview=str(trace.inputs.get("question", ""))[:PREVIEW],
        response_preview=_preview(trace.outputs),
        trace_metadata=dict(metadata),
        tags={"mlflow.traceName": "kgqa", **tags},
    )
    client = TracingClient(store.uri)
    client.log_spans(store.experiment, spans_of(name, trace))
    client.start_trace(info)


def trace_tags(run: str, command: str, trace: QuestionTrace) -> dict[str, str]:
    """Tags that a trace is searched by: the run whose system answered, what answered, road, confidence and the like."""
    searched = {f"kgqa.{key}": _text(value) for key, value in trace.attributes.items()}
    return {RUN_ID: run, "kgqa.command": command, **searched}


def spans_of(name: str, trace: QuestionTrace) -> list[Any]:
    """MLflow's spans of a trace, its root first."""
    root = secrets.token_bytes(8)
    attributes = {**trace.attributes, "batch": trace.batch, "seconds": round(trace.seconds, 6)}
    whole = Span("kgqa", trace.started, trace.seconds, trace.inputs, trace.outputs)
    return [
        _span(name, root, None, whole, "AGENT", attributes),
        *(
            _span(name, secrets.token_bytes(8), root, span, SPAN_TYPES.get(span.name, "CHAIN"), span_attributes(span))
            for span in trace.spans
        ),
    ]


def span_attributes(span: Span) -> dict[str, Any]:
    """What MLflow reads of a step beside its inputs and outputs: its seconds, and its tokens where it has some."""
    attributes: dict[str, Any] = {"seconds": round(span.seconds, 6)}
    if span.prompt_tokens is not None and span.completion_tokens is not None:
        attributes["mlflow.chat.tokenUsage"] = {
            "input_tokens": span.prompt_tokens,
            "output_tokens": span.completion_tokens,
            "total_tokens": span.prompt_tokens + span.completion_tokens,
        }
    return attributes


def _span(name: str, span_id: bytes, parent: bytes | None, span: Span, kind: str, more: Mapping[str, Any]) -> Any:
    from mlflow.entities import Span as MlflowSpan

    attributes = {
        "mlflow.traceRequestId": name, "mlflow.spanType": kind, "mlflow.spanInputs": dict(span.inputs),
        "mlflow.spanOutputs": dict(span.outputs), **more,
    }  # fmt: skip
    return MlflowSpan.from_dict(
        {
            "trace_id": _base64(bytes.fromhex(name.removeprefix("tr-"))),
            "span_id": _base64(span_id),
            "parent_span_id": _base64(parent) if parent else None,
            "name": span.name,
            "start_time_unix_nano": int(span.started * 1e9),
            "end_time_unix_nano": int((span.started + span.seconds) * 1e9),
            "events": [],
            "status": {"code": "STATUS_CODE_OK", "message": ""},
            "attributes": {
                key: json.dumps(value, ensure_ascii=False, default=str) for key, value in attributes.items()
            },
        }
    )


def record_feedback(
    home: Home,
    trace: str,
    right: bool,
    *,
    correction: Sequence[str] | None = None,
    rationale: str | None = None,
    source: str = "user",
) -> None:
    """Keep what somebody says of an answer as assessments of its trace: `correct`, and `answers` with a correction.

    home: whose MLflow holds the trace.  source: who says it; no name of a person.
    Raises InputError where MLflow does not know the trace or cannot be reached.
    """
    from mlflow.entities import AssessmentSource, Expectation, Feedback
    from mlflow.tracing.client import TracingClient

    said_by = AssessmentSource(source_type="HUMAN", source_id=source)
    assessments: list[Any] = [Feedback(name=FEEDBACK, value=right, source=said_by, rationale=rationale)]
    if correction:
        assessments.append(Expectation(name=CORRECTION, value=list(correction), source=said_by))
    try:
        client = TracingClient(MlflowStore(home).uri)
        for assessment in assessments:
            client.log_assessment(trace, assessment)
    except KgqaError:
        raise
    except Exception as fault:
        why = without_credentials(str(fault)).partition("\n")[0][:200]
        raise InputError(
            f"trace {trace!r} takes no feedback in MLflow at {without_credentials(tracking_uri(home))} ({why}); "
            "only questions that tracking.trace_share let be traced have a trace"
        ) from None


def _preview(outputs: Mapping[str, Any]) -> str:
    answer = outputs.get("answer")
    return str(answer if answer is not None else outputs.get("reason") or "")[:PREVIEW]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")
