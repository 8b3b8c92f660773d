"""LoRA over a language model (Hu et al. 2021) by peft: where it is put, saved and loaded again."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, Final

import torch

from kgqa_core.config import LlmOptions, RewriterOptions
from kgqa_core.errors import ArtifactError, ModelError
from kgqa_core.llm.builtin.model import load_builtin
from kgqa_core.llm.factory import load_model, parse_spec
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.protocol import LanguageModel

ADAPTER: Final = "adapter"
META: Final = "meta.json"


def load_base(options: RewriterOptions, device: torch.device) -> HFModel:
    """The model that is adapted, with its weights in the options' precision.

    Raises ModelError when it is behind an endpoint, cannot be loaded, or has no end token to learn.
    """
    kind, rest = parse_spec(options.base)
    how: dict[str, Any] = {
        "device": str(device),
        "dtype": options.precision,
        "batch_tokens": options.micro_batch_tokens,
    }
    if kind == "builtin":
        return load_builtin(**how)
    if kind != "hf":
        raise ModelError(f"rewriter.base '{options.base}' is behind an endpoint; use builtin or hf:FOLDER_OR_ID")
    reader = HFModel(rest, **how)
    if not reader.ends:
        raise ModelError(f"rewriter.base '{options.base}' has no end token, so no text would end; use another model")
    return reader


def put_lora(reader: HFModel, options: RewriterOptions) -> Any:
    """Lays new LoRA weights over a model, in place, and returns it as peft sees it; only they learn.

    Causal models: every linear layer but the output's (q, k, v, o, gate, up, down of a Llama).  Seq2seq: the layers
    that peft names for the type (q, v of T5); for a type that it does not know, every linear layer.
    The weights follow torch's random generator.
    """
    from peft import LoraConfig, TaskType, get_peft_model
    from peft.utils import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as KNOWN

    task = TaskType.SEQ_2_SEQ_LM if reader.seq2seq else TaskType.CAUSAL_LM
    named = reader.seq2seq and reader.model.config.model_type in KNOWN
    alpha: Any = int(options.lora_alpha) if options.lora_alpha == int(options.lora_alpha) else options.lora_alpha
    config = LoraConfig(
        task_type=task, r=options.lora_rank, lora_alpha=alpha, lora_dropout=options.lora_dropout, bias="none",
        target_modules=None if named else "all-linear",
    )  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*is_gradient_checkpointing", FutureWarning)  # peft's own
            return get_peft_model(reader.model, config)
    except (ValueError, TypeError, KeyError) as fault:
        raise ModelError(f"rewriter.base '{options.base}' takes no LoRA: {fault}; use another model") from fault


def save_adapter(out: Path, network: Any, base: str) -> None:
    """Writes `out`/adapter as peft reads it: the same weights give the same bytes, and no path of this machine.

    base: the model's name as the adapter is to remember it; of a folder its last part.
    """
    folder = out / ADAPTER
    network.save_pretrained(str(folder), safe_serialization=True, save_embedding_layers=False)
    (folder / "README.md").unlink(missing_ok=True)
    path = folder / "adapter_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = published_base(base)
    config["target_modules"] = sorted(config["target_modules"])
    path.write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def published_base(spec: str) -> str:
    """A base as an adapter may name it to others: `builtin`, a hub id, or a folder's last part."""
    kind, rest = parse_spec(spec)
    if kind == "builtin":
        return kind
    return Path(rest).name if Path(rest).expanduser().is_dir() else rest


def read_meta(folder: Path) -> dict[str, Any]:
    """The metadata of a trained rewriter.  Raises ArtifactError when the folder holds none."""
    path = folder / META
    try:
        meta: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return meta if meta["base"] and meta["base_revision"] else {}
    except (OSError, ValueError, KeyError, TypeError):
        raise ArtifactError(f"{folder} holds no trained rewriter ({META}); train it again (kgqa rewriter)") from None


def load_rewriter(folder: Path, llm: LlmOptions, *, base: str | None = None) -> LanguageModel:
    """A trained rewriter as a language model: its base with the adapter on.

    base: where the base is now, if its folder has moved.
    Raises ModelError when the base is not the one that the adapter was trained on, ArtifactError when there is none.
    """
    meta = read_meta(folder)
    spec = base or meta["base"]
    model = load_model(spec, llm, adapter=folder / ADAPTER)
    now = model.revision.partition("+")[0]
    if now != meta["base_revision"]:
        raise ModelError(
            f"the rewriter in {folder} was trained on revision {meta['base_revision']} of '{meta['base']}', but "
            f"'{spec}' is now {now}; train the rewriter again, or install the model that it was trained on"
        )
    return model
