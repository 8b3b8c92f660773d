"""Stage `train` of the rank-and-generate parser: the ranker of forms, and the generator where it is enabled.

The ranker learns by cross-entropy over one right form and many wrong ones (Ye et al. 2022, section 3.2), in two phases:
wrong forms are random; then a share of them are those that the model of the first phase scores highest.  Both stages of
the ranker learn from the same forms in the same step.  Questions of one wording, with the same candidates and the same
gold form, are one example.  Where "no form" is learnt too, some examples also occur as in a graph that lacks a relation
or type of the gold form: without the candidates that use it, "no form" being right.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgqa_core.config import RngOptions
from kgqa_core.errors import TrainingError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import Elements, Form, elements
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.parser import parse
from kgqa_core.logic.schema import Schema
from kgqa_core.monitor import Monitor
from kgqa_core.nn.checkpoint import TrainingState, key_of
from kgqa_core.nn.device import pick_device, seeded
from kgqa_core.nn.encoders import new_encoder
from kgqa_core.nn.training import CHECKPOINT, TrainingPlan, backward_of, dev_of_best, train_encoder, write_curves
from kgqa_core.papers.grailqability.parsing.examples import FILE, ParseExample, read_examples
from kgqa_core.papers.grailqability.parsing.item_retriever import items_of
from kgqa_core.papers.grailqability.parsing.rng import generate
from kgqa_core.papers.grailqability.parsing.rng.enumerate import Enumerator
from kgqa_core.papers.grailqability.parsing.rng.generate import length_batches
from kgqa_core.papers.grailqability.parsing.rng.generated_forms import train_generator
from kgqa_core.papers.grailqability.parsing.rng.parse import RngParser
from kgqa_core.papers.grailqability.parsing.rng.ranker import (
    FormRanker,
    RankNetwork,
    ReadTexts,
    form_words,
    rank,
    save_ranker,
)
from kgqa_core.papers.grailqability.parsing.rng.readings import FormCandidates, Ints, Reading, Readings, coverage
from kgqa_core.papers.grailqability.parsing.rng.results import (
    EXECUTED_FORMS,
    GENERATOR,
    QUESTIONS,
    choose_all,
    save_weights,
)
from kgqa_core.papers.grailqability.parsing.rng.retrieved_items import RETRIEVER, RetrievedItems, fit_items
from kgqa_core.papers.grailqability.parsing.rng.slots import PLACEHOLDERS
from kgqa_core.papers.grailqability.parsing.word_overlap import WordOverlap
from kgqa_core.workspace import Workspace

VARIANTS = 3
"""Questions that are learnt of those that differ only in names."""
HEAVIEST = 16
"""An example counts as the questions that it stands for, at most so many."""
LATER = 0.3
"""Learning rate of the later phase, as a share of the first one's."""
LEARNT_PATHS = 40
"""Paths of a topic that training tries where a schema is too large for all: enough for wrong forms to be near."""
LEARNT_FORMS = 1_000
"""Candidates of one reading of a question in training, for the same reason."""


@dataclass(frozen=True)
class RankExample:
    """A wording.  gold: index of the right candidate, -1 where it is not among them (dev).  weight: questions."""

    texts: tuple[str, ...]
    candidates: FormCandidates
    gold: int
    weight: float


@dataclass(frozen=True)
class FormInventory:
    """Every form by number: its words, its relations and types; overlap: of the words of the graph's labels."""

    words: Sequence[str]
    overlap: WordOverlap
    schema_items: Sequence[frozenset[str]]


@dataclass(frozen=True)
class FittedFormRanker:
    """A trained ranker, the description of its encoder, and the curves of its phases."""

    ranker: FormRanker
    description: dict[str, Any]
    phases: tuple[TrainingState, ...]
    examples: int


