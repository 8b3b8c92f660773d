"""Every format over the real samples: which reader reads a file, and that it accounts for everything that lies in it.

Counts are those of the data's README, of plain Python over the same lines, or of another parser.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections import Counter
from pathlib import Path

import polars as pl
import pyoxigraph as ox
import pytest

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.wikidata.json_values import DATE_TIME, DECIMAL, STRING, STRINGS, WKT
from tests.support.reading import read

TABLES = [
    ("wd50k/statements/train.txt", "statements", 166_435, 33_326),
    ("wd50k/statements/valid.txt", "statements", 23_913, 4_591),
    ("wd50k/statements/test.txt", "statements", 46_159, 8_728),
    ("wikidata_mini/triples.tsv", "delimited", 467_127, 0),
    ("wikidata_mini/qualifiers.tsv", "statements", 46_368, 46_368),
    ("wikidata_mini/labels.en.tsv", "names", 35_053, 0),
    ("fb15k237/train.tsv", "delimited", 272_115, 0),
    ("fb15k237/dev.tsv", "delimited", 17_535, 0),
    ("fb15k237/test.tsv", "delimited", 20_466, 0),
    ("fb15k237/relation2text.txt", "names", 237, 0),
    ("codex/triples/codex-s/train.txt", "delimited", 32_888, 0),
    ("codex/triples/codex-m/train.txt", "delimited", 185_584, 0),
    ("codex/triples/codex-l/valid.txt", "delimited", 30_622, 0),
    ("wikidata_samples/derived/labels_en_pool.tsv", "names", 286_445, 0),
]


def needs(root: Path, path: str) -> Path:
    if not (root / path).exists():
        pytest.skip(f"{root / path} is absent; set KGQA_SHARED_DATA to the folder of the public data")
    return root / path


def some(root: Path, folder: str, *patterns: str) -> list[Path]:
    found = sorted(path for one in patterns for path in needs(root, folder).rglob(one) if path.stat().st_size)
    assert found
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("path", "format", "statements", "qualifiers"), TABLES)
def test_tables_are_read_whole(shared_data, path, format, statements, qualifiers):
    found = read(needs(shared_data, path))
    assert (found.format, found.total, found.qualifiers.height) == (format, statements, qualifiers)
    assert not found.rejects and not found.ignored and not found.filtered


def test_wd50k_has_the_statements_and_qualifiers_that_plain_python_finds(shared_data):
    qualified = total = 0
    for path in some(shared_data, "wd50k/statements", "*.txt"):
        found = read(path)
        rows = [line.split(",") for line in path.read_text(encoding="utf-8").split("\n") if line]
        assert found.triples() == [tuple(row[:3]) for row in rows]
        pairs = [(n, row[i], row[i + 1]) for n, row in enumerate(rows) for i in range(3, len(row), 2)]
        assert found.qualifiers.select("row", "predicate", "object").rows() == pairs
        total += found.total
        qualified += len({n for n, _, _ in pairs})
    assert (total, qualified) == (236_507, 32_167)


def kgtk_rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as stream:
        return list(csv.DictReader((line.rstrip("\n") for line in stream), delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.slow
def test_every_kgtk_file_is_read_whole(shared_data):
    counts: Counter[str] = Counter()
    for path in some(shared_data, "wikidata_samples/kgtk", "*.tsv.gz"):
        found, rows = read(path), kgtk_rows(path)
        assert found.format == "kgtk" and not found.rejects and found.ignored == 1, path.name
        assert found.total + found.qualifiers.height == len(rows), path.name
        kind = path.name.split(".")[0]
        counts[kind + " qualifiers"] += found.qualifiers.height
        counts[kind] += found.statements.height
        counts.update({f"{kind} {rule}": count for rule, count in found.filtered.items()})
        assert bool(found.qualifiers.height) == (kind == "qualifiers"), path.name
    assert {name: count for name, count in counts.items() if count} == {
        "aliases": 12 * 99,
        "all": 99,
        "claims": 17 * 99 + 20,
        "derived": 3 * 99,
        "derived derived edge": 4 * 99,
        "descriptions": 12 * 99,
        "labels": 12 * 99,
        "metadata metadata": 7 * 99,
        "qualifiers qualifiers": 15 * 99 + 61 + 18 + 26,
    }


def test_kgtk_claims_have_the_datatype_of_their_file_and_the_value_that_is_written(shared_data):
    entities = {f"wikibase-{kind}" for kind in ("form", "item", "lexeme", "property", "sense")}
    own = {"globe-coordinate": WKT, "quantity": DECIMAL, "string": STRING, "time": DATE_TIME} | STRINGS
    seen = set()
    for path in some(shared_data, "wikidata_samples/kgtk", "claims.*.tsv.gz"):
        kind = path.name.split(".")[1]
        found, rows = read(path), kgtk_rows(path)
        if not rows or kind == "tsv":
            continue
        seen.add(kind)
        frame = found.statements
        assert frame["subject"].to_list() == [row["node1"] for row in rows]
        assert frame["statement"].to_list() == [row["id"] for row in rows]
        assert frame["rank"].to_list() == [{"normal": 0, "preferred": 1}[row["rank"]] for row in rows]
        datatypes = set(frame["datatype"])
        if kind in entities:
            assert datatypes == {None} and frame["object"].to_list() == [row["node2"] for row in rows]
        elif kind == "monolingualtext":
            assert datatypes == {"@" + row["node2"].rsplit("@", 1)[1].lower() for row in rows}
        else:
            assert datatypes == {own[kind]}
        if own.get(kind) in {*STRINGS.values(), STRING}:
            written = [row["node2"].strip('"').replace("\\", "") for row in rows]
            assert [text.replace("\\", "") for text in frame["object"]] == written
        if kind == "quantity":
            units = [row["node2"].partition("Q")[2] for row in rows]
            assert frame["detail"].to_list() == ["Q" + unit if unit else None for unit in units]
    assert seen == {*entities, *own, "monolingualtext", "commonsMedia"} - {"localMedia", "edtf"}


def test_kgtk_qualifiers_find_their_statements_in_the_files_of_claims(shared_data):
    folder = "wikidata_samples/kgtk"
    ids = {row["id"] for path in some(shared_data, folder, "claims.*") for row in kgtk_rows(path)}
    wanted = sum(row["node1"] in ids for path in some(shared_data, folder, "qualifiers.*") for row in kgtk_rows(path))
    names = pl.concat([read(path).statements["statement"] for path in some(shared_data, folder, "claims.*")])
    qualifiers = pl.concat([read(path).qualifiers["statement"] for path in some(shared_data, folder, "qualifiers.*")])
    assert qualifiers.is_in(names.implode()).sum() == wanted > 300


def test_rdf_of_every_kind_has_as_many_statements_as_another_parser_finds(shared_data):
    formats: Counter[str] = Counter()
    for path in some(shared_data, "wikidata_samples", "*.nt", "*.ttl", "*.rdf"):
        if path.name in {"ItemDocument.rdf", "ItemDocumentUnknownPropertyTypes.rdf", "completeRDFDocument.rdf"}:
            continue  # below
        parsed = sum(1 for _ in ox.parse(path=str(path), format=ox.RdfFormat.TURTLE, lenient=True))
        if not parsed:
            assert path.name == "Namespaces.rdf"
            continue
        found = read(path)
        formats[found.format] += 1
        assert not found.rejects, path.name
        assert found.total + found.qualifiers.height == parsed, path.name
    assert set(formats) == {"ntriples", "turtle", "wikidata-rdf"} and formats["wikidata-rdf"] > 40


@pytest.mark.parametrize(
    "name", ["ItemDocument.rdf", "ItemDocumentUnknownPropertyTypes.rdf", "completeRDFDocument.rdf"]
)
def test_rdf_with_a_bad_language_tag_is_one_reject_and_the_rest_is_read(shared_data, name):
    [path] = some(shared_data, "wikidata_samples/wdtk", name)
    assert '"@lc2' in path.read_text(encoding="utf-8")
    found = read(path)
    [(line, reason, _)] = found.rejects
    assert "2 is not a valid" in reason and '"@lc2' in path.read_text(encoding="utf-8").split("\n")[line - 1]
    assert found.total > 60


def statements_in(document: object) -> tuple[int, int]:
    """Claims, texts and parts of lexemes in Wikidata's JSON, counted by hand, and qualifiers.

    Forms and senses of lexemes are not looked into.
    """
    if isinstance(document, list):
        parts = [statements_in(one) for one in document]
        return sum(a for a, _ in parts), sum(b for _, b in parts)
    assert isinstance(document, dict)
    if "entities" in document:
        return statements_in([one for one in document["entities"].values() if "missing" not in one])
    if "search" in document or "id" not in document:
        return 0, 0
    texts = sum(len(document.get(name) or ()) for name in ("labels", "descriptions", "lemmas"))
    aliases = document.get("aliases") or {}
    texts += sum(len(some) for some in aliases.values()) if isinstance(aliases, dict) else 0
    texts += ("lexicalCategory" in document) + ("language" in document and "lemmas" in document)
    claims = [claim for group in (document.get("claims") or {}).values() for claim in group]
    qualifiers = sum(len(group) for claim in claims for group in (claim.get("qualifiers") or {}).values())
    return texts + len(claims), qualifiers


@pytest.mark.slow
def test_wikidatas_json_holds_the_claims_and_texts_that_json_finds(shared_data):
    folder = "wikidata_samples"
    read_whole = 0
    for path in some(shared_data, folder, "Q*.json", "P*.json", "mock-dump-*testing.json", "entities"):
        if path.is_dir() or "wdqs" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        try:
            document = json.loads(text)
        except json.JSONDecodeError:  # a dump that was cut off after a line
            document = [json.loads(line.rstrip(",")) for line in text.split("\n") if line.startswith("{")]
        statements, qualifiers = statements_in(document)
        if not statements and not re.search('"(labels|claims|descriptions|sitelinks)"', text):
            with pytest.raises(KgInputError, match="is JSON of objects"):
                read(path)
            continue
        found = read(path)
        assert found.format == "wikidata-json", path.name
        assert (found.total, found.qualifiers.height, found.rejects) == (statements, qualifiers, []), path.name
        read_whole += 1
    assert read_whole >= 20


def test_a_dump_with_known_bugs_is_the_clean_one_without_the_statement_that_it_lost(shared_data):
    """The mock dump with bugs writes empty maps as `[]`, as Wikidata once did, and lacks the one claim of P53."""
    [clean] = some(shared_data, "wikidata_samples/wdtk", "mock-dump-for-long-testing.json")
    [buggy] = some(shared_data, "wikidata_samples/wdtk", "mock-dump-with-bugs.json")
    assert '"claims":[]' in buggy.read_text(encoding="utf-8")
    one, other = read(clean), read(buggy)
    assert not one.rejects and not other.rejects
    lost = ("P53", "P31", "Q18608871")
    assert [triple for triple in one.triples() if triple != lost] == other.triples()
