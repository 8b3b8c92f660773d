"""`kgqa answerability abstain FOLDER`: learn from a benchmark when not to answer."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from flows.cli import _session as common
from flows.cli._options import ProfileOption, SetOption
from flows.cli._session import Session, err, print_json
from kgqa_core.runs.records import newest_run, stage_artifact


def abstain(
    session: Session,
    folder: Annotated[Path, typer.Argument(help="Folder of a benchmark, with statistics.json.")],
    profile: ProfileOption = None,
    settings: SetOption = None,
) -> None:
    """Train retrievers and an abstainer on a benchmark, and measure how well they know when not to answer.

    The run answers `kgqa ask --run …`, which then says what its graph does not hold.
    """
    from kgqa_core.evaluation.abstention import SCORES
    from kgqa_core.report.abstention import terminal_tables

    base = common.choose_profile(profile or "atlas", settings=settings or ())
    chosen_home = session.prepare()
    session.start_logging()
    with err.status("checking the inputs …"):
        from flows.abstention import check, learn_abstention, profile_for

        chosen = profile_for(base)
        check(chosen, folder)
    started = time.monotonic()
    summary = learn_abstention(chosen, str(folder.resolve()))
    record = newest_run(chosen_home, summary["run_id"])
    scores = stage_artifact(record, "abstention_scores").folder
    scored = json.loads((scores / SCORES).read_text(encoding="utf-8"))
    for table in terminal_tables(scored):
        session.console.print(table)
    if session.as_json:
        seconds = round(time.monotonic() - started, 2)
        print_json({"run_id": summary["run_id"], "report": summary["report"], "seconds": seconds, **scored})
    else:
        common.out.print(f"report {summary['report']}", soft_wrap=True, markup=False)