def train(workspace: Workspace, *, kg: Path, examples: Path, options: RngOptions, seed: int) -> dict[str, Any]:
    """Writes model.safetensors, config.json, tokenizer.json, curves.parquet and maybe `generator`; returns counts.

    Training questions are those whose gold form is known, and with `learn_unanswerable` those of which it is known that
    there is none.  Raises TrainingError when no gold form is among the candidates, or the loss is not finite;
    ModelError when the encoder is not one.
    """
    retriever_recall: dict[str, Any] = {}
    selected = [example for example in read_examples(examples) if example.split in ("train", "dev") and example.known]
    if not any(example.split == "train" for example in selected):
        raise TrainingError("no training question has a gold form; give forms, relation paths or answers of the graph")
    with KgStore.open(kg) as store:
        types = with_types(selected)
        least = {
            "likely_paths": min(options.likely_paths, LEARNT_PATHS), "max_forms": min(options.max_forms, LEARNT_FORMS)
        }  # fmt: skip
        few = options.model_copy(update=least)
        enumerator = Enumerator(store, MemoryGraph(store), few, types=types)
        sha = hashlib.sha256((examples / FILE).read_bytes())
        starts = (enumerator.starts(topic.key) for example in selected for topic in example.topics)
        if options.retriever_epochs and any(map(enumerator.wide, starts)):
            items = items_of(store, Schema.read(store))
            retriever, first = fit_items(workspace.sub(RETRIEVER), selected, items, options, seed, sha.hexdigest())
            enumerator.retrieved = RetrievedItems(retriever, items, enumerator.summary)
            retriever_recall = dev_of_best(first)
        workspace.monitor.note("candidate forms are enumerated")
        read = Readings(enumerator, options).of_all(selected)
        words = form_words(enumerator)
    forms = FormInventory(
        words, WordOverlap(sorted(enumerator.labels.values())), [_schema_items(form) for form in enumerator.forms.forms]
    )
    split = {example.id: example.split for example in selected}
    by_split = {name: [reading for reading in read if split[reading.id] == name] for name in ("train", "dev")}
    no_form = options.learn_unanswerable and any(
        example.form is None and split[example.id] == "train" for example in selected
    )
    learning = rank_examples(by_split["train"], no_form, missed=False)
    developing = rank_examples(by_split["dev"], no_form, missed=True)
    sha.update("\n".join(words).encode())
    learnt = options.model_copy(update={"learn_unanswerable": no_form})
    fitted = fit(workspace, learning, developing, forms, learnt, seed, sha.hexdigest())
    save_ranker(workspace.out, fitted.ranker, fitted.description, no_form, types=types)
    phases = list(fitted.phases)
    if options.generator.enabled:
        generator, progress = train_generator(
            workspace.sub(generate.FOLDER), by_split, enumerator.forms, fitted.ranker, fitted.ranker.read_forms(words),
            learnt, seed, sha.hexdigest(),
        )  # fmt: skip
        generate.save(workspace.out / generate.FOLDER, generator)
        phases.append(progress)
    exact = weigh_results(workspace, kg, selected, options, seed)
    write_curves(workspace.out, *phases)
    if workspace.work is not None:
        for path in sorted(workspace.work.glob(f"*/{CHECKPOINT}")):
            path.unlink()
    return {
        "questions": dict(sorted(Counter(split.values()).items())),
        "coverage": {name: coverage(selected, some) for name, some in by_split.items()},
        "forms": len(words),
        "lessons": fitted.examples,
        "no_form": no_form,
        "types": types,
        "parameters": sum(parameter.numel() for parameter in fitted.ranker.network.parameters()),
        "epochs": [phase.epoch for phase in phases],
        **retriever_recall,
        **exact,
        **dev_of_best(max(fitted.phases, key=lambda phase: phase.best)),
    }


def weigh_results(
    workspace: Workspace, kg: Path, selected: Sequence[ParseExample], options: RngOptions, seed: int
) -> dict[str, Any]:
    """Writes results.json beside the ranker; the dev EM without and with what forms find."""
    developing = [example for example in selected if example.split == "dev"]
    if not developing:
        return {}
    if len(developing) > QUESTIONS:
        indices = np.random.default_rng([seed, len(developing)]).choice(len(developing), QUESTIONS, replace=False)
        developing = [developing[index] for index in sorted(indices.tolist())]
    workspace.monitor.note("what forms find is weighed")
    with KgStore.open(kg) as store:
        parser = RngParser(store, workspace.out, options)
        proposed, given = parser.proposed(parser.readings.of_all(developing)), options.generator.weight
        tried = (0.0,) if parser.generator is None else GENERATOR if given is None else (given,)
        weights, exact = choose_all(
            developing, lambda weight: parser.mixed(proposed, weight), parser.runner, EXECUTED_FORMS, tried
        )
    save_weights(workspace.out, weights, exact)
    return {"dev_em_by_results": exact, "result_weights": [weights.empty, weights.no_form, weights.generator]}


def with_types(selected: Sequence[ParseExample]) -> bool:
    """Whether forms with conditions on types are candidates."""
    forms = dict.fromkeys(example.form for example in selected if example.form is not None and example.split == "train")
    return any(elements(parse(form)).classes for form in forms)


def _schema_items(form: Form | None) -> frozenset[str]:
    """The relations and types of a form."""
    used = Elements() if form is None else elements(form)
    return frozenset((*used.relations, *used.classes))


