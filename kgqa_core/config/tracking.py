"""Options of what is remembered of answers."""

from __future__ import annotations

from pydantic import Field

from kgqa_core.config.base import Execution, Options


class TrackingOptions(Options):
    """What MLflow is told of the questions that a finished system answers."""

    trace_share: Execution[float] = Field(default=0.0, ge=0, le=1)
    """Share of the questions to `kgqa ask` and `kgqa answer` of which a trace is kept: what was linked, retrieved,
    computed and written, with seconds and tokens.  0 keeps none, 1 all."""
