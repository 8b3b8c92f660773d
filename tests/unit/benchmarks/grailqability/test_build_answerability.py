"""A benchmark of the company register: labels, quotas, splits, determinism, and a verifier that finds what is wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.benchmarks.grailqability.build import build
from kgqa_core.benchmarks.grailqability.records import Benchmark, read_benchmark
from kgqa_core.benchmarks.grailqability.score import table
from kgqa_core.benchmarks.grailqability.verify import verify
from kgqa_core.config import AnswerabilityOptions, QuestionsOptions
from kgqa_core.datasets.load import load
from kgqa_core.digest import content_digest, hash_file
from kgqa_core.errors import InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.metrics.answerability import Predicted
from tests.support.register_benchmark import write_benchmark, write_inputs

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_inputs(tmp_path_factory.mktemp("register"))


@pytest.fixture(scope="module")
def made(inputs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    before = hash_file(inputs[0] / "kg.duckdb")
    folder = write_benchmark(tmp_path_factory.mktemp("benchmark") / "made", *inputs)
    assert hash_file(inputs[0] / "kg.duckdb") == before, "the ideal graph is not touched"
    return folder


def test_the_verifier_is_clean(made: Path) -> None:
    found = verify(made)
    assert found["clean"], [check for check in found["checks"] if check["faults"]]
    assert all(check["checked"] for check in found["checks"])


def test_quotas_and_shares(made: Path) -> None:
    statistics = read_benchmark(made).statistics
    every = statistics["splits"][-1]
    assert every["U_share"] == pytest.approx(0.33, abs=0.01)
    assert [row["questions"] / every["questions"] for row in statistics["splits"][:3]] == pytest.approx(
        [0.7, 0.1, 0.2], abs=0.03
    )
    by_kind = {row["drop"]: row for row in statistics["drops"]}
    assert all(0 < by_kind[kind]["U"] <= by_kind[kind]["quota"] for kind in ("type", "relation", "entity", "fact"))
    assert by_kind["fact"]["NK"] == by_kind["relation"]["NA_only"] == by_kind["type"]["NA_only"] == 0


def test_what_was_dropped_is_gone_and_labels_follow_from_it(made: Path) -> None:
    benchmark = read_benchmark(made)
    with KgStore.open(made / "kg") as store:
        relations = set(store.relation_keys())
        gone = {key for drop in benchmark.drops for key in drop.entities}
        assert gone and not any(store.resolve(sorted(gone)).values())
    lost = {key for drop in benchmark.drops for key in drop.relations}
    assert lost and not lost & relations
    for asked, ideal in zip(benchmark.asked, benchmark.ideal, strict=True):
        names = any(f"{key}" in ideal.s_expression.replace(")", " ").split() for key in lost)
        assert asked.s_expression is None or not names
        if asked.complexity == "count":
            assert asked.answers == (("0",) if not asked.answerable else asked.answers)
        assert asked.answerable == (ideal.drop is None)


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
    again, other = (write_benchmark(tmp_path / str(seed), *inputs, seed) for seed in (7, 8))
    assert content_digest(again) == content_digest(made) != content_digest(other)


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


def rewrite(path: Path, change: Callable[[Rows], Rows]) -> None:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in change(rows)), encoding="utf-8")


def answerable(benchmark: Benchmark) -> list[int]:
    return [n for n, row in enumerate(benchmark.asked) if row.split == "train" and row.answerable]


def test_the_verifier_finds_wrong_labels(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made, tmp_path / "copy")
    planted = [
        ({"answers": ["nobody"]}, "the answers are those of the modified graph"),
        ({"s_expression": None}, "NK where the graph lacks what the form names, and only there"),
        ({"answerable": False}, "A where the modified graph answers, else NA"),
        ({"s_expression": "(JOIN lives_in nowhere)"}, "a form that is known is the ideal one"),
    ]
    places = answerable(read_benchmark(made))

    def plant(rows: Rows) -> Rows:
        for place, (fields, _) in zip(places, planted, strict=False):
            rows[place] |= fields
        return rows

    rewrite(copy / "train.jsonl", plant)
    rewrite(copy / "ideal/train.jsonl", lambda rows: [{**r, "answers": ["x"]} if r == rows[-1] else r for r in rows])
    found = verify(copy)
    faults = {check["rule"]: check["faults"] for check in found["checks"]}
    assert not found["clean"] and all(faults[rule] == 1 for _, rule in planted), faults
    assert faults["the ideal form gives the ideal answers"] == 1
    assert faults["every unanswerable question has its drop, and no other has one"] >= 1


def test_the_verifier_finds_wrong_drops_and_splits(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made, tmp_path / "copy")
    rewrite(copy / "drops.jsonl", lambda rows: rows[:-1])
    benchmark = read_benchmark(made)
    level = next(one for one in benchmark.ideal if one.level == "iid")
    split = next(row.split for row in benchmark.asked if row.id == level.id)

    def claim(rows: Rows) -> Rows:
        return [{**row, "level": "full"} if row["id"] == level.id else row for row in rows]

    rewrite(copy / f"ideal/{split}.jsonl", claim)
    for name in ("", "ideal/"):  # half of the test questions are called training questions
        rows = (copy / f"{name}test.jsonl").read_text(encoding="utf-8").splitlines()
        moved = [row.replace('"split": "test"', '"split": "train"') for row in rows[::2]]
        with (copy / f"{name}train.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(row + "\n" for row in moved)
        (copy / f"{name}test.jsonl").write_text("".join(row + "\n" for row in rows[1::2]), encoding="utf-8")
    faults = {check["rule"]: check["faults"] for check in verify(copy)["checks"]}
    assert faults["nothing else is gone"] == 1
    assert faults["levels are what training has seen"] >= 1 and faults["splits have their shares"] >= 1


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
