"""KGTK's edge files: values, names, qualifiers, and what is left out."""

from __future__ import annotations

import pytest

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats import source as source_module
from kgqa_core.kg.formats.names import ALIAS, DESCRIPTION, LABEL
from kgqa_core.kg.formats.wikidata.json_values import point, time_term
from tests.support.reading import read_text

XSD = "http://www.w3.org/2001/XMLSchema#"
WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"
WIKIBASE = "http://wikiba.se/ontology#"
HEADER = "node1\tlabel\tnode2\tid\trank\tnode2;wikidatatype"


def edges(tmp_path, *rows: str, name: str = "claims.tsv", header: str = HEADER, **options):
    width = header.count("\t")
    lines = [row + "\t" * (width - row.count("\t")) for row in rows]
    return read_text(tmp_path, "\n".join([header, *lines, ""]), name, **options)


def value(tmp_path, text: str, kind: str = ""):
    found = edges(tmp_path, f"Q1\tP1\t{text}\t\t\t{kind}")
    assert not found.rejects
    return found.rows("object", "kind", "datatype", "detail")[0]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("Q42", "wikibase-item", ("Q42", 0, None, None)),
        ("L7-F1", "", ("L7-F1", 0, None, None)),
        ("http://x/a b", "", ("http://x/a b", 0, None, None)),
        (r"a\|b", "", ("a|b", 0, None, None)),
        ('"text"', "", ("text", 1, XSD + "string", None)),
        ('""', "", ("", 1, XSD + "string", None)),
        (r'"say \"hi\" \| \\d \t\n"', "string", ('say "hi" | \\d \t\n', 1, XSD + "string", None)),
        (r'"\\\\n"', "", ("\\\\n", 1, XSD + "string", None)),
        (r'"caf\u00e9 \x41 \U0001F600"', "", ("café A 😀", 1, XSD + "string", None)),
        ('"0000 0001"', "external-id", ("0000 0001", 1, WIKIBASE + "ExternalId", None)),
        ('"a.svg"', "commonsMedia", ("a.svg", 1, WIKIBASE + "CommonsMedia", None)),
        ('"http://x"', "url", ("http://x", 1, XSD + "anyURI", None)),
        (r'"\\Theta"', "math", (r"\Theta", 1, "http://www.w3.org/1998/Math/MathML", None)),
        ("'Moe'@en", "", ("Moe", 1, "@en", None)),
        ("'O'Neill'@en-US", "", ("O'Neill", 1, "@en-us", None)),
        (r"'it\'s'@zh-Hans", "", ("it's", 1, "@zh-hans", None)),
        ("+37427", "quantity", ("+37427", 1, XSD + "decimal", None)),
        ("42", "", ("42", 1, XSD + "decimal", None)),
        ("-.5", "", ("-.5", 1, XSD + "decimal", None)),
        ("3.14e-10", "", ("3.14e-10", 1, XSD + "double", None)),
        ("0xff", "", ("255", 1, XSD + "decimal", None)),
        ("+5Q11573", "quantity", ("+5", 1, XSD + "decimal", "Q11573")),
        ("+5[+4,+6]Q11573", "quantity", ("+5", 1, XSD + "decimal", "Q11573")),
        ("-1.2e+2[-1.0,+1.0]kg.m/s2", "", ("-1.2e+2", 1, XSD + "double", "kg.m/s2")),
        ("10m", "", ("10", 1, XSD + "decimal", "m")),
        ("^1952-03-11T00:00:00Z/11", "time", ("1952-03-11T00:00:00Z", 1, XSD + "dateTime", "11")),
        ("^1839-00-00T00:00:00Z/9", "", ("1839-01-01T00:00:00Z", 1, XSD + "dateTime", "9")),
        ("^+2006-03-17T00:00:00Z/10", "", ("2006-03-01T00:00:00Z", 1, XSD + "dateTime", "10")),
        ("^-0044-03-15T00:00:00Z/11", "", ("-0043-03-15T00:00:00Z", 1, XSD + "dateTime", "11")),
        ("^-0001-01-01T00:00:00Z/9", "", ("0000-01-01T00:00:00Z", 1, XSD + "dateTime", "9")),
        ("^2020-02-24T17:05:30", "", ("2020-02-24T17:05:30", 1, XSD + "dateTime", None)),
        ("^1985-02-08", "", ("1985-02-08", 1, XSD + "date", None)),
        ("^1985", "", ("1985", 1, XSD + "gYear", None)),
        ("@42.358333333333/-71.0625", "", ("Point(-71.0625 42.358333333333)", 1, WKT, None)),
        ("@043.26193/010.92708", "", ("Point(10.92708 43.26193)", 1, WKT, None)),
        ("!1000^^dbpedia:USD", "", ("1000", 1, "dbpedia:USD", None)),
        ("!true^^xsd:boolean", "", ("true", 1, XSD + "boolean", None)),
        ("True", "", ("true", 1, XSD + "boolean", None)),
        ("False", "", ("false", 1, XSD + "boolean", None)),
        ("somevalue", "time", ("somevalue", 1, WIKIBASE + "somevalue", None)),
        ("novalue", "", ("novalue", 1, WIKIBASE + "novalue", None)),
    ],
)
def test_each_kind_of_value(tmp_path, text, kind, expected):
    assert value(tmp_path, text, kind) == expected


