"""Stage `load`: the questions of a file or benchmark, linked to a graph, split, and checked for leakage."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kgqa_core.config import QuestionsOptions, QuestionSource
from kgqa_core.datasets.derived.folds import fold_rows
from kgqa_core.datasets.derived.found_paths import with_found_paths
from kgqa_core.datasets.derived.splits import hold_out, leakage, near_duplicates, split_by_group, write_leakage
from kgqa_core.datasets.files.jsonl import RawQuestion, read_question_file
from kgqa_core.datasets.files.link import LinkedQuestions, link
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.datasets.published.base import Reject
from kgqa_core.datasets.published.registry import loader_of, resolved
from kgqa_core.errors import QuestionFileError
from kgqa_core.kg.store import KgStore
from kgqa_core.metrics.normalise import normalise
from kgqa_core.monitor import Monitor
from kgqa_core.question_limits import question_fault
from kgqa_core.types import SPLITS, Question
from kgqa_core.workspace import Workspace

UNANSWERABLE = "unanswerable.jsonl"
"""Questions of the file that it marks as not answerable; there only where it has some."""

REJECTS = "rejects.jsonl"
"""Rows of the files that cannot be read, with the reason; there only where there are some."""

ALSO_TRAIN = "also_train"
"""Source of the questions of `questions.also_train`, in a `questions` artifact."""

CORRECTED = "corrected"
"""Folder of the questions of `questions.also_train` that are not trained on but test what the others taught; there only
where there are some."""

HELD_OUT = 0.1
"""Share of dev questions that stay dev when the others train, and of training questions where there is no dev split."""


def load(workspace: Workspace, *, kg: Path, options: QuestionsOptions, seed: int) -> dict[str, Any]:
    """Writes `questions.parquet`, `unlinkable.jsonl` and `leakage.json`, and returns counts.

    Rows of a benchmark's file that cannot be read are left out, counted, and listed in `rejects.jsonl`.
    Raises QuestionFileError when the file is unusable, nothing is left of it, or no topic entity is in the graph.
    """
    options = resolved(options)
    rows, rejects = read_source(options, seed)
    counts = load_rows(workspace, rows, kg=kg, options=options, seed=seed)
    if rejects:
        counts["rejects"] = len(rejects)
        _write_lines(workspace.out / REJECTS, [asdict(reject) for reject in rejects])
        workspace.monitor.note(
            f"{len(rejects)} of {len(rows) + len(rejects)} rows cannot be read and are left out. First: {rejects[0]}. "
            f"Correct them, or fetch the file again. List: {REJECTS}"
        )
    return counts


def read_rejects(questions: Path) -> list[Reject]:
    """The rows that a `questions` artifact leaves out."""
    path = questions / REJECTS
    return [Reject(**json.loads(line)) for line in path.read_text().splitlines()] if path.is_file() else []


def load_rows(
    workspace: Workspace, rows: Sequence[RawQuestion], *, kg: Path, options: QuestionsOptions, seed: int
) -> dict[str, Any]:
    """`load` of questions that are read already, as `jsonl.canonical` has them."""
    rows, unanswerable = _divided(rows, options)
    further, besides = dict[str, str](), list[Question]()
    if options.also_train and not options.unscored:
        added = _further(rows, options, workspace.monitor)
        rows, further = [*rows, *added], {row["id"]: row["split"] for row in added}
    workspace.monitor.progress(0, len(rows), "questions")
    with KgStore.open(kg) as store:
        linked = link(
            rows,
            store,
            language=options.language,
            source=options.name,
            gold=not options.unscored,
            match_names=options.match_names,
        )
        if (complete := loader_of(options.source).complete) is not None and not options.unscored:
            linked = replace(linked, questions=complete(linked.questions, store))
        if further:
            set_questions = [question for question in linked.questions if question.id not in further]
            besides = [question for question in linked.questions if question.id in further]
            besides = [replace(question, source=ALSO_TRAIN) for question in with_found_paths(besides, store)]
            linked = replace(
                linked, questions=[*set_questions, *(row for row in besides if further[row.id] == "train")]
            )
    without_answer = 0
    if options.require_answers and not options.unscored:
        linked, without_answer = _answered(linked, options)
    _check_linked(linked, options)
    questions = _with_splits(linked.questions, rows, options, seed)
    write_questions(workspace.out, questions)
    _write_corrected(workspace.out, questions, [row for row in besides if further[row.id] == "test"])
    unlinkable = sorted((question for question in questions if question.unlinkable), key=lambda question: question.id)
    _write_unlinkable(workspace.out, unlinkable)
    if unanswerable:
        write_unanswerable(workspace.out, unanswerable)
    table = leakage(questions)
    write_leakage(workspace.out, table)
    counts: dict[str, Any] = {
        "questions": _by_split(questions),
        "n_unlinkable": _by_split(unlinkable),
        "leaked": table["counts"]["leaked"],
        "leakage": table["counts"],
        "by_complexity": dict(sorted(Counter(question.complexity or "-" for question in questions).items())),
        "by_answer_type": dict(sorted(Counter(question.answer_type for question in questions).items())),
        **{name: count for name, count in linked.counts.items() if name != "n_unlinkable"},
    }
    if without_answer:
        counts["without_answer"] = without_answer
        workspace.monitor.note(f"{without_answer} questions have no answer in their file or this graph; left out")
    if unanswerable:
        counts["unanswerable"] = len(unanswerable)
        workspace.monitor.note(
            f"{len(unanswerable)} further questions are marked as not answerable; they are not scored: {UNANSWERABLE}"
        )
    _report(workspace.monitor, questions, unlinkable, counts, scored=not options.unscored)
    without_form = [row for row in rows if "without_form" in row]
    if without_form:
        workspace.monitor.note(
            f"{len(without_form)} questions have a query that no logical form writes; they have none. "
            f"First: {without_form[0]['id']}: {without_form[0]['without_form']}"
        )
    workspace.monitor.progress(len(rows), len(rows), "questions")
    return counts


def _further(rows: Sequence[RawQuestion], options: QuestionSource, monitor: Monitor) -> list[RawQuestion]:
    """The questions of `also_train`: those that train as often as they are to be there, those with split test once.

    What the set has for dev, test, or for a split that is yet to be drawn, in the same words, is left out.
    """
    further = read_question_file(Path(str(options.also_train)).expanduser())
    further = [row for row in further if row.get("answerable", True) and row["answers"]]
    held = {normalise(row["question"]) for row in rows if row["split"] != "train"}
    taken = [row for row in further if normalise(row["question"]) not in held]
    monitor.note(
        f"{len(taken)} questions of {options.also_train} train besides, or test what was learnt where their split is "
        f"test; {len(further) - len(taken)} are left out: the set itself has them for dev or test"
    )
    used = {row["id"] for row in rows}
    added = []
    for row in taken:
        split = "test" if row["split"] == "test" else "train"
        for time in range(options.also_train_repeat if split == "train" else 1):
            name = row["id"] if time == 0 else f"{row['id']}#{time + 1}"
            while name in used:
                name = f"further-{name}"
            used.add(name)
            added.append({**row, "id": name, "split": split})
    return added


def _write_corrected(out: Path, questions: Sequence[Question], tested: Sequence[Question]) -> None:
    """Writes those of `tested` that the graph can answer and that no training question is, or is nearly."""
    learnt = [question for question in questions if question.split == "train"]
    seen = near_duplicates(tested, [question for question in learnt if question.source == ALSO_TRAIN])
    words = {normalise(question.text) for question in learnt}
    left = [
        question
        for question in tested
        if not (question.unlinkable or question.id in seen or normalise(question.text) in words)
    ]
    if left:
        (out / CORRECTED).mkdir()
        write_questions(out / CORRECTED, left)


def sizes_of(rows: Sequence[RawQuestion], options: QuestionSource, seed: int) -> dict[str, int]:
    """Questions of each split as `load` will divide them, known before there is a graph.

    Where a file has no splits, topics are compared by key: two names of one entity count as two topics here.
    """
    if options.unscored:
        return {"test": len(rows)}
    rows, _ = _divided(rows, options)
    sizes = Counter(row["split"] for row in rows if row["split"] is not None)
    groups = {row["id"]: tuple(row["topic_entities"][:1]) for row in rows if row["split"] is None}
    sizes.update(split_by_group(groups, options.split_shares, seed).values())
    return {split: sizes[split] for split in SPLITS}


def _divided(rows: Sequence[RawQuestion], options: QuestionSource) -> tuple[list[RawQuestion], list[RawQuestion]]:
    """Questions that are scored, and those that are marked as not answerable; unscored ones are all answered."""
    without = [] if options.unscored else [row for row in rows if row.get("answerable") is False]
    lost = {row["id"] for row in without}
    return [row for row in rows if row["id"] not in lost], without


def write_unanswerable(out: Path, rows: Sequence[RawQuestion]) -> None:
    """Writes `unanswerable.jsonl`: id, question, split, topics, and why the graph does not hold the answer."""
    names = ("id", "question", "split", "topic_entities", "reason", "missing")
    _write_lines(out / UNANSWERABLE, [{name: row.get(name) for name in names} for row in rows])


def input_files(options: QuestionSource) -> list[Path]:
    """Files that the questions are read from, whose content decides the result.  Raises QuestionFileError."""
    options = resolved(options)
    return loader_of(options.source).files(options)


def read_raw(options: QuestionSource, seed: int) -> list[RawQuestion]:
    """`read_source` without the rows that cannot be read.  Raises QuestionFileError."""
    return read_source(options, seed)[0]


def read_source(options: QuestionSource, seed: int) -> tuple[list[RawQuestion], list[Reject]]:
    """Canonical raw questions of the source, after the choice of hops and of the splits, and rejected rows.

    A question file of ours, or one that is recognised as that of a benchmark (`registry.source_of`), or a benchmark's.
    Questions beyond `question_limits` are rejected.  Raises QuestionFileError, also when no other is left.
    """
    options = resolved(options)
    loader = loader_of(options.source)
    rows, rejects = _divide_rejects(loader.read(options, seed))
    rows, beyond = _within_limits(rows, str(options.path or options.source))
    rejects += beyond
    if beyond and not rows:
        raise QuestionFileError(f"{beyond[0]}; no question is left")
    if options.hops:
        rows = [row for row in rows if row["hops"] in options.hops]
    if options.test_from == "dev":
        rows = _test_on_dev(rows, options)
    if (loader.without_dev or options.test_from == "dev") and options.train_from == "train":
        train = [row["id"] for row in rows if row["split"] == "train"]
        if options.dev_size is not None and options.dev_size >= len(train):
            raise QuestionFileError(
                f"questions.dev_size is {options.dev_size}, and {options.path or options.source} has {len(train)} "
                "training questions; give fewer"
            )
        held_out = hold_out(train, options.dev_size / len(train) if options.dev_size else HELD_OUT, seed)
        rows = [{**row, "split": "dev"} if row["id"] in held_out else row for row in rows]
    if options.train_from == "dev":
        rows = _train_on_dev(rows, options, seed)
    if not rows:
        raise QuestionFileError(
            f"{options.path or options.source}: no question is left of hops {list(options.hops) or 'any'} with "
            f"train_from {options.train_from}; check questions.hops and questions.train_from"
        )
    if options.folds > 1 and not options.unscored:
        rows = fold_rows(rows, options.folds, options.fold, HELD_OUT, seed)
    return rows, rejects


def _divide_rejects(raw: Iterable[RawQuestion | Reject]) -> tuple[list[RawQuestion], list[Reject]]:
    rows: list[RawQuestion] = []
    rejects: list[Reject] = []
    for row in raw:
        if isinstance(row, Reject):
            rejects.append(row)
        else:
            rows.append(row)
    return rows, rejects


def _within_limits(rows: Sequence[RawQuestion], file: str) -> tuple[list[RawQuestion], list[Reject]]:
    good, beyond = [], []
    for row in rows:
        if fault := question_fault(row["question"], row["topic_entities"], row["dialogue"]):
            beyond.append(Reject(file, row["id"], fault))
        else:
            good.append(row)
    return good, beyond


def _test_on_dev(rows: list[RawQuestion], options: QuestionSource) -> list[RawQuestion]:
    """Dev questions are the test; a test split, if there is one, is left out."""
    if not any(row["split"] == "dev" for row in rows):
        raise QuestionFileError(
            f"{options.path or options.source} has no dev questions to measure on; set questions.test_from to test"
        )
    return [{**row, "split": "test"} if row["split"] == "dev" else row for row in rows if row["split"] != "test"]


def _train_on_dev(rows: list[RawQuestion], options: QuestionSource, seed: int) -> list[RawQuestion]:
    """Dev questions train, but for a seeded tenth; a train split, if there is one, is left out."""
    dev = [row["id"] for row in rows if row["split"] == "dev"]
    if not dev:
        raise QuestionFileError(
            f"{options.path or options.source} has no dev questions to train on; set questions.train_from to train"
        )
    held_out = hold_out(dev, HELD_OUT, seed)
    return [
        {**row, "split": "train"} if row["split"] == "dev" and row["id"] not in held_out else row
        for row in rows
        if row["split"] != "train"
    ]


def _with_splits(
    questions: Sequence[Question], rows: Sequence[RawQuestion], options: QuestionsOptions, seed: int
) -> list[Question]:
    """Questions whose file gives no split get one by topic entity; those to be answered only are all test."""
    if options.unscored:
        return [replace(question, split="test") for question in questions]
    open_ids = {row["id"] for row in rows if row["split"] is None}
    if not open_ids:
        return list(questions)
    groups = {
        question.id: min(question.topic_entities, default=question.topic_keys[:1])
        for question in questions
        if question.id in open_ids
    }
    chosen = split_by_group(groups, options.split_shares, seed)
    return [
        replace(question, split=chosen[question.id]) if question.id in chosen else question for question in questions
    ]


def _answered(linked: LinkedQuestions, options: QuestionsOptions) -> tuple[LinkedQuestions, int]:
    """Those that have an answer, and how many have none.  Raises QuestionFileError where none is left."""
    left = [question for question in linked.questions if question.answer_keys]
    if not left:
        raise QuestionFileError(
            f"{options.path or options.source}: none of {len(linked.questions)} questions has an answer in its file or "
            "this graph; do they belong to it? questions.require_answers=false keeps them"
        )
    return replace(linked, questions=left), len(linked.questions) - len(left)


def _check_linked(linked: LinkedQuestions, options: QuestionsOptions) -> None:
    if any(question.topic_entities for question in linked.questions):
        return
    if options.unscored and any(not question.topic_keys for question in linked.questions):
        return  # topics that are not named are found in the text, later
    first = linked.questions[0]
    raise QuestionFileError(
        f"{options.path or options.source}: none of {len(linked.questions)} questions has a topic entity of this "
        f"graph; question '{first.id}': {first.unlinkable}. Do the questions belong to this graph?"
    )


def _write_unlinkable(out: Path, questions: Sequence[Question]) -> None:
    rows = [{"id": row.id, "question": row.text, "reason": row.unlinkable, "split": row.split} for row in questions]
    _write_lines(out / "unlinkable.jsonl", rows)


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _by_split(questions: Sequence[Question]) -> dict[str, int]:
    results = Counter(question.split for question in questions)
    return {split: results[split] for split in SPLITS}


def _report(
    monitor: Monitor,
    questions: Sequence[Question],
    unlinkable: Sequence[Question],
    counts: Mapping[str, Any],
    *,
    scored: bool,
) -> None:
    sizes = ", ".join(f"{count} {split}" for split, count in counts["questions"].items())
    monitor.note(f"{len(questions)} questions" + (f" ({sizes})" if scored else ""))
    if not scored:
        unnamed = sum(not question.topic_keys for question in unlinkable)
        if unnamed:
            monitor.note(f"{unnamed} of {len(questions)} questions name no topic entity: their text is searched for it")
        unlinkable = [question for question in unlinkable if question.topic_keys]
        if unlinkable:
            monitor.note(
                f"{len(unlinkable)} of {len(questions)} questions name a topic entity that is not in this graph. "
                f"First: {unlinkable[0].id}: {unlinkable[0].unlinkable}. List: unlinkable.jsonl"
            )
    elif unlinkable:
        monitor.note(
            f"{len(unlinkable)} of {len(questions)} questions cannot be answered from this graph; they are left out "
            f"of training and score 0 in test. First: {unlinkable[0].id}: {unlinkable[0].unlinkable}. "
            "List: unlinkable.jsonl"
        )
    if counts["ambiguous_topics"]:
        monitor.note(
            f"{counts['ambiguous_topics']} questions name a topic by a label of several entities; all are used"
        )
    if counts["paths_unknown"]:
        monitor.note(f"{counts['paths_unknown']} relation paths name a relation that is not in the graph; left out")
    if counts["leaked"]:
        table = counts["leakage"]
        monitor.note(
            f"{counts['leaked']} test questions are in train: {table['test_same_text']} with the same text, "
            f"{table['test_same_topic_and_path']} with the same topic and path; scores are given without them too"
        )
