"""The fast road through Wikidata's JSON says what the plain one says, on whatever it is given."""

from __future__ import annotations

import json
import random
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.kg.formats.base import REJECTS, empty
from kgqa_core.kg.formats.source import Chunk
from kgqa_core.kg.formats.wikidata import json_names as names
from kgqa_core.kg.formats.wikidata.json import read_quickly
from kgqa_core.kg.formats.wikidata.json_values import GREGORIAN, JULIAN, degrees, time_term
from kgqa_core.kg.formats.wikidata.json_walk import walk
from tests.support.examples import examples
from tests.support.reading import ENTITY_IRI, both_roads, claim, differences, dump, item, snak

TIMES = [  # dates of history: a year BC is one less in XSD 1.1, and days in the Julian calendar are converted
    ("+1917-10-25T00:00:00Z", JULIAN, 11, "1917-11-07T00:00:00Z"),  # the October Revolution was in November
    ("+1642-12-25T00:00:00Z", JULIAN, 11, "1643-01-04T00:00:00Z"),  # Newton was born at Christmas, and in January
    ("+1616-04-23T00:00:00Z", JULIAN, 11, "1616-05-03T00:00:00Z"),  # Shakespeare's death
    ("+1582-10-04T00:00:00Z", JULIAN, 11, "1582-10-14T00:00:00Z"),  # the last day of the old calendar in Rome
    ("-0044-03-15T00:00:00Z", JULIAN, 11, "-0043-03-13T00:00:00Z"),  # the Ides of March
    ("+1616-04-00T00:00:00Z", JULIAN, 10, "1616-04-01T00:00:00Z"),  # a month has no day to convert
    ("-0490-00-00T00:00:00Z", GREGORIAN, 9, "-0489-01-01T00:00:00Z"),  # Marathon
    (
        "-13798000000-00-00T00:00:00Z",
        GREGORIAN,
        3,
        "-13798000000-01-01T00:00:00Z",
    ),  # the Big Bang: coarse years are not shifted
    ("+00000001987-06-00T00:00:00Z", GREGORIAN, 10, "1987-06-01T00:00:00Z"),  # old dumps pad the year
    ("+1969-07-21T02:56:15Z", GREGORIAN, 14, "1969-07-21T02:56:15Z"),
    ("+1999-02-30T00:00:00Z", GREGORIAN, 11, "1999-02-28T00:00:00Z"),  # no such day: the last of the month
    ("+2000-02-30T00:00:00Z", GREGORIAN, 11, "2000-02-29T00:00:00Z"),
]


def _of_values(form: str, values: list[dict[str, Any]]) -> bytes:
    return dump([item(f"Q{n}", claims={"P1": [claim(snak("P1", value, form))]}) for n, value in enumerate(values)])


def _time(text: str, precision: int, calendar: str) -> dict[str, Any]:
    return {"time": text, "precision": precision, "calendarmodel": calendar}


def test_times_are_those_of_wikidatas_rdf():
    assert [time_term(text, precision, calendar)[0] for text, calendar, precision, _ in TIMES] == [
        wanted for *_, wanted in TIMES
    ]
    found = both_roads(_of_values("time", [_time(text, precision, calendar) for text, calendar, precision, _ in TIMES]))
    assert sorted(found.statements["object"]) == sorted(wanted for *_, wanted in TIMES)


