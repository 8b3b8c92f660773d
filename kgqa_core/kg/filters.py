"""Which statements are left out, and under which rule they are counted.

A statement counts for the first rule that it meets, in the order of `RULES`.  Names (labels, aliases, descriptions)
only meet the rules of the drop-list, of languages and of ranks; types stay whatever the keep-list has.
Qualifiers meet the same rules but the keep-list's, languages' and ranks'.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import duckdb
import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.kg.names import bare_key, relation_name, word_parts
from kgqa_core.kg.sql import execute_with
from kgqa_core.kg.vocabulary import WIKIBASE
from kgqa_core.monitor import QUIET, Monitor

DROPPED = "relation: dropped"
NOT_LISTED = "relation: not listed"
UNINFORMATIVE = "relation: not informative"
DATATYPE = "datatype: "
UNKNOWN = "value: unknown"
LANGUAGE = "language"
DEPRECATED = "rank: deprecated"
NOT_PREFERRED = "rank: not preferred"

RULES = (DROPPED, NOT_LISTED, UNINFORMATIVE, DATATYPE, UNKNOWN, LANGUAGE, DEPRECATED, NOT_PREFERRED)
"""Names of the rules, in the order in which they apply; `datatype: ` is followed by the name in kg.drop_datatypes."""

UNKNOWN_DATATYPES = (WIKIBASE + "somevalue", WIKIBASE + "novalue")
UNINFORMATIVE_DATATYPES = tuple(
    WIKIBASE + name for name in ("ExternalId", "CommonsMedia", "GeoShape", "TabularData", "MusicalNotation")
)
"""Values that no text can use: ids in other catalogues, and files."""

UNINFORMATIVE_PROPERTIES = {
    "names":
        "P734 family name, P735 given name, P1449 nickname, P1477 birth name, P1559 name in native language, "
        "P1560 given name version for other gender, P1705 native label, P1813 short name, P1843 taxon common name, "
        "P1950 second family name in Spanish name, P2561 name, P2562 married name, P5056 patronym or matronym, "
        "P9139 first family name in Portuguese name, P1448 official name, P1476 title, P1680 subtitle, "
        "P225 taxon name, P742 pseudonym, P898 IPA transcription",
    "Wikimedia housekeeping":
        "P301 category's main topic, P373 Commons category, P910 topic's main category, P935 Commons gallery, "
        "P971 category combines topics, P1151 topic's main Wikimedia portal, P1204 Wikimedia portal's main topic, "
        "P1423 template has topic, P1424 topic's main template, P1464 category for people born here, "
        "P1465 category for people who died here, P1472 Commons creator page, P1612 Commons Institution page, "
        "P1740 category for films shot at this location, P1791 category of people buried here, "
        "P1792 category of associated people, P2033 category for pictures taken with camera, "
        "P2517 category for recipients of this award, P2559 Wikidata usage instructions, "
        "P2959 permanent duplicated item, P3722 Commons maps category, P3734 category for value not in Wikidata, "
        "P3921 Wikidata SPARQL query equivalent, P4224 category contains, P5008 on focus list of Wikimedia project, "
        "P5125 Wikimedia outline, P6104 maintained by WikiProject, P6186 category for eponymous categories, "
        "P7084 related category, P7867 category for maps or plans, P8989 category for the view of the item",
    "references and addresses":
        "P143 imported from Wikimedia project, P248 stated in, P813 retrieved, P854 reference URL, "
        "P856 official website, P973 described at URL, P1343 described by source, P1628 equivalent property, "
        "P1709 equivalent class, P1889 different from, P2888 exact match, P4656 Wikimedia import URL",
    "media":
        "P10 video, P14 traffic sign, P15 route map, P18 image, P41 flag image, P51 audio, P94 coat of arms image, "
        "P109 signature, P117 chemical structure, P154 logo image, P158 seal image, P242 locator map image, "
        "P443 pronunciation audio, P948 page banner, P989 spoken text audio, "
        "P990 audio recording of the subject's spoken voice, P996 document file on Wikimedia Commons, "
        "P1442 image of grave, P1766 place name sign, P1801 plaque image, P1846 distribution map, P1943 location map, "
        "P1944 relief location map, P2716 collage image, P2910 icon, P3383 film poster, P3451 nighttime view, "
        "P4291 panoramic view, P4896 3D model, P5252 winter view, P5775 image of interior, P8592 aerial view",
}  # fmt: skip
"""Wikidata properties and their names that carry little information in words (LTGen, section 3: "family name, given
name, …"; the paper prints no list).  Properties for external ids need no entry: their values carry the datatype."""

UNINFORMATIVE_LABELS: tuple[str, ...] = (
    r"\b(id|ids|identifiers?|isbn|issn|oclc|guid|uuid|mid)$",
    r"\b(family|given|first|last|middle|sur|fore|birth|native|nick|maiden|full|short|alternative) ?names?$",
    r"\b(image|photo|photograph|picture|logo|icon|thumbnail|depiction|signature|audio|banner|file)$",
    r"\b(image|photo|logo|icon|audio|video|media) (file|caption|name|size|url)$",
    r"\b(main|commons|wikimedia) category\b|\bcategory (for|of)\b",
    r"\b(wikipedia|wikimedia|wikidata|wikiproject|wiki) ?(page|id|link|article|project|portal|template)?\b",
    r"\b(url|uri|website|web ?page|home ?page|web ?site|external links?|same as)$",
)
"""Patterns of relation names (English or without language; lower case, spaces for `_`, `-`, `.` and capitals)."""

_KNOWN = frozenset(re.findall(r"\bP\d+", " ".join(UNINFORMATIVE_PROPERTIES.values())))
_PATTERN = re.compile("|".join(UNINFORMATIVE_LABELS))
_WIKIDATA = re.compile(r"^(?:http://www\.wikidata\.org/(?:prop/(?:direct/)?|entity/))?(P[1-9]\d*)$")


def is_informative(key: str, labels: Iterable[str] = ()) -> bool:
    """Whether a relation is informative in words, by its key and its English names.

    >>> is_informative("P569", ["date of birth"]), is_informative("P735", ["given name"])
    (True, False)
    >>> is_informative("http://dbpedia.org/ontology/wikiPageID"), is_informative("video game platform")
    (False, True)
    """
    match = _WIKIDATA.match(key)
    if match and match.group(1) in _KNOWN:
        return False
    names = [*labels] or [relation_name(key)]
    return not any(_PATTERN.search(" ".join(word_parts(name)).casefold()) for name in names)


def languages_to_keep(options: KgOptions) -> tuple[str, ...] | None:
    """Languages whose names stay in the graph, in lower case; None for all.

    `mul` (Wikidata's names for all languages) stays with any language, and a name without language only with `""`.
    """
    if not options.only_languages:
        return None
    languages = dict.fromkeys(language.casefold() for language in options.languages)
    if any(languages):
        languages["mul"] = None
    return tuple(languages)


def prepare(
    connection: duckdb.DuckDBPyConnection,
    options: KgOptions,
    monitor: Monitor = QUIET,
    relations: frozenset[str] = frozenset(),
) -> bool:
    """Makes `predicate_rules(predicate, rule)`, `value_rules(tag, rule)`, `name_rules(tag, rule)`; False if all empty.

    Rules are codes of `rule_names(code, rule)`.  value_rules hold for statements that are no names, name_rules for
    names.  Needs `raw`, `terms`, `tags` and `roles`.  relations: keys that the
    graph has beside those.  Raises KgInputError when no relation of the keep-list is in the
    graph; other unknown relations are noted.
    """
    run = connection.execute
    datatypes = {DATATYPE + name: name for name in options.drop_datatypes}
    names = [rule for rule in RULES for rule in ([*datatypes] if rule == DATATYPE else [rule])]
    codes = {name: code for code, name in enumerate(names, start=1)}
    _table(connection, "rule_names(code UTINYINT, rule VARCHAR)", [(code, name) for name, code in codes.items()])
    by_predicate: dict[int, str] = {}
    if options.relations or options.drop_relations or options.informative_only:
        known: dict[int, str] = dict(
            run(
                "SELECT tid, key FROM terms WHERE tid IN "
                "(SELECT predicate FROM raw UNION SELECT predicate FROM raw_qualifiers) ORDER BY tid"
            ).fetchall()
        )
        roles = dict(run("SELECT predicate, role FROM roles").fetchall())
        keys_to_keep, drop = _bare(options.relations), _bare(options.drop_relations)
        _check(keys_to_keep, drop, relations.union(known.values()), monitor)
        names_of = _names(connection) if options.informative_only else {}
        for tid, key in known.items():
            if key in drop:
                by_predicate[tid] = DROPPED
            elif roles.get(tid) is not None:
                continue
            elif keys_to_keep and key not in keys_to_keep:
                by_predicate[tid] = NOT_LISTED
            elif options.informative_only and not is_informative(key, names_of.get(tid, ())):
                by_predicate[tid] = UNINFORMATIVE
    _table(
        connection,
        "predicate_rules(predicate INTEGER, rule UTINYINT)",
        [(tid, codes[rule]) for tid, rule in sorted(by_predicate.items())],
    )
    tags: list[tuple[int, str]] = run(
        "SELECT tag, coalesce(datatype, '') FROM tags WHERE tag > 0 ORDER BY tag"
    ).fetchall()
    by_value: list[tuple[int, int]] = []
    by_name: list[tuple[int, int]] = []
    languages = languages_to_keep(options)
    for tag, datatype in tags:
        rule = _value_rule(datatype, options, datatypes)
        if rule is not None:
            by_value.append((tag, codes[rule]))
        if languages is not None and (datatype[1:] if datatype.startswith("@") else "") not in languages:
            by_name.append((tag, codes[LANGUAGE]))
    _table(connection, "value_rules(tag INTEGER, rule UTINYINT)", by_value)
    _table(connection, "name_rules(tag INTEGER, rule UTINYINT)", by_name)
    return bool(by_predicate or by_value or by_name)


def _value_rule(datatype: str, options: KgOptions, datatypes: dict[str, str]) -> str | None:
    if options.informative_only and datatype in UNINFORMATIVE_DATATYPES:
        return UNINFORMATIVE
    for rule, name in datatypes.items():
        wanted = bare_key(name)
        if wanted in (datatype, re.split(r"[/#]", datatype)[-1]) and datatype:
            return rule
    return UNKNOWN if options.unknown_values == "drop" and datatype in UNKNOWN_DATATYPES else None


def _names(connection: duckdb.DuckDBPyConnection) -> dict[int, list[str]]:
    """Labels of the predicates in English or without language."""
    rows = connection.execute(
        """
        SELECT DISTINCT s.subject, o.key FROM raw s JOIN roles r ON r.predicate = s.predicate AND r.role = 'label'
        JOIN terms o ON o.tid = s.object JOIN tags t USING (tag)
        WHERE s.subject IN (SELECT predicate FROM raw UNION SELECT predicate FROM raw_qualifiers)
          AND t.tag > 0 AND (t.datatype NOT LIKE '@%' OR t.datatype IN ('@en', '@mul')) ORDER BY 1, 2"""
    ).fetchall()
    results: dict[int, list[str]] = {}
    for tid, label in rows:
        results.setdefault(tid, []).append(label)
    return results


def _bare(keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(bare_key, keys))


def _check(keys_to_keep: Sequence[str], drop: Sequence[str], present: frozenset[str], monitor: Monitor) -> None:
    unknown = [key for key in keys_to_keep if key not in present]
    if keys_to_keep and len(unknown) == len(keys_to_keep):
        raise KgInputError(
            f"no relation of kg.relations is in the graph: {unknown[0]!r}{nearest(unknown[0], present)}; "
            f"it has {len(present):,} relations; name them by key"
        )
    for option, keys in (("kg.relations", unknown), ("kg.drop_relations", [k for k in drop if k not in present])):
        for key in keys:
            monitor.note(f"{option} names {key!r}, which is no relation of the graph{nearest(key, present)}")


def _table(connection: duckdb.DuckDBPyConnection, shape: str, rows: Sequence[tuple[int, int | str]]) -> None:
    connection.execute(f"CREATE TABLE {shape}")
    if rows:
        frame = pl.DataFrame(rows, orient="row")
        execute_with(connection, f"INSERT INTO {shape.split('(')[0]} SELECT * FROM batch", frame)
