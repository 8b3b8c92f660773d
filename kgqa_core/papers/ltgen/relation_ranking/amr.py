"""AMR graphs of questions, read with `penman`, as graphs whose edges are nodes too.

A concept, a constant and a role are nodes alike: `(d / develop-02 :ARG1 (p / product))` has the nodes `develop`,
`ARG1` and `product`, and the edges develop → ARG1 → product.  A role that is written inversely (`:ARG0-of`) is turned
round, so that the edges say the same however a graph is written.  Graph attention then tells roles apart by their node.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kgqa_core.errors import InputError
from kgqa_core.extras import require_extra

INSTANCE = ":instance"
LINKS = ":entities"
"""Role under which extended AMR lists linked entities, which are no part of the meaning."""
CONCEPT, CONSTANT, ROLE = range(3)
KINDS = 3
_SENSE = re.compile(r"-\d{2,3}$")

Triple = tuple[str, str, Any]
"""Source variable, role with its colon, and target: a variable or a constant; None where it is missing."""


@dataclass(frozen=True)
class AmrGraph:
    """A question's graph with its edges reified into nodes.

    labels: words of each node.  kinds: CONCEPT, CONSTANT or ROLE.  edges: (from, to) in the direction of the roles.
    """

    labels: tuple[str, ...]
    kinds: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]


def read_penman(text: str) -> list[Triple]:
    """The triples of a graph in PENMAN notation, inverse roles turned round.  Raises InputError when it is none."""
    require_extra("amr", "reading AMR graphs")
    import penman
    from penman.models.amr import model

    try:
        return list(penman.decode(text, model=model).triples)
    except penman.PenmanError as fault:
        opening = " ".join(text.split())[:60]
        raise InputError(f"an AMR graph that begins with {opening!r} is no PENMAN: {fault}") from None


def reify(triples: Sequence[Triple]) -> AmrGraph:
    """The graph with a node for each concept, constant and role.

    Equal constants of one source and role are nodes of their own, as they are in the text.  A variable without concept
    is labelled by its name.  What hangs on `:entities` is left out.

    >>> reify([("d", ":instance", "develop-02"), ("d", ":ARG1", "p"), ("p", ":instance", "product")])
    AmrGraph(labels=('develop', 'product', 'ARG1'), kinds=(0, 0, 2), edges=((0, 2), (2, 1)))
    """
    triples = _without_links(triples)
    concepts = {source: target for source, role, target in triples if role == INSTANCE and target is not None}
    variables = dict.fromkeys(source for source, _, _ in triples)
    index = {variable: number for number, variable in enumerate(variables)}
    labels = [_words(str(concepts.get(variable, variable))) for variable in variables]
    kinds = [CONCEPT] * len(labels)
    edges: list[tuple[int, int]] = []
    for source, role, target in triples:
        if role == INSTANCE or target is None:
            continue
        node = len(labels)
        labels.append(role.lstrip(":"))
        kinds.append(ROLE)
        end = index.get(target)
        if end is None:
            end = len(labels)
            labels.append(_words(str(target).strip('"')))
            kinds.append(CONSTANT)
        edges += [(index[source], node), (node, end)]
    return AmrGraph(tuple(labels), tuple(kinds), tuple(edges))


def _without_links(triples: Sequence[Triple]) -> list[Triple]:
    """The triples but those of what hangs on `:entities` alone; what the rest of the graph names too stays."""
    outside = {target for _, role, target in triples if role == LINKS}
    while True:
        more = {target for source, role, target in triples if source in outside and role != INSTANCE} - outside
        if not more:
            break
        outside |= more
    inside = {source for source, _, _ in triples[:1]}
    while inside & outside:
        outside -= inside
        inside = {target for source, role, target in triples if source not in outside and role not in (INSTANCE, LINKS)}
    return [triple for triple in triples if triple[0] not in outside and triple[1] != LINKS]


def _words(label: str) -> str:
    """A concept or constant in words: without sense number, `amr-unknown` as `unknown`.

    >>> [_words(label) for label in ("bear-02", "amr-unknown", "have-org-role-91", "http://dbpedia.org/resource/Area_51")]
    ['bear', 'unknown', 'have org role', 'Area 51']
    """
    if "://" in label:
        label = label.rstrip("/").rpartition("/")[2]
    if label == "amr-unknown":
        return "unknown"
    return " ".join(re.sub(r"[-_]+", " ", _SENSE.sub("", label)).split()) or label or "nothing"
