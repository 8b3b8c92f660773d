"""The retrieve-and-decode parser opened on a graph, and the stage `parsed` that asks it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kgqa_core.config import DecodeOptions
from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.answers import answer_texts
from kgqa_core.logic.execute import Result
from kgqa_core.logic.forms import Count, Form, elements
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.parsing.decode.prepare import Asked, Ground, gold_forms, recall
from kgqa_core.parsing.decode.rows import Row, slot_actions
from kgqa_core.parsing.decode.stored import load_decoder, load_retriever
from kgqa_core.parsing.examples import ParseExample, read_examples
from kgqa_core.parsing.parsed import Parsed, write_parsed
from kgqa_core.training.device import pick_device

BATCH = 64
BLOCK = 512
"""Questions that are retrieved for at once, and those that are decoded."""

LONGER = 6
"""Actions that a form may have beyond the longest that was learnt: beams that go on and on cost time for nothing."""

Scored = tuple[Form | None, float, float]
"""A form, its log-probability and the least ρ of its entities."""


class DecodeParser:
    """Parses questions over one open graph.

    folder: what `train` wrote.  The graph may be another than that of the training: relations and types are read by
    their words.  Raises ArtifactError when the parser is damaged.
    """

    def __init__(self, store: KgStore, folder: Path, options: DecodeOptions) -> None:
        self.store, self.options = store, options
        self.device = pick_device(options.device, "parsing.decode")
        self.ground, self.graph = Ground.of(store), MemoryGraph(store)
        self.retriever = load_retriever(folder / "retriever")
        self.retriever.network.to(self.device)
        actions = slot_actions(options.mentions, options.candidates, options.classes, options.relations)
        stored = load_decoder(folder / "decoder", actions, self.device)
        self.decoder, self.no_form = stored.decoder, stored.no_form
        learnt = {
            "classes": min(options.classes, stored.classes),
            "most_actions": min(options.most_actions, stored.longest + LONGER),
        }
        self.options = options.model_copy(update=learnt)
        self._results: dict[Form, Result | None] = {}

    def read(self, examples: Sequence[ParseExample]) -> tuple[Asked, list[Row]]:
        """The questions with what is retrieved for them."""
        asked = Asked.of(examples, self.store, self.ground, self.options)
        return asked, asked.rows(self.retriever.scores(asked.texts, self.ground.items), self.options)

    def parse(self, examples: Sequence[ParseExample]) -> list[list[Parsed]]:
        """The best forms of each question, best first, with their answers."""
        return self.decode(*self.read(examples))

    def decode(self, asked: Asked, rows: Sequence[Row]) -> list[list[Parsed]]:
        """The same for questions that are read already."""
        order = sorted(range(len(rows)), key=lambda i: (len(rows[i].text), len(rows[i].labels), i))
        found: list[list[Scored]] = [[] for _ in rows]
        for start in range(0, len(order), BATCH):
            own = order[start : start + BATCH]
            automata = [asked.automaton(rows[i], self.options, no_form=self.no_form) for i in own]
            decoded = self.decoder.search([rows[i] for i in own], automata, self.options.beam)
            for i, forms in zip(own, decoded, strict=True):
                found[i] = self._weighed(asked, i, forms)
        return self._answered([example.id for example in asked.examples], found)

    def _weighed(self, asked: Asked, number: int, forms: Sequence[tuple[Form | None, float]]) -> list[Scored]:
        """Forms by falling probability among these, the linker's confidence counted in; never above 0."""
        rhos = {topic.key: topic.rho for topic, _ in asked.words[number].topics}
        found = []
        for form, score in forms:
            rho = min((rhos[key] for key in elements(form).entities), default=1.0) if form is not None else 1.0
            found.append((form, score + self.options.rho_weight * math.log(max(rho, 1e-6)), rho))
        return _normal(found)

    def _answered(self, ids: Sequence[str], found: Sequence[list[Scored]]) -> list[list[Parsed]]:
        results = [[self._run(form) for form, _, _ in own] for own in found]
        rows = [self._judged(own, run) for own, run in zip(found, results, strict=True)]
        nodes = {node for own in rows for _, result in own if result is not None for node in result.nodes}
        keys = self.store.entity_keys(sorted(nodes))
        parsed = []
        for question, own in zip(ids, rows, strict=True):
            told = []
            for rank, ((form, score, rho), result) in enumerate(own):
                more: dict[str, Any] = {}
                if form is not None and result is not None:
                    more = {"answers": answer_texts(form, result, keys), "empty": _nothing(form, result)}
                told.append(Parsed(question, rank, None if form is None else str(form), score, rho, **more))
            parsed.append(told)
        return parsed

    def _judged(self, own: list[Scored], run: list[Result | None]) -> list[tuple[Scored, Result | None]]:
        """Where a best form that finds nothing says that there is no form, it does so with its probability."""
        pairs = list(zip(own, run, strict=True))
        if self.options.failed == "keep" or not pairs or pairs[0][0][0] is None:
            return pairs
        (form, score, _), result = pairs[0]
        assert form is not None
        if result is not None and not _nothing(form, result):
            return pairs
        said = [one[1] for one, _ in pairs if one[0] is None]
        whole = min(0.0, float(np.logaddexp.reduce([score, *said])))
        return [((None, whole, 1.0), None), *[pair for pair in pairs[1:] if pair[0][0] is not None]]

    def _run(self, form: Form | None) -> Result | None:
        """The result of a form; None where it cannot be run."""
        if form is None:
            return None
        if form not in self._results:
            try:
                self._results[form] = self.graph.execute(form)
            except (FormError, FormTimeout):
                self._results[form] = None
        return self._results[form]


def predict(
    out: Path,
    *,
    kg: Path,
    examples: Path,
    parser: Path,
    options: DecodeOptions,
    splits: tuple[str, ...] = ("dev", "test"),
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes parsed.parquet with the best forms of the questions of some splits, and returns counts.

    Raises ArtifactError when the parser or the examples are damaged.
    """
    asked = [example for example in read_examples(examples) if example.split in splits]
    rows: list[Parsed] = []
    read: list[Row] = []
    with KgStore.open(kg) as store:
        opened = DecodeParser(store, parser, options)
        for start in range(0, len(asked), BLOCK):
            own, own_rows = opened.read(asked[start : start + BLOCK])
            read += own_rows
            rows += [row for found in opened.decode(own, own_rows) for row in found]
            monitor.progress(min(start + BLOCK, len(asked)), len(asked), "questions")
    write_parsed(out, rows)
    first = [row for row in rows if row.rank == 0]
    found = recall(read, gold_forms(asked))
    return {
        "questions": len(asked),
        "parsed": len(first),
        "no_form": sum(row.form is None for row in first),
        "empty": sum(row.empty is True for row in first),
        "not_run": sum(row.form is not None and row.empty is None for row in rows),
        "by_split": dict(sorted(Counter(example.split for example in asked).items())),
        "schema_recall": None if found is None else round(found, 4),
    }


def _normal(found: list[Scored]) -> list[Scored]:
    if not found:
        return []
    total = float(np.logaddexp.reduce([score for _, score, _ in found]))
    order = sorted(found, key=lambda one: (-one[1], str(one[0])))
    return [(form, min(0.0, score - total), rho) for form, score, rho in order]


def _nothing(form: Form, result: Result) -> bool:
    """Whether a form finds nothing; a count of 0 is nothing."""
    return result.value == 0 if isinstance(form, Count) else result.empty
