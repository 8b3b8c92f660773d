"""Training text of the second phase: questions over triples and over sentences, and triples written as sentences.

All of it comes from invented graphs, as in the first phase (corpus.py).  A sample of this phase has either
prompt that the pipeline has, and most of the questions on its context are of one family, so that a context gives
many answers.  Everything follows from a seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from kgqa_core import prompts
from kgqa_core.types import INVERSE
from tools.builtin_reader import drills
from tools.builtin_reader.corpus import Sample
from tools.builtin_reader.names import KINDS, WORDS, Names
from tools.builtin_reader.questions import ask, no_facts
from tools.builtin_reader.sentences import tell, tell_freely
from tools.builtin_reader.worlds import Edge, World, build, order

FAMILIES = (
    "1-hop", "2-hop", "yes/no", "count", "comparative", "superlative", "intersection", "difference", "absent",
    "no facts",
)  # fmt: skip
"""Families of English questions."""
SHARES = (
    (16, 22, 18, 14, 12, 14, 5, 4, 2, 2),
    (16, 24, 15, 13, 12, 13, 5, 4, 2, 2),
    (17, 26, 13, 12, 11, 12, 6, 5, 2, 2),
)
"""Shares of the families at each level."""
HAN_FAMILIES = {"1-hop": 34, "2-hop": 42, "yes/no": 12, "count": 9, "absent": 3}
"""Families of Chinese questions and their shares."""
REWRITE = "rewrite"
FORMS = ("triples", "sentences", REWRITE)
"""What a sample has for its context: triples or sentences to read, or triples to tell."""
REWRITE_SHARES, SENTENCE_SHARE, HAN_SHARE = (0.3, 0.25, 0.2), 0.45, 0.23
MOST_TOLD = (3, 6, 10)
"""Most facts of a sample that tells them, at each level."""
LONG_FACTS = (24, 46)


def draw(
    random: Random,
    names: Names,
    level: int = 2,
    form: str | None = None,
    family: str | None = None,
    *,
    chinese: bool | None = None,
    long: bool = False,
    telling: float | None = None,
) -> Sample:
    """One sample of a level (0, 1 or 2, the size of the drills' graphs), of a form and a family where they are given.

    long: a context of 24 to 46 facts, of which the question needs a few.  telling: share of the samples that tell
    facts, else that of the level.
    """
    share = REWRITE_SHARES[level] if telling is None else telling
    while True:
        form_ = form or (REWRITE if random.random() < share else FORMS[random.random() < SENTENCE_SHARE])
        han = random.random() < HAN_SHARE if chinese is None else chinese
        if form_ == REWRITE:
            return rewriting(random, names, level, chinese=han)
        shares = HAN_FAMILIES if han else dict(zip(FAMILIES, SHARES[level], strict=True))
        chosen = family or random.choices(list(shares), list(shares.values()))[0]
        if chosen not in shares:
            han = False
        sample = _reading(random, names, level, form_, chosen, chinese=han, long=long)
        if sample is not None:
            return sample


def _reading(
    random: Random, names: Names, level: int, form: str, family: str, *, chinese: bool, long: bool
) -> Sample | None:
    """Questions on one context, or None where the sampled graph has no such question."""
    dotted = not chinese and form == "triples" and random.random() < 0.12
    style = random.choices(("plain", "snake", "camel", "title"), (62, 26, 7, 5))[0]
    world = World(random, names, chinese, "plain" if chinese else "snake" if dotted else style)
    if family == "no facts":
        return Sample("", tuple(no_facts(world) for _ in range(random.randint(1, 3))), chinese)
    drilled = family in drills.DRILLS
    if not drilled:
        level = max(level, 1)
    gold = drills.ground(world, family, level) if drilled else build(world, family, level)
    shown = _many(world, gold) if long else order(world, gold, level, oracle=random.random() < 0.15)
    items, seen, earlier = list[tuple[str, str, str]](), set[str](), set[object]()
    number = random.randint(6, 12) if drilled else random.randint(5, 9)
    for place in range(min(number, 2 * len(shown) + 2)):
        follow = family
        if place and random.random() < (0.2 if drilled else 0.55):
            follow = random.choices(("1-hop", "2-hop", "yes/no", "count"), (40, 40, 10, 10))[0]
        if follow in drills.DRILLS:
            item = drills.drill(world, follow, shown, earlier)
        else:
            item = ask(world, follow, shown, later=place > 0)
        if item is not None and item[1].casefold().rstrip("?？") not in seen:
            seen.add(item[1].casefold().rstrip("?？"))
            items.append(item)
        if not items:
            return None
    if form == "sentences":
        context, template = tell_freely(random, shown, chinese=chinese), random.random() < 0.55
    else:
        facts = [edge.text() for edge in shown]
        context, template = prompts.triple_form(_dotted(random, facts) if dotted else facts), random.random() < 0.25
    return Sample(context, tuple(items), chinese, "rra2023" if template else "sen2023")


def _many(world: World, gold: list[tuple[str, str]]) -> list[Edge]:
    """Twenty-four to forty-six facts: the gold groups among many others, groups stay whole."""
    random = world.random
    goal = random.randint(*LONG_FACTS)
    while len(world.edges) < goal:
        use, edge = world.use(), random.choice(world.edges)
        heads = [*world.topics, edge.tail] if edge.use.target in ("place", "person", "work", "thing") else world.topics
        head = random.choice(heads)
        world.grow(head, use, 1 if head in world.topics else 2)
    groups = dict[tuple[str, str], list[Edge]]()
    for edge in {edge.text(): edge for edge in world.edges}.values():
        groups.setdefault((edge.head, edge.use.shown), []).append(edge)
    keys = list(groups)
    random.shuffle(keys)
    if random.random() < 0.5:
        keys.sort(key=lambda key: key not in gold)
    shown = [edge for key in keys for edge in groups[key]]
    gold_texts = {edge.text() for edge in shown if (edge.head, edge.use.shown) in gold}
    room = max(0, goal - len(gold_texts))
    others = [edge.text() for edge in shown if edge.text() not in gold_texts][:room]
    return [edge for edge in shown if edge.text() in gold_texts or edge.text() in set(others)]


def _dotted(random: Random, facts: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Facts with labels of three dotted parts, `domain.type.label_words`; one label stays one label."""
    fronts = dict[str, str]()
    triples = []
    for head, label, tail in facts:
        inverse = INVERSE if label.startswith(INVERSE) else ""
        bare = label.removeprefix(INVERSE)
        if bare not in fronts:
            fronts[bare] = f"{random.choice(WORDS)}.{random.choice(KINDS)}."
        triples.append((head, inverse + fronts[bare] + bare.replace(" ", "_"), tail))
    return triples


def rewriting(random: Random, names: Names, level: int = 2, *, chinese: bool) -> Sample:
    """Facts to tell and the sentences that tell them."""
    facts = facts_to_tell(random, names, level, chinese=chinese)
    prompt = prompts.rewrite_prompt(prompts.spaced_triples(facts), "zh" if chinese else "en")
    return Sample(prompt, ((REWRITE, "", tell(facts, chinese=chinese)),), chinese, REWRITE)


def facts_to_tell(random: Random, names: Names, level: int = 2, *, chinese: bool) -> list[tuple[str, str, str]]:
    """Facts as a rewriter gets them: one path, a few facts, or up to ten around a topic; some with middle nodes."""
    roll, limit = random.random(), MOST_TOLD[level]
    style = "plain" if chinese else random.choices(("plain", "snake", "camel", "title"), (34, 54, 7, 5))[0]
    dotted = not chinese and random.random() < 0.4
    world = World(random, names, chinese, "snake" if dotted else style)
    if roll < 0.05 + 0.07 * level:
        facts = _through_middle(world)
    else:
        gold = build(world, random.choice(("1-hop", "2-hop", "2-hop")), 0)
        edges = order(world, gold, 1, oracle=random.random() < 0.5)
        most = random.randint(1, 3) if roll < 0.6 else random.randint(3, limit)
        if random.random() < 0.3:
            chains = [(a, b) for a in edges for b in edges if a.tail == b.head and a.head != b.tail]
            edges = list(random.choice(chains)) if chains else edges
        facts = [edge.text() for edge in edges[:most]]
    return _dotted(random, facts) if dotted else facts


def _through_middle(world: World) -> list[tuple[str, str, str]]:
    """Facts around one or two nodes without names; now and then one that leads nowhere."""
    random, facts = world.random, list[tuple[str, str, str]]()
    topic, use = world.name(random.choice(("place", "person", "work", "thing"))), drills.entity_use(world)
    for number in range(1, random.choice((1, 1, 1, 2)) + 1):
        node = f"CVT{number}"
        facts.append((topic, use.shown, node))
        for _ in range(random.randint(0 if random.random() < 0.1 else 1, 3)):
            other = world.use()
            facts.append((node, other.shown, world.name(other.target)))
    if random.random() < 0.3:
        other = world.use()
        facts += [edge.text() for edge in world.grow(topic, other, 1, None)[:3]]
    return facts


def samples(seed: int, chunk: int, count: int, *, level: int = 2, pieces: tuple[str, ...] = ()) -> Iterator[Sample]:
    """`count` samples of one chunk of the second phase's text; the same arguments give the same samples."""
    random = Random(f"{seed}/mixture/{chunk}")
    names = Names(random, pieces)
    for _ in range(count):
        yield draw(random, names, level, long=random.random() < 0.05)


def held_out(seed: int, pieces: tuple[str, ...], each: int) -> Iterator[tuple[str, Sample]]:
    """`each` samples of every form, family and language that no step of the training draws, by `form family zh`."""
    cells = [(form, family, False) for form in FORMS[:2] for family in FAMILIES]
    cells += [(form, family, True) for form in FORMS[:2] for family in HAN_FAMILIES]
    cells += [(REWRITE, "", False), (REWRITE, "", True)]
    for form, family, chinese in cells:
        if form == "sentences" and family == "no facts":
            continue
        name = " ".join(part for part in (form, family, "zh" if chinese else "") if part)
        random = Random(f"{seed}/held out of the mixture/{name}")
        names = Names(random, pieces)
        for _ in range(each):
            yield name, draw(random, names, 2, form, family or None, chinese=chinese)
