"""The shipped profiles reach the scores that are written down in the files beside this one.

A file names the profile, further settings, where its data lies, and for each score the least that is accepted and the
value that was measured, with the conditions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command import kgqa

BOARDS = sorted(Path(__file__).parent.glob("*.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_profile_reaches_its_scores(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    board: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    settings = list(board.get("settings", ()))
    if board.get("data"):
        folder = request.getfixturevalue("shared_data")
        settings += [f"{key}={value.format(data=folder)}" for key, value in board["data"].items()]
    words = [word for setting in settings for word in ("--set", setting)]
    outcome = kgqa("run", "--profile", board["profile"], "--home", tmp_path, "--json", *words, timeout=3600)
    assert outcome.code == 0, outcome.err[-4000:]
    record = yaml.safe_load((tmp_path / "runs" / outcome.json["run_id"] / "run.json").read_text(encoding="utf-8"))
    short = []
    for row in board["scores"]:
        table = record["aggregates"][row.get("table", "scores")][row["experiment"]][row.get("group", "test")]
        value = table[row["metric"]]["value"]
        if value < row["at_least"]:
            short.append(f"{row['experiment']} {row.get('group', 'test')} {row['metric']}: {value} < {row['at_least']}")
    assert not short, "\n".join(short)


def test_every_board_says_what_was_measured_and_how() -> None:
    assert BOARDS
    for path in BOARDS:
        board = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"profile", "scores", "conditions"} <= set(board), path
        for row in board["scores"]:
            assert row["measured"] >= row["at_least"], (path.name, row)
