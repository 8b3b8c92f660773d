"""The label parser: forms of a question, best first, on a graph whose relations no training need have seen."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, pairwise
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from kgqa_core.logic.forms import (
    BESTS,
    And,
    Arg,
    Class,
    Compare,
    Count,
    Entity,
    Form,
    Holds,
    Join,
    Literal,
    Minus,
    Nth,
    children,
)
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.result import Result, row_texts, value_text
from kgqa_core.question_limits import next_question
from kgqa_core.search.agreement import GrammarAgreement
from kgqa_core.search.candidates import (
    Candidate,
    LabelQuery,
    best_of,
    by_key,
    has_value,
    inside,
    labels_of,
    nodes_of,
)
from kgqa_core.search.cues import Cues, cues_of, meets
from kgqa_core.search.demands import IN_NAMES
from kgqa_core.search.form_reading import root, roots
from kgqa_core.search.graph import WORD, LabelGraph, is_long
from kgqa_core.search.phrases import OwnWords, Phrases
from kgqa_core.search.reading import CONTENT_FREE, other_readings, read_query, stem, stems
from kgqa_core.search.search import FormSearch
from kgqa_core.search.words import WordCover, WordIndex
from kgqa_core.symbolic.by_labels.qualified import Qualifiers
from kgqa_core.symbolic.by_labels.scorer import FEATURES, HEADS, LENGTHS, LIKENESS, EncodedTexts, LabelScorer
from kgqa_core.symbolic.by_labels.unread import Unread, UnreadWords
from kgqa_core.types import Question

NO_CLASS = -100
"""Class of a candidate that a head does not tell apart."""
DROPPED = 2.0
"""What the best score of a reading loses for a mention that it takes for plain words, at full confidence in it."""
UNEXPLAINED = 4.0
"""What it loses besides where the form has none of these words."""
PAIRED = 1.5
"""Likeness of a directed relation all of whose pairs of characters are in a question that is written without spaces."""
SHARP = 0.05
"""Difference of likeness by which a token of the text has e times the weight in a relation's position."""
NONE = "none"
"""The answer of a form that finds nothing."""
LEFT_OUT = 4.0
"""What the score of a candidate loses for each mention that it leaves out, which no answer may."""
READ_EMPTY = 4.0
"""What the score of a form that finds nothing gains where it is the best and reads the whole question: of 35 such over
dev questions that can be answered 32 were right, while a score is lower for all that is empty."""
BLOCK = 64
"""Questions that are encoded at once, and whose phrases are."""
MADE, SCORED, FEWEST, READ = 96, 24, 16, 10
"""Candidates whose features are computed, those whose phrases are compared with the question at most, and at least, and
those of which it is told what they leave unread."""
BEHIND, UNLIKELY, LONG = 8.0, 12.0, 1_000
"""How far behind the best score the last of these are at most, and the second beyond the fewest; characters of a
question from which on it is told of the best."""
_UNSPACED = re.compile(r"[\u2e80-\u2fff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_YES_NO = re.compile(
    r"(?:^|[,.:;!?-]) *(?:(?:and|so|but|hey|hi|hello|please|pls|ok|well|then|now) )*(?:is|are|was|were|do|does|did|has|"
    r"have|had|can|could|will|would)(?:n'?t)? "
    r"(?!(?:you|u|some\w+|any\w+) (?:(?:please|pls) )?(?:tell|know|give|say|help|list|name|show)\b)"
    r"|\b(?:whether|true that|or not|right\?|correct\?|yes or no|is it true|if it is)",
    re.IGNORECASE,
)
"""How English asks for a yes or a no: by a verb in the first place of a clause."""


