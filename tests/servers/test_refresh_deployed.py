"""A graph that changes: the schedule, the event that retriggers, what is trained again, who becomes champion."""

from __future__ import annotations

from typing import Any

from tests.servers.conftest import Story
from tests.support.operated import Operated, digests, statuses
from tests.support.toy import LATE, Register

TRAINED = {"retriever", "hop_path"}


def test_a_schedule_fires_and_finds_nothing_to_do(operated: Operated, story: Story, first: Any) -> None:
    run = story.scheduled
    assert run.auto_scheduled and run.created_by.type == "SCHEDULE"
    assert run.start_time >= run.expected_start_time
    assert "nothing to do" in run.state.message and operated.record(first.id)["run_id"] in run.state.message
    assert not operated.children(run.id)


def test_the_event_of_an_update_starts_a_refresh_with_its_files(
    operated: Operated, story: Story, register: Register
) -> None:
    assert story.facts_said["event"] == story.relation_said["event"] == "kgqa.kg.register"
    assert story.facts.parameters["files"] == [str(register.facts)]
    assert story.relation.parameters["files"] == [str(register.relation)]
    assert story.facts.created_by.type == "AUTOMATION"


def test_a_refresh_trains_nothing_when_only_facts_changed(operated: Operated, story: Story, first: Any) -> None:
    old, new = operated.record(first.id), operated.record(story.facts.id)
    assert digests(new)["kg"] != digests(old)["kg"]
    for kind in TRAINED:
        assert digests(new)[kind] == digests(old)[kind]
        assert statuses(new)[kind] != "computed"
    assert not operated.children(story.facts.id), "the gpu pool is not asked"
    assert statuses(new)["facts/rigel"] == "computed"


def test_a_refresh_trains_again_when_a_relation_came(operated: Operated, story: Story) -> None:
    old, new = operated.record(story.facts.id), operated.record(story.relation.id)
    for kind in TRAINED:
        assert digests(new)[kind] != digests(old)[kind]
        assert statuses(new)[kind] == "computed"
    assert {child.work_pool_name for child in operated.children(story.relation.id)} == {"gpu"}
    assert LATE in story.relation.state.message


def test_the_champion_moves_by_the_one_that_is_better_and_not_by_the_other(
    operated: Operated, story: Story, first: Any
) -> None:
    ids = [operated.record(run.id)["mlflow_run_id"] for run in (first, story.facts, story.relation)]
    value = [
        operated.record(run.id)["aggregates"]["scores"]["rigel/-/-"]["test"]["hits_at_1"]["value"]
        for run in (first, story.facts, story.relation)
    ]
    assert value[1] <= value[0] < value[2]
    client = operated.mlflow()
    assert client.get_model_version_by_alias("kgqa-register-asked", "champion").run_id == ids[2]
    assert client.get_model_version_by_alias("kgqa-register-asked", "previous").run_id == ids[0]
    versions = client.search_model_versions("name = 'kgqa-register-asked'")
    assert {version.run_id for version in versions} >= set(ids)
    assert "champion stays" in story.facts.state.message
    assert "champion" in story.relation.state.message and "stays" not in story.relation.state.message


def test_the_same_dump_again_refreshes_nothing(operated: Operated, story: Story, register: Register) -> None:
    run = operated.run("refresh", {"files": [str(register.relation)]})
    assert run.state.is_completed() and "nothing to do" in run.state.message
