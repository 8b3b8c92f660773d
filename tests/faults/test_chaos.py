"""A hundred kills at seeded moments; after each the same command ends with the digests of an undisturbed run.

Killed are the flow's process, a worker, PostgreSQL below Prefect and MLflow, and the server of the language model.
The table is written into the folder that KGQA_CHAOS_OUTPUT names, else under pytest's `--basetemp`.  KGQA_CHAOS_KILLS
takes fewer kills, in the same shares; KGQA_CHAOS_SEED draws other moments.
"""

from __future__ import annotations

import random
import statistics
import time
from typing import Any

import pytest

from tests.support.chaos import KILLS, SEED, World, crash_database, last_words, left_over, moments, stage_of, wait_for
from tests.support.chaos_table import Home, Measured, Row, Table
from tests.support.operated import Operated, records
from tests.support.servers import _make_pool

pytestmark = pytest.mark.slow

SHARES = {"flow": 46, "alone": 6, "flow-parts": 10, "part-worker": 10, "prefect-worker": 4, "database": 10, "model": 14}
PER_HOME = 5
"""Tries of one home that are killed; the next is left alone, so that every row ends."""
PARTS = {"kind": "process", "shards": 4, "workers": 2}


def kills_of(name: str) -> int:
    return max(1, round(SHARES[name] * KILLS / 100))


def drawn(name: str) -> random.Random:
    return random.Random(f"{SEED}/{name}")


def kill_the_flow(world: World, row: Row, expected: Measured, number: int, draw: random.Random, **runner: Any) -> None:
    """Homes whose tries are killed at moments spread over the whole run, until there were so many kills."""
    waiting, span = moments(draw, number, 1.0), statistics.median(expected.seconds)
    while waiting:
        home = Home(world, row, expected, runner)
        done = False
        for _ in range(PER_HOME):
            if not waiting or done:
                break
            running = home.start()
            done = running.ended_by(waiting[-1] * span)
            if not done:
                home.hit(running.kill())
                waiting.pop()
                continue
            assert running.end().code == 0, running.end().err[-3000:]
            if len(home.tries) == 1:
                span = time.monotonic() - running.opened  # this machine is faster now than when the run was measured
        home.settle(done=done)


def test_flow_process_killed(world: World, undisturbed: Measured, table: Table) -> None:
    row = table.row("flow process, with servers")
    kill_the_flow(world, row, undisturbed, kills_of("flow"), drawn("flow"))
    table.write()
    assert row.survived == row.kills and row.paid_twice == 0


def test_flow_process_with_temporary_servers_killed(world: World, undisturbed: Measured, table: Table) -> None:
    row = table.row("flow process, without servers")
    alone = World(world.folder, world.model, None)
    try:
        kill_the_flow(alone, row, undisturbed, kills_of("alone"), drawn("alone"))
    finally:
        alone.close()
    table.write()
    assert row.survived == row.kills and row.paid_twice == 0


def test_flow_process_with_a_process_runner_killed(world: World, undisturbed: Measured, table: Table) -> None:
    row = table.row("flow process, parts in worker processes")
    kill_the_flow(world, row, undisturbed, kills_of("flow-parts"), drawn("flow-parts"), **PARTS)
    table.write()
    assert row.survived == row.kills and row.paid_twice == 0


def test_worker_of_the_process_runner_killed(world: World, undisturbed: Measured, table: Table) -> None:
    row, draw = table.row("worker of the process runner"), drawn("part-worker")
    waiting, span = moments(draw, kills_of("part-worker"), 0.5), statistics.median(undisturbed.seconds)
    while waiting:
        home = Home(world, row, undisturbed, PARTS)
        done = False
        for _ in range(PER_HOME):
            if not waiting or done:
                break
            running = home.start()
            wait_for(lambda running=running: running.children() or running.process.poll() is not None, "no workers")
            workers = (
                [] if running.ended_by(time.monotonic() - running.opened + waiting[-1] * span) else running.children()
            )
            if workers:
                home.hit(running.at())
                waiting.pop()
                workers[draw.randrange(len(workers))].kill()
            outcome = running.end()
            done = outcome.code == 0
            if done and workers:
                row.went_on += 1
            elif not done:
                row.said[last_words(outcome)] += 1
                assert "a worker was lost while it made a part of" in outcome.err, outcome.err[-3000:]
            elif len(home.tries) == 1:
                span = time.monotonic() - running.opened
        home.settle(done=done)
    table.write()
    assert row.survived == row.kills and row.paid_twice == 0


