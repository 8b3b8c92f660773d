"""The answer stage: prompts, rows, resuming and what it asks the server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.answering import answer as stage
from kgqa_core.answering.answer import answer, ask, choose, parse_output
from kgqa_core.config import AnsweringOptions
from kgqa_core.datasets.question import write_questions
from kgqa_core.errors import ArtifactError, EndpointError, ModelError, QuestionFileError
from kgqa_core.llm.protocol import Completion, GenerationParams, OnResult
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.types import Question
from tests.support.chat_server import ChatServer, Fault

QUESTIONS = [Question(id=f"q{number:02d}", text=f"Who is number {number}?", split="test") for number in range(10)]
QUESTIONS += [Question(id="d0", text="Who is in dev?", split="dev")]


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    made = {name: tmp_path / name for name in ("questions", "knowledge", "work")}
    for folder in made.values():
        folder.mkdir()
    write_questions(made["questions"], QUESTIONS)
    rows = [
        {
            "question": question.id,
            "retriever": "rigel",
            "format": "triples",
            "text": f"({question.id}, is, me)",
            "triples": [1],
        }
        for question in QUESTIONS[:9]
    ]
    rows.append({"question": "q09", "retriever": "rigel", "format": "none", "text": "", "triples": []})
    pl.DataFrame(rows, schema_overrides={"triples": pl.List(pl.Int64)}).write_parquet(
        made["knowledge"] / "knowledge.parquet"
    )
    return made


class Stub:
    """A model that answers with the number in the question and counts what it was asked."""

    name, revision, batch_sensitive = "stub", "1", False

    def __init__(self, reply: Callable[[str], Completion] | None = None, die_after: int | None = None) -> None:
        self.reply = reply or (lambda prompt: Completion(f" me {prompt[-12:]}\nmore", "stop", 5, 2))
        self.die_after, self.asked = die_after, list[str]()

    def generate(
        self,
        prompts: Sequence[str],
        params: GenerationParams,
        monitor: Monitor = QUIET,
        on_result: OnResult | None = None,
    ) -> list[Completion]:
        out = []
        for place, prompt in enumerate(prompts):
            if self.die_after is not None and len(self.asked) >= self.die_after:
                raise KeyboardInterrupt
            self.asked.append(prompt)
            out.append(self.reply(prompt))
            if on_result is not None:
                on_result(place, out[-1])
        return out


def run(
    folders: dict[str, Path], out: Path, *, model: Any = None, knowledge: bool = True, **given: Any
) -> dict[str, Any]:
    out.mkdir()
    return answer(
        out,
        questions=folders["questions"],
        knowledge=folders["knowledge"] if knowledge else None,
        retriever="rigel" if knowledge else "none",
        options=AnsweringOptions(**given),
        seed=7,
        work=folders["work"],
        model=model,
    )


def test_every_question_of_the_split_gets_one_row_and_the_papers_prompt(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    model = Stub()
    counts = run(folders, tmp_path / "out", model=model)
    frame = pl.read_parquet(tmp_path / "out" / "answers.parquet")
    assert frame.columns == list(stage.SCHEMA)
    assert frame["question"].to_list() == [f"q{number:02d}" for number in range(10)]
    assert 'Given the following context: "(q00, is, me)" Answer the question: Who is number 0?. Answer:' in model.asked
    assert "Question: Who is number 9? Answer:" in model.asked
    assert frame["format"].unique().to_list() == ["triples"], "a question without facts stays in its experiment"
    assert frame["model"].unique().to_list() == ["stub"] and frame["retriever"].unique().to_list() == ["rigel"]
    digest = hashlib.sha256(b"Question: Who is number 9? Answer:").hexdigest()[:16]
    assert frame["prompt_digest"][9] == digest
    assert all(output.startswith("me ") and "more" not in output for output in frame["output"])
    assert (counts["questions"], counts["prompts"], counts["errors"], counts["resumed"]) == (10, 10, 0, 0)
    assert (counts["prompt_tokens"], counts["completion_tokens"], counts["empty_knowledge"]) == (50, 20, 1)
    assert (tmp_path / "out" / "volatile" / "answers_seconds.parquet").exists()


def test_without_knowledge_the_prompt_is_no_knowledge(folders: dict[str, Path], tmp_path: Path) -> None:
    model = Stub()
    counts = run(folders, tmp_path / "out", model=model, knowledge=False)
    assert set(model.asked) == {f"Question: Who is number {number}? Answer:" for number in range(10)}
    frame = pl.read_parquet(tmp_path / "out" / "answers.parquet")
    assert frame["format"].unique().to_list() == ["none"] and counts["empty_knowledge"] == 0


def test_split_and_limit_choose_questions_by_seed() -> None:
    assert [question.id for question in choose(QUESTIONS, AnsweringOptions(split="dev"), 7)] == ["d0"]
    drawn = [[question.id for question in choose(QUESTIONS, AnsweringOptions(limit=4), seed)] for seed in (7, 7, 8)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 4 and drawn[0] == sorted(drawn[0])
    assert len(choose(QUESTIONS, AnsweringOptions(limit=99), 7)) == 10
    assert choose(QUESTIONS[::-1], AnsweringOptions(limit=4), 7) == choose(QUESTIONS, AnsweringOptions(limit=4), 7)
    with pytest.raises(QuestionFileError, match="'dev'"):
        choose(QUESTIONS[:3], AnsweringOptions(split="dev"), 7)


def test_a_blank_text_is_asked_without_facts() -> None:
    asked = ask(QUESTIONS[:2], {"q00": ("triples", " \n"), "q01": ("triples", "(a, b, c)")})
    assert [(item.format, item.bare) for item in asked] == [("triples", True), ("triples", False)]
    assert "context" not in asked[0].prompt


@pytest.mark.parametrize(
    ("text", "output"), [(" Paris ", "Paris"), ("\n\n Paris\nLondon", "Paris"), ("", ""), (" \n ", ""), ("a\r\nb", "a")]
)
def test_output_is_the_first_line(text: str, output: str) -> None:
    assert parse_output(text) == output


def test_abstentions_are_marked(folders: dict[str, Path], tmp_path: Path) -> None:
    replies = {"0": Completion("Unknown."), "1": Completion("I cannot", "refusal"), "2": Completion("", "empty")}
    run(
        folders,
        tmp_path / "out",
        model=Stub(lambda prompt: replies.get(prompt.split("number ")[1][0], Completion("x"))),
    )
    frame = pl.read_parquet(tmp_path / "out" / "answers.parquet")
    assert frame["abstained"].to_list() == [True] * 3 + [False] * 7


@pytest.mark.parametrize("torn", [False, True])
def test_a_killed_stage_does_not_ask_again_what_it_has(folders: dict[str, Path], tmp_path: Path, torn: bool) -> None:
    whole = Stub()
    run(folders, tmp_path / "whole", model=whole)
    (folders["work"] / "completions.jsonl").unlink()
    killed = Stub(die_after=6)
    with pytest.raises(KeyboardInterrupt):
        run(folders, tmp_path / "killed", model=killed)
    if torn:
        journal = folders["work"] / "completions.jsonl"
        journal.write_bytes(journal.read_bytes()[:-20])
    again = Stub()
    counts = run(folders, tmp_path / "again", model=again)
    done = 5 if torn else 6
    assert counts["resumed"] == done and len(again.asked) == 10 - done
    for name in ("answers.parquet", "meta.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_local_model_repeats_whole_groups(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "GROUP", 4)
    killed = Stub(die_after=6)
    killed.batch_sensitive = True
    with pytest.raises(KeyboardInterrupt):
        run(folders, tmp_path / "killed", model=killed)
    again = Stub()
    again.batch_sensitive = True
    counts = run(folders, tmp_path / "again", model=again)
    assert counts["resumed"] == 4 and again.asked == sorted(set(again.asked), key=lambda prompt: (len(prompt), prompt))
    assert len(again.asked) == 6


def test_a_journal_of_another_model_is_not_taken(folders: dict[str, Path], tmp_path: Path) -> None:
    run(folders, tmp_path / "one", model=Stub())
    other = Stub()
    other.revision = "2"
    assert run(folders, tmp_path / "two", model=other)["resumed"] == 0
    (folders["work"] / "completions.jsonl").write_bytes(b"\x00\xff rubbish")
    assert run(folders, tmp_path / "three", model=Stub())["resumed"] == 0


def test_failed_prompts_stay_in_the_rows_and_are_asked_again_later(folders: dict[str, Path], tmp_path: Path) -> None:
    failing = Stub(lambda prompt: Completion("", "error", error="x") if "number 3" in prompt else Completion("ok"))
    assert run(folders, tmp_path / "one", model=failing)["errors"] == 1
    frame = pl.read_parquet(tmp_path / "one" / "answers.parquet")
    assert frame.height == 10 and frame["output"][3] == ""
    again = Stub()
    counts = run(folders, tmp_path / "two", model=again)
    assert (counts["resumed"], len(again.asked), counts["errors"]) == (9, 1, 0)


def test_the_server_is_paid_once(folders: dict[str, Path], tmp_path: Path) -> None:
    with ChatServer(reply=lambda prompt: "Rome") as server:
        given = {"answerer": "openai:m", "base_url": server.base_url, "retries": 0, "concurrency": 1}
        server.fail("number 7", Fault(status=500))
        first = run(folders, tmp_path / "one", **given)
        assert (first["errors"], len(server.prompts)) == (1, 10)
        second = run(folders, tmp_path / "two", **given)
        assert (second["errors"], second["resumed"], len(server.prompts)) == (0, 9, 11)
    assert set(pl.read_parquet(tmp_path / "two" / "answers.parquet")["output"]) == {"Rome"}


def test_a_server_that_dies_keeps_what_was_paid(folders: dict[str, Path], tmp_path: Path) -> None:
    with ChatServer(reply=lambda prompt: "Rome") as server:
        given = {"answerer": "openai:m", "base_url": server.base_url, "retries": 0, "concurrency": 1}
        server.always("number 5", Fault(status=401))
        with pytest.raises(EndpointError, match="status 401"):
            run(folders, tmp_path / "one", **given)
        lines = (folders["work"] / "completions.jsonl").read_text().splitlines()[1:]
        assert 0 < len(lines) < 10
        assert all(json.loads(line)["completion"]["text"] == "Rome" for line in lines)


def test_knowledge_of_another_retriever_is_an_error(folders: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    given = {"questions": folders["questions"], "options": AnsweringOptions(), "seed": 7, "model": Stub()}
    with pytest.raises(ArtifactError, match="'oracle'"):
        answer(out, knowledge=folders["knowledge"], retriever="oracle", **given)
    with pytest.raises(ArtifactError, match="cannot be read"):
        answer(out, knowledge=folders["work"], retriever="rigel", **given)


def test_a_model_that_is_none_is_named(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="hf:"):
        run(folders, tmp_path / "out", answerer="hf:")
