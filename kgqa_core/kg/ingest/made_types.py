"""Types where the files state none: by what things are called, and by the name of a file."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import PurePath

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.base import ENTITY, LITERAL, PLAIN, REJECTS, STATEMENTS, StatementBatch, empty, filled
from kgqa_core.kg.ingest.infer import TYPE_NAMES
from kgqa_core.kg.ingest.interpret import configured_predicates
from kgqa_core.kg.names import bare_key, is_blank_node, key_name
from kgqa_core.kg.vocabulary import OWL, RDF, RDFS
from kgqa_core.kg.words import GENERAL, singular, split_words

MAX_STATEMENTS = 50_000
"""Statements of a graph whose types are inferred."""
FEWEST, SHARE, ALIKE = 3, 0.9, 2 / 3
"""Things or relations that show a type at least, the share that has to agree, and that of another thing's relations."""

_LAST = re.compile(r"[\s_-]([^\W\d_]{3,})$")


def made_types(frames: Sequence[pl.DataFrame], options: KgOptions, files: Iterable[str]) -> dict[str, set[str]]:
    """The things of each type that is inferred from statements, none where one of them gives a type.  files: names.

    A type is the word that the names of nine of ten things at an end of a relation end in, at least three (`Payments
    Team`); and what a file is called by (`services.csv`) where two things are called so, or it is in the plural and
    nearly all subjects are alike: all subjects with most of the relations, at least three, that those share.
    """
    roles = configured_predicates(options)
    ends: dict[tuple[str, bool], set[str]] = defaultdict(set)
    names: dict[str, str] = {}
    rows = (row for frame in frames for row in frame.select("subject", "predicate", "object", "kind").iter_rows())
    for subject, predicate, value, kind in rows if options.infer_types and not options.literal else ():
        if predicate in roles["label"]:
            names[subject] = value
        elif not (predicate in roles["alias"] or predicate in roles["description"] or is_blank_node(subject)):
            ends[predicate, False].add(subject)
            ends[predicate, True].update(() if kind == LITERAL else (value,))
    heads = {relation: members for (relation, is_object), members in ends.items() if not is_object}
    stated = any(re.sub("[ _-]", "", key).casefold() in TYPE_NAMES or key.startswith((OWL, RDF, RDFS)) for key in heads)
    if stated or not heads.keys().isdisjoint({*roles["type"], *roles["subtype"]}) or not options.type_predicates:
        return {}
    things, subjects = set().union(*ends.values()), set().union(*heads.values())
    last = {thing: found[1].lower() for thing in things if (found := _LAST.search(names.get(thing, key_name(thing))))}
    types: dict[str, set[str]] = defaultdict(set)
    for members in ends.values():
        for word, count in Counter(last[thing] for thing in members if thing in last).most_common(1):
            if count >= max(FEWEST, SHARE * len(members)):
                types[word] |= {thing for thing in members if last.get(thing) == word}
    for file in files:
        words = split_words(PurePath(file).name.partition(".")[0])
        [word] = singular(words)[-1:] or [""]
        for group in ({s for s in subjects if last.get(s) == word}, subjects if words[-1:] != [word] else set[str]()):
            shared = [members for members in heads.values() if len(members & group) >= SHARE * len(group)]
            if len(group) > 1 and word not in GENERAL and len(shared) >= FEWEST:
                types[word] |= {s for s in subjects if sum(s in members for members in shared) >= ALIKE * len(shared)}
    taken = {name.casefold() for name in (*things, *names.values())}
    return {word: members for word, members in sorted(types.items()) if word not in taken}


def statements(types: dict[str, set[str]], options: KgOptions) -> StatementBatch:
    """Types as statements."""
    key = bare_key(options.type_predicates[0])
    rows = sorted((thing, key, word, ENTITY) for word, members in types.items() for thing in members)
    frame = pl.DataFrame(rows, ["subject", "predicate", "object", "kind"], orient="row")
    return StatementBatch(filled(frame, STATEMENTS, PLAIN), empty(REJECTS), 0, 1.0)
