"""A refresh does what a newer dump asks for and no more: facts go in, trainings are kept or made again; it says why."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

from flows.refresh import refresh
from flows.stages import evaluate
from kgqa_core.config import Profile, make_profile
from kgqa_core.store.artifacts import Home, read_manifest
from kgqa_core.store.home import read_run
from tasks.engine.run import tracked_run
from tasks.questions import load_questions
from tasks.resume import refresh as refreshing
from tasks.resume import starting_point as starting
from tests.support.toy import write_graph, write_questions

TRAINED = ("retriever", "hop_path")
OF_SERVERS = ("mlflow", "prefect")
QUICK = {
    "rigel": {"encoder": "scratch", "scratch_width": 32, "min_steps": 5, "epochs": 1},
    "hop_path": {"encoder": "scratch", "scratch_width": 32, "epochs": 1},
    "retrieval": {"retrievers": ["rigel", "hop_path"], "k": 3},
    "answering": {"knowledge": ["none", "rigel"], "limit": 4, "max_new_tokens": 2},
    "evaluation": {"bootstrap": 100, "examples": 1},
}


pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph, questions, and a home after the first refresh."""
    folder = tmp_path_factory.mktemp("first")
    triples = write_graph(folder / "graph.tsv", 1400)
    write_questions(folder / "questions.jsonl", triples, 60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGQA_HOME", str(folder / "home"))
        summary = refresh(profile_of(folder))
    assert "first run" in summary["refresh"]["why"] and summary["refresh"]["retrain"]
    assert set(statuses(folder, summary).values()) == {"computed"}
    return folder


@pytest.fixture
def place(first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the home after the first refresh, whose original is not there."""
    for name in ("graph.tsv", "questions.jsonl"):
        shutil.copy(first / name, tmp_path / name)
    shutil.copytree(first / "home", tmp_path / "home", symlinks=True, dirs_exist_ok=True)
    monkeypatch.setenv("KGQA_HOME", str(tmp_path / "home"))
    (first / "home").rename(first / "away")
    yield tmp_path
    (first / "away").rename(first / "home")


def test_no_file_of_a_home_names_its_place_but_those_of_prefect_and_mlflow(first: Path) -> None:
    """MLflow's files follow the home (`tasks.tracking.moved`), and Prefect's are not read at another place."""
    home = first / "home"
    files = [file for file in home.rglob("*") if file.is_file() and file.relative_to(home).parts[0] not in OF_SERVERS]
    assert [str(file) for file in files if str(home).encode() in file.read_bytes()] == []
    assert {"runs", "champions", "artifacts"} <= {file.relative_to(home).parts[0] for file in files}


def profile_of(folder: Path, **sections: Any) -> Profile:
    return make_profile(
        QUICK,
        {
            "kg": {"name": "register", "files": [str(folder / "graph.tsv")]},
            "questions": {"name": "asked", "source": "jsonl", "path": str(folder / "questions.jsonl")},
        },
        sections,
    )


def record_of(folder: Path, summary: dict[str, Any]) -> dict[str, Any]:
    return read_run(folder / "home", summary["run_id"]) or {}


def statuses(folder: Path, summary: dict[str, Any]) -> dict[str, str]:
    return {stage["name"]: stage["status"] for stage in record_of(folder, summary)["stages"]}


def digests(folder: Path, summary: dict[str, Any]) -> dict[str, str]:
    return {stage["name"]: stage["artifact"]["digest"] for stage in record_of(folder, summary)["stages"]}


def change(folder: Path, *, came: str = "", went: int = 0) -> None:
    """Add lines to the dump, and take some of the last ones away."""
    path = folder / "graph.tsv"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) - went]) + came, encoding="utf-8")


def test_an_unchanged_dump_does_nothing_and_says_so(place: Path) -> None:
    runs = sorted((place / "home" / "runs").iterdir())
    state = refresh(profile_of(place), return_state=True)
    assert state.is_completed() and "nothing to do" in state.message
    assert state.result()["refresh"]["nothing"]
    assert sorted((place / "home" / "runs").iterdir()) == runs


@pytest.mark.slow
def test_another_order_of_the_same_statements_does_nothing(place: Path) -> None:
    path = place / "graph.tsv"
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    summary = refresh(profile_of(place))
    assert summary["refresh"]["nothing"] and "the graph is that of" in summary["refresh"]["why"]


def test_changed_facts_go_in_and_nothing_is_trained(place: Path) -> None:
    first = starting.finished_runs(Home(place / "home"), profile_of(place))[0]
    change(place, came="Newcomer\tlives_in\tNewest Town\n", went=2)
    state = refresh(profile_of(place), return_state=True)
    summary = state.result()
    done = statuses(place, summary)
    assert {done[kind] for kind in TRAINED} == {"kept"}
    assert {done[name] for name in ("kg", "dkg", "facts/rigel", "facts/hop_path", "answers/rigel")} == {"computed"}
    assert "facts only: 1 triple came, 2 went" in state.message and "nothing was trained" in state.message
    kept = {stage["name"]: stage["artifact"]["digest"] for stage in first["stages"] if stage["name"] in TRAINED}
    now = digests(place, summary)
    assert {kind: now[kind] for kind in TRAINED} == kept
    assert read_manifest(folder_of(place, summary, "dkg"))["counts"]["made"] == "exported"
    assert record_of(place, summary)["decisions"]["refresh"] == summary["refresh"]["why"]
    again = refresh(profile_of(place))
    assert again["refresh"]["nothing"] and again["run_id"] == summary["run_id"]


@pytest.mark.slow
def test_a_dump_that_is_put_back_goes_in_again(place: Path) -> None:
    before = (place / "graph.tsv").read_text(encoding="utf-8")
    change(place, came="Newcomer\tlives_in\tNewest Town\n")
    refresh(profile_of(place))
    (place / "graph.tsv").write_text(before, encoding="utf-8")
    summary = refresh(profile_of(place))
    newest = starting.finished_runs(Home(place / "home"), profile_of(place))[0]
    assert not summary["refresh"]["nothing"] and summary["run_id"] == newest["run_id"]
    assert "no triple changed" in summary["refresh"]["why"] or "0 triples came, 1 went" in summary["refresh"]["why"]
    assert refresh(profile_of(place))["refresh"]["nothing"]


@pytest.mark.slow
def test_a_schedule_goes_back_behind_no_event_and_an_evaluation_forgets_no_change(first: Path, place: Path) -> None:
    profile, newer = profile_of(first), place / "newer.tsv"
    newer.write_text((first / "graph.tsv").read_text(encoding="utf-8") + "Newcomer\tlives_in\tNewest Town\n")
    by_event = refresh(profile, files=(str(newer),))
    evaluation = evaluate(profile, by_event["run_id"])
    start = starting.starting_point(Home(place / "home"), profile, evaluation["run_id"])
    assert start is not None and start.since_training == by_event["refresh"]["since_training"] > 0

    state = refresh(profile, return_state=True)
    assert state.message.startswith("nothing to do") and f"run {by_event['run_id']} has since read" in state.message
    assert "newer.tsv" in state.message


@pytest.mark.slow
def test_changes_add_up_until_they_are_too_many(place: Path) -> None:
    lenient = {"retrain_share": 0.01}
    shares = []
    for number in range(3):
        change(place, came="".join(f"Joiner {number} {each}\tlives_in\tOld Town\n" for each in range(6)))
        decision = refresh(profile_of(place, operations=lenient))["refresh"]
        shares.append((decision["retrain"], decision["since_training"]))
    assert [retrained for retrained, _ in shares] == [False, False, True]
    assert 0 < shares[0][1] < shares[1][1] and shares[2][1] == 0


@pytest.mark.slow
def test_a_relation_that_comes_trains_again(place: Path) -> None:
    change(place, came="Newcomer\ttwin_of\tNewer Comer\n")
    summary = refresh(profile_of(place))
    assert {statuses(place, summary)[kind] for kind in TRAINED} == {"computed"}
    assert summary["refresh"]["retrain"] and "1 relation came (twin_of)" in summary["refresh"]["why"]


@flow(name="deciding")
def deciding(start: starting.StartingRun, profile: Profile) -> refreshing.Decision:
    questions = load_questions(start.kg, profile.questions, profile.seed)
    return refreshing.decide(start, start.kg, start.dkg, questions, profile)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sections", "word"),
    [
        ({"rigel": {"learning_rate": 0.002}}, "the options of retriever changed"),
        ({"seed": 8}, "the seed of retriever changed"),
        ({"questions": {"split_shares": [0.6, 0.2, 0.2]}}, "the questions are others"),
    ],
)
def test_what_was_trained_otherwise_does_not_go_on(place: Path, sections: dict[str, Any], word: str) -> None:
    profile = profile_of(place, **sections)
    start = starting.starting_point(Home(place / "home"), profile_of(place))
    assert start is not None
    with tracked_run(profile):
        decision = deciding(start, profile)
    assert decision.retrain and word in decision.why


@pytest.mark.slow
def test_a_killed_refresh_goes_on_where_it_was(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(place, came="Newcomer\tlives_in\tNewest Town\n")

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("flows.answer_and_score.answer_all", die)
        with pytest.raises(KeyboardInterrupt):
            refresh(profile_of(place))
    done = statuses(place, summary := refresh(profile_of(place)))
    assert {done[name] for name in ("kg", "dkg", "questions", "facts/rigel", "facts/hop_path")} == {"cached"}
    assert {done[kind] for kind in TRAINED} == {"kept"} and "facts only" in summary["refresh"]["why"]


@pytest.mark.slow
def test_a_lost_start_is_replaced_by_a_whole_run(place: Path) -> None:
    profile = profile_of(place)
    start = starting.starting_point(Home(place / "home"), profile)
    assert start is not None
    assert starting.starting_point(Home(place / "empty"), profile) is None
    for damaged in (Path(start.parts["retriever"].path) / "config.json",):
        kept = damaged.read_bytes()
        damaged.write_bytes(b"{}")
        try:
            assert starting.starting_point(Home(place / "home"), profile) is None
        finally:
            damaged.write_bytes(kept)


def folder_of(folder: Path, summary: dict[str, Any], name: str) -> Path:
    stages = record_of(folder, summary)["stages"]
    return Path(next(stage["artifact"]["path"] for stage in stages if stage["name"] == name))
