"""A user's own graph and questions, through the command line, to answers and a report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Outcome, kgqa
from tests.support.forked_command import forked_kgqa
from tests.support.toy import write_graph, write_questions

pytestmark = pytest.mark.slow

QUICK = ("--set", "rigel.encoder=scratch", "--set", "hop_path.encoder=scratch")
"""MiniLM, the default, would learn as well and take five times as long."""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Outcome]]:
    """A folder with graph, questions and home, and the outcome of `kgqa run` on them."""
    folder = tmp_path_factory.mktemp("own")
    triples = write_graph(folder / "register.tsv", 5000)
    write_questions(folder / "asked.jsonl", triples, 300)
    outcome = kgqa(
        "run", "--json", "--answerer", "builtin",
        "--kg", folder / "register.tsv", "--questions", folder / "asked.jsonl", "--home",
        folder / "home", *QUICK,
    )  # fmt: skip
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
    ask = ("ask", row["question"], "--home", folder / "home")
    asked = forked_kgqa(*ask, "--topic", row["topic_entities"][0], "--json")
    assert asked.code == 0, asked.err[-4000:]
    reply = asked.json
    assert reply["answer"] and reply["facts"] and reply["seconds"] > 0
    assert {fact["hop"] for fact in reply["facts"]} <= {1, 2}
    found = forked_kgqa(*ask, "--json")
    assert found.code == 0, found.err[-4000:]
    [linked] = found.json["topics"]
    assert {name: linked[name] for name in ("key", "name")} == reply["topics"][0]
    assert linked["mention"] == row["topic_entities"][0] and 0.22 <= linked["rho"] <= 1
    texts = [[fact["text"] for fact in told["facts"]] for told in (found.json, reply)]
    assert texts[0] and texts[0] == texts[1][: len(texts[0])]  # the start weighs by ρ, and the least are cut
    shown = forked_kgqa(*ask)
    assert shown.out.splitlines()[0].startswith(f"linked {linked['name']} (link score {linked['rho']:.2f})")


def test_ask_about_nothing_known_says_so(own: tuple[Path, Outcome]) -> None:
    folder, _ = own
    asked = forked_kgqa("ask", "What is the airspeed of an unladen swallow?", "--home", folder / "home")
    assert asked.code == 0 and asked.out.startswith("not in this graph: entity not found"), asked.err
    wrong = forked_kgqa("ask", "Where?", "--topic", "Nobody Here", "--home", folder / "home")
    assert wrong.code == 2 and "Nobody Here" in wrong.err and "Traceback" not in wrong.err


def test_answer_keeps_good_questions_and_lists_the_rejects(own: tuple[Path, Outcome], tmp_path: Path) -> None:
    folder, _ = own
    rows = [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()[:3]]
    asked = [{key: row[key] for key in ("id", "question", "topic_entities")} for row in rows]
    asked.append({"id": "lost", "question": "Where is Atlantis?", "topic_entities": ["Atlantis"]})
    asked.append({"id": "bare", "question": rows[0]["question"]})
    asked.append({"id": "empty", "question": "How late is it?"})
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    outcome = forked_kgqa(
        "answer", "--questions", tmp_path / "new.jsonl", "--out", tmp_path / "answers.jsonl", "--home",
        folder / "home", "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err[-4000:]
    answers = {row["id"]: row for row in map(json.loads, (tmp_path / "answers.jsonl").read_text().splitlines())}
    assert set(answers) == {*(row["id"] for row in rows), "lost", "bare", "empty"}
    assert all(answers[row["id"]]["answer"] for row in rows)
    assert answers["bare"]["facts"] and answers[rows[0]["id"]]["facts"].startswith(answers["bare"]["facts"])
    reasons = {reject["id"]: reject["reason"] for reject in outcome.json["rejects"]}
    assert set(reasons) == {"lost"} and "Atlantis" in reasons["lost"]
    assert answers["empty"]["declined"] == "not in this graph" and answers["empty"]["reject"] is None


def test_kg_show_and_report_use_the_newest_run(own: tuple[Path, Outcome]) -> None:
    folder, outcome = own
    row = json.loads((folder / "asked.jsonl").read_text().splitlines()[0])
    shown = forked_kgqa("kg", "show", row["topic_entities"][0], "--home", folder / "home", "--json")
    assert shown.json["matches"][0]["key"] == row["topic_entities"][0]
    report = forked_kgqa("report", "--home", folder / "home", "--json")
    assert report.json["run_id"] == outcome.json["run_id"]
    assert forked_kgqa("report", "--home", folder / "home").out.count("Hits@1") >= 1


def test_linked_topics_beside_gold_ones_show_what_linking_costs(own: tuple[Path, Outcome]) -> None:
    folder, first = own
    outcome = kgqa(
        "run", "--json", "--answerer", "builtin",
        "--kg", folder / "register.tsv", "--questions", folder / "asked.jsonl", "--home",
        folder / "home", "--set", "retrieval.topics=both", "--set", "answering.knowledge=[none, rigel, rigel@linked]",
        "--set", "operations.runner.shards=2", *QUICK,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err[-4000:]
    status = {name: stage["status"] for name, stage in outcome.json["stages"].items()}
    new = {"linked", "facts/rigel@linked", "facts/hop_path@linked", "answers/rigel@linked", "scores"}
    assert {status[name] for name in new} == {"computed"}
    trained = {"kg", "dkg", "questions", "retriever", "hop_path", "facts/rigel", "answers/rigel", "answers/none"}
    assert {status[name] for name in trained} == {"cached"}  # training and gold facts know nothing of linked topics
    scores = {name: splits["test"] for name, splits in outcome.json["scores"].items()}
    assert {"rigel/-/-", "rigel@linked/-/-", "hop_path@linked/-/-", "rigel@linked/triples/builtin"} <= set(scores)
    assert "random@linked/-/-" not in scores and "oracle@linked/-/-" not in scores
    assert scores["rigel/-/-"] == first.json["scores"]["rigel/-/-"]["test"]
    assert scores["linked/-/-"]["link_f1"]["value"] >= 0.95
    assert scores["rigel@linked/-/-"]["hits_at_1"]["value"] >= scores["rigel/-/-"]["hits_at_1"]["low"]
    page = Path(outcome.json["report"]).read_text(encoding="utf-8")
    assert "What linking costs" in page and "Link recall@5" in page
