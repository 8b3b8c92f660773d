"""A graph to look into, for everything that serves it: HTTP, MCP and the web page.

Several threads may call one view at once: each call reads through a DuckDB connection of its own, and arrays are only
read.  Every call has an end: numbers of rows are limited, and what takes longer than `seconds` is interrupted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import duckdb

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.shortest import relation_paths
from kgqa_core.errors import FormTimeout, GraphMismatch, InputError
from kgqa_core.kg.look.query import limited_query
from kgqa_core.kg.look.search import with_words
from kgqa_core.kg.look.stats import schema
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.mentions import MentionDictionary
from kgqa_core.logic.execute import interrupt_after
from kgqa_core.logic.look import look_up, tabled
from kgqa_core.serving import limits
from kgqa_core.serving.graph_reader import GraphArrays, GraphReader
from kgqa_core.serving.graph_records import (
    EntityPage,
    FormResult,
    NeighbourhoodRecord,
    PathRecord,
    PathsRecord,
    PictureEdge,
    PictureNode,
    RelationRecord,
    SchemaRecord,
    SearchMatch,
    SearchResult,
    TableRecord,
    TypesRecord,
)
from kgqa_core.serving.graph_search import names_like, nearest_names
from kgqa_core.serving.neighbours import RULE, chosen_edges

NAMES, OTHERS = 50, 10
"""Aliases, and further entities of one name, that the page of an entity holds."""
SHOWN = 80
"""Characters of a text that an error shows."""

Direction = Literal["both", "out", "in"]
SIDES: tuple[Literal["out"], Literal["in"]] = ("out", "in")


class GraphView:
    """Looks into one graph.

    store: the open graph; the view reads through connections of its own, until `close`.  dkg: of the same graph.
    mentions: its mention dictionary.  seconds: most time of a call.
    """

    def __init__(
        self, store: KgStore, dkg: Dkg, mentions: MentionDictionary, *, seconds: float = limits.SECONDS
    ) -> None:
        """Raises GraphMismatch where they belong to different graphs."""
        if dkg.triples != store.counts()["triples"] or mentions.meta["graph"] != store.counts():
            raise GraphMismatch(
                f"the graph {store.path} has {store.counts()['triples']:,} triples, its DKG {dkg.triples:,}, and its "
                f"mention dictionary is of a graph with {mentions.meta['graph'].get('triples', 0):,}; make them anew"
            )
        self.seconds, self.counts = seconds, store.counts()
        self._dkg, self._mentions = dkg, mentions
        self._arrays = GraphArrays(dkg, mentions, store.relation_keys(), store.relation_names())
        self._store = store.for_thread()

    @classmethod
    def open(cls, kg: Path, dkg: Path, mentions: Path, *, seconds: float = limits.SECONDS) -> GraphView:
        """The view of a graph's folders.  Raises ArtifactError, GraphMismatch."""
        return cls(KgStore.open(kg), Dkg.open(dkg), MentionDictionary(mentions), seconds=seconds)

    def close(self) -> None:
        """Let the graph go; calls that are under way fail."""
        self._store.close()

    def store(self) -> KgStore:
        """The graph, through a connection of the caller's own, who closes it."""
        return self._store.for_thread()

    # -- what can be called ------------------------------------------------------------------------------------

    def schema(self, limit: int = 50) -> SchemaRecord:
        """Counts, and the largest types and relations.  limit: of each."""
        with self._reading("the schema") as reader:
            return SchemaRecord(self.counts, **schema(reader.store, top=limit))

    def search(self, text: str, limit: int = 20) -> SearchResult:
        """Entities by name or key, best first: its key, whole names, names that begin so, parts of names.

        Where there are none of these, those whose names hold all its words, else those at the fewest typing errors.
        Within each the best connected come first.  Raises InputError for a limit or a text that is too long.
        """
        _limit("limit", limit, limits.MOST_SEARCHED)
        with self._reading(text) as reader:
            sql = "SELECT id FROM entities WHERE key = ? AND kind = 'entity' ORDER BY id LIMIT 1"
            keyed = reader.store.connection.execute(sql, [text.strip()]).fetchall()
        matches: list[tuple[int, str, Any]] = [(int(i), text.strip(), "key") for (i,) in keyed]
        known = {entity for entity, _, _ in matches}
        matches += [match for match in names_like(self._mentions, self._dkg, text, limit + 1) if match[0] not in known]
        matches = matches or self._with_words(text, limit + 1)
        matches = matches or [*nearest_names(self._mentions, self._dkg, text, limit + 1)]
        return SearchResult(
            text,
            tuple(
                SearchMatch(
                    id=entity,
                    key=self._mentions.keys[entity],
                    name=self._mentions.labels[entity],
                    types=self._arrays.type_names(entity),
                    description=self._mentions.descriptions[entity] or None,
                    degree=self._arrays.degree(entity),
                    matched=name,
                    how=how,
                )
                for entity, name, how in matches[:limit]
            ),
            len(matches) > limit,
        )

    def entity(
        self,
        name: str,
        *,
        limit: int = 50,
        offset: int = 0,
        direction: Direction = "both",
        relation: str | None = None,
    ) -> EntityPage:
        """What the graph says of the entity with a key, label or alias; the best connected one of several.

        limit, offset: facts of a page, in each direction.  direction: whose facts are read, those that it is the head
        of (`out`), the tail (`in`) or both.  relation: key or name of the one whose facts are read; all when None.
        Raises InputError for a name that is none, with the nearest, and for an unknown relation.
        """
        _limit("limit", limit, limits.MOST_FACTS)
        if offset < 0:
            raise InputError(f"offset is {offset}; give 0 or more")
        with self._reading(name) as reader:
            node, others = reader.resolve(name)
            chosen = None if relation is None else self._arrays.find_relation(relation)
            facts, incoming = (
                reader.page(node, side, chosen, limit if direction in ("both", side) else 0, offset) for side in SIDES
            )
            forms, kinds = reader.store.surface_forms([node])[node][1:], self._arrays.types(node)
            nodes = reader.nodes([node, *kinds, *others[:OTHERS]])
            return EntityPage(
                entity=nodes[node],
                description=reader.store.description(node),
                aliases=tuple(forms[:NAMES]),
                aliases_total=len(forms),
                types=tuple(nodes[kind] for kind in kinds),
                degree=facts.total + incoming.total if chosen is None else self._arrays.degree(node),
                facts=facts,
                incoming=incoming,
                others=tuple(nodes[other] for other in others[:OTHERS]),
            )

    def types(self, ids: Sequence[int]) -> TypesRecord:
        """Names of the types of nodes, by id.  Raises InputError for more ids than a picture has."""
        _limit("ids", len(ids), limits.MOST_SHOWN)
        known = range(self._dkg.entities)
        return TypesRecord({i: self._arrays.type_names(i) for i in ids if i in known})

    def neighbourhood(self, name: str, limit: int = 50) -> NeighbourhoodRecord:
        """An entity with its neighbours, for a picture; at most `limit` edges, chosen by `rule`.

        Raises InputError for a name that is none, with the nearest.
        """
        _limit("limit", limit, limits.MOST_SHOWN)
        dkg, arrays = self._dkg, self._arrays
        with self._reading(name) as reader:
            centre, _ = reader.resolve(name)
            start, stop = arrays.row(centre)
            edges, left_out = chosen_edges(dkg, start, stop, limit)
            triples, numbers, ends = (
                values.tolist() for values in (dkg.triple_of(edges), dkg.rel[edges], dkg.tail[edges])
            )
            shown = list(dict.fromkeys([centre, *ends]))
            nodes = reader.nodes(shown)
        rows = zip(triples, numbers, ends, strict=True)
        return NeighbourhoodRecord(
            centre=centre,
            nodes=tuple(
                PictureNode(i, nodes[i].key, nodes[i].name, nodes[i].kind, arrays.type_names(i), arrays.degree(i))
                for i in shown
            ),
            edges=tuple(PictureEdge(triple, *self._stored(centre, number, end)) for triple, number, end in rows),
            total=stop - start,
            left_out=tuple(arrays.count(number, count) for number, count in left_out),
            rule=RULE,
        )

    def paths(self, start: str, end: str, max_hops: int = 3, limit: int = 20) -> PathsRecord:
        """The shortest relation paths between two entities.

        Raises InputError for a name that is none, with the nearest.
        """
        _limit("max_hops", max_hops, limits.MOST_HOPS)
        _limit("limit", limit, limits.MOST_PATHS)
        _check("end", end, limits.LONGEST)
        with self._reading(start) as reader:
            first, last = reader.resolve(start)[0], reader.resolve(end)[0]
            searched = relation_paths(self._dkg, first, last, max_hops=max_hops, limit=limit)
            nodes = reader.nodes([first, last, *(i for path in searched.paths for i in path.example)])
        return PathsRecord(
            start=nodes[first],
            end=nodes[last],
            max_hops=max_hops,
            hops=searched.hops,
            paths=tuple(
                PathRecord(
                    tuple(map(self._arrays.relation, path.relations)),
                    path.count,
                    tuple(nodes[i] for i in path.example),
                )
                for path in searched.paths
            ),
            total=searched.total,
            complete=searched.complete,
        )

    def query(self, form: str, limit: int = 50, seconds: float | None = None) -> FormResult:
        """What a logical form or a query in SPARQL denotes, with its proof; things may be named by label.

        limit: answers, and triples of proof.  seconds: most time, that of the view at most.
        Raises FormError, an InputError, for a form that cannot be read or does not fit the graph, and FormTimeout.
        """
        _limit("limit", limit, limits.MOST_ROWS)
        most = self.seconds if seconds is None else min(max(seconds, 0.0), self.seconds)
        with self._reading(form, most) as reader:
            looked_up = look_up(reader.store, form, limit=limit, seconds=most)
            nodes = reader.nodes(looked_up.result.ids)
            answers = tabled(reader.store, looked_up.result, {i: node.name for i, node in nodes.items()})
            proof = reader.facts(looked_up.result.proof)
        return FormResult(
            form=str(looked_up.form),
            value=looked_up.result.value,
            unit=looked_up.unit,
            answers=tuple(replace(nodes[i], name=text) for i, text in answers),
            values=tuple(text.removeprefix(f"{nodes[i].name}: ") for i, text in answers if looked_up.result.rows),
            proof=proof,
            more=looked_up.result.truncated,
            why=looked_up.why,
            seconds=looked_up.seconds,
        )

    def sql(self, statement: str, limit: int = 50) -> TableRecord:
        """The rows of a statement in SQL, which reads the tables of the graph and nothing else.

        limit: rows.  Raises InputError for what is refused, with DuckDB's message, and FormTimeout.
        """
        _limit("limit", limit, limits.MOST_ROWS)
        begun = time.monotonic()
        found = limited_query(self._store.path, statement, limit=limit, seconds=self.seconds)
        return TableRecord(**found, seconds=round(time.monotonic() - begun, 4))

    # -- parts -------------------------------------------------------------------------------------------------

    def _with_words(self, text: str, limit: int) -> list[tuple[int, str, Any]]:
        """Entities whose names hold all words of a text; none where the names are too many to be read in time."""
        with suppress(FormTimeout), self._reading(text, min(limits.SCAN_SECONDS, self.seconds)) as reader:
            return [(i, name, "part") for i, name, *_ in with_words(reader.store, text.strip(), limit)]
        return []

    @contextmanager
    def _reading(self, what: str, seconds: float | None = None) -> Iterator[GraphReader]:
        """A reader with a connection of its own, which is interrupted when its time is over.

        what: is looked for.  Raises FormTimeout.
        """
        _check("a name", what, limits.LONGEST_FORM if seconds is not None else limits.LONGEST)
        most, done, store = self.seconds if seconds is None else seconds, threading.Event(), self._store.for_thread()
        watch = threading.Thread(target=interrupt_after, args=(store.connection, most, done), daemon=True)
        begun = time.monotonic()
        watch.start()
        try:
            yield GraphReader(store, self._arrays)
        except duckdb.Error as fault:  # what an interrupt leaves half done may fail in other ways, too
            if not isinstance(fault, duckdb.InterruptException) and time.monotonic() < begun + most:
                raise
            shown = what if len(what) <= SHOWN else f"{what[:SHOWN]}…"
            raise FormTimeout(f"looking for {shown!r} took longer than {most:g} s; ask for less at a time") from None
        finally:
            done.set()
            watch.join()
            store.close()

    def _stored(self, centre: int, number: int, end: int) -> tuple[int, RelationRecord, int]:
        """Head, relation and tail of the triple behind a directed edge."""
        relation = self._arrays.relation(number % self._dkg.relations)
        return (end, relation, centre) if number >= self._dkg.relations else (centre, relation, end)


def _limit(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InputError(f"{name} is {value}; give 1 to {most}")


def _check(name: str, text: str, most: int) -> None:
    if not text.strip():
        raise InputError(f"{name} is empty; give a key or a name of the graph")
    if len(text) > most:
        raise InputError(f"{name} has {len(text):,} characters; give at most {most:,}")
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise InputError(f"{text[:SHOWN]!r} holds half a character; send it as UTF-8")
