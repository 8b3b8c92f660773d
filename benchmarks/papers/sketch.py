"""Sketch first, elements later: a parser that chooses the skeleton of a form, beside retrieve and decode.

    python -m benchmarks.papers.sketch --work DIR [--json OUT]

The sketch of a form is its actions with each topic, type, literal and relation (in either direction) replaced by its
kind: `AND type AND relation topic relation topic`.  A linear softmax chooses it from the masked question (words, pairs
of words, and the vector of the packaged encoder); it learns the sketches of the training questions that have a form,
and the weight of its L2 penalty is the one with the least loss on dev.  The decoder then writes the elements: at each
position its automaton allows only actions of the sketch's kind, or all of them where none is of that kind.  "No form"
(NK) stays the decoder's choice: whether the graph has the relation of a question is not seen in its words.  The
benchmark over Atlas and the decoder are those of `benchmarks.papers.parsers`.

chosen: share of the questions with a gold form whose chosen sketch is that of the form; decoded: the same of the form
that is decoded without a sketch, "no form" being wrong.  without, with: EM without and with the chosen sketch;
difference: with minus without, paired.  Intervals are of 95 %, by bootstrap over questions.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmarks import results_file
from benchmarks.conditions import RESULTS, conditions
from benchmarks.papers.parsers import artifact_folders, kgqa, make
from benchmarks.results_file import CONDITIONS
from benchmarks.tables import conditions_line, table
from kgqa_core.config import DecodeOptions
from kgqa_core.errors import FormError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import elements
from kgqa_core.logic.parser import parse
from kgqa_core.metrics.significance import bootstrap_interval
from kgqa_core.nn.sentence_encoder import SentenceEncoder
from kgqa_core.papers.grailqability.builder.evaluate import decide
from kgqa_core.papers.grailqability.builder.records import GRAPH, read_benchmark
from kgqa_core.papers.grailqability.builder.score import by_group, score
from kgqa_core.papers.grailqability.parsing.decode.actions import FIXED, NK, Slots, written
from kgqa_core.papers.grailqability.parsing.decode.automaton import Automaton, Limits
from kgqa_core.papers.grailqability.parsing.decode.grammar import State
from kgqa_core.papers.grailqability.parsing.decode.parse import DecodeParser
from kgqa_core.papers.grailqability.parsing.decode.prepare import QuestionBatch
from kgqa_core.papers.grailqability.parsing.decode.rows import DecoderRow
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, read_examples
from kgqa_core.types import SPLITS

Sketch = tuple[str, ...]
T = TypeVar("T")

FIELDS = (*CONDITIONS, "trainings/*/chooser/*", "trainings/*/groups/*/*/*")
"""What the result file holds (benchmarks/results_file.py)."""
SEED, STEPS, LEARNING_RATE = 7, 300, 0.05
PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3)
"""Weights of the sum of squared weights beside the mean loss of a question."""
TRAININGS = ("A", "A+U")
GROUPS = ("all", "A", "U", "iid", "zero-shot")
COLUMNS = {
    "chosen": "sketch chosen", "decoded": "sketch decoded", "without": "EM without", "with": "EM with",
    "difference": "difference",
}  # fmt: skip


def kind(action: int, slots: Slots) -> str:
    """What stands in a sketch for an action."""
    if action < len(FIXED):
        return FIXED[action]
    edges = (slots.first_class, slots.first_literal, slots.first_relation)
    return ("topic", "type", "literal", "relation")[sum(action >= edge for edge in edges)]


def sketch_of(text: str | None, slots: Slots) -> Sketch | None:
    """The sketch of a form, given as text; None without one, and where no actions write it.

    Elements of the form that are in no slot get one after the others: parts of AND stand in the order of their slots.
    """
    if text is None:
        return None
    form = parse(text)
    used = elements(form)
    slots = Slots(
        _joined(slots.topics, used.entities), _joined(slots.classes, used.classes),
        _joined(slots.literals, used.literals), _joined(slots.relations, used.relations),
    )  # fmt: skip
    try:
        return tuple(kind(action, slots) for action in written(form, slots))
    except FormError:
        return None


def _joined(first: Sequence[T], then: Sequence[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*first, *then)))


class SketchAutomaton(Automaton):
    """The forms of one question that follow a sketch, as far as they can, and NK."""

    sketch: Sketch = ()

    def allowed(self, state: State) -> tuple[int, ...]:
        """Those of the actions that may come next that are of the sketch's kind, or NK; all where there is none."""
        kinds = {action: kind(action, self.slots) for action in super().allowed(state)}
        wanted = self.sketch[state.used] if state.used < len(self.sketch) else None
        return tuple(action for action, own in kinds.items() if wanted not in kinds.values() or own in (wanted, NK))


