"""`kgqa chat`: questions on a pipe, each of which may refer back, and names that TAB completes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from flows.cli.chat import completions
from kgqa_core.kg.store import KgStore
from tests.support.command import ROOT, environment

ROWS = ("Ada Stone\twrote\tNight Ferry", "Ada Stone\twrote\tThe Grey Harbour", "Ben Low\twrote\tThe Salt Road")
QUESTIONS = "who wrote Night Ferry?\n\nand The Salt Road?\n/new\nwhat did she write?\n/quit\nwho wrote Night Ferry?\n"


def test_piped_questions_refer_back_until_a_new_chat_begins_and_tab_completes_names(tmp_path: Path) -> None:
    graph, home = tmp_path / "books.tsv", tmp_path / "home"
    graph.write_text("".join(f"{row}\n" for row in ROWS), encoding="utf-8")
    command = [sys.executable, "-m", "flows.cli", "chat", "--kg", str(graph), "--home", str(home), "--json"]
    done = subprocess.run(
        command, input=QUESTIONS, env=environment(), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["answer"] for one in replies] == ["Ada Stone", "Ben Low", None]
    assert replies[1]["understood"] and "understood" not in replies[0]
    assert replies[2]["missing"] == "what does “she” refer to?"
    [folder] = [path.parent for path in home.glob("artifacts/kg/*/*.duckdb")]
    with KgStore.open(folder) as store:
        assert completions(store, "who wrote the sa") == ["who wrote The Salt Road"]
        assert completions(store, "night") == ["Night Ferry"]
        assert completions(store, "who wrote xq") == [] == completions(store, "")
