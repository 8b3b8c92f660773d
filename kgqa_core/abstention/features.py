"""Features that separate questions that the graph answers from those that it does not.

Where nothing is left of the best path, retrievers fall back on weaker ones: their scores drop, they no longer agree,
the model, which reads facts that do not hold the answer, is less sure.  NaN is "not there" throughout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kgqa_core.abstention.evidence import Evidence
from kgqa_core.abstention.wording_similarity import NAMES as WORDING
from kgqa_core.kg.store import KgStore
from kgqa_core.metrics.normalise import tokens
from kgqa_core.types import Retrieved

NOTHING = 1e-6
"""Score of what was not found, so that its logarithm is a number."""

NAMED_ENTITIES = 10
"""Best entities whose names are looked for in the model's output."""

LINKS = ("topics", "rho_least", "rho_best", "popularity")
RETRIEVED = ("best", "margin", "mass", "width", "facts", "strongest", "cut", "hop")
"""Of each retriever: logarithm of the best entity's score, its margin over the second, the sum of all scores, how many
have half the best score, number of facts, logarithm of the best fact's score, edges not followed, weight of the main
hop."""
PATHS = ("path_best", "path_lost", "path_dead", "path_topics", "path_common", "path_meets")
"""Of the predicted relation paths: logarithm of the best one's probability, how far the best that leads anywhere is
behind it, and the share of the probability that lies on better paths, which lead nowhere; of those chains of triples
that ground the best: share of the topics that any begins at, share that lead to one entity, and whether one ends at a
topic."""
AGREEMENT = ("shared", "same_best")
MODEL = ("declined", "likely", "likely_all", "length", "verdict", "number", "heard_any")
VERDICTS = frozenset({"yes", "no", "true", "false", "是", "否", "不是"})


def feature_names(retrievers: Sequence[str], groups: Sequence[str]) -> tuple[str, ...]:
    """Names of the features, in order.  retrievers: sorted names.  groups: of `AbstentionOptions.features`."""
    names: list[str] = []
    if "links" in groups:
        names += LINKS
    if "facts" in groups:
        names += [f"{name}_{feature}" for name in retrievers for feature in RETRIEVED]
        names += PATHS if "hop_path" in retrievers else ()
        names += AGREEMENT if len(retrievers) > 1 else ()
    if "model" in groups:
        names += [*MODEL, *(f"heard_{name}" for name in retrievers)]
    if "wording" in groups:
        names += WORDING
    return tuple(names)


def findings(names: Sequence[str]) -> list[int]:
    """Places of the features that also count as differences from their usual values: all but links and wording."""
    return [index for index, name in enumerate(names) if name not in {*LINKS, *WORDING}]


def features(
    evidence: Sequence[Evidence],
    wording: NDArray[np.float64],
    retrievers: Sequence[str],
    groups: Sequence[str],
    store: KgStore,
) -> NDArray[np.float64]:
    """[n, features] of questions.  wording: [n, 4] of `QuestionWordings.features`."""
    names = feature_names(retrievers, groups)
    forms = _forms(evidence, store) if "model" in groups else {}
    degrees = _popularity(evidence, store) if "links" in groups else {}
    triples = _triples(evidence, store) if "facts" in groups else {}
    rows = np.full((len(evidence), len(names)), math.nan)
    for index, (item, similarity) in enumerate(zip(evidence, wording, strict=True)):
        values = _links(item, degrees) | dict(zip(WORDING, similarity.tolist(), strict=True))
        for name in retrievers:
            retrieved = item.retrieved.get(name)
            if retrieved is not None:
                values |= {f"{name}_{feature}": value for feature, value in _retrieved(retrieved).items()}
        values |= _paths(item) | _chains(item, triples) | _agreement(item, retrievers) | _model(item, retrievers, forms)
        rows[index] = [values.get(name, math.nan) for name in names]
    return rows


def _links(evidence: Evidence, degrees: Mapping[int, float]) -> dict[str, float]:
    topics, rho = evidence.question.topic_entities, evidence.question.topic_weights
    if not topics:
        return {"topics": 0.0, "rho_least": 0.0, "rho_best": 0.0}
    sure = rho or (1.0,)
    least = math.log1p(min(degrees.get(topic, 0.0) for topic in topics))
    return {"topics": float(len(topics)), "rho_least": min(sure), "rho_best": max(sure), "popularity": least}


def _retrieved(retrieved: Retrieved) -> dict[str, float]:
    scores = [score for _, score in retrieved.entities]
    best, second = (scores[0] if scores else 0.0), (scores[1] if len(scores) > 1 else 0.0)
    return {
        "best": math.log(best + NOTHING),
        "margin": best - second,
        "mass": math.log(sum(scores) + NOTHING),
        "width": math.log1p(sum(score >= best / 2 > 0 for score in scores)),
        "facts": math.log1p(len(retrieved.facts)),
        "strongest": math.log(max((fact.score for fact in retrieved.facts), default=0.0) + NOTHING),
        "cut": math.log1p(retrieved.truncated),
        "hop": max(retrieved.hop_attention, default=0.0),
    }


