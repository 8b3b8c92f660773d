"""A parser that writes the skeleton of a form first and its elements later, beside retrieve and decode.

    python -m benchmarks.papers.sketch --work DIR [--train A,A+U] [--json OUT]

The sketch of a form is what its actions are once each topic, type, literal and relation (in either direction) is
replaced by its kind: `AND type AND relation topic relation topic`, or NK, that there is no form.  A linear softmax over
the words, the pairs of words and the packaged encoder's vector of the masked question learns the sketches of the
training questions, the weight of its prior by the likelihood of dev.  The trained decoder then writes the elements: its
automaton allows only actions of the kind that the likeliest sketch has at this place, and all others where none of
those is allowed.  Empty results count as they do without a sketch.  The benchmark over Atlas and the decoder are those
of `benchmarks.papers.parsers`; without a sketch is the same decoder as it is.

sketch: share of the questions whose sketch is the gold one, as far as the slots of the question hold the gold form.  EM
with 95 % bootstrap intervals; fixed and broken: questions by EM against the decoder without a sketch, with McNemar's p.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from benchmarks import results_file
from benchmarks.conditions import RESULTS, conditions
from benchmarks.papers.parsers import kgqa, make
from benchmarks.results_file import CONDITIONS
from benchmarks.tables import conditions_line, table
from kgqa_core.config import DecodeOptions
from kgqa_core.kg.store import KgStore
from kgqa_core.metrics.significance import bootstrap_interval, mcnemar, three_digits
from kgqa_core.nn.sentence_encoder import SentenceEncoder
from kgqa_core.papers.grailqability.builder.evaluate import decide
from kgqa_core.papers.grailqability.builder.records import GRAPH, read_benchmark
from kgqa_core.papers.grailqability.builder.score import by_group, score
from kgqa_core.papers.grailqability.parsing.decode.actions import FIXED, Slots
from kgqa_core.papers.grailqability.parsing.decode.automaton import Automaton
from kgqa_core.papers.grailqability.parsing.decode.grammar import State
from kgqa_core.papers.grailqability.parsing.decode.parse import BATCH, DecodeParser
from kgqa_core.papers.grailqability.parsing.decode.prepare import QuestionBatch, gold_forms
from kgqa_core.papers.grailqability.parsing.decode.rows import DecoderRow
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, read_examples
from kgqa_core.papers.grailqability.parsing.parsed_forms import Scored, read_parsed
from kgqa_core.runs.records import newest_run
from kgqa_core.store.artifacts import ArtifactRef, Home

Sketch = tuple[str, ...]

FIELDS = (*CONDITIONS, "rows/*/EM/*/*", "rows/sketch*/sketches", "rows/sketch*/sketch/*", "rows/sketch*/fixed",
          "rows/sketch*/broken", "rows/sketch*/p")  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""
SEED, STEPS = 7, 300
PRIORS = (1e-4, 1e-3, 1e-2)
"""Weights of the squared weights beside the mean loss of a question."""
GROUPS = ("all", "A", "U", "NK", "NA", "iid", "zero-shot")


def kind(action: int, slots: Slots) -> str:
    """What stands in a sketch for an action."""
    if action < len(FIXED):
        return FIXED[action]
    edges = (slots.first_class, slots.first_literal, slots.first_relation)
    return ("topic", "type", "literal", "relation")[sum(action >= edge for edge in edges)]


class SketchAutomaton(Automaton):
    """The forms of one question that follow a sketch, as far as they can."""

    sketch: Sketch = ()

    def allowed(self, state: State) -> tuple[int, ...]:
        """Of the actions that may come next those of the sketch's kind here; all where there is none."""
        every = super().allowed(state)
        wanted = self.sketch[state.used] if state.used < len(self.sketch) else None
        return tuple(action for action in every if kind(action, self.slots) == wanted) or every


