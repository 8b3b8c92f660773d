"""Relations of an entity, the draw of their triples, and the facts that a ranking gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kgqa_core.config import RelationRankingOptions, RetrievalOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.papers.ltgen.relation_ranking.ranker import RankedRelation, RankingQuery
from kgqa_core.papers.ltgen.relation_ranking.retriever import RelationRanking, candidates, draw_edges
from kgqa_core.types import Question

KEYS = ("born_in", "capital", "member")
TOWN, LAND, CLUB = 0, 1, 2
PEOPLE = range(3, 33)


@pytest.fixture(scope="module")
def dkg() -> Dkg:
    """Thirty people born in a town and members of a club; the town is the capital of a land."""
    triples = [(person, 0, TOWN) for person in PEOPLE] + [(LAND, 1, TOWN)] + [(person, 2, CLUB) for person in PEOPLE]
    head, relation, tail = zip(*triples, strict=True)
    return Dkg.from_triples(head, relation, tail, 33, KEYS)


class Fixed:
    """A ranker that likes relations in a given order."""

    name = "fixed"

    def __init__(self, order: Sequence[str]) -> None:
        self.order, self.queries, self.counts = list(order), list[RankingQuery](), {"calls": 0}

    def rank(self, queries: Sequence[RankingQuery], most: int, monitor: Monitor = QUIET) -> list[list[RankedRelation]]:
        self.queries += queries
        self.counts["calls"] += 1
        found = []
        for one in queries:
            places = sorted(range(len(one.relations)), key=lambda place: self.order.index(one.relations[place]))
            found.append([(place, 1 / (rank + 1)) for rank, place in enumerate(places[:most])])
        return found


def retriever(dkg: Dkg, seed: int = 7, **options: Any) -> RelationRanking:
    order = ["<inv>-born in", "<inv>-capital", "<inv>-member", "capital", "born in", "member"]
    return RelationRanking(dkg, Fixed(order), RelationRankingOptions(**options), RetrievalOptions(), seed)


def question_of(name: str = "q", *topics: int) -> Question:
    return Question(name, "who?", topic_keys=tuple(f"key {topic}" for topic in topics), topic_entities=topics)


def test_candidates_are_the_directed_relations_of_an_entity(dkg: Dkg) -> None:
    town = candidates(dkg, TOWN, 10)
    assert [dkg.relation_keys[relation] for relation in town.relation] == ["<inv>-born_in", "<inv>-capital"]
    assert town.count.tolist() == [30, 1] and town.cut == 0
    person = candidates(dkg, PEOPLE[0], 10)
    assert [dkg.relation_keys[relation] for relation in person.relation] == ["born_in", "member"]
    for found in (town, person):
        for relation, first, count in zip(found.relation, found.first, found.count, strict=True):
            edges = np.arange(first, first + count)
            assert set(dkg.rel[edges].tolist()) == {relation}
            assert set(dkg.source_of(edges).tolist()) == {found.entity}


def test_too_many_relations_leave_those_of_most_triples(dkg: Dkg) -> None:
    town = candidates(dkg, TOWN, 1)
    assert [dkg.relation_keys[relation] for relation in town.relation] == ["<inv>-born_in"]
    assert town.cut == 1
    assert candidates(dkg, LAND, 1).count.tolist() == [1]


def test_an_entity_without_triples_has_no_candidates() -> None:
    dkg = Dkg.from_triples([0], [0], [1], 3, 1)
    assert candidates(dkg, 2, 5).relation.tolist() == []


def test_a_draw_depends_on_seed_question_entity_and_relation_alone(dkg: Dkg) -> None:
    town = candidates(dkg, TOWN, 10)
    club = candidates(dkg, CLUB, 10)
    first = draw_edges(town, 0, 10, 7, "q").tolist()
    assert first == draw_edges(candidates(dkg, TOWN, 1), 0, 10, 7, "q").tolist()
    assert len(set(first)) == 10 and first == sorted(first)
    assert set(first) <= set(range(int(town.first[0]), int(town.first[0]) + 30))
    assert first != draw_edges(town, 0, 10, 8, "q").tolist()
    assert first != draw_edges(town, 0, 10, 7, "other").tolist()
    drawn_of_club = draw_edges(club, 0, 10, 7, "q") - club.first[0]
    assert drawn_of_club.tolist() != [edge - int(town.first[0]) for edge in first]


def test_every_triple_of_a_pair_can_be_sampled(dkg: Dkg) -> None:
    town = candidates(dkg, TOWN, 10)
    seen = {edge for seed in range(60) for edge in draw_edges(town, 0, 10, seed, "q").tolist()}
    assert len(seen) == 30


def test_facts_stand_in_the_order_of_their_relations_and_no_more_than_wanted(dkg: Dkg) -> None:
    [found] = retriever(dkg, triples=4).retrieve([question_of("q", TOWN)])
    assert [fact.rank for fact in found.facts] == list(range(5))
    heads, relations, tails = dkg.edges([fact.triple for fact in found.facts])
    assert [KEYS[relation] for relation in relations] == ["born_in"] * 4 + ["capital"]
    assert set(tails.tolist()) == {TOWN}
    assert {fact.direction for fact in found.facts} == {-1} and {fact.hop for fact in found.facts} == {1}
    assert [fact.score for fact in found.facts] == [1, 1, 1, 1, 0.5]
    assert [entity for entity, _ in found.entities] == heads.tolist()


def test_relations_are_ranked_for_each_entity_by_itself(dkg: Dkg) -> None:
    own = retriever(dkg, relations=1, triples=2)
    [found] = own.retrieve([question_of("q", TOWN, CLUB)])
    assert [(entity, dkg.relation_keys[relation]) for entity, relation, _ in found.pairs] == [
        (TOWN, "<inv>-born_in"),
        (CLUB, "<inv>-member"),
    ]
    assert len(found.facts) == 4


def test_a_triple_between_two_topics_is_one_fact(dkg: Dkg) -> None:
    [found] = retriever(dkg, triples=1).retrieve([question_of("q", LAND, TOWN)])
    triples = [fact.triple for fact in found.facts]
    assert len(triples) == len(set(triples)) == 2  # one birth, and the capital once
    assert not {LAND, TOWN} & {entity for entity, _ in found.entities}


def test_a_question_gets_the_same_facts_alone_and_among_others(dkg: Dkg) -> None:
    questions = [question_of("a", TOWN), question_of("none"), question_of("b", CLUB, TOWN)]
    together = retriever(dkg).retrieve(questions)
    assert together[1].facts == () and together[1].entities == ()
    assert [retriever(dkg).retrieve([question])[0] for question in questions] == together
    assert retriever(dkg, seed=8).retrieve(questions) != together


def test_what_is_cut_is_counted(dkg: Dkg) -> None:
    [found] = retriever(dkg, max_relations=1).retrieve([question_of("q", TOWN)])
    assert found.truncated == 1


def test_topics_are_named_by_their_keys_where_there_is_no_graph_store(dkg: Dkg) -> None:
    own = retriever(dkg)
    own.retrieve([question_of("q", TOWN, TOWN)])
    ranker = own.ranker
    assert isinstance(ranker, Fixed)
    assert ranker.queries == [RankingQuery("who?", "key 0", ("<inv>-born in", "<inv>-capital"))]
