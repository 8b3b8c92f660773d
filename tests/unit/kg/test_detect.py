"""Which reader reads a file: by content, then by name."""

from __future__ import annotations

import bz2
import gzip
import re
from pathlib import Path

import pytest
import zstandard

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.build import build
from kgqa_core.kg.formats.detect import hinted, reader_of
from kgqa_core.kg.formats.registry import FORMATS, check_format
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.store import KgStore
from kgqa_core.workspace import Workspace

NT = "<http://x/a> <http://x/r> <http://x/b> .\n"
WD = "<http://www.wikidata.org/"
TRUTHY = f"{WD}entity/Q1> {WD}prop/direct/P31> {WD}entity/Q2> .\n"
JSON = '[\n{"type":"item","id":"Q1","labels":{"en":{"language":"en","value":"x"}},"claims":{}},\n]\n'
FB = "<http://rdf.freebase.com/ns/"
FREEBASE = f"{FB}m.01> {FB}type.object.type> {FB}m.02> .\n"

WEBQSP = '{\n "Questions": [\n  {"Parses": [{"InferentialChain": ["people.person.sibling_s"]}]}\n ]\n}\n'

CASES = [
    ("WebQSP.train.json", WEBQSP, "webqsp"),
    ("g.nt", NT, "ntriples"),
    ("g.txt", NT, "ntriples"),
    ("g.nq", NT, "nquads"),
    ("g.txt", NT + NT.replace(" .", " <http://x/g> ."), "nquads"),
    ("g.ttl", "@prefix x: <http://x/> .\nx:a x:b x:c .\n", "turtle"),
    ("g.txt", "@prefix x: <http://x/> .\nx:a x:b x:c .\n", "turtle"),
    ("g.trig", "@prefix x: <http://x/> .\nx:g { x:a x:b x:c . }\n", "trig"),
    ("latest-truthy.nt", TRUTHY, "wikidata-rdf"),
    ("g.nt", TRUTHY, "wikidata-rdf"),
    ("freebase-rdf-latest", FREEBASE, "freebase"),
    ("g.json", JSON, "wikidata-json"),
    ("latest-all.txt", JSON, "wikidata-json"),
    ("g.jsonl", JSON.split("\n")[1].rstrip(",") + "\n", "wikidata-json"),
    ("labels.en.tsv", "node1\tlabel\tnode2\nQ1\tlabel\t'x'@en\n", "kgtk"),
    ("g.txt", "id\tnode1\tlabel\tnode2\tnode2;wikidatatype\nx\tQ1\tP1\tQ2\t\n", "kgtk"),
    ("train.txt", "Q1,P2,Q3\nQ1,P2,Q3,P4,Q5\n", "statements"),
    ("g.tsv", "a\tr\tb\n", "delimited"),
    ("g", "a|r|b\n", "delimited"),
    ("labels.en.tsv", "Q1\tone\n", "names"),
    ("pool.txt", "Q1\tone\n", "names"),
    ("labels.tsv", "Q1\tone\ten\n", "names"),
]


def read_by(path: Path, **options) -> str:
    return reader_of(Source(path, path.name), KgOptions(**options)).name


@pytest.mark.parametrize(("name", "text", "format"), CASES)
@pytest.mark.parametrize("pack", ["", ".gz", ".bz2", ".zst", " without ending"])
def test_every_format_is_found_also_packed(tmp_path, name, text, format, pack):
    packers = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress, " without ending": gzip.compress}
    data = packers[pack](text.encode()) if pack else text.encode()
    path = tmp_path / (name + pack.replace(" without ending", ""))
    path.write_bytes(data)
    assert read_by(path) == format


@pytest.mark.parametrize(
    ("name", "formats"),
    [
        ("latest-truthy.nt.bz2", ("wikidata-rdf", "ntriples")),
        ("wikidata-20240101-all.json.gz", ("wikidata-json",)),
        ("labels.en.tsv.zst", ("names", "delimited")),
        ("G.TTL.GZ", ("turtle",)),
        ("entities", ()),
        ("truthy", ("wikidata-rdf",)),
        ("a.b.ndjson", ("wikidata-json",)),
    ],
)
def test_names_hint_at_formats(name, formats):
    assert hinted(Path(name)) == formats


