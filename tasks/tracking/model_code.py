"""The code of the logged model: MLflow copies this file into it and runs it when the model is loaded.

Everything else is in the installed project, which the requirements of the model name.
"""

from mlflow.models import ModelConfig, set_model

try:
    from tasks.tracking.system_agent import SystemAgent
except ImportError as fault:
    wanted = next(iter(ModelConfig().get("requirements")), "kgqa")
    raise ImportError(
        f"this model needs the project kgqa ({fault}); install it with its packages: pip install '{wanted}'"
    ) from fault

set_model(SystemAgent())
