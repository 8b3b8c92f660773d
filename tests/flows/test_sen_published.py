"""`kgqa run --profile sen-published` from a dump to Tables 1, 2 and 3, on a small part of the real data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kgqa_core.store.home import read_run
from tests.support.chat_server import ChatServer
from tests.support.command import kgqa
from tests.support.sen_published import write_sen_data

pytestmark = pytest.mark.slow

SETS = ["webquestions", "cwq", "mintaka", "lcquad2"]
MODEL = "openai:stub"


def reply(prompt: str) -> str:
    """The tail of the first triple, and no answer without any."""
    found = re.search(r"\(([^()]*?), ([^(),]*), ([^()]*?)\)", prompt)
    return found[3] if found else "I do not know"


def test_a_dump_and_the_files_of_four_sets_become_three_tables(shared_data: Path, tmp_path: Path) -> None:
    data = write_sen_data(shared_data, tmp_path / "data", 24)
    with ChatServer(reply) as server:
        settings = [
            *data.settings, "questions.webquestions.dev_size=6", f"answering.answerers=[builtin, {MODEL}]",
            "answering.limit=5", "evaluation.bootstrap=100", "evaluation.examples=2", "rigel.encoder=scratch",
            "rigel.scratch_width=16", "rigel.batch_size=4", "rigel.device=cpu", f"llm.base_url={server.base_url}",
            "llm.retries=0",
        ]  # fmt: skip
        words = ["--profile", "sen-published", "--kg", data.graph, "--home", tmp_path / "home", "--json"]
        words += [word for setting in settings for word in ("--set", setting)]
        key = {"OPENAI_API_KEY": "none", "OMP_NUM_THREADS": "1"}

        planned = kgqa("forecast", *words, env=key)
        assert planned.code == 0, planned.err[-3000:]
        plans = {plan["stage"]: plan for plan in planned.json["stages"]}
        for name in SETS:
            training = plans[f"{name}: training rigel"]
            assert training["seconds"] > 0 and "40,000 steps" in training["assumptions"][0], "the whole, from 100 steps"
        asked = sum(plan["calls"] for plan in planned.json["stages"] if plan["model"] == MODEL)
        assert asked > 0 and server.stats()["requests"] == 0

        done = kgqa("run", *words, "--set", "rigel.max_steps=100", env=key)
        assert done.code == 0, done.err[-3000:]
        assert done.json["failed_sets"] == {} and sorted(done.json["sets"]) == sorted(SETS)
        assert server.stats()["requests"] == asked
    tables = done.json["tables"]
    experiments = {f"{knowledge}/{model}" for model in ("builtin", MODEL)
                   for knowledge in ("none/none", "random/triples", "rigel/triples")}  # fmt: skip
    counts = {}
    for name, run_id in done.json["sets"].items():
        scores = tables["sets"][name]["scores"]
        assert experiments <= scores.keys() and "rigel/-/-" in scores, "Rigel alone is a row too"
        stages = {stage["name"]: stage for stage in (read_run(tmp_path / "home", run_id) or {})["stages"]}
        counts[name] = stages["questions"]["counts"]
        assert stages["retriever"]["status"] == "cached", "the forecast has made what it ran"
    assert counts["webquestions"]["questions"] == {"train": 12, "dev": 6, "test": 6}
    assert counts["webquestions"]["n_unlinkable"]["train"] == 0 and counts["webquestions"]["matched_by_name"] > 0
    assert data.nameless, "a topic without P646 is reached by its label"
    assert counts["cwq"]["questions"] == {"train": 16, "dev": 2, "test": 6}, "dev is the test"
    assert counts["lcquad2"]["without_answer"] == 2 and sum(counts["lcquad2"]["questions"].values()) == 22
    assert {"generic", "superlative"} & tables["sets"]["mintaka"]["by_complexity"]["none/none/builtin"].keys()
    page = Path(done.json["report"]).read_text(encoding="utf-8")
    for text in (
        "Table 1 · Contains",
        "Retriever alone · Hits@1",
        "Table 2 · mintaka",
        *(f"Table 3 · {name}" for name in SETS),
    ):
        assert text in page, text
    assert "fact" in page.partition("Table 3 · mintaka")[2] and f"{MODEL}" in page.partition("Table 3 · mintaka")[2]


def test_settings_take_single_sets_and_a_missing_set_is_refused_with_the_way_out(tmp_path: Path) -> None:
    graph = tmp_path / "g.nt"
    graph.write_text("<http://x/a> <http://x/b> <http://x/c> .\n", encoding="utf-8")
    refused = kgqa("run", "--profile", "sen-published", "--kg", graph, "--home", tmp_path / "home",
                   "--set", "questions.cwq.path=/nowhere", "--set", "sets=[cwq]")  # fmt: skip
    assert refused.code == 2 and "/nowhere" in refused.err
    wrong = kgqa("run", "--profile", "sen-published", "--set", "sets=[mintaca]", "--home", tmp_path / "home")
    assert wrong.code == 2 and "which is none of webquestions, cwq, mintaka, lcquad2" in wrong.err
