"""The stage against a model on loopback: faults of form are read, faults of content rejected, nothing is paid twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import BudgetOptions, LlmOptions, WritingOptions
from kgqa_core.datasets.files.jsonl import read_question_file
from kgqa_core.errors import BudgetReached, InputError
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import FILE
from kgqa_core.metrics.text import GoldAnswers, contains
from kgqa_core.papers.ltgen import conv, qa
from kgqa_core.papers.ltgen.prompts import CONV, QA, conv_prompt, qa_prompt
from kgqa_core.papers.ltgen.write import write
from kgqa_core.store.artifacts import content_digest
from kgqa_core.workspace import Workspace
from tests.support.chat_server import ChatServer, Fault
from tests.support.ltgen import FAULTS, HARMLESS, given, reply

Place = tuple[Path, Path]


@pytest.fixture
def place(ltgen_kg: Path, ltgen_sample: Path) -> Place:
    return ltgen_kg, ltgen_sample


def answering(fault: str | None, first: str | None = None) -> Any:
    """Replies with a fault; with `first`, the first attempt has that one instead."""

    def say(prompt: str, drawn: Any) -> str:
        return reply(prompt, 0, (first if first is not None and drawn is None else fault) or "")

    return say


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(answering(None)) as running:
        yield running


def run(
    place: Place, out: Path, kind: str, server: ChatServer | None = None, cache: Path | None = None, **more: Any
) -> dict[str, Any]:
    out.mkdir(parents=True)
    llm = LlmOptions(base_url=server.base_url if server else None, timeout_seconds=10, retries=2, attempts=2,
                     concurrency=4, **more)  # fmt: skip
    if cache is not None:
        cache.mkdir(exist_ok=True)
    budget = Budget(llm.budget, llm.prices, cache / FILE if cache else None, kind) if server else None
    options = WritingOptions(writer="openai:stub" if server else "template", max_new_tokens=4000)
    return write(
        Workspace(out, cache=cache, budget=budget),
        kg=place[0],
        sample=place[1],
        kind=kind,
        options=options,
        llm=llm,
        seed=7,
    )  # type: ignore[arg-type]


def rejects(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "rejects.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_prompts_are_the_papers_to_the_letter() -> None:
    assert qa_prompt([("Oslo", "country"), ("A\nB", "r")]) == (
        "Create a question for each subject entity and relation pairs. The question should be in natural language and "
        "like what human user will ask. Your response format should be as follows:\nEntity Relation Pair: <<<entity "
        "relation pair chosen>>>\nQuestion: <<<generated question>>>\nEntity Relation Pairs:\n(Oslo, country)\n(A B, r)"
    )
    assert conv_prompt([("Oslo", "country", "Norway")]).endswith(
        "The user NEVER asks questions that can be answered without the selected triples! Your response format should "
        "be as follows:\nUser: <<<question>>>\nAgent: <<<answer>>>\nT: <<<selected triples>>>\n"
        "Knowledge Graph Triples:\n(Oslo, country, Norway)"
    )
    published = Path(__file__).resolve().parents[5] / "shared" / "PAPERS.md"
    if published.is_file():
        text = published.read_text(encoding="utf-8")
        for prompt, filled in ((QA, "[relation pairs]"), (CONV, "[triples]")):
            lines = prompt.split("\n")
            assert " / ".join([*lines[:-1], filled]) in text


def questions_of(place: Place, out: Path, kind: str, form: str) -> str:
    """The questions that are made of replies of a form."""
    with ChatServer(answering(form)) as running:
        run(place, out, kind, running)
    return (out / "questions.jsonl").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def clean(ltgen_kg: Path, ltgen_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The questions of replies without a fault, by kind."""
    out = tmp_path_factory.mktemp("clean")
    return {kind: questions_of((ltgen_kg, ltgen_sample), out / kind, kind, "") for kind in ("qa", "conv")}


@pytest.mark.parametrize("kind", [pytest.param("qa", marks=pytest.mark.slow), "conv"])
@pytest.mark.parametrize("form", HARMLESS)
def test_every_form_gives_the_questions_of_the_clean_one(
    place: Place, clean: dict[str, str], tmp_path: Path, kind: str, form: str
) -> None:
    assert questions_of(place, tmp_path / "made", kind, form) == clean[kind] and len(clean[kind].splitlines()) > 20


EXPECTED = {
    "foreign": ({qa.UNKNOWN_PAIR}, {conv.FOREIGN}),
    "foreign too": ({qa.UNKNOWN_PAIR}, {conv.FOREIGN}),
    "given away": (set(), {conv.GIVEN_AWAY}),
    "untold": (set(), {conv.UNTOLD}),
    "no reply": ({qa.NO_QUESTION}, {conv.NO_REPLY}),
    "agent first": (set(), {conv.AGENT_FIRST}),
    "repeated": ({qa.REPEATED}, {conv.DUPLICATE}),
    "nameless": ({qa.UNNAMED}, set()),
    "refusal": ({"completion"}, {"completion"}),
    "nonsense": ({"completion"}, {"completion"}),
}


