"""Questions on an invented graph, by family, and the answers that the shown facts give."""

from __future__ import annotations

from tools.builtin_reader import grammar
from tools.builtin_reader.grammar import Use
from tools.builtin_reader.worlds import Edge, World

UNKNOWN = "unknown"
"""The answer where the facts do not tell (and its Chinese form below)."""


def ask(world: World, family: str, shown: list[Edge], *, later: bool = False) -> tuple[str, str, str] | None:
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
    """The fact whose group is the answer: the first group of the topic for the first question, else any."""
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


def no_facts(world: World) -> tuple[str, str, str]:
    """A question without facts; the answer is unknown, or a guess of the right form where the form is known."""
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
