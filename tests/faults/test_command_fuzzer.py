"""Every command with every kind of careless input: a word and an exit code, and nothing of the user's is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_fuzzer.careless import TEXT
from tests.support.command_fuzzer.commands import RECIPES, Forgotten, commands
from tests.support.command_fuzzer.judge import names
from tests.support.command_fuzzer.kinds import TEXTS, Case, cases
from tests.support.command_fuzzer.run import SEED, chosen, run
from tests.support.command_fuzzer.table import RESULTS, family
from tests.support.command_fuzzer.world import LIGHT

FEW = 12
"""Cases of the default run, of commands on graphs."""
FLOWS = 60
"""Cases of those that run a flow to its end, or stop one."""
LEAST = 1000
"""Cases of the whole."""


def told(rows: Sequence[dict[str, Any]]) -> str:
    """The broken cases, to read, without those that the results list as open."""
    broken = json.loads(RESULTS.read_text(encoding="utf-8"))["broken"]
    known = {place(row) for row in broken}
    lines = (f"kgqa {row['call']} ({row['kind']}): {row['violations']}\n    {row['message']}"
             for row in rows if row["violations"] and place(row) not in known)  # fmt: skip
    return "\n".join(lines)


def place(row: dict[str, Any]) -> tuple[str, str, str]:
    """The command, parameter and kind of a verdict."""
    return row["command"], row["parameter"], row["kind"]


def test_every_command_and_every_value_of_the_app_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    found = commands()
    tried = {(case.command.name, case.parameter.name) for case in cases(found, flows=True) if case.parameter}
    assert tried == {(command.name, one.name) for command in found for one in command.parameters}
    assert {case.command.name for case in cases(found, flows=True)} == set(RECIPES)
    assert {family(case.kind) for case in cases(found, flows=True)} >= {
        "missing", "empty", "folder", "pipe", "read-only", "hostile name", "markup", "surrogate", "huge", "changing",
        "output = input", "existing output",
    }  # fmt: skip
    monkeypatch.delitem(RECIPES, "kg export")
    with pytest.raises(Forgotten, match="kg export"):
        commands()


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of worlds, each of which is as it was after each case."""
    return tmp_path_factory.mktemp("worlds")


def test_a_part_of_the_cases_breaks_nothing(tmp_path: Path) -> None:
    rows = run(chosen(SEED, flows=False, most=FEW, only="kg"), tmp_path, environment={LIGHT: "1"})
    assert len(rows) == FEW and {row["code"] for row in rows} >= {0, 2}
    assert not told(rows), told(rows)


@pytest.mark.slow
def test_no_case_breaks_anything(worlds: Path) -> None:
    rows = run(chosen(SEED, flows=False), worlds, workers=2)
    assert len(rows) >= LEAST
    assert not told(rows), told(rows)


@pytest.mark.slow
def test_flows_break_nothing_with_hostile_names(worlds: Path, tmp_path: Path) -> None:
    from tests.support.command_fuzzer.flows import environment_of_flows

    environment = environment_of_flows(tmp_path)
    known = {(one.command.name, one.parameter, one.kind) for one in cases(commands(), flows=False)}
    given = [one for one in chosen(SEED, flows=True) if (one.command.name, one.parameter, one.kind) not in known]
    rows = run(given[:FLOWS], worlds, workers=2, environment=environment)
    assert not told(rows), told(rows)


@pytest.mark.slow
def test_the_judge_sees_every_kind_of_breach(worlds: Path) -> None:
    seen = {
        "traceback": "traceback",
        "gone": "gone: notes.txt",
        "changed": "changed: notes.txt",
        "litter": "litter: litter",
        "process": "process left: sleep 60",
        "code": "exit code 3",
        "unnamed": "does not name the value",
        "long": "message of 3",
        "escape": "an escape sequence",
        "hangs": "does not end",
    }
    report = next(one for one in commands() if one.name == "report")
    run_id = next(one for one in report.parameters if one.name == "run_id")
    kinds = {value: kind for kind, value in TEXTS.items()}
    given = [Case(n, report, run_id, kinds[TEXT[deed]]) for n, deed in enumerate(seen)]
    quick = {"KGQA_FUZZER_IDLE_SECONDS": "3"}
    rows = run(given, worlds, environment=quick, target="tests.support.command_fuzzer.careless:main")
    for row, expected in zip(rows, seen.values(), strict=True):
        assert expected in "; ".join(row["violations"]), (row, expected)


def test_a_message_names_a_value_also_shortened_and_wrapped() -> None:
    assert names("error: '/a/my-│\n│ file.nt' is empty", "/a/my-file.nt", "--kg")
    assert names("error: '" + "h" * 40 + "…' is too long", "h" * 5000, "--kg")
    assert names("Invalid value for '--kg': it is empty", "", "--kg")
    assert not names("error: the file is empty", "/a/graph.nt", "--kg")
    assert not names("error: it is empty", "", "--kg")
