"""Facts as text, and what `kg show` says."""

from __future__ import annotations

import doctest
from pathlib import Path

import duckdb
import polars as pl
import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import ArtifactError, GraphMismatch, InputError
from kgqa_core.kg import names, verbalise
from kgqa_core.kg.build import build
from kgqa_core.kg.look.show import describe
from kgqa_core.kg.names import NAME_SQL, key_name
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import (
    cvt_names,
    find_nameless,
    is_cvt,
    is_nameless,
    oriented,
    triple_form,
    triple_text,
    write_knowledge,
)
from kgqa_core.workspace import Workspace
from tests.support import staged


def test_text_is_the_papers():
    assert triple_text(*oriented("France", "capital-of", "Paris", -1)) == "(Paris, <inv>-capital-of, France)"
    assert triple_text(*oriented("France", "capital-of", "Paris", 1)) == "(France, capital-of, Paris)"
    assert triple_form([]) == ""
    for module in (names, verbalise):
        assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    "key",
    ["http://x.org/id/person/42#this", "http://x/resource/AC/DC_Museum", "http://x/75/27", "http://x/PlatformTeam",
     "http://x/isPartOfPhase", "http://x/WorldWarII", "http://x/McDonald", "http://x/iPhone", "http://x/PhDStudent",
     "http://x/Tier1", "http://x/o/550e8400-e29b-41d4-a716-446655440000", "urn:x:person:42", "urn:x:a:Bc", "New%20York",
     "AC/DC_Museum", "75/27", "50%", "m.0_k2", "my_file.txt", "checkout_api", "PaymentsTeam", "Q42", "http://x/_a_",
     "http://x/a_b", "http://x/a/", "http://x#", "http://x/%C3%89", "http://x/%FF_a", "http://x/a%20b", "a_b/c", "_:b0",
     "urn:x:y", "http://x/a#b_c", "http://x/100%", "http://é/ü", "HTTP://X/Y", "://", "http://x/a+b", "http://", "a://#"],
)  # fmt: skip
def test_name_of_a_key_is_the_same_in_sql(key):
    sql = "SELECT " + NAME_SQL.format(key="key") + " FROM (SELECT $1 AS key)"
    with duckdb.connect() as connection:
        assert connection.execute(sql, [key]).fetchone() == (key_name(key),)


def test_entities_without_label_are_found_by_their_words_and_by_their_keys_ends(make):
    text = "<http://x/id/LiWei> <http://x/v#memberOf> <http://x/id/PlatformTeam> .\n"
    text += "<http://x/id/LiWei> <http://x/v#uses> <http://x/id/MySQL> .\n"
    store, _ = make(text, "g.nt")
    found = store.resolve(["Platform Team", "PlatformTeam", "MySQL"])
    assert found["Platform Team"] == found["PlatformTeam"] and len(found["MySQL"]) == 1
    assert set(store.names(range(3)).values()) == {"Li Wei", "Platform Team", "MySQL"}
    assert store.relation_names() == ["member of", "uses"]


@pytest.fixture
def graph(make):
    store, _ = make(
        "a\tr\tb\nb\ts\tc\nc\tr\ta\na\tlabel\tAnna\nr\tlabel\tlikes\n", "g.tsv", label_predicates=("label",)
    )
    return store


def _inputs(tmp_path, facts, questions=("q1", "q2", "q3")):
    for name in ("facts", "questions", "out"):
        (tmp_path / name).mkdir(exist_ok=True)
    schema = {"question": pl.String, "retriever": pl.String, "rank": pl.Int32, "score": pl.Float64, "path": pl.Int32,
              "hop": pl.Int32, "triple": pl.Int64, "direction": pl.Int8}  # fmt: skip
    pl.DataFrame(facts, schema=schema, orient="row").write_parquet(tmp_path / "facts" / "facts.parquet")
    pl.DataFrame({"id": questions, "text": questions}).write_parquet(tmp_path / "questions" / "questions.parquet")
    return {"facts": tmp_path / "facts", "questions": tmp_path / "questions"}


def test_knowledge_has_every_question_in_rank_order_without_repetition(graph, tmp_path):
    facts = [
        ("q2", "rigel", 1, 0.5, -1, 2, 1, 1),
        ("q2", "rigel", 0, 0.9, -1, 1, 0, -1),
        ("q2", "rigel", 2, 0.1, -1, 2, 0, 1),
        ("q3", "rigel", 0, 0.9, -1, 1, 2, 1),
    ]
    inputs = _inputs(tmp_path, facts)
    counts = write_knowledge(Workspace(tmp_path / "out"), kg=graph.path, **inputs)
    assert counts == {"questions": 3, "with_facts": 2, "facts": 3}
    assert pl.read_parquet(tmp_path / "out" / "knowledge.parquet").rows() == [
        ("q1", "rigel", "triples", "", []),
        ("q2", "rigel", "triples", "(b, <inv>-likes, Anna), (b, s, c)", [0, 1]),
        ("q3", "rigel", "triples", "(c, likes, Anna)", [2]),
    ]


