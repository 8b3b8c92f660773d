"""The neighbourhood of some entities by breadth-first search in plain Python, for `kg.subset`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

Statement = tuple[str, str, str]
"""Subject, relation and object; an object that begins with `Q` is an entity, any other a literal."""

TYPE = "P31"


@dataclass(frozen=True)
class Neighbourhood:
    """statements: those that are kept.  ends: entities that are an end of one.  types: of entities that are reached."""

    statements: set[Statement]
    entities: set[str]
    types: set[str]
    relations: set[str]
    ends: set[str]
    reached_by_hop: list[int]
    runs_cut: int


def neighbourhood(
    graph: Sequence[Statement],
    seeds: Sequence[str],
    *,
    hops: int,
    max_degree: int,
    both: bool,
    relations: Sequence[str] = (),
) -> Neighbourhood:
    """What is kept around the seeds; an entity's triples of one relation and direction over `max_degree` are cut."""
    followed = [one for one in graph if not relations or one[1] in relations]
    edges = [one for one in followed if one[2].startswith("Q")]
    degree = Counter((subject, relation, "out") for subject, relation, _ in edges)
    degree.update((thing, relation, "in") for _, relation, thing in edges)
    cut = {run for run, length in degree.items() if max_degree and length > max_degree}

    def out_of(one: Statement, entities: set[str]) -> bool:
        literal = not one[2].startswith("Q")
        return one[0] in entities and (literal or (one[0], one[1], "out") not in cut)

    def into(one: Statement, entities: set[str]) -> bool:
        return both and one[2].startswith("Q") and one[2] in entities and (one[2], one[1], "in") not in cut

    reached, frontier, expanded = set(seeds), set(seeds), set[str]()
    by_hop = []
    for _ in range(hops):
        expanded |= frontier
        ends = {one[2] for one in edges if out_of(one, frontier)} | {one[0] for one in edges if into(one, frontier)}
        frontier = ends - reached
        reached |= frontier
        by_hop.append(len(frontier))
        if not frontier:
            break
    kept = {one for one in followed if out_of(one, expanded) or into(one, expanded)}
    kept |= {one for one in graph if one[1] == TYPE and one[2].startswith("Q") and one[0] in reached}
    types = {one[2] for one in kept if one[1] == TYPE and one[2].startswith("Q")}
    ends = {one[0] for one in kept} | {one[2] for one in kept if one[2].startswith("Q")}
    return Neighbourhood(
        kept,
        reached,
        types,
        {one[1] for one in kept},
        ends,
        by_hop,
        sum(entity in expanded for entity, *rest in cut if both or rest[1] == "out"),
    )