class CandidateFeatures(NamedTuple):
    """What is known of a candidate beside its text: a column each, in the order of the packaged weights.

    Where nothing else is said a column is 0 or 1.
    """

    operation: float
    """Log probability of its operation by a head of the scorer; so are `best`, `order`, `length` and `turns`."""
    best: float
    order: float
    linked: float
    """Logarithm of how surely its mentions were linked."""
    unused: float
    """Mentions that it leaves out, by their confidence, below 0."""
    relations: float
    """How many, in thirds."""
    empty: float
    """Whether it finds nothing, or its facts are missing."""
    size: float
    """Logarithm of how much it finds."""
    other_ordinal: float
    """Whether it takes another position of a ranking than the question says."""
    value_ignored: float
    """Whether it has no value though the question has one."""
    has_value: float
    types_kept: float
    """Types that the question names and the form finds, in halves."""
    types_lost: float
    """Types that the question names and the form does not find, in halves."""
    types_added: float
    """Types that the form names and the question does not, in halves."""
    yes_no: float
    """0.5 where it says yes or no just where that is asked for, else -0.5."""
    first_type: float
    """0.5 where it finds things of the type that the question names first, -0.5 where others, 0 without one."""
    labels_read: float
    """Share of the words of its labels that the question has."""
    explained: float
    """Share of the question's words that wordings of it have."""
    frequency: float
    """Mean logarithm of the triples of its relations."""
    single: float
    several_values: float
    mentions: float
    """How many, in thirds."""
    judges_or_counts_type: float
    """Whether it says yes or no, or is a type, or the size of one."""
    shared_pairs: float
    """As of `RelationFit`; so are `outward`, `worst`, `mean` and `better`."""
    outward: float
    worst: float
    mean: float
    length: float
    turns: float
    better: float
    covered: float
    """As of `WordCover.of`; so are `left`, `rank_left` and `rank_added`."""
    left: float
    rank_left: float
    rank_added: float
    usual: float
    """As of `GrammarAgreement.of`; so are `direction` and `end`."""
    direction: float
    end: float


def columns(*names: str) -> tuple[int, ...]:
    """Columns of `CandidateFeatures` by their names."""
    return tuple(map(CandidateFeatures._fields.index, names))


HEAD_FEATURES = columns("operation", "best", "order", "length", "turns")
"""Features that hold the log probability of a candidate's class by each head of the scorer."""
_UNUSED = columns("unused")[0]
_NONE_OF_BEST = columns("explained", "unused", "worst", "mean", "better", "covered", "left")
"""Features of the best candidate that tell whether there is a form."""


