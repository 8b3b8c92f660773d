"""The neighbourhood of some entities out of a SPARQL endpoint: batches of VALUES, one query at a time.

Each batch of a hop counts the runs of its entities first, then fetches what is not cut.  Its rows are a finished pass:
a killed command goes on with the next batch.  Blank nodes are kept as objects and not followed, since their labels mean
nothing in the next query.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.config import KgOptions, SubsetOptions
from kgqa_core.errors import EndpointError, KgInputError
from kgqa_core.kg.bridges import canonical
from kgqa_core.kg.client.pass_folder import COUNTS, PassFolder
from kgqa_core.kg.client.sparql import Row, SparqlClient, TooMuch
from kgqa_core.kg.client.terms import Dialect, dialect, dialect_of_seeds, is_mid, ntriples_term
from kgqa_core.kg.subset.codes import CodeSet, codes_of, distinct
from kgqa_core.kg.subset.part import LINES, RELATION_CODES, RELATION_LINES
from kgqa_core.kg.subset.subset import SubsetResult
from kgqa_core.monitor import QUIET, Monitor

ROWS = "rows.jsonl"
TRIES = 2
"""Tries of a query that can be divided."""

Fact = tuple[str, str, str | None, str]
"""Subject and relation by key, the object where it is an entity, and the line of N-Triples."""


def subset_of_endpoint(
    address: str,
    seeds: Sequence[str],
    options: SubsetOptions,
    passes: PassFolder,
    monitor: Monitor = QUIET,
    sleep: Callable[[float], None] = time.sleep,
) -> SubsetResult:
    """The neighbourhood of the seeds in the graph behind an endpoint, `sparql+http://…`.

    It is that of `subset_of_dump` over the same graph.  Raises KgInputError for an address that is none or an endpoint
    that knows none of the seeds, EndpointError when it does not answer; what it answered before stays in `passes`.
    """
    started = time.monotonic()
    client = SparqlClient(address, options.endpoint, sleep)
    try:
        crawl = _Crawl(client, list(dict.fromkeys(map(canonical, seeds))), options, passes, monitor)
        result = crawl.run()
    finally:
        client.close()
    result.counts |= {
        "requests": client.requests,
        "requests_retried": client.retried,
        "passes_found_done": [f"{len(passes.done)} batches"] if passes.done else [],
        "seconds": {"all": round(time.monotonic() - started, 2)},
        "format": "ntriples",
    }
    return result


class _Crawl:
    """One subset of an endpoint."""

    def __init__(
        self, client: SparqlClient, seeds: list[str], options: SubsetOptions, passes: PassFolder, monitor: Monitor
    ) -> None:
        self.client, self.seeds, self.options, self.passes, self.monitor = client, seeds, options, passes, monitor
        self.settings = KgOptions()
        name = dialect_of_seeds(seeds)
        self.bridging = name == "freebase" and self._is_wikidata()
        self.words: Dialect = dialect("wikidata" if self.bridging else name, self.settings)
        self.lines: dict[str, None] = {}
        self.kept = dict.fromkeys(("edges", "literals", "types", "names", "relation_names"), 0)
        self.used: set[str] = set()
        self.ends: set[str] = set()
        self.rows = 0

    def run(self) -> SubsetResult:
        bridged = self._bridged() if self.bridging else {}
        reached = {seed for seed in self.seeds if self.words.entity_iri(seed)} if not self.bridging else set()
        reached |= {key for keys in bridged.values() for key in keys}
        frontier, expanded = set(reached), set[str]()
        by_hop: list[dict[str, int]] = []
        hubs: set[str] = set()
        runs = 0
        for hop in range(1, self.options.hops + 1):
            ends, counts = self._hop(hop, sorted(frontier), hubs)
            expanded |= frontier
            runs += counts["runs_cut"]
            frontier_size, frontier = len(frontier), ends - reached
            reached |= frontier
            by_hop.append({"hop": hop, "followed_from": frontier_size, "entities_reached": len(frontier), **counts})
            if not frontier:
                break
        types = self._types(sorted(reached))
        self._names(sorted(reached | types))
        not_found = [
            seed for seed in self.seeds if seed not in self.ends and not self.ends.intersection(bridged.get(seed, ()))
        ]
        if len(not_found) == len(self.seeds):
            raise KgInputError(
                f"{self.client.shown} knows none of the {len(self.seeds):,} entities of the questions (the first is "
                f"'{self.seeds[0]}'); do the questions belong to this graph?"
            )
        return SubsetResult(
            {
                "rows_read": self.rows,
                "kept": self.kept,
                "entities": len(self.ends),
                "relations": len(self.used),
                "seeds": len(self.seeds),
                "seeds_bridged": len(bridged),
                "seeds_not_found": len(not_found),
                "by_hop": by_hop,
                "hubs_cut": len(hubs),
                "runs_cut": runs,
            },
            [self._part()],
            CodeSet(distinct([codes_of(self.used)])),
            not_found,
        )

    def _hop(self, hop: int, frontier: list[str], hubs: set[str]) -> tuple[set[str], dict[str, int]]:
        """The entities at the other ends of what is followed, and counts."""
        ends: set[str] = set()
        cut_runs = cut_edges = 0
        edges = self.kept["edges"]
        directions = ("out", "in") if self.options.direction == "both" else ("out",)
        for number, part in self._batches(frontier):
            self.monitor.progress(number, len(frontier), f"entities, hop {hop} of {self.options.hops}")
            for direction in directions:
                cut, facts = self._fetch(f"{direction}-{hop}-{number:07}", part, direction)
                cut_runs += len(cut)
                cut_edges += sum(length for _, _, length in cut)
                hubs |= {entity for entity, _, _ in cut}
                for fact in facts:
                    self._keep(fact, "edges" if fact[2] is not None else "literals")
                    if fact[2] is not None:
                        ends.add(fact[2] if direction == "out" else fact[0])
        return ends, {
            "edges": self.kept["edges"] - edges,
            "hubs_cut": len({entity for entity in frontier if entity in hubs}),
            "runs_cut": cut_runs,
            "edges_cut": cut_edges,
        }

    def _fetch(self, name: str, keys: list[str], direction: str) -> tuple[list[tuple[str, str, int]], list[Fact]]:
        """Runs that are cut (entity, relation, length), and the statements of the others."""
        words, options = self.words, self.options
        near, far = ("?s", "?o") if direction == "out" else ("?o", "?s")
        conditions = [words.followed("?p")]
        if direction == "in":
            conditions.append(words.is_entity("?s"))
        relations = ""
        if options.relations:
            relations = f"VALUES ?p {{ {' '.join(f'<{words.relation_iri(key)}>' for key in options.relations)} }} "

        def query(part: list[str]) -> tuple[list[tuple[str, str, int]], list[Row]]:
            values = " ".join(f"<{words.entity_iri(key)}>" for key in part)
            pattern = f"VALUES {near} {{ {values} }} {relations}?s ?p ?o . "
            filters = "".join(f"FILTER({condition}) " for condition in conditions)
            cut: list[tuple[str, str, int]] = []
            if options.max_degree:
                between = f"FILTER({words.is_entity(far)}) "
                for row in self.client.select(
                    f"SELECT {near} ?p (COUNT(*) AS ?n) WHERE {{ {pattern}{filters}{between}}} GROUP BY {near} ?p "
                    f"HAVING (COUNT(*) > {options.max_degree})",
                    self._tries(part),
                ):
                    key = words.entity_key(row[near[1:]])
                    if key is not None:
                        cut.append((key, words.relation_key(row["p"]["value"]), int(row["n"]["value"])))
            for key, relation, _ in cut:
                same = f"{near} = <{words.entity_iri(key)}> && ?p = <{words.relation_iri(relation)}>"
                filters += f"FILTER(!({same} && {words.is_entity(far)})) "
            rows: list[Row] = []
            for page in self.client.pages(
                f"SELECT ?s ?p ?o WHERE {{ {pattern}{filters}}} ORDER BY ?s ?p ?o", self._tries(part)
            ):
                rows += page
            return cut, rows

        def make(folder: Path) -> dict[str, Any]:
            cut: list[tuple[str, str, int]] = []
            rows: list[Row] = []
            for more, answer in self._divided(keys, query):
                cut += more
                rows += answer
            return {"cut": cut, "rows": self._write_rows(folder, rows, name)}

        folder, counts = self.passes.result(name, [*self._key(), keys, direction, options.max_degree], make)
        self.rows += counts["rows"]
        return [(entity, relation, length) for entity, relation, length in counts["cut"]], list(_read_rows(folder))

    def _types(self, keys: list[str]) -> set[str]:
        """The types of entities, which are kept."""
        types = set()
        if self.words.types:
            for fact in self._about(
                "types", keys, [(key, self.words.entity_iri(key)) for key in keys], self.words.types
            ):
                if fact[2] is not None:
                    types.add(fact[2])
                    self._keep(fact, "types")
        return types

    def _names(self, keys: list[str]) -> None:
        """The names of entities, and of the relations that are used."""
        named = set(keys)
        iris = [(key, self.words.entity_iri(key)) for key in keys]
        iris += [(key, self.words.entities + key if "://" not in key else key) for key in sorted(self.used - named)]
        languages = [language.casefold() for language in self.options.languages]
        for fact in self._about("names", [key for key, _ in iris], iris, self.words.names):
            tag = fact[3].rpartition('"')[2].removesuffix(" .")
            if not languages or not tag.startswith("@") or tag[1:].casefold() in languages:
                self._keep(fact, "names" if fact[0] in named else "relation_names")

    def _about(
        self, name: str, keys: list[str], iris: list[tuple[str, str | None]], predicates: Sequence[str]
    ) -> Iterator[Fact]:
        """Statements of entities with some predicates."""
        by_key = dict(iris)
        wanted = " ".join(f"<{iri}>" for iri in predicates)

        def query(part: list[str]) -> list[Row]:
            values = " ".join(f"<{by_key[key]}>" for key in part)
            pattern = f"VALUES ?s {{ {values} }} VALUES ?p {{ {wanted} }} ?s ?p ?o"
            text = f"SELECT ?s ?p ?o WHERE {{ {pattern} }} ORDER BY ?s ?p ?o"
            return [row for page in self.client.pages(text, self._tries(part)) for row in page]

        for number, part in self._batches(keys):
            self.monitor.progress(number, len(keys), f"entities, {name}")
            pass_name = f"{name}-{number:07}"

            def make(folder: Path, part: list[str] = part, pass_name: str = pass_name) -> dict[str, Any]:
                rows = [row for answer in self._divided(part, query) for row in answer]
                return {"rows": self._write_rows(folder, rows, pass_name)}

            folder, counts = self.passes.result(pass_name, [*self._key(), part, name], make)
            self.rows += counts["rows"]
            yield from _read_rows(folder)

    def _is_wikidata(self) -> bool:
        """Whether the graph is Wikidata, with Freebase's ids of its items."""
        relation = dialect("wikidata", self.settings).relation_iri(self.settings.bridges[0])
        return bool(self.client.select(f"SELECT ?s WHERE {{ ?s <{relation}> ?o }} LIMIT 1"))

    def _bridged(self) -> dict[str, list[str]]:
        """Items that have a seed as their id in Freebase, by seed."""
        relation = self.words.relation_iri(self.settings.bridges[0])
        bridged: dict[str, list[str]] = {}
        mids = [seed for seed in self.seeds if is_mid(seed)]
        for _, part in self._batches(mids):
            by_value = {f"/{mid.replace('.', '/', 1)}": mid for mid in part}
            values = " ".join(f'"{value}"' for value in by_value)
            query = f"SELECT ?s ?o WHERE {{ VALUES ?o {{ {values} }} ?s <{relation}> ?o }} ORDER BY ?s ?o"
            for page in self.client.pages(query):
                for row in page:
                    key = self.words.entity_key(row["s"])
                    if key is not None:
                        bridged.setdefault(by_value[row["o"]["value"]], []).append(key)
        return bridged

    def _keep(self, fact: Fact, what: str) -> None:
        subject, relation, thing, line = fact
        if line in self.lines:
            return
        self.lines[line] = None
        self.kept[what] += 1
        if not what.endswith("names"):
            self.used.add(relation)
            self.ends.add(subject)
            if thing is not None:
                self.ends.add(thing)

    def _batches(self, keys: list[str]) -> Iterator[tuple[int, list[str]]]:
        for begin in range(0, len(keys), self.options.endpoint.batch):
            yield begin, keys[begin : begin + self.options.endpoint.batch]

    def _tries(self, part: list[str]) -> int | None:
        return TRIES if len(part) > 1 else None

    def _divided(self, keys: list[str], query: Callable[[list[str]], Any]) -> Iterator[Any]:
        """The results of a query for some entities, or of two with half of them where it is not finished."""
        try:
            yield query(keys)
        except TooMuch:
            half = len(keys) // 2
            yield from self._divided(keys[:half], query)
            yield from self._divided(keys[half:], query)

    def _key(self) -> list[Any]:
        return [self.client.shown, self.words.name, self.options.relations]

    def _write_rows(self, folder: Path, rows: list[Row], name: str) -> int:
        with (folder / ROWS).open("w", encoding="utf-8") as stream:
            for row in rows:
                try:
                    subject, predicate, thing = row["s"], row["p"], row["o"]
                    terms = [ntriples_term(term, name.replace("-", "x")) for term in (subject, predicate, thing)]
                except (KeyError, TypeError) as fault:
                    raise EndpointError(f"{self.client.shown} sent a row that is none ({row}): {fault}") from None
                key = self.words.entity_key(subject) or subject["value"]
                fact = (key, self.words.relation_key(predicate["value"]), self.words.entity_key(thing))
                stream.write(json.dumps([*fact, f"{' '.join(terms)} ."], ensure_ascii=False) + "\n")
        return len(rows)

    def _part(self) -> Path:
        """The lines as a part of a subset."""
        folder = self.passes.path / "lines"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LINES).open("w", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in self.lines)
        for name in (RELATION_LINES, RELATION_CODES, COUNTS):
            (folder / name).write_bytes(b"")
        return folder


def _read_rows(folder: Path) -> Iterator[Fact]:
    with (folder / ROWS).open(encoding="utf-8") as stream:
        for line in stream:
            subject, relation, thing, text = json.loads(line)
            yield subject, relation, thing, text
