"""The files of a logged model: written without opening the system that they refer to.

MLflow calls `load_context` and `predict` when it saves such a model; while `saving()` they do nothing.  It also imports
the model's code, and torch with it, which takes seconds; all that differs from one run to the next stands in one file.
So what was saved once is kept as a template, by the code, the packages and the versions that it was made of.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from kgqa_core.store.scratch import scratch_folder
from tasks.import_closure import import_closure, package_folder

MODEL_CODE = Path(__file__).with_name("model_code.py")
ENTRY = "tasks.tracking.system_agent"
"""The module that `model_code.py` imports; what it imports at any depth goes into the model."""
PACKAGES = ("kgqa_core", "tasks")
EXAMPLE = {"input": [{"role": "user", "content": "What is the capital of France?"}]}
RECORD = "MLmodel"
"""The file that describes a model."""
_SAVING: ContextVar[bool] = ContextVar("kgqa_saving_model", default=False)


def saving() -> bool:
    """Whether a model is being saved in this thread."""
    return _SAVING.get()


def save_model(folder: Path, reference: Mapping[str, Any], templates: Path, **ids: Any) -> None:
    """Write the model that a reference means into a folder that is not there yet.

    reference: as of `model_reference.make_reference`.  templates: where a model is kept that the next one is made of.
    ids: run_id, model_id, artifact_path and model_uuid of the logged model.  No system is opened, and nothing is
    pickled.
    """
    config = {key: value for key, value in reference.items() if key != "requirements"}
    template = templates / _made_of(reference["requirements"])
    if not _from_template(template, folder, config, ids):
        _save(folder, config, list(reference["requirements"]), ids)
        _keep(folder, template)


def _from_template(template: Path, folder: Path, config: Mapping[str, Any], ids: Mapping[str, Any]) -> bool:
    """Whether there is a template, of which the model was then made."""
    try:
        record = yaml.safe_load((template / RECORD).read_text(encoding="utf-8"))
        record["flavors"]["python_function"]["config"] = dict(config)
        shutil.copytree(template, folder)
    except (OSError, yaml.YAMLError, KeyError, TypeError):
        shutil.rmtree(folder, ignore_errors=True)
        return False
    made = datetime.now(UTC).replace(tzinfo=None)
    text = yaml.safe_dump({**record, **ids, "utc_time_created": str(made)}, default_flow_style=False)
    (folder / RECORD).write_text(text, encoding="utf-8")
    return True


def _keep(folder: Path, template: Path) -> None:
    """Keeps a saved model as the only template; where it cannot be kept, the next one is saved anew."""
    with contextlib.suppress(OSError):
        for old in template.parent.iterdir() if template.parent.is_dir() else ():
            shutil.rmtree(old, ignore_errors=True)
        template.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(template.parent, "new") as scratch:
            shutil.copytree(folder, scratch / "model", ignore=shutil.ignore_patterns("__pycache__"))
            record = yaml.safe_load((folder / RECORD).read_text(encoding="utf-8"))
            record["flavors"]["python_function"].pop("config")
            fields = {key: value for key, value in record.items() if key != "artifact_path"}
            (scratch / "model" / RECORD).write_text(yaml.safe_dump(fields), encoding="utf-8")
            (scratch / "model").rename(template)


def _made_of(requirements: Sequence[str]) -> str:
    """A digest of the code, the packages and the versions that a model is made of."""
    digest = hashlib.sha256(f"{sys.version} {version('mlflow')} {list(requirements)} {EXAMPLE}".encode())
    for name, file in {**code_files(), MODEL_CODE.name: MODEL_CODE}.items():
        digest.update(f"{name} {file.stat().st_size} ".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:20]


def _save(folder: Path, config: dict[str, Any], requirements: list[str], ids: Mapping[str, Any]) -> None:
    """Saves a model with MLflow."""
    import mlflow
    from mlflow.models import Model

    token = _SAVING.set(True)
    try:
        with scratch_folder(None, "kgqa-code") as scratch, _requirements_unchecked(), _temporary_files_in(scratch):
            copy_code(scratch)
            mlflow.pyfunc.save_model(
                path=str(folder),
                python_model=str(MODEL_CODE),
                code_paths=[str(scratch / package) for package in PACKAGES],
                model_config=config,
                pip_requirements=requirements,
                input_example=EXAMPLE,
                mlflow_model=Model(**ids),
            )
    finally:
        _SAVING.reset(token)


@contextlib.contextmanager
def _requirements_unchecked() -> Iterator[None]:
    """MLflow compares each requirement with what is installed, which takes two seconds; ours are what is installed."""
    from unittest import mock

    from mlflow.utils import requirements_utils

    with mock.patch.object(requirements_utils, "_check_requirement_satisfied", lambda _: None, create=True):
        yield


@contextlib.contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """MLflow makes a temporary folder of its own, which nobody would delete after a kill."""
    from unittest import mock

    with mock.patch.object(tempfile, "tempdir", str(folder)):
        yield


def copy_code(folder: Path) -> None:
    """Copy `code_files` into a folder."""
    for name, file in code_files().items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


@functools.cache
def code_files() -> Mapping[str, Path]:
    """The files of this project that a system needs to answer, by their path below the folder of the packages.

    These are the modules that `ENTRY` imports, the `__init__.py` of the packages above them, and the data files of
    these packages.
    """
    sources: dict[str, Path] = {}
    for package in PACKAGES:
        root = package_folder(package)
        modules = [file for file in import_closure(ENTRY, PACKAGES).values() if file.is_relative_to(root)]
        folders = {folder for file in modules for folder in file.parents if folder.is_relative_to(root)}
        files = {*modules, *(folder / "__init__.py" for folder in folders)}
        files |= {file for folder in folders for file in _data_files(folder)}
        sources |= {file.relative_to(root.parent).as_posix(): file for file in sorted(files)}
    return sources


def _data_files(package: Path) -> Iterator[Path]:
    """Files of a package that are no modules, in its folders that are no packages too."""
    for entry in package.iterdir():
        if entry.is_dir() and entry.name != "__pycache__" and not (entry / "__init__.py").is_file():
            yield from _data_files(entry)
        elif entry.is_file() and entry.suffix not in (".py", ".pyc"):
            yield entry
