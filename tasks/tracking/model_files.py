"""The files of a logged model: written without opening the system that they refer to.

MLflow calls `load_context` and `predict` when it saves such a model; while `saving()` they do nothing.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from tasks.import_closure import import_closure, package_folder

MODEL_CODE = Path(__file__).with_name("model_code.py")
ENTRY = "tasks.tracking.system_agent"
"""The module that `model_code.py` imports; what it imports at any depth goes into the model."""
PACKAGES = ("kgqa_core", "tasks")
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

    token = _SAVING.set(True)
    try:
        with tempfile.TemporaryDirectory(prefix="kgqa-code-") as scratch:
            copy_code(Path(scratch))
            mlflow.pyfunc.save_model(
                path=str(folder),
                python_model=str(MODEL_CODE),
                code_paths=[str(Path(scratch) / package) for package in PACKAGES],
                model_config={key: value for key, value in reference.items() if key != "requirements"},
                pip_requirements=list(reference["requirements"]),
                input_example=EXAMPLE,
                mlflow_model=Model(**ids),
            )
    finally:
        _SAVING.reset(token)


def copy_code(folder: Path) -> None:
    """Copy `code_files` into a folder."""
    for name, file in code_files().items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)


@functools.cache
def code_files() -> Mapping[str, Path]:
    """The files of this project that a system needs to answer, by their path below the folder of the packages.

    These are the modules that `ENTRY` imports, the `__init__.py` of the packages above them, and the data files of
    these packages.
    """
    found: dict[str, Path] = {}
    for package in PACKAGES:
        root = package_folder(package)
        modules = [file for file in import_closure(ENTRY, PACKAGES).values() if file.is_relative_to(root)]
        folders = {folder for file in modules for folder in file.parents if folder.is_relative_to(root)}
        files = {*modules, *(folder / "__init__.py" for folder in folders)}
        files |= {file for folder in folders for file in _data_files(folder)}
        found |= {file.relative_to(root.parent).as_posix(): file for file in sorted(files)}
    return found


def _data_files(package: Path) -> Iterator[Path]:
    """Files of a package that are no modules, in its folders that are no packages too."""
    for entry in package.iterdir():
        if entry.is_dir() and entry.name != "__pycache__" and not (entry / "__init__.py").is_file():
            yield from _data_files(entry)
        elif entry.is_file() and entry.suffix not in (".py", ".pyc"):
            yield entry
