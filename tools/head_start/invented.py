"""Graphs of invented facts: things with made-up names, and relations whose labels differ from graph to graph.

They teach the operations over numbers and dates, and that a relation is its label, without a fact of any real graph.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import yaml

DOMAINS = Path(__file__).parent / "invented.yaml"
THINGS = 60
"""Things of a kind."""
_ONSETS = "b br c ch d dr f g gr h j k kl l m n p pr qu r s sh st t tr v w z".split()
_VOWELS = "a e i o u ai ea ou".split()
_CODAS = "n r l s t m nd rk x th ll".split() + [""] * 8
_RDFS, _TYPE = "http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_XSD = "http://www.w3.org/2001/XMLSchema#"


def write_graph(path: Path, seed: int, *, typed: bool = True) -> int:
    """Writes an N-Triples file with three domains drawn by `seed`; returns the number of triples.

    typed: whether things have types; many tables of triples say none.
    """
    chooser = random.Random(f"invented {seed}")
    domains: list[dict[str, Any]] = yaml.safe_load(DOMAINS.read_text(encoding="utf-8"))
    lines: list[str] = []
    names: set[str] = set()
    for domain in chooser.sample(domains, 3):
        lines += [line for line in _domain(domain, chooser, names) if typed or f"<{_TYPE}>" not in line]
    path.write_text("".join(f"{line} .\n" for line in lines), encoding="utf-8")
    return len(lines)


def _domain(domain: dict[str, Any], chooser: random.Random, names: set[str]) -> list[str]:
    base = f"urn:invented:{domain['name']}"
    kinds = dict(domain["kinds"])
    for relation in domain["relations"]:
        for kind in (relation[0], relation[2]):
            if kind not in kinds and " " not in kind and kind not in ("text", "truth"):
                kinds[kind] = [kind]
    lines, things = [], {}
    for kind, labels in kinds.items():
        lines.append(f'<{base}:type:{kind}> <{_RDFS}> "{chooser.choice(labels)}"')
        things[kind] = []
        for number in range(THINGS if kind in domain["kinds"] else THINGS // 4):
            one = f"{base}:{kind}:{number}"
            things[kind].append(one)
            lines.append(f'<{one}> <{_RDFS}> "{_name(chooser, names)}"')
            lines.append(f"<{one}> <{_TYPE}> <{base}:type:{kind}>")
    for number, (head, labels, tail, *most) in enumerate(domain["relations"]):
        relation = f"{base}:relation:{number}"
        lines.append(f'<{relation}> <{_RDFS}> "{chooser.choice(labels)}"')
        for one in things[head]:
            if chooser.random() < 0.08:
                continue
            values = (
                [_value(tail, chooser)]
                if tail.split()[0] in ("number", "year", "text", "word", "truth")
                else [
                    f"<{other}>"
                    for other in chooser.sample(things[tail], chooser.randint(1, most[0]) if most else 1)
                    if other != one
                ]
            )
            lines += [f"<{one}> <{relation}> {value}" for value in values]
    return lines


def _value(kind: str, chooser: random.Random) -> str:
    name, *bounds = kind.split()
    if name == "text":
        return f'"{chooser.randint(10, 9999)}-{chooser.choice("ABCDEF")}"'
    if name == "word":
        return f'"{chooser.choice(bounds).replace("_", " ")}"'
    if name == "truth":
        return f'"{str(chooser.random() < 0.4).lower()}"^^<{_XSD}boolean>'
    low, high = (int(bound) for bound in bounds)
    if name == "year":
        return f'"{chooser.randint(low, high)}-{chooser.randint(1, 12):02d}-{chooser.randint(1, 28):02d}"^^<{_XSD}date>'
    exponent = chooser.random()
    return f'"{int(low + (high - low) * exponent**3)}"^^<{_XSD}integer>'


def _name(chooser: random.Random, names: set[str]) -> str:
    while True:
        words = []
        for _ in range(1 if chooser.random() < 0.6 else 2):
            parts = [chooser.choice(_ONSETS) + chooser.choice(_VOWELS) + chooser.choice(_CODAS) for _ in range(2)]
            words.append("".join(parts).capitalize())
        name = " ".join(words)
        if name not in names:
            names.add(name)
            return name
