"""Training text of the reader: invented graphs, facts in the order of retrieval, questions and answers.

A sample is one context with several questions on it.  Its first question has the context in retrieval order, as the
pipeline asks it; the further ones let one context teach several lookups (they follow in the same text, and a prompt of
the pipeline is exactly the beginning of a sample).  Everything follows from a seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from kgqa_core import prompts
from kgqa_core.llm.builtin import grammar
from kgqa_core.llm.builtin.grammar import Use, draw_use
from kgqa_core.llm.builtin.names import Names
from kgqa_core.llm.builtin.relations import LITERAL

END = "<|end|>"
UNKNOWN = "unknown"
FAMILIES = (
    "1-hop", "2-hop", "yes/no", "count", "comparative", "superlative", "intersection", "difference", "absent",
    "no facts",
)  # fmt: skip
WEIGHTS = (
    (70, 10, 6, 5, 0, 0, 4, 0, 3, 2),
    (44, 26, 6, 6, 4, 3, 4, 2, 3, 2),
    (36, 32, 6, 6, 6, 4, 4, 2, 2, 2),
)
"""Shares of the families at each level of the curriculum."""
MAX_FACTS = ((3, 6), (4, 12), (5, 20))


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


@dataclass(frozen=True, slots=True)
class Sample:
    """A context with its questions: (family, question, answer), the first in retrieval order."""

    context: str
    items: tuple[tuple[str, str, str], ...]
    chinese: bool

    def prompt(self) -> str:
        """The prompt of the first question, as the pipeline writes it."""
        return prompts.answer_prompt(self.items[0][1], self.context)

    def text(self) -> str:
        """The training text."""
        first, *others = self.items
        parts = [f"{self.prompt()} {first[2]}{END}"]
        lead = " Answer the question: {}. Answer: {}" + END if self.context else " Question: {} Answer: {}" + END
        parts += [lead.format(question, answer) for _, question, answer in others]
        return "".join(parts)


@dataclass
class World:
    """An invented graph around one or two topics."""

    random: Random
    names: Names
    chinese: bool
    style: str
    topics: list[str] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)

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
        use = draw_use(self.random, self.names, self.style, chinese=self.chinese, taken=self.taken)
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


def draw_sample(random: Random, names: Names, level: int = 2, family: str | None = None) -> Sample:
    """One sample of a level of the curriculum (0, 1 or 2), its first question of `family` where one is given."""
    while True:
        chinese = random.random() < 0.22
        chosen = family or random.choices(FAMILIES, WEIGHTS[level])[0]
        if chinese and chosen in ("comparative", "superlative", "intersection", "difference", "no facts"):
            chosen = "1-hop" if family is None else chosen
            chinese = family is None
        style = random.choices(("plain", "snake", "camel", "title"), (68, 20, 7, 5))[0]
        world = World(random, names, chinese, "plain" if chinese else style)
        if chosen == "no facts":
            return Sample("", tuple(_no_facts(world) for _ in range(random.randint(1, 3))), chinese)
        gold = _build(world, chosen, level)
        shown = _order(world, gold, level, oracle=random.random() < 0.08)
        first = _ask(world, chosen, shown)
        if first is None:
            continue
        items, seen = [first], {first[1].casefold().rstrip("?？")}
        for _ in range(random.randint(2, 5)):
            follow = random.choices(FAMILIES[:9], (50, 24, 6, 6, 0, 0, 0, 0, 3))[0]
            item = _ask(world, follow, shown, later=True)
            if item is not None and item[1].casefold().rstrip("?？") not in seen:
                seen.add(item[1].casefold().rstrip("?？"))
                items.append(item)
        return Sample(prompts.triple_form(edge.text() for edge in shown), tuple(items), chinese)


def _build(world: World, family: str, level: int) -> list[tuple[str, str]]:
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
                world.taken.clear()
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
                world.taken.clear()
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


def _order(world: World, gold: list[tuple[str, str]], level: int, *, oracle: bool) -> list[Edge]:
    """Facts as a retriever ranks them: hop by hop, mostly the gold groups first, at most ten a hop."""
    random, shown = world.random, []
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


def _ask(world: World, family: str, shown: list[Edge], *, later: bool = False) -> tuple[str, str, str] | None:
    """A question of `family` that the shown facts answer, or None where they answer none."""
    maker = {
        "1-hop": _one_hop, "2-hop": _two_hop, "yes/no": _yes_no, "count": _count, "comparative": _comparative,
        "superlative": _superlative, "intersection": _sets, "difference": _sets, "absent": _absent,
    }[family]  # fmt: skip
    made = maker(world, family, shown, later)
    if made is None:
        return None
    question, answer = made
    return family, grammar.finished(world.random, question, chinese=world.chinese), answer


def _pick(world: World, shown: list[Edge], later: bool) -> Edge | None:
    """The fact whose group is asked for: the first group of the topic for the first question, else any."""
    if not shown:
        return None
    return world.random.choice(shown) if later else next((e for e in world.edges if e in shown), None)


def _answers(shown: list[Edge], head: str, use: Use) -> list[str]:
    return [edge.tail for edge in shown if edge.head == head and edge.use == use]


def _one_hop(world: World, family: str, shown: list[Edge], later: bool) -> tuple[str, str] | None:
    edge = _pick(world, shown, later)
    if edge is None:
        return None
    x = edge.head
    if world.chinese and edge.hop == 2 and world.random.random() < 0.4:
        x = world.topics[0] + x
    return grammar.question(world.random, edge.use, x), _answers(shown, edge.head, edge.use)[0]


def _two_hop(world: World, family: str, shown: list[Edge], later: bool) -> tuple[str, str] | None:
    random = world.random
    chains = [
        (a, b) for a in shown if a.head == world.topics[0] for b in shown
        if b.head == a.tail and b.hop == 2 and b.tail != a.head and b.use.relation is not a.use.relation
    ]  # fmt: skip
    if not chains:
        return None
    first, second = random.choice(chains) if later else min(chains, key=lambda pair: world.edges.index(pair[1]))
    middle = set(_answers(shown, first.head, first.use))
    answer = next(e.tail for e in shown if e.head in middle and e.use == second.use and e.tail != first.head)
    return grammar.question(random, second.use, grammar.phrase(random, first.use, first.head)), answer


def _yes_no(world: World, family: str, shown: list[Edge], later: bool) -> tuple[str, str] | None:
    random = world.random
    edge = _pick(world, shown, later)
    if edge is None or not edge.use.nouns:
        return None
    right = _answers(shown, edge.head, edge.use)
    true = random.random() < 0.5
    if true:
        candidate = random.choice(right)
    else:
        others = [e.tail for e in shown if e.tail not in right and e.use.target == edge.use.target]
        candidate = random.choice(others) if others and random.random() < 0.5 else world.name(edge.use.target)
        true = candidate in right
    x, y = (edge.head, candidate) if edge.use.direction > 0 else (candidate, edge.head)
    forms = grammar.HAN_YES_NO if world.chinese else grammar.YES_NO
    words = ("是", "不是") if world.chinese else ("yes", "no")
    return grammar.fill(random, random.choice(forms), edge.use, x, y=y), words[0] if true else words[1]


def _count(world: World, family: str, shown: list[Edge], later: bool) -> tuple[str, str] | None:
    edge = _pick(world, shown, later)
    if edge is None or not edge.use.nouns or grammar.numeric(edge.use):
        return None
    forms = grammar.HAN_COUNT if world.chinese else grammar.COUNT if edge.use.direction > 0 else grammar.COUNT_INVERSE
    if world.chinese and edge.use.direction < 0:
        return None
    number = len(_answers(shown, edge.head, edge.use))
    return grammar.fill(world.random, world.random.choice(forms), edge.use, edge.head), str(number)


def value_of(text: str) -> float | None:
    """The number that a literal starts with, or None."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _comparative(world: World, family: str, shown: list[Edge], later: bool) -> tuple[str, str] | None:
    random = world.random
    use = world.edges[0].use
    pairs = [(edge.head, value_of(edge.tail)) for edge in shown if edge.use == use and edge.head in world.topics]
    if len(pairs) != 2 or not use.nouns or pairs[0][1] is None or pairs[1][1] is None or pairs[0][1] == pairs[1][1]:
        return None
    more = random.random() < 0.7
    word = random.choice(grammar.GREATER if more else grammar.SMALLER)
    x, z = world.topics if random.random() < 0.5 else world.topics[::-1]
    values = {name: value for name, value in pairs if value is not None}
    if random.random() < 0.25:
        answer = "yes" if (values[x] > values[z]) == more else "no"
        return grammar.fill(random, random.choice(grammar.COMPARE_YES_NO), use, x, z=z, c=word), answer
    best = max(values, key=lambda name: values[name] if more else -values[name])
    return grammar.fill(random, random.choice(grammar.COMPARE), use, x, z=z, c=word), best


