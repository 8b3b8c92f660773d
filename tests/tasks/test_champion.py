"""A finished run contends once; what was decided lies in the home, and MLflow's aliases are told where."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import make_profile
from kgqa_core.datasets.load import ALSO_TRAIN
from kgqa_core.store.artifacts import ArtifactRef, Home, write_json
from kgqa_core.store.home import located
from kgqa_core.types import Question
from tasks.engine.champion import champion, contend, model_of
from tasks.engine.publish import publish as publish_run
from tasks.engine.run import Run, StageRecord
from tasks.tracking.tracker import Event, ModelAliases, ModelVersion, NoTracker
from tests.support.finished import binary, finished_run, publish, questions

ASKED = questions([f"What is {n}?" for n in range(100)])


class Listening(NoTracker):
    """Hears what is registered and which aliases are to follow."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, *events: Event) -> None:
        self.events += events

    @property
    def heard(self) -> list[tuple[str, Path]]:
        return [(event.model, Path(event.truth)) for event in self.events if isinstance(event, ModelAliases)]

    @property
    def registered(self) -> list[ModelVersion]:
        return [event for event in self.events if isinstance(event, ModelVersion)]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "arena").prepare()


def finish(home: Home, run_id: str, right: int, asked: Any = ASKED, wrong: int = 0, **operations: Any) -> Run:
    """A run that answers the first `right` questions of a hundred, but for the first `wrong`."""
    rows = binary([0.0] * wrong + [1.0] * (right - wrong) + [0.0] * (100 - right))
    record = finished_run(home, run_id, rows, asked, settings={"operations": operations})
    profile = make_profile(record["profile"])
    run = Run(id=run_id, home=home, tracker=Listening(), profile=profile)
    for stage in record["stages"]:
        run.stages.append(StageRecord(stage["name"], stage["name"], artifact=ArtifactRef(**stage["artifact"])))
    run.stages.append(StageRecord("kg", "kg", artifact=publish(home, "kg", run_id, {}, {}, run_id)))
    run.stages.append(StageRecord("facts/rigel", "facts", artifact=publish(home, "facts", run_id, {}, {}, run_id)))
    return run


def truth(home: Home) -> dict[str, Any]:
    return json.loads((home.root / "champions" / "kgqa-toy-asked.json").read_text())


def test_first_run_is_champion_and_a_better_one_takes_its_place(home: Home) -> None:
    first = finish(home, "run-a", 50)
    assert contend(first, {}).moved
    profile = first.profile
    assert profile is not None and model_of(profile) == "kgqa-toy-asked"
    second = finish(home, "run-b", 80)
    decision = contend(second, {})
    assert decision.moved and decision.against == "run-a"
    told = truth(home)
    assert (told["champion"]["run_id"], told["previous"]["run_id"]) == ("run-b", "run-a")
    assert [one["moved"] for one in told["decisions"]] == [True, True]
    found = champion(profile, home)
    assert found is not None and found["run_id"] == "run-b"
    assert second.tracker.heard == [("kgqa-toy-asked", home.root / "champions" / "kgqa-toy-asked.json")]


def test_every_finished_run_is_a_version_with_its_digests_and_its_value(home: Home) -> None:
    value = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 100}
    run = finish(home, "run-a", 50)
    contend(run, {"aggregates": {"scores": {"rigel/-/-": {"test": {"hits_at_1": value}}}}})
    (version,) = run.tracker.registered
    model, tags = version.model, version.tags
    assert model == "kgqa-toy-asked" and tags["kgqa.run_id"] == "run-a" and tags["kgqa.git"]
    assert tags["kgqa.questions_digest"] == run.made("questions")["questions"].digest
    assert tags["kgqa.champion_metric"] == "hits_at_1 of rigel/-/-: 0.5000 [0.4000, 0.6000]"
    worse = finish(home, "run-b", 40)
    contend(worse, {})
    assert worse.tracker.registered[0].tags["kgqa.champion"] == "stays"


def test_a_version_says_what_it_is_how_good_and_why_it_is_champion_or_not(home: Home) -> None:
    value = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 100}
    run = finish(home, "run-a", 50)
    contend(run, {"aggregates": {"scores": {"rigel/-/-": {"test": {"hits_at_1": value}}}}})
    assert run.profile is not None
    assert [version.description for version in run.tracker.registered] == [
        f"Profile {run.profile.name}: graph toy, questions asked.\n\nhits_at_1 of rigel/-/-: 0.5000 [0.4000, 0.6000]."
        "\n\nFirst champion: rigel/-/- has hits_at_1 50.0.\n\nRun run-a."
    ]
    worse = finish(home, "run-b", 40)
    decision = contend(worse, {})
    assert f"C{decision.why[1:]}." in worse.tracker.registered[0].description


