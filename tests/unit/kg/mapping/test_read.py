"""Tables of one database as a graph: by a guess, or by a mapping that somebody wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.cli.graph_folders import build_folder, update_folder
from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, OutputError
from kgqa_core.kg.ingest.sources import find_sources, tables_in
from kgqa_core.kg.mapping.choose import guess_of
from kgqa_core.kg.mapping.model import read_mapping, write_mapping
from kgqa_core.kg.store import KgStore
from tests.support.property_graph import built, triples

PEOPLE = "id,name,born,mentor_id\n1,Ada,1815-12-10 00:00:00,NULL\n2,Bo,1900-01-02 00:00:00,1\n"
BOOKS = 'id,title,author_id,tags\n1,Notes,1,"maths, old|letters"\n2,Sea,2,letters\n3,Sky,2,letters\n'


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two tables, whose ids begin with 1."""
    paths = [tmp_path / "people.csv", tmp_path / "books.csv"]
    for path, text in zip(paths, (PEOPLE, BOOKS), strict=True):
        path.write_text(text)
    return paths


@pytest.fixture
def mapped(files: list[Path], tmp_path: Path) -> Callable[..., tuple[dict[str, int], set[tuple[str, ...]]]]:
    """Builds the files by a mapping; counts and triples by name."""

    def _mapped(text: str, **options: Any) -> tuple[dict[str, int], set[tuple[str, ...]]]:
        path = tmp_path / "map.yaml"
        path.write_text(text)
        counts, _ = built(tmp_path / "g", files, map=str(path), **options)
        return counts, triples(tmp_path / "g")

    return _mapped


def test_several_tables_are_one_graph_whose_ids_do_not_collide(files, tmp_path):
    counts, _ = built(tmp_path / "g", files)
    assert counts["types"] == 2 and counts["rejects"] == 0
    assert triples(tmp_path / "g") == {
        ("Ada", "born", "1815-12-10"), ("Bo", "born", "1900-01-02"), ("Bo", "mentor", "Ada"),
        ("Notes", "author", "Ada"), ("Sea", "author", "Bo"), ("Sky", "author", "Bo"),
        ("Notes", "tags", "maths, old"), ("Notes", "tags", "letters"), ("Sea", "tags", "letters"),
        ("Sky", "tags", "letters"),
    }  # fmt: skip
    with KgStore.open(tmp_path / "g") as store:
        assert store.meta["tables"]["tables"]["books"]["columns"]["author_id"] == {
            "relation": "author",
            "table": "people",
        }
        assert store.meta["tables"]["placeholders"] == ["NULL"]


def test_the_mapping_that_is_written_down_reads_the_same_graph(files, tmp_path):
    sources = find_sources([str(path) for path in files])
    mapping, notes = guess_of(sources, KgOptions(), sources)
    path = tmp_path / "map.yaml"
    path.write_text(write_mapping(mapping, notes))
    assert read_mapping(path) == mapping
    assert built(tmp_path / "a", files, map=str(path))[1] == built(tmp_path / "b", files)[1]
    assert built(tmp_path / "c", [tmp_path], map=str(path))[1] == built(tmp_path / "b", files)[1]


def test_what_a_mapping_says_is_read_and_what_it_does_not_list_is_left_out(mapped):
    text = """
    tables:
      people: {file: people.csv, type: author, key: id, name: name, columns: {name: {relation: called}}}
      books:
        file: books.csv
        key: [id, title]
        columns: {tags: {separator: "|"}, author_id: {relation: by, table: people}}
    """
    assert mapped(text)[1] == {
        ("Ada", "called", "Ada"), ("Bo", "called", "Bo"), ("books 1/Notes", "by", "Ada"),
        ("books 2/Sea", "by", "Bo"), ("books 3/Sky", "by", "Bo"), ("books 1/Notes", "tags", "maths, old"),
        ("books 1/Notes", "tags", "letters"), ("books 2/Sea", "tags", "letters"), ("books 3/Sky", "tags", "letters"),
    }  # fmt: skip


