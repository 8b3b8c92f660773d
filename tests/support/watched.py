"""A run with keys to find again and names that want to be scripts, and the files that could hold such keys."""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import polars as pl
import pytest
import zstandard

from kgqa_core.prompts import REWRITE
from tests.support import chat_server
from tests.support.chat_server import ChatServer, Fault
from tests.support.command import Outcome, kgqa
from tests.support.hostile import EVIL
from tests.support.toy import write_graph, write_questions

SECRETS = {
    "OPENAI_API_KEY": "sk-canary+default/4711==",
    "LAB_KEY": "lab-canary&named 0815%",
    "AWS_SECRET_ACCESS_KEY": "aws-canary/secret+1234",
    "MLFLOW_TRACKING_PASSWORD": "mlflow-canary-5678",
    "PREFECT_API_AUTH_STRING": "admin:prefect-canary-9012",
}
"""Secrets in the environment of a run."""
OPTION = "store-canary-option-3456"
"""A secret in the options of the object store."""
KEYS = [*SECRETS.values(), "prefect-canary-9012", OPTION]
QUICK = """
rigel.encoder=scratch rigel.scratch_width=32 rigel.min_steps=5 rigel.epochs=1
retrieval.retrievers=[rigel] retrieval.k=3 answering.limit=6 answering.max_new_tokens=24
answering.answerer=openai:answers answering.knowledge=[none,rigel,rigel/rewritten]
rewriter.adapt=false rewriter.base=openai:writer@lab rewriter.max_new_tokens=24 rewriter.on_unfaithful=keep
evaluation.bootstrap=100 evaluation.examples=6 llm.retries=2
""".split()


@dataclass
class Watched:
    """A folder with graph, questions, home and object store, and what the commands said.

    outcomes: by name of the command.  heard: Authorization headers that the server was sent.
    """

    folder: Path
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    heard: set[str] = field(default_factory=set)

    @property
    def home(self) -> Path:
        return self.folder / "place" / "home"

    def environment(self, **more: str) -> dict[str, str]:
        store = self.folder / "place" / "store"
        store.mkdir(parents=True, exist_ok=True)
        options = json.dumps({"auto_mkdir": True, "token": OPTION})
        return {**SECRETS, "KGQA_STORE": store.as_uri(), "KGQA_STORE_OPTIONS": options, **more}

    def run(self, name: str, *words: str | Path, settings: tuple[str, ...] = (), **more: str) -> Outcome:
        """Runs a command of this home and keeps what it says, also as a file below the folder."""
        given = [part for setting in settings for part in ("--set", setting)]
        outcome = kgqa(*words, "--home", self.home, *given, served=False, env=self.environment(**more), cwd=self.folder)
        self.outcomes[name] = outcome
        (self.folder / f"{name}.out").write_text(outcome.out, encoding="utf-8")
        (self.folder / f"{name}.err").write_text(outcome.err, encoding="utf-8")
        return outcome


