"""`kgqa ask`, `answer` and `evaluate`: questions to the system that a run made, and scores of anybody's answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli import _session as common
from flows.cli._graph import GraphChoice, graph_or_run
from flows.cli._options import ForceOption, SystemChoice, TracedSystemChoice
from flows.cli._served import ask_server
from flows.cli._session import JsonSession, Session, err, print_json
from kgqa_core.runs.records import answering_run, stage_artifact
from kgqa_core.store.artifacts import Home
from kgqa_core.types import ROLES

if TYPE_CHECKING:
    from kgqa_core.runs.finished import SystemParts
    from kgqa_core.system import System


def ask(
    session: Session,
    choice: TracedSystemChoice,
    graph: GraphChoice,
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
    own_process: Annotated[
        bool, typer.Option("--own-process", help="Load the system here, even where `kgqa serve` answers for this home.")
    ] = False,
) -> None:
    """Answer one question from a graph file, or with what a run trained, and show the facts behind it.

    With --kg the graph is built once and answers without training.  Without it the champion answers, and without a
    champion the newest finished run, as in `kgqa serve`.
    """
    chosen, record = graph_or_run(session, graph, choice.run_id)
    from kgqa_core.report.console import ask_tables

    dialogue = [(ROLES[index % len(ROLES)], text) for index, text in enumerate(turn or ())]
    request = {
        "question": question,
        "topics": topic or [],
        "dialogue": [{"role": role, "content": text} for role, text in dialogue],
        "knowledge": choice.knowledge,
        "min_confidence": choice.min_confidence,
    }
    here = own_process or choice.trace_share is not None  # a server traces by an option of its own
    result = None if here else ask_server(chosen.root, record["run_id"], request)
    if result is None:
        result = _ask_here(chosen, record, choice, question, topic or (), dialogue)
    if session.as_json:
        print_json(result)
        return
    for part in ask_tables(result):
        common.out.print(part)


def _ask_here(
    home: Home,
    record: dict[str, Any],
    choice: TracedSystemChoice,
    question: str,
    topics: Sequence[str],
    dialogue: Sequence[tuple[str, str]],
) -> dict[str, Any]:
    """The answer of a system that is loaded in this process."""
    from tasks.tracking.traces import close_tracer, open_tracer

    started = time.monotonic()
    parts = _parts(home, record, choice, linked=not topics)
    share = parts.profile.tracking.trace_share if choice.trace_share is None else choice.trace_share
    tracer, traces = open_tracer(home, share, record, "ask"), dict[str, str]()
    with err.status("loading the graph, the retriever and the model …"):
        system = _opened(home, parts)
        system.tracer = tracer
        loaded = time.monotonic()
        reply = system.ask(question, topics, dialogue, traces)
        answered = time.monotonic()
        close_tracer(tracer)
    return {
        **reply.to_dict(),
        **({"trace": traces[reply.id]} if reply.id in traces else {}),
        "seconds": round(answered - loaded, 3),
        "load_seconds": round(loaded - started, 3),
    }


def open_system(home: Home, record: dict[str, Any], choice: SystemChoice) -> System:
    """The system of a run or graph, with the home's corrections."""
    return _opened(home, _parts(home, record, choice))


def _parts(home: Home, record: dict[str, Any], choice: SystemChoice, *, linked: bool = True) -> SystemParts:
    """What a system is opened from.  linked: whether questions come without topics."""
    from kgqa_core.runs.finished import system_parts, with_mentions
    from tasks.secrets import load_secrets

    parts = system_parts(home, record, choice.knowledge, choice.min_confidence)
    load_secrets(parts.profile)
    if parts.reads_graph and linked:
        parts = with_mentions(parts, common.mentions_folder(home, stage_artifact(record, "kg"), record))
    return parts


def _opened(home: Home, parts: SystemParts) -> System:
    from kgqa_core.serving.feedback import confirmed_questions
    from kgqa_core.system import System

    system = System.open(parts)
    system.confirmed = partial(confirmed_questions, home)
    return system


def answer(
    session: Session,
    choice: TracedSystemChoice,
    graph: GraphChoice,
    questions: Annotated[Path, typer.Option("--questions", help="Question file; gold answers are not needed.")],
    out: Annotated[Path, typer.Option("--out", help="File to write, one JSON object a question.")],
    force: ForceOption = False,
) -> None:
    """Answer a file of questions from a graph file (--kg), or with what a run trained."""
    if graph.kg:
        result = _answer_here(session, graph, choice, questions, out, force=force)
    else:
        chosen, _ = session.working_homes()
        session.start_logging()
        graph.sections()
        record = answering_run(chosen, choice.run_id)
        from flows.answer import answer_file

        result = answer_file(
            record, questions, out, choice.knowledge, choice.min_confidence, force=force, trace_share=choice.trace_share
        )
    if session.as_json:
        print_json(result)
    else:
        common.out.print(f"{result['answered']:,} answers in {out}; {len(result['rejects'])} questions were rejected")
        for reject in result["rejects"][:10]:
            common.out.print(f"  {reject['id']}: {reject['reason']}")


def _answer_here(
    session: Session, graph: GraphChoice, choice: TracedSystemChoice, questions: Path, out: Path, *, force: bool
) -> dict[str, Any]:
    """Answer a file from graph files, in this process alone; the answers are written whole or not at all."""
    from kgqa_core.store.outputs import claim_file

    claim = claim_file(out, inputs=(questions, *(graph.kg or ())), force=force)
    home, record = graph_or_run(session, graph, choice.run_id)
    from kgqa_core.config import QuestionsOptions
    from kgqa_core.datasets.load import load
    from kgqa_core.llm.models import Models
    from kgqa_core.question_file import answer_questions, write_answers
    from kgqa_core.runs.finished import mentions_of_run, system_parts, with_mentions
    from kgqa_core.serving.feedback import confirmed_questions
    from kgqa_core.store.scratch import scratch_folder
    from kgqa_core.workspace import Workspace
    from tasks.engine.progress import StageMonitor

    parts = system_parts(home, record, choice.knowledge, choice.min_confidence)
    parts = with_mentions(parts, mentions_of_run(home, record))
    options = QuestionsOptions(name=questions.stem, source="jsonl", path=str(questions), unscored=True)
    with scratch_folder(home.root / "tmp", "answer") as folder, StageMonitor(out.name, lambda rows: None) as monitor:
        read, answered = Workspace(folder / "read", monitor=monitor), Workspace(folder / "answered", monitor=monitor)
        for workspace in (read, answered):
            workspace.out.mkdir()
        load(read, kg=parts.kg, options=options, seed=parts.profile.seed)
        models, confirmed = Models(parts.profile.llm), partial(confirmed_questions, home)
        answer_questions(answered, questions=read.out, parts=parts, models=models, confirmed=confirmed)
        return write_answers(claim, out, read.out, answered.out, record["run_id"])


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