def _paths(evidence: Evidence) -> dict[str, float]:
    retrieved = evidence.retrieved.get("hop_path")
    if retrieved is None or not evidence.paths:
        return {}
    best = evidence.paths[0][1]
    alive = max((score for _, score in retrieved.entities), default=0.0)
    dead = sum(score for _, score in evidence.paths if score > alive + NOTHING)
    return {
        "path_best": math.log(best + NOTHING),
        "path_lost": max(0.0, math.log(best + NOTHING) - math.log(alive + NOTHING)),
        "path_dead": dead / sum(score for _, score in evidence.paths),
    }


def _chains(evidence: Evidence, triples: Mapping[int, tuple[int, int, int]]) -> dict[str, float]:
    """Of the chains of the best path that the path retriever grounded."""
    retrieved, topics = evidence.retrieved.get("hop_path"), set(evidence.question.topic_entities)
    if retrieved is None or not topics:
        return {}
    best = max((fact.score for fact in retrieved.facts), default=0.0)
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for fact in sorted(retrieved.facts, key=lambda fact: (fact.path, fact.hop)):
        if fact.score >= best - NOTHING and fact.triple in triples:
            head, _, tail = triples[fact.triple]
            begin, end = (head, tail) if fact.direction > 0 else (tail, head)
            starts.setdefault(fact.path, begin)
            ends[fact.path] = end
    begun: dict[int, set[int]] = {}
    for path, end in ends.items():
        begun.setdefault(end, set()).add(starts[path])
    return {
        "path_topics": len(topics & set(starts.values())) / len(topics),
        "path_common": max((len(topics & own) for own in begun.values()), default=0) / len(topics),
        "path_meets": float(bool(topics & begun.keys())),
    }


def _agreement(evidence: Evidence, retrievers: Sequence[str]) -> dict[str, float]:
    """Of the first two retrievers: overlap of their best entities, and whether the best is among the other's best."""
    pair = [evidence.retrieved[name] for name in retrievers if name in evidence.retrieved][:2]
    if len(pair) < 2:
        return {}
    tops = [_top(retrieved) for retrieved in pair]
    if not all(tops):
        return {"shared": 0.0, "same_best": 0.0}
    shared = len(tops[0] & tops[1]) / min(map(len, tops))
    firsts = [retrieved.entities[0][0] for retrieved in pair]
    return {"shared": shared, "same_best": float(firsts[0] in tops[1] or firsts[1] in tops[0])}


def _top(retrieved: Retrieved) -> set[int]:
    """Entities with nearly the best score."""
    return {entity for entity, score in retrieved.entities if score >= 0.99 * retrieved.entities[0][1] > 0}


def _model(
    evidence: Evidence, retrievers: Sequence[str], forms: Mapping[int, Sequence[tuple[str, ...]]]
) -> dict[str, float]:
    model_answer = evidence.model_answer
    if model_answer is None:
        return {}
    words = tokens(model_answer.output)
    values: dict[str, float] = {
        "declined": float(model_answer.declined),
        "length": float(len(words)),
        "verdict": float(" ".join(words) in VERDICTS),
        "number": float(bool(words) and all(word.replace(".", "").isdigit() for word in words)),
    }
    if model_answer.log_probability is not None and model_answer.tokens:
        values |= {
            "likely": model_answer.log_probability / model_answer.tokens,
            "likely_all": model_answer.log_probability,
        }
    padded = f" {' '.join(words)} "
    for name in retrievers:
        if name in evidence.retrieved:
            ranked = evidence.retrieved[name].entities[:NAMED_ENTITIES]
            values[f"heard_{name}"] = max(
                (score for entity, score in ranked if _is_in(padded, forms.get(entity, ()))), default=0.0
            )
    values["heard_any"] = float(any(values.get(f"heard_{name}", 0.0) > 0 for name in retrievers))
    return values


def _is_in(padded: str, forms: Sequence[tuple[str, ...]]) -> bool:
    return any(form and f" {' '.join(form)} " in padded for form in forms)


def _forms(evidence: Sequence[Evidence], store: KgStore) -> dict[int, list[tuple[str, ...]]]:
    """Normalised names of the best entities of all questions."""
    wanted = {
        entity
        for item in evidence
        for retrieved in item.retrieved.values()
        for entity, _ in retrieved.entities[:NAMED_ENTITIES]
    }
    return {entity: [tokens(form) for form in forms] for entity, forms in store.surface_forms(sorted(wanted)).items()}


def _triples(evidence: Sequence[Evidence], store: KgStore) -> dict[int, tuple[int, int, int]]:
    """Triples of the chains that the path retriever found."""
    retrieved = [item.retrieved["hop_path"] for item in evidence if "hop_path" in item.retrieved]
    wanted = {fact.triple for result in retrieved for fact in result.facts}
    return store.triples(wanted) if wanted else {}


def _popularity(evidence: Sequence[Evidence], store: KgStore) -> dict[int, float]:
    """Facts of each topic."""
    wanted = sorted({entity for item in evidence for entity in item.question.topic_entities})
    if not wanted:
        return {}
    sql = "SELECT id, popularity FROM entities WHERE id IN (SELECT unnest($1::BIGINT[]))"
    return {entity: float(count or 0) for entity, count in store.connection.execute(sql, [wanted]).fetchall()}
