"""FB15k-237 with names, from the numbered files of the shared data: triples, labels and types as tab-separated files.

    python -m benchmarks.answers.real_sets_data --published DIR [--out .bench/fb15k237] [--shared ../shared]

DIR has `valid.txt` and `test.txt` of FB15k-237 as published (mid, relation, mid), as the repository
villmow/datasets_knowledge_embedding (MIT) has them in FB15k-237; nothing is downloaded here.  `dev.tsv` and `test.tsv`
of the shared data are the same lines with numbers, so that each line names two entities and a relation.  What only
`train.tsv` uses stays a number: all triples are written, and what has no name is in no question.
Labels of entities: entity2wikidata.json (Wikidata).  Labels of relations: the last part of their name,
`/film/film/genre` as `genre`; where several have it, with the part before, `climate month`.  Types: a relation's first
part is the type of its heads in Freebase (`/film/film/genre` is of a `/film/film`); they are no triples here.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

from benchmarks.conditions import ROOT

UNNAMED = "/fb15k237/"
"""Before the number of what has no name; such keys are no words (`OPAQUE`)."""
FILES = ("train.tsv", "dev.tsv", "test.tsv")
PUBLISHED = {"dev.tsv": "valid.txt", "test.tsv": "test.txt"}
"""Numbered file → the published one with the same lines."""


def triples_of(path: Path) -> Iterator[tuple[str, str, str]]:
    """The triples of a tab-separated file.  Raises SystemExit at a line that has none."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            parts = line.rstrip("\n").split("\t")
            if len(parts) != 3:
                raise SystemExit(f"{path} line {number} has {len(parts)} columns; a triple has 3")
            yield parts[0], parts[1], parts[2]


def names_of(source: Path, published: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Number → mid, and number → relation, of the lines that are there with numbers and with names.

    Raises SystemExit where the files are missing, have other lines, or name one number twice.
    """
    entities: dict[str, str] = {}
    relations: dict[str, str] = {}
    for numbers, names in PUBLISHED.items():
        if not (published / names).is_file():
            raise SystemExit(f"{published / names} is not there; `--help` says where it is published")
        pairs = zip_longest(triples_of(source / numbers), triples_of(published / names))
        for line, (numbered, named) in enumerate(pairs, start=1):
            if numbered is None or named is None:
                raise SystemExit(
                    f"{numbers} and {names} have different numbers of lines; one of them is another version"
                )
            for place, known in ((0, entities), (1, relations), (2, entities)):
                if known.setdefault(numbered[place], named[place]) != named[place]:
                    raise SystemExit(f"{names} line {line}: {numbered[place]} was {known[numbered[place]]} before")
    return entities, relations


def relation_labels(relations: Mapping[str, str] | list[str]) -> dict[str, str]:
    """Relation → its label in plain words.

    >>> relation_labels(["/film/film/genre", "/a/b/climate./c/d/month", "/e/f/open./g/h/month"])["/e/f/open./g/h/month"]
    'open month'
    """
    keys = sorted(relations)
    last = {key: key.rsplit("/", 1)[1].replace("_", " ").removesuffix(" s") for key in keys}
    several = {label for label, number in Counter(last.values()).items() if number > 1}

    def before(key: str) -> str:
        first = key.split("./")[0].rsplit("/", 1)[1] if "./" in key else key.split("/")[-2]
        return first.replace("_", " ").removesuffix(" s")

    return {key: f"{before(key)} {last[key]}" if last[key] in several else last[key] for key in keys}


def type_of(relation: str) -> str:
    """The type of a relation's heads: `/film/film/genre` → `/film/film`."""
    return relation.split("./")[0].rsplit("/", 1)[0]


def is_commons(relation: str) -> bool:
    """Whether a relation is of Freebase's own domains: not of a user's, not of `common`, and not without a name."""
    return not relation.startswith((UNNAMED, "/base/", "/user/", "/common/"))


def write(shared: Path, published: Path, out: Path) -> dict[str, int]:
    """Writes triples.tsv, types.tsv, labels.en.tsv and aliases.en.tsv; returns counts."""
    source = shared / "fb15k237"
    entities, relations = names_of(source, published)
    rows = [row for file in FILES for row in triples_of(source / file)]
    triples = [
        (
            entities.get(head, f"{UNNAMED}{head}"),
            relations.get(relation, f"{UNNAMED}{relation}"),
            entities.get(tail, f"{UNNAMED}{tail}"),
        )
        for head, relation, tail in rows
    ]
    described = json.loads((source / "entity2wikidata.json").read_text(encoding="utf-8"))
    known = sorted(set(entities.values()) & set(described))
    types = sorted({(head, type_of(relation)) for head, relation, _ in triples if is_commons(relation)})
    labels = [(key, described[key]["label"]) for key in known if described[key].get("label")]
    labels += sorted(relation_labels(list(relations.values())).items())
    labels += [(key, key.rsplit("/", 1)[1].replace("_", " ")) for key in sorted({key for _, key in types})]
    aliases = [(key, alias) for key in known for alias in described[key].get("alternatives", ())]
    out.mkdir(parents=True, exist_ok=True)
    for name, table in (
        ("triples.tsv", triples),
        ("types.tsv", [(head, "rdf:type", key) for head, key in types]),
        ("labels.en.tsv", labels),
        ("aliases.en.tsv", aliases),
    ):
        text = "".join("\t".join(" ".join(part.split()) for part in row) + "\n" for row in table)
        (out / name).write_text(text, encoding="utf-8")
    counts = {"entities": len({end for head, _, tail in rows for end in (head, tail)}), "named": len(entities)}
    return counts | {
        "relations": len(relations),
        "triples": len(triples),
        "types": len(types),
        "labels": len(labels),
        "aliases": len(aliases),
    }


def main() -> None:
    """Reads the command line and writes the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--published", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=ROOT / ".bench" / "fb15k237")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    given = parser.parse_args()
    shared = given.shared / "data" if (given.shared / "data").is_dir() else given.shared
    print(json.dumps(write(shared, given.published, given.out)))


if __name__ == "__main__":
    main()
