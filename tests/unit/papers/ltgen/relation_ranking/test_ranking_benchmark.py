"""The relation-ranking benchmark: nothing that is measured is learnt, and only what was measured alike is compared."""

from __future__ import annotations

from typing import Any

from benchmarks.papers import relation_ranking as bench
from kgqa_core.papers.ltgen.relation_ranking.training_examples import LinkedEntity, RankingExample


def test_a_question_that_is_measured_on_is_not_learnt_from() -> None:
    learning = [
        RankingExample(text, "Skype", ("developer", "age"), (0,)) for text in ("Who developed  it?", "How old is it?")
    ]
    test = [LinkedEntity("1", "who developed it?", "Skype", ("developer", "age"), frozenset({"developer"}))]
    task, left_out = bench.apart(bench.Task(learning, learning[:1], test, {}))
    assert ([one.question for one in task.learning], task.developing, left_out) == (["How old is it?"], [], 2)


def cell(found: list[int], **more: Any) -> dict[str, Any]:
    hits = [[f"q{number}", own, 1] for number, own in enumerate(found)]
    return {"hits": hits, "options": {"negatives": 3}, "most": None, "most_test": None, "most_dev": None} | more


def test_amr_is_compared_with_pair_where_both_were_measured_alike() -> None:
    cells = {
        "d/pair/7": cell([1, 0, 1, 0]),
        "d/amr/7": cell([1, 1, 1, 0]),
        "d/pair/8": cell([1, 0, 1, 0]),
        "d/amr/8": cell([0, 0, 1, 0]),
        "d/pair/9": cell([1, 0, 1, 0]),
        "d/amr/9": cell([1, 1, 1, 1], options={"negatives": 7}),
        "d/amr/10": cell([1, 1, 1, 1]),
    }
    found = bench.compare(cells, "d", "amr")
    assert (found["seeds"], found["by_seed"], found["not_alike"]) == (["7", "8"], [0.25, -0.25], ["9"])
    assert found["difference"] == 0 and found["interval"][0] < 0 < found["interval"][1]
    assert bench.compare(cells, "d", "amr-sling") == {}
