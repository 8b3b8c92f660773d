"""Stage `train`: a Rigel retriever from questions and answers alone; no gold relation path is read.

The loop is that of `loop`, with early stopping on dev hits@1.  The batches of an epoch follow from the seed and the
epoch's number.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kgqa_core.config import RetrieverOptions
from kgqa_core.datasets.question import FILE as QUESTIONS_FILE
from kgqa_core.datasets.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.errors import TrainingError
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.retrieval import loop
from kgqa_core.retrieval.batches import Prepared, batches, prepare, usable
from kgqa_core.retrieval.encoders import Reader, new_encoder
from kgqa_core.retrieval.label import LabelRigel, relation_texts, unlabelled_note
from kgqa_core.retrieval.lazy import normalised_walk
from kgqa_core.retrieval.loss import LOSSES, meet
from kgqa_core.retrieval.plan import Plan
from kgqa_core.retrieval.rigel import Rigel, describe, save, walk
from kgqa_core.retrieval.text import mask_topic, topic_names
from kgqa_core.training.checkpoint import Progress, key_of
from kgqa_core.training.curves import dev_of_best, write_curves
from kgqa_core.training.device import pick_device

EPSILON = 1e-4
"""Relations that weigh less are not followed in training."""
EDGE_BUDGET = 200_000
"""Edges followed per question and hop in training, so that a hub does not stop it; with the loss `normalised`, a very
large last hop is not followed at all, and not cut (`lazy`)."""
UNKNOWN_LIMIT = 0.05
"""Share of unknown tokens above which a run warns."""
GROUP = 4
"""Questions of one wording that stay together in a batch: encoding them is what a pretrained encoder's step costs."""
EVALUATION_BATCH = 128


