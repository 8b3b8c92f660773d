"""Training of TransferNet from questions and answers: squared error on entity scores, and an auxiliary loss on hops.

Shi et al. 2021, section 3.  The published loss divides by the number of entities of the graph, so that its size
beside the hop loss depends on the graph; here a question's error is divided by the weight of its answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from kgqa_core.config import TransferNetOptions
from kgqa_core.datasets.files.masking import topic_names
from kgqa_core.datasets.files.question import FILE as QUESTIONS_FILE
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.errors import TrainingError
from kgqa_core.nn.checkpoint import key_of
from kgqa_core.nn.device import pick_device, seeded
from kgqa_core.nn.encoders import Reader, new_encoder, note_unknown_tokens
from kgqa_core.nn.saved_model import save_model
from kgqa_core.nn.training import CHECKPOINT, epoch_counts, train_encoder, write_curves
from kgqa_core.papers.peers.transfernet.network import TransferNet, describe
from kgqa_core.retrieval.api import TrainingInputs
from kgqa_core.retrieval.hops import choose_hops, needed_hops
from kgqa_core.retrieval.rigel.loss import answer_overlap
from kgqa_core.retrieval.rigel.network import plan_batch
from kgqa_core.retrieval.rigel.questions import EncodedQuestions, leg_texts, prepare, usable
from kgqa_core.retrieval.rigel.train import EDGE_BUDGET, EPSILON, EVALUATION_BATCH, TrainingData, training_plan
from kgqa_core.retrieval.rigel.walk import QueryBatch, WalkOptions, propagate
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

POSITIVE_WEIGHT = 10.0
"""How much more the squared error counts at an answer than elsewhere; 10 to 100 in the published models."""
HOP_LOSS = 0.01
"""Weight of the cross-entropy of the hop attention on training questions that say their hops."""


def train(workspace: Workspace, inputs: TrainingInputs) -> dict[str, Any]:
    """Writes model.safetensors, config.json, tokenizer.json and curves.parquet, and returns counts.

    Topics are masked under the names that the graph store has, or else under their keys.
    Questions without a topic or an answer in the graph are left out and counted.
    Raises TrainingError when none is left or the loss is not finite; ModelError when the encoder is not one.
    """
    options: TransferNetOptions = inputs.options
    graph = Dkg.open(inputs.dkg)
    everything = read_questions(inputs.questions)
    learn, left_out = usable(everything, "train")
    develop, dev_left_out = usable(everything, "dev")
    if not learn:
        raise TrainingError(
            f"none of the {len(left_out)} training questions has both a topic entity and an answer in this graph; "
            "check that topic_entities and answers are keys or labels of it"
        )
    hops = options.hops or choose_hops(needed_hops(learn, graph))
    options = options.model_copy(update={"hops": hops})
    names = topic_names(inputs.kg, learn + develop)
    device = pick_device(options.device, "transfernet")
    with seeded(device, inputs.seed):
        encoder, reader, description = new_encoder(
            options,
            lambda token: [text for question in learn for text in leg_texts(question, False, token, names)],
            "transfernet",
        )
        network = TransferNet(encoder, 2 * graph.relations, hops, options.relation_scores).to(device)
        learning, texts = prepare(learn, reader, names, graph)
        developing, _ = prepare(develop, reader, names, graph)
        unknown = reader.unknown_share(texts)
        note_unknown_tokens(unknown, "questions'", options.encoder, "transfernet", workspace.monitor)
        trainer = _TransferNetTrainer(network, reader, graph, options, device)
        with_hops, dev_hops = _hops(learn, hops), _hops(develop, hops)
        data = TrainingData(learning, [len(learn)], [1.0], {"": developing} if develop else {})
        plan = training_plan(
            data,
            options,
            inputs.seed,
            lambda batch: trainer.loss(learning, with_hops, batch),
            lambda sets: trainer.measure(sets[""], dev_hops) if sets else {},
        )
        digest = hashlib.sha256((inputs.questions / QUESTIONS_FILE).read_bytes()).hexdigest()
        key = key_of(graph.digest, digest, options.decisive(), inputs.seed, sorted(names.items()))
        progress, weights = train_encoder(network, plan, options, key, workspace.monitor, workspace.work)
    network.load_state_dict(weights, strict=False)
    config = describe(network, description, graph, options.exclude_topic) | {"masks_names": bool(names)}
    save_model(workspace.out, network.state_dict(), reader.tokenizer, config)
    write_curves(workspace.out, progress)
    if workspace.work is not None:
        (workspace.work / CHECKPOINT).unlink(missing_ok=True)
    return {
        "questions": {"train": len(learn), "dev": len(develop)},
        "left_out": {"train": len(left_out), "dev": len(dev_left_out), "examples": left_out[:20]},
        "hops": hops,
        "with_hops": int((with_hops > 0).sum()),
        "wordings": len(learning.rows),
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "unknown_token_share": round(unknown, 4),
        **epoch_counts(progress),
    }


def _hops(questions: Sequence[Question], most: int) -> Tensor:
    """The hops of each question, int64 [n]; 0 where it says none, or more than most."""
    hops = [question.hops or 0 for question in questions]
    return torch.tensor([number if number <= most else 0 for number in hops], dtype=torch.int64)


def squared_error(scores: EntityWeights, answers: Sequence[Sequence[int]]) -> Tensor:
    """Σ_e w_e (a_e - y_e)² / Σ_answers w_e of each question, [batch].

    w is POSITIVE_WEIGHT at answers and 1 elsewhere, y is 1 at answers and 0 elsewhere, a are the scores.  Entities that
    are neither touched nor answers cost nothing; an answer that is not reached costs its weight.  In [0, ∞); 0 is best,
    and 1 is what scores of 0 everywhere cost.
    """
    overlap = answer_overlap(scores, answers)
    gold = overlap.is_answer.to(scores.weight.dtype)
    cost = (1 + (POSITIVE_WEIGHT - 1) * gold) * (scores.weight - gold) ** 2
    total = scores.with_weight(cost).sum() + POSITIVE_WEIGHT * overlap.missed
    return total / (POSITIVE_WEIGHT * overlap.answers).clamp(min=1)


class _TransferNetTrainer:
    """The loss and the dev metrics of a network."""

    def __init__(
        self, network: TransferNet, reader: Reader, graph: Dkg, options: TransferNetOptions, device: torch.device
    ) -> None:
        self.network, self.reader, self.graph, self.options, self.device = network, reader, graph, options, device

    def loss(self, questions: EncodedQuestions, hops: Tensor, batch: Tensor) -> Tensor:
        """The mean over a batch of question numbers.  hops: of all questions."""
        queries, scores, answers = self._scores(questions, batch)
        loss = squared_error(scores, answers).mean()
        hops = hops[batch]
        known = hops > 0
        if bool(known.any()):
            logs = queries.plan.attention.clamp(min=1e-12).log()
            loss = loss + HOP_LOSS * nll_loss(logs[known], hops[known] - 1)
        return loss

    def measure(self, questions: EncodedQuestions, hops: Tensor) -> dict[str, float]:
        """hits_at_1, hop_accuracy (where hops are said) and loss over questions, each a mean."""
        self.network.eval()
        hits = right = loss = 0.0
        with torch.no_grad():
            for start in range(0, len(questions), EVALUATION_BATCH):
                batch = torch.arange(start, min(start + EVALUATION_BATCH, len(questions)))
                queries, scores, answers = self._scores(questions, batch)
                hits += sum(
                    bool(best) and best[0][0] in gold for best, gold in zip(scores.top(1), answers, strict=True)
                )
                loss += float(squared_error(scores, answers).sum())
                right += int((queries.plan.attention.argmax(1) + 1 == hops[batch]).sum())
        with_hops = int((hops > 0).sum())
        metrics = {"hits_at_1": hits / len(questions), "loss": loss / len(questions)}
        return metrics | ({"hop_accuracy": right / with_hops} if with_hops else {})

    def _scores(
        self, questions: EncodedQuestions, batch: Tensor
    ) -> tuple[QueryBatch, EntityWeights, list[tuple[int, ...]]]:
        queries = plan_batch(self.network, self.reader, questions, batch, self.device)
        walk = WalkOptions(self.options.exclude_topic, EPSILON, EDGE_BUDGET, clamp=True)
        _, scores = propagate(self.graph, queries, "none", walk)
        return queries, scores, [questions.answers[number] for number in batch.tolist()]
