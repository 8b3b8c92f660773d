"""The list of commands is made without their modules, and says what the modules say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from flows.cli.commands import COMMANDS, CommandRecord
from kgqa_core.errors import InputError
from kgqa_core.store.artifacts import Home
from tests.support.command import ROOT
from tests.support.finished import binary, finished_run, questions

HEAVY = ("kgqa_core.config", "flows.cli._session", "duckdb", "torch", "numpy", "prefect", "mlflow")


def _loaded_by(*words: str) -> set[str]:
    """Modules that a process has imported after a command."""
    code = (
        "import sys; from flows.cli.start import main\n"
        f"sys.argv = ['kgqa', *{words!r}]\n"
        "try: main()\nexcept SystemExit as end: assert not end.code, end.code\n"
        "print('\\x00'.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split("\0"))


@pytest.mark.parametrize("record", COMMANDS, ids=lambda record: record.name)
def test_a_line_of_the_list_is_the_first_paragraph_of_the_help_of_the_command(record: CommandRecord) -> None:
    command = record.load()
    assert record.help == " ".join(command.help.partition("\n\n")[0].split())
    assert command.name == record.name and not command.hidden


def test_the_list_of_commands_names_each_in_order_and_imports_none() -> None:
    listed = CliRunner().invoke(app, ["--help"], terminal_width=100)
    lines = [line.strip("│ ").split()[0] for line in listed.output.splitlines() if line.strip("│ ")]
    assert [name for name in lines if name in {record.name for record in COMMANDS}] == [one.name for one in COMMANDS]
    assert not _loaded_by("--help").intersection(HEAVY)
    assert not _loaded_by("--version").intersection(HEAVY)


def test_a_command_imports_no_other() -> None:
    loaded = _loaded_by("cache", "--help")
    assert "flows.cli.cache" in loaded and not {"flows.cli.run", "flows.cli.kg", "flows.cli.serve"} & loaded


def test_a_wrong_name_is_refused_with_the_nearest() -> None:
    refused = CliRunner().invoke(app, ["aks"])
    assert refused.exit_code == 2 and "'ask'" in refused.output


def test_a_refresh_from_a_renamed_file_names_the_earlier_runs_and_starts_none(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    finished_run(
        home, "20260101-000000-aaaa", binary([1.0]), questions(["where?"]), settings={"kg": {"files": ["a.tsv"]}}
    )
    words = ["refresh", "--home", str(home.root), "--kg", "b.tsv", "--questions", "asked.jsonl"]
    refused = CliRunner().invoke(app, words)
    assert isinstance(refused.exception, InputError), refused.output
    for text in ("no run of graph 'b' with questions 'asked'", "--set kg.name=toy (graph files a.tsv)", "`kgqa run`"):
        assert text in str(refused.exception)
    both = CliRunner().invoke(app, [*words[:-1], "other.jsonl"])
    assert "--set kg.name=toy --set questions.name=asked" in str(both.exception)
    for more in (["--set", "kg.name=toy"], ["--set", "kg.name=new"]):  # a name that was chosen is what is meant
        assert "earlier runs" not in str(CliRunner().invoke(app, [*words, *more]).exception)
    assert len(list((home.root / "runs").iterdir())) == 1
