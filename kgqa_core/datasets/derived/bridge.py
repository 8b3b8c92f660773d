"""Questions over one graph as questions over another: Freebase's ids become Wikidata's, by P646.

A topic or answer survives when its id is that of an item.  A relation path survives when the map of paths has it: pairs
that a user wrote, P1628 (equivalent property) of Wikidata, or pairs that are learnt from training questions.  A
question survives with one topic and one answer, or with every answer; the others are rejects with their reason.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kgqa_core.config import KgOptions
from kgqa_core.datasets.derived.bridge_paths import RelationPath, bridged_path
from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.kg.bridges import canonical, read_map
from kgqa_core.kg.ingest.sources import find_sources
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.subset.read import DumpFile, literal_pairs
from kgqa_core.kg.vocabulary import FREEBASE

EQUIVALENT_PROPERTY = "P1628"
_EQUIVALENT = """
    SELECT h.key, t.key FROM triples x JOIN relations r ON r.id = x.relation JOIN entities h ON h.id = x.head
    JOIN entities t ON t.id = x.tail WHERE r.key = ? ORDER BY ALL"""

_ID = re.compile(r"[mg]\.[0-9a-z_]+")


@dataclass(frozen=True)
class Bridge:
    """ids: foreign id → keys.  paths: foreign relation path → path here."""

    ids: Mapping[str, Sequence[str]]
    paths: Mapping[RelationPath, RelationPath]


@dataclass(frozen=True)
class BridgedQuestions:
    """rows: questions that survive, as raw questions.  rejects: the others, with the reason.  counts: of everything."""

    rows: list[dict[str, Any]]
    rejects: list[dict[str, Any]]
    counts: dict[str, Any]


def ids_of_graph(names: Sequence[str]) -> Bridge:
    """Freebase's ids and the paths of P1628 in a graph folder or dump files.  Raises KgInputError, ArtifactError."""
    if len(names) == 1 and Path(names[0]).is_dir():
        with KgStore.open(Path(names[0])) as store:
            pairs = store.connection.execute(
                "SELECT b.value, e.key FROM bridges b JOIN entities e ON e.id = b.entity ORDER BY ALL"
            ).fetchall()
            equivalent = store.connection.execute(_EQUIVALENT, [EQUIVALENT_PROPERTY]).fetchall()
    else:
        pairs, equivalent, options = [], [], KgOptions()
        for source in find_sources(names):
            for relation, key, value in literal_pairs(
                DumpFile(source, options), (*options.bridges, EQUIVALENT_PROPERTY)
            ):
                if relation == EQUIVALENT_PROPERTY:
                    equivalent.append((key, value))
                else:
                    pairs.append((canonical(value), key))
    ids: dict[str, list[str]] = defaultdict(list)
    for value, key in sorted(set(pairs)):
        ids[value].append(key)
    iris = [(key, value.removeprefix(FREEBASE)) for key, value in sorted(equivalent) if value.startswith(FREEBASE)]
    paths: dict[RelationPath, RelationPath] = {(relation,): (key,) for key, relation in iris}
    return Bridge(ids, paths)


def ids_of_file(path: Path) -> dict[str, list[str]]:
    """Foreign id → keys, of a file of pairs (`kg.bridges.read_map`)."""
    return {value: [key] for value, key in read_map(path).items()}


def bridge(rows: Sequence[RawQuestion], given: Bridge, *, answers: Literal["any", "all"] = "any") -> BridgedQuestions:
    """The questions with the keys of the other graph.

    answers: whether a question needs one or every one of its gold answers.  Answers that are no ids (numbers, dates)
    stay as they are.  Forms and queries are left out, which name the foreign graph's relations.
    """
    kept, rejects = [], []
    topics, gold = _Seen(given.ids), _Seen(given.ids)
    paths: dict[RelationPath, bool] = {}
    relations: dict[str, bool] = {}
    counts: Counter[str] = Counter()
    for row in rows:
        own_topics = topics.bridged(row["topic_entities"])
        aliases = dict(zip(row["answers"], row["answer_aliases"], strict=True))
        own_answers = gold.bridged(row["answers"])
        own_paths = []
        for path in map(tuple, row["relation_paths"]):
            own = bridged_path(path, given.paths)
            paths[path] = own is not None
            for relation in path:
                relations[relation] = relations.get(relation, False) or own is not None
            own_paths += [list(own)] if own is not None else []
        lost = [one for one in row["answers"] if not own_answers[one]]
        reason = _reason(row, own_topics, lost, answers)
        counts["with_path"] += bool(row["relation_paths"])
        if reason is not None:
            rejects.append({"id": row["id"], "question": row["question"], "split": row["split"], **reason})
            continue
        counts["questions_with_every_answer"] += bool(row["answers"]) and not lost
        counts["questions_with_path"] += bool(own_paths)
        counts["answers_lost_of_questions"] += len(lost)
        kept.append(_row(row, own_topics, own_answers, aliases, own_paths))
    return BridgedQuestions(
        kept,
        rejects,
        {
            "questions": len(rows),
            "questions_surviving": len(kept),
            **{name: counts[name] for name in ("questions_with_every_answer", "answers_lost_of_questions", "with_path",
                                               "questions_with_path")},
            "rejected_by_reason": dict(sorted(Counter(one["reason"] for one in rejects).items())),
            "topics": topics.counts(),
            "answers": gold.counts(),
            "relations": {"all": len(relations), "surviving": sum(relations.values())},
            "paths": {"all": len(paths), "surviving": sum(paths.values())},
            "by_split": {
                str(split): {"all": number, "surviving": sum(row.get("split") == split for row in kept)}
                for split, number in sorted(Counter(row["split"] for row in rows).items(), key=str)
            },
        },
    )  # fmt: skip


class _Seen:
    """Ids that were looked up, each once, and whether they are ids of the other graph."""

    def __init__(self, ids: Mapping[str, Sequence[str]]) -> None:
        self._ids = ids
        self._found: dict[str, tuple[str, ...]] = {}

    def bridged(self, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The keys of each; one that is no id stands for itself."""
        results: dict[str, tuple[str, ...]] = {}
        for key in keys:
            own = canonical(key)
            if not _ID.fullmatch(own):
                results[key] = (key,)
                continue
            results[key] = self._found[own] = tuple(self._ids.get(own, ()))
        return results

    def counts(self) -> dict[str, int]:
        """Ids, those that survive, and those of several keys."""
        return {
            "all": len(self._found),
            "surviving": sum(map(bool, self._found.values())),
            "of_several_items": sum(len(keys) > 1 for keys in self._found.values()),
        }


def _reason(
    row: RawQuestion, topics: Mapping[str, Sequence[str]], lost: Sequence[str], answers: str
) -> dict[str, Any] | None:
    """Why a question does not survive; None where it does."""
    if not any(topics.values()):
        return {"reason": "no topic survives" if topics else "it has no topic", "ids": list(topics)[:20]}
    if row["answers"] and len(lost) == len(row["answers"]):
        return {"reason": "no answer survives", "ids": list(lost)[:20]}
    if not row["answers"]:
        return {"reason": "it has no answer", "ids": []}
    if lost and answers == "all":
        return {"reason": "an answer does not survive", "ids": list(lost)[:20]}
    return None


def _row(
    row: RawQuestion,
    topics: Mapping[str, Sequence[str]],
    answers: Mapping[str, Sequence[str]],
    aliases: Mapping[str, Sequence[str]],
    paths: list[list[str]],
) -> dict[str, Any]:
    """A question of ours, as a question file has it."""
    names: dict[str, list[str]] = {}
    for answer, keys in answers.items():
        for key in keys:
            names.setdefault(key, []).extend(aliases[answer])
    results: dict[str, Any] = {
        "id": row["id"],
        "question": row["question"],
        "topic_entities": list(dict.fromkeys(key for keys in topics.values() for key in keys)),
        "answers": list(names),
        "answer_aliases": {key: list(dict.fromkeys(own)) for key, own in names.items() if own},
    }
    if paths:
        results["relation_path"] = paths if len(paths) > 1 else paths[0]
        results["hops"] = max(map(len, paths))
    results |= {name: row[name] for name in ("answer_type", "split", "complexity", "language", "level") if row[name]}
    return results
