"""Numbers, units, times, precisions and calendars of literals."""

from __future__ import annotations

import duckdb
import pytest

from kgqa_core.kg.literals import CALENDAR_SQL, NUMBER_SQL, PRECISION_SQL, TIME_SQL, UNIT_SQL

XSD = "http://www.w3.org/2001/XMLSchema#"


def meaning(*literals: tuple[str, str, str | None]) -> list[tuple]:
    """(number, unit, time, precision, calendar) of each literal (key, datatype, detail)."""
    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE TABLE t(i INTEGER, key VARCHAR, datatype VARCHAR, detail VARCHAR)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(i, *one) for i, one in enumerate(literals)])
        return connection.execute(
            f"SELECT {NUMBER_SQL}, {UNIT_SQL}, {TIME_SQL}::VARCHAR, {PRECISION_SQL}, {CALENDAR_SQL} FROM t ORDER BY i"
        ).fetchall()


@pytest.mark.parametrize(
    ("key", "datatype", "detail", "expected"),
    [
        ("+5", "decimal", "Q11573", (5.0, "Q11573", None, None, None)),
        ("-1.5e3", "double", None, (-1500.0, None, None, None, None)),
        ("1e999", "double", None, (None,) * 5),
        ("twelve", "integer", None, (None,) * 5),
        ("5", "string", "Q1", (None,) * 5),
        ("1952-03-11T00:00:00Z", "dateTime", "11 gregorian",
         (1952 + 2 / 12 + 10 / 372, None, "1952-03-11 00:00:00", 11, "gregorian")),
        ("1952-01-01T00:00:00Z", "dateTime", "9 gregorian", (1952.0, None, "1952-01-01 00:00:00", 9, "gregorian")),
        ("1952-01-01T00:00:00Z", "dateTime", None, (1952.0, None, "1952-01-01 00:00:00", 14, "gregorian")),
        ("1999-07", "gYearMonth", None, (1999.5, None, "1999-07-01 00:00:00", 10, "gregorian")),
        ("1500-01-01T00:00:00Z", "dateTime", "7 julian", (1500.0, None, "1500-01-01 00:00:00", 7, "julian")),
        ("1700-02-29T00:00:00Z", "dateTime", "11 julian", (1700 + 1 / 12 + 28 / 372, None, None, 11, "julian")),
        ("1700-02-29T00:00:00Z", "dateTime", "11 gregorian", (None,) * 5),
        ("-13798000000-01-01T00:00:00Z", "dateTime", "3 gregorian", (-13798000000.0, None, None, 3, "gregorian")),
        ("-0043-03-15", "date", None, (-43 + 2 / 12 + 14 / 372, None, "0044-03-15 (BC) 00:00:00", 11, "gregorian")),
        ("2021-02-30", "date", None, (None,) * 5),
        ("400000-13-01", "date", None, (None,) * 5),
        ("Point(2.35 48.85)", "wktLiteral", None, (None,) * 5),
    ],
)  # fmt: skip
def test_a_literal_means_what_its_datatype_and_detail_say(key, datatype, detail, expected):
    (found,) = meaning((key, XSD + datatype, detail))
    assert found[1:] == expected[1:]
    assert found[0] == (None if expected[0] is None else pytest.approx(expected[0], abs=1e-9))


def test_numbers_of_dates_sort_as_the_dates_do():
    dates = [
        "-13798000000-01-01T00:00:00Z", "-4540000000-01-01T00:00:00Z", "-0001-12-31T23:59:59Z", "0000-01-01T00:00:00Z",
        "1999-01-31T23:59:59Z", "1999-02-01T00:00:00Z", "1999-12-31T23:59:59.9Z", "2000-01-01T01:00:00+01:00",
        "2000-01-01T00:00:01Z", "5000000000-01-01T00:00:00Z",
    ]  # fmt: skip
    numbers = [row[0] for row in meaning(*((date, XSD + "dateTime", None) for date in dates))]
    assert all(a < b for a, b in zip(numbers, numbers[1:], strict=False))
