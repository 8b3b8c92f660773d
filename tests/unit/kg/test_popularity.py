"""Page views from tables and published dumps."""

from __future__ import annotations

import bz2
import gzip

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.store import KgStore
from tests.support.staged import EN, LABEL, graph

STATEMENTS = [
    ("Q90", LABEL, ("Paris", EN)), ("Q90", LABEL, ("Parigi", "@it")), ("Q90", "in", "Q142"), ("Q142", "has", "Q90"),
    ("Q9999", LABEL, ("Paris", EN)), ("Q9999", "in", "Q99"),
    ("Q830149", LABEL, ("Paris", EN)), ("Q142", LABEL, ("France", EN)), ("Q830149", "in", "Q99"),
    ("http://x/iPhone_3G", "in", "Q99"), ("Q99", LABEL, ("New York", "@mul")),
]  # fmt: skip

DAILY = """\
en.wikipedia Paris 123 desktop 40 A1B2
en.wikipedia Paris 123 mobile-web 2 C2
it.wikipedia Parigi 9 desktop 1000 A1
en.wikipedia New_York null desktop 7 A7
en.wikipedia IPhone_3G 5 desktop 3 A3
en.wikipedia Berlin 7 desktop 5 A5
en.wikipedia
"""

HOURLY = (
    "en Paris 40 0\nen.m Paris 2 0\nit Parigi 5 0\nen New_York 7 0\nen IPhone_3G 3 0\nen Berlin 5 0\nen.d Paris 9 0\n"
)

TABLE = "key\tviews\nQ90\t40\nQ90\t2\n<Q99>\t7\nhttp://x/iPhone_3G\t3\nQ64\t5\n"


def views(tmp_path, data: bytes, name: str):
    (tmp_path / name).write_bytes(data)
    counts = graph(tmp_path / "kg.duckdb", KgOptions(page_views=str(tmp_path / name)), STATEMENTS)
    with KgStore.open(tmp_path / "kg.duckdb") as store:
        rows = store.connection.execute("SELECT key, views FROM entities WHERE views IS NOT NULL").fetchall()
    return dict(rows), counts


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("views.tsv", TABLE.encode()),
        ("pageviews-user.bz2", bz2.compress(DAILY.encode())),
        ("pageviews-20260101-000000.gz", gzip.compress(HOURLY.encode())),
    ],
    ids=["table", "complete", "hourly"],
)
def test_views_are_summed_for_the_entity_that_is_meant(tmp_path, name, data):
    found, counts = views(tmp_path, data, name)
    # Paris is the best connected of three.
    assert found == {"Q90": 42, "Q99": 7, "http://x/iPhone_3G": 3}
    assert (counts["views"], counts["views_unmatched"]) == (3, 1)


def test_a_file_that_is_no_page_views_is_refused(tmp_path):
    with pytest.raises(KgInputError, match="none of 2 lines is"):
        views(tmp_path, b"<a> <b> <c> .\nnothing\n", "graph.nt")


def test_a_missing_file_is_refused_before_the_work(tmp_path):
    with pytest.raises(KgInputError, match="no file of page views"):
        graph(tmp_path / "kg.duckdb", KgOptions(page_views=str(tmp_path / "none.tsv")), STATEMENTS)
