"""Relation paths of one graph as those of another: a file of pairs, and pairs learnt from training questions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.errors import InputError
from kgqa_core.kg.bridges import canonical
from kgqa_core.kg.sql import registered
from kgqa_core.kg.store import KgStore
from kgqa_core.metrics.retrieval import invert
from kgqa_core.types import INVERSE

LEAST_SUPPORT, LEAST_F1 = 2, 0.5
"""A path is learnt when it joins topic and answer of so many training questions, and its results have that F1 to the
answers in the graph, as a mean over the questions with the foreign path whose ends are in the graph."""

JOIN = "|"
"""Between the relations of a path, in files of paths."""

RelationPath = tuple[str, ...]


def bridged_path(path: RelationPath, paths: Mapping[RelationPath, RelationPath]) -> RelationPath | None:
    """The path of the other graph: that of the whole path, else those of its relations; None where one has none."""
    if path in paths:
        return paths[path]
    results: list[str] = []
    for relation in path:
        forward = relation.removeprefix(INVERSE)
        own = paths.get((relation,)) or paths.get((forward,))
        if own is None:
            return None
        turned = relation != forward and (relation,) not in paths
        results += [invert(one) for one in reversed(own)] if turned else own
    return tuple(results)


def read_paths(path: Path) -> dict[RelationPath, RelationPath]:
    """Foreign path → path here, from lines `a|b<TAB>P1|<inv>-P2`.  Raises InputError naming the line."""
    results: dict[RelationPath, RelationPath] = {}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise InputError(f"{path} cannot be read ({fault}); give a file of pairs of paths") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) < 2 or not cells[0] or not cells[1]:
            raise InputError(
                f"{path} line {number}: {line[:80]!r} is no pair of paths; write people.person.spouse_s<TAB>P26, the "
                f"relations of a path joined by {JOIN}"
            )
        results[tuple(cells[0].split(JOIN))] = tuple(cells[1].split(JOIN))
    return results


def write_paths(path: Path, paths: Mapping[RelationPath, RelationPath]) -> None:
    """Writes a map of paths, which `read_paths` reads."""
    lines = [f"{JOIN.join(foreign)}\t{JOIN.join(own)}\n" for foreign, own in sorted(paths.items())]
    path.write_text("".join(lines), encoding="utf-8")


def learn_paths(
    rows: Iterable[RawQuestion], ids: Mapping[str, Sequence[str]], store: KgStore
) -> tuple[dict[RelationPath, RelationPath], dict[str, int]]:
    """Paths of the graph that join topics and answers of training questions, by the foreign path of the questions.

    One relation, forward or back, or two forward.  Of those that reach LEAST_SUPPORT and LEAST_F1 the one with the best
    F1; of equals the shorter, then the smaller one.  Also counts: foreign paths, those of questions with ends in the
    graph, those learnt.
    """
    ends: list[tuple[int, str, str]] = []
    questions: dict[RelationPath, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        if not row["relation_paths"]:
            continue
        questions[tuple(row["relation_paths"][0])].append(number)
        topics = {key for topic in row["topic_entities"] for key in ids.get(canonical(topic), ())}
        answers = {key for answer in row["answers"] for key in ids.get(canonical(answer), ())}
        ends += [(number, topic, answer) for topic in sorted(topics) for answer in sorted(answers)]
    inside, joined = _joined(ends, store)
    learnt: dict[RelationPath, RelationPath] = {}
    with_ends = 0
    for foreign, numbers in questions.items():
        here = [number for number in numbers if number in inside]
        with_ends += bool(here)
        support = Counter(path for number in here for path in joined[number])
        scores = {
            path: sum(joined[number].get(path, 0.0) for number in here) / len(here)
            for path, count in support.items()
            if count >= LEAST_SUPPORT
        }
        best = min(scores, key=lambda path: (-scores[path], len(path), path), default=None)
        if best is not None and scores[best] >= LEAST_F1:
            learnt[foreign] = best
    return learnt, {"foreign_paths": len(questions), "with_ends_in_the_graph": with_ends, "learnt": len(learnt)}


def _joined(
    ends: Sequence[tuple[int, str, str]], store: KgStore
) -> tuple[set[int], dict[int, dict[RelationPath, float]]]:
    """Questions whose ends are in the graph, and of each the paths that join its ends, with their F1."""
    columns = [[end[index] for end in ends] for index in range(3)]
    names = ("question", "topic", "answer")
    types = (pa.int64(), pa.large_string(), pa.large_string())
    table = pa.table({name: pa.array(column, kind) for name, column, kind in zip(names, columns, types, strict=True)})
    connection = store.connection
    with registered(connection, bridge_ends=table):
        known = connection.execute(_KNOWN).to_arrow_table()
    scores: dict[int, dict[RelationPath, float]] = defaultdict(dict)
    with registered(connection, bridge_known=known):
        for sql in _PATHS:
            for question, path, right, results, gold in connection.execute(sql).fetchall():
                score = 2 * right / (results + gold)
                scores[question][tuple(path)] = max(score, scores[question].get(tuple(path), 0.0))
    return set(known["question"].to_pylist()), scores


_KNOWN = """
    SELECT DISTINCT b.question, t.id AS topic, a.id AS answer FROM bridge_ends b
    JOIN entities t ON t.key = b.topic JOIN entities a ON a.key = b.answer
    WHERE t.kind = 'entity' AND a.kind = 'entity'"""

_GOLD = "(SELECT count(DISTINCT g.answer) FROM bridge_known g WHERE g.question = c.question)"

_ONE_HOP = """
    SELECT c.question, [{inverse}r.key], c.found,
           (SELECT count(DISTINCT y.{end}) FROM triples y WHERE y.{begin} = c.topic AND y.relation = c.relation), {gold}
    FROM (SELECT k.question, k.topic, x.relation, count(DISTINCT k.answer) AS found FROM bridge_known k
          JOIN triples x ON x.{begin} = k.topic AND x.{end} = k.answer GROUP BY ALL) c
    JOIN relations r ON r.id = c.relation"""

_TWO_HOPS = """
    SELECT c.question, [r.key, s.key], c.found,
           (SELECT count(DISTINCT z.tail) FROM triples w JOIN triples z ON z.head = w.tail
            WHERE w.head = c.topic AND w.relation = c.first AND z.relation = c.second), {gold}
    FROM (SELECT k.question, k.topic, x.relation AS first, y.relation AS second, count(DISTINCT k.answer) AS found
          FROM bridge_known k JOIN triples x ON x.head = k.topic JOIN triples y ON y.head = x.tail AND y.tail = k.answer
          GROUP BY ALL) c
    JOIN relations r ON r.id = c.first JOIN relations s ON s.id = c.second"""

_PATHS = (
    _ONE_HOP.format(begin="head", end="tail", inverse="", gold=_GOLD),
    _ONE_HOP.format(begin="tail", end="head", inverse=f"'{INVERSE}' || ", gold=_GOLD),
    _TWO_HOPS.format(gold=_GOLD),
)
"""Question, path, answers that it finds, its results, and gold answers in the graph."""
