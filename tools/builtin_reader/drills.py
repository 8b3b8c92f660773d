"""Graphs and questions that need more than copying: yes/no, counts, comparisons, superlatives and ordinals."""

from __future__ import annotations

from tools.builtin_reader import grammar
from tools.builtin_reader.grammar import Use
from tools.builtin_reader.questions import value_of
from tools.builtin_reader.relations import LITERAL
from tools.builtin_reader.sentences import ACTIVE, is_verb, words
from tools.builtin_reader.worlds import Edge, World

DRILLS = ("yes/no", "count", "comparative", "superlative")

BARE = {"shares": "share", "borders": "border", "contains": "contain", "includes": "include", "has": "have",
        "consists": "consist", "belongs": "belong", "owns": "own", "causes": "cause", "speaks": "speak",
        "lives": "live", "works": "work", "features": "feature", "follows": "follow", "replaces": "replace",
        "uses": "use", "flows": "flow"}  # fmt: skip
POPULOUS = frozenset({"population", "inhabitants", "number of inhabitants", "people"})
COMPARED = (
    "which has more {ns}, {x} or {z}|who has more {ns}: {z} or {x}|which has the {c} {n}, {x} or {z}|"
    "of {x} and {z}, which has the {c} {n}|between {x} and {z}, which has a {c} {n}|"
    "which {k} has a {c} {n}, {x} or {z}|is the {n} of {x} or that of {z} {c}|"
    "does {x} or {z} have the {c} {n}|whose {n} is {c}, {x}'s or {z}'s|"
    "{x} or {z}: which one has the {c} {n}|what has the {c} {n}, {x} or {z}"
).split("|")
ALONE = ("which is {c}, {x} or {z}", "which of {x} and {z} is {c}", "which {k} is {c}: {x} or {z}")
PEOPLE = (
    "which has more people, {x} or {z}|which is more populous, {x} or {z}|do more people live in {x} or {z}"
).split("|")
RANKED = (
    "which of {x} has the {c} {n}|among {x}, which has the {c} {n}|what has the {c} {n} among {x}|"
    "of {x}, which has the {c} {n}|name the one of {x} with the {c} {n}|which one of {x} has the {c} {n}|"
    "what is the {c} by {n} of {x}|by {n}, which of {x} is {c}|which {k} of {x} has the {c} {n}"
).split("|")
ORDINALS = ("second", "third")


def ground(world: World, family: str, level: int) -> list[tuple[str, str]]:
    """Grows the graph of a drill at a level (0 is tiny); returns the (head, shown label) of its gold groups."""
    random = world.random
    world.topics = [world.name(random.choice(("place", "person", "work", "thing")))]
    gold = list[tuple[str, str]]()
    if family == "comparative" or family != "superlative" and random.random() < (0.2, 0.4, 0.4)[level]:
        world.topics.append(world.name("place"))
    if family == "comparative":
        for _ in range(random.randint(1, 2)):
            use = numeric_use(world)
            _measure(world, world.topics, use, 1, level)
            gold += [(name, use.shown) for name in world.topics]
    elif family == "superlative":
        use, second = entity_use(world), numeric_use(world)
        members = [
            edge.tail for edge in world.grow(world.topics[0], use, 1, random.randint(2 + (level > 0), 3 + 3 * level))
        ]
        _measure(world, members, second, 2, level)
        gold = [(world.topics[0], use.shown), *((name, second.shown) for name in members)]
    else:
        most = 4 + 2 * level if family == "count" else 2 + 2 * level
        for _ in range(random.randint(2, 4) if family == "count" else random.randint(1, 2 + level)):
            use = entity_use(world)
            shared = [world.name(use.target) for _ in range(random.randint(0, 2))] if len(world.topics) > 1 else []
            for name in world.topics:
                world.edges += [Edge(name, use, tail, 1) for tail in shared]
                world.grow(name, use, 1, random.randint(1, most))
                gold.append((name, use.shown))
    for _ in range(random.randint(0, 2 * level)):
        use = world.use()
        for name in world.topics:
            world.grow(name, use, 1)
    return gold


