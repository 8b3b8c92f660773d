"""The ranker of forms: a cheap first stage that looks at question and form apart, and one that reads them together.

First stage: h_q · W h_f, where each distinct form is read once.  Second stage, with a pretrained encoder: one text of
question and form through it (Ye et al. 2022, section 3.2); with a scratch encoder, which is to train on a CPU: the
states of both, each attending to the other (after Chen et al. 2017, ESIM), which costs a twentieth of reading the pair.
The logarithms of probabilities of a question are log-softmax over its candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgqa_core.nn.encoders import Encoder, Reader, Scratch

NO_FORM = "no form"
"""What is read of the candidate that says that there is no form."""
INNER = 64
"""Width in which states are compared."""
CHUNK = 4096
"""Pairs that are scored at once; forms and questions that are read at once."""
READ = 512


class RankNetwork(nn.Module):
    """Scores of pairs of a question and a form, from token ids."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.width = encoder.width
        self.tower = nn.Linear(self.width, self.width, bias=False)
        nn.init.eye_(self.tower.weight)
        self.together = not isinstance(encoder, Scratch)
        if self.together:
            self.head = nn.Sequential(nn.Linear(self.width, INNER), nn.Tanh(), nn.Linear(INNER, 1))
        else:
            self.near = nn.Conv1d(self.width, self.width, 3, padding=1)
            self.asked, self.formed = nn.Linear(self.width, INNER), nn.Linear(self.width, INNER)
            self.weights = nn.ModuleList([nn.Linear(self.width, 1) for _ in range(2)])
            self.sharpness = nn.Parameter(torch.tensor([10.0, 10.0]))

    def question(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """States [batch, length, width] and vectors [batch, width] of questions."""
        states = self.encoder.states(ids, mask)
        return states, _mean(states, mask)

    def form(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """States [batch, length, width] and vectors [batch, width] of forms."""
        if self.together:
            states = self.encoder.states(ids, mask)
        else:
            assert isinstance(self.encoder, Scratch)
            words = self.encoder.dropout(self.encoder.embeddings(ids) * mask.unsqueeze(-1))
            states = torch.relu(self.near(words.transpose(1, 2)).transpose(1, 2)) + words
        return states, _mean(states, mask)

    def apart(self, question: Tensor, form: Tensor) -> Tensor:
        """First-stage scores of rows of vectors [pairs, width]."""
        return (self.tower(question) * form).sum(-1) / self.width**0.5

    def weighed(self, states: Tensor, mask: Tensor, side: int) -> tuple[Tensor, Tensor]:
        """Directions [batch, length, INNER] of the tokens of a question (side 0) or form (1), and their weights."""
        small = nn.functional.normalize((self.asked, self.formed)[side](states), dim=-1) * mask.unsqueeze(-1)
        weights = self.weights[side](states).squeeze(-1).masked_fill(mask == 0, -1e9).softmax(-1)
        return small, weights

    def compared(self, question: Tensor, asked: Tensor, form: Tensor, formed: Tensor) -> Tensor:
        """Second-stage scores [pairs] of states compared: [pairs, length, INNER] with weights, from `weighed`."""
        likeness = question @ form.transpose(1, 2)
        of_question = (likeness.amax(2).clamp(min=0) * asked).sum(1)
        of_form = (likeness.amax(1).clamp(min=0) * formed).sum(1)
        return self.sharpness[0] * of_question + self.sharpness[1] * of_form


class Ranker:
    """A network with its reader, on a device."""

    def __init__(self, network: RankNetwork, reader: Reader, device: torch.device) -> None:
        self.network, self.reader, self.device = network.to(device), reader, device

    def read(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of texts."""
        return self.reader.read(texts) if texts else []

    def pair_scores(
        self,
        questions: Sequence[list[int]],
        forms: Sequence[list[int]],
        asked: Tensor,
        formed: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """First-stage and second-stage scores of the pairs (asked[i], formed[i]) of rows of token ids.

        Second-stage scores are added to first-stage ones, so that they correct them.
        """
        network = self.network
        question_ids, question_mask = self._batch(questions)
        form_ids, form_mask = self._batch(forms)
        question_states, question = network.question(question_ids, question_mask)
        form_states, form = network.form(form_ids, form_mask)
        apart = network.apart(question[asked], form[formed])
        if network.together:
            rows = [
                [*questions[q], *forms[f][1:]][: self.reader.max_tokens]
                for q, f in zip(asked.tolist(), formed.tolist(), strict=True)
            ]
            ids, mask = self._batch(rows)
            return apart, apart + network.head(network.encoder(ids, mask)).squeeze(-1)
        q, q_weights = network.weighed(question_states, question_mask, 0)
        f, f_weights = network.weighed(form_states, form_mask, 1)
        compared = network.compared(q[asked], q_weights[asked], f[formed], f_weights[formed])
        return apart, apart + compared

    @torch.no_grad()
    def vectors(self, rows: Sequence[list[int]], *, forms: bool) -> Tensor:
        """First-stage vectors [texts, width] of questions (times W) or forms."""
        self.network.eval()
        order = sorted(range(len(rows)), key=lambda number: (len(rows[number]), number))
        found = torch.zeros(len(rows), self.network.width)
        for start in range(0, len(order), READ):
            own = order[start : start + READ]
            ids, mask = self._batch([rows[number] for number in own])
            vectors = (
                self.network.form(ids, mask)[1] if forms else self.network.tower(self.network.question(ids, mask)[1])
            )
            found[own] = vectors.cpu()
        return found

    @torch.no_grad()
    def second(
        self, questions: Sequence[list[int]], forms: Sequence[list[int]], asked: Sequence[int], formed: Sequence[int]
    ) -> NDArray[np.float64]:
        """Second-stage scores of pairs of rows of token ids; pairs of one question should stand together."""
        self.network.eval()
        found = np.zeros(len(asked))
        for start in range(0, len(asked), CHUNK):
            own_asked, own_formed = asked[start : start + CHUNK], formed[start : start + CHUNK]
            q, q_place = np.unique(np.asarray(own_asked), return_inverse=True)
            f, f_place = np.unique(np.asarray(own_formed), return_inverse=True)
            _, scores = self.pair_scores(
                [questions[i] for i in q.tolist()], [forms[i] for i in f.tolist()],
                torch.from_numpy(q_place).to(self.device), torch.from_numpy(f_place).to(self.device),
            )  # fmt: skip
            found[start : start + CHUNK] = scores.double().cpu().numpy()
        return found

    def _batch(self, rows: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
        ids, mask = self.reader.batch(rows)
        return ids.to(self.device), mask.to(self.device)


def _mean(states: Tensor, mask: Tensor) -> Tensor:
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)
