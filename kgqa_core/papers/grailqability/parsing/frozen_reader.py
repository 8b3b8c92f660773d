"""Texts as a pretrained encoder reads them that does not learn: its states of each token are computed once.

A token is a number: 0 pads, 1 is unknown, the next stand for the placeholders of a masked text, which have vectors to
be learnt, and the others are rows of a table of states.  So whatever reads numbers of tokens can read states.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from kgqa_core.nn.encoders import PAD, SPECIAL, UNKNOWN, Encoder, Reader

FILLER = "something"
"""What the encoder reads in the place of a placeholder, which it has never seen."""
BATCH = 128
"""Texts that are encoded at once."""
ROOM = 1 << 12
"""Tokens that a table has room for before it grows."""
STATE_DROPOUT = 0.1
"""Share of a state's values that are dropped in training."""
_RESERVED = 2


class FrozenReader:
    """Reads texts with an encoder that does not learn.  placeholders: words of masked texts, `[E1]` for example."""

    def __init__(self, encoder: Encoder, reader: Reader, placeholders: Sequence[str]) -> None:
        assert (SPECIAL.index(PAD), SPECIAL.index(UNKNOWN)) == (0, 1)
        self.encoder, self.reader, self.placeholders = encoder.eval(), reader, tuple(placeholders)
        self.first = _RESERVED + len(self.placeholders)
        self.pattern = re.compile("|".join(map(re.escape, self.placeholders)))
        self._size, self._room = 0, torch.zeros(ROOM, encoder.width)
        self._vectors: dict[str, Tensor] = {}

    @property
    def table(self) -> Tensor:
        """[tokens, width] states of all tokens that were read, on the CPU."""
        return self._room[: self._size]

    @torch.inference_mode(False)
    @torch.no_grad()
    def vectors(self, texts: Sequence[str]) -> Tensor:
        """[texts, width] the mean state of the words of each text, those of placeholders aside, on the CPU."""
        new = sorted({text for text in texts if text not in self._vectors})
        for text, row in zip(new, self.read(new) if new else (), strict=True):
            states = self.table[[number - self.first for number in row if number >= self.first]]
            self._vectors[text] = states.mean(0) if len(states) else torch.zeros(self.encoder.width)
        return torch.stack([self._vectors[text] for text in texts])

    def filled(self, text: str) -> str:
        """A text with words in the place of its placeholders."""
        return self.pattern.sub(FILLER, text)

    @torch.inference_mode(False)  # what is kept is used and added to outside of it
    @torch.no_grad()
    def read(self, texts: Sequence[str]) -> list[list[int]]:
        """Numbers of the tokens of each text, at least one each."""
        plain = [self.filled(text) for text in texts]
        ids = self.reader.read(plain)
        encodings = self.reader.tokenizer.encode_batch(plain)
        device = next(self.encoder.parameters()).device
        states: dict[int, Tensor] = {}
        for numbers, batch, mask in self.reader.by_length(ids, BATCH):
            encoded = self.encoder.states(batch.to(device), mask.to(device)).cpu()
            states |= dict(zip(numbers, encoded, strict=True))
        rows = []
        for number, (text, encoding) in enumerate(zip(texts, encodings, strict=True)):
            marks = self._places(text)
            row: list[int] = []
            taken: list[int] = []
            for index, (start, end) in enumerate(encoding.offsets):
                if start in marks and end > start:
                    row.append(_RESERVED + marks[start])
                elif end > start:  # the encoder's own tokens for beginning and end stand at no place
                    row.append(self.first + self._size + len(taken))
                    taken.append(index)
            self._add(states[number][taken])
            rows.append(row or [SPECIAL.index(UNKNOWN)])
        return rows

    def batch(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Numbers [batch, length] padded to the longest row, and mask with 1 at real tokens."""
        longest = max(len(row) for row in rows)
        ids, mask = (torch.zeros((len(rows), longest), dtype=torch.long) for _ in range(2))
        for index, row in enumerate(rows):
            ids[index, : len(row)], mask[index, : len(row)] = torch.tensor(row), 1
        return ids, mask

    def _add(self, states: Tensor) -> None:
        end = self._size + len(states)
        if end > len(self._room):
            room = torch.zeros(2 * end, self.encoder.width)
            room[: self._size] = self.table
            self._room = room
        self._room[self._size : end] = states
        self._size = end

    def _places(self, text: str) -> dict[int, int]:
        """Where the filler of each placeholder of a text begins → the placeholder's index."""
        places, shift = {}, 0
        for match in self.pattern.finditer(text):
            places[match.start() + shift] = self.placeholders.index(match[0])
            shift += len(FILLER) - len(match[0])
        return places


class FrozenWords(nn.Module):
    """Vectors [.., width] of tokens by number: a linear map of their states, and learnt ones of placeholders."""

    def __init__(self, states: int, reserved: int, width: int) -> None:
        super().__init__()
        self.reserved = nn.Embedding(reserved, width, padding_idx=0)
        self.linear = nn.Linear(states, width)
        self.dropout = nn.Dropout(STATE_DROPOUT)
        self._readers: list[FrozenReader] = []

    def read_by(self, reader: FrozenReader) -> None:
        """Takes states from a reader; it is no part of what is saved."""
        self._readers = [reader]

    @property
    def weight(self) -> Tensor:
        """A weight, for its type and device."""
        return self.linear.weight

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors of token numbers of any shape."""
        [reader] = self._readers
        states = reader.table[(ids.cpu() - reader.first).clamp(min=0)].to(ids.device)
        vectors: Tensor = self.linear(self.dropout(states))
        return torch.where((ids >= reader.first).unsqueeze(-1), vectors, self.reserved(ids.clamp(max=reader.first - 1)))
