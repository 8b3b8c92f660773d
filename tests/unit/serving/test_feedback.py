"""Feedback is on answers that were given, one verdict of a client on each, and trains when the owner confirms it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kgqa_core.answering.reply import Answer, AnswerTopic
from kgqa_core.config import KgOptions
from kgqa_core.datasets.files.jsonl import read_question_file
from kgqa_core.errors import InputError, QuestionFileError, StorageError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.serving import feedback
from kgqa_core.serving.feedback import (
    FILE,
    Feedback,
    FeedbackRefused,
    FeedbackStore,
    IssuedAnswer,
    client_of,
    confirmed_questions,
)
from kgqa_core.serving.feedback_examples import (
    TrainingExample,
    read_examples,
    reviewed,
    training_examples,
    write_examples,
)
from kgqa_core.serving.messages import issued
from kgqa_core.serving.service import Served
from kgqa_core.store.artifacts import Home
from kgqa_core.workspace import Workspace


@pytest.fixture
def store(tmp_path: Path) -> FeedbackStore:
    return FeedbackStore(tmp_path / "serve")


def issue(
    store: FeedbackStore,
    question: str = "Capital of Bolivia?",
    answers: Sequence[str] = ("La Paz",),
    topic: str = "Bolivia",
) -> str:
    [name] = store.issue([IssuedAnswer(question, (topic,), answers, "(JOIN (R capital) <Bolivia>)")])
    assert name is not None
    return name


def down(store: FeedbackStore, name: str, *right: str, client: str = "a") -> int:
    return store.add(Feedback(name, "down", right or None), client).number


def refused(store: FeedbackStore, said: Feedback, client: str = "a") -> tuple[int, str]:
    with pytest.raises(FeedbackRefused) as fault:
        store.add(said, client)
    return fault.value.status, str(fault.value)


def test_nothing_trains_until_the_owner_confirms_it_however_many_say_it(store: FeedbackStore) -> None:
    answers = [issue(store) for _ in range(30)]
    numbers = [down(store, name, "X", client=f"client {n}") for n, name in enumerate(answers)]
    assert len(set(numbers)) == 30 and training_examples(store.rows()) == []
    number = down(store, issue(store), "Sucre")
    assert store.confirm(number).answers == ("Sucre",)
    [example] = training_examples(store.rows())
    assert (example.question, example.topics, example.answers) == ("Capital of Bolivia?", ("Bolivia",), ("Sucre",))
    assert example.form is None and not example.held_out


def test_a_verdict_names_an_answer_that_this_home_gave(store: FeedbackStore, tmp_path: Path) -> None:
    other = FeedbackStore(tmp_path / "another")
    for name in ("invented", "", issue(other), issue(store)[:-1], "' OR 1 --"):
        assert refused(store, Feedback(name, "up"))[0] == 404
    assert store.rows() == []
    name = issue(store)
    store.close()
    again = FeedbackStore(tmp_path / "serve")
    assert again.add(Feedback(name, "up"), "a").number == 1, "ids outlive the server"
    assert again.confirm(1).form == "(JOIN (R capital) <Bolivia>)"


def test_a_client_has_one_verdict_on_an_answer_and_a_changed_one_another_number(store: FeedbackStore) -> None:
    name = issue(store)
    first = down(store, name)
    assert down(store, name) == first, "the same again changes nothing"
    second = down(store, name, "Sucre")
    assert second > first and [row["id"] for row in store.rows()] == [second]
    with pytest.raises(InputError, match=f"no feedback {first};"):  # what the owner has seen is not there any more
        store.confirm(first)
    store.confirm(second)
    assert refused(store, Feedback(name, "down", ("X",)))[0] == 409
    assert [example.answers for example in training_examples(store.rows())] == [("Sucre",)]
    store.remove([second])
    assert refused(store, Feedback(name, "down", ("X",)))[0] == 404, "its answer takes no feedback any more"
    assert down(store, issue(store), "X") > second, "numbers are not used again"


def test_eight_threads_leave_one_verdict_of_a_client_on_an_answer(store: FeedbackStore, tmp_path: Path) -> None:
    name, beside = issue(store), FeedbackStore(tmp_path / "serve")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: down((store, beside)[n % 2], name, f"right {n}"), range(40)))
    assert len(store.rows()) == 1


def test_a_flood_ends_at_the_limits(store: FeedbackStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback.limits, "FEEDBACK_LIMITS", ((3, "a minute of a client"), (5, "a day"), (6, "of all")))
    minutes = iter([*(60 * [1, 1, 1, 1, 2, 2, 2][n] for n in range(7)), *[180] * 9])
    monkeypatch.setattr(feedback.time, "time", lambda: next(minutes))
    name = issue(store)
    for _ in range(3):
        down(store, name, "b")
    assert refused(store, Feedback(name, "up")) == (
        429,
        "there may be 3 verdicts and names a minute of a client; give this one later",
    )
    for _ in range(2):
        down(store, name, "b")
    assert "a day" in refused(store, Feedback(name, "up"))[1]
    for n in range(6):
        down(store, name, "b", client=f"other {n}")
    assert "of all" in refused(store, Feedback(name, "up"), "yet another")[1]
    monkeypatch.undo()
    monkeypatch.setattr(feedback.limits, "FEEDBACK_PENDING", len(store.rows()))
    assert refused(store, Feedback(issue(store), "up"), "b")[0] == 429
    assert refused(store, Feedback(name, "down", ("x" * 20_000,)), "b")[0] == 413


def test_what_is_remembered_of_answers_is_bounded(store: FeedbackStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback.limits, "ISSUED_ANSWERS", 5)
    names = [issue(store) for _ in range(9)]
    assert refused(store, Feedback(names[3], "up"))[0] == 404
    assert down(store, names[4], "Sucre")
    assert store.issue([IssuedAnswer("q" * 20_000), IssuedAnswer("q", (), ["x" * 99] * 999)])[0] is None
    [long] = store.issue([IssuedAnswer("q", (), ["x" * 99] * 999)])
    assert long is not None and down(store, long, "y")
    with pytest.raises(InputError, match="more than are remembered"):
        store.add(Feedback(long, "up"), "a")
    monkeypatch.setattr(feedback.limits, "ISSUED_DAYS", -1)
    assert refused(store, Feedback(issue(store), "up"))[0] == 404


@pytest.mark.parametrize(
    ("question", "topic", "right", "named"),
    [("  ", "Bolivia", ["X"], "'question' is empty"), ("q", " ", ["X"], "topic_entities"), ("q", "t", [" "], "answers"),
     ("q", "t", ["\ud800"], "surrogate"), ("q\ud800", "t", ["X"], "surrogate"),
     ("q", "t", ["\u200b \u2060"], "shows nothing"), ("q\0", "t", ["X"], "NUL"), ("q", "t", ["X\0"], "NUL"),
     ("q " * 900, "t", ["X"], "900 words"), ("q", "t" * 2000, ["X"], "2,000 characters")],
)  # fmt: skip
def test_what_a_question_file_could_not_hold_is_refused_at_the_door(
    store: FeedbackStore, question: str, topic: str, right: list[str], named: str
) -> None:
    name = issue(store, question, topic=topic)
    with pytest.raises(InputError, match=named):
        down(store, name, *right)
    assert store.rows() == []


def test_feedback_that_contradicts_itself_is_refused(store: FeedbackStore) -> None:
    for said, match in ((Feedback("", "up", ("b",)), "comes with"), (Feedback("", "down", ()), "comes with"),
                        (Feedback("", "up"), "confirms answers")):  # fmt: skip
        name = issue(store, answers=() if said.correction is None else ("a",))
        with pytest.raises(InputError, match=match):
            store.add(Feedback(name, said.verdict, said.correction), "a")
    assert store.rows() == []
    with pytest.raises(InputError, match="names no right answer"):
        store.confirm(down(store, issue(store)))
    for other in (99, 0, -1, 10**40, -(10**40)):
        for change in (store.confirm, lambda number: store.remove([number]), lambda number: store.quarantine([number])):
            with pytest.raises(InputError, match=f"no feedback {other};"):
                change(other)


def test_entries_go_by_number_client_and_day(store: FeedbackStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for day, client in (("2026-01-01", "a"), ("2026-01-02", "b"), ("2026-01-03", "a"), ("2026-01-04", "c")):
        monkeypatch.setattr(feedback, "_day", lambda ahead=0, day=day: day)
        store.confirm(down(store, issue(store, f"Capital of {day}?", topic=day), "X", client=client))
    assert store.quarantine(client="a", since="2026-01-02") == 1
    assert [row["state"] for row in store.rows()] == ["confirmed", "confirmed", "quarantined", "confirmed"]
    assert len(training_examples(store.rows())) == 3
    assert store.quarantine(until="2026-01-02") == 2 and store.remove([1, 4, 99]) == 2
    assert [row["id"] for row in store.rows()] == [2, 3]
    for nothing in ({"client": "z"}, {}):
        with pytest.raises(InputError, match="no feedback with client 'z'|name the entries"):
            store.remove(**nothing)
    store.confirm(2)
    assert len(training_examples(store.rows())) == 1


def test_every_third_question_is_held_out_with_its_near_duplicates(store: FeedbackStore, tmp_path: Path) -> None:
    asked = [
        ("Capital of Bolivia?", "Bolivia"), ("Capital of Peru?", "Peru"), ("Capital of Chad?", "Chad"),
        ("the capital, of CHAD", "Chad"), ("What is the capital of Chad?", "Chad"), ("саpital of Chad", "Chad"),
        ("Seat of government in Peru?", "Peru"), ("Capital of Fiji", "Fiji"),
    ]  # fmt: skip
    for number, (question, topic) in enumerate(asked):
        store.confirm(down(store, issue(store, question, topic=topic), f"city of {topic}", client=str(number)))
    examples = training_examples(store.rows())
    held = {example.question for example in examples if example.held_out}
    assert held == {"the capital, of CHAD", "What is the capital of Chad?", "саpital of Chad"}
    rows = read_question_file(write_examples(tmp_path, examples))
    assert {row["question"] for row in rows if row["split"] == "test"} == held and len(rows) == 7
    assert write_examples(tmp_path, examples[::-1]) == write_examples(tmp_path, examples)


def test_a_flood_of_one_client_makes_the_server_forget_its_own_answers(
    store: FeedbackStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback.limits, "ISSUED_ANSWERS", 6)
    first = [store.issue([IssuedAnswer("q", (), ["a"])], client) for client in "abca"]
    flood = store.issue([IssuedAnswer("q", (), ["a"])] * 256, "d")
    for [name] in first:
        assert name is not None and store.add(Feedback(name, "up"), "a")
    assert [store.add(Feedback(str(name), "up"), "d").verdict for name in flood[-2:]] == ["up", "up"]
    assert refused(store, Feedback(str(flood[-3]), "up"))[0] == 404


def test_a_question_that_lives_on_earlier_turns_is_kept_and_does_not_train(store: FeedbackStore) -> None:
    names = store.issue([IssuedAnswer("And its money?", (), ["Sol"], earlier_turns=2),
                         IssuedAnswer("Money of Peru?", ("Peru",), ["Sol"], earlier_turns=2)])  # fmt: skip
    first, second = (store.add(Feedback(str(name), "up"), "a").number for name in names)
    with pytest.raises(InputError, match="follows other turns"):
        store.confirm(first)
    assert store.confirm(second).topics == ("Peru",), "it says itself what it is about"


def test_what_the_owner_should_know_before_confirming_is_said(store: FeedbackStore, tmp_path: Path) -> None:
    (tmp_path / "g.tsv").write_text("Norland\tcapital\tNorland City\n", encoding="utf-8")
    (tmp_path / "kg").mkdir()
    build(Workspace(tmp_path / "kg"), options=KgOptions(files=(str(tmp_path / "g.tsv"),)))
    numbers = [
        down(store, issue(store, question, topic=topic), *right)
        for question, topic, right in (
            ("Money of Norland?", "Norland", ["Norland City", "12"]),
            ("Money of Nоrland?", "Norland", ["Norlund City"]),
            ("Деньги Норландии?", "gone", ["Nоrland City", "Norland City"]),
        )
    ]
    with KgStore.open(tmp_path / "kg") as graph:
        fine, cyrillic, other = reviewed(store.rows(), graph)
        assert fine == (["Norland"], [])
        assert cyrillic[1] == [
            "Cyrillic and Latin letters, which look alike, stand in one text: 'Nоrland'",
            "not in the graph: 'Norlund City'; it will teach nothing",
        ]
        assert other[0] == ["gone"] and len(other[1]) == 2 and "nothing" not in other[1][1]
        assert "did you mean 'Norland City'?" in reviewed(store.rows()[1:2], graph)[0][1][1]
    assert len(reviewed(store.rows(), None)) == len(numbers)


def test_files_of_former_examples_are_removed_after_a_day(tmp_path: Path) -> None:
    def write(answer: str) -> Path:
        return write_examples(tmp_path, [TrainingExample("q", ("t",), (answer,))])

    old, young = write("a"), write("b")
    os.utime(old, (1, 1))
    newest = write("c")
    assert {*tmp_path.iterdir()} == {newest, young}


def test_an_address_counts_as_one_client_and_so_do_the_addresses_of_an_ipv6_network() -> None:
    assert client_of("2001:db8::1", None) == client_of("2001:db8::ffff:2", None) != client_of("2001:db8:0:1::1", None)
    assert client_of("::ffff:10.0.0.1", None) != client_of("::ffff:10.0.0.2", None)


def test_all_of_this_machine_and_all_with_the_token_are_one_client() -> None:
    assert {client_of(host, None) for host in ("127.0.0.1", "127.8.9.1", "::1", "localhost")} == {"loopback"}
    assert client_of("10.0.0.1", None) != client_of("10.0.0.2", None) and "10.0.0.1" not in client_of("10.0.0.1", None)
    assert {client_of(host, "secret") for host in ("10.0.0.1", "127.0.0.1", "")} == {"token"}


def test_a_file_that_is_no_database_and_one_that_is_gone_are_named(store: FeedbackStore, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database" * 500)
    with pytest.raises(StorageError, match=r"feedback\.sqlite cannot be used"):
        FeedbackStore(tmp_path)
    name = issue(store)
    store.path.unlink()
    for _ in range(2):
        with pytest.raises(StorageError, match=r"feedback\.sqlite cannot be used"):
            store.add(Feedback(name, "up"), "a")
        FeedbackStore(store.path.parent)  # another one in its place is not written to either


@pytest.mark.parametrize(
    ("question", "topic", "named"),
    [("Which money is used in Peru?", AnswerTopic("Q1", "Lima"), False),
     ("Which money is used in Peru?", AnswerTopic("Q2", "Peru"), True),
     ("Which money is used in PERU?", AnswerTopic("Q2", "Republic of Peru", "Peru", 0.5), True),
     ("And its money?", AnswerTopic("Q2", "Peru", "Peru", 0.5), False)],
)  # fmt: skip
def test_a_topic_that_the_question_does_not_name_teaches_nothing(
    question: str, topic: AnswerTopic, named: bool
) -> None:
    answer = Answer("1", question, "Sol", answers=("Sol",), topics=(topic,), form="(JOIN (R money) Q)")
    record = issued(Served(answer, "run", 0.0, 0.0, 1))
    assert (list(record.topics), record.form) == (([topic.key], answer.form) if named else ([], None))


def test_invented_ids_use_up_nothing_of_what_a_client_may_say(store: FeedbackStore) -> None:
    for _ in range(70):
        assert refused(store, Feedback("invented", "up"))[0] == 404
    assert down(store, issue(store), "Sucre")


@pytest.mark.parametrize("text", ["\u3164", "\u2800 ", "\u034f\u0301"])
def test_a_correction_that_shows_nothing_is_refused(store: FeedbackStore, text: str) -> None:
    with pytest.raises(InputError, match="shows nothing"):
        down(store, issue(store), text)


def test_no_other_user_of_the_machine_reads_the_feedback(store: FeedbackStore) -> None:
    down(store, issue(store), "Sucre")
    files = [path for path in store.path.parent.iterdir() if path.stat().st_size]
    assert len(files) >= 2 and not any(path.stat().st_mode & 0o077 for path in files)


def test_corrections_of_a_file_are_confirmed_and_take_the_place_of_former_ones(
    store: FeedbackStore, tmp_path: Path
) -> None:
    file = tmp_path / "corrections.jsonl"
    rows = [
        {"id": "a", "question": "Capital of Bolivia?", "topic_entities": ["Bolivia"], "answers": ["Sucre"]},
        {"id": "b", "question": "How many?", "s_expression": "(COUNT (JOIN capital x))"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for right in ("Sucre", "La Paz"):
        file.write_text(file.read_text().replace("Sucre", right))
        store.confirm_examples(read_examples(file))
    assert [(row["state"], row["client"]) for row in store.rows()] == [("confirmed", "file")] * 2
    [example] = training_examples(store.rows())
    assert example.answers == ("La Paz",)
    counted, capital = sorted(confirmed_questions(Home(tmp_path)), key=lambda one: one.text, reverse=True)
    assert counted.s_expression == "(COUNT (JOIN capital x))" and capital.topic_keys == ("Bolivia",)
    store.quarantine(client="file")
    assert confirmed_questions(Home(tmp_path)) == []


def test_a_file_of_corrections_that_says_nothing_right_is_refused_with_its_faults(tmp_path: Path) -> None:
    file = tmp_path / "corrections.jsonl"
    for row, fault in (
        ({"id": "a", "question": "Why?"}, "question 'a': neither answers nor s_expression"),
        ({"id": "b", "question": "Why?", "s_expression": "(COUNT"}, "question 'b': "),
        ({"question": "Why?", "answers": ["x"]}, "line 1: field 'id' is missing"),
    ):
        file.write_text(json.dumps(row))
        with pytest.raises(QuestionFileError, match=re.escape(fault)):
            read_examples(file)