def prepare(folder: Path) -> list[dict[str, Any]]:
    """Graph and questions whose names are hostile; returns the questions."""
    triples = write_graph(folder / "graph.tsv", 1400)
    write_questions(folder / "asked.jsonl", triples, 60)
    named = {town: f"{town} {EVIL[n % len(EVIL)]}" for n, town in enumerate(sorted({row[2] for row in triples}))}
    named |= {head: f"{head} {EVIL[n % len(EVIL)]}" for n, head in enumerate(sorted({row[0] for row in triples}))}
    relations = {"works_for": "works_for<script>alert(2)</script>"}
    lines = ("\t".join((named[h], relations.get(r, r), named[t])) for h, r, t in triples)
    (folder / "graph.tsv").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    rows = [json.loads(line) for line in (folder / "asked.jsonl").read_text(encoding="utf-8").splitlines()]
    for n, row in enumerate(rows):
        row["topic_entities"] = [named[name] for name in row["topic_entities"]]
        row["answers"] = [named[name] for name in row["answers"]]
        row["question"] = f"{row['question']} {EVIL[n % len(EVIL)]}"
        path = [part.replace("works_for", relations["works_for"]) for part in row["relation_path"]]
        row["relation_path"] = path
    (folder / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return rows


def reply(prompt: str) -> str:
    """A hostile model: markup, and the key that it was sent."""
    return f"{EVIL[len(prompt) % len(EVIL)]} {SECRETS['OPENAI_API_KEY']}"


def telling(status: int) -> Mapping[str, Any]:
    """An error that repeats both keys, as they are and packed."""
    said = f"wrong: Bearer {SECRETS['OPENAI_API_KEY']}, Bearer {SECRETS['LAB_KEY']}"
    packed = base64.b64encode(SECRETS["LAB_KEY"].encode()).decode()
    address = f"/v1?key={quote(SECRETS['OPENAI_API_KEY'], safe='')}"
    return {"error": {"message": f"{status} {packed} {address}", "request": said, "code": SECRETS["LAB_KEY"]}}


def agreeing(rows: list[dict[str, Any]]) -> Callable[[str], str]:
    """A teacher and a QA model whose texts are kept: all of the triples, and the gold answer; each with a script."""
    gold = {row["question"]: str(row["answers"][0]) for row in rows}
    before, after = REWRITE.split("{triples}")

    def told(prompt: str) -> str:
        asked = prompt.rpartition(" Question: ")[2].removesuffix(" Answer:")
        said = prompt[len(before) : -len(after)] if prompt.startswith(before) else gold.get(asked, "nobody knows")
        return f"{said} <script>alert(5)</script> {SECRETS['LAB_KEY']}"

    return told


def watched_run(folder: Path, *extra: str, broken: bool = False, agreeable: bool = False) -> Watched:
    """`kgqa run` with all of this.

    broken: the server refuses every answer with status 401.  agreeable: its texts are good enough to learn from.
    """
    watched = Watched(folder)
    rows = prepare(folder)
    with pytest.MonkeyPatch.context() as patch, ChatServer(agreeing(rows) if agreeable else reply) as server:
        patch.setattr(chat_server, "error_body", telling)
        server.fail("", *[Fault(status=429, headers={"Retry-After": "0.01"})] * 3)
        server.always(rows[-1]["question"], Fault(status=400))
        if broken:
            server.always("Question:", Fault(status=401))
        names = ("kg.name=../../evil<script>alert(3)</script>", "questions.name='../\"><script>alert(4)</script>'")
        lab = f"llm.endpoints={{lab: {{base_url: '{server.base_url}', key_env: LAB_KEY}}}}"
        settings = (*QUICK, *names, f"llm.base_url={server.base_url}", lab, *extra)
        files = ("--kg", folder / "graph.tsv", "--questions", folder / "asked.jsonl")
        watched.run(
            "run", "run", "--json", "--verbose", "--answerer", "builtin", *files, settings=settings, OPENAI_LOG="debug"
        )
        watched.heard = {headers.get("authorization", "") for headers in server.headers}
    return watched


def forms(secret: str) -> list[bytes]:
    """A secret as it is, as URLs write it, and the parts of its Base64 that do not depend on what stands before."""
    plain = secret.encode()
    found = {plain, urllib.parse.quote(secret, safe="").encode(), urllib.parse.quote_plus(secret).encode()}
    for ahead in range(3):
        packed = base64.b64encode(b"\0" * ahead + plain).rstrip(b"=")
        inner = packed[-(-ahead * 8 // 6) : len(packed) - (1 if (ahead + len(plain)) % 3 else 0)]
        found |= {inner, inner.translate(bytes.maketrans(b"+/", b"-_"))}
    return sorted(found)


def traces(folder: Path, secrets: Iterable[str]) -> list[str]:
    """Files below `folder`, and names of files, that hold a form of a secret: `path: secret`."""
    wanted = [(secret, form) for secret in secrets for form in forms(secret)]
    found = set()
    for path in sorted(folder.rglob("*")):
        parts = [str(path.relative_to(folder)).encode()]
        if path.is_file() and not path.is_symlink():
            parts = [*parts, *contents(path)]
        for part in parts:
            found |= {f"{path.relative_to(folder)}: {secret}" for secret, form in wanted if form in part}
    return sorted(found)


def contents(path: Path) -> Iterator[bytes]:
    """What a file holds, packed and unpacked."""
    data = path.read_bytes()
    yield data
    if data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data)
    elif data[:4] == b"\x28\xb5\x2f\xfd":
        yield zstandard.ZstdDecompressor().decompressobj().decompress(data)
    elif data[:4] == b"PAR1":
        for column in pl.read_parquet(path).iter_columns():
            yield "\n".join(map(str, column.to_list())).encode()
    elif data[:16] == b"SQLite format 3\0":
        with sqlite3.connect(path) as connection:
            connection.text_factory = bytes
            yield from _rows(connection, connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
        connection.close()
    elif data[8:12] == b"DUCK":
        with duckdb.connect(str(path), read_only=True) as connection:
            yield from _rows(connection, connection.execute("SELECT table_name FROM duckdb_tables()"))


def _rows(connection: sqlite3.Connection | duckdb.DuckDBPyConnection, tables: object) -> Iterator[bytes]:
    for (name,) in list(tables.fetchall()):  # type: ignore[attr-defined]
        table = name.decode() if isinstance(name, bytes) else name
        if table.startswith("sqlite_"):
            continue
        for row in connection.execute(f'SELECT * FROM "{table}"').fetchall():
            yield b"\0".join(value if isinstance(value, bytes) else str(value).encode() for value in row)
