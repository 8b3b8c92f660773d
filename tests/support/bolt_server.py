"""A Neo4j server on loopback, as far as the official driver needs one to read pages: Bolt 5.4 over nodes and edges.

It knows the two queries of `kg.remote.bolt`.  `faults` are given out one a query, then it behaves: `cut` (the
connection ends in the middle of the rows), `transient` (an error that is worth another try), `refused` (one that is
not).  Specifications: Bolt Protocol and PackStream of neo4j.com/docs/bolt.
"""

from __future__ import annotations

import contextlib
import datetime
import socket
import socketserver
import struct
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MAGIC = b"\x60\x60\xb0\x17"
VERSION = b"\x00\x00\x04\x05"
HELLO, GOODBYE, RESET, RUN, DISCARD, PULL, TELEMETRY, ROUTE, LOGON = 1, 2, 0x0F, 0x10, 0x2F, 0x3F, 0x54, 0x66, 0x6A
SUCCESS, RECORD, IGNORED, FAILURE = 0x70, 0x71, 0x7E, 0x7F
CODES = {
    "transient": "Neo.TransientError.General.DatabaseUnavailable",
    "refused": "Neo.ClientError.Statement.SyntaxError",
    "denied": "Neo.ClientError.Security.Unauthorized",
}
LIMITS = (("B", 0xFF), (">H", 0xFFFF), (">I", 0xFFFFFFFF))


