"""Nodes that stand for no thing with a name, such as Freebase's compound values, and what texts call them.

A statement of several parts (a marriage with its partners and dates) hangs together in a graph by a node that has an
id and no label.  Wu et al. (2023) write such nodes CVT1, CVT2, … from the start of each path.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from kgqa_core.kg.names import key_name
from kgqa_core.kg.store import KgStore

_NAMELESS = re.compile(
    r"""
      _:.*                                          # a blank node
    | (.*[/#])?\.well-known/genid/.*                # a blank node that was given an IRI
    | (https?://rdf\.freebase\.com/ns/)?/?[mg][./]0?[0-9a-z_]+   # a Freebase id
    | (.*/statement/|wds:|s:)?[QPLqpl][1-9]\d*[-$][0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}  # a statement
    | (urn:uuid:)?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}
    """,
    re.VERBOSE,
)
_CVT = re.compile(r"CVT[1-9]\d*")


def is_nameless(key: str, has_label: bool = False) -> bool:
    """Whether a node is one without name: it has no label, and its key is an id that is made for such nodes.

    Wikidata's `Q42` is no such id: an item without label in the languages of a graph is still a thing.

    >>> is_nameless("m.0abc12"), is_nameless("m.0abc12", has_label=True), is_nameless("_:b7"), is_nameless("Q42")
    (True, False, True, False)
    """
    return not has_label and _NAMELESS.fullmatch(key) is not None


def is_cvt(name: str) -> bool:
    """Whether a name in a text is what a nameless node is called there.

    >>> is_cvt("CVT12"), is_cvt("CVT"), is_cvt("CVT Tower 1")
    (True, False, False)
    """
    return _CVT.fullmatch(name) is not None


def cvt_names(entities: Iterable[int], nameless: Collection[int]) -> dict[int, str]:
    """CVT1, CVT2, … for the nameless ones of a path's entities, in the order in which they first stand there.

    >>> cvt_names([5, 9, 7, 9, 8], {7, 9})
    {9: 'CVT1', 7: 'CVT2'}
    """
    names: dict[int, str] = {}
    for entity in entities:
        if entity in nameless and entity not in names:
            names[entity] = f"CVT{len(names) + 1}"
    return names


def find_nameless(store: KgStore, entities: Iterable[int]) -> frozenset[int]:
    """Those of some entities of a graph that are nameless; literals never are."""
    wanted = sorted(set(entities))
    keys = {i: key for i, key in store.entity_keys(wanted).items() if is_nameless(key)}
    if not keys:
        return frozenset()
    names = store.names(keys)
    literals = _literals(store, keys)
    return frozenset(i for i, key in keys.items() if i not in literals and names[i] == key_name(key))


def _literals(store: KgStore, entities: Iterable[int]) -> frozenset[int]:
    asked = sorted(entities)
    rows = store.connection.execute(
        "SELECT id FROM entities WHERE kind = 'literal' AND list_contains(?::INTEGER[], id)", [asked]
    ).fetchall()
    return frozenset(i for (i,) in rows)
