"""The stages that compute: the classifier learns, stops and goes on; tables of answers, proof and knowledge."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
from rich.console import Console

from kgqa_core.config import (
    DkgOptions,
    KgOptions,
    OperationClassifierOptions,
    SymbolicOptions,
    make_profile,
)
from kgqa_core.datasets.derived.splits import QuestionSample
from kgqa_core.datasets.files.answers import SCHEMA
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.dkg.export import export
from kgqa_core.errors import ArtifactError, ConfigError, InputError, TrainingError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.protocol import Completion
from kgqa_core.report.console import ask_tables
from kgqa_core.retrieval.collect import write_paths, write_retrieved
from kgqa_core.runs.finished import SystemParts
from kgqa_core.symbolic.answer import answer_computed
from kgqa_core.symbolic.compute import ComputeInputs, compute
from kgqa_core.symbolic.hybrid import add_computed
from kgqa_core.symbolic.operator import load
from kgqa_core.symbolic.train import train
from kgqa_core.system import System
from kgqa_core.types import Fact, Question, Retrieved
from kgqa_core.workspace import Workspace
from tests.support.models import Listener, content

NAMES = {"avalonia": 3, "bergonia": 2, "cimmeria": 4}
QUICK = OperationClassifierOptions(epochs=20, patience=20, batch_size=8, scratch_width=16, learning_rate=0.03)
SHORT = QUICK.model_copy(update={"epochs": 4, "checkpoint_seconds": 1e-9})


XSD = "http://www.w3.org/2001/XMLSchema#"
X = "http://x/"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A graph, questions about it, and the facts of a retriever that predicts paths."""
    base = tmp_path_factory.mktemp("symbolic")
    found = {name: base / name for name in ("kg", "questions", "facts", "operator")}
    for folder in found.values():
        folder.mkdir()
    triples = []
    for place, (country, towns) in enumerate(NAMES.items()):
        for number in range(towns):
            town = f"<{X}town{place}{number}>"
            triples.append(f"{town} <{X}in> <{X}{country}> .")
            triples.append(f'{town} <{X}people> "{100 * number + 10}"^^<{XSD}integer> .')
    (base / "graph.nt").write_text("\n".join(triples) + "\n", encoding="utf-8")
    build(Workspace(found["kg"]), options=KgOptions(files=(str(base / "graph.nt"),)))
    with KgStore.open(found["kg"]) as store:
        questions = sample_questions(store)
        ends = store.connection.execute("SELECT id, head, tail FROM triples ORDER BY id").fetchall()
    write_questions(found["questions"], questions)
    tests = [question for question in questions if question.split == "test"]
    facts = tuple(Fact(rank, 0.5, 1, triple, -1) for rank, (triple, _, _) in enumerate(ends[:2]))
    write_retrieved(found["facts"], "hop_path", [Retrieved(question.id, facts) for question in tests])
    towns = (f"<inv>-{X}in",)
    ways = {question.id: (0.7, 0.3) if question.complexity == "superlative" else (0.3, 0.7) for question in tests}
    both = {question: ((*towns, f"{X}people"), towns) for question in ways}
    write_paths(found["facts"], {key: list(zip(both[key], ways[key], strict=True)) for key in ways})
    train(Workspace(found["operator"]), kg=found["kg"], questions=found["questions"], options=QUICK, seed=7)
    return found


def sample_questions(store: KgStore) -> list[Question]:
    """Questions of three operations about each country, the last country in test alone."""
    wordings = {
        "count": ["How many towns are in {}?", "Count the towns of {}.", "What number of towns has {}?"],
        "superlative": ["What is the largest town in {}?", "Name the biggest town of {}.", "Which town in {} is most?"],
        "generic": ["Which towns are in {}?", "List the towns of {}.", "Name what lies in {}."],
    }
    forms = {"count": "(COUNT {})", "superlative": f"(ARGMAX {{}} <{X}people>)", "generic": "{}"}
    questions = []
    for split, country in zip(("train", "dev", "test"), NAMES, strict=True):
        key = X + country
        [topic] = store.resolve([key])[key]
        for kind, texts in wordings.items():
            for number, text in enumerate(texts):
                questions.append(
                    Question(
                        f"{split}-{kind}-{number}", text.format(country.title()), split, topic_keys=(key,),
                        topic_entities=(topic,), complexity=kind, answer_keys=("?",),
                        s_expression=forms[kind].format(f"(JOIN <{X}in> <{key}>)"),
                    )
                )  # fmt: skip
    return questions


