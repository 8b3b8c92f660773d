"""Wikidata's JSON: every form of value, rank, qualifier and file, and what is wrong with the rest."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.wikidata import json as wikidata_json
from kgqa_core.kg.formats.wikidata.json import WikidataJson
from tests.support.reading import ENTITY_IRI, Read, both_roads, claim, dump, item, read_text, snak

XSD = "http://www.w3.org/2001/XMLSchema#"
WIKIBASE = "http://wikiba.se/ontology#"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"
DESCRIPTION = "http://schema.org/description"
GREGORIAN, JULIAN = ENTITY_IRI + "Q1985727", ENTITY_IRI + "Q1985786"


def time(text: str, precision: int, calendar: str = GREGORIAN):
    return {"time": text, "timezone": 0, "before": 0, "after": 0, "precision": precision, "calendarmodel": calendar}


def coordinate(latitude, longitude, globe=ENTITY_IRI + "Q2"):
    return {"latitude": latitude, "longitude": longitude, "altitude": None, "precision": 1e-05, "globe": globe}


def quantity(amount: str, unit: str = "1"):
    return {"amount": amount, "unit": unit, "upperBound": "+9", "lowerBound": "-9"}


ID = "wikibase-entityid"
VALUES = [
    (ID, "wikibase-item", {"entity-type": "item", "numeric-id": 5, "id": "Q5"}, ("Q5", 0, None, None)),
    (ID, "wikibase-item", {"entity-type": "item", "numeric-id": 5}, ("Q5", 0, None, None)),
    (ID, "wikibase-property", {"numeric-id": 31, "entity-type": "property"}, ("P31", 0, None, None)),
    (ID, "wikibase-lexeme", {"entity-type": "lexeme", "numeric-id": 7}, ("L7", 0, None, None)),
    (ID, "wikibase-form", {"entity-type": "form", "id": "L7-F1"}, ("L7-F1", 0, None, None)),
    (ID, "entity-schema", {"entity-type": "entity-schema", "id": "E10"}, ("E10", 0, None, None)),
    ("string", "string", "plain", ("plain", 1, XSD + "string", None)),
    ("string", "string", "", ("", 1, XSD + "string", None)),
    ("string", "string", 'a "b" \\ / \t\n é 😀', ('a "b" \\ / \t\n é 😀', 1, XSD + "string", None)),
    ("string", None, "no datatype", ("no datatype", 1, XSD + "string", None)),
    ("string", "of-the-future", "x", ("x", 1, XSD + "string", None)),
    ("string", "external-id", "0000 0001", ("0000 0001", 1, WIKIBASE + "ExternalId", None)),
    ("string", "commonsMedia", "A.svg", ("A.svg", 1, WIKIBASE + "CommonsMedia", None)),
    ("string", "localMedia", "A.svg", ("A.svg", 1, WIKIBASE + "LocalMedia", None)),
    ("string", "url", "http://a/b", ("http://a/b", 1, XSD + "anyURI", None)),
    ("string", "math", "\\Theta", ("\\Theta", 1, "http://www.w3.org/1998/Math/MathML", None)),
    ("string", "geo-shape", "Data:B.map", ("Data:B.map", 1, WIKIBASE + "GeoShape", None)),
    ("string", "tabular-data", "Data:B.tab", ("Data:B.tab", 1, WIKIBASE + "TabularData", None)),
    ("string", "musical-notation", "c d e", ("c d e", 1, WIKIBASE + "MusicalNotation", None)),
    ("string", "edtf", "1984?", ("1984?", 1, "http://id.loc.gov/datatypes/edtf/EDTF", None)),
    ("monolingualtext", "monolingualtext", {"text": "Écosse", "language": "fr"}, ("Écosse", 1, "@fr", None)),
    ("monolingualtext", "monolingualtext", {"language": "nds-NL", "text": "x"}, ("x", 1, "@nds-nl", None)),
    ("quantity", "quantity", quantity("+5"), ("+5", 1, XSD + "decimal", None)),
    ("quantity", "quantity", quantity("-0.50", ENTITY_IRI + "Q11573"), ("-0.50", 1, XSD + "decimal", "Q11573")),
    ("quantity", "quantity", {"amount": "+1"}, ("+1", 1, XSD + "decimal", None)),
    ("quantity", "quantity", quantity("+1", "http://other/unit"), ("+1", 1, XSD + "decimal", "http://other/unit")),
    ("time", "time", time("+1952-03-11T00:00:00Z", 11), ("1952-03-11T00:00:00Z", 1, XSD + "dateTime", "11 gregorian")),
    ("time", "time", time("+1952-00-00T00:00:00Z", 9), ("1952-01-01T00:00:00Z", 1, XSD + "dateTime", "9 gregorian")),
    (
        "time",
        "time",
        time("+0306-07-25T00:00:00Z", 11, JULIAN),
        ("0306-07-26T00:00:00Z", 1, XSD + "dateTime", "11 julian"),
    ),
    ("time", "time", time("+0000-01-01T00:00:00Z", 9), ("+0000-01-01T00:00:00Z", 1, XSD + "string", None)),
    ("time", "time", time("+2012-02-31T00:00:00Z", 11, "http://c"), ("+2012-02-31T00:00:00Z", 1, XSD + "string", None)),
    (
        "time",
        "time",
        time("+2012-02-00T00:00:00Z", 10, "http://c"),
        ("2012-02-01T00:00:00Z", 1, XSD + "dateTime", "10"),
    ),
    ("globecoordinate", "globe-coordinate", coordinate(57, -5), "Point(-5 57)"),
    ("globecoordinate", "globe-coordinate", coordinate(57.0, -5.50), "Point(-5.5 57)"),
    (
        "globecoordinate",
        "globe-coordinate",
        coordinate(51.56652777777778, -0.14544444444444443),
        "Point(-0.14544444444444 51.566527777778)",
    ),
    ("globecoordinate", "globe-coordinate", coordinate(1e-05, -0.00012), "Point(-0.00012 1.0E-5)"),
    ("globecoordinate", "globe-coordinate", coordinate(1, 2, None), "Point(2 1)"),
    (
        "globecoordinate",
        "globe-coordinate",
        coordinate(1.5, 2.25, ENTITY_IRI + "Q111"),
        f"<{ENTITY_IRI}Q111> Point(2.25 1.5)",
    ),
]


def _expected(expected):
    if isinstance(expected, str):
        return expected, 1, "http://www.opengis.net/ont/geosparql#wktLiteral", None
    return expected


@pytest.mark.parametrize("escaped", [True, False])
def test_each_form_of_value_as_object_and_as_qualifier(escaped):
    entities = [
        item("Q1", claims={"P1": [claim(snak("P1", value, form, datatype), qualifiers={"P2": [qualifier]})]})
        for form, datatype, value, _ in VALUES
        for qualifier in [snak("P2", value, form, datatype)]
    ]
    found = both_roads(dump(entities, escaped=escaped))
    wanted = [_expected(expected) for *_, expected in VALUES]
    assert not found.rejects.height
    columns = ("object", "kind", "datatype", "detail")
    assert found.statements.sort("object").select(columns).rows() == sorted(wanted, key=lambda row: row[0])
    assert found.qualifiers is not None
    qualified = found.qualifiers.sort("object")
    assert qualified.select(columns).rows() == sorted(wanted, key=lambda row: row[0])
    assert found.statements[qualified["row"].to_list(), "object"].to_list() == qualified["object"].to_list()
    assert set(found.statements["predicate"]) == {"P1"} and set(qualified["predicate"]) == {"P2"}


def test_unknown_and_absent_values_are_literals_of_their_own():
    some, none = {"snaktype": "somevalue", "property": "P1"}, {"snaktype": "novalue", "property": "P2"}
    found = both_roads(dump([item("Q1", claims={"P1": [claim(some, qualifiers={"P2": [none]})], "P2": [claim(none)]})]))
    assert found.statements.select("predicate", "object", "kind", "datatype").rows() == [
        ("P1", "somevalue", 1, WIKIBASE + "somevalue"),
        ("P2", "novalue", 1, WIKIBASE + "novalue"),
    ]
    assert found.qualifiers is not None
    assert found.qualifiers.select("row", "predicate", "object", "datatype").rows() == [
        (0, "P2", "novalue", WIKIBASE + "novalue")
    ]


def test_ranks_and_claims_of_one_property():
    value = snak("P1", "x")
    ranks = ["deprecated", "normal", "preferred"]
    found = both_roads(dump([item("Q1", claims={"P1": [claim(value, rank=rank) for rank in ranks]})]))
    assert found.statements["rank"].to_list() == [-1, 0, 1]


def test_names_in_all_languages_and_in_those_asked_for(tmp_path):
    entity = item(
        "Q1",
        labels={"en": {"language": "en", "value": "Moon"}, "zh-Hant": {"language": "zh-Hant", "value": "月球"}},
        descriptions={"de": {"language": "de", "value": "Mond"}},
        aliases={"en": [{"language": "en", "value": "Luna"}, {"language": "en", "value": "the Moon"}], "de": []},
        claims={"P1": [claim(snak("P1", {"text": "Lune", "language": "fr"}, "monolingualtext"))]},
    )
    names = [
        (LABEL, "Moon", "@en"),
        (LABEL, "月球", "@zh-hant"),
        (DESCRIPTION, "Mond", "@de"),
        (ALIAS, "Luna", "@en"),
        (ALIAS, "the Moon", "@en"),
    ]
    found = both_roads(dump([entity]))
    assert found.statements.select("predicate", "object", "datatype").rows() == [*names, ("P1", "Lune", "@fr")]
    found = both_roads(dump([entity]), languages=frozenset({"en", "zh-hant"}))
    assert found.filtered == {"language": 1} and found.statements.height == 5
    read = read_text(tmp_path, dump([entity]), "d.json", languages=("DE", ""), only_languages=True)
    assert read.rows("object") == [("Mond",), ("Lune",)] and read.filtered == {"language": 4} and read.total == 6


ONE = item("Q1", claims={"P1": [claim(snak("P1", "one"))]})
TWO = item("Q2", claims={"P1": [claim(snak("P1", "two"))]})


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


@pytest.mark.parametrize(
    ("text", "ignored"),
    [
        (f"[\n{_compact(ONE)},\n{_compact(TWO)}\n]\n", 2),
        (f"[\r\n{_compact(ONE)},\r\n{_compact(TWO)},\r\n],\r\n", 2),
        (f"{_compact(ONE)}\n\n{_compact(TWO)}", 1),
        (f"[{_compact(ONE)},\n{_compact(TWO)}]", 0),
        (f"[{_compact(ONE)}\n,{_compact(TWO)}\n]", 1),
        (json.dumps([ONE, TWO]), 0),
        (json.dumps({"entities": {"Q1": ONE, "Q2": TWO}}), 0),
        (json.dumps([ONE, TWO], indent=2), 0),
        (json.dumps({"entities": {"Q1": ONE, "Q2": TWO}}, indent="\t"), 0),
    ],
    ids=["dump", "crlf", "lines", "hugged", "leading", "list", "entities", "pretty-list", "pretty-entities"],
)
def test_every_layout_of_a_file(tmp_path, text, ignored):
    found = read_text(tmp_path, text, "some.json")
    assert found.format == "wikidata-json"
    assert found.triples() == [("Q1", "P1", "one"), ("Q2", "P1", "two")]
    assert not found.rejects and found.ignored == ignored


def test_one_entity_over_many_lines_and_a_compressed_dump(tmp_path):
    assert read_text(tmp_path, json.dumps(ONE, indent=4), "Q1.json").triples() == [("Q1", "P1", "one")]
    found = read_text(tmp_path, gzip.compress(dump([ONE, TWO])), "latest-all.json.gz")
    assert found.triples() == [("Q1", "P1", "one"), ("Q2", "P1", "two")]


def test_empty_maps_written_as_lists_and_absent_ones():
    entity = {"id": "P53", "labels": [], "aliases": [], "descriptions": [], "claims": [], "sitelinks": []}
    other = {"id": "Q2", "claims": {"P1": [claim(snak("P1", "x"), qualifiers=[])]}}
    found = both_roads(dump([entity, {"id": "Q1"}, other]))
    assert found.statements.height == 1 and not found.rejects.height
    assert found.qualifiers is not None and not found.qualifiers.height


def _reasons(found: Read) -> list[tuple[int, str]]:
    return [(line, reason) for line, reason, _ in found.rejects]


def test_broken_lines_are_rejected_with_line_and_reason(tmp_path):
    whole = _compact(ONE)
    lines = [
        "[",
        whole + ",",
        whole[:-9] + ",",
        "no JSON,",
        '{"labels":{}},',
        '"text",',
        whole.replace("one", "\\ud800") + ",",
        whole.replace("one", "a\x01b") + ",",
        '{"id":""},',
        _compact(TWO),
        "]",
    ]
    found = read_text(tmp_path, "\n".join(lines), "dump.json")
    assert found.triples() == [("Q1", "P1", "one"), ("Q2", "P1", "two")] and found.ignored == 2
    assert [line for line, _ in _reasons(found)] == [3, 4, 5, 6, 7, 8, 9]
    reasons = [reason for _, reason in _reasons(found)]
    assert reasons[2:4] == ["an entity without id", "not an entity: no JSON object"]
    assert all(reasons[place].startswith("not JSON: ") for place in (0, 1, 4, 5))
    assert found.rejects[1][2] == "no JSON" and found.total == 9
    both_roads(("\n".join(lines) + "\n").encode())


def _without(value: dict, *names: str) -> dict:
    return {name: part for name, part in value.items() if name not in names}


GOOD = snak("P1", "x")
BAD_CLAIMS = [
    (claim(GOOD, rank="best"), "the rank 'best' is unknown"),
    (_without(claim(GOOD), "mainsnak"), "no snak"),
    (claim(_without(GOOD, "datavalue")), "a snak without value"),
    (claim({**GOOD, "snaktype": "maybe"}), "the kind of snak 'maybe' is unknown"),
    (claim({**GOOD, "property": 5}), "a snak without property"),
    ("text", "a claim that is no JSON object"),
    (claim(snak("P1", time("1952", 9), "time")), "'1952' is not a time"),
    (claim(snak("P1", {"time": "+1952-01-01T00:00:00Z"}, "time")), "a time without time, precision and calendar"),
    (claim(snak("P1", {"unit": "1"}, "quantity")), "a quantity without amount"),
    (claim(snak("P1", {"latitude": 1.0}, "globecoordinate")), "a coordinate without latitude and longitude"),
    (claim(snak("P1", {"entity-type": "item"}, ID)), "an entity value without id"),
    (claim(snak("P1", {"entity-type": "item", "numeric-id": -4}, ID)), "an entity value without id"),
    (claim(snak("P1", {"text": "x"}, "monolingualtext")), "a monolingual text without text and language"),
    (claim(snak("P1", {"error": 1}, "bad")), "a value of the form 'bad' that we do not know"),
    (claim(snak("P1", "x", "bad")), "a value of the form 'bad' that we do not know"),
    (claim(snak("P1", "x", "time")), "a value of the form 'time' that we do not know"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD_CLAIMS, ids=range(len(BAD_CLAIMS)))
def test_a_claim_that_cannot_be_read_is_rejected_and_the_others_stay(bad, reason):
    entity = item("Q2", claims={"P1": [claim(GOOD), bad], "P2": [claim(snak("P2", "y"))]})
    found = both_roads(dump([ONE, entity]))
    assert found.statements["object"].to_list() == ["one", "x", "y"]
    assert found.rejects.select("line", "reason").rows() == [(3, reason)]


def test_a_qualifier_or_a_name_that_cannot_be_read_is_rejected_alone():
    good, bad = snak("P2", "q"), snak("P2", {"unit": "1"}, "quantity")
    entity = item("Q1", labels={"en": {"language": "en"}}, claims={"P1": [claim(GOOD, qualifiers={"P2": [bad, good]})]})
    found = both_roads(dump([entity]))
    assert found.statements["object"].to_list() == ["x"]
    assert found.qualifiers is not None and found.qualifiers["object"].to_list() == ["q"]
    assert found.rejects["reason"].to_list() == [
        "labels without language and value",
        "a qualifier: a quantity without amount",
    ]


def test_a_line_that_is_not_text_is_rejected_and_the_others_stay():
    data = dump([ONE, item("Q3"), TWO]).replace(b'"Q3"', b'"Q3\xff"')
    found = both_roads(data)
    assert found.statements["object"].to_list() == ["one", "two"]
    assert found.rejects["line"].to_list() == [3] and "0xff" in found.rejects["reason"][0]


def test_a_broken_document_names_the_line_and_a_bad_claim_of_one_too(tmp_path):
    text = json.dumps(ONE, indent=1)
    broken = text.replace('"type": "item"', '"type" "item"')
    found = read_text(tmp_path, broken, "Q1.json")
    line = broken.split("\n").index(' "type" "item",') + 1
    assert [one[0] for one in found.rejects] == [line] and found.rejects[0][1].startswith("not JSON: ")
    bad = json.dumps(item("Q1", claims={"P1": [claim(GOOD, rank="odd", id="Q1$7")]}), indent=1)
    found = read_text(tmp_path, bad, "Q1.json")
    assert found.rejects[0][0] == 1 + bad[: bad.index("Q1$7")].count("\n")


def test_a_document_that_is_too_large_says_how_to_split_it(tmp_path, monkeypatch):
    monkeypatch.setattr(wikidata_json, "MAX_DOCUMENT", 100)
    with pytest.raises(KgInputError, match="jq -c"):
        read_text(tmp_path, json.dumps([ONE, TWO], indent=1), "x.json")


def test_redirects_and_entities_that_are_missing():
    found = both_roads(dump([{"entity": "Q10", "redirect": "Q4"}, {"id": "Q9", "missing": ""}]))
    assert found.statements.select("subject", "predicate", "object", "kind").rows() == [
        ("Q10", "http://www.w3.org/2002/07/owl#sameAs", "Q4", 0)
    ]
    assert found.ignored == 3 and not found.rejects.height


def test_a_lexeme_with_its_forms_and_senses():
    lexeme = {
        "type": "lexeme",
        "id": "L7",
        "lemmas": {"en": {"language": "en", "value": "cat"}},
        "lexicalCategory": "Q1084",
        "language": "Q1860",
        "claims": {"P1": [claim(GOOD)]},
        "forms": [
            {
                "id": "L7-F1",
                "representations": {"en": {"language": "en", "value": "cats"}},
                "grammaticalFeatures": ["Q146786"],
                "claims": [],
            }
        ],
        "senses": [
            {
                "id": "L7-S1",
                "glosses": {"en": {"language": "en", "value": "animal"}},
                "claims": {"P2": [claim(snak("P2", "y"))]},
            }
        ],
    }
    found = both_roads(dump([lexeme]))
    ontolex = "http://www.w3.org/ns/lemon/ontolex#"
    assert set(found.statements.select("subject", "predicate", "object").rows()) == {
        ("L7", LABEL, "cat"),
        ("L7", WIKIBASE + "lexicalCategory", "Q1084"),
        ("L7", "http://purl.org/dc/terms/language", "Q1860"),
        ("L7", "P1", "x"),
        ("L7", ontolex + "lexicalForm", "L7-F1"),
        ("L7-F1", LABEL, "cats"),
        ("L7-F1", WIKIBASE + "grammaticalFeature", "Q146786"),
        ("L7", ontolex + "sense", "L7-S1"),
        ("L7-S1", LABEL, "animal"),
        ("L7-S1", "P2", "y"),
    }


def test_other_json_is_not_taken_for_wikidatas():
    reader, options = WikidataJson(), KgOptions()
    assert reader.sniff(['{"Version": "1.0", "Questions": [{"RawQuestion": "who?"}]}'], options) == 0
    assert reader.sniff(["a|b|c", '{"labels": 1}'], options) == 0
    assert reader.sniff(["["], options) == 0
    assert reader.sniff(["[", '{"type":"item","id":"Q1","labels":{}}'], options) == 1


def test_pieces_of_a_file_on_threads_come_in_order_and_lose_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(wikidata_json, "CHUNK", 20_000)
    monkeypatch.setattr(wikidata_json, "SMALL", 0)
    entities = [
        item(
            f"Q{n}", claims={f"P{n % 50}": [claim(snak("P1", f"value {n}"), qualifiers={"P2": [snak("P2", f"q{n}")]})]}
        )
        for n in range(2000)
    ]
    path = tmp_path / "dump.json"
    path.write_bytes(dump(entities))
    for threads in (1, 3):
        batches = list(WikidataJson().read(Source(path, "dump.json"), KgOptions(threads=threads)))
        assert len(batches) > 5
        objects = [sorted(batch.statements["object"]) for batch in batches]
        found = [text for part in objects for text in part]
        assert sorted(found) == sorted(f"value {n}" for n in range(2000))
        assert max(int(text[6:]) for text in objects[0]) < min(int(text[6:]) for text in objects[1])
        for batch in batches:
            assert batch.qualifiers is not None
            rows = batch.statements[batch.qualifiers["row"].to_list(), "object"].to_list()
            assert [f"q{text[6:]}" for text in rows] == batch.qualifiers["object"].to_list()
        assert sum(batch.ignored for batch in batches) == 2 and batches[-1].fraction == 1


SAMPLES = {
    "wikidata-filter/entities": (16210, 1962, 1),
    "wdtk/wdtk-dumpfiles/src/test/resources/mock-dump-for-long-testing.json": (149, 7, 2),
    "wdtk/wdtk-dumpfiles/src/test/resources/mock-dump-with-bugs.json": (148, 7, 2),
    "entitybase/test_data/json/entities/Q42.json": (563, 152, 0),
    "entitybase/test_data/json/entities/L42.json": (64, 9, 0),
    "wdtk/wdtk-wikibaseapi/src/test/resources/wbgetentities-Q6-Q42-P31.json": (551, 12, 1),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_real_samples_are_read_without_rejects(shared_data: Path, tmp_path, name):
    path = shared_data / "wikidata_samples" / name
    found = read_text(tmp_path, path.read_bytes(), path.name + ".json")
    assert found.format == "wikidata-json" and not found.rejects
    assert (found.statements.height, found.qualifiers.height, found.ignored) == SAMPLES[name]
