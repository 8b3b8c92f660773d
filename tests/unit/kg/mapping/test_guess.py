"""What is guessed of tables: keys, foreign keys, names, datatypes, what to leave out."""

from __future__ import annotations

import polars as pl
import pytest

from kgqa_core.kg.mapping.guess import guess
from kgqa_core.kg.mapping.model import Mapping
from kgqa_core.kg.mapping.sample import Table
from kgqa_core.kg.words import base_words, singular, split_words


def table(name: str, text: str, whole: bool = True) -> Table:
    """A table whose rows are lines of fields with commas between."""
    header, *rows = [line.strip().split(",") for line in text.strip().splitlines()]
    columns = {column: [row[at] for row in rows] for at, column in enumerate(header)}
    return Table(name, f"{name}.csv", pl.DataFrame(columns, schema=dict.fromkeys(header, pl.String)), whole)


def mapping(**tables: str) -> Mapping:
    """The mapping that is guessed."""
    return guess([table(name, text) for name, text in tables.items()])[0]


SUPPLIERS = "supplier_id,company_name\n1,Acme\n2,Bolt\n3,Cog"


def test_a_key_is_the_unique_column_whose_name_says_so():
    assert mapping(books="isbn,title,id\n9,Dune,1\n8,Emma,2").tables["books"].key == ("id",)
    assert mapping(books="price,title\n9.5,Dune\n8.5,Emma").tables["books"].key == ("title",)


def test_a_foreign_key_is_found_by_its_values_and_its_name():
    tables = mapping(suppliers=SUPPLIERS, products="id,name,supplier_id,stock\n7,Nut,1,2\n8,Cap,3,1").tables
    assert tables["products"].columns["supplier_id"].table == "suppliers"
    assert tables["products"].columns["supplier_id"].relation == "supplier"
    assert tables["products"].columns["stock"].table is None


def test_values_that_no_key_holds_are_no_foreign_key_and_that_is_said():
    found, notes = guess([table("suppliers", SUPPLIERS), table("products", "id,name,supplier_id\n7,Nut,41\n8,Cap,42")])
    assert found.tables["products"].columns["supplier_id"].table is None
    assert any("products.supplier_id looks like a key" in note for note in notes)


def test_a_column_can_refer_to_its_own_table():
    tables = mapping(employees="id,name,manager_id,reportsTo\n1,Ada,,\n2,Bo,1,1\n3,Cy,2,1").tables
    assert {tables["employees"].columns[column].table for column in ("manager_id", "reportsTo")} == {"employees"}


def test_a_table_of_two_foreign_keys_is_one_of_links_even_where_one_is_unique():
    tables = mapping(
        students="student_id,name\n1,Ada\n2,Bo",
        courses="course_id,title\n5,Art\n6,Law\n7,Zoo",
        enrolled="student_id,course_id,grade\n1,5,A\n1,6,B\n2,7,A",
    ).tables
    assert tables["enrolled"].link == ("student_id", "course_id")
    assert (tables["enrolled"].relation, tables["enrolled"].type) == ("course", None)


def test_the_fewest_columns_that_identify_a_row_are_its_key_where_none_does_alone():
    text = "order_id,line_no,item,price,note\n1,1,Nut,2.5,a\n1,2,Cap,2.5,b\n2,1,Nut,2.5,c\n2,2,Cap,3.5,a"
    assert mapping(lines=text).tables["lines"].key == ("order_id", "line_no")


def test_rows_that_nothing_identifies_are_numbered():
    assert mapping(visits="city,month\nOslo,May\nOslo,May").tables["visits"].key == ()


@pytest.mark.parametrize(
    ("header", "row", "name"),
    [
        ("id,title,first_name,last_name", "1,Ms,Ada,Lovelace", ("first_name", "last_name")),
        ("id,contact_name,company_name", "1,Ada,Acme", ("company_name",)),
        ("id,customerName,title", "1,Ada,Ms", ("customerName",)),
        ("id,price,amount", "1,2,3", ()),
    ],
)
def test_the_name_of_a_row_is_found_among_usual_columns(header, row, name):
    assert mapping(customers=f"{header}\n{row}").tables["customers"].name == name


TENANTS = "tenant_id,landlord_name,tenant\n500,Cy Ek,Ana Berg\n501,Cy Ek,Bo Dahl\n502,Di Falk,Ed Gran"


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("tenants", TENANTS, ("tenant",)),
        ("companies", "id,Company,title\n1,Acme,Ltd\n2,Bolt,Inc", ("Company",)),
        ("contractors", "no,company_name\n1,Acme\n2,Bolt", ("company_name",)),
        ("flats", "id,flat,name\n1,2B,Attic\n2,3A,Cellar", ("name",)),
        ("flats", "id,flat\n1,12\n2,13", ()),
        ("animals", "id,animal\n1,lion\n2,lion\n3,yak", ()),
        (
            "comments",
            "id,comment\n1,This is far too long to be what a comment is called\n2,Nor would anybody use this as a name",
            (),
        ),
    ],
)
def test_a_column_with_the_name_of_its_table_names_the_rows_where_it_is_nearly_unique(name, text, column):
    assert mapping(**{name: text}).tables[name].name == column


