"""Tables with a header whose columns have roles."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats import csv_rows
from kgqa_core.kg.formats import source as source_module
from tests.support.examples import examples
from tests.support.reading import read_text

XSD = "http://www.w3.org/2001/XMLSchema#"
ROLES = {"subject": "who", "predicate": "what", "object": "whom"}


@pytest.mark.parametrize("cut", [",", "\t", ";", "|"])
def test_columns_stand_in_any_order_and_others_are_left_out(tmp_path, cut):
    text = "n,whom,who,what,note\n1,b,a,r,x\n2,c, a ,s,\n".replace(",", cut)
    found = read_text(tmp_path, text, "table.csv", columns=ROLES)
    assert found.format == "columns" and found.ignored == 1
    assert found.triples() == [("a", "r", "b"), ("a", "s", "c")]
    assert set(found.rows("kind", "datatype", "rank")) == {(2, None, 0)}


def test_constants_languages_datatypes_and_ranks(tmp_path):
    text = "id,value,lang,type,rank\nQ1,univers,FR,,\nQ1,5,,xsd:integer,preferred\nQ1,Q2,,iri,deprecated\nQ1,x,,http://t/x,Normal\nQ1,y,,,\n"
    roles = {
        "subject": "id",
        "predicate": "=label",
        "object": "value",
        "language": "lang",
        "datatype": "type",
        "rank": "rank",
    }
    found = read_text(tmp_path, text, "t.csv", columns=roles)
    assert set(found.rows("predicate")) == {("http://www.w3.org/2000/01/rdf-schema#label",)}
    assert found.rows("object", "kind", "datatype", "rank") == [
        ("univers", 1, "@fr", 0),
        ("5", 1, XSD + "integer", 1),
        ("Q2", 0, None, -1),
        ("x", 1, "http://t/x", 0),
        ("y", 2, None, 0),
    ]
    constant = roles | {"predicate": "=born in", "language": "=de"}
    assert read_text(tmp_path, text, "t.csv", columns=constant).rows("predicate", "datatype")[4] == ("born in", "@de")


def test_quotes_protect_delimiters_quotes_and_line_ends(tmp_path):
    text = 'who,what,whom\r\n"a, b",r,"say ""hi"""\r\na,r,"two\r\nlines"\r\nc,r,5" disk\r\n"d",r,e\r\n'
    found = read_text(tmp_path, text, "t.csv", columns=ROLES)
    assert not found.rejects
    assert found.triples() == [
        ("a, b", "r", 'say "hi"'),
        ("a", "r", "two\nlines"),
        ("c", "r", '5" disk'),
        ("d", "r", "e"),
    ]


def test_every_bad_row_is_rejected_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(source_module.Source.blocks, "__defaults__", (20,))
    bad = ["a,r", "a,r,b,,,z", ",r,b,,", "a,,b,,", "a,r,,,", "a,r,b,e n,", "a,r,b,,best"]
    mixed = ['a,r,"x', 'y",,', 'a,r,"b\0",,', '"a",r,b,,', 'a,r,"open,,', "next,r,b,,", "", ""]
    text = "\n".join(["who,what,whom,lang,rank", *bad, *mixed])
    roles = ROLES | {"language": "lang", "rank": "rank"}
    found = read_text(tmp_path, text, "t.csv", columns=roles)
    assert found.triples() == [("a", "r", "x\ny"), ("a", "r", "b"), ("next", "r", "b")]
    assert found.filtered == {"empty object": 1}
    assert [(line, reason) for line, reason, _ in found.rejects] == [
        (2, "2 field(s) instead of 5"),
        (3, "6 field(s) instead of 5"),
        (4, "no subject"),
        (5, "no predicate"),
        (7, "'e n' is no language"),
        (8, "'best' is no rank"),
        (11, "a NUL or a carriage return within the row"),
        (13, "a double quote is never closed"),
    ]


def test_a_quote_that_opens_too_many_lines_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_rows, "MAX_ROW_LINES", 3)
    text = 'who,what,whom\na,r,"open\nb,r,c\nd,r,e\nf,r,g\n"h",r,i\n'
    found = read_text(tmp_path, text, "t.csv", columns=ROLES)
    assert [head for head, _, _ in found.triples()] == ["b", "d", "f", "h"]
    assert [line for line, _, _ in found.rejects] == [2]


