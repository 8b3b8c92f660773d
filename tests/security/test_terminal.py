"""Commands over a graph whose names control terminals or are markup: on a terminal, through a pipe, as JSON."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import _session as session
from flows.cli.app import app
from flows.cli.graph_folders import build_folder
from kgqa_core.store.artifacts import Home
from tests.support.command import ROOT, run_python
from tests.support.finished import finished_run, questions
from tests.support.forked_command import forked_kgqa
from tests.support.hostile import CONTROLS, FORBIDDEN, MARKUP, SHOWN, STYLES, write_hostile_graph

SEVERAL = """
import json, sys
from flows.cli.app import main
for words in json.loads(sys.argv[1]):
    print("$", *map(ascii, words), flush=True)
    sys.argv = ["kgqa", *words]
    try:
        main()
    except SystemExit as end:
        print("exit", end.code, flush=True)
"""
"""Runs several commands in one process."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "[b]graph[red]"
    dump = write_hostile_graph(folder.parent / "dump[red].nt")
    build_folder([str(dump)], folder, {"max_reject_share": 0.5})
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = Home(tmp_path_factory.mktemp("ran") / "[b]home[red]:smile:")
    asked = questions([f"What is {CONTROLS} {MARKUP} {n}?" for n in range(4)])
    for run, right in (("20260101-000000-aaaa", 1), ("20260201-000000-bbbb", 3)):
        rows = {"rigel/triples/builtin": {one.id: {"exact": float(n < right)} for n, one in enumerate(asked)}}
        said = {"rigel/triples/builtin": {one.id: f"said {CONTROLS} {MARKUP}" for one in asked}}
        finished_run(home, run, rows, asked, said, {"description": f"{CONTROLS} {MARKUP}"})
    return home.root


def commands(graph: Path, home: Path) -> list[list[str]]:
    """Every command that shows names, or names what it cannot find."""
    given = ["--kg", str(graph)]
    return [
        ["kg", "show", "http://x/a", *given], ["kg", "show", "http://x/b", *given],
        ["kg", "show", CONTROLS, *given], ["kg", "show", "none\x1b]0;pwned\x07", *given],
        ["kg", "search", "[/bold]", *given], ["kg", "search", "a\x1b]0;pwned", *given],
        ["kg", "search", "nothing\x1b[2J[/x]", *given],
        ["kg", "sql", "SELECT label FROM labels ORDER BY 1", *given], ["kg", "sql", 'select 1 as "[/x]"', *given],
        ["kg", "sql", "select '[/x]\x1b[2J' FROM nowhere", *given],
        ["kg", "query", "(JOIN note <http://x/b>)", *given], ["kg", "query", "(R [/x]\x1b[2J)", *given],
        ["kg", "path", "http://x/a", "http://x/b", *given], ["kg", "stats", *given],
        ["link", f"who is {MARKUP}?", *given],
        ["report", "--home", str(home)], ["home", "--home", str(home)], ["gc", "--home", str(home)],
        ["compare", "20260101", "newest", "--home", str(home)],
        ["compare", "[/x]\x1b[2J", "newest", "--home", str(home)],
        ["cache", "stats", "--home", str(home)], ["report", "--run", "[/x]\x1b[2J", "--home", str(home)],
        ["kg", "nope\x1b]0;pwned\x07[/x]"], ["run", "--profile", "[/x]\x1b[2J"],
        ["run", "--profile", "atlas", "--set", "[/x]\x1b[2J=1"],
        ["kg", "build", "[/x]\x1b]0;pwned\x07.nt", "--out", str(graph.parent / "x[/y]")],
    ]  # fmt: skip


