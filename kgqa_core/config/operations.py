"""Options of how runs are operated."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kgqa_core.config.base import Options


class RunnerOptions(Options):
    """Where the parts of a map stage run; none of this changes what they make."""

    kind: Literal["inline", "thread", "process", "dask", "ray"] = "inline"
    """Prefect's task runner for parts: in the flow itself, on threads or processes here, on a Dask or a Ray cluster."""
    shards: int = Field(default=1, ge=1, le=4096)
    """Parts that facts, sentences and answers are made in."""
    workers: int | None = Field(default=None, ge=1)
    """Parts at once; as many as cores when absent."""
    address: str | None = None
    """Of a running Dask scheduler (`tcp://…`) or Ray cluster (`ray://…`); a local one is started when absent."""


class OperationsOptions(Options):
    """How runs are operated: where work runs, when models are trained again, what becomes the champion."""

    runner: RunnerOptions = RunnerOptions()
    gpu_stages: Literal["here", "deployments", "auto"] = "auto"
    """Where trainings and the corpus are made: in this process, by deployments on the pool `gpu`, or there when a
    Prefect server has such a deployment."""
    secrets: dict[str, str] = {}
    """Environment variables that Secret blocks of Prefect fill where they are not set: `{OPENAI_API_KEY: my-block}`."""
    retrain_share: float = Field(default=0.05, ge=0, le=1)
    """A refresh trains again when this share of the triples came, went or changed, or when a relation came or went."""
    champion_metric: str | None = None
    """Metric that a new system must be better in.  When absent `exact` of the answers of the run's answerer where that
    computes them (`auto`, `symbolic`), else `hits_at_1` of its first retriever."""
    champion_experiment: str | None = None
    """Experiment whose metric counts, such as `rigel/triples/builtin`; the first of the run that has it when absent."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the interval of the difference, above 0 of which the champion moves."""
