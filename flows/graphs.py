"""`kgqa kg build`: a graph folder of its own, outside any home and without a run."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgqa_core.artifacts import publish_folder, read_manifest
from kgqa_core.config import make_profile
from kgqa_core.kg.build import build
from tasks.progress import StageMonitor

log = logging.getLogger("kgqa")


def build_folder(files: Sequence[Path], out: Path, format: str, max_reject_share: float) -> dict[str, Any]:
    """Build the graph of `files` in the folder `out`, whole or not at all; its counts and seconds.

    Raises KgInputError for unusable files and StorageError when `out` cannot be written; an earlier graph in `out`
    stays until the new one is complete.
    """
    started = time.monotonic()
    profile = make_profile(
        {
            "kg": {
                "name": out.name,
                "files": [str(path) for path in files],
                "format": format,
                "max_reject_share": max_reject_share,
            }
        }
    )
    with StageMonitor("kg", lambda rows: None) as monitor:
        ref = publish_folder(
            "kg", out, lambda folder, work: build(folder, options=profile.kg, monitor=monitor, work=work)
        )
    counts = {name: value for name, value in read_manifest(ref.folder)["counts"].items() if not isinstance(value, dict)}
    return {**counts, "seconds": round(time.monotonic() - started, 2), "out": str(out), "digest": ref.digest}
