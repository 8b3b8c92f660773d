"""GrailQAbility in the records of our benchmarks, scored by our metrics."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.metrics.answerability import Predicted
from kgqa_core.papers.grailqability.builder.published import read_published
from kgqa_core.papers.grailqability.builder.records import Benchmark
from kgqa_core.papers.grailqability.builder.score import GROUPS, score
from tests.unit.datasets.published.official import stored
from tests.unit.datasets.published.test_grailqability import FORM, files, question


def test_both_graphs_labels_drops_and_levels_are_records(tmp_path: Path) -> None:
    read = read_published(files(tmp_path))
    rows = {one.id: (one.split, one.answer_label, one.form_label, one.answers) for one in read.questions}
    assert rows == {
        "1": ("train", "A", "K", ("m.02",)),
        "2": ("train", "NA", "NK", ()),
        "3": ("dev", "A", "K", ("m.02",)),
        "4": ("dev", "NA", "K", ()),
        "5": ("dev", "NA", "NK", ("0",)),
    }
    assert [one.id for one in read.ideal] == list(rows)
    assert {one.id: (one.drop, one.level) for one in read.ideal} == {
        "1": (None, None),
        "2": ("entity", None),
        "3": (None, None),
        "4": ("fact", "iid"),
        "5": ("type", "full"),
    }
    assert {(one.s_expression, one.answers, one.origin) for one in read.ideal} == {(FORM, ("m.02",), "GrailQAbility")}
    assert (read.without_form, read.rejects) == ((), ())


def test_perfect_predictions_score_one_in_every_group(tmp_path: Path) -> None:
    read = read_published(files(tmp_path))
    predicted = {one.id: Predicted(one.s_expression, frozenset(one.answers)) for one in read.questions}
    scored = score(Benchmark(tmp_path, read.questions, read.ideal, (), {}), predicted, split="dev")
    assert [one.question.id for one in scored] == ["3", "4", "5"]
    assert all(value == 1 for one in scored for value in one.values.values())
    groups = {
        name: [one.question.id for one in scored if holds(one.question, one.ideal)] for name, holds in GROUPS.items()
    }
    assert (groups["NK"], groups["NA"], groups["type drop"], groups["full zero-shot"]) == (["5"], ["4"], ["5"], ["5"])


def test_questions_without_a_form_are_named_and_bad_rows_are_rejects(tmp_path: Path) -> None:
    rows = [question(1), question(2, s_expression=None), question(3, qType="X")]
    stored(tmp_path / "GrailQAbility_v1.0_test_a_na_reference.json", rows)
    read = read_published(tmp_path)
    assert ([one.id for one in read.questions], read.without_form) == (["1"], ("2",))
    assert [reject.row for reject in read.rejects] == ["row 3 (3)"]
