"""A graph with every kind of thing that an LTGen benchmark looks at, and a model's replies about it."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from kgqa_core.config import KgOptions, PopularityOptions, SamplingOptions
from kgqa_core.kg.build import build
from kgqa_core.workspace import Workspace

WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
RDFS = "http://www.w3.org/2000/01/rdf-schema#label"
XSD = "http://www.w3.org/2001/XMLSchema#"

PEOPLE = ("Ada Byron", "Bela Kun", "Cleo Ray", "Dora Maar", "Egon Fry", "Fay Weld", "Gus Hall", "Hal Roe")
"""Q1 to Q8.  Q3 and those after have three spouses at most, Q1 none of her own."""

NAMES = {
    "Q100": "Oslo", "Q101": "Lima", "Q102": "Bern", "Q110": "Norway", "Q120": "poet", "Q121": "nurse", "Q130": "Ada",
    **{f"Q{200 + number}": f"Book {number}" for number in range(1, 9)},
    **{f"Q{number}": name for number, name in enumerate(PEOPLE, start=1)},
}  # fmt: skip

RELATIONS = {
    "P19": "place of birth", "P27": "country of citizenship", "P106": "occupation", "P735": "given name",
    "P214": "VIAF ID", "P569": "date of birth", "P800": "notable work", "P39": "position held", "P50": "author",
    "P26": "spouse",
}  # fmt: skip
"""P735 and P214 say little in words; the objects of P39 have no names."""


def facts() -> list[tuple[str, str, str]]:
    """Triples by short key; an object in quotes is a literal."""
    rows = []
    for number in range(1, len(PEOPLE) + 1):
        key = f"Q{number}"
        rows += [
            (key, "P19", f"Q{100 + number % 3}"), (key, "P27", "Q110"), (key, "P106", "Q120"), (key, "P106", "Q121"),
            (key, "P735", "Q130"), (key, "P214", f'"{number}"'), (key, "P569", f'"19{number:02d}-05-17"^^<{XSD}date>'),
            (key, "P800", f"Q{200 + number}"), (key, "P39", f"Q{900 + number}"), (f"Q{200 + number}", "P50", key),
        ]  # fmt: skip
        rows += [(key, "P26", f"Q{other}") for other in range(1, number)][:3]
    return rows


def make_graph(folder: Path) -> Path:
    """The graph in `folder/kg`."""
    lines = [
        f"<{WD}{head}> <{WDT}{relation}> {tail if tail.startswith(chr(34)) else f'<{WD}{tail}>'} .\n"
        for head, relation, tail in facts()
    ]
    lines += [f'<{WD}{key}> <{RDFS}> "{name}"@en .\n' for key, name in NAMES.items()]
    lines += [f'<{WD}{key}> <{RDFS}> "{name}"@en .\n' for key, name in RELATIONS.items()]
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "graph.nt"
    source.write_text("".join(lines), encoding="utf-8")
    out, work = folder / "kg", folder / "kg-work"
    out.mkdir()
    work.mkdir()
    build(Workspace(out, work), options=KgOptions(files=(str(source),)))
    return out


def make_sample(folder: Path, kg: Path, per_level: int = 5, **sampling: object) -> Path:
    """A draw from a graph by degree, in `folder/sample`."""
    from kgqa_core.papers.ltgen.sample import draw

    out = folder / "sample"
    out.mkdir(parents=True)
    options = SamplingOptions.model_validate({"per_level": per_level, **sampling})
    draw(Workspace(out), kg=kg, options=options, popularity=PopularityOptions(), seed=7)
    return out


SHARES = "KGQA_LTGEN_FAULTS"

Blocks = list[list[tuple[str, str]]]
"""Turns or questions, each a list of (label, text)."""


def reply(prompt: str, drawn: Any = None, fault: str | None = None) -> str:
    """A completion for a prompt of LTGen, with a fault drawn from the shares or the one that is given."""
    draw = Random(f"{prompt}/{drawn}")
    name = fault if fault is not None else _drawn(draw.random())
    blocks = _questions(prompt) if "Entity Relation Pairs:\n" in prompt else _dialogue(prompt, draw)
    return FAULTS[name](blocks, draw) if name else _format(blocks)


def given(prompt: str) -> list[str]:
    """The pairs or triples of a prompt, as they stand."""
    return re.split(r"\n(?:Entity Relation Pairs|Knowledge Graph Triples):\n", prompt)[1].split("\n")


@lru_cache(maxsize=1)
def _shares() -> dict[str, float]:
    text = os.environ.get(SHARES)
    shares: dict[str, float] = json.loads(text) if text else dict.fromkeys(FAULTS, 0.03)
    assert set(shares) <= set(FAULTS)
    return shares


def _drawn(dice: float) -> str | None:
    for name, share in _shares().items():
        if dice < share:
            return name
        dice -= share
    return None


def _questions(prompt: str) -> Blocks:
    found = []
    for pair in given(prompt):
        entity, _, relation = pair[1:-1].partition(", ")
        found.append([("Entity Relation Pair", pair), ("Question", f"Could you tell me the {relation} of {entity}?")])
    return found


def _dialogue(prompt: str, draw: Random) -> Blocks:
    """Turns that each tell a relation of the entity that most triples have."""
    triples = []
    for line in given(prompt):
        head, *middle, tail = line[1:-1].split(", ")  # a name with a comma is cut; what is cited is the line
        triples.append((head, ", ".join(middle), tail, line))
    ends = Counter(end for head, _, tail, _ in triples for end in (head, tail))
    main = min(ends, key=lambda end: (-ends[end], end))
    groups: dict[tuple[bool, str], list[tuple[str, str, str, str]]] = {}
    for triple in triples:
        if main in (triple[0], triple[2]):
            groups.setdefault((triple[0] == main, triple[1]), []).append(triple)
    chosen = list(groups.items())
    draw.shuffle(chosen)
    blocks = []
    for number, ((forward, relation), members) in enumerate(chosen[:6]):
        told = members[:4]
        name = main if number % 2 == 0 else "it"
        asked = f"What is the {relation} of {name}?" if forward else f"And what has {name} as its {relation}?"
        said = " ".join(f"The {relation} of {head} is {tail}." for head, _, tail, _ in told)
        cited = ", ".join(line for _, _, _, line in told)
        blocks.append([("User", asked), ("Agent", said), ("T", cited)])
    return blocks


def _format(blocks: Blocks, *, before: str = "<<<", after: str = ">>>", line: str = "\n", between: str = "\n\n") -> str:
    return between.join(line.join(f"{label}: {before}{text}{after}" for label, text in block) for block in blocks)


def _numbered(blocks: Blocks, draw: Random) -> str:
    parts = [_format([block]) for block in blocks]
    return "\n".join(f"{number}. {part}" for number, part in enumerate(parts, start=1))


def _bold(blocks: Blocks, draw: Random) -> str:
    return re.sub(r"^([\w ]+):", r"**\1:**", _format(blocks), flags=re.MULTILINE)


def _other_case(blocks: Blocks, draw: Random) -> str:
    text = re.sub(r"^([\w ]+):", lambda match: match[0].upper(), _format(blocks), flags=re.MULTILINE)
    return re.sub(r"^T: <<<(.*?)>>>", lambda match: f"T: <<<{match[1].lower()}>>>", text, flags=re.MULTILINE)


def _prose(blocks: Blocks, draw: Random) -> str:
    return f"Sure! Here is what you asked for:\n\n{_format(blocks)}\n\nI hope this helps. Let me know if you need more!"


def _bars(blocks: Blocks, draw: Random) -> str:
    shown = [[(label, f"\n{_barred(text)}\n" if label == "T" else text) for label, text in block] for block in blocks]
    return _format(shown)


def _barred(cited: str) -> str:
    parts = cited[1:-1].split("), (")
    return "\n".join(f"- {' | '.join(part.split(', '))}" for part in parts)


def _turn_headings(blocks: Blocks, draw: Random) -> str:
    return "\n\n".join(f"### Turn {number}\n{_format([block])}" for number, block in enumerate(blocks, start=1))


def _cut(blocks: Blocks, draw: Random) -> str:
    text = _format(blocks)
    return text[: int(len(text) * draw.uniform(0.5, 0.95))]


def _changed(blocks: Blocks, draw: Random, change: Callable[[list[tuple[str, str]]], list[tuple[str, str]]]) -> str:
    """One of the blocks is changed."""
    place = draw.randrange(len(blocks))
    return _format([change(list(block)) if number == place else block for number, block in enumerate(blocks)])


def _foreign(blocks: Blocks, draw: Random) -> str:
    return _changed(
        blocks, draw,
        lambda block: [(label, "(Zaphod, likes, tea)" if label in ("T", "Entity Relation Pair") else text)
                       for label, text in block],
    )  # fmt: skip


def _foreign_too(blocks: Blocks, draw: Random) -> str:
    return _changed(
        blocks, draw,
        lambda block: [(label, f"{text}, (Zaphod, likes, tea)" if label in ("T", "Entity Relation Pair") else text)
                       for label, text in block],
    )  # fmt: skip


def _given_away(blocks: Blocks, draw: Random) -> str:
    def change(block: list[tuple[str, str]]) -> list[tuple[str, str]]:
        if len(block) < 3:
            return block
        told = [part.split(", ") for part in block[2][1][1:-1].split("), (")]
        ends = ", ".join(end for head, *_, tail in told for end in (head, tail))
        return [("User", f"{block[0][1][:-1]}, given {ends}?"), *block[1:]]

    return _changed(blocks, draw, change)


def _untold(blocks: Blocks, draw: Random) -> str:
    return _changed(
        blocks, draw, lambda block: [(label, "I would rather not say." if label == "Agent" else text)
                                     for label, text in block],
    )  # fmt: skip


def _no_reply(blocks: Blocks, draw: Random) -> str:
    return _changed(blocks, draw, lambda block: block[:1])


def _agent_first(blocks: Blocks, draw: Random) -> str:
    return _format([[("Agent", "Hello! How can I help you?")], *blocks])


def _small_talk(blocks: Blocks, draw: Random) -> str:
    return _format([*blocks, [("User", "Thank you!"), ("Agent", "You are welcome."), ("T", "None")]])


def _repeated(blocks: Blocks, draw: Random) -> str:
    return _format([*blocks, blocks[0]])


def _nameless(blocks: Blocks, draw: Random) -> str:
    return _changed(
        blocks,
        draw,
        lambda block: [(label, "And what about that one?" if label == "Question" else text) for label, text in block],
    )


FAULTS: dict[str, Callable[[Blocks, Random], str]] = {
    "no brackets": lambda blocks, draw: _format(blocks, before="", after=""),
    "never closed": lambda blocks, draw: _format(blocks, after=""),
    "never opened": lambda blocks, draw: _format(blocks, before=""),
    "two brackets": lambda blocks, draw: _format(blocks, before="<<", after=">>"),
    "full width": lambda blocks, draw: _format(blocks, before="《《《", after="》》》").replace(": ", "："),
    "code fence": lambda blocks, draw: f"```text\n{_format(blocks)}\n```",
    "numbered": _numbered,
    "bold": _bold,
    "other case": _other_case,
    "one line": lambda blocks, draw: _format(blocks, line=" ", between=" "),
    "slashes": lambda blocks, draw: _format(blocks, line=" / ", between=" / "),
    "prose": _prose,
    "bars": _bars,
    "turn headings": _turn_headings,
    "small talk": _small_talk,
    "cut": _cut,
    "foreign": _foreign,
    "foreign too": _foreign_too,
    "given away": _given_away,
    "untold": _untold,
    "no reply": _no_reply,
    "agent first": _agent_first,
    "repeated": _repeated,
    "nameless": _nameless,
    "refusal": lambda blocks, draw: "I'm sorry, but I cannot help with that request.",
    "nonsense": lambda blocks, draw: "}{ null undefined ### lorem ipsum",
}

HARMLESS = tuple(FAULTS)[:15]
"""Faults of form alone, after which everything can still be read."""