def test_a_foreign_key_may_be_a_name_where_the_columns_are_called_so():
    flats = "flat_id,tenant_name,city\n1,Ana Berg,Oslo\n2,Bo Dahl,Rome\n3,Ana Berg,Oslo"
    found = mapping(tenants=TENANTS, flats=flats).tables["flats"]
    column = found.columns["tenant_name"]
    assert found.name == ()
    assert (column.relation, column.table, column.column) == ("tenant", "tenants", "tenant")
    by_id = mapping(tenants=TENANTS, flats="flat_id,tenant\n1,500\n2,501\n3,501").tables["flats"]
    assert (by_id.columns["tenant"].table, by_id.columns["tenant"].column) == ("tenants", None)
    twice = mapping(tenants=f"{TENANTS}\n503,Di Falk,Ana Berg", flats=f"{flats}\n4,Ana Berg,\n5,Ana Berg,").tables[
        "flats"
    ]
    assert twice.columns["tenant_name"].table is None


def test_datatypes_are_those_that_all_values_have():
    text = (
        "id,born,seen,zip,price,active,count\n1,1948-12-08 00:00:00.000,2020-01-02 10:30:00,01234,1.5,0,7\n"
        "2,1950-01-01 00:00:00.000,2021-01-02 10:30:00,98765,2,1,8"
    )
    columns = mapping(things=text).tables["things"].columns
    kinds = {name: column.datatype for name, column in columns.items()}
    assert kinds == {"born": "date", "seen": "dateTime", "zip": "string", "price": "decimal", "active": "boolean",
                     "count": "integer"}  # fmt: skip


def test_cells_of_several_values_refer_to_the_rows_of_another_table():
    beasts = "name,biome\nYak,Steppe; Tundra\nElk,Tundra\nOrca,Sea\nSeal,Sea; Tundra"
    columns = mapping(biomes="name,climate\nSteppe,dry\nTundra,cold\nSea,wet", beasts=beasts).tables["beasts"].columns
    assert (columns["biome"].table, columns["biome"].separator) == ("biomes", "; ")


def test_dates_have_the_format_that_a_column_shows_or_stay_text_and_are_said_to():
    shown = "id,hired,left,at\n1,13/04/2019,03/04/2021,4.3.2020\n2,1/2/2018,05/06/2022,1.2.2020"
    columns = mapping(staff=shown).tables["staff"].columns
    assert [columns[name].format for name in ("hired", "left", "at")] == ["%d/%m/%Y", "%d/%m/%Y", "%d.%m.%Y"]
    found, notes = guess([table("staff", "id,left\n1,03/04/2021\n2,05/06/2022")])
    left = found.tables["staff"].columns["left"]
    assert (left.datatype, left.format) == ("string", None)
    assert any("staff.left: its dates fit %d/%m/%Y and %m/%d/%Y, so it stays text" in note for note in notes)


def test_empty_constant_and_binary_columns_are_left_out():
    rows = "\n".join(f"{n},,x,0x{'ab' * 40}" for n in range(12))
    columns = mapping(things=f"id,nothing,same,picture\n{rows}").tables["things"].columns
    assert {name: column.omit for name, column in columns.items()} == {
        "nothing": "empty", "same": "constant: x", "picture": "binary",
    }  # fmt: skip


def test_cells_of_several_values_are_found_by_parts_that_come_again():
    text = "title,directors,plot\nDust,Ana; Bo,One; two\nTea; and Sympathy,Bo,Three; four\nHarbour,Ana,Five"
    columns = mapping(films=text).tables["films"].columns
    assert (columns["directors"].separator, columns["directors"].datatype) == ("; ", "entity")
    assert columns["plot"].separator is None
    frame = pl.DataFrame({"title": ["Dust", "Tea", "Sea"], "by": ["Ana, Bo", "Bo", "Ana"], "plot": ["1, 2", "a", "b"]})
    found, notes = guess([Table("films", "films.csv", frame)])
    assert found.tables["films"].columns["by"].separator is None
    assert [note for note in notes if "`separator: ', '` in the mapping splits" in note] == [
        "films.by has cells of several values, which `separator: ', '` in the mapping splits"
    ]


def test_placeholders_are_found_and_do_not_hide_a_datatype():
    found = mapping(things="id,price\n1,NULL\n2,3.5\n3,n/a")
    assert found.placeholders == ("NULL", "n/a")
    assert found.tables["things"].columns["price"].datatype == "decimal"


def test_a_key_that_was_looked_for_in_some_rows_only_is_said_to_be_so():
    notes = guess([table("books", "id,name\n1,Dune\n2,Emma", whole=False)])[1]
    assert any("in the first 2 rows" in note for note in notes)


def test_words_that_all_tables_share_are_no_part_of_types():
    found = mapping(shop_items="id,name\n1,Nut", shop_people="id,name\n1,Ada", shop_categories="id,name\n1,Tools")
    assert [table.type for table in found.tables.values()] == ["item", "person", "category"]


def test_names_are_cut_into_words():
    assert split_words("titleOfCourtesy") == ["title", "of", "courtesy"]
    assert base_words("supplierid") == ["supplier"]
    assert singular(["order", "details"]) == ["order", "detail"]
