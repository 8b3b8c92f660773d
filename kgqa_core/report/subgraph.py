"""A question's retrieved facts from left to right, hop by hop, as inline SVG.

Entities and relations take turns in columns: topic, relation, entity, relation, entity.  Every label has a place of its
own in its column, and lines run only between neighbouring columns, so that nothing overlaps whatever the graph.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from kgqa_core.report.data import ExampleFact

ROW, BOX, GAP, MARGIN = 36, 26, 46, 10
WIDEST, NARROWEST = 190, 60
"""Pixels of the widest label and the narrowest column."""
CHARACTER = 6.6
MOST_TARGETS = 6
"""Targets shown of one relation of one entity; the others are counted."""
MOST_ROWS = 16
"""Places in a column."""


@dataclass
class _Node:
    label: str
    kind: str  # topic, gold, entity, relation, more
    width: float
    x: float = 0.0
    y: float = 0.0
    title: str = ""
    ghost: bool = False


@dataclass
class _Layout:
    columns: list[dict[object, _Node]] = field(default_factory=list)
    edges: list[tuple[_Node, _Node, float]] = field(default_factory=list)


def draw_subgraph(facts: Sequence[ExampleFact], topics: Collection[int], gold: Collection[int]) -> Markup:
    """The facts as an SVG element; empty markup without facts.  Names are escaped and shortened to their box."""
    if not facts:
        return Markup("")
    layout = _arrange(facts, frozenset(topics), frozenset(gold))
    rows = max(len(column) for column in layout.columns)
    height = rows * ROW + 2 * MARGIN
    left = float(MARGIN)
    for column in layout.columns:
        width = max((node.width for node in column.values()), default=NARROWEST)
        width = max(width, NARROWEST)
        top = (height - len(column) * ROW) / 2
        for row, node in enumerate(column.values()):
            node.x = left + width / 2
            node.y = top + row * ROW + ROW / 2
        left += width + GAP
    parts = [_edge(*edge) for edge in layout.edges]
    parts += [_node(node) for column in layout.columns for node in column.values()]
    return Markup(
        '<svg class="subgraph" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
        'aria-label="{n} retrieved facts as a graph">{body}</svg>'
    ).format(w=round(left - GAP + MARGIN), h=round(height), n=len(facts), body=Markup("").join(parts))


def shorten(text: str, widest: float = WIDEST) -> tuple[str, float]:
    """A label that fits `widest` pixels, with an ellipsis where it was cut, and its width."""
    text = " ".join(text.split())
    width = 0.0
    for index, character in enumerate(text):
        step = CHARACTER * (1.85 if unicodedata.east_asian_width(character) in "WF" else 1)
        if width + step > widest:
            return text[: max(1, index - 1)].rstrip() + "…", widest
        width += step
    return text, width


def _arrange(facts: Sequence[ExampleFact], topics: frozenset[int], gold: frozenset[int]) -> _Layout:
    hops = max(fact.hop for fact in facts)
    layout = _Layout(columns=[{} for _ in range(2 * hops + 1)])
    groups: dict[tuple[int, int, str, int], list[ExampleFact]] = {}
    for fact in sorted(facts, key=lambda fact: (fact.hop, -fact.score)):
        source = fact.head if fact.direction > 0 else fact.tail
        groups.setdefault((fact.hop, source, fact.relation, fact.direction), []).append(fact)
    for hop in range(1, hops + 1):
        sources, relations, targets = layout.columns[2 * hop - 2 : 2 * hop + 1]
        of_hop = {key: members for key, members in groups.items() if key[0] == hop}
        for (_, source, _, direction), members in of_hop.items():
            if source not in sources:
                name = members[0].head_name if direction > 0 else members[0].tail_name
                node = _entity(source, name, topics, gold)
                node.ghost = hop > 1
                sources[source] = node
        order = {source: index for index, source in enumerate(sources)}
        for key in sorted(of_hop, key=lambda key: (order[key[1]], -of_hop[key][0].score, key[2], key[3])):
            _place_group(layout, relations, targets, sources[key[1]], key, of_hop[key], topics, gold)
        _untangle(layout, relations, targets)
    while len(layout.columns) > 1 and not layout.columns[-1]:
        layout.columns.pop()
    return layout


def _place_group(
    layout: _Layout,
    relations: dict[object, _Node],
    targets: dict[object, _Node],
    source: _Node,
    key: tuple[int, int, str, int],
    members: list[ExampleFact],
    topics: frozenset[int],
    gold: frozenset[int],
) -> None:
    _, _, relation, direction = key
    forward = direction > 0
    label, width = shorten(relation, WIDEST)
    label = f"{label} →" if forward else f"← {label}"
    pill = _Node(
        label, "relation", width + 30, title=f"{relation} (followed {'as' if forward else 'against how it is'} stored)"
    )
    relations[key] = pill
    layout.edges.append((source, pill, members[0].score))
    # Gold answers are never among those that are only counted.
    ends = [
        (fact.tail, fact.tail_name, fact.score) if forward else (fact.head, fact.head_name, fact.score)
        for fact in members
    ]
    ends.sort(key=lambda end: end[0] not in gold)
    shown = ends if len(ends) <= MOST_TARGETS + 1 else ends[:MOST_TARGETS]
    hidden = ends[len(shown) :]
    for entity, name, score in shown:
        if entity not in targets:
            if len(targets) >= MOST_ROWS and entity not in gold:
                hidden.append((entity, name, score))
                continue
            targets[entity] = _entity(entity, name, topics, gold)
        layout.edges.append((pill, targets[entity], score))
    if hidden:
        more = _Node(f"+ {len(hidden)} more", "more", 70, title=", ".join(name for _, name, _ in hidden[:20]))
        targets[("more", key)] = more
        layout.edges.append((pill, more, hidden[0][2]))


def _untangle(layout: _Layout, relations: dict[object, _Node], targets: dict[object, _Node]) -> None:
    """Puts the targets in the order of the mean place of the relations that lead to them."""
    index = {id(node): row for row, node in enumerate(relations.values())}
    rows: dict[int, list[int]] = {}
    for left, right, _ in layout.edges:
        if id(left) in index:
            rows.setdefault(id(right), []).append(index[id(left)])
    mean = {key: sum(rows[id(node)]) / len(rows[id(node)]) for key, node in targets.items()}
    ordered = sorted(targets.items(), key=lambda item: mean[item[0]])
    targets.clear()
    targets.update(ordered)


def _entity(entity: int, name: str, topics: frozenset[int], gold: frozenset[int]) -> _Node:
    label, width = shorten(name)
    kind = "gold" if entity in gold else "topic" if entity in topics else "entity"
    return _Node(label, kind, max(34.0, width + 20), title=name)


def _node(node: _Node) -> Markup:
    width = node.width
    radius = BOX / 2 if node.kind == "relation" else 6
    return Markup(
        '<g class="n {kind}{ghost}"><title>{title}</title>'
        '<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{r}"/><text x="{tx}" y="{ty}">{label}</text></g>'
    ).format(
        kind=node.kind,
        ghost=" ghost" if node.ghost else "",
        title=node.title or node.label,
        x=round(node.x - width / 2, 1),
        y=round(node.y - BOX / 2, 1),
        w=round(width, 1),
        h=BOX,
        r=radius,
        tx=round(node.x, 1),
        ty=round(node.y + 4, 1),
        label=node.label,
    )


def _edge(left: _Node, right: _Node, score: float) -> Markup:
    x1, x2 = left.x + left.width / 2, right.x - right.width / 2
    middle = (x1 + x2) / 2
    strength = min(1.0, max(0.0, score))
    return Markup(
        '<path class="e" d="M{x1} {y1}C{m} {y1} {m} {y2} {x2} {y2}" stroke-width="{w}" opacity="{o}"/>'
    ).format(
        x1=round(x1, 1),
        y1=round(left.y, 1),
        m=round(middle, 1),
        y2=round(right.y, 1),
        x2=round(x2, 1),
        w=round(1 + 2 * strength, 2),
        o=round(0.35 + 0.65 * strength, 2),
    )
