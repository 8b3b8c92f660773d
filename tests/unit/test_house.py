"""The files around the code say the same things."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import yaml

HOUSE = Path(__file__).resolve().parents[2]


def test_the_deployments_run_the_atlas_profile() -> None:
    deployments = yaml.safe_load((HOUSE / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    atlas = yaml.safe_load((HOUSE / "flows" / "profiles" / "atlas.yaml").read_text(encoding="utf-8"))
    assert len(deployments) == 7
    assert all(deployment["parameters"] == {"profile": atlas} for deployment in deployments)


def test_every_key_that_the_readme_sets_exists() -> None:
    from kgqa_core.config import known_keys

    text = (HOUSE / "README.md").read_text(encoding="utf-8")
    keys = set(re.findall(r"--set ([a-z_.]+)=", text))
    assert keys and keys <= set(known_keys()) | {"key"}


def test_no_two_classes_have_one_name() -> None:
    places = [path for top in ("kgqa_core", "tasks", "flows") for path in sorted((HOUSE / top).rglob("*.py"))]
    names = Counter(
        node.name
        for path in places
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, number in names.items() if number > 1} == set(), "rename one of them by what it is"
