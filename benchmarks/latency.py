"""Latencies as the benchmarks give them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds, p50 and p99."""
    values = np.asarray(seconds) * 1000
    return {"p50_ms": round(float(np.percentile(values, 50)), 2), "p99_ms": round(float(np.percentile(values, 99)), 2)}


def median_seconds(work: Callable[[], Any], rounds: int) -> float:
    """Median seconds, after one round to warm up."""
    work()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)