def learn(folders: dict[str, Path], out: Path, seed: int = 7, **more: object) -> dict[str, bytes]:
    out.mkdir()
    workspace = Workspace(out, **more)  # type: ignore[arg-type]
    train(workspace, kg=folders["kg"], questions=folders["questions"], options=SHORT, seed=seed)
    return content(out)


def test_the_classifier_tells_operations_it_has_learnt(folders: dict[str, Path]) -> None:
    model = load(folders["operator"])
    guesses = model.guess(
        ["How many towns are in [TOPIC]?", "What is the largest town in [TOPIC]?", "Which towns are in [TOPIC]?"]
    )
    assert [one.kind for one in guesses] == ["count", "best", "none"]
    assert guesses[1].bests[0] > guesses[1].bests[1]


@pytest.mark.slow
def test_killed_training_goes_on_and_ends_with_the_same_bytes(folders: dict[str, Path], tmp_path: Path) -> None:
    whole = learn(folders, tmp_path / "whole")
    work, killed = tmp_path / "work", Listener(stop_at=3)
    with pytest.raises(KeyboardInterrupt):
        learn(folders, tmp_path / "half", monitor=killed, work=work)
    resumed = Listener()
    assert learn(folders, tmp_path / "rest", monitor=resumed, work=work) == whole
    assert 1 < resumed.steps[0] <= 4 and "goes on" in resumed.notes[0]
    assert learn(folders, tmp_path / "other", seed=8) != whole


def test_questions_without_forms_teach_nothing(folders: dict[str, Path], tmp_path: Path) -> None:
    with KgStore.open(folders["kg"]) as store:
        bare = [replace(question, s_expression=None) for question in sample_questions(store)]
    write_questions(tmp_path, bare)
    with pytest.raises(TrainingError, match="none of the 9 training questions has a gold form"):
        train(Workspace(tmp_path), kg=folders["kg"], questions=tmp_path, options=QUICK, seed=7)


def test_a_damaged_classifier_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    for name, data in content(folders["operator"]).items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "model.safetensors").write_bytes(b"half")
    with pytest.raises(ArtifactError, match="do not fit"):
        load(tmp_path)
    with pytest.raises(ArtifactError, match="does not hold"):
        load(tmp_path / "nowhere")


def computed(folders: dict[str, Path], out: Path) -> Path:
    out.mkdir()
    inputs = ComputeInputs(**{name: folders[name] for name in ("kg", "questions", "facts", "operator")})
    counts = compute(Workspace(out), inputs, QuestionSample(split="test", limit=None, seed=7), SymbolicOptions())
    assert (counts["questions"], counts["computed"], counts["without_paths"]) == (9, 9, 0)
    return out


def test_answers_come_with_the_triples_that_prove_them(folders: dict[str, Path], tmp_path: Path) -> None:
    made = computed(folders, tmp_path / "computed")
    answer_computed(Workspace(tmp_path), computed=made, name="hop_path")
    answers = pl.read_parquet(tmp_path / "answers.parquet")
    assert dict(answers.schema) == SCHEMA
    output = dict(answers.select("question", "output").iter_rows())
    assert output["test-count-0"] == "4"
    assert output["test-superlative-0"] == "town23"
    assert output["test-generic-0"] == "town20, town21, town22, town23"
    assert answers["model"].unique().to_list() == ["symbolic"] and not answers["abstained"].any()
    proof = pl.read_parquet(tmp_path / "proof.parquet").filter(pl.col("question") == "test-superlative-0")
    assert proof["text"].to_list() == ["(town23, in, cimmeria)", "(town23, people, 310)"]
    again = computed(folders, tmp_path / "again")
    assert content(again) == content(made)


def test_what_is_computed_stands_above_what_the_model_reads(folders: dict[str, Path], tmp_path: Path) -> None:
    made = computed(folders, tmp_path / "computed")
    knowledge = pl.DataFrame(
        {"question": ["test-count-0", "unasked"], "retriever": "hop_path", "format": "triples",
         "text": ["(a, r, b)", ""], "triples": [[1], []]}
    )  # fmt: skip
    knowledge.write_parquet(tmp_path / "knowledge.parquet")
    out = tmp_path / "out"
    out.mkdir()
    add_computed(Workspace(out), computed=made, knowledge=tmp_path, name="hop_path/triples")
    [(_, text), (_, bare)] = pl.read_parquet(out / "knowledge.parquet").select("question", "text").iter_rows()
    assert text.endswith(", 4), (a, r, b)") and bare == ""