def rank_examples(readings: Sequence[Reading], no_form: bool, *, missed: bool) -> list[RankExample]:
    """What is learnt from questions, each wording once, in the order of its first question.

    Questions whose fullest views read alike, but whose other views name different things, are `VARIANTS` examples at
    most.  no_form: whether those that have no form are among them.  missed: keep all, for measuring, those whose gold
    form is no candidate too.
    """
    groups: dict[tuple[str, int, int], dict[tuple[str, ...], int]] = {}
    candidates_by_id: dict[int, FormCandidates] = {}
    for reading in readings:
        candidates = reading.candidates
        if reading.gold is None:
            index = -1
        else:
            view, form = reading.gold
            index = int(np.flatnonzero((candidates.views == view) & (candidates.forms == form))[0])
        if (index < 0 and not missed) or (index == 0 and not no_form):
            continue
        candidates_by_id[id(candidates)] = candidates
        variants = groups.setdefault((reading.texts[0], id(candidates), index), {})
        variants[reading.texts] = variants.get(reading.texts, 0) + 1
    examples = []
    for (_, number, index), variants in groups.items():
        selected = list(variants)[: len(variants) if missed else VARIANTS]
        more = (sum(variants.values()) - sum(variants[texts] for texts in selected)) / len(selected)
        examples += [RankExample(texts, candidates_by_id[number], index, variants[texts] + more) for texts in selected]
    return examples


def fit(
    workspace: Workspace,
    learning: Sequence[RankExample],
    developing: Sequence[RankExample],
    forms: FormInventory,
    options: RngOptions,
    seed: int,
    key: str = "",
) -> FittedFormRanker:
    """A ranker with the weights of the best epoch of both phases by dev EM; `work` keeps a killed run's state.

    key: identifies examples and words for the checkpoint.
    Raises TrainingError when there is no example; ModelError when the encoder is not one.
    """
    if not learning:
        raise TrainingError(
            "no training question has a gold form among its candidates; the parser has nothing to learn"
        )
    device = pick_device(options.device, "parsing.rng")
    with seeded(device, seed):
        texts = sorted({text for example in learning for text in example.texts})
        encoder, reader, description = new_encoder(
            options, lambda token: [*texts, *forms.words], "parsing.rng", placeholders=PLACEHOLDERS
        )
        ranker = FormRanker(RankNetwork(encoder), reader, forms.overlap, device)
        training = _RankerTraining(ranker, learning, developing, forms, options, seed)
        phases: list[TrainingState] = []
        for number, epochs in enumerate((options.epochs, options.hard_negative_epochs)):
            if number == 1 and (not epochs or options.hard_negatives == 0):
                break
            if number == 1:
                training.find_hard_negatives(workspace.monitor)
            rate = options.learning_rate * (LATER if number else 1.0)
            progress, best = train_encoder(
                ranker.network, training.plan(number, epochs), options.model_copy(update={"learning_rate": rate}),
                key_of(key, options.decisive(), seed, number), workspace.monitor, workspace.sub(f"phase{number}").work,
            )  # fmt: skip
            if not phases or not developing or progress.best >= phases[0].best:
                ranker.network.load_state_dict(best, strict=False)
                chosen = best
            else:
                ranker.network.load_state_dict(chosen, strict=False)
            phases.append(progress)
    return FittedFormRanker(ranker, description, tuple(phases), len(learning))


def measure(
    ranker: FormRanker, examples: Sequence[RankExample], forms: ReadTexts, pruned: int, no_form: bool
) -> dict[str, float]:
    """em: share of questions whose gold form is best; kept: of those to whose second stage it comes; in [0, 1]."""
    ranked = rank(
        ranker, [(example.texts, example.candidates) for example in examples], forms, pruned=pruned, no_form=no_form
    )
    total = sum(example.weight for example in examples)
    best = sum(
        example.weight
        for example, r in zip(examples, ranked, strict=True)
        if len(r.indices) and r.indices[0] == example.gold
    )
    reached = sum(example.weight for example, r in zip(examples, ranked, strict=True) if example.gold in r.indices)
    return {"em": best / max(1, total), "kept": reached / max(1, total)}


