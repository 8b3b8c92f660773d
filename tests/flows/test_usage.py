"""Values that no command can use are refused at the door, and named."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app as cli
from flows.cli import events
from flows.cli.usage import shown
from kgqa_core.errors import FormError, InputError
from kgqa_core.logic.parser import parse
from tests.support.forked_command import forked_kgqa


def test_an_empty_path_is_not_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "facts.tsv").write_text("a\tr\tb\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for words in (["kg", "build", "facts.tsv", "--out", ""], ["kg", "build", "", "--out", "x"], ["home", "--home", ""]):
        refused = CliRunner().invoke(cli.app, words)
        assert refused.exit_code == 2 and "it is empty" in refused.output, refused.output
    assert [path.name for path in tmp_path.iterdir()] == ["facts.tsv"]


def test_a_name_that_is_not_utf_8_is_refused_with_its_bytes() -> None:
    refused = forked_kgqa("kg", "stats", "--kg", os.fsdecode(b"raw\xff\xfebytes"))
    assert refused.code == 2 and "'raw\\xff\\xfebytes' is not UTF-8" in refused.err and "Traceback" not in refused.err


def test_a_graph_that_is_given_without_its_option_is_said_to_need_it() -> None:
    refused = forked_kgqa("kg", "stats", "people.csv")
    assert refused.code == 2 and refused.err.endswith("argument(s) (people.csv); a graph is named by --kg\n")
    assert "--kg" not in forked_kgqa("datasets", "people.csv").err


@pytest.mark.parametrize("value", ["0", "1000000000000000000000000000000", "many", "[/bold]3"])
def test_a_number_that_is_refused_is_named(value: str) -> None:
    refused = CliRunner().invoke(cli.app, ["kg", "stats", "--top", value])
    assert refused.exit_code == 2 and value in "".join(refused.output.split()).replace("│", "")


def test_what_the_system_says_of_a_file_is_one_line(tmp_path: Path) -> None:
    refused = forked_kgqa("compare", "a", "b", "--home", tmp_path / ("h" * 300))
    assert refused.code in (1, 2) and "hhhhh" in refused.err, refused.err
    assert "Traceback" not in refused.err and refused.err.count("\n") < 5


def test_the_list_of_data_sets_needs_no_folder() -> None:
    listed = CliRunner().invoke(cli.app, ["datasets"])
    assert listed.exit_code == 0 and "WebQSP" in listed.output, listed.output


@pytest.mark.parametrize(
    ("command", "default"), [(("kg", "subset"), "[all]"), (("ask",), "[the run's first"), (("link",), "[words]")]
)
def test_help_shows_what_counts_without_an_option(command: tuple[str, ...], default: str) -> None:
    shown_help = " ".join(CliRunner().invoke(cli.app, [*command, "--help"]).output.replace("│", " ").split())
    assert default in shown_help


def test_an_event_names_an_archive_and_not_what_is_in_it(tmp_path: Path) -> None:
    archive = tmp_path / "graph.zip"
    with zipfile.ZipFile(archive, "w") as members:
        members.writestr("a.nt", "<urn:a> <urn:b> <urn:c> .\n")
    assert events._whole_paths([str(archive)]) == [str(archive.resolve())]


def test_long_values_are_cut_and_controls_escaped() -> None:
    assert shown("a" * 200) == "'" + "a" * 40 + "…" + "a" * 20 + "'"
    assert shown("a\x1b[2J\udcff") == "'a\\x1b[2J\\xff'"


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"kind": "qa\\ud800", "rejects": {}}', '{"kind": "qa", "levels": 3}']
)
def test_statistics_that_are_no_benchmarks_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "statistics.json").write_text(content, encoding="utf-8")
    refused = CliRunner().invoke(cli.app, ["ltgen", "stats", str(tmp_path)])
    assert isinstance(refused.exception, InputError) and "statistics.json" in str(refused.exception)


def test_what_stands_after_a_form_is_named() -> None:
    with pytest.raises(FormError, match="a form ends before 'such thing'"):
        parse("no such thing")


def test_a_shell_completes_commands_options_profiles_and_runs(tmp_path: Path) -> None:
    (tmp_path / "runs" / "20260101-000000-aaaa").mkdir(parents=True)
    script = CliRunner().invoke(cli.app, ["completion", "bash"]).stdout
    assert "complete -o default -F _kgqa_completion kgqa" in script and "_KGQA_COMPLETE=complete_bash" in script
    known = {
        "k": "kg", "kg pa": "path", "ask --ke": "--keys", "run --profile min": "mintaka",
        f"ask --home {tmp_path} --run 2": "20260101-000000-aaaa",
    }  # fmt: skip
    for words, word in known.items():
        line = f"kgqa {words}"
        env = {"_KGQA_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
        assert forked_kgqa(env=env).out.split() == [word], words
