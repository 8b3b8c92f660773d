"""`kgqa run`, `forecast`, `refresh` and `report`: runs of the pipeline, and what they gave."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli import _session as common
from flows.cli._options import ProfileChoice, RunOption
from flows.cli._runs import show, summarise
from flows.cli._session import HomeTableSession, Session, err, print_json
from flows.cli.answerability import show_evaluation
from kgqa_core.config import Profile, parse_settings
from kgqa_core.config.questions import MOST_FOLDS
from kgqa_core.errors import FailedSets, InputError
from kgqa_core.runs.records import newest_run
from kgqa_core.store.artifacts import Home
from kgqa_core.store.home import read_runs


def run(
    session: Session,
    choice: ProfileChoice,
    folds: Annotated[
        int,
        typer.Option(
            "--folds", min=1, max=MOST_FOLDS, help="Cross-validate: so many runs, each tested on other topics."
        ),
    ] = 1,
) -> None:
    """Run the pipeline on a profile, or on your own graph and questions."""
    chosen = common.chosen_profile(choice)
    if folds > 1:
        _cross_validate(chosen, folds, session)
    else:
        _run(chosen, session)


def fold_profiles(profile: Profile, folds: int) -> list[Profile]:
    """A profile for each fold; its question set has a name of its own, so that no fold contends with another."""
    return [
        profile.model_copy(
            update={
                "questions": profile.questions.model_copy(
                    update={"name": f"{profile.questions.name}-fold{fold + 1}of{folds}", "folds": folds, "fold": fold}
                )
            }
        )
        for fold in range(folds)
    ]


def _cross_validate(profile: Profile, folds: int, session: Session) -> None:
    """Run each fold, then show the scores over the questions of all."""
    home = session.begin(profile)
    with err.status("starting Prefect …"):
        from flows.pipeline import pipeline
    from kgqa_core.evaluation.cross_validation import pool_folds
    from kgqa_core.report.tables import score_tables
    from kgqa_core.store.artifacts import ArtifactRef

    runs, folders = [], []
    for fold_profile in fold_profiles(profile, folds):
        summary = pipeline(fold_profile)
        record = newest_run(home, summary["run_id"])
        runs.append(record["run_id"])
        [scores] = [stage["artifact"] for stage in record["stages"] if stage["name"] == "scores"]
        folders.append(ArtifactRef.model_validate(scores).folder)
        session.console.print(f"fold {len(runs)} of {folds}: run {record['run_id']}", highlight=False)
    pooled = pool_folds(folders, samples=profile.evaluation.bootstrap, seed=profile.seed)
    for table in score_tables(pooled):
        session.console.print(table)
    if session.as_json:
        print_json({"runs": runs, **pooled})


def _run(profile: Profile, session: Session) -> None:
    started = time.monotonic()
    chosen = session.begin(profile)
    if profile.further_questions:
        with err.status("starting Prefect …"):
            from flows.table import whole_table
        _table(chosen, lambda: whole_table(profile), started, session)
        return
    if profile.answerability.published:
        with err.status("starting Prefect …"):
            from flows.answerability import run_published
        show_evaluation(run_published(profile), started, session)
        return
    with err.status("starting Prefect …"):
        from flows.pipeline import pipeline
    summary = pipeline(profile)
    record = newest_run(chosen, summary["run_id"])
    show(record, seconds=time.monotonic() - started, to_stderr=session.as_json)
    if session.as_json:
        print_json(summarise(record))


def _table(home: Home, make: Callable[[], dict[str, Any]], started: float, session: Session) -> None:
    """Make a run of several question sets and show it, also where some of them failed; these are raised then."""
    failed = None
    try:
        run_id = make()["run_id"]
    except FailedSets as fault:
        if fault.run_id is None:
            raise
        failed, run_id = fault, fault.run_id
    record = newest_run(home, run_id, whole=True)
    show(record, seconds=time.monotonic() - started, to_stderr=session.as_json)
    if session.as_json:
        print_json(summarise(record))
    if failed is not None:
        raise failed


def forecast(
    session: Session,
    choice: ProfileChoice,
    pilot: Annotated[
        int, typer.Option("--pilot", min=0, help="Questions of each stage to send first; the run reuses the replies.")
    ] = 0,
) -> None:
    """Say what a run would ask of language models: calls, tokens, cost and time, less what is already paid.

    Stages that call no model are run and cached.  With --pilot a few questions are sent, and paid, to measure by.
    """
    chosen = common.chosen_profile(choice)
    session.prepare()
    session.start_logging()
    from dataclasses import asdict

    from flows.forecast import forecast as plan_run
    from kgqa_core.report.forecast import forecast_table

    plans = plan_run(chosen, pilot)
    session.console.print(forecast_table(plans, chosen.llm.budget))
    if session.as_json:
        print_json({"stages": [asdict(plan) for plan in plans]})


def refresh(session: Session, choice: ProfileChoice) -> None:
    """Take a newer dump: update the graph, train again only what must be, answer, score, promote or not.

    Goes on from the champion of the same graph and questions.  The same command on an unchanged dump does nothing.
    """
    chosen = common.chosen_profile(choice)
    named = parse_settings(choice.settings or ())
    from_files = [("kg", choice.kg), ("questions", choice.questions)]
    _check_names(session.home, chosen, [key for key, files in from_files if files and "name" not in named.get(key, {})])
    started = time.monotonic()
    home = session.begin(chosen)
    with err.status("starting Prefect …"):
        from flows.refresh import refresh as follow
        from flows.table import whole_table
    if chosen.further_questions:
        _table(home, lambda: whole_table(chosen, newer_dump=True), started, session)
        return
    summary = follow(chosen)
    decision, record = summary["refresh"], newest_run(home, summary["run_id"])
    if not decision["nothing"]:
        show(record, seconds=time.monotonic() - started, to_stderr=session.as_json)
    session.console.print(decision["why"], markup=False, soft_wrap=True)
    if session.as_json:
        print_json(summarise(record) | {"refresh": decision})


def _check_names(folder: Path | None, profile: Profile, from_files: Sequence[str]) -> None:
    """Raise InputError where a refresh would start anew since the name of a file is not that of the earlier runs.

    from_files: sections whose names are those of files.
    """
    home = Home(folder) if folder is not None else Home.current()
    wanted = {"kg": profile.kg.name, "questions": profile.questions.name}
    known: dict[str, str] = {}
    for record in read_runs(home.root):
        stored = record.get("profile")
        if record.get("status") != "done" or record.get("sets") or not isinstance(stored, dict):
            continue
        names = {key: stored[key]["name"] for key in wanted}
        if names["kg"] == wanted["kg"] and names["questions"] in profile.set_names:
            return
        if all(names[key] == wanted[key] for key in wanted if key not in from_files):
            differing = " ".join(f"--set {key}.name={name}" for key, name in names.items() if name != wanted[key])
            known[differing] = f"{differing} (graph files {', '.join(stored['kg'].get('files') or ())})"
    if known:
        raise InputError(
            f"the home {home.root} has no run of graph {wanted['kg']!r} with questions {wanted['questions']!r}: "
            "these names are those of the files, and earlier runs had others. To go on from an earlier run, add "
            f"{', or '.join(list(known.values())[-5:])}. To start a new system, use `kgqa run`"
        )


def report(session: HomeTableSession, run_id: RunOption = None) -> None:
    """Show the scores of a run and where its report lies."""
    chosen = session.look()
    record = newest_run(chosen, run_id, whole=True)
    if session.as_json:
        print_json(summarise(record))
    else:
        show(record)
