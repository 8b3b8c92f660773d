"""The label parser on disk, and what it starts from: a packaged adapter that was trained on other graphs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from kgqa_core.errors import ArtifactError, ModelError
from kgqa_core.nn.saved_model import WEIGHTS, load_config, load_weights, save_config
from kgqa_core.symbolic.by_labels.calibrate import INPUTS, Calibration
from kgqa_core.symbolic.by_labels.encoder import TextEncoder
from kgqa_core.symbolic.by_labels.packaged import HEAD_START
from kgqa_core.symbolic.by_labels.scorer import LabelScorer, Phrase, ScoreNetwork, describe

KIND, VERSION = "label parser", 4
CALIBRATION = "calibration.json"
"""Of the head start: the calibration that those of graphs start from (`tools/head_start/calibrate.py`)."""
PHRASES = "phrases.safetensors"
MOST_KEPT = 20_000
"""Most phrases that are stored with a model."""


@dataclass(frozen=True)
class LabelModel:
    """A scorer with what it was trained for.

    hops: longest path of its candidates.  calibration: of its confidence, None where none was learnt.
    phrases: wordings of the graph that it was trained on, encoded with merged adapters.
    words: of its training questions with the relations that they stand for (`learnt_words`).
    """

    network: ScoreNetwork
    hops: int
    calibration: Calibration | None = None
    phrases: Mapping[str, Phrase] = field(default_factory=dict)
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)


def learned(network: ScoreNetwork) -> dict[str, Tensor]:
    """The parameters that are learnt: adapters of the encoder, and everything on top of it."""
    own = {f"encoder.{name}" for name in network.encoder.adapter()}
    return {
        name: value for name, value in network.state_dict().items() if name in own or not name.startswith("encoder.")
    }


def average(network: ScoreNetwork, other: Mapping[str, Tensor], weight: float) -> None:
    """Moves what a network has learnt towards other weights of its, which get `weight` in the mean of both.

    A mean of the weights before and after training answers better what is unlike the training questions than either
    does (WiSE-FT, Wortsman et al. 2022, eq. 1).
    """
    own = learned(network)
    mean = {
        name: value if torch.equal(value, other[name]) else (1 - weight) * value + weight * other[name]
        for name, value in own.items()
    }
    network.load_state_dict({**network.state_dict(), **mean})


def save(folder: Path, model: LabelModel, encoder: str = "minilm") -> None:
    """Writes model.safetensors (what is learnt) and config.json into `folder`.

    Raises ModelError where the adapters are part of the encoder already.
    """
    if not model.network.encoder.adapter():
        raise ModelError("the adapters of this label parser are merged; load it with merge=False to save it again")
    folder.mkdir(parents=True, exist_ok=True)
    weights = learned(model.network)
    save_file({name: weights[name].detach().cpu().contiguous() for name in sorted(weights)}, folder / WEIGHTS)
    calibration = asdict(model.calibration) if model.calibration is not None else None
    save_config(
        folder,
        {
            "kind": KIND,
            "version": VERSION,
            "encoder": encoder,
            "hops": model.hops,
            "calibration": calibration,
            "words": dict(model.words),
        }
        | describe(model.network),
    )


def load(folder: Path | None, *, merge: bool = True) -> LabelModel:
    """The model of a folder, or the packaged head start; without one of either an untrained one.

    merge: make the adapters part of the encoder, for answering.  Raises ArtifactError when it is missing or damaged.
    """
    where = HEAD_START if folder is None else folder
    if folder is None and not (where / WEIGHTS).is_file():
        return LabelModel(untrained(), 2)
    config: dict[str, Any] = load_config(where, KIND, VERSION, "label parser", "encoder", "hops", "inner", "features")
    network = untrained(encoder=config["encoder"])
    if wrong := sorted(name for name, value in describe(network).items() if config.get(name) != value):
        raise ArtifactError(f"{where} holds a label parser of another version (its {wrong[0]} differs); train it again")
    full, names = network.state_dict(), learned(network).keys()

    def whole(weights: dict[str, Tensor]) -> dict[str, Tensor]:
        if odd := sorted(names ^ weights.keys()):
            raise RuntimeError(f"{odd[:3]} are in one of them only")
        return {**full, **weights}

    load_weights(where, network, whole)
    if merge:
        network.encoder.merge()
    phrases = read_phrases(where) if merge else {}
    stored = config.get("calibration")  # earlier versions learnt none of small graphs
    if stored is None and (HEAD_START / CALIBRATION).is_file():
        stored = json.loads((HEAD_START / CALIBRATION).read_text(encoding="utf-8"))
    return LabelModel(network, int(config["hops"]), _calibration(stored, where), phrases, config.get("words", {}))


def keep_phrases(folder: Path, texts: Sequence[str]) -> None:
    """Encodes phrases with the model of a folder and writes them beside it, so that whoever opens it need not.

    Nothing is written of more than `MOST_KEPT` phrases.
    """
    if not 0 < len(set(texts)) <= MOST_KEPT:
        return
    known = LabelScorer(load(folder).network).known(texts)
    vectors, tokens, weights = zip(*known.values(), strict=True)
    stored = {"vectors": torch.stack(vectors), "tokens": torch.cat(tokens), "weights": torch.cat(weights),
              "lengths": torch.tensor([len(weight) for weight in weights])}  # fmt: skip
    save_file(stored, folder / PHRASES, {"texts": json.dumps(list(known), ensure_ascii=False)})


def read_phrases(folder: Path) -> dict[str, Phrase]:
    """What `keep_phrases` wrote; empty where there is nothing.  Raises ArtifactError when the file is damaged."""
    path = folder / PHRASES
    if not path.is_file():
        return {}
    try:
        with safe_open(path, framework="pt") as stored:
            texts = json.loads(stored.metadata()["texts"])
            vectors, tokens, weights, lengths = (
                stored.get_tensor(name) for name in ("vectors", "tokens", "weights", "lengths")
            )
        parts = (vectors.unbind(), tokens.split(lengths.tolist()), weights.split(lengths.tolist()))
        return {text: one for text, *one in zip(texts, *parts, strict=True)}  # type: ignore[misc]
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as fault:
        raise ArtifactError(f"{path} is damaged ({fault}); train the label parser again") from fault


def untrained(seed: int = 0, encoder: str = "minilm") -> ScoreNetwork:
    """A scorer that has learnt nothing, the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ScoreNetwork(TextEncoder(encoder)).eval()


def _calibration(stored: Any, where: Path) -> Calibration | None:
    if stored is None:
        return None
    try:
        own = Calibration(tuple(map(float, stored["weights"])), float(stored["bias"]), float(stored["threshold"]))
    except (KeyError, TypeError, ValueError):
        own = Calibration((), 0.0)
    if len(own.weights) != INPUTS:
        raise ArtifactError(f"the calibration in {where} does not have {INPUTS} weights; train the label parser again")
    return own
