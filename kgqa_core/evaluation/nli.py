"""Does a response say what the reference says?  Scores of a natural-language-inference model after Huang et al. 2024.

The prediction is the premise, the reference the hypothesis.  E is the probability that the prediction entails the
reference, C that it contradicts it, E - C the overall score of Huang et al. 2024.  Any sequence-pair classifier with
these two labels will do, from safetensors only, and no code of its author is run.

A pair that the model can read whole is judged whole, as in the paper.  A longer one is compared sentence by sentence:
each sentence of the reference is a hypothesis of its own.  The premise is the whole prediction (a later sentence may
say `he`), or, where that and the hypothesis are too long too, each of its runs of whole sentences that fit.  A sentence
of the reference is entailed as much as by the run that entails it most, and contradicted as much as by the run that
contradicts it most; the scores of a response are the means over the sentences of the reference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.errors import ModelError

PAPER_MODEL = "MoritzLaurer/DeBERTa-v3-large-mnli-fever-anli-ling-wanli"
"""The classifier of Huang et al. 2024, called `default`."""

BATCH_TOKENS = 8192
"""Tokens of one batch, padding included."""

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_FILES = ["*.json", "*.safetensors", "*.model", "*.txt"]
_FAULTS = (OSError, ValueError, KeyError, RuntimeError, ImportError, TypeError, AttributeError)
_LABELS = {
    "entailment": ("entailment", "entail", "entails", "entailed"),
    "contradiction": ("contradiction", "contradict", "contradicts", "contradictory", "contradicted"),
}

Pair = tuple[str, str]
"""(premise, hypothesis)."""


@dataclass(frozen=True)
class EntailmentModel:
    """A sequence-pair classifier that tells entailment and contradiction.

    places: of these two among its outputs.  limit: tokens of premise and hypothesis together that it reads.
    """

    model: Any
    tokenizer: Any
    places: tuple[int, int]
    limit: int

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without those that frame it."""
        return [len(ids) for ids in self._ids(list(texts), add_special_tokens=False)] if texts else []

    @property
    def room(self) -> int:
        """Tokens that premise and hypothesis may have together, without those that frame them."""
        return self.limit - int(self.tokenizer.num_special_tokens_to_add(pair=True))

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """Probabilities of entailment and contradiction [pairs, 2]; what is too long loses its end.

        Pairs of like length are read together, so that little is padding.
        """
        import torch

        results = np.zeros((len(pairs), 2))
        if not pairs:
            return results
        premises, hypotheses = [premise for premise, _ in pairs], [hypothesis for _, hypothesis in pairs]
        encoded = self.tokenizer(premises, hypotheses, truncation="longest_first", max_length=self.limit)
        order = sorted(range(len(pairs)), key=lambda place: (len(encoded["input_ids"][place]), pairs[place]))
        for batch in batches([len(encoded["input_ids"][place]) for place in order], BATCH_TOKENS):
            own = order[batch]
            rows = {name: [values[place] for place in own] for name, values in encoded.items()}
            inputs = self.tokenizer.pad(rows, return_tensors="pt").to(self.model.device)
            with torch.inference_mode():
                logits = self.model(**inputs).logits.float()
            results[own] = torch.softmax(logits, dim=-1)[:, list(self.places)].double().cpu().numpy()
        return results

    def _ids(self, texts: list[str], **how: Any) -> list[list[int]]:
        ids: list[list[int]] = self.tokenizer(texts, **how)["input_ids"]
        return ids


def hub_name(model: str) -> str:
    """The name itself, or what `default` stands for."""
    return PAPER_MODEL if model == "default" else model


def find_folder(model: str) -> Path | None:
    """The folder that a classifier is named by, or None for a hub id.

    Raises ModelError when it is neither, or when the folder is no such classifier.
    """
    name = hub_name(model)
    folder = Path(name).expanduser()
    if folder.is_dir():
        check_folder(folder)
        return folder
    if folder.exists() or not _HUB_ID.fullmatch(name):
        raise ModelError(
            f"evaluation.nli {name!r} is neither a folder nor a hub id; give a folder with config.json, tokenizer and "
            "*.safetensors, or an id like owner/name"
        )
    return None


