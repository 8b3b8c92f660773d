"""Questions as Rigel reads them: where each starts, its token ids, and how an epoch samples several sets.

A walk starts at the question's topics, or at the candidates of its mentions, weighted by the tagger's confidence ρ.  A
question has one leg, which begins at all of its topics, unless topics are followed apart to intersect what they lead
to: then it has a leg for each mention, which begins at the candidates of that mention.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from kgqa_core.config import RigelOptions
from kgqa_core.datasets.derived.splits import same_text
from kgqa_core.datasets.files.masking import mask_mentions, mask_topic
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.dkg import sets
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.errors import TrainingError, nearest
from kgqa_core.nn.encoders import Reader
from kgqa_core.retrieval.linked_candidates import with_linked_candidates
from kgqa_core.types import Question

OTHER = "another"
"""What a leg reads in place of the mentions that it does not begin at."""
FEATURES = 2
"""Of a candidate beside ρ: its share of its mention's popularity, and its popularity."""


@dataclass(frozen=True)
class Starts:
    """The legs of some questions.

    ptr: int64 [questions + 1], legs of each question.  sets: entities of each leg, weighted by ρ.
    features: float [n, 2], of each of their entities.  topics: all topics of each question.
    words: token ids of an entity's description, by id; empty where nothing reads them.
    """

    ptr: Tensor
    sets: EntityWeights
    features: Tensor
    topics: EntityWeights
    words: Mapping[int, list[int]] = field(default_factory=dict)

    def take(self, numbers: Tensor) -> tuple[Starts, Tensor]:
        """Those of some questions, and the legs that are theirs.  numbers: int64 [m]."""
        ptr, legs = sets.indices_of(self.ptr, numbers)
        _, indices = sets.indices_of(self.sets.ptr, legs)
        columns = self.sets.take(legs), self.features[indices], self.topics.take(numbers)
        return Starts(ptr, *columns, self.words), legs


def mentions_of(question: Question) -> list[list[int]]:
    """Indices in `topic_entities` of the candidates of each mention, in order of the first.

    Where one key means several entities nothing tells them apart, and all count as candidates of one mention.
    """
    indices = range(len(question.topic_entities))
    if question.topic_mentions:
        groups: dict[int, list[int]] = {}
        for index in indices:
            groups.setdefault(question.topic_mentions[index], []).append(index)
        return list(groups.values())
    if len(question.topic_keys) == len(question.topic_entities):
        by_entity = {question.topic_entities[index]: [index] for index in reversed(indices)}
        return sorted(by_entity.values())
    return [list(indices)] if question.topic_entities else []


def legs_of(question: Question, apart: bool) -> list[list[list[int]]]:
    """The mentions that each leg begins at: all in one leg, or each in its own where legs go apart."""
    mentions = mentions_of(question)
    return [[mention] for mention in mentions] if apart and len(mentions) > 1 else [mentions]


def leg_texts(question: Question, apart: bool, token: str | None, names: Mapping[int, Sequence[str]]) -> list[str]:
    """What is read for each leg: its own mentions replaced by `token`, those of other legs by OTHER.

    Without a token mentions stay, and there is one leg.
    """
    mentions = mentions_of(question)
    if token is None or (not question.topic_mentions and (not apart or len(mentions) < 2)):
        return [mask_topic(question, token, names)]
    if not apart or len(mentions) < 2:
        return [mask_mentions(question, mentions, [token] * len(mentions), names)]
    return [
        mask_mentions(question, mentions, [token if other is mention else OTHER for other in mentions], names)
        for mention in mentions
    ]


def make_starts(questions: Sequence[Question], dkg: Dkg, apart: bool, words: Mapping[int, list[int]]) -> Starts:
    """The legs of questions.  apart: a leg for each mention."""
    counts: list[int] = []
    rows: list[dict[int, tuple[float, float, float]]] = []
    degree = _degrees(questions, dkg)
    for question in questions:
        weights = question.topic_weights or (1.0,) * len(question.topic_entities)
        legs = legs_of(question, apart)
        counts.append(len(legs))
        for mentions in legs:
            row: dict[int, tuple[float, float, float]] = {}
            for indices in mentions:
                known = [1 + degree[question.topic_entities[index]] for index in indices]
                for index, popularity in zip(indices, known, strict=True):
                    entity = question.topic_entities[index]
                    facts = (weights[index], popularity / sum(known), math.log(popularity) / 10)
                    row[entity] = max(row.get(entity, facts), facts)
            rows.append(dict(sorted(row.items())))
    ptr = torch.zeros(len(counts) + 1, dtype=torch.int64)
    ptr[1:] = torch.tensor(counts, dtype=torch.int64).cumsum(0)
    start_sets = EntityWeights.from_rows([{entity: facts[0] for entity, facts in row.items()} for row in rows])
    features = torch.tensor([facts[1:] for row in rows for facts in row.values()]).reshape(-1, FEATURES)
    topics = EntityWeights.one_hot([question.topic_entities for question in questions])
    return Starts(ptr, start_sets, features, topics, words)


