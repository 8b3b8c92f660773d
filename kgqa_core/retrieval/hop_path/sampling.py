"""Which reasoning paths of a question are returned, and how the entities at their ends are ranked.

A predicted relation path may have a thousand chains in the graph, and `hop_path.reasoning_paths` (M) of all are
returned.  As published (Wu et al. 2023, section 3.1) they are taken path by path, the best first, until there are M:
`sample_sequential`.  `sample` divides the M places between the paths by their scores, so that the second path has one
too where the first is unsure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.paths import ReasoningPath, ground, spread
from kgqa_core.retrieval.api import LEAST_SCORE

POOL = 1_000
"""Chains of one topic and relation path among which is chosen, the first ones."""
Paths = Sequence[tuple[tuple[int, ...], float]]
"""Relation ids and score, best first."""


@dataclass(frozen=True)
class GroundedPaths:
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


def ground_all(dkg: Dkg, topics: Sequence[int], paths: Paths, most: int, budget: int) -> GroundedPaths:
    """Grounds the paths, best first, that can have one of `most` places.  budget: edges for one path and topic."""
    distinct = tuple(dict.fromkeys(topics))
    place_scores: list[float] = []
    chains: list[tuple[tuple[ReasoningPath, ...], ...]] = []
    cut = 0
    for relations, score in paths:
        if len(place_scores) >= most and sorted(place_scores, reverse=True)[most - 1] >= score:
            break
        limit = POOL if len(distinct) > 1 or len(relations) > 1 else most
        by_topic = []
        for topic in distinct:
            grounded, missed = ground(dkg, topic, relations, limit=max(limit, most), avoid=distinct, budget=budget)
            by_topic.append(tuple(grounded))
            cut += missed
        chains.append(tuple(by_topic))
        place_scores += [score / (rank + 1) for rank in range(min(most, sum(map(len, by_topic))))]
    return GroundedPaths(distinct, paths, tuple(chains), cut)


def sample(grounded: GroundedPaths, most: int, named: Callable[[int], int]) -> list[tuple[int, ReasoningPath]]:
    """(number of its relation path, chain) of up to `most` chains, best path first.

    The nth chain of a path bids its score over n, and the highest bids have the places (D'Hondt); paths below
    `LEAST_SCORE` bid only where no other has a chain.
    named: length of the longest name of an entity that stands in the question, 0 for none.
    """
    bids = [
        (-grounded.paths[number][1] / (rank + 1), number, rank, chain)
        for number, chains in enumerate(grounded.chains)
        for rank, chain in enumerate(_ordered(chains, grounded.topics, named)[:most])
    ]
    worthy = [bid for bid in bids if grounded.paths[bid[1]][1] >= LEAST_SCORE]
    chosen = sorted(worthy or bids, key=lambda bid: bid[:3])[:most]
    return [(number, chain) for _, number, _, chain in sorted(chosen, key=lambda bid: bid[1:3])]


def sample_sequential(
    grounded: GroundedPaths, most: int, named: Callable[[int], int]
) -> list[tuple[int, ReasoningPath]]:
    """(number of its relation path, chain) of the first `most` chains: path by path, the best first, as published.

    Chains of one path are in the order that `sample` has for them; with one topic and no name that is by entity ids.
    """
    ordered = enumerate(_ordered(own, grounded.topics, named) for own in grounded.chains)
    return list(islice(((number, chain) for number, chains in ordered for chain in chains), most))


def ends_of(
    dkg: Dkg, grounded: GroundedPaths, most: int, budget: int, named: Callable[[int], int]
) -> list[tuple[int, float]]:
    """The entities that the paths lead to with their best path's score, at most `most`.

    The best path's come first; of one path those that more topics reach, then those behind an entity that the question
    names, then those of more chains, then by id.
    """
    ranked: dict[int, float] = {}
    for number, (relations, score) in enumerate(grounded.paths):
        if len(ranked) >= most:
            break
        reached: Counter[int] = Counter()
        chain_counts: Counter[int] = Counter()
        for topic in grounded.topics:
            entities, chains, _ = spread(dkg, topic, relations, avoid=grounded.topics, budget=budget)
            reached.update(entities.tolist())
            chain_counts.update(dict(zip(entities.tolist(), chains.tolist(), strict=True)))
        behind: dict[int, int] = {}
        for chains_of_path in grounded.chains[number] if number < len(grounded.chains) else ():
            for chain in chains_of_path:
                end = chain.entities[-1]
                behind[end] = max(behind.get(end, 0), _longest(chain, named))
        order = sorted(reached, key=lambda end: (-reached[end], -behind.get(end, 0), -chain_counts[end], end))
        for entity in order:
            ranked.setdefault(entity, score)
    return list(ranked.items())[:most]


def _ordered(
    by_topic: Sequence[Sequence[ReasoningPath]], topics: Sequence[int], named: Callable[[int], int]
) -> list[ReasoningPath]:
    """All chains of one relation path, the best first."""
    shared = Counter(end for chains in by_topic for end in _ends(chains))
    inner = set(topics)

    def worth(chain: ReasoningPath) -> tuple[int, int]:
        end = chain.entities[-1]
        return -(shared[end] + (end in inner)), -_longest(chain, named)

    turns = zip_longest(*(sorted(chains, key=worth) for chains in by_topic))
    return sorted((chain for turn in turns for chain in turn if chain is not None), key=worth)


def _longest(chain: ReasoningPath, named: Callable[[int], int]) -> int:
    return max((named(entity) for entity in chain.entities[1:-1]), default=0)


def _ends(chains: Iterable[ReasoningPath]) -> set[int]:
    return {chain.entities[-1] for chain in chains}
