"""A graph whose keys, datatypes and texts are hostile is exported without a forged or lost triple."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from kgqa_core.config import KgOptions
from kgqa_core.errors import InputError
from kgqa_core.kg.build import build
from kgqa_core.kg.formats.base import BLANKS
from kgqa_core.kg.look.dump import BASE, dump
from kgqa_core.kg.store import KgStore
from kgqa_core.workspace import Workspace
from tests.support.examples import examples

STRING = "http://www.w3.org/2001/XMLSchema#string"
FORGED = "http://x/t> .\n<http://forged/s> <http://forged/p> <http://forged/o"

Triple = tuple[str, str, str, str | None]

_hostile = st.sampled_from(
    [
        FORGED,
        "http://x/a>b",
        "http://x/a b",
        "_:a",
        "_:é",
        "_:a.",
        "_:a:b",
        "_:a b",
        "urn:x",
        "x%20y",
        "x y",
        "=1+1",
        '"x',
        "\\u003E",
        "http://x/\\u003E",
        "a\tb",
        "a\nb",
        "a%09b",
        "#",
        "<http://x/a>",
    ]
)
keys = _hostile | st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]), min_size=1, max_size=6)
keys = keys.map(lambda text: text.strip(BLANKS) or "x")
datatypes = st.sampled_from([None, STRING, "http://x/type", "no IRI", FORGED, 'x"@en', "http://x/\\u003E"])
triples = st.lists(st.tuples(keys, keys, keys, datatypes), min_size=1, max_size=8)


def graph(folder: Path, name: str, data: str, **options: object) -> tuple[KgStore, dict[str, object]]:
    (folder / name).write_text(data, encoding="utf-8", newline="")
    out = folder / f"{name}.out"
    out.mkdir()
    counts = build(Workspace(out), options=KgOptions(files=(str(folder / name),), **options))
    return KgStore.open(out), counts


def hostile(folder: Path, wanted: list[Triple]) -> KgStore:
    """A graph of these triples: CSV holds every key, and every datatype."""
    table = io.StringIO()
    writer = csv.writer(table, quoting=csv.QUOTE_ALL)
    writer.writerow(["s", "p", "o", "d"])
    writer.writerows((s, p, o, d or "iri") for s, p, o, d in wanted)
    columns = {"subject": "s", "predicate": "p", "object": "o", "datatype": "d"}
    return graph(folder, "hostile.csv", table.getvalue(), columns=columns, max_reject_share=0)[0]


def facts(store: KgStore) -> set[Triple]:
    return set(
        store.connection.execute(
            """SELECT h.key, r.key, t.key, t.datatype FROM triples x JOIN entities h ON h.id = x.head
               JOIN relations r ON r.id = x.relation JOIN entities t ON t.id = x.tail"""
        ).fetchall()
    )


def read_back(key: str | None) -> str | None:
    return unquote(key.removeprefix(BASE)) if key is not None and key.startswith(BASE) else key


@examples(12, suppress_health_check=list(HealthCheck))
@given(triples)
def test_an_export_holds_the_triples_of_the_graph_and_no_other(wanted: list[Triple]) -> None:
    with tempfile.TemporaryDirectory() as folder, hostile(Path(folder), wanted) as store:
        before = facts(store)
        counts = dump(store, Path(folder) / "again.nt")
        text = (Path(folder) / "again.nt").read_text(encoding="utf-8")
        again, read = graph(Path(folder), "read.nt", text, format="ntriples", max_reject_share=0)
        with again:
            after = {tuple(map(read_back, row[:2])) + (read_back(row[2]) if row[3] is None else row[2],)
                     + (read_back(row[3]),) for row in facts(again)}  # fmt: skip
        assert after == before
        assert read["rejects"] == 0 and read["triples"] == counts["triples"] == len(before)
        assert not any(f"<{part}>" in line.split() for line in text.split("\n") for part in ("http://forged/s",))


@examples(6, suppress_health_check=list(HealthCheck))
@given(triples)
def test_tsv_has_one_row_of_three_fields_for_each_triple(wanted: list[Triple]) -> None:
    with tempfile.TemporaryDirectory() as folder, hostile(Path(folder), wanted) as store:
        dump(store, Path(folder) / "g.tsv")
        rows = [line.split("\t") for line in (Path(folder) / "g.tsv").read_bytes().decode().split("\n")[:-1]]
        wide = [row for row in facts(store)]
        assert len(rows) == len(wide) and {len(row) for row in rows} == {3}
        assert {len({row[place] for row in rows}) for place in (0, 1)} == {
            len({row[place] for row in wide}) for place in (0, 1)
        } or any("%" in key for row in wide for key in row[:3])


@pytest.mark.parametrize("language", ["en> .\n<http://f/s> <http://f/p> <http://f/o> ", "en x", "1", "en_GB", "é"])
def test_a_language_that_is_none_cannot_end_its_statement(tmp_path: Path, language: str) -> None:
    store = hostile(tmp_path, [("http://x/s", "http://x/p", "o", STRING)])
    file = store.path
    store.close()
    with duckdb.connect(str(file)) as connection:
        connection.execute("UPDATE entities SET datatype = $1 WHERE kind = 'literal'", ["@" + language])
    with KgStore.open(file) as changed:
        dump(changed, tmp_path / "g.nt")
    again, counts = graph(tmp_path, "again.nt", (tmp_path / "g.nt").read_text(), format="ntriples", max_reject_share=0)
    with again:
        assert [row[:3] for row in facts(again)] == [("http://x/s", "http://x/p", "o")] and counts["rejects"] == 0


def test_two_keys_that_would_be_written_alike_are_refused_and_another_base_helps(tmp_path: Path) -> None:
    with hostile(tmp_path, [("x y", "http://x/p", f"{BASE}x%20y", None)]) as store:
        with pytest.raises(InputError, match=r"'urn:kgqa:x%20y' and 'x y' .* choose another --base"):
            dump(store, tmp_path / "g.nt")
        assert not (tmp_path / "g.nt").exists()
        assert dump(store, tmp_path / "g.nt", base="http://other/")["triples"] == 1


@pytest.mark.parametrize("base", ["", "x", "http://x/> .", "urn:a b", "http://x/\n"])
def test_a_base_that_is_no_iri_is_refused(tmp_path: Path, base: str) -> None:
    with hostile(tmp_path, [("a", "b", "c", None)]) as store, pytest.raises(InputError, match="no absolute IRI"):
        dump(store, tmp_path / "g.nt", base=base)
