"""A small graph with types, numbers, dates and names, for questions that are made from a graph alone."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.workspace import Workspace

X, RDFS = "http://x/", "http://www.w3.org/2000/01/rdf-schema#"
XSD, TYPE = "http://www.w3.org/2001/XMLSchema#", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def triples() -> list[str]:
    """Lines of N-Triples: films with directors, actors, years and genres; countries with capitals and populations."""
    lines = []

    def fact(head: str, relation: str, tail: str) -> None:
        lines.append(f"<{X}{head}> <{X}{relation}> <{X}{tail}> .")

    def value(head: str, relation: str, text: str, kind: str) -> None:
        lines.append(f'<{X}{head}> <{X}{relation}> "{text}"^^<{XSD}{kind}> .')

    def thing(key: str, label: str, kind: str) -> None:
        lines.append(f'<{X}{key}> <{RDFS}label> "{label}"@en .')
        lines.append(f"<{X}{key}> <{TYPE}> <{X}{kind}> .")

    for kind in ("film", "person", "genre", "country", "city"):
        lines.append(f'<{X}{kind}> <{RDFS}label> "{kind}"@en .')
    for i, name in enumerate("Ada Ben Cleo Dan Eve Finn Gus Hana Ivo Jun Kai Lea Mia Ned Oda Pia".split()):
        thing(f"p{i}", f"{name} Stone", "person")
        value(f"p{i}", "date_of_birth", f"{1940 + 3 * i}-0{1 + i % 9}-11", "date")
        fact(f"p{i}", "place_of_birth", f"city{i % 8}")
    for i, name in enumerate("drama comedy western thriller".split()):
        thing(f"g{i}", name, "genre")
    for i in range(40):
        thing(f"f{i}", f"Night {'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[i % 26]}{i}", "film")
        fact(f"f{i}", "directed_by", f"p{i % 7}")
        for star in (i, 3 * i + 1, 5 * i + 2):
            fact(f"f{i}", "starred_actors", f"p{star % 16}")
        fact(f"f{i}", "has_genre", f"g{i % 4}")
        value(f"f{i}", "release_year", str(1960 + i), "gYear")
    for i, name in enumerate("Norland Sudland Estia Westria Midland Ilia Ruland Obara".split()):
        thing(f"c{i}", name, "country")
        thing(f"city{i}", f"{name} City", "city")
        fact(f"c{i}", "capital", f"city{i}")
        value(f"c{i}", "population", str(1_000_000 * (i + 1) ** 2), "integer")
        fact(f"c{i}", "borders", f"c{(i + 1) % 8}")
        fact(f"c{(i + 1) % 8}", "borders", f"c{i}")
        fact(f"city{i}", "country", f"c{i}")
    return lines


def build_graph(folder: Path, lines: list[str] | None = None, languages: tuple[str, ...] = ("en", "")) -> Path:
    """Folder of a kg artifact made of these lines."""
    source, out = folder / "graph.nt", folder / "kg"
    source.write_text("\n".join(triples() if lines is None else lines) + "\n", encoding="utf-8")
    out.mkdir()
    build(Workspace(out), options=KgOptions(files=(str(source),), languages=languages))
    return out
