"""The code of the logged model: MLflow copies this file into it and runs it when the model is loaded.

The modules of this project that it needs lie in the model's folder `code`, which MLflow puts before what is installed.
"""

from mlflow.models import set_model

try:
    from tasks.tracking.system_agent import SystemAgent
except ImportError as fault:
    raise ImportError(
        f"this model needs the packages of its requirements.txt ({fault}): pip install -r requirements.txt in the "
        "model's folder; mlflow.artifacts.download_artifacts fetches that"
    ) from fault

set_model(SystemAgent())
