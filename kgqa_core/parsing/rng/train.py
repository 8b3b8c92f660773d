"""A form in words, as the ranker reads it: relations by their labels, slots as they are."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.config import RngOptions
from kgqa_core.errors import TrainingError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import (
    And,
    Arg,
    Class,
    Compare,
    Count,
    Entity,
    Form,
    Greater,
    Holds,
    Join,
    Literal,
    Minus,
    Nth,
    Or,
    Steps,
    TimeConstraint,
    elements,
)
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn.training import CHECKPOINT, dev_of_best, write_curves
from kgqa_core.parsing.examples import FILE, ParseExample, read_examples
from kgqa_core.parsing.rng import generate
from kgqa_core.parsing.rng.enumerate import Enumerator
from kgqa_core.parsing.rng.fit import fit, rank_examples
from kgqa_core.parsing.rng.generated_forms import train_generator
from kgqa_core.parsing.rng.ranker import NO_FORM_TEXT, save_ranker
from kgqa_core.parsing.rng.readings import Reading, Readings

_OPS = {"lt": "less than", "le": "at most", "gt": "more than", "ge": "at least"}
_PLACES = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}


def in_words(form: Form, labels: Mapping[str, str]) -> str:
    """The words of a form.  labels: words of relations (and types) by key; a key without words stands as it is.

    >>> from kgqa_core.logic.parser import parse
    >>> in_words(parse("(COUNT (JOIN (R borders) fr))"), {})
    'number of borders of fr'
    """

    def path(steps: Steps) -> str:
        return " ".join(
            f"{'inverse ' if step.inverse else ''}{labels.get(step.relation, step.relation)}" for step in steps
        )

    def measure(node: Arg | Nth | Greater | Compare) -> str:
        return f"count of {path(node.path)}" if node.counted else path(node.path)

    def words(node: Form) -> str:
        match node:
            case Entity(key=key) | Class(key=key):
                return labels.get(key, key)
            case Literal(text=text):
                return text
            case Join(path=steps, of=of, where=where):
                text = words(of)
                for step in reversed(steps):
                    label = labels.get(step.relation, step.relation)
                    text = f"{label} of {text}" if step.inverse else f"whose {label} is {text}"
                return text + "".join(
                    f" at {labels.get(one.relation, one.relation)} {words(one.value)}" for one in where
                )
            case And(parts=parts):
                return " and ".join(map(words, parts))
            case Or(parts=parts):
                return " or ".join(map(words, parts))
            case Minus(of=of, without=without):
                return f"{words(of)} but not {words(without)}"
            case Count(of=of):
                return f"number of {words(of)}"
            case Arg(best=best, of=of):
                return f"{_best(best)} {measure(node)} among {words(of)}"
            case Nth(n=n, best=best, of=of):
                return f"{_PLACES.get(n, str(n))} {_best(best)} {measure(node)} among {words(of)}"
            case Greater(one=one, other=other, best=best):
                return f"{'larger' if best == 'max' else 'smaller'} {measure(node)} {words(one)} or {words(other)}"
            case Compare(op=op, value=value):
                return f"whose {measure(node)} is {_OPS[op]} {words(value)}"
            case TimeConstraint(of=of, path=steps, value=value):
                return f"{words(of)} during {path(steps)} {words(value)}"
            case Holds(of=of, one=one):
                return f"is {words(one)} among {words(of)}"
        raise AssertionError(node)

    return words(form)


def _best(best: str) -> str:
    return "largest" if best == "max" else "smallest"


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
    selected = [example for example in read_examples(examples) if example.split in ("train", "dev") and example.known]
    if not any(example.split == "train" for example in selected):
        raise TrainingError("no training question has a gold form; give forms, relation paths or answers of the graph")
    with KgStore.open(kg) as store:
        enumerator = Enumerator(store, MemoryGraph(store), options)
        monitor.note("candidate forms are enumerated")
        read = Readings(enumerator, options).of_all(selected)
        words = form_words(enumerator, store)
    relations = [frozenset(elements(form).relations if form else ()) for form in enumerator.forms.forms]
    split = {example.id: example.split for example in selected}
    own = {name: [one for one in read if split[one.id] == name] for name in ("train", "dev")}
    no_form = options.learn_unanswerable and any(
        example.form is None and split[example.id] == "train" for example in selected
    )
    learning = rank_examples(own["train"], no_form, missed=False)
    developing = rank_examples(own["dev"], no_form, missed=True)
    sha = hashlib.sha256("\n".join(words).encode())
    sha.update((examples / FILE).read_bytes())
    fitted = fit(
        learning, developing, words, relations, options.model_copy(update={"learn_unanswerable": no_form}), seed,
        key=sha.hexdigest(), monitor=monitor, work=work,
    )  # fmt: skip
    save_ranker(out, fitted.ranker, fitted.description, no_form)
    phases = list(fitted.phases)
    if options.generator.enabled:
        generator, progress = train_generator(
            own, enumerator.forms, fitted.ranker, fitted.ranker.read(words), options, seed, no_form=no_form,
            key=sha.hexdigest(), monitor=monitor, work=work,
        )  # fmt: skip
        generate.save(out / generate.FOLDER, generator)
        phases.append(progress)
    write_curves(out, *phases)
    if work is not None:
        for path in sorted(work.glob(f"*/{CHECKPOINT}")):
            path.unlink()
    return {
        "questions": dict(sorted(Counter(split.values()).items())),
        "coverage": {name: coverage(selected, some) for name, some in own.items()},
        "forms": len(words),
        "lessons": fitted.examples,
        "no_form": no_form,
        "parameters": sum(parameter.numel() for parameter in fitted.ranker.network.parameters()),
        "epochs": [phase.epoch for phase in phases],
        **dev_of_best(max(fitted.phases, key=lambda phase: phase.best)),
    }


def form_words(enumerator: Enumerator, store: KgStore) -> list[str]:
    """What is read of every form met so far, by number."""
    labels = dict(zip(store.relation_keys(), store.relation_names(), strict=True))
    return [NO_FORM_TEXT if form is None else in_words(form, labels) for form in enumerator.forms.forms]


def coverage(selected: Sequence[ParseExample], read: Sequence[Reading]) -> dict[str, Any]:
    """How many gold forms are among the candidates, how many candidates there are, and how many the cap cut."""
    having = {example.id for example in selected if example.form is not None}
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