@dataclass(frozen=True)
class RelationFit:
    """How directed relations fit a question.

    likeness [2 * relations]: of a relation's likest wording to the text, higher is better.  paired: the share of the
    pairs of characters of a wording that a text without spaces has.  positions [2 * relations]: of the token of the
    text that a relation's words are likest to, a mean where several are.  slots: of the token of each slot's word.
    cover: which words of the question what explains.
    """

    likeness: NDArray[np.float64]
    paired: NDArray[np.float64]
    positions: NDArray[np.float64]
    slots: tuple[float, ...] = ()
    cover: WordCover | None = None

    def outward(self, candidate: Candidate) -> float:
        """Whether the text names the relations of a path in their order, away from its mention: -1 (reversed) to 1.

        As "the actors of films by x" does for a path from x to its films, and to their actors.  0 for one relation, and
        where a form has no mention or several.
        """
        if len(candidate.slots) != 1 or len(candidate.ways) < 2 or candidate.slots[0] >= len(self.slots):
            return 0.0
        positions, slot = self._positions, self.slots[candidate.slots[0]]
        distances = [abs(positions[relation] - slot) for relation in candidate.ways]
        return sum(math.tanh((then - before) / 2) for before, then in pairwise(distances)) / (len(distances) - 1)

    def worst(self, candidate: Candidate) -> float:
        """Likeness of the relation of a form that fits least; 0 where it has none."""
        return min((self._likeness[relation] for relation in candidate.ways), default=0.0)

    def mean(self, candidate: Candidate) -> float:
        """Mean likeness of the relations of a form; 0 where it has none."""
        return sum(self._likeness[relation] for relation in candidate.ways) / max(len(candidate.ways), 1)

    def better(self, candidate: Candidate) -> float:
        """How much likelier another relation of the graph is than the likest one of a form."""
        return self._top - max((self._likeness[relation] for relation in candidate.ways), default=self._top)

    def shared_pairs(self, candidate: Candidate) -> float:
        """Mean of `paired` over the relations of a form; 0 where it has none."""
        return sum(self._paired[relation] for relation in candidate.ways) / max(len(candidate.ways), 1)

    @cached_property
    def _likeness(self) -> list[float]:
        return self.likeness.tolist()

    @cached_property
    def _paired(self) -> list[float]:
        return self.paired.tolist()

    @cached_property
    def _positions(self) -> list[float]:
        return self.positions.tolist()

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
    """Candidates of a question, best first, with their scores and that of "this graph has no form".

    unread: by their place in `order`, what the likeliest leave of the question.
    """

    prepared: Prepared
    order: list[int]
    scores: list[float]
    none: float
    likeness: NDArray[np.float32]
    unread: Mapping[int, Unread] = field(default_factory=dict)

    @property
    def candidates(self) -> list[Candidate]:
        """The candidates, best first."""
        return [self.prepared.candidates[index] for index in self.order]


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
        self.qualifiers = Qualifiers(graph)
        self.phrases, self._own = Phrases(graph), OwnWords(graph)
        each = [self.phrases.wordings(directed) for directed in range(2 * graph.relations)]
        first = [texts[0] for texts in each]
        self.wordings = first + [text for texts in each for text in texts[1:]]
        """Wordings of the graph's directed relations: the first of each, then all others."""
        others = [directed for directed, texts in enumerate(each) for _ in texts[1:]]
        self._owners = np.array([*range(len(first)), *others], dtype=np.int64)
        self._pairs = [_pairs(text) for text in self.wordings]
        self._words = [stems(texts) for texts in each]
        self._wording_block: EncodedTexts | None = None
        self._unread = UnreadWords(graph, each, self.phrases.relation_words, scorer, learnt)
        self.maker = FormSearch(graph, hops, self.phrases.relation_words)
        self._word_index, self._agreement = WordIndex(graph, self._words), GrammarAgreement(graph)
        self._log_triples: list[float] = (np.log1p(graph.triples) / 15).tolist()
        self._relation_words = [stems([label]) - CONTENT_FREE for label in graph.labels]
        self._type_words = [stems([label]) - CONTENT_FREE for label in graph.type_labels]

    def clear(self) -> None:
        """Forgets what was encoded; to be called when the weights of the scorer have changed."""
        self.scorer.clear()
        self._wording_block = None

    def read(self, questions: Sequence[Question]) -> list[LabelQuery]:
        """What is read of questions: their slots, types and values."""
        topics = sorted({entity for question in questions for entity in question.topic_entities})
        keys, names = self.graph.store.entity_keys(topics), self.graph.store.surface_forms(topics)
        return [read_query(question, keys, names, self.graph, self._own) for question in questions]

    def readings(self, questions: Sequence[Question]) -> list[list[LabelQuery]]:
        """What may be read of each question: with all mentions first, then without some that may be plain words."""
        each = [[(question, 0.0, frozenset[str]()), *other_readings(question)] for question in questions]
        queries = iter(self.read([question for readings in each for question, _, _ in readings]))
        return [
            [replace(next(queries), dropped=rho, dropped_words=words) for _, rho, words in readings]
            for readings in each
        ]

    def best_readings(self, ranked: Sequence[Ranked], counts: Sequence[int]) -> list[Ranked]:
        """Of each question's readings, one after the other, that whose best form scores highest.

        counts: readings of each question.  A reading that takes mentions for plain words loses `DROPPED` times the
        confidence in these, and `UNEXPLAINED` times the share of these words that the form does not have.
        """
        readings = iter(ranked)
        return [max(islice(readings, count), key=self._reading_score) for count in counts]

    def _reading_score(self, ranked: Ranked) -> float:
        query = ranked.prepared.query
        if not ranked.scores:
            return -math.inf
        score = ranked.scores[0] - DROPPED * query.dropped
        if query.dropped_words:
            best = ranked.candidates[0]
            words = stems(labels_of(best.form, self.graph)).union(*(self._words[directed] for directed in best.ways))
            score -= UNEXPLAINED * len(query.dropped_words - words) / len(query.dropped_words)
        return score

    @torch.inference_mode()
    def prepare(
        self,
        queries: Sequence[tuple[str, LabelQuery]],
        most: int = SCORED,
        proposed: Sequence[Sequence[tuple[Candidate, str]]] | None = None,
    ) -> list[Prepared]:
        """Candidates of questions (id, query), the likest by their relations; `most` of each.

        proposed: of each question further candidates, each with the road that it came by.
        """
        network, results = self.scorer.network, []
        for start in range(0, len(queries), BLOCK):
            block = queries[start : start + BLOCK]
            encoded = self.scorer.questions([query.text for _, query in block])
            heads = [torch.log_softmax(head(encoded.pooled), -1).numpy() for head in network.heads]
            for index, (name, query) in enumerate(block):
                next_question()
                fit = self.relation_fit(query, encoded, index)
                guess = [head[index] for head in heads]
                cues = self.cues(query)
                made = self.maker.make(query, fit, guess[0].tolist())
                candidates = list(islice((one for one in made if meets(one, cues, query, self.phrases)), MADE))
                bases = (one for one in made if meets(one, replace(cues, kind=""), query, self.phrases))
                stating = self.qualifiers.make(query, bases)
                qualified = [one for one in stating if meets(one, cues, query, self.phrases)]
                stated = [one for one in qualified if any(map(has_value, nodes_of(one.form)))]
                if stated and (query.values or "according to" in query.text):  # which others leave unread
                    candidates = [one for one in candidates if any(map(has_value, nodes_of(one.form)))]
                turned = self._agreement.reversed(candidates, query, fit.cover) if fit.cover is not None else ()
                candidates = [one for place, one in enumerate(candidates) if place not in turned]
                features = self.features(query, candidates, guess, fit)
                kept = self._likeliest(features, most)
                candidates = [*(candidates[place] for place in kept), *qualified]
                known = {str(normalise(candidate.form)) for candidate in candidates} if proposed else set()
                for one, road in proposed[start + index] if proposed else ():
                    text = str(normalise(one.form))
                    if text not in known and meets(one, cues, query, self.phrases):
                        known.add(text)
                        one.road = road
                        candidates.append(one)
                more = self.features(query, candidates[len(kept) :], guess, fit)
                features = np.concatenate([features[kept], more])
                texts, nouns = self.texts(query, candidates), self.nouns(candidates)
                single = encoded.rows(torch.full((1,), index))
                results.append(Prepared(name, query, candidates, texts, nouns, features, single))
        return results

    def _likeliest(self, features: NDArray[np.float32], most: int) -> list[int]:
        """Places of the candidates that their features alone find likeliest, in their order."""
        if len(features) <= min(most, FEWEST):
            return list(range(len(features)))
        scores = self.scorer.network.quick(torch.from_numpy(features)).squeeze(-1).numpy()
        near = max(int((scores > scores.max() - UNLIKELY).sum()), FEWEST)
        return sorted(np.argsort(-scores, kind="stable")[: min(most, near)].tolist())

    def texts(self, query: LabelQuery, candidates: Sequence[Candidate]) -> list[str]:
        """The phrase of each candidate."""
        words = WORD.findall(query.text.lower())
        slots = {**by_key(query.slots), **self.phrases.said(words)}
        if part := IN_NAMES.search(query.text.lower()):
            named = {node.key for one in candidates for node in nodes_of(one.form) if isinstance(node, Entity)}
            slots = dict.fromkeys(named, f"{part['word']} in the name") | slots
        every = [node.text for one in candidates for node in nodes_of(one.form) if isinstance(node, Literal)]
        for text in {text for text in every if is_long(text)}:  # by those of its words that are asked for
            own = roots(text)
            slots[text] = " ".join(word for word in words if root(word) in own and word not in CONTENT_FREE)
        return [self.phrases.write(candidate.form, slots) for candidate in candidates]

    def nouns(self, candidates: Sequence[Candidate]) -> list[str]:
        """What each candidate finds, in a word or a few."""
        return [self.phrases.answer(candidate.form) for candidate in candidates]

    def cues(self, query: LabelQuery) -> Cues:
        """What the words of a question demand of its form."""
        return cues_of(query.text, bool(_YES_NO.search(query.text)))

    def unread(self, prepared: Prepared, best: Candidate) -> Unread:
        """Words of a question that a form leaves unread, in runs; a mention by the word of its slot."""
        query = prepared.query
        return self._unread.of(query, best, [*self.texts(query, [best]), *self.nouns([best])], prepared.encoded)

    def relation_fit(self, query: LabelQuery, encoded: EncodedTexts, index: int) -> RelationFit:
        """How the words of each directed relation fit one question of a batch."""
        if self._wording_block is None:
            self._wording_block = self.scorer.phrases(self.wordings)
        likeness = self.scorer.likeness(encoded, index, self._wording_block).double().numpy()
        ids = self.scorer.network.encoder.token_ids([query.text, *(slot.word for slot in query.slots)])
        inside = slice(1, len(ids[0]) - 1)  # without the marks of start and end
        directed = 2 * self.graph.relations
        like = torch.einsum(
            "wud,td,wu->wt",
            self._wording_block.tokens[:directed],
            encoded.tokens[index][inside],
            self._wording_block.weights[:directed],
        )
        numbers = torch.arange(1, len(ids[0]) - 1, dtype=like.dtype)
        positions = (like / SHARP).softmax(-1) @ numbers
        slots = tuple(float(ids[0].index(word[1])) if word[1] in ids[0] else float(len(ids[0])) for word in ids[1:])
        each, paired = 0.5 * likeness[:, 0] + likeness[:, 2], np.zeros(directed)
        if pairs := _pairs(query.text):
            shares = np.array([len(known & pairs) / len(known) if known else 0.0 for known in self._pairs])
            np.maximum.at(paired, self._owners, shares)
            each = np.where([bool(known) for known in self._pairs], PAIRED * shares, each)
        best = np.full(directed, -np.inf)
        np.maximum.at(best, self._owners, each)
        return RelationFit(
            best,
            paired,
            positions.double().numpy(),
            slots,
            WordCover(self._word_index, query, self._nearness(query.text, encoded, index)),
        )

    def _nearness(self, text: str, encoded: EncodedTexts, index: int) -> NDArray[np.float64]:
        """[2 * relations, words of the text]: likeness of a word to the nearest word of a relation's wordings."""
        block, pieces = self._wording_block, text.split()
        assert block is not None
        near = torch.einsum("wud,td->wut", block.tokens, encoded.tokens[index])
        best = near.masked_fill(~(block.weights > 0)[:, :, None], -1.0).amax(1).double().numpy()
        results = np.full((2 * self.graph.relations, len(pieces)), -1.0)
        at, columns = 1, []
        for ids in self.scorer.network.encoder.token_ids(pieces):
            own = best[:, at : at + len(ids) - 2]  # none of a word behind the tokens that the encoder reads
            columns.append(own.mean(1) if own.shape[1] else np.full(len(best), -1.0))
            at += len(ids) - 2
        np.maximum.at(results, self._owners, np.stack(columns, 1) if columns else np.zeros((len(best), 0)))
        return results

    @torch.inference_mode()
    def rank(self, prepared: Sequence[Prepared]) -> list[Ranked]:
        """The candidates of each question, best first."""
        network, results = self.scorer.network, []
        for number, one in enumerate(prepared):
            next_question()
            if number % BLOCK == 0:
                block = prepared[number : number + BLOCK]
                self.scorer.known([text for question in block for text in (*question.texts, *question.nouns)])
            if one.candidates:
                nouns = self.scorer.phrases(one.nouns)
                likeness = self.scorer.likeness(one.encoded, 0, self.scorer.phrases(one.texts), nouns)
                scores = network.score(likeness, torch.from_numpy(one.features))
                scores = scores + LEFT_OUT * torch.from_numpy(one.features[:, _UNUSED])
            else:
                likeness, scores = torch.zeros(0, LIKENESS), torch.zeros(0)
            values = scores.double().numpy()
            order = np.argsort(-values, kind="stable")[: READ if len(one.query.text) <= LONG else 1].tolist()
            first = [n for n in order if values[n] > values.max() - BEHIND]
            left = {n: self.unread(one, one.candidates[n]) for n in first}
            most = max((unread.loss for unread in left.values()), default=0.0)
            values = values - [left[n].loss if n in left else most for n in range(len(values))]
            order = np.argsort(-values, kind="stable").tolist()
            unread = {place: left[n] for place, n in enumerate(order) if n in left}
            first_read = bool(order) and order[0] in left and not left[order[0]].loss
            if first_read and self._may_be_empty(one.candidates[order[0]], one.query):
                values[order[0]] += READ_EMPTY
            known = none_features(torch.from_numpy(values), likeness, torch.from_numpy(one.features), one.query)
            none = float(network.none(known))
            results.append(Ranked(one, order, values[order].tolist(), none, likeness.numpy()[order], unread))
        return results

    def _may_be_empty(self, best: Candidate, query: LabelQuery) -> bool:
        """Whether a form finds nothing where it might: it narrows things of one kind that the question names, or that
        have to do with what it names, and does not intersect others."""
        form = best.form.of if isinstance(best.form, Count) else best.form
        if not best.finds_nothing or not isinstance(form, And):
            return False
        graph, kinds = self.graph, set[int]()
        for part in form.parts:
            match part:
                case Class(key=key):
                    kinds.add(graph.type_of_key.get(key, -1))
                case Join(path=(step, *_)) | Compare(path=(step, *_)):
                    kinds.add(graph.end_type(graph.inverse(graph.directed_relation(step))))
                case _:
                    return False
        named = kinds <= {index for index, _ in query.types} or any(isinstance(part, Join) for part in form.parts)
        return len(kinds) == 1 and named

    def parse(self, questions: Sequence[Question]) -> list[Ranked]:
        """The ranked candidates of questions."""
        readings = self.readings(questions)
        flat = [(q.id, query) for q, reading in zip(questions, readings, strict=True) for query in reading]
        return self.best_readings(self.rank(self.prepare(flat)), [len(own) for own in readings])

    # -- features ----------------------------------------------------------------------------------------------

    def features(
        self,
        query: LabelQuery,
        candidates: Sequence[Candidate],
        guess: Sequence[NDArray[np.float32]],
        fit: RelationFit,
        classes: Sequence[tuple[int, ...]] | None = None,
    ) -> NDArray[np.float32]:
        """What is known of candidates beside their texts [candidates, FEATURES].

        classes: `classes_of` each, where they are known.
        """
        words = [stem(word) for word in WORD.findall(query.text.lower())]
        content = {word for word in words if word not in CONTENT_FREE}
        wanted = {number for number, _ in query.types}
        yes_no = bool(_YES_NO.search(query.text))
        first = [
            self.graph.members(number)
            for number, _ in query.types
            if self.graph.type_labels[number] == self.graph.type_labels[query.types[0][0]]
        ]
        rhos = [max(rho for _, _, rho in slot.entities) for slot in query.slots]
        classes = classes if classes is not None else [classes_of(candidate) for candidate in candidates]
        relation_ids, type_of_key = self.graph.memory.relation_ids, self.graph.type_of_key
        table = []
        for one, numbers in zip(candidates, classes, strict=True):
            form = one.form
            inner = form.of if isinstance(form, Count) else form
            nodes = nodes_of(form)
            named = {type_of_key.get(node.key, -1) for node in nodes if isinstance(node, Class)}
            relations = {relation_ids[step.relation] for node in nodes for step in getattr(node, "path", ())}
            label_words = set[str]().union(
                *(self._relation_words[relation] for relation in relations),
                *(self._type_words[number] for number in named if number >= 0),
            )
            explained = content & label_words.union(*(self._words[directed] for directed in one.ways))
            literals = sum(map(has_value, nodes))
            nth = next((node.n for node in nodes if isinstance(node, Nth)), 1)
            one = self._without_blank(one)
            operation, best, order, length, turns = (
                max(log[number], -8) / 4 if number >= 0 else 0 for log, number in zip(guess, numbers, strict=True)
            )
            first_type, frequency = 0.0, 0.0
            if first and one.nodes is not None and len(one.nodes):
                first_type = 0.5 if any(inside(one.nodes[:20], members) for members in first) else -0.5
            if one.ways:
                logs = [self._log_triples[directed % self.graph.relations] for directed in one.ways]
                frequency = sum(logs) / len(logs)
            covered, left, rank_left, rank_added, usual, direction, end = (
                (*fit.cover.of(one), *self._agreement.of(one, query, fit.cover))
                if fit.cover is not None
                else (0.0,) * 7
            )
            table.append(
                CandidateFeatures(
                    operation=operation,
                    best=best,
                    order=order,
                    linked=math.log(max(one.rho, 1e-3)) / 4,
                    unused=-sum(rho for number, rho in enumerate(rhos) if number not in one.slots),
                    relations=len(one.ways) / 3,
                    empty=float(one.missing or (one.nodes is not None and not len(one.nodes))),
                    size=math.log1p(len(one.nodes)) / 8 if one.nodes is not None else 0,
                    other_ordinal=float((query.place or 1) != nth),
                    value_ignored=float(bool(query.values) and not literals),
                    has_value=float(literals > 0),
                    types_kept=len(wanted & set(one.types)) / 2,
                    types_lost=len(wanted - set(one.types)) / 2,
                    types_added=len(named - wanted) / 2,
                    yes_no=0.5 if yes_no == isinstance(one.value, bool) else -0.5,
                    first_type=first_type,
                    labels_read=len(label_words & content) / len(label_words) if label_words else 0,
                    explained=len(explained) / len(content) if content else 0,
                    frequency=frequency,
                    single=float(one.nodes is not None and len(one.nodes) == 1),
                    several_values=float(self._several_values(one)),
                    mentions=len(one.slots) / 3,
                    judges_or_counts_type=float(isinstance(one.value, bool) or isinstance(inner, Class)),
                    shared_pairs=fit.shared_pairs(one),
                    outward=fit.outward(one),
                    worst=fit.worst(one),
                    mean=fit.mean(one),
                    length=length,
                    turns=turns,
                    better=fit.better(one),
                    covered=covered,
                    left=left,
                    rank_left=rank_left,
                    rank_added=rank_added,
                    usual=usual,
                    direction=direction,
                    end=end,
                )
            )
        return np.array(table, dtype=np.float32).reshape(len(candidates), FEATURES)

    def _without_blank(self, one: Candidate) -> Candidate:
        """A candidate without the relations that only lead to what holds others, as in the city of an address."""
        said = tuple(w for w in one.ways if w >= self.graph.relations or not self.graph.to_blank[w])
        return replace(one, ways=said) if said and len(said) < len(one.ways) else one

    def _several_values(self, candidate: Candidate) -> bool:
        if candidate.nodes is None or len(candidate.nodes) < 2:
            return False
        return bool((self.graph.memory.dim[candidate.nodes[:5]] >= 0).all())


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
    return torch.tensor([[*row, *(float(features[best][column]) for column in _NONE_OF_BEST)]])


