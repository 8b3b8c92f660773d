"""Entities by name: labels and aliases that match a text, the best and most connected first."""

from __future__ import annotations

from typing import Any

from kgqa_core.errors import InputError
from kgqa_core.kg.names import NAME_SQL
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import tell_apart

LEVELS = ("exact", "same but for case and accents", "begins so", "all words in it", "nearly")


def search(store: KgStore, text: str, *, limit: int = 20) -> list[dict[str, Any]]:
    """At most `limit` entities whose label, alias or key matches, `[{id, key, name, matched, how, popularity, …}]`.

    Ranked by how (LEVELS, in that order), labels before aliases, then popularity, then id.  `nearly` (spelling, at
    most one letter in five wrong) is tried only where nothing else matches.
    """
    wanted = text.strip()
    if not wanted:
        return []
    rows = with_words(store, wanted, limit) or _nearly(store, wanted, limit)
    names = tell_apart(store, store.names([row[0] for row in rows]))
    keys = store.entity_keys([row[0] for row in rows])
    return [
        {
            "id": i,
            "key": keys[i],
            "name": names[i],
            "matched": form,
            "how": LEVELS[level],
            "popularity": popularity,
            "description": store.description(i) or "",
        }
        for i, form, level, popularity in rows
    ]


def resolve_all(store: KgStore, text: str) -> list[int]:
    """Every id that a key, label, alias or foreign id means.  Raises InputError with the nearest name when none."""
    result = store.resolve([text, text.strip()])
    ids = result[text] or result[text.strip()]
    if not ids:
        near = store.suggest(text)
        hint = f"did you mean {near!r}?" if near else "give a key, label or alias as it is written in the graph"
        raise InputError(
            f"{text!r} is not in graph {store.meta.get('name', '')!r} ({store.counts()['entities']:,} entities); {hint}"
        )
    return ids


def resolve_one(store: KgStore, text: str) -> int:
    """The id that a key, label or alias means; the most connected one where it means several.

    Raises InputError with the nearest name when it means nothing.
    """
    ids = resolve_all(store, text)
    marks = ", ".join("?" * len(ids))
    row = store.connection.execute(
        f"SELECT id FROM entities WHERE id IN ({marks}) ORDER BY popularity DESC, id LIMIT 1", ids
    ).fetchone()
    return int(row[0]) if row else ids[0]


_FORMS = f"""
    SELECT id, label AS form, 0 AS kind FROM labels WHERE label IS NOT NULL
    UNION ALL SELECT id, alias, 1 FROM aliases
    UNION ALL SELECT id, key, 0 FROM entities WHERE kind = 'entity'
    UNION ALL SELECT id, {NAME_SQL.format(key="key")}, 0 FROM entities
              WHERE kind = 'entity' AND id NOT IN (SELECT id FROM labels WHERE label IS NOT NULL)"""


def with_words(store: KgStore, wanted: str, limit: int) -> list[tuple[Any, ...]]:
    """(id, name, level, popularity) of the entities with a name that holds every word of a text; best level first."""
    words = " AND ".join(f"contains(folded, strip_accents(lower(${n})))" for n in range(3, 3 + len(wanted.split())))
    return store.connection.execute(
        f"""
        WITH forms AS ({_FORMS}),
        folded AS (SELECT id, form, kind, strip_accents(lower(form)) AS folded FROM forms),
        found AS (
          SELECT id, form, kind,
                 CASE WHEN form = $1 THEN 0 WHEN folded = strip_accents(lower($1)) THEN 1
                      WHEN starts_with(folded, strip_accents(lower($1))) THEN 2
                      ELSE 3 END AS level
          FROM folded WHERE {words}),
        best AS (SELECT id, arg_min(form, (level, kind, length(form), form)) AS form, min(level) AS level,
                        min(10 * level + kind) AS step FROM found GROUP BY id)
        SELECT b.id, b.form, b.level, e.popularity FROM best b JOIN entities e USING (id)
        ORDER BY b.step, e.popularity DESC, b.id LIMIT $2""",
        [wanted, limit, *wanted.split()],
    ).fetchall()


def _nearly(store: KgStore, wanted: str, limit: int) -> list[tuple[Any, ...]]:
    return store.connection.execute(
        f"""
        WITH forms AS ({_FORMS}),
        found AS (
          SELECT id, form, damerau_levenshtein(strip_accents(lower(form)), strip_accents(lower($1))) AS wrong FROM forms
          WHERE abs(length(form) - length($1)) <= length($1) / 5.0
            AND jaro_winkler_similarity(lower(form), lower($1)) > 0.8),
        best AS (SELECT id, arg_min(form, (wrong, form)) AS form, min(wrong) AS wrong FROM found
                 WHERE wrong <= ceil(length($1) / 5.0) GROUP BY id)
        SELECT b.id, b.form, 4, e.popularity FROM best b JOIN entities e USING (id)
        ORDER BY b.wrong, e.popularity DESC, b.id LIMIT $2""",
        [wanted, limit],
    ).fetchall()
