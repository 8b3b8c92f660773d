"""Relation paths grounded, followed and searched, against enumeration by hand."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pytest

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.paths import ReasoningPath, answer_f1, distance, ground, reach, relation_ids, search, spread

ENTITIES, RELATIONS = 14, 3

Triples = list[tuple[int, int, int]]


def random_graph(seed: int) -> tuple[Dkg, Triples]:
    draw = random.Random(seed)
    every = list(itertools.product(range(ENTITIES), range(RELATIONS), range(ENTITIES)))
    triples = draw.sample(every, 60)
    return Dkg.from_triples(*zip(*triples, strict=True), ENTITIES, RELATIONS), triples


def chains_by_hand(triples: Triples, topic: int, relations: tuple[int, ...], avoid: set[int]) -> list[tuple[int, ...]]:
    """All chains in order: never back to the topic, never on from `avoid`."""
    chains = [(topic,)]
    for hop, relation in enumerate(relations):
        chains = [
            (*chain, other)
            for chain in chains
            if hop == 0 or chain[-1] not in avoid
            for head, own, tail in triples
            for here, other, directed in ((head, tail, own), (tail, head, own + RELATIONS))
            if directed == relation and here == chain[-1] and other != topic
        ]
    return sorted(chains)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("relations", [(0,), (4,), (0, 1), (2, 5), (3, 3, 1)])
def test_chains_ends_and_their_numbers_equal_those_found_by_hand(seed: int, relations: tuple[int, ...]) -> None:
    dkg, triples = random_graph(seed)
    topic, other = random.Random(seed).sample(range(ENTITIES), 2)
    expected = chains_by_hand(triples, topic, relations, {topic, other})
    found, cut = ground(dkg, topic, relations, limit=10_000, avoid={other})
    assert [chain.entities for chain in found] == expected
    assert cut == 0
    ends, counts, cut = spread(dkg, topic, relations, avoid={other})
    assert dict(zip(ends.tolist(), counts.tolist(), strict=True)) == Counter(chain[-1] for chain in expected)
    assert ends.tolist() == reach(dkg, topic, relations, avoid={other})[0].tolist() == sorted(set(ends.tolist()))
    for chain in found:
        assert dkg.source_of(chain.edges).tolist() == list(chain.entities[:-1])
        assert dkg.tail[list(chain.edges)].tolist() == list(chain.entities[1:])
        assert tuple(dkg.rel[list(chain.edges)].tolist()) == chain.relations == relations


@pytest.mark.parametrize("seed", range(12))
def test_fewer_chains_are_the_first_of_more(seed: int) -> None:
    dkg, _ = random_graph(seed)
    every, _ = ground(dkg, 0, (0, 4), limit=1_000)
    for limit in range(len(every) + 1):
        assert ground(dkg, 0, (0, 4), limit=limit)[0] == every[:limit]


def test_a_chain_does_not_leave_through_the_topic_or_another_topic_but_may_end_there() -> None:
    # 0 and 1 work for 2; 1 also for 3; r1 joins 2 with 4.
    dkg = Dkg.from_triples([0, 1, 1, 2], [0, 0, 0, 1], [2, 2, 3, 4], 5, 2)
    colleagues = (0, 2)  # works for, and back
    assert [chain.entities for chain in ground(dkg, 0, colleagues, limit=9)[0]] == [(0, 2, 1)]
    assert [chain.entities for chain in ground(dkg, 0, colleagues, limit=9, avoid={1})[0]] == [(0, 2, 1)]
    further = (0, 2, 0)
    assert [chain.entities for chain in ground(dkg, 0, further, limit=9)[0]] == [(0, 2, 1, 2), (0, 2, 1, 3)]
    assert ground(dkg, 0, further, limit=9, avoid={1}) == ([], 0)


def test_what_the_budget_leaves_out_is_counted() -> None:
    dkg = Dkg.from_triples([0] * 6, [0] * 6, range(1, 7), 7, 1)
    found, cut = ground(dkg, 0, (0,), limit=6, budget=4)
    assert ([chain.entities[1] for chain in found], cut) == ([1, 2, 3, 4], 2)
    assert ground(dkg, 0, (0,), limit=4, budget=4)[1] == 0
    ends, cut = reach(dkg, 0, (0,), budget=4)
    assert (ends.tolist(), cut) == ([1, 2, 3, 4], 2)


def test_a_path_of_no_hops_an_entity_without_edges_and_a_literal_lead_nowhere() -> None:
    dkg = Dkg.from_triples([0], [0], [2], 5, 1, literals=[(2, 5)])
    assert ground(dkg, 0, (), limit=5) == ([], 0)
    assert reach(dkg, 0, ())[0].tolist() == []
    assert ground(dkg, 4, (0,), limit=5) == ([], 0)
    assert ground(dkg, 0, (0, 1), limit=5) == ([], 0)
    assert [chain.entities for chain in ground(dkg, 0, (0,), limit=5)[0]] == [(0, 2)]


def test_keys_become_relation_ids_or_nothing() -> None:
    dkg = Dkg.from_triples([0], [0], [1], 2, ["capital", "currency"])
    assert relation_ids(dkg, ["<inv>-capital", "currency"]) == (2, 1)
    assert relation_ids(dkg, ["capital", "mayor"]) is None
    assert relation_ids(dkg, []) is None


def test_answer_f1_is_that_of_two_sets() -> None:
    ends = np.array([1, 2, 3, 4])
    assert answer_f1(ends, [3, 4, 5, 6, 7, 8]) == pytest.approx(2 * 2 / (4 + 6))
    assert answer_f1(ends, [9]) == answer_f1(ends, []) == answer_f1(ends[:0], [1]) == 0.0


def shortest_by_hand(
    triples: Triples, topics: list[int], answers: set[int], hops: int
) -> list[tuple[float, int, int, tuple[int, ...], int]]:
    """Every path that reaches an answer by no more hops than that answer needs from its topic, in order."""
    found = []
    for place, topic in enumerate(topics):
        nearest: dict[int, int] = {}
        for count in range(1, hops + 1):
            paths = itertools.product(range(2 * RELATIONS), repeat=count)
            ends = {path: {c[-1] for c in chains_by_hand(triples, topic, path, set(topics))} for path in paths}
            for reached in ends.values():
                for answer in reached & answers:
                    nearest.setdefault(answer, count)
            for path, reached in ends.items():
                if any(nearest[answer] == count for answer in reached & answers):
                    f1 = 2 * len(reached & answers) / (len(reached) + len(answers))
                    found.append((-f1, count, place, path, topic))
    return sorted(found)


@pytest.mark.parametrize("seed", range(8))
def test_search_finds_the_shortest_paths_and_the_best_f1_comes_first(seed: int) -> None:
    dkg, triples = random_graph(seed)
    draw = random.Random(seed + 100)
    topics = draw.sample(range(ENTITIES), 2)
    answers = set(draw.sample([entity for entity in range(ENTITIES) if entity not in topics], 3))
    expected = shortest_by_hand(triples, topics, answers, 2)
    found = search(dkg, topics, answers, hops=2, limit=1_000)
    assert [(-path.f1, path.hops, topics.index(path.topic), path.relations, path.topic) for path in found] == expected
    assert search(dkg, topics, answers, hops=2, limit=3) == found[:3]


def test_search_stops_at_its_budget_but_always_reads_the_topics_own_edges() -> None:
    # 0 leads to 1 by r0, which leads to twenty entities by r1.
    dkg = Dkg.from_triples([0] + [1] * 20, [0] + [1] * 20, [1, *range(2, 22)], 22, 2)
    assert [path.relations for path in search(dkg, [0], [5], hops=2, limit=5)] == [(0, 1)]
    assert search(dkg, [0], [5], hops=2, limit=5, budget=10) == []
    assert [path.relations for path in search(dkg, [0], [1], hops=2, limit=5, budget=0)] == [(0,)]


@pytest.mark.parametrize("seed", range(8))
def test_distance_is_the_length_of_the_shortest_path_that_search_finds(seed: int) -> None:
    dkg, _ = random_graph(seed)
    draw = random.Random(seed + 200)
    topics = draw.sample(range(ENTITIES), 2)
    answer = draw.choice([entity for entity in range(ENTITIES) if entity not in topics])
    paths = search(dkg, topics, [answer], hops=4, limit=1_000)
    assert distance(dkg, topics, [answer], hops=4) == min((path.hops for path in paths), default=None)


def test_distance_ends_at_its_hops_and_budget_and_answers_that_are_topics_have_none() -> None:
    chain = Dkg.from_triples([0, 1, 2, 3], [0] * 4, [1, 2, 3, 4], 6, 1)
    assert [distance(chain, [0], [end], hops=4) for end in range(6)] == [None, 1, 2, 3, 4, None]
    assert distance(chain, [0], [3], hops=2) is None and distance(chain, [], [3], hops=4) is None
    assert distance(chain, [0], [3], hops=4, budget=2) is None and distance(chain, [0], [1], hops=4, budget=0) == 1


def test_search_without_way_answer_or_topic_finds_nothing() -> None:
    dkg = Dkg.from_triples([0, 2], [0, 0], [1, 3], 4, 1)
    assert search(dkg, [0], [3], hops=2, limit=5) == []
    assert search(dkg, [0], [], hops=2, limit=5) == []
    assert search(dkg, [], [1], hops=2, limit=5) == []
    assert search(dkg, [0], [0], hops=2, limit=5) == []


def test_a_reasoning_path_is_a_value() -> None:
    one = ReasoningPath(0, (0,), (1,), (0, 2))
    assert one == ReasoningPath(0, (0,), (1,), (0, 2))
    assert len({one, ReasoningPath(0, (0,), (1,), (0, 2))}) == 1
