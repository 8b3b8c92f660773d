"""Entity-relation pairs: which ones a question needs, which ones triples hold, and their recall."""

from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.metrics.pairs import gold_pairs, invert, pair_recall, recall_at, triple_pairs
from kgqa_core.types import Question

ANN, OSLO, BO = 1, 2, 3
KEYS = {"Ann": [ANN], "Oslo": [OSLO], "Bo": [BO]}


def question(*triples: tuple[str, str, str], topics: tuple[int, ...] = (), paths: tuple = ()) -> Question:
    return Question("q", "?", topic_entities=topics, gold_triples=triples, relation_paths=paths)


def test_a_pair_starts_at_the_topic_whichever_end_of_the_triple_it_is() -> None:
    born = ("Ann", "born_in", "Oslo")
    assert gold_pairs(question(born, topics=(ANN,)), KEYS) == [{(ANN, "born_in")}]
    assert gold_pairs(question(born, topics=(OSLO,)), KEYS) == [{(OSLO, "<inv>-born_in")}]
    assert gold_pairs(question(born, topics=(ANN, OSLO)), KEYS) == [{(ANN, "born_in")}]
    assert gold_pairs(question(born, topics=(BO,)), KEYS) == [{(ANN, "born_in")}]


def test_triples_of_one_pair_count_once() -> None:
    spoken = [("Ann", "speaks", "Oslo"), ("Ann", "speaks", "Bo"), ("Ann", "born_in", "Oslo")]
    assert gold_pairs(question(*spoken, topics=(ANN,)), KEYS) == [{(ANN, "speaks")}, {(ANN, "born_in")}]


def test_a_pair_of_an_entity_that_is_not_in_the_graph_is_never_found() -> None:
    wanted = gold_pairs(question(("Cy", "born_in", "Oslo"), ("Ann", "born_in", "Nowhere")), KEYS)
    assert wanted == [frozenset(), {(ANN, "born_in")}]
    assert pair_recall({(ANN, "born_in"), (OSLO, "born_in")}, wanted) == 0.5


def test_first_steps_of_the_paths_stand_in_for_gold_triples() -> None:
    paths = (("works_for", "based_in"), ("works_for",), ("<inv>-knows", "speaks"), ())
    wanted = gold_pairs(question(topics=(ANN, BO), paths=paths), {})
    assert wanted == [{(ANN, "works_for"), (BO, "works_for")}, {(ANN, "<inv>-knows"), (BO, "<inv>-knows")}]
    assert pair_recall({(BO, "works_for")}, wanted) == 0.5
    assert gold_pairs(question(topics=(ANN,)), {}) == []


def test_a_triple_holds_the_pair_of_either_end() -> None:
    assert triple_pairs(ANN, "born_in", OSLO) == ((ANN, "born_in"), (OSLO, "<inv>-born_in"))
    assert invert(invert("born_in")) == "born_in"


def test_recall_of_nothing_wanted_is_zero() -> None:
    assert pair_recall({(ANN, "born_in")}, []) == recall_at(3, []) == 0.0


@given(st.lists(st.none() | st.integers(1, 9), max_size=6), st.integers(1, 9))
def test_recall_grows_with_k_up_to_the_whole(ranks: list[int | None], k: int) -> None:
    assert 0 <= recall_at(k, ranks) <= recall_at(k + 1, ranks) <= recall_at(None, ranks) <= 1
