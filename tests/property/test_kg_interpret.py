"""Random statements with ranks, duplicates, qualifiers and filters, against the same rules written in plain Python."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.config import KgOptions
from kgqa_core.kg import filters
from kgqa_core.kg.store import KgStore
from tests.support.examples import examples
from tests.support.staged import EN, LABEL, STRING, graph

SOME = filters.WIKIBASE + "somevalue"
EXTERNAL = filters.WIKIBASE + "ExternalId"
SUBJECTS = ["a", "b", "P19"]
PREDICATES = ["P31", "P279", "P19", "P735", "r", LABEL, "http://schema.org/description"]
OBJECTS = [
    "a", "b", "c", ("x", STRING), ("x", EN), ("y", "@de"), ("z", "@mul"), ("n", ""), ("1", EXTERNAL),
    ("somevalue", SOME), ("5", STRING, "Q1"),
]  # fmt: skip
ROLES = {"P31": "type", "P279": "type", LABEL: "label", "http://schema.org/description": "description"}

statements = st.lists(
    st.tuples(*map(st.sampled_from, (SUBJECTS, PREDICATES, OBJECTS, (0, 0, 1, -1)))), min_size=1, max_size=25
)
qualifiers = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["P580", "r", "P735"]), st.sampled_from(OBJECTS)), max_size=20
)
options = st.builds(
    KgOptions,
    ranks=st.sampled_from(["truthy", "normal", "all"]),
    qualifiers=st.sampled_from(["rows", "triples", "none"]),
    unknown_values=st.sampled_from(["keep", "drop"]),
    relations=st.sampled_from([(), ("P19", "r"), ("r", "P19", "nothing")]),
    drop_relations=st.sampled_from([(), ("P19",), (LABEL, "P31")]),
    drop_datatypes=st.sampled_from([(), ("ExternalId",), ("string", EXTERNAL)]),
    informative_only=st.booleans(),
    only_languages=st.booleans(),
    languages=st.sampled_from([("en", ""), ("de",), ("",)]),
    types_as_triples=st.booleans(),
)


def role_of(predicate, value):
    role = ROLES.get(predicate)
    return role if role is not None and (role == "type") == isinstance(value, str) else None


def relation_rule(predicate, options):
    if predicate in options.drop_relations:
        return filters.DROPPED
    if predicate not in ROLES:
        if options.relations and predicate not in options.relations:
            return filters.NOT_LISTED
        if options.informative_only and predicate == "P735":
            return filters.UNINFORMATIVE
    return None


def value_rule(value, options):
    if isinstance(value, str):
        return None
    datatype = value[1]
    if options.informative_only and datatype == EXTERNAL:
        return filters.UNINFORMATIVE
    for name in options.drop_datatypes:
        if name == datatype or (datatype and name == datatype.split("/")[-1].split("#")[-1]):
            return filters.DATATYPE + name
    return filters.UNKNOWN if options.unknown_values == "drop" and datatype == SOME else None


def rule_of(statement, options, preferred):
    subject, predicate, value, rank = statement
    rule = relation_rule(predicate, options)
    if rule is None and role_of(predicate, value) in ("label", "description"):
        kept = filters.languages_to_keep(options)
        language = value[1][1:] if value[1].startswith("@") else ""
        rule = filters.LANGUAGE if kept is not None and language not in kept else None
    elif rule is None:
        rule = value_rule(value, options)
    if rule is None and options.ranks != "all" and rank < 0:
        rule = filters.DEPRECATED
    if rule is None and options.ranks == "truthy" and rank == 0 and (subject, predicate) in preferred:
        rule = filters.NOT_PREFERRED
    return rule


def expected(statements, qualifiers, options):
    """Triples with rank, sets of qualifiers by triple, and filtered by rule."""
    preferred = {(s, p) for s, p, _, rank in statements if rank > 0}
    rules = [rule_of(statement, options, preferred) for statement in statements]
    filtered = Counter(rule for rule in rules if rule is not None)
    triples: dict = {}
    for (s, p, o, rank), rule in zip(statements, rules, strict=True):
        role = role_of(p, o)
        if rule is None and (role is None or (role == "type" and options.types_as_triples)):
            triples[s, p, o] = max(rank, triples.get((s, p, o), -1))
    stated = dict(triples)
    sets: dict = {}
    for n, (relation, value) in sorted({(n, (p, v)) for n, p, v in qualifiers if n < len(statements)}, key=repr):
        if options.qualifiers != "none" and rules[n] is None and statements[n][:3] in stated:
            rule = relation_rule(relation, options)
            if rule in (None, filters.NOT_LISTED) and value_rule(value, options) is None:
                sets.setdefault(n, set()).add((relation, value))
    by_triple: dict = {}
    for n, pairs in sets.items():
        by_triple.setdefault(statements[n][:3], set()).add(frozenset(pairs))
        if options.qualifiers == "triples":
            for relation, value in pairs:
                triples.setdefault((statements[n][0], f"{statements[n][1]}/{relation}", value), 0)
    return triples, by_triple, filtered, len(triples) - len(stated)


def built(folder, statements, qualifiers, options):
    counts = graph(folder / "kg.duckdb", options, statements, qualifiers)
    with KgStore.open(folder / "kg.duckdb") as store:
        tables = {
            table: store.connection.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()
            for table in (
                "entities",
                "relations",
                "triples",
                "qualifiers",
                "types",
                "filtered",
                "labels",
                "relation_labels",
            )
        }
        terms: dict = {}
        for i, key, datatype, detail in store.connection.execute(
            "SELECT id, key, datatype, unit FROM entities"
        ).fetchall():
            terms[i] = key if datatype is None else (key, datatype, *([detail] if detail else []))
        keys = store.relation_keys()
        triples = {(terms[h], keys[r], terms[t]): rank for _, h, r, t, rank in tables["triples"]}
        ends = {i: (terms[h], keys[r], terms[t]) for i, h, r, t, _ in tables["triples"]}
        sets: dict = {}
        for triple, statement, relation, value in tables["qualifiers"]:
            sets.setdefault(ends[triple], {}).setdefault(statement, []).append((keys[relation], terms[value]))
    return counts, tables, triples, sets


@examples(40)
@given(statements, qualifiers, options, st.integers(0, 5))
def test_the_meaning_is_as_in_plain_python_and_every_statement_is_counted(statements, qualifiers, options, seed):
    if options.relations and not {p for _, p, _, _ in statements} & {"P19", "r"}:
        statements = [*statements, ("a", "r", "b", 0)]
    with tempfile.TemporaryDirectory() as folder:
        counts, tables, triples, sets = built(Path(folder), statements, qualifiers, options)
    wanted, by_triple, filtered, derived = expected(statements, qualifiers, options)
    assert triples == wanted
    assert {rule: n for rule, n in tables["filtered"] if not rule.startswith("qualifier")} == filtered
    assert counts["filtered"] == filtered.total() and counts["qualifier_triples"] == derived
    for numbered in sets.values():
        assert sorted(numbered) == list(range(len(numbered)))
        assert all(len(pairs) == len(set(pairs)) for pairs in numbered.values())
    assert {t: {frozenset(pairs) for pairs in numbered.values()} for t, numbered in sets.items()} == by_triple
    assert all(len(numbered) == len(by_triple[t]) for t, numbered in sets.items())
    parts = ("duplicates", "labels", "aliases", "descriptions", "type_statements", "filtered", "triples")
    assert sum(counts[part] for part in parts) - counts["qualifier_triples"] == len(statements)
    unkept = sum(n for rule, n in tables["filtered"] if rule.startswith("qualifier"))
    repeated = len(qualifiers) - unkept - counts["qualifiers"]
    assert repeated >= 0 and counts["qualifiers"] == sum(len(pairs) for n in sets.values() for pairs in n.values())
    order = list(range(len(statements)))
    random.Random(seed).shuffle(order)
    place = {old: new for new, old in enumerate(order)}
    shuffled = [(place.get(n, n), p, v) for n, p, v in reversed(qualifiers)]
    with tempfile.TemporaryDirectory() as folder:
        again = built(Path(folder), [statements[i] for i in order], shuffled, options)
    assert again[:2] == (counts, tables)
