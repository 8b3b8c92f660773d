"""Stages are steps of the questions that they answered together."""

from __future__ import annotations

from kgqa_core.runs.answer_traces import steps_of


def test_each_step_begins_where_the_stages_before_it_ended_and_has_the_seconds_of_its_stages() -> None:
    stages = [("questions", 2.0), ("mentions", 1.0), ("linked", 3.0), ("facts/rigel", 4.0), ("answers/rigel", 5.0)]
    clock = steps_of(stages, 100.0)
    assert clock.started == 100.0
    assert clock.steps == {"linking": (102.0, 4.0), "retrieval": (106.0, 4.0), "model": (110.0, 5.0)}
