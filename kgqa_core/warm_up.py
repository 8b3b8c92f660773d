"""Compiles the kernels that a run needs, by the work of a run on a graph of a few lines.

    python -m kgqa_core.warm_up

numba keeps what it compiles beside the modules (or in NUMBA_CACHE_DIR), so that only the first use of a kernel waits
for it.  `make install` ends with this; without it the first run compiles what it meets.  What is compiled serves
processors of one kind, so that an image is not made with it.  Kernels of formats other than N-Triples are compiled
where such a file is read first.
"""

from __future__ import annotations

from pathlib import Path

import torch

from kgqa_core.config import KgOptions, LinkingOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.dkg.follow import follow, trace
from kgqa_core.dkg.paths import ground, reach, search
from kgqa_core.dkg.weights import EntityWeights
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.dictionary import build as build_mentions
from kgqa_core.linking.questions import link_question
from kgqa_core.linking.tagger import open_tagger
from kgqa_core.store.scratch import scratch_folder
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

LINES = [
    *(f'<http://x/{key}> <http://www.w3.org/2000/01/rdf-schema#label> "{name}"@en .'
      for key, name in {"a": "Norland", "b": "Norland City", "c": "Ada Stone"}.items()),
    *(f"<http://x/{head}> <http://x/{relation}> <http://x/{tail}> ."
      for head, relation, tail in (("a", "capital", "b"), ("b", "country", "a"), ("c", "born_in", "b"))),
    '<http://x/c> <http://x/birth> "1950-02-03"^^<http://www.w3.org/2001/XMLSchema#date> .',
    '<http://x/a> <http://x/motto> "Far \\u006eorth" .',
]  # fmt: skip
TEXTS = ("Who was born in Norland City?", "What is the capital of Norlandd?")
"""The second has a typing error."""


def warm_up(folder: Path) -> None:
    """Builds a graph with its DKG and mentions in a folder, links questions, finds paths and follows relations.

    Raises StorageError where the folder cannot be written.
    """
    kg, arrays, mentions = folder / "kg", folder / "dkg", folder / "mentions"
    source = folder / "lines.nt"
    source.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    for made in (kg, arrays, mentions):
        made.mkdir()
    build(Workspace(kg), options=KgOptions(files=(str(source),)))
    export(Workspace(arrays), kg=kg)
    build_mentions(Workspace(mentions), kg=kg)
    tagger = open_tagger(mentions, kg)
    for number, text in enumerate(TEXTS):
        link_question(tagger, Question(str(number), text), LinkingOptions())
    with KgStore.open(kg) as store:
        country, city = (ids[0] for ids in store.resolve(["http://x/a", "http://x/b"]).values())
    dkg = Dkg.open(arrays)
    capital = dkg.relation_ids["http://x/capital"]
    ground(dkg, country, (capital,), limit=1)
    reach(dkg, country, (capital,))
    search(dkg, (country,), {city}, hops=2, limit=1)
    dkg.triple_of(dkg.edge_of([0]))
    dkg.source_of([0])
    start = EntityWeights.one_hot([[country]])
    relations = torch.ones((1, 2 * dkg.relations), requires_grad=True)
    reached = follow(dkg, follow(dkg, start, relations), relations)
    reached.weight.sum().backward()
    reached.top(1)
    trace(dkg, start, relations.detach(), 1)


if __name__ == "__main__":
    with scratch_folder(None, "kgqa-warm-up") as _folder:
        warm_up(_folder)
