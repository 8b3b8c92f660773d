"""Actions as text, for models with a tokenizer of their own: each action is a piece of tokens that one token ends.

That token stands nowhere else in a piece, so that no piece begins another, and pieces of one question differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import LogitsProcessor, LogitsProcessorList

from kgqa_core.errors import ModelError
from kgqa_core.llm.hf_decode import RULES
from kgqa_core.llm.hf_load import end_ids, input_limit, load
from kgqa_core.logic.forms import Form
from kgqa_core.papers.grailqability.parsing.decode.actions import END, FIXED, NUMBER, read
from kgqa_core.papers.grailqability.parsing.decode.automaton import Automaton, State
from kgqa_core.papers.grailqability.parsing.decode.rows import DecoderRow, named

_END = NUMBER[END]
_ENDINGS = (";", ".", "|", ",", "?")

Piece = tuple[int, ...]


class Pieces:
    """Writes actions in the tokens of a model.  end: the token that ends a text.

    Raises ModelError for a tokenizer without a mark that could end a piece.
    """

    def __init__(self, tokenizer: Any, end: int, name: str) -> None:
        self.tokenizer, self.end = tokenizer, end
        marks = [self._tokens(mark) for mark in _ENDINGS]
        known = [tokens[-1] for tokens in marks if tokens and tokens[-1] not in (tokenizer.unk_token_id, end)]
        if not known:
            raise ModelError(f"the tokenizer of {name!r} has none of {' '.join(_ENDINGS)}; use another model")
        self.mark = known[0]
        self._fixed = [self._tokens(text.lower()) for text in FIXED]

    def of(self, row: DecoderRow) -> list[Piece]:
        """The piece of every action of a question, by number; of END the token that ends the text."""
        slots, labels = row.slots, row.labels
        texts = [label.replace("[", "").replace("]", "") for label in labels]
        words = [text.split()[0] for text in texts[: len(slots.topics)]]
        relations = texts[slots.items - len(slots.relations) :]
        texts = [*words, *texts[len(words) : slots.items - len(relations)], *relations]
        texts += [f"inverse {text}" for text in relations]
        pieces: list[Piece] = []
        used: set[Piece] = set()
        for tokens in [*self._fixed, *map(self._tokens, texts)]:
            body = [token for token in tokens if token not in (self.mark, self.end)] or [self._filler]
            while (piece := (*body, self.mark)) in used:
                body.append(body[-1])
            used.add(piece)
            pieces.append(piece)
        pieces[_END] = (self.end,)
        return pieces

    def text(self, row: DecoderRow) -> str:
        """What the model reads: the masked question, and the words of its slots."""
        sizes = (len(row.slots.topics), len(row.slots.classes), len(row.slots.literals), len(row.slots.relations))
        parts, at, labels = [row.text], 0, named(row)
        for name, size in zip(("entities", "types", "values", "relations"), sizes, strict=True):
            if size:
                parts.append(f"{name}: " + "; ".join(labels[at : at + size]))
            at += size
        return " | ".join(parts).replace("[", "").replace("]", "")

    @property
    def _filler(self) -> int:
        return next(token for token in range(10**6) if token not in (self.mark, self.end, self.tokenizer.pad_token_id))

    def _tokens(self, text: str) -> list[int]:
        return list(self.tokenizer(" " + text, add_special_tokens=False)["input_ids"])


@dataclass(frozen=True, slots=True)
class _Position:
    """Where an automaton is.  size: tokens of the piece that is begun.  actions: by the token with which they go on."""

    state: State
    size: int
    actions: dict[int, list[int]]


class AllowedActions(LogitsProcessor):  # type: ignore[misc]
    """Lets each row go on only with tokens of pieces that its question's automaton allows.

    The rows of a question stand together, as beam search has them.  Log-probabilities are not made to sum to 1 again,
    so that a form that the model would not have written alone scores low.
    pieces: of each question, by action.  start: tokens before what is written.
    """

    def __init__(
        self, automata: Sequence[Automaton], pieces: Sequence[Sequence[Piece]], beams: int, start: int, pad: int
    ) -> None:
        self.automata, self.pieces, self.start, self.pad = automata, pieces, start, pad
        self.beams = max(2, beams)  # one beam is no beam search, and has no scores
        self._known: list[dict[Piece, _Position | None]] = [
            {(): self._at(number, automaton.start)} for number, automaton in enumerate(automata)
        ]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """scores [rows, tokens] with -inf for what may not come after input_ids [rows, tokens so far]."""
        rows: list[int] = []
        allowed: list[int] = []
        for row, tokens in enumerate(input_ids[:, self.start :].tolist()):
            after = self._after(row // self.beams, tuple(tokens))
            allowed += after.actions if after is not None else [self.pad]
            rows += [row] * (len(allowed) - len(rows))
        masked = torch.full_like(scores, float("-inf"))
        masked[rows, allowed] = scores[rows, allowed]
        return masked

    def _after(self, number: int, tokens: Piece) -> _Position | None:
        """Where a question's automaton is after some tokens; None after the end, and after what is not allowed."""
        known = self._known[number]
        if tokens not in known:
            before = self._after(number, tokens[:-1])
            actions = before.actions.get(tokens[-1], []) if before is not None else []
            known[tokens] = None
            if before is not None and actions:
                pieces, size = self.pieces[number], before.size + 1
                whole = [action for action in actions if len(pieces[action]) == size]
                if not whole:
                    known[tokens] = self._at(number, before.state, size, actions)
                elif whole[0] != _END:
                    known[tokens] = self._at(number, self.automata[number].after(before.state, whole[0]))
        return known[tokens]

    def _at(self, number: int, state: State, size: int = 0, actions: Iterable[int] | None = None) -> _Position:
        following: dict[int, list[int]] = {}
        for action in self.automata[number].allowed(state) if actions is None else actions:
            following.setdefault(self.pieces[number][action][size], []).append(action)
        return _Position(state, size, following)