def test_a_bad_file_with_a_name_that_says_its_format_is_left_to_that_reader(tmp_path):
    path = tmp_path / "g.nt"
    path.write_text("nonsense here\n" * 5)
    assert read_by(path) == "ntriples"


@pytest.mark.parametrize(
    ("name", "text", "looks"),
    [
        ("g.txt", "some words\nand others\n", "no format that we know, for example 'some words'"),
    ],
)
def test_a_file_in_no_format_is_an_error_that_lists_them(tmp_path, name, text, looks):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(KgInputError, match=looks) as caught:
        read_by(path)
    assert all(format in str(caught.value) for format in FORMATS)


@pytest.mark.parametrize("name", ["g.rdf", "g.owl", "g.xml", "g.nt"])
def test_rdf_xml_is_found_by_content_and_other_xml_is_named_whatever_the_file_is_called(tmp_path, name):
    path = tmp_path / name
    path.write_text('<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n')
    assert read_by(path) == "rdf-xml"
    path.write_text('<?xml version="1.0"?>\n<svg xmlns="http://x/">\n</svg>\n')
    with pytest.raises(KgInputError, match="is XML, of which we read RDF/XML and GraphML"):
        read_by(path)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('<?xml version="1.0"?>\n<Ontology xmlns="http://www.w3.org/2002/07/owl#"\n/>', "OWL/XML"),
        ("Prefix(:=<http://e/>)\nOntology(<http://e/>\nDeclaration(Class(:A)))", "OWL's functional syntax"),
        ("Prefix: : <http://e/>\nOntology: <http://e/>\nClass: A\n    SubClassOf: B\n", "Manchester syntax"),
        ("format-version: 1.2\nontology: go\n\n[Term]\nid: GO:1\n", "OBO"),
    ],
)
def test_an_ontology_in_another_syntax_is_named_with_the_command_that_converts_it(tmp_path, text, form):
    path = tmp_path / "x.owl"
    path.write_text(text)
    with pytest.raises(KgInputError, match=f"is an ontology in {form}, .* `robot convert --input x.owl"):
        read_by(path)


@pytest.mark.parametrize(
    ("text", "form", "read"),
    [('<?xml version="1.0"?>\n<gexf xmlns="http://gexf.net/1.3" version="1.3">\n</gexf>\n', "GEXF", "n.read_gexf"),
     ("graph [\n  directed 1\n  node [\n    id 0\n  ]\n]\n", "GML", "n.read_gml"),
     ("*Vertices 2\n1 \"Ana\"\n2 \"Bo\"\n*Arcs\n1 2 1\n", "Pajek's format", "n.read_pajek"),
     ("digraph G {\n  ana -> bo;\n}\n", "DOT", "n.nx_pydot.read_dot")],
)  # fmt: skip
def test_a_graph_in_another_form_is_named_with_the_command_that_converts_it(tmp_path, text, form, read):
    path = tmp_path / "x.txt"
    path.write_text(text)
    with pytest.raises(KgInputError, match=re.escape(f"is a graph in {form}, ") + ".*" + re.escape(f"{read}('x.txt')")):
        read_by(path)


def test_turtle_in_a_file_of_another_ending_is_turtle(tmp_path):
    for name in ("x.owl", "x.rdf", "x.xml", "x.json"):
        (tmp_path / name).write_text("@prefix : <http://e/> .\n:a :b :c .\n")
        assert read_by(tmp_path / name) == "turtle"


@pytest.mark.parametrize(("header", "columns"), [("a,b\n1,2\n", "'a', 'b'"), ("a\tb\tc\td\n1\t2\t3\t4\n", "'c', 'd'")])
def test_a_table_of_other_than_three_columns_is_told_how_to_say_what_they_are(tmp_path, header, columns):
    path = tmp_path / "g.csv"
    path.write_text(header)
    with pytest.raises(KgInputError, match=rf"kg\.table\.id=COLUMN.*its columns are .*{columns}"):
        read_by(path)


