"""Runs a notebook of docs/ in a folder of its own, and writes what its cells show back into the file.

    python -m tools.notebook docs/quickstart.ipynb

The tests run it in the same way and compare what it shows.  Nothing of the machine stands in the file, neither a path
nor a time.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
CELL_SECONDS = 1200
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
NO_WIDGETS = "ignore:IProgress not found"
"""A warning of tqdm where ipywidgets is not installed; nothing here needs it."""


def executed(notebook: Path, folder: Path) -> Any:
    """The notebook with the outputs of a run in a copy of its folder, below `folder`.

    Its commands and imports are those of this checkout and interpreter.  Raises CellExecutionError.
    """
    place = folder / "docs"
    shutil.copytree(notebook.parent, place, ignore=shutil.ignore_patterns(".*"))
    (folder / "bin").mkdir()
    command = folder / "bin" / "kgqa"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m flows.cli "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    document = nbformat.read(notebook, as_version=4)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("KGQA_", "PREFECT_", "MLFLOW_"))}
    kept |= {"PATH": f"{command.parent}{os.pathsep}{kept['PATH']}", "PYTHONPATH": str(ROOT)}
    kept |= {"PYTHONWARNINGS": NO_WIDGETS}
    client = NotebookClient(
        document, timeout=CELL_SECONDS, kernel_name="python3", resources={"metadata": {"path": str(place)}}
    )
    client.execute(env=kept)
    for cell in document.cells:
        cell.metadata.pop("execution", None)  # when it ran
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    return document


def _joined(outputs: list[Any]) -> list[Any]:
    """Outputs without colours, and one where a stream was cut into pieces."""
    found: list[Any] = []
    for output in outputs:
        if output.output_type == "stream" and found and found[-1].get("name") == output.name:
            found[-1].text += output.text
            continue
        found.append(output)
    for output in found:
        if output.output_type == "stream":
            output.text = "\n".join(line.rstrip() for line in COLOUR.sub("", output.text).split("\n"))
    return found


def shown(cell: Mapping[str, Any]) -> str:
    """The text that a cell shows."""
    texts = (output.get("text") or output.get("data", {}).get("text/plain") or "" for output in cell.get("outputs", ()))
    return "".join(texts)


def main(notebook: Path) -> None:
    """Executes the notebook and writes it with its outputs."""
    with tempfile.TemporaryDirectory(prefix="kgqa-notebook-") as folder:
        document = executed(notebook, Path(folder))
        text = nbformat.writes(document)
        if any(place in text for place in (folder, str(ROOT), sys.prefix, str(Path.home()))):
            raise SystemExit(f"{notebook.name} shows a path of this machine; change the cell")
    notebook.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
