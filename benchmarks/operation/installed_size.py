"""What `pip install kgqa` puts on a disk, alone and with the extra `run`, and how long its imports take.

    python -m benchmarks.operation.installed_size [--also PYTHON …] [--work DIR]
        [--json benchmarks/results/installed_size.json]

Each is installed as a wheel of the last commit into a virtual environment of its own, with the pinned packages and the
torch that TORCH_ARGS chooses (as in the Makefile), and asked one question of a graph file of one line.  megabytes:
blocks of the disk below the environment's packages, before anything is compiled; torch_parts: of torch's folders.
import_ms: medians of new processes less an empty one.  --also: further interpreters, in which kgqa alone is installed
and asked.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import RESULTS, ROOT, conditions
from benchmarks.results_file import CONDITIONS

FIELDS = (
    *CONDITIONS, "python", "installed/*/torch", "installed/*/packages", "installed/*/megabytes",
    "installed/*/install_seconds", "installed/*/answer", "installed/*/import_ms/*", "installed/*/largest/*",
    "installed/*/torch_parts/*",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""
EXTRAS = {"kgqa": "", "kgqa[run]": "[run]"}
IMPORTS = {"kgqa": "import kgqa", "System": "import kgqa; kgqa.System"}
ROUNDS, LARGEST, PARTS = 5, 12, 4
SIZES = """
import importlib.metadata as m, json
size = {d.metadata["Name"]: sum(p.stat().st_size for f in d.files or () if (p := f.locate()).exists()) / 1e6
        for d in m.distributions() if d.metadata["Name"] != "pip"}
print(json.dumps(size))
"""


def run(words: Sequence[str | Path], folder: Path) -> str:
    """Standard output of a command outside of the checkout.  Raises SystemExit where it failed."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("KGQA", "PYTHON"))}
    done = subprocess.run([*map(str, words)], cwd=folder, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{words}: {done.stderr[-3000:]}")
    return done.stdout


def imported(python: Path, code: str, folder: Path) -> float:
    """Milliseconds that some code takes in a process of its own."""
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        run([python, "-c", code], folder)
        seconds.append(time.perf_counter() - began)
    return 1000 * statistics.median(seconds)


def on_disk(folder: Path) -> float:
    """Megabytes of the blocks below a folder."""
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) * 512 / 1e6


def measure(extra: str, wheel: Path, work: Path, interpreter: str = sys.executable) -> dict[str, Any]:
    """The figures of one installation."""
    place = work / "environment"
    run([interpreter, "-m", "venv", place], work)
    python = place / "bin" / "python"
    install = [python, "-m", "pip", "install", "--no-compile", "-c", ROOT / "constraints.txt"]
    began = time.perf_counter()
    run([*install, *os.environ.get("TORCH_ARGS", "").split(), "torch"], work)
    run([*install, f"{wheel}{extra}"], work)
    seconds = time.perf_counter() - began
    run([python, "-m", "pip", "uninstall", "-y", "pip"], work)
    [site] = (place / "lib").glob("python*/site-packages")
    megabytes = round(on_disk(site))
    parts = {path.name: round(on_disk(path), 1) for path in (site / "torch").iterdir() if path.is_dir()}
    sizes: dict[str, float] = json.loads(run([python, "-B", "-c", SIZES], work))
    (work / "graph.tsv").write_text("Ada Stone\twrote\tThe Grey Harbour\n", encoding="utf-8")
    words = ["ask", "--kg", "graph.tsv", "--home", work / "home", "--json", "Who wrote The Grey Harbour?"]
    answer = json.loads(run([place / "bin" / "kgqa", *words], work))["answer"]
    build = run([python, "-c", "import torch; print(torch.__version__)"], work).strip()
    idle = imported(python, "pass", work)
    times = {name: round(imported(python, code, work) - idle, 1) for name, code in IMPORTS.items()}
    shutil.rmtree(place)
    shutil.rmtree(work / "home")
    largest = sorted(sizes, key=lambda name: -sizes[name])[:LARGEST]
    return {
        "torch": build, "packages": len(sizes), "megabytes": megabytes, "install_seconds": round(seconds),
        "answer": answer, "import_ms": times, "largest": {name: round(sizes[name], 1) for name in largest},
        "torch_parts": {name: parts[name] for name in sorted(parts, key=lambda name: -parts[name])[:PARTS]},
    }  # fmt: skip


def main() -> None:
    """Measures both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--also", nargs="*", default=[], metavar="PYTHON")
    parser.add_argument("--json", type=Path, default=RESULTS / "installed_size.json")
    options = parser.parse_args()
    document: dict[str, Any] = {"conditions": conditions(0), "python": sys.version.split()[0], "installed": {}}
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        work, source = Path(folder), Path(folder) / "source"
        source.mkdir()
        archive = subprocess.run(["git", "-C", str(ROOT), "archive", "HEAD"], capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
        build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", work, source]
        run(build, work)
        [wheel] = work.glob("kgqa-*.whl")
        for name, extra in EXTRAS.items():
            document["installed"][name] = measure(extra, wheel, work)
            print(name, json.dumps(document["installed"][name]), flush=True)
        for interpreter in options.also:
            version = run([interpreter, "-c", "import platform; print(platform.python_version())"], work).strip()
            name = f"kgqa, Python {version}"
            document["installed"][name] = measure("", wheel, work, interpreter)
            print(name, json.dumps(document["installed"][name]), flush=True)
    results_file.write(options.json, document, FIELDS)


if __name__ == "__main__":
    main()
