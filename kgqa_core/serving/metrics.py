"""What `/metrics` says of a server, in Prometheus' text format."""

from __future__ import annotations

import os
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from kgqa_core.serving.service import Served, Service

MULTIPROCESS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Folder in which the workers of one server keep their counts, so that each worker's `/metrics` says those of all."""
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
ROADS = ("labels", "retriever", "parser")


class Metrics:
    """Counts of one worker."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.registry = registry
        self.requests = Counter("kgqa_requests", "Requests by path and status.", ["path", "status"], registry=registry)
        self.request_seconds = Histogram(
            "kgqa_request_seconds", "Seconds from the headers of a request to the end of its reply.", ["path"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.answers = Counter(
            "kgqa_answers",
            "Questions by outcome: answered, declined, rejected, failed.",
            ["outcome"],
            registry=registry,
        )
        self.roads = Counter(
            "kgqa_answers_by_road", "Answers of auto by the road that found them.", ["road"], registry=registry
        )
        self.batch = Histogram(
            "kgqa_batch_questions", "Questions that were answered together.", buckets=BATCHES, registry=registry
        )
        self.feedback = Counter("kgqa_feedback", "Feedback by verdict.", ["verdict"], registry=registry)
        self.waiting = Gauge(
            "kgqa_waiting_questions", "Questions that wait.", registry=registry, multiprocess_mode="livesum"
        )
        self.swaps = Gauge(
            "kgqa_champion_swaps", "Changes of the system that answers.", registry=registry, multiprocess_mode="max"
        )
        self.up = Gauge("kgqa_ready", "Workers that answer.", registry=registry, multiprocess_mode="livesum")

    def answered(self, served: Served) -> None:
        """Counts an answer."""
        self.answers.labels("answered" if served.answer.listed else "declined").inc()
        self.batch.observe(served.batch)
        if served.answer.listed and served.answer.road in ROADS:
            self.roads.labels(served.answer.road).inc()

    def text(self, service: Service) -> tuple[bytes, str]:
        """The text of `/metrics` and its type."""
        self.waiting.set(service.waiting)
        self.swaps.set(service.swaps)
        self.up.set(int(service.ready))
        registry: Any = self.registry
        if os.environ.get(MULTIPROCESS_VARIABLE):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST
