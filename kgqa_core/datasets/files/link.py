"""Raw questions become `Question` records: keys and labels are looked up in the graph, in bulk.

Rules.  A topic or answer is looked up as key, then as label, then as alias; a label of several entities stands for all
of them and is counted as ambiguous.  A question is unlinkable when none of its topics is in the graph, or when its
answers are entities and none of them is; parts that are missing are counted and the rest is used.  Answers that are
numbers, dates or texts need not be in the graph; they are linked where a literal (or else an entity) has exactly that
key, except for counts, whose number in the graph would mean something else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.kg.names import bare_key
from kgqa_core.kg.store import KgStore
from kgqa_core.types import INVERSE, Question

HINTS = 20
"""Names of the graph nearest to a missing one are looked for so often, for a search reads every label."""

NUMBER = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?([eE][+-]?\d+)?")
DATE = re.compile(r"[+-]?\d{4,}-\d{2}(-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2})?)?)?")


@dataclass(frozen=True, slots=True)
class LinkedQuestions:
    """Linked questions in the order given, and how often something could not be linked as it was written."""

    questions: list[Question]
    counts: dict[str, int]


def link(
    rows: Sequence[RawQuestion],
    store: KgStore,
    *,
    language: str = "en",
    source: str = "",
    gold: bool = True,
    match_names: bool = False,
) -> LinkedQuestions:
    """Looks up topics, answers and relation paths of canonical raw questions (`jsonl.canonical`).

    Without `gold`, a question without answers is no fault.  match_names: ids that the graph lacks are looked up by the
    names that the file gives them.  counts: topics_missing, answers_missing, ambiguous_topics, ambiguous_answers,
    paths_unknown, n_unlinkable, and matched_by_name where names are looked up.
    """
    resolved = store.resolve(sorted({text for row in rows for text in (*row["topic_entities"], *row["answers"])}))
    by_name = _by_name(rows, resolved, store) if match_names else {}
    resolved |= by_name
    values = _exact(store, sorted({text for row in rows if _is_value(row) for text in row["answers"]}))
    keys = _keys(
        store,
        {entity for ids in resolved.values() for entity in ids}
        | {e for forms in values.values() for ids in forms.values() for e in ids},
    )
    kinds = {entity: kind for entity, (_, kind) in keys.items()}
    answers = {row["id"]: _answers(row, resolved, values, kinds) for row in rows}
    names = store.surface_forms(sorted({entity for _, ids in answers.values() for group in ids for entity in group}))
    relations = set(store.relation_keys())
    counts: Counter[str] = Counter(matched_by_name=len(by_name)) if match_names else Counter()
    hints: dict[str, str] = {}

    def hint(text: str) -> str:
        if text not in hints:
            near = store.suggest(text) if len(hints) < HINTS else None
            hints[text] = f" (did you mean '{near}'?)" if near else ""
        return hints[text]

    questions = []
    for row in rows:
        topics, missing = _lookup(row["topic_entities"], resolved)
        answer_type, groups = answers[row["id"]]
        lost = [text for text, ids in zip(row["answers"], groups, strict=True) if not ids]
        reason = None
        if not topics:
            reason = (
                f"topic entity '{missing[0]}' is not in the graph{hint(missing[0])}" if missing else "no topic entity"
            )
        elif gold and not row["answers"]:
            reason = "no gold answer is given"
        elif gold and answer_type == "entities" and len(lost) == len(groups):
            reason = f"answer '{lost[0]}' is not in the graph{hint(lost[0])}"
        paths = [path for path in row["relation_paths"] if all(key.removeprefix(INVERSE) in relations for key in path)]
        counts["topics_missing"] += len(missing)
        counts["answers_missing"] += len(lost) if answer_type == "entities" else 0
        counts["ambiguous_topics"] += any(len(resolved.get(text, ())) > 1 for text in row["topic_entities"])
        counts["ambiguous_answers"] += any(len(ids) > 1 for ids in groups)
        counts["paths_unknown"] += len(row["relation_paths"]) - len(paths)
        counts["n_unlinkable"] += reason is not None
        questions.append(
            Question(
                id=row["id"],
                text=row["question"],
                split=row["split"] or "test",
                language=row["language"] or language,
                topic_keys=tuple(row["topic_entities"]),
                topic_entities=tuple(topics),
                answer_type=answer_type,
                answer_keys=tuple(row["answers"]),
                answers=tuple(sorted({entity for ids in groups for entity in ids})),
                answer_names=tuple(
                    _names(text, ids, aliases, names, keys)
                    for text, ids, aliases in zip(row["answers"], groups, row["answer_aliases"], strict=True)
                ),
                relation_paths=tuple(tuple(path) for path in paths),
                s_expression=row["s_expression"],
                complexity=row["complexity"],
                hops=row["hops"] if row["hops"] is not None else (len(paths[0]) if paths else None),
                source=source,
                unlinkable=reason,
                level=row["level"],
                dialogue=tuple((role, text) for role, text in row["dialogue"]),
                reference=row["reference"],
                gold_triples=tuple((head, relation, tail) for head, relation, tail in row["gold_triples"]),
                sparql=row.get("sparql"),
                generalization=row.get("generalization"),
            )
        )
    return LinkedQuestions(questions, dict(counts))


def _by_name(rows: Sequence[RawQuestion], resolved: Mapping[str, list[int]], store: KgStore) -> dict[str, list[int]]:
    """Entities of the topics and answers that have none by their id, by the first of their names that the graph has."""
    names: dict[str, dict[str, None]] = {}
    for row in rows:
        named = [*zip(row["answers"], row["answer_aliases"], strict=True)]
        named += [(topic, [name]) for topic, name in row.get("topic_names", {}).items()]
        for text, own in named:
            if not resolved[text]:
                names.setdefault(text, {}).update(dict.fromkeys(own))
    known = store.resolve(sorted({name for own in names.values() for name in own}))
    found = {text: next((known[name] for name in own if known[name]), []) for text, own in names.items()}
    return {text: entities for text, entities in found.items() if entities}


def _is_value(row: Mapping[str, Any]) -> bool:
    return row["answer_type"] in ("number", "date", "text") and row["complexity"] != "count"


def _answers(
    row: Mapping[str, Any],
    resolved: Mapping[str, list[int]],
    values: Mapping[str, Mapping[str, list[int]]],
    kinds: Mapping[int, str],
) -> tuple[str, list[list[int]]]:
    """The answer type and the entities of each answer."""
    texts = row["answers"]
    if row["answer_type"] is None:
        answer_type, entities = _inferred(row, resolved, kinds)
        return answer_type, [resolved.get(text, []) if entities else [] for text in texts]
    if row["answer_type"] == "entities":
        return "entities", [resolved.get(text, []) for text in texts]
    if _is_value(row):
        return row["answer_type"], [_of_form(values.get(text, {}), row["answer_type"]) for text in texts]
    return row["answer_type"], [[] for _ in texts]


def _of_form(forms: Mapping[str, list[int]], form: str) -> list[int]:
    return forms.get(form) or sorted(entity for ids in forms.values() for entity in ids)


def _inferred(row: Mapping[str, Any], resolved: Mapping[str, list[int]], kinds: Mapping[int, str]) -> tuple[str, bool]:
    """(answer type, whether the answers are in the graph) of a question whose file does not say.

    What the graph knows as an entity is one; `yes` and `no` are truth values unless they are; then form decides.
    """
    texts = row["answers"]
    linked = [entity for text in texts for entity in resolved.get(text, [])]
    truths = len(texts) == 1 and texts[0].casefold() in ("yes", "no")
    if truths and (not linked or row["complexity"] == "yes/no"):
        return "yes/no", False
    if row["complexity"] == "count" and all(NUMBER.fullmatch(text) for text in texts):
        return "number", False
    if any(kinds[entity] == "entity" for entity in linked):
        return "entities", True
    form = "entities"
    if texts and all(NUMBER.fullmatch(text) for text in texts):
        form = "number"
    elif texts and all(DATE.fullmatch(text) for text in texts):
        form = "date"
    elif linked:
        form = "text"
    return form, bool(linked)


def _lookup(texts: Iterable[str], resolved: Mapping[str, list[int]]) -> tuple[list[int], list[str]]:
    """Entities of all texts, each once and in order, and the texts that have none."""
    entities: dict[int, None] = {}
    missing = []
    for text in texts:
        ids = resolved.get(text, [])
        entities.update(dict.fromkeys(ids))
        if not ids:
            missing.append(text)
    return list(entities), missing


def _names(
    text: str,
    ids: Sequence[int],
    aliases: Sequence[str],
    names: Mapping[int, list[str]],
    keys: Mapping[int, tuple[str, str]],
) -> tuple[str, ...]:
    """Name and aliases of one answer: those of the graph, the text of the file if it was no key, its aliases."""
    forms = [form for entity in ids for form in names.get(entity, [])]
    bare = bare_key(text)
    if bare not in (keys[entity][0] for entity in ids):
        forms.append(text)
    return tuple(dict.fromkeys([*forms, *aliases])) or (text,)


def _exact(store: KgStore, texts: Sequence[str]) -> dict[str, dict[str, list[int]]]:
    """Text → form (number, date, text) → literals whose key is exactly the text, or else the entity of that key.

    The form keeps a calling code `93` apart from a population of 93.
    """
    if not texts:
        return {}
    rows = store.connection.execute(
        "SELECT key, id, CASE WHEN kind = 'entity' THEN 'entity' WHEN precision IS NOT NULL THEN 'date' "
        "WHEN number IS NOT NULL THEN 'number' ELSE 'text' END FROM entities "
        "WHERE key IN (SELECT unnest(?::VARCHAR[])) ORDER BY id",
        [list(texts)],
    ).fetchall()
    results: dict[str, dict[str, list[int]]] = {}
    for key, entity, form in rows:
        results.setdefault(key, {}).setdefault(form, []).append(entity)
    for forms in results.values():
        if len(forms) > 1:
            forms.pop("entity", None)
    return results


def _keys(store: KgStore, ids: Iterable[int]) -> dict[int, tuple[str, str]]:
    """(key, kind) of each entity."""
    rows = store.connection.execute(
        "SELECT id, key, kind FROM entities WHERE id IN (SELECT unnest(?::BIGINT[]))", [sorted(ids)]
    ).fetchall()
    return {entity: (key, kind) for entity, key, kind in rows}
