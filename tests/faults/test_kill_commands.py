"""Every long command killed at seeded moments, half of them in its first five seconds.

After each kill nothing that the command started lives or holds its stdout open, and no half result can be seen; the
same command again ends with the digests of an undisturbed one, pays for no reply twice and sweeps what the killed one
left.  KGQA_COMMAND_KILLS is the number of kills of the slow whole, KGQA_COMMAND_SEED draws other moments, and the rows
are added to the file that KGQA_COMMAND_OUTPUT names, from which `make bench-docs` writes the table
in docs/operations.md.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chaos import Model
from tests.support.kill_cases import COMMANDS, NEEDS, Inputs
from tests.support.kill_commands import Row, Series, write_rows
from tests.support.prefect_server import shared_environment

KILLS = int(os.environ.get("KGQA_COMMAND_KILLS", "144"))
SEED = int(os.environ.get("KGQA_COMMAND_SEED", "5"))
OUTPUT = os.environ.get("KGQA_COMMAND_OUTPUT")
COMMIT = os.environ.get("KGQA_COMMAND_COMMIT", "")
SIGNALS = ("SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    given = os.environ.get("KGQA_COMMAND_INPUTS")
    return Inputs(Path(given) if given else tmp_path_factory.mktemp("kill-inputs"))


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    with Model(
        tmp_path_factory.mktemp("model") / "paid", latency=0.1, reply="tests.support.kill_cases:reply"
    ) as running:
        yield running


def series(name: str, inputs: Inputs, model: Model | None, folder: Path, seed: int = SEED) -> Series:
    for need in NEEDS[name.split()[0]]:
        inputs.make(need)
    command = COMMANDS[name]
    env = shared_environment() if command.flow else {}
    return Series(command, folder, inputs.folder, model=model, env=env, seed=seed)


def kills_of(name: str) -> int:
    """The kills of a command; those that take a second or two have twice as many as flows and servers."""
    weights = {one.name: 1 if one.flow or one.stays or one.pays else 2 for one in COMMANDS.values()}
    return max(1, round(KILLS * weights[name] / sum(weights.values())))


def check(rows: list[Row]) -> None:
    for row in rows:
        assert row.survived == row.kills, row
        assert not (row.half or row.orphans or row.held or row.slow or row.left or row.lost or row.paid_twice), row


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_any_moment_the_command_ends_as_if_undisturbed(
    name: str, inputs: Inputs, model: Model, tmp_path: Path
) -> None:
    one = series(name, inputs, model, tmp_path)
    rows = one.run(kills_of(name), SIGNALS)
    if OUTPUT:
        conditions = {"seconds": round(one.seconds, 1), "replies": one.replies, "ended_first": one.ended_first}
        when = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M}"
        machine = {"seed": SEED, "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "commit": COMMIT}
        write_rows(Path(OUTPUT), rows, {"command": name, "when": when, **conditions, **machine})
    print(
        f"\n{name}: {one.seconds:.1f} s undisturbed, {one.replies} replies, {one.ended_first} ended before their kill"
    )
    for row in rows:
        print(f"  {row}")
    check(rows)


@pytest.mark.parametrize(
    "name",
    [
        "kg export nt",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("kg subset", "cache export", "kg diff")),
    ],
)
def test_a_few_kills_of_a_quick_command_mostly_while_it_writes(name: str, inputs: Inputs, tmp_path: Path) -> None:
    check(series(name, inputs, None, tmp_path).run(3, shares=(0.34, 0.66)))
