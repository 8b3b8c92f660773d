"""Stage `decoder`: the retriever of schema items, then the decoder over what it retrieves (Chen et al. 2021)."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgqa_core.config import DecodeOptions
from kgqa_core.errors import TrainingError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import elements
from kgqa_core.nn.checkpoint import TrainingState
from kgqa_core.nn.device import pick_device, seeded
from kgqa_core.nn.training import dev_of_best, write_curves
from kgqa_core.papers.grailqability.parsing.decode.decoder import save_decoder
from kgqa_core.papers.grailqability.parsing.decode.fit import SECTION, fit_decoder
from kgqa_core.papers.grailqability.parsing.decode.parse import DecodeParser
from kgqa_core.papers.grailqability.parsing.decode.prepare import Ground, QuestionBatch, gold_forms, recall
from kgqa_core.papers.grailqability.parsing.decode.rows import PLACEHOLDERS, DecoderRow
from kgqa_core.papers.grailqability.parsing.examples import FILE, ParseExample, read_examples
from kgqa_core.papers.grailqability.parsing.item_retriever import gold_items, recall_at
from kgqa_core.papers.grailqability.parsing.item_training import FOLDS, ItemTexts, fit_retriever, held_out_scores
from kgqa_core.papers.grailqability.parsing.rng.results import choose_weights, save_weights
from kgqa_core.workspace import Workspace

SHOWN = 20
"""Reasons that counts name."""
RECALLS = (1, 3, 5, 10)
WIDER = 3.0
"""Factor of the weights of results that are tried: a form's log-probability is the sum of those of its actions."""


def train(workspace: Workspace, *, kg: Path, examples: Path, options: DecodeOptions, seed: int) -> dict[str, Any]:
    """Writes retriever/, decoder/ and curves.parquet, and returns counts.

    kg: the graph that the gold forms are of.  Questions whose `known` is false, and those without form unless
    `learn_unanswerable`, are not learnt from; forms that cannot be decoded are counted with their reason.
    Raises TrainingError when no gold form can be decoded or a loss is not finite; ModelError when the encoder is not
    one.
    """
    device = pick_device(options.device, SECTION)
    everything = read_examples(examples)
    with seeded(device, seed):
        with KgStore.open(kg) as store:
            ground = Ground.of(store)
            batches = {
                split: QuestionBatch.of(_learnable(everything, split, options), store, ground, options)
                for split in ("train", "dev")
            }
        gold = {split: gold_forms(selected.examples) for split, selected in batches.items()}
        wanted = {split: gold_items(forms, ground.index) for split, forms in gold.items()}
        if not any(wanted["train"]):
            raise TrainingError(
                f"none of the {len(batches['train'].examples)} training questions has a gold form with a relation of "
                "this graph; give them forms or relation paths"
            )
        if not any(elements(form).classes for form in gold["train"] if form is not None):
            options = options.model_copy(update={"classes": 0})  # what no form uses need not be read
        sha = hashlib.sha256((examples / FILE).read_bytes())
        sha.update(f"{ground.items} {sorted(batches['train'].types.items(), key=str)}".encode())
        key = sha.hexdigest()
        texts = {split: ItemTexts.of(selected.texts, wanted[split]) for split, selected in batches.items()}
        retriever, first = fit_retriever(
            workspace.sub("retriever"),
            texts,
            ground.items,
            options,
            seed,
            key,
            placeholders=PLACEHOLDERS,
            section=SECTION,
        )
        scores = {split: retriever.scores(selected.texts, ground.items) for split, selected in batches.items()}
        if retriever.states is not None:
            scores["train"] = held_out_scores(
                workspace, retriever, batches["train"].texts, texts["train"], ground.items, options, seed, key, SECTION
            )
        rows: dict[str, list[DecoderRow]] = {}
        left_out: dict[str, list[str]] = {}
        recalls = {}
        for split, selected in batches.items():
            plain = selected.rows(scores[split], options)
            recalls[split] = {
                "slots": _rounded(recall(plain, gold[split])),
                **{str(size): _rounded(recall_at(scores[split], wanted[split], len(ground.items.relations), size))
                   for size in RECALLS},
            }  # fmt: skip
            decodable = selected.with_gold(selected.rows(scores[split], options, gold[split]), gold[split], options)
            rows[split] = [row for row in decodable if isinstance(row, DecoderRow)]
            left_out[split] = [reason for reason in decodable if isinstance(reason, str)]
        if not rows["train"]:
            raise TrainingError(f"no gold form can be decoded; the first reasons are {left_out['train'][:3]}")
        decoder = fit_decoder(
            workspace.sub("decoder"), rows["train"], rows["dev"], options, seed, key, retriever.states
        )
    no_form = any(form is None for form in gold["train"])
    longest = max(len(row.actions) for row in rows["train"]) - 1
    save_decoder(workspace.out / "decoder", decoder, options, no_form=no_form, longest=longest)
    weights = _weigh_results(workspace, kg, batches["dev"].examples, options) if no_form else {}
    write_curves(workspace.out, _joined(first, decoder.progress))
    if workspace.work is not None:
        for part in ("retriever", "decoder", *(f"fold{number}" for number in range(FOLDS))):
            shutil.rmtree(workspace.work / part, ignore_errors=True)
    return {
        "questions": {split: len(selected.examples) for split, selected in batches.items()},
        "learnt": {split: len(decodable) for split, decodable in rows.items()},
        "no_form": {split: sum(form is None for form in forms) for split, forms in gold.items()},
        "left_out": {split: len(reasons) for split, reasons in left_out.items()}
        | {"reasons": dict(Counter(left_out["train"]).most_common(SHOWN))},
        "longest": longest,
        "distinct_texts": len(texts["train"].texts),
        "items": {"relations": len(ground.items.relations), "classes": len(ground.items.classes)},
        "recall": recalls,
        "parameters": {
            "retriever": sum(parameter.numel() for parameter in retriever.network.parameters()),
            "decoder": sum(parameter.numel() for parameter in decoder.network.parameters()),
        },
        "epochs": {"retriever": first.epoch, "decoder": decoder.progress.epoch},
        **weights,
        **dev_of_best(first),
        **dev_of_best(decoder.progress),
    }


def _weigh_results(
    workspace: Workspace, kg: Path, developing: Sequence[ParseExample], options: DecodeOptions
) -> dict[str, Any]:
    """Writes results.json beside the decoder; the dev EM without and with what forms find."""
    with KgStore.open(kg) as store:
        parser = DecodeParser(store, workspace.out, options)
        scored = parser.scored(*parser.read(developing))
        weights, exact = choose_weights(developing, scored, parser.runner, options.beam, WIDER)
    save_weights(workspace.out, weights, exact)
    return {"dev_em_by_results": exact, "result_weights": [weights.empty, weights.no_form]}


def _learnable(examples: Sequence[ParseExample], split: str, options: DecodeOptions) -> list[ParseExample]:
    known = [example for example in examples if example.split == split and example.known]
    return [example for example in known if options.learn_unanswerable or example.form is not None]


def _joined(first: TrainingState, second: TrainingState) -> TrainingState:
    """Curves of both trainings, the metrics of the retriever with its name before them."""
    curve = [[*row[:3], f"retriever_{row[3]}", row[4]] for row in first.curve]
    return TrainingState("", curve=curve + second.curve)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
