"""Invented graphs: a topic or two, facts about them and facts around those, in the order of retrieval."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tools.builtin_reader import grammar
from tools.builtin_reader.grammar import Use, draw_use
from tools.builtin_reader.names import Names
from tools.builtin_reader.relations import LITERAL

MAX_FACTS = ((3, 6), (4, 12), (5, 20))
"""Fewest and most facts of a context at each level of the curriculum."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One fact of an invented graph, from where one comes."""

    head: str
    use: Use
    tail: str
    hop: int

    def text(self) -> tuple[str, str, str]:
        """Head, relation label and tail."""
        return self.head, self.use.shown, self.tail


@dataclass
class World:
    """An invented graph around one or two topics."""

    random: Random
    names: Names
    chinese: bool
    style: str
    topics: list[str] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    used_relations: set[int] = field(default_factory=set)

    def name(self, kind: str) -> str:
        """An invented name of a kind."""
        names, draw = self.names, self.random
        if self.chinese:
            if kind == "date":
                return names.han_date()
            if kind == "measure":
                return names.han_measure()
            if kind == "sex":
                return draw.choice(("男", "女"))
            if kind == "sentence":
                return names.han_sentence() if draw.random() < 0.5 else names.han(4, 12)
            if kind == "code":
                return names.number() if draw.random() < 0.5 else names.code()
            return names.han(2, 3) if kind == "person" and draw.random() < 0.7 else names.han()
        makers = {
            "place": names.place, "person": names.person, "work": names.work, "number": names.number,
            "date": names.date, "year": names.year, "code": names.code,
        }  # fmt: skip
        return makers.get(kind, names.thing if draw.random() < 0.6 else names.place)()

    def use(self) -> Use:
        """A further relation of this graph, in a random direction."""
        use = draw_use(self.random, self.names, self.style, chinese=self.chinese, used=self.used_relations)
        relation = use.relation
        forward = bool(relation.questions or use.nouns)
        backward = relation.tail not in LITERAL and bool(relation.inverse_questions or use.nouns)
        if backward and (not forward or self.random.random() < 0.35):
            return use.turned()
        return use

    def fan(self) -> int:
        """How many tails an edge group has."""
        return self.random.choices((1, 2, 3, self.random.randint(4, 9)), (58, 18, 10, 14))[0]

    def grow(self, head: str, use: Use, hop: int, count: int | None = None) -> list[Edge]:
        """New facts from `head` along `use`, with new tails."""
        literal = use.direction > 0 and use.relation.tail in LITERAL
        number = count or (1 if literal else self.fan())
        tails = dict.fromkeys(self.name(use.target) for _ in range(number))
        new = [Edge(head, use, tail, hop) for tail in tails if tail != head]
        self.edges += new
        return new


def build(world: World, family: str, level: int) -> list[tuple[str, str]]:
    """Grows the graph that a question of `family` needs; the (head, shown label) of its gold groups."""
    random = world.random
    topic = world.name(random.choice(("place", "person", "work", "thing")))
    world.topics = [topic]
    gold: list[tuple[str, str]] = []
    if family in ("comparative", "intersection", "difference"):
        other = world.name("place")
        world.topics.append(other)
        use = world.use()
        if family == "comparative":
            while not grammar.numeric(use):
                world.used_relations.clear()
                use = world.use()
            for name in world.topics:
                world.grow(name, use, 1)
        else:
            while use.direction > 0 and use.relation.tail in LITERAL:
                use = world.use()
            uses = (use, use)
            common = [world.name(use.target) for _ in range(random.randint(1, 2))]
            for name, each in zip(world.topics, uses, strict=True):
                world.edges += [Edge(name, each, tail, 1) for tail in common]
                world.grow(name, each, 1, random.randint(1, 3))
        gold = [(name, use.shown) for name in world.topics]
    else:
        use = world.use()
        while family in ("2-hop", "superlative") and use.direction > 0 and use.relation.tail in LITERAL:
            use = world.use()
        many = random.randint(2, 8) if family == "superlative" else None
        middle = world.grow(topic, use, 1, random.randint(1, 9) if family == "count" else many)
        gold = [(topic, use.shown)]
        if family in ("2-hop", "superlative"):
            second = world.use()
            while family == "superlative" and not grammar.numeric(second):
                world.used_relations.clear()
                second = world.use()
            for edge in middle[:5] if family == "2-hop" else middle:
                world.grow(edge.tail, second, 2, None if len(middle) < 3 else 1)
                gold.append((edge.tail, second.shown))
    for _ in range(random.randint(1, 3 + 2 * level)):
        use = world.use()
        for name in world.topics:
            world.grow(name, use, 1)
    if family == "2-hop" or random.random() < 0.35:
        _second_hop(world)
    return gold


def _second_hop(world: World) -> None:
    random = world.random
    firsts = [
        edge
        for edge in world.edges
        if edge.hop == 1 and not (edge.use.direction > 0 and edge.use.relation.tail in LITERAL)
    ]
    uses = [world.use() for _ in range(random.randint(1, 3))]
    for edge in firsts[:4]:
        if random.random() < 0.6:
            world.edges.append(Edge(edge.tail, edge.use.turned(), edge.head, 2))
        for use in uses:
            if random.random() < 0.5:
                world.grow(edge.tail, use, 2, random.choice((1, 1, 2)))


def order(world: World, gold: list[tuple[str, str]], level: int, *, oracle: bool) -> list[Edge]:
    """Facts as a retriever ranks them: hop by hop, mostly the gold groups first, at most ten a hop."""
    random, shown = world.random, list[Edge]()
    budget = random.randint(*MAX_FACTS[level])
    best_first = random.random() < 0.75
    unique = list({edge.text(): edge for edge in world.edges}.values())
    for hop in (1, 2):
        groups: dict[tuple[str, str], list[Edge]] = {}
        for edge in unique:
            if edge.hop == hop and (not oracle or (edge.head, edge.use.shown) in gold):
                groups.setdefault((edge.head, edge.use.shown), []).append(edge)
        keys = list(groups)
        random.shuffle(keys)
        if best_first:
            keys.sort(key=lambda key: key not in gold)
        edges = [edge for key in keys for edge in groups[key]]
        if not best_first and random.random() < 0.5:
            random.shuffle(edges)
        left = max(1, min(10, budget - len(shown)))
        shown += edges[:left]
    return shown
