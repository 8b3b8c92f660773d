"""Full zero-shot questions: drawn to their share where relations can be kept out of training, else with the reason."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from kgqa_core.papers.grailqability.builder.full_zero_shot import FormGroup, FullZeroShot
from kgqa_core.papers.grailqability.builder.records import read_benchmark
from kgqa_core.papers.grailqability.builder.splits import Shares, levels, split
from kgqa_core.papers.grailqability.builder.verify import verify
from tests.support.register_benchmark import write_benchmark, write_inputs

from .test_build_answerability import Rows, faults_of, of_triples


def groups_of(relations: int, answerable: int, unanswerable: int, shared: str | None = None) -> list[FormGroup]:
    """Forms of one relation each; five of the unanswerable ones of a relation miss the same thing.

    shared: a relation that is in every form too.
    """
    made = []
    for relation in range(relations):
        for number in range(answerable + unanswerable):
            lost = number >= answerable
            step = 1_000 * relation + number // 5
            made.append(
                FormGroup(
                    members=(len(made),),
                    kind="fact" if lost else None,
                    missing=frozenset({step}) if lost else frozenset(),
                    touched=frozenset({step}) if lost else frozenset(),
                    elements=frozenset({f"r{relation}", f"e{number}", *([shared] if shared else [])}),
                )
            )
    return made


@pytest.mark.parametrize("seed", [1, 2])
def test_a_quarter_of_the_zero_shot_questions_is_full_where_relations_are_many(seed: int) -> None:
    groups = groups_of(relations=40, answerable=20, unanswerable=10)
    result = split(groups, Shares(), seed)
    found = Counter(levels(groups, result.where))
    zero_shot = found["partial"] + found["full"]
    assert result.obstacle is None
    assert 0.22 <= found["full"] / zero_shot <= 0.35
    assert zero_shot / (zero_shot + found["iid"]) == pytest.approx(0.5, abs=0.05)
    sizes = Counter(result.where)
    assert [sizes[name] / len(groups) for name in ("train", "dev", "test")] == pytest.approx([0.7, 0.1, 0.2], abs=0.02)


def test_the_entity_of_a_form_does_not_make_a_question_partial() -> None:
    seen = FormGroup((0,), None, elements=frozenset({"r1", "e1"}))
    new = FormGroup((1,), "fact", frozenset({3}), frozenset({3}), frozenset({"r2", "e1"}))
    known = FormGroup((2,), "fact", frozenset({4}), frozenset({4}), frozenset({"r1", "e2"}))
    assert levels([seen, new, known], ["train", "test", "test"]) == [None, "full", "partial"]


def test_a_relation_that_is_everywhere_is_what_stands_in_the_way() -> None:
    groups = groups_of(relations=10, answerable=20, unanswerable=10, shared="r99")
    result = split(groups, Shares(), 1)
    assert "full" not in levels(groups, result.where)
    assert result.wanted == 4 and result.room == (60, 30, 15)
    assert result.obstacle is not None and "r99" in result.obstacle.elements
    assert (result.obstacle.answerable, result.obstacle.unanswerable) == (200, 100), "every question has it"


def test_what_the_missing_thing_touches_is_kept_out_of_training_too() -> None:
    groups = [FormGroup((n,), None, elements=frozenset({"r1"})) for n in range(4)]
    groups += [FormGroup((4,), "entity", frozenset({0}), frozenset({0}), frozenset({"r2"}))]
    groups += [FormGroup((5,), None, frozenset(), frozenset({0}), frozenset({"r1"}))]
    by_schema = {"r1": [0, 1, 2, 3, 5], "r2": [4]}
    chooser = FullZeroShot(groups, {0: [4, 5]}, by_schema, (1, 1, 1))
    held, obstacle = chooser.choose(1)
    assert held == {4, 5} and chooser.zero_shot == {4} and obstacle is None
    chooser = FullZeroShot(groups, {0: [4, 5]}, by_schema, (0, 1, 1))
    assert chooser.choose(1)[0] == {4} and not chooser.full, "no room for the question that the entity touches"


@pytest.mark.slow
@pytest.mark.parametrize(("labels", "kept"), [("ours", True), ("published", False)])
def test_a_question_that_a_dropped_type_took_has_no_form_as_published(labels: str, kept: bool, tmp_path: Path) -> None:
    triples = [(f"p{i}", "rdf:type", "Poet" if i < 20 else "Painter") for i in range(30)]
    triples += [(f"p{i}", "lives_in", f"town{i}") for i in range(30)]
    rows: Rows = [
        {"id": f"a{i:02}", "question": f"Who lives in town{i}?", "topic_entities": [f"town{i}"], "answers": [f"p{i}"],
         "s_expression": f"(JOIN lives_in town{i})"}
        for i in range(30)
    ]  # fmt: skip
    rows += [
        {"id": f"b{i:02}", "question": f"Where is p{i}?", "topic_entities": [f"p{i}"], "answers": [f"town{i}"],
         "relation_path": ["lives_in"]}
        for i in range(5)
    ]  # fmt: skip
    options = {"p_u": 0.75, "drop_shares": (1, 0, 0, 0), "largest_drop_share": 1.0, "labels": labels}
    made = of_triples(tmp_path / "poets", triples, rows, 1, **options)
    assert not faults_of(made)
    benchmark = read_benchmark(made)
    assert benchmark.statistics["goals"]["labels"] == labels
    pairs = zip(benchmark.questions, benchmark.ideal, strict=True)
    lost = [question for question, ideal in pairs if ideal.drop == "type" and question.id[0] == "a"]
    assert lost and all((question.s_expression is not None) == kept for question in lost), "their towns are left"
    assert all(not question.answers for question in lost)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shares")
    return write_benchmark(folder / "made", *write_inputs(folder))


def test_a_benchmark_says_how_much_is_full_and_why_not_more(made: Path) -> None:
    benchmark = read_benchmark(made)
    record = benchmark.statistics["full_zero_shot"]
    found = Counter(one.level for one in benchmark.ideal)
    assert record["reached"] == found["full"] and record["zero_shot"] == found["full"] + found["partial"]
    assert bool(record["why_not_more"]) == (record["reached"] < record["wanted"])
    assert str(record["reached"]) in (made / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"reached": 10_000}, "the shares of zero-shot questions are what the statistics say"),
        ({"wanted": 0, "why_not_more": None}, "the share of full zero-shot questions is reached, or the statistics"),
        ({"why_not_more": "it was late"}, None),
    ],
)
def test_the_verifier_finds_wrong_shares(
    made: Path, tmp_path: Path, change: dict[str, object], rule: str | None
) -> None:
    copy = shutil.copytree(made, tmp_path / "copy")
    statistics = json.loads((copy / "statistics.json").read_text(encoding="utf-8"))
    short = statistics["full_zero_shot"]["why_not_more"] is not None
    statistics["full_zero_shot"] |= change
    (copy / "statistics.json").write_text(json.dumps(statistics), encoding="utf-8")
    broken = [check["rule"] for check in verify(copy)["checks"] if check["faults"]]
    if rule is None:
        assert bool(broken) == (not short), "a reason where the share is reached is a fault"
    else:
        assert any(name.startswith(rule) for name in broken)


def test_the_verifier_counts_again_what_stood_in_the_way(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made, tmp_path / "copy")
    statistics = json.loads((copy / "statistics.json").read_text(encoding="utf-8"))
    room = statistics["full_zero_shot"]["room"]
    statistics["full_zero_shot"] |= {
        "wanted": 10_000, "why_not_more": "no room",
        "obstacle": {"relations": ["lives_in"], "types": [], **dict.fromkeys(room, 1)},
    }  # fmt: skip
    (copy / "statistics.json").write_text(json.dumps(statistics), encoding="utf-8")
    faults = {check["rule"]: check["faults"] for check in verify(copy)["checks"]}
    assert faults["dev and test have no room for what would make more questions full zero-shot"] == 1
