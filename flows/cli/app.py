"""`kgqa`: the commands.  Each one reads its options, calls a flow or the library, and shows what came out.

Exit codes: 0 done, 1 failure, 2 bad input or usage, 130 Ctrl-C, 143 SIGTERM.  With `--json` the last line of stdout is
one JSON object; logs, progress and tables for people go to stderr.  Heavy libraries are imported by the command that
needs them.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from flows.cli import _session as common
from flows.cli._options import (
    AnswererOption,
    ForceOption,
    GraphFilesOption,
    HomeOption,
    JsonOption,
    KnowledgeOption,
    MinConfidenceOption,
    ProfileOption,
    QuestionsOption,
    RunOption,
    SetOption,
    VerboseOption,
)
from flows.cli._runs import show, summarise
from flows.cli._session import HomeSession, JsonSession, Session, err, print_json
from flows.cli.abstention import abstain
from flows.cli.answerability import answerability_app
from flows.cli.cache import cache_app
from flows.cli.compare import compare
from flows.cli.faults import run_command
from flows.cli.home import gc as gc_command
from flows.cli.home import home as home_command
from flows.cli.kg import kg_app
from flows.cli.link import link
from flows.cli.ltgen import ltgen_app
from flows.cli.refresh import refresh
from flows.cli.usage import CommandApp
from kgqa_core.config import Profile
from kgqa_core.spool import spooling

app = CommandApp(
    name="kgqa",
    help="Answer questions from a knowledge graph that you own, and measure how far to trust the answers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(kg_app, name="kg")
app.add_typer(cache_app, name="cache")
app.add_typer(ltgen_app, name="ltgen")
app.add_typer(answerability_app, name="answerability")
answerability_app.command()(abstain)
app.command("home")(home_command)
app.command("gc")(gc_command)
app.command()(link)
app.command("compare")(compare)
app.command()(refresh)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        common.out.print(f"kgqa {version('kgqa')}", highlight=False)
        raise typer.Exit


@app.callback()
def kgqa(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Answer questions from a knowledge graph that you own, and measure how far to trust the answers."""
    context.with_resource(spooling())


@app.command()
def demo(session: Session, settings: SetOption = None) -> None:
    """Run the whole pipeline on the bundled graph Atlas: graph, retriever, answers, scores, report."""
    profile = common.choose_profile("atlas", settings=settings or ())
    _run(profile, session)


@app.command()
def run(
    session: Session,
    profile: ProfileOption = None,
    kg: GraphFilesOption = None,
    questions: QuestionsOption = None,
    answerer: AnswererOption = None,
    settings: SetOption = None,
) -> None:
    """Run the pipeline on a profile, or on your own graph and questions."""
    chosen = common.choose_profile(profile, kg or (), questions, answerer, settings or ())
    _run(chosen, session)


@app.command()
def forecast(
    session: Session,
    profile: ProfileOption = None,
    kg: GraphFilesOption = None,
    questions: QuestionsOption = None,
    answerer: AnswererOption = None,
    pilot: Annotated[
        int, typer.Option("--pilot", min=0, help="Questions of each stage to ask endpoints first; kept for the run.")
    ] = 0,
    settings: SetOption = None,
) -> None:
    """Say what a run would ask of language models: calls, tokens, cost and time, less what is already paid.

    Stages that ask no model are run and kept.  With --pilot a few questions are asked, and paid, to measure by.
    """
    chosen = common.choose_profile(profile, kg or (), questions, answerer, settings or ())
    session.prepare()
    session.start_logging()
    from dataclasses import asdict

    from flows.forecast import forecast as plan_run
    from kgqa_core.report.forecast import forecast_table

    plans = plan_run(chosen, pilot)
    session.console.print(forecast_table(plans, chosen.llm.budget))
    if session.as_json:
        print_json({"stages": [asdict(plan) for plan in plans]})


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            help="Entity key or label that the question is about; found in the question when absent.",
            show_default=False,
        ),
    ] = None,
    turn: Annotated[
        list[str] | None,
        typer.Option(
            "--turn",
            help="An earlier turn of the dialogue, oldest first, by the user and the agent in turns; repeat it.",
            show_default=False,
        ),
    ] = None,
    knowledge: KnowledgeOption = None,
    min_confidence: MinConfidenceOption = None,
    run_id: RunOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Answer one question with the newest run's graph, retriever and model, and show the facts behind it."""
    chosen = common.look(home, verbose=verbose)
    common.start_logging(verbose=verbose)
    record = common.newest_run(chosen, run_id)
    from kgqa_core.report.console import ask_tables
    from kgqa_core.runs.finished import system_parts, with_mentions
    from kgqa_core.system import System
    from kgqa_core.types import ROLES
    from tasks.engine.secrets import load_secrets

    started = time.monotonic()
    parts = system_parts(chosen, record, knowledge, min_confidence)
    load_secrets(parts.profile)
    if parts.reads_graph and not topic:
        graph = common.stage_artifact(record, "kg")
        parts = with_mentions(parts, common.mentions_folder(chosen, graph, record))
    with err.status("loading the graph, the retriever and the model …"):
        system = System.open(parts)
        loaded = time.monotonic()
        dialogue = [(ROLES[place % len(ROLES)], text) for place, text in enumerate(turn or ())]
        reply = system.ask(question, topic or (), dialogue)
    result = {
        **reply.to_json(),
        "seconds": round(time.monotonic() - loaded, 3),
        "load_seconds": round(loaded - started, 3),
    }
    if as_json:
        print_json(result)
        return
    for part in ask_tables(result):
        common.out.print(part)


