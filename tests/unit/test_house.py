"""The files around the code say the same things."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

HOUSE = Path(__file__).resolve().parents[2]


def _name(requirement: str) -> str:
    return re.split(r"[=<>!~\[; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_every_dependency_is_pinned_once() -> None:
    lines = (HOUSE / "constraints.txt").read_text(encoding="utf-8").split()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    pins = [_name(line) for line in lines]
    assert len(set(pins)) == len(pins)
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {_name(item) for item in project["dependencies"] + sum(project["optional-dependencies"].values(), [])}
    assert wanted <= set(pins)


def test_the_deployments_run_the_atlas_profile() -> None:
    deployments = yaml.safe_load((HOUSE / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    atlas = yaml.safe_load((HOUSE / "flows" / "profiles" / "atlas.yaml").read_text(encoding="utf-8"))
    assert len(deployments) == 6
    assert all(deployment["parameters"] == {"profile": atlas} for deployment in deployments)


def test_every_key_that_the_readme_sets_exists() -> None:
    from kgqa_core.config import known_keys

    text = (HOUSE / "README.md").read_text(encoding="utf-8")
    keys = set(re.findall(r"--set ([a-z_.]+)=", text))
    assert keys and keys <= set(known_keys()) | {"key"}
