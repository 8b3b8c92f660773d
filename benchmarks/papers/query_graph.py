"""A graph made of the graph queries of GrailQA questions, where the graph that they are about is not at hand.

Every gold answer stands in the place of the answer, with new nodes on the way to the entities that the query names, so
that each query finds its answers.  All questions share one graph: those about one entity see each other's triples.
Nodes have the types that the queries give them, entities too (`class` of an entity node).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.config import KgOptions
from kgqa_core.datasets.published.grailqa import GrailQuestion
from kgqa_core.kg.build import build
from kgqa_core.kg.vocabulary import FREEBASE
from kgqa_core.workspace import Workspace

TYPE = "type.object.type"
NAME = "type.object.name"

QueryTriple = tuple[str, str, str]
"""Subject, key of the relation, and object: IRIs in brackets or literals, as N-Triples writes them."""

_COUNTED = 50
"""Members that stand for the answer of a count at most; a count of more is not that of the annotation."""


def triples_of(question: GrailQuestion) -> tuple[tuple[QueryTriple, ...] | None, str]:
    """The triples of a question's graph query with its answers, each once, or None and the reason."""
    query = question.graph_query
    if query is None or not question.answers:
        return None, "no graph query or no answer"
    members: Sequence[str] = [answer.argument for answer in question.answers]
    if question.function == "count":
        members = [f"m.member_{question.id}_{number}" for number in range(min(_COUNTED, int(members[0])))]
    lines: list[QueryTriple] = []
    for number, member in enumerate(members):
        terms: dict[int, str] = {}
        for node in query["nodes"]:
            term, types = _term(node, member, f"{question.id}_{number}")
            terms[node["nid"]] = term
            lines += [(term, TYPE, _entity(key)) for key in types if term.startswith("<")]
        lines += [(terms[edge["start"]], edge["relation"], terms[edge["end"]]) for edge in query["edges"]]
    if any(subject.startswith('"') for subject, _, _ in lines):
        return None, "a value as the subject of an edge"
    names = {node["id"]: node.get("friendly_name") for node in query["nodes"] if node["node_type"] == "entity"}
    lines += [(_entity(key), NAME, _text(name) + "@en") for key, name in names.items() if name]
    return tuple(dict.fromkeys(lines)), ""


def build_graph(questions: Iterable[GrailQuestion], out: Path) -> dict[str, int]:
    """Builds the graph of some questions in the folder `out`; returns how many have no triples, by reason.

    `out` is made; the lines that it is built from stand beside it, in `out` with the suffix `.nt`.
    """
    lines: set[QueryTriple] = set()
    without: dict[str, int] = {}
    for question in questions:
        own, reason = triples_of(question)
        lines.update(own or ())
        if own is None:
            without[reason] = without.get(reason, 0) + 1
    source = out.with_suffix(".nt")
    write_triples(lines, source)
    out.mkdir()
    build(Workspace(out), options=KgOptions(files=(str(source),), format="freebase"))
    return without


def write_triples(lines: Iterable[QueryTriple], path: Path) -> None:
    """Writes triples as N-Triples, each once, sorted."""
    path.write_text(
        "".join(f"{subject} <{FREEBASE}{relation}> {thing} .\n" for subject, relation, thing in sorted(set(lines))),
        encoding="utf-8",
    )


def entity_triples(question: GrailQuestion) -> Iterator[QueryTriple]:
    """Names and types of the entities that a question's graph query names."""
    for node in (question.graph_query or {"nodes": ()})["nodes"]:
        if node["node_type"] == "entity":
            yield _entity(node["id"]), NAME, _text(node.get("friendly_name") or node["id"]) + "@en"
            if node.get("class"):
                yield _entity(node["id"]), TYPE, _entity(node["class"])


def _term(node: dict[str, Any], member: str, place: str) -> tuple[str, tuple[str, ...]]:
    """The term of a node of a query, and its types."""
    kind, key = node["node_type"], node["id"]
    if kind == "literal":
        value, _, datatype = key.partition("^^")
        return f'"{_fulfilling(value, node["function"])}"^^<{datatype}>', ()
    if kind == "entity":
        return _entity(key), tuple(one for one in (node.get("class"),) if one)
    own = member if node["question_node"] else f"m.between_{place}_{node['nid']}"
    return (_entity(own) if own.startswith(("m.", "g.")) else _text(own)), (key,)


def _fulfilling(value: str, function: str) -> str:
    """A value that fulfils a comparison with `value`; a bound that is no number stands as it is."""
    if function not in ("<", ">"):
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return str(int(number) + (1 if function == ">" else -1))


def _entity(key: str) -> str:
    return f"<{FREEBASE}{key}>"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
