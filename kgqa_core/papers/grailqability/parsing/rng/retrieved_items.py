"""What a trained retriever finds a question to speak of: where a schema is large, candidates are made of that too."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kgqa_core.config import RngOptions
from kgqa_core.logic.parser import parse
from kgqa_core.nn.checkpoint import TrainingState
from kgqa_core.nn.device import pick_device, seeded
from kgqa_core.papers.grailqability.parsing.examples import ParseExample
from kgqa_core.papers.grailqability.parsing.item_retriever import ItemRetriever, Items, gold_items
from kgqa_core.papers.grailqability.parsing.item_training import ItemTexts, fit_retriever
from kgqa_core.papers.grailqability.parsing.rng.slots import MENTIONS, mentions_of, whole_text
from kgqa_core.search.graph import LabelGraph
from kgqa_core.workspace import Workspace

RETRIEVER = "retriever"
"""Folder of the retriever beside the ranker."""
RELATIONS, TYPES = 30, 3
"""Relations and types of a question that are kept, the likeliest ones."""
LEAST = 0.1
"""A type that is less likely does not count as named."""
USED = 2
"""Relations of a form: one whose probability is a half is as sure as one can be."""
BLOCK = 1000
"""Questions that are read at once."""


class RetrievedItems:
    """What a retriever finds of each question, relations and types by number."""

    def __init__(self, retriever: ItemRetriever, items: Items, graph: LabelGraph) -> None:
        self.retriever, self.items, ids = retriever, items, graph.memory.relation_ids
        self._relations = np.array([ids[key] for key in items.relations], dtype=np.int64)
        self._classes = [graph.type_of_key.get(key, -1) for key in items.classes]
        self._found: dict[str, tuple[NDArray[np.int64], NDArray[np.float64], frozenset[int]]] = {}

    def know(self, texts: Sequence[str]) -> None:
        """Reads some questions, all at once."""
        new = sorted({text for text in texts if text not in self._found})
        for at in range(0, len(new), BLOCK):
            block = new[at : at + BLOCK]
            scores = self.retriever.scores(block, self.items) * self.retriever.network.log_scale.detach().exp().cpu()
            size = len(self.items.relations)
            relations, classes = (USED * scores[:, :size].softmax(-1)).clamp(max=1), scores[:, size:].softmax(-1)
            best, types = relations.topk(min(RELATIONS, size)), classes.topk(min(TYPES, classes.shape[1]))
            for row, text in enumerate(block):
                named = {
                    self._classes[number]
                    for number, share in zip(types.indices[row].tolist(), types.values[row].tolist(), strict=True)
                    if share >= LEAST
                }
                indices = self._relations[best.indices[row].numpy()]
                self._found[text] = (indices, best.values[row].double().numpy(), frozenset(named - {-1}))

    def of(self, text: str) -> tuple[NDArray[np.int64], NDArray[np.float64], frozenset[int]]:
        """The likeliest relations of a question, how likely each is, in [0, 1], and its likeliest types."""
        self.know([text])
        return self._found[text]


def whole_of(example: ParseExample, options: RngOptions) -> str:
    """A question in which its mentions are slots: what the retriever reads."""
    return whole_text(example.text, mentions_of(example.text, example.topics, options.mentions))


def fit_items(
    workspace: Workspace, selected: Sequence[ParseExample], items: Items, options: RngOptions, seed: int, key: str
) -> tuple[ItemRetriever, TrainingState]:
    """A retriever that learns the relations and types of the gold forms; the same as `fit_retriever`."""
    index = {key: number for number, key in enumerate(items.keys)}
    texts = {}
    for split in ("train", "dev"):
        with_form = [example for example in selected if example.split == split and example.form is not None]
        forms = [parse(one.form) for one in with_form if one.form is not None]
        texts[split] = ItemTexts.of([whole_of(one, options) for one in with_form], gold_items(forms, index))
    sha = hashlib.sha256(f"{key} {items.keys}".encode()).hexdigest()
    with seeded(pick_device(options.device, "parsing.rng"), seed):
        return fit_retriever(workspace, texts, items, options, seed, sha, placeholders=MENTIONS, section="parsing.rng")