def _degrees(questions: Sequence[Question], dkg: Dkg) -> dict[int, int]:
    entities = sorted({entity for question in questions for entity in question.topic_entities})
    start, stop = dkg.row_bounds(entities)
    return dict(zip(entities, (stop - start).tolist(), strict=True))


def entity_descriptions(kg: Path | None, questions: Sequence[Question]) -> dict[int, str]:
    """Types and description of the topic entities, in words; empty without a graph store."""
    if kg is None:
        return {}
    from kgqa_core.kg.store import KgStore

    entities = sorted({entity for question in questions for entity in question.topic_entities})
    with KgStore.open(kg) as store:
        rows = store.connection.execute(
            "SELECT entity, type FROM types WHERE entity IN (SELECT unnest(?::INTEGER[])) ORDER BY entity, type",
            [entities],
        ).fetchall()
        types: dict[int, list[int]] = {}
        for entity, kind in rows:
            types.setdefault(entity, []).append(kind)
        names = store.names(sorted({kind for kinds in types.values() for kind in kinds}))
        descriptions = dict(
            store.connection.execute(
                f"SELECT id, arg_min(description, ({store._language_rank('lang', None)}, lang)) FROM labels "
                "WHERE description IS NOT NULL AND id IN (SELECT unnest(?::INTEGER[])) GROUP BY id",
                [entities],
            ).fetchall()
        )
        texts = {
            entity: f"{', '.join(names[kind] for kind in types.get(entity, ()))}: {descriptions.get(entity, '')}"
            for entity in entities
        }
    return {entity: text.strip(" :") for entity, text in texts.items() if text.strip(" :")}


WeightedPath = tuple[int, tuple[int, ...], float]
"""Number of a question's leg, relation ids of a path from it, and the path's weight."""


@dataclass(frozen=True)
class EncodedQuestions:
    """Questions ready for training: text[i] points into rows (token ids of distinct texts).

    starts: their legs, where they are more than topics that are all certain; leg_text: of each leg, into rows.
    paths: relation paths that a language model's right answers speak for, (leg, relation ids, weight) by question.
    """

    rows: list[list[int]]
    text: Tensor
    topics: list[tuple[int, ...]]
    answers: list[tuple[int, ...]]
    starts: Starts | None = None
    leg_text: Tensor | None = None
    paths: Mapping[int, list[WeightedPath]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.topics)


def usable(questions: Sequence[Question], split: str) -> tuple[list[Question], list[str]]:
    """Questions of a split that can be trained on or measured, and the ids of those that cannot."""
    of_split = [question for question in questions if question.split == split]
    fit = [question for question in of_split if question.topic_entities and question.answers]
    return fit, [question.id for question in of_split if not (question.topic_entities and question.answers)]


def prepare(
    questions: Sequence[Question],
    reader: Reader,
    names: dict[int, list[str]],
    graph: Dkg | None = None,
    apart: bool = False,
    texts: Mapping[int, str] | None = None,
) -> tuple[EncodedQuestions, list[str]]:
    """Questions as token ids and entity ids, and what is read of each of their legs.

    apart: a leg for each mention.  texts: descriptions of candidates, where a part of the network reads them;
    graph: the graph that they lie in, which questions with more than certain topics need.
    """
    legs = [leg_texts(question, apart, reader.topic_token, names) for question in questions]
    every = [text for texts_of_legs in legs for text in texts_of_legs]
    distinct = sorted(set(every))
    index_of = {text: index for index, text in enumerate(distinct)}
    starts = leg_text = None
    if apart or texts is not None or any(question.topic_weights for question in questions):
        assert graph is not None
        known = sorted(texts.items()) if texts else []
        words = dict(zip([entity for entity, _ in known], reader.read([text for _, text in known]), strict=True))
        starts = make_starts(questions, graph, apart, words)
        leg_text = torch.tensor([index_of[text] for text in every], dtype=torch.int64)
    prepared = EncodedQuestions(
        reader.read(distinct) if distinct else [],
        torch.tensor([index_of[texts_of_leg[0]] for texts_of_leg in legs], dtype=torch.int64),
        [question.topic_entities for question in questions],
        [question.answers for question in questions],
        starts,
        leg_text,
    )
    return prepared, every


