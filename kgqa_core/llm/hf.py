"""Local models of transformers: causal and seq2seq, from a folder or a hub id, in batches of similar length."""

from __future__ import annotations

import copy
import logging
import queue
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jinja2 import TemplateError

from kgqa_core.errors import ModelError
from kgqa_core.llm.hf_decode import Generated, decode, is_out_of_memory, seed_of
from kgqa_core.llm.hf_load import end_ids, first_line, input_limit, load, numbers_of, revision_of
from kgqa_core.llm.protocol import Completion, Finish, GenerationParams, OnResult, OnText, clean_text, cut_at_stop
from kgqa_core.prompts import messages, plain

log = logging.getLogger("kgqa.llm")

ROW_FAULTS = (RuntimeError, ValueError, TypeError, IndexError, ArithmeticError, MemoryError)
"""What one prompt can make a tokenizer or a model raise; it costs that prompt, not its batch."""


class HFModel:
    """A causal or seq2seq model of transformers, with a LoRA adapter or without.

    source: a folder with config.json, tokenizer and *.safetensors, or a hub id.  batch_tokens: tokens of one batch,
    padding and room for the output included.  device: `auto` (all GPUs, the layers spread by Accelerate, else the
    CPU), `cpu`, `cuda`, a device map of Accelerate, or devices with commas between (`cuda:0,cuda:1`): a copy of the
    model on each, which share the batches.  dtype: `auto` (fp32 on a CPU, as stored on a GPU), `fp32`, `bf16`, `int8`
    (linear layers on a CPU; with an adapter, fp32).
    adapter: folder of a peft adapter; its digest becomes part of the name and the revision.
    Raises ModelError when the source does not hold such a model, or the adapter is not one of it.
    """

    batch_sensitive = True
    tells = True

    def __init__(
        self,
        source: str | Path,
        *,
        batch_tokens: int = 8192,
        device: str = "auto",
        dtype: str = "auto",
        name: str | None = None,
        adapter: Path | None = None,
    ) -> None:
        self.source = str(source)
        self.name = name or f"hf:{source}"
        self.batch_tokens = batch_tokens
        self.base = load(self.source, device, dtype)
        self.tokenizer, self.model = self.base.tokenizer, self.base.copies[0]
        self.seq2seq = bool(self.base.config.is_encoder_decoder)
        self.revision = revision_of(self.source, self.base.config)
        self.dtype = dtype
        self.limit = input_limit(self.base.config, self.tokenizer)
        self.ends = end_ids(self.model, self.tokenizer)
        if self.tokenizer.pad_token_id is None:
            if not self.ends:
                raise ModelError(
                    f"model '{self.source}' has neither a padding nor an end token; add one to its tokenizer"
                )
            self.tokenizer.pad_token_id = self.ends[0]
        self.pad = int(self.tokenizer.pad_token_id)
        self._bare = (self.name, self.revision)
        self._adapter: str | None = None
        self._too_much: int | None = None
        if adapter is not None:
            self._put_on(Path(adapter))

    def adapter(self, folder: Path | None) -> HFModel:
        """The same weights with the adapter of a folder, or with none: another model, no second copy in memory.

        Several may be used in turn; each call switches to its own.  Raises ModelError when it does not fit.
        """
        other = copy.copy(self)
        if folder is None:
            other._adapter = None
            other.name, other.revision = self._bare
        else:
            other._put_on(Path(folder))
        return other

    def _put_on(self, folder: Path) -> None:
        self._adapter = self.base.add(folder)
        name, revision = self._bare
        self.name, self.revision = f"{name}+{self._adapter[:8]}", f"{revision}+{self._adapter}"

    def generate(
        self,
        prompts: Sequence[str],
        params: GenerationParams,
        on_result: OnResult | None = None,
        on_text: OnText | None = None,
    ) -> list[Completion]:
        """One completion per prompt, in the order of the prompts; an equal prompt is computed once.

        on_text: of what is written a token at a time; not of beams, nor of models with rules of their own.

        A prompt that is too long for the model loses tokens of its middle: the worst facts go, the question stays.
        A batch that does not fit into memory is halved; a prompt that fails alone gets a completion `error`.
        """
        indices: dict[str, list[int]] = {}
        for place, prompt in enumerate(prompts):
            indices.setdefault(prompt, []).append(place)
        unique = list(indices)
        results: list[Completion | None] = [None] * len(prompts)

        def deliver(prompt: str, completion: Completion) -> None:
            for place in indices[prompt]:
                results[place] = completion
                if on_result is not None:
                    on_result(place, completion)

        encoded: list[list[int]] = []
        readable: list[str] = []
        for prompt in unique:
            try:
                if params.choices:
                    from kgqa_core.llm.hf_constrained import choose_text  # which imports transformers

                    deliver(prompt, choose_text(self, prompt, params.choices))
                    continue
                encoded.append(self.encode(prompt, params.max_new_tokens))
                readable.append(prompt)
            except ROW_FAULTS as fault:
                deliver(prompt, _failed(fault, 0))
        batches = self._batches(encoded, params)
        with closing(self._written(batches, encoded, readable, params, on_text)) as stream:
            for batch, written in stream:
                for index, completion in zip(batch, written, strict=True):
                    deliver(readable[index], completion)
        failed = [completion for completion in results if completion is not None and completion.finish == "error"]
        if failed:
            log.warning("%d of %d prompts failed on %s: %s", len(failed), len(prompts), self.name, failed[0].error)
        return [completion for completion in results if completion is not None]

    @property
    def numbers(self) -> str:
        """What of the settings changes a completion, for the key of the cache."""
        return numbers_of(self.dtype, chat=bool(self.tokenizer.chat_template) and self._adapter is None)

    @property
    def adapter_name(self) -> str | None:
        """The adapter that this model writes with, by its name in peft; None without one."""
        return self._adapter

    def encode(self, prompt: str, new: int) -> list[int]:
        """Token ids of a prompt with room for so many new ones; one that is too long loses tokens of its middle."""
        text, whole = self._worded(prompt)
        ids: list[int] = self.tokenizer(text, add_special_tokens=not whole, verbose=False)["input_ids"]
        room = max(2, self.limit - (0 if self.seq2seq else new))
        if len(ids) > room:
            tail = min(128, room // 2)
            ids = ids[: room - tail] + ids[-tail:]
        return ids or [self.pad]

    def _worded(self, prompt: str) -> tuple[str, bool]:
        """A prompt as this model reads it, and whether special tokens are in it.

        It is put into the tokenizer's chat template, where it has one; one without a place for a system message gets
        it before the user's.  An adapter gets a prompt that is no chat as it is, for so it was trained.
        """
        system, user = messages(prompt)
        if not self.tokenizer.chat_template or (system is None and self._adapter is not None):
            return plain(prompt), False
        parts = [{"role": "user", "content": user}]
        if system is not None:
            parts.insert(0, {"role": "system", "content": system})
        try:
            text = self.tokenizer.apply_chat_template(parts, tokenize=False, add_generation_prompt=True)
        except TemplateError:
            parts = [{"role": "user", "content": f"{system}\n\n{user}"}]
            text = self.tokenizer.apply_chat_template(parts, tokenize=False, add_generation_prompt=True)
        return str(text), True

    def _batches(self, encoded: list[list[int]], params: GenerationParams) -> Iterator[list[int]]:
        """Indices of prompts of similar length, longest first, within the token budget."""
        order = sorted(range(len(encoded)), key=lambda index: (-len(encoded[index]), index))
        batch: list[int] = []
        for index in order:
            if batch and _tokens(len(batch) + 1, len(encoded[batch[0]]), params) > self.batch_tokens:
                yield batch
                batch = []
            batch.append(index)
        if batch:
            yield batch

    def _written(
        self,
        batches: Iterator[list[int]],
        encoded: list[list[int]],
        prompts: list[str],
        params: GenerationParams,
        on_text: OnText | None = None,
    ) -> Generator[tuple[list[int], list[Completion]], None, None]:
        """Each batch with its completions, in the order of the batches, whichever copy of the model wrote them."""

        def write(copy_of: Any, batch: list[int]) -> list[Completion]:
            rows, texts = [encoded[index] for index in batch], [prompts[index] for index in batch]
            return self._batch(copy_of, rows, texts, params, on_text)

        with self.base.using(self._adapter) as copies:
            if len(copies) == 1:
                for batch in batches:
                    yield batch, write(copies[0], batch)
                return
            free: queue.SimpleQueue[Any] = queue.SimpleQueue()
            for each in copies:
                free.put(each)

            def take(batch: list[int]) -> list[Completion]:
                device_model = free.get()
                try:
                    return write(device_model, batch)
                finally:
                    free.put(device_model)

            listed = list(batches)
            with ThreadPoolExecutor(len(copies)) as pool:
                yield from zip(listed, pool.map(take, listed), strict=True)

    def _batch(
        self,
        model: Any,
        rows: list[list[int]],
        prompts: list[str],
        params: GenerationParams,
        on_text: OnText | None = None,
    ) -> list[Completion]:
        """Completions of a batch; one that fails is halved until the rows at fault stand alone."""
        tokens = _tokens(len(rows), len(rows[0]), params)
        if len(rows) == 1 or self._too_much is None or tokens < self._too_much:
            try:
                seeds = [seed_of(prompt, params.seed) for prompt in prompts]
                tell = None
                if on_text is not None:
                    tell = partial(self._tell, on_text, prompts, params)
                written = decode(model, rows, params, seeds, pad=self.pad, ends=self.ends, on_ids=tell)
                return [self._completion(own, len(row), params) for own, row in zip(written, rows, strict=True)]
            except ROW_FAULTS as fault:
                if len(rows) == 1:
                    return [_failed(fault, len(rows[0]))]
                if is_out_of_memory(fault):
                    self._too_much = tokens
                    log.info("a batch of %d rows and %d tokens does not fit into memory; halved", len(rows), tokens)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        half = (len(rows) + 1) // 2
        first = self._batch(model, rows[:half], prompts[:half], params, on_text)
        return first + self._batch(model, rows[half:], prompts[half:], params, on_text)

    def _tell(
        self, on_text: OnText, prompts: Sequence[str], params: GenerationParams, index: int, ids: list[int]
    ) -> None:
        text = self._text(ids)
        if not text.endswith("\ufffd"):  # a part of a character
            on_text(prompts[index], cut_at_stop(clean_text(text), params.stop))

    def _text(self, ids: list[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def _completion(self, written: Generated, prompt_tokens: int, params: GenerationParams) -> Completion:
        ids = written.ids
        text = self._text(ids)
        shown = cut_at_stop(clean_text(text), params.stop)
        ended = bool(ids) and ids[-1] in self.ends
        finish: Finish = "stop" if ended or len(shown) < len(text) else "length"
        if not shown.strip():
            finish = "empty"
        scored = len(ids) if written.log_probability is not None else 0
        return Completion(
            shown, finish, prompt_tokens, len(ids), log_probability=written.log_probability, scored_tokens=scored
        )


def _tokens(rows: int, width: int, params: GenerationParams) -> int:
    """Tokens of a batch of rows whose longest prompt has `width`: padding, room for the output, and every beam."""
    return rows * (width + params.max_new_tokens) * max(1, params.num_beams)


def _failed(fault: BaseException, prompt_tokens: int) -> Completion:
    return Completion("", "error", prompt_tokens, 0, f"{type(fault).__name__}: {first_line(fault)}")
