"""The rank-and-generate parser opened on a graph, and the stage `parsed`, which applies it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kgqa_core.config import RngOptions
from kgqa_core.datasets.derived.form_values import as_stored
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import Form
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.schema import Schema
from kgqa_core.nn.device import pick_device
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, read_examples
from kgqa_core.papers.grailqability.parsing.item_retriever import items_of
from kgqa_core.papers.grailqability.parsing.item_training import load_retriever
from kgqa_core.papers.grailqability.parsing.parsed_forms import (
    ParsedForm,
    Runner,
    Scored,
    normalise_scores,
    tally,
    write_parsed,
)
from kgqa_core.papers.grailqability.parsing.rng import generate
from kgqa_core.papers.grailqability.parsing.rng.enumerate import NO_FORM, Enumerator
from kgqa_core.papers.grailqability.parsing.rng.generated_forms import named, prompt_text, readable, together
from kgqa_core.papers.grailqability.parsing.rng.ranker import (
    FormTexts,
    RankedForms,
    load_ranker,
    rank,
    ranked_kinds,
)
from kgqa_core.papers.grailqability.parsing.rng.readings import Reading, Readings, coverage
from kgqa_core.papers.grailqability.parsing.rng.results import EXECUTED_FORMS, load_weights, weighed
from kgqa_core.papers.grailqability.parsing.rng.retrieved_items import RETRIEVER, RetrievedItems
from kgqa_core.papers.grailqability.parsing.rng.slots import filled
from kgqa_core.papers.grailqability.parsing.word_overlap import WordOverlap
from kgqa_core.workspace import Workspace


@dataclass(frozen=True)
class ProposedForms:
    """Forms of a question by falling log-probability: all that are ranked, and those that were generated."""

    ranked: list[Scored]
    generated: list[Scored] = field(default_factory=list)


BLOCK = 1000
"""Questions that are parsed at once."""


class RngParser:
    """Parses questions over one open graph.

    model_folder: what `train` wrote.  The graph may be another than that of the training: forms are read by the words
    of their relations.  unreadable: what the generator wrote so far that is no form of this graph.
    Raises ArtifactError when the model is damaged.
    """

    def __init__(self, store: KgStore, model_folder: Path, options: RngOptions) -> None:
        self.store, self.options = store, options
        self.graph = MemoryGraph(store)
        self.runner = Runner(store, self.graph)
        self.no_form, types = ranked_kinds(model_folder)
        self.enumerator = Enumerator(store, self.graph, options, types=types)
        if (model_folder / RETRIEVER).is_dir():
            retriever = load_retriever(model_folder / RETRIEVER, pick_device(options.device, "parsing.rng"))
            self.enumerator.retrieved = RetrievedItems(
                retriever, items_of(store, Schema.read(store)), self.enumerator.summary
            )
        self.readings = Readings(self.enumerator, options)
        overlap = WordOverlap(sorted(self.enumerator.labels.values()))
        self.ranker = load_ranker(model_folder, overlap, options.device)
        self.forms = FormTexts(self.ranker, self.enumerator)
        self.generator = None
        if options.generator.enabled:
            self.generator = generate.load(model_folder / generate.FOLDER, self.ranker.device)
        self.weights = load_weights(model_folder)
        if options.generator.weight is not None:
            self.weights = replace(self.weights, generator=options.generator.weight)
        self.unreadable = 0

    def parse(self, selected: Sequence[ParseExample]) -> list[list[ParsedForm]]:
        """The best forms of each question, best first, with their answers; an empty list where there is none."""
        return self.of_readings(self.readings.of_all(selected))

    def of_readings(self, read: Sequence[Reading]) -> list[list[ParsedForm]]:
        """The same for questions that are read already."""
        best = self.unweighed(read)
        if self.generator is None or not self.options.generator.executable_first:
            best = [weighed(scored, self.runner, self.weights, EXECUTED_FORMS) for scored in best]
        return self.runner.rows([reading.id for reading in read], [scored[: self.options.num_forms] for scored in best])

    def unweighed(self, read: Sequence[Reading]) -> list[list[Scored]]:
        """All forms of questions, best first, before it counts what they find."""
        return self.mixed(self.proposed(read), self.weights.generator)

    def proposed(self, read: Sequence[Reading]) -> list[ProposedForms]:
        """What ranker and generator propose for questions."""
        forms = self.forms.read()
        ranked = rank(
            self.ranker, [(reading.texts, reading.candidates) for reading in read], forms,
            pruned=self.options.preselected_forms, no_form=self.no_form,
        )  # fmt: skip
        best = [self._best(reading, ranked_forms) for reading, ranked_forms in zip(read, ranked, strict=True)]
        if self.generator is None:
            return [ProposedForms(forms_of_question) for forms_of_question in best]
        return self._generated(read, ranked, best)

    def mixed(self, proposed: Sequence[ProposedForms], weight: float) -> list[list[Scored]]:
        """The forms of ranker and generator together, best first.  weight: of the generator, in [0, 1]."""
        return [self._mixed(forms, weight) for forms in proposed]

    def _best(self, reading: Reading, ranked: RankedForms) -> list[Scored]:
        """Forms with their entities, by falling log-probability; one that is reached in two ways has the sum."""
        scored: dict[Form | None, tuple[float, float]] = {}
        for index, score in zip(ranked.indices.tolist(), ranked.scores.tolist(), strict=True):
            view, number = int(reading.candidates.views[index]), int(reading.candidates.forms[index])
            if number == NO_FORM:
                scored[None] = (score, 1.0)
                continue
            form = self.enumerator.forms.forms[number]
            assert form is not None
            for filling in reading.fillings[view]:
                if filling.has(number):
                    whole = filled(form, filling.keys, reading.views[view].value)
                    whole = as_stored(whole, self.enumerator.datatypes)
                    log_score = score + filling.log_rho
                    before, rho = scored.get(whole, (-math.inf, 0.0))
                    scored[whole] = (float(np.logaddexp(before, log_score)), max(rho, filling.rho))
        return normalise_scores([(form, score, rho) for form, (score, rho) in scored.items()])

    def _generated(
        self, read: Sequence[Reading], ranked: Sequence[RankedForms], best: Sequence[list[Scored]]
    ) -> list[ProposedForms]:
        """The ranker's forms, and those that the generator writes, which name the question's slots and can be run."""
        assert self.generator is not None
        options = self.options.generator
        prompts = [
            prompt_text(reading, forms_of_question, self.enumerator.forms, options.input_forms)
            for reading, forms_of_question in zip(read, ranked, strict=True)
        ]
        proposed = []
        for reading, written, by_ranker in zip(read, self.generator.write(prompts, options), best, strict=True):
            readable_forms, unreadable = readable(written)
            self.unreadable += unreadable
            generated: list[Scored] = []
            for form, score in readable_forms.items():
                if form is None:
                    generated.append((None, score, 1.0))
                elif (whole := named(form, reading, reading.whole)) is not None:
                    stored = as_stored(whole[0], self.enumerator.datatypes)
                    if self.runner.run(stored) is None:
                        self.unreadable += 1
                    else:
                        generated.append((stored, score, whole[2]))
            proposed.append(ProposedForms(by_ranker, generated))
        return proposed

    def _mixed(self, proposed: ProposedForms, weight: float) -> list[Scored]:
        if self.generator is None:
            return proposed.ranked
        rhos = {form: rho for form, _, rho in (*proposed.generated, *proposed.ranked)}
        by_ranker, by_generator = (
            {form: score for form, score, _ in forms} for forms in (proposed.ranked, proposed.generated)
        )
        scores = together(by_ranker, by_generator, weight) if weight else by_ranker
        order = sorted(scores.items(), key=lambda scored: (-scored[1], str(scored[0])))
        if self.options.generator.executable_first:
            order = [scored for scored in order if scored[0] is not None]
            order.sort(key=lambda scored: self._finds_nothing(scored[0]))
        return [(form, min(0.0, score), rhos[form]) for form, score in order]

    def _finds_nothing(self, form: Form | None) -> bool:
        result = self.runner.run(form)
        return result is None or result.empty


def predict(
    workspace: Workspace,
    *,
    kg: Path,
    examples: Path,
    parser: Path,
    options: RngOptions,
    splits: tuple[str, ...] = ("dev", "test"),
) -> dict[str, Any]:
    """Writes parsed.parquet with the best forms of the questions of some splits, and returns counts.

    Raises ArtifactError when the parser or the examples are damaged.
    """
    selected = [example for example in read_examples(examples) if example.split in splits]
    rows: list[ParsedForm] = []
    read: list[Reading] = []
    with KgStore.open(kg) as store:
        opened = RngParser(store, parser, options)
        for start in range(0, len(selected), BLOCK):
            readings = opened.readings.of_all(selected[start : start + BLOCK])
            read += readings
            rows += [row for found in opened.of_readings(readings) for row in found]
            workspace.monitor.progress(min(start + BLOCK, len(selected)), len(selected), "questions")
    write_parsed(workspace.out, rows)
    return tally(selected, rows) | {"unreadable": opened.unreadable, "coverage": coverage(selected, read)}