class SketchParser(DecodeParser):
    """The decoder with a sketch for each question."""

    sketches: Mapping[str, Sketch]

    def scored(self, batch: QuestionBatch, rows: Sequence[DecoderRow]) -> list[list[Scored]]:
        """As without sketches, each question by the automaton of its own."""
        decoded: list[list[Scored]] = []
        for start in range(0, len(rows), BATCH):
            numbers = range(start, min(start + BATCH, len(rows)))
            automata = [self._automaton(batch, rows[i], batch.examples[i].id) for i in numbers]
            found = self.decoder.search([rows[i] for i in numbers], automata, self.options.beam)
            decoded += [self._linked(batch, i, forms) for i, forms in zip(numbers, found, strict=True)]
        return decoded

    def _automaton(self, batch: QuestionBatch, row: DecoderRow, name: str) -> SketchAutomaton:
        made = batch.automaton(row, self.options, no_form=self.no_form)
        own = SketchAutomaton(made.kinds, made.slots, batch.types, no_form=self.no_form, limits=made.limits)
        own.sketch = self.sketches[name]
        return own


class Features:
    """Words, pairs of words and vectors of masked texts; words of fewer than two training texts are not read."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = Counter(word for text in texts for word in {*_words(text)})
        self.index = {word: number for number, word in enumerate(sorted(w for w, n in counts.items() if n > 1))}
        self.encoder = SentenceEncoder("minilm")

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """[texts, features]"""
        pairs = [(row, self.index[word]) for row, text in enumerate(texts) for word in {*_words(text)} & {*self.index}]
        rows, columns = zip(*pairs, strict=True)
        shape = (len(texts), len(self.index))
        bag = sparse.csr_matrix((np.ones(len(pairs), np.float32), (rows, columns)), shape=shape).toarray()
        length = np.maximum(1.0, np.sqrt(bag.sum(axis=1, keepdims=True)))
        vectors = np.asarray(self.encoder.encode(texts), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return torch.from_numpy(np.hstack([bag / length, vectors]))


def _words(text: str) -> list[str]:
    words = re.findall(r"\[\w+\]|\w+", text.casefold())
    return [*words, *(" ".join(pair) for pair in zip(["^", *words], [*words, "$"], strict=True))]


def fit(x: Tensor, y: Tensor, classes: int, prior: float) -> torch.nn.Linear:
    """A linear softmax.  x: [questions, features].  y: [questions]."""
    torch.manual_seed(SEED)
    linear = torch.nn.Linear(x.shape[1], classes)
    optimiser = torch.optim.Adam(linear.parameters(), lr=0.05)
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(linear(x), y) + prior * (linear.weight**2).sum()
        loss.backward()
        optimiser.step()
    return linear


def sketches_of(parser: DecodeParser, examples: Sequence[ParseExample]) -> tuple[list[str], list[Sketch | None]]:
    """Masked texts, and the sketches of the gold forms; None where the slots of a question do not hold its form."""
    batch = QuestionBatch.of(examples, parser.store, parser.ground, parser.options)
    gold, scores = gold_forms(examples), parser.retriever.scores(batch.texts, parser.ground.items)
    made: list[Sketch | None] = []
    for row in batch.with_gold(batch.rows(scores, parser.options, gold), gold, parser.options):
        made.append(None if isinstance(row, str) else tuple(kind(action, row.slots) for action in row.actions[:-1]))
    return batch.texts, made


def learn(parser: DecodeParser, examples: Sequence[ParseExample]) -> tuple[dict[str, Sketch], int]:
    """The likeliest sketch of each dev and test question, and how many sketches there are to choose from."""
    splits = {name: [one for one in examples if one.split == name] for name in ("train", "dev", "test")}
    texts, y, features, classes = {}, {}, None, dict[Sketch, int]()
    for name in ("train", "dev"):
        known = [one for one in splits[name] if one.known]
        read, sketches = sketches_of(parser, known)
        pairs = [(text, sketch) for text, sketch in zip(read, sketches, strict=True) if sketch is not None]
        if name == "train":
            for _, sketch in pairs:
                classes.setdefault(sketch, len(classes))
        pairs = [pair for pair in pairs if pair[1] in classes]
        texts[name], y[name] = [text for text, _ in pairs], torch.tensor([classes[sketch] for _, sketch in pairs])
    features = Features(texts["train"])
    x = {name: features(own) for name, own in texts.items()}
    models = [fit(x["train"], y["train"], len(classes), prior) for prior in PRIORS]
    with torch.inference_mode():
        losses = [float(torch.nn.functional.cross_entropy(model(x["dev"]), y["dev"])) for model in models]
        model, order = models[int(np.argmin(losses))], list(classes)
        others = [*splits["dev"], *splits["test"]]
        read = QuestionBatch.of(others, parser.store, parser.ground, parser.options).texts
        best = model(features(read)).argmax(dim=1).tolist()
    return {one.id: order[number] for one, number in zip(others, best, strict=True)}, len(classes)


def measure(work: Path, training: str) -> dict[str, dict[str, Any]]:
    """The rows of one training: without and with sketches."""
    found, _ = kgqa(
        "answerability", "evaluate", str(work / "atlas"), "--parsers", "decode", "--train", training,
        home=work / "home",
    )  # fmt: skip
    stages = newest_run(Home(work / "home"), found["run_id"])["stages"]
    folders = {own["artifact"]["kind"]: ArtifactRef.model_validate(own["artifact"]).folder for own in stages}
    examples, benchmark = read_examples(folders["examples"]), read_benchmark(work / "atlas")
    forms = {question.id: question.s_expression for question in benchmark.questions}
    test = [one for one in examples if one.split == "test"]
    with KgStore.open(work / "atlas" / GRAPH) as store:
        parser = SketchParser(store, folders["parser"], DecodeOptions())
        parser.sketches, classes = learn(parser, examples)
        by_sketch = dict(zip((one.id for one in test), parser.parse(test), strict=True))
        known = [replace(one, form=forms[one.id], known=True) for one in test]
        _, gold = sketches_of(parser, known)
    right = [parser.sketches[one.id] == own for one, own in zip(known, gold, strict=True) if own is not None]
    rows_of: dict[str, dict[str, Any]] = {}
    exact: dict[str, list[bool]] = {}
    for name, lists in {"decode": read_parsed(folders["parsed"]), "sketch": by_sketch}.items():
        predicted = {one.id: decide(lists.get(one.id, ())) for one in test}
        scored = score(benchmark, {key: own for key, own in predicted.items() if own is not None})
        exact[name] = [own.values["EM"] == 1 for own in scored]
        groups = by_group(scored)
        rows_of[name] = {
            "EM": {
                group: bootstrap_interval([own.values["EM"] for own in groups[group]], seed=SEED).rounded(4)
                for group in GROUPS if group in groups
            }
        }  # fmt: skip
    pairs = list(zip(exact["sketch"], exact["decode"], strict=True))
    fixed, broken = pairs.count((True, False)), pairs.count((False, True))
    rows_of["sketch"] |= {
        "sketches": classes, "sketch": bootstrap_interval(right, seed=SEED).rounded(4), "fixed": fixed,
        "broken": broken, "p": three_digits(mcnemar(fixed, broken)),
    }  # fmt: skip
    return {f"{name}, {training}": own for name, own in rows_of.items()}


def tables(found: Mapping[str, Any]) -> str:
    """The table of the page."""
    rows = []
    for name, own in found["rows"].items():
        which, training = name.split(", ")
        cells = [f"{100 * own['EM'][group]['value']:.1f}" for group in GROUPS]
        whole = "{:.1f} ({:.1f}–{:.1f})".format(*(100 * own["EM"]["all"][key] for key in ("value", "low", "high")))
        more = [f"{100 * own['sketch']['value']:.1f}", f"{own['fixed']}, {own['broken']}, {own['p']:.2g}"]
        title = "Sketch, then elements" if which == "sketch" else "Retrieve and decode"
        rows.append((f"{title}, {training}", whole, *cells[1:], *(more if which == "sketch" else ("–", "–"))))
    head = ("EM", *GROUPS, "sketch right", "fixed, broken, p")
    return f"{table(head, rows)}\n{conditions_line(found['conditions'])}"


def main() -> None:
    """Trains the decoder where it is not yet, learns the sketches, parses and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--train", default="A,A+U")
    parser.add_argument("--json", type=Path, default=RESULTS / "sketch.json")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    if not (given.work / "atlas").exists():
        make("atlas", given.work)
    rows: dict[str, Any] = {}
    for training in given.train.split(","):
        rows |= measure(given.work, training)
    results_file.write(given.json, {"conditions": conditions(SEED), "rows": rows}, FIELDS)


if __name__ == "__main__":
    main()
