"""How well each candidate form fits a question: an encoder reads both, by their words and not by ids.

    score(q, f) = s_1 a(q)·f + s_2 Σ_t w_t m_t + s_3 Σ_u v_u max_t cos(q_t, f_u) + s_4 max_t w_t (1 - m_t) / max w
                  + s_5 b(q)·n + g(features),    m_t = max_u cos(q_t, f_u)

The first term compares whole texts (a: a linear map), the second and third their tokens in both directions (Khattab and
Zaharia 2020, with learned weights w, v of tokens), the fourth is the token of the question that counts and that the
form says least of; the fifth compares the question (b: a linear map) with the noun n of what the form finds, for a
question wants to know a person, a year, a number; s are learned; g is a small network of what else is known of a
candidate.  What is learnt on one graph serves others, for a relation is nothing but its label.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from kgqa_core.logic.forms import BESTS
from kgqa_core.nn.products import speed_up
from kgqa_core.search.candidates import KINDS
from kgqa_core.symbolic.by_labels.encoder import TextEncoder

INNER = 128
"""Numbers of a token's direction."""
FEATURES = 37
"""Numbers that describe a candidate beside its text."""
ORDERS = 2
LENGTHS = 4
"""Relations of the longest path of a form, 0 to 3."""
TURNS = 2
"""Whether a path of a form goes back over the relation that it came by."""
HEADS = (len(KINDS), len(BESTS), ORDERS, LENGTHS, TURNS)
"""Classes of each head."""
SCALE = 8.0
LIKENESS = 5
"""Numbers by which a question and a phrase are compared."""
NONE_FEATURES = 18
"""Numbers that the score of "no form" is made of; the words of the question are not among them, for they are new."""
AT_ONCE, MOST_PHRASES = 128, 50_000
"""Phrases that are encoded at once, and that are kept."""


class ScoreNetwork(nn.Module):
    """The parameters of the scorer.  encoder: of both texts."""

    def __init__(self, encoder: TextEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        width = encoder.width
        self.tower = nn.Linear(width, width, bias=False)
        self.wanted = nn.Linear(width, width, bias=False)
        self.direction = nn.Linear(width, INNER, bias=False)
        self.weights = nn.ModuleList(nn.Linear(width, 1) for _ in range(2))
        self.sharpness = nn.Parameter(torch.tensor([SCALE, SCALE, SCALE, 0.0, 0.0]))
        self.features = nn.Sequential(nn.Linear(FEATURES + LIKENESS, 48), nn.ReLU(), nn.Linear(48, 1))
        self.quick = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1))
        self.linear = nn.Linear(FEATURES, 1, bias=False)
        self.heads = nn.ModuleList(nn.Linear(width, size) for size in HEADS)
        self.none = nn.Sequential(nn.Linear(NONE_FEATURES, 32), nn.ReLU(), nn.Linear(32, 1))
        nn.init.eye_(self.tower.weight)
        nn.init.eye_(self.wanted.weight)
        nn.init.orthogonal_(self.direction.weight)
        nn.init.zeros_(self.linear.weight)
        for head in (self.features[2], self.quick[2], self.none[2]):
            assert isinstance(head, nn.Linear)
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)
        speed_up(self)

    def encode(self, texts: Sequence[str], side: int) -> EncodedTexts:
        """Questions (side 0) or phrases (side 1)."""
        packed = self.encoder(texts)
        pooled = packed.mean()
        normalize = nn.functional.normalize
        vectors = normalize(self.tower(pooled) if side == 0 else pooled, dim=-1)
        wanted = normalize(self.wanted(pooled), dim=-1) if side == 0 else vectors
        tokens = packed.padded(normalize(self.direction(packed.states), dim=-1))
        weights = packed.padded(self.weights[side](packed.states), -1e9).squeeze(-1).softmax(-1)
        return EncodedTexts(pooled, vectors, tokens, weights, wanted)

    def compare(self, question: EncodedTexts, phrase: EncodedTexts, nouns: Tensor | None = None) -> Tensor:
        """Likeness of pairs, row by row: [pairs, LIKENESS].

        Of whole texts, of the question's and of the phrase's tokens, what is missed of the question's worst token, and
        of what is wanted to the noun of what is found.  nouns: vectors of these [pairs, width]; 0 is its likeness where
        there are none.
        """
        likeness = question.tokens @ phrase.tokens.transpose(1, 2)
        said = likeness.amax(2).clamp(min=0)
        matters = question.weights / question.weights.amax(1, keepdim=True)
        return torch.stack(
            [
                (question.vectors * phrase.vectors).sum(-1),
                (said * question.weights).sum(1),
                (likeness.amax(1).clamp(min=0) * phrase.weights).sum(1),
                (matters * (1 - said)).amax(1),
                (question.wanted * nouns).sum(-1) if nouns is not None else said.new_zeros(len(said)),
            ],
            -1,
        )

    def score(self, likeness: Tensor, features: Tensor) -> Tensor:
        """Scores [pairs] of likeness [pairs, LIKENESS] and features [pairs, FEATURES]."""
        whole = (likeness * self.sharpness).sum(-1) + self.linear(features).squeeze(-1)
        more: Tensor = self.features(torch.cat([features, likeness], -1)).squeeze(-1)
        return whole + more