def classes_of(candidate: Candidate) -> tuple[int, ...]:
    """The class of a candidate by each head of the scorer; `NO_CLASS` where a head has none for it."""
    form = candidate.form
    best = best_of(form)
    ordered = isinstance(form, (Minus, Holds)) and len(candidate.slots) > 1
    lengths, returns = zip(*_path_shapes(form), strict=True)
    classes = (
        candidate.kind,
        NO_CLASS if best is None else BESTS.index(best),
        int(candidate.slots[0] > candidate.slots[1]) if ordered else NO_CLASS,
        min(max(lengths), LENGTHS - 1),
        int(any(returns)),
    )
    assert len(classes) == len(HEADS)
    return classes


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
    return {run[start : start + 2] for run in _UNSPACED.findall(text) for start in range(max(len(run) - 1, 1))}


def answer_nodes(candidate: Candidate, most: int | None = None) -> list[int]:
    """Nodes that the texts of an answer name."""
    if candidate.nodes is not None:
        return candidate.nodes[:most].tolist()
    return [node for row in candidate.table for node in (row.key, row.node) if node is not None]


def answers_of(candidate: Candidate, names: Mapping[int, str]) -> tuple[str, ...]:
    """The answer of a candidate as text: names, a number, `yes` or `no`.  names: of its nodes."""
    if candidate.value is not None:
        return (value_text(candidate.value),)
    if candidate.table:
        return tuple(row_texts(Result(rows=candidate.table), names))
    assert candidate.nodes is not None
    return tuple(dict.fromkeys(names[node] for node in candidate.nodes.tolist())) or (NONE,)