@pytest.mark.parametrize("later", ["", 'x,r,"quoted"', 'x,r,"y, z"', '"x",r,y'])
@pytest.mark.parametrize("bad", ['a,r,"open', 'a,"r,b', '"a,r,b', '"a" b,r,"c'])
def test_one_quote_without_its_partner_costs_one_of_ten_thousand_rows(tmp_path, bad, later):
    lines = [f"a{number},r,b" for number in range(10_000)]
    lines[5_000] = bad
    lines[7_000] = later or lines[7_000]
    found = read_text(tmp_path, "\n".join(["who,what,whom", *lines]) + "\n", "t.csv", columns=ROLES)
    assert len(found.triples()) == 9_999
    assert [(line, reason) for line, reason, _ in found.rejects] == [(5_002, "a double quote is never closed")]


def test_a_field_that_csv_finds_too_long_is_one_reject(tmp_path):
    text = f'who,what,whom\n"a",r,b\n"c",r,"{"x" * (csv.field_size_limit() + 1)}"\n"d",r,e\n'
    found = read_text(tmp_path, text, "t.csv", columns=ROLES)
    assert found.triples() == [("a", "r", "b"), ("d", "r", "e")]
    assert [(line, reason) for line, reason, _ in found.rejects] == [(3, "field larger than field limit (131072)")]


@examples(150)
@given(
    st.lists(st.tuples(*[st.text('ab",;\n é', min_size=1, max_size=6)] * 3), min_size=1, max_size=12),
    st.integers(5, 60),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_rows_are_those_of_pythons_csv_for_any_size_of_block(tmp_path_factory, rows, size, quoting, end):
    out = io.StringIO()
    writer = csv.writer(out, quoting=quoting, lineterminator=end)
    writer.writerows([("who", "what", "whom"), *rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_module.Source.blocks, "__defaults__", (size,))
        found = read_text(tmp_path_factory.getbasetemp(), out.getvalue(), "t.csv", columns=ROLES)
    stripped = [tuple(field.strip(" \n") for field in row) for row in rows]
    assert found.triples() == [row for row in stripped if all(row)]
    assert len(found.rejects) == sum(not (s and p) for s, p, _ in stripped)
    assert sum(found.filtered.values()) == sum(bool(s and p and not o) for s, p, o in stripped)


def test_missing_columns_are_named_with_those_that_are_there(tmp_path):
    text = "who,what,whom\na,r,b\n"
    with pytest.raises(
        KgInputError, match=r"no column 'whon' of kg.columns; did you mean 'who'\?; .* has 'who', 'what'"
    ):
        read_text(tmp_path, text, "t.csv", columns=ROLES | {"object": "whon"})
    with pytest.raises(KgInputError, match="no column 'x'"):
        read_text(tmp_path, text.replace(",", "\t"), "t.tsv", columns=ROLES | {"subject": "x"})
    with pytest.raises(KgInputError, match="'x' and 'y' and 'z'"):
        read_text(tmp_path, text, "t.csv", columns={"subject": "x", "predicate": "y", "object": "z"}, format="columns")


def test_roles_are_checked(tmp_path):
    text = "who,what,whom\na,r,b\n"
    with pytest.raises(KgInputError, match="has a role 'subjet'; did you mean 'subject'"):
        read_text(tmp_path, text, "t.csv", columns={"subjet": "who"})
    with pytest.raises(KgInputError, match="says no predicate and no object"):
        read_text(tmp_path, text, "t.csv", columns={"subject": "who"})
    with pytest.raises(KgInputError, match="says no subject"):
        read_text(tmp_path, text, "t.csv", format="columns")


def test_files_without_these_columns_are_read_by_their_own_format(tmp_path):
    assert read_text(tmp_path, "a\tr\tb\n", "g.tsv", columns=ROLES).format == "delimited"
    assert read_text(tmp_path, "<http://a> <http://r> <http://b> .\n", "g.nt", columns=ROLES).format == "ntriples"
    assert read_text(tmp_path, "Q1\tone\n", "labels.en.tsv", columns=ROLES).format == "names"