def test_database_killed(world: World, undisturbed: Measured, table: Table) -> None:
    row, draw = table.row("PostgreSQL below Prefect and MLflow"), drawn("database")
    assert world.servers is not None
    waiting, span = moments(draw, kills_of("database"), 1.0), statistics.median(undisturbed.seconds)
    while waiting:
        home = Home(world, row, undisturbed)
        running = home.start()
        hit = not running.ended_by(waiting[-1] * span)
        if hit:
            home.hit(running.at())
            waiting.pop()
            crash_database(world.servers)
        else:
            span = time.monotonic() - running.opened
        outcome = running.end()
        if outcome.code == 0:
            row.went_on += hit
        else:
            row.said[last_words(outcome)] += 1
        home.settle(done=outcome.code == 0 and not left_over(home.path, world.servers))
    table.write()
    assert row.survived == row.kills and row.paid_twice == 0


def test_server_of_the_language_model_killed(world: World, undisturbed: Measured, table: Table) -> None:
    row, draw = table.row("server of the language model"), drawn("model")
    number = kills_of("model")
    waiting = moments(draw, number, undisturbed.replies * 0.9)
    while waiting:
        home = Home(world, row, undisturbed)
        running = home.start()
        before, hits = world.model.count(), 0
        for replies in sorted(waiting[-3:]):
            del waiting[-1:]
            wait_for(
                lambda replies=replies, before=before, running=running: (
                    world.model.count() - before >= replies or running.process.poll() is not None
                ),
                "it asked nothing more",
            )
            if running.process.poll() is not None:
                waiting.append(replies)
                continue
            home.hit(running.at())
            hits += 1
            world.model.kill()
            if draw.random() < 0.2:
                running.end()
            else:
                time.sleep(draw.uniform(0.1, 2.0))
            world.model.start()
        outcome = running.end()
        if outcome.code == 0:
            row.went_on += hits
        else:
            row.said[last_words(outcome)] += 1
            assert str(world.model.port) in outcome.err, outcome.err[-3000:]
        home.settle(done=outcome.code == 0)
    table.write()
    assert row.survived == row.kills and row.paid_twice == 0


def test_worker_of_prefect_killed_with_its_run_and_alone(world: World, undisturbed: Measured, table: Table) -> None:
    row, draw = table.row("worker of Prefect, with its run and alone"), drawn("prefect-worker")
    servers = world.servers
    assert servers is not None
    operated, usual = Operated(servers), servers.home
    with servers.client() as client:
        for pool in ("cpu", "gpu"):
            _make_pool(client, pool)
    deployed = operated.deploy(world.profile())
    assert deployed.code == 0, deployed.err[-3000:]
    span = statistics.median(undisturbed.seconds)
    for number, moment in enumerate(moments(draw, kills_of("prefect-worker"), span)):
        home = Home(world, row, undisturbed)
        servers.home = home.path
        servers._start_workers(["cpu"])
        first = operated.start("pipeline", {})
        wait_for(lambda home=home: list((home.path / "runs").glob("*/run.json")), "the worker started nothing")
        time.sleep(moment)
        with servers.client() as client:
            ended = client.read_flow_run(first).state.is_final()
        home.hit("after the run" if ended else stage_of(home.path))
        if number % 2:
            servers._processes["worker-cpu"].kill()
            state = operated.ended(first).state  # it goes on until it writes a line that nobody reads any more
            row.went_on += state.is_completed()
            if not state.is_completed():
                assert state.is_crashed(), state
                row.said[f"{state.name}: {state.message}"] += 1
        servers._kill("worker-cpu")
        servers._start_workers(["cpu"])
        again = operated.run("pipeline", {})
        assert again.state.is_completed(), f"{again.state}:\n{operated.told(again.id)}"
        if not (number % 2 or ended):
            with servers.client() as client:
                state = client.read_flow_run(first).state
            row.said[f"{state.name}: {state.message}"] += 1
            if state.is_completed():  # it was killed when its record was complete, before it told Prefect
                assert state.message == "the server was away when it ended", state
                assert records(home.path)[0]["status"] == "done"
            else:
                assert state.is_crashed() and state.message == "its process died", state
        servers._kill("worker-cpu")
        home.settle(done=True)
    servers.home = usual
    table.write()
    assert row.survived == row.kills and row.paid_twice == 0
