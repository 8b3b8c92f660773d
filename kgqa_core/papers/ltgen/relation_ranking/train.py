"""Stage `train` of the relation rankers: `pair` always, `amr` where training questions have AMR graphs.

They learn from the annotated questions of the data set and from relation-linking sets (`training_sets`), by binary
classification of pairs with sampled negatives.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from kgqa_core.config import RelationRankingOptions
from kgqa_core.datasets.derived.splits import same_text
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import ConfigError, TrainingError
from kgqa_core.nn.checkpoint import TrainingState, key_of
from kgqa_core.nn.device import pick_device, seeded
from kgqa_core.nn.encoders import new_encoder, note_unknown_tokens
from kgqa_core.nn.training import CHECKPOINT, TrainingPlan, backward_of, epoch_counts, train_encoder, write_curves
from kgqa_core.papers.ltgen.relation_ranking.amr import AmrGraph
from kgqa_core.papers.ltgen.relation_ranking.amr_source import open_graphs
from kgqa_core.papers.ltgen.relation_ranking.network import AmrNetwork, Network, PairNetwork
from kgqa_core.papers.ltgen.relation_ranking.ranker import best_first
from kgqa_core.papers.ltgen.relation_ranking.trained import (
    EntityRelationPair,
    TrainedRanker,
    describe,
    pair_text,
    read_pairs,
    save,
)
from kgqa_core.papers.ltgen.relation_ranking.training_examples import (
    RankingExample,
    examples_of_linking,
    examples_of_questions,
    read_linking,
)
from kgqa_core.retrieval.api import TrainingInputs
from kgqa_core.workspace import Workspace

SPLITS = ("train", "dev")
AMR_LAYERS = 2
"""Layers of graph attention of `rank_amr`."""


def train(workspace: Workspace, inputs: TrainingInputs) -> dict[str, Any]:
    """Writes a folder `pair`, and `amr` where there are AMR graphs, each with weights, config, tokenizer and curves.

    curves.parquet beside them is that of `pair`.

    Topics have the names of the graph store, or else their keys; the workspace's cache keeps parsed graphs.
    Questions without a gold relation of a topic entity are left out and counted; of `amr` those without a graph too;
    of training sets those that are dev or test questions of the data set (`leaked`).
    Raises TrainingError when none is left or the loss is not finite, ModelError when the encoder is not one or a parser
    may not be loaded, InputError for a file that cannot be read.
    """
    options: RelationRankingOptions = inputs.options
    examples, counts = _training_examples(inputs.dkg, inputs.questions, options, inputs.seed, inputs.kg)
    if not examples["train"]:
        raise TrainingError(
            f"none of the {counts['train']['questions']} training questions has a topic entity with an annotated gold "
            "relation in this graph; give relation_path or gold_triples in the question file, or name relation-linking "
            "files in relation_ranking.training_sets"
        )
    facts: dict[str, Any] = {
        "lessons": {split: len(with_graph) for split, with_graph in examples.items()},
        "from": counts,
    }
    key = hashlib.sha256(repr(sorted(examples.items())).encode()).hexdigest()
    pair, amr = workspace.sub("pair"), workspace.sub("amr")
    fitted = fit(pair, examples["train"], examples["dev"], options, inputs.seed, "pair", key=key)
    facts["pair"] = _write(pair.out, fitted)
    write_curves(workspace.out, fitted.progress)
    graphs = _graphs(workspace, examples, options)
    with_graph = {
        split: [example for example in part if example.question in graphs] for split, part in examples.items()
    }
    facts["amr_graphs"] = len(graphs)
    if with_graph["train"]:
        graphs_key = hashlib.sha256(repr(sorted(graphs.items())).encode()).hexdigest()
        fitted = fit(
            amr,
            with_graph["train"],
            with_graph["dev"],
            options,
            inputs.seed,
            "amr",
            graphs=graphs,
            key=key + graphs_key,
        )
        facts["amr"] = _write(amr.out, fitted) | {"lessons": {split: len(part) for split, part in with_graph.items()}}
    elif options.amr_graphs or options.amr_parser:
        note = "no training question has an AMR graph; rank_amr is not trained and ranks as rank_pair does"
        workspace.monitor.note(note)
    for work in (pair.work, amr.work):
        if work is not None:
            (work / CHECKPOINT).unlink(missing_ok=True)
    return facts


def _training_examples(
    dkg: Path, questions: Path, options: RelationRankingOptions, seed: int, kg: Path | None
) -> tuple[dict[str, list[RankingExample]], dict[str, Any]]:
    graph = Dkg.open(dkg)
    everything = read_questions(questions)
    held_out = {same_text(question) for question in everything if question.split != "train"}
    examples: dict[str, list[RankingExample]] = {}
    counts: dict[str, Any] = {}
    for split in SPLITS:
        split_questions = [question for question in everything if question.split == split]
        examples[split], counts[split] = examples_of_questions(split_questions, graph, kg, options.max_relations)
    for number, name in enumerate(options.training_sets):
        linking = read_linking(Path(name).expanduser())
        leaked = 0
        for split, of_split in zip(SPLITS, examples_of_linking(linking, seed), strict=True):
            usable = [example for example in of_split if " ".join(example.question.split()) not in held_out]
            examples[split] += usable
            leaked += len(of_split) - len(usable)
        counts[f"training_set_{number}"] = linking.counts | {"leaked": leaked}
    return examples, counts


def _graphs(
    workspace: Workspace, examples: Mapping[str, list[RankingExample]], options: RelationRankingOptions
) -> dict[str, AmrGraph]:
    """Graphs of training and dev questions; empty where the options name none."""
    if options.amr_graphs is None and options.amr_parser is None:
        return {}
    opened = open_graphs(options.amr_graphs, options.amr_parser, workspace.cache, workspace.monitor)
    questions = sorted({example.question for of_split in examples.values() for example in of_split})
    return opened.of(questions, workspace.monitor) if opened is not None else {}


def _write(out: Path, fitted: FittedRanker) -> dict[str, Any]:
    save(out, fitted.trained)
    write_curves(out, fitted.progress)
    return {
        "parameters": sum(parameter.numel() for parameter in fitted.trained.network.parameters()),
        "unknown_token_share": round(fitted.unknown, 4),
        **epoch_counts(fitted.progress),
    }


MOST_DEV = 200
"""Dev examples that are measured after each pass, sampled with the seed: all their relations are scored."""
RankerKind = Literal["pair", "amr"]


@dataclass(frozen=True)
class FittedRanker:
    """A trained ranker, its curve, and the share of tokens that its reader lacks."""

    trained: TrainedRanker
    progress: TrainingState
    unknown: float


def fit(
    workspace: Workspace,
    learning: Sequence[RankingExample],
    developing: Sequence[RankingExample],
    options: RelationRankingOptions,
    seed: int,
    kind: RankerKind = "pair",
    *,
    graphs: Mapping[str, AmrGraph] | None = None,
    key: str = "",
) -> FittedRanker:
    """A ranker trained with early stopping on dev recall; `work` keeps a killed run's state.

    graphs: of every question, for `amr`.  key: identifies examples and graphs for the checkpoint.
    Raises TrainingError when there is no example or the loss is not finite, ModelError when the encoder is not one,
    ConfigError when the heads do not divide its width.
    """
    if not learning:
        raise TrainingError("no training question has a gold relation of a topic entity; there is nothing to rank")
    device = pick_device(options.device, "relation_ranking")
    own = graphs or {}
    with seeded(device, seed):
        encoder, reader, description = new_encoder(
            options, lambda token: _vocabulary(learning, own), "relation_ranking"
        )
        if kind == "amr" and encoder.width % options.heads:
            raise ConfigError(
                f"relation_ranking.heads {options.heads} does not divide the encoder's width {encoder.width}"
            )
        network: Network = (
            AmrNetwork(encoder, AMR_LAYERS, options.heads) if kind == "amr" else PairNetwork(encoder)
        ).to(device)
        trained = TrainedRanker(network, reader, describe(network, description))
        unknown = reader.unknown_share([pair_text(pair) for example in learning for pair in _gold_pairs(example)])
        note_unknown_tokens(unknown, "pairs'", options.encoder, "relation_ranking", workspace.monitor)
        pairs = _ExamplePairs(trained, learning, own)
        measured = list(developing)
        if len(measured) > MOST_DEV:
            measured = random.Random(seed).sample(measured, MOST_DEV)
        plan = TrainingPlan(
            per_epoch=math.ceil(len(learning) / options.batch_size),
            epochs=options.epochs,
            patience=options.patience,
            batches=lambda epoch: pairs.order(options.batch_size, options.negatives, seed, epoch),
            backward=backward_of(lambda batch: pairs.loss(batch.tolist())),
            measure=lambda: measure(trained, measured, options.relations, own) if measured else {},
            score=lambda found: [found["recall"], -found["loss"]],
            section="relation_ranking",
        )
        identity = key_of(key, kind, options.decisive(), seed)
        progress, weights = train_encoder(network, plan, options, identity, workspace.monitor, workspace.work)
    network.load_state_dict(weights, strict=False)
    return FittedRanker(trained, progress, unknown)


def measure(
    trained: TrainedRanker,
    examples: Sequence[RankingExample],
    most: int,
    graphs: Mapping[str, AmrGraph] | None = None,
) -> dict[str, float]:
    """recall: share of gold relations among the first `most` of their entity, in [0, 1]; loss: mean over all pairs."""
    pairs = [pair for example in examples for pair in _pairs(example)]
    logits = trained.scores(pairs, graphs)
    hits = wanted = done = 0
    right = np.zeros(len(pairs), dtype=bool)
    for example in examples:
        example_logits = logits[done : done + len(example.relations)]
        selected = {index for index, _ in best_first(example_logits.tolist(), most)}
        hits += len(selected & set(example.gold))
        wanted += len(example.gold)
        right[[done + index for index in example.gold]] = True
        done += len(example.relations)
    losses = np.logaddexp(0.0, np.where(right, -logits, logits))
    return {"recall": hits / max(1, wanted), "loss": float(losses.mean()) if len(losses) else 0.0}


class _ExamplePairs:
    """Pairs by number: those of an example follow each other in the order of its relations."""

    def __init__(
        self,
        trained: TrainedRanker,
        examples: Sequence[RankingExample],
        graphs: Mapping[str, AmrGraph],
    ) -> None:
        self.trained, self.examples, self.graphs = trained, examples, graphs
        self.start = np.cumsum([0, *(len(example.relations) for example in examples)])

    def order(self, size: int, negatives: int, seed: int, epoch: int) -> list[Tensor]:
        """Pair numbers of an epoch's batches: of `size` examples the gold pairs and a sample of the others."""
        generator = np.random.default_rng([seed, epoch])
        order = generator.permutation(len(self.examples))
        batches = []
        for start in range(0, len(order), size):
            numbers: list[int] = []
            for number in order[start : start + size].tolist():
                example = self.examples[number]
                others = np.setdiff1d(np.arange(len(example.relations)), example.gold)
                sampled = generator.choice(others, size=min(negatives, len(others)), replace=False)
                numbers += [int(self.start[number]) + index for index in (*example.gold, *sorted(sampled.tolist()))]
            batches.append(torch.tensor(numbers, dtype=torch.int64))
        return batches

    def loss(self, numbers: Sequence[int]) -> Tensor:
        """Mean binary cross-entropy of some pairs."""
        pairs, right = [], []
        for number in numbers:
            example_number = int(np.searchsorted(self.start, number, side="right")) - 1
            example = self.examples[example_number]
            index = number - int(self.start[example_number])
            pairs.append((example.question, example.entity, example.relations[index]))
            right.append(float(index in example.gold))
        rows = read_pairs(self.trained.reader, pairs)
        logits = self.trained.logits(rows, [question for question, _, _ in pairs], self.graphs)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.tensor(right, device=logits.device))


def _pairs(example: RankingExample) -> list[EntityRelationPair]:
    return [(example.question, example.entity, text) for text in example.relations]


def _gold_pairs(example: RankingExample) -> list[EntityRelationPair]:
    return [(example.question, example.entity, example.relations[index]) for index in example.gold]


def _vocabulary(examples: Sequence[RankingExample], graphs: Mapping[str, AmrGraph]) -> list[str]:
    """What a scratch vocabulary is learnt from: gold pairs, relations, and the words of AMR nodes."""
    texts = [pair_text(pair) for example in examples for pair in _gold_pairs(example)]
    relations = sorted({text for example in examples for text in example.relations})
    labels = sorted({label for example in examples if example.question in graphs
                     for label in graphs[example.question].labels})  # fmt: skip
    return [*texts, *relations, *labels]
