"""Training of the retriever of relations and types: it learns the items of the gold forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from kgqa_core.config import DecodeOptions, RngOptions
from kgqa_core.nn.checkpoint import TrainingState, key_of, restore_weights
from kgqa_core.nn.device import pick_device
from kgqa_core.nn.encoders import Pretrained, load_encoder, new_encoder
from kgqa_core.nn.saved_model import load_config, load_weights, save_model
from kgqa_core.nn.training import TrainingPlan, backward_of, train_encoder
from kgqa_core.papers.grailqability.parsing.frozen_reader import FrozenReader
from kgqa_core.papers.grailqability.parsing.item_retriever import ItemRetriever, Items, TwoTower, recall_at
from kgqa_core.workspace import Workspace

KIND, VERSION = "items", 2
RECALLED = 5
"""Relations among which a gold one is to be, in the retriever's dev metric."""


@dataclass(frozen=True)
class ItemTexts:
    """Distinct masked texts with the items that their gold forms use."""

    texts: list[str]
    gold: list[frozenset[int]]

    @classmethod
    def of(cls, texts: Sequence[str], gold: Sequence[frozenset[int]]) -> ItemTexts:
        """The texts that use items at all, each once with all that it uses anywhere."""
        items_of_text: dict[str, frozenset[int]] = {}
        for text, items in zip(texts, gold, strict=True):
            if items:
                items_of_text[text] = items_of_text.get(text, frozenset()) | items
        return cls(sorted(items_of_text), [items_of_text[text] for text in sorted(items_of_text)])


def fit_retriever(
    workspace: Workspace,
    texts: Mapping[str, ItemTexts],
    items: Items,
    options: DecodeOptions | RngOptions,
    seed: int,
    key: str,
    *,
    placeholders: Sequence[str],
    section: str,
) -> tuple[ItemRetriever, TrainingState]:
    """The trained retriever, which is also written into `workspace.out`, and what was measured.

    texts: of train and dev.  section: of the settings that errors name.
    """
    torch.manual_seed(seed)
    learning, labels = texts["train"], [items.words[item] for item in items.keys]
    encoder, reader, description = new_encoder(options, lambda _: [*learning.texts, *labels], section, placeholders)
    encoder.to(pick_device(options.device, section))
    frozen = FrozenReader(encoder, reader, placeholders) if isinstance(encoder, Pretrained) else None
    retriever = ItemRetriever(TwoTower(encoder), reader, frozen)
    progress = learn_items(workspace, retriever, texts, items, options, seed, key_of(key, "retriever"), section)
    config = {"kind": KIND, "version": VERSION, "encoder": description, "placeholders": list(placeholders)}
    save_model(workspace.out, dict(retriever.network.named_parameters()), reader.tokenizer, config)
    return retriever, progress


def learn_items(
    workspace: Workspace, retriever: ItemRetriever, texts: Mapping[str, ItemTexts], items: Items,
    options: DecodeOptions | RngOptions, seed: int, key: str, section: str,
) -> TrainingState:  # fmt: skip
    """Trains a retriever, and returns what was measured; the arguments are those of `fit_retriever`."""
    learning, developing = texts["train"], texts["dev"]
    labels, size = [items.words[item] for item in items.keys], options.batch_size
    network = retriever.network.to(pick_device(options.device, section))
    words, label_words = items.overlap.read(learning.texts), items.overlap.labels(labels)

    def order(epoch: int) -> list[Tensor]:
        generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
        return list(torch.randperm(len(learning.texts), generator=generator).split(size))

    def loss(batch: Tensor) -> Tensor:
        numbers = batch.tolist()
        questions, gold = [learning.texts[i] for i in numbers], [learning.gold[i] for i in numbers]
        return retriever.loss(questions, words.of(numbers), gold, labels, label_words)

    def measure() -> dict[str, float]:
        if not developing.texts:
            return {}
        recall = recall_at(retriever.scores(developing.texts, items), developing.gold, len(items.relations), RECALLED)
        return {f"recall_{RECALLED}": recall or 0.0}

    plan = TrainingPlan(
        per_epoch=-(-len(learning.texts) // size), epochs=options.retriever_epochs, patience=options.patience,
        batches=order, backward=backward_of(loss), measure=measure, section=section,
        score=lambda metrics: [metrics[f"recall_{RECALLED}"]],
    )  # fmt: skip
    run_key = key_of(key, options.decisive(), seed)
    progress, weights = train_encoder(network, plan, options, run_key, workspace.monitor, workspace.work)
    restore_weights(network, weights)
    return progress


FOLDS = 4
"""Parts of the training questions for scores of questions that a retriever did not learn."""


def held_out_scores(
    workspace: Workspace, retriever: ItemRetriever, texts: Sequence[str], learning: ItemTexts, items: Items,
    options: DecodeOptions | RngOptions, seed: int, key: str, section: str,
) -> Tensor:  # fmt: skip
    """[texts, items] scores of training questions, each by a retriever that learns from three quarters without it.

    What reads these scores in training so sees them as right and wrong as they are of other questions.
    retriever: with a pretrained encoder, whose states are computed once.
    """
    fold = {text: number % FOLDS for number, text in enumerate(sorted(set(texts)))}
    scores = torch.zeros(len(texts), len(items.keys))
    for part in range(FOLDS):
        rest = [number for number, text in enumerate(learning.texts) if fold[text] != part]
        own = ItemTexts([learning.texts[i] for i in rest], [learning.gold[i] for i in rest])
        other = ItemRetriever(TwoTower(retriever.network.encoder), retriever.reader, retriever.states)
        split = {"train": own, "dev": ItemTexts([], [])}
        learn_items(
            workspace.sub(f"fold{part}"), other, split, items, options, seed, key_of(key, "fold", part), section
        )
        numbers = [number for number, text in enumerate(texts) if fold[text] == part]
        scores[numbers] = other.scores([texts[number] for number in numbers], items)
    return scores


def load_retriever(folder: Path, device: torch.device) -> ItemRetriever:
    """The stored retriever.  Raises ArtifactError when it is damaged."""
    config = load_config(folder, KIND, VERSION, "parser", "encoder", "placeholders")
    encoder, reader = load_encoder(folder, config["encoder"])
    network = TwoTower(encoder)
    load_weights(folder, network)
    network.to(device)
    frozen = FrozenReader(encoder, reader, config["placeholders"]) if isinstance(encoder, Pretrained) else None
    return ItemRetriever(network, reader, frozen)
