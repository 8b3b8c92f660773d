"""Triple sampling: M reasoning paths of the predicted relation paths, in descending score.

The paper grounds the paths in descending score until M chains are found, so that a relation path that leads to many
entities takes all of them and a second guess is never seen.  Here the M places are divided in proportion to the scores:
each goes to the relation path whose score, divided by one more than the places it has, is greatest (D'Hondt's rule),
ties to the better path.  A path that holds M / (M + 1) of the probability of itself and the next still takes every
place it can fill, as in the paper; a doubtful one leaves some to the next.  Paths of less than LEAST_SCORE are noise,
as Rigel's facts are: they get a place only where no better path has a chain.  The chains then stand in the order of
their paths' scores.

Which chains of one relation path, where it has more than its places:
1. those whose end other topics of the question reach by the path too, or is one of them;
2. those that lead through an entity that the question names, the longest name first (`the venue of [topic]'s rowing`
   has the path event, venue, and rowing is an event);
3. by the ids of their entities, hop by hop; several topics take turns in their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.paths import ReasoningPath, ground, spread
from kgqa_core.retrieval.api import LEAST_SCORE

POOL = 1_000
"""Chains of one topic and relation path among which is chosen, the first ones."""

Paths = Sequence[tuple[tuple[int, ...], float]]
"""Relation ids and score, best first."""


@dataclass(frozen=True)
class Grounded:
    """Chains of relation paths from the topics of a question.

    chains[i][j]: of the ith path from the jth topic, in order of entity ids.  cut: edges that were cut.
    """

    topics: tuple[int, ...]
    paths: Paths
    chains: tuple[tuple[tuple[ReasoningPath, ...], ...], ...]
    cut: int

    def between(self) -> set[int]:
        """Entities within chains, neither topic nor end, of paths that have more chains than one."""
        return {
            entity
            for own in self.chains
            if sum(map(len, own)) > 1
            for chains in own
            for chain in chains
            for entity in chain.entities[1:-1]
        }


def ground_all(dkg: Dkg, topics: Sequence[int], paths: Paths, most: int, budget: int) -> Grounded:
    """Grounds the paths, best first, that can have one of `most` places.  budget: edges for one path and topic."""
    distinct = tuple(dict.fromkeys(topics))
    claims: list[float] = []
    chains: list[tuple[tuple[ReasoningPath, ...], ...]] = []
    cut = 0
    for relations, score in paths:
        if len(claims) >= most and sorted(claims, reverse=True)[most - 1] >= score:
            break
        limit = POOL if len(distinct) > 1 or len(relations) > 1 else most
        own = []
        for topic in distinct:
            found, missed = ground(dkg, topic, relations, limit=max(limit, most), avoid=distinct, budget=budget)
            own.append(tuple(found))
            cut += missed
        chains.append(tuple(own))
        claims += [score / (taken + 1) for taken in range(min(most, sum(map(len, own))))]
    return Grounded(distinct, paths, tuple(chains), cut)


def sample(found: Grounded, most: int, named: Callable[[int], int]) -> list[tuple[int, ReasoningPath]]:
    """(number of its relation path, chain) of up to `most` chains, best path first.

    named: length of the longest name of an entity that stands in the question, 0 for none.
    """
    places = [
        (-found.paths[number][1] / (taken + 1), number, taken, chain)
        for number, own in enumerate(found.chains)
        for taken, chain in enumerate(_ordered(own, found.topics, named)[:most])
    ]
    worthy = [place for place in places if found.paths[place[1]][1] >= LEAST_SCORE]
    chosen = sorted(worthy or places, key=lambda place: place[:3])[:most]
    return [(number, chain) for _, number, _, chain in sorted(chosen, key=lambda place: place[1:3])]


def ends_of(dkg: Dkg, found: Grounded, most: int, budget: int, named: Callable[[int], int]) -> list[tuple[int, float]]:
    """The entities that the paths lead to with their best path's score, at most `most`.

    The best path's come first; of one path those that more topics reach, then those behind an entity that the question
    names, then those of more chains, then by id.
    """
    ranked: dict[int, float] = {}
    for number, (relations, score) in enumerate(found.paths):
        if len(ranked) >= most:
            break
        reached: Counter[int] = Counter()
        ways: Counter[int] = Counter()
        for topic in found.topics:
            entities, chains, _ = spread(dkg, topic, relations, avoid=found.topics, budget=budget)
            reached.update(entities.tolist())
            ways.update(dict(zip(entities.tolist(), chains.tolist(), strict=True)))
        behind: dict[int, int] = {}
        for own in found.chains[number] if number < len(found.chains) else ():
            for chain in own:
                end = chain.entities[-1]
                behind[end] = max(behind.get(end, 0), _longest(chain, named))
        order = sorted(reached, key=lambda end: (-reached[end], -behind.get(end, 0), -ways[end], end))
        for entity in order:
            ranked.setdefault(entity, score)
    return list(ranked.items())[:most]


def _ordered(
    own: Sequence[Sequence[ReasoningPath]], topics: Sequence[int], named: Callable[[int], int]
) -> list[ReasoningPath]:
    """All chains of one relation path, the best first."""
    shared = Counter(end for chains in own for end in _ends(chains))
    inner = set(topics)

    def worth(chain: ReasoningPath) -> tuple[int, int]:
        end = chain.entities[-1]
        return -(shared[end] + (end in inner)), -_longest(chain, named)

    turns = zip_longest(*(sorted(chains, key=worth) for chains in own))
    return sorted((chain for turn in turns for chain in turn if chain is not None), key=worth)


def _longest(chain: ReasoningPath, named: Callable[[int], int]) -> int:
    return max((named(entity) for entity in chain.entities[1:-1]), default=0)


def _ends(chains: Iterable[ReasoningPath]) -> set[int]:
    return {chain.entities[-1] for chain in chains}
