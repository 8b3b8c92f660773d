"""The files around the code say the same things."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

HOUSE = Path(__file__).resolve().parents[2]


def test_the_deployments_run_the_atlas_profile() -> None:
    deployments = yaml.safe_load((HOUSE / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    atlas = yaml.safe_load((HOUSE / "flows" / "profiles" / "atlas.yaml").read_text(encoding="utf-8"))
    assert len(deployments) == 7
    assert all(deployment["parameters"] == {"profile": atlas} for deployment in deployments)


@pytest.mark.parametrize("page", ["commands.md", "parts.md", "questions.md", "quickstart.ipynb"])
def test_every_key_that_a_page_sets_exists(page: str) -> None:
    from kgqa_core.config import known_keys

    text = (HOUSE / "docs" / page).read_text(encoding="utf-8")
    keys = set(re.findall(r"--set ([a-z_.]+)=", text))
    assert keys and keys <= set(known_keys()) | {"key"}


def test_the_page_of_commands_names_every_command() -> None:
    from typer.main import get_command

    from flows.cli.app import app

    text = (HOUSE / "docs" / "commands.md").read_text(encoding="utf-8")
    assert [name for name in get_command(app).commands if f"`kgqa {name}" not in text] == []  # type: ignore[attr-defined]


def test_no_two_classes_have_one_name() -> None:
    places = [path for top in ("kgqa_core", "tasks", "flows") for path in sorted((HOUSE / top).rglob("*.py"))]
    heads = re.compile(r"^ *class (\w+)[(:\[]", re.MULTILINE)
    names = Counter(name for path in places for name in heads.findall(path.read_text(encoding="utf-8")))
    assert len(names) > 500
    assert {name for name, number in names.items() if number > 1} == set(), "rename one of them by what it is"
