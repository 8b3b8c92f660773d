"""`kgqa answerability abstain FOLDER`: learn from a benchmark when not to answer."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from flows.cli import _session as session
from flows.cli._options import HomeOption, JsonOption, ProfileOption, SetOption, VerboseOption
from flows.cli._session import err, print_json


def abstain(
    folder: Annotated[Path, typer.Argument(help="Folder of a benchmark, with statistics.json.")],
    profile: ProfileOption = None,
    settings: SetOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Train retrievers and an abstainer on a benchmark, and measure how well they know when not to answer.

    The run can be asked with `kgqa ask --run …`, which then says what its graph does not hold.
    """
    from kgqa_core.evaluation.abstention import SCORES
    from kgqa_core.report.abstention import terminal_tables

    base = session.choose_profile(profile or "atlas", settings=settings or ())
    chosen_home = session.prepare(home, verbose=verbose)
    session.start_logging(verbose=verbose)
    with err.status("checking the inputs …"):
        from flows.abstention import check, learn_abstention, profile_for

        chosen = profile_for(base)
        check(chosen, folder)
    started = time.monotonic()
    summary = learn_abstention(chosen, str(folder.resolve()))
    record = session.newest_run(chosen_home, summary["run_id"])
    scores = session.stage_artifact(record, "abstention_scores").folder
    found = json.loads((scores / SCORES).read_text(encoding="utf-8"))
    for table in terminal_tables(found):
        (err if as_json else session.out).print(table)
    if as_json:
        seconds = round(time.monotonic() - started, 2)
        print_json({"run_id": summary["run_id"], "report": summary["report"], "seconds": seconds, **found})
    else:
        session.out.print(f"report {summary['report']}", soft_wrap=True, markup=False)