def train(
    out: Path,
    *,
    dkg: Path,
    questions: Path,
    options: RetrieverOptions,
    seed: int,
    kg: Path | None = None,
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes model.safetensors, config.json, tokenizer.json and curves.parquet, and returns counts.

    kg: the graph store, for the names under which topics are mentioned; topic keys alone serve without it.
    Questions without a topic or an answer in the graph are left out and counted.
    Raises TrainingError when none is left or the loss is not finite; ModelError when the encoder is not one.
    """
    graph = Dkg.open(dkg)
    everything = read_questions(questions)
    learn, left_out = usable(everything, "train")
    develop, dev_left_out = usable(everything, "dev")
    if not learn:
        raise TrainingError(
            f"none of the {len(left_out)} training questions has both a topic entity and an answer in this graph; "
            "check that topic_entities and answers are keys or labels of it"
        )
    names = topic_names(kg, learn + develop)
    device = pick_device(options.device, "retriever")
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        by_label = options.decoder == "label"
        labels = relation_texts(graph) if by_label else []
        encoder, reader, description = new_encoder(
            options, lambda token: [mask_topic(question, token, names) for question in learn] + labels
        )
        network: Rigel | LabelRigel
        if by_label:
            network = LabelRigel(encoder, options.hops).open(graph, reader).to(device)
            if note := unlabelled_note(graph):
                monitor.note(note)
        else:
            network = Rigel(encoder, 2 * graph.relations, options.hops).to(device)
        learning, unknown = prepare(learn, reader, names)
        developing, _ = prepare(develop, reader, names)
        if unknown > UNKNOWN_LIMIT:
            monitor.note(
                f"{unknown:.0%} of the questions' tokens are unknown to the encoder '{options.encoder}' (limit "
                f"{UNKNOWN_LIMIT:.0%}); use --set retriever.encoder=scratch or an encoder for this language"
            )
        key = _key(graph, questions, options, seed, names)
        progress, weights = _fit(
            network, reader, graph, learning, developing, options, seed, device, key, monitor, work
        )
    network.load_state_dict(weights, strict=False)
    config = describe(network, description, graph, options.exclude_topic) | {"masks_names": bool(names)}
    save(out, network.state_dict(), reader, config)
    write_curves(out, progress)
    if work is not None:
        (work / loop.CHECKPOINT).unlink(missing_ok=True)
    return {
        "questions": {"train": len(learn), "dev": len(develop)},
        "left_out": {"train": len(left_out), "dev": len(dev_left_out), "examples": left_out[:20]},
        "wordings": len(learning.rows),
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "unknown_token_share": round(unknown, 4),
        "epochs": progress.epoch,
        "best_epoch": progress.best_epoch,
        **dev_of_best(progress),
    }


def _fit(
    network: Rigel | LabelRigel,
    reader: Reader,
    graph: Dkg,
    learning: Prepared,
    developing: Prepared,
    options: RetrieverOptions,
    seed: int,
    device: torch.device,
    key: str,
    monitor: Monitor,
    work: Path | None,
) -> tuple[Progress, dict[str, Tensor]]:
    """What was measured and the weights of the best epoch."""
    per_epoch = math.ceil(len(learning) / options.batch_size)
    epochs = max(options.epochs, math.ceil(options.min_steps / per_epoch))
    together = 1 if options.encoder == "scratch" else GROUP
    course = loop.Course(
        per_epoch=per_epoch,
        epochs=epochs,
        patience=math.ceil(options.patience * epochs / options.epochs),
        order=lambda epoch: batches(learning, options.batch_size, together, seed, epoch),
        loss=lambda batch: _loss(network, reader, graph, learning, batch, options, device),
        measure=lambda: evaluate(network, reader, graph, developing, options, device) if len(developing) else {},
        standing=lambda measured: [measured["hits_at_1"], -measured["loss"]],
        section="retriever",
    )
    return loop.run(network, course, options, key, monitor, work)


def evaluate(
    network: Rigel | LabelRigel,
    reader: Reader,
    graph: Dkg,
    questions: Prepared,
    options: RetrieverOptions,
    device: torch.device,
) -> dict[str, float]:
    """hits_at_1, missed (share of answers not reached) and loss over questions, each a mean in question order."""
    network.eval()
    hits = missed = loss = 0.0
    with torch.no_grad():
        for start in range(0, len(questions), EVALUATION_BATCH):
            batch = torch.arange(start, min(start + EVALUATION_BATCH, len(questions)))
            plan, topics, answers = _asked(network, reader, questions, batch, device)
            led = walk(
                graph, topics, plan, exclude_topic=options.exclude_topic, epsilon=EPSILON, edge_budget=EDGE_BUDGET
            )
            for best, own in zip(led.scores.top(1), answers, strict=True):
                hits += bool(best) and best[0][0] in own
            met = meet(led.scores, answers)
            missed += float((met.missed / met.answers).sum())
            loss += float(LOSSES[options.loss](led.scores, answers).sum())
    count = len(questions)
    return {"hits_at_1": hits / count, "missed": missed / count, "loss": loss / count}


def _loss(
    network: Rigel | LabelRigel,
    reader: Reader,
    graph: Dkg,
    questions: Prepared,
    batch: Tensor,
    options: RetrieverOptions,
    device: torch.device,
) -> Tensor:
    plan, topics, answers = _asked(network, reader, questions, batch, device)
    how: dict[str, Any] = {"exclude_topic": options.exclude_topic, "epsilon": EPSILON, "edge_budget": EDGE_BUDGET}
    if options.loss == "normalised":
        return normalised_walk(graph, topics, plan, answers, **how).mean()
    return LOSSES[options.loss](walk(graph, topics, plan, **how).scores, answers).mean()


def _asked(
    network: Rigel | LabelRigel, reader: Reader, questions: Prepared, batch: Tensor, device: torch.device
) -> tuple[Plan, EntityWeights, list[tuple[int, ...]]]:
    """Plans of a batch of question numbers, equal wordings encoded once, its topics and its answers."""
    distinct, place = torch.unique(questions.text[batch], return_inverse=True)
    ids, mask = reader.batch([questions.rows[index] for index in distinct.tolist()])
    plan = network(ids.to(device), mask.to(device)).take(place.to(device))
    numbers = batch.tolist()
    topics = EntityWeights.one_hot([questions.topics[number] for number in numbers])
    return plan, topics, [questions.answers[number] for number in numbers]


def _key(graph: Dkg, questions: Path, options: RetrieverOptions, seed: int, names: dict[int, list[str]]) -> str:
    asked = hashlib.sha256((questions / QUESTIONS_FILE).read_bytes()).hexdigest()
    labels = graph.relation_names if options.decoder == "label" else []
    return key_of(graph.digest, asked, options.decisive(), seed, sorted(names.items()), labels)
