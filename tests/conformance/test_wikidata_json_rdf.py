"""Entities of Wikidata as JSON and as RDF: both roads make the same graph, and each difference has a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox
import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.wikidata.rdf import WikidataRdf
from kgqa_core.kg.ingest.assemble_wikidata import ORPHANS
from kgqa_core.kg.store import KgStore
from kgqa_core.workspace import Workspace

ENTITIES = (
    *("L1883", "L42", "L42353", "Q1", "Q120248304", "Q17633526", "Q17948861", "Q182397", "Q42", "Q51605722", "Q53713"),
    "Q8413",
)
WIKIBASE = "http://wikiba.se/ontology#"
XSD = "http://www.w3.org/2001/XMLSchema#"
WDT, WDNO = "http://www.wikidata.org/prop/direct/", "http://www.wikidata.org/prop/novalue/"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

TRIPLES = """
    SELECT h.key, r.key, t.key, t.datatype, t.detail, x.rank FROM triples x JOIN relations r ON r.id = x.relation
    JOIN entities h ON h.id = x.head JOIN entities t ON t.id = x.tail"""
QUALIFIERS = """
    SELECT h.key, r.key, t.key, t.datatype, t.detail, q.statement, p.key, v.key, v.datatype, v.detail FROM qualifiers q
    JOIN triples x ON x.id = q.triple JOIN relations r ON r.id = x.relation JOIN relations p ON p.id = q.relation
    JOIN entities h ON h.id = x.head JOIN entities t ON t.id = x.tail JOIN entities v ON v.id = q.value"""
NAMES = """
    WITH names(id, kind, lang, text) AS (
      SELECT id, 'label', lang, label FROM labels UNION ALL SELECT id, 'description', lang, description FROM labels
      UNION ALL SELECT id, 'alias', lang, alias FROM aliases)
    SELECT e.key, names.kind, lang, text FROM names JOIN entities e USING (id) WHERE text IS NOT NULL"""


@pytest.fixture(scope="module")
def samples(shared_data: Path) -> Path:
    folder = shared_data / "wikidata_samples" / "entitybase" / "test_data"
    if not folder.is_dir():
        pytest.skip(f"no entities as JSON and RDF at {folder}")
    return folder


@pytest.fixture(scope="module")
def from_json(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _built(tmp_path_factory.mktemp("json"), _json(samples), "all")


@pytest.fixture(scope="module")
def from_rdf(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _built(tmp_path_factory.mktemp("rdf"), [samples / "rdf" / "ttl" / f"{key}.ttl" for key in ENTITIES], "all")


def _json(samples: Path) -> list[Path]:
    return [samples / "json" / "entities" / f"{key}.json" for key in ENTITIES]


def _built(folder: Path, files: list[Path], ranks: str) -> Path:
    options = KgOptions.model_validate({"files": tuple(str(file) for file in files), "ranks": ranks})
    counts = build(Workspace(folder), options=options)
    assert counts["rejects"] == 0
    return folder


def _rows(folder: Path, sql: str) -> set[tuple[object, ...]]:
    with KgStore.open(folder) as store:
        return set(store.connection.execute(sql).fetchall())


def test_full_rdf_makes_the_triples_ranks_and_details_of_json(from_json: Path, from_rdf: Path) -> None:
    # RDF also tells which entities were merged into these, as owl:sameAs; they are one entity here.
    ours, theirs = _rows(from_json, TRIPLES), _rows(from_rdf, TRIPLES)
    assert theirs == ours
    assert len(ours) > 1_300
    assert {row[5] for row in ours} == {-1, 0, 1}
    assert {row[3] for row in ours} >= {f"{WIKIBASE}ExternalId", f"{WIKIBASE}CommonsMedia", f"{WIKIBASE}somevalue"}


def test_full_rdf_makes_the_qualifiers_of_json(from_json: Path, from_rdf: Path) -> None:
    ours, theirs = _rows(from_json, QUALIFIERS), _rows(from_rdf, QUALIFIERS)
    assert theirs == ours
    assert len(ours) > 600


def test_a_statement_whose_value_only_its_value_node_has_is_counted(from_rdf: Path) -> None:
    # The file of Q120248304 leaves out `ps:P625` of one node; its truthy copy keeps the triple.
    assert _rows(from_rdf, f"SELECT statements FROM filtered WHERE rule = '{ORPHANS}'") == {(1,)}


def test_full_rdf_makes_the_names_of_json_and_adds_only_those_of_neighbours(from_json: Path, from_rdf: Path) -> None:
    ours, theirs = _rows(from_json, NAMES), _rows(from_rdf, NAMES)
    classes = Counter(
        # RDF as Wikidata serves it for one entity also names the entities that it mentions.
        "name of a neighbour" if row in theirs and str(row[0]).partition("-")[0] not in ENTITIES else str(row)
        for row in theirs ^ ours
    )
    assert set(classes) == {"name of a neighbour"}
    assert len(ours) > 1_000


def test_truthy_rdf_makes_the_best_statements_of_json_but_for_what_it_cannot_know(
    samples: Path, from_json: Path, tmp_path: Path
) -> None:
    truthy = tmp_path / "truthy.nt"
    with truthy.open("wb") as stream:
        for key in ENTITIES:
            ox.serialize(_truthy(samples / "rdf" / "ttl" / f"{key}.ttl"), stream, format=ox.RdfFormat.N_TRIPLES)
    (tmp_path / "rdf").mkdir()
    (tmp_path / "json").mkdir()
    theirs = {row[:5] for row in _rows(_built(tmp_path / "rdf", [truthy], "truthy"), TRIPLES)}
    ours = {row[:5] for row in _rows(_built(tmp_path / "json", _json(samples), "truthy"), TRIPLES)}
    extra = theirs - ours
    classes: Counter[str] = Counter()
    for row in ours - theirs:
        if row[1] in _LEXEME:
            classes["not in a truthy dump of statements"] += 1
            continue
        twin, name = _as_truthy_says(row)
        assert twin in theirs, row
        extra.discard(twin)
        classes[name] += 1
    assert not extra
    assert set(classes) == {
        "external id is a string",
        "unit is unknown",
        "precision and calendar are unknown",
        "not in a truthy dump of statements",
    }


_LEXEME = {
    "http://purl.org/dc/terms/language",
    f"{WIKIBASE}lexicalCategory",
    f"{WIKIBASE}grammaticalFeature",
    "http://www.w3.org/ns/lemon/ontolex#lexicalForm",
    "http://www.w3.org/ns/lemon/ontolex#sense",
}


def _as_truthy_says(row: tuple[object, ...]) -> tuple[tuple[object, ...], str]:
    """What truthy RDF can say of a statement of JSON, and the name of the difference."""
    head, relation, text, datatype, detail = row
    if datatype == f"{WIKIBASE}ExternalId":
        return (head, relation, text, f"{XSD}string", None), "external id is a string"
    if detail is not None and datatype == f"{XSD}decimal":
        return (head, relation, text, datatype, None), "unit is unknown"
    return (head, relation, text, datatype, None), "precision and calendar are unknown"


def _truthy(path: Path) -> Iterator[ox.Triple]:
    """The triples of a full file that the truthy dump has too, names left out."""
    for quad in ox.parse(path=path, format=ox.RdfFormat.TURTLE, lenient=True):
        novalue = (
            quad.predicate.value == TYPE
            and isinstance(quad.object, ox.NamedNode)
            and quad.object.value.startswith(WDNO)
            and not quad.subject.value.startswith("http://www.wikidata.org/entity/statement/")
        )
        if quad.predicate.value.startswith(WDT) or novalue:
            yield quad.triple


def test_every_rdf_sample_is_read_without_rejects_and_accounted_for(shared_data: Path) -> None:

    files = sorted((shared_data / "wikidata_samples").rglob("*.ttl"))
    if not files:
        pytest.skip("no Turtle among the samples")
    for file in files:
        lines = sum(1 for _ in ox.parse(path=file, format=ox.RdfFormat.TURTLE, lenient=True))
        batches = list(WikidataRdf().read(Source(file, file.name), KgOptions()))
        assert not sum(batch.rejects.height for batch in batches), file
        kept = sum(
            batch.statements.height + (batch.qualifiers.height if batch.qualifiers is not None else 0)
            for batch in batches
        )
        assert kept + sum(sum(batch.filtered.values()) for batch in batches) == lines, file
