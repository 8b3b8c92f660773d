"""Official question files given as `--questions`: recognised, checked, run, answered, evaluated and exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flows.cli._session import choose_profile
from flows.preflight import check
from kgqa_core.errors import QuestionFileError
from kgqa_core.runs.records import newest_run, stage_artifact
from kgqa_core.store.artifacts import Home
from tests.support.command import Outcome
from tests.support.forked_command import forked_kgqa
from tests.support.official_files import MINTAKA, official_files

QUICK = ["retrieval.retrievers=[random]", "answering.knowledge=[none]", "evaluation.bootstrap=100"]


def stored(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def succeeded(outcome: Outcome) -> Outcome:
    assert outcome.code == 0, outcome.err[-2000:]
    return outcome


@pytest.mark.parametrize(("name", "content", "source"), official_files())
def test_a_run_is_checked_with_each_official_file(tmp_path: Path, name: str, content: Any, source: str) -> None:
    graph = stored(tmp_path / "graph.tsv", "Q13298\tP17\tQ40\n")
    settings = [*QUICK, "questions.split_shares=[0, 0, 1]"]  # some of the files have one question
    profile = choose_profile(None, [graph], stored(tmp_path / name, content), "builtin", settings)
    assert profile.questions.source == "jsonl"
    check(profile)


def test_a_strange_json_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    graph = stored(tmp_path / "graph.tsv", "Q13298\tP17\tQ40\n")
    strange = stored(tmp_path / "strange.json", [{"title": "no questions"}])
    with pytest.raises(QuestionFileError, match="an object with title, which is no known question file; known are"):
        check(choose_profile(None, [graph], strange, "builtin", QUICK))
    refused = forked_kgqa("run", "--kg", graph, "--questions", strange, "--home", tmp_path / "home")
    assert refused.code == 2 and "Traceback" not in refused.err
    assert "no known question file" in " ".join(refused.err.split())


@pytest.mark.slow
def test_a_mintaka_file_is_run_answered_evaluated_and_exported(tmp_path: Path) -> None:
    graph = stored(tmp_path / "graph.tsv", "Q13298\tP206\tQ16021\nQ41\tP36\tQ1524\nQ13298\tP17\tQ40\n")
    questions = stored(tmp_path / "mintaka_dev.json", [*MINTAKA, {"id": "bad"}])
    home, answers, out = tmp_path / "home", tmp_path / "answers.jsonl", tmp_path / "answers.qald.json"
    settings = [word for setting in QUICK for word in ("--set", setting)]
    run = ("run", "--kg", graph, "--questions", questions, "--answerer", "builtin", "--home", home, *settings)
    assert "1 of 6 rows cannot be read" in " ".join(succeeded(forked_kgqa(*run)).err.split())
    record = newest_run(Home(home))
    assert (stage_artifact(record, "questions").folder / "rejects.jsonl").is_file()
    succeeded(forked_kgqa("answer", "--questions", questions, "--out", answers, "--knowledge", "none", "--home", home))
    succeeded(forked_kgqa("evaluate", "--questions", questions, "--predictions", answers))
    kg = stage_artifact(record, "kg").folder
    written = succeeded(
        forked_kgqa("questions", "export", "--questions", questions, "--predictions", answers, "--kg", kg, "--out", out,
                    "--json")
    )  # fmt: skip
    assert json.loads(written.out.splitlines()[-1])["questions"] == 5
    document = json.loads(out.read_text(encoding="utf-8"))
    assert [question["id"] for question in document["questions"]] == ["m1", "m2", "m3", "m4", "m5"]


def test_the_list_of_data_sets_says_which_run() -> None:
    listed = succeeded(forked_kgqa("datasets", "--json"))
    rows = {row["name"]: row for row in json.loads(listed.out.splitlines()[-1])["datasets"]}
    assert [profile["name"] for profile in rows["Atlas"]["profiles"]] == [
        "atlas",
        "atlas-rra-published",
        "demo",
        "table1",
    ]
    assert rows["Atlas"]["profiles"][0]["absent"] == []
    assert [profile["name"] for profile in rows["Mintaka"]["profiles"]] == ["mintaka", "sen-published"]
    assert rows["QALD-9"]["profiles"][0]["absent"], "its graph is to be fetched"
