"""The vocabulary: one word for one thing, used with this meaning everywhere.

entity            a node of the graph; literals are entities of another kind
relation          a directed edge label; its inverse is written with the prefix `<inv>-`
triple            (head, relation, tail), the head being never a literal
topic entity      an entity that a question is about and retrieval starts from
hop               one step along a relation
relation path     relations followed one after the other, `("capital_of", "<inv>-located_in")`
reasoning path    triples that ground a relation path
DKG               the differentiable knowledge graph: the graph as sparse maps (Cohen et al. 2020)
fact              a triple that was retrieved for a question, with hop, direction and score
triple-form text  facts written as `(head, relation, tail), …`
free-form text    facts written as sentences
answer type       entities, number, yes/no, date or text
experiment        `retriever/format/answerer`, for example `rigel/triples/builtin`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

INVERSE = "<inv>-"
"""Prefix of an inverse relation's key and label (Sen et al. 2023, section 3.1)."""

SPLITS = ("train", "dev", "test")
SPLITS_COLLECTED = ("dev", "test")
"""Splits that are retrieved for; training questions, the most by far, only where `retrieval.training` says so."""

GENERALIZATION = ("iid", "compositional", "zero-shot")
"""How new to a system trained on its train split what a question of GrailQA needs is (Gu et al. 2021): all was seen
together, all was seen, or something was not."""

LEVELS = ("I", "II", "III", "IV")
"""How well known an entity is by its page views, best first (Huang et al. 2024)."""

ROLES = ("user", "agent")
"""Who speaks in a dialogue."""

ANSWER_TYPES = ("entities", "number", "yes/no", "date", "text")

Linked = tuple[str, list[tuple[int, float]]]
"""The text of a mention and its candidates as (entity, ρ), best first."""

COMPLEXITY_TYPES = (
    "generic",
    "multi-hop",
    "intersection",
    "difference",
    "count",
    "comparative",
    "superlative",
    "ordinal",
    "yes/no",
)
"""Mintaka's complexity types (Sen et al. 2022), in the order of the report's Table 2."""


ENTITY, RELATION, FACT = "entity not found", "no such relation", "no fact"
REASONS = (ENTITY, RELATION, FACT)
"""Why a graph does not hold an answer: it does not have the entity of the question; things of its kind have no relation
like that of the question; or they have, and this one has no fact of it."""
TYPE = "no such type"
"""The answerer `auto` says besides that there are no things of the kind that a question asks for."""
Declined = Literal["not in this graph", "not understood", "not sure"]
ABSENT: Declined = "not in this graph"
UNREAD: Declined = "not understood"
UNSURE: Declined = "not sure"
"""The three kinds of a decline: what is asked for is missing, for one of the reasons above; words of the question were
not read; or there is an answer whose confidence is too low.  The last two are reasons themselves."""
OTHER_LANGUAGE = "the question: it seems to be in {}, and this system reads English."
"""What is not understood of a question in another language, where no words of that are read."""


def is_sentence(missing: str | None) -> bool:
    """Whether what is not understood is said as it stands, and does not list words of the question."""
    return missing is None or missing.endswith("?") or missing.startswith("the question: ")


ROADS = ("labels", "retriever", "parser")
"""What proposes a form to the answerer `auto`: labels of the graph, paths of a retriever, forms of a trained parser."""


@dataclass(frozen=True, slots=True)
class NameSuggestion:
    """Words of a question that were not read, what of the graph they may mean, and the line of a names file for it."""

    words: str
    name: str
    line: str


OFFERED = 3
"""Readings of a question that a decline offers at most."""


@dataclass(frozen=True, slots=True)
class OfferedReading:
    """One way to read a question.

    words: what it asks for; answers: the first names of what that finds, and rows how many there are; confidence: that
    it is right, None where that was not learnt; form: as text.
    """

    words: str
    answers: tuple[str, ...]
    rows: int
    confidence: float | None
    form: str


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its gold answers, linked to a graph.

    topic_entities and answers are entity ids of the graph; the keys are what the question file has, whether or
    not they were found.  answer_names[i] holds the name and aliases of answer_keys[i].
    `unlinkable` says why the question cannot be answered from the graph (it stays in every denominator), or is None.
    topic_weights[i]: confidence in topic_entities[i], in [0, 1]; empty where all are certain.
    level: how well known its entity is, I (best) to IV.  dialogue: earlier turns as (`user` or `agent`, text), oldest
    first; `text` is the last query.  reference: the response to compare with.  gold_triples: keys of head, relation
    and tail of each triple that the reference cites.
    topic_mentions[i]: number of the mention in the text that topic_entities[i] is a candidate of; empty where each
    topic has its own.  sparql: the query that the data set gives.  generalization: one of GENERALIZATION.
    """

    id: str
    text: str
    split: str = "test"
    language: str = "en"
    topic_keys: tuple[str, ...] = ()
    topic_entities: tuple[int, ...] = ()
    answer_type: str = "entities"
    answer_keys: tuple[str, ...] = ()
    answers: tuple[int, ...] = ()
    answer_names: tuple[tuple[str, ...], ...] = ()
    relation_paths: tuple[tuple[str, ...], ...] = ()
    s_expression: str | None = None
    complexity: str | None = None
    hops: int | None = None
    source: str = ""
    unlinkable: str | None = None
    topic_weights: tuple[float, ...] = ()
    level: str | None = None
    dialogue: tuple[tuple[str, str], ...] = ()
    reference: str | None = None
    gold_triples: tuple[tuple[str, str, str], ...] = ()
    topic_mentions: tuple[int, ...] = ()
    sparql: str | None = None
    generalization: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A triple retrieved for a question.

    triple: id in the graph.  direction: +1 as stored, -1 followed against its direction.
    score: weight of the triple in its hop, in [0, 1].  rank: 0 is the best.
    path: number of the reasoning path that it belongs to, where the retriever has paths, else -1.
    """

    rank: int
    score: float
    hop: int
    triple: int
    direction: int
    path: int = -1


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a retriever found for one question: facts in rank order and ranked entities.

    entities: (entity id, score), best first, ties by id.  truncated: edges not followed for want of budget.
    hop_attention: weight of each hop, summing to 1, or empty where the retriever has none.
    paths: (relation keys, probability) of the relation paths that it predicts, best first.
    pairs: (topic entity, directed relation, score) of the pairs that it ranks, best first.
    """

    question: str
    facts: tuple[Fact, ...] = ()
    entities: tuple[tuple[int, float], ...] = ()
    truncated: int = 0
    hop_attention: tuple[float, ...] = ()
    paths: tuple[tuple[tuple[str, ...], float], ...] = ()
    pairs: tuple[tuple[int, int, float], ...] = ()