def fetch(model: str) -> Path:
    """The folder of a classifier: a local one, or what the hub has of an id, downloaded unless it lies here already.

    model: a folder, a hub id, or `default`.
    Raises FileNotFoundError, with the reason, when a hub id cannot be had; ModelError as `find_folder`.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import disable_progress_bars

    from kgqa_core.llm.hf_load import first_line

    folder = find_folder(model)
    if folder is not None:
        return folder
    disable_progress_bars()
    try:
        folder = Path(snapshot_download(hub_name(model), allow_patterns=_FILES))
    except Exception as fault:  # the hub's client has many, of several libraries
        raise FileNotFoundError(first_line(fault)) from fault
    lacking = [kind for kind in ("config.json", "*.safetensors") if not any(folder.glob(kind))]
    if lacking:
        raise FileNotFoundError(f"{folder} has no {lacking[0]}")
    return folder


def check_folder(folder: Path) -> None:
    """Raises ModelError when a folder holds no classifier that tells entailment and contradiction."""
    if not (folder / "config.json").is_file():
        raise ModelError(f"evaluation.nli '{folder}' has no config.json; give the folder that save_pretrained wrote")
    if not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"evaluation.nli '{folder}' has no *.safetensors weights, and pickled ones are never loaded; convert it: "
            "kgqa models convert FOLDER --out NEW"
        )
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        labels = {int(index): str(label) for index, label in config.get("id2label", {}).items()}
    except (OSError, ValueError, AttributeError) as fault:
        raise ModelError(f"evaluation.nli '{folder}' has a config.json that cannot be read: {fault}") from None
    label_positions(labels, str(folder))


def open_judge(model: str, *, max_tokens: int = 256, device: str = "auto") -> EntailmentModel:
    """The classifier of `fetch(model)`, ready to score.

    max_tokens: of premise and hypothesis together; fewer where the model reads fewer.
    Raises ModelError when it is no such classifier or its labels cannot be told, FileNotFoundError as `fetch`.
    """
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging as chatter

    from kgqa_core.llm.hf_load import first_line
    from kgqa_core.nn.device import pick_device

    folder = fetch(model)
    chatter.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        network, loading = AutoModelForSequenceClassification.from_pretrained(
            folder, use_safetensors=True, trust_remote_code=False, local_files_only=True, output_loading_info=True,
            dtype="float32",
        )  # fmt: skip
    except _FAULTS as fault:
        raise ModelError(
            f"evaluation.nli {model!r} cannot be loaded: {first_line(fault)}; it needs config.json, a tokenizer and "
            "*.safetensors of a sequence classifier"
        ) from fault
    if loading["missing_keys"]:
        raise ModelError(
            f"evaluation.nli {model!r} is no trained classifier: its weights lack {min(loading['missing_keys'])}; give "
            "one that was trained on natural language inference"
        )
    indices = label_positions(network.config.id2label, model)
    positions = getattr(network.config, "max_position_embeddings", None)  # of which some families keep two
    known = [positions - 2 if positions else None, tokenizer.model_max_length]
    limit = min([max_tokens, *(int(number) for number in known if number and 0 < number < 10**7)])
    network.eval().to(pick_device(device, "evaluation.entailment"))
    return EntailmentModel(network, tokenizer, indices, limit)


def label_positions(id2label: Mapping[int, str], model: str = "the model") -> tuple[int, int]:
    """Places of entailment and contradiction among a classifier's labels, however these are ordered and capitalised.

    Raises ModelError when either cannot be told.

    >>> label_positions({0: "CONTRADICTION", 1: "neutral", 2: "Entailment"})
    (2, 0)
    """
    results = {}
    for meaning, names in _LABELS.items():
        indices = [int(index) for index, label in id2label.items() if str(label).strip().lower() in names]
        if len(indices) != 1:
            labels = ", ".join(f"{index}: {label!r}" for index, label in sorted(id2label.items())) or "none"
            raise ModelError(
                f"evaluation.nli {model!r}: which of its labels means {meaning} cannot be told ({labels}); name them "
                "entailment and contradiction in id2label of its config.json, or give a model of natural language "
                "inference"
            )
        results[meaning] = indices[0]
    return results["entailment"], results["contradiction"]


def batches(lengths: Sequence[int], budget: int) -> Iterator[slice]:
    """Runs of rows whose padded size is within the budget, one row at least.

    lengths: of the rows in tokens, ascending.

    >>> list(batches([2, 3, 4, 9], 8))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    start = 0
    for index in range(1, len(lengths) + 1):
        if index == len(lengths) or lengths[index] * (index + 1 - start) > budget:
            yield slice(start, index)
            start = index


def runs(lengths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Sentences first to last (not included) of each run that fits: as few runs as there can be, none empty.

    lengths: of the sentences.  A sentence that is too long for itself is a run alone.

    >>> runs([4, 4, 5, 20, 1], 10)
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    results: list[tuple[int, int]] = []
    first = total = 0
    for index, length in enumerate(lengths):
        if index > first and total + length > room:
            results.append((first, index))
            first, total = index, 0
        total += length
    return [*results, (first, len(lengths))] if lengths else []