def test_the_description_of_a_version_names_no_place_on_the_machine(home: Home) -> None:
    contend(finish(home, "run-a", 50), {})
    shutil.rmtree(home.root / "artifacts")
    shutil.rmtree(home.root / "champions" / "kgqa-toy-asked")
    run = finish(home, "run-b", 80)
    contend(run, {})
    said = run.tracker.registered[0].description
    assert "delete champions/kgqa-toy-asked.json" in said and str(home.root) not in said


def test_run_that_is_not_better_leaves_the_champion(home: Home) -> None:
    contend(finish(home, "run-a", 50), {})
    decision = contend(finish(home, "run-b", 52), {})
    assert not decision.moved and decision.champion_run == "run-a"
    assert (truth(home)["champion"]["run_id"], truth(home)["previous"]) == ("run-a", None)


def test_same_run_asked_again_gets_the_same_decision(home: Home) -> None:
    contend(finish(home, "run-a", 50), {})
    run = finish(home, "run-b", 80)
    assert contend(run, {}) == contend(run, {})
    assert truth(home)["previous"]["run_id"] == "run-a" and len(truth(home)["decisions"]) == 2


def test_champion_whose_artifacts_are_deleted_can_still_be_beaten(home: Home) -> None:
    contend(finish(home, "run-a", 50), {})
    shutil.rmtree(home.root / "artifacts")
    shutil.rmtree(home.root / "runs" / "run-a")
    run = finish(home, "run-b", 80)
    assert run.profile is not None and champion(run.profile, home) is None
    assert contend(run, {}).moved


@pytest.mark.parametrize("older", [True, False], ids=["as older versions wrote it", "now"])
def test_a_moved_home_has_its_champion_and_its_records_name_no_place(home: Home, tmp_path: Path, older: bool) -> None:
    run = finish(home, "run-a", 50)
    contend(run, {})
    run.save(status="done")
    record = home.root / "champions" / "kgqa-toy-asked.json"
    for file in (record, run.folder / "run.json"):
        assert str(home.root) not in file.read_text()
        if older:
            write_json(file, located(json.loads(file.read_text()), home.root))
    shutil.rmtree(record.with_suffix(""))  # so that its scores are read where its artifacts lie
    moved = Home(tmp_path / "moved")
    home.root.rename(moved.root)
    assert run.profile is not None and (champion(run.profile, moved) or {})["run_id"] == "run-a"
    assert contend(finish(moved, "run-b", 80), {}).moved


def test_questions_that_a_run_was_nearly_taught_do_not_make_it_champion(home: Home) -> None:
    asked = [replace(one, topic_keys=(one.text,)) for one in ASKED]
    taught = [replace(one, id=f"x{one.id}", text=f"{one.text} Now", source=ALSO_TRAIN, split="train") for one in asked]
    contend(finish(home, "run-a", 50, asked), {})
    decision = contend(finish(home, "run-b", 80, [*asked, *taught[50:]]), {})
    assert not decision.moved and decision.n == 50 and decision.difference == 0


def test_a_run_that_learnt_from_corrections_does_not_win_where_it_lost_a_relation(home: Home) -> None:
    asked = [replace(one, relation_paths=(("rare",),)) for one in ASKED[:2]] + ASKED[2:]
    taught = Question("feedback-1", "Who?", answer_keys=("X",), source=ALSO_TRAIN, split="train")
    contend(finish(home, "run-a", 50, asked), {})
    decision = contend(finish(home, "run-b", 90, [*asked, taught], wrong=2), {})
    assert not decision.moved and "relations are lost: rare (0 instead of 2 right); +38.0 points" in decision.why
    assert contend(finish(home, "run-c", 90, asked, wrong=2), {}).moved, "no correction was trained on"


@pytest.mark.parametrize(("right", "moves"), [(50, True), (20, False)])
def test_a_champion_taught_by_withdrawn_feedback_falls_to_a_run_without_it_that_is_no_worse(
    home: Home, right: int, moves: bool
) -> None:
    lie = Question("feedback-1", "Who?", answer_keys=("X",), source=ALSO_TRAIN, split="train")
    contend(finish(home, "run-a", 50, [*ASKED, lie]), {})
    assert not contend(finish(home, "run-b", 50, [*ASKED, lie]), {}).moved, "it is still confirmed"
    decision = contend(finish(home, "run-c", right), {})
    assert decision.moved == moves and ("withdrawn" in decision.why) == moves


def test_champion_whose_scores_are_gone_everywhere_stays_and_the_way_out_is_said(home: Home) -> None:
    contend(finish(home, "run-a", 50), {})
    shutil.rmtree(home.root / "artifacts")
    shutil.rmtree(home.root / "champions" / "kgqa-toy-asked")
    decision = contend(finish(home, "run-b", 80), {})
    assert not decision.moved and decision.champion_run == "run-a"
    assert "scores of run run-a are gone" in decision.why and "kgqa-toy-asked.json" in decision.why


