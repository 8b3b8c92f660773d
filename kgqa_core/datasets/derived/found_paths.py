"""Relation paths of questions that come with topics and answers only: those that lead to exactly the answers.

A topic that leads nowhere is often one that was linked wrongly, which is why the answer had to be corrected; then the
entities that the words of the question name are tried.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kgqa_core.kg.store import KgStore
from kgqa_core.types import INVERSE, Question

PAIRS = 64
"""Pairs of relations between a topic and an answer that are followed at most."""
ENDS = 10_000
"""Ends of a path that are read at most."""

LONGEST = 6
"""Words of a name that is looked for in a text at most."""
NAMED = 20
"""Entities named in a text that are tried at most."""

_WORD = re.compile(r"[^\s?!.,;:\"“”]+?(?=['’]s?\b|[\s?!.,;:\"“”]|$)")
_NAMED = """
SELECT id, lower(name) FROM (
    SELECT id, label AS name FROM labels UNION ALL SELECT id, alias FROM aliases
    UNION ALL SELECT id, key FROM entities WHERE kind = 'entity'
) WHERE lower(name) IN (SELECT unnest($1::VARCHAR[]))
"""
_EDGES = """
(SELECT head AS start, relation, false AS back, tail AS finish FROM triples WHERE {head}
 UNION ALL SELECT tail, relation, true, head FROM triples WHERE {tail})
"""

Step = tuple[int, bool]
"""A relation, and whether it is followed against its direction."""


def with_found_paths(questions: Sequence[Question], store: KgStore) -> list[Question]:
    """The questions; one without path and form gets the shortest path that leads from a topic to its answers alone.

    Where none does from its own topics, it is about the first entity named in its text from which one does; those with
    the longest names come first.
    """
    keys = store.relation_keys()
    results, known = [], {}
    for question in questions:
        if question.relation_paths or question.s_expression is not None:
            results.append(question)
            continue
        same = (question.text, question.topic_entities, question.answers)  # of copies that are to count more
        if same not in known:
            known[same] = _topic_and_path(question, store)
        topic, path = known[same]
        if topic is not None:
            key = store.entity_keys([topic])[topic]
            question = replace(question, topic_entities=(topic,), topic_keys=(key,), unlinkable=None)
        if path is not None:
            named = tuple((INVERSE if back else "") + keys[relation] for relation, back in path)
            question = replace(question, relation_paths=(named,), hops=len(named))
        results.append(question)
    return results


def _topic_and_path(question: Question, store: KgStore) -> tuple[int | None, tuple[Step, ...] | None]:
    """The path to the answers of a question, None without one; with the entity it leaves where that is no topic."""
    path = path_to(store, question.topic_entities, question.answers)
    if path is None and question.answers:
        for entity in named_in(store, question.text):
            if (other := path_to(store, [entity], question.answers)) is not None:
                return entity, other
    return None, path


def named_in(store: KgStore, text: str) -> list[int]:
    """Entities whose key, label or alias stands in a text, whatever its case; the longest names first, then by id."""
    words = _WORD.findall(text.lower())
    names = {
        " ".join(words[start:end])
        for start in range(len(words))
        for end in range(start + 1, min(start + LONGEST, len(words)) + 1)
    }
    rows = store.connection.execute(_NAMED, [sorted(names)]).fetchall()
    longest: dict[int, int] = {}
    for entity, name in rows:
        longest[entity] = max(longest.get(entity, 0), len(name))
    return sorted(longest, key=lambda entity: (-longest[entity], entity))[:NAMED]


def path_to(store: KgStore, topics: Sequence[int], answers: Sequence[int]) -> tuple[Step, ...] | None:
    """A path of one relation or two from a topic whose ends, without the topic, are exactly the answers; else None.

    Of several the one with the fewest relations, then with the smallest ids.  Edges of hubs: of the pairs of relations
    that lead to the first answer, `PAIRS` are followed.
    """
    wanted = set(answers)
    if not wanted:
        return None
    for topic in topics:
        for path in (*_single(store, topic, min(wanted)), *_double(store, topic, min(wanted))):
            if _ends(store, topic, path) - {topic} == wanted:
                return path
    return None


def _single(store: KgStore, topic: int, answer: int) -> list[tuple[Step, ...]]:
    sql = f"SELECT DISTINCT relation, back FROM {_edges('$1')} WHERE finish = $2 ORDER BY ALL"
    rows = store.connection.execute(sql, [topic, answer]).fetchall()
    return [((relation, back),) for relation, back in rows]


def _double(store: KgStore, topic: int, answer: int) -> list[tuple[Step, ...]]:
    sql = f"""
        SELECT DISTINCT a.relation, a.back, b.relation, NOT b.back FROM {_edges("$1")} a JOIN {_edges("$2")} b
        ON a.finish = b.finish WHERE a.finish NOT IN ($1, $2) ORDER BY ALL LIMIT {PAIRS}
    """
    rows = store.connection.execute(sql, [topic, answer]).fetchall()
    return [((first, back), (second, other)) for first, back, second, other in rows]


def _ends(store: KgStore, topic: int, path: Sequence[Step]) -> set[int]:
    ends = {topic}
    for relation, back in path:
        near, far = ("tail", "head") if back else ("head", "tail")
        rows = store.connection.execute(
            f"SELECT DISTINCT {far} FROM triples WHERE relation = $1 AND {near} IN (SELECT unnest($2::INTEGER[])) "
            f"LIMIT {ENDS}",
            [relation, sorted(ends)],
        ).fetchall()
        ends = {row[0] for row in rows}
    return ends


def _edges(start: str) -> str:
    return _EDGES.format(head=f"head = {start}", tail=f"tail = {start}")
