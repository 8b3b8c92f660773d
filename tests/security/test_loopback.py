"""Servers listen on this machine alone unless somebody asks for more."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

from flows.cli.ui import ui
from tests.security.test_models import OURS

HOUSE = Path(__file__).resolve().parents[2]


def test_the_uis_listen_on_loopback_by_default() -> None:
    assert inspect.signature(ui).parameters["host"].default == "127.0.0.1"


def test_no_code_of_ours_listens_on_every_address() -> None:
    every = re.compile(r"\b0\.0\.0\.0\b|\[::\]")
    for path in OURS:
        code = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(code)) if every.search(code) else ()
        texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        assert not any(map(every.search, texts)), path


def test_a_cluster_that_a_run_starts_itself_is_on_loopback() -> None:
    text = (HOUSE / "tasks" / "engine" / "runners.py").read_text(encoding="utf-8")
    assert '"host": "127.0.0.1"' in text and '"_node_ip_address": "127.0.0.1"' in text
    assert '"dashboard_address": None' in text and '"include_dashboard": False' in text
