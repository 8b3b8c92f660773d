"""Stage `parser` of rank and generate: questions are read, their forms enumerated, and the ranker learns them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgqa_core.config import RngOptions
from kgqa_core.errors import TrainingError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import elements
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn import loop
from kgqa_core.nn.checkpoint import Progress
from kgqa_core.nn.curves import dev_of_best, write_curves
from kgqa_core.parsing.examples import FILE, ParseExample, read_examples
from kgqa_core.parsing.rng import generate, model
from kgqa_core.parsing.rng.enumerate import Enumerator
from kgqa_core.parsing.rng.fit import fit, lessons_of
from kgqa_core.parsing.rng.ranker import NO_FORM
from kgqa_core.parsing.rng.readings import Reading, Readings
from kgqa_core.parsing.rng.verbalise import in_words
from kgqa_core.parsing.rng.written import train_generator

SHOWN = 20
"""Ids of questions that are left out, which counts name."""


def train(
    out: Path,
    *,
    kg: Path,
    examples: Path,
    options: RngOptions,
    seed: int,
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes model.safetensors, config.json, tokenizer.json, curves.parquet and maybe `generator`; returns counts.

    Training questions are those whose gold form is known, and with `learn_unanswerable` those of which it is known that
    there is none.  Raises TrainingError when no gold form is among the candidates, or the loss is not finite;
    ModelError when the encoder is not one.
    """
    asked = [example for example in read_examples(examples) if example.split in ("train", "dev") and example.known]
    if not any(example.split == "train" for example in asked):
        raise TrainingError("no training question has a gold form; give forms, relation paths or answers of the graph")
    with KgStore.open(kg) as store:
        enumerator = Enumerator(store, MemoryGraph(store), options)
        monitor.note("candidate forms are enumerated")
        read = Readings(enumerator, options).of_all(asked)
        words = form_words(enumerator, store)
    relations = [frozenset(elements(form).relations if form else ()) for form in enumerator.forms.forms]
    split = {example.id: example.split for example in asked}
    own = {name: [one for one in read if split[one.id] == name] for name in ("train", "dev")}
    no_form = options.learn_unanswerable and any(
        example.form is None and split[example.id] == "train" for example in asked
    )
    learning = lessons_of(own["train"], no_form, missed=False)
    developing = lessons_of(own["dev"], no_form, missed=True)
    sha = hashlib.sha256("\n".join(words).encode())
    sha.update((examples / FILE).read_bytes())
    fitted = fit(
        learning, developing, words, relations, options.model_copy(update={"learn_unanswerable": no_form}), seed,
        key=sha.hexdigest(), monitor=monitor, work=work,
    )  # fmt: skip
    model.save(out, fitted.ranker, fitted.description, no_form)
    phases = list(fitted.phases)
    if options.generator.enabled:
        generator, progress = train_generator(
            own, enumerator.forms, fitted.ranker, fitted.ranker.read(words), options, seed, no_form=no_form,
            key=sha.hexdigest(), monitor=monitor, work=work,
        )  # fmt: skip
        generate.save(out / generate.FOLDER, generator)
        phases.append(progress)
    write_curves(out, joined(phases))
    if work is not None:
        for path in sorted(work.glob(f"*/{loop.CHECKPOINT}")):
            path.unlink()
    return {
        "questions": dict(sorted(Counter(split.values()).items())),
        "coverage": {name: coverage(asked, some) for name, some in own.items()},
        "forms": len(words),
        "lessons": fitted.lessons,
        "no_form": no_form,
        "parameters": sum(parameter.numel() for parameter in fitted.ranker.network.parameters()),
        "epochs": [phase.epoch for phase in phases],
        **dev_of_best(max(fitted.phases, key=lambda phase: phase.best)),
    }


def form_words(enumerator: Enumerator, store: KgStore) -> list[str]:
    """What is read of every form met so far, by number."""
    labels = dict(zip(store.relation_keys(), store.relation_names(), strict=True))
    return [NO_FORM if form is None else in_words(form, labels) for form in enumerator.forms.forms]


def coverage(asked: Sequence[ParseExample], read: Sequence[Reading]) -> dict[str, Any]:
    """How many gold forms are among the candidates, how many candidates there are, and how many the cap cut."""
    having = {example.id for example in asked if example.form is not None}
    own = [reading for reading in read if reading.id in having]
    missed = [reading.id for reading in own if reading.gold is None]
    sizes = sorted(len(reading.candidates.forms) - 1 for reading in read)
    return {
        "gold_forms": len(own),
        "found": len(own) - len(missed),
        "share": round(1 - len(missed) / len(own), 6) if own else 0.0,
        "missed": missed[:SHOWN],
        "candidates_median": sizes[len(sizes) // 2] if sizes else 0,
        "candidates_most": sizes[-1] if sizes else 0,
        "cut": sum(reading.cut for reading in read),
        "questions_cut": sum(reading.cut > 0 for reading in read),
    }


def joined(phases: Sequence[Progress]) -> Progress:
    """The curves of phases one after the other."""
    whole = Progress("")
    for phase in phases:
        step = max((row[0] for row in whole.curve), default=0)
        epoch = max((row[1] for row in whole.curve), default=-1) + 1
        whole.curve += [[row[0] + step, row[1] + epoch, *row[2:]] for row in phase.curve]
    return whole
