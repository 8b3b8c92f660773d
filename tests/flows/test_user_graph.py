"""A user's own graph and questions, through the command line, to answers and a report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Outcome, kgqa
from tests.support.toy import write_graph, write_questions


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Outcome]]:
    """A folder with graph, questions and home, and the outcome of `kgqa run` on them."""
    folder = tmp_path_factory.mktemp("own")
    triples = write_graph(folder / "register.tsv", 5000)
    write_questions(folder / "asked.jsonl", triples, 300)
    outcome = kgqa(
        "run",
        "--json",
        "--kg",
        folder / "register.tsv",
        "--questions",
        folder / "asked.jsonl",
        "--home",
        folder / "home",
    )
    yield folder, outcome


def test_run_ends_with_scores_above_the_baselines(own: tuple[Path, Outcome]) -> None:
    _, outcome = own
    assert outcome.code == 0, outcome.err[-4000:]
    result = outcome.json
    assert set(result) >= {"home", "run_id", "report", "mlflow_run_id", "stages", "scores"}
    assert {stage["status"] for stage in result["stages"].values()} == {"computed"}
    scores = {name: splits["test"] for name, splits in result["scores"].items()}
    assert set(scores) == {
        "rigel/-/-", "hop_path/-/-", "random/-/-", "oracle/-/-", "none/none/builtin", "random/triples/builtin",
        "rigel/triples/builtin", "hop_path/triples/builtin", "oracle/triples/builtin",
    }  # fmt: skip
    assert scores["rigel/-/-"]["hits_at_1"]["value"] >= 0.8
    assert scores["rigel/triples/builtin"]["contains"]["value"] > scores["none/none/builtin"]["contains"]["high"]
    for metrics in scores.values():
        for value in metrics.values():
            assert 0 <= value["low"] <= value["value"] <= value["high"] <= 1
            assert value["n"] == scores["rigel/-/-"]["hits_at_1"]["n"]


def test_report_is_one_page_that_asks_nothing_of_the_network(own: tuple[Path, Outcome]) -> None:
    _, outcome = own
    page = Path(outcome.json["report"]).read_text(encoding="utf-8")
    assert "register" in page and "<svg" in page
    assert not re.search(r"""(?:src|href)\s*=\s*["']https?://""", page)


def test_ask_answers_with_facts(own: tuple[Path, Outcome]) -> None:
    folder, _ = own
    row = json.loads((folder / "asked.jsonl").read_text().splitlines()[0])
    asked = kgqa("ask", row["question"], "--topic", row["topic_entities"][0], "--home", folder / "home", "--json")
    assert asked.code == 0, asked.err[-4000:]
    reply = asked.json
    assert reply["answer"] and reply["facts"] and reply["seconds"] > 0
    assert {fact["hop"] for fact in reply["facts"]} <= {1, 2}
    found = kgqa("ask", row["question"], "--home", folder / "home", "--json")
    assert found.json["topics"] == reply["topics"]


def test_ask_about_nothing_known_says_so(own: tuple[Path, Outcome]) -> None:
    folder, _ = own
    asked = kgqa("ask", "What is the airspeed of an unladen swallow?", "--home", folder / "home")
    assert asked.code == 2 and "--topic" in asked.err and "Traceback" not in asked.err
    wrong = kgqa("ask", "Where?", "--topic", "Nobody Here", "--home", folder / "home")
    assert wrong.code == 2 and "Nobody Here" in wrong.err and "Traceback" not in wrong.err


def test_answer_keeps_good_questions_and_lists_the_rejects(own: tuple[Path, Outcome], tmp_path: Path) -> None:
    folder, _ = own
    rows = [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()[:3]]
    asked = [{key: row[key] for key in ("id", "question", "topic_entities")} for row in rows]
    asked.append({"id": "lost", "question": "Where is Atlantis?", "topic_entities": ["Atlantis"]})
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    outcome = kgqa(
        "answer",
        "--questions",
        tmp_path / "new.jsonl",
        "--out",
        tmp_path / "answers.jsonl",
        "--home",
        folder / "home",
        "--json",
    )
    assert outcome.code == 0, outcome.err[-4000:]
    answers = {row["id"]: row for row in map(json.loads, (tmp_path / "answers.jsonl").read_text().splitlines())}
    assert set(answers) == {*(row["id"] for row in rows), "lost"}
    assert all(answers[row["id"]]["answer"] for row in rows)
    assert [reject["id"] for reject in outcome.json["rejects"]] == ["lost"]
    assert "Atlantis" in outcome.json["rejects"][0]["reason"]


def test_kg_show_and_report_use_the_newest_run(own: tuple[Path, Outcome]) -> None:
    folder, outcome = own
    row = json.loads((folder / "asked.jsonl").read_text().splitlines()[0])
    shown = kgqa("kg", "show", row["topic_entities"][0], "--home", folder / "home", "--json")
    assert shown.json["matches"][0]["key"] == row["topic_entities"][0]
    report = kgqa("report", "--home", folder / "home", "--json")
    assert report.json["run_id"] == outcome.json["run_id"]
    assert kgqa("report", "--home", folder / "home").out.count("Hits@1") >= 1
