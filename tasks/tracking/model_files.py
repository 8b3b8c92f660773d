"""The files of a logged model: written without opening the system that they refer to.

MLflow calls `load_context` and `predict` when it saves such a model; while `saving()` they do nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

MODEL_CODE = Path(__file__).with_name("model_code.py")
EXAMPLE = {"input": [{"role": "user", "content": "What is the capital of France?"}]}
_SAVING: ContextVar[bool] = ContextVar("kgqa_saving_model", default=False)


def saving() -> bool:
    """Whether a model is being saved in this thread."""
    return _SAVING.get()


def save_model(folder: Path, reference: Mapping[str, Any], **ids: Any) -> None:
    """Write the model that a reference means into a folder that is not there yet.

    reference: as of `model_reference.make_reference`.  ids: run_id, model_id, artifact_path and model_uuid of the
    logged model.  No system is opened, and nothing is pickled.
    """
    import mlflow
    from mlflow.models import Model

    wanted = list(reference["requirements"])
    token = _SAVING.set(True)
    try:
        mlflow.pyfunc.save_model(
            path=str(folder),
            python_model=str(MODEL_CODE),
            model_config={**reference, "requirements": wanted[:1]},
            pip_requirements=wanted,
            input_example=EXAMPLE,
            mlflow_model=Model(**ids),
        )
    finally:
        _SAVING.reset(token)
