"""Parts of names by which entities are known: surnames, first and last words, initials; and which entities are places.

Made with DuckDB from the folded names, in sets, so that a graph of any size works.  A part is stored with the entities
that hold a fair share of it only: `john` means nobody in particular, `einstein` one.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from kgqa_core.linking.fold import fold
from kgqa_core.linking.mentions import ACRONYM, ALIAS, CASED, LABEL, MOST_PARTS, PART, TYPE
from kgqa_core.linking.words import FUNCTION_WORDS

LONGEST = 8
"""Words of a name whose parts are looked at, at most."""
WORDS = 3
"""Words of a part at most."""
INITIALS = (3, 6)
"""Letters that initials have, at least and at most."""
SHARE, CLEAR = 0.1, 0.25
"""Share of a part's popularity that each of its entities has at least, and that the best of them has."""
_SMALL = "['of', 'the', 'and', 'for', 'in', 'on', 'at', 'to', 'a', 'an', 'de', 'du', 'la', 'le', 'der', 'von', 'und']"
"""Words that initials leave out."""
_PLACE_WORDS = frozenset(
    """country countries nation location located place placed capital continent city town region territory territories
    citizenship nationality origin headquarters state birthplace residence jurisdiction border borders subdivision
    land ort lieu pays pais lugar ciudad 国家 地点 首都 位于 所在地 出生地""".split()
)
"""Words of relations whose values are places."""


def stage_parts(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes the table `short` (name, id, flags, popularity, initials): parts of the names in `raw`, a row each time.

    Parts that begin or end with a word of grammar, and numbers, are none.
    """
    connection.register("grammar_words", pa.table({"word": sorted(FUNCTION_WORDS)}))
    connection.execute("CREATE TABLE grammar AS SELECT word FROM grammar_words")
    connection.unregister("grammar_words")
    kept = f"id, flags & {LABEL | ALIAS | CASED | TYPE} AS flags, popularity"
    connection.execute(
        f"""
        CREATE TABLE short AS
        WITH spaced AS (
          SELECT * FROM (SELECT id, flags, popularity, string_split(name, ' ') AS w FROM raw
                         WHERE contains(name, ' ') AND flags & {LABEL | ALIAS} > 0)
          WHERE len(w) BETWEEN 2 AND {LONGEST}),
        pieces AS (
          SELECT w[1:k] AS p, {kept} FROM spaced, range(1, {WORDS + 1}) t(k) WHERE k < len(w)
          UNION ALL SELECT w[len(w) - k + 1:], {kept} FROM spaced, range(1, {WORDS + 1}) t(k) WHERE k < len(w)
          UNION ALL SELECT [w[1], w[len(w)]], {kept} FROM spaced WHERE len(w) IN (3, 4))
        SELECT name, id, flags, popularity, initials FROM (
          SELECT array_to_string(p, ' ') AS name, id, flags, popularity, FALSE AS initials FROM pieces
          ANTI JOIN grammar a ON a.word = p[1] ANTI JOIN grammar b ON b.word = p[len(p)]
          UNION ALL SELECT * FROM (
            SELECT array_to_string(list_transform(list_filter(w, lambda x: NOT list_contains({_SMALL}, x)),
                   lambda x: x[1]), '') AS name, {kept}, TRUE FROM spaced
            WHERE flags & {CASED} > 0)
          WHERE length(name) BETWEEN {INITIALS[0]} AND {INITIALS[1]})
        WHERE length(name) >= 3 AND NOT regexp_full_match(name, '[0-9 ]+');
        DROP TABLE grammar"""
    )


def parts_sql(where: str, weights: dict[int, float]) -> str:
    """Rows (name, id, flags, mass, share) of the parts that are stored, of `short` in a range of names.

    mass: popularity of the entity, times the weight of the kind of name.  share: its share among all entities that have
    the part, in [SHARE, 1].
    """
    return f"""
        SELECT name, id, flags, mass, share FROM (
          SELECT *, max(share) OVER (PARTITION BY name) AS best,
                 row_number() OVER (PARTITION BY name ORDER BY mass DESC, id) AS place FROM (
            SELECT *, mass / sum(mass) OVER (PARTITION BY name) AS share FROM (
              SELECT name, id, max(popularity::DOUBLE * CASE WHEN flags & {LABEL} > 0 THEN {weights[LABEL]}
                     ELSE {weights[ALIAS]} END) AS mass,
                     {PART} | (bit_or(flags) & {CASED | TYPE}) | CASE WHEN bool_and(initials) THEN {ACRONYM} ELSE 0 END
                     AS flags
              FROM short WHERE {where} GROUP BY name, id)))
        WHERE best >= {CLEAR} AND share >= {SHARE} AND place <= {MOST_PARTS}"""


def place_relations(connection: duckdb.DuckDBPyConnection, order: str) -> list[int]:
    """Relations with a word of place in their labels, ascending."""
    rows = connection.execute(
        f"""
        SELECT r.id, coalesce(b.label, r.key) FROM kg.relations r LEFT JOIN (
          SELECT id, arg_min(label, ({order}, lang, label)) AS label FROM kg.relation_labels
          WHERE label IS NOT NULL GROUP BY id) b USING (id) ORDER BY r.id"""
    ).fetchall()
    return [
        i for i, label in rows if _PLACE_WORDS & set(fold(label.replace("_", " ")).split()) or label in _PLACE_WORDS
    ]
