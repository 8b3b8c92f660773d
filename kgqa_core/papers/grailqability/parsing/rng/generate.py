"""The generator: it reads a question and the best-ranked forms and writes a form (Ye et al. 2022, section 3.3).

A sequence-to-sequence or causal language model; `scratch` is a small T5 whose tokens are words of the questions and
whole symbols of forms.  Entities are slots `[M1]`, `[M2]` … for the mentions in their order, in texts and forms alike.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from kgqa_core.config import GeneratorOptions
from kgqa_core.errors import ArtifactError, FormError, ModelError
from kgqa_core.logic.forms import Form
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.parser import parse
from kgqa_core.nn.checkpoint import TrainingState, key_of
from kgqa_core.nn.device import seeded
from kgqa_core.nn.encoders import learn_tokenizer
from kgqa_core.nn.saved_model import load_tokenizer
from kgqa_core.nn.training import ModelRates, TrainingPlan, backward_of, train_encoder
from kgqa_core.papers.grailqability.parsing.rng.slots import MENTIONS
from kgqa_core.workspace import Workspace

NOTHING = "NONE"
"""What is written where the graph has no form."""
SEPARATOR = " | "
FOLDER = "generator"
POOLED = 16
"""Batches within which examples are sorted by length."""
LONGEST = 96
"""Tokens of a form."""
VOCABULARY = 3000
END = "[END]"
_SYMBOL = re.compile(r"[()]|[^\s()]+")


@dataclass(frozen=True)
class Prompt:
    """What is read: the question with slots, and the best forms, as text.  form: what is to be written, in training."""

    text: str
    form: str = ""


def prompt_of(question: str, forms: Sequence[Form | None], gold: Form | None = None) -> Prompt:
    """A prompt of a question and its best forms, best first; gold: None is "no form"."""
    return Prompt(SEPARATOR.join([question, *map(as_text, forms)]), as_text(gold))


def as_text(form: Form | None) -> str:
    """A form as its symbols with spaces between them."""
    return NOTHING if form is None else " ".join(_SYMBOL.findall(str(form)))


def read_form(text: str) -> tuple[bool, Form | None]:
    """Whether a written text can be read, and its form, normalised; None for "no form"."""
    text = " ".join(text.split())
    if text == NOTHING:
        return True, None
    try:
        return True, normalise(parse(text))
    except FormError:
        return False, None


class _Network(nn.Module):
    """A language model whose every weight learns at one rate."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.encoder = body


