"""`kgqa judge` measures the judge on labelled answers, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from tests.support.chat_server import ChatServer

ROWS = [
    {"question": "Capital of Norway?", "answers": [["Oslo"]], "output": "[bold]Oslo", "correct": True},
    {"question": "Capital of Norway?", "answers": [["Oslo"]], "output": "Bergen", "correct": False},
]


@pytest.fixture
def labelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KGQA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def test_the_agreement_is_printed_written_and_paid_once(labelled: Path) -> None:
    out = labelled.parent / "verdicts.jsonl"
    with ChatServer(lambda prompt: "yes" if "<<<[bold]Oslo>>>" in prompt else "no") as server:
        words = [
            "judge",
            "--labelled",
            str(labelled),
            "--model",
            "openai:m",
            "--set",
            f"llm.base_url={server.base_url}",
        ]
        shown = CliRunner().invoke(app, [*words, "--out", str(out)])
        assert shown.exit_code == 0, shown.output
        assert "openai:m, 2 answers: accuracy 1.000, Cohen's kappa 1.000" in shown.stdout
        told = CliRunner().invoke(app, [*words, "--json"])
        assert len(server.prompts) == 2
    found = json.loads(told.stdout.strip().splitlines()[-1])
    assert found == {
        "model": "openai:m", "answers": 2, "accuracy": 1.0, "kappa": 1.0, "cells": [1, 0, 0, 1], "unread": 0,
        "prompt_version": "1",
    }  # fmt: skip
    assert [json.loads(line)["judged"] for line in out.read_text().splitlines()] == [True, False]


def test_without_a_judge_and_with_a_bad_row_nothing_is_asked(labelled: Path) -> None:
    nobody = CliRunner().invoke(app, ["judge", "--labelled", str(labelled)])
    assert nobody.exit_code != 0 and "no judge is named" in str(nobody.exception or nobody.output)
    labelled.write_text('{"question": "q"}\n', encoding="utf-8")
    bad = CliRunner().invoke(app, ["judge", "--labelled", str(labelled), "--model", "openai:m"])
    assert bad.exit_code != 0 and "line 1: output, correct, answers is missing" in str(bad.exception or bad.output)
