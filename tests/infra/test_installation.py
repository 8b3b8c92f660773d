"""A wheel holds all that it needs: installed alone, away from the repository, it runs and answers a question."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kgqa_core.extras import EXTRAS
from tests.infra.places import REPOSITORY
from tests.support.toy import write_graph, write_questions

pytestmark = pytest.mark.slow

PACKAGES = ("kgqa", "kgqa_core", "tasks", "flows")
MOVED = ("tasks", "flows")
"""Those that the wheel has below `kgqa/app`."""
SMALL = {
    "rigel.encoder": "scratch", "rigel.scratch_width": 32, "rigel.epochs": 1, "rigel.min_steps": 40,
    "hop_path.encoder": "scratch", "hop_path.scratch_width": 32, "hop_path.epochs": 2, "evaluation.bootstrap": 100,
    "corpus.size": 40, "rewriter.lora_rank": 4, "rewriter.epochs": 1, "answering.limit": 6,
}  # fmt: skip
"""Options that make a run of a minute."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this code, built from a copy so that nothing is left in the repository."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in PACKAGES:
        shutil.copytree(REPOSITORY / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", out, source], out)
    return next(out.glob("kgqa-*.whl"))


@pytest.fixture
def new_environment() -> Iterator[Path]:
    """A folder that goes with the test: pytest would keep several gigabytes of it."""
    with tempfile.TemporaryDirectory(prefix="kgqa-installation-") as folder:
        yield Path(folder)


def run(words: Sequence[str | Path], folder: Path) -> str:
    """Standard output of a command that knows nothing of the repository."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT", "MLFLOW", "KGQA", "PY"))}
    done = subprocess.run(
        [*map(str, words)], cwd=folder, env=kept, capture_output=True, text=True, timeout=1500, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}{done.stderr[-6000:]}"
    return done.stdout


def required_by(distribution: str) -> set[str]:
    """Names of the distributions that one needs without any extra, and those that these need."""
    found, open_names = set[str](), [distribution]
    while open_names:
        for text in requires(open_names.pop()) or ():
            one = Requirement(text)
            name = canonicalize_name(one.name)
            if name not in found and (one.marker is None or one.marker.evaluate({"extra": ""})):
                with contextlib.suppress(PackageNotFoundError):
                    version(name)
                    found.add(name)
                    open_names.append(name)
    return found


def ask_a_question(environment: Path, folder: Path) -> None:
    """Runs the installed `kgqa` on a graph of 200 triples and asks the result a question."""
    python, kgqa = environment / "bin" / "python", environment / "bin" / "kgqa"
    for name in PACKAGES:
        place = run([python, "-c", f"import {name}; print({name}.__file__)"], folder)
        assert Path(place.strip()).is_relative_to(environment)
    write_questions(folder / "questions.jsonl", write_graph(folder / "graph.tsv", 200), 40)
    sets = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    own = ("--kg", folder / "graph.tsv", "--questions", folder / "questions.jsonl")
    done = json.loads(run([kgqa, "run", *own, *sets, "--home", folder / "home", "--json"], folder).splitlines()[-1])
    assert Path(done["report"].removeprefix("file://")).is_file()
    question = json.loads((folder / "questions.jsonl").read_text().splitlines()[0])
    topic = question["topic_entities"][0]
    words = [kgqa, "ask", question["question"], "--topic", topic, "--home", folder / "home", "--json"]
    answer = json.loads(run(words, folder).splitlines()[-1])
    assert answer["question"] == question["question"] and answer["answer"]


def test_a_wheel_holds_every_file_that_the_packages_hold(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    listed = subprocess.run(
        ["git", "ls-files", "--", *PACKAGES], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    files = {f"kgqa/app/{name}" if name.startswith(MOVED) else name for name in listed.stdout.split()}
    assert files - inside == set()
    assert {name.partition("/")[0] for name in inside} == {"kgqa", "kgqa_core", "kgqa.pth", "kgqa-0.1.0.dist-info"}
    assert zipfile.ZipFile(wheel).read("kgqa-0.1.0.dist-info/top_level.txt").split() == [b"kgqa", b"kgqa_core"]


def test_a_wheel_without_any_extra_runs_and_answers(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    run([sys.executable, "-m", "venv", "--without-pip", environment], tmp_path)
    python = environment / "bin" / "python"
    run([sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel], tmp_path)
    # Third-party packages are those of these tests but the extras.  `.pth` files there, and so our code, do not count.
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    owners, core = packages_distributions(), required_by("kgqa") | {"prefect", "mlflow", "accelerate", "peft"}
    modules = {name for names in EXTRAS.values() for name in names}
    absent = sorted(name for name in modules if core.isdisjoint(map(canonicalize_name, owners.get(name, ()))))
    assert {"mcp", "ray", "faiss"} <= set(absent)
    site = Path(run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], tmp_path).strip())
    lines = [*sorted(places), f"import sys; sys.modules.update(dict.fromkeys({absent}))"]
    (site / "third_party.pth").write_text("\n".join(lines) + "\n")
    ask_a_question(environment, tmp_path)
    for name in MOVED:  # a user's own
        (site / f"{name}.py").write_text("OWN = True\n")
    assert run([python, "-c", "import flows, tasks; print(flows.OWN, tasks.OWN)"], tmp_path).split() == ["True"] * 2
    words = [environment / "bin" / "kgqa", "report", "--home", tmp_path / "home", "--json"]
    assert run(words, tmp_path)


def test_the_newest_python_here_runs_the_pinned_packages(wheel: Path, tmp_path: Path, new_environment: Path) -> None:
    """Installs the core packages for a newer interpreter, which takes minutes and a package index."""
    newest = _newest_python()
    if newest is None:
        pytest.skip(f"no Python newer than {sys.version_info.major}.{sys.version_info.minor} on this machine")
    environment = new_environment / "environment"
    run([newest, "-m", "venv", environment], tmp_path)
    install = [environment / "bin" / "python", "-m", "pip", "install", "-c", REPOSITORY / "constraints.txt"]
    try:
        run([*install, "typing_extensions"], tmp_path)
    except AssertionError as fault:
        pytest.skip(f"no package index for {newest}: {str(fault)[-200:]}")
    torch = re.search(r"^torch==.*$", (REPOSITORY / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    assert torch is not None
    run([*install, *os.environ.get("TORCH_ARGS", "").split(), torch[0]], tmp_path)
    run([*install, f"{wheel}[run]"], tmp_path)
    ask_a_question(environment, tmp_path)


def _newest_python() -> Path | None:
    """The newest released interpreter of PATH and of pyenv that is newer than this one."""
    minor = range(sys.version_info.minor + 1, sys.version_info.minor + 9)
    found = [shutil.which(f"python3.{number}") for number in reversed(minor)]
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    found += [path for number in reversed(minor) for path in sorted(pyenv.glob(f"3.{number}.*/bin/python"))]
    working: dict[tuple[int, ...], Path] = {}
    for path in filter(None, found):
        code = "import sys, venv, ensurepip; print(*sys.version_info[:3])"
        done = subprocess.run([str(path), "-c", code], capture_output=True, text=True, timeout=60)
        if done.returncode == 0:
            working[tuple(map(int, done.stdout.split()))] = Path(path)
    return working[max(working)] if working else None
