"""The label parser: forms of a question, best first, on a graph whose relations no training need have seen."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray

from kgqa_core.logic.forms import BESTS, Arg, Class, Count, Form, Holds, Join, Literal, Minus, Nth, children
from kgqa_core.logic.normalise import normalise
from kgqa_core.question_limits import next_question
from kgqa_core.symbolic.by_labels.candidates import (
    Candidate,
    CandidateMaker,
    LabelQuery,
    best_of,
    by_key,
    inside,
    labels_of,
    nodes_of,
)
from kgqa_core.symbolic.by_labels.cues import Cues, cues_of, meets
from kgqa_core.symbolic.by_labels.graph import WORD, LabelGraph
from kgqa_core.symbolic.by_labels.phrases import Phrases
from kgqa_core.symbolic.by_labels.reading import CONTENT_FREE, other_readings, read_query, stem, stems
from kgqa_core.symbolic.by_labels.scorer import FEATURES, HEADS, LENGTHS, LIKENESS, EncodedTexts, LabelScorer
from kgqa_core.symbolic.by_labels.unread import Unread, UnreadWords
from kgqa_core.types import Question

UNUSED, EXPLAINED, OUTWARD, WORST, MEAN, BETTER = 4, 17, 24, 25, 26, 29
"""Features: what mentions a form leaves out, the share of the question's words that its labels have, and those of
`WayFit` with these names."""
HEAD_FEATURES = (0, 1, 2, 27, 28)
"""Features that hold the log probability of a candidate's class by each head of the scorer."""
NO_CLASS = -100
"""Class of a candidate that a head does not tell apart."""
DROPPED = 2.0
"""What the best score of a reading loses for a mention that it takes for plain words, at full confidence in it."""
UNEXPLAINED = 4.0
"""What it loses besides where the form has none of these words."""
PAIRED = 1.5
"""Likeness of a way all of whose pairs of characters are in a question that is written without spaces."""
SHARP = 0.05
"""Difference of likeness by which a token of the text has e times the weight in a way's place."""
BLOCK = 64
"""Questions that are encoded at once, and whose phrases are."""
SCORED = 64
"""Candidates whose phrases are compared with the question."""
_UNSPACED = re.compile(r"[\u2e80-\u2fff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_YES_NO = re.compile(
    r"(?:^|[,.:;!?-]) *(?:(?:and|so|but|hey|hi|hello|please|pls|ok|well|then|now) )*(?:is|are|was|were|do|does|did|has|"
    r"have|had|can|could|will|would)(?:n'?t)? "
    r"(?!(?:you|u|some\w+|any\w+) (?:(?:please|pls) )?(?:tell|know|give|say|help|list|name|show)\b)"
    r"|\b(?:whether|true that|or not|right\?|correct\?|yes or no|is it true|if it is)",
    re.IGNORECASE,
)
"""How English asks for a yes or a no: by a verb in the first place of a clause."""


@dataclass(frozen=True)
class WayFit:
    """How ways fit a question.

    likeness [2 * relations]: of a way's likest wording to the text, higher is better.  paired: the share of the pairs
    of characters of a wording that a text without spaces has.  places [2 * relations]: of the token of
    the text that a way's words are likest to, a mean where several are.  slots: of the token of each slot's word.
    """

    likeness: NDArray[np.float64]
    paired: NDArray[np.float64]
    places: NDArray[np.float64]
    slots: tuple[float, ...] = ()

    def outward(self, one: Candidate) -> float:
        """Whether the text names the relations of a path in their order, away from its mention: -1 (reversed) to 1.

        As "the actors of films by x" does for a path from x to its films, and to their actors.  0 for one relation, and
        where a form has no mention or several.
        """
        if len(one.slots) != 1 or len(one.ways) < 2 or one.slots[0] >= len(self.slots):
            return 0.0
        places, slot = self._places, self.slots[one.slots[0]]
        distances = [abs(places[way] - slot) for way in one.ways]
        return sum(math.tanh((then - before) / 2) for before, then in pairwise(distances)) / (len(distances) - 1)

    def worst(self, one: Candidate) -> float:
        """Likeness of the way of a form that fits least; 0 where it has none."""
        return min((self._likeness[way] for way in one.ways), default=0.0)

    def mean(self, one: Candidate) -> float:
        """Mean likeness of the ways of a form; 0 where it has none."""
        return sum(self._likeness[way] for way in one.ways) / max(len(one.ways), 1)

    def better(self, one: Candidate) -> float:
        """How much likelier another way of the graph is than the likest one of a form."""
        return self._top - max((self._likeness[way] for way in one.ways), default=self._top)

    def shared_pairs(self, one: Candidate) -> float:
        """Mean of `paired` over the ways of a form; 0 where it has none."""
        return sum(self._paired[way] for way in one.ways) / max(len(one.ways), 1)

    @cached_property
    def _likeness(self) -> list[float]:
        return self.likeness.tolist()

    @cached_property
    def _paired(self) -> list[float]:
        return self.paired.tolist()

    @cached_property
    def _places(self) -> list[float]:
        return self.places.tolist()

    @cached_property
    def _top(self) -> float:
        return max([0.0, *self._likeness])