def _measure(world: World, names: list[str], use: Use, hop: int, level: int) -> None:
    """Gives each name one number: whole ones, half of the time of one length, or as graphs write them at level 2."""
    random, digits = world.random, world.random.randint(2, 8)
    same, plain = random.random() < 0.5, level < 2 or random.random() < 0.6
    for name in names:
        if not plain:
            world.grow(name, use, hop)
            continue
        size = digits if same else random.randint(1, 8)
        world.edges.append(Edge(name, use, str(random.randint(10 ** (size - 1), 10**size - 1)), hop))


def numeric_use(world: World) -> Use:
    """A relation of this graph that leads to numbers and has a noun."""
    while True:
        use = world.use()
        if grammar.numeric(use) and use.nouns:
            return use
        world.used_relations.clear()


def entity_use(world: World) -> Use:
    """A relation of this graph that leads to entities."""
    while True:
        use = world.use()
        if use.direction < 0 or use.target not in LITERAL:
            return use
        world.used_relations.clear()


def drill(world: World, family: str, shown: list[Edge], earlier: set[object]) -> tuple[str, str, str] | None:
    """A question of a drill on the shown facts, as family, question and answer, or None where they hold none.

    earlier: questions so far, in any wording; such a question is not made again, and the new one is added.
    """
    if not shown:
        return None
    maker = {"yes/no": _yes_no, "count": _count, "comparative": _comparative, "superlative": _superlative}[family]
    tries = (maker(world, shown) for _ in range(6))
    made = next((each for each in tries if each is not None and (family, each[2]) not in earlier), None)
    if made is None:
        return None
    earlier.add((family, made[2]))
    return family, grammar.finished(world.random, made[0], chinese=world.chinese), made[1]


def _yes_no(world: World, shown: list[Edge]) -> tuple[str, str, object] | None:
    """Whether a fact holds: it does, or its value is that of another head or relation, or is in no fact."""
    random = world.random
    edge = random.choice(shown)
    right = {other.tail for other in shown if other.head == edge.head and other.use == edge.use}
    true = random.random() < 0.55
    if true:
        candidate = random.choice(sorted(right))
    else:
        near = {other.tail for other in shown if other.use == edge.use} - right
        far = {other.tail for other in shown if other.use.target == edge.use.target} - right - {edge.head}
        pool = sorted(near) if near and random.random() < 0.6 else sorted(far)
        candidate = random.choice(pool) if pool and random.random() < 0.65 else world.name(edge.use.target)
        true = candidate in right
    x, y = (edge.head, candidate) if edge.use.direction > 0 else (candidate, edge.head)
    label = words(edge.use.label)
    if world.chinese:
        if not edge.use.nouns:
            return None
        text = grammar.fill(random, random.choice(grammar.HAN_YES_NO), edge.use, x, y=y)
    elif is_verb(label) and (not edge.use.nouns or random.random() < 0.4):
        text = _relation_words(label, x, y)
    elif edge.use.nouns:
        text = grammar.fill(random, random.choice(grammar.YES_NO), edge.use, x, y=y)
    else:
        return None
    yes, no = ("是", "不是") if world.chinese else ("yes", "no")
    return text, yes if true else no, (edge.head, edge.use, candidate)


def _relation_words(label: str, x: str, y: str) -> str:
    """A label between two names as a question: `is X located in Y`, `does X share border with Y`."""
    first, _, rest = label.partition(" ")
    if first == "is":
        return f"is {x} {rest} {y}"
    if first in BARE:
        return f"does {x} {BARE[first]} {rest} {y}".replace("  ", " ")
    return f"did {x} {label} {y}" if first in ACTIVE else f"is {x} {label} {y}"


