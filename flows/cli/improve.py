"""`kgqa improve`: questions that a home answers badly, and what mends each."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli._graph import GraphChoice, graph_or_run
from flows.cli._options import SystemChoice
from flows.cli._session import Session, err, print_json
from flows.cli.ask import open_system
from kgqa_core.errors import InputError
from kgqa_core.report.summary import ENOUGH, training_advice
from kgqa_core.report.terminal import VisibleText
from kgqa_core.store.artifacts import Home
from kgqa_core.types import ABSENT, ENTITY, FACT, RELATION, TYPE, UNREAD, UNSURE, Question, is_sentence

if TYPE_CHECKING:
    from kgqa_core.answering.reply import Answer

SURE = 0.7
"""Confidence below which an answer is listed."""
MOST = 500
"""Questions that are asked again, the latest."""
KINDS = tuple(kind.replace(" ", "_") for kind in (ABSENT, UNREAD, UNSURE))
"""Keys of the kinds of declines; an answer that is given but not sure is of the last."""
FIXES = {
    ENTITY: "the spelling, or a name: entities: {{{near}: [{words}]}}",
    RELATION: "a synonym: relations: {{…: [{words}]}}; a correction; or the facts",
    TYPE: "a type: types: {{…: [{words}]}}; or the facts",
    FACT: "the facts",
    UNREAD: "a synonym in {where}: {{{near}: [{words}]}}; or a correction",
}
"""What mends a question, by the reason that it has no answer."""
SHOWN = 3
"""Questions shown for one fix."""


def improve(
    session: Session,
    choice: SystemChoice,
    graph: GraphChoice,
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions", help="Question file to ask, too, or a .txt of a question a line.", show_default=False
        ),
    ] = None,
) -> None:
    """Ask a home's questions again, and list those without a sure reply by what is wrong, with what mends each.

    Its questions are those that its server answered lately, and those that the run declined.
    """
    home, record = graph_or_run(session, graph, choice.run_id)
    from kgqa_core.datasets.files.jsonl import read_question_file

    asked = [*_asked(home, record)]
    asked += [row["question"] for row in read_question_file(questions, gold=False)] if questions else []
    texts = [*dict.fromkeys(asked)][-MOST:]
    if not texts:
        raise InputError(
            f"the home {home.root} has no questions yet; ask on the page of `kgqa serve`, or name some with --questions"
        )
    with err.status(f"asking {len(texts)} questions again …"):
        system = open_system(home, record, choice)
        answers = system.answer([Question(str(n), text, language=system.language) for n, text in enumerate(texts)])
        weak = [one for one in answers if not one.reject and (one.answer is None or (one.confidence or 1.0) < SURE)]
        again = [Question(one.id, one.question, language=system.language) for one in weak]
        guesses = {one.id: one.listed for one in system.at_confidence(0.0).answer(again)}
    result = {"questions": len(texts), "weak": len(weak), **fixes(weak, guesses)}
    for line in _lines(result):
        session.console.print(VisibleText(line), soft_wrap=True)
    if session.as_json:
        print_json(result)


def _asked(home: Home, record: Mapping[str, Any]) -> Iterator[str]:
    """Questions that the server of a home answered, and those of its user that a run declined."""
    from kgqa_core.datasets.files.question import read_questions
    from kgqa_core.runs.records import artifact_folder
    from kgqa_core.serving.feedback import FILE, FeedbackStore
    from kgqa_core.serving.limits import SERVE_FOLDER
    from kgqa_core.store.tables import read_frame

    folder = home.root / SERVE_FOLDER
    if (folder / FILE).is_file():
        with contextlib.closing(FeedbackStore(folder)) as store:
            yield from store.questions()
    for stage in record["stages"]:
        if stage["name"].startswith("answers") and record["profile"]["questions"]["source"] != "generated":
            frame = read_frame(Path(stage["artifact"]["path"]) / "answers.parquet", ("question", "abstained"))
            declined = set(frame.filter(frame["abstained"])["question"])
            yield from (one.text for one in read_questions(artifact_folder(record, "questions")) if one.id in declined)


def fixes(weak: list[Answer], guesses: Mapping[str, list[str]]) -> dict[str, Any]:
    """What mends weak questions: lines of a names file, and by the kind of their answer what each needs.

    guesses: the best answers of the questions, by id.
    """
    names: dict[str, list[str]] = {}
    rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for one in weak:
        for suggestion in one.suggestions:
            names.setdefault(suggestion.line, []).append(one.question)
        if one.suggestions:
            continue
        kind = KINDS[2] if one.declined is None else one.declined.replace(" ", "_")
        row: dict[str, Any] = {"question": one.question, "missing": one.missing, "fix": _fix(one)}
        if kind == KINDS[0]:
            row |= {"reason": one.reason, "nearest": one.nearest}
        elif kind == KINDS[2]:
            answers = guesses.get(one.id, [])
            row = {"confidence": one.confidence, "correction": {"id": "", "question": one.question, "answers": answers}}
        rows[kind].append(row)
    rows[KINDS[2]].sort(key=lambda row: row["confidence"] or 0.0)
    for number, row in enumerate(rows[KINDS[2]], start=1):
        row["correction"]["id"] = str(number)
    return {"names": [{"line": line, "questions": texts} for line, texts in _by_count(names)], **rows}


def _fix(one: Answer) -> str:
    """What mends a question, with the line of a names file to fill in."""
    if is_sentence(one.missing) or one.reason not in FIXES:
        return "a correction"
    words = str(one.missing).split(", ") if one.reason == UNREAD else [one.missing]
    near = _relation(one) if one.reason == UNREAD else one.nearest
    where = "relations" if near else "relations, types or values"
    return "; ".join(FIXES[one.reason].format(words=word, near=near or "…", where=where) for word in words)


def _relation(one: Answer) -> str | None:
    """The key of the relation of the likeliest reading of a question, where that has one."""
    from kgqa_core.logic.forms import elements
    from kgqa_core.logic.parser import parse

    keys = elements(parse(one.readings[0].form)).relations if one.readings else ()
    return next(iter(keys)) if len(keys) == 1 else None


def _by_count(rows: Mapping[str, list[str]]) -> list[tuple[str, list[str]]]:
    return sorted(rows.items(), key=lambda row: -len(row[1]))


def _lines(result: Mapping[str, Any]) -> Iterator[str]:
    """What is printed for people."""
    yield f"{result['questions']} questions were asked again; {result['weak']} have no answer, or one that is not sure"
    titles = {
        "names": "A name for each, in the file of --names (lines of one section go together):",
        "not_in_this_graph": "Not in this graph; add the facts, or name what it is called here (`kgqa kg words`):",
        "not_understood": "Not understood; name what the words mean (`kgqa kg words`), or correct the answers:",
        "not_sure": "Not sure; correct the answers in a file of such lines, then `kgqa feedback import FILE`:",
    }
    for kind, title in titles.items():
        if result[kind]:
            yield f"\n{title}"
        for row in result[kind]:
            if kind == "names":
                yield f"  {row['line']}  # {'; '.join(row['questions'][:SHOWN])}"
            elif kind == "not_sure":
                sure = "none" if row["confidence"] is None else f"{row['confidence']:.2f}"
                yield f"  {json.dumps(row['correction'], ensure_ascii=False)}  # confidence {sure}"
            else:
                why = ": ".join(text for text in (row.get("reason"), row["missing"]) if text)
                near = f" (nearest: {row['nearest']})" if row.get("nearest") else ""
                yield f"  {row['question']}  # {why}{near}; fix: {row['fix']}"
    if result["weak"] >= ENOUGH:
        yield f"\n{training_advice(result['weak'])}"