def test_dates_are_read_in_the_format_that_the_mapping_says(files, mapped):
    files[0].write_text("id,born,died\n1,3/4/1815,May 4 1852\n2,30/1/1900,\n3,soon,\n")
    columns = "{born: {datatype: date, format: '%d/%m/%Y'}, died: {datatype: date, format: '%b %d %Y'}}"
    books = "books: {file: books.csv, type: book, key: id}"
    _, read = mapped(f"tables: {{people: {{file: people.csv, key: id, columns: {columns}}}, {books}}}")
    assert read == {("people 1", "born", "1815-04-03"), ("people 1", "died", "1852-05-04"),
                    ("people 2", "born", "1900-01-30"), ("people 3", "born", "soon")}  # fmt: skip
    with pytest.raises(KgInputError, match="columns.born.format: '%d' is no"):
        mapped("tables: {people: {file: people.csv, key: id, columns: {born: {format: '%d'}}}}")


def test_links_are_triples_with_their_other_columns_as_qualifiers(tmp_path):
    texts = {
        "people.csv": "id,name\n1,Ada\n2,Bo\n",
        "clubs.csv": "club_id,name\n1,Chess\n2,Go\n",
        "people_clubs.csv": "people_id,club_id,since\n1,1,1999\n1,2,2001\n2,2,2003\n,1,2005\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    counts, _ = built(tmp_path / "g", [tmp_path / name for name in texts])
    assert (counts["qualifiers"], counts["rejects"]) == (3, 1)
    assert triples(tmp_path / "g") == {("Ada", "club", "Chess"), ("Ada", "club", "Go"), ("Bo", "club", "Go")}


def test_names_that_are_foreign_keys_lead_to_the_rows_that_they_name(tmp_path):
    texts = {
        "tenants.csv": "tenant_id,tenant,phone\n500,Ana Berg,11\n501, Bo Dahl,12\n502,Cy Ek,13\n",
        "flats.csv": "flat_id,flat,tenant\n1,Attic,Ana Berg\n2,Cellar,Bo Dahl\n3,Loft,\n",
        "visits.csv": "tenant,flat\nAna Berg,2\nAna Berg,Loft\nBo Dahl,1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    counts, _ = built(tmp_path / "g", [tmp_path / "tenants.csv", tmp_path / "flats.csv"])
    assert counts["rejects"] == 0
    assert triples(tmp_path / "g") == {
        ("Ana Berg", "phone", "11"), ("Bo Dahl", "phone", "12"), ("Cy Ek", "phone", "13"),
        ("Attic", "tenant", "Ana Berg"), ("Cellar", "tenant", "Bo Dahl"),
    }  # fmt: skip
    with KgStore.open(tmp_path / "g") as store:
        assert store.connection.execute("SELECT count(*) FROM entities WHERE key = 'tenants/500'").fetchone() == (1,)
    path = tmp_path / "map.yaml"
    path.write_text(
        """tables:
  tenants: {file: tenants.csv, key: tenant_id, name: tenant}
  flats: {file: flats.csv, key: flat_id, name: flat}
  visits:
    {file: visits.csv, link: [tenant, flat], relation: saw,
     columns: {tenant: {table: tenants, column: tenant}, flat: {table: flats, column: flat}}}"""
    )
    built(tmp_path / "g", [tmp_path / name for name in texts], map=str(path))
    assert {("Ana Berg", "saw", "Loft"), ("Bo Dahl", "saw", "Attic")} <= triples(tmp_path / "g")  # one by its key
    path.write_text(path.read_text().replace("column: flat}", "column: flta}"))
    with pytest.raises(KgInputError, match=r"columns\.flat\.column: 'flta' is no column of the table 'flats'.*'flat'"):
        built(tmp_path / "g", [tmp_path / name for name in texts], map=str(path))


def test_every_fault_of_a_mapping_is_said_at_once(mapped):
    with pytest.raises(KgInputError) as fault:
        mapped("""
        tables:
          people: {file: people.csv, key: id, columns: {born: {datatype: dat}, mentor_id: {table: peple}}}
          books: {file: books.csv, columns: {author_id: {table: books}}, link: [id, author_id]}
        """)
    for part in ("people.columns.born.datatype: 'dat'", "'date'", "'peple'", "did you mean 'people'",
                 "books.columns.author_id.table: 'books' has no key", "books.link: it needs two columns",
                 "books.link: 'id' has no `table`"):  # fmt: skip
        assert part in str(fault.value)
    with pytest.raises(
        KgInputError, match="2 fault.*\n.*people.kye: there is no such key; did you mean 'key'.*\n.*file"
    ):
        mapped("tables: {people: {file: people.csv, kye: id}, books: {file: 3}}")
    with pytest.raises(KgInputError, match=r"columns.nme: people.csv has no column 'nme'; did you mean 'name'"):
        mapped("tables: {people: {file: people.csv, columns: {nme: {}}}}")


def test_a_mapping_of_files_that_are_not_there_is_refused(mapped):
    with pytest.raises(KgInputError, match=r"'boks.csv', which kg.files does not name.*did you mean 'books.csv'"):
        mapped("tables: {books: {file: boks.csv}}")


@pytest.mark.parametrize(
    ("text", "what"),
    [("tables: [", "not valid YAML"), ("a: &x [1]\ntables: *x", "aliases"), ("[" * 1500, "YAML"),
     ("tables: {}", "at least 1")],
)  # fmt: skip
def test_hostile_mappings_are_refused(mapped, text, what):
    with pytest.raises(KgInputError, match=what):
        mapped(text)


def test_a_row_too_wide_by_commas_before_spaces_is_read_as_it_was_meant(tmp_path, caplog):
    (tmp_path / "firms.csv").write_text("id,name,city\n1,Pavlova, Ltd.,Oslo\n2,Acme,Rome\n3,Bolt,Ulm,x\n")
    (tmp_path / "boats.csv").write_text("id,name,length\n1,Maja,7\n2,Tor,9\n")
    counts, _ = built(tmp_path / "g", [tmp_path / "firms.csv", tmp_path / "boats.csv"])
    assert ("Pavlova, Ltd.", "city", "Oslo") in triples(tmp_path / "g")
    assert counts["rejects"] == 1


def test_rows_that_share_a_key_are_said(mapped, caplog):
    caplog.set_level("INFO", "kgqa")
    books = "{file: books.csv, type: book, key: author_id, columns: {title: {}}}"
    mapped(f"tables: {{books: {books}, people: {{file: people.csv, key: id, columns: {{born: {{}}}}}}}}")
    assert "3 rows are 2 entities" in caplog.text


def test_tables_of_parquet_keep_their_datatypes(tmp_path):
    pl.DataFrame({"id": [1, 2], "name": ["Ada", "Bo"], "tall": [1.5, 1.75], "tags": [["a", "b"], ["a"]]}).write_parquet(
        tmp_path / "people.parquet"
    )
    pl.DataFrame({"id": [1, 2], "title": ["Notes", "Sea"], "person_id": [2, 1]}).write_parquet(
        tmp_path / "books.parquet"
    )
    counts, content = built(tmp_path / "g", [tmp_path / "people.parquet", tmp_path / "books.parquet"])
    assert {("Ada", "tall", "1.5"), ("Ada", "tags", "b"), ("Notes", "person", "Bo")} <= triples(tmp_path / "g")


def read(folder: Path, name: str, text: str, **options: Any) -> set[tuple[str, ...]]:
    """The triples of one file that is read as it is."""
    (folder / name).write_text(text)
    built(folder / "g", [folder / name], **options)
    return triples(folder / "g")


def test_one_table_alone_is_read_by_a_guess_that_one_line_says(tmp_path, caplog):
    caplog.set_level("INFO", "kgqa")
    text = "Employee;Department;Salary;Start date\nAna Novak;Sales;52,5;2019-03-01\nBo Lee;Sales;48;2020-07-15\n"
    assert read(tmp_path, "data.csv", text) == {
        ("Ana Novak", "department", "Sales"), ("Bo Lee", "department", "Sales"), ("Ana Novak", "salary", "52.5"),
        ("Bo Lee", "salary", "48"), ("Ana Novak", "start date", "2019-03-01"), ("Bo Lee", "start date", "2020-07-15"),
    }  # fmt: skip
    with KgStore.open(tmp_path / "g") as store:
        (note,) = store.meta["tables"]["notes"]
        assert store.entity_keys(store.resolve(["Ana Novak"])["Ana Novak"]) and store.meta["counts"]["types"] == 1
    assert note == (
        "data.csv is read as a table, a row as one employee: key and name in the column Employee, relations to things "
        "Department, values Salary (decimal), Start date (date); to change it: `kgqa kg map data.csv > map.yaml`, edit "
        "that, add `--map map.yaml`"
    )


@pytest.mark.parametrize(
    "text",
    ["id,name,reports_to\n1,Ana,3\n2,Bo,1\n3,Cy,\n", "name,boss,team\nAna,Cy,Red\nBo,Ana,Red\n",
     "Name\tReports to\nAna\tCy\nBo\tAna\n", "Employee,Vorgesetzt,Office\nAna,Cy,Ulm\nBo,Ana,Ulm\nDi,Bo,Bonn\n"],
)  # fmt: skip
def test_a_column_of_names_or_keys_of_the_table_leads_to_its_rows(tmp_path, text):
    found = read(tmp_path, "people.csv", text)
    assert {(head, tail) for head, _, tail in found} >= {("Ana", "Cy"), ("Bo", "Ana")}


def test_a_table_whose_cells_have_semicolons_is_no_file_of_triples(tmp_path):
    places = ("Swamp", "Forest")
    rows = [f"Beast{n},{places[n % 2]},{n}0,Howl; Web; Dash" for n in range(12)]
    found = read(tmp_path, "beasts.csv", "\n".join(["Name,Habitat,Level,Abilities", *rows]) + "\n")
    assert {("Beast3", "habitat", "Forest"), ("Beast11", "level", "110")} <= found


@pytest.mark.parametrize(
    ("text", "triple"),
    [
        ("drug,effect,disease\nAspirin,treats,Fever\nIbuprofen,treats,Pain\nGin,causes,Pain\nRum,causes,Pain\n",
         ("Aspirin", "treats", "Fever")),
        ("Ana,works for,Acme\nBo,works for,Acme\nCy,lives in,Rome\n", ("Ana", "works for", "Acme")),
        ("country,capital,size\nFrance,Paris,68\nSpain,Madrid,47\nItaly,Rome,59\n", ("Spain", "capital", "Madrid")),
        ("Employee,Unit,Boss\nAna,Sales,Di Fox\nBo,Sales,Di Fox\nCy,IT,Ed Lim\nEd,IT,Ed Lim\n", ("Cy", "unit", "IT")),
        ("Paris\tcapital of\tFrance\nRome\tcapital of\tItaly\n", ("Paris", "capital of", "France")),
        ("Ann\tage\t30\nBo\theight\t180\nCy\tage\t40\n", ("Ann", "age", "30")),
    ],
)  # fmt: skip
def test_three_columns_are_triples_or_a_table(tmp_path, text, triple):
    found = read(tmp_path, "g.csv" if "," in text else "g.tsv", text)
    assert triple in found and not any("effect" in each or "country" in each[1:] for each in found)


def test_the_other_reading_of_three_columns_is_had_by_the_settings_that_are_said(tmp_path, caplog):
    caplog.set_level("INFO", "kgqa")
    text = "name,boss,team\nAna,Cy,Red\nBo,Ana,Red\n"
    assert ("Ana", "boss", "Cy") in read(tmp_path, "people.csv", text)
    assert "`--set kg.format=delimited --set kg.delimiter=','`" in caplog.text
    assert ("Ana", "Cy", "Red") in read(tmp_path, "people.csv", text, format="delimited", delimiter=",")


def test_rows_are_what_files_of_triples_beside_their_table_are_about(tmp_path):
    (tmp_path / "nodes.csv").write_text(
        "id;name;labels;height\nh1;South;Hut;2104,5\nh2;North;Hut;1890,0\nl1;Green;Lake;9,5\n"
    )
    (tmp_path / "edges.csv").write_text("source;relation;target\nh1;lies on;l1\nh2;lies on;l1\n")
    built(tmp_path / "g", [tmp_path])
    assert {("South", "lies on", "Green"), ("South", "height", "2104.5")} <= triples(tmp_path / "g")
    with KgStore.open(tmp_path / "g") as store:
        kinds = store.connection.execute("SELECT type, count(*) FROM types GROUP BY type ORDER BY 2").fetchall()
        assert [(store.names([kind])[kind], n) for kind, n in kinds] == [("Lake", 1), ("Hut", 2)]


def test_the_folder_of_a_graph_is_none_of_tables_though_there_is_one_in_it(tmp_path):
    (tmp_path / "a.csv").write_text("id,name,size\n1,Ana,3\n")
    assert tables_in(tmp_path) == [tmp_path / "a.csv"]
    built(tmp_path / "g", [tmp_path])
    (tmp_path / "g" / "entities.parquet").touch()
    assert tables_in(tmp_path / "g") == []


@pytest.mark.parametrize(
    ("name", "text"),
    [("g.csv", "Ana,Bonn,Acme,Nurse\nBo,Ulm,Bolt,Cook\nCy,Kiel,Cog,Judge\n"),
     ("labels.tsv", "P1\tlies in\nP2\tbuilt\n"),
     ("g.csv", "Paris,France,Seine\nRome,Italy,Tiber\n"), ("g.csv", "id,name,size\n")],
)  # fmt: skip
def test_lines_without_a_header_and_headers_alone_are_no_table(tmp_path, name, text):
    with pytest.raises(KgInputError):
        read(tmp_path, name, text)


def test_names_beside_a_graph_are_no_table(tmp_path):
    (tmp_path / "labels.tsv").write_text("id\tname\nq1\tAna\nq2\tBo\n")
    (tmp_path / "g.tsv").write_text("q1\tknows\tq2\nq2\tknows\tq1\n")
    built(tmp_path / "g", [tmp_path / "g.tsv", tmp_path / "labels.tsv"])
    assert triples(tmp_path / "g") == {("Ana", "knows", "Bo"), ("Bo", "knows", "Ana")}


def test_files_of_triples_are_no_tables(tmp_path):
    texts = {"a.tsv": "Ada\tknows\tBo\n", "b.tsv": "Bo\tknows\tCy\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text * 3)
    built(tmp_path / "g", [tmp_path / name for name in texts])
    assert triples(tmp_path / "g") == {("Ada", "knows", "Bo"), ("Bo", "knows", "Cy")}


def test_a_mapping_in_the_folder_that_would_be_replaced_is_protected(tmp_path: Path) -> None:
    out = tmp_path / "kg"
    out.mkdir()
    (tmp_path / "books.csv").write_text("id,title\n1,Dune\n", encoding="utf-8")
    own = out / "map.yaml"
    own.write_text("tables: {}\n", encoding="utf-8")
    with pytest.raises(OutputError, match="map.yaml"):
        build_folder([str(tmp_path / "books.csv")], out, {"map": str(own)}, force=True)
    assert own.read_text(encoding="utf-8") == "tables: {}\n"


def test_an_update_reads_tables_by_the_mapping_that_the_graph_was_built_by(files, tmp_path):
    mapping = tmp_path / "map.yaml"
    mapping.write_text(
        "tables:\n  books:\n    file: books.csv\n    type: tome\n    key: [id]\n    name: [title]\n"
        "    columns:\n      author_id: {relation: written by}\n"
    )
    build_folder([str(files[1])], tmp_path / "kg", {"map": str(mapping)})
    mapping.unlink()
    files[1].write_text(BOOKS.replace("Sky", "Air"))
    update_folder(tmp_path / "kg", tmp_path / "kg", files=[str(files[1])])
    assert triples(tmp_path / "kg") == {
        ("Notes", "written by", "1"),
        ("Sea", "written by", "2"),
        ("Air", "written by", "2"),
    }
