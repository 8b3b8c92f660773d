"""The scripts do what they say, the page names what there is, and no file holds a secret."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.infra.places import INFRA, REPOSITORY

SCRIPTS = ("setup.sh", "postgres/init.sh")
LEAKS = (
    re.compile(r"AKIA[0-9A-Z]{16}"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"),
    re.compile(r"\b(ghp|hf|sk|xoxb|glpat)[-_][A-Za-z0-9_-]{16,}"),
    re.compile(r"://[^/\s:@${]+:[^/\s@${]+@"),
    re.compile(
        r"""(?imx) ^ [ -]* [\w-]* (?:password|secret|token|(?:api|access)[_-]?key) [\w-]* ['"]? [ ]* [=:] [ ]*
        ['"]? [^\s'"${}\#]{6,} ['"]? $"""
    ),
)


def leaks(text: str) -> list[str]:
    return [match[0] for pattern in LEAKS for match in pattern.finditer(text)]


def fake_prefect(folder: Path, known: set[str]) -> Path:
    """A `prefect` that writes down what it is asked, and knows some pools."""
    folder.mkdir()
    program = folder / "prefect"
    cases = "".join(f'*"inspect {name}"*) exit 0;; ' for name in sorted(known))
    program.write_text(
        f'#!/bin/sh\necho "$(pwd) $*" >> "{folder}/asked"\ncase "$*" in {cases}*inspect*) exit 1;; esac\n'
    )
    program.chmod(0o755)
    return folder


def run_setup(tmp_path: Path, known: set[str], **environment: str) -> tuple[int, str, list[str]]:
    folder = fake_prefect(tmp_path / "bin", known)
    done = subprocess.run(
        ["sh", str(INFRA / "setup.sh")],
        cwd="/",
        env={"PATH": f"{folder}:{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    asked = (folder / "asked").read_text().splitlines() if (folder / "asked").exists() else []
    return done.returncode, done.stderr, asked


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_posix_and_may_be_executed(name: str) -> None:
    assert subprocess.run(["sh", "-n", str(INFRA / name)], timeout=300).returncode == 0
    assert os.access(INFRA / name, os.X_OK)


def test_setup_makes_the_pools_limits_the_gpu_and_deploys_from_the_repository(tmp_path: Path) -> None:
    code, _, asked = run_setup(tmp_path, set(), PREFECT_API_URL="http://127.0.0.1:4200/api")
    assert code == 0
    said = [line.removeprefix(f"{REPOSITORY} --no-prompt ") for line in asked]
    assert [line for line in said if "inspect" not in line] == [
        "work-pool create cpu --type process",
        "work-pool create gpu --type process",
        "work-pool set-concurrency-limit gpu 1",
        "deploy --all",
    ]


def test_setup_leaves_pools_alone_that_are_there(tmp_path: Path) -> None:
    code, _, asked = run_setup(
        tmp_path, {"cpu", "gpu"}, PREFECT_API_URL="http://127.0.0.1:4200/api", KGQA_GPU_SLOTS="3"
    )
    assert code == 0
    assert not any("create" in line for line in asked)
    assert any(line.endswith("set-concurrency-limit gpu 3") for line in asked)


def test_setup_says_that_it_needs_an_address(tmp_path: Path) -> None:
    code, said, asked = run_setup(tmp_path, set())
    assert code != 0
    assert "PREFECT_API_URL" in said
    assert asked == []


def test_databases_are_not_made_without_their_passwords() -> None:
    done = subprocess.run(
        ["sh", str(INFRA / "postgres/init.sh")],
        env={"PATH": os.environ["PATH"], "POSTGRES_USER": "postgres", "PREFECT_DB_PASSWORD": "x"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode != 0
    assert "MLFLOW_DB_PASSWORD" in done.stderr


def test_no_file_of_infra_holds_a_secret() -> None:
    files = [path for path in INFRA.rglob("*") if path.is_file() and path.name != ".env"]
    assert len(files) > 15
    assert {str(path): found for path in files if (found := leaks(path.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "POSTGRES_PASSWORD=correct-horse",
        "  AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMI/K7MDENG",
        "postgresql+asyncpg://prefect:prefect@postgres:5432/prefect",
        "key = AKIAABCDEFGHIJKLMNOP",
        "HF_TOKEN: hf_abcdefghijklmnopqrstu",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
    ],
)
def test_a_secret_in_a_file_is_found(text: str) -> None:
    assert leaks(text)


def test_the_page_names_only_files_that_exist() -> None:
    text = (INFRA / "README.md").read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (INFRA / link).exists(), link
    for path in re.findall(r"\binfra/[\w./-]*\w", text):
        assert path == "infra/.env" or (REPOSITORY / path).exists(), path


def test_the_page_names_every_overlay_and_profile() -> None:
    text = (INFRA / "README.md").read_text(encoding="utf-8")
    for overlay in (INFRA / "kubernetes/overlays").iterdir():
        assert f"overlays/{overlay.name}" in text
    for profile in ("gpu", "vllm"):
        assert f"--profile {profile}" in text
