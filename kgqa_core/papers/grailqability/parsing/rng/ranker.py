"""The ranker of forms: a cheap first stage that looks at question and form apart, and one that reads them together.

First stage: h_q · W h_f, where each distinct form is read once.  Second stage, with a pretrained encoder: one text of
question and form through it (Ye et al. 2022, section 3.2); with a scratch encoder, which is to train on a CPU: the
states of both, each attending to the other (after Chen et al. 2017, ESIM), which costs a twentieth of reading the pair.
The logarithms of probabilities of a question are log-softmax over its candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgqa_core.logic import forms as logical
from kgqa_core.logic.forms import Form, Steps
from kgqa_core.nn.device import pick_device
from kgqa_core.nn.encoders import Encoder, Reader, Scratch, load_encoder, mean_of_words
from kgqa_core.nn.saved_model import load_config, load_weights, save_model
from kgqa_core.papers.grailqability.parsing.rng.enumerate import Enumerator
from kgqa_core.papers.grailqability.parsing.rng.readings import FormCandidates, Ints
from kgqa_core.papers.grailqability.parsing.word_overlap import SHARES, Floats, TextWords, WordOverlap, shares

KIND, VERSION = "rng", 2
NO_FORM_TEXT = "no form"
"""Text of the candidate that stands for "there is no form"."""
SHARED = 4.0
"""Weight of each share of words before training."""
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
        self.shared = nn.Parameter(torch.tensor([[SHARED] * 3 + [0.0] * (SHARES - 3), [0.0] * SHARES]))
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
        return states, mean_of_words(states, mask)

    def form(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """States [batch, length, width] and vectors [batch, width] of forms."""
        if self.together:
            states = self.encoder.states(ids, mask)
        else:
            assert isinstance(self.encoder, Scratch)
            words = self.encoder.dropout(self.encoder.embeddings(ids) * mask.unsqueeze(-1))
            states = torch.relu(self.near(words.transpose(1, 2)).transpose(1, 2)) + words
        return states, mean_of_words(states, mask)

    def apart(self, question: Tensor, form: Tensor, shares: Tensor) -> Tensor:
        """First-stage scores of rows of vectors [pairs, width].  shares: [pairs, SHARES] of words, from `shares`."""
        return (self.tower(question) * form).sum(-1) / self.width**0.5 + self.words(shares, 0)

    def words(self, shares: Tensor, stage: int) -> Tensor:
        """What shared words [pairs, SHARES] add to the scores [pairs] of a stage, 0 or 1."""
        return (shares * self.shared[stage]).sum(-1)

    def weighed(self, states: Tensor, mask: Tensor, side: int) -> tuple[Tensor, Tensor]:
        """Directions [batch, length, INNER] of the tokens of a question (side 0) or form (1), and their weights."""
        small = nn.functional.normalize((self.asked, self.formed)[side](states), dim=-1) * mask.unsqueeze(-1)
        weights = self.weights[side](states).squeeze(-1).masked_fill(mask == 0, -1e9).softmax(-1)
        return small, weights

    def compared(self, question: Tensor, question_weights: Tensor, form: Tensor, form_weights: Tensor) -> Tensor:
        """Second-stage scores [pairs] of states compared: [pairs, length, INNER] with weights, from `weighed`."""
        likeness = question @ form.transpose(1, 2)
        of_question = (likeness.amax(2).clamp(min=0) * question_weights).sum(1)
        of_form = (likeness.amax(1).clamp(min=0) * form_weights).sum(1)
        return self.sharpness[0] * of_question + self.sharpness[1] * of_form


@dataclass(frozen=True)
class ReadTexts:
    """Questions or forms as a ranker reads them: token ids, and words of the graph's labels."""

    ids: Sequence[list[int]]
    words: TextWords


