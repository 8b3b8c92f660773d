"""`kgqa demo`: the bundled graph, what answers best on it beside its yardsticks, and three questions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table

from flows.cli import _session as common
from flows.cli._options import SetOption
from flows.cli._runs import run_lines, summarise
from flows.cli._session import Session, err, print_json
from kgqa_core.report.terminal import VisibleText
from kgqa_core.runs.records import newest_run

if TYPE_CHECKING:
    from kgqa_core.answering.reply import Answer

QUESTIONS = (
    "hey, whats the most populous country in Africa",
    "which countries border both France and Italy?",
    "Who is the president of France?",
)
"""The last is about a relation that the graph does not have."""
PROOF = 2
"""Triples of a proof that are shown."""
NEXT = (
    ("kgqa ask QUESTION", "your own question, with its proof"),
    ("kgqa run --kg FILE", "your own graph, measured; no questions are needed"),
    ("kgqa run --profile atlas", "the whole comparison: both retrievers, the rewriter, every format"),
    ("kgqa ui", "the pages of Prefect and MLflow"),
)


def demo(session: Session, settings: SetOption = None) -> None:
    """Build the bundled graph Atlas, train what answers best on it, score it on a sample, and ask three questions."""
    started = time.monotonic()
    profile = common.choose_profile("demo", settings=settings or ())
    home = session.begin(profile)
    with err.status("starting Prefect …"):
        from flows.pipeline import pipeline
    summary = pipeline(profile)
    record = newest_run(home, summary["run_id"])
    seconds = time.monotonic() - started
    with err.status("asking three questions …"):
        from kgqa_core.system import System

        system = System.from_run(home, summary["run_id"])
        answers = [system.ask(text) for text in QUESTIONS]
    console = err if session.as_json else common.out
    console.print(_scores(record["aggregates"]))
    for answer in answers:
        console.print(_answered(answer), soft_wrap=True)
    for line in (_work(record["stages"], seconds), *run_lines(record)):
        console.print(line, soft_wrap=True, highlight=False)
    for command, what in NEXT:
        console.print(VisibleText.assemble((f"{command:<26}", "bold"), f"{what}"), soft_wrap=True, highlight=False)
    if session.as_json:
        print_json(summarise(record) | {"asked": [answer.to_dict() for answer in answers]})


def _scores(aggregates: Mapping[str, Any]) -> Table:
    """A row for each answerer and what it reads, the best first."""
    from kgqa_core.evaluation.labels import knowledge_label, model_experiments, percent
    from kgqa_core.report.grid import score_cell

    rows = []
    for answerer, experiments in model_experiments(aggregates["scores"]).items():
        cells = ((experiment, score_cell(aggregates, experiment, "exact")) for experiment in experiments)
        rows += [(answerer, knowledge_label(experiment), cell) for experiment, cell in cells if cell is not None]
    rows.sort(key=lambda row: (-row[2].value, row[:2]))
    table = Table("answerer", "reads", title=f"Exact, of {rows[0][2].n:,} test questions", title_justify="left")
    table.add_column("%", justify="right")
    table.add_column("95 % interval", justify="right")
    for answerer, reads, cell in rows:
        interval = f"{percent(cell.low)} to {percent(cell.high)}"
        table.add_row(VisibleText(answerer), VisibleText(reads), percent(cell.value), interval)
    return table


def _answered(answer: Answer) -> RenderableType:
    """A question with its answer and its proof, or why there is none."""
    from kgqa_core.answering.reply import refusal_text
    from kgqa_core.report.console import confidence_text

    question = ("\n" + answer.question + "\n", "bold")
    if answer.answer is None:
        return VisibleText.assemble(question, f"  {refusal_text(answer.to_dict())}")
    sure = f"   ({sure})" if (sure := confidence_text(answer.to_dict())) else ""
    more = len(answer.proof) - PROOF
    rest = f"\n  … and {more} more" if more > 0 else ""
    proof = "".join(f"\n  {triple}" for triple in answer.proof[:PROOF])
    return VisibleText.assemble(question, (f"  {', '.join(answer.listed)}", "green"), f"{sure}{proof}{rest}")


def _work(stages: Sequence[Mapping[str, Any]], seconds: float) -> RenderableType:
    """How long it took, and which stages took most."""
    from kgqa_core.evaluation.labels import seconds_text

    made = sorted((stage for stage in stages if stage["status"] == "computed"), key=lambda stage: -stage["seconds"])
    most = ", ".join(f"{stage['name']} {seconds_text(stage['seconds'])}" for stage in made[:3])
    summary = f"{len(made)} of {len(stages)} stages computed in {seconds_text(seconds)}"
    return VisibleText.assemble(("\nWork", "bold"), f"         {summary}{': ' if most else ''}{most}")
