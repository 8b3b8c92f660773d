"""Facts as triple-form text, `(head, relation, tail), …` (Sen et al. 2023, section 3.1).

Nodes without a name, such as Freebase's compound values, get one in texts.  A statement of several parts (a marriage
with its partners and dates) is held together in a graph by a node that has an id and no label.  Wu et al. (2023) write
such nodes CVT1, CVT2, … from the start of each path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.errors import ArtifactError, GraphMismatch, InputError, nearest
from kgqa_core.kg.names import is_blank_node, key_name
from kgqa_core.kg.store import BLANK_NODES_NAMED, KgStore
from kgqa_core.prompts import triple_form
from kgqa_core.store.tables import read_frame
from kgqa_core.types import INVERSE
from kgqa_core.workspace import Workspace

_NAMELESS = re.compile(
    r"""
      (https?://rdf\.freebase\.com/ns/)?/?[mg][./]0?[0-9a-z_]+   # a Freebase id
    | (.*/statement/|wds:|s:)?[QPLqpl][1-9]\d*[-$][0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}  # a statement
    | (urn:uuid:)?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}
    """,
    re.VERBOSE,
)
_CVT = re.compile(r"CVT[1-9]\d*")


def is_nameless(key: str) -> bool:
    """Whether the key of a node without label is an id that is made for nodes without name.

    Wikidata's `Q42` is no such id: an item without label in the languages of a graph is still a thing.

    >>> is_nameless("m.0abc12"), is_nameless("_:b7"), is_nameless("Q42")
    (True, True, False)
    """
    return is_blank_node(key) or _NAMELESS.fullmatch(key) is not None


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


def find_nameless(store: KgStore, entities: Iterable[int], heads: Collection[int] | None = None) -> frozenset[int]:
    """Those of some entities of a graph that are nameless; literals never are.

    A blank node is nameless too where the graph named its blank nodes by what they hold: a sentence says the parts.
    With `heads`, of the facts that are told, only one among them: of others nothing says the parts.
    """
    wanted = sorted(set(entities))
    keys = {i: key for i, key in store.entity_keys(wanted).items() if is_nameless(key)}
    if not keys:
        return frozenset()
    names = store.names(keys)
    literals = _literals(store, keys)
    named_by_parts = BLANK_NODES_NAMED in store.counts()
    return frozenset(
        i
        for i, key in keys.items()
        if i not in literals
        and (names[i] == key_name(key) or (named_by_parts and is_blank_node(key) and (heads is None or i in heads)))
    )


def _literals(store: KgStore, entities: Iterable[int]) -> frozenset[int]:
    ids = sorted(entities)
    rows = store.connection.execute(
        "SELECT id FROM entities WHERE kind = 'literal' AND list_contains(?::INTEGER[], id)", [ids]
    ).fetchall()
    return frozenset(i for (i,) in rows)


MAX_HOMONYMS, MAX_TOLD, MAX_FACTS = 20, 60, 10_000
"""Things of one name that are told apart, characters of what tells them apart, and facts that are looked at."""


def tell_apart(store: KgStore, names: Mapping[int, str]) -> dict[int, str]:
    """Names in which things that share one get what tells them apart: `Li Wei (poet)`, `Li Wei, born in Harbin`.

    That is their descriptions, their types, values of a relation that all but one of them have, else their keys.
    """
    sharing: dict[str, list[int]] = {}
    for i, name in names.items():
        sharing.setdefault(name, []).append(i)
    told = dict(names)
    for name, ids in sharing.items():
        if 1 < len(ids) <= MAX_HOMONYMS and not _literals(store, ids):
            told |= {i: f"{name}{end}" for i, end in _differences(store, ids).items()}
    return told


def _differences(store: KgStore, ids: Sequence[int]) -> dict[int, str]:
    """What follows the name of each of some entities that share it; nothing after one that has no value."""
    run = store.connection.execute
    descriptions = {i: store.description(i) or "" for i in ids}
    rows = run("SELECT entity, type FROM types WHERE list_contains($1::INTEGER[], entity)", [[*ids]]).fetchall()
    kinds = store.names(kind for _, kind in rows)
    types = {i: ", ".join(sorted(kinds[kind] for entity, kind in rows if entity == i)) for i in ids}
    for texts in (descriptions, types):
        if len(set(texts.values()) - {""}) == len(ids) and max(map(len, texts.values())) <= MAX_TOLD:
            return {i: f" ({text})" for i, text in texts.items()}
    sql = "SELECT head, relation, tail FROM triples WHERE list_contains($1::INTEGER[], head) ORDER BY id LIMIT $2"
    facts = run(sql, [[*ids], MAX_FACTS]).fetchall()
    values: dict[int, dict[int, list[int]]] = {}
    for head, relation, tail in facts:
        values.setdefault(relation, {}).setdefault(head, []).append(tail)
    literals = _literals(store, {tail for *_, tail in facts})
    found = store.names({tail for *_, tail in facts})
    best: tuple[int, bool, int, dict[int, str]] | None = None
    for relation, tails in sorted(values.items()):
        texts = {head: " and ".join(found[tail] for tail in own[:2]) for head, own in tails.items()}
        if len(set(texts.values())) == len(texts) >= max(1, len(ids) - 1) and max(map(len, texts.values())) <= MAX_TOLD:
            rank = (len(ids) - len(texts), any(tail in literals for own in tails.values() for tail in own), relation)
            best = (*rank, texts) if best is None or rank < best[:3] else best
    if best is None:
        return {i: f" ({key})" for i, key in store.entity_keys(ids).items()}
    label = store.relation_names()[best[2]].replace("_", " ")
    return {i: f", {label} {text}" for i, text in best[3].items()}


FORMATS = ("none", "triples")

KNOWLEDGE: dict[str, pl.DataType] = {
    "question": pl.String(),
    "retriever": pl.String(),
    "format": pl.String(),
    "text": pl.String(),
    "triples": pl.List(pl.Int64()),
}
"""Columns of knowledge.parquet; `triples` are those behind the text, in its order."""


def triple_text(head: str, relation: str, tail: str) -> str:
    """One triple by its names.

    >>> triple_text("Paris", "<inv>-capital-of", "France")
    '(Paris, <inv>-capital-of, France)'
    """
    return triple_form([(head, relation, tail)])


def qualified_text(head: str, relation: str, tail: str, statements: Sequence[Sequence[tuple[str, str]]]) -> str:
    """A triple by its names, once for each of its qualified statements.

    >>> qualified_text("Ada", "held", "mayor", [[("start", "1999"), ("end", "2003")], [("start", "2008")]])
    '(Ada, held, mayor; start: 1999; end: 2003), (Ada, held, mayor; start: 2008)'
    >>> qualified_text("Ada", "held", "mayor", [])
    '(Ada, held, mayor)'
    """
    tails = ["; ".join([tail, *(f"{name}: {value}" for name, value in pairs)]) for pairs in statements]
    return triple_form([(head, relation, end) for end in tails or [tail]])


def oriented(head: str, relation: str, tail: str, direction: int) -> tuple[str, str, str]:
    """A triple as it was walked: against its direction the tail comes first and the relation is the inverse.

    >>> oriented("France", "capital-of", "Paris", -1)
    ('Paris', '<inv>-capital-of', 'France')
    """
    return (head, relation, tail) if direction >= 0 else (tail, INVERSE + relation, head)


def write_knowledge(
    workspace: Workspace,
    *,
    kg: Path,
    facts: Path,
    questions: Path,
    format: str = "triples",
    qualifiers: bool = False,
    retriever: str | None = None,
) -> dict[str, Any]:
    """Writes `knowledge.parquet`: one row for every question, its text empty where there are no facts.

    Facts stand in rank order; a triple that was retrieved twice, by several reasoning paths say, stands once, where it
    first was.  Nodes without name are CVT1, CVT2, … in the order in which a question's text meets them.  qualifiers:
    put them into the text, `(head, relation, tail; qualifier: value)`, once for each qualified statement.  retriever:
    its name in the table, needed only where no question has facts.  Raises InputError for an unknown format,
    GraphMismatch when the facts were retrieved from another graph, ArtifactError when an input is missing.
    """
    if format not in FORMATS:
        raise InputError(
            f"knowledge format {format!r} is unknown{nearest(format, FORMATS)}; known: {', '.join(FORMATS)}"
        )
    ids = read_frame(questions / "questions.parquet", ["id"])["id"].to_list()
    rows = read_frame(facts / "facts.parquet", ["question", "retriever", "rank", "triple", "direction"])
    retriever = _retriever(facts, rows, retriever)
    ordered = rows.sort("question", "rank", "triple", "direction").unique(
        ["question", "triple"], keep="first", maintain_order=True
    )
    ordered = ordered.select("question", "triple", "direction")
    with KgStore.open(kg) as store:
        wording = Wording(store, ordered["triple"].unique().to_list(), qualifiers)
    texts: dict[str, str] = {}
    behind: dict[str, list[int]] = {}
    if format != "none":
        for question, question_facts in groupby(
            ordered.select("question", "triple", "direction").iter_rows(), itemgetter(0)
        ):
            steps = [(triple, direction) for _, triple, direction in question_facts]
            texts[question] = wording.paragraph(steps)
            behind[question] = [triple for triple, _ in steps]
    unknown = sorted(set(texts).difference(ids))
    if unknown:
        raise ArtifactError(
            f"{facts} has facts for question {unknown[0]!r} and {len(unknown) - 1} others that {questions} has not; "
            "retrieve again for these questions"
        )
    ids.sort()
    table = pl.DataFrame(
        {
            "question": ids,
            "retriever": [retriever] * len(ids),
            "format": [format] * len(ids),
            "text": [texts.get(i, "") for i in ids],
            "triples": [behind.get(i, []) for i in ids],
        },
        schema=KNOWLEDGE,
    )
    table.write_parquet(workspace.out / "knowledge.parquet")
    with_facts = len(texts)
    workspace.monitor.progress(len(ids), len(ids), "questions")
    return {"questions": len(ids), "with_facts": with_facts, "facts": sum(map(len, behind.values()))}


class Wording:
    """Tells some triples of a graph; all that this needs is read when it is made.

    qualifiers: include them, see `qualified_text`.  Raises GraphMismatch for a triple that the graph has not.
    """

    def __init__(self, store: KgStore, triples: Sequence[int], qualifiers: bool = False) -> None:
        self._names = name_triples(store, triples)
        self._ends = {triple: (head, tail) for triple, (head, _, tail) in store.triples(triples).items()}
        heads = {head for head, _ in self._ends.values()}
        self._nameless = find_nameless(store, {end for pair in self._ends.values() for end in pair}, heads)
        self._qualifiers = name_qualifiers(store, triples) if qualifiers else {}

    def texts(self, facts: Sequence[tuple[int, int]]) -> list[str]:
        """A text for each fact of one question, given as (triple, direction).

        Nodes without name are CVT1, CVT2, … in the order in which the facts meet them.
        """
        cvt = cvt_names((end for triple, direction in facts for end in self._ends[triple][::direction]), self._nameless)
        texts = []
        for triple, direction in facts:
            head, relation, tail = self._names[triple]
            first, last = self._ends[triple]
            named = oriented(cvt.get(first, head), relation, cvt.get(last, tail), direction)
            texts.append(qualified_text(*named, self._qualifiers.get(triple, ())))
        return texts

    def paragraph(self, facts: Sequence[tuple[int, int]]) -> str:
        """The triple-form text of one question's facts, as of `texts`; each triple where it first stands."""
        first: dict[int, tuple[int, int]] = {}
        for triple, direction in facts:
            first.setdefault(triple, (triple, direction))
        return ", ".join(self.texts(list(first.values())))


