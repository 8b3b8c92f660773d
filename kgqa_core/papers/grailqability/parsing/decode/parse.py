"""The retrieve-and-decode parser opened on a graph, and the stage `parsed`, which applies it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kgqa_core.config import DecodeOptions
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import Form, elements
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.nn.device import pick_device
from kgqa_core.papers.grailqability.parsing.decode.decoder import load_decoder
from kgqa_core.papers.grailqability.parsing.decode.prepare import Ground, QuestionBatch, gold_forms, recall
from kgqa_core.papers.grailqability.parsing.decode.rows import DecoderRow, slot_actions
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, read_examples
from kgqa_core.papers.grailqability.parsing.item_training import load_retriever
from kgqa_core.papers.grailqability.parsing.parsed_forms import (
    ParsedForm,
    Runner,
    Scored,
    is_empty,
    normalise_scores,
    tally,
    write_parsed,
)
from kgqa_core.papers.grailqability.parsing.rng.results import load_weights, weighed
from kgqa_core.workspace import Workspace

BATCH = 64
BLOCK = 512
"""Questions that are retrieved for at once, and those that are decoded."""

LONGER = 6
"""Actions that a form may have beyond the longest that was trained: beams that go on and on cost time for nothing."""


class DecodeParser:
    """Parses questions over one open graph.

    folder: what `train` wrote.  The graph may be another than that of the training: relations and types are read by
    their words.  Raises ArtifactError when the parser is damaged.
    """

    def __init__(self, store: KgStore, folder: Path, options: DecodeOptions) -> None:
        self.store, self.options = store, options
        self.device = pick_device(options.device, "parsing.decode")
        self.ground, self.graph = Ground.of(store), MemoryGraph(store)
        self.retriever = load_retriever(folder / "retriever", self.device)
        actions = slot_actions(options.mentions, options.candidates, options.classes, options.relations)
        stored = load_decoder(folder / "decoder", actions, self.device, self.retriever.states)
        self.decoder, self.no_form = stored.decoder, stored.no_form
        trained: dict[str, Any] = {
            "classes": min(options.classes, stored.classes),
            "max_actions": min(options.max_actions, stored.longest + LONGER),
        }
        if options.on_empty_result == "auto":
            trained["on_empty_result"] = "weigh" if stored.no_form else "no form"
        self.weights = load_weights(folder)
        self.options = options.model_copy(update=trained)
        self.runner = Runner(store, self.graph)

    def read(self, examples: Sequence[ParseExample]) -> tuple[QuestionBatch, list[DecoderRow]]:
        """The questions with what is retrieved for them."""
        batch = QuestionBatch.of(examples, self.store, self.ground, self.options)
        return batch, batch.rows(self.retriever.scores(batch.texts, self.ground.items), self.options)

    def parse(self, examples: Sequence[ParseExample]) -> list[list[ParsedForm]]:
        """The best forms of each question, best first, with their answers."""
        return self.decode(*self.read(examples))

    def decode(self, batch: QuestionBatch, rows: Sequence[DecoderRow]) -> list[list[ParsedForm]]:
        """The same for questions that are read already."""
        judged = [self._judged(scored) for scored in self.scored(batch, rows)]
        return self.runner.rows([example.id for example in batch.examples], judged)

    def scored(self, batch: QuestionBatch, rows: Sequence[DecoderRow]) -> list[list[Scored]]:
        """The forms of each question as they are decoded, whatever they find."""
        order = sorted(range(len(rows)), key=lambda i: (len(rows[i].text), len(rows[i].labels), i))
        decoded_forms: list[list[Scored]] = [[] for _ in rows]
        for start in range(0, len(order), BATCH):
            numbers = order[start : start + BATCH]
            automata = [batch.automaton(rows[i], self.options, no_form=self.no_form) for i in numbers]
            decoded = self.decoder.search([rows[i] for i in numbers], automata, self.options.beam)
            for i, forms in zip(numbers, decoded, strict=True):
                decoded_forms[i] = self._linked(batch, i, forms)
        return decoded_forms

    def _linked(self, batch: QuestionBatch, number: int, forms: Sequence[tuple[Form | None, float]]) -> list[Scored]:
        """Forms by falling probability among these, the linker's confidence counted in; never above 0."""
        rhos = {topic.key: topic.rho for topic, _ in batch.words[number].topics}
        weighed = []
        for form, score in forms:
            rho = min((rhos[key] for key in elements(form).entities), default=1.0) if form is not None else 1.0
            weighed.append((form, score + math.log(max(rho, 1e-6)), rho))
        return normalise_scores(weighed)

    def _judged(self, scored: list[Scored]) -> list[Scored]:
        """What forms find weighed in; or "no form" with the probability of a best form that finds nothing."""
        if self.options.on_empty_result == "weigh":
            return weighed(scored, self.runner, self.weights, self.options.beam)
        form, score, _ = scored[0] if scored else (None, 0.0, 1.0)
        if self.options.on_empty_result == "keep" or form is None:
            return scored
        if not is_empty(form, self.runner):
            return scored
        no_form = [weight for kept_form, weight, _ in scored if kept_form is None]
        whole = min(0.0, float(np.logaddexp.reduce([score, *no_form])))
        return [(None, whole, 1.0), *[kept_form for kept_form in scored[1:] if kept_form[0] is not None]]


def predict(
    workspace: Workspace,
    *,
    kg: Path,
    examples: Path,
    parser: Path,
    options: DecodeOptions,
    splits: tuple[str, ...] = ("dev", "test"),
) -> dict[str, Any]:
    """Writes parsed.parquet with the best forms of the questions of some splits, and returns counts.

    Raises ArtifactError when the parser or the examples are damaged.
    """
    selected = [example for example in read_examples(examples) if example.split in splits]
    rows: list[ParsedForm] = []
    read: list[DecoderRow] = []
    with KgStore.open(kg) as store:
        opened = DecodeParser(store, parser, options)
        for start in range(0, len(selected), BLOCK):
            batch, own_rows = opened.read(selected[start : start + BLOCK])
            read += own_rows
            rows += [row for found in opened.decode(batch, own_rows) for row in found]
            workspace.monitor.progress(min(start + BLOCK, len(selected)), len(selected), "questions")
    write_parsed(workspace.out, rows)
    found = recall(read, gold_forms(selected))
    return tally(selected, rows) | {"schema_recall": None if found is None else round(found, 4)}
