"""What a home holds is told, what nobody needs goes, and what somebody needs stays."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from kgqa_core.errors import ArtifactError, OutputError, StorageError
from kgqa_core.runs.records import choose_run, newest_run
from kgqa_core.store.artifacts import ArtifactRef, Home, write_json
from kgqa_core.store.dates import started
from kgqa_core.store.gc import RemovalPlan, plan, sweep
from kgqa_core.store.home import SCHEMA_VERSION, read_runs
from kgqa_core.store.inventory import survey
from kgqa_core.store.locks import free, gate, held, in_use, shared
from tests.support.command import ROOT

DAY = 86400


def run_id(day: int) -> str:
    return time.strftime("%Y%m%d-120000-0000", time.gmtime(time.time() - day * DAY))


def make(home: Home, kind: str, name: str, day: int, *inputs: ArtifactRef, run: str = "") -> ArtifactRef:
    """An artifact that was made so many days ago."""

    def fill(out: Path, work: Path) -> Mapping[str, int]:
        (out / "text").write_text(f"{kind} {name}" * 1000)
        return {}

    written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - day * DAY))
    made_of = {"inputs": {"one": inputs[0].digest, "more": {ref.kind: ref.digest for ref in inputs}} if inputs else {}}
    ref, _ = home.compute(kind, name * 64, fill, {"written": written, "run_id": run or run_id(day), "made_of": made_of})
    return ref


def finish(home: Home, day: int, *refs: ArtifactRef, status: str = "done") -> str:
    name = run_id(day)
    folder = home.root / "runs" / name
    folder.mkdir()
    (folder / "report.html").write_text("x" * 10_000)
    stages = [{"name": ref.kind, "seconds": 1.0, "artifact": ref.model_dump()} for ref in refs]
    write_json(folder / "run.json", {"run_id": name, "status": status, "stages": stages})
    return name


def age(path: Path, days: float) -> None:
    then = time.time() - days * DAY
    for inner in [*path.rglob("*"), path]:
        os.utime(inner, (then, then))


def going(result: RemovalPlan) -> set[str]:
    return {item.name for item in result.items}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


def test_kept_are_the_last_runs_champions_and_what_they_were_made_of(home: Home) -> None:
    graph = make(home, "kg", "a", 30)
    shared_by_all = make(home, "dkg", "b", 30, graph)
    only_old = make(home, "facts", "c", 20, shared_by_all)
    old = finish(home, 20, only_old)
    best = make(home, "facts", "d", 15, shared_by_all)
    champion = finish(home, 15, best)
    forgotten = make(home, "facts", "e", 12, shared_by_all)
    broken_then = finish(home, 12, forgotten, status="failed")
    newest = make(home, "facts", "f", 3, shared_by_all)
    finish(home, 3, newest)
    to_be_taken_up = make(home, "facts", "0", 1)
    finish(home, 1, to_be_taken_up, status="failed")
    (home.root / "champions").mkdir()
    write_json(home.root / "champions" / "atlas.json", {"champion": {"run_id": champion}, "previous": None})
    home.let_go()

    before = sorted(home.root.rglob("*"))
    first = plan(home.root, keep=1)
    assert going(first) == {
        f"facts/{'c' * 20}", f"facts/{'e' * 20}", f"{old}/report.html", f"{broken_then}/report.html",
    }  # fmt: skip
    assert sorted(home.root.rglob("*")) == before, "a plan changes nothing"
    assert set(first.kept) == {"a champion", "the last finished runs", "a run to be taken up"}
    assert sum(first.kept.values()) == 5
    assert plan(home.root, keep=9).items == []
    assert going(plan(home.root, keep=1, older=13)) == {f"facts/{'c' * 20}", f"{old}/report.html"}

    done = sweep(home.root, keep=1)
    assert going(done) == going(first) and done.bytes == first.bytes > 0
    assert plan(home.root, keep=1).items == []
    for ref in (graph, shared_by_all, best, newest, to_be_taken_up):
        assert home.find(ref.kind, json.loads((ref.folder / "manifest.json").read_text())["key"]) == ref
    assert not only_old.folder.exists() and (home.root / "runs" / old / "run.json").is_file()
    assert not list((home.root / "tmp").iterdir())


def test_a_run_of_several_question_sets_counts_once_and_keeps_the_runs_of_its_sets(home: Home) -> None:
    facts = [make(home, "facts", letter, day) for letter, day in (("a", 30), ("b", 19), ("c", 18))]
    old, whole = finish(home, 30, facts[0]), finish(home, 20)
    sets = [finish(home, 19, facts[1]), finish(home, 18, facts[2])]
    for one in sets:
        path = home.root / "runs" / one / "run.json"
        write_json(path, {**json.loads(path.read_text(encoding="utf-8")), "table": whole})
    home.let_go()
    assert going(plan(home.root, keep=1)) == {f"facts/{'a' * 20}", f"{old}/report.html"}
    assert plan(home.root, keep=2).items == []
    write_json(home.root / "runs" / whole / "run.json", {"run_id": whole, "status": "killed", "stages": []})
    assert f"{sets[0]}/report.html" in going(plan(home.root, keep=1)), "the sets of a killed one stand for themselves"


def test_nothing_is_removed_when_no_run_has_finished_or_a_champion_cannot_be_read(home: Home) -> None:
    make(home, "facts", "a", 30)
    finish(home, 29, status="failed")
    home.let_go()
    assert plan(home.root, keep=1).items == []
    (home.root / "champions").mkdir()
    (home.root / "champions" / "atlas.json").write_text('{"champion"')
    with pytest.raises(ArtifactError, match="nothing is removed"):
        sweep(home.root)


@pytest.mark.parametrize("record", [None, '{"stages"', '{"stages": [], "status": "killed"}'])
def test_nothing_is_removed_when_a_champion_does_not_say_what_it_is_made_of(home: Home, record: str | None) -> None:
    model = make(home, "retriever", "a", 30)
    champion, old = finish(home, 29, model), finish(home, 20)
    finish(home, 3)
    (home.root / "champions").mkdir()
    write_json(home.root / "champions" / "atlas.json", {"champion": {"run_id": champion}, "previous": {"run_id": "x"}})
    home.let_go()
    assert going(plan(home.root, keep=1)) == {f"{old}/report.html"}
    path = home.root / "runs" / champion / "run.json"
    path.unlink() if record is None else path.write_text(record)
    with pytest.raises(ArtifactError, match=r"the champion of atlas .* nothing is removed"):
        sweep(home.root, keep=1)
    assert model.folder.is_dir() and (home.root / "runs" / old / "report.html").is_file()


def test_a_killed_run_keeps_its_record_and_what_the_tracker_has_not_heard(home: Home) -> None:
    marked, waiting, nothing = finish(home, 29, status="killed"), finish(home, 28), finish(home, 27)
    (home.root / "runs" / waiting / "untracked.jsonl").write_text("{}\n")
    for name in (waiting, nothing):
        (home.root / "runs" / name / "run.json").unlink()
        (home.root / "runs" / name / "owner.lock").touch()
    finish(home, 3)
    home.let_go()
    assert going(sweep(home.root, keep=1)) == {f"{marked}/report.html", f"{waiting}/report.html", nothing}
    assert (home.root / "runs" / marked / "run.json").is_file()
    assert (home.root / "runs" / waiting / "untracked.jsonl").is_file()


def test_the_last_builds_and_the_mention_dictionaries_of_graphs_that_stay_are_kept(home: Home) -> None:
    graph, other = make(home, "kg", "a", 30), make(home, "kg", "b", 30)
    outdated, dictionary = make(home, "mentions", "a", 25, graph), make(home, "mentions", "b", 20, graph)
    orphan = make(home, "mentions", "c", 20, other)
    finish(home, 20, dictionary, status="made")
    forgotten, benchmark = make(home, "ltgen", "a", 19, graph), make(home, "ltgen", "b", 18, graph)
    finish(home, 19, forgotten, status="made")
    finish(home, 18, benchmark, status="made")
    finish(home, 3, graph)
    home.let_go()
    result = plan(home.root, keep=1)
    kept = {ref.folder for ref in (graph, dictionary, benchmark)}
    gone = {ref.folder for ref in (other, outdated, orphan, forgotten)}
    assert {item.path for item in result.items if item.what == "artifact"} == gone
    assert sum(result.kept.values()) == 3 and result.kept["its graph stays"] == 1
    sweep(home.root, keep=1)
    assert all(folder.is_dir() for folder in kept) and not any(folder.exists() for folder in gone)


def test_what_a_live_process_was_given_stays_until_it_lets_go(home: Home) -> None:
    ref = make(home, "facts", "a", 30)
    finish(home, 3)
    assert ref.folder.exists() and sweep(home.root, keep=1).items == []
    home.let_go()
    reader = Home(home.root)
    assert reader.find("facts", "a" * 64) == ref
    assert sweep(home.root, keep=1).items == [] and ref.folder.exists()
    assert in_use(home.root / "locks").names == {f"facts/{'a' * 20}"}
    reader.let_go()
    assert going(sweep(home.root, keep=1)) == {f"facts/{'a' * 20}"}
    assert in_use(home.root / "locks").names == frozenset()


def test_a_run_under_way_keeps_what_it_made_and_its_folder(home: Home) -> None:
    slow = run_id(30)
    ref = make(home, "facts", "a", 29, run=slow)
    finish(home, 30, status="running")
    finish(home, 3)
    home.let_go()
    home.use(f"runs/{slow}")
    assert plan(home.root, keep=1).items == []
    home.let_go()
    assert going(plan(home.root, keep=1)) == {f"facts/{'a' * 20}", f"{slow}/report.html"}
    assert ref.folder.exists()


USER = """
import sys, time
from pathlib import Path
from kgqa_core.store.artifacts import Home
home = Home(Path(sys.argv[1]))
print("ready", flush=True)
assert home.find("facts", "a" * 64)
print("found", flush=True)
time.sleep(60)
"""


def test_a_killed_process_uses_nothing(home: Home) -> None:
    make(home, "facts", "a", 30)
    finish(home, 3)
    home.let_go()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    user = subprocess.Popen(
        [sys.executable, "-c", USER, str(home.root)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert user.stdout is not None and user.stdout.read(12) == "ready\nfound\n"
    result = sweep(home.root, keep=1)
    assert result.items == [] and f"in use by process {user.pid}" in result.notes[0]
    user.kill()
    user.wait()
    user.stdout.close()
    assert {item.what for item in sweep(home.root, keep=1).items} == {"artifact", "lock"}


def test_the_next_process_clears_notes_of_the_dead_and_keeps_those_of_the_living(home: Home) -> None:
    home.use("facts/x")
    [mine] = (home.root / "locks" / "uses").iterdir()
    (mine.parent / "dead").write_text("{}\nfacts/y\n")
    Home(home.root).prepare()
    assert list(mine.parent.iterdir()) == [mine]
    assert in_use(home.root / "locks").names == {"facts/x"}


def test_a_process_that_could_not_say_what_it_uses_uses_everything(home: Home) -> None:
    ref = make(home, "facts", "a", 30)
    finish(home, 3)
    [note] = (home.root / "locks" / "uses").iterdir()
    os.truncate(note, 0)
    assert plan(home.root, keep=1).items == [] and ref.folder.exists()


def test_a_note_of_use_waits_for_the_removal_and_then_finds_nothing(home: Home) -> None:
    """The two sides of one lock: what is noted before is seen, what is noted after finds the artifact gone."""
    make(home, "facts", "a", 30)
    finish(home, 3)
    home.let_go()
    with shared(gate(home.root / "locks"), alone=True):
        other = subprocess.Popen(
            [sys.executable, "-c", USER, str(home.root)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert other.stdout is not None and other.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(1)
        os.rename(home.folder("facts", "a" * 64), home.root / "tmp" / ".gone-x")
    found, stderr = other.communicate(timeout=60)
    assert found == "" and "AssertionError" in stderr


def test_leftovers_of_the_dead_go_and_those_of_the_living_stay(home: Home) -> None:
    make(home, "facts", "d", 0)
    home.let_go()
    done = f"facts-{'d' * 20}"
    for folder in ("tmp", "work"):
        for name in ("facts-dead", "facts-alive", done):
            (home.root / folder / name / "deep").mkdir(parents=True)
    for name in ("facts-dead", "facts-alive"):
        (home.root / "locks" / f"{name}.lock").touch()
    (home.root / "locks" / "old.lock").touch()
    age(home.root / "locks" / "old.lock", 2)
    (home.root / "tmp" / ".gone-1-x").mkdir()
    with held(home.root / "locks" / "facts-alive.lock", "x", lambda _: None):
        at_once = {
            ("temporary", "facts-dead"), ("temporary", done), ("work", done), ("lock", "old.lock"),
            ("temporary", ".gone-1-x"),
        }  # fmt: skip
        assert {(item.what, item.name) for item in plan(home.root).items} == at_once
        age(home.root / "work", 2)
        removed = {(item.what, item.name) for item in sweep(home.root).items}
        assert removed == {*at_once, ("work", "facts-dead")}
        assert [path.name for path in (home.root / "work").iterdir()] == ["facts-alive"]
        assert [path.name for path in (home.root / "tmp").iterdir()] == ["facts-alive"]


def test_records_whose_writing_was_broken_off_go_after_a_day(home: Home) -> None:
    finish(home, 1)
    run = next((home.root / "runs").iterdir())
    (home.root / "champions").mkdir(exist_ok=True)
    left = [folder / ".record.json.99-1.tmp" for folder in (home.root, home.root / "champions", run)]
    for path in left:
        path.write_text("{")
    home.let_go()
    assert not {item.path for item in plan(home.root).items} & set(left), "their writers may live"
    for path in left:
        age(path, 2)
    assert {item.path for item in sweep(home.root).items if item.what == "temporary"} == set(left)
    assert not any(path.exists() for path in left)


def test_parts_go_after_a_day_and_damaged_artifacts_at_once(home: Home) -> None:
    finish(home, 30)
    make(home, "facts-part", "a", 2)
    make(home, "facts-part", "b", 0)
    broken = make(home, "facts", "c", 2)
    (broken.folder / "manifest.json").write_text("{")
    home.let_go()
    assert going(plan(home.root)) == {f"facts-part/{'a' * 20}", f"facts/{'c' * 20}"}


def test_the_cache_goes_only_when_asked_for_and_nobody_uses_the_home(home: Home) -> None:
    (home.cache / "responses.sqlite").write_text("paid")
    make(home, "facts", "a", 1)
    assert "cache" not in going(plan(home.root, cache=True))
    home.let_go()
    assert "cache" not in going(sweep(home.root))
    assert (home.cache / "responses.sqlite").exists()
    assert "cache" in going(sweep(home.root, cache=True)) and not home.cache.exists()


def test_two_at_once_do_not_tidy_the_same_home(home: Home) -> None:
    with free(home.root / "locks" / "housekeeping.lock") as mine:
        assert mine
        with pytest.raises(ArtifactError, match="another `kgqa gc`"):
            sweep(home.root)


def test_the_survey_counts_each_file_once_and_tells_what_is_missing(home: Home) -> None:
    one, two = make(home, "kg", "a", 2), make(home, "facts", "b", 2)
    os.link(one.folder / "text", two.folder / "linked")
    gone = make(home, "facts", "c", 2)
    name = finish(home, 1, one, two, gone)
    shutil.rmtree(gone.folder)
    facts = survey(home.root)
    assert {row["kind"]: row["artifacts"] for row in facts["kinds"]} == {"kg": 1, "facts": 1}
    [run] = facts["runs"]
    assert (run["run_id"], run["status"], run["artifacts"], run["gone"]) == (name, "done", 2, 1)
    inside = [path for folder in (one.folder, two.folder) for path in (folder, *folder.rglob("*"))]
    once = {path.stat().st_ino: path.stat().st_blocks * 512 for path in inside}
    assert len(once) == len(inside) - 1 and facts["places"]["artifacts"]["bytes"] == sum(once.values())
    assert facts["places"]["artifacts"]["bytes"] == sum(row["bytes"] for row in facts["kinds"])


def test_commands_show_and_remove(home: Home) -> None:
    make(home, "facts", "a", 30)
    finish(home, 3)
    home.let_go()
    runner = CliRunner()
    shown = runner.invoke(app, ["home", "--home", str(home.root)])
    assert shown.exit_code == 0 and "facts" in shown.output and run_id(3) in shown.output
    printed = runner.invoke(app, ["home", "--home", str(home.root), "--json"])
    assert json.loads(printed.stdout.splitlines()[-1])["layout"] == SCHEMA_VERSION
    dry = runner.invoke(app, ["gc", "--home", str(home.root), "--keep", "1"])
    assert dry.exit_code == 0 and "say --yes to remove" in dry.output and home.folder("facts", "a" * 64).exists()
    done = runner.invoke(app, ["gc", "--home", str(home.root), "--keep", "1", "--yes", "--json"])
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["removed"] and [item["name"] for item in result["items"]] == [f"facts/{'a' * 20}"]
    assert not home.folder("facts", "a" * 64).exists()
    missing = runner.invoke(app, ["home", "--home", str(home.root / "nowhere")])
    assert missing.exit_code != 0 and not (home.root / "nowhere").exists()


def test_a_home_says_its_version_an_older_one_is_brought_up_and_a_newer_one_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    record = json.loads((home.root / "home.json").read_text())
    assert record["schema"] == SCHEMA_VERSION and record["kgqa"] and record["created"]
    ref = make(home, "facts", "a", 1)
    (home.root / "home.json").unlink()
    assert Home(home.root).prepare().find("facts", "a" * 64) == ref
    assert json.loads((home.root / "home.json").read_text())["migrated_from"] == 0
    write_json(home.root / "home.json", {**record, "schema": SCHEMA_VERSION + 1})
    with pytest.raises(StorageError, match="was written by a newer kgqa .* update kgqa"):
        home.prepare()
    assert json.loads((home.root / "home.json").read_text())["schema"] == SCHEMA_VERSION + 1
    (home.root / "home.json").write_text('{"sch')
    with pytest.raises(StorageError, match="is damaged"):
        home.prepare()


def test_the_start_of_a_run_is_read_from_its_id() -> None:
    assert started("20260102-030405-abcd") == 1767323045.0
    assert started("adhoc") is None


FUTURE = "20990101-000000-ffff"


def future_run(home: Home, *refs: ArtifactRef) -> str:
    """A finished run whose clock was wrong."""
    folder = home.root / "runs" / FUTURE
    folder.mkdir()
    stages = [{"name": ref.kind, "seconds": 1.0, "artifact": ref.model_dump()} for ref in refs]
    write_json(folder / "run.json", {"run_id": FUTURE, "status": "done", "stages": stages})
    return FUTURE


def test_a_run_dated_in_the_future_is_the_newest_only_while_it_is_the_only_one(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    future_run(home)
    assert newest_run(home)["run_id"] == FUTURE
    later = finish(home, 2)
    assert newest_run(home)["run_id"] == choose_run(home.root, "newest")["run_id"] == later
    assert [run["run_id"] for run in survey(home.root)["runs"]] == [FUTURE, later]
    assert newest_run(home, FUTURE)["run_id"] == FUTURE, "it can be named"
    [warning] = [record for record in caplog.records if FUTURE in record.getMessage()]
    assert "dated in the future" in warning.getMessage()


def test_a_clock_that_goes_wrong_leaves_the_order_of_earlier_runs(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier, later = finish(home, 3), finish(home, 2)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert [record["run_id"] for record in read_runs(home.root)] == [earlier, later]


def test_a_run_dated_in_the_future_takes_no_place_of_the_last_runs_for_ever(home: Home) -> None:
    wrong, right = make(home, "facts", "a", -27_000, run=FUTURE), make(home, "facts", "b", 2)
    future_run(home, wrong)
    finish(home, 2, right)
    home.let_go()
    assert going(plan(home.root, keep=1)) == {f"facts/{'a' * 20}"}
    assert plan(home.root, keep=2).items == []


def test_a_run_needs_the_whole_artifact_of_which_it_read_a_folder(home: Home) -> None:
    benchmark = make(home, "answerability", "a", 30)
    graph = ArtifactRef(kind="kg", path=f"{benchmark.path}/kg", digest="of the overlay")
    finish(home, 20)
    finish(home, 3, graph)
    home.let_go()
    assert benchmark.folder.name not in {name.partition("/")[2] for name in going(plan(home.root, keep=1))}


@pytest.mark.parametrize("folder", ["tmp", "work", "runs"])
def test_a_folder_of_the_user_does_not_become_a_home_that_is_tidied(tmp_path: Path, folder: str) -> None:
    project = tmp_path / "project"
    for name in (folder, "artifacts"):
        (project / name).mkdir(parents=True)
        (project / name / "thesis.txt").write_text("years of work")
    age(project, 30)
    with pytest.raises(OutputError, match=f"has a folder {folder}"):
        Home(project).prepare()
    assert CliRunner().invoke(app, ["gc", "--home", str(project), "--yes"]).exit_code != 0
    assert (project / folder / "thesis.txt").is_file() and len(list(project.iterdir())) == 2


def test_a_process_that_reads_a_benchmark_in_the_home_keeps_it(home: Home) -> None:
    graph = make(home, "kg", "a", 30)
    benchmark = make(home, "answerability", "b", 30, graph)
    finish(home, 3)
    home.let_go()
    assert len(going(plan(home.root, keep=1))) == 2
    reader = Home(home.root)
    reader.use_folder(benchmark.folder / "kg")
    reader.use_folder(home.root.parent)
    assert plan(home.root, keep=1).kept == {"a live process": 2}
    reader.let_go()
