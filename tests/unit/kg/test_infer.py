"""Datatypes, units and types of graphs whose files state none."""

from __future__ import annotations

import doctest

import pytest

from kgqa_core.kg import text_dates, text_numbers
from kgqa_core.kg.look.show import describe as show
from kgqa_core.kg.text_numbers import decimal_mark, quantity

XSD = "http://www.w3.org/2001/XMLSchema#"


def lines(*triples):
    return "".join("\t".join(triple.split("|")) + "\n" for triple in triples)


def values(store, relation):
    """(head, value, datatype, number, unit) of a relation's triples."""
    return store.connection.execute(
        "SELECT h.key, t.key, replace(t.datatype, $2, ''), t.number, t.unit FROM triples x "
        "JOIN entities h ON h.id = x.head JOIN entities t ON t.id = x.tail JOIN relations r ON r.id = x.relation "
        "WHERE r.key = $1 ORDER BY ALL",
        [relation, XSD],
    ).fetchall()


FILMS = lines(
    "1917|directed by|Sam Orton", "300|directed by|Zed Marsh", "300|followed by|301", "301|followed by|302",
    "1917|released in|2019", "300|released in|2007", "2012|released in|2009", "Ashes|released in|2012",
    "Ashes|directed by|Zed Marsh", "Bus|stops at|Harbour", "Tram|stops at|Room 101",
)  # fmt: skip


def test_numbers_of_a_relation_are_literals_and_numeric_names_stay_things(make):
    store, _ = make(FILMS, "g.tsv")
    assert [row[1:4] for row in values(store, "released in")] == [
        ("2019", "gYear", 2019), ("2009", "gYear", 2009), ("2007", "gYear", 2007), ("2012", "gYear", 2012)
    ]  # fmt: skip
    assert [row[2] for row in values(store, "followed by")] == [None, None]
    keys = store.connection.execute("SELECT kind, datatype FROM entities WHERE key = '2012' ORDER BY id").fetchall()
    assert keys == [("entity", None), ("literal", f"{XSD}gYear")]
    assert store.meta["inferred"] == {"released in": {"datatype": f"{XSD}date", "parsed": 4, "left_as_text": 0}}


def test_values_stay_things_where_it_is_asked_for(make):
    store, counts = make(FILMS, "g.tsv", infer_values=False)
    assert counts["literals"] == 0 and "inferred" not in store.meta and store.meta["options"]["infer_values"] is False


def test_a_graph_without_guesses_does_not_record_the_options(make):
    store, _ = make("a\tr\tb\nb\tr\tc\n", "g.tsv")
    assert "inferred" not in store.meta and not any(name.startswith("infer") for name in store.meta["options"])


COLUMNS: list[tuple[list[str], str | None]] = [
    (["1", "2.5", "-3"], "decimal"), (["1", "2.5e3"], "double"), (["1", "+20"], "integer"),
    (["true", "False", "TRUE"], "boolean"), (["1950-06-01", "1951", "1952-02"], "date gYear gYearMonth"),
    (["2020-01-01T00:30:00+02:00", "2019-12-31T23:00:00Z"], "dateTime"), (["01", "02"], None),
    (["007", "12", "13"], None), (["+386 1 234 567", "+386 1 234 568"], None), (["3.11.4", "3.12.1"], None),
    (["978-3-16-148410-0", "978-3-16-148411-0"], None), (["12"], None), (["12", "many"], None),
    (["1,050", "980"], "string"), (["135 MW", "0.9 GW"], "string"), (["9e107d9d", "1e"], None),
    (["7 Samurai", "12 Monkeys"], None), (["#1", "#2"], None),
]  # fmt: skip


def test_a_relation_has_the_datatype_of_its_values(make):
    rows = [f"thing {n}|r{r}|{text}" for r, (column, _) in enumerate(COLUMNS) for n, text in enumerate(column)]
    store, counts = make(lines(*rows), "g.tsv")
    for number, (column, datatypes) in enumerate(COLUMNS):
        result = sorted({row[2] for row in values(store, f"r{number}")} - {None})
        assert " ".join(result) == (datatypes or ""), column
    assert counts["triples"] + counts["duplicates"] == len(rows)