@app.command()
def answer(
    questions: Annotated[Path, typer.Option("--questions", help="Question file; gold answers are not needed.")],
    out: Annotated[Path, typer.Option("--out", help="File to write, one JSON object a question.")],
    knowledge: KnowledgeOption = None,
    min_confidence: MinConfidenceOption = None,
    run_id: RunOption = None,
    force: ForceOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Answer a file of questions with the newest run's graph, retriever and model."""
    chosen = common.prepare(home, verbose=verbose)
    common.start_logging(verbose=verbose)
    record = common.newest_run(chosen, run_id)
    from flows.answer import answer_file

    result = answer_file(record, questions, out, knowledge, min_confidence, force=force)
    if as_json:
        print_json(result)
    else:
        common.out.print(f"{result['answered']:,} answers in {out}; {len(result['rejects'])} questions were rejected")
        for reject in result["rejects"][:10]:
            common.out.print(f"  {reject['id']}: {reject['reason']}")


@app.command()
def evaluate(
    session: JsonSession,
    predictions: Annotated[Path, typer.Option("--predictions", help='JSON lines: {"id": …, "prediction": …}.')],
    questions: Annotated[Path, typer.Option("--questions", help="Question file with gold answers.")],
    kg: Annotated[
        Path | None,
        typer.Option("--kg", help="Graph folder, for names and aliases of answers given as keys.", show_default=False),
    ] = None,
) -> None:
    """Score somebody's answers with our metrics."""
    from kgqa_core.evaluation.predictions import evaluate_predictions
    from kgqa_core.report.tables import score_tables

    result = evaluate_predictions(predictions, questions, kg=kg)
    for table in score_tables(result):
        session.console.print(table)
    if session.as_json:
        print_json(result)


@app.command()
def datasets(
    session: JsonSession,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Folder to look for data sets in.", show_default=False)
    ] = None,
) -> None:
    """List the benchmarks of the field: what they are, where to get them, their licence, what is found here."""
    from rich.table import Table

    from kgqa_core.datasets.registry import catalogue

    rows = catalogue(folder)
    if session.as_json:
        print_json({"datasets": rows})
        return
    table = Table(title="Known data sets", title_justify="left", show_lines=True)
    for name in ("data set", "what it is", "where to get it", "found"):
        table.add_column(name, overflow="fold")
    for row in rows:
        loader = f"\nsource={row['loader']}" if row["loader"] else ""
        what = f"{row['about']}\n{row['questions']} questions; graph: {row['graph']}"
        table.add_row(f"{row['name']}{loader}", what, f"{row['where']}\n{row['licence']}", row.get("found") or "–")
    common.out.print(table)


@app.command()
def report(session: HomeSession, run_id: RunOption = None) -> None:
    """Show the scores of a run and where its report lies."""
    chosen = session.look()
    record = common.newest_run(chosen, run_id)
    if session.as_json:
        print_json(summarise(record))
    else:
        show(record)


@app.command()
def ui(
    home: HomeOption = None,
    prefect_port: Annotated[int, typer.Option(help="Port of the Prefect UI.")] = 4200,
    mlflow_port: Annotated[int, typer.Option(help="Port of the MLflow UI.")] = 5000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="Further name by which browsers reach the UIs, such as that of a proxy; may be repeated."),
    ] = None,
) -> None:
    """Start the Prefect and MLflow UIs on this machine and print their links; Ctrl-C stops both."""
    chosen = common.prepare(home)
    from flows.cli.ui import serve

    serve(chosen, host, prefect_port, mlflow_port, allowed_host or [])


def _run(profile: Profile, session: Session) -> None:
    started = time.monotonic()
    chosen = session.begin(profile)
    with err.status("starting Prefect …"):
        from flows.pipeline import pipeline
    summary = pipeline(profile)
    record = common.newest_run(chosen, summary["run_id"])
    show(record, seconds=time.monotonic() - started, to_stderr=session.as_json)
    if session.as_json:
        print_json(summarise(record))


def main() -> None:
    """Entry point where the commands are imported already; `flows.cli.start` is that of `kgqa`."""
    sys.exit(run_command(app, verbose="--verbose" in sys.argv or "-v" in sys.argv))