@examples(10)
@given(st.randoms(use_true_random=False))
def test_times_of_any_kind_are_the_same_on_both_roads(draw: random.Random):
    values = []
    for _ in range(200):
        year = draw.choice(["0000", "0001", "0004", "0100", "1900", "2000", "4712", "4713", "4714", "01465072"])
        year = draw.choice([year, str(draw.randrange(10 ** draw.randrange(1, 17)))])
        month, day = draw.randrange(14), draw.randrange(34)
        text = f"{draw.choice('+-')}{year}-{month:02d}-{day:02d}T{draw.choice(['00:00:00Z', '23:59:59Z', '00:00:00'])}"
        values.append(_time(text, draw.randrange(15), draw.choice([GREGORIAN, JULIAN, JULIAN, ENTITY_IRI + "Q1"])))
    assert not differences(_of_values("time", values))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (57, "57"),
        (0.0, "0"),
        (-0.0, "-0"),
        (100.0, "100"),
        (-0.0001, "-0.0001"),
        (0.00001, "1.0E-5"),
        (-1.25e-5, "-1.25E-5"),
        (59.33763888888889, "59.337638888889"),
        (0.1 + 0.2, "0.3"),
        (179.99999999999997, "180"),
        (1e14, "1.0E+14"),
        (12345678901234, "12345678901234"),
    ],
)
def test_degrees_are_written_as_php_writes_them(value, text):
    assert degrees(value) == text


@examples(15)
@given(st.randoms(use_true_random=False), st.lists(st.floats(-400, 400), max_size=30))
def test_coordinates_of_any_kind_are_the_same_on_both_roads(draw: random.Random, floats: list[float]):
    texts = [json.dumps(value) for value in floats]
    for _ in range(100):
        digits = str(draw.randrange(10 ** draw.randrange(1, 19)))
        at = draw.randrange(len(digits) + 1)
        zeros = "0" * draw.choice([0, 0, 0, 3, 5])
        texts.append(f"{draw.choice(['', '-'])}{digits[:at].lstrip('0') or '0'}.{zeros}{digits[at:]}5")
        texts.append(json.dumps(draw.randrange(-180, 180) + draw.randrange(3600) / 3600))
    values = [{"latitude": 1.5, "longitude": 2.25, "altitude": None, "globe": ENTITY_IRI + "Q2"} for _ in texts]
    data = _of_values("globecoordinate", values)
    for text in texts:
        data = data.replace(b"2.25", text.encode(), 1)
    assert not differences(data)


def _entities() -> list[bytes]:
    """Small entities of every shape, written in both styles."""
    values: list[tuple[str, str | None, Any]] = [
        ("wikibase-entityid", "wikibase-item", {"entity-type": "item", "numeric-id": 5, "id": "Q5"}),
        ("wikibase-entityid", "wikibase-item", {"entity-type": "property", "numeric-id": 31}),
        ("string", "url", "http://a/b?c=é"),
        ("string", None, 'a "quoted" \\ text 😀'),
        ("monolingualtext", "monolingualtext", {"text": "Écosse", "language": "fr"}),
        ("quantity", "quantity", {"amount": "+5", "unit": ENTITY_IRI + "Q11573", "upperBound": "+6"}),
        ("time", "time", _time("+1952-02-31T00:00:00Z", 11, JULIAN)),
        ("globecoordinate", "globe-coordinate", {"latitude": 51.56652777777778, "longitude": -0.5, "globe": None}),
    ]
    found = []
    for form, datatype, value in values:
        main = snak("P1", value, form, datatype)
        name = {"en": {"language": "en", "value": "naïve \t name"}}
        entity = item(
            "Q7",
            labels=name,
            descriptions=[],
            aliases={"en": [name["en"]], "de": []},
            claims={
                "P1": [claim(main, qualifiers={"P2": [main, {"snaktype": "novalue", "property": "P2"}]})],
                "P3": [],
            },
        )
        found.append(json.dumps(entity, separators=(",", ":")).replace("/", "\\/").encode())
        found.append(json.dumps(entity, ensure_ascii=False).encode())
    return found


TOKENS = [
    *(bytes([c]) for c in b'"\\{}[],:-.015+ \t\r\x01'),
    *(
        b"null",
        b"true",
        b"e5",
        b"\\u0041",
        b"\\ud83d\\ude00",
        b"\\ud800",
        b"\\n",
        b"\\/",
        b"[]",
        b"{}",
        b'""',
        b"\xc3\xa9",
    ),
    *(b'"id":"Q5",', b'"id"', b'"language":"EN",', b'"language"', b'"value"', b'"type"', b'"rank"', b'"property"'),
    *(b'"labels":{},', b'"claims"', b'"missing":"",', b'"snaktype"', b"somevalue", b"preferred", b"string", b"time"),
]