class FormRanker:
    """A network with its reader, on a device.  overlap: of the words of the graph's relations and types."""

    def __init__(self, network: RankNetwork, reader: Reader, overlap: WordOverlap, device: torch.device) -> None:
        self.network, self.reader, self.overlap, self.device = network.to(device), reader, overlap, device

    def read_questions(self, texts: Sequence[str]) -> ReadTexts:
        """Questions, read."""
        return ReadTexts(self.reader.read(texts) if texts else [], self.overlap.read(texts))

    def read_forms(self, texts: Sequence[str]) -> ReadTexts:
        """The words of forms, read."""
        return ReadTexts(self.reader.read(texts) if texts else [], self.overlap.labels(texts))

    def pair_scores(
        self, questions: ReadTexts, forms: ReadTexts, question_rows: Ints, form_rows: Ints
    ) -> tuple[Tensor, Tensor]:
        """First-stage and second-stage scores of the pairs (question_rows[i], form_rows[i]).

        Second-stage scores are added to first-stage ones, so that they correct them.
        """
        network = self.network
        own_questions, question_places = np.unique(question_rows, return_inverse=True)
        own_forms, form_places = np.unique(form_rows, return_inverse=True)
        question_ids = [questions.ids[row] for row in own_questions.tolist()]
        form_ids = [forms.ids[row] for row in own_forms.tolist()]
        question_batch, question_mask = self._batch(question_ids)
        form_batch, form_mask = self._batch(form_ids)
        question_states, question = network.question(question_batch, question_mask)
        form_states, form = network.form(form_batch, form_mask)
        q_row, f_row = (torch.from_numpy(indices).to(self.device) for indices in (question_places, form_places))
        shares = self._shares(questions.words, forms.words, question_rows, form_rows)
        apart = network.apart(question[q_row], form[f_row], shares)
        if network.together:
            rows = [
                [*question_ids[q], *form_ids[f][1:]][: self.reader.max_tokens]
                for q, f in zip(question_places.tolist(), form_places.tolist(), strict=True)
            ]
            ids, mask = self._batch(rows)
            compared = network.head(network.encoder(ids, mask)).squeeze(-1)
        else:
            q, q_weights = network.weighed(question_states, question_mask, 0)
            f, f_weights = network.weighed(form_states, form_mask, 1)
            compared = network.compared(q[q_row], q_weights[q_row], f[f_row], f_weights[f_row])
        return apart, apart + compared + network.words(shares, 1)

    def _shares(self, questions: TextWords, forms: TextWords, question_rows: Ints, form_rows: Ints) -> Tensor:
        shared = np.asarray(questions.rows[question_rows].multiply(forms.rows[form_rows]).sum(1)).ravel()
        of_questions = (questions.total[question_rows], questions.whole[question_rows])
        of_pairs = shares(shared, *of_questions, forms.total[form_rows])
        return torch.from_numpy(of_pairs).float().to(self.device)

    @torch.no_grad()
    def first(self, questions: ReadTexts, forms: ReadTexts, queries: Sequence[tuple[Ints, Ints]]) -> list[Floats]:
        """First-stage scores of the candidates of each query: (rows of questions, rows of forms) [candidates]."""
        used = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(form_rows for _, form_rows in queries)]))
        index = np.zeros(len(forms.ids), dtype=np.int64)
        index[used] = np.arange(len(used))
        question_vectors = self.vectors(questions.ids, forms=False).numpy()
        form_vectors = self.vectors([forms.ids[row] for row in used.tolist()], forms=True).numpy()
        weights = self.network.shared[0].detach().cpu().numpy().astype(np.float64)
        scores = []
        for question_rows, formed in queries:
            form_rows, view = np.unique(question_rows, return_inverse=True)
            each = np.arange(len(formed))
            near = (form_vectors[index[formed]] @ question_vectors[form_rows].T)[each, view] / self.network.width**0.5
            shared = (forms.words.rows[formed] @ questions.words.rows[form_rows].toarray().T)[each, view]
            own_words = (
                questions.words.total[question_rows],
                questions.words.whole[question_rows],
                forms.words.total[formed],
            )
            words = shares(shared, *own_words) @ weights
            scores.append(near + words)
        return scores

    @torch.no_grad()
    def vectors(self, rows: Sequence[list[int]], *, forms: bool) -> Tensor:
        """First-stage vectors [texts, width] of questions (times W) or forms."""
        self.network.eval()
        results = torch.zeros(len(rows), self.network.width)
        for numbers, ids, mask in self.reader.by_length(rows, READ):
            ids, mask = ids.to(self.device), mask.to(self.device)
            vectors = (
                self.network.form(ids, mask)[1] if forms else self.network.tower(self.network.question(ids, mask)[1])
            )
            results[numbers] = vectors.cpu()
        return results

    @torch.no_grad()
    def second(self, questions: ReadTexts, forms: ReadTexts, question_rows: Ints, form_rows: Ints) -> Floats:
        """Second-stage scores of pairs; pairs of one question should stand together."""
        self.network.eval()
        results = np.zeros(len(question_rows))
        for start in range(0, len(question_rows), CHUNK):
            chunk = slice(start, start + CHUNK)
            _, scores = self.pair_scores(questions, forms, question_rows[chunk], form_rows[chunk])
            results[chunk] = scores.double().cpu().numpy()
        return results

    def _batch(self, rows: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
        ids, mask = self.reader.batch(rows)
        return ids.to(self.device), mask.to(self.device)


def save_ranker(
    folder: Path, ranker: FormRanker, encoder: dict[str, Any], no_form: bool, *, types: bool = False
) -> None:
    """Writes model.safetensors, config.json and tokenizer.json into `folder`.  encoder: its description.

    types: whether candidates have conditions on types.
    """
    config = {"kind": KIND, "version": VERSION, "encoder": encoder, "no_form": no_form, "types": types}
    save_model(folder, ranker.network.state_dict(), ranker.reader.tokenizer, config)


def load_ranker(folder: Path, overlap: WordOverlap, device: str = "cpu") -> FormRanker:
    """The ranker stored in `folder`, for a graph with that overlap of words.

    Raises ArtifactError when it is damaged.
    """
    config = load_config(folder, KIND, VERSION, "parser", "encoder", "no_form")
    encoder, reader = load_encoder(folder, config["encoder"])
    network = RankNetwork(encoder)
    load_weights(folder, network)
    return FormRanker(network, reader, overlap, pick_device(device, "parsing.rng"))


def ranked_kinds(folder: Path) -> tuple[bool, bool]:
    """Whether the ranker stored in `folder` ranks "no form" too, and whether forms have conditions on types.

    Raises ArtifactError when it is damaged.
    """
    config = load_config(folder, KIND, VERSION, "parser", "encoder", "no_form")
    return bool(config["no_form"]), bool(config.get("types"))


BLOCK = 256
"""Questions whose pruned candidates are scored together."""


@dataclass(frozen=True)
class RankedForms:
    """FormCandidates of a question, best first: indices in its `FormCandidates`, and their scores."""

    indices: Ints
    scores: NDArray[np.float64]


def rank(
    ranker: FormRanker,
    queries: Sequence[tuple[tuple[str, ...], FormCandidates]],
    forms: ReadTexts,
    *,
    pruned: int,
    no_form: bool,
) -> list[RankedForms]:
    """The best candidates of each question: (texts of its views, its candidates).

    forms: every form, by number.  pruned: candidates that reach the second stage.  no_form: whether "no form" is one of
    them; it is never pruned.  Equal questions are ranked once.
    """
    distinct: dict[tuple[tuple[str, ...], int], int] = {}
    where = [
        distinct.setdefault((texts, id(candidates_of_query)), len(distinct)) for texts, candidates_of_query in queries
    ]
    firsts = {number: index for index, number in reversed(list(enumerate(where)))}
    queried = [queries[firsts[number]] for number in range(len(distinct))]
    texts = sorted({text for candidates_of_query, _ in queried for text in candidates_of_query})
    index = {text: number for number, text in enumerate(texts)}
    questions = ranker.read_questions(texts)
    question_rows = [
        np.array([index[text] for text in candidates_of_query])[candidates.views]
        for candidates_of_query, candidates in queried
    ]
    pairs = [(rows, candidates.forms) for rows, (_, candidates) in zip(question_rows, queried, strict=True)]
    left = []
    for scores in ranker.first(questions, forms, pairs):
        scores[0] = np.inf if no_form else -np.inf
        best = np.argsort(-scores, kind="stable")[: pruned + no_form]
        left.append(best[scores[best] > -np.inf])
    ranked: list[RankedForms] = []
    for start in range(0, len(queried), BLOCK):
        block = range(start, min(start + BLOCK, len(queried)))
        rows, own_forms = (np.concatenate([pairs[n][side][left[n]] for n in block]) for side in (0, 1))
        scores = ranker.second(questions, forms, rows, own_forms)
        ends = np.cumsum([len(left[n]) for n in block])[:-1]
        for n, own_scores in zip(block, np.split(scores, ends), strict=True):
            order = np.argsort(-own_scores, kind="stable")
            ranked.append(RankedForms(left[n][order], own_scores[order]))
    return [ranked[number] for number in where]


def form_words(enumerator: Enumerator, first: int = 0) -> list[str]:
    """What is read of every form met so far, by number, from a first one on."""
    forms = enumerator.forms.forms[first:]
    return [NO_FORM_TEXT if form is None else in_words(form, enumerator.labels) for form in forms]


class FormTexts:
    """Every form that an enumerator has met, each read once."""

    def __init__(self, ranker: FormRanker, enumerator: Enumerator) -> None:
        self.ranker, self.enumerator = ranker, enumerator
        self._ids: list[list[int]] = []
        self._words = ranker.read_forms([]).words

    def read(self) -> ReadTexts:
        """All of them, by number."""
        new = form_words(self.enumerator, len(self._ids))
        if new:
            more = self.ranker.read_forms(new)
            self._ids.extend(more.ids)
            self._words = self._words.followed_by(more.words)
        return ReadTexts(self._ids, self._words)


_OPS = {"lt": "less than", "le": "at most", "gt": "more than", "ge": "at least"}
_BESTS = {"max": ("largest", "larger"), "min": ("smallest", "smaller")}
_PLACES = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}


