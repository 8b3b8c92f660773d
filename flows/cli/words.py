"""`kgqa kg words`: a file of one's own words for a graph, to be filled in."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import yaml

from kgqa_core.config import OwnNames
from kgqa_core.kg.ingest.own_names import META
from kgqa_core.kg.store import KgStore

MOST_TYPES, MOST_VALUES, LONGEST_VALUE, LONGEST_NOTE = 1000, 30, 40, 100
"""Of what is listed: types, values of one relation, and characters of a value and of a comment."""
_TEXT = f"e.kind = 'literal' AND number IS NULL AND time IS NULL AND strlen(e.key) <= {LONGEST_VALUE}"


def words_of_graph(store: KgStore) -> str:
    """A file of names to be filled in: the relations, types and values of a graph, with the names they were given."""
    own, run = OwnNames.model_validate(store.meta.get(META, {})), store.connection.execute
    joined, keys, labels = (
        "FROM triples t JOIN entities e ON e.id = t.tail",
        store.relation_keys(),
        store.relation_names(),
    )
    relations = run(
        f"SELECT relation, count(*), min(t.id), count(DISTINCT tail) FILTER ({_TEXT}) {joined} GROUP BY 1 ORDER BY 1"
    ).fetchall()
    shown = store.triples(first for _, _, first, _ in relations)
    names = store.names({end for head, _, tail in shown.values() for end in (head, tail)})
    types = run("SELECT type, count(*) FROM types GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT $1", [MOST_TYPES]).fetchall()
    type_names, type_keys = store.names(i for i, _ in types), store.entity_keys(i for i, _ in types)
    few = [relation for relation, count, _, different in relations if 0 < different <= min(MOST_VALUES, count / 2)]
    values = run(
        f"SELECT e.key, min(relation), count(*) {joined} WHERE {_TEXT} AND relation IN (SELECT unnest($1::INTEGER[])) "
        "GROUP BY 1 ORDER BY 2, 3 DESC, 1", [few],
    ).fetchall()  # fmt: skip
    about = {
        "relations": {
            keys[i]: f"{labels[i]}: {count:,} facts, as {names[shown[first][0]]} → {names[shown[first][2]]}"
            for i, count, first, _ in relations
        },
        "types": {type_keys[i]: f"{type_names[i]}: {count:,} things" for i, count in types},
        "values": {key: f"{labels[relation]}: {count:,} facts" for key, relation, count in values},
    }
    lines = ["# In brackets other names, as in [boss, head of]; under hide keys of what is to be left out."]
    for section in ("relations", "types", "values", "entities"):
        given: Mapping[str, tuple[str, ...]] = getattr(own, section)
        lines.append(f"{section}:")
        for key, note in {**dict.fromkeys(given, ""), **about.get(section, {})}.items():
            entry = textwrap.indent(_yaml({key: [*given.get(key, ())]}), "  ")
            lines.append(f"{entry}  # {' '.join(note.split())[:LONGEST_NOTE]}" if note else entry)
    return "\n".join([*lines, _yaml({"hide": [*own.hide]}), ""])


def _yaml(value: Mapping[str, list[str]]) -> str:
    return str(yaml.safe_dump(dict(value), allow_unicode=True, width=1 << 20, default_flow_style=None)).strip()
