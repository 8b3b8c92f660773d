"""`kgqa answerability abstain`: from a benchmark to a run that says what its graph does not hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flows.abstention import profile_for
from kgqa_core.config import make_profile
from kgqa_core.papers.grailqability.builder.build import build
from kgqa_core.papers.grailqability.builder.records import read_benchmark
from kgqa_core.store.publish import publish_folder
from kgqa_core.workspace import Workspace
from tests.support.command import kgqa
from tests.support.register_benchmark import OPTIONS, write_inputs

MINIMAL = {
    "name": "own", "kg": {"name": "own", "files": ["g.nt"]},
    "questions": {"name": "own", "source": "jsonl", "path": "q.jsonl"},
}  # fmt: skip
SMALL = (
    "retrieval.retrievers=[rigel,hop_path]", "rigel.encoder=scratch", "rigel.epochs=2",
    "rigel.min_steps=40", "rigel.learning_rate=0.003", "rigel.scratch_width=64",
    "hop_path.encoder=scratch", "hop_path.epochs=3", "hop_path.scratch_width=64", "abstention.training_questions=200",
    "evaluation.bootstrap=100", "retrieval.edge_budget=50000",
)  # fmt: skip


@pytest.mark.parametrize(
    ("answerer", "model"),
    [("auto", "builtin"), ("auto:openai:m", "openai:m"),
     ("agent:openai:m", "openai:m"), ("openai:m", "openai:m")],
)  # fmt: skip
def test_the_language_model_of_any_answerer_is_what_is_learnt_from(answerer: str, model: str) -> None:
    base = make_profile({**MINIMAL, "answering": {"answerer": answerer, "more": ["builtin"]}})
    chosen = profile_for(base)
    assert (chosen.answering.answerer, chosen.answering.more) == (model, ())
    assert chosen.knowledge == ("rigel@linked/triples",) and chosen.answering.log_probabilities


@pytest.mark.slow
def test_a_run_learns_when_not_to_answer_and_says_so(tmp_path: Path) -> None:
    kg, questions = write_inputs(tmp_path, questions=420)

    def fill(out: Path, work: Path) -> dict[str, Any]:
        return build(Workspace(out), kg=kg, questions=questions, options=OPTIONS, seed=7)

    made = publish_folder("answerability", tmp_path / "register", fill).folder
    sets = [part for setting in SMALL for part in ("--set", setting)]
    home = ("--home", tmp_path / "home")
    done = kgqa("answerability", "abstain", made, *sets, *home, "--json")
    assert done.code == 0, done.err[-3000:]
    found = done.json
    assert found["auroc"] > 0.7 and found["n"]["unanswerable"] > 15
    assert found["risk"] < found["risk_without"] and found["experiment"] == "rigel@linked/triples/builtin"
    page = Path(found["report"]).read_text(encoding="utf-8")
    assert "Knowing when not to answer" in page and "Errors against coverage" in page

    asked = [one for one in read_benchmark(made).questions if one.split == "test"]
    path, out = tmp_path / "asked.jsonl", tmp_path / "out.jsonl"
    lines = [json.dumps({"id": one.id, "question": one.question}) for one in asked]
    path.write_text("".join(line + "\n" for line in [*lines, '{"id": "x", "question": "Who?"}']), encoding="utf-8")
    answered = kgqa("answer", "--questions", path, "--out", out, "--run", found["run_id"], *home, "--json")
    assert answered.code == 0, answered.err[-3000:]
    rows = {row["id"]: row for row in map(json.loads, out.read_text(encoding="utf-8").splitlines())}
    given = [rows[one.id]["answerable"] for one in asked]
    right = sum(own == one.answerable for own, one in zip(given, asked, strict=True)) / len(asked)
    assert right == pytest.approx(found["accuracy"], abs=0.05), "as the run judged them"
    assert (rows["x"]["answer"], rows["x"]["reason"]) == (None, "entity not found")
    withheld = next(rows[one.id] for one, own in zip(asked, given, strict=True) if not own)
    assert withheld["answer"] is None and withheld["reason"] and withheld["calibrated"]

    told = kgqa("ask", withheld["question"], "--run", found["run_id"], *home, "--json")
    assert told.code == 0, told.err[-3000:]
    assert (told.json["answerable"], told.json["reason"]) == (False, withheld["reason"])
    assert told.json["confidence"] == pytest.approx(withheld["confidence"], abs=0.02)
    always = kgqa("ask", withheld["question"], "--run", found["run_id"], *home, "--json", "--min-confidence", "0")
    assert always.json["answerable"] and always.json["answer"] == told.json["model_answer"]
