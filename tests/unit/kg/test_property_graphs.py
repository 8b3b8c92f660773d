"""Property graphs: every form of one graph ends in the graph of its triples; bad elements are rejects."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import networkx
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from kgqa_core.errors import KgInputError
from kgqa_core.kg.store import KgStore
from tests.support.property_graph import (
    COUNTED,
    FILMS,
    LABEL,
    TABLE,
    TYPE,
    as_apoc_json,
    as_csv,
    as_graphml,
    as_neo4j_csv,
    as_parquet,
    as_triples,
    built,
    read,
)

MAPPED: dict[str, Any] = {"table": TABLE, "property_graph": {"datatypes": FILMS.datatypes}}
FORMS: dict[str, tuple[Any, dict[str, Any], bool]] = {
    "neo4j-json": (as_apoc_json, {}, True),
    "neo4j-csv": (as_neo4j_csv, {}, True),
    "graphml": (as_graphml, {}, False),
    "csv": (as_csv, MAPPED, False),
    "tsv": (lambda folder: as_csv(folder, FILMS, "\t", "tsv"), MAPPED, False),
    "parquet": (as_parquet, {"table": TABLE}, True),
}
"""How the graph is written, with which options it is read, and whether lists can be written."""


def reference(folder: Path, lists: bool) -> tuple[dict[str, int], dict[str, list[Any]]]:
    """The graph of the triples; without the tags where a form has no lists."""
    path, qualifiers = as_triples(folder)
    if not lists:
        path.write_text("".join(line for line in path.read_text().splitlines(True) if "\ttags\t" not in line))
    return built(folder / "reference", [path, qualifiers])


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """`reference` with lists and without."""
    return {lists: reference(tmp_path_factory.mktemp("triples"), lists) for lists in (True, False)}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_property_graph_is_the_graph_of_its_triples(tmp_path, references, form):
    write, options, lists = FORMS[form]
    counts, content = built(tmp_path / form, write(tmp_path), **options)
    expected, same = references[lists]
    assert content == same
    assert {name: counts[name] for name in COUNTED} == {name: expected[name] for name in COUNTED}
    assert counts["rejects"] == counts["duplicates"] - expected["duplicates"] == 0
    assert (counts["labels"], counts["qualifiers"], counts["triples"]) == (5, 4, 4 + 5 + 6 + 2 * lists)


@pytest.mark.parametrize(
    ("form", "ending", "pack"),
    [
        ("neo4j-json", ".gz", gzip.compress),
        ("neo4j-csv", ".bz2", bz2.compress),
        pytest.param("graphml", ".zst", zstandard.compress, marks=pytest.mark.slow),
        pytest.param("csv", ".xz", lzma.compress, marks=pytest.mark.slow),
    ],
)
def test_packed_forms_are_read_too(tmp_path, form, ending, pack):
    write, options, _ = FORMS[form]
    files = write(tmp_path)
    packed = []
    for path in files:
        packed.append(path.with_name(path.name + ending))
        packed[-1].write_bytes(pack(path.read_bytes()))
    assert built(tmp_path / "packed", packed, **options)[1] == built(tmp_path / "plain", files, **options)[1]


def rejects(folder: Path) -> list[tuple[int, str]]:
    with KgStore.open(folder) as store:
        return store.connection.execute("SELECT line, reason FROM rejects ORDER BY ALL").fetchall()


def test_bad_lines_of_an_export_of_neo4j_are_rejects_with_a_reason(tmp_path):
    [path] = as_apoc_json(tmp_path)
    bad = [
        '{"type":"node","id":"x",',
        "[]",
        '{"type":"graph","id":"1"}',
        '{"type":"node","labels":["A"],"properties":{}}',
        '{"type":"relationship","id":"9","label":"R","start":{"id":"keanu"}}',
        '{"type":"relationship","id":"9","start":{"id":"keanu"},"end":{"id":"lana"}}',
        '{"type":"node","id":"y","labels":"A"}',
        '{"type":"node","id":"y","labels":["A",""],"properties":{"name":"kept by no half"}}',
    ]
    path.write_text(path.read_text() + "".join(line + "\n" for line in bad))
    counts, content = built(tmp_path / "out", [path], max_reject_share=0.9)
    assert content == reference(tmp_path, True)[1]
    reasons = [reason for _, reason in rejects(tmp_path / "out")]
    assert [line for line, _ in rejects(tmp_path / "out")] == list(range(11, 19)) and counts["rejects"] == 8
    assert reasons[0].startswith("no JSON: ") and reasons[1:] == [
        "no JSON object", "'type' is neither node nor relationship", "null is no key", "null is no key",
        "null is no key", "'labels' is no list", "an empty key",
    ]  # fmt: skip


def test_bad_rows_of_neo4j_csv_are_rejects_with_a_reason(tmp_path):
    nodes, edges = as_neo4j_csv(tmp_path)
    nodes.write_text(nodes.read_text() + ",No id,,,,,,\nx,Text,abc,,,,,\ny,Yes,,,maybe,,,\nz,too,few\n")
    edges.write_text(edges.read_text() + "keanu,,,,KNOWS\n,,,lana,KNOWS\nkeanu,,,lana,\nkeanu,Neo,soon,lana,KNOWS\n")
    _, content = built(tmp_path / "out", [nodes, edges], max_reject_share=0.9)
    assert content == reference(tmp_path, True)[1]
    assert rejects(tmp_path / "out") == [
        (7, "no id"), (7, "no target"), (8, "column 'born': 'abc' is no integer"), (8, "no source"),
        (9, "column 'alive': 'maybe' is no boolean"), (9, "no relation"), (10, "3 field(s) instead of 8"),
        (10, "column 'year': 'soon' is no integer"),
    ]  # fmt: skip


def test_a_header_of_neo4j_with_spaces_arrays_and_ignored_columns(tmp_path):
    (tmp_path / "n.csv").write_text(
        "personId:ID(Person){id-type:long};note:IGNORE;years:int[];place:point{crs:WGS-84};:LABEL\n"
        '1;secret;1999,2000;"{latitude: 1}";A\n'.replace("1999,2000", '"1999;2000"')
    )
    (tmp_path / "e.csv").write_text(":START_ID(Person)|:END_ID(Film)|:TYPE\n1|1|SAW\n")
    _, content = built(tmp_path / "out", [tmp_path / "n.csv", tmp_path / "e.csv"])
    keys = [(key, datatype and datatype.rpartition("#")[2]) for key, _, datatype, _ in content["entities"]]
    assert keys == [("1999", "integer"), ("2000", "integer"), ("A", None), ("Film/1", None), ("Person/1", None),
                    ("{latitude: 1}", "string")]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("id:ID,age:intt\nx,1\n", r"'intt' is no datatype, did you mean 'int'|'intt' is no datatype"),
        (":START_ID,:END_ID\na,b\n", "has no column :TYPE"),
    ],
)
def test_a_strange_header_of_neo4j_is_an_error(tmp_path, text, match):
    (tmp_path / "g.csv").write_text(text)
    with pytest.raises(KgInputError, match=match) as fault:
        built(tmp_path / "out", [tmp_path / "g.csv"])
    assert "\n" not in str(fault.value)


def test_rows_without_their_header_are_refused_with_the_way_out(tmp_path):
    (tmp_path / "g.csv").write_text("a,b,KNOWS\n")
    with pytest.raises(KgInputError, match=r"put the header before the rows"):
        built(tmp_path / "out", [tmp_path / "g.csv"], format="neo4j-csv")


def test_entities_of_xml_are_refused_before_they_are_expanded(tmp_path):
    lol = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "lol"}">' for n in range(10))
    (tmp_path / "g.graphml").write_text(f"<?xml version='1.0'?><!DOCTYPE graphml [{lol}]>\n<graphml>&l9;</graphml>")
    with pytest.raises(KgInputError, match="declares the entity 'l0', which GraphML does not need"):
        built(tmp_path / "out", [tmp_path / "g.graphml"])
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "x.graphml").write_text(
        f'<!DOCTYPE graphml [<!ENTITY x SYSTEM "file://{secret}">]><graphml><graph><node id="&x;"/></graph></graphml>'
    )
    with pytest.raises(KgInputError, match="declares the entity 'x'"):
        built(tmp_path / "out", [tmp_path / "x.graphml"])


def test_graphml_that_is_cut_off_is_an_error_with_its_line(tmp_path):
    [path] = as_graphml(tmp_path)
    path.write_text(path.read_text()[:-80])
    with pytest.raises(KgInputError, match=r"graph\.graphml is no well-formed XML .* at line \d+; it may be cut off"):
        built(tmp_path / "out", [path])
    (tmp_path / "other.xml").write_text("<?xml version='1.0'?>\n<gexf/>\n")
    with pytest.raises(KgInputError, match="is XML, but no GraphML: its element is 'gexf'"):
        built(tmp_path / "out", [tmp_path / "other.xml"], format="graphml")


def test_bad_elements_of_graphml_are_rejects_with_their_lines(tmp_path):
    [path] = as_graphml(tmp_path)
    text = path.read_text()
    path.write_text(
        text.replace(
            "</graph>",
            '<node/>\n<edge source="keanu"/>\n<node id="n"><data key="born">long ago</data></node>\n'
            '<node id="m"><data key="d9">1</data></node>\n<hyperedge><endpoint node="keanu"/></hyperedge>\n</graph>',
        )
    )
    _, content = built(tmp_path / "out", [path], max_reject_share=0.9)
    assert content == reference(tmp_path, False)[1]
    first = text.splitlines().index("</graph>") + 1
    assert rejects(tmp_path / "out") == [
        (first, "null is no key"), (first + 1, "null is no key"), (first + 2, "'long ago' is no integer"),
        (first + 3, "its data have the key 'd9', which is not declared"), (first + 4, "a hyperedge is no triple"),
    ]  # fmt: skip


def test_graphml_of_networkx_is_read_with_defaults_and_plain_edges(tmp_path):
    graph = networkx.DiGraph(name="g", node_default={}, edge_default={})
    graph.add_node("a", label="An a & <b>", weight=1.5)
    graph.add_edge("a", "b", type="likes", since=2001)
    graph.add_edge("b", "a")
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    _, content = built(tmp_path / "out", [tmp_path / "g.graphml"])
    assert content["labels"] == [("a", "", "An a & <b>")]
    assert {row[:3] for row in content["triples"]} == {("a", "weight", "1.5"), ("a", "likes", "b"), ("b", "edge", "a")}
    assert [row[3:5] for row in content["qualifiers"]] == [("since", "2001")]


def test_a_default_value_of_a_key_counts_for_nodes_without_it(tmp_path):
    (tmp_path / "g.graphml").write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n<key id="c" for="node" attr.name="colour">'
        "<default>yellow</default></key><graph>\n"
        '<node id="a"><data key="c">red</data></node><node id="b"/><edge source="a" target="b"/></graph></graphml>'
    )
    _, content = built(tmp_path / "out", [tmp_path / "g.graphml"])
    assert {row[:3] for row in content["triples"]} == {
        ("a", "colour", "red"), ("b", "colour", "yellow"), ("a", "edge", "b"),
    }  # fmt: skip


def test_a_property_can_be_the_key_of_nodes(tmp_path):
    [path] = as_apoc_json(tmp_path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        if row["type"] == "node":
            row["properties"]["uri"] = "http://x/" + row["id"]
    rows.append({"type": "relationship", "id": "7", "label": "R", "start": {"id": "keanu"}, "end": {"id": "who"}})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts, content = built(tmp_path / "out", [path], property_graph={"key": "uri"})
    assert ("http://x/lana", "KNOWS", "http://x/keanu", None) in content["triples"]
    assert rejects(tmp_path / "out") == [(11, "no node before it has the id 'who', or that node was rejected")]
    assert counts["qualifiers"] == 4


def test_columns_of_tables_can_be_keys_constants_and_dates(tmp_path):
    (tmp_path / "people.csv").write_text("id,name,employer,born\n1,Ada,acme,1815-12-10\n2,Bob,,\n")
    options = {"table": {"id": "id", "type": "=Person;Human"},
               "property_graph": {"datatypes": {"employer": "entity", "born": "date"}}}  # fmt: skip
    _, content = built(tmp_path / "out", [tmp_path / "people.csv"], **options)
    assert ("1", "employer", "acme", None) in content["triples"]
    assert content["types"] == [("1", "Human"), ("1", "Person"), ("2", "Human"), ("2", "Person")]
    assert ("1815-12-10", "literal", "http://www.w3.org/2001/XMLSchema#date") in {
        row[:3] for row in content["entities"]
    }


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_may_be_the_key_and_the_label_of_a_table(tmp_path, ending):
    frame = pl.DataFrame({"id": ["1", "2"], "name": ["Ada", "Bob"]})
    frame.write_csv(tmp_path / "g.csv")
    frame.write_parquet(tmp_path / "g.parquet")
    counts, content = built(tmp_path / "out", [tmp_path / f"g.{ending}"], table={"id": "name", "label": "name"})
    assert counts["labels"] == 2 and [row[:3] for row in content["triples"]] == [("Ada", "id", "1"), ("Bob", "id", "2")]
    counts, content = built(tmp_path / "type", [tmp_path / f"g.{ending}"], table={"id": "id", "type": "name"})
    assert content["types"] == [("1", "Ada"), ("2", "Bob")]
    with pytest.raises(KgInputError, match="'id', 'id', 'name' as source, target and relation"):
        built(tmp_path / "e", [tmp_path / f"g.{ending}"], table={"source": "id", "target": "id", "relation": "name"})


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_equal_and_nameless_columns_are_read_and_logged_and_never_a_role(tmp_path, ending, caplog):
    rows = [["id", "tag", "tag", ""], ["1", "x", "y", "z"]]
    (tmp_path / "g.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    pq.write_table(pa.table([[value] for value in rows[1]], names=rows[0]), tmp_path / "g.parquet")
    _, content = built(tmp_path / "out", [tmp_path / f"g.{ending}"], table={"id": "id"})
    assert {row[1:3] for row in content["triples"]} == {("tag", "x"), ("tag", "y"), ("column 4", "z")}
    assert "column 4 has no name" in caplog.text and "2 columns are called 'tag'" in caplog.text
    with pytest.raises(KgInputError, match="kg.table.label is 'tag', and 2 columns have that name"):
        built(tmp_path / "role", [tmp_path / f"g.{ending}"], table={"id": "id", "label": "tag"})


def test_a_delimiter_of_two_characters_is_refused_for_tables_and_taken_for_triples(tmp_path):
    (tmp_path / "g.csv").write_text("a::knows::b\n")
    counts, _ = built(tmp_path / "out", [tmp_path / "g.csv"], delimiter="::")
    assert counts["triples"] == 1
    with pytest.raises(KgInputError, match="lacks 'a'"):
        built(tmp_path / "t", [tmp_path / "g.csv"], delimiter="::", table={"id": "a"}, format="table")


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ({"id": "idd"}, r"it lacks 'idd'.*its columns are 'id', 'name'"),
        ({"id": "id", "label": "title"}, "it lacks 'title'"),
        ({"source": "id", "target": "name"}, "kg.table.relation is not set"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_without_the_columns_is_an_error_that_lists_its_own(tmp_path, table, match, ending):
    frame = pl.DataFrame({"id": ["1"], "name": ["x"], "more": ["y"], "most": ["z"]})
    frame.write_csv(tmp_path / "g.csv")
    frame.write_parquet(tmp_path / "g.parquet")
    with pytest.raises(KgInputError, match=match):
        built(tmp_path / "out", [tmp_path / f"g.{ending}"], table=table)


def test_a_parquet_file_that_is_cut_off_or_packed_is_an_error(tmp_path):
    nodes, _ = as_parquet(tmp_path)
    (tmp_path / "n.gz").write_bytes(gzip.compress(nodes.read_bytes()))
    with pytest.raises(KgInputError, match="is Parquet within another compression; unpack it"):
        built(tmp_path / "out", [tmp_path / "n.gz"], table=TABLE)
    nodes.write_bytes(nodes.read_bytes()[:-30])
    with pytest.raises(KgInputError, match="cannot be read as Parquet"):
        built(tmp_path / "out", [nodes], table=TABLE)


def test_rows_of_parquet_without_a_key_are_rejects(tmp_path):
    pl.DataFrame({"id": ["a", None, "c"], "name": ["A", "B", "C"], "n": [1, 2, 3]}).write_parquet(
        tmp_path / "n.parquet"
    )
    counts, _ = built(tmp_path / "out", [tmp_path / "n.parquet"], table={"id": "id"})
    assert (counts["rejects"], counts["labels"], counts["triples"]) == (1, 2, 2)
    assert rejects(tmp_path / "out") == [(2, "no id")]


def test_dates_of_graphml_which_has_no_name_for_them_are_dates(make):
    text = (
        '<graphml><key id="k" for="node" attr.name="launched" attr.type="string"/><graph edgedefault="directed">'
        '<node id="a"><data key="k">2019-03-12</data></node><node id="b"><data key="k">soon</data></node>'
        '<edge source="a" target="b"/></graph></graphml>'
    )
    store, _ = make(text, "g.graphml")
    rows = store.connection.execute("SELECT key, datatype FROM entities WHERE kind = 'literal' ORDER BY key").fetchall()
    assert [(key, datatype.split("#")[1]) for key, datatype in rows] == [("2019-03-12", "date"), ("soon", "string")]


YED = """<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
<key for="node" id="d6" yfiles.type="nodegraphics"/><key for="edge" id="d10" yfiles.type="edgegraphics"/>
<key attr.name="note" attr.type="string" for="node" id="d5"/>
<graph edgedefault="directed" id="G">
<node id="n0"><data key="d5">old</data><data key="d6"><y:ShapeNode><y:Geometry height="30.0"/>
<y:NodeLabel>Ruth
 Adler<y:LabelModel/></y:NodeLabel><y:NodeLabel>CEO</y:NodeLabel></y:ShapeNode></data></node>
