"""`kgqa refresh`: a newer dump into a system that is already there."""

from __future__ import annotations

import time

from flows.cli import _session as common
from flows.cli._options import (
    AnswererOption,
    GraphFilesOption,
    ProfileOption,
    QuestionsOption,
    SetOption,
)
from flows.cli._session import Session, err, print_json


def refresh(
    session: Session,
    profile: ProfileOption = None,
    kg: GraphFilesOption = None,
    questions: QuestionsOption = None,
    answerer: AnswererOption = None,
    settings: SetOption = None,
) -> None:
    """Take a newer dump: update the graph, train again only what must be, answer, score, promote or not.

    Goes on from the champion of the same graph and questions.  The same command on an unchanged dump does nothing.
    """
    chosen = common.choose_profile(profile, kg or (), questions, answerer, settings or ())
    started = time.monotonic()
    place = session.begin(chosen)
    with err.status("starting Prefect …"):
        from flows.cli._runs import show, summarise
        from flows.refresh import refresh as follow
    summary = follow(chosen)
    decision, record = summary["refresh"], common.newest_run(place, summary["run_id"])
    if not decision["nothing"]:
        show(record, seconds=time.monotonic() - started, to_stderr=session.as_json)
    session.console.print(decision["why"], markup=False, soft_wrap=True)
    if session.as_json:
        print_json(summarise(record) | {"refresh": decision})
