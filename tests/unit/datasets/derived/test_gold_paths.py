"""Gold paths: annotated ones as they are, else searched from the answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgqa_core.datasets.derived.gold_paths import GoldPath, all_gold_paths, dropped_paths, gold_paths
from kgqa_core.dkg.csr import Dkg
from kgqa_core.types import Question

# 0 and 1 are countries, 2 and 3 their capitals, 4 their currency; 0 borders 1.
DKG = Dkg.from_triples([0, 1, 0, 1, 0], [0, 0, 1, 1, 2], [2, 3, 4, 4, 1], 5, ["capital", "currency", "borders"])
QUESTION = Question("q", "what is paid with in 0", topic_entities=(0,), answers=(4,), relation_paths=(("currency",),))


def test_an_annotated_path_is_taken_with_its_f1() -> None:
    assert gold_paths(QUESTION, DKG, searched=3) == [GoldPath(0, ("currency",), "annotated", 1.0)]
    two = replace(QUESTION, relation_paths=(("currency",), ("capital",), ("currency",)))
    assert [(path.relations, path.f1) for path in gold_paths(two, DKG, searched=3)] == [
        (("currency",), 1.0),
        (("capital",), 0.0),
    ]


def test_a_question_without_answers_in_the_graph_keeps_its_annotation_and_has_no_f1() -> None:
    count = replace(QUESTION, answers=(), relation_paths=(("borders",),))
    assert gold_paths(count, DKG, searched=3) == [GoldPath(0, ("borders",), "annotated", None)]


def test_paths_with_an_empty_key_or_an_unknown_relation_are_dropped_and_counted() -> None:
    odd = replace(QUESTION, relation_paths=(("",), (), ("mayor", "currency"), ("currency",)))
    assert [path.relations for path in gold_paths(odd, DKG, searched=0)] == [("currency",)]
    assert dropped_paths(odd, DKG) == 3
    assert all_gold_paths([odd], DKG, searched=0)[1] == {"annotated": 1, "searched": 0, "without": 0, "dropped": 3}


def test_paths_and_topics_of_the_same_number_go_together() -> None:
    pair = replace(QUESTION, topic_entities=(0, 3), relation_paths=(("currency",), ("<inv>-capital", "currency")))
    assert [(path.topic, path.relations) for path in gold_paths(pair, DKG, searched=0)] == [
        (0, ("currency",)),
        (3, ("<inv>-capital", "currency")),
    ]


def test_one_path_starts_at_every_topic_that_it_can_be_grounded_from() -> None:
    both = replace(QUESTION, topic_entities=(0, 1, 2))
    assert [path.topic for path in gold_paths(both, DKG, searched=0)] == [0, 1]
    none = replace(both, relation_paths=(("capital", "capital"),))
    assert [path.topic for path in gold_paths(none, DKG, searched=0)] == [0]


def test_where_only_answers_are_known_paths_are_searched_and_say_so() -> None:
    unknown = replace(QUESTION, topic_entities=(2,), relation_paths=(("mayor",),))
    assert gold_paths(unknown, DKG, searched=3) == [GoldPath(2, ("<inv>-capital", "currency"), "searched", 1.0)]
    assert gold_paths(unknown, DKG, searched=0) == []
    assert gold_paths(unknown, DKG, searched=3, hops=1) == []
    assert len(gold_paths(replace(unknown, topic_entities=(0,), answers=(1,)), DKG, searched=1)) == 1


@pytest.mark.parametrize(
    "change", [{"topic_entities": ()}, {"relation_paths": (), "answers": ()}, {"relation_paths": (), "answers": (0,)}]
)
def test_without_topic_answer_or_way_there_is_none(change: dict[str, tuple[int, ...]]) -> None:
    poor = replace(QUESTION, **change)  # type: ignore[arg-type]
    found, counts = all_gold_paths([poor, QUESTION], DKG, searched=3)
    assert found[0] == [] and found[1] != []
    assert (counts["without"], counts["annotated"]) == (1, 1)
