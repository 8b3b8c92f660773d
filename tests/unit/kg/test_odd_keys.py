"""Keys lose line ends and other control characters at their ends in every format; blank files are named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import make_profile
from kgqa_core.errors import InputError, KgInputError
from kgqa_core.kg.build import build
from kgqa_core.kg.look.search import resolve_one
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.questions import with_topics
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

TABLE = {"columns": {"subject": "s", "predicate": "p", "object": "o", "datatype": "d"}}


def keys(folder: Path, data: bytes, name: str, **options: Any) -> tuple[set[str], list[tuple[Any, ...]]]:
    """Keys of the entities and relations of a file's graph, and its rejects."""
    (folder / name).write_bytes(data)
    kg = make_profile({"kg": {"name": "x", "files": [str(folder / name)], "max_reject_share": 0.9, **options}}).kg
    (folder / "out").mkdir()
    build(Workspace(folder / "out"), options=kg)
    with KgStore.open(folder / "out") as store:
        run = store.connection.execute
        found = run("SELECT key FROM entities WHERE kind = 'entity' UNION ALL SELECT key FROM relations").fetchall()
        return {key for (key,) in found}, run("SELECT line, reason FROM rejects").fetchall()


@pytest.mark.parametrize(
    ("name", "data", "options"),
    [
        ("g.csv", b's,p,o,d\n"Q1\n",P1,Q2,\nQ1,"P1\n","Q3\r\n",\r\n"\nQ3",P1,"Q1\n",iri\n', TABLE),
        ("g.tsv", b"Q1\x0b\tP1\tQ2\r\nQ1\tP1\x1c\tQ3\x7f\r\nQ3\tP1\tQ1\r\n", {}),
        ("g.psv", b"Q1 \x0c|P1|Q2\nQ1|\x01P1|Q3\nQ3|P1|Q1\n", {}),
        ("kgtk.tsv", b"node1\tlabel\tnode2\r\nQ1\x0b\tP1\tQ2\r\nQ1\tP1\tQ3\x0c\r\nQ3\tP1\tQ1\r\n", {}),
        ("g.txt", b"Q1\x0b,P1,Q2,P1\x0c,Q3\nQ1,P1,Q3\nQ3,P1,Q1\n", {"format": "statements"}),
    ],
)
def test_line_ends_of_keys_are_taken_off(tmp_path: Path, name: str, data: bytes, options: dict[str, Any]) -> None:
    assert keys(tmp_path, data, name, **options) == ({"Q1", "Q2", "Q3", "P1"}, [])


def test_the_line_ends_of_a_literal_stay(tmp_path: Path) -> None:
    keys(tmp_path, b's,p,o,d\nQ1,P1,"two\nlines\n",xsd:string\nQ1,P2,Q2,iri\n', "g.csv", **TABLE)
    with KgStore.open(tmp_path / "out") as store:
        [(text,)] = store.connection.execute("SELECT key FROM entities WHERE kind = 'literal'").fetchall()
    assert text == "two\nlines\n"


def test_an_id_with_a_line_end_in_json_is_a_reject_that_names_it(tmp_path: Path) -> None:
    def entity(key: str, value: str, relation: str = "P1") -> dict[str, Any]:
        data = {"value": {"entity-type": "item", "id": value}, "type": "wikibase-entityid"}
        snak = {"snaktype": "value", "property": relation, "datavalue": data}
        return {
            "type": "item", "id": key, "labels": {},
            "claims": {relation: [{"mainsnak": snak, "type": "statement", "rank": "normal"}]},
        }  # fmt: skip

    rows = [entity("Q1", "Q2"), entity("Q3\n", "Q2"), entity("Q4", "Q2\n"), entity("Q5", "Q2", "P1\n")]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    found, rejects = keys(tmp_path, data, "g.jsonl", format="wikidata-json")
    assert found == {"Q1", "Q2", "P1"}
    assert [line for line, _ in rejects] == [2, 3, 4]
    assert all("holds a control character" in reason for _, reason in rejects)


def test_a_topic_with_a_line_end_means_what_it_means_without(tmp_path: Path) -> None:
    keys(tmp_path, b"Q1\tP1\tQ2\n", "g.tsv")
    question = Question(id="q", text="?", split="test")
    with KgStore.open(tmp_path / "out") as store:
        assert resolve_one(store, "Q1\n") == resolve_one(store, "Q1")
        assert with_topics(question, ["Q1\n"], store).topic_entities == (resolve_one(store, "Q1"),)
        with pytest.raises(InputError, match=r"'Q9\\n' is not in this graph"):
            with_topics(question, ["Q9\n"], store)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty;"),
        (b"\n\n \t\r\n", "is empty: it holds only white space;"),
        (b"\xef\xbb\xbf", "is empty"),
        (bytes(300), "holds only zero bytes;"),
        (bytes(400_000), "holds only zero bytes;"),
        (bytes(300_000) + b"a\tb\tc\n", "begins with 262,144 zero bytes;"),
        (gzip.compress(b"", mtime=0), "is empty;"),
        (gzip.compress(bytes(500), mtime=0), "begins with 500 zero bytes;"),
    ],
)
@pytest.mark.parametrize("format", ["auto", "ntriples", "delimited"])
def test_a_file_that_holds_nothing_is_named_as_such(tmp_path: Path, data: bytes, words: str, format: str) -> None:
    good = tmp_path / "good.tsv"
    good.write_text("a\tb\tc\n")
    (tmp_path / "graph.nt").write_bytes(data)
    for files in (["graph.nt"], ["good.tsv", "graph.nt"]):
        paths = [str(tmp_path / name) for name in files]
        with pytest.raises(KgInputError, match=rf"graph\.nt {words}"):
            build(Workspace(tmp_path), options=make_profile({"kg": {"name": "x", "files": paths, "format": format}}).kg)
