"""A sentence encoder whose vector of a text does not depend on the texts that it is encoded with.

Padding changes the order of sums, so every text is padded to a length that follows from its own tokens alone, and
batches hold texts of one padded length.  Rows of such a batch do not touch each other: a text gets the same bits alone
and among others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from kgqa_core.errors import ModelError
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn.encoders import Pretrained, Reader, load_pretrained
from kgqa_core.nn.vectors import Vectors, VectorStore, fixed_point

MAX_TOKENS = 128
"""Tokens of a text that are read."""
STEP = 4
"""Padded lengths are multiples of it."""
BATCH_TOKENS = 1024
"""Tokens of one batch, padding included."""
DEVICE_BATCH_TOKENS = 65_536
"""The same on a GPU."""
STORED = 512
"""Texts that a kill may lose."""
_CPU = torch.device("cpu")
Similarity = Literal["auto", "cosine", "dot"]
"""How vectors are compared; `auto` is what the encoder was trained with, as far as it says so."""
_PROBES = ("the capital of a country", "who wrote the book that a film of many years ago is based on?", "1999")
"""Texts whose vectors show how large an encoder's numbers are."""
_ROOM = 4
"""Times the largest number of the probes that fixed point has room for."""


class SentenceEncoder:
    """Mean pooling over a Hugging Face encoder, to be compared by dot products.

    similarity: `cosine` scales vectors to length 1 (as all-MiniLM-L6-v2 was trained); `dot` leaves their lengths, as
    Contriever was trained (Izacard et al. 2022); `auto` is `dot` for a Contriever, else `cosine`.
    section: of the options that name it.  max_tokens: tokens of a text that are read.  batch_tokens: of one batch on a
    processor, padding included; each batch is filled up to them.
    digest: identifies weights, tokenizer and how texts are read.  width: numbers in a vector.
    span: a power of two, what `ONE` stands for in fixed point; 1 of vectors of length 1.
    Raises ModelError when the name is not that of an encoder.
    """

    def __init__(
        self,
        name: str,
        *,
        section: str = "kaping",
        max_tokens: int = MAX_TOKENS,
        similarity: Similarity = "cosine",
        device: torch.device = _CPU,
        batch_tokens: int = BATCH_TOKENS,
    ) -> None:
        if name == "scratch":
            raise ModelError(
                f"{section}.encoder 'scratch' would know nothing, for {section} trains no encoder; "
                "use 'minilm', or a folder or hub id of a sentence encoder"
            )
        model, tokenizer = load_pretrained(name, section)
        backend: Tokenizer = tokenizer.backend_tokenizer
        unknown = tokenizer.unk_token_id if backend.id_to_token(tokenizer.unk_token_id or 0) else None
        longest = int(getattr(model.config, "max_position_embeddings", 10**6)) - 2
        self.width = int(model.config.hidden_size)
        place = "" if device.type == "cpu" else f" {device.type}"
        self._read_by = backend.to_str()
        how = f"{torch.__version__} {max_tokens} {STEP} mean int16 full{place}\n"
        self.similarity = _similarity_of(name, model) if similarity == "auto" else similarity
        self._reader = Reader(backend, "", int(tokenizer.pad_token_id or 0), unknown, min(max_tokens, longest))
        self._body = Pretrained(model, self.width).eval().to(device)
        self._device = device
        self._batch_tokens = batch_tokens if device.type == "cpu" else DEVICE_BATCH_TOKENS
        self.span = 1.0 if self.similarity == "cosine" else self._measured_span()
        lengths = "" if self.similarity == "cosine" else f"dot {self.span}\n"
        self.digest = _digest(model, how + lengths + self._read_by)

    @cached_property
    def weights(self) -> str:
        """SHA-256 of the weights and the tokenizer, whatever computes with them."""
        return _digest(self._body.body, self._read_by)

    def unknown_share(self, texts: Sequence[str]) -> float:
        """Share of tokens that the vocabulary does not know: in [0, 1], lower is better."""
        return self._reader.unknown_share(texts)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors in fixed point, int16 [n, width]: `ONE` is 1 of vectors of length 1, else `span`."""
        encoded = np.empty((len(texts), self.width), dtype=np.int16)
        for indices, vectors in self._batches(texts):
            encoded[indices] = vectors
        return encoded

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Vectors]]:
        rows = self._reader.read(texts)
        by_length: dict[int, list[int]] = {}
        for index, row in enumerate(rows):
            by_length.setdefault(-(-len(row) // STEP) * STEP, []).append(index)
        for length, indices in sorted(by_length.items()):
            size = max(1, self._batch_tokens // length)
            for start in range(0, len(indices), size):
                part = indices[start : start + size]
                batch = [rows[index] for index in part]
                if self._device.type == "cpu":  # processors choose how to multiply by the number of rows
                    batch += batch[:1] * (size - len(part))
                yield part, fixed_point(self._forward(batch, length)[: len(part)] / np.float32(self.span))

    def _forward(self, rows: Sequence[Sequence[int]], length: int) -> NDArray[np.float32]:
        ids, mask = self._reader.batch(rows, length)
        with torch.inference_mode():
            states = self._body(ids.to(self._device), mask.to(self._device))
            if self.similarity == "cosine":
                states = torch.nn.functional.normalize(states, dim=1)
            vectors: NDArray[np.float32] = states.cpu().numpy()
        return vectors

    def _measured_span(self) -> float:
        """Room for the numbers of vectors that are not scaled, from those of the probes."""
        rows = self._reader.read(_PROBES)
        largest = max(float(np.abs(self._forward([row], len(row))).max()) for row in rows)
        return float(2.0 ** np.ceil(np.log2(max(_ROOM * largest, 2.0**-10))))


class CachedEncoder:
    """Encodes what the store does not hold, and puts it there as it goes.  encoded: texts that were not there."""

    def __init__(self, encoder: SentenceEncoder, store: VectorStore) -> None:
        self.encoder, self.store = encoder, store
        self.encoded = 0

    def vectors(self, texts: Sequence[str], monitor: Monitor = QUIET) -> Vectors:
        """Vectors of distinct texts, int16 [n, width].  A kill loses at most the last `STORED` that were encoded."""
        stored, known = self.store.get(texts)
        # By length, so that batches are full; the order has no bearing on the vectors.
        missing = sorted(np.flatnonzero(~known).tolist(), key=lambda index: len(texts[index]))
        for start in range(0, len(missing), STORED):
            part = missing[start : start + STORED]
            part_texts = [texts[index] for index in part]
            stored[part] = vectors = self.encoder.encode(part_texts)
            self.store.put(part_texts, vectors)
            self.encoded += len(part)
            monitor.progress(start + len(part), len(missing), "texts encoded")
        return stored


def _similarity_of(name: str, model: torch.nn.Module) -> Similarity:
    """`dot` for a Contriever, which its config or its name says, else `cosine`."""
    kinds = getattr(model.config, "architectures", None) or ()
    return "dot" if "Contriever" in kinds or "contriever" in name.rpartition("/")[2].lower() else "cosine"


def _digest(model: torch.nn.Module, how: str) -> str:
    """SHA-256 of weights and of how texts are read: the tokenizer, and the torch that computes."""
    state = hashlib.sha256(how.encode())
    for name, weight in sorted(model.state_dict().items()):
        state.update(f"\n{name} {tuple(weight.shape)} {weight.dtype}\n".encode())
        state.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return state.hexdigest()