<node id="n1" yfiles.foldertype="group"><data key="d6"><y:GroupNode><y:NodeLabel>Sales</y:NodeLabel></y:GroupNode>
<y:GroupNode><y:NodeLabel>Folder 1</y:NodeLabel></y:GroupNode></data></node>
<edge source="n0" target="n1"><data key="d10"><y:PolyLineEdge><y:EdgeLabel>works in</y:EdgeLabel></y:PolyLineEdge>
</data></edge></graph></graphml>
"""


def test_labels_that_are_drawn_in_yed_are_names_and_relations(tmp_path):
    path = tmp_path / "org.graphml"
    path.write_text(YED)
    content = read(path)
    assert content.statements == [
        ("n0", LABEL, "Ruth Adler"), ("n0", "note", "old"), ("n0", "text", "CEO"), ("n0", "works in", "n1"),
        ("n1", LABEL, "Sales"),
    ]  # fmt: skip
    assert not content.rejects


def test_undirected_graphml_and_the_interaction_of_cytoscape(tmp_path):
    path = tmp_path / "g.graphml"
    path.write_text(
        '<graphml><key id="i" for="edge" attr.name="interaction" attr.type="string"/><graph edgedefault="undirected">\n'
        '<node id="a"/><node id="b"/><edge source="a" target="b"><data key="i">binds</data></edge>\n'
        '<edge source="a" target="b" directed="true"/></graph></graphml>'
    )
    content = read(path)
    assert content.statements == [("a", "binds", "b"), ("a", "edge", "b"), ("b", "binds", "a")]
    assert content.found == {"undirected edges": "1, each of them a triple in either direction"}


def test_xgmml_of_cytoscape_is_read_with_its_attributes(tmp_path):
    path = tmp_path / "g.xgmml"
    path.write_text(
        '<?xml version="1.0"?>\n<graph directed="1" xmlns="http://www.cs.rpi.edu/XGMML" xmlns:cy="http://www.cytoscape.org">\n'
        '<att name="about"><x/></att><node id="1" label="RAD51"><att name="degree" value="3" type="integer"/>'
        '<att name="alias" type="list"><att value="R5" type="string"/><att value="R6" type="string"/></att></node>\n'
        '<node id="2" label="BRCA2"/><edge label="RAD51 (binds) BRCA2" source="1" target="2" cy:directed="1">'
        '<att name="interaction" value="binds" type="string"/></edge></graph>'
    )
    assert read(path).statements == sorted([
        ("1", "alias", "R5"), ("1", "alias", "R6"), ("1", "binds", "2"), ("1", "degree", "3"),
        ("1", LABEL, "RAD51"), ("2", LABEL, "BRCA2"),
    ])  # fmt: skip


def test_a_bomb_of_entities_in_xgmml_is_refused_before_it_is_expanded(tmp_path):
    path = tmp_path / "g.xgmml"
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "lol"}">' for n in range(10))
    path.write_text(f'<!DOCTYPE graph [{entities}]>\n<graph xmlns="http://www.cs.rpi.edu/XGMML" label="&l9;"></graph>')
    with pytest.raises(KgInputError, match="declares the entity 'l0'"):
        read(path)


def test_nodes_and_relationships_of_one_csv_of_apoc_are_read(tmp_path):
    path = tmp_path / "all.csv"
    path.write_text(
        '"_id","_labels","born:long","name","tags","_start","_end","_type","role"\n'
        '"1",":User:Admin","1964","Adam ""A""","[""a"",""b""]",,,,\n"2",":User","","Jim","",,,,\n'
        ',,,,,"1","2","KNOWS","[""x"",""y""]"\n,,,,,"1","","KNOWS",""\n"3",":User","soon","Al","",,,,\n'
    )
    content = read(path)
    types = [("1", TYPE, "Admin"), ("1", TYPE, "User"), ("2", TYPE, "User")]
    properties = [("1", LABEL, 'Adam "A"'), ("1", "born", "1964"), ("1", "tags", "a"), ("1", "tags", "b")]
    assert content.statements == sorted([*types, *properties, ("2", LABEL, "Jim"), ("1", "KNOWS", "2")])
    assert content.qualifiers == [("role", "x"), ("role", "y")]
    assert content.rejects == [(5, "no target"), (6, "column 'born': 'soon' is no integer")]


def test_a_direction_is_no_relation_of_an_edge(tmp_path):
    key = '<key id="t" for="edge" attr.name="type" attr.type="string"/>'
    edges = "".join(
        f'<edge source="a" target="{end}"><data key="t">{kind}</data></edge>'
        for end, kind in (("b", "Directed"), ("c", "Undirected"), ("d", "feeds"))
    )
    path = tmp_path / "g.graphml"
    path.write_text(f'<graphml>{key}<graph edgedefault="directed">{edges}</graph></graphml>')
    wanted = [("a", "edge", "b"), ("a", "edge", "c"), ("a", "feeds", "d"), ("c", "edge", "a")]
    assert read(path).statements == wanted
    links = [{"source": "a", "target": end, "type": kind} for end, kind in (("b", "Directed"), ("c", "Undirected"))]
    links += [{"source": "a", "target": "d", "type": "feeds"}]
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"links": links}))
    assert read(path).statements == wanted