class BoltServer:
    """A server over a property graph, while a `with` block lasts.

    nodes: of `id`, `labels`, and properties.  edges: of `id`, `type`, `start`, `end`, and properties.  queries: the
    parameters of each query that was answered.
    """

    def __init__(
        self,
        nodes: Sequence[Mapping[str, Any]],
        edges: Sequence[Mapping[str, Any]],
        login: tuple[str, str] | None = None,
    ) -> None:
        self.nodes = sorted(nodes, key=lambda node: node["id"])
        self.edges = sorted(edges, key=lambda edge: edge["id"])
        self.login = login
        self.faults: list[str] = []
        self.queries: list[dict[str, Any]] = []
        self.databases: list[str | None] = []
        owner = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    _Session(owner, self.request).serve()

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

        self._server = Server(("127.0.0.1", 0), Handler)

    @property
    def host(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> BoltServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def rows(self, query: str, parameters: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
        """Fields and rows of one of the two queries."""
        after, limit = parameters["after"], parameters["limit"]
        if query.startswith("MATCH (n)"):
            fields, found = ["id", "labels", "properties"], self.nodes
        else:
            fields, found = ["id", "label", "properties", "start", "end"], self.edges
        rows = []
        for one in [one for one in found if one["id"] > after][:limit]:
            own = {k: v for k, v in one.items() if k not in ("id", "labels", "type", "start", "end")}
            row = [one["id"], one.get("labels", one.get("type")), own]
            rows.append(row + ([one["start"], one["end"]] if len(fields) == 5 else []))
        return fields, rows


class _Session:
    """One connection."""

    def __init__(self, server: BoltServer, connection: socket.socket) -> None:
        self.server, self.connection = server, connection
        self.waiting: list[list[Any]] = []
        self.fault, self.failed = "", False

    def serve(self) -> None:
        hello = self._exactly(20)
        assert hello[:4] == MAGIC
        self.connection.sendall(VERSION)
        while True:
            message = self._message()
            tag, fields = message.tag, message.fields
            if tag == GOODBYE:
                return
            if tag == RESET:
                self.failed, self.waiting = False, []
                self._send(SUCCESS, {})
            elif self.failed:
                self._send(IGNORED)
            elif tag == HELLO:
                self._send(SUCCESS, {"server": "Neo4j/5.13.0", "connection_id": "bolt-1", "hints": {}})
            elif tag == LOGON:
                given = fields[0].get("principal"), fields[0].get("credentials")
                if self.server.login not in (None, given):
                    self._fail("denied")
                else:
                    self._send(SUCCESS, {})
            elif tag == ROUTE:
                names = [{"addresses": [self.server.host], "role": role} for role in ("ROUTE", "READ", "WRITE")]
                self._send(SUCCESS, {"rt": {"ttl": 300, "db": fields[2].get("db") or "neo4j", "servers": names}})
            elif tag == RUN:
                self._run(*fields)
            elif tag == PULL:
                self._pull(fields[0].get("n", -1))
            else:  # TELEMETRY, DISCARD
                self._send(SUCCESS, {})

    def _run(self, query: str, parameters: dict[str, Any], extra: dict[str, Any]) -> None:
        self.fault = self.server.faults.pop(0) if self.server.faults else ""
        if self.fault in CODES:
            self._fail(self.fault)
            return
        names, self.waiting = self.server.rows(query, parameters)
        if not self.fault:
            self.server.queries.append(parameters)
            self.server.databases.append(extra.get("db"))
        self._send(SUCCESS, {"fields": names, "t_first": 0})

    def _pull(self, count: int) -> None:
        now = self.waiting if count < 0 else self.waiting[:count]
        for row in now[: len(now) // 2] if self.fault == "cut" else now:
            self._send(RECORD, row)
        if self.fault == "cut":
            raise ConnectionError
        self.waiting = self.waiting[len(now) :]
        self._send(SUCCESS, {"has_more": True} if self.waiting else {"type": "r", "db": "neo4j"})

    def _fail(self, what: str) -> None:
        self.failed = True
        self._send(FAILURE, {"code": CODES[what], "message": f"the server says: {what}"})

    def _send(self, tag: int, *fields: Any) -> None:
        data = bytes([0xB0 + len(fields), tag]) + b"".join(map(pack, fields))
        chunks = (data[begin : begin + 0xFFFF] for begin in range(0, len(data), 0xFFFF))
        framed = b"".join(struct.pack(">H", len(chunk)) + chunk for chunk in chunks)
        self.connection.sendall(framed + b"\0\0")  # at once: a second piece waits 40 ms for the first's confirmation

    def _message(self) -> Structure:
        data = b""
        while True:
            (size,) = struct.unpack(">H", self._exactly(2))
            if size:
                data += self._exactly(size)
            elif data:
                break
        value, _ = unpack(data, 0)
        assert isinstance(value, Structure)
        return value

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.connection.recv(size - len(data))
            if not part:
                raise ConnectionError
            data += part
        return data


class Structure:
    """A structure of PackStream."""

    def __init__(self, tag: int, fields: list[Any]) -> None:
        self.tag, self.fields = tag, fields


def pack(value: Any) -> bytes:
    """A value in PackStream; dates are structures of it."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return struct.pack(">b", value) if -16 <= value < 128 else b"\xcb" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xc1" + struct.pack(">d", value)
    if isinstance(value, datetime.date):
        return b"\xb1D" + pack((value - datetime.date(1970, 1, 1)).days)
    if isinstance(value, bytes):
        return _sized(len(value), None, 0xCC) + value
    if isinstance(value, str):
        data = value.encode()
        return _sized(len(data), 0x80, 0xD0) + data
    if isinstance(value, Mapping):
        return _sized(len(value), 0xA0, 0xD8) + b"".join(pack(k) + pack(v) for k, v in value.items())
    assert isinstance(value, Iterable)
    items = [pack(one) for one in value]
    return _sized(len(items), 0x90, 0xD4) + b"".join(items)


def _sized(size: int, tiny: int | None, first: int) -> bytes:
    if tiny is not None and size < 16:
        return bytes([tiny + size])
    step = next(step for step, (_, most) in enumerate(LIMITS) if size <= most)
    return bytes([first + step]) + struct.pack(LIMITS[step][0], size)


def unpack(data: bytes, at: int) -> tuple[Any, int]:
    """A value, and where the next one begins."""
    mark, at = data[at], at + 1
    if mark < 0x80 or mark >= 0xF0:
        return (mark if mark < 0x80 else mark - 0x100), at
    if mark in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[mark], at
    if mark == 0xC1 or 0xC8 <= mark <= 0xCB:
        kind = {0xC1: ">d", 0xC8: ">b", 0xC9: ">h", 0xCA: ">i", 0xCB: ">q"}[mark]
        return struct.unpack_from(kind, data, at)[0], at + struct.calcsize(kind)
    kinds = {0x80: (str, 0xD0), 0x90: (list, 0xD4), 0xA0: (dict, 0xD8), 0xB0: (Structure, 0)}
    kind, size = None, mark & 0x0F
    for tiny, (own, first) in kinds.items():
        if mark & 0xF0 == tiny:
            kind = own
        elif first and first <= mark < first + 3:
            kind = own
            size = struct.unpack_from(LIMITS[mark - first][0], data, at)[0]
            at += 1 << (mark - first)
    if kind is str:
        return data[at : at + size].decode(), at + size
    if kind is Structure:
        tag, at = data[at], at + 1
    items = []
    for _ in range(size * 2 if kind is dict else size):
        item, at = unpack(data, at)
        items.append(item)
    if kind is dict:
        return dict(zip(items[::2], items[1::2], strict=True)), at
    return (Structure(tag, items) if kind is Structure else items), at
