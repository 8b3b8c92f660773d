"""Several question sets and answerers in one run: the table, what is paid, cached, lost and killed."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.evaluation.paired import read_scored
from kgqa_core.store.home import read_run
from tests.support.chat_server import ChatServer
from tests.support.command import ROOT, Outcome, environment, kgqa
from tests.support.prefect_server import shared_environment
from tests.support.toy import write_graph, write_questions

pytestmark = pytest.mark.slow

STUB = "openai:stub"
QUICK = ("retrieval.retrievers=[random, oracle]", "answering.knowledge=[none, oracle]")
"""Settings with which nothing is trained, and each set asks 20 prompts."""
TRIPLE = re.compile(r"\(([^()]*?), ([^(),]*), ([^()]*?)\)")


def reply(prompt: str) -> str:
    """A model that reads: the tail of the first triple, and no answer without any."""
    found = TRIPLE.search(prompt)
    return found[3] if found else "I do not know"


class Place:
    """Files of two question sets over one graph, a home, and a language model that counts what it is asked."""

    def __init__(self, folder: Path, server: ChatServer) -> None:
        self.folder, self.server = folder, server
        self.home = folder / "home"
        triples = write_graph(folder / "register.tsv", 1300)
        for seed, name in enumerate(("people", "staff", "towns")):
            write_questions(folder / f"{name}.jsonl", triples, 100, 4 + seed)

    def words(self, command: str, *names: str, more: tuple[str, ...] = ()) -> list[str]:
        files = [word for name in names for word in ("--questions", str(self.folder / f"{name}.jsonl"))]
        settings = (
            f"answering.answerers=[builtin, {STUB}]", "answering.knowledge=[none, random, rigel, oracle]",
            "retrieval.retrievers=[rigel, random, oracle]", "rigel.encoder=scratch", "rigel.scratch_width=64",
            "rigel.epochs=1", "rigel.min_steps=40", "answering.limit=10", "evaluation.bootstrap=100",
            f"llm.base_url={self.server.base_url}", "llm.retries=0", "llm.concurrency=2", *more,
        )  # fmt: skip
        words = [word for setting in settings for word in ("--set", setting)]
        graph = str(self.folder / "register.tsv")
        return [command, "--kg", graph, *files, "--home", str(self.home), "--json", *words]

    def run(self, *names: str, command: str = "run", more: tuple[str, ...] = ()) -> Outcome:
        return kgqa(*self.words(command, *names, more=more), env={"OPENAI_API_KEY": "none"})

    def record(self, run_id: str) -> dict[str, Any]:
        return read_run(self.home, run_id) or {}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with ChatServer(reply) as server:
        yield Place(tmp_path_factory.mktemp("table"), server)


@pytest.fixture(scope="module")
def made(place: Place) -> dict[str, Any]:
    """What a run of two sets with two answerers says of itself."""
    planned = place.run("people", "staff", command="forecast")
    assert planned.code == 0, planned.err[-3000:]
    done = place.run("people", "staff")
    assert done.code == 0, done.err[-3000:]
    return {**done.json, "planned": planned.json["stages"], "asked": place.server.stats()["requests"]}


def test_one_table_has_a_column_for_each_set_and_a_row_for_each_model_and_knowledge(
    place: Place, made: dict[str, Any]
) -> None:
    assert list(made["sets"]) == ["people", "staff"] and made["failed_sets"] == {}
    experiments = {f"{knowledge}/{model}" for model in ("builtin", STUB) for knowledge in (
        "none/none", "random/triples", "rigel/triples", "oracle/triples")}  # fmt: skip
    for name, run_id in made["sets"].items():
        own = place.record(run_id)
        assert own["table"] == made["run_id"] and own["profile"]["questions"]["name"] == name
        scores = made["tables"]["sets"][name]["scores"]
        assert experiments <= scores.keys() and scores == own["aggregates"]["scores"]
    page = Path(made["report"]).read_text(encoding="utf-8")
    for text in ("people", "staff", f"{STUB} · Rigel facts", "builtin · No knowledge", "Retriever alone · Hits@1"):
        assert text in page, text
    assert all(f"../{run_id}/report.html" in page for run_id in made["sets"].values())
    shown = kgqa("report", "--home", place.home)
    assert shown.code == 0 and "Models against each other · Exact" in shown.out and "Table 1 · Exact" in shown.out


def test_the_tests_are_those_of_the_questions_themselves(place: Place, made: dict[str, Any]) -> None:
    tests = [row for row in made["tables"]["models"] if (row["set"], row["metric"]) == ("staff", "exact")]
    [row] = [row for row in tests if row["experiment"].startswith("oracle/")]
    folders = {
        stage["name"]: Path(stage["artifact"]["path"]) for stage in place.record(made["sets"]["staff"])["stages"]
    }
    frame = read_scored(folders["scores"], folders["questions"])
    exact = {
        name: dict(frame.filter(experiment=name, metric="exact").select("question", "value").iter_rows())
        for name in (row["experiment"], row["against"])
    }
    first, second = exact.values()
    assert row["n"] == len(first) == 10
    assert row["won"] == sum(first[one] > second[one] for one in first)
    assert row["value"] == pytest.approx(sum(first[one] - second[one] for one in first) / 10, abs=1e-6)


def test_the_forecast_is_what_was_asked_and_what_the_sets_share_is_planned_once(made: dict[str, Any]) -> None:
    planned = {row["stage"]: row for row in made["planned"]}
    assert {name.partition(":")[0] for name in planned} == {"people", "staff"}
    asked = sum(row["calls"] for row in made["planned"] if row["model"] == STUB)
    assert asked == made["asked"] > 0


def test_mlflow_nests_a_run_for_each_set_under_the_table(place: Place, made: dict[str, Any]) -> None:
    with sqlite3.connect(place.home / "mlflow" / "mlflow.db") as store:
        parents = dict(store.execute("select run_uuid, value from tags where key = 'mlflow.parentRunId'"))
        ours = {name: place.record(run_id)["mlflow_run_id"] for name, run_id in made["sets"].items()}
        assert {parents[run] for run in ours.values()} == {made["mlflow_run_id"]}
        rows = store.execute("select key, value from latest_metrics where run_uuid = ?", (made["mlflow_run_id"],))
        metrics = dict(rows.fetchall())
        own = dict(
            store.execute("select key, value from latest_metrics where run_uuid = ?", (ours["staff"],)).fetchall()
        )
    score = "rigel/triples/builtin/test/exact"
    assert metrics[f"staff/{score}"] == own[score]
    assert any(name.startswith("people/oracle/triples/") and name.endswith("_p_holm") for name in metrics)


def test_a_table_answers_with_its_first_set_or_the_one_that_is_named(place: Place, made: dict[str, Any]) -> None:
    first = json.loads((place.folder / "staff.jsonl").read_text(encoding="utf-8").splitlines()[0])["question"]
    asked = kgqa("ask", first, "--home", place.home, "--json")
    assert asked.code == 0 and "this is the system of people" in asked.err, asked.err[-2000:]
    named = kgqa("ask", first, "--home", place.home, "--json", "--run", "newest:staff")
    assert named.code == 0 and named.json["model"] == "builtin" and "this is the system of" not in named.err
    wrong = kgqa("ask", first, "--home", place.home, "--run", "newest:stuff")
    assert wrong.code == 2 and "did you mean 'staff'" in wrong.err
    compared = kgqa("compare", "newest", "champion:kgqa-register-staff", "--home", place.home)
    assert compared.code == 2 and "newest:people, newest:staff" in compared.err


def test_a_set_that_is_added_costs_itself_alone_and_a_bad_one_loses_no_other(
    place: Place, made: dict[str, Any]
) -> None:
    before = place.server.stats()["requests"]
    strange = [
        {"id": f"s{n}", "question": f"Who is {n}?", "topic_entities": [f"nobody {n}"], "answers": ["x"],
         "split": ("train", "dev", "test")[n % 3]}
        for n in range(9)
    ]  # fmt: skip
    text = "".join(json.dumps(row) + "\n" for row in strange)
    (place.folder / "strange.jsonl").write_text(text, encoding="utf-8")
    done = place.run("people", "strange", "towns")
    assert done.code == 1, done.err[-3000:]
    assert "2 of 3 question sets are done" in done.err and "'strange' failed with" in done.err
    assert list(done.json["sets"]) == ["people", "towns"] and "nobody 0" in done.json["failed_sets"]["strange"]
    assert "Failed:" in Path(done.json["report"]).read_text(encoding="utf-8")
    stages = place.record(done.json["sets"]["people"])["stages"]
    assert {stage["name"] for stage in stages if stage["status"] == "computed"} == set()
    towns = place.record(done.json["sets"]["towns"])["stages"]
    assert next(stage for stage in towns if stage["name"] == "retriever")["status"] == "computed"
    assert 0 < place.server.stats()["requests"] - before <= 40


def test_a_missing_file_is_refused_before_anything_starts(place: Place, made: dict[str, Any]) -> None:
    runs = len(list((place.home / "runs").iterdir()))
    done = place.run("people", "gone", "lost")
    assert done.code == 2 and "question set 'gone'" in done.err and "question set 'lost'" in done.err
    assert len(list((place.home / "runs").iterdir())) == runs


def test_a_refresh_follows_each_set(place: Place, made: dict[str, Any]) -> None:
    done = place.run("people", "staff", command="refresh")
    assert done.code == 0, done.err[-3000:]
    record = place.record(done.json["run_id"])
    assert set(record["sets"]) == {"people", "staff"}
    assert all("nothing to do" in record["decisions"][name] for name in record["sets"])


def test_sets_that_train_together_share_one_retriever(place: Place, made: dict[str, Any]) -> None:
    done = place.run("people", "staff", more=("questions_train=union",))
    assert done.code == 0, done.err[-3000:]
    records = [place.record(run_id) for run_id in done.json["sets"].values()]
    retrievers = [next(one for one in own["stages"] if one["name"] == "retriever") for own in records]
    assert [one["status"] for one in retrievers] == ["computed", "cached"]
    assert retrievers[0]["artifact"] == retrievers[1]["artifact"]
    united = next(one for one in records[0]["stages"] if one["name"] == "questions/union")["counts"]
    assert united["questions"]["train"] + united["questions"]["dev"] + sum(united["left_out"].values()) > 140
    refused = place.run("people", "staff", command="refresh", more=("questions_train=union",))
    assert refused.code == 2 and "questions_train is union" in refused.err


def test_the_budget_is_that_of_all_sets_together(tmp_path: Path) -> None:
    with ChatServer(reply) as server:
        place = Place(tmp_path, server)
        stopped = place.run("people", "staff", more=(*QUICK, "llm.budget.max_calls=25"))
        assert stopped.code == 1 and "llm.budget.max_calls" in stopped.err, stopped.err[-3000:]
        assert server.stats()["requests"] == 25
        done = place.run("people", "staff", more=(*QUICK, "llm.budget.max_calls=40"))
        assert done.code == 0 and server.stats()["requests"] == 40, "what was paid is kept, and counts"


def test_killed_amid_the_second_set_it_goes_on_and_pays_nothing_twice(tmp_path: Path) -> None:
    with ChatServer(reply) as server:
        server.slowness = 0.1
        place = Place(tmp_path, server)
        words = [sys.executable, "-m", "flows.cli", *place.words("run", "people", "staff", more=QUICK)]
        given = environment(OPENAI_API_KEY="none", **shared_environment())
        process = subprocess.Popen(
            words, env=given, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 600
        while server.stats()["answered"] < 27:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        server.slowness = 0.0
        time.sleep(0.5)
        before = server.stats()
        done = place.run("people", "staff", more=QUICK)
        assert done.code == 0, done.err[-3000:]
        after = server.stats()
        twice = [key for key, counts in after["prompts"].items() if counts["requests"] > 1]
        assert len(twice) <= 2, "only what was under way when it was killed is asked again (llm.concurrency=2)"
        assert before["requests"] < after["requests"] <= 40 + 2
        assert {stage["status"] for stage in place.record(done.json["sets"]["people"])["stages"]} == {"cached"}
        statuses = [place.record(path.name)["status"] for path in sorted((place.home / "runs").iterdir())]
        assert statuses.count("killed") == 2 and statuses.count("running") == 0
