"""A local model's parts from a folder or a hub id: weights from safetensors only, and no code of its author is run.

Adapters (LoRA of peft) are laid over the same weights and switched.  While one writes, small weights are replaced by
their sums with it, so that a layer is one product, and then put back as they were.
"""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from kgqa_core.errors import ModelError
from kgqa_core.extras import require_extra

HASHED_WHOLE = 256 * 2**20
"""Files up to this many bytes count in full in a revision; of larger ones the size and both ends."""
MERGED = 512 * 2**20
"""Bytes of adapted weights up to which an adapter is added to a copy of them."""
FAULTS = (OSError, ValueError, KeyError, RuntimeError, ImportError, TypeError, SafetensorError)


@dataclass
class Base:
    """What every model over the same weights shares: tokenizer, one copy of the weights per device, adapters.

    adapters: digests, which are their names in peft.  wrapped: the copies as peft sees them, once there is an adapter.
    rounded: copies whose linear layers compute in int8, which write where no adapter is on; none unless asked for.
    """

    config: Any
    tokenizer: Any
    copies: list[Any]
    wrapped: list[Any] = field(default_factory=list)
    rounded: list[Any] = field(default_factory=list)
    adapters: set[str] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def add(self, folder: Path) -> str:
        """Lays the adapter of a folder over the weights and returns its digest; the same one is loaded once.

        Raises ModelError when the folder holds none, or one of another model.
        """
        for name in ("adapter_config.json", "adapter_model.safetensors"):
            if not (folder / name).is_file():
                raise ModelError(f"adapter folder '{folder}' has no {name}; give the folder that peft saved")
        require_extra("run", f"the adapter '{folder}'", ("peft",))
        digest = digest_of([folder / "adapter_config.json", folder / "adapter_model.safetensors"])
        with self.lock:
            if digest in self.adapters:
                return digest
            try:
                with warnings.catch_warnings():
                    warnings.filterwarnings("error", "Found missing adapter keys")
                    warnings.filterwarnings("ignore", ".*is_gradient_checkpointing", FutureWarning)  # peft's own
                    self._lay(folder, digest)
            except (*FAULTS, UserWarning) as fault:
                self._take_off(digest)
                raise ModelError(
                    f"adapter '{folder}' does not fit this model: {first_line(fault)}; "
                    "load it over the model that it was trained on"
                ) from fault
            for copy in self.copies:
                copy.eval()
            self.adapters.add(digest)
            return digest

    def _lay(self, folder: Path, digest: str) -> None:
        from peft import PeftConfig, PeftModel

        config = PeftConfig.from_pretrained(str(folder))
        if config.is_prompt_learning:
            raise ValueError(f"{config.peft_type.value} is no LoRA")
        config.inference_mode = True
        for copy in self.copies[len(self.wrapped) :]:
            self.wrapped.append(PeftModel(copy, config, adapter_name=digest))
        for wrapped in self.wrapped:
            wrapped.load_adapter(str(folder), adapter_name=digest, is_trainable=False)

    def _take_off(self, digest: str) -> None:
        """Removes what a failed attempt left in the copies."""
        for wrapped in self.wrapped:
            if digest in wrapped.peft_config and self.adapters:
                wrapped.delete_adapter(digest)
        if not self.adapters:
            for wrapped in self.wrapped:
                wrapped.unload()
            self.wrapped.clear()

    @contextmanager
    def using(self, adapter: str | None) -> Iterator[list[Any]]:
        """The copies that write with one adapter on, or with none; nobody else switches meanwhile."""
        with self.lock:
            for wrapped in self.wrapped:
                if adapter is None:
                    wrapped.base_model.disable_adapter_layers()
                else:
                    wrapped.base_model.enable_adapter_layers()
                    wrapped.set_adapter(adapter, inference_mode=True)
            with ExitStack() as merged:
                for wrapped in self.wrapped if adapter is not None else ():
                    merged.enter_context(_merged(wrapped, str(adapter)))
                yield self.rounded if self.rounded and adapter is None else self.copies


@contextmanager
def _merged(wrapped: Any, adapter: str) -> Iterator[None]:
    """Adds an adapter to copies of the weights that it changes, where these are small enough."""
    from peft.tuners.lora import LoraLayer

    layers = [layer for layer in wrapped.modules() if isinstance(layer, LoraLayer)]
    weights = [weight for layer in layers for weight in layer.get_base_layer().parameters(recurse=False)]
    before = [(weight, weight.data) for weight in weights]
    if sum(data.numel() * data.element_size() for _, data in before) > MERGED:
        yield
        return
    try:
        for weight, data in before:
            weight.data = data.clone()
        for layer in layers:
            layer.merge(adapter_names=[adapter])
        yield
    finally:
        for weight, data in before:
            weight.data = data
        for layer in layers:
            layer.merged_adapters.clear()


