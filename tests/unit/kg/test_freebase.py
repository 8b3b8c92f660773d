from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.freebase import Freebase, unescape
from tests.support.reading import read_text

NS = "http://rdf.freebase.com/ns/"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"

DUMP = (
    f"<{NS}m.02mjmr>\t<{NS}people.person.place_of_birth>\t<{NS}m.02hrh0_>\t.\n"
    f'<{NS}m.02mjmr>\t<{NS}type.object.name>\t"Barack Obama"@en\t.\n'
    f'<{NS}m.02mjmr>\t<{LABEL}>\t"Barack Obama"@en\t.\n'
    f'<{NS}m.02mjmr>\t<{NS}common.topic.alias>\t"Barry"@en\t.\n'
    f'<{NS}m.02mjmr>\t<{NS}common.topic.description>\t"A president"@en\t.\n'
    f'<{NS}m.02mjmr>\t<{NS}people.person.date_of_birth>\t"1961-08-04"^^<{XSD}date>\t.\n'
    f"<{NS}m.02mjmr>\t<{NS}type.object.type>\t<{NS}people.person>\t.\n"
    f"<{NS}m.02mjmr>\t<{RDF_TYPE}>\t<{NS}people.person>\t.\n"
    f"<{NS}people.person>\t<{NS}type.type.instance>\t<{NS}m.02mjmr>\t.\n"
    f'<{NS}m.02mjmr>\t<{NS}type.object.key>\t"/wikipedia/en/Barack_Obama_$0028president$0029"\t.\n'
    '<{}m.02mjmr>\t<http://rdf.freebase.com/key/wikipedia.en>\t"Barack_$0022Barry$0022"\t.\n'.format(NS)
    + f"<{NS}m.02mjmr>\t<{NS}common.topic.topic_equivalent_webpage>\t<http://en.wikipedia.org/wiki/Obama>\t.\n"
    f'<{NS}m.0cost>\t<{NS}film.film.cost>\t"10$0028"\t.\n'
)


def test_a_dump_has_freebases_keys_and_names_types_of_everywhere(tmp_path: Path) -> None:
    found = read_text(tmp_path, DUMP, "freebase.nt")
    assert found.format == "freebase"
    assert found.rejects == []
    assert found.rows("subject", "predicate", "object", "kind", "datatype") == [
        ("m.02mjmr", "people.person.place_of_birth", "m.02hrh0_", 0, None),
        ("m.02mjmr", LABEL, "Barack Obama", 1, "@en"),
        ("m.02mjmr", LABEL, "Barack Obama", 1, "@en"),
        ("m.02mjmr", "http://www.w3.org/2004/02/skos/core#altLabel", "Barry", 1, "@en"),
        ("m.02mjmr", "http://schema.org/description", "A president", 1, "@en"),
        ("m.02mjmr", "people.person.date_of_birth", "1961-08-04", 1, f"{XSD}date"),
        ("m.02mjmr", RDF_TYPE, "people.person", 0, None),
        ("m.02mjmr", RDF_TYPE, "people.person", 0, None),
        ("m.02mjmr", RDF_TYPE, "people.person", 0, None),
        ("m.02mjmr", "type.object.key", "/wikipedia/en/Barack_Obama_(president)", 1, f"{XSD}string"),
        ("m.02mjmr", "key/wikipedia.en", 'Barack_"Barry"', 1, f"{XSD}string"),
        ("m.02mjmr", "common.topic.topic_equivalent_webpage", "http://en.wikipedia.org/wiki/Obama", 0, None),
        ("m.0cost", "film.film.cost", "10$0028", 1, f"{XSD}string"),
    ]


def test_a_dump_is_built_and_what_it_says_twice_are_duplicates(make) -> None:  # type: ignore[no-untyped-def]
    store, counts = make(DUMP, "freebase-rdf.gz", format="freebase")
    assert (counts["statements"], counts["labels"], counts["aliases"], counts["descriptions"]) == (13, 1, 1, 1)
    assert (counts["duplicates"], counts["types"]) == (3, 1)
    assert store.resolve(["Barack Obama"]) == {"Barack Obama": store.resolve(["m.02mjmr"])["m.02mjmr"]}


def test_an_old_dump_in_turtle_reads_alike(tmp_path: Path) -> None:
    text = (
        "@prefix ns: <http://rdf.freebase.com/ns/>.\n"
        'ns:m.02mjmr\tns:type.object.name\t"Barack Obama"@en.\n'
        "ns:m.02mjmr\tns:people.person.place_of_birth\tns:m.02hrh0_.\n"
    )
    found = read_text(tmp_path, text, "freebase.ttl")
    assert found.format == "freebase"
    assert found.triples() == [
        ("m.02mjmr", LABEL, "Barack Obama"),
        ("m.02mjmr", "people.person.place_of_birth", "m.02hrh0_"),
    ]


def test_a_bad_line_is_a_reject_with_its_line(tmp_path: Path) -> None:
    lines = DUMP.split("\n")
    lines.insert(2, f"<{NS}m.bad>\t<{NS}a b>\t<{NS}m.1>\t.")
    found = read_text(tmp_path, "\n".join(lines), "freebase.nt")
    assert [(line, reason) for line, reason, _ in found.rejects] == [(3, "' ' in the IRI of the predicate")]
    assert found.statements.height == 13


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("Paris_$0028France$0029", "Paris_(France)"),
        ("$D83D$DE00", "😀"),
        ("$D83D", "$D83D"),
        ("$00e9 $12", "$00e9 $12"),
        ("plain", "plain"),
    ],
)
def test_keys_are_decoded_as_units_of_utf16(key: str, text: str) -> None:
    assert unescape(key) == text


def test_other_files_are_no_dump_of_freebase() -> None:
    assert Freebase().sniff(["<http://a/s> <http://a/p> <http://a/o> ."], KgOptions()) == 0.0
    assert Freebase().sniff([], KgOptions()) == 0.0
