"""A graph in which every kind of thing that an LTGen benchmark looks at is there once or more."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.config import KgOptions, PopularityOptions, SamplingOptions
from kgqa_core.kg.build import build

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
    build(out, options=KgOptions(files=(str(source),)), work=work)
    return out


def make_sample(folder: Path, kg: Path, per_level: int = 5, **sampling: object) -> Path:
    """A draw from a graph by degree, in `folder/sample`."""
    from kgqa_core.builders.ltgen.sample import draw

    out = folder / "sample"
    out.mkdir(parents=True)
    options = SamplingOptions.model_validate({"per_level": per_level, **sampling})
    draw(out, kg=kg, options=options, popularity=PopularityOptions(), seed=7)
    return out
