"""What a graph is made of, counted in SQL: the numbers one looks at before trusting an import."""

from __future__ import annotations

import json
from typing import Any

from kgqa_core.kg.sql import number
from kgqa_core.kg.store import READING, KgStore


def statistics(store: KgStore, *, top: int = 15) -> dict[str, Any]:
    """Counts, degrees, the `top` largest relations and types, label coverage, literal kinds, filters and rejects.

    degrees: entities (without literals) by power of two of their degree, `[{from, to, entities}]`, and quantiles.
    coverage: share of entities with a label, by language.  Every share is in [0, 1].
    """
    run = store.connection.execute
    entities = number(store.connection, "SELECT count(*) FROM entities WHERE kind = 'entity'")
    languages = run(
        "SELECT l.lang, count(DISTINCT l.id) AS n FROM labels l JOIN entities e USING (id) "
        "WHERE e.kind = 'entity' AND l.label IS NOT NULL GROUP BY l.lang ORDER BY n DESC, l.lang LIMIT ?",
        [top],
    ).fetchall()
    labelled = number(
        store.connection,
        "SELECT count(DISTINCT l.id) FROM labels l JOIN entities e USING (id) "
        "WHERE e.kind = 'entity' AND label IS NOT NULL",
    )
    return {
        "name": store.meta.get("name", ""),
        "counts": store.counts(),
        "reading": reading(store),
        "degrees": _degrees(store),
        **schema(store, top=top),
        "labels": {
            "labelled": labelled,
            "share": _share(labelled, entities),
            "by_language": [{"language": lang, "entities": n, "share": _share(n, entities)} for lang, n in languages],
        },
        "literals": [
            {"datatype": datatype, "literals": n, "numbers": numbers, "times": times}
            for datatype, n, numbers, times in run(
                "SELECT CASE WHEN datatype LIKE '@%' THEN 'text with language' ELSE datatype END AS kind, "
                "count(*) AS n, count(number), count(time) FROM entities WHERE kind = 'literal' "
                "GROUP BY 1 ORDER BY n DESC, 1 LIMIT ?",
                [top],
            ).fetchall()
        ],
        "filtered": dict(run("SELECT rule, statements FROM filtered ORDER BY statements DESC, rule").fetchall()),
        "rejects": [
            {"reason": reason, "lines": n, "example": example}
            for reason, n, example in run(
                "SELECT reason, count(*) AS n, arg_min(source || ' line ' || line || ': ' || text, (source, line)) "
                "FROM rejects GROUP BY reason ORDER BY n DESC, reason LIMIT ?",
                [top],
            ).fetchall()
        ],
    }


def schema(store: KgStore, *, top: int) -> dict[str, list[dict[str, Any]]]:
    """The `top` largest relations and types."""
    run, names = store.connection.execute, store.relation_names()
    relations = run(
        "SELECT relation, r.key, count(*) AS n, count(DISTINCT head), count(DISTINCT tail), any_value(r.datatype) "
        "FROM triples JOIN relations r ON r.id = relation GROUP BY ALL ORDER BY n DESC, relation LIMIT ?",
        [top],
    ).fetchall()
    types = run("SELECT type, count(*) AS n FROM types GROUP BY type ORDER BY n DESC, type LIMIT ?", [top]).fetchall()
    type_names = store.names([i for i, _ in types])
    return {
        "relations": [
            {"key": key, "name": names[i], "triples": n, "heads": heads, "tails": tails, "objects": datatype}
            for i, key, n, heads, tails, datatype in relations
        ],
        "types": [{"type": type_names.get(i, str(i)), "entities": n} for i, n in types],
    }


def reading(store: KgStore) -> dict[str, Any]:
    """What the build counted while it read (statements, duplicates, …); empty where the file stands alone."""
    try:
        return dict(json.loads((store.path.parent / READING).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _degrees(store: KgStore) -> dict[str, Any]:
    run = store.connection.execute
    row = run(
        "SELECT avg(popularity), max(popularity), quantile_disc(popularity, [0.5, 0.9, 0.99, 0.999]) "
        "FROM entities WHERE kind = 'entity'"
    ).fetchone()
    mean, largest, quantiles = row if row and row[0] is not None else (0.0, 0, [0, 0, 0, 0])
    bins = run(
        "SELECT CASE WHEN popularity = 0 THEN -1 ELSE floor(log2(popularity))::INTEGER END AS bin, count(*) "
        "FROM entities WHERE kind = 'entity' GROUP BY bin ORDER BY bin"
    ).fetchall()
    heads = run("SELECT id, popularity FROM entities WHERE kind = 'entity' ORDER BY popularity DESC, id LIMIT 5")
    hubs = heads.fetchall()
    names = store.names([i for i, _ in hubs])
    return {
        "mean": round(float(mean), 2),
        "largest": int(largest),
        **{f"p{p}": int(value) for p, value in zip((50, 90, 99, 99.9), quantiles, strict=True)},
        "bins": [{"from": 0 if b < 0 else 1 << b, "to": 0 if b < 0 else (2 << b) - 1, "entities": n} for b, n in bins],
        "hubs": [{"entity": names[i], "degree": degree} for i, degree in hubs],
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0
