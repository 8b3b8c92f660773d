"""The images are built from pinned parts, run as nobody in particular, and hold nothing that they should not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kgqa_core.extras import EXTRAS
from tests.infra.image_rules import Dockerfile, let_through, problems
from tests.infra.places import INFRA, REPOSITORY, read_faults

FILES = ("cpu.Dockerfile", "cuda.Dockerfile")
IGNORE = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8")
HADOLINT = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))


@pytest.mark.parametrize("name", FILES)
def test_dockerfile_has_no_fault(name: str) -> None:
    assert problems((INFRA / name).read_text(encoding="utf-8"), IGNORE) == []


@pytest.mark.skipif(HADOLINT is None, reason="no hadolint here")
@pytest.mark.parametrize("name", FILES)
def test_hadolint_has_nothing_to_say(name: str) -> None:
    done = subprocess.run([str(HADOLINT), "--no-color", str(INFRA / name)], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "")


def test_both_workers_have_the_same_environment_but_for_the_gpu() -> None:
    cpu, cuda = (Dockerfile((INFRA / name).read_text(encoding="utf-8")) for name in FILES)
    there = {name: value for name, value in cuda.environment("last").items() if not name.startswith("NVIDIA_")}
    assert there == cpu.environment("worker")
    assert cuda.of("last", "RUN")[1:] == cpu.of("worker", "RUN")[1:]


def test_workers_install_the_extras_of_all_options_but_those_of_a_cluster() -> None:
    install = Dockerfile((INFRA / "cpu.Dockerfile").read_text(encoding="utf-8")).of("worker", "RUN")[-2]
    code = re.findall(r"python -c '(.*?)'", install)[0]
    listed = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    assert listed.stdout.splitlines() == [
        *project["dependencies"],
        *(line for extra in EXTRAS if extra != "cluster" for line in optional[extra]),
    ]


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "infra/.env",
        "infra/.env.local",
        "infra/production.env",
        ".git",
        ".git/config",
        ".kgqa",
        ".kgqa/mlflow/mlflow.db",
        ".venv/bin/python",
        "tests/conftest.py",
        "infra/kubernetes/base/prefect.yaml",
        "kgqa_core/__pycache__/x.pyc",
        "id_rsa",
        "kgqa.egg-info",
    ],
)
def test_what_does_not_belong_into_an_image_is_kept_out(path: str) -> None:
    assert not let_through(path, IGNORE)


@pytest.mark.parametrize(
    "path", ["pyproject.toml", "kgqa_core/config/kg.py", "flows/profiles/atlas.yaml", "infra/setup.sh"]
)
def test_what_an_image_needs_is_let_through(path: str) -> None:
    assert (REPOSITORY / path).exists()
    assert let_through(path, IGNORE)


def test_the_servers_have_drivers_of_exact_versions_that_contradict_no_constraint() -> None:
    lines = (INFRA / "requirements-servers.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.lower().split("==") for line in lines if not line.startswith("#"))
    assert {"psycopg2-binary", "boto3"} <= set(pins)
    known = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").lower().splitlines()
    ours = dict(line.split("==") for line in known)
    assert {name: ours[name] for name in pins if name in ours and ours[name] != pins[name]} == {}
    assert {"prefect", "mlflow", "asyncpg", "fastapi", "sqlalchemy"} <= set(ours)


def test_the_servers_image_has_the_code_that_it_imports_and_no_other_of_the_library(tmp_path: Path) -> None:
    recipe = (INFRA / "cpu.Dockerfile").read_text(encoding="utf-8")
    stage = recipe.partition("AS servers")[2].partition("\nFROM ")[0]
    names = [name for line in re.findall(r"^COPY (.*) \S+$", stage, re.MULTILINE) for name in line.split()]
    for name in names:
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        copy(REPOSITORY / name, tmp_path / name)
    modules = [f"tasks.servers.{path.stem}" for path in (REPOSITORY / "tasks" / "servers").glob("[!_]*.py")]
    code = (
        f"import sys; sys.path.insert(0, '.'); import {', '.join(modules)}\nprint(*(module.__file__ for name, module "
    )
    code += "in sys.modules.items() if name.partition('.')[0] in ('flows', 'tasks', 'kgqa_core')))"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    imported = {str(Path(file).resolve().relative_to(tmp_path)) for file in done.stdout.split()}
    assert {name for name in imported if name.startswith("kgqa_core")} == {
        n for n in names if n.startswith("kgqa_core")
    }


FAULTS = read_faults("images")


@pytest.mark.parametrize(("old", "new", "said"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_a_fault_in_a_dockerfile_is_found(old: str, new: str, said: str) -> None:
    text = (INFRA / "cuda.Dockerfile").read_text(encoding="utf-8")
    changed = text.replace(old, new)
    assert changed != text
    found = problems(changed, IGNORE)
    assert any(said in problem for problem in found), found
