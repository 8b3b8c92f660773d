from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats import rdf_documents
from tests.support.reading import Read, read_text

HEAD = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://e/">'
BODY = '<rdf:Description rdf:about="http://e/a"><p>%s</p></rdf:Description></rdf:RDF>'
A = "http://e/a"


def rdf(tmp_path: Path, text: str, **options: object) -> Read:
    return read_text(tmp_path, text, "g.rdf", **options)


def jsonld(tmp_path: Path, document: object, **options: object) -> Read:
    return read_text(tmp_path, json.dumps(document), "g.json", **options)


def test_rdf_xml_is_read_with_its_languages_datatypes_and_relative_iris(tmp_path: Path) -> None:
    found = rdf(
        tmp_path,
        '<?xml version="1.0"?>\n' + HEAD + '<T rdf:about="#t" xml:lang="EN"><p>x</p><p rdf:datatype="http://e/d">1</p>'
        '<q rdf:parseType="Resource"><p>y</p></q></T></rdf:RDF>',
    )
    assert found.format == "rdf-xml"
    rows = found.rows("subject", "predicate", "object", "datatype")
    assert rows[1:3] == [
        ("file:///g.rdf#t", "http://e/p", "x", "@en"),
        ("file:///g.rdf#t", "http://e/p", "1", "http://e/d"),
    ]
    assert rows[3][2] == rows[4][0]
    assert rows[4][0].startswith("_:")


def test_a_bad_iri_of_rdf_xml_is_one_reject_with_the_line_that_was_reached(tmp_path: Path) -> None:
    found = rdf(tmp_path, HEAD + '\n<T rdf:about="http://e/t"><p rdf:resource="http://e/a b"/><q>x</q></T></rdf:RDF>')
    assert len(found.triples()) == 2
    assert [(line, reason) for line, reason, _ in found.rejects] == [(2, "' ' in the IRI of the object")]


def test_rdf_xml_that_is_at_fault_or_cut_off_stops_the_build(tmp_path: Path) -> None:
    with pytest.raises(KgInputError, match=r"is RDF/XML with a fault at or shortly before line 2: .*; mend it"):
        rdf(tmp_path, HEAD + '\n<T rdf:about="http://e/t"><p>x</q></T></rdf:RDF>')
    for end in ("<p>x", "<p>x</p", "<p>x</p>", '<p rdf:resource="http://e/"/>', "</T>"):
        with pytest.raises(KgInputError, match="cut off at line 2.*</rdf:RDF>, is not there"):
            rdf(tmp_path, HEAD + '\n<T rdf:about="http://e/t">' + end)
    assert rdf(tmp_path, HEAD[:-1] + "/>\n<!-- x --><?y?>\n").statements.height == 0


def test_entities_are_expanded_within_their_document(tmp_path: Path) -> None:
    doctype = "<!DOCTYPE rdf:RDF [<!ENTITY a 'http://e/x#'><!ENTITY b \"&a;y\">]>"
    found = rdf(tmp_path, doctype + HEAD + BODY % "&b; &lt;1")
    assert found.triples() == [(A, "http://e/p", "http://e/x#y <1")]


@pytest.mark.parametrize(
    ("entities", "text", "reason"),
    [
        (
            "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10 if i else "aaaaaaaaaa"}">' for i in range(10)),
            "&a9;",
            "for more than",
        ),
        ('<!ENTITY a "&a;&a;">', "&a;", "refers to 'a', not declared before it"),
        ('<!ENTITY a SYSTEM "file:///etc/passwd">', "&a;", "an entity of another file, which is never read"),
        ('<!ENTITY % a "x">', "x", "an entity of another file"),
        ('<!ENTITY a "x">', "&a;" * 20_000, "10,000 entities in one text"),
    ],
)
def test_hostile_entities_are_refused(tmp_path: Path, entities: str, text: str, reason: str) -> None:
    with pytest.raises(KgInputError, match=reason + ".*; write its entities out"):
        rdf(tmp_path, f"<!DOCTYPE rdf:RDF [{entities}]>" + HEAD + BODY % text)


def test_a_text_of_xml_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdf_documents, "MAX_TOKEN", 1_000)
    monkeypatch.setattr(rdf_documents, "PIECE", 500)
    with pytest.raises(KgInputError, match="has 1,000 bytes"):
        rdf(tmp_path, HEAD + BODY % ("x" * 2_000))


def test_numbers_of_json_ld_are_as_json_has_them(tmp_path: Path) -> None:
    text = '"1.5E0"^^<http://www.w3.org/2001/XMLSchema#double>'
    found = jsonld(tmp_path, {"@id": A, "http://e/p": [128.49, 2.5e-7, 3], "http://e/q": text})
    assert {row[2] for row in found.triples()} == {"128.49", "2.5e-07", "3", text}