def test_triple_of_several_reasoning_paths_is_told_once_where_it_first_stands(graph, tmp_path):
    facts = [
        ("q1", "hop_path", 0, 0.9, 0, 1, 0, 1),
        ("q1", "hop_path", 1, 0.9, 0, 2, 1, 1),
        ("q1", "hop_path", 2, 0.5, 1, 1, 0, 1),
        ("q1", "hop_path", 3, 0.5, 1, 2, 2, -1),
        ("q1", "hop_path", 4, 0.1, 2, 1, 1, -1),
    ]
    counts = write_knowledge(Workspace(tmp_path / "out"), kg=graph.path, **_inputs(tmp_path, facts, ("q1",)))
    assert counts == {"questions": 1, "with_facts": 1, "facts": 3}
    [row] = pl.read_parquet(tmp_path / "out" / "knowledge.parquet").rows()
    assert row == ("q1", "hop_path", "triples", "(Anna, likes, b), (b, s, c), (Anna, <inv>-likes, c)", [0, 1, 2])


def test_nodes_without_name_are_numbered_as_each_question_meets_them(make, tmp_path):
    lines = ("Anna\tmarriage\tm.0bbb", "m.0aaa\tspouse\tCarl", "m.0bbb\tspouse\tBert", "m.0bbb\tin\tQ42",
             "m.0ccc\tin\tQ42", "m.0ccc\tlabel\tThe Day")  # fmt: skip
    store, _ = make("\n".join(lines) + "\n", "g.tsv", label_predicates=("label",))
    triples = {f"{store.names([h])[h]} {store.names([t])[t]}": i for i, (h, _, t) in store.triples(range(5)).items()}
    first, second = triples["Anna m.0bbb"], triples["m.0bbb Bert"]
    other, place, day = triples["m.0aaa Carl"], triples["m.0bbb Q42"], triples["The Day Q42"]
    facts = [
        ("q1", "hop_path", 0, 0.9, 0, 1, other, -1),
        ("q1", "hop_path", 1, 0.9, 0, 2, second, 1),
        ("q1", "hop_path", 2, 0.5, 1, 1, first, 1),
        ("q1", "hop_path", 3, 0.5, 1, 2, place, 1),
        ("q2", "hop_path", 0, 0.9, 0, 1, first, 1),
        ("q2", "hop_path", 1, 0.9, 0, 2, other, 1),
        ("q2", "hop_path", 2, 0.9, 0, 2, day, 1),
    ]
    write_knowledge(Workspace(tmp_path / "out"), kg=store.path, **_inputs(tmp_path, facts))
    assert pl.read_parquet(tmp_path / "out" / "knowledge.parquet")["text"].to_list() == [
        "(Carl, <inv>-spouse, CVT1), (CVT2, spouse, Bert), (Anna, marriage, CVT2), (CVT2, in, Q42)",
        "(Anna, marriage, CVT1), (CVT2, spouse, Carl), (The Day, in, Q42)",
        "",
    ]


def test_knowledge_without_any_fact_and_of_another_graph(graph, tmp_path):
    inputs = _inputs(tmp_path, [])
    write_knowledge(Workspace(tmp_path / "out"), kg=graph.path, retriever="random", **inputs)
    assert pl.read_parquet(tmp_path / "out" / "knowledge.parquet")["retriever"].to_list() == ["random"] * 3
    inputs = _inputs(tmp_path, [("q1", "rigel", 0, 1.0, -1, 1, 77, 1)])
    with pytest.raises(GraphMismatch, match="triple 77"):
        write_knowledge(Workspace(tmp_path / "out"), kg=graph.path, **inputs)
    inputs = _inputs(tmp_path, [("qq", "rigel", 0, 1.0, -1, 1, 0, 1)])
    with pytest.raises(ArtifactError, match="'qq'"):
        write_knowledge(Workspace(tmp_path / "out"), kg=graph.path, **inputs)
    with pytest.raises(InputError, match="did you mean 'triples'"):
        write_knowledge(Workspace(tmp_path / "out"), kg=graph.path, format="triple", **inputs)
    with pytest.raises(ArtifactError, match="missing"):
        write_knowledge(Workspace(tmp_path / "out"), kg=graph.path, facts=tmp_path, questions=inputs["questions"])