def test_champion_whose_profile_has_an_option_that_is_gone_falls_to_the_next_run(home: Home) -> None:
    contend(finish(home, "run-a", 80), {})
    path = home.root / "runs" / "run-a" / "run.json"
    record = json.loads(path.read_text())
    record["profile"].setdefault("symbolic", {})["max_forms"] = 3
    path.write_text(json.dumps(record))
    assert contend(finish(home, "run-b", 50), {}).moved
    assert truth(home)["champion"]["run_id"] == "run-b" and truth(home)["previous"]["run_id"] == "run-a"


def test_damaged_record_of_the_champion_is_said_and_left_alone(home: Home) -> None:
    contend(finish(home, "run-a", 50), {})
    path = home.root / "champions" / "kgqa-toy-asked.json"
    path.write_text("{half")
    decision = contend(finish(home, "run-b", 80), {})
    assert not decision.moved and "cannot be read" in decision.why and path.read_text() == "{half"


def test_other_questions_move_nothing(home: Home) -> None:
    contend(finish(home, "run-a", 50), {})
    decision = contend(finish(home, "run-b", 80, questions([f"Who is {n}?" for n in range(100)])), {})
    assert not decision.moved and "no scored questions" in decision.why


def test_metric_that_is_not_there_makes_no_champion(home: Home) -> None:
    run = finish(home, "run-a", 50, champion_metric="bleu")
    decision = contend(run, {})
    assert not decision.moved and decision.champion_run is None and "'bleu'" in decision.why
    assert run.profile is not None and champion(run.profile, home) is None
    assert contend(finish(home, "run-b", 10), {}).moved


def test_only_the_scores_of_champion_and_predecessor_are_kept(home: Home) -> None:
    for name, right in (("run-a", 20), ("run-b", 50), ("run-c", 90)):
        assert contend(finish(home, name, right), {}).moved
    copies = (home.root / "champions" / "kgqa-toy-asked").glob("*.parquet")
    assert sorted(copy.stem for copy in copies) == ["run-b", "run-c"]


def test_names_of_systems_cannot_leave_the_folder() -> None:
    hostile = make_profile({"kg": {"name": "../../etc/x"}, "questions": {"name": "a'b c/d"}})
    assert model_of(hostile) == "kgqa-..-..-etc-x-a-b-c-d"


def test_two_pairs_of_names_that_make_one_name_have_a_champion_each(home: Home) -> None:
    def run_of(name: str, right: int, kg: str, asked: str) -> Run:
        run = finish(home, name, right)
        run.profile = make_profile({"kg": {"name": kg}, "questions": {"name": asked}})
        return run

    first, other = run_of("run-a", 50, "wikidata", "mini-qald"), run_of("run-b", 40, "wikidata-mini", "qald")
    assert contend(first, {}).name == "kgqa-wikidata-mini-qald"
    path = home.root / "champions" / "kgqa-wikidata-mini-qald.json"
    record = json.loads(path.read_text())
    write_json(path, {key: value for key, value in record.items() if key != "names"})  # as older versions wrote it
    assert contend(run_of("run-c", 90, "wikidata", "mini-qald"), {}).against == "run-a"

    decision = contend(other, {})
    assert decision.moved and decision.against is None and decision.name.startswith("kgqa-wikidata-mini-qald-")
    for run, bearer in ((first, "run-c"), (other, "run-b")):
        assert run.profile is not None
        found = champion(run.profile, home)
        assert found is not None and found["run_id"] == bearer
    path.unlink()
    assert other.profile is not None and (champion(other.profile, home) or {})["run_id"] == "run-b"


def test_the_record_of_a_run_says_what_it_made_before_it_can_be_champion(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = finish(home, "run-a", 50)
    assert run.profile is not None
    run.stages.append(StageRecord("dkg", "dkg", artifact=ArtifactRef(**run.made("kg")["kg"].model_dump())))
    path = run.folder / "run.json"
    path.unlink()

    def read_then_contend(run: Run, record: dict[str, Any]) -> Any:
        told = json.loads(path.read_text())
        assert told["status"] == "done" and {stage["name"] for stage in told["stages"]} >= {"kg", "scores"}
        return contend(run, record)

    monkeypatch.setattr("kgqa_core.report.page.write", lambda *_, **__: None)
    monkeypatch.setattr("kgqa_core.report.examples.gather_examples", lambda **_: [])
    monkeypatch.setattr("tasks.engine.publish._remember", lambda *_: None)
    monkeypatch.setattr("tasks.engine.publish._show_in_prefect", lambda *_: None)
    monkeypatch.setattr("tasks.engine.publish.contend", read_then_contend)
    assert publish_run(run, run.profile, run.made("scores")["scores"])["champion"]["moved"]
    assert json.loads(path.read_text())["champion"]["champion_run"] == "run-a"