def actions_of(tokens: Sequence[int], pieces: Sequence[Piece]) -> list[int] | None:
    """The actions that tokens write, without END; None where they do not end."""
    number = {piece: action for action, piece in enumerate(pieces)}
    actions: list[int] = []
    begun: Piece = ()
    for token in tokens:
        begun = (*begun, token)
        action = number.get(begun)
        if action == _END:
            return actions
        if action is not None:
            actions.append(action)
            begun = ()
    return None


def beam_search(
    model: Any, allowed: AllowedActions, longest: int, beams: int, inputs: Mapping[str, Any]
) -> list[list[tuple[Form | None, float]]]:
    """The forms of each question with their log-probabilities, best first; None for NK.

    longest: tokens of a form at most.  inputs: of `generate`, with what the encoder reads.
    """
    out = model.generate(
        logits_processor=LogitsProcessorList([allowed]),
        num_beams=allowed.beams,
        num_return_sequences=allowed.beams,
        do_sample=False,
        length_penalty=0.0,
        max_new_tokens=longest,
        return_dict_in_generate=True,
        output_scores=True,
        **inputs,
    )
    written, scores = out.sequences[:, allowed.start :].tolist(), out.sequences_scores.tolist()
    results: list[list[tuple[Form | None, float]]] = []
    for number, automaton in enumerate(allowed.automata):
        forms: dict[Form | None, float] = {}
        for row in range(number * allowed.beams, (number + 1) * allowed.beams):
            actions = actions_of(written[row], allowed.pieces[number])
            if actions is not None and scores[row] > -1e6:  # there may be fewer forms than beams
                form = read(actions, automaton.slots)
                forms[form] = max(scores[row], forms.get(form, float("-inf")))
        results.append(sorted(forms.items(), key=lambda scored: -scored[1])[:beams])
    return results


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

    def loss(self, rows: Sequence[DecoderRow]) -> Tensor:
        """Mean cross entropy of the tokens that write the rows' actions."""
        loss: Tensor = self.encoder(**self._teacher_forced_inputs(rows)).loss
        return loss

    @torch.inference_mode()
    def exact(self, rows: Sequence[DecoderRow]) -> int:
        """How many rows' tokens are each the likeliest after the right ones before them."""
        self.eval()
        inputs = self._teacher_forced_inputs(rows)
        predicted, labels = self.encoder(**inputs).logits.argmax(-1), inputs["labels"]
        if not self.seq2seq:
            predicted, labels = predicted[:, :-1], labels[:, 1:]
        return int(((predicted == labels) | (labels == IGNORED)).all(1).sum())

    @torch.inference_mode()
    def search(
        self, rows: Sequence[DecoderRow], automata: Sequence[Automaton], beams: int
    ) -> list[list[tuple[Form | None, float]]]:
        """The forms of each question with their log-probabilities, best first; None for NK."""
        self.eval()
        pieces = [self.pieces.of(row) for row in rows]
        longest = max(len(piece) for pieces_of_row in pieces for piece in pieces_of_row)
        longest = 1 + longest * max(automaton.limits.actions for automaton in automata)
        prompts = [self._read(row, 0 if self.seq2seq else longest) for row in rows]
        ids, mask = self._padded(prompts, left=not self.seq2seq)
        start = 1 if self.seq2seq else ids.shape[1]
        allowed = AllowedActions(automata, pieces, beams, start, self.pad)
        inputs = {"input_ids": ids, "attention_mask": mask, "eos_token_id": self.pieces.end, "pad_token_id": self.pad}
        return beam_search(self.encoder, allowed, longest, beams, inputs)

    def save(self, folder: Path) -> None:
        """Writes model/ as transformers reads it, weights in safetensors."""
        self.encoder.save_pretrained(str(folder / "model"), safe_serialization=True)
        self.tokenizer.save_pretrained(str(folder / "model"))

    def _read(self, row: DecoderRow, new: int) -> list[int]:
        """Tokens of what is read; where they are too many, the middle gives way."""
        text = self.pieces.text(row) + ("" if self.seq2seq else " => ")
        ids: list[int] = self.tokenizer(text, add_special_tokens=self.seq2seq, verbose=False)["input_ids"]
        room = max(8, self.limit - new)
        return ids if len(ids) <= room else ids[: room - room // 4] + ids[len(ids) - room // 4 :]

    def _teacher_forced_inputs(self, rows: Sequence[DecoderRow]) -> dict[str, Tensor]:
        targets = []
        for row in rows:
            pieces = self.pieces.of(row)
            targets.append([token for action in row.actions for token in pieces[action]])
        prompts = [
            self._read(row, 0 if self.seq2seq else len(target)) for row, target in zip(rows, targets, strict=True)
        ]
        if self.seq2seq:
            ids, mask = self._padded(prompts)
            labels, there = self._padded(targets)
            return {"input_ids": ids, "attention_mask": mask, "labels": labels.masked_fill(there == 0, IGNORED)}
        whole = [[*prompt, *target] for prompt, target in zip(prompts, targets, strict=True)]
        ids, mask = self._padded(whole)
        labels = ids.masked_fill(mask == 0, IGNORED)
        for index, prompt in enumerate(prompts):
            labels[index, : len(prompt)] = IGNORED
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}

    def _padded(self, rows: Sequence[Sequence[int]], left: bool = False) -> tuple[Tensor, Tensor]:
        width = max(1, *(len(row) for row in rows)) if rows else 1
        ids = torch.full((len(rows), width), self.pad)
        mask = torch.zeros_like(ids)
        for index, row in enumerate(rows):
            where = slice(width - len(row), width) if left else slice(0, len(row))
            ids[index, where], mask[index, where] = torch.tensor(row, dtype=torch.long), 1
        device = next(self.encoder.parameters()).device
        return ids.to(device), mask.to(device)
