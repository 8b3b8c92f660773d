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
from kgqa_core.nn.encoders import load_encoder, new_encoder
from kgqa_core.nn.saved_model import load_config, load_weights, save_model
from kgqa_core.nn.training import TrainingPlan, backward_of, train_encoder
from kgqa_core.papers.grailqability.parsing.item_retriever import ItemRetriever, Items, TwoTower, recall_at
from kgqa_core.workspace import Workspace

KIND, VERSION = "items", 1
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
    device = pick_device(options.device, section)
    learning, developing = texts["train"], texts["dev"]
    labels = [items.words[item] for item in items.keys]
    encoder, reader, description = new_encoder(options, lambda _: [*learning.texts, *labels], section, placeholders)
    network = TwoTower(encoder).to(device)
    retriever = ItemRetriever(network, reader)
    size = options.batch_size
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
    run_key = key_of(key, "retriever", options.decisive(), seed)
    progress, weights = train_encoder(network, plan, options, run_key, workspace.monitor, workspace.work)
    restore_weights(network, weights)
    config = {"kind": KIND, "version": VERSION, "encoder": description}
    save_model(workspace.out, dict(network.named_parameters()), reader.tokenizer, config)
    return retriever, progress


def load_retriever(folder: Path, device: torch.device) -> ItemRetriever:
    """The stored retriever.  Raises ArtifactError when it is damaged."""
    encoder, reader = load_encoder(folder, load_config(folder, KIND, VERSION, "parser", "encoder")["encoder"])
    network = TwoTower(encoder)
    load_weights(folder, network)
    return ItemRetriever(network.to(device), reader)
