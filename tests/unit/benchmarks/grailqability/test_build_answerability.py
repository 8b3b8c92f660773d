"""A benchmark of the company register: labels, quotas, splits, determinism, and a verifier that finds what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.benchmarks.grailqability.build import build
from kgqa_core.benchmarks.grailqability.records import read_benchmark
from kgqa_core.benchmarks.grailqability.score import table
from kgqa_core.benchmarks.grailqability.verify import verify
from kgqa_core.config import AnswerabilityOptions, KgOptions, QuestionsOptions
from kgqa_core.datasets.load import load
from kgqa_core.digest import content_digest
from kgqa_core.errors import InputError
from kgqa_core.kg.build import build as build_kg
from kgqa_core.metrics.answerability import Predicted
from tests.support.toy import write_graph, write_questions


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("register")
    triples = write_graph(folder / "facts.tsv", 3000)
    write_questions(folder / "questions.jsonl", triples, 300)
    kg, questions = folder / "kg", folder / "questions"
    kg.mkdir()
    questions.mkdir()
    build_kg(kg, options=KgOptions(files=(str(folder / "facts.tsv"),), format="delimited", delimiter="\t"))
    load(questions, kg=kg, options=QuestionsOptions(path=str(folder / "questions.jsonl")), seed=7)
    return kg, questions


@pytest.fixture(scope="module")
def made(inputs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("benchmark")
    build(out, kg=inputs[0], questions=inputs[1], options=AnswerabilityOptions(), seed=7)
    return out


def test_the_verifier_is_clean(made: Path) -> None:
    found = verify(made)
    assert found["clean"], [check for check in found["checks"] if check["faults"]]
    assert all(check["checked"] for check in found["checks"])


def test_quotas_and_shares(made: Path) -> None:
    statistics = read_benchmark(made).statistics
    every = statistics["splits"][-1]
    assert every["U_share"] == pytest.approx(0.33, abs=0.01)
    by_kind = {row["drop"]: row for row in statistics["drops"]}
    assert by_kind["type"]["U"] == 0 and by_kind["entity"]["U"] > 0 and by_kind["fact"]["U"] > 0
    assert all(by_kind[kind]["U"] <= by_kind[kind]["quota"] for kind in ("type", "relation", "entity", "fact"))
    assert by_kind["fact"]["NK"] == 0 and by_kind["relation"]["NA_only"] == 0


def test_training_holds_no_ideal_form_of_what_is_gone(made: Path) -> None:
    benchmark = read_benchmark(made)
    text = (made / "train.jsonl").read_text(encoding="utf-8")
    gone = [
        ideal.s_expression
        for asked, ideal in zip(benchmark.asked, benchmark.ideal, strict=True)
        if asked.split == "train" and asked.s_expression is None
    ]
    assert gone and not any(json.dumps(form)[1:-1] in text for form in gone)


def test_the_same_seed_gives_the_same_benchmark(inputs: tuple[Path, Path], made: Path, tmp_path: Path) -> None:
    digests = {content_digest(made)}
    for seed in (7, 8):
        out = tmp_path / str(seed)
        out.mkdir()
        build(out, kg=inputs[0], questions=inputs[1], options=AnswerabilityOptions(), seed=seed)
        digests.add(content_digest(out))
    assert len(digests) == 2


def test_gold_scores_full_and_nothing_scores_nothing(made: Path) -> None:
    benchmark = read_benchmark(made)
    gold = {row.id: Predicted(row.s_expression, frozenset(row.answers)) for row in benchmark.asked}
    rows = table(benchmark, gold)
    assert {row["group"] for row in rows} >= {"all", "A", "U", "NK", "NA", "iid", "zero-shot"}
    assert all(row["EM"] == row["F1(R)"] == row["F1(L)"] == 100.0 for row in rows)
    assert all(row["EM"] == row["F1(R)"] == row["F1(L)"] == 0.0 for row in table(benchmark, {}))
    ideal = {
        asked.id: Predicted("(JOIN x y)", frozenset(one.answers))
        for asked, one in zip(benchmark.asked, benchmark.ideal, strict=True)
    }
    lenient = {row["group"]: row for row in table(benchmark, ideal)}
    assert lenient["U"]["F1(L)"] == 100.0 and lenient["U"]["F1(R)"] == 0.0


def change(folder: Path, split: str, place: int, **fields: Any) -> None:
    path = folder / f"{split}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows[place] |= fields
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"answers": ["nobody"]}, "the answers are those of the modified graph"),
        ({"s_expression": None}, "NK where the graph lacks what the form names, and only there"),
        ({"answerable": False}, "A where the modified graph answers, else NA"),
        ({"s_expression": "(JOIN lives_in nowhere)"}, "a form that is known is the ideal one"),
    ],
)
def test_the_verifier_finds_a_wrong_label(made: Path, tmp_path: Path, fields: dict[str, Any], rule: str) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(made, copy)
    answerable = next(n for n, row in enumerate(read_benchmark(made).asked) if row.split == "train" and row.answerable)
    change(copy, "train", answerable, **fields)
    found = verify(copy)
    assert not found["clean"]
    assert {check["rule"]: check["faults"] for check in found["checks"]}[rule] >= 1


def test_questions_with_answers_only_are_refused(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    rows = (inputs[1].parent / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    bare = [{k: v for k, v in json.loads(row).items() if k != "relation_path"} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in bare), encoding="utf-8")
    questions = tmp_path / "questions"
    questions.mkdir()
    load(questions, kg=inputs[0], options=QuestionsOptions(path=str(path)), seed=7)
    with pytest.raises(InputError, match="only answers are annotated"):
        build(tmp_path, kg=inputs[0], questions=questions, options=AnswerabilityOptions(), seed=7)
