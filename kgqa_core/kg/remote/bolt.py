"""The graph of a Neo4j server over Bolt, as JSON lines of `neo4j-json`: nodes, then relationships, in pages by id.

A page goes on after the last id of the page before.  User and password come from the environment only.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import random
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kgqa_core.config import KgOptions
from kgqa_core.errors import EndpointError, KgInputError
from kgqa_core.extras import require_extra
from kgqa_core.kg.client.pass_folder import PassFolder
from kgqa_core.kg.client.sparql import FIRST_WAIT, LONGEST_WAIT
from kgqa_core.kg.remote.api import RemoteSpec
from kgqa_core.monitor import Monitor

log = logging.getLogger(__name__)

USER, PASSWORD = "NEO4J_USERNAME", "NEO4J_PASSWORD"
ROWS = "rows.jsonl"
SCHEMES = tuple(f"{name}{more}://" for name in ("neo4j", "bolt") for more in ("", "+s", "+ssc"))

NODES = (
    "MATCH (n) WHERE elementId(n) > $after RETURN elementId(n) AS id, labels(n) AS labels, properties(n) AS properties "
    "ORDER BY elementId(n) LIMIT $limit"
)
RELATIONSHIPS = (
    "MATCH (a)-[r]->(b) WHERE elementId(r) > $after RETURN elementId(r) AS id, type(r) AS label, properties(r) AS "
    "properties, elementId(a) AS start, elementId(b) AS end ORDER BY elementId(r) LIMIT $limit"
)


def check(address: str, options: KgOptions) -> None:
    """Raises ConfigError without the extra `neo4j`, KgInputError where half of a login is set."""
    require_extra("neo4j", address)
    user, password = os.environ.get(USER), os.environ.get(PASSWORD)
    if (user is None) != (password is None):
        raise KgInputError(f"{USER} and {PASSWORD} belong together; set {PASSWORD if user is not None else USER} too")


def fetch(
    address: str,
    options: KgOptions,
    passes: PassFolder,
    file: Path,
    monitor: Monitor,
    sleep: Callable[[float], None] = time.sleep,
) -> Mapping[str, Any]:
    """Writes the graph of a server to `file`; counts of nodes, relationships and queries.

    Raises KgInputError for an address or a login that is wrong or an empty graph, EndpointError for a server that does
    not answer.
    """
    from neo4j import GraphDatabase
    from neo4j.exceptions import ConfigurationError

    user, password = os.environ.get(USER), os.environ.get(PASSWORD)
    auth = (user, password) if user is not None and password is not None else None
    try:
        driver = GraphDatabase.driver(address, auth=auth, connection_timeout=options.neo4j.timeout)
    except (ConfigurationError, ValueError) as fault:
        raise KgInputError(f"{address} is no address of a Neo4j server ({fault})") from None
    counts = {"nodes": 0, "relationships": 0, "queries": 0, "queries_retried": 0}
    with driver, file.open("wb") as stream:
        server = _Server(driver, address, options, sleep, counts)
        for kind, query in (("nodes", NODES), ("relationships", RELATIONSHIPS)):
            after, number = "", 0
            while True:

                def make(folder: Path, query: str = query, after: str = after, kind: str = kind) -> dict[str, Any]:
                    rows = server.run(query, {"after": after, "limit": options.neo4j.page_size})
                    with (folder / ROWS).open("w", encoding="utf-8") as page:
                        for row in rows:
                            page.write(json.dumps(_line(kind, row), ensure_ascii=False) + "\n")
                    return {"rows": len(rows), "last": str(rows[-1]["id"]) if rows else after}

                key = [address, options.neo4j.database, user, query, after, options.neo4j.page_size]
                folder, page = passes.result(f"{kind}-{number:07}", key, make)
                if not page["rows"]:
                    break
                with (folder / ROWS).open("rb") as rows:
                    shutil.copyfileobj(rows, stream)
                counts[kind] += page["rows"]
                after, number = page["last"], number + 1
                monitor.progress(counts[kind], None, f"{kind} of {address}")
    if not counts["nodes"]:
        raise KgInputError(f"{address} has no node; check the address, and name the database with kg.neo4j.database")
    return counts


class _Server:
    """Queries to a server, one at a time, with patience."""

    def __init__(
        self, driver: Any, address: str, options: KgOptions, sleep: Callable[[float], None], counts: dict[str, int]
    ) -> None:
        self.driver, self.address, self.options = driver, address, options.neo4j
        self.sleep, self.counts = sleep, counts

    def run(self, query: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """The rows of a query.  Raises KgInputError where it is refused, EndpointError after the last try."""
        from neo4j import READ_ACCESS
        from neo4j.exceptions import AuthError, DriverError, Neo4jError

        failure = ""
        for attempt in range(self.options.retries + 1):
            if attempt:
                self.counts["queries_retried"] += 1
                log.info("%s: %s; requested again", self.address, failure)
                self.sleep(min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT) * (0.5 + random.random() / 2))
            elif self.counts["queries"] and self.options.delay:
                self.sleep(self.options.delay)
            self.counts["queries"] += 1
            try:
                with self.driver.session(
                    database=self.options.database, default_access_mode=READ_ACCESS, fetch_size=1000
                ) as session:
                    return [dict(record) for record in session.run(query, parameters)]
            except AuthError as fault:
                raise KgInputError(
                    f"{self.address} refuses the login ({fault.message or fault.code}); set {USER} and {PASSWORD}"
                ) from None
            except (DriverError, Neo4jError, OSError) as fault:
                failure = f"{type(fault).__name__}: {str(fault).splitlines()[0][:200] if str(fault) else ''}"
                if isinstance(fault, Neo4jError | DriverError) and not fault.is_retryable():
                    raise EndpointError(f"{self.address} refuses a query ({failure}); the query is:\n{query}") from None
        raise EndpointError(
            f"{self.address} does not answer after {self.options.retries + 1} tries ({failure}); what it answered is "
            "kept: run the same command again later, or with more patience (kg.neo4j.retries, kg.neo4j.timeout)"
        )


def _line(kind: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as a line of `neo4j-json`."""
    properties, datatypes = {}, {}
    for name, value in row["properties"].items():
        properties[name], datatype = _plain(value)
        if datatype is not None:
            datatypes[name] = datatype
    line = {"type": "node" if kind == "nodes" else "relationship", "id": row["id"], "properties": properties}
    line |= {"datatypes": datatypes} if datatypes else {}
    if kind == "nodes":
        return line | {"labels": sorted(row["labels"])}
    return line | {"label": row["label"], "start": {"id": row["start"]}, "end": {"id": row["end"]}}


def _plain(value: Any) -> tuple[Any, str | None]:
    """A value as JSON has it, and the datatype that JSON cannot tell."""
    from neo4j import spatial
    from neo4j import time as times

    if isinstance(value, list):
        pairs = [_plain(element) for element in value]
        return [plain for plain, _ in pairs], next((datatype for _, datatype in pairs if datatype), None)
    for kind, datatype in (
        (times.DateTime, "dateTime"), (times.Date, "date"), (times.Time, "time"), (times.Duration, "duration")
    ):  # fmt: skip
        if isinstance(value, kind):
            return value.iso_format(), datatype
    if isinstance(value, spatial.Point):
        return f"POINT({' '.join(f'{number:g}' for number in value)})", None
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(bytes(value)).decode(), "base64Binary"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value), "double"
    return value, None


def _settings(options: KgOptions) -> Mapping[str, Any]:
    return {"database": options.neo4j.database, "user": os.environ.get(USER)}


REMOTE = RemoteSpec(
    name="neo4j",
    label="Neo4j servers: neo4j://…, bolt://…, with +s for TLS",
    schemes=SCHEMES,
    file="graph.jsonl",
    check=check,
    fetch=fetch,
    settings=_settings,
)