def _superlative(world: World, family: str, shown: list[Edge], later: bool) -> tuple[str, str] | None:
    random = world.random
    first = world.edges[0]
    numbers = [edge for edge in shown if edge.hop == 2 and grammar.numeric(edge.use) and edge.use.nouns]
    if not numbers:
        return None
    use = numbers[0].use
    middle = set(_answers(shown, first.head, first.use))
    values = {e.head: value_of(e.tail) for e in numbers if e.use == use and e.head in middle}
    known = {name: value for name, value in values.items() if value is not None}
    if len(known) < 2:
        return None
    more = random.random() < 0.7
    ranked = sorted(known, key=lambda name: -known[name] if more else known[name])
    word = random.choice(grammar.MOST if more else grammar.LEAST)
    best = ranked[0]
    if random.random() < 0.2 and word not in ("most", "least"):
        word, best = "second " + word, ranked[1]
    x = grammar.phrase(random, first.use, first.head)
    return grammar.fill(random, random.choice(grammar.SUPERLATIVE), use, x, c=word), best


def _sets(world: World, family: str, shown: list[Edge], later: bool) -> tuple[str, str] | None:
    random, use = world.random, world.edges[0].use
    x, z = world.topics if len(world.topics) > 1 and random.random() < 0.5 else (world.topics * 2)[1::-1]
    left, right = _answers(shown, x, use), _answers(shown, z, use)
    found = [name for name in left if (name in right) == (family == "intersection")]
    if not found or not right or x == z:
        return None
    forms = grammar.BOTH if family == "intersection" else grammar.BUT_NOT
    text = grammar.fill(
        random,
        random.choice(forms),
        use,
        grammar.phrase(random, use, x),
        z=grammar.phrase(random, use, z),
        kind=use.target,
    )
    return text, found[0]


