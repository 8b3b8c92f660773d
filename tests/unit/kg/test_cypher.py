"""Cypher scripts: what makes data of literals is read, all else is a reject with its line, nothing is executed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats import cypher
from tests.support.property_graph import LABEL, TYPE, Read, read


def script(folder: Path, text: str) -> Read:
    path = folder / "town.cypher"
    path.write_text(text, encoding="utf-8")
    return read(path)


TOWN = """// a town
CREATE CONSTRAINT IF NOT EXISTS FOR (p:Person) REQUIRE (p.name) IS UNIQUE;
CREATE (Mia:Person {name:'Mia O\\'Dea', born:1980})
CREATE (Cafe:Place {name:"Café; Zwölf // no comment"}), /* one
comment */ (Mia)-[:OWNS {since:2011}]->(Cafe)
MATCH (a:Person {name:'Mia O\\'Dea'}) MERGE (b:Person {name:'Tom'}) MERGE (a)<-[:`MARRIED TO`]-(b);
"""


def test_nodes_and_relationships_of_variables_and_of_matches_are_read(tmp_path):
    graph = script(tmp_path, TOWN)
    assert graph.statements == sorted([
        ("town/1", TYPE, "Person"), ("town/1", LABEL, "Mia O'Dea"), ("town/1", "born", "1980"),
        ("town/2", TYPE, "Place"), ("town/2", LABEL, "Café; Zwölf // no comment"), ("town/1", "OWNS", "town/2"),
        ("town/3", TYPE, "Person"), ("town/3", LABEL, "Tom"), ("town/3", "MARRIED TO", "town/1"),
    ])  # fmt: skip
    assert graph.qualifiers == [("since", "2011")] and graph.ignored == 1 and not graph.rejects


def test_the_script_that_apoc_exports_is_read_with_its_ids(tmp_path):
    graph = script(
        tmp_path,
        """:begin
CREATE CONSTRAINT FOR (node:`UNIQUE IMPORT LABEL`) REQUIRE (node.`UNIQUE IMPORT ID`) IS UNIQUE;
:commit
CALL db.awaitIndexes(300);
:begin
UNWIND [{_id:7, properties:{name:"A\\u00e9", born:date('1964-09-02'), tags:["a","b"]}},
 {_id:8, properties:{h:-1.5e3, ok:true, no:null, at:point({x:1, y:2})}}] AS row
CREATE (n:`UNIQUE IMPORT LABEL`{`UNIQUE IMPORT ID`: row._id}) SET n += row.properties SET n:Person;
UNWIND [{start: {_id:7}, end: {_id:8}, properties:{since:2011}}] AS row
MATCH (start:`UNIQUE IMPORT LABEL`{`UNIQUE IMPORT ID`: row.start._id})
MATCH (end:`UNIQUE IMPORT LABEL`{`UNIQUE IMPORT ID`: row.end._id})
CREATE (start)-[r:KNOWS]->(end) SET r += row.properties;
:commit
MATCH (n:`UNIQUE IMPORT LABEL`) WITH n LIMIT 20000 REMOVE n:`UNIQUE IMPORT LABEL` REMOVE n.`UNIQUE IMPORT ID`;
DROP CONSTRAINT UNIQUE_IMPORT_NAME;
""",
    )
    assert graph.statements == sorted([
        ("7", TYPE, "Person"), ("7", LABEL, "Aé"), ("7", "born", "1964-09-02"), ("7", "tags", "a"), ("7", "tags", "b"),
        ("8", TYPE, "Person"), ("8", "h", "-1500.0"), ("8", "ok", "true"), ("8", "at", '{"x": 1, "y": 2}'),
        ("7", "KNOWS", "8"),
    ])  # fmt: skip
    assert graph.qualifiers == [("since", "2011")] and not graph.rejects


@pytest.mark.parametrize(
    ("clause", "reason"),
    [
        ("CREATE (x:P {name: toUpper('a')});", "function toupper"),
        ("CREATE (x:P {name: 'a' + 'b'});", "makes an expression"),
        ("CREATE (x:P {name: $name});", "where a literal is expected"),
        ("CREATE (x:P {name: row.name});", "'row' where a literal"),
        ("CALL apoc.create.node(['X'], {a: 1}) YIELD node RETURN node;", "CALL is not read"),
        ("LOAD CSV FROM 'file:///etc/passwd' AS row CREATE (:P {name: row[0]});", "LOAD is not read"),
        ("FOREACH (i IN [1, 2] | CREATE (:P {n: i}));", "FOREACH is not read"),
        ("MATCH (a:P {name: 'q'}) SET a.x = 1;", "no node before it in this script"),
        ("MATCH (a:P {name: 'x'})-[:R]->(b) SET b.x = 1;", "MATCH of relationships"),
        ("MATCH (a) SET a.x = 1;", "a node without properties"),
        ("MATCH (a:P {name: 'x'}) DETACH DELETE a;", "DETACH is not read"),
        ("CREATE (x:P {a: 1)-[:R]->(y);", "where ',' is expected"),
        ("CREATE (x:P)-->(y:P);", "where '\\['"),
        ("CREATE (x:P {a: " + "[" * 100_000 + "]" * 100_000 + "});", "more than 20 levels"),
        ("CREATE (x:P {a: '\\ud800'});", "no Unicode"),
        ("CREATE (x:P {a: " + "9" * 5000 + "e5e});", "expected|no number"),
        ("rm -rf;", "RM is not read"),
    ],
)
def test_what_is_no_data_of_literals_is_a_reject_with_its_line_and_is_not_executed(tmp_path, clause, reason):
    graph = script(tmp_path, f"CREATE (a:P {{name: 'x'}});\n{clause}\n")
    assert graph.statements == [("town/1", TYPE, "P"), ("town/1", LABEL, "x")] or "DELETE" in clause
    (line, text), *_ = graph.rejects
    assert line == 2 and re.search(reason, text)


def test_a_variable_whose_node_was_rejected_makes_no_empty_node(tmp_path):
    graph = script(
        tmp_path, "CREATE (a:P {name: f()})\nCREATE (b:P {name: 'b'})\nCREATE (a)-[:R]->(b)\nCREATE (:P {k: 1})"
    )
    assert [line for line, _ in graph.rejects] == [1, 3]
    assert {row[0] for row in graph.statements} == {"town/1", "town/2"}


def test_a_variable_used_again_is_another_node(tmp_path):
    graph = script(
        tmp_path, "CREATE (n:P {name: 'a'})\nCREATE (n:P {name: 'b'})\nMATCH (n:P {name: 'a'}) SET n.x = 1, n:Q"
    )
    assert ("town/1", "x", "1") in graph.statements and ("town/1", TYPE, "Q") in graph.statements
    assert ("town/2", LABEL, "b") in graph.statements


def test_merge_makes_a_node_once_and_sets_as_it_says(tmp_path):
    graph = script(tmp_path, "MERGE (a:P {id: 1}) ON CREATE SET a.new = true ON MATCH SET a.seen = true;\n" * 2)
    assert graph.statements == sorted(
        [("town/1", TYPE, "P"), ("town/1", "id", "1"), ("town/1", "new", "true"), ("town/1", "seen", "true")]
    )


def test_nothing_depends_on_a_clause_that_was_not_read(tmp_path):
    nodes = "CREATE (:P {id: 1});\nCREATE (:P {id: 1});\n"
    graph = script(tmp_path, nodes + "MATCH (a:P {id: 1}) CREATE (b:Q {id: 2}) SET b.x = 1;\n")
    assert [reason.split(" ")[0] for _, reason in graph.rejects] == ["it", "more"]
    assert {row[0] for row in graph.statements} == {"town/1", "town/2"}


def test_the_dump_of_memgraph_is_read(tmp_path):
    graph = script(
        tmp_path,
        """CREATE INDEX ON :`__mg_vertex__`(`__mg_id__`);
CREATE (:`__mg_vertex__`:`Person` {`__mg_id__`: 0, `name`: "Ann", `born`: DATE("1980-01-02")});
CREATE (:`__mg_vertex__`:`Person` {`__mg_id__`: 1, `name`: "Bo"});
MATCH (u:`__mg_vertex__`), (v:`__mg_vertex__`) WHERE u.`__mg_id__` = 0 AND v.`__mg_id__` = 1 \
CREATE (u)-[:`KNOWS`]->(v);
DROP INDEX ON :`__mg_vertex__`(`__mg_id__`);
MATCH (u) REMOVE u:`__mg_vertex__`, u.`__mg_id__`;
""".replace("\\\n", ""),
    )
    assert ("0", "KNOWS", "1") in graph.statements and ("0", "born", "1980-01-02") in graph.statements
    assert ("0", TYPE, "Person") in graph.statements and not graph.rejects and graph.ignored == 3


def test_a_script_that_is_cut_off_or_too_large_is_refused(tmp_path, monkeypatch):
    with pytest.raises(KgInputError, match="has ' in line 2 and no end of it"):
        script(tmp_path, "CREATE (:P {id: 1});\nCREATE (:P {id: 'never closed});\nCREATE (:P {id: 2});")
    monkeypatch.setattr(cypher, "MAX_ELEMENTS", 10)
    with pytest.raises(KgInputError, match="more than 10 nodes and relationships; export the graph as JSON lines"):
        script(tmp_path, "".join(f"CREATE (:P {{id: {n}}});\n" for n in range(20)))


@pytest.mark.parametrize("text", ["x" * 1_000_000, "\\'" * 500_000])
def test_a_long_string_is_read(tmp_path, text):
    graph = script(tmp_path, f"CREATE (:P {{text: '{text}'}});")
    assert len(max(row[2] for row in graph.statements if row[1] == "text")) >= 500_000


def test_sql_is_no_cypher():
    assert cypher.Cypher().sniff(["CREATE TABLE x (a int);", "INSERT INTO x VALUES (1);"], None) == 0
