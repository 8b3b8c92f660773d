from __future__ import annotations

import random

import duckdb
import pytest

from kgqa_core.kg.literals import NUMBER_SQL
from kgqa_core.logic.forms import Literal
from kgqa_core.logic.lookup import ending
from kgqa_core.logic.measures import TIME, UNITS, Measure, base_unit, measure

XSD = "http://www.w3.org/2001/XMLSchema#"
DAY = 86_400
YEAR = 372 * DAY


@pytest.mark.parametrize(
    ("text", "datatype", "unit", "expected"),
    [
        ("5", "integer", None, Measure("", 5, 5)),
        ("2.3e+06", "float", None, Measure("", 2.3e6, 2.3e6)),
        ("180", "decimal", "Q174728", Measure("Q11573", 1.8, 1.8)),
        ("0", "integer", "Q25267", Measure("Q11579", 273.15, 273.15)),
        ("7", "integer", "Q99", Measure("Q99", 7, 7)),
        ("2000", "gYear", None, Measure(TIME, 2000 * YEAR, 2001 * YEAR)),
        ("2000-02", "gYearMonth", None, Measure(TIME, 2000 * YEAR + 31 * DAY, 2000 * YEAR + 62 * DAY)),
        ("2000-02-02", "date", None, Measure(TIME, 2000 * YEAR + 32 * DAY, 2000 * YEAR + 33 * DAY)),
        ("0000-01-01T00:00:01Z", "dateTime", None, Measure(TIME, 1, 2)),
        ("-0044", "gYear", None, Measure(TIME, -44 * YEAR, -43 * YEAR)),
        ("five", "integer", None, None),
        ("5", "string", None, None),
        ("2000-13-01", "date", None, None),
    ],
)
def test_a_literal_measures(text, datatype, unit, expected):
    assert measure(Literal(text, XSD + datatype, unit)) == expected


def test_numbers_are_read_as_the_graph_reads_them():
    texts = ["5", "+5", "-0", "5.", ".5", "1e5", "1E-400", "1e400", "", "-", ".", "5e", "0x1", "1_000", " 5", "٣", "∞"]
    draw = random.Random(7)
    texts += ["".join(draw.choices("0159.+-eE _", k=draw.randint(1, 6))) for _ in range(500)]
    texts += [f"{draw.uniform(-1, 1):.17f}e{draw.randint(-330, 330)}" for _ in range(200)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t(key VARCHAR, datatype VARCHAR, detail VARCHAR)")
        connection.executemany("INSERT INTO t VALUES (?, ?, NULL)", [(text, XSD + "decimal") for text in texts])
        read = dict(connection.execute(f"SELECT key, {NUMBER_SQL} FROM t").fetchall())
    for text in texts:
        found = measure(Literal(text, XSD + "decimal"))
        assert (None if found is None else found.lo) == read[text], text


def test_units_lead_to_base_units_that_stay_as_they_are():
    assert all(UNITS[unit.base] == (unit.base, 1.0, 0.0) for unit in UNITS.values())
    assert base_unit("Q828224") == "Q11573" and base_unit("Q99") == "Q99" and base_unit(None) == ""


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("government.government_position_held.from", "government.government_position_held.to"),
        ("time.event.start_date", "time.event.end_date"),
        ("P580", "P582"),
        ("http://www.wikidata.org/prop/qualifier/P580", "http://www.wikidata.org/prop/qualifier/P582"),
        ("P585", None),
        ("place.therefrom", None),
        ("XP580", None),
    ],
)
def test_what_begins_is_ended_by_the_relation_beside_it(begin, end):
    assert ending(begin) == end