def test_times_and_coordinates_are_those_of_wikidatas_json(tmp_path):
    """But for the calendar, which KGTK does not write."""
    years = [sign + year for sign in "+-" for year in ("0004", "1900", "2000", "13798")]
    days = [f"{month:02d}-{day:02d}" for month in (0, 2, 4, 12) for day in (0, 1, 29, 31)]
    times = [f"{year}-{day}T00:00:00Z" for year in years for day in days]
    wanted = [
        time_term(time, precision, "http://www.wikidata.org/entity/Q1985727")
        for time in times
        for precision in (7, 9, 10, 11)
    ]
    rows = [f"Q1\tP1\t^{time.removeprefix('+')}/{precision}" for time in times for precision in (7, 9, 10, 11)]
    found = edges(tmp_path, *rows)
    assert found.rows("object", "datatype", "detail") == [(a, b, (c or "").split()[0]) for a, b, c in wanted]
    places = [(1.5, -0.00001), (-17.465063055555557, 100.0), (0.0, -179.99999999999997), (1e-7, 12.10), (90, 0)]
    found = edges(tmp_path, *(f"Q1\tP1\t@{latitude}/{longitude}" for latitude, longitude in places))
    assert found.rows("object") == [(point(longitude, latitude),) for latitude, longitude in places]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('"open', "an unterminated string"),
        ('"open\\"', "an unterminated string"),
        ('"a\\q"', "bad escape \\q"),
        ('"a\\uD800"', "bad escape \\uD800"),
        ("'no language'", "no text in quotes with @ and a language"),
        ("'x'@e n", "no text in quotes with @ and a language"),
        ("^10:30", "no date (with a precision)"),
        ("^0000-01-01T00:00:00Z/9", "no date (with a precision)"),
        ("@91", "no latitude and longitude"),
        ("@a/b", "no latitude and longitude"),
        ("!1000", "no ^^ and type"),
        ("1.2.3", "no number (with a tolerance and a unit)"),
        ("+5[4]Q1", "no number (with a tolerance and a unit)"),
        ("+5[a,b]Q1", "no number (with a tolerance and a unit)"),
    ],
)
def test_values_that_are_none_are_rejected_with_the_reason(tmp_path, text, reason):
    found = edges(tmp_path, "Q1\tP1\tQ2", f"Q1\tP1\t{text}")
    assert [(line, why) for line, why, _ in found.rejects] == [(3, f"object: {reason}")]
    assert found.triples() == [("Q1", "P1", "Q2")]


def test_columns_stand_in_any_order_under_any_of_their_names(tmp_path):
    text = "id\tto\tsource\tfrom\trelation\nE1\tb\tx\ta\tr\n\n# note\n"
    found = read_text(tmp_path, text, "e.tsv", format="kgtk")
    assert found.triples() == [("a", "r", "b")] and found.rows("statement") == [("E1",)] and found.ignored == 3
    assert read_text(tmp_path, "label\tnode2\tnode1\nr\tb\ta\n", "e.txt").triples() == [("a", "r", "b")]
    with pytest.raises(KgInputError, match=r"header has no column label and no node2, only 'node1', 'x'"):
        read_text(tmp_path, "node1\tx\na\tb\n", "e.tsv", format="kgtk")


