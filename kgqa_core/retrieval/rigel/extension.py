"""What a retriever may have beside the plain network: a learnt weighting of where it starts, and an intersection.

    s_i  = σ(logit ρ_i + g(h_q, i))         start weight of candidate i; ρ_i = 1 stays 1
    g    = v · tanh(W [P h_q ∘ Q e_i; logit ρ_i; c_i; d_i])
    β    = σ(u · mean of h_q)               how much the intersection counts against the union

e_i is the mean embedding of the words of the candidate's types and description, c_i its share of its mention's
popularity, d_i its popularity.

v begins at zero, so that training begins at the tagger's ρ; the gradient reaches s through the graph.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from kgqa_core.config import RigelOptions
from kgqa_core.nn.encoders import Encoder, Reader
from kgqa_core.retrieval.rigel.starts import FEATURES, Starts

SHARED = 32
"""Width in which question and candidate are compared."""
HIDDEN = 32
LEAST = 1e-4
"""ρ below which a candidate counts as this sure, so that its logarithm is finite."""
SCALE = 4.0
"""What logits of ρ are divided by, to be of the size of the other features."""

How = Literal["none", "product", "min"]


@dataclass(frozen=True)
class Extension:
    """Which parts a retriever has.  candidates: of each mention, at which a soft start begins."""

    soft_start: bool = False
    candidates: int = 1
    intersect: How = "none"

    @classmethod
    def wanted(cls, options: RigelOptions) -> Extension:
        """Those that the options enable."""
        return cls(options.soft_start, options.candidates if options.soft_start else 1, options.intersect)

    @classmethod
    def stored(cls, config: dict[str, Any]) -> Extension:
        """What a stored retriever was trained with."""
        return cls(**config.get("extension", {}))

    def config(self) -> dict[str, Any]:
        """As the config of a stored retriever has it: nothing where there is none."""
        return {"extension": asdict(self)} if self != Extension() else {}

    @property
    def apart(self) -> bool:
        """Whether topics are followed apart."""
        return self.intersect != "none"

    def extras(self, width: int) -> Extras | None:
        """The parts, untrained; None where there is none.  width: of h_q.

        They take their first weights from the generator's state and leave it as it is, so that no other random
        number depends on them.
        """
        if not (self.soft_start or self.apart):
            return None
        with torch.random.fork_rng(devices=[]):
            return Extras(self, width)


class Extras(nn.Module):
    """The parts that a plain network does not have."""

    def __init__(self, extension: Extension, width: int) -> None:
        super().__init__()
        self.weighting = Weighting(width) if extension.soft_start else None
        self.gate = nn.Linear(width, 1) if extension.apart else None
        if self.gate is not None:
            nn.init.zeros_(self.gate.weight)
            nn.init.zeros_(self.gate.bias)

    def start(self, state: Tensor, starts: Starts, encoder: Encoder, reader: Reader) -> Tensor:
        """The weights of the entities that each leg begins with.  state: [legs, width]."""
        if self.weighting is None:
            return starts.sets.weight
        device = state.device
        distinct, place = torch.unique(starts.sets.entity, return_inverse=True)
        ids, mask = reader.batch([starts.words.get(entity, []) for entity in distinct.tolist()] or [[]])
        words = encoder.words(ids.to(device), mask.to(device))[place.to(device)]
        weights = starts.sets.weight.to(device), starts.features.to(device)
        weight: Tensor = self.weighting(state[starts.sets.row.to(device)], words, *weights)
        return weight


def share(logit: Tensor, ptr: Tensor) -> Tensor:
    """β of each question, [batch].  logit: of each leg, [legs].  ptr: int64 [batch + 1], legs of each question."""
    count = ptr.diff()
    total = torch.zeros(count.shape[0], dtype=logit.dtype)
    for leg in range(int(count.max())):
        there = count > leg
        total = total + torch.where(there, logit[(ptr[:-1] + leg).clamp(max=logit.shape[0] - 1)], 0.0)
    return torch.sigmoid(total / count.clamp(min=1))


class Weighting(nn.Module):
    """A candidate's start weight from ρ, the question and what is known of the candidate.

    width: of h_q and of the embedding of the candidate's text.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.question = nn.Linear(width, SHARED, bias=False)
        self.text = nn.Linear(width, SHARED, bias=False)
        self.hidden = nn.Linear(SHARED + 1 + FEATURES, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, state: Tensor, words: Tensor, rho: Tensor, features: Tensor) -> Tensor:
        """Start weights [n] in (0, 1).  state, words: [n, width]; rho: [n]; features: [n, 2]."""
        logit = torch.logit(rho.clamp(LEAST, 1 - LEAST))
        known = torch.cat([(logit / SCALE).unsqueeze(1), features], dim=1)
        both = torch.cat([self.question(state) * self.text(words), known], dim=1)
        moved = torch.sigmoid(logit + self.out(torch.tanh(self.hidden(both))).squeeze(1))
        return torch.where(rho >= 1, rho, moved)
