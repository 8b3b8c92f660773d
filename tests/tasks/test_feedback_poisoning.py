"""What strangers send to a server changes no training; what a home holds from before breaks none."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from starlette.testclient import TestClient

from kgqa_core.config import make_profile
from kgqa_core.datasets.files.jsonl import read_question_file
from kgqa_core.serving.feedback import FILE, FeedbackStore
from kgqa_core.serving.http import create_app
from kgqa_core.serving.limits import SERVE_FOLDER
from kgqa_core.serving.service import Service
from kgqa_core.store.artifacts import Home
from tasks.questions import with_feedback
from tests.support.served import EchoSource

QUESTIONS = [f"What is the capital of land {n}?" for n in range(12)]


def learnt(home: Path) -> list[str]:
    """Questions of the home's feedback that a refresh would read."""
    options = with_feedback(make_profile({}), Home(home)).questions
    rows = read_question_file(Path(options.also_train)) if options.also_train else []
    return [row["question"] for row in rows]


def test_invented_sessions_and_answers_move_no_training(tmp_path: Path) -> None:
    store = FeedbackStore(tmp_path / SERVE_FOLDER)
    app = create_app(Service(EchoSource()), feedback=store)
    with closing(store), TestClient(app, base_url="http://localhost") as client:
        for text in QUESTIONS:
            given = {"topics": [f"land {text[-3]}"], "verdict": "down", "correction": ["X"]}
            for session in "ab":
                client.post("/feedback", json={**given, "question": text, "answers": ["Y"], "session": session})
            name = client.post("/ask", json={"question": text}).json().get("answer_id")
            for session in "ab":
                body = {"answer_id": name, "verdict": "down", "correction": ["X"]}
                client.post("/feedback", json=body, headers={"X-Forwarded-For": session, "User-Agent": session})
    assert learnt(tmp_path) == []


def test_bad_rows_of_the_past_are_left_out_of_a_refresh(tmp_path: Path) -> None:
    FeedbackStore(tmp_path / SERVE_FOLDER).close()
    rows = [("   ", '["t"]', "confirmed"), ("Capital of Peru?", '[" "]', "confirmed")]
    rows += [("Capital of Chad?", '["Chad"]', "confirmed"), ("Capital of Fiji?", '["Fiji"]', "new")]
    with closing(sqlite3.connect(tmp_path / SERVE_FOLDER / FILE)) as connection, connection:
        connection.executemany(
            "INSERT INTO verdicts (at, question, topics, answers, verdict, correction, client, state) "
            "VALUES ('2026-01-01', ?, ?, '[]', 'down', '[\"X\"]', hex(randomblob(8)), ?)",
            rows,
        )
    assert learnt(tmp_path) == ["Capital of Chad?"]