def test_show_tells_names_types_and_facts_both_ways(make):
    from tests.unit.kg.conftest import GRAPH

    store, _ = make(GRAPH)
    [paris] = describe(store, "Paris")["matches"]
    assert paris["name"] == "Paris" and paris["names"] == ["Paris", "Paname", "City of Light"]
    assert paris["types"] == ["City"] and paris["descriptions"] == {"en": "capital of France"}
    assert [(f["relation"], f["entity"]) for f in paris["facts"]] == [
        ("type", "City"), ("founded", "-0250"), ("population", "2102650"),
    ]  # fmt: skip
    assert [(f["relation"], f["entity"]) for f in paris["incoming"]] == [("capital", "France")]
    assert (paris["n_facts"], paris["n_incoming"]) == (3, 1)
    assert describe(store, "-0250")["matches"][0]["time"] == "0251-01-01 (BC) 00:00:00"
    assert len(describe(store, "France", limit=1)["matches"][0]["facts"]) == 1
    with pytest.raises(InputError, match="did you mean 'Paris'"):
        describe(store, "Pariss")


def test_knowledge_carries_qualifiers_only_when_asked(tmp_path):
    statements = [("Ada", "held", "mayor"), ("Ada", "held", "mayor"), ("Ada", "born", "Ulm")]
    qualifiers = [(0, "start", ("2003", "")), (0, "end", ("2008", "")), (1, "start", ("1999", ""))]
    statements.append(("start", staged.LABEL, ("since", "@en")))
    staged.graph(tmp_path / "kg.duckdb", KgOptions(), statements, qualifiers)
    inputs = _inputs(tmp_path, [("q1", "rigel", 0, 0.9, -1, 1, 1, -1), ("q1", "rigel", 1, 0.8, -1, 1, 0, 1)], ("q1",))
    texts = {}
    for asked in (False, True):
        counts = write_knowledge(Workspace(tmp_path / "out"), kg=tmp_path / "kg.duckdb", qualifiers=asked, **inputs)
        texts[asked] = pl.read_parquet(tmp_path / "out" / "knowledge.parquet")["text"].item()
        assert counts["facts"] == 2
    assert texts[False] == "(mayor, <inv>-held, Ada), (Ada, born, Ulm)"
    assert texts[True] == (
        "(mayor, <inv>-held, Ada; end: 2008; since: 2003), (mayor, <inv>-held, Ada; since: 1999), (Ada, born, Ulm)"
    )


@pytest.mark.parametrize(
    "key",
    [
        "m.0abc12", "/m/0abc12", "g.11b7xyz", "http://rdf.freebase.com/ns/m.0k3_x", "_:b0",
        "http://example.org/.well-known/genid/77", "http://www.wikidata.org/entity/statement/Q42-F078E5B3-F9A8-480E-B7AC-D97778CBBEF9",
        "f078e5b3-f9a8-480e-b7ac-d97778cbbef9",
    ],
)  # fmt: skip
def test_ids_made_for_nodes_without_name_are_nameless_unless_there_is_a_label(key: str) -> None:
    assert is_nameless(key)


@pytest.mark.parametrize(
    "key", ["Q42", "Paris", "http://example.org/Paris", "m. Night", "urn:atlas:country:FR", "g", "m.Night Shyamalan"]
)
def test_keys_that_tell_something_are_names(key: str) -> None:
    assert not is_nameless(key)


def test_nameless_nodes_are_numbered_in_the_order_in_which_a_path_meets_them() -> None:
    assert cvt_names([4, 9, 2, 7, 9, 4], {9, 7, 1}) == {9: "CVT1", 7: "CVT2"}
    assert cvt_names([4, 2], {9}) == {}


def test_only_numbered_names_are_those_of_nameless_nodes() -> None:
    assert is_cvt("CVT1") and is_cvt("CVT20")
    assert not any(map(is_cvt, ["CVT", "CVT0", "CVT1 Tower", "a CVT1", "cvt1"]))


def test_nameless_nodes_of_a_graph_are_those_with_an_id_and_no_label(tmp_path: Path) -> None:
    source = tmp_path / "graph.nt"
    ns, label = "http://rdf.freebase.com/ns/", "<http://www.w3.org/2000/01/rdf-schema#label>"
    source.write_text(
        f'<{ns}m.0ada> {label} "Ada" .\n<{ns}m.0ada> <{ns}people.person.spouse> <{ns}m.0cvt1> .\n'
        f'<{ns}m.0cvt1> <{ns}spouse> <{ns}m.0bob> .\n<{ns}m.0bob> {label} "Bob" .\n'
        f'<{ns}m.0cvt1> <{ns}from> "m.0notanode" .\n<{ns}m.0cvt1> <{ns}place> <http://example.org/Oslo> .\n',
        encoding="utf-8",
    )
    (tmp_path / "kg").mkdir()
    (tmp_path / "work").mkdir()
    build(Workspace(tmp_path / "kg", tmp_path / "work"), options=KgOptions(files=(str(source),)))
    with KgStore.open(tmp_path / "kg") as store:
        everything = [row[0] for row in store.connection.execute("SELECT id FROM entities").fetchall()]
        keys = store.entity_keys(everything)
        assert sorted(keys[i] for i in find_nameless(store, everything)) == ["m.0cvt1"]
        assert find_nameless(store, []) == frozenset()
