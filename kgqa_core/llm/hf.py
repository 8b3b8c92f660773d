"""Local models of transformers: causal and seq2seq, from a folder or a hub id, in batches of similar length.

Weights are read from safetensors only and no code of a model's author is run.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from kgqa_core.errors import ModelError
from kgqa_core.llm.protocol import Completion, Finish, GenerationParams, OnResult, cut_at_stop
from kgqa_core.monitor import QUIET, Monitor

log = logging.getLogger("kgqa.llm")

HASHED_WHOLE = 256 * 2**20
"""Files up to this many bytes count in full in a revision; of larger ones the size and both ends."""


class HFModel:
    """A causal or seq2seq model of transformers.

    source: a folder with config.json, tokenizer and *.safetensors, or a hub id.  batch_tokens: prompt tokens of one
    batch, padding included.  device: `auto` (all GPUs, else the CPU), `cpu`, `cuda`, or a device map of Accelerate.
    Raises ModelError when the source does not hold such a model.
    """

    batch_sensitive = True

    def __init__(
        self, source: str | Path, *, batch_tokens: int = 8192, device: str = "auto", name: str | None = None
    ) -> None:
        self.source = str(source)
        self.name = name or f"hf:{source}"
        self.batch_tokens = batch_tokens
        config, self.tokenizer, self.model = _load(self.source, device)
        self.seq2seq = bool(config.is_encoder_decoder)
        self.revision = _revision(self.source, config)
        self.device = next(self.model.parameters()).device
        self.limit = _limit(config, self.tokenizer)
        self.ends = _end_ids(self.model, self.tokenizer)
        if self.tokenizer.pad_token_id is None:
            if not self.ends:
                raise ModelError(
                    f"model '{self.source}' has neither a padding nor an end token; add one to its tokenizer"
                )
            self.tokenizer.pad_token_id = self.ends[0]
        self.pad = int(self.tokenizer.pad_token_id)

    def generate(
        self,
        prompts: Sequence[str],
        params: GenerationParams,
        monitor: Monitor = QUIET,
        on_result: OnResult | None = None,
    ) -> list[Completion]:
        """One completion per prompt, in the order of the prompts; an equal prompt is computed once.

        A prompt that is too long for the model loses tokens of its middle: the worst facts go, the question stays.
        Raises ModelError when several completions a prompt are asked for.
        """
        if params.n != 1:
            raise ModelError(f"a local model writes one completion a prompt, not n={params.n}; ask once per sample")
        places: dict[str, list[int]] = {}
        for place, prompt in enumerate(prompts):
            places.setdefault(prompt, []).append(place)
        unique = list(places)
        encoded = [self._encode(prompt, params.max_new_tokens) for prompt in unique]
        results: list[Completion | None] = [None] * len(prompts)
        generator = torch.Generator().manual_seed(params.seed or 0)
        done = 0
        for batch in self._batches(encoded):
            rows = [encoded[index] for index in batch]
            written = self._batch(rows, params, generator)
            for index, ids in zip(batch, written, strict=True):
                completion = self._completion(ids, len(encoded[index]), params)
                for place in places[unique[index]]:
                    results[place] = completion
                    if on_result is not None:
                        on_result(place, completion)
                done += len(places[unique[index]])
            monitor.progress(done, len(prompts), "answers")
        return [completion for completion in results if completion is not None]

    def _encode(self, prompt: str, new: int) -> list[int]:
        ids: list[int] = self.tokenizer(prompt, add_special_tokens=True, verbose=False)["input_ids"]
        room = self.limit - (0 if self.seq2seq else new)
        if len(ids) > room:
            tail = min(128, room // 2)
            ids = ids[: room - tail] + ids[-tail:]
        return ids or [self.pad]

    def _batches(self, encoded: list[list[int]]) -> Iterator[list[int]]:
        """Indices of prompts of similar length, longest first, within the token budget."""
        order = sorted(range(len(encoded)), key=lambda index: (-len(encoded[index]), index))
        batch: list[int] = []
        for index in order:
            if batch and len(encoded[batch[0]]) * (len(batch) + 1) > self.batch_tokens:
                yield batch
                batch = []
            batch.append(index)
        if batch:
            yield batch

    @torch.inference_mode()
    def _batch(self, rows: list[list[int]], params: GenerationParams, generator: torch.Generator) -> list[list[int]]:
        """New token ids of each row, up to and including its end token."""
        width = max(len(row) for row in rows)
        ids = torch.full((len(rows), width), self.pad)
        mask = torch.zeros_like(ids)
        for place, row in enumerate(rows):
            where = slice(0, len(row)) if self.seq2seq else slice(width - len(row), width)
            ids[place, where], mask[place, where] = torch.tensor(row), 1
        ids, mask = ids.to(self.device), mask.to(self.device)
        new: list[list[int]] = [[] for _ in rows]
        live = list(range(len(rows)))
        extra: dict[str, Any]
        if self.seq2seq:
            encoder = self.model.get_encoder()(input_ids=ids, attention_mask=mask)
            start = self.model.generation_config.decoder_start_token_id
            start = self.model.config.decoder_start_token_id if start is None else start
            step = torch.full((len(rows), 1), int(start), device=self.device)
            extra = {"encoder_outputs": encoder, "attention_mask": mask}
        else:
            step = ids
            extra = {"attention_mask": mask, "position_ids": (mask.cumsum(-1) - 1).clamp(min=0), "logits_to_keep": 1}
        cache: Any = None
        for _ in range(params.max_new_tokens):
            given = {"decoder_input_ids": step} if self.seq2seq else {"input_ids": step}
            out = self.model(**given, past_key_values=cache, use_cache=True, **extra)
            cache = out.past_key_values
            chosen = _choose(out.logits[:, -1].float(), params, generator)
            going = []
            for place, token in zip(live, chosen.tolist(), strict=True):
                new[place].append(token)
                going.append(token not in self.ends)
            if not any(going):
                break
            keep = None
            if not self.seq2seq and going.count(False) * 8 >= len(live):
                keep = torch.tensor([row for row, goes in enumerate(going) if goes], device=self.device)
                live = [place for place, goes in zip(live, going, strict=True) if goes]
                cache.batch_select_indices(keep)
                chosen = chosen[keep]
            step = chosen[:, None]
            if not self.seq2seq:
                extra = self._next(extra, keep)
        return [self._until_end(row) for row in new]

    def _next(self, extra: dict[str, Any], keep: Tensor | None) -> dict[str, Any]:
        mask, positions = extra["attention_mask"], extra["position_ids"][:, -1:] + 1
        if keep is not None:
            mask, positions = mask[keep], positions[keep]
        one = torch.ones_like(mask[:, :1])
        return extra | {"attention_mask": torch.cat([mask, one], dim=1), "position_ids": positions}

    def _until_end(self, ids: list[int]) -> list[int]:
        end = next((place for place, token in enumerate(ids) if token in self.ends), None)
        return ids if end is None else ids[: end + 1]

    def _completion(self, ids: list[int], prompt_tokens: int, params: GenerationParams) -> Completion:
        text = self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        shown = cut_at_stop(text, params.stop)
        ended = bool(ids) and ids[-1] in self.ends
        finish: Finish = "stop" if ended or shown != text else "length"
        if not shown.strip():
            finish = "empty"
        return Completion(shown, finish, prompt_tokens, len(ids))


def _choose(logits: Tensor, params: GenerationParams, generator: torch.Generator) -> Tensor:
    """The next token of each row: the likeliest, or drawn from the nucleus.  logits: [rows, vocabulary]."""
    if params.temperature <= 0:
        return logits.argmax(-1)
    share, order = torch.sort((logits / params.temperature).softmax(-1).cpu(), descending=True, stable=True)
    share = share.masked_fill(share.cumsum(-1) - share >= params.top_p, 0.0)
    drawn = torch.multinomial(share, 1, generator=generator)
    return order.gather(-1, drawn)[:, 0].to(logits.device)


def _load(source: str, device: str) -> tuple[Any, Any, Any]:
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
    from transformers.utils import logging as chatter

    chatter.disable_progress_bar()
    local = _check_folder(source)
    hint = "give a folder with config.json, tokenizer and *.safetensors, or a hub id such as google/flan-t5-small"
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False, local_files_only=local)
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False, local_files_only=local)
        kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        gpu = torch.cuda.is_available()
        place: dict[str, Any] = {} if device == "cpu" or (device == "auto" and not gpu) else {"device_map": device}
        model = kind.from_pretrained(
            source, config=config, use_safetensors=True, trust_remote_code=False, local_files_only=local,
            dtype=torch.float32 if not place else "auto", **place,
        )  # fmt: skip
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, TypeError, SafetensorError) as fault:
        first = str(fault).strip().splitlines()[0][:200] if str(fault).strip() else type(fault).__name__
        raise ModelError(f"model '{source}' cannot be loaded: {first}; {hint}") from fault
    tokenizer.padding_side = "right" if config.is_encoder_decoder else "left"
    model.eval()
    return config, tokenizer, model


def _check_folder(source: str) -> bool:
    """Whether the source is a folder; raises ModelError when it is one without a model, or a path of nothing."""
    path = Path(source).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(f"model folder '{source}' has no config.json; give the folder that save_pretrained wrote")
        if not any(path.glob("*.safetensors")):
            raise ModelError(
                f"model folder '{source}' has no *.safetensors weights; save it again with safe_serialization=True"
            )
        return True
    if path.exists() or source.startswith((".", "/", "~")) or source.count("/") > 1 or "\\" in source:
        raise ModelError(
            f"'{source}' is not a model folder; give a folder with config.json, or a hub id like owner/name"
        )
    return False


def _limit(config: Any, tokenizer: Any) -> int:
    """Longest input in tokens that the model was made for."""
    numbers = [getattr(config, key, None) for key in ("max_position_embeddings", "n_positions")]
    known = [int(number) for number in (*numbers, tokenizer.model_max_length) if number and 0 < number < 10**7]
    return min(known, default=4096)


def _end_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    found = model.generation_config.eos_token_id
    if found is None:
        found = tokenizer.eos_token_id
    if found is None:
        return ()
    return tuple(int(token) for token in found) if isinstance(found, list | tuple) else (int(found),)


def _revision(source: str, config: Any) -> str:
    """Digest of a folder's weights, configuration and tokenizer; of a hub id its commit."""
    path = Path(source).expanduser()
    if not path.is_dir():
        return str(getattr(config, "_commit_hash", None) or source)
    digest = hashlib.sha256()
    for file in sorted([*path.glob("*.safetensors"), *path.glob("*.json"), *path.glob("*.model")]):
        digest.update(f"{file.name} {file.stat().st_size}\n".encode())
        with file.open("rb") as stream:
            if file.stat().st_size <= HASHED_WHOLE:
                digest.update(stream.read())
            else:
                digest.update(stream.read(2**20))
                stream.seek(-(2**20), 2)
                digest.update(stream.read())
    return digest.hexdigest()[:16]
