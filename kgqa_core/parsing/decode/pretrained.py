"""Decoders made of a language model by its id: it reads a question with its slots as text, and writes actions as text.

Sequence-to-sequence models read and write; causal ones go on after what they read.  All weights are trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import LogitsProcessorList

from kgqa_core.errors import ModelError
from kgqa_core.llm.hf_decode import RULES
from kgqa_core.llm.hf_load import end_ids, input_limit, load
from kgqa_core.logic.forms import Form
from kgqa_core.parsing.decode.actions import read
from kgqa_core.parsing.decode.automaton import Automaton
from kgqa_core.parsing.decode.rows import Row
from kgqa_core.parsing.decode.text_actions import AllowedText, Pieces, actions_of

IGNORED = -100
"""Label of what is not learnt."""


class TextDecoder(nn.Module):
    """A model of transformers with its tokenizer; `encoder` is all of it, as `training.loop` names what is pretrained.

    source: a folder or a hub id.  Raises ModelError when it holds no such model, or one without an end token.
    """

    def __init__(self, source: str | Path, device: torch.device) -> None:
        super().__init__()
        base = load(str(source), "cpu", "fp32")
        self.encoder: Any = base.copies[0].to(device)
        self.tokenizer, self.seq2seq = base.tokenizer, bool(base.config.is_encoder_decoder)
        ends = end_ids(self.encoder, self.tokenizer)
        if not ends:
            raise ModelError(f"model {str(source)!r} has no end token, so no form would end; use another model")
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token_id = ends[0]
        for key, empty in RULES.items():
            setattr(self.encoder.generation_config, key, empty[0])
        self.pad = int(self.tokenizer.pad_token_id)
        self.pieces = Pieces(self.tokenizer, ends[0], str(source))
        self.limit = input_limit(base.config, self.tokenizer)

    def loss(self, rows: Sequence[Row]) -> Tensor:
        """Mean cross entropy of the tokens that write the rows' actions."""
        found: Tensor = self.encoder(**self._taught(rows)).loss
        return found

    @torch.inference_mode()
    def exact(self, rows: Sequence[Row]) -> int:
        """How many rows' tokens are each the likeliest after the right ones before them."""
        self.eval()
        inputs = self._taught(rows)
        said, labels = self.encoder(**inputs).logits.argmax(-1), inputs["labels"]
        if not self.seq2seq:
            said, labels = said[:, :-1], labels[:, 1:]
        return int(((said == labels) | (labels == IGNORED)).all(1).sum())

    @torch.inference_mode()
    def search(
        self, rows: Sequence[Row], automata: Sequence[Automaton], beams: int
    ) -> list[list[tuple[Form | None, float]]]:
        """The forms of each question with their log-probabilities, best first; None for NK."""
        self.eval()
        pieces = [self.pieces.of(row) for row in rows]
        longest = max(len(piece) for own in pieces for piece in own)
        longest = 1 + longest * max(one.limits.actions for one in automata)
        prompts = [self._read(row, 0 if self.seq2seq else longest) for row in rows]
        ids, mask = self._padded(prompts, left=not self.seq2seq)
        width = max(2, beams)  # one beam is no beam search, and has no scores
        start = 1 if self.seq2seq else ids.shape[1]
        out = self.encoder.generate(
            input_ids=ids,
            attention_mask=mask,
            logits_processor=LogitsProcessorList([AllowedText(automata, pieces, width, start, self.pad)]),
            num_beams=width,
            num_return_sequences=width,
            do_sample=False,
            length_penalty=0.0,
            max_new_tokens=longest,
            eos_token_id=self.pieces.end,
            pad_token_id=self.pad,
            return_dict_in_generate=True,
            output_scores=True,
        )
        written, scores = out.sequences[:, start:].tolist(), out.sequences_scores.tolist()
        found: list[list[tuple[Form | None, float]]] = []
        for number, automaton in enumerate(automata):
            own: dict[Form | None, float] = {}
            for place in range(number * width, (number + 1) * width):
                actions = actions_of(written[place], pieces[number])
                if actions is not None and scores[place] > -1e6:  # there may be fewer forms than beams
                    form = read(actions, automaton.slots)
                    own[form] = max(scores[place], own.get(form, float("-inf")))
            found.append(sorted(own.items(), key=lambda one: -one[1])[:beams])
        return found

    def save(self, folder: Path) -> None:
        """Writes model/ as transformers reads it, weights in safetensors."""
        self.encoder.save_pretrained(str(folder / "model"), safe_serialization=True)
        self.tokenizer.save_pretrained(str(folder / "model"))

    def _read(self, row: Row, new: int) -> list[int]:
        """Tokens of what is read; where they are too many, the middle gives way."""
        text = self.pieces.text(row) + ("" if self.seq2seq else " => ")
        ids: list[int] = self.tokenizer(text, add_special_tokens=self.seq2seq, verbose=False)["input_ids"]
        room = max(8, self.limit - new)
        return ids if len(ids) <= room else ids[: room - room // 4] + ids[len(ids) - room // 4 :]

    def _taught(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        targets = []
        for row in rows:
            pieces = self.pieces.of(row)
            targets.append([token for action in row.actions for token in pieces[action]])
        prompts = [self._read(row, 0 if self.seq2seq else len(own)) for row, own in zip(rows, targets, strict=True)]
        if self.seq2seq:
            ids, mask = self._padded(prompts)
            labels, there = self._padded(targets)
            return {"input_ids": ids, "attention_mask": mask, "labels": labels.masked_fill(there == 0, IGNORED)}
        whole = [[*prompt, *own] for prompt, own in zip(prompts, targets, strict=True)]
        ids, mask = self._padded(whole)
        labels = ids.masked_fill(mask == 0, IGNORED)
        for place, prompt in enumerate(prompts):
            labels[place, : len(prompt)] = IGNORED
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}

    def _padded(self, rows: Sequence[Sequence[int]], left: bool = False) -> tuple[Tensor, Tensor]:
        width = max(1, *(len(row) for row in rows)) if rows else 1
        ids = torch.full((len(rows), width), self.pad)
        mask = torch.zeros_like(ids)
        for place, row in enumerate(rows):
            where = slice(width - len(row), width) if left else slice(0, len(row))
            ids[place, where], mask[place, where] = torch.tensor(row, dtype=torch.long), 1
        device = next(self.encoder.parameters()).device
        return ids.to(device), mask.to(device)
