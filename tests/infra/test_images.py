"""The images are built from pinned parts, run as nobody in particular, and hold nothing that they should not."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from kgqa_core.extras import EXTRAS
from tests.infra.image_rules import Dockerfile, let_through, problems
from tests.infra.places import INFRA, REPOSITORY, read_faults
from tests.support.command import closed_port
from tests.support.toy import write_graph

FILES = ("cpu.Dockerfile", "cuda.Dockerfile")
JSON = "application/json"
WITHOUT = """
from importlib.machinery import PathFinder

absent, find = {absent!r}, PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] in absent else find(name, *rest)
from kgqa.command import main
main()
"""
"""The command `kgqa` in a process that finds none of the modules `absent`."""
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


def listed(install: str) -> list[str]:
    """What the command of a RUN writes into its requirements."""
    code = re.findall(r"python -c '(.*?)'", install)[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_workers_install_the_extras_of_all_options_but_those_of_a_cluster_and_serve_none() -> None:
    recipe = Dockerfile((INFRA / "cpu.Dockerfile").read_text(encoding="utf-8"))
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    *_, torch, packages, code = recipe.of("serve", "RUN")
    assert "torch==" in torch and "--no-deps" in code and listed(packages) == project["dependencies"]
    *before, extras, _ = recipe.of("worker", "RUN")
    assert before[-1] == packages
    assert listed(extras) == [line for extra in EXTRAS if extra != "cluster" for line in optional[extra]]


def test_the_slim_image_answers_at_the_port_that_it_exposes_and_checks() -> None:
    recipe = Dockerfile((INFRA / "cpu.Dockerfile").read_text(encoding="utf-8"))
    [command], [check] = recipe.of("serve", "CMD"), recipe.of("serve", "HEALTHCHECK")
    assert json.loads(command) == ["kgqa", "serve", "--host", "0.0.0.0", "--port", "8000"]
    assert recipe.of("serve", "EXPOSE") == ["8000"] and "http://127.0.0.1:8000/ready" in check


def _wait_until_ready(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 300
    while server.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
            return
        time.sleep(0.3)
    raise AssertionError(log.read_text()[-3000:])


def test_the_slim_image_serves_a_graph_without_what_the_extras_install(tmp_path: Path) -> None:
    """Its environment, its command but for the address, and no other code than it copies."""
    recipe = Dockerfile((INFRA / "cpu.Dockerfile").read_text(encoding="utf-8"))
    names = [name for line in recipe.of("serve", "COPY") for name in line.split()[:-1] if name != "constraints.txt"]
    for name in names:
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
        copy(REPOSITORY / name, tmp_path / name)
    triples = write_graph(tmp_path / "graph.tsv", 200)
    absent = {module for modules in EXTRAS.values() for module in modules}
    (tmp_path / "image.py").write_text(WITHOUT.format(absent=absent))
    *_, host, _, port = json.loads(recipe.of("serve", "CMD")[0])
    free = closed_port()
    words = ["serve", "--kg", "graph.tsv", "--host", "127.0.0.1", "--port", str(free)]
    assert (host, port) == ("0.0.0.0", "8000"), "only the address differs here"
    environment = {**os.environ, **recipe.environment("serve"), "KGQA_HOME": str(tmp_path / "home")}
    environment |= {"KGQA_SERVE_TOKEN": "a-token-of-this-test", "PYTHONPATH": str(tmp_path)}
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "image.py", *words], cwd=tmp_path, env=environment, stdout=log, stderr=log
        )
    try:
        _wait_until_ready(free, server, tmp_path / "log")
        town, region = next((head, tail) for head, relation, tail in triples if relation == "located_in")
        body = json.dumps({"question": f"Where is {town} located?"}).encode()
        asked = urllib.request.Request(f"http://127.0.0.1:{free}/ask", body, {"Content-Type": JSON})
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(asked, timeout=60)
        asked.add_header("Authorization", "Bearer a-token-of-this-test")
        with urllib.request.urlopen(asked, timeout=60) as reply:
            assert json.load(reply)["answer"] == region
    finally:
        server.terminate()
        server.wait(60)


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