@dataclass(frozen=True)
class EncodedTexts:
    """pooled, vectors, wanted [batch, width], tokens [batch, length, INNER], weights [batch, length].

    wanted: of questions, what is compared with nouns.
    """

    pooled: Tensor
    vectors: Tensor
    tokens: Tensor
    weights: Tensor
    wanted: Tensor

    def rows(self, places: Tensor) -> EncodedTexts:
        """The texts at some places."""
        return EncodedTexts(
            self.pooled[places], self.vectors[places], self.tokens[places], self.weights[places], self.wanted[places]
        )


Phrase = tuple[Tensor, Tensor, Tensor]
"""Of one phrase: vector [width], tokens [length, INNER], weights [length]."""


class LabelScorer:
    """A network that is not trained any more for now; phrases are encoded once and kept.

    One thread encodes at a time: torch uses all cores for it, and two that ask the same phrases have them encoded once.
    known: phrases that this network encoded before.
    """

    def __init__(self, network: ScoreNetwork, known: Mapping[str, Phrase] | None = None) -> None:
        self.network = network
        self._known: dict[str, Phrase] = dict(known or {})
        self._encoding = threading.Lock()

    def clear(self) -> None:
        """Forgets all phrases; to be called when the weights have changed."""
        self._known = {}

    @torch.inference_mode()
    def questions(self, texts: Sequence[str]) -> EncodedTexts:
        """Texts of questions, encoded."""
        with self._encoding:
            return self.network.encode(texts, 0)

    @torch.inference_mode()
    def known(self, texts: Sequence[str]) -> dict[str, Phrase]:
        """Phrases, encoded, by their text; those that were not met before are kept."""
        with self._encoding:
            self._encode_new(texts)
            return {text: self._known[text] for text in texts}

    def _encode_new(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if len(self._known) + len(new) > MOST_PHRASES:
            self.clear()
            new = list(dict.fromkeys(texts))
        new.sort(key=lambda text: (len(text), text))
        for start in range(0, len(new), AT_ONCE):
            some = new[start : start + AT_ONCE]
            own = self.network.encode(some, 1)
            lengths = (own.weights > 0).sum(1).tolist()
            for text, vector, tokens, weights, length in zip(
                some, own.vectors, own.tokens, own.weights, lengths, strict=True
            ):
                self._known[text] = vector.clone(), tokens[:length].clone(), weights[:length].clone()

    @torch.inference_mode()
    def phrases(self, texts: Sequence[str]) -> EncodedTexts:
        """Phrases, encoded; those that were met before come from memory."""
        known = self.known(texts)
        rows = [known[text] for text in texts]
        vectors = torch.stack([vector for vector, _, _ in rows])
        pad = nn.utils.rnn.pad_sequence
        tokens = pad([one for _, one, _ in rows], batch_first=True)
        weights = pad([one for _, _, one in rows], batch_first=True)
        return EncodedTexts(vectors, vectors, tokens, weights, vectors)

    @torch.inference_mode()
    def likeness(
        self, question: EncodedTexts, place: int, phrases: EncodedTexts, nouns: EncodedTexts | None = None
    ) -> Tensor:
        """[phrases, LIKENESS]: likeness of one question of a batch to phrases; nouns: of what each of these finds."""
        size = len(phrases.vectors)
        one = question.rows(torch.full((1,), place))
        length = int((one.weights > 0).sum())  # what follows pads it to the longest of its batch
        expanded = EncodedTexts(
            one.pooled.expand(size, -1),
            one.vectors.expand(size, -1),
            one.tokens[:, :length].expand(size, -1, -1),
            one.weights[:, :length].expand(size, -1),
            one.wanted.expand(size, -1),
        )
        return self.network.compare(expanded, phrases, nouns.vectors if nouns is not None else None)


def describe(network: ScoreNetwork) -> dict[str, Any]:
    """Sizes that a stored network must have."""
    return {"inner": INNER, "features": FEATURES, "kinds": list(KINDS), "width": network.encoder.width}
