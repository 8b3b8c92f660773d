"""Latencies as the benchmarks of single questions give them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds, p50 and p99."""
    values = np.asarray(seconds) * 1000
    return {"p50_ms": round(float(np.percentile(values, 50)), 2), "p99_ms": round(float(np.percentile(values, 99)), 2)}
