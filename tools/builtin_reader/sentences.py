"""Facts written as sentences by rule: one plain wording that follows from the triples, and freer ones for contexts.

`tell` needs nothing but the triples, so it is what the reader learns to write from triple-form text.  `tell_freely`
uses the words that people have for a relation, so that a context need not repeat the label of the graph.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from kgqa_core.types import INVERSE
from tools.builtin_reader.grammar import PREPOSITIONS, plural
from tools.builtin_reader.worlds import Edge

Fact = tuple[str, str, str]
MIDDLE = re.compile(r"CVT\d+")
"""A node without a name, in the middle of a path."""

ACTIVE = frozenset(
    "has is shares borders contains includes consists belongs wrote won owns causes speaks lives works features "
    "follows replaces uses flows died studied participated fought".split()
)
"""First words of labels that are written as they are: `X shares border with Y`."""
PREPOSITION = frozenset({*PREPOSITIONS, "as", "about", "into"})
SINGULAR = {"has": "have", "is": "be", "does": "do"}

FREE = (
    "The {n} of {s} is {o}.|The {n} of {s} is {o}.|{o} is the {n} of {s}.|{o} is the {n} of {s}.|{s} has the {n} {o}.|"
    "{s}'s {n} is {o}.|{s} has {o} as its {n}.|{s}: {n} {o}.|As for {s}, its {n} is {o}."
).split("|")
FREE_GROUP = (
    "The {ns} of {s} are {o}.|{o} are the {ns} of {s}.|{s} has the {ns} {o}.|{s}'s {ns} are {o}.|{s}: {ns} {o}."
).split("|")
HAN_FREE = "{s}的{n}是{o}。|{s}的{n}是{o}。|{o}是{s}的{n}。|{s}的{n}为{o}。|{s}，{n}：{o}。".split("|")
HAN_FREE_GROUP = "{s}的{n}有{o}。|{s}的{n}是{o}。|{o}都是{s}的{n}。|{s}，{n}：{o}。".split("|")


def words(label: str) -> str:
    """The words of a relation label: the last part of a dotted one, without underscores, in small letters.

    >>> words("people.person.place_of_birth"), words("hasCapital"), words("capital"), words("出生地")
    ('place of birth', 'has capital', 'capital', '出生地')
    """
    last = label.rpartition(".")[2] or label
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", last.replace("_", " "))
    return " ".join(spaced.lower().split())


def is_verb(text: str) -> bool:
    """Whether the words of a label stand between the two names: `directed by`, `shares border with`, `in country`."""
    first, *others = text.split(" ")
    return first in ACTIVE or first in PREPOSITION or bool(others) and others[-1] in PREPOSITION


def joined(names: Sequence[str], *, chinese: bool) -> str:
    """Names in a row: `A, B and C`."""
    comma, last = ("、", "和") if chinese else (", ", " and ")
    return names[0] if len(names) == 1 else comma.join(names[:-1]) + last + names[-1]


def _closed(text: str) -> str:
    return text if text.endswith(".") else text + "."


def tell(facts: Sequence[Fact], *, chinese: bool) -> str:
    """Sentences that say the facts, in their order and with every name as it is written.

    Facts next to each other with one head and one relation share a sentence.  An inverse relation is written forwards.
    Middle nodes (CVT1, CVT2) that something leads to and that lead to something are left out of the text.
    """
    middle = {tail for _, _, tail in facts if MIDDLE.fullmatch(tail)} & {head for head, _, _ in facts}
    parts, done = list[str](), set[str]()
    place = 0
    while place < len(facts):
        head, label, tail = facts[place]
        if tail in middle and head not in middle:
            if tail not in done:
                done.add(tail)
                parts.append(_merged(head, label, [fact for fact in facts if fact[0] == tail], chinese=chinese))
            place += 1
            continue
        if head in middle and head in done or head in middle and any(fact[2] == head for fact in facts[place:]):
            place += 1
            continue
        stop = place + 1
        while stop < len(facts) and facts[stop][:2] == (head, label) and facts[stop][2] not in middle:
            stop += 1
        parts.append(_statement(head, label, [fact[2] for fact in facts[place:stop]], chinese=chinese))
        place = stop
    return ("" if chinese else " ").join(parts)


def _merged(head: str, label: str, known: Sequence[Fact], *, chinese: bool) -> str:
    """A sentence for a middle node: what leads to it, then all that it leads to."""
    items = list[str]()
    for _, other, tail in known:
        name = words(other.removeprefix(INVERSE))
        if chinese:
            items.append(f"是{tail}的{name}" if other.startswith(INVERSE) else f"{name}是{tail}")
        else:
            items.append(f"{name} of {tail}" if other.startswith(INVERSE) else f"{name} {tail}")
    name = words(label.removeprefix(INVERSE))
    if chinese:
        return (f"{head}作为{name}，" if label.startswith(INVERSE) else f"{head}的{name}，") + "，".join(items) + "。"
    start = f"{head} as {name}: " if label.startswith(INVERSE) else f"The {name} of {head}: "
    return _closed(start + joined(items, chinese=False))


def _statement(head: str, label: str, tails: Sequence[str], *, chinese: bool) -> str:
    """A sentence for one head, one relation and its tails."""
    name, inverse = words(label.removeprefix(INVERSE)), label.startswith(INVERSE)
    many = joined(tails, chinese=chinese)
    if chinese:
        return f"{many}的{name}是{head}。" if inverse else f"{head}的{name}{'有' if len(tails) > 1 else '是'}{many}。"
    if not is_verb(name):
        if inverse:
            return _closed(f"{head} is the {name} of {many}")
        start = f"The {plural(name)} of {head} are" if len(tails) > 1 else f"The {name} of {head} is"
        return _closed(f"{start} {many}")
    verb = name if name.split(" ")[0] in ACTIVE else "is " + name
    if not inverse:
        return _closed(f"{head} {verb} {many}")
    if len(tails) > 1 and verb.startswith("is "):
        return _closed(f"{many} are {verb.removeprefix('is ')} {head}")
    return " ".join(_closed(f"{tail} {verb} {head}") for tail in tails)


def tell_freely(random: Random, edges: Sequence[Edge], *, chinese: bool) -> str:
    """Sentences that say the edges in their order, in words of people or of the graph, grouped or one by one."""
    plain, grouped = random.random() < 0.4, random.random() < 0.6
    if plain and grouped:
        return tell([edge.text() for edge in edges], chinese=chinese)
    parts, place = list[str](), 0
    while place < len(edges):
        edge, stop = edges[place], place + 1
        while grouped and stop < len(edges) and edges[stop].head == edge.head and edges[stop].use == edge.use:
            stop += 1
        tails = [other.tail for other in edges[place:stop]]
        if plain or not edge.use.nouns:
            parts.append(_statement(edge.head, edge.use.shown, tails, chinese=chinese))
        else:
            parts.append(_free(random, edge, tails, chinese=chinese))
        place = stop
    return ("" if chinese else " ").join(parts)


def _free(random: Random, edge: Edge, tails: Sequence[str], *, chinese: bool) -> str:
    forward, noun = edge.use.direction > 0, random.choice(edge.use.nouns)
    if forward:
        pairs = [(edge.head, joined(tails, chinese=chinese))]
        forms = (HAN_FREE_GROUP if chinese else FREE_GROUP) if len(tails) > 1 else (HAN_FREE if chinese else FREE)
    else:
        pairs, forms = [(tail, edge.head) for tail in tails], HAN_FREE if chinese else FREE
    form = random.choice(forms)
    sentences = []
    for subject, value in pairs:
        text = form.replace("{ns}", plural(noun)).replace("{n}", noun).replace("{s}", subject).replace("{o}", value)
        sentences.append(text.replace("..", ".") if text.endswith("..") else text)
    return ("" if chinese else " ").join(sentences)