@dataclass(frozen=True)
class SketchBatch(QuestionBatch):
    """Questions whose forms follow sketches.  sketches: by masked text."""

    sketches: Mapping[str, Sketch]

    def automaton(self, row: DecoderRow, options: DecodeOptions, *, no_form: bool) -> Automaton:
        """What may be decoded of a row."""
        limits = Limits(options.max_actions)
        made = SketchAutomaton(self.ground.kinds, row.slots, self.types, no_form=no_form, limits=limits)
        made.sketch = self.sketches[row.text]
        return made


class Features:
    """Words, pairs of words and vectors of masked texts; words of fewer than two of the given texts are left out."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = Counter(word for text in texts for word in {*_words(text)})
        self.index = {word: number for number, word in enumerate(sorted(w for w, n in counts.items() if n > 1))}
        self.encoder = SentenceEncoder("minilm")

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """[texts, features]"""
        found = [[self.index[word] for word in {*_words(text)} & {*self.index}] for text in texts]
        ends = np.cumsum([0, *map(len, found)])
        columns = np.array([column for own in found for column in own], dtype=np.int64)
        bag = sparse.csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(texts), len(self.index))).toarray()
        bag /= np.maximum(1.0, np.linalg.norm(bag, axis=1, keepdims=True))
        vectors = np.asarray(self.encoder.encode(texts))
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return torch.from_numpy(np.hstack([bag, vectors]).astype(np.float32))


def _words(text: str) -> list[str]:
    words = re.findall(r"\[\w+\]|\w+", text.casefold())
    return [*words, *(" ".join(pair) for pair in zip(["^", *words], [*words, "$"], strict=True))]


def fit(x: Tensor, y: Tensor, classes: int, penalty: float) -> torch.nn.Linear:
    """A linear softmax.  x: [questions, features].  y: [questions]."""
    torch.manual_seed(SEED)
    linear = torch.nn.Linear(x.shape[1], classes)
    optimiser = torch.optim.Adam(linear.parameters(), lr=LEARNING_RATE)
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = cross_entropy(linear(x), y) + penalty * (linear.weight**2).sum()
        loss.backward()
        optimiser.step()
    return linear


class Chooser:
    """Chooses one of the training questions' sketches from a masked text."""

    def __init__(self, parser: DecodeParser, examples: Sequence[ParseExample]) -> None:
        texts: dict[str, list[str]] = {}
        wanted: dict[str, list[Sketch]] = {}
        for split in ("train", "dev"):
            batch, rows = parser.read([one for one in examples if one.split == split and one.known])
            made = [(row.text, sketch_of(one.form, row.slots)) for one, row in zip(batch.examples, rows, strict=True)]
            known = [(text, own) for text, own in made if own and (split == "train" or own in wanted["train"])]
            texts[split], wanted[split] = [text for text, _ in known], [own for _, own in known]
        self.sketches = sorted({*wanted["train"]})
        self.features = Features(texts["train"])
        number = {own: index for index, own in enumerate(self.sketches)}
        x = {split: self.features(own) for split, own in texts.items()}
        y = {split: torch.tensor([number[one] for one in own]) for split, own in wanted.items()}
        models = [fit(x["train"], y["train"], len(self.sketches), penalty) for penalty in PENALTIES]
        with torch.inference_mode():
            losses = [float(cross_entropy(model(x["dev"]), y["dev"])) for model in models]
        best = int(np.argmin(losses))
        self.model = models[best]
        self.counts = {
            "questions": len(y["train"]), "sketches": len(self.sketches), "features": x["train"].shape[1],
            "penalty": PENALTIES[best], "dev loss": round(losses[best], 4),
        }  # fmt: skip

    def __call__(self, texts: Sequence[str]) -> dict[str, Sketch]:
        """The likeliest sketch of each text."""
        with torch.inference_mode():
            best = self.model(self.features(texts)).argmax(dim=1).tolist()
        return {text: self.sketches[index] for text, index in zip(texts, best, strict=True)}