def load(source: str, device: str, dtype: str) -> Base:
    """Configuration, tokenizer and weights of a causal or seq2seq model.

    device: `auto` (all GPUs by a device map of Accelerate, else the CPU), `cpu`, `cuda`, a device map's name, or
    devices with commas between (`cuda:0,cuda:1`): one copy of the weights on each.  dtype: `auto` (fp32 on a CPU, as
    stored on a GPU), `fp32`, `bf16`, or `int8` (on a CPU, dynamic quantization of the linear layers by torch; with an
    adapter, fp32).
    Raises ModelError when the source does not hold such a model, or int8 is asked of a GPU.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
    from transformers.utils import logging as chatter

    chatter.disable_progress_bar()
    local = _check_folder(source)
    hint = "give a folder with config.json, tokenizer and *.safetensors, or a hub id such as google/flan-t5-small"
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False, local_files_only=local)
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False, local_files_only=local)
        kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        copies = []
        for index in device.split(","):
            onto = _placing(index.strip())
            if dtype == "int8" and onto:
                raise ModelError(f"llm.dtype int8 is for a CPU, not for {device!r}; use bf16, or llm.device cpu")
            copies.append(
                kind.from_pretrained(
                    source, config=config, use_safetensors=True, trust_remote_code=False, local_files_only=local,
                    dtype=_numbers(dtype, bool(onto)), **onto,
                )
            )  # fmt: skip
    except FAULTS as fault:
        raise ModelError(f"model '{source}' cannot be loaded: {first_line(fault)}; {hint}") from fault
    tokenizer.padding_side = "right" if config.is_encoder_decoder else "left"
    for model in copies:
        model.eval()
    return Base(config, tokenizer, copies, rounded=[_round(copies[0])] * len(copies) if dtype == "int8" else [])


def _round(model: Any) -> Any:
    """A copy of a model whose linear layers hold int8 and round what comes in, by its range in each call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)


def _placing(device: str) -> dict[str, Any]:
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return {}
    return {"device_map": device}


def _numbers(dtype: str, placed: bool) -> Any:
    if dtype == "auto":
        return "auto" if placed else torch.float32
    return {"fp32": torch.float32, "int8": torch.float32, "bf16": torch.bfloat16}[dtype]


def first_line(fault: BaseException) -> str:
    """What an exception says, on one line of at most 200 characters."""
    message = str(fault).strip()
    return message.splitlines()[0][:200] if message else type(fault).__name__


def _check_folder(source: str) -> bool:
    """Whether the source is a folder; raises ModelError when it is one without a model, or a path of nothing."""
    path = Path(source).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(f"model folder '{source}' has no config.json; give the folder that save_pretrained wrote")
        if not any(path.glob("*.safetensors")):
            raise ModelError(
                f"model folder '{source}' has no *.safetensors weights; make them with `kgqa models convert`"
            )
        return True
    if path.exists() or source.startswith((".", "/", "~")) or source.count("/") > 1 or "\\" in source:
        raise ModelError(
            f"'{source}' is not a model folder; give a folder with config.json, or a hub id like owner/name"
        )
    return False


def input_limit(config: Any, tokenizer: Any) -> int:
    """Longest input in tokens that the model was made for."""
    numbers = [getattr(config, key, None) for key in ("max_position_embeddings", "n_positions")]
    known = [int(number) for number in (*numbers, tokenizer.model_max_length) if number and 0 < number < 10**7]
    return min(known, default=4096)


def end_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Tokens that end a completion; empty when the model has none."""
    ids = model.generation_config.eos_token_id
    if ids is None:
        ids = tokenizer.eos_token_id
    if ids is None:
        return ()
    return tuple(int(token) for token in ids) if isinstance(ids, list | tuple) else (int(ids),)


def revision_of(source: str, config: Any) -> str:
    """Digest of a folder's weights, configuration and tokenizer; of a hub id its commit."""
    path = Path(source).expanduser()
    if not path.is_dir():
        return str(getattr(config, "_commit_hash", None) or source)
    return digest_of(
        sorted(file for ending in ("safetensors", "json", "model", "jinja") for file in path.glob(f"*.{ending}"))
    )


def numbers_of(dtype: str, *, chat: bool) -> str:
    """What settings add to the revision of a model in the key of the cache; chat: prompts are put in its template."""
    return ("" if dtype == "auto" else f" {dtype}") + (" chat" if chat else "")


def has_chat_template(folder: Path) -> bool:
    """Whether the tokenizer of a folder has a chat template, without loading it."""
    config = folder / "tokenizer_config.json"
    return (folder / "chat_template.jinja").is_file() or (
        config.is_file() and b'"chat_template"' in config.read_bytes()
    )


def digest_of(files: list[Path]) -> str:
    """First 16 hexadecimal digits of the SHA-256 of files' names, sizes and bytes."""
    digest = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as stream:
            if size <= HASHED_WHOLE:
                digest.update(stream.read())
            else:
                digest.update(stream.read(2**20))
                stream.seek(-(2**20), 2)
                digest.update(stream.read())
    return digest.hexdigest()[:16]