def _mutated(text: bytes, draw: random.Random) -> bytes:
    data = bytearray(text)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        at = draw.randrange(len(data) + 1)
        kind = draw.randrange(5)
        if kind == 0:
            del data[at : at + draw.choice([1, 1, 2, 5, 30])]
        elif kind == 1:
            data[at:at] = draw.choice(TOKENS)
        elif kind == 2:
            data[at : at + draw.choice([1, 4])] = draw.choice(TOKENS)
        elif kind == 3:
            begin = draw.randrange(len(data))
            data[at:at] = data[begin : begin + draw.randrange(1, 60)]
        else:
            old, new = draw.choice(TOKENS), draw.choice(TOKENS)
            data = data.replace(old, new, 1)
    return bytes(data).replace(b"\n", b" ")


@examples(20)
@given(st.randoms(use_true_random=False), st.booleans())
def test_mutated_entities_are_the_same_on_both_roads(draw: random.Random, text_only: bool):
    lines = [_mutated(draw.choice(ENTITIES), draw) for _ in range(150)]
    if text_only:  # one line that is not UTF-8 takes the whole piece another way
        lines = [line.decode("utf-8", errors="ignore").encode() for line in lines]
    ends = [draw.choice([b"\n", b",\n", b",\r\n", b" , \n", b"\n\n", b"\n]\n"]) for _ in lines]
    languages = draw.choice([None, frozenset({"en"}), frozenset[str]()])
    assert not differences(b"".join(line + end for line, end in zip(lines, ends, strict=True)), languages)


ENTITIES = _entities()


def _left(data: bytes) -> int:
    """Lines that the fast road leaves to the plain one."""
    tables = names.filled(names.new_tables(len(data), None), data + b"\n" * names.PAD)
    return int(walk(tables, len(data), np.empty((data.count(b"\n"), 3), np.int32)))


def test_usual_lines_take_the_fast_road():
    assert _left(b",\n".join(ENTITIES) + b"\n[\n]\n\n") == 0
    assert _left(dump([{"id": "Q1", "claims": {"P1": [claim(snak("P1", "x"), rank="odd")]}}, item("Q2")])) == 1


def test_tables_that_are_full_of_names_are_replaced():
    free: deque[Any] = deque()
    for part, count in enumerate((names.MAX_CODES * 2 // 3, names.MAX_CODES * 2 // 3, names.MAX_CODES + 1)):
        claims = {f"P{part}-{n}": [{"mainsnak": snak(f"P{part}-{n}", "x")}] for n in range(count)}
        batch = read_quickly(Chunk(dump([{"id": "Q1", "claims": claims}]), 1, 1.0, empty(REJECTS)), None, free)
        assert set(batch.statements["predicate"]) == set(claims) and not batch.rejects.height


def test_the_real_dump_takes_the_fast_road_and_says_the_same(shared_data: Path):
    data = (shared_data / "wikidata_samples" / "wikidata-filter" / "entities").read_bytes().rstrip(b"\n") + b"\n"
    assert _left(data) == 0
    assert not differences(data) and not differences(data, frozenset({"en", "de"}))


def test_real_entities_say_the_same_on_both_roads_however_they_are_damaged(shared_data: Path):
    folder = shared_data / "wikidata_samples"
    lines = []
    for path in sorted([*folder.glob("entitybase/**/*.json"), *folder.glob("wdtk/**/*.json")]):
        text = path.read_text(encoding="utf-8")
        try:
            lines.append(json.dumps(json.loads(text)).encode())
        except json.JSONDecodeError:
            lines += [line.encode() for line in text.split("\n")]
    assert not differences(b"\n".join(lines) + b"\n")
    draw = random.Random(0)
    damaged = [_mutated(line, draw) for line in lines for _ in range(3) if line]
    assert not differences(b"\n".join(damaged) + b"\n")