def test_profiles_that_leave_nothing_to_compute_from_are_refused() -> None:
    def knowledge(answerer: str, *names: str) -> tuple[str, ...]:
        return make_profile({"answering": {"answerer": answerer, "knowledge": list(names)}}).knowledge

    listed = ("none", "passages", "rigel", "rigel/template", "hop_path")
    assert knowledge("symbolic", *listed) == ("rigel/triples", "hop_path/triples")
    assert knowledge("hybrid", *listed) == ("rigel/triples", "rigel/template", "hop_path/triples")
    assert knowledge("builtin", "none") == ("none/none",)
    for answerer in ("symbolic", "hybrid:builtin"):
        with pytest.raises(ConfigError, match="computes from a retriever's facts.*names only none, passages"):
            knowledge(answerer, "none", "passages")


@pytest.fixture(scope="module")
def dkg(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dkg")
    export(Workspace(out), kg=folders["kg"], options=DkgOptions())
    return out


def opened(folders: dict[str, Path], dkg: Path, answerer: str) -> System:
    return System.open(parts(folders, dkg, answerer, operator=folders["operator"]))


def parts(folders: dict[str, Path], dkg: Path, answerer: str, operator: Path | None = None) -> SystemParts:
    profile = make_profile({"answering": {"answerer": answerer}})
    return SystemParts(folders["kg"], dkg, "random/triples", profile, operator=operator)


def test_a_question_is_answered_with_its_form_and_proof(folders: dict[str, Path], dkg: Path) -> None:
    system = opened(folders, dkg, "symbolic")
    reply = system.ask("How many towns are in Cimmeria?", [f"{X}cimmeria"])
    assert (reply.answer, reply.model, reply.operation) == ("4", "symbolic", "count")
    assert reply.form == f"(COUNT (JOIN {X}in {X}cimmeria))"
    assert list(reply.proof) == [f"(town2{number}, in, cimmeria)" for number in range(4)] and reply.proof_rows == 4
    shown = Console(record=True, width=200, file=io.StringIO())
    for part in ask_tables({**reply.to_json(), "seconds": 0.1}):
        shown.print(part)
    text = shown.export_text()
    assert f"\nby (COUNT (JOIN {X}in {X}cimmeria))" in text and "(town23, in, cimmeria)" in text


def test_a_file_of_questions_has_the_replies_of_single_questions(
    folders: dict[str, Path], dkg: Path, tmp_path: Path
) -> None:
    frame = pl.read_parquet(computed(folders, tmp_path / "computed") / "computed.parquet")
    stored = {row["question"]: row for row in frame.iter_rows(named=True)}
    with KgStore.open(folders["kg"]) as store:
        tests = [question for question in sample_questions(store) if question.split == "test"]
    assert set(stored) == {question.id for question in tests}
    counted = next(question for question in tests if question.complexity == "count")
    reply = opened(folders, dkg, "symbolic").ask(counted.text, list(counted.topic_keys))
    row = stored[counted.id]
    assert (row["kind"], row["form"], row["answers"]) == (reply.operation, reply.form, list(reply.answers or ()))
    assert reply.computed == "4" and reply.proof_rows == 4


def test_the_model_reads_what_was_computed(folders: dict[str, Path], dkg: Path) -> None:
    system = opened(folders, dkg, "hybrid")

    class Reader:
        name, revision = "reader", ""

        def generate(self, prompts: list[str], params: object) -> list[Completion]:
            return [Completion(prompt.partition('"')[2].partition(")")[0], "stop") for prompt in prompts]

    system.model = cast(Any, Reader())
    reply = system.ask("How many towns are in Cimmeria?", [f"{X}cimmeria"])
    assert reply.answer.endswith(", 4") and reply.model == "hybrid:reader" and reply.computed == "4"
    with pytest.raises(InputError, match="needs a trained `operator`"):
        System.open(parts(folders, dkg, "symbolic"))
