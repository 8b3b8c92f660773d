"""Traces of answers reach MLflow with their spans and tokens, in the share that is wanted, and fail no answer."""

from __future__ import annotations

import json
import logging
import threading
import time
from pathlib import Path

import pytest

from kgqa_core.errors import InputError
from kgqa_core.store.artifacts import Home
from kgqa_core.tracing import NO_TRACER, QuestionTrace, Span, StepClock
from tasks.tracking.mlflow_store import MlflowStore
from tasks.tracking.traces import MlflowTracer, ShareSampler, open_tracer, record_feedback
from tasks.tracking.tracker import RunStart


def trace(question: str = "What is the capital of Fiji?") -> QuestionTrace:
    spans = [
        Span("linking", 1000.0, 0.25, {"question": question}, {"topics": [{"key": "Q712", "name": "Fiji"}]}),
        Span("model", 1000.25, 0.5, {"prompt": "…"}, {"text": "Suva"}, 30, 2),
    ]
    attributes = {"road": "labels", "confidence": 0.75}
    return QuestionTrace({"question": question}, {"answer": "Suva"}, 1000.0, 0.75, spans, attributes, batch=3)


def test_a_trace_has_question_answer_run_road_confidence_spans_seconds_and_tokens(
    opened: tuple[Home, MlflowStore],
) -> None:
    home, store = opened
    run = store.start(RunStart("pending-5-r1", "a run", {}))
    tracer = open_tracer(home, 1.0, {"run_id": "r1", "mlflow_run_id": run}, "ask")
    assert isinstance(tracer, MlflowTracer) and tracer.wants()
    name = tracer.record(trace())
    tracer.close()
    assert (tracer.sent, tracer.dropped) == (1, 0) and name is not None
    found = store._client.get_trace(name)
    tags = found.info.tags
    assert (tags["kgqa.run_id"], tags["kgqa.command"]) == ("r1", "ask")
    assert (tags["kgqa.road"], tags["kgqa.confidence"]) == ("labels", "0.75")
    assert found.info.request_metadata["mlflow.sourceRun"] == run
    assert (found.info.request_preview, found.info.response_preview) == ("What is the capital of Fiji?", "Suva")
    assert (found.info.timestamp_ms, found.info.execution_time_ms) == (1_000_000, 750)
    root, linking, model = sorted(found.data.spans, key=lambda span: (span.parent_id is not None, span.start_time_ns))
    assert root.inputs == {"question": "What is the capital of Fiji?"} and root.outputs == {"answer": "Suva"}
    assert root.attributes["batch"] == 3 and {linking.parent_id, model.parent_id} == {root.span_id}
    assert (linking.name, linking.span_type, model.name, model.span_type) == ("linking", "PARSER", "model", "LLM")
    assert (linking.end_time_ns - linking.start_time_ns, model.attributes["seconds"]) == (250_000_000, 0.5)
    assert linking.outputs["topics"] == [{"key": "Q712", "name": "Fiji"}] and model.outputs == {"text": "Suva"}
    usage = {"input_tokens": 30, "output_tokens": 2, "total_tokens": 32}
    assert model.attributes["mlflow.chat.tokenUsage"] == usage
    assert json.loads(found.info.request_metadata["mlflow.trace.tokenUsage"]) == usage


def test_feedback_becomes_assessments_of_its_trace(opened: tuple[Home, MlflowStore]) -> None:
    home, store = opened
    tracer = open_tracer(home, 1.0, {"run_id": "r2"}, "serve")
    name = tracer.record(trace())
    tracer.close()  # type: ignore[attr-defined]
    assert name is not None
    record_feedback(home, name, False, correction=["Suva", "Lami"], rationale="two of them")
    record_feedback(home, name, True)
    said = store._client.get_trace(name).info.assessments
    assert sorted((one.name, str(one.value), one.rationale) for one in said) == [
        ("answers", "['Suva', 'Lami']", None), ("correct", "False", "two of them"), ("correct", "True", None),
    ]  # fmt: skip
    with pytest.raises(InputError, match=f"trace 'tr-{'0' * 32}' takes no feedback.*tracking.trace_share"):
        record_feedback(home, f"tr-{'0' * 32}", True)


@pytest.mark.parametrize(("share", "wanted"), [(0.1, 20), (0.25, 50), (1.0, 200), (0.0, 0)])
def test_exactly_the_share_of_the_questions_is_traced(share: float, wanted: int) -> None:
    sampler = ShareSampler(share)
    assert abs(sum(sampler() for _ in range(200)) - wanted) <= (0 if share in (0, 1) else 1)


def test_nothing_is_kept_without_a_share_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert open_tracer(home, 0, {"run_id": "r"}, "ask") is NO_TRACER and not NO_TRACER.wants()
    with pytest.raises(InputError, match=r"is 1\.5; give a number from 0 \(none\) to 1"):
        open_tracer(home, 1.5, {"run_id": "r"}, "ask")


def test_a_lost_mlflow_drops_traces_and_says_so_once_without_its_password(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[float] = []

    def connect() -> MlflowStore:
        tries.append(time.monotonic())
        raise ConnectionError("no answer from http://me:secret@nowhere:1/x")

    tracer = MlflowTracer(Home(tmp_path), 1.0, run="r", connect=connect)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            assert tracer.record(trace()) is not None
        tracer.close()
    assert (tracer.sent, tracer.dropped, len(tries)) == (0, 5, 1)
    [line] = [record.getMessage() for record in caplog.records]
    assert "takes no traces" in line and "secret" not in line


def test_an_answer_does_not_wait_for_a_slow_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.tracking.traces.WAITING", 2)
    gate = threading.Event()

    def connect() -> MlflowStore:
        gate.wait(60)
        raise ConnectionError("gone")

    tracer = MlflowTracer(Home(tmp_path), 1.0, run="r", connect=connect)
    began = time.monotonic()
    names = [tracer.record(trace()) for _ in range(10)]
    assert time.monotonic() - began < 5 and None in names
    gate.set()
    tracer.close()
    assert tracer.dropped == 10


def test_a_step_is_measured_also_where_it_fails() -> None:
    clock = StepClock()
    with pytest.raises(ValueError), clock.step("linking"):
        time.sleep(0.02)
        raise ValueError
    started, seconds = clock.steps["linking"]
    assert 0.02 <= seconds <= clock.seconds and clock.started <= started