def test_booleans_that_are_written_differently_are_one_value_and_counted_as_repeated(make):
    store, counts = make(lines("x|open|True", "x|open|true", "y|open|false"), "g.tsv")
    assert [row[:3] for row in values(store, "open")] == [("x", "true", "boolean"), ("y", "false", "boolean")]
    assert (counts["triples"], counts["duplicates"]) == (2, 1)


def test_what_does_not_parse_stays_text_and_is_counted(make):
    triples = [f"t{n}|size|{n}" for n in range(1, 20)]
    store, _ = make(lines(*triples, "t20|size|unknown"), "g.tsv")
    assert ("t20", "unknown", "string", None, None) in values(store, "size")
    assert store.meta["inferred"]["size"]["left_as_text"] == 1


def test_a_file_whose_keys_are_numbers_keeps_them(make):
    store, counts = make(lines(*(f"{n}|r|{n + 100}" for n in range(20))), "g.tsv")
    assert counts["literals"] == 0 and counts["entities"] == 40


def test_new_literals_are_in_canonical_order_and_names_stay(make):
    store, _ = make(lines("b|r|5", "c|r|41", "d|name|e"), "b.tsv", label_predicates=("name",))
    rows = store.connection.execute("SELECT key, datatype FROM entities WHERE kind = 'literal' ORDER BY id").fetchall()
    assert rows == sorted(rows) and len(rows) == 2 and store.names([0, 1, 2])[2] == "e"


def turtle(*values):
    return "@prefix : <http://x/> .\n" + "".join(f':t{n} :r "{text}" .\n' for n, text in enumerate(values))


def test_strings_with_units_get_a_number_and_keep_their_text(make):
    store, _ = make(turtle("135 MW", "0.9 GW", "87 MW"), "g.ttl")
    assert [row[1:] for row in values(store, "http://x/r")] == [
        (text, "string", number, "Q6982035") for text, number in (("135 MW", 135), ("0.9 GW", 900), ("87 MW", 87))
    ]  # fmt: skip
    assert store.meta["inferred"]["http://x/r"]["datatype"] is None
    fact = show(store, "http://x/t1")["matches"][0]["facts"][0]
    assert (fact["text"], fact["unit"]) == ("0.9 GW", "Q6982035")


STRINGS = (
    ("10115", "20095", "80331"), ("135 MW",), ("3.11.4", "3.12.0"), ("7 Samurai", "12 Monkeys"), ("101 A", "front"),
    ("102BBY", "57BBY", "4 BBY"),
    ("+386 1 234 567", "+386 1 234 568"), ("2020-01-01", "2020-01-02"), ("true", "false"),
)  # fmt: skip


def test_codes_and_single_strings_stay_strings(make):
    rows = [f':t{n} :r{r} "{text}" .' for r, texts in enumerate(STRINGS) for n, text in enumerate(texts)]
    store, _ = make("\n".join(["@prefix : <http://x/> .", *rows]), "g.ttl")
    assert "inferred" not in store.meta
    assert store.connection.execute("SELECT count(number) FROM entities WHERE number IS NOT NULL").fetchone() == (0,)


def test_the_decimal_mark_is_that_of_the_relation(make):
    store, _ = make(turtle("€ 1.200", "€ 1.200,50", "€ 3,5"), "g.ttl")
    assert [row[3] for row in values(store, "http://x/r")] == [1200, 1200.5, 3.5]
    assert decimal_mark(["1.200", "2.300"]) == text_numbers.DecimalMark(".", "1.200")
    assert decimal_mark(["$ 1,200"]).mark == "." and decimal_mark(["1.200.300"]).mark == ","


