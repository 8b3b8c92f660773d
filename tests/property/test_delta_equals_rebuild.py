"""A graph that is brought up to date is the graph that is built anew, with the old ids."""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from flows.cli.graph_folders import build_folder, export_folder, update_folder
from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.build import Part, build, build_parts
from kgqa_core.kg.formats.base import ENTITY, LITERAL, QUALIFIERS, STATEMENTS, StatementBatch
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.update import delta
from kgqa_core.kg.update.delta import DIFF, update, update_parts
from kgqa_core.kg.update.diff import differences
from kgqa_core.kg.update.patch import CAME, WENT, NotPatchable, check_pair, marked, patch
from kgqa_core.monitor import QUIET
from kgqa_core.store.artifacts import content_digest
from kgqa_core.workspace import Workspace
from tests.support.examples import examples

SETTINGS = examples(8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
XSD = "http://www.w3.org/2001/XMLSchema#"
LABELS = ("http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/2004/02/skos/core#prefLabel")
ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"
DESCRIPTION = "http://schema.org/description"
TYPE, SUBTYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://www.w3.org/2000/01/rdf-schema#subClassOf"

entities = st.sampled_from([f"http://x/{name}" for name in "abcdefgp"])
relations = st.sampled_from([f"http://x/{name}" for name in "pqrs"] + ["P646"])
texts = st.tuples(
    st.sampled_from(["x", "y", "it's"]), st.just(LITERAL), st.sampled_from(["@en", "@de", XSD + "string"])
)
values = st.tuples(st.sampled_from(["1", "+2", "x"]), st.just(LITERAL), st.sampled_from([XSD + "decimal", "@en", ""]))
plain = st.one_of(
    st.tuples(entities, relations, st.tuples(entities, st.just(ENTITY), st.none()) | values),
    st.tuples(entities, st.sampled_from([*LABELS, ALIAS, DESCRIPTION]), texts),
    st.tuples(entities, st.sampled_from([TYPE, SUBTYPE, "P31"]), st.tuples(entities, st.just(ENTITY), st.none())),
)
FIXED = ("http://x/a", "http://x/p", ("http://x/b", ENTITY, None))
detailed = st.tuples(
    plain,
    st.sampled_from([None, None, "Q11573", "11 gregorian"]),
    st.sampled_from([0, 0, 0, 1, -1]),
    st.lists(st.tuples(relations, st.tuples(entities, st.just(ENTITY), st.none()) | values), max_size=2),
)
"""A statement with detail, rank and qualifiers."""
options = st.fixed_dictionaries(
    {},
    optional={
        "types_as_triples": st.booleans(),
        "only_languages": st.booleans(),
        "drop_relations": st.just(("http://x/q", "P646")),
        "drop_datatypes": st.just(("decimal",)),
        "ranks": st.sampled_from(["truthy", "normal", "all"]),
        "qualifiers": st.sampled_from(["rows", "triples", "none"]),
        "type_predicates": st.just((TYPE, "P31")),
    },
)


@st.composite
def edits(draw, of, fixed, times):
    """A set of statements, and what becomes of it in so many edits."""
    versions = [draw(st.lists(of, max_size=12))]
    for _ in range(times):
        kept = [statement for statement in versions[-1] if draw(st.integers(0, 3))]
        versions.append(kept + draw(st.lists(of, max_size=4)))
    return [[fixed, *version] for version in versions]


def part(statements) -> Part:
    """Statements with details, ranks and qualifiers, as a reader gives them."""
    rows, qualifiers = [], []
    for row, ((subject, predicate, (object, kind, datatype)), detail, rank, its) in enumerate(statements):
        literal = detail if datatype == XSD + "decimal" else None
        rows.append((subject, predicate, object, kind, datatype, literal, rank, None))
        qualifiers += [(row, None, name, *value, None) for name, value in its]
    return Part(
        "statements",
        "test",
        [
            StatementBatch(
                pl.DataFrame(rows, schema=STATEMENTS, orient="row"),
                qualifiers=pl.DataFrame(qualifiers, schema=QUALIFIERS, orient="row"),
            )
        ],
    )


def ids(folder: Path, table: str) -> dict:
    columns = "kind, key, datatype, detail" if table == "entities" else "key"
    with KgStore.open(folder) as store:
        return {tuple(key): i for i, *key in store.connection.execute(f"SELECT id, {columns} FROM {table}").fetchall()}


def meta(folder: Path, name: str):
    with KgStore.open(folder) as store:
        return store.meta[name]


def check_ids(old: Path, new: Path) -> None:
    """Terms of both graphs have the same id, and others none that was ever given."""
    for table in ("entities", "relations"):
        before, after = ids(old, table), ids(new, table)
        assert {key: after[key] for key in before.keys() & after.keys()} == {
            key: before[key] for key in before.keys() & after.keys()
        }
        assert all(after[key] >= meta(old, "next_ids")[table] for key in after.keys() - before.keys())
        assert len(set(after.values())) == len(after)


@SETTINGS
@given(edits(detailed, (FIXED, None, 0, []), 2), options)
def test_updates_with_new_dumps_equal_rebuilds(versions, chosen):
    chosen = KgOptions(**chosen)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, statements in enumerate(versions):
            (folder / f"built{number}").mkdir()
            build_parts(Workspace(folder / f"built{number}"), [part(statements)], chosen)
        old = folder / "built0"
        for number, statements in enumerate(versions[1:], start=1):
            new, again, rebuilt = (folder / f"{kind}{number}" for kind in ("new", "again", "built"))
            for out, start in ((new, old), (again, new)):
                out.mkdir()
                update_parts(Workspace(out), [part(statements)], start, chosen)
            assert differences(new, rebuilt) == {}
            assert meta(new, "counts") == meta(rebuilt, "counts")
            check_ids(old, new)
            assert content_digest(again) == content_digest(new)
            old = new


def term(key: str, kind: int, datatype: str | None) -> str:
    if kind == ENTITY:
        return f"<{key}>"
    if datatype.startswith("@"):
        return f'"{key}"{datatype}'
    return f'"{key}"^^<{datatype}>' if datatype else f'"{key}"'


def lines(statements) -> set[str]:
    """N-Triples."""
    return {
        " ".join(
            (f"<{subject}>", f"<{predicate if ':' in predicate else 'http://x/' + predicate}>", term(*object), ".")
        )
        for subject, predicate, object in statements
    }


@pytest.mark.slow
@SETTINGS
@given(
    edits(plain, FIXED, 2),
    options.map(lambda chosen: {name: value for name, value in chosen.items() if name not in ("ranks", "qualifiers")}),
    st.lists(plain, max_size=3),
)
def test_updates_with_what_came_and_went_equal_rebuilds(versions, chosen, strangers):
    chosen = KgOptions(**chosen)
    versions = [lines(version) for version in versions]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, version in enumerate(versions):
            write(folder / f"{number}.nt", version)
            (folder / f"built{number}").mkdir()
            build(
                Workspace(folder / f"built{number}"),
                options=chosen.model_copy(update={"files": (str(folder / f"{number}.nt"),)}),
            )
        old = folder / "built0"
        for number in (1, 2):
            before, after = versions[number - 1], versions[number]
            absent = lines(strangers) - before - after
            came, went = folder / "came.nt", folder / "went.nt"
            write(came, after - before)
            write(went, (before - after) | absent)
            new, rebuilt = folder / f"new{number}", folder / f"built{number}"
            new.mkdir()
            given = {
                name: [str(path)] for name, path in (("added", came), ("removed", went)) if path.stat().st_size
            } or {"removed": [str(write(went, {"<http://x/no> <http://x/no> <http://x/no> ."}))]}
            counts = update(Workspace(new), old=old, options=chosen, **given)
            assert differences(new, rebuilt) == {}
            long = folder / f"long{number}"
            long.mkdir()
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(delta, "patch", not_patchable)
                assert update(Workspace(long), old=old, options=chosen, **given) == counts
            assert content_digest(long) == content_digest(new)
            assert lists(long) == lists(new)
            assert counts["not_found"] >= len(absent) and counts["already_there"] == 0
            check_ids(old, new)
            old = new


def not_patchable(*_: object, **__: object) -> None:
    raise NotPatchable("the long way is wanted")


def lists(folder: Path) -> list:
    """What changed, as it is listed."""
    return [pl.read_parquet(folder / DIFF / f"{name}.parquet").rows() for name in ("entities", "relations", "triples")]


@pytest.mark.slow
@SETTINGS
@given(
    edits(plain, FIXED, 2),
    options.map(lambda chosen: {name: value for name, value in chosen.items() if name != "qualifiers"}),
    st.lists(plain, max_size=3),
)
def test_updates_with_plain_dumps_are_those_of_the_long_way(versions, chosen, repeated):
    chosen = KgOptions(**chosen)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        old = None
        for number, version in enumerate(versions):
            new, long, dump = folder / f"new{number}", folder / f"long{number}", folder / f"{number}.nt"
            stated = sorted(lines(version))
            write(dump, [*stated, *(line for line in stated if line in lines(repeated))])
            new.mkdir()
            given = chosen.model_copy(update={"files": (str(dump),)})
            if old is None:
                build(Workspace(new), options=given)
            else:
                long.mkdir()
                counts = update(Workspace(new), old=old, options=given)
                with pytest.MonkeyPatch.context() as patched:
                    patched.setattr(delta, "patch_from_dump", not_patchable)
                    assert update(Workspace(long), old=old, options=given) == counts
                assert content_digest(long) == content_digest(new)
                assert lists(long) == lists(new)
            old = new


ranked = st.tuples(plain, st.just(None), st.sampled_from([0, 0, 1]), st.just([]))
PREFERRED, OTHER = (
    (("http://x/b", TYPE, (f"http://x/{kind}", ENTITY, None)), None, rank, []) for kind, rank in (("a", 1), ("b", 0))
)


@SETTINGS
@example(
    versions=[[(FIXED, None, 0, []), PREFERRED], [(FIXED, None, 0, []), PREFERRED, OTHER]],
    ranks="truthy",
    as_triples=False,
)
@given(edits(ranked, (FIXED, None, 0, []), 1), st.sampled_from(["truthy", "all"]), st.booleans())
def test_ranked_statements_that_came_and_went_equal_rebuilds(versions, ranks, as_triples):
    chosen = KgOptions(ranks=ranks, types_as_triples=as_triples)
    best = [{statement: max(rank for other, _, rank, _ in version if other == statement)
             for statement, *_ in version} for version in versions]  # fmt: skip
    before, after = ([(statement, None, rank, []) for statement, rank in one.items()] for one in best)
    went = [one for one in before if best[1].get(one[0]) != best[0][one[0]]]
    came = [one for one in after if best[0].get(one[0]) != best[1][one[0]]]
    with tempfile.TemporaryDirectory() as name:
        old, new, rebuilt = (Path(name) / kind for kind in ("old", "new", "rebuilt"))
        for place in (old, new, rebuilt):
            place.mkdir()
        build_parts(Workspace(old), [part(before)], chosen)
        build_parts(Workspace(rebuilt), [part(after)], chosen)
        marked_parts = [
            replace(part(some), batches=list(marked(part(some), mark)))
            for some, mark in ((came, CAME), (went, WENT))
            if some
        ]
        try:
            with KgStore.open(old) as store:
                check_pair(store, chosen)
            patch(Workspace(new, None, monitor=QUIET), old=old, options=chosen, parts=marked_parts)
        except (NotPatchable, KgInputError):
            return
        assert differences(new, rebuilt) == {}
        check_ids(old, new)


def write(path: Path, statements) -> Path:
    path.write_text("".join(f"{line}\n" for line in sorted(statements)), encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_changed_wikidata_mini_equals_its_rebuild_and_so_does_its_dkg(shared_data: Path, tmp_path: Path) -> None:
    draw = random.Random(5)
    files: dict[str, list[str]] = {"old": [], "new": []}
    for name in ("triples.tsv", "labels.en.tsv", "qualifiers.tsv"):
        rows = (shared_data / "wikidata_mini" / name).read_text(encoding="utf-8").splitlines(keepends=True)
        chances = [draw.random() for _ in rows]
        for state, low in (("old", 0.0), ("new", 0.001)):
            kept = [row for row, chance in zip(rows, chances, strict=True) if not low <= chance < low + 0.001]
            path = tmp_path / f"{state}.{name}"
            path.write_text("".join(kept), encoding="utf-8")
            files[state].append(str(path))
    build_folder(files["old"], tmp_path / "old", {})
    build_folder(files["new"], tmp_path / "rebuilt", {})
    counts = update_folder(tmp_path / "old", tmp_path / "new", files=files["new"])
    assert differences(tmp_path / "new", tmp_path / "rebuilt") == {}
    check_ids(tmp_path / "old", tmp_path / "new")
    assert min(counts["changes"]["triples"].values()) > 0, "triples came, went and changed their qualifiers"
    export_folder(tmp_path / "old", tmp_path / "dkg")
    updated = export_folder(tmp_path / "new", tmp_path / "updated", old_dkg=tmp_path / "dkg")
    assert updated["made"] == "exported"
    assert updated["digest"] == export_folder(tmp_path / "new", tmp_path / "full")["digest"]
