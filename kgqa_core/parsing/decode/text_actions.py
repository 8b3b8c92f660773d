"""Actions as text, for models with a tokenizer of their own: each action is a piece of tokens that one token ends.

That token stands nowhere else in a piece, so that no piece begins another, and pieces of one question differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor

from kgqa_core.errors import ModelError
from kgqa_core.parsing.decode.actions import END, FIXED, NUMBER
from kgqa_core.parsing.decode.automaton import Automaton, State
from kgqa_core.parsing.decode.rows import Row, named

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
        known = [own[-1] for own in marks if own and own[-1] not in (tokenizer.unk_token_id, end)]
        if not known:
            raise ModelError(f"the tokenizer of {name!r} has none of {' '.join(_ENDINGS)}; use another model")
        self.mark = known[0]
        self._fixed = [self._tokens(text.lower()) for text in FIXED]

    def of(self, row: Row) -> list[Piece]:
        """The piece of every action of a question, by number; of END the token that ends the text."""
        slots, labels = row.slots, row.labels
        texts = [label.replace("[", "").replace("]", "") for label in labels]
        words = [text.split()[0] for text in texts[: len(slots.topics)]]
        relations = texts[slots.items - len(slots.relations) :]
        texts = [*words, *texts[len(words) : slots.items - len(relations)], *relations]
        texts += [f"inverse {text}" for text in relations]
        found: list[Piece] = []
        taken: set[Piece] = set()
        for tokens in [*self._fixed, *map(self._tokens, texts)]:
            body = [token for token in tokens if token not in (self.mark, self.end)] or [self._filler]
            while (piece := (*body, self.mark)) in taken:
                body.append(body[-1])
            taken.add(piece)
            found.append(piece)
        found[_END] = (self.end,)
        return found

    def text(self, row: Row) -> str:
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


class AllowedText(LogitsProcessor):  # type: ignore[misc]
    """Lets each row go on only with tokens of pieces that its question's automaton allows.

    pieces: of each question.  start: tokens before what is written.  The rows of a question stand together.
    """

    def __init__(
        self, automata: Sequence[Automaton], pieces: Sequence[Sequence[Piece]], beams: int, start: int, pad: int
    ) -> None:
        self.automata, self.pieces, self.beams, self.start, self.pad = automata, pieces, beams, start, pad
        self._known: list[dict[Piece, tuple[State | None, Piece]]] = [{(): (one.start, ())} for one in automata]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """scores [rows, tokens] with -inf for what may not come after input_ids [rows, tokens so far]."""
        kept = torch.full_like(scores, float("-inf"))
        for row, tokens in enumerate(input_ids[:, self.start :].tolist()):
            number = row // self.beams
            state, begun = self.state(number, tuple(tokens))
            allowed = sorted(self._next(number, state, begun)) if state is not None else [self.pad]
            kept[row, allowed] = scores[row, allowed]
        return kept

    def state(self, number: int, tokens: Piece) -> tuple[State | None, Piece]:
        """Where a question's automaton is, and the tokens of the piece that is begun; None after the end."""
        known = self._known[number]
        if tokens not in known:
            state, begun = self.state(number, tokens[:-1])
            known[tokens] = (None, ())
            if state is not None and tokens[-1] in self._next(number, state, begun):
                begun = (*begun, tokens[-1])
                automaton, pieces = self.automata[number], self.pieces[number]
                whole = [action for action in automaton.allowed(state) if pieces[action] == begun]
                if not whole:
                    known[tokens] = (state, begun)
                elif whole[0] != _END:
                    known[tokens] = (automaton.after(state, whole[0]), ())
        return known[tokens]

    def _next(self, number: int, state: State, begun: Piece) -> set[int]:
        pieces, size = self.pieces[number], len(begun)
        allowed = (pieces[action] for action in self.automata[number].allowed(state))
        return {piece[size] for piece in allowed if piece[:size] == begun and len(piece) > size}


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
