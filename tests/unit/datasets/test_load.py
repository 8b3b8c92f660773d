"""The stage: splits, counts, leakage, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import QuestionsOptions
from kgqa_core.datasets.derived.gold_forms import GIVEN, candidates
from kgqa_core.datasets.derived.splits import read_leakage
from kgqa_core.datasets.files.jsonl import read_question_file
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import input_files, load, read_rejects, sizes_of
from kgqa_core.errors import ArtifactError, QuestionFileError
from kgqa_core.monitor import Quiet
from kgqa_core.workspace import Workspace


def row(number: int, topic: str = "France", answer: str = "Madrid", **more: Any) -> dict[str, Any]:
    return {"id": f"q{number}", "question": f"text {number}", "topic_entities": [topic], "answers": [answer], **more}


class Notes(Quiet):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, message: str) -> None:
        self.texts.append(message)


def run(out: Path, kg: Path, path: Path, seed: int = 7, **options: Any) -> dict[str, Any]:
    out.mkdir(exist_ok=True)
    return load(Workspace(out), kg=kg, options=QuestionsOptions(path=str(path), **options), seed=seed)


def test_counts_and_files(tmp_path: Path, kg: Path, question_file: Callable[..., Path]) -> None:
    path = question_file(
        row(1, split="train", complexity="generic"),
        row(2, topic="Atlantis", split="train"),
        row(3, answer="Atlantis", split="test"),
        row(4, split="dev"),
    )
    counts = run(tmp_path / "out", kg, path)
    assert counts["questions"] == {"train": 2, "dev": 1, "test": 1}
    assert counts["n_unlinkable"] == {"train": 1, "dev": 0, "test": 1}
    assert counts["by_complexity"] == {"-": 3, "generic": 1}
    lines = [json.loads(line) for line in (tmp_path / "out" / "unlinkable.jsonl").read_text().splitlines()]
    assert [(line["id"], line["question"]) for line in lines] == [("q2", "text 2"), ("q3", "text 3")]
    assert "topic entity 'Atlantis' is not in the graph" in lines[0]["reason"]
    assert [question.id for question in read_questions(tmp_path / "out")] == ["q1", "q2", "q3", "q4"]


def test_a_question_with_sparql_has_its_gold_form(tmp_path: Path, kg: Path, question_file: Callable[..., Path]) -> None:
    path = question_file(
        row(1, split="train", sparql="SELECT ?x { <http://x/France> <http://x/capital> ?x }"),
        row(2, split="train", sparql="SELECT ?x ?y { ?x <http://x/capital> ?y }"),
    )
    monitor = Notes()
    load(Workspace(tmp_path, monitor=monitor), kg=kg, options=QuestionsOptions(path=str(path)), seed=7)
    one, other = read_questions(tmp_path)
    form = "(JOIN (R http://x/capital) http://x/France)"
    assert [(str(each.form), each.origin) for each in candidates(one, ["France"])] == [(form, GIVEN)]
    assert one.relation_paths == (("http://x/capital",),)
    assert other.s_expression is None and not other.relation_paths
    (note,) = (text for text in monitor.texts if "no logical form writes" in text)
    assert note.startswith("1 questions have a query") and "q2: sparql: " in note and "several answers" in note


def test_same_seed_same_bytes(tmp_path: Path, kg: Path, question_file: Callable[..., Path]) -> None:
    topics = ["France", "Spain", "http://x/Italy", "http://x/Texas", "Madrid", "http://x/Rome"]
    path = question_file(*[row(n, topic=topics[n % 6]) for n in range(60)])
    first, again = run(tmp_path / "a", kg, path), run(tmp_path / "b", kg, path)
    assert first == again
    for name in ("questions.parquet", "unlinkable.jsonl", "leakage.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_without_splits_topics_are_divided(tmp_path: Path, kg: Path, question_file: Callable[..., Path]) -> None:
    topics = ["France", "Spain", "http://x/Italy", "http://x/Texas", "Madrid", "http://x/Rome"]
    counts = run(tmp_path / "out", kg, question_file(*[row(n, topic=topics[n % 6]) for n in range(60)]))
    assert min(counts["questions"].values()) > 0
    splits: dict[tuple[int, ...], set[str]] = {}
    for question in read_questions(tmp_path / "out"):
        splits.setdefault(question.topic_entities, set()).add(question.split)
    assert all(len(found) == 1 for found in splits.values())


def test_leakage_is_measured(tmp_path: Path, kg: Path, question_file: Callable[..., Path]) -> None:
    path = question_file(
        row(1, split="train", relation_path=["http://x/capital"]),
        {**row(2, split="test"), "question": "text  1"},
        row(3, split="test", relation_path=["http://x/capital"]),
        row(4, split="test", topic="Spain", relation_path=["http://x/capital"]),
        {**row(5, split="dev"), "question": "text 1"},
    )
    counts = run(tmp_path / "out", kg, path)
    table = read_leakage(tmp_path / "out")
    assert table["leaked"] == ["q2", "q3"]
    assert table["test"] == {"same_text": ["q2"], "same_topic_and_path": ["q3"]}
    assert table["dev"]["same_text"] == ["q5"]
    assert counts["leaked"] == 2 and counts["leakage"]["test_same_text"] == 1
    with pytest.raises(ArtifactError, match="leakage.json cannot be read"):
        read_leakage(tmp_path)


def test_training_on_dev_holds_out_a_tenth(tmp_path: Path, kg: Path, question_file: Callable[..., Path]) -> None:
    rows = [row(n, split="dev" if n < 40 else "test" if n < 50 else "train") for n in range(60)]
    counts = run(tmp_path / "out", kg, question_file(*rows), train_from="dev")
    assert counts["questions"] == {"train": 36, "dev": 4, "test": 10}
    with pytest.raises(QuestionFileError, match="no dev questions to train on"):
        run(tmp_path / "out", kg, question_file(row(1, split="test")), train_from="dev")


def test_hops_are_chosen(tmp_path: Path, kg: Path, question_file: Callable[..., Path]) -> None:
    path = question_file(row(1, hops=1), row(2, hops=2), row(3))
    assert sum(run(tmp_path / "out", kg, path, hops=(2,))["questions"].values()) == 1
    with pytest.raises(QuestionFileError, match="no question is left"):
        run(tmp_path / "out", kg, path, hops=(3,))


def test_it_fails_only_when_every_topic_is_unknown(
    tmp_path: Path, kg: Path, question_file: Callable[..., Path]
) -> None:
    with pytest.raises(QuestionFileError, match="none of 2 questions has a topic entity of this graph") as caught:
        run(tmp_path / "out", kg, question_file(row(1, topic="Frence"), row(2, topic="Atlantis")))
    assert "did you mean 'France'?" in str(caught.value)
    assert not list((tmp_path / "out").iterdir())


def test_questions_that_are_only_asked_may_come_without_topics(
    tmp_path: Path, kg: Path, question_file: Callable[..., Path]
) -> None:
    bare, wrong = {"id": "a", "question": "where is it?"}, {"id": "b", "question": "?", "topic_entities": ["Frence"]}
    (tmp_path / "out").mkdir()
    notes = Notes()
    options = QuestionsOptions(path=str(question_file(bare, wrong)), unscored=True)
    load(Workspace(tmp_path / "out", monitor=notes), kg=kg, options=options, seed=7)
    assert notes.texts[1] == "1 of 2 questions name no topic entity: their text is searched for it"
    assert notes.texts[2].startswith("1 of 2 questions name a topic entity that is not in this graph. First: b: ")
    assert "score" not in "".join(notes.texts)
    [first, second] = read_questions(tmp_path / "out")
    assert (first.topic_keys, first.unlinkable) == ((), "no topic entity")
    assert "Frence" in (second.unlinkable or "")
    with pytest.raises(QuestionFileError, match="has a topic entity of this graph"):
        run(tmp_path / "lost", kg, question_file(wrong), unscored=True)


def test_questions_without_an_answer_are_listed_and_not_scored(
    kg: Path, question_file: Callable[..., Path], tmp_path: Path
) -> None:
    lost = {**row(2), "answers": [], "answerable": False, "reason": "no fact", "missing": "mayor"}
    options = QuestionsOptions(path=str(question_file(row(1), lost)))
    out = tmp_path / "out"
    out.mkdir()
    counts = load(Workspace(out), kg=kg, options=options, seed=7)
    assert counts["unanswerable"] == 1 and sum(counts["questions"].values()) == 1
    listed = json.loads((out / "unanswerable.jsonl").read_text(encoding="utf-8"))
    assert (listed["id"], listed["reason"], listed["missing"]) == (lost["id"], "no fact", "mayor")
    assert sum(sizes_of(read_question_file(Path(str(options.path))), options, 7).values()) == 1
    everything = load(Workspace(out), kg=kg, options=options.model_copy(update={"unscored": True}), seed=7)
    assert everything["questions"]["test"] == 2 and "unanswerable" not in everything


def test_questions_without_an_answer_are_left_out_where_that_is_wanted(
    tmp_path: Path, kg: Path, question_file: Callable[..., Path]
) -> None:
    path = question_file(row(1, split="train"), {**row(2, split="test"), "answers": []}, row(3, split="test"))
    counts = run(tmp_path / "kept", kg, path)
    assert counts["questions"]["test"] == 2 and "without_answer" not in counts
    counts = run(tmp_path / "out", kg, path, require_answers=True)
    assert (counts["questions"]["test"], counts["without_answer"]) == (1, 1)
    assert [question.id for question in read_questions(tmp_path / "out")] == ["q1", "q3"]
    with pytest.raises(QuestionFileError, match="none of 1 questions has an answer.*require_answers=false keeps them"):
        run(tmp_path / "none", kg, question_file({**row(2, split="test"), "answers": []}), require_answers=True)


def test_input_files_are_what_is_read(tmp_path: Path, question_file: Callable[..., Path]) -> None:
    path = question_file(row(1))
    assert input_files(QuestionsOptions(path=str(path))) == [path]
    assert input_files(QuestionsOptions(source="atlas")) == []
    with pytest.raises(QuestionFileError, match=r"questions.path is not set"):
        input_files(QuestionsOptions())
    with pytest.raises(QuestionFileError, match="does not exist"):
        input_files(QuestionsOptions(path=str(tmp_path / "nothing.jsonl")))
    with pytest.raises(QuestionFileError, match="'metqa' is unknown; did you mean 'metaqa'.*jsonl, atlas, metaqa"):
        input_files(QuestionsOptions(source="metqa"))


def test_a_question_beyond_the_limits_is_left_out_and_listed_and_the_others_stay(
    tmp_path: Path, kg: Path, question_file: Callable[..., Path]
) -> None:
    long = {**row(2, split="test"), "question": "a" * 1_000_000}
    counts = run(tmp_path / "out", kg, question_file(row(1, split="train"), long))
    assert counts["rejects"] == 1 and counts["questions"] == {"train": 1, "dev": 0, "test": 0}
    [reject] = read_rejects(tmp_path / "out")
    assert reject.row == "q2" and "1,000,000 characters, and may have 4,000" in reject.reason
    with pytest.raises(QuestionFileError, match="q2: the question has 1,000,000.*no question is left"):
        run(tmp_path / "out2", kg, question_file(long))
