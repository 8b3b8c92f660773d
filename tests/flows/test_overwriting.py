"""No command overwrites or deletes what it did not write: output places that hold something are refused by name."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from flows import answer as asking
from flows.cli.app import app
from kgqa_core.errors import KgqaError
from kgqa_core.llm.cache import open_cache
from kgqa_core.papers.ltgen.card import CITED, COLUMNS
from kgqa_core.store.artifacts import ArtifactRef, Home, read_manifest, verify
from kgqa_core.types import LEVELS
from tests.support.finished import finished_run, questions

OLD, NEW = "a\tlikes\tb\nb\tlikes\tc\n", "a\tlikes\tb\nc\tlikes\ta\n"


def kgqa(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(*words: str | Path) -> str:
    """What a command says that ends with exit code 2."""
    result = kgqa(*words)
    assert isinstance(result.exception, KgqaError), result.output
    assert result.exception.exit_code == 2
    return str(result.exception)


def done(*words: str | Path) -> Result:
    result = kgqa(*words)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The graph of old.tsv, in the folder `graph` beside it; new.tsv is another dump of the same."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.tsv").write_text(OLD)
    (tmp_path / "new.tsv").write_text(NEW)
    done("kg", "build", tmp_path / "old.tsv", "--out", tmp_path / "graph")
    return tmp_path / "graph"


def test_a_graph_folder_with_files_of_the_user_is_refused_and_keeps_them(graph: Path) -> None:
    (graph / "new-dump.tsv").write_text(NEW)
    (graph / "notes.txt").write_text("mine")
    before = files(graph)
    said = refused("kg", "update", graph, graph / "new-dump.tsv", "--out", graph)
    assert "new-dump.tsv" in said and "which this command reads" in said
    assert files(graph) == before
    said = refused("kg", "update", graph, graph.parent / "new.tsv", "--out", graph)
    assert "new-dump.tsv, notes.txt not written by kgqa" in said and "--force" in said
    said = refused("kg", "build", graph.parent / "old.tsv", "--out", graph)
    assert "notes.txt" in said and files(graph) == before
    for number in range(9):
        (graph / f"note {number}").touch()
    assert " and 8 more" in refused("kg", "build", graph.parent / "old.tsv", "--out", graph)


def test_force_says_what_goes_but_never_takes_an_input(graph: Path, caplog: pytest.LogCaptureFixture) -> None:
    (graph / "new-dump.tsv").write_text(NEW)
    (graph / "notes.txt").write_text("mine")
    assert "reads" in refused("kg", "update", graph, graph / "new-dump.tsv", "--out", graph, "--force")
    os.symlink(graph / "new-dump.tsv", graph.parent / "link.tsv")
    assert "reads" in refused("kg", "update", graph, graph.parent / "link.tsv", "--out", graph, "--force")
    assert (graph / "new-dump.tsv").is_file()
    done("kg", "update", graph, graph.parent / "new.tsv", "--out", graph, "--force")
    assert "new-dump.tsv, notes.txt" in caplog.text
    assert not (graph / "notes.txt").exists() and verify(graph).kind == "kg"


def test_a_changed_file_of_a_graph_folder_is_refused(graph: Path) -> None:
    file = graph / "volatile" / "reading.json"
    file.write_text(file.read_text().replace("0", "1"))
    assert "volatile/reading.json changed" in refused("kg", "build", graph.parent / "old.tsv", "--out", graph)
    assert "volatile/reading.json changed" in refused("kg", "update", graph, graph.parent / "new.tsv", "--out", graph)


@pytest.mark.slow
def test_another_graph_is_refused_and_the_same_one_is_built_again(
    graph: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = graph.parent
    digest = verify(graph).digest
    said = refused("kg", "build", place / "new.tsv", "--out", graph)
    assert "`kgqa kg build` from old.tsv" in said and "`kgqa kg build` from new.tsv" in said
    assert verify(graph).digest == digest
    done("kg", "build", "old.tsv", "--out", "graph")  # the same file, named from the working folder
    done("kg", "update", graph, place / "new.tsv", "--out", graph)
    updated = verify(graph).digest
    assert updated != digest
    done("kg", "update", graph, place / "old.tsv", "--out", place / "next")
    done("kg", "update", graph, place / "old.tsv", "--out", place / "next")
    assert "holds another kg" in refused("kg", "update", place / "next", place / "old.tsv", "--out", graph)
    assert verify(graph).digest == updated
    done("kg", "build", place / "old.tsv", "--out", graph, "--force")
    assert "--force" in caplog.text and "holds another kg" in caplog.text
    assert str(place) not in json.dumps(read_manifest(graph)["source"]), "no folder of this machine in a graph"


def test_a_graph_of_an_older_version_is_updated_and_not_taken_for_the_same(graph: Path) -> None:
    path = graph / "manifest.json"
    manifest = {k: v for k, v in json.loads(path.read_text()).items() if k not in ("source", "undigested")}
    path.write_text(json.dumps(manifest))
    assert "of an older kgqa" in refused("kg", "build", graph.parent / "old.tsv", "--out", graph)
    done("kg", "update", graph, graph.parent / "new.tsv", "--out", graph)


def test_places_that_no_folder_may_replace_are_refused(
    graph: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, source = graph.parent, graph.parent / "old.tsv"
    Home(own_home).prepare()
    (place / "file").write_text("mine")
    (place / "link").symlink_to(graph)
    (place / "empty").mkdir()
    for out, why in {
        "file": "is a file, not a folder", "link": "is a symbolic link", "file/below": "nothing can be written to",
        ".": "is the working folder, or holds it", "..": "is the working folder, or holds it", "/": "is the working",
        str(own_home): "is a home of kgqa", str(own_home / "artifacts" / "kg" / "x"): "belongs to the home",
        "x" * 201: "is longer than", "/proc/nothing": "nothing can be put into /proc",
    }.items():  # fmt: skip
        assert why in refused("kg", "build", source, "--out", out, "--force"), out
    (place / "other").mkdir()
    (place / "other" / "thesis.txt").write_text("years of work")
    assert "is not a kg folder" in refused("kg", "build", source, "--out", place / "other", "--force")
    monkeypatch.setenv("KGQA_HOME", str(place / "elsewhere"))  # what is a home is seen without its name
    assert "belongs to the home" in refused("kg", "build", source, "--out", own_home / "runs" / "x")
    assert "is a home" in refused("kg", "build", source, "--out", own_home)
    done("kg", "build", source, "--out", place / "empty")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(graph: Path) -> None:
    closed = graph.parent / "closed"
    closed.mkdir(mode=0o555)
    assert "nothing can be put into" in refused("kg", "build", graph.parent / "old.tsv", "--out", closed / "graph")


def test_exports_and_lists_beside_existing_files_are_refused(graph: Path) -> None:
    place = graph.parent
    for out in ("out.nt", "out.tsv"):
        (place / out).write_text("mine")
        assert f"{out} exists" in refused("kg", "export", place / out, "--kg", graph)
        assert (place / out).read_text() == "mine"
        done("kg", "export", place / out, "--kg", graph, "--force")
        assert (place / out).read_text() != "mine"
    done("kg", "export", place / "out.parquet", "--kg", graph)
    (place / "out.parquet" / "mine.txt").write_text("mine")
    assert ".parquet exists" in refused("kg", "export", place / "out.parquet", "--kg", graph)
    done("kg", "export", place / "out.parquet", "--kg", graph, "--force")
    assert (place / "out.parquet" / "mine.txt").read_text() == "mine"
    before = files(graph)
    said = refused("kg", "export", graph / "kg.duckdb", "--kg", graph, "--format", "nt", "--force")
    assert "is in a folder that this command reads" in said and files(graph) == before
    assert "reads" in refused("kg", "export", graph / "new.nt", "--kg", graph)
    assert str(graph) in refused("kg", "export", graph, "--kg", graph)
    done("kg", "build", place / "new.tsv", "--out", place / "next")
    done("kg", "diff", graph, place / "next", "--out", place / "diff")
    assert "is an input" in refused("kg", "diff", graph, place / "next", "--out", graph, "--force")
    assert files(graph) == before
    lists = files(place / "diff")
    assert "exists" in refused("kg", "diff", place / "next", graph, "--out", place / "diff")
    assert files(place / "diff") == lists
    done("kg", "diff", place / "next", graph, "--out", place / "diff", "--force")
    assert files(place / "diff") != lists


def test_the_second_file_of_a_tsv_export_is_refused_too(graph: Path) -> None:
    place = graph.parent
    lines = ["id\tnode1\tlabel\tnode2", "s\ta\tlikes\tb", "q\ts\tsince\tc"]
    (place / "edges.tsv").write_text("\n".join(lines) + "\n")
    done("kg", "build", place / "edges.tsv", "--format", "kgtk", "--out", place / "qualified")
    (place / "out.qualifiers.tsv").write_text("mine")
    assert "out.qualifiers.tsv exists" in refused("kg", "export", place / "out.tsv", "--kg", place / "qualified")
    assert (place / "out.qualifiers.tsv").read_text() == "mine" and not (place / "out.tsv").exists()


def test_a_dkg_of_another_graph_is_refused(graph: Path) -> None:
    place = graph.parent
    done("kg", "build", place / "new.tsv", "--out", place / "next")
    done("kg", "dkg", graph, "--out", place / "dkg")
    done("kg", "dkg", graph, "--out", place / "dkg")
    assert "holds another dkg" in refused("kg", "dkg", place / "next", "--out", place / "dkg")
    done("kg", "dkg", place / "next", "--out", place / "dkg", "--old-dkg", place / "dkg")
    assert "is an input" in refused("kg", "dkg", graph, "--out", graph, "--force")
    assert "which this command reads" in refused("kg", "dkg", graph, "--out", graph / "dkg")


def test_answers_do_not_overwrite_their_questions_by_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "asked.jsonl"
    asked.write_text('{"id": "1", "question": "Who?"}\n')
    (tmp_path / "link.jsonl").symlink_to(asked)
    os.link(asked, tmp_path / "second.jsonl")
    monkeypatch.setattr(asking, "system_parts", lambda *given: pytest.fail("the check comes before the work"))
    record = {"run_id": "r", "profile": {}, "stages": []}
    for out, why in (("asked", "is an input"), ("link", "is a symbolic link"), ("second", "is an input")):
        for force in (False, True):
            with pytest.raises(KgqaError, match=why):
                asking.answer_file(record, asked, tmp_path / f"{out}.jsonl", force=force)
    (tmp_path / "answers.jsonl").write_text("mine")
    with pytest.raises(KgqaError, match=r"answers\.jsonl exists"):
        asking.answer_file(record, asked, tmp_path / "answers.jsonl")
    assert "Who?" in asked.read_text() and (tmp_path / "answers.jsonl").read_text() == "mine"


def test_a_cache_export_does_not_overwrite_a_file_or_the_cache_itself(tmp_path: Path, own_home: Path) -> None:
    out = tmp_path / "out.jsonl"
    open_cache(Home(own_home).prepare().cache).flush()
    out.write_text("mine")
    assert "out.jsonl exists" in refused("cache", "export", "--out", out, "--home", own_home)
    assert out.read_text() == "mine"
    cache = own_home / "cache" / "responses.sqlite"
    assert "belongs to the home" in refused("cache", "export", "--out", cache, "--home", own_home, "--force")
    done("cache", "export", "--out", out, "--home", own_home, "--force")
    assert out.read_text() == ""
    done("cache", "export", "--out", "/dev/null", "--home", own_home)


def test_a_comparison_does_not_overwrite_a_page(tmp_path: Path, own_home: Path) -> None:
    home, asked = Home(own_home).prepare(), questions([f"What is {n}?" for n in range(12)])
    experiment, page = "rigel/triples/builtin", tmp_path / "page.html"
    for run in ("20260101-000000-aaaa", "20260201-000000-bbbb"):
        rows = {experiment: {one.id: {"exact": 1.0} for one in asked}}
        finished_run(home, run, rows, asked, {experiment: {one.id: "said" for one in asked}}, {})
    page.write_text("mine")
    words = ("compare", "20260101", "20260201", "--home", own_home, "--html", page)
    assert "page.html exists" in refused(*words) and page.read_text() == "mine"
    done(*words, "--force")
    assert "<html" in page.read_text()


def test_a_filled_sheet_survives_a_new_draw(graph: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = graph.parent
    (place / "made").mkdir()
    counted = {**dict.fromkeys(COLUMNS["qa"], 1), "by_triples": dict.fromkeys(CITED, 1)}
    table = {"kind": "qa", "levels": dict.fromkeys(LEVELS, counted), "total": counted, "rejects": {}}
    (place / "made" / "statistics.json").write_text(json.dumps(table))
    row = {
        "id": "1", "level": "I", "question": "Whom does a like?", "answers": ["b"], "triples": [["a", "likes", "b"]],
        "topic_entities": ["a"], "relation_path": ["likes"],
    }  # fmt: skip
    (place / "made" / "questions.jsonl").write_text(json.dumps(row) + "\n")
    words = ("ltgen", "sheet", place / "made", "--kg", graph, "--out", place / "sheet", "--share", "1")
    done(*words)
    done(*words)
    (place / "sheet" / "sheet.csv").write_text("id,label\n1,correct\n")
    (place / "sheet" / "second.csv").write_text("id,label\n1,incorrect\n")
    filled = files(place / "sheet")
    said = refused(*words)
    assert "second.csv not written by kgqa" in said and "sheet.csv changed" in said
    assert files(place / "sheet") == filled
    done(*words, "--force")
    assert files(place / "sheet.old") == filled and "sheet.old" in caplog.text
    assert verify(place / "sheet").kind == "ltgen_sheet"


def test_filled_sheets_survive_when_their_benchmark_is_built_again(
    graph: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, home = graph.parent, Home(own_home).prepare()

    def made(kind: str, letter: str) -> ArtifactRef:
        def fill(out: Path, work: Path) -> dict[str, int]:
            (out / "sheet.csv").write_text("id,label\n1,\n")
            (out / "questions.jsonl").write_text("")
            return {}

        return home.compute(kind, letter * 64, fill, {})[0]

    refs = {"made": {"qa": made("ltgen", "a")}, "sheets": {"qa": made("ltgen_sheet", "b")}, "sample": made("x", "c")}
    monkeypatch.setattr("flows.ltgen.build_ltgen", lambda profile, graph: {"run_id": "r", **refs})
    monkeypatch.setattr("flows.cli.ltgen._statistics", lambda folder: {})
    monkeypatch.setattr("flows.cli.ltgen._show", lambda tables, to_stderr: None)
    words = ("ltgen", "build", "--kg", place / "old.tsv", "--set", "ltgen.writing.kinds=[qa]", "--out", place / "made")
    done(*words)
    done(*words)
    sheet = place / "made" / "qa-sheet"
    (sheet / "sheet.csv").write_text("id,label\n1,correct\n")
    with monkeypatch.context() as patch:
        patch.setattr("flows.ltgen.build_ltgen", lambda *_: pytest.fail("the check comes before the work"))
        assert "sheet.csv changed" in refused(*words)
        assert "holds another ltgen" in refused(*(place / "new.tsv" if word == place / "old.tsv" else word
                                                  for word in words))  # fmt: skip
    done(*words, "--force")
    assert "correct" in (sheet.parent / "qa-sheet.old" / "sheet.csv").read_text()
    assert "correct" not in (sheet / "sheet.csv").read_text()