def name_triples(store: KgStore, triples: Iterable[int]) -> dict[int, tuple[str, str, str]]:
    """(head, relation, tail) by name of each triple id.  Raises GraphMismatch for an id that the graph has not."""
    wanted = list(triples)
    result = store.triples(wanted)
    missing = [triple for triple in wanted if triple not in result]
    if missing:
        raise GraphMismatch(
            f"triple {missing[0]} and {len(missing) - 1} others are not in {store.path} "
            f"({store.counts()['triples']:,} triples); the facts come from another graph: retrieve again"
        )
    names: Mapping[int, str] = store.names({i for head, _, tail in result.values() for i in (head, tail)})
    relations = store.relation_names()
    return {i: (names[head], relations[relation], names[tail]) for i, (head, relation, tail) in result.items()}


def name_qualifiers(store: KgStore, triples: Iterable[int]) -> dict[int, list[list[tuple[str, str]]]]:
    """(relation, value) by name of each qualified statement of each triple; triples without are left out."""
    result = store.qualifiers(triples)
    if not result:
        return {}
    names = store.names({value for sets in result.values() for pairs in sets for _, value in pairs})
    relations = store.relation_names()
    return {i: [[(relations[r], names[v]) for r, v in pairs] for pairs in sets] for i, sets in result.items()}


def _retriever(facts: Path, rows: pl.DataFrame, given: str | None) -> str:
    """The retriever's name: as given, else from the rows, else from the facts' meta.json."""
    names = sorted(rows["retriever"].unique().to_list())
    if len(names) > 1 or (given is not None and names not in ([], [given])):
        raise ArtifactError(f"{facts} holds facts of {', '.join(names)}, but knowledge is written for one retriever")
    if given is not None:
        return given
    if names:
        return str(names[0])
    meta = facts / "meta.json"
    return str(json.loads(meta.read_text(encoding="utf-8")).get("retriever", "")) if meta.is_file() else ""
