"""GrailQAbility's own files in the records of our benchmarks, and predictions as its evaluation reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.errors import InputError, QuestionFileError
from kgqa_core.papers.grailqability.builder.published import (
    of_split,
    read_official_predictions,
    read_published,
    write_published,
)
from kgqa_core.papers.grailqability.builder.records import read_benchmark
from kgqa_core.papers.grailqability.builder.score import Evaluator, same_form, table
from kgqa_core.papers.grailqability.metrics import Predicted
from kgqa_core.workspace import Workspace
from tests.unit.datasets.published.official import stored
from tests.unit.datasets.published.test_grailqability import BOB, FORM, files, question, unanswerable


def predicted(path: Path, value: Any) -> dict[str, Predicted]:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return read_official_predictions(path)


def test_both_graphs_drops_and_levels_are_records(tmp_path: Path) -> None:
    folder = files(tmp_path)
    stored(folder / "relation_deletion" / "GrailQAbility_v1.0_dev_rel_ncuua.json", [5])
    read = read_published(folder).benchmark
    assert {one.id: (one.split, one.answer_label, one.form_label, one.answers) for one in read.questions} == {
        "1": ("train", "A", "K", ("m.02",)),
        "2": ("train", "NA", "NK", ()),
        "3": ("dev", "A", "K", ("m.02",)),
        "4": ("dev", "NA", "K", ()),
        "5": ("dev", "NA", "NK", ("0",)),
    }
    assert {one.id: (one.drop, one.more_drops, one.level, one.generalization) for one in read.ideal} == {
        "1": (None, (), None, "iid"),
        "2": ("entity", (), "iid", None),
        "3": (None, (), None, "iid"),
        "4": ("fact", (), "iid", None),
        "5": ("type", ("relation",), "full", None),
    }
    assert {(one.s_expression, one.answers) for one in read.ideal} == {(FORM, ("m.02",))}


def test_the_groups_are_those_of_the_published_script_and_a_question_may_be_in_several(tmp_path: Path) -> None:
    stored(
        tmp_path / "set.json",
        [
            question(1, level="zero-shot"),
            unanswerable(2, ["T", "E"], level="zero-shot"),
            unanswerable(3, ["E"]) | {"s_expression": FORM},
        ],
    )
    gold = of_split(read_published(tmp_path / "set.json", "dev"), "dev")
    rows = {row["group"]: row for row in table(gold, {"2": Predicted()}, "dev")}
    counts = {name: row["questions"] for name, row in rows.items()}
    assert counts == {
        "all": 3, "A": 1, "U": 2, "NK": 1, "NA": 1, "type drop": 1, "entity drop": 2, "entity drop, NK": 1,
        "entity drop, NA": 1, "iid": 1, "zero-shot": 1, "A, zero-shot": 1,
    }  # fmt: skip
    assert (rows["entity drop"]["EM"], rows["all"]["EM"], rows["type drop"]["EM"]) == (50.0, 33.33, 100.0)


def test_the_paper_has_no_free_f1_and_takes_the_better_graph_whole(tmp_path: Path) -> None:
    ideal = [{**BOB[0], "answer_argument": name} for name in ("a", "b", "c", "d")]
    stored(tmp_path / "set.json", [question(1, answer=ideal[:2], Organswer=ideal), question(2)])
    gold = of_split(read_published(tmp_path / "set.json"), "test")
    # 1: modified P 2/3 R 2/2, ideal P 3/3 R 3/4; 2: the right form with the wrong answer
    given = {"1": Predicted("(JOIN other m.01)", frozenset("abc")), "2": Predicted(FORM, frozenset("z"))}
    script, paper = (table(gold, given, "test", Evaluator(same_form, rules))[0] for rules in ("script", "paper"))
    assert (script["F1(L)"], script["F1(R)"], script["EM"]) == (100.0, 90.0, 50.0)
    assert (paper["F1(L)"], paper["F1(R)"], paper["EM"]) == (42.86, 40.0, 50.0)  # 6/7 and 4/5, halved


def test_three_shapes_of_predictions_are_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "predictions"
    wanted = {"1": Predicted(FORM, frozenset({"m.02"})), "2": Predicted(None, frozenset())}
    rows = [
        {"qid": 1, "logical_form": FORM, "answer": ["m.02"]},
        {"qid": "2", "logical_form": "no logical form", "answer": []},
    ]
    assert predicted(path, {str(row["qid"]): row for row in rows}) == wanted
    assert predicted(path, "\n".join(map(json.dumps, rows))) == wanted
    assert predicted(path, json.dumps(rows[0])) == {"1": wanted["1"]}
    ours = [{"id": "1", "s_expression": FORM, "answers": ["m.02"]}, {"id": "2", "s_expression": None, "answers": []}]
    assert predicted(path, "\n".join(map(json.dumps, ours))) == wanted


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"1": {"logical_form": 3, "answer": []}}, "question '1': field 'logical_form' must be a text, but it is 3"),
        ({"1": {"logical_form": "", "answer": "m.02"}}, "field 'answer' must be a list of texts, but it is \"m.02\""),
        ({"1": ["m.02"]}, "an object with logical_form and answer is needed"),
        ('{"qid": 1, "logical_form": "", "answer": []}\n' * 2, "line 2: question '1' is predicted twice"),
        ('{"qid": null, "logical_form": "", "answer": []}\n{}', "line 1: field 'qid' is missing"),
        ({}, "has no predictions; one object"),
    ],
)
def test_a_bad_predictions_file_names_where_and_what(tmp_path: Path, value: Any, fault: str) -> None:
    with pytest.raises(QuestionFileError) as raised:
        predicted(tmp_path / "predictions.json", value)
    assert fault in str(raised.value)


def test_rejects_name_the_row_and_a_file_without_any_question_is_refused(tmp_path: Path) -> None:
    rows = [question(1), question(2, s_expression=None), question(3, qType="X"), question(1)]
    stored(tmp_path / "GrailQAbility_v1.0_test_a_na_reference_4.json", rows)
    read = read_published(tmp_path)
    assert [one.id for one in read.benchmark.questions] == ["1"]
    assert [(one.row, one.reason.partition(",")[0]) for one in read.rejects] == [
        ("row 2 (2)", "it is answerable"),
        ("row 3 (3)", "field 'qType' must be one of A"),
        ("row 4 (1)", "its id is already used"),
    ]
    with pytest.raises(InputError, match=r"has no dev questions, only test; give --split"):
        of_split(read, "dev")
    stored(tmp_path / "other.json", [question(3, qType="X")])
    with pytest.raises(QuestionFileError, match=r"has no question of GrailQAbility.*row 1 \(3\): field 'qType'"):
        read_published(tmp_path / "other.json")


def test_what_is_written_is_a_benchmark_and_lists_what_it_leaves_out(tmp_path: Path) -> None:
    folder = files(tmp_path / "data")
    bad = question(9, s_expression="(JOIN only_one)")
    stored(folder / "GrailQAbility_v1.0_test_a_na_reference.json", [question(8), bad, question(10, qType="X")])
    out = tmp_path / "out"
    out.mkdir()
    counts = write_published(Workspace(out), folder)
    assert counts == {
        "questions": {"train": 2, "dev": 3, "test": 1, "all": 6},
        "answerable": 3,
        "unanswerable": 3,
        "left_out": 2,
    }
    assert [(one.id, one.split) for one in read_benchmark(out).questions] == [
        ("1", "train"), ("2", "train"), ("3", "dev"), ("4", "dev"), ("5", "dev"), ("8", "test"),
    ]  # fmt: skip
    left_out = [json.loads(line)["id"] for line in (out / "left_out.jsonl").read_text().splitlines()]
    assert left_out == ["row 3 (10)", "9"]