@dataclass(frozen=True)
class Prepared:
    """A question with its candidates, before they are scored.

    texts: the phrase of each candidate; nouns: what each finds.  features [candidates, FEATURES].  encoded: the
    question, alone.
    """

    question: str
    query: LabelQuery
    candidates: list[Candidate]
    texts: list[str]
    nouns: list[str]
    features: NDArray[np.float32]
    encoded: EncodedTexts


@dataclass(frozen=True)
class Ranked:
    """Candidates of a question, best first, with their scores and that of "this graph has no form"."""

    prepared: Prepared
    order: list[int]
    scores: list[float]
    none: float
    likeness: NDArray[np.float32]

    @property
    def candidates(self) -> list[Candidate]:
        """The candidates, best first."""
        return [self.prepared.candidates[place] for place in self.order]


class LabelParser:
    """Ranks forms of questions over one graph with a trained scorer.  learnt: as of `learnt_words`."""

    def __init__(
        self,
        graph: LabelGraph,
        scorer: LabelScorer,
        hops: int = 2,
        learnt: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        self.graph, self.scorer, self.hops = graph, scorer, hops
        self.maker = CandidateMaker(graph, hops)
        self.phrases = Phrases(graph)
        own = [self.phrases.wordings(way) for way in range(2 * graph.relations)]
        first = [texts[0] for texts in own]
        self.ways = first + [text for texts in own for text in texts[1:]]
        """Wordings of the graph's ways: the first of each, then all others."""
        others = [way for way, texts in enumerate(own) for _ in texts[1:]]
        self._owners = np.array([*range(len(first)), *others], dtype=np.int64)
        self._pairs = [_pairs(text) for text in self.ways]
        self._words = [stems(texts) for texts in own]
        self._way_block: EncodedTexts | None = None
        self._unread = UnreadWords(graph, own, scorer, learnt)
        self._log_triples: list[float] = (np.log1p(graph.triples) / 15).tolist()
        self._relation_words = [stems([label]) - CONTENT_FREE for label in graph.labels]
        self._type_words = [stems([label]) - CONTENT_FREE for label in graph.type_labels]

    def clear(self) -> None:
        """Forgets what was encoded; to be called when the weights of the scorer have changed."""
        self.scorer.clear()
        self._way_block = None

    def read(self, questions: Sequence[Question]) -> list[LabelQuery]:
        """What is read of questions: their slots, types and values."""
        topics = sorted({entity for question in questions for entity in question.topic_entities})
        keys, names = self.graph.store.entity_keys(topics), self.graph.store.surface_forms(topics)
        return [read_query(question, keys, names, self.graph) for question in questions]

    def readings(self, questions: Sequence[Question]) -> list[list[LabelQuery]]:
        """What may be read of each question: with all mentions first, then without some that may be plain words."""
        each = [[(question, 0.0, frozenset[str]()), *other_readings(question)] for question in questions]
        queries = iter(self.read([one for own in each for one, _, _ in own]))
        return [[replace(next(queries), dropped=rho, dropped_words=words) for _, rho, words in own] for own in each]

    def best_readings(self, ranked: Sequence[Ranked], counts: Sequence[int]) -> list[Ranked]:
        """Of each question's readings, one after the other, that whose best form scores highest.

        counts: readings of each question.  A reading that takes mentions for plain words loses `DROPPED` times the
        confidence in these, and `UNEXPLAINED` times the share of these words that the form does not have.
        """
        found, place = [], 0
        for count in counts:
            own = ranked[place : place + count]
            place += count
            found.append(max(own, key=self._reading_score))
        return found

    def _reading_score(self, one: Ranked) -> float:
        query = one.prepared.query
        if not one.scores:
            return -math.inf
        score = one.scores[0] - DROPPED * query.dropped
        if query.dropped_words:
            best = one.candidates[0]
            words = stems(labels_of(best.form, self.graph)).union(*(self._words[way] for way in best.ways))
            score -= UNEXPLAINED * len(query.dropped_words - words) / len(query.dropped_words)
        return score

    @torch.inference_mode()
    def prepare(
        self,
        queries: Sequence[tuple[str, LabelQuery]],
        most: int = SCORED,
        proposed: Sequence[Sequence[tuple[Candidate, str]]] | None = None,
    ) -> list[Prepared]:
        """Candidates of questions (id, query), the likest by their ways; `most` of each.

        proposed: of each question further candidates, each with the road that it came by.
        """
        network, found = self.scorer.network, []
        for start in range(0, len(queries), BLOCK):
            own = queries[start : start + BLOCK]
            encoded = self.scorer.questions([query.text for _, query in own])
            heads = [torch.log_softmax(head(encoded.pooled), -1).numpy() for head in network.heads]
            for place, (name, query) in enumerate(own):
                next_question()
                fit = self.way_fit(query, encoded, place)
                guess = [head[place] for head in heads]
                cues = self.cues(query)
                made = self.maker.make(query, fit.likeness, guess[0].tolist())
                candidates = list(islice((one for one in made if meets(one, cues, query, self.graph)), most))
                known = {str(normalise(one.form)) for one in candidates} if proposed else set()
                for one, road in proposed[start + place] if proposed else ():
                    text = str(normalise(one.form))
                    if text not in known and meets(one, cues, query, self.graph):
                        known.add(text)
                        one.road = road
                        candidates.append(one)
                texts, nouns = self.texts(query, candidates), self.nouns(candidates)
                features = self.features(query, candidates, guess, fit)
                single = encoded.rows(torch.full((1,), place))
                found.append(Prepared(name, query, candidates, texts, nouns, features, single))
        return found

    def texts(self, query: LabelQuery, candidates: Sequence[Candidate]) -> list[str]:
        """The phrase of each candidate."""
        slots = by_key(query.slots)
        return [self.phrases.write(one.form, slots) for one in candidates]

    def nouns(self, candidates: Sequence[Candidate]) -> list[str]:
        """What each candidate finds, in a word or a few."""
        return [self.phrases.answer(one.form) for one in candidates]

    def cues(self, query: LabelQuery) -> Cues:
        """What the words of a question demand of its form."""
        return cues_of(query.text, bool(_YES_NO.search(query.text)))

    def unread(self, ranked: Ranked, best: Candidate) -> Unread:
        """Words of a question that its best form leaves unread, in runs; a mention by the word of its slot."""
        query = ranked.prepared.query
        return self._unread.of(query, best, [*self.texts(query, [best]), *self.nouns([best])], ranked.prepared.encoded)

    def way_fit(self, query: LabelQuery, encoded: EncodedTexts, place: int) -> WayFit:
        """How the words of each way fit one question of a batch."""
        if self._way_block is None:
            self._way_block = self.scorer.phrases(self.ways)
        likeness = self.scorer.likeness(encoded, place, self._way_block).double().numpy()
        ids = self.scorer.network.encoder.token_ids([query.text, *(slot.word for slot in query.slots)])
        inside = slice(1, len(ids[0]) - 1)  # without the marks of start and end
        ways = 2 * self.graph.relations
        like = torch.einsum(
            "wud,td,wu->wt",
            self._way_block.tokens[:ways],
            encoded.tokens[place][inside],
            self._way_block.weights[:ways],
        )
        numbers = torch.arange(1, len(ids[0]) - 1, dtype=like.dtype)
        places = (like / SHARP).softmax(-1) @ numbers
        slots = tuple(float(ids[0].index(own[1])) if own[1] in ids[0] else float(len(ids[0])) for own in ids[1:])
        each, paired = 0.5 * likeness[:, 0] + likeness[:, 2], np.zeros(ways)
        if pairs := _pairs(query.text):
            shares = np.array([len(own & pairs) / len(own) if own else 0.0 for own in self._pairs])
            np.maximum.at(paired, self._owners, shares)
            each = np.where([bool(own) for own in self._pairs], PAIRED * shares, each)
        best = np.full(ways, -np.inf)
        np.maximum.at(best, self._owners, each)
        return WayFit(best, paired, places.double().numpy(), slots)

    @torch.inference_mode()
    def rank(self, prepared: Sequence[Prepared]) -> list[Ranked]:
        """The candidates of each question, best first."""
        network, found = self.scorer.network, []
        for number, one in enumerate(prepared):
            next_question()
            if number % BLOCK == 0:
                block = prepared[number : number + BLOCK]
                self.scorer.encode_new([text for own in block for text in (*own.texts, *own.nouns)])
            if one.candidates:
                nouns = self.scorer.phrases(one.nouns)
                likeness = self.scorer.likeness(one.encoded, 0, self.scorer.phrases(one.texts), nouns)
                scores = network.score(likeness, torch.from_numpy(one.features))
            else:
                likeness, scores = torch.zeros(0, LIKENESS), torch.zeros(0)
            none = float(network.none(none_features(scores, likeness, torch.from_numpy(one.features), one.query)))
            order = np.argsort(-scores.numpy(), kind="stable")
            values = scores.double().numpy()[order]
            found.append(Ranked(one, order.tolist(), values.tolist(), none, likeness.numpy()[order]))
        return found

    def parse(self, questions: Sequence[Question]) -> list[Ranked]:
        """The ranked candidates of questions."""
        readings = self.readings(questions)
        flat = [(q.id, query) for q, own in zip(questions, readings, strict=True) for query in own]
        return self.best_readings(self.rank(self.prepare(flat)), [len(own) for own in readings])

    # -- features ----------------------------------------------------------------------------------------------

    def features(
        self,
        query: LabelQuery,
        candidates: Sequence[Candidate],
        guess: Sequence[NDArray[np.float32]],
        fit: WayFit,
        classes: Sequence[tuple[int, ...]] | None = None,
    ) -> NDArray[np.float32]:
        """What is known of candidates beside their texts [candidates, FEATURES].

        classes: `classes_of` each, where they are known.
        """
        words = [stem(word) for word in WORD.findall(query.text.lower())]
        content = {word for word in words if word not in CONTENT_FREE}
        wanted = {place for place, _ in query.types}
        asked = bool(_YES_NO.search(query.text))
        first = [
            self.graph.members(place)
            for place, _ in query.types
            if self.graph.type_labels[place] == self.graph.type_labels[query.types[0][0]]
        ]
        rhos = [max(rho for _, _, rho in slot.entities) for slot in query.slots]
        classes = classes if classes is not None else [classes_of(one) for one in candidates]
        relation_ids, type_of_key = self.graph.memory.relation_ids, self.graph.type_of_key
        table = []
        for one, numbers in zip(candidates, classes, strict=True):
            row = [0.0] * FEATURES
            form = one.form
            inner = form.of if isinstance(form, Count) else form
            nodes = nodes_of(form)
            named = {type_of_key.get(node.key, -1) for node in nodes if isinstance(node, Class)}
            relations = {relation_ids[step.relation] for node in nodes for step in getattr(node, "path", ())}
            label_words = set[str]().union(
                *(self._relation_words[relation] for relation in relations),
                *(self._type_words[place] for place in named if place >= 0),
            )
            explained = content & label_words.union(*(self._words[way] for way in one.ways))
            literals = sum(isinstance(getattr(node, "value", node), Literal) for node in nodes)
            nth = next((node.n for node in nodes if isinstance(node, Nth)), 1)
            for column, own, number in zip(HEAD_FEATURES, guess, numbers, strict=True):
                row[column] = max(own[number], -8) / 4 if number >= 0 else 0
            row[3] = math.log(max(one.rho, 1e-3)) / 4
            row[UNUSED] = -sum(rho for number, rho in enumerate(rhos) if number not in one.slots)
            row[5] = len(one.ways) / 3
            row[6] = float(one.missing or (one.nodes is not None and not len(one.nodes)))
            row[7] = math.log1p(len(one.nodes)) / 8 if one.nodes is not None else 0
            row[8] = float((query.place or 1) != nth)
            row[9] = float(bool(query.values) and not literals)
            row[10] = float(literals > 0)
            row[11] = len(wanted & set(one.types)) / 2
            row[12] = len(wanted - set(one.types)) / 2
            row[13] = len(named - wanted) / 2
            row[14] = 0.5 if asked == isinstance(one.value, bool) else -0.5
            if first and one.nodes is not None and len(one.nodes):
                row[15] = 0.5 if any(inside(one.nodes[:20], members) for members in first) else -0.5
            row[16] = len(label_words & content) / len(label_words) if label_words else 0
            row[EXPLAINED] = len(explained) / len(content) if content else 0
            if one.ways:
                row[18] = sum(self._log_triples[way % self.graph.relations] for way in one.ways) / len(one.ways)
            row[19] = float(one.nodes is not None and len(one.nodes) == 1)
            row[20] = float(self._several_values(one))
            row[21] = len(one.slots) / 3
            row[22] = float(isinstance(one.value, bool) or isinstance(inner, Class))
            row[23] = fit.shared_pairs(one)
            row[OUTWARD] = fit.outward(one)
            row[WORST], row[MEAN], row[BETTER] = fit.worst(one), fit.mean(one), fit.better(one)
            table.append(row)
        return np.array(table, dtype=np.float32).reshape(len(candidates), FEATURES)

    def _several_values(self, one: Candidate) -> bool:
        if one.nodes is None or len(one.nodes) < 2:
            return False
        return bool((self.graph.memory.dim[one.nodes[:5]] >= 0).all())


_NONE_OF_BEST = (EXPLAINED, UNUSED, WORST, MEAN, BETTER)
"""Features of the best candidate that tell whether there is a form."""


def none_features(
    scores: torch.Tensor, likeness: torch.Tensor, features: torch.Tensor, query: LabelQuery
) -> torch.Tensor:
    """[1, NONE_FEATURES]: what is known of a question's best candidate, the next best score, and how it was linked."""
    rhos = [max(rho for _, _, rho in slot.entities) for slot in query.slots]
    known = [max(rhos, default=0.0), min(rhos, default=0.0), min(query.strange, 3) / 3, float(query.cut)]
    if not len(scores):
        return torch.tensor([[-1.0, -1.0, 0.0, 0.0, 0.0, 1.0, 0.0, *known, *[0.0] * len(_NONE_OF_BEST)]])
    best = int(scores.argmax())
    top = scores.topk(min(2, len(scores))).values.tolist()
    row = [top[0] / 10, (top[1] if len(top) > 1 else -10.0) / 10, *likeness[best].tolist(), *known]
    return torch.tensor([[*row, *(float(features[best][place]) for place in _NONE_OF_BEST)]])


def classes_of(one: Candidate) -> tuple[int, ...]:
    """The class of a candidate by each head of the scorer; `NO_CLASS` where a head has none for it."""
    form = one.form
    best = best_of(form)
    ordered = isinstance(form, (Minus, Holds)) and len(one.slots) > 1
    lengths, turned = zip(*_path_shapes(form), strict=True)
    found = (
        one.kind,
        NO_CLASS if best is None else BESTS.index(best),
        int(one.slots[0] > one.slots[1]) if ordered else NO_CLASS,
        min(max(lengths), LENGTHS - 1),
        int(any(turned)),
    )
    assert len(found) == len(HEADS)
    return found


def _path_shapes(form: Form, behind: tuple[tuple[str, bool], ...] = ()) -> Iterator[tuple[int, bool]]:
    """Of each path of a form its relations, and whether it goes back over one that it came by.

    behind: steps of the path that the form stands in.
    """
    path = (*behind, *((step.relation, step.inverse) for step in form.path)) if isinstance(form, Join) else behind
    parts = (form.of,) if isinstance(form, (Join, Arg, Nth)) else children(form)
    for part in parts:
        yield from _path_shapes(part, path)
    if not parts:
        yield len(path), any(one[0] == two[0] and one[1] != two[1] for one, two in pairwise(path))


def _pairs(text: str) -> set[str]:
    """Pairs of characters of words that are written without spaces between them; of one character itself."""
    return {run[place : place + 2] for run in _UNSPACED.findall(text) for place in range(max(len(run) - 1, 1))}


def answers_of(one: Candidate, names: Mapping[int, str]) -> tuple[str, ...]:
    """The answer of a candidate as text: names, a number, `yes` or `no`.  names: of its nodes."""
    if isinstance(one.value, bool):
        return ("yes" if one.value else "no",)
    if one.value is not None:
        return (str(one.value),)
    assert one.nodes is not None
    return tuple(dict.fromkeys(names[node] for node in one.nodes.tolist()))