class Generator:
    """A language model with its tokenizer on a device.

    seq2seq: whether it has an encoder; causal models have none.  symbols: of forms, each one token of a scratch model,
    numbered after the tokenizer's; empty for a pretrained one.
    """

    def __init__(
        self,
        body: Any,
        tokenizer: Tokenizer,
        end: int,
        pad: int,
        device: torch.device,
        symbols: Sequence[str] = (),
    ) -> None:
        self.body, self.tokenizer, self.end, self.pad, self.device = body.to(device), tokenizer, end, pad, device
        self.seq2seq = bool(body.config.is_encoder_decoder)
        self.symbols = tuple(symbols)
        self._numbers = {symbol: tokenizer.get_vocab_size() + i for i, symbol in enumerate(symbols)}

    def read(self, prompt: str, most: int) -> list[int]:
        """Token ids of a prompt, without special tokens."""
        if not self.symbols:
            return self._words(prompt)[:most]
        question, *forms = prompt.split(SEPARATOR)
        ids = self._words(question)
        for form in forms:
            ids += [self._numbers[SEPARATOR], *self.read_form(form)]
        return ids[:most]

    def read_form(self, form: str) -> list[int]:
        """Token ids of a form."""
        if not self.symbols:
            return self._words(form)[:LONGEST]
        ids = []
        for symbol in form.split():
            number = self._numbers.get(symbol)
            ids += self._words(symbol) if number is None else [number]
        return ids[:LONGEST]

    def _words(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def loss(self, prompts: Sequence[Prompt], most: int) -> Tensor:
        """Mean negative log-likelihood of the tokens of what is to be written."""
        inputs = [self.read(prompt.text, most) for prompt in prompts]
        wanted = [[*self.read_form(prompt.form), self.end] for prompt in prompts]
        if self.seq2seq:
            ids, mask = self._padded(inputs, self.pad)
            labels, _ = self._padded(wanted, -100)
        else:
            ids, mask = self._padded([[*s, self.end, *w] for s, w in zip(inputs, wanted, strict=True)], self.pad)
            labels, _ = self._padded([[-100] * (len(s) + 1) + w for s, w in zip(inputs, wanted, strict=True)], -100)
        loss: Tensor = self.body(input_ids=ids, attention_mask=mask, labels=labels).loss
        return loss

    @torch.no_grad()
    def write(self, texts: Sequence[str], options: GeneratorOptions) -> list[list[tuple[str, float]]]:
        """What is written for each text, and its log-probability, best first; each distinct text once."""
        self.body.eval()
        distinct = sorted(set(texts), key=lambda text: (len(text), text))
        written: dict[str, list[tuple[str, float]]] = {}
        for start in range(0, len(distinct), options.batch_size):
            batch = distinct[start : start + options.batch_size]
            rows = [self.read(text, options.max_tokens) for text in batch]
            if not self.seq2seq:
                rows = [[*row, self.end] for row in rows]
            ids, mask = self._padded(rows, self.pad, left=not self.seq2seq)
            out = self.body.generate(
                input_ids=ids, attention_mask=mask, num_beams=options.beam, num_return_sequences=options.beam,
                max_new_tokens=LONGEST, length_penalty=0.0, do_sample=False, early_stopping=True,
                return_dict_in_generate=True, output_scores=True, pad_token_id=self.pad, eos_token_id=self.end,
            )  # fmt: skip
            scores = out.sequences_scores.tolist() if options.beam > 1 else [0.0] * len(batch)
            sequences = out.sequences.tolist()
            for number, text in enumerate(batch):
                index = range(number * options.beam, (number + 1) * options.beam)
                written[text] = [(self._text(sequences[i], ids.shape[1]), scores[i]) for i in index]
        return [written[text] for text in texts]

    def _text(self, ids: list[int], prompt: int) -> str:
        written = ids if self.seq2seq else ids[prompt:]
        tokens = [i for i in written if i not in (self.end, self.pad)]
        if self.symbols:
            size = self.tokenizer.get_vocab_size()
            return " ".join(
                self.symbols[i - size] if i >= size else self.tokenizer.id_to_token(i) or "" for i in tokens
            )
        text: str = self.tokenizer.decode(tokens)
        return text

    def _padded(self, rows: Sequence[list[int]], fill: int, left: bool = False) -> tuple[Tensor, Tensor]:
        longest = max(len(row) for row in rows)
        ids = torch.full((len(rows), longest), fill, dtype=torch.long)
        mask = torch.zeros((len(rows), longest), dtype=torch.long)
        for number, row in enumerate(rows):
            index = slice(longest - len(row), longest) if left else slice(0, len(row))
            ids[number, index] = torch.tensor(row)
            mask[number, index] = 1
        return ids.to(self.device), mask.to(self.device)


def length_batches(lengths: Sequence[int], size: int, seed: Sequence[int]) -> list[Tensor]:
    """Numbers of the examples of an epoch's batches, which are of similar length within pools of `POOLED` batches."""
    draw = np.random.default_rng(seed)
    order = draw.permutation(len(lengths))
    cut: list[NDArray[np.int64]] = []
    for start in range(0, len(order), POOLED * size):
        pool = order[start : start + POOLED * size]
        pool = pool[np.argsort([lengths[n] for n in pool], kind="stable")]
        cut += [pool[at : at + size] for at in range(0, len(pool), size)]
    return [torch.from_numpy(cut[n]) for n in draw.permutation(len(cut))]


def fit(
    workspace: Workspace,
    prompts: Sequence[Prompt],
    developing: Sequence[Prompt],
    options: GeneratorOptions,
    seed: int,
    device: torch.device,
    *,
    checkpoint_seconds: float,
    key: str = "",
) -> tuple[Generator, TrainingState]:
    """A generator with the weights of its best epoch by dev loss.  Raises ModelError when the model is none."""
    with seeded(device, seed):
        generator = new_generator(prompts, options, device)
        size = options.batch_size
        lengths = [len(prompt.text) for prompt in prompts]

        def loss(batch: Tensor) -> Tensor:
            return generator.loss([prompts[n] for n in batch.tolist()], options.max_tokens)

        @torch.no_grad()
        def measure() -> dict[str, float]:
            if not developing:
                return {}
            generator.body.eval()
            batches = [developing[at : at + size] for at in range(0, len(developing), size)]
            total = sum(float(generator.loss(batch, options.max_tokens)) * len(batch) for batch in batches)
            return {"loss": total / len(developing)}

        plan = TrainingPlan(
            per_epoch=math.ceil(len(prompts) / size),
            epochs=options.epochs,
            patience=2,
            batches=lambda epoch: length_batches(lengths, size, [seed, epoch]),
            backward=backward_of(loss),
            measure=measure,
            score=lambda metrics: [-metrics["loss"]],
            section="parsing.rng.generator",
        )
        rates = ModelRates(options.model, options.learning_rate, options.encoder_learning_rate, checkpoint_seconds)
        network = _Network(generator.body)
        run_key = key_of(key, options.decisive(), seed)
        progress, best = train_encoder(network, plan, rates, run_key, workspace.monitor, workspace.work)
        network.load_state_dict(best, strict=False)
    return generator, progress


def new_generator(prompts: Sequence[Prompt], options: GeneratorOptions, device: torch.device) -> Generator:
    """A generator to be trained.  Raises ModelError when the model cannot be loaded."""
    if options.model != "scratch":
        return _pretrained(options.model, device)
    from transformers import T5Config, T5ForConditionalGeneration

    symbols = [SEPARATOR, *sorted({symbol for prompt in prompts for symbol in prompt.form.split()})]
    words = [prompt.text.split(SEPARATOR)[0] for prompt in prompts]
    tokenizer = learn_tokenizer(words, VOCABULARY, [END, *MENTIONS])
    heads = max(1, options.width // 32)
    end = tokenizer.token_to_id(END) or 0
    size = tokenizer.get_vocab_size() + len(symbols)
    config = T5Config(
        vocab_size=size, d_model=options.width, d_kv=options.width // heads, num_heads=heads,
        d_ff=2 * options.width, num_layers=options.layers, num_decoder_layers=options.layers, dropout_rate=0.1,
        pad_token_id=0, eos_token_id=end,
    )  # fmt: skip
    config.decoder_start_token_id = 0
    return Generator(T5ForConditionalGeneration(config), tokenizer, end, 0, device, symbols)


def save(folder: Path, generator: Generator) -> None:
    """Writes the model as Hugging Face does, in safetensors, with tokenizer.json and generator.json."""
    folder.mkdir(exist_ok=True)
    generator.body.save_pretrained(folder, safe_serialization=True)
    (folder / "tokenizer.json").write_text(generator.tokenizer.to_str(pretty=False), encoding="utf-8")
    facts = {"end": generator.end, "pad": generator.pad, "symbols": generator.symbols}
    (folder / "generator.json").write_text(json.dumps(facts, sort_keys=True), encoding="utf-8")


def load(folder: Path, device: torch.device) -> Generator:
    """The generator stored in `folder`.  Raises ArtifactError when it is damaged."""
    try:
        facts = json.loads((folder / "generator.json").read_text(encoding="utf-8"))
        tokenizer = load_tokenizer(folder)
        body = _body(str(folder))
    except Exception as fault:  # the tokenizers library raises bare Exception
        raise ArtifactError(f"{folder} holds no trained generator ({fault}); train the parser with it") from None
    return Generator(body.eval(), tokenizer, facts["end"], facts["pad"], device, facts["symbols"])


def _pretrained(name: str, device: torch.device) -> Generator:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, use_fast=True, trust_remote_code=False)
        body = _body(name)
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as fault:
        reason = str(fault).strip().splitlines()[0] if str(fault).strip() else type(fault).__name__
        raise ModelError(
            f"parsing.rng.generator.model {name!r} cannot be loaded: {reason} (use 'scratch', a folder or a hub id of "
            "a sequence-to-sequence or causal model)"
        ) from None
    end = tokenizer.eos_token_id
    if end is None or not hasattr(tokenizer, "backend_tokenizer"):
        raise ModelError(f"parsing.rng.generator.model {name!r} has no token for the end, or no tokenizer.json")
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else end
    return Generator(body, tokenizer.backend_tokenizer, int(end), int(pad), device)


def _body(source: str) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    config = AutoConfig.from_pretrained(source, trust_remote_code=False)
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    return kind.from_pretrained(source, use_safetensors=True, trust_remote_code=False, dtype=torch.float32)