def test_json_ld_is_found_by_its_keywords_and_read_with_its_graphs(tmp_path: Path) -> None:
    document = {"@context": {"p": "http://e/p"}, "@id": "http://e/g", "@graph": [{"@id": "#x", "p": {"@id": A}}]}
    found = jsonld(tmp_path, document)
    assert found.format == "json-ld"
    assert found.triples() == [("file:///g.json#x", "http://e/p", A)]
    assert found.qualifiers.rows(named=True)[0]["object"] == "http://e/g"
    assert jsonld(tmp_path, document, named_graphs="drop").qualifiers.height == 0


def test_the_context_of_schema_org_is_known_without_a_network(tmp_path: Path) -> None:
    found = jsonld(tmp_path, {"@context": ["https://schema.org", {"x": "http://e/x"}], "@id": A, "name": "n", "x": "1"})
    assert sorted(found.triples()) == [(A, "http://e/x", "1"), (A, "http://schema.org/name", "n")]


def test_a_context_that_is_named_by_an_address_is_that_of_a_file_and_else_refused(tmp_path: Path) -> None:
    document = {"@context": "https://e.org/c.jsonld", "@id": A, "name": "n"}
    with pytest.raises(KgInputError, match=r"context is 'https://e.org/c.jsonld', which is not fetched; .*--context"):
        jsonld(tmp_path, document)
    file = tmp_path / "c.jsonld"
    file.write_text('{"@context": {"name": "http://e/name"}}')
    for address in ("", "https://e.org/c.jsonld"):
        found = jsonld(tmp_path, document, context={address: str(file)})
        assert found.triples() == [(A, "http://e/name", "n")]


def test_a_context_imports_another_of_a_file_and_a_context_within_that_is_refused(tmp_path: Path) -> None:
    document = {"@context": {"@import": "c", "m": "http://e/own"}, "@id": A, "name": "n", "m": "1"}
    file = tmp_path / "c.jsonld"
    file.write_text('{"@context": {"@vocab": "http://e/", "m": "http://e/imported"}}')
    found = jsonld(tmp_path, document, context={"c": str(file)})
    assert sorted(found.triples()) == [(A, "http://e/name", "n"), (A, "http://e/own", "1")]
    file.write_text('{"@context": {"name": {"@id": "http://e/name", "@context": "d"}}}')
    with pytest.raises(KgInputError, match="a context within a context is named by an address, which is not fetched"):
        jsonld(tmp_path, document, context={"c": str(file)})


def test_keys_that_a_context_does_not_name_are_counted_and_do_not_stop_the_build(tmp_path: Path) -> None:
    found = jsonld(tmp_path, {"@context": {"p": "http://e/p"}, "@id": A, "p": "x", "q": "y", "r": [1, 2]})
    assert (found.triples(), found.rejects) == ([(A, "http://e/p", "x")], [])
    assert found.filtered == {rdf_documents.WITHOUT_TERM: 3}


@pytest.mark.parametrize("name", ["g.nt", "g.nq", "g.ttl", "g.rdf", "g.jsonld"])
def test_a_text_with_a_base_direction_keeps_its_language(tmp_path: Path, name: str) -> None:
    text = f'<{A}> <http://e/p> "x"@ar--rtl .\n'
    if name == "g.rdf":
        head = HEAD.replace(">", ' xmlns:its="http://www.w3.org/2005/11/its" its:version="2.0" rdf:version="1.2">')
        text = (
            head + f'<rdf:Description rdf:about="{A}"><p xml:lang="ar" its:dir="rtl">x</p></rdf:Description></rdf:RDF>'
        )
    elif name == "g.jsonld":
        text = json.dumps({"@id": A, "http://e/p": {"@value": "x", "@language": "ar", "@direction": "rtl"}})
    found = read_text(tmp_path, text, name)
    assert (found.rows("subject", "object", "datatype"), found.rejects) == ([(A, "x", "@ar")], [])
    if name == "g.nt":
        bad = read_text(tmp_path, text + f'<{A}> <http://e/p> "x"@ar--up .\n<{A} "x"@ar--ltr .\n', name)
        assert [reason[:14] for _, reason, _ in bad.rejects] == ["'--up .' where", "no statement: "]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"@id":"http://e/a","http://e/p":' * 5_000 + "1" + "}" * 5_000, "levels of nesting"),
        ('{"@context":"https://schema.org","name":' + '{"name":' * 900 + "1" + "}" * 901, "500 levels of nesting"),
        ('{"@id":"http://e/a","http://e/p":[1,2', "is no JSON, although it begins like JSON-LD"),
        ('{"@context":{"t":"' + "x" * (1 << 20) + '"}}', "has a context of JSON-LD of more than 1,048,576 bytes"),
        (
            '{"@context":{"t":"'
            + "x" * 100_000
            + '"},"@id":"http://e/a","t":'
            + '{"@context":{},"t":' * 900
            + "1"
            + "}" * 901,
            "bytes over 902 levels",
        ),
    ],
)
def test_json_ld_that_would_take_much_memory_or_is_cut_off_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(KgInputError, match=reason):
        read_text(tmp_path, text, "g.jsonld")
