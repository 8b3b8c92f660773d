"""A small model that writes paths: the builtin reader, trained on the gold paths of training questions, for `gcr`.

The published GCR fine-tunes its model so; this shows the same with a model that two cores can train.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from kgqa_core.llm.builtin.model import load_builtin
from kgqa_core.llm.hf import HFModel
from kgqa_core.papers.peers.agent.operations import NamedGraph
from kgqa_core.papers.peers.constrained.explorer import PATHS
from kgqa_core.papers.peers.constrained.trie import SegmentTokens
from kgqa_core.types import Question

BATCH, RATE, WARM = 16, 1e-3, 30


def path_segments(question: Question, view: NamedGraph) -> list[str] | None:
    """The segments of one path along the annotated relations from a topic to a gold answer; None without one."""
    dkg, gold = view.dkg, set(question.answers)
    for keys in question.relation_paths:
        relations = [dkg.relation_ids.get(key) for key in keys]
        if not relations or None in relations:
            continue
        ways = [((topic,), topic) for topic in question.topic_entities]
        for relation in relations:
            assert relation is not None
            forward = relation < dkg.relations
            found = []
            for path, entity in ways:
                tails = dkg.tail[view.follow(entity, relation % dkg.relations, out=forward)].tolist()
                found += [((*path, tail), tail) for tail in tails if tail not in path]
            ways = found[:5_000]
        reached = sorted(path for path, end in ways if end in gold)
        if reached:
            names = view.entity_names(reached[0])
            texts = [" ".join(names[entity].split()) for entity in reached[0]]
            segments = [texts[0]]
            for relation, text in zip(relations, texts[1:], strict=True):
                assert relation is not None
                name = view.relation_names[relation % dkg.relations]
                arrow = "->" if relation < dkg.relations else "<-"
                segments += [f" {arrow} {name} {arrow}", f" {text}"]
            return segments
    return None


def train_path_model(
    folder: Path, questions: Sequence[Question], view: NamedGraph, *, epochs: int, seed: int
) -> tuple[HFModel, dict[str, float]]:
    """The trained model, saved in a folder, and how it was trained."""
    torch.manual_seed(seed)
    model = load_builtin(device="cpu")
    network, tokens = model.model, SegmentTokens(model.tokenizer)
    rows: list[tuple[list[int], list[int]]] = []
    for question in questions:
        segments = path_segments(question, view)
        if segments is not None:
            names = view.entity_names(question.topic_entities)
            topics = ", ".join(names[topic] for topic in question.topic_entities)
            prompt = PATHS.format(question=question.text, topics=topics)
            written = [token for own in tokens(segments) for token in own]
            rows.append((model.encode(prompt, 64), [*written, model.ends[0]]))
    started = time.monotonic()
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    draw, step, total = random.Random(seed), 0, epochs * -(-len(rows) // BATCH)
    network.train()
    loss = torch.zeros(())
    for _ in range(epochs):
        order = sorted(range(len(rows)), key=lambda number: (len(rows[number][0]) // 4, draw.random()))
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        draw.shuffle(batches)
        for batch in batches:
            read = [rows[number] for number in batch]  # a causal model: the loss is on the path alone
            ids, mask = padded([prompt + written for prompt, written in read], model.pad)
            labels, _ = padded([[-100] * len(prompt) + written for prompt, written in read], -100)
            for group in optimizer.param_groups:
                group["lr"] = RATE * min(1.0, (step + 1) / WARM) * (1 - step / total)
            loss = network(input_ids=ids, attention_mask=mask, labels=labels).loss
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            step += 1
    network.eval()
    network.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    seconds = time.monotonic() - started
    facts = {
        "paths": len(rows),
        "epochs": epochs,
        "training_seconds": round(seconds, 1),
        "last_loss": round(loss.item(), 4),
    }
    return HFModel(folder, device="cpu"), facts


def padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows as a tensor, padded behind, and the mask of what is not padding."""
    width = max(len(row) for row in rows)
    ids = torch.full((len(rows), width), pad)
    mask = torch.zeros((len(rows), width), dtype=torch.int64)
    for number, row in enumerate(rows):
        ids[number, : len(row)], mask[number, : len(row)] = torch.tensor(row), 1
    return ids, mask
