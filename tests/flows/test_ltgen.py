"""`kgqa ltgen`: a benchmark from a graph file and from a graph folder, its tables, sheets and agreement."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from kgqa_core.errors import InputError, KgqaError
from tests.support.chat_server import ChatServer
from tests.support.command import kgqa
from tests.support.forked_command import forked_kgqa
from tests.support.ltgen import make_graph, reply

SETTINGS = ("--set", "ltgen.sampling.per_level=4", "--set", "ltgen.sampling.levels=absolute",
            "--set", "ltgen.sampling.thresholds=[1,9,12,15,100]")  # fmt: skip


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with graph.nt, and the graph made of it as a user makes it in `kg`."""
    folder = tmp_path_factory.mktemp("graph")
    shutil.rmtree(make_graph(folder))
    built = CliRunner().invoke(app, ["kg", "build", str(folder / "graph.nt"), "--out", str(folder / "kg")])
    assert built.exit_code == 0, built.output
    return folder


def command(*words: str | Path) -> str:
    """What a command that runs no flow prints, in this process."""
    result = CliRunner().invoke(app, ["ltgen", *map(str, words)])
    assert result.exit_code == 0, result.output
    return result.stdout


def told(*words: str | Path) -> dict[str, Any]:
    """The JSON object that it prints."""
    found: dict[str, Any] = json.loads(command(*words, "--json").strip().splitlines()[-1])
    return found


def test_a_benchmark_is_built_shown_sampled_and_compared(graph: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("ltgen", "build", "--kg", graph / "kg", "--home", tmp_path / "home", "--out", out, "--json")
    first = forked_kgqa(*words, *SETTINGS)
    assert first.code == 0, first.err[-3000:]
    counts = first.json["counts"]
    assert counts["qa"]["questions"] > 20 and counts["conv"]["turns"] > 20
    for kind in ("qa", "conv"):
        assert {path.name for path in (out / kind).iterdir()} >= {
            "questions.jsonl", "rejects.jsonl", "statistics.json", "README.md", "manifest.json"
        }  # fmt: skip
        assert {path.name for path in (out / f"{kind}-sheet").iterdir()} == {
            "sheet.csv", "sheet.html", "manifest.json"
        }  # fmt: skip
    shown = told("stats", out)["benchmarks"]
    assert [table["total"] for table in shown] == [
        {name: counts[kind][name] for name in table["total"]} for kind, table in zip(("qa", "conv"), shown, strict=True)
    ]
    sheet = told("sheet", out / "conv", "--kg", graph / "kg", "--out", tmp_path / "sheet", "--share", "0.5")
    assert sheet["items"] == -(-counts["conv"]["turns"] // 2)
    text = (tmp_path / "sheet/sheet.csv").read_text(encoding="utf-8-sig")
    assert text.startswith("id,level,dialogue,query,answer,triples,label,note")


def test_two_filled_sheets_are_compared(tmp_path: Path) -> None:
    rows = ["id,label", *(f"item {number},correct" for number in range(9))]
    for name, last in (("a", "incorrect"), ("b", "correct")):
        (tmp_path / f"{name}.csv").write_text("\n".join([*rows, f"item 9,{last}"]), encoding="utf-8")
    found = told("agreement", tmp_path / "a.csv", tmp_path / "b.csv")
    assert (found["items"], found["raw"], found["kappa"], found["error_rate"]) == (10, 0.9, 0.0, 0.0)
    assert "Cohen's κ" in command("agreement", tmp_path / "a.csv", tmp_path / "b.csv")


@pytest.mark.slow
def test_a_graph_file_gives_the_benchmark_of_its_graph_folder(graph: Path, tmp_path: Path) -> None:
    made = [kgqa("ltgen", "build", "--kg", kg, "--home", tmp_path / "home", "--json", *SETTINGS)
            for kg in (graph / "graph.nt", graph / "kg")]  # fmt: skip
    assert [each.code for each in made] == [0, 0], made[0].err[-3000:]
    from_file, from_folder = (
        {kind: Path(path).read_bytes() for kind, path in each.json["questions"].items()} for each in made
    )
    assert from_file == from_folder


@pytest.mark.slow
def test_a_model_writes_it_and_a_second_home_pays_for_its_own(graph: Path, tmp_path: Path) -> None:
    with ChatServer(lambda prompt, drawn: reply(prompt, drawn)) as server:
        words = ("ltgen", "build", "--kg", graph / "graph.nt", "--home", tmp_path / "home", "--writer", "openai:stub",
                 "--set", f"llm.base_url={server.base_url}", "--json", *SETTINGS)  # fmt: skip
        done = kgqa(*words, env={"OPENAI_API_KEY": "none"})
        assert done.code == 0, done.err[-3000:]
        asked = len(server.prompts)
        assert kgqa(*words, env={"OPENAI_API_KEY": "none"}).json["digests"] == done.json["digests"]
        assert len(server.prompts) == asked > 20
    rejected = (Path(done.json["questions"]["conv"]).parent / "rejects.jsonl").read_text(encoding="utf-8")
    assert all(json.loads(line)["reason"] for line in rejected.splitlines())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give --kg FILE or FOLDER, or --profile NAME"),
        (("--kg", "gone.nt"), "gone.nt"),
        (("--kg", "."), "there is no graph folder .; `kgqa kg build"),
        (("--kg", "bundled:atlas", "--writer", "gpt"), "unknown model 'gpt'"),
        (("--kg", "bundled:atlas", "--set", "ltgen.sampling.per_levels=3"), "did you mean 'ltgen.sampling.per_level'"),
    ],
)
def test_wrong_inputs_are_said_before_anything_starts(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["ltgen", "build", *words, "--home", str(tmp_path / "home")])
    assert isinstance(done.exception, KgqaError) and said in str(done.exception)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"kind": "other", "rejects": {}}', '{"kind": "qa", "rejects": {}}']
)
def test_a_damaged_table_of_a_benchmark_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "statistics.json").write_text(text)
    for words in (("stats", str(tmp_path)), ("sheet", str(tmp_path), "--kg", "g", "--out", str(tmp_path / "out"))):
        result = CliRunner().invoke(app, ["ltgen", *words])
        assert isinstance(result.exception, InputError), (words, result.exception)
        assert "statistics.json" in str(result.exception)