def _absent(world: World, family: str, shown: list[Edge], later: bool) -> tuple[str, str] | None:
    use = world.use()
    return grammar.question(world.random, use, world.topics[0]), "不知道" if world.chinese else UNKNOWN


def _no_facts(world: World) -> tuple[str, str, str]:
    random, use = world.random, world.use()
    x, roll = world.name("place"), random.random()
    if not use.nouns or roll < 0.6:
        text, answer = grammar.question(random, use, x), UNKNOWN
    elif roll < 0.75:
        text = grammar.fill(random, random.choice(grammar.YES_NO), use, x, y=world.name("thing"))
        answer = random.choice(("yes", "no"))
    elif roll < 0.9:
        text, answer = grammar.fill(random, random.choice(grammar.COUNT), use, x), str(random.randint(1, 5))
    else:
        z = world.name("place")
        word = random.choice((*grammar.GREATER, *grammar.SMALLER))
        text = grammar.fill(random, random.choice(grammar.COMPARE), use, x, z=z, c=word)
        answer = random.choice((x, z))
    return "no facts", grammar.finished(random, text, chinese=False), answer


def samples(seed: int, chunk: int, count: int, *, level: int = 2, pieces: tuple[str, ...] = ()) -> Iterator[Sample]:
    """`count` samples of one chunk of the training text; the same arguments give the same samples."""
    random = Random(f"{seed}/{chunk}")
    names = Names(random, pieces)
    for _ in range(count):
        yield draw_sample(random, names, level)
