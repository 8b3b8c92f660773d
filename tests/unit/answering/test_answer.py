"""The answer stage: prompts, rows, resuming and what it asks the server."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.answering import answer as stage
from kgqa_core.answering.answer import answer, answer_requests, choose, parse_output
from kgqa_core.config import AnsweringOptions, BudgetOptions, Endpoint, LlmOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.errors import ArtifactError, BudgetReached, EndpointError, ModelError, QuestionFileError
from kgqa_core.llm import paid
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.protocol import Completion, GenerationParams, OnResult
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.chat_server import ChatServer, Fault
from tests.support.odd_replies import OddReply

QUESTIONS = [Question(id=f"q{number:02d}", text=f"Who is number {number}?", split="test") for number in range(10)]
QUESTIONS += [Question(id="d0", text="Who is in dev?", split="dev")]


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    made = {name: tmp_path / name for name in ("questions", "knowledge", "cache")}
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
    rows.append({"question": "q09", "retriever": "rigel", "format": "triples", "text": "", "triples": []})
    pl.DataFrame(rows, schema_overrides={"triples": pl.List(pl.Int64)}).write_parquet(
        made["knowledge"] / "knowledge.parquet"
    )
    return made


class Stub:
    """A model that answers with the number in the question and counts its prompts."""

    name, revision, batch_sensitive = "stub", "1", False

    def __init__(self, reply: Callable[[str], Completion] | None = None, die_after: int | None = None) -> None:
        self.reply = reply or (lambda prompt: Completion(f" me {prompt[-12:]}\nmore", "stop", 5, 2))
        self.die_after, self.prompts = die_after, list[str]()

    def generate(
        self,
        prompts: Sequence[str],
        params: GenerationParams,
        on_result: OnResult | None = None,
    ) -> list[Completion]:
        out = []
        for place, prompt in enumerate(prompts):
            if self.die_after is not None and len(self.prompts) >= self.die_after:
                raise KeyboardInterrupt
            self.prompts.append(prompt)
            out.append(self.reply(prompt))
            if on_result is not None:
                on_result(place, out[-1])
        return out


def run(
    folders: dict[str, Path],
    out: Path,
    *,
    model: Any = None,
    name: str = "rigel/triples",
    llm: LlmOptions | None = None,
    budget: Budget | None = None,
    monitor: Monitor = QUIET,
    **given: Any,
) -> dict[str, Any]:
    out.mkdir()
    return answer(
        Workspace(out, cache=folders["cache"], monitor=monitor, budget=budget, model=model),
        questions=folders["questions"],
        knowledge=folders["knowledge"] if name != "none/none" else None,
        name=name,
        options=AnsweringOptions(**given),
        llm=llm or LlmOptions(),
        seed=7,
    )


def test_every_question_of_the_split_gets_one_row_and_the_papers_prompt(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    model = Stub()
    counts = run(folders, tmp_path / "out", model=model)
    frame = pl.read_parquet(tmp_path / "out" / "answers.parquet")
    assert frame.columns == list(stage.SCHEMA)
    assert frame["question"].to_list() == [f"q{number:02d}" for number in range(10)]
    assert (
        'Given the following context: "(q00, is, me)" Answer the question: Who is number 0?. Answer:' in model.prompts
    )
    assert "Question: Who is number 9? Answer:" in model.prompts
    assert frame["format"].unique().to_list() == ["triples"], "a question without facts stays in its experiment"
    assert frame["model"].unique().to_list() == ["stub"] and frame["retriever"].unique().to_list() == ["rigel"]
    digest = hashlib.sha256(b"Question: Who is number 9? Answer:").hexdigest()[:16]
    assert frame["prompt_digest"][9] == digest
    assert all(output.startswith("me ") and "more" not in output for output in frame["output"])
    assert (counts["questions"], counts["prompts"], counts["errors"], counts["cached"]) == (10, 10, 0, 0)
    assert (counts["prompt_tokens"], counts["completion_tokens"], counts["empty_knowledge"]) == (50, 20, 1)
    assert (tmp_path / "out" / "volatile" / "answers_seconds.parquet").exists()


def test_without_knowledge_the_prompt_is_no_knowledge(folders: dict[str, Path], tmp_path: Path) -> None:
    model = Stub()
    counts = run(folders, tmp_path / "out", model=model, name="none/none")
    assert set(model.prompts) == {f"Question: Who is number {number}? Answer:" for number in range(10)}
    frame = pl.read_parquet(tmp_path / "out" / "answers.parquet")
    assert frame["format"].unique().to_list() == ["none"] and counts["empty_knowledge"] == 0


def test_split_and_limit_choose_questions_by_seed() -> None:
    assert [question.id for question in choose(QUESTIONS, "dev", None, 7)] == ["d0"]
    drawn = [[question.id for question in choose(QUESTIONS, "test", 4, seed)] for seed in (7, 7, 8)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 4 and drawn[0] == sorted(drawn[0])
    assert len(choose(QUESTIONS, "test", 99, 7)) == 10
    assert choose(QUESTIONS[::-1], "test", 4, 7) == choose(QUESTIONS, "test", 4, 7)
    with pytest.raises(QuestionFileError, match="'dev'"):
        choose(QUESTIONS[:3], "dev", None, 7)


def test_a_blank_text_is_asked_without_facts() -> None:
    requests = answer_requests(QUESTIONS[:2], {"q00": " \n", "q01": "(a, b, c)"}, AnsweringOptions())
    assert [item.without_knowledge for item in requests] == [True, False]
    assert "context" not in requests[0].prompt


def test_the_template_words_the_prompt(folders: dict[str, Path], tmp_path: Path) -> None:
    model = Stub()
    run(folders, tmp_path / "out", model=model, template="rra2023")
    known = "Below are the facts that might be relevant to answer the question: (q00, is, me)"
    assert f"{known} Question: Who is number 0? Answer:" in model.prompts
    assert "Question: Who is number 9? Answer:" in model.prompts, "without facts the wording is the same for all"


def test_the_format_chooses_the_rows_of_the_knowledge(folders: dict[str, Path], tmp_path: Path) -> None:
    file = folders["knowledge"] / "knowledge.parquet"
    rewritten = pl.read_parquet(file).with_columns(
        format=pl.lit("rewritten"), text=pl.lit("Told of ") + pl.col("question")
    )
    rewritten.write_parquet(file)
    model = Stub()
    run(folders, tmp_path / "out", model=model, name="rigel/rewritten")
    assert 'Given the following context: "Told of q00" Answer the question: Who is number 0?. Answer:' in model.prompts
    frame = pl.read_parquet(tmp_path / "out" / "answers.parquet")
    assert frame["format"].unique().to_list() == ["rewritten"]


@pytest.mark.parametrize(
    ("text", "output"), [(" Paris ", "Paris"), ("\n\n Paris\nLondon", "Paris"), ("", ""), (" \n ", ""), ("a\r\nb", "a")]
)
def test_output_is_the_first_line(text: str, output: str) -> None:
    assert parse_output(text) == output


def test_every_end_of_a_completion_is_told_apart(folders: dict[str, Path], tmp_path: Path) -> None:
    replies = {
        "0": Completion("Unknown."),
        "1": Completion("I cannot", "refusal"),
        "2": Completion("", "empty"),
        "3": Completion("a long", "length"),
        "4": Completion("", "error", error="x"),
    }
    counts = run(
        folders,
        tmp_path / "out",
        model=Stub(lambda prompt: replies.get(prompt.split("number ")[1][0], Completion("x"))),
    )
    frame = pl.read_parquet(tmp_path / "out" / "answers.parquet")
    assert frame["finish"].to_list() == ["stop", "refusal", "empty", "length", "error"] + ["stop"] * 5
    assert frame["abstained"].to_list() == [True, True, True, False, False] + [False] * 5
    assert frame["output"].to_list()[3:5] == ["a long", ""]
    assert counts["finish"] == {"empty": 1, "error": 1, "length": 1, "refusal": 1, "stop": 6}
    assert (counts["abstained"], counts["errors"]) == (3, 1)


@pytest.mark.parametrize("die_after", [0, 1, 6, 9])
def test_a_killed_stage_does_not_ask_again_what_it_has(
    folders: dict[str, Path], tmp_path: Path, die_after: int
) -> None:
    run(folders | {"cache": tmp_path / "other"}, tmp_path / "whole", model=Stub())
    with pytest.raises(KeyboardInterrupt):
        run(folders, tmp_path / "killed", model=Stub(die_after=die_after))
    again = Stub()
    counts = run(folders, tmp_path / "again", model=again)
    assert counts["cached"] == die_after and len(again.prompts) == 10 - die_after
    for name in ("answers.parquet", "meta.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_local_model_repeats_whole_groups(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paid, "GROUP", 4)
    killed = Stub(die_after=6)
    killed.batch_sensitive = True
    with pytest.raises(KeyboardInterrupt):
        run(folders, tmp_path / "killed", model=killed)
    again = Stub()
    again.batch_sensitive = True
    counts = run(folders, tmp_path / "again", model=again)
    assert counts["cached"] == 4 and len(again.prompts) == 6


def test_without_a_shared_cache_the_working_folder_keeps_what_was_asked(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    given: dict[str, Any] = {
        "questions": folders["questions"], "knowledge": None, "name": "none/none", "options": AnsweringOptions(),
        "llm": LlmOptions(), "seed": 7,
    }  # fmt: skip
    for name in ("work", "one", "two"):
        (tmp_path / name).mkdir()
    assert answer(Workspace(tmp_path / "one", tmp_path / "work", model=Stub()), **given)["cached"] == 0
    assert answer(Workspace(tmp_path / "two", tmp_path / "work", model=Stub()), **given)["cached"] == 10


def test_experiments_share_what_they_have_in_common(folders: dict[str, Path], tmp_path: Path) -> None:
    run(folders, tmp_path / "one", model=Stub(), name="none/none")
    model = Stub()
    counts = run(folders, tmp_path / "two", model=model)
    assert counts["cached"] == 1 and len(model.prompts) == 9, "the question without facts was asked before"
    model.revision = "2"
    assert run(folders, tmp_path / "three", model=model)["cached"] == 0


def test_equal_prompts_are_asked_once_and_answer_every_question(folders: dict[str, Path], tmp_path: Path) -> None:
    twins = [Question(id=name, text="Who?", split="test") for name in "ab"]
    write_questions(folders["questions"], twins)
    model = Stub()
    counts = run(folders, tmp_path / "out", model=model, name="none/none")
    assert (counts["questions"], counts["prompts"], len(model.prompts)) == (2, 1, 1)
    assert pl.read_parquet(tmp_path / "out" / "answers.parquet")["output"].n_unique() == 1


def test_failed_prompts_stay_in_the_rows_and_are_asked_again_later(folders: dict[str, Path], tmp_path: Path) -> None:
    failing = Stub(lambda prompt: Completion("", "error", error="x") if "number 3" in prompt else Completion("ok"))
    assert run(folders, tmp_path / "one", model=failing)["errors"] == 1
    frame = pl.read_parquet(tmp_path / "one" / "answers.parquet")
    assert frame.height == 10 and frame["output"][3] == ""
    again = Stub()
    counts = run(folders, tmp_path / "two", model=again)
    assert (counts["cached"], len(again.prompts), counts["errors"]) == (9, 1, 0)


def test_progress_reaches_the_number_of_prompts(folders: dict[str, Path], tmp_path: Path) -> None:
    seen: list[tuple[float, float | None, str]] = []

    class Listener:
        def progress(self, done: float, total: float | None, what: str) -> None:
            seen.append((done, total, what))

        def metric(self, name: str, value: float, step: int | None = None) -> None: ...

        def note(self, message: str) -> None: ...

    run(folders, tmp_path / "out", model=Stub(), monitor=Listener())
    assert seen[-1] == (10, 10, "answers")


@pytest.mark.parametrize("answerer", ["openai:m", "openai:m@base"])
def test_the_server_is_paid_once(folders: dict[str, Path], tmp_path: Path, answerer: str) -> None:
    with ChatServer(reply=lambda prompt: "Rome", lacks="chat/completions" if "@" in answerer else "") as server:
        base = Endpoint(base_url=server.base_url, api="completions")
        llm = LlmOptions(base_url=server.base_url, endpoints={"base": base}, retries=0, concurrency=1)
        server.fail("number 7", Fault(status=500))
        first = run(folders, tmp_path / "one", answerer=answerer, llm=llm)
        assert (first["errors"], len(server.prompts)) == (1, 10)
        second = run(folders, tmp_path / "two", answerer=answerer, llm=llm)
        assert (second["errors"], second["cached"], len(server.prompts)) == (0, 9, 11)
    assert set(pl.read_parquet(tmp_path / "two" / "answers.parquet")["output"]) == {"Rome"}


def test_odd_replies_are_answers_all_the_same_and_are_paid_once(
    folders: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bodies = {
        "number 2?": b'{"choices": [{"message": {"content": "Ro\\ud83dme"}}], "usage": {"prompt_tokens": 1e999}}',
        "number 4?": b'{"choices": [{"message": {"content": "Rome"}}], "usage": {"completion_tokens": -1e30}}',
        "number 6?": b'{"choices": [{"message": {"content": {}}}], "usage": {}}',
    }

    def odd(prompt: str, *_: Any) -> OddReply | None:
        body = next((body for part, body in bodies.items() if part in prompt), None)
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
        return None if body is None else OddReply("", None, [head % len(body) + body])

    with ChatServer(reply=lambda prompt: "Rome", odd=odd) as server:
        for number in range(2):
            llm = LlmOptions(base_url=server.base_url, retries=0)
            counts = run(folders, tmp_path / f"out{number}", llm=llm, answerer="openai:stub")
            rows = pl.read_parquet(tmp_path / f"out{number}" / "answers.parquet")
            assert counts["finish"] == {"error": 1, "stop": 9} and counts["prompt_tokens"] < 1000
            assert rows["output"].to_list() == ["Rome"] * 2 + ["Ro\ufffdme"] + ["Rome"] * 3 + [""] + ["Rome"] * 3
            assert "the first is question q06: unreadable reply: a content that is no text (dict)" in caplog.text
        assert len(server.prompts) == 10


def test_counts_of_tokens_are_summed_beyond_thirty_two_bits(folders: dict[str, Path], tmp_path: Path) -> None:
    model = Stub(lambda prompt: Completion("Rome", "stop", 2**31 - 1, 2**31 - 1))
    counts = run(folders, tmp_path / "out", model=model)
    assert counts["prompt_tokens"] == counts["completion_tokens"] == 10 * (2**31 - 1)


def test_a_server_that_dies_keeps_what_was_paid(folders: dict[str, Path], tmp_path: Path) -> None:
    with ChatServer(reply=lambda prompt: "Rome") as server:
        llm = LlmOptions(base_url=server.base_url, retries=0, concurrency=1)
        server.always("number 5", Fault(status=401))
        with pytest.raises(EndpointError, match="status 401"):
            run(folders, tmp_path / "one", answerer="openai:m", llm=llm)
        assert 0 < open_cache(folders["cache"]).stats()["accepted"] < 10


def test_a_budget_stops_the_stage_and_a_higher_one_goes_on(folders: dict[str, Path], tmp_path: Path) -> None:
    with ChatServer(reply=lambda prompt: "Rome") as server:
        llm = LlmOptions(base_url=server.base_url, retries=0, concurrency=1)
        with pytest.raises(BudgetReached, match="max_calls"):
            run(folders, tmp_path / "one", answerer="openai:m", llm=llm, budget=Budget(BudgetOptions(max_calls=4)))
        assert len(server.prompts) == 4
        counts = run(folders, tmp_path / "two", answerer="openai:m", llm=llm, budget=Budget(BudgetOptions(max_calls=6)))
        assert (counts["cached"], counts["errors"], len(server.prompts)) == (4, 0, 10)


def test_knowledge_of_another_experiment_is_an_error(folders: dict[str, Path], tmp_path: Path) -> None:
    for place, name in enumerate(("oracle/triples", "rigel/rewritten")):
        with pytest.raises(ArtifactError, match=f"rigel/triples, not {name}"):
            run(folders, tmp_path / str(place), name=name, model=Stub())
    with pytest.raises(ArtifactError, match="knowledge.parquet is missing"):
        run(folders | {"knowledge": folders["cache"]}, tmp_path / "out", model=Stub())


def test_a_model_that_is_none_is_named(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="hf:"):
        run(folders, tmp_path / "out", answerer="hf:")
