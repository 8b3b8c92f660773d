"""CSV of triples: headers in any order and case, qualifiers, no header, decimal commas."""

from __future__ import annotations

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.registry import FORMATS
from kgqa_core.kg.look.dump import dump


def triples(store):
    sql = ("SELECT h.key, r.key, t.key FROM triples x JOIN entities h ON h.id = x.head "
           "JOIN relations r ON r.id = x.relation JOIN entities t ON t.id = x.tail ORDER BY ALL")  # fmt: skip
    return store.connection.execute(sql).fetchall()


WANTED = [("Aspirin", "interacts with", "Warfarin, oral"), ("Aspirin", "treats", "Headache")]


@pytest.mark.parametrize(
    "header",
    ["subject,predicate,object", "Head,Relation,Tail", "SOURCE,Type,TARGET", "from,label,to", "s,p,o", "Start,rel,End"],
)
@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 0, 1)])
def test_known_headers_are_read_in_any_order_and_case(tmp_path, header, order):
    names = header.split(",")
    rows = [names, ["Aspirin", "treats", "Headache"], ["Aspirin", "interacts with", '"Warfarin, oral"']]
    text = "".join(",".join(row[index] for index in order) + "\n" for row in rows)
    reader = FORMATS["triples"].reader()
    assert reader.sniff(text.splitlines(), KgOptions()) == 1.0


def test_a_table_with_a_header_and_qualifiers_is_read_without_a_setting(make):
    text = (
        'source;type;target;since;\nAspirin;treats;Headache;1899;\nAspirin;interacts with;"Warfarin, oral";;x\n;r;b;;\n'
    )
    store, counts = make("\ufeff" + text.replace("\n", "\r\n"), "g.csv")
    assert triples(store) == WANTED and counts["rejects"] == 1
    assert store.connection.execute("SELECT reason FROM rejects").fetchall() == [("no source",)]
    rows = (
        "SELECT r.key, v.key FROM qualifiers q JOIN relations r ON r.id = q.relation JOIN entities v ON v.id = q.value"
    )
    assert sorted(store.connection.execute(rows).fetchall()) == [("column 5", "x"), ("since", "1899")]
    found = store.meta["read_as"]["g.csv"]
    assert (
        found["delimiter"] == "';'"
        and found["columns of subject, predicate and object"] == "'source', 'type', 'target'"
    )


def test_triples_without_a_header_are_told_from_a_table_of_three_columns(make):
    store, _ = make('Mint,grows in,Shade\n"Basil, sweet",grows in,Sun\n', "g.csv")
    assert triples(store) == [("Basil, sweet", "grows in", "Sun"), ("Mint", "grows in", "Shade")]
    assert store.meta["read_as"] == {"g.csv": {"delimiter": "','", "header": "none"}}
    store, _ = make("id,name,born\n1,Eve,1970\n2,Finn,1970\n", "people.csv")
    assert ("people/1", "born", "1970") in triples(store)


def test_three_fields_by_tabs_in_their_order_are_still_read_without_quoting(make):
    store, _ = make('subject\tpredicate\tobject\n"Weird" Alma\tin\tCork\n', "g.tsv")
    assert triples(store) == [('"Weird" Alma', "in", "Cork")] and "read_as" not in store.meta


def test_decimal_commas_are_found_by_column_and_a_comma_between_thousands_is_none(make):
    options = {"table": {"id": "id"}, "property_graph": {"datatypes": {"height": "decimal", "price": "decimal"}}}
    store, counts = make("id;height;price\na;2104,5;1.200,50\nb;1890;3,25\n", "g.csv", **options)
    assert counts["rejects"] == 0
    assert {row[1:] for row in triples(store)} == {
        ("height", "2104.5"), ("height", "1890"), ("price", "1200.50"), ("price", "3.25"),
    }  # fmt: skip
    assert store.meta["read_as"]["g.csv"]["decimal comma"] == "'height', 'price'"
    store, counts = make("id;height\na;2,104\nb;1.5\nc;7\nd;8\n", "g.csv", **options)
    assert counts["rejects"] == 1 and "decimal comma" not in store.meta["read_as"]["g.csv"]


def test_an_export_to_csv_reads_back_the_same(make, tmp_path):
    text = 'head,relation,tail\n"Pump ""Hydra""","part, of","Line\nbreak"\na,r,b\n'
    store, _ = make(text, "g.csv")
    assert dump(store, tmp_path / "out.csv") == {"triples": 2, "qualifiers": 0}
    again, _ = make((tmp_path / "out.csv").read_bytes(), "out.csv")
    assert triples(again) == triples(store) and len(triples(store)) == 2


@pytest.mark.parametrize(("label", "relation"), [("", "edge"), ("knows", "knows")])
def test_the_type_of_a_gephi_edge_is_its_direction_and_no_relation(make, label, relation):
    header = "Source,Target,Type,Id,Label,Weight\n"
    store, counts = make(f"{header}a,b,Directed,0,{label},1.0\nb,c,Undirected,1,{label},2.0\n", "g.csv")
    assert triples(store) == [("a", relation, "b"), ("b", relation, "c"), ("c", relation, "b")]
    assert counts["rejects"] == 0