def _count(world: World, shown: list[Edge]) -> tuple[str, str, object] | None:
    random = world.random
    edge = random.choice(list({(other.head, other.use): other for other in shown}.values()))
    if grammar.numeric(edge.use):
        return None
    key = (edge.head, edge.use)
    number = sum(other.head == edge.head and other.use == edge.use for other in shown)
    if number == 1 and random.random() < 0.7:
        return None
    label, forward = words(edge.use.label), edge.use.direction > 0
    kind = grammar.plural(random.choice(grammar.KIND_WORDS.get(edge.use.target, grammar.KIND_WORDS["thing"])))
    if world.chinese:
        if not edge.use.nouns or not forward:
            return None
        return grammar.fill(random, random.choice(grammar.HAN_COUNT), edge.use, edge.head), str(number), key
    if edge.use.nouns:
        forms = grammar.COUNT if forward else grammar.COUNT_INVERSE
        return grammar.fill(random, random.choice(forms), edge.use, edge.head), str(number), key
    if not is_verb(label):
        return None
    first, _, rest = label.partition(" ")
    if forward:
        text = f"how many {kind} {_relation_words(label, edge.head, '')}".rstrip()
    elif first in BARE:
        text = f"how many {kind} {BARE[first]} {rest} {edge.head}".replace("  ", " ")
    else:
        text = f"how many {kind} are {label.removeprefix('is ')} {edge.head}"
    return text, str(number), key


def _comparative(world: World, shown: list[Edge]) -> tuple[str, str, object] | None:
    random = world.random
    uses = {edge.use.label: edge.use for edge in shown if grammar.numeric(edge.use) and edge.use.nouns}
    if not uses or len(world.topics) != 2:
        return None
    use = random.choice(list(uses.values()))
    pairs = {edge.head: value_of(edge.tail) for edge in shown if edge.use == use and edge.head in world.topics}
    values = {name: value for name, value in pairs.items() if value is not None}
    if len(values) != 2 or len(set(values.values())) != 2:
        return None
    more = random.random() < 0.7
    word = random.choice(grammar.GREATER[:-1] if more else grammar.SMALLER[:-1])
    x, z = world.topics if random.random() < 0.5 else world.topics[::-1]
    if random.random() < 0.25:
        answer = "yes" if (values[x] > values[z]) == more else "no"
        text = grammar.fill(random, random.choice(grammar.COMPARE_YES_NO), use, x, z=z, c=word)
        return text, answer, (use, more, answer)
    forms = list(COMPARED)
    if not more:
        forms = forms[2:]
    elif POPULOUS & set(use.nouns):
        forms = [*forms, *PEOPLE * 2]
    if len(uses) == 1 and random.random() < 0.3:
        forms = list(ALONE)
    best = max(values, key=lambda name: values[name] if more else -values[name])
    return grammar.fill(random, random.choice(forms), use, x, z=z, c=word), best, (use, more)


def _superlative(world: World, shown: list[Edge]) -> tuple[str, str, object] | None:
    random = world.random
    numbers = [edge for edge in shown if edge.hop == 2 and grammar.numeric(edge.use)]
    firsts = [edge for edge in shown if edge.hop == 1 and any(other.head == edge.tail for other in numbers)]
    if not numbers or not firsts:
        return None
    first, use = firsts[0], numbers[0].use
    middle = {edge.tail for edge in shown if edge.head == first.head and edge.use == first.use}
    values = {edge.head: value_of(edge.tail) for edge in numbers if edge.use == use and edge.head in middle}
    known = {name: value for name, value in values.items() if value is not None}
    if len(known) < 2 or len(set(known.values())) != len(known):
        return None
    more = random.random() < 0.7
    ranked = sorted(known, key=lambda name: -known[name] if more else known[name])
    word, best = random.choice((grammar.MOST if more else grammar.LEAST)[:-1]), ranked[0]
    if len(ranked) > 2 and random.random() < 0.25:
        number = random.randint(1, min(2, len(ranked) - 1))
        word, best = f"{ORDINALS[number - 1]} {word}", ranked[number]
    x = grammar.phrase(random, first.use, first.head)
    return grammar.fill(random, random.choice(RANKED), use, x, c=word), best, best