def on_a_terminal(words: list[str], env: dict[str, str]) -> str:
    """What a process writes to the terminal that its standard streams are."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=ROOT)
    os.close(theirs)
    read, until = b"", time.monotonic() + 300
    while time.monotonic() < until:
        if not select.select([ours], [], [], 1)[0]:
            continue
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        read += part
    os.close(ours)
    assert process.wait(30) == 0
    return read.decode("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [True, False])
def test_no_command_brings_control_characters_to_a_terminal_or_dies_of_markup(
    graph: Path, home: Path, tmp_path: Path, terminal: bool
) -> None:
    script = tmp_path / "several.py"
    script.write_text(SEVERAL)
    words = [str(script), json.dumps(commands(graph, home))]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "MLFLOW_"))}
    env = {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "400", "TERM": "xterm-256color", "KGQA_HOME": str(home)}
    if terminal:
        text = on_a_terminal([sys.executable, *words], env)
        assert "\x1b[1m" in text  # rich sees a terminal and uses its styles
        text = STYLES.sub("", text.replace("\r\n", "\n"))
    else:
        done = run_python(words, env={"KGQA_HOME": str(home), "COLUMNS": "400"})
        text = done.out + done.err
    text = re.sub(r"\r(?=[^\n])", "", text) if terminal else text  # a spinner goes back to the start of its line
    assert not FORBIDDEN.search(text), FORBIDDEN.search(text)
    assert "Traceback" not in text, text[text.find("Traceback") - 500 :][:3000]
    exits = [int(code) for code in re.findall(r"^exit (\d+)", text, re.MULTILINE)]
    assert len(exits) == len(commands(graph, home)) and set(exits) == {0, 2}
    assert text.count(SHOWN) >= 10 and text.count(MARKUP) >= 5


def test_the_tables_say_what_json_says(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.out, "width", 400)
    for words, wanted in (
        (["kg", "show", "http://x/b"], [MARKUP, SHOWN]),
        (["kg", "search", "[/bold]"], [MARKUP]),
        (["kg", "stats"], ["[bold]r[/bold]"]),
        (["kg", "sql", 'select 1 as "[/x]"'], ["[/x]"]),
    ):
        shown = CliRunner().invoke(app, [*words, "--kg", str(graph)])
        assert shown.exit_code == 0, (words, shown.output, shown.exception)
        assert all(text in shown.output for text in wanted), (words, shown.output)
    told = CliRunner().invoke(app, ["kg", "show", "http://x/a", "--kg", str(graph), "--json"])
    line = told.output.splitlines()[-1]
    assert json.loads(line)["matches"][0]["name"] == CONTROLS and not FORBIDDEN.search(line)


def test_a_name_that_is_no_text_is_shown_and_ends_no_command(tmp_path: Path) -> None:
    name = os.fsdecode(b"gone\xff\xfe.nt")
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", "kg", "build", os.fsencode(name), "--out", str(tmp_path / "g")],
        capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2 and rb"gone\xff\xfe.nt" in done.stderr and b"Traceback" not in done.stderr


def test_a_build_in_a_folder_with_brackets_is_read_from_a_home_with_brackets(graph: Path, tmp_path: Path) -> None:
    out = tmp_path / "x[/y]"
    made = forked_kgqa("kg", "build", next(graph.parent.glob("*.nt")), "--out", out, "--max-reject-share", "0.5")
    assert made.code == 0 and str(out) in made.out, made.err
    assert not FORBIDDEN.search(made.out + made.err)


def test_passwords_in_arguments_are_refused_and_hidden(tmp_path: Path) -> None:
    secret = "postgresql://me:s3cr3t@host/db"
    questions_file = tmp_path / "q.jsonl"
    questions_file.write_text('{"id": "1", "question": "x?", "answers": ["y"]}\n')
    for words in (
        ["run", "--profile", "atlas", "--set", f"tracking.uri={secret}"],
        ["run", "--profile", "atlas", "--set", secret],
        ["run", "--kg", secret, "--questions", str(questions_file)],
        ["kg", "show", "x", "--kg", secret],
        ["kg", "build", secret, "--out", str(tmp_path / "g")],
    ):
        told = forked_kgqa(*words, env={"KGQA_HOME": str(tmp_path / "home")})
        assert told.code in (1, 2) and "s3cr3t" not in told.out + told.err, told.err
        assert "list of processes" in told.err
    assert not [path for path in (tmp_path / "home").rglob("*") if path.is_file() and b"s3cr3t" in path.read_bytes()]
