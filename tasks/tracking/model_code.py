"""The code of the logged model: MLflow copies this file into it and runs it when the model is loaded.

The modules of this project that it needs lie in one archive in the model's folder `code`, since MLflow's servers take
and give files one at a time.  They are unpacked once for each user, and go before what is installed.
"""

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from mlflow.models import set_model

ARCHIVE = Path(__file__).parent / "code" / "kgqa_code.zip"


def unpack(archive: Path) -> Path:
    """A folder with the archive's files: in the user's cache, or this process's own where none can be written."""
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:32]
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "kgqa" / "code"
        if (cache / digest).is_dir():
            return cache / digest
        cache.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".", dir=cache))
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        folder = Path(tempfile.mkdtemp(prefix="kgqa-code-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        cache = None
    with zipfile.ZipFile(archive) as files:
        files.extractall(folder)
    if cache is None:
        return folder
    try:
        folder.rename(cache / digest)
    except OSError:  # another process was faster
        shutil.rmtree(folder)
    return cache / digest


if ARCHIVE.is_file():  # not while the model is saved
    sys.path.insert(0, str(unpack(ARCHIVE)))
try:
    from tasks.tracking.system_agent import SystemAgent
except ImportError as fault:
    raise ImportError(
        f"this model needs the packages of its requirements.txt ({fault}): pip install -r requirements.txt in the "
        "model's folder; mlflow.artifacts.download_artifacts fetches that"
    ) from fault

set_model(SystemAgent())