def test_a_format_that_is_named_is_taken_and_an_unknown_one_refused(tmp_path):
    path = tmp_path / "g.nt"
    path.write_text(NT)
    assert read_by(path, format="turtle") == "turtle"
    with pytest.raises(KgInputError, match="did you mean 'ntriples'"):
        read_by(path, format="ntriple")
    check_format("auto")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_reader_of_its_name_and_a_line_about_it(name):
    assert FORMATS[name].reader().name == FORMATS[name].name == name
    assert 10 < len(FORMATS[name].label) < 90 and "\n" not in FORMATS[name].label


def test_comments_and_blank_lines_say_nothing_about_the_format(tmp_path):
    path = tmp_path / "g"
    path.write_text("# a\tr\tb\n\n" * 50 + NT)
    assert read_by(path) == "ntriples"


@pytest.mark.parametrize("name", ["g.nt", "g"])
@pytest.mark.parametrize(
    "slip", [NT[:-2] + "\n", NT.replace(" .", " <http://x/g> ."), "<http://x/a b> <http://x/r> 'c' .\n"]
)
def test_a_slip_that_is_fine_in_another_syntax_does_not_make_a_file_of_that(tmp_path, name, slip):
    path = tmp_path / name
    path.write_text(NT * 20 + slip + NT * 20)
    assert read_by(path) == "ntriples"


BAD = "<http://x/a> <http://x/r> 'c' .\n"
"""Turtle, but no N-Triples."""


@pytest.mark.parametrize("suffix", [".nt", ".nt.gz", ".nq"])
@pytest.mark.parametrize("text", [NT + BAD * 2, BAD, NT + "<http://x/a> a <http://x/b> ;\n  <http://x/r> 1 .\n" * 5])
def test_the_suffix_of_lines_of_rdf_decides_however_many_lines_are_bad(tmp_path, suffix, text):
    path = tmp_path / f"g{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith(".gz") else text.encode())
    assert read_by(path) == ("nquads" if suffix == ".nq" else "ntriples")


@pytest.mark.parametrize("prologue", ["@prefix x: <http://x/> .", "PREFIX x: <http://x/>", "base <http://x/>"])
def test_a_declaration_makes_a_file_turtle_whatever_it_is_called(tmp_path, prologue):
    path = tmp_path / "g.nt"
    path.write_text(f"{prologue}\n<http://x/a> <http://x/r> 1 .\n<http://x/a> <http://x/r> 'x' .\n" + NT)
    assert read_by(path) == "turtle"


def test_files_of_several_formats_make_one_graph(tmp_path):
    header = "node1\tlabel\tnode2\tid\n"
    files = {
        "claims.tsv": header + "Q1\tP1\tQ2\tQ1-P1-Q2-0\nQ1\tP1\tQ3\tQ1-P1-Q3-0\n",
        "qualifiers.tsv.gz": header + "Q1-P1-Q3-0\tP5\tQ8\t\nQ1-P1-Q3-0\tP5\tQ9\t\n",
        "labels.en.tsv.zst": "Q1\tone\nP1\tfirst\n",
        "people.csv": 'who,what,whom\nQ1,P7,"Q9"\n',
        "train.txt": "Q1,P8,Q2,P5,Q3\n",
        "truthy.nt.bz2": TRUTHY,
        "dump.json": JSON,
        "more.psv": "Q1|P9|Q2\nQ1|P1|Q2\n",
    }
    packers = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}
    for name, text in files.items():
        path = tmp_path / name
        path.write_bytes(packers.get(path.suffix, bytes)(text.encode()))
    out = tmp_path / "out"
    out.mkdir()
    columns = {"subject": "who", "predicate": "what", "object": "whom"}
    counts = build(Workspace(out), options=KgOptions(files=(str(tmp_path / "*.*"),), columns=columns))
    assert counts["rejects"] == 0 and counts["duplicates"] == 1
    assert (counts["triples"], counts["labels"], counts["qualifiers"]) == (6, 3, 3)
    with KgStore.open(out) as store:
        keys = store.entity_keys(range(counts["entities"]))
        relations = store.relation_keys()
        triples = store.triples(range(6)).values()
        assert {(keys[head], relations[relation], keys[tail]) for head, relation, tail in triples} == {
            ("Q1", relation, tail)
            for relation, tail in zip("P1 P1 P31 P7 P8 P9".split(), "Q2 Q3 Q2 Q9 Q2 Q2".split(), strict=True)
        }