class _RankerTraining:
    """Examples as token ids, and the wrong forms of each step."""

    def __init__(
        self,
        ranker: FormRanker,
        learning: Sequence[RankExample],
        developing: Sequence[RankExample],
        forms: FormInventory,
        options: RngOptions,
        seed: int,
    ) -> None:
        self.ranker, self.learning, self.developing = ranker, learning, developing
        self.options, self.seed = options, seed
        self.forms = ranker.read_forms(forms.words)
        self.schema_items = forms.schema_items
        texts = sorted({text for example in learning for text in example.texts})
        self.text_index = {text: number for number, text in enumerate(texts)}
        self.questions = ranker.read_questions(texts)
        self.lengths = [
            max(len(self.questions.ids[self.text_index[text]]) for text in example.texts) for example in learning
        ]
        self.hard_negatives: list[Ints] = []
        self.epoch = 0

    def plan(self, phase: int, epochs: int) -> TrainingPlan[Tensor]:
        def order(epoch: int) -> list[Tensor]:
            self.epoch = phase * 10_000 + epoch
            return length_batches(self.lengths, self.options.batch_size, [self.seed, self.epoch])

        return TrainingPlan(
            per_epoch=math.ceil(len(self.learning) / self.options.batch_size),
            epochs=epochs,
            patience=self.options.patience,
            batches=order,
            backward=backward_of(lambda batch: self._loss(batch.tolist())),
            measure=self._measure,
            score=lambda found: [found["em"], found["kept"]],
            section="parsing.rng",
        )

    def find_hard_negatives(self, monitor: Monitor) -> None:
        """The wrong forms of each example that the model as it stands scores highest."""
        monitor.note("the ranker looks for the wrong forms that it likes best")
        wanted = round(self.options.negatives * self.options.hard_negatives)
        queries = [(example.texts, example.candidates) for example in self.learning]
        ranked = rank(
            self.ranker,
            queries,
            self.forms,
            pruned=self.options.preselected_forms,
            no_form=self.options.learn_unanswerable,
        )
        self.hard_negatives = [
            ranked_forms.indices[ranked_forms.indices != example.gold][:wanted]
            for ranked_forms, example in zip(ranked, self.learning, strict=True)
        ]

    def _measure(self) -> dict[str, float]:
        if not self.developing:
            return {}
        return measure(
            self.ranker, self.developing, self.forms, self.options.preselected_forms, self.options.learn_unanswerable
        )

    def _chosen(self, number: int) -> Ints:
        """Indices of the candidates of an example that are compared in this epoch, the right one first."""
        example = self.learning[number]
        draw = np.random.default_rng([self.seed, self.epoch, number])
        out = np.zeros(len(example.candidates.forms), dtype=np.bool_)
        out[0] = not self.options.learn_unanswerable
        return self._compared(number, example.gold, out, draw)

    def _lacking(self, number: int) -> Ints | None:
        """The same where some relation or type of the gold form is missing, "no form" first.

        None where the example is not sampled, or its gold form has no relation.
        """
        example, options = self.learning[number], self.options
        if not options.learn_unanswerable or example.gold == 0:
            return None
        draw = np.random.default_rng([self.seed, self.epoch, number, 1])
        if draw.random() >= options.missing_relation_rate:
            return None
        used = [self.schema_items[form] for form in example.candidates.forms.tolist()]
        needed = sorted(used[example.gold])
        if not needed:
            return None
        missing = needed[draw.integers(len(needed))]
        out = np.array([missing in items for items in used], dtype=np.bool_)
        return self._compared(number, 0, out, draw)

    def _compared(self, number: int, right: int, out: NDArray[np.bool_], draw: np.random.Generator) -> Ints:
        """What is right, then hard wrong forms, then a sample of others; out: those that are left out."""
        hard_negatives = self.hard_negatives[number] if self.hard_negatives else np.zeros(0, dtype=np.int64)
        hard_negatives = hard_negatives[~out[hard_negatives] & (hard_negatives != right)]
        rest = ~out
        rest[right] = rest[hard_negatives] = False
        easy, room = np.flatnonzero(rest), self.options.negatives - len(hard_negatives)
        easy = easy if len(easy) <= room else draw.choice(easy, room, replace=False)
        return np.concatenate(([right], hard_negatives, easy))

    def _loss(self, batch: Sequence[int]) -> Tensor:
        """Weighted mean over examples of the cross-entropies of both stages."""
        lacking = {number: compared for number in batch if (compared := self._lacking(number)) is not None}
        chosen = [*(self._chosen(number) for number in batch), *lacking.values()]
        batch = [*batch, *lacking]
        question_texts, formed = [], []
        for number, compared in zip(batch, chosen, strict=True):
            example = self.learning[number]
            texts = np.array([self.text_index[text] for text in example.texts])
            question_texts.append(texts[example.candidates.views[compared]])
            formed.append(example.candidates.forms[compared])
        device = self.ranker.device
        stages = self.ranker.pair_scores(
            self.questions, self.forms, np.concatenate(question_texts), np.concatenate(formed)
        )
        rows = torch.from_numpy(np.repeat(np.arange(len(batch)), [len(compared) for compared in chosen])).to(device)
        columns = torch.from_numpy(np.concatenate([np.arange(len(compared)) for compared in chosen])).to(device)
        weights = torch.tensor([min(self.learning[n].weight, HEAVIEST) for n in batch], dtype=torch.float32).to(device)
        total = torch.zeros((), device=device)
        for scores in stages:
            logits = torch.full((len(batch), int(columns.max()) + 1), -torch.inf, device=device)
            logits = logits.index_put((rows, columns), scores)
            total = total - (torch.log_softmax(logits, -1)[:, 0] * weights).sum() / weights.sum()
        return total
