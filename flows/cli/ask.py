"""`kgqa ask`, `answer` and `evaluate`: questions to the system that a run made, and scores of anybody's answers."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli import _session as common
from flows.cli._graph import GraphChoice, graph_or_run
from flows.cli._options import ForceOption, KeysOption, SystemChoice, TracedSystemChoice
from flows.cli._served import ask_server
from flows.cli._session import AskSession, JsonSession, Session, TableSession, err, print_json
from flows.cli.answerability import score_published
from kgqa_core.errors import InputError, KgqaError
from kgqa_core.report.terminal import VisibleText
from kgqa_core.runs.records import answering_run, stage_artifact
from kgqa_core.store.artifacts import Home
from kgqa_core.types import OFFERED, ROLES

if TYPE_CHECKING:
    from kgqa_core.runs.finished import SystemParts
    from kgqa_core.system import System


def ask(
    session: AskSession,
    choice: TracedSystemChoice,
    graph: GraphChoice,
    question: Annotated[
        str | None,
        typer.Argument(
            help="The question, in quotes; - reads questions from stdin, one a line, as does a pipe.",
            show_default=False,
        ),
    ] = None,
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
    reading: Annotated[
        int,
        typer.Option(
            "--reading",
            min=0,
            max=OFFERED,
            help="Number of the reading to answer, of an unsure question.",
            show_default=False,
        ),
    ] = 0,
    show_keys: KeysOption = False,
) -> None:
    """Answer one question from a graph file, or with what a run trained, and show the facts behind it.

    With --kg the graph is built once and answers without training.  Without it the champion answers, and without a
    champion the newest finished run, as in `kgqa serve`; where that runs for this home, it is asked.
    """
    questions = [question] if question is not None and question != "-" else _questions_of_stdin(question)
    asker = _Asker(session, choice, graph, topic or (), turn or (), reading, own_process=own_process)
    results: list[dict[str, Any]] = []
    with contextlib.closing(asker):
        for text in questions:
            try:
                results.append(asker.ask(text))
            except InputError as fault:
                if len(questions) == 1:
                    raise
                results.append({"question": text, "answer": None, "answers": [], "reject": str(fault)})
            if session.as_json:
                print_json(results[-1])
            elif not session.as_csv:
                _show(results[-1], titled=len(questions) > 1, show_keys=show_keys)
    if session.as_csv:
        common.print_rows("", [_row(result) for result in results])
    if refused := sum("reject" in result for result in results):
        raise InputError(f"{refused:,} of {len(results):,} questions were refused")


def _row(result: dict[str, Any]) -> dict[str, Any]:
    """Question, answer, confidence, and why there is none: a row of CSV."""
    from kgqa_core.answering.reply import refusal_text

    sure, why = result.get("confidence"), result.get("reject") or refusal_text(result)
    row = {"question": result["question"], "answer": result["answer"] or "", "confidence": "" if sure is None else sure}
    return row | {"why": "" if result["answer"] is not None else why}


def _questions_of_stdin(word: str | None) -> list[str]:
    """The lines of stdin that are not empty.  Raises InputError where there is none, or nobody named stdin."""
    if word is None and sys.stdin.isatty():
        raise InputError("give a question in quotes, or - and questions on stdin, one a line")
    try:
        lines = sys.stdin.buffer.read().decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as fault:
        raise InputError(f"stdin is not UTF-8 (byte {fault.start}: {fault.object[fault.start]:#x})") from None
    if not (questions := [line.strip() for line in lines if line.strip()]):
        raise InputError("there is no question: give one in quotes, or questions on stdin, one a line")
    return questions


def _show(result: dict[str, Any], *, titled: bool, show_keys: bool) -> None:
    """Print an answer, with its question where there are several."""
    from kgqa_core.report.console import ask_tables

    if titled:
        common.out.print(VisibleText(result["question"], style="bold"), soft_wrap=True)
    if "reject" in result:
        common.out.print(VisibleText(f"refused: {result['reject']}"), soft_wrap=True)
        return
    if result.get("form_named") and not show_keys:
        result = result | {"form": result["form_named"]}
    for part in ask_tables(result):
        common.out.print(part)


class _Asker:
    """Answers questions by the server of the home, or by a system that is loaded once, at the first that needs it."""

    def __init__(
        self,
        session: JsonSession,
        choice: TracedSystemChoice,
        graph: GraphChoice,
        topics: Sequence[str],
        turns: Sequence[str],
        reading: int,
        *,
        own_process: bool,
    ) -> None:
        self.choice, self.topics, self.reading = choice, topics, reading
        self.dialogue = [(ROLES[index % len(ROLES)], text) for index, text in enumerate(turns)]
        # a server traces by an option of its own
        self.served = not own_process and choice.trace_share is None
        self.record: dict[str, Any] | None = None
        if graph.kg or choice.run_id is not None or not self.served:
            self.home, self.record = graph_or_run(session, graph, choice.run_id)
        else:
            graph.sections()
            self.home = session.look()
            session.start_logging()
        self.run = None if self.record is None else str(self.record["run_id"])
        self.system: System | None = None
        self.load_seconds = 0.0

    def ask(self, question: str) -> dict[str, Any]:
        """The answer as JSON has it.  Raises InputError for a question that cannot be asked."""
        if self.served:
            request = {
                "question": question,
                "topics": [*self.topics],
                "dialogue": [{"role": role, "content": text} for role, text in self.dialogue],
                "knowledge": self.choice.knowledge,
                "min_confidence": self.choice.min_confidence,
                "reading": self.reading,
            }
            if (reply := ask_server(self.home.root, self.run, request, _note)) is not None:
                self._compare(reply["run"])
                return reply
            self.served = False
        return self._ask_here(question)

    def _compare(self, run: str) -> None:
        """Say it where the server answers with another run than this command would alone."""
        if self.run is None:
            self.run = run
            with contextlib.suppress(KgqaError):
                if (own := answering_run(self.home)["run_id"]) != run:
                    _note(f"the server of this home answers with run {run}; --own-process asks {own}")

    def _ask_here(self, question: str) -> dict[str, Any]:
        from tasks.tracking.traces import open_tracer

        if self.record is None:
            self.record = answering_run(self.home)
        if self.system is None:
            started = time.monotonic()
            parts = _parts(self.home, self.record, self.choice, linked=not self.topics)
            share = self.choice.trace_share
            tracer = open_tracer(self.home, parts.profile.tracking.trace_share if share is None else share,
                                 self.record, "ask")  # fmt: skip
            with err.status("loading the graph, the retriever and the model …"):
                self.system = _opened(self.home, parts)
            self.system.tracer = tracer
            self.system = self.system.at_reading(self.reading) if self.reading else self.system
            self.load_seconds = time.monotonic() - started
        started, traces = time.monotonic(), dict[str, str]()
        with err.status("answering …"):
            reply = self.system.ask(question, self.topics, self.dialogue, traces)
        return {
            **reply.to_dict(),
            **({"trace": traces[reply.id]} if reply.id in traces else {}),
            "seconds": round(time.monotonic() - started, 3),
            "load_seconds": round(self.load_seconds, 3),
        }

    def close(self) -> None:
        """Keep the traces that were made."""
        from tasks.tracking.traces import close_tracer

        if self.system is not None:
            close_tracer(self.system.tracer)


def _note(text: str) -> None:
    err.print(VisibleText(text), highlight=False, soft_wrap=True)


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
    questions: Annotated[
        Path,
        typer.Option("--questions", help="Question file without need of gold answers, or a .txt of a question a line."),
    ],
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
        kinds = "".join(f", {number:,} {kind}" for kind, number in result["declined"].items())
        common.out.print(
            f"{result['answered']:,} answers in {out}{kinds}; {len(result['rejects'])} questions were rejected"
        )
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
    session: TableSession,
    predictions: Annotated[
        Path,
        typer.Option(
            "--predictions", help='JSON lines: {"id": …, "prediction": …}; with --benchmark as its evaluation reads.'
        ),
    ],
    questions: Annotated[
        Path | None, typer.Option("--questions", help="Question file with gold answers.", show_default=False)
    ] = None,
    kg: Annotated[
        Path | None,
        typer.Option("--kg", help="Graph folder, for names and aliases of answers given as keys.", show_default=False),
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option("--benchmark", help="grailqability: score forms and answers by its rules.", show_default=False),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder of GrailQAbility, or one of its files.", show_default=False),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="With --benchmark: train, dev or test.")] = "test",
    ontology: Annotated[
        Path | None,
        typer.Option("--ontology", help="Folder of fb_roles, fb_types and reverse_properties.", show_default=False),
    ] = None,
    rules: Annotated[
        str, typer.Option("--rules", help="Whose F1 counts: script (the published evaluation) or paper.")
    ] = "script",
) -> None:
    """Score somebody's answers with our metrics, or by the rules of a benchmark."""
    if benchmark is not None:
        score_published(session, benchmark, predictions, data, split, ontology, rules, questions or kg)
        return
    published = {"data": data, "split": split, "ontology": ontology, "rules": rules}
    for option, value in published.items():
        if value not in (None, "test" if option == "split" else "script"):
            raise InputError(f"--{option} {str(value)!r} needs --benchmark grailqability")
    if questions is None:
        raise InputError("give --questions FILE with gold answers, or --benchmark grailqability with --data")
    from kgqa_core.evaluation.predictions import evaluate_predictions
    from kgqa_core.report.tables import score_tables

    result = evaluate_predictions(predictions, questions, kg=kg)
    for table in score_tables(result):
        session.console.print(table)
    if session.as_json:
        print_json(result)