def test_labels_aliases_and_descriptions_are_names_without_a_statement_name(tmp_path):
    found = edges(
        tmp_path, "P10\tlabel\t'video'@en\tP10-label-en", "P10\talias\t'clip'@en\tx", "P10\tdescription\t'a film'@en\ty"
    )
    assert found.rows("predicate", "object", "datatype", "statement") == [
        (LABEL, "video", "@en", None),
        (ALIAS, "clip", "@en", None),
        (DESCRIPTION, "a film", "@en", None),
    ]


def test_ranks_are_kept(tmp_path):
    rows = [f"Q1\tP1\tQ{i}\t\t{rank}" for i, rank in enumerate(["deprecated", "normal", "preferred", ""], 2)]
    assert edges(tmp_path, *rows).rows("rank") == [(-1,), (0,), (1,), (0,)]


@pytest.mark.parametrize("size", [40, 1 << 20])
def test_qualifiers_are_told_by_file_name_by_wikidatas_ids_or_by_ids_of_the_same_file(tmp_path, monkeypatch, size):
    monkeypatch.setattr(source_module.Source.blocks, "__defaults__", (size,))
    found = edges(tmp_path, "E1\tP580\t^2001-01-01T00:00:00Z/9\tE2", name="qualifiers.time.tsv")
    assert not found.statements.height
    assert found.qualifiers.select("row", "statement", "predicate", "object", "detail").rows() == [
        (None, "E1", "P580", "2001-01-01T00:00:00Z", "9")
    ]
    inline = edges(tmp_path, "Q1-P2-Q3-0a\tP5\tQ6\tq", "Q1\tP2\tQ3\tQ1-P2-Q3-0a", "L1-F2-P5-x\tP1\tQ2\tz")
    assert inline.rows("subject", "statement") == [("Q1", "Q1-P2-Q3-0a")]
    assert inline.qualifiers.rows_by_key("statement", named=False).keys() == {"Q1-P2-Q3-0a", "L1-F2-P5-x"}
    own = edges(
        tmp_path, "t4\trole\tterminator\t", "film\tcast\tarnold\tt4", "arnold\tborn\t1947\tt5", "t5\tsource\twiki\tt6"
    )
    assert own.rows("subject", "statement") == [("film", "t4"), ("arnold", "t5")]
    assert own.qualifiers["statement"].to_list() == ["t4", "t5"]
    without = read_text(tmp_path, "node1\tlabel\tnode2\nt4\trole\tx\n", "e.tsv")
    assert without.triples() == [("t4", "role", "x")]


def test_what_kgtk_derives_is_filtered_unless_it_is_named(tmp_path):
    rows = [
        "Q1\tP279star\tQ2", "Q1\tisa\tQ2", "cat\tisa\tanimal", "Q1\tin_degree\t5", "P10\tdatatype\tstring",
        "disk\tdatatype\tstring", "P10\ttype\tproperty", "Q1\ttype\tQ2", "\tP1\tQ2", "Q1\tP1\t",
    ]  # fmt: skip
    found = edges(tmp_path, *rows, "Q1\tP1\tQ2")
    assert found.triples() == [
        ("cat", "isa", "animal"),
        ("disk", "datatype", "string"),
        ("Q1", "type", "Q2"),
        ("Q1", "P1", "Q2"),
    ]
    assert found.filtered == {"derived edge": 2, "metadata": 3, "empty node": 2}
    assert found.total == 11
    named = edges(tmp_path, *rows, relations=("P279star", "in_degree"))
    assert named.filtered == {"derived edge": 1, "metadata": 2, "empty node": 2}


def test_bad_rows_are_rejected_with_their_line(tmp_path):
    text = 'node1\tlabel\tnode2\nQ1\tP1\nQ1\tP1\tQ2\tx\n"a"\tP1\tQ2\nQ1\t12\tQ2\nQ1\t\tQ2\nQ1\tP1\tQ\0\nQ1\tP1\tQ2\r\n'
    found = read_text(tmp_path, text, "e.tsv")
    assert found.triples() == [("Q1", "P1", "Q2")]
    assert [(line, reason) for line, reason, _ in found.rejects] == [
        (2, "2 column(s) instead of 3"),
        (3, "4 column(s) instead of 3"),
        (4, "subject: a literal"),
        (5, "predicate: a literal"),
        (6, "predicate: an empty symbol"),
        (7, "a NUL or a carriage return within the line"),
    ]


def test_a_header_alone_holds_nothing(tmp_path):
    found = read_text(tmp_path, HEADER + "\n", "sitelinks.tsv")
    assert found.format == "kgtk" and found.total == 0 and found.ignored == 1
