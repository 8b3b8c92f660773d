"""The graph behind a SPARQL endpoint as N-Triples: all of it, the instances of some classes, or what a query gives.

Statements without blank nodes are paged by their subjects (keyset): each page goes on after the last subject that the
page before had whole, so that no page is deeper than another, an endpoint's own limit of rows loses nothing, and a
subject with more rows than a page is paged by OFFSET alone.  The end is an empty page.  What an endpoint counts is
compared with what it sent.

Labels of blank nodes may hold for one reply only.  Statements with them are fetched in one reply where they fit in a
page; else they are paged where two replies give a node the same label, and fetched in one long reply where they do
not.  A row that is no statement becomes a line that the reader of N-Triples rejects and lists.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from kgqa_core.config import KgOptions, SparqlEndpointOptions
from kgqa_core.errors import EndpointError, KgInputError
from kgqa_core.kg.client.pass_folder import PassFolder
from kgqa_core.kg.client.sparql import Row, SparqlClient, TooMuch
from kgqa_core.kg.client.terms import ntriples_term
from kgqa_core.kg.names import bare_key
from kgqa_core.kg.remote.api import RemoteSpec
from kgqa_core.kg.remote.sparql_query import StatementQuery, read_query
from kgqa_core.kg.vocabulary import RDF_TYPE
from kgqa_core.monitor import Monitor

ROWS = "rows.nt"
TERMS = ("uri", "literal", "typed-literal", "bnode")
COUNT_TRIES = 2
"""Tries of a count, which large endpoints may refuse; nothing is compared then."""
ADVICE = (
    "run the same command again later, with smaller pages (kg.sparql.page_size) or more patience (kg.sparql.timeout)"
)


def check(address: str, options: KgOptions) -> None:
    """Raises KgInputError for a class or graph that is no IRI, and for a query that cannot be sent."""
    chosen = options.sparql
    if chosen.query is not None and chosen.classes:
        raise KgInputError("kg.sparql.query and kg.sparql.classes are both set; a query says itself what it wants")
    for iri in (*chosen.classes, *chosen.graphs):
        _iri(iri)
    if chosen.query is not None:
        read_query(chosen.query, chosen.graphs)


def fetch(
    address: str,
    options: KgOptions,
    passes: PassFolder,
    file: Path,
    monitor: Monitor,
    sleep: Callable[[float], None] = time.sleep,
) -> Mapping[str, Any]:
    """Writes the graph behind an endpoint to `file`; counts of rows, statements and requests.

    Raises KgInputError for settings that cannot be sent, EndpointError for an endpoint that does not answer or holds
    rows back.
    """
    chosen = options.sparql
    endpoint = SparqlEndpointOptions(
        page=chosen.page_size, delay=chosen.delay, retries=chosen.retries, timeout=chosen.timeout
    )
    user, password = os.environ.get("SPARQL_USERNAME"), os.environ.get("SPARQL_PASSWORD")
    login = (user, password) if user and password else None
    client = SparqlClient(address, endpoint, sleep, login=login, advice=ADVICE)
    try:
        with file.open("wb") as stream:
            crawl = _Fetching(client, options, passes, stream, monitor)
            if chosen.query is not None:
                crawl.query(read_query(chosen.query, tuple(map(_iri, chosen.graphs))))
            else:
                crawl.whole()
    finally:
        client.close()
    if not crawl.rows:
        what = "the query" if chosen.query else f"instances of {chosen.classes[0]}" if chosen.classes else "its graph"
        raise KgInputError(f"{client.shown} has no statement for {what}; check the address and kg.sparql")
    return {"rows": crawl.rows, "requests": client.requests, "requests_retried": client.retried}


class _Fetching:
    """One fetch.  rows: what came so far."""

    def __init__(
        self, client: SparqlClient, options: KgOptions, passes: PassFolder, stream: Any, monitor: Monitor
    ) -> None:
        self.client, self.options, self.chosen = client, options, options.sparql
        self.passes, self.stream, self.monitor = passes, stream, monitor
        self.rows = 0
        self.expected: int | None = 0
        self.scope = "n" + hashlib.sha256(client.shown.encode()).hexdigest()[:8]
        self.dataset = "".join(f"FROM <{_iri(graph)}> " for graph in self.chosen.graphs)

    # -- what is fetched ------------------------------------------------------------------------------------------

    def whole(self) -> None:
        """All statements, or those of the instances of the classes, with names of what they lead to."""
        plain, blank = "FILTER(isIRI(?s) && !isBlank(?o))", "FILTER(isBlank(?s) || isBlank(?o))"
        if not self.chosen.classes:
            self._by_subject("all", f"?s ?p ?o {plain}")
            self._blank(f"?s ?p ?o {blank}")
            return
        classes = " ".join(f"<{_iri(iri)}>" for iri in self.chosen.classes)
        member = f"VALUES ?class {{ {classes} }} ?x <{RDF_TYPE}> ?class . "
        of = member.replace("?x", "?s")
        self._by_subject("members", f"{of}?s ?p ?o {plain}")
        inner = f"{member}?x ?q ?s . FILTER(isBlank(?s)) ?s ?p ?o"
        self._blank(f"{{ {of}?s ?p ?o {blank} }} UNION {{ {inner} }}")
        if self.chosen.names:
            options = self.options
            names = (*options.label_predicates, *options.alias_predicates, *options.description_predicates)
            values = " ".join(f"<{_iri(iri)}>" for iri in dict.fromkeys(names) if "://" in iri)
            named = f"FILTER(isIRI(?s)) VALUES ?p {{ {values} }} ?s ?p ?o"
            self._by_subject("names", f"{member}?x ?q ?s . {named}")
            self._by_subject("relation names", f"{member}?x ?s ?y . {named}")

    def query(self, query: StatementQuery) -> None:
        """What the user's query gives, by OFFSET."""
        count = self._count(query.count())
        page, offset, blank = self.chosen.page_size, 0, False
        while True:

            def make(folder: Path, offset: int = offset) -> dict[str, Any]:
                rows = self.client.select(query.select(page, offset))
                triples = [triple for row in rows for triple in query.statements(row)]
                if rows and query.template is None and not any(row.keys() >= {"s", "p", "o"} for row in rows):
                    there = " ".join(f"?{name}" for name in rows[0])
                    raise KgInputError(
                        f"kg.sparql.query gives {there or 'no variable'}, where ?s, ?p and ?o are needed; rename them, "
                        "`SELECT (?person AS ?s) …`, or write a CONSTRUCT query"
                    )
                several = count is None or count > page
                scope = f"{self.scope}p{offset}" if several and not self._labels_hold() else self.scope
                has_blank = any(isinstance(t, dict) and t.get("type") == "bnode" for triple in triples for t in triple)
                return {"rows": len(rows), "lines": self._write(folder, triples, scope), "blank": has_blank}

            counts = self._page(f"query-{offset:010}", query.select(page, offset), make)
            if not counts["rows"]:
                break
            blank |= counts["blank"]
            offset += counts["rows"]
            self.monitor.progress(offset, count, f"rows of {self.client.shown}")
        if blank and (count is None or count > page) and not self._labels_hold():
            self.monitor.note(
                f"{self.client.shown}: labels of blank nodes hold for one reply only, so that a node on two pages is "
                "two nodes; raise kg.sparql.page_size, or leave blank nodes out of kg.sparql.query"
            )
        self._compare(offset, count)

    # -- pages ----------------------------------------------------------------------------------------------------

    def _by_subject(self, part: str, pattern: str) -> None:
        """The statements of a pattern by their subjects, which are IRIs."""
        limit = self.chosen.page_size
        select = f"SELECT DISTINCT ?s ?p ?o {self.dataset}WHERE {{ {pattern} "
        count = self._count(
            f"SELECT (COUNT(*) AS ?n) {self.dataset}WHERE {{ {{ SELECT DISTINCT ?s ?p ?o WHERE {{ {pattern} }} }} }}"
        )
        after: str | None = None
        done = number = 0
        while True:
            bound = f"FILTER(STR(?s) > {_quoted(after)}) " if after is not None else ""
            query = f"{select}{bound}}} ORDER BY STR(?s) LIMIT {limit}"

            def make(folder: Path, query: str = query) -> dict[str, Any]:
                rows = self.client.select(query)
                if not rows:
                    return {"rows": 0, "lines": 0}
                subjects = [_subject(row, self.client.shown) for row in rows]
                whole = next((at for at, subject in enumerate(subjects) if subject == subjects[-1]), 0)
                lines = self._write(folder, map(_triple, rows[:whole]), self.scope)
                return {"rows": whole, "lines": lines, "last": subjects[whole - 1] if whole else None,
                        "next": subjects[-1]}  # fmt: skip

            counts = self._page(f"{part.replace(' ', '-')}-{number:07}", query, make)
            number += 1
            if "next" not in counts:
                break
            if counts["last"] is not None:
                following, done = counts["last"], done + counts["rows"]
            else:  # no subject is whole on this page
                following = counts["next"]
                of_subject = f"{select}FILTER(?s = <{_iri(following)}>) }} ORDER BY ?p STR(?o) ?o"
                done += self._by_offset(f"{part.replace(' ', '-')}-{number:07}-of-one", of_subject)
            if following == after:
                raise EndpointError(f"{self.client.shown} orders subjects otherwise than it compares them; take a dump")
            after = following
            self.monitor.progress(done, count, f"{part}, rows of {self.client.shown}")
        self._compare(done, count)

    def _by_offset(self, name: str, query: str) -> int:
        """The rows of a query that ends with ORDER BY, until a page is empty; how many there were."""
        offset = 0
        while True:
            text = f"{query} LIMIT {self.chosen.page_size} OFFSET {offset}"

            def make(folder: Path, text: str = text) -> dict[str, Any]:
                rows = self.client.select(text)
                return {"rows": len(rows), "lines": self._write(folder, map(_triple, rows), self.scope)}

            counts = self._page(f"{name}-{offset:010}", text, make)
            if not counts["rows"]:
                return offset
            offset += counts["rows"]

    def _blank(self, pattern: str) -> None:
        """The statements of a pattern that have blank nodes."""
        select = f"SELECT DISTINCT ?s ?p ?o {self.dataset}WHERE {{ {pattern} }}"
        count = self._count(f"SELECT (COUNT(*) AS ?n) {self.dataset}WHERE {{ {{ SELECT DISTINCT ?s ?p ?o WHERE "
                            f"{{ {pattern} }} }} }}")  # fmt: skip
        if count == 0:
            return
        if count is not None and count > self.chosen.page_size and self._labels_hold():
            self._compare(self._by_offset("blank", f"{select} ORDER BY ?s ?p ?o"), count)
            return

        def make(folder: Path) -> dict[str, Any]:
            rows = self.client.select(select)
            return {"rows": len(rows), "lines": self._write(folder, map(_triple, rows), self.scope)}

        counts = self._page("blank-whole", select, make)
        self._compare(counts["rows"], count)

    def _page(self, name: str, query: str, make: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        """The counts of a page, fetched now or before; its lines go to the file."""
        folder, counts = self.passes.result(name, [self.client.shown, query], make)
        if counts["lines"]:
            with (folder / ROWS).open("rb") as page:
                shutil.copyfileobj(page, self.stream)
        self.rows += counts["rows"]
        return counts

    def _write(self, folder: Path, triples: Iterable[tuple[Any, Any, Any]], scope: str) -> int:
        """Writes statements as lines, and how many."""
        lines = 0
        with (folder / ROWS).open("w", encoding="utf-8") as stream:
            for triple in triples:
                try:
                    line = " ".join(ntriples_term(_checked(term), scope) for term in triple) + " ."
                    line.encode()
                except (KeyError, TypeError, UnicodeEncodeError):
                    line = json.dumps(triple)  # no N-Triples: the reader lists it among the rejects
                stream.write(line.replace("\n", " ") + "\n")
                lines += 1
        return lines

    # -- checks ---------------------------------------------------------------------------------------------------

    def _count(self, query: str) -> int | None:
        """What an endpoint counts; None where it does not finish."""

        def make(folder: Path) -> dict[str, Any]:
            return {"count": int(self.client.select(query, COUNT_TRIES)[0]["n"]["value"])}

        try:
            return int(self.passes.result("count", [self.client.shown, query], make)[1]["count"])
        except (TooMuch, IndexError, KeyError, ValueError):
            self.monitor.note(f"{self.client.shown} does not count its statements, so that nothing can be compared")
            return None

    def _compare(self, rows: int, count: int | None) -> None:
        """Raises EndpointError where much fewer rows came than the endpoint counts; notes another number."""
        if count is None or rows == count:
            return
        if rows < count * (1 - self.options.max_reject_share):
            raise EndpointError(
                f"{self.client.shown} counts {count:,} statements and sent {rows:,}: its limits hold rows back, or it "
                "changes; try smaller pages (kg.sparql.page_size), kg.sparql.classes, or a dump"
            )
        self.monitor.note(f"{self.client.shown} counted {count:,} statements and sent {rows:,}: it changed meanwhile")

    def _labels_hold(self) -> bool:
        """Whether two replies give a blank node the same label."""

        def make(folder: Path) -> dict[str, Any]:
            nodes = "{ ?b ?p ?o } UNION { ?s ?q ?b } FILTER(isBlank(?b))"
            query = f"SELECT DISTINCT ?b {self.dataset}WHERE {{ {nodes} }} ORDER BY ?b LIMIT "
            two, second = self.client.select(query + "2"), self.client.select(query + "1 OFFSET 1")
            return {"hold": len(two) < 2 or (bool(second) and two[1]["b"] == second[0]["b"])}

        return bool(self.passes.result("labels", [self.client.shown, self.dataset], make)[1]["hold"])


def _checked(term: Any) -> dict[str, str]:
    """A term of the JSON format.  Raises TypeError for none, and for triple terms of RDF 1.2."""
    if not isinstance(term, dict) or term.get("type") not in TERMS or not isinstance(term.get("value"), str):
        raise TypeError
    return term


def _triple(row: Row) -> tuple[Any, Any, Any]:
    return row.get("s"), row.get("p"), row.get("o")


def _subject(row: Row, shown: str) -> str:
    try:
        return str(row["s"]["value"])
    except (KeyError, TypeError):
        raise EndpointError(f"{shown} sent a row without ?s ({row}); it does not follow SPARQL 1.1") from None


def _iri(text: str) -> str:
    """An IRI for a query.  Raises KgInputError for what would end it."""
    plain = bare_key(text)
    if any(sign in '<>"{}|^`\\' or ord(sign) <= 0x20 for sign in plain) or ":" not in plain:
        raise KgInputError(f"{text!r} is no IRI; write it whole, http://schema.org/Person for example")
    return plain


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


def _settings(options: KgOptions) -> Mapping[str, Any]:
    chosen = options.sparql
    query = chosen.query
    if query is not None and query.startswith("@"):  # the file may have been edited since
        read = read_query(query)
        query = f"{read.prologue}{read.dataset}{read.pattern}{read.template}"
    return {"classes": list(chosen.classes), "names": chosen.names, "query": query, "graphs": list(chosen.graphs)}


REMOTE = RemoteSpec(
    name="sparql",
    label="SPARQL 1.1 endpoints: sparql+http://…, sparql+https://…",
    schemes=("sparql+http://", "sparql+https://"),
    file="graph.nt",
    check=check,
    fetch=fetch,
    settings=_settings,
)