def in_words(form: Form, labels: Mapping[str, str]) -> str:
    """The words of a form.  labels: words of relations (and types) by key; a key without words stands as it is.

    >>> from kgqa_core.logic.parser import parse
    >>> in_words(parse("(COUNT (JOIN (R borders) fr))"), {})
    'number of borders of fr'
    """

    def path(steps: Steps) -> str:
        return " ".join(
            f"{'inverse ' if step.inverse else ''}{labels.get(step.relation, step.relation)}" for step in steps
        )

    def measure(node: logical.Arg | logical.Nth | logical.Greater | logical.Compare) -> str:
        return f"count of {path(node.path)}" if node.counted else path(node.path)

    def words(node: Form) -> str:
        match node:
            case logical.Entity(key=key) | logical.Class(key=key):
                return labels.get(key, key)
            case logical.Literal(text=text):
                return text
            case logical.Join(path=steps, of=of, where=where):
                text = words(of)
                for step in reversed(steps):
                    label = labels.get(step.relation, step.relation)
                    text = f"{label} of {text}" if step.inverse else f"whose {label} is {text}"
                return text + "".join(
                    f" at {labels.get(condition.relation, condition.relation)} {words(condition.value)}"
                    for condition in where
                )
            case logical.And(parts=parts):
                return " and ".join(map(words, parts))
            case logical.Or(parts=parts):
                return " or ".join(map(words, parts))
            case logical.Minus(of=of, without=without):
                return f"{words(of)} but not {words(without)}"
            case logical.Count(of=of):
                return f"number of {words(of)}"
            case logical.Arg(best=best, of=of):
                return f"{_BESTS[best][0]} {measure(node)} among {words(of)}"
            case logical.Nth(n=n, best=best, of=of):
                return f"{_PLACES.get(n, str(n))} {_BESTS[best][0]} {measure(node)} among {words(of)}"
            case logical.Greater(one=one, other=other, best=best):
                return f"{_BESTS[best][1]} {measure(node)} {words(one)} or {words(other)}"
            case logical.Compare(op=op, value=value):
                return f"whose {measure(node)} is {_OPS[op]} {words(value)}"
            case logical.TimeConstraint(of=of, path=steps, value=value):
                return f"{words(of)} during {path(steps)} {words(value)}"
            case logical.Holds(of=of, one=one):
                return f"is {words(one)} among {words(of)}"
        raise AssertionError(node)

    return words(form)