@dataclass(frozen=True)
class QuestionSet:
    """What a question set teaches.  weight: how often an epoch has each training question.

    left_out, dev_left_out: ids of questions without a topic or an answer in the graph.  leaked: number of training
    questions that another set keeps for dev or test.  held_out: all dev and test questions.
    """

    name: str
    learn: list[Question]
    develop: list[Question]
    weight: float
    left_out: list[str]
    dev_left_out: list[str]
    leaked: int
    held_out: list[Question]


def read_sets(questions: Path, more: Mapping[str, Path], options: RigelOptions) -> list[QuestionSet]:
    """The question sets, the main one first, under the name that its questions give as their source.

    A training question whose text is a dev or test question of another set is left out.
    Raises TrainingError when nothing is left to learn from, or when `options.mix` names a set that is not there or
    gives one a weight below 0.
    """
    everything = {"": _read(questions, options)} | {name: _read(folder, options) for name, folder in more.items()}
    main = next((own.source for own in everything[""] if own.source), "") or "questions"
    if main in more:
        main = f"{main} (main)"
    everything = {name or main: own for name, own in everything.items()}
    if low := sorted(name for name, weight in options.mix.items() if not 0 <= weight < math.inf):
        raise TrainingError(f"rigel.mix gives {low[0]!r} the weight {options.mix[low[0]]}; it must be 0 or more")
    if unknown := sorted(set(options.mix) - set(everything)):
        raise TrainingError(
            f"rigel.mix names {unknown[0]!r}{nearest(unknown[0], everything)}; the question sets are "
            f"{', '.join(everything)}"
        )
    hidden = {
        name: {same_text(own) for own in set_questions if own.split != "train"}
        for name, set_questions in everything.items()
    }
    parts: list[QuestionSet] = []
    for name, set_questions in everything.items():
        learn, left_out = usable(set_questions, "train")
        develop, dev_left_out = usable(set_questions, "dev")
        others = set().union(*(texts for other, texts in hidden.items() if other != name))
        learnable = [question for question in learn if same_text(question) not in others]
        held_out = [question for question in set_questions if question.split != "train"]
        parts.append(
            QuestionSet(
                name,
                learnable,
                develop,
                options.mix.get(name, 1.0),
                left_out,
                dev_left_out,
                len(learn) - len(learnable),
                held_out,
            )
        )
    if not any(own.learn and own.weight > 0 for own in parts):
        raise TrainingError(
            f"none of the {sum(len(own.left_out) for own in parts)} training questions has both a topic entity and an "
            "answer in this graph; check that topic_entities and answers are keys or labels of it"
        )
    return parts


def _read(folder: Path, options: RigelOptions) -> list[Question]:
    questions = read_questions(folder)
    return with_linked_candidates(questions, folder, options.candidates) if options.soft_start else questions


def epoch_size(sizes: Sequence[int], weights: Sequence[float]) -> int:
    """Number of questions of an epoch."""
    return sum(_often(size, weight) for size, weight in zip(sizes, weights, strict=True))


def sample_epoch(sizes: Sequence[int], weights: Sequence[float], seed: int, epoch: int) -> Tensor | None:
    """Numbers of the questions of an epoch, counted through all sets; None where it has each once.

    With a weight of 2.3 every question is in it twice, and a random three tenths of them once more, others in every
    epoch.
    """
    if all(weight == 1 for weight in weights):
        return None
    generator = torch.Generator().manual_seed(seed * 1_000_003 + 500_009 + epoch)
    parts: list[Tensor] = []
    first = 0
    for size, weight in zip(sizes, weights, strict=True):
        whole = int(weight)
        some = torch.randperm(size, generator=generator)[: _often(size, weight) - whole * size]
        parts += [torch.arange(size).repeat(whole) + first, some.sort().values + first]
        first += size
    return torch.cat(parts)


def _often(size: int, weight: float) -> int:
    return int(weight) * size + round((weight - int(weight)) * size)
