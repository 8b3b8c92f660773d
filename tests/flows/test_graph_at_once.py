"""`kgqa ask`, `answer`, `serve` and `mcp` from graph files, without a run."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.support.chat_server import ChatServer
from tests.support.command import ROOT, Outcome, environment, run_python
from tests.support.forked_command import forked_kgqa
from tests.support.kgqa_serve import served

QUESTION = "Who wrote Night Ferry?"
WITHOUT = """
import sys
from flows.cli.app import app
home, graph, questions, out = sys.argv[1:]
for words in (["ask", "Who wrote Night Ferry?", "--json"], ["answer", "--questions", questions, "--out", out]):
    app([*words, "--kg", graph, "--home", home], standalone_mode=False)
heavy = {"prefect", "mlflow", "pandas", "transformers", "numba"} & set(sys.modules)
assert heavy <= {"numba"}, heavy  # which a build needs
"""


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "books.tsv"
    path.write_text("Ada Stone\twrote\tNight Ferry\nAda Stone\twrote\tThe Grey Harbour\n", encoding="utf-8")
    return path


def test_a_question_and_a_file_are_answered_without_prefect_or_mlflow(tmp_path: Path, graph: Path) -> None:
    questions, out = tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"
    questions.write_text(json.dumps({"id": "a", "question": QUESTION}) + "\n", encoding="utf-8")
    done = run_python(["-c", WITHOUT, tmp_path / "home", graph, questions, out])
    assert done.code == 0, done.err
    reply = json.loads(done.out.splitlines()[0])
    assert reply["answer"] == "Ada Stone" and reply["proof"] == ["(Ada Stone, wrote, Night Ferry)"]
    [row] = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    assert (row["id"], row["answer"]) == ("a", "Ada Stone") and "1 answers" in done.out
    assert not list((tmp_path / "home" / "runs").iterdir())


def test_the_lines_of_the_readme_for_a_graph_of_ones_own_work_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = (ROOT / "README.md").read_text(encoding="utf-8").split("## Your own graph")[1].split("\n## ")[0]
    make, ask, serve = re.findall("```sh\n(.*?)```", part, re.DOTALL)[0].splitlines()
    [code] = re.findall("```python\n(.*?)```", part, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KGQA_HOME", str(tmp_path / "home"))
    subprocess.run(make, shell=True, check=True)
    program, *words = shlex.split(ask, comments=True)
    done = forked_kgqa(*words, "--home", tmp_path / "home", cwd=tmp_path)
    assert program == "kgqa" and done.code == 0 and "(Cy, boss, Ana)" in done.out, done.err
    assert "a row as one person: key and name in the column name" in " ".join(done.err.split())
    assert shlex.split(serve, comments=True) == ["kgqa", "serve", *words[1:3]]
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("Ana ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ask", "--kg", "GRAPH", "--run", "newest", QUESTION), "name two systems"),
        (("ask", "--map", "map.yaml", QUESTION), "--map map.yaml is for graph files"),
        (("ask", "--kg", "absent.tsv", QUESTION), "there is no graph file absent.tsv"),
        (("ask", "--kg", "GRAPH", "--set", "kg.format=tsvv", QUESTION), "tsvv"),
        (("ask", QUESTION), "--kg FILE"),
        (
            ("answer", "--kg", "GRAPH", "--questions", "GRAPH", "--out", "GRAPH"),
            "would be overwritten|is an input|exists",
        ),
    ],
)
def test_what_cannot_be_answered_from_is_refused(
    tmp_path: Path, graph: Path, words: tuple[str, ...], message: str
) -> None:
    given = [str(graph) if word == "GRAPH" else word for word in words]
    done = forked_kgqa(*given, "--home", str(tmp_path / "home"))
    assert done.code == 2, done.err
    assert any(part in done.err for part in message.split("|")), done.err


def test_a_language_model_that_chooses_none_declines_a_question(tmp_path: Path, graph: Path) -> None:
    with ChatServer(lambda prompt: '{"plan": "none", "missing": "Night"}') as server:
        words = ["--kg", str(graph), "--home", str(tmp_path / "home"), "--json", "--set", "symbolic.chooser=openai:m"]
        words += ["--set", f"llm.base_url={server.base_url}"]
        done = forked_kgqa("ask", *words, QUESTION, env={"OPENAI_API_KEY": "none"})
    assert done.code == 0, done.err
    assert done.json["answer"] is None and done.json["missing"] == "Night"
    assert done.json["model_answer"] == "" and done.json["chooser"].startswith("openai:m: none of ")
    [prompt] = server.prompts
    assert json.loads(prompt)["plans"][0]["finds"] == ["Ada Stone"]


@pytest.mark.slow
def test_a_run_has_its_plans_chosen_as_the_forecast_counts_and_ends_at_its_budget(tmp_path: Path, graph: Path) -> None:
    with ChatServer(lambda prompt: '{"plan": "1", "missing": ""}') as server:

        def command(name: str, *more: str) -> Outcome:
            settings = ("symbolic.chooser=openai:m", f"llm.base_url={server.base_url}", "questions.generated.size=12")
            words = [word for setting in (*settings, *more) for word in ("--set", setting)]
            given = (name, "--kg", str(graph), "--home", str(tmp_path / "home"), "--json", *words)
            return forked_kgqa(*given, env={"OPENAI_API_KEY": "none"}, timeout=300)

        [expected] = command("forecast").json["stages"]
        assert expected["model"] == "openai:m" and expected["calls"] > 1 and server.stats()["requests"] == 0
        stopped = command("run", "llm.budget.max_calls=1")
        assert stopped.code != 0 and "raise llm.budget.max_calls" in stopped.err
        done = command("run")
        assert done.code == 0, done.err[-3000:]
        assert server.stats()["requests"] == expected["calls"], "what was paid before the limit is not paid again"
        [folder] = (tmp_path / "home" / "artifacts" / "computed").glob("*/manifest.json")
        counts = json.loads(folder.read_text(encoding="utf-8"))["counts"]
        assert counts["chooser"] == {"first": counts["chooser"]["first"]} and counts["computed"] > 0
        assert command("forecast").json["stages"][0]["calls"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_of_a_graph_file_answers_and_ask_finds_it(tmp_path: Path, graph: Path, workers: int) -> None:
    home = tmp_path / "home"
    with served(home, "--kg", str(graph), "--workers", str(workers)) as running:
        assert running.call("/ask", {"question": QUESTION})["answer"] == "Ada Stone"
        asked = ["-m", "flows.cli", "ask", "--kg", graph, "--home", home, "--json", "Who wrote The Grey Harbour?"]
        reply = run_python(asked).json
        assert reply["answer"] == "Ada Stone" and "load_seconds" not in reply
        graph.write_text("Bo Lind\twrote\tNight Ferry\n", encoding="utf-8")
        changed = run_python([*asked[:-1], QUESTION]).json
        assert changed["answer"] == "Bo Lind" and "load_seconds" in changed


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_of_several_graphs_answers_each_below_its_name(tmp_path: Path, graph: Path, workers: int) -> None:
    other = tmp_path / "other.tsv"
    other.write_text("Bo Lind\twrote\tSlow Train\n", encoding="utf-8")
    words = ("--graph", f"books={graph}", "--graph", f"ferries={other}", "--workers", str(workers))
    with served(tmp_path / "home", *words) as running:
        assert running.call("/ask", {"question": QUESTION})["answer"] == "Ada Stone"
        asked = {"question": "Who wrote Slow Train?"}
        assert running.call("/g/ferries/ask", asked)["answer"] == "Bo Lind"
        assert running.call("/g/books/ask", asked)["answer"] != "Bo Lind"
        assert [one["id"] for one in running.call("/v1/models")["data"]] == ["kgqa/books", "kgqa/ferries"]
        given = running.call("/g/ferries/names", {"lines": "relations: {wrote: [penned]}"})
        assert given["active"] and running.call("/g/books/names")["names"] == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--graph", "books"), "is not NAME=FILE"),
        (("--graph", "a/b=x.tsv"), "is not NAME=FILE"),
        (("--graph", "books=absent.tsv"), "there is no graph file absent.tsv"),
        (("--graph", "a=GRAPH", "--graph", "b=absent.tsv"), "there is no graph file absent.tsv"),
        (("--kg", "GRAPH", "--graph", "graph=GRAPH"), "has the name of the graph that is served already"),
    ],
)
def test_graphs_that_cannot_be_served_are_named(
    tmp_path: Path, graph: Path, given: tuple[str, ...], message: str
) -> None:
    named = tmp_path / "graph.tsv"
    named.write_text("Bo Lind\twrote\tNight Ferry\n", encoding="utf-8")
    words = [word.replace("GRAPH", str(named)) for word in given]
    done = forked_kgqa("serve", "--home", str(tmp_path / "home"), "--port", "0", *words)
    assert done.code == 2 and message in " ".join(done.err.split()), done.err


@pytest.mark.slow
def test_agents_ask_a_graph_file(tmp_path: Path, graph: Path) -> None:
    words = ["-m", "flows.cli", "mcp", "--kg", str(graph), "--home", str(tmp_path / "home")]
    started = StdioServerParameters(command=sys.executable, args=words, env=environment(), cwd=ROOT)

    async def main() -> str:
        async with Client(started, mode="auto") as client:
            neighbours = await client.call_tool("neighbours", {"name": "Ada Stone"})
            assert not neighbours.is_error
            return str(await client.call_tool("ask", {"question": QUESTION}))

    assert "Ada Stone" in asyncio.run(main())


@pytest.mark.slow
def test_agents_choose_among_several_graphs(tmp_path: Path, graph: Path) -> None:
    other = tmp_path / "other.tsv"
    other.write_text("Bo Lind\twrote\tSlow Train\n", encoding="utf-8")
    words = ["-m", "flows.cli", "mcp", "--home", str(tmp_path / "home")]
    words += ["--graph", f"books={graph}", "--graph", f"ferries={other}"]
    started = StdioServerParameters(command=sys.executable, args=words, env=environment(), cwd=ROOT)

    async def main() -> list[str]:
        async with Client(started, mode="auto") as client:
            asked = {"question": "Who wrote Slow Train?"}
            given = [{"question": QUESTION}, {**asked, "graph": "ferries"}, asked]
            return [str((await client.call_tool("ask", one)).structured_content["answer"]) for one in given]

    assert asyncio.run(main()) == ["Ada Stone", "Bo Lind", "None"]
