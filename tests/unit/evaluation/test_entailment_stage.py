"""The entailment stage: what is compared with what, by a judge whose every verdict is known."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kgqa_core.config import EntailmentOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.errors import ArtifactError
from kgqa_core.evaluation import entailment
from kgqa_core.evaluation.entailment import entail, has_references
from kgqa_core.evaluation.long_tail import read_entailment
from kgqa_core.evaluation.nli import open_judge
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE
from tests.support.models import save_classifier

QUESTIONS = [
    Question("a", "Where was Ann born?", reference="Ann was born in Oslo."),
    Question("b", "And Bo?", reference="Bo was born in Rome. He lives in Bonn."),
    Question("c", "What is asked without a reference?"),
    Question("d", "What is lost?", reference="It is lost."),
    Question("e", "What is said to nothing?", reference="Something."),
]
ANSWERS = {
    "a": "Ann was born in Oslo.",
    "b": "Bo was born in Rome. He does not live in Bonn.",
    "c": "x",
    "e": " ",
}


@dataclass
class WordJudge:
    """Entails what is a part of the premise, contradicts it where the premise says not; a token is a word."""

    room: int = 40
    asked: list[tuple[str, str]] = field(default_factory=list)

    def lengths(self, texts: list[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def scores(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        self.asked += pairs
        return np.array([[hypothesis in premise, " not " in premise] for premise, hypothesis in pairs], dtype=float)


def write_answers(folder: Path, answers: dict[str, str | None], model: str = "m") -> Path:
    folder.mkdir(exist_ok=True)
    rows = [(question, "rigel", "triples", model, output) for question, output in answers.items()]
    columns = ("question", "retriever", "format", "model", "output")
    pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row").write_parquet(folder / "answers.parquet")
    return folder


@pytest.fixture
def given(tmp_path: Path) -> dict:
    for name in ("questions", "out", "work"):
        (tmp_path / name).mkdir()
    write_questions(tmp_path / "questions", QUESTIONS)
    answers = write_answers(tmp_path / "answers", ANSWERS)
    return {"out": tmp_path / "out", "questions": tmp_path / "questions", "answers": answers}


def run(given: dict, judge: object, **extra: object) -> dict:
    workspace = Workspace(given["out"], **extra)  # type: ignore[arg-type]
    folders = {name: given[name] for name in ("questions", "answers")}
    return entail(workspace, **folders, model="none", options=EntailmentOptions(), judge=judge)


def test_what_the_classifier_can_read_whole_is_judged_whole(given: dict) -> None:
    judge = WordJudge()
    counts = run(given, judge)
    assert set(judge.asked) == {(ANSWERS[name], QUESTIONS["ab".index(name)].reference) for name in "ab"}
    assert counts == {"responses": 3, "pairs": 2, "in_runs": 0, "cut": 0}
    found = read_entailment(given["out"])["rigel/triples/m"]
    assert found["a"] == {"nli_entailment": 1.0, "nli_contradiction": 0.0, "nli_overall": 1.0}
    assert found["b"] == {"nli_entailment": 0.0, "nli_contradiction": 1.0, "nli_overall": -1.0}


def test_beside_a_long_reference_each_of_its_sentences_is_a_hypothesis_of_its_own(given: dict) -> None:
    judge = WordJudge(room=16)  # ten words of the answer and nine of the reference are too many
    counts = run(given, judge)
    assert set(judge.asked) == {
        (ANSWERS["a"], "Ann was born in Oslo."),
        (ANSWERS["b"], "Bo was born in Rome."),
        (ANSWERS["b"], "He lives in Bonn."),
    }
    assert counts == {"responses": 3, "pairs": 3, "in_runs": 0, "cut": 0}
    found = read_entailment(given["out"])["rigel/triples/m"]
    assert found["a"] == {"nli_entailment": 1.0, "nli_contradiction": 0.0, "nli_overall": 1.0}
    assert found["b"] == {"nli_entailment": 0.5, "nli_contradiction": 1.0, "nli_overall": -0.5}


def test_an_empty_answer_has_zeros_and_a_question_without_reference_no_row(given: dict) -> None:
    run(given, WordJudge())
    found = read_entailment(given["out"])["rigel/triples/m"]
    assert set(found) == {"a", "b", "e"}
    assert set(found["e"].values()) == {0.0}


def test_a_response_that_is_too_long_is_read_in_runs_of_whole_sentences(given: dict) -> None:
    long = "One two three four. Five six seven. Ann was born in Oslo. It is not so."
    write_answers(given["answers"], {"a": long})
    judge = WordJudge(room=13)  # five words of the reference leave eight
    assert run(given, judge)["in_runs"] == 1
    assert {premise for premise, _ in judge.asked} == {
        "One two three four. Five six seven.",
        "Ann was born in Oslo.",
        "It is not so.",
    }
    found = read_entailment(given["out"])["rigel/triples/m"]["a"]
    assert (found["nli_entailment"], found["nli_contradiction"]) == (1.0, 1.0)


def test_equal_pairs_are_judged_once(given: dict) -> None:
    write_questions(given["questions"], [Question(name, "?", reference="Yes.") for name in "pqr"])
    write_answers(given["answers"], dict.fromkeys("pqr", "Yes."))
    judge = WordJudge()
    assert run(given, judge) == {"responses": 3, "pairs": 1, "in_runs": 0, "cut": 0}
    assert len(judge.asked) == 1


class KilledError(RuntimeError):
    """What ends the first try."""


def test_a_killed_try_goes_on_where_it_was_and_ends_with_the_same_bytes(
    given: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entailment, "CHUNK", 4)
    asked = [Question(f"q{n}", "?", reference=f"Number {n} it is.") for n in range(11)]
    write_questions(given["questions"], asked)
    write_answers(given["answers"], {question.id: question.reference for question in asked})
    whole = WordJudge()
    run(given, whole)
    expected = (given["out"] / "entailment.parquet").read_bytes()

    class Dying(WordJudge):
        def scores(self, pairs: list[tuple[str, str]]) -> np.ndarray:
            if len(self.asked) >= 8:
                raise KilledError
            return super().scores(pairs)

    (given["out"] / "entailment.parquet").unlink()
    with pytest.raises(KilledError):
        run(given, Dying(), work=tmp_path / "work")
    assert not (given["out"] / "entailment.parquet").exists()
    (tmp_path / "work" / "judged-000000004.npy").write_bytes(b"cut off")
    second = WordJudge()
    run(given, second, work=tmp_path / "work")
    assert len(whole.asked) == 11 and second.asked == whole.asked[4:]
    assert (given["out"] / "entailment.parquet").read_bytes() == expected


def test_a_real_classifier_gives_probabilities(given: dict, tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "model")
    counts = entail(
        Workspace(given["out"]), questions=given["questions"], answers=given["answers"], model=str(folder),
        options=EntailmentOptions(device=DEVICE),
    )  # fmt: skip
    assert counts["pairs"] == 2
    found = read_entailment(given["out"])["rigel/triples/m"]
    for scores in (found["a"], found["b"]):
        e, c = scores["nli_entailment"], scores["nli_contradiction"]
        assert 0 < e < 1 and 0 < c < 1 and e + c <= 1
        assert scores["nli_overall"] == pytest.approx(e - c, abs=2e-6)
    [pair] = open_judge(str(folder), device=DEVICE).scores([(ANSWERS["a"], "Ann was born in Oslo.")])
    assert [found["a"]["nli_entailment"], found["a"]["nli_contradiction"]] == pytest.approx(pair, abs=1e-5)


def test_without_references_no_model_is_loaded(given: dict) -> None:
    write_questions(given["questions"], [Question("a", "?"), Question("b", "?", reference="  ")])
    assert not has_references(given["questions"])
    counts = run(given, None)
    assert counts["responses"] == 0 and read_entailment(given["out"]) == {}


def test_a_response_judged_twice_is_noticed(given: dict) -> None:
    run(given, WordJudge())
    file = given["out"] / "entailment.parquet"
    frame = pl.read_parquet(file)
    pl.concat([frame, frame.head(1)]).write_parquet(file)
    with pytest.raises(ArtifactError, match="'a' twice"):
        read_entailment(given["out"])