@pytest.mark.parametrize("kind", ["qa", "conv"])
@pytest.mark.parametrize("fault", EXPECTED)
def test_every_fault_of_content_is_rejected_for_its_reason(place: Place, tmp_path: Path, kind: str, fault: str) -> None:
    with ChatServer(answering(None, first=fault)) as running:
        counts = run(place, tmp_path / "out", kind, running)
    expected = EXPECTED[fault][kind == "conv"]
    found = rejects(tmp_path / "out")
    first = [each for each in found if each["attempt"] == 1]
    if fault in ("refusal", "nonsense"):
        assert {each["what"] for each in first} == {"completion"}
        assert counts["spent_attempts"] == counts["prompts"] == len(first)
        assert not counts["given_up"], "the second attempt was good"
    else:
        assert expected <= {each["reason"] for each in found}
        assert not expected or len({each["entity"] for each in found if each["reason"] in expected}) > 5
    assert (tmp_path / "out" / "questions.jsonl").stat().st_size > 1000, "what was good is kept"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["qa", "conv"])
@pytest.mark.parametrize("fault", ["", *(name for name in FAULTS if name not in ("refusal", "nonsense"))])
def test_whatever_is_written_what_is_kept_holds(place: Place, tmp_path: Path, kind: str, fault: str) -> None:
    with ChatServer(answering(fault)) as running:
        run(place, tmp_path / "out", kind, running)
    seen = set()
    for row in read_question_file(tmp_path / "out" / "questions.jsonl"):
        ends = {key for head, _, tail in row["gold_triples"] for key in (head, tail)}
        assert row["gold_triples"] and set(row["answers"]) <= ends and set(row["topic_entities"]) <= ends
        assert not set(row["answers"]) & set(row["topic_entities"]) and row["answers"]
        roles = [role for role, _ in row["dialogue"]]
        assert roles == ["user", "agent"] * (len(roles) // 2)
        wording = (row["question"], str(row["dialogue"]))
        assert wording not in seen
        seen.add(wording)
        assert row["level"] and row["split"] == "test"
        assert (row["reference"] is not None) == (kind == "conv")


def test_no_answer_is_named_in_its_question(place: Place, tmp_path: Path) -> None:
    from kgqa_core.kg.store import KgStore

    with KgStore.open(place[0]) as store:
        names = store.names(range(80))
        called = {key: names[number] for number, key in store.entity_keys(range(80)).items()}
    for fault in ("given away", "", "repeated"):
        with ChatServer(answering(fault)) as running:
            run(place, tmp_path / f"out {fault}", "conv", running)
        for row in read_question_file(tmp_path / f"out {fault}" / "questions.jsonl"):
            assert not any(contains(GoldAnswers([[called[key]]]), row["question"]) for key in row["answers"])


def test_pairs_that_failed_are_replaced_in_a_second_round(place: Place, tmp_path: Path) -> None:
    with ChatServer(answering("no reply")) as running:
        counts = run(place, tmp_path / "out", "qa", running)
    rows = read_question_file(tmp_path / "out" / "questions.jsonl")
    by_entity = Counter(row["id"].split("/")[1] for row in rows)
    assert counts["prompts"] > counts["entities"] and max(by_entity.values()) <= 3
    assert len(rows) > 2 * len(by_entity) - 3, "three were asked for, one of each prompt failed"
    counted = Counter(pair for prompt in set(running.prompts) for pair in given(prompt))
    assert set(counted.values()) == {1}, "no pair is in two prompts"


def test_small_talk_is_no_question_and_no_fault(place: Place, tmp_path: Path) -> None:
    with ChatServer(answering("small talk")) as running:
        run(place, tmp_path / "out", "conv", running)
    table = json.loads((tmp_path / "out/statistics.json").read_text())
    assert table["turns_without_triples"] == table["total"]["entities"] and conv.NO_TRIPLE not in table["rejects"]
    dialogue = json.loads((tmp_path / "out/dialogues.jsonl").read_text().splitlines()[0])
    last = {"user": "Thank you!", "agent": "You are welcome.", "triples": [], "question": False}
    number = len(dialogue["turns"])
    assert dialogue["turns"][-1] == last | {"number": number, "why_not": conv.NO_TRIPLE}


def test_statistics_count_what_is_in_the_files(place: Place, tmp_path: Path) -> None:
    for kind in ("qa", "conv"):
        run(place, tmp_path / kind, kind)
        rows = read_question_file(tmp_path / kind / "questions.jsonl")
        table = json.loads((tmp_path / kind / "statistics.json").read_text())
        counted = "questions" if kind == "qa" else "turns"
        assert table["total"][counted] == len(rows)
        for level, row in table["levels"].items():
            mine = [each for each in rows if each["level"] == level]
            assert row[counted] == len(mine)
            for group, number in row["by_triples"].items():
                wanted = [
                    n for each in mine if (n := len(each["gold_triples"])) and (str(n) if n < 4 else ">3") == group
                ]
                assert number == len(wanted)
        entities = {each["id"].split("/")[1] for each in rows}
        assert table["total"]["entities_asked" if kind == "qa" else "dialogues"] == len(entities)
        found = Counter(each["reason"] for each in rejects(tmp_path / kind))
        found.pop(conv.NO_TRIPLE, None)
        assert table["rejects"] == dict(found)
        card = (tmp_path / kind / "README.md").read_text(encoding="utf-8")
        assert f"| all | {table['total']['entities']} |" in card and "**This is the degree, not page views**" in card


def test_a_second_run_asks_nothing_and_makes_the_same(place: Place, tmp_path: Path, server: ChatServer) -> None:
    for kind in ("qa", "conv"):
        counts = [run(place, tmp_path / f"{kind}{number}", kind, server, tmp_path / "cache") for number in (1, 2)]
        assert counts[0] == counts[1]
        assert content_digest(tmp_path / f"{kind}1") == content_digest(tmp_path / f"{kind}2")
    assert len(server.prompts) == len(set(server.prompts))


def test_attempts_are_bounded_and_given_up_ones_are_told(place: Place, tmp_path: Path, server: ChatServer) -> None:
    server.always("Book 2", Fault(content="%%% ###"))
    server.always("Book 3", Fault(content=""))
    server.always("Book 4", Fault(content="", refusal="I will not."))
    counts = run(place, tmp_path / "out", "conv", server, tmp_path / "cache")
    assert counts["given_up"] == 3 and counts["spent_attempts"] == 6
    counted = Counter(server.prompts)
    assert sorted(counted.values())[-3:] == [2, 2, 2]
    found = [each for each in rejects(tmp_path / "out") if each["what"] == "completion"]
    assert Counter((each["reason"], each["attempt"]) for each in found) == {
        ("nothing usable", 1): 1, ("nothing usable", 2): 1, ("empty", 1): 1, ("empty", 2): 1,
        ("refused", 1): 1, ("refused", 2): 1,
    }  # fmt: skip
    assert conv.NO_TURN in {each["reason"] for each in rejects(tmp_path / "out") if each["what"] == "dialogue"}


def test_prompts_on_which_the_endpoint_fails_are_told(place: Place, tmp_path: Path, server: ChatServer) -> None:
    server.always("Book 2", Fault(status=400))
    counts = run(place, tmp_path / "out", "conv", server)
    assert counts["failed"] == 1
    assert [each["entity"] for each in rejects(tmp_path / "out") if each["reason"] == "endpoint failed"] == ["Q2"]


def test_a_truncated_completion_keeps_its_whole_turns(place: Place, tmp_path: Path, server: ChatServer) -> None:
    (tmp_path / "out").mkdir()
    llm = LlmOptions(base_url=server.base_url, attempts=1)
    options = WritingOptions(writer="openai:stub", max_new_tokens=60)
    counts = write(
        Workspace(tmp_path / "out"), kg=place[0], sample=place[1], kind="conv", options=options, llm=llm, seed=7
    )
    assert counts["truncated"] > 5 and conv.CUT in {each["reason"] for each in rejects(tmp_path / "out")}
    assert read_question_file(tmp_path / "out" / "questions.jsonl")


def test_the_budget_stops_the_writer_before_it_is_exceeded(place: Place, tmp_path: Path, server: ChatServer) -> None:
    limits = BudgetOptions(max_calls=3)
    with pytest.raises(BudgetReached, match="3 of 3 calls"):
        run(place, tmp_path / "out", "qa", server, tmp_path / "cache", budget=limits)
    assert len(server.prompts) == 3
    counts = run(place, tmp_path / "again", "qa", server, tmp_path / "cache")
    assert counts["questions"] and len(server.prompts) == len(set(server.prompts))


def test_a_writer_that_writes_nothing_good_is_said(place: Place, tmp_path: Path) -> None:
    with ChatServer(answering("nonsense")) as running, pytest.raises(InputError, match="not one good turn"):
        run(place, tmp_path / "out", "conv", running)


def test_shares_of_entities_are_for_training(place: Place, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    options = WritingOptions(train_share=0.4, dev_share=0.3)
    write(
        Workspace(tmp_path / "out"), kg=place[0], sample=place[1], kind="qa", options=options, llm=LlmOptions(), seed=4
    )
    splits: dict[str, set[str]] = {}
    for row in read_question_file(tmp_path / "out" / "questions.jsonl"):
        splits.setdefault(row["id"].split("/")[1], set()).add(row["split"])
    assert all(len(found) == 1 for found in splits.values())
    assert set().union(*splits.values()) == {"train", "dev", "test"}