@pytest.mark.parametrize(
    ("text", "mark", "number", "unit"),
    [
        ("25 minutes", ".", 25, "Q7727"), ("5'11\"", ".", 71, "Q218593"), ("1 h 30 min", ".", 90, "Q7727"),
        ("23,5 kg", ",", 23.5, "Q11570"), ("40 %", ".", 40, "percent"), ("1.2 million", ".", 1.2e6, None),
        ("−40 °C", ".", -40, "Q25267"), ("1 200 000", ".", 1.2e6, None), ("-$5.00", ".", -5, "dollar"),
        ("40 km2", ".", 40, "Q712226"), ("1.07E8", ".", 1.07e8, None),
    ],
)  # fmt: skip
def test_a_quantity_is_read(text, mark, number, unit):
    result = quantity(text, mark)
    assert result is not None and (result.number, result.unit) == (pytest.approx(number), unit)


@pytest.mark.parametrize("text", ["192.168.1.1", "9e107d9d", "4K", "0123", "1,2,3", "9" * 400, "1e999", "12-34", ""])
def test_what_is_no_quantity_is_none(text):
    assert quantity(text) is None


def test_documented_examples_hold():
    assert doctest.testmod(text_numbers).failed == 0


def test_a_relation_called_type_gives_types_where_none_are_declared(make):
    text = lines("X|type|ferry", "Y|is a|ship", "X|sails to|Z")
    store, counts = make(text, "g.tsv")
    assert counts["types"] == 2 and counts["triples"] == 3
    assert store.meta["inferred"]["type"]["datatype"] == "type"
    store, counts = make(text + lines("Z|rdf:type|port"), "h.tsv")
    assert counts["types"] == 1
    store, counts = make(text, "i.tsv", infer_types=False)
    assert counts["types"] == 0


def test_whole_numbers_of_a_relation_that_is_called_as_a_time_are_years(make):
    store, _ = make(
        lines("Dust|released_in|1995", "Tide|released_in|2008", "Tide|price|1995", "Dust|price|2008"), "g.tsv"
    )
    inferred = {name: one["datatype"].rpartition("#")[2] for name, one in store.meta["inferred"].items()}
    assert inferred == {"released_in": "date", "price": "integer"}
    assert [row[1:3] for row in values(store, "released_in")] == [("1995", "gYear"), ("2008", "gYear")]


def test_relations_that_are_called_as_names_name_what_has_no_label(make):
    text = """
        @prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix t: <http://purl.org/dc/terms/> . @prefix : <http://x/> .
        :1 foaf:name "Ana Ruiz" ; t:title "Dr" ; foaf:knows :2 . :2 foaf:name "Bo Lee" ; t:title "Dr" .
        :b t:title "Dust" . :c t:title "Rain" ; t:creator :2 . :d t:title "Salt" . """
    store, _ = make(text, "g.ttl")
    assert store.resolve(["Bo Lee"]) == {"Bo Lee": store.resolve(["http://x/2"])["http://x/2"]}
    assert store.meta["inferred"] == {
        "http://xmlns.com/foaf/0.1/name": {"datatype": "label", "parsed": 2, "left_as_text": 0}
    }
    books = "".join(f':b{n} t:title "Book {n}" . ' for n in range(40))
    assert set(make(text + books, "g.ttl")[0].meta["inferred"]) >= {"http://purl.org/dc/terms/title"}
    for options in ({"infer_types": False}, {"literal": True}):
        assert "inferred" not in make(text, "g.ttl", **options)[0].meta
    labelled = text.replace(":1 foaf:name", ':1 <http://www.w3.org/2000/01/rdf-schema#label> "Ana" ; foaf:name')
    assert "inferred" not in make(labelled, "g.ttl")[0].meta


def test_dates_are_read_where_a_value_tells_day_and_month_apart(make):
    text = lines("Ana|hired on|13/04/2019", "Bo|hired on|3/4/2018", "Ana|born on|03/04/1990", "Bo|born on|05/06/1985",
                 "Cy|left|1 May 2021", "Bo|left|2 June 2020")  # fmt: skip
    store, _ = make(text, "g.tsv")
    assert [row[1:3] for row in values(store, "hired on")] == [("2019-04-13", "date"), ("2018-04-03", "date")]
    assert [row[1:3] for row in values(store, "born on")] == [("03/04/1990", "string"), ("05/06/1985", "string")]
    assert [row[1:3] for row in values(store, "left")] == [("2020-06-02", "date"), ("2021-05-01", "date")]
    assert doctest.testmod(text_dates).failed == 0