def measure(work: Path, training: str, split: str = SPLITS[-1]) -> dict[str, Any]:
    """Counts of the chooser, and intervals by group, of one training."""
    found, _ = kgqa(
        "answerability", "evaluate", str(work / "atlas"), "--parsers", "decode", "--train", training,
        home=work / "home",
    )  # fmt: skip
    folders, benchmark = artifact_folders(work / "home", found["run_id"]), read_benchmark(work / "atlas")
    examples = read_examples(folders["examples"])
    with KgStore.open(work / "atlas" / GRAPH) as store:
        parser = DecodeParser(store, folders["parser"], DecodeOptions())
        chooser = Chooser(parser, examples)
        batch, rows = parser.read([one for one in examples if one.split == split])
        sketches = chooser(batch.texts)
        with_sketch = SketchBatch(batch.ground, batch.examples, batch.words, batch.types, batch.nearby, sketches)
        parsed = {"without": parser.decode(batch, rows), "with": parser.decode(with_sketch, rows)}
    slots = {one.id: row.slots for one, row in zip(batch.examples, rows, strict=True)}
    best = {
        name: {one.id: decided for one, own in zip(batch.examples, lists, strict=True) if (decided := decide(own))}
        for name, lists in parsed.items()
    }
    exact = {
        name: {one.question.id: one.values["EM"] for one in score(benchmark, own, split)} for name, own in best.items()
    }
    gold = {
        question.id: sketch_of(question.s_expression, slots[question.id])
        for question in benchmark.questions if question.split == split and question.s_expression is not None
    }  # fmt: skip
    sketched: dict[str, dict[str, Sketch | None]] = {
        "chosen": {one.id: sketches[row.text] for one, row in zip(batch.examples, rows, strict=True)},
        "decoded": {name: sketch_of(own.form, slots[name]) for name, own in best["without"].items()},
    }
    values = {
        **{
            name: {key: float(wanted is not None and own.get(key) == wanted) for key, wanted in gold.items()}
            for name, own in sketched.items()
        },
        **exact,
        "difference": {key: exact["with"][key] - own for key, own in exact["without"].items()},
    }
    groups = {group: [one.question.id for one in own] for group, own in by_group(score(benchmark, {}, split)).items()}
    return {
        "chooser": chooser.counts,
        "groups": {
            group: {
                column: bootstrap_interval([own[key] for key in groups[group] if key in own], seed=SEED).rounded(4)
                for column, own in values.items()
            }
            for group in GROUPS
        },
    }


def tables(found: Mapping[str, Any]) -> str:
    """The table of the page."""
    rows = []
    for training, own in found["trainings"].items():
        for group, values in own["groups"].items():
            sizes = f"{values['with']['n']}, {values['chosen']['n']}"
            rows.append((training, group, sizes, *(_cell(values[column], column) for column in COLUMNS)))
    head = ("training", "group", "n, with a form", *COLUMNS.values())
    return f"{table(head, rows)}\n{conditions_line(found['conditions'])}"


def _cell(own: Mapping[str, float], column: str) -> str:
    sign = "+" if column == "difference" else ""
    value, low, high = (format(100 * own[key], f"{sign}.1f") for key in ("value", "low", "high"))
    return f"{value} ({low} to {high})" if own["n"] else "–"


def main() -> None:
    """Trains the decoder where it is not yet, learns the sketches, parses and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--json", type=Path, default=RESULTS / "sketch.json")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    if not (given.work / "atlas").exists():
        make("atlas", given.work)
    trainings = {training: measure(given.work, training) for training in TRAININGS}
    results_file.write(given.json, {"conditions": conditions(SEED), "trainings": trainings}, FIELDS)


if __name__ == "__main__":
    main()
