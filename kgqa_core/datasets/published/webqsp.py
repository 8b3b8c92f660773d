"""WebQSP, questions asked to a search engine with their parses over Freebase (Yih et al. 2016).

`WebQSP.{train,test}.json` (UTF-8 with a byte-order mark) hold `Questions`, each with `Parses`.  As in Wu et al. 2023
the first parse counts: its topic, its answers, and its inferential chain as the gold relation path, every relation
followed forward.  A question without topic or chain stays, without them; one without answers scores 0.  There is no
dev file: `load` holds out a tenth of train.

With `questions.parses: all` every parse counts (`webqsp_parses`): the topics, chains and answers of all of them, and of
the first that a form writes its s-expression, with all its constraints, and its SPARQL.  A question that no parse has
an answer of is marked as not answerable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.jsonl import RawQuestion, canonical, check_faults
from kgqa_core.datasets.published.base import DatasetSpec, Loader, Reject, path_of
from kgqa_core.datasets.published.documents import FileHead, read_list
from kgqa_core.datasets.published.form_fields import complexity_of
from kgqa_core.datasets.published.json_rows import read_each
from kgqa_core.datasets.published.webqsp_parses import (
    WebQspParse,
    WebQspQuestion,
    form_of,
    read_question,
    read_questions,
)
from kgqa_core.errors import FormError, QuestionFileError
from kgqa_core.logic.forms import Form

SPLIT_FILES = {"train": "WebQSP.train.json", "test": "WebQSP.test.json"}


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question with its first parse.

    mention: the words of the question that name the topic.  topic: a Freebase id such as `m.06w2sn5`.
    chain: relations from topic to answers; empty where the parse has none.  answers: id or value, and name or None.
    entities: whether all answers are entities.
    """

    id: str
    text: str
    split: str
    mention: str | None
    topic: str | None
    topic_name: str | None
    chain: tuple[str, ...]
    answers: tuple[tuple[str, str | None], ...]
    entities: bool


def question_files(folder: Path) -> dict[str, Path]:
    """File of each split that is there, or the split `""` and the one file that `folder` is.

    Raises QuestionFileError when it is not WebQSP.
    """
    if not folder.is_dir() and folder.exists():
        return {"": folder}
    if not folder.is_dir():
        raise QuestionFileError(f"{folder} is not a folder; questions.path must name the folder of WebQSP")
    home = folder / "data" if (folder / "data").is_dir() else folder
    files = {split: home / name for split, name in SPLIT_FILES.items() if (home / name).is_file()}
    if not files:
        raise QuestionFileError(f"{home} holds none of {', '.join(SPLIT_FILES.values())}; is it the folder of WebQSP?")
    return files


def read_parsed(folder: Path) -> Iterator[ParsedQuestion]:
    """Questions with their first parse, in file order.  Raises QuestionFileError naming file and question."""
    for split, path in question_files(folder).items():
        faults: list[str] = []
        for number, value in enumerate(read_list(path, "Questions"), start=1):
            try:
                yield _parsed(value, split)
            except (KeyError, TypeError, AttributeError, ValueError) as fault:
                name = value.get("QuestionId") if isinstance(value, dict) else None
                faults.append(f"question {name or number}: {type(fault).__name__}: {fault}")
        check_faults(path, faults)


def read_parses(folder: Path) -> Iterator[WebQspQuestion | Reject]:
    """Questions with all their parses, in file order.  Raises QuestionFileError where a file is no WebQSP."""
    for split, path in question_files(folder).items():
        yield from read_questions(path, read_list(path, "Questions"), split)


def read_webqsp(folder: Path, *, every_parse: bool = False) -> Iterator[RawQuestion | Reject]:
    """Raw questions of the splits that are there, of the first parse or of every one.  Raises QuestionFileError."""
    for split, path in question_files(folder).items():
        read_row = partial(_of_every_parse, file=path.name) if every_parse else _of_first_parse
        yield from read_each(path, read_list(path, "Questions"), partial(read_row, split=split), "WebQSP")


def _of_first_parse(value: dict[str, Any], split: str) -> RawQuestion:
    try:
        parsed = _parsed(value, split)
    except (KeyError, TypeError, AttributeError) as fault:
        raise ValueError(
            f"{type(fault).__name__}: {fault}; a row of WebQSP has QuestionId, RawQuestion, Parses"
        ) from None
    hops = len(parsed.chain)
    return canonical(
        {
            "id": parsed.id,
            "question": parsed.text,
            "topic_entities": [parsed.topic] if parsed.topic else [],
            "answers": [answer for answer, _ in parsed.answers],
            "answer_type": "entities" if parsed.entities else None,
            "answer_aliases": {answer: [name] for answer, name in parsed.answers if name and name != answer},
            "relation_path": list(parsed.chain),
            "split": parsed.split or None,
            "complexity": None if not hops else "generic" if hops == 1 else "multi-hop",
            "hops": hops or None,
        }
    )


def _of_every_parse(value: dict[str, Any], split: str, file: str) -> RawQuestion:
    question = read_question(value, split)
    answers = [answer for parse in question.parses for answer in parse.answers]
    names: dict[str, dict[str, None]] = {}
    for answer in answers:
        if answer.name and answer.name != answer.argument:
            names.setdefault(answer.argument, {})[answer.name] = None
    chains = list(dict.fromkeys(parse.chain for parse in question.parses if parse.chain))
    row: dict[str, Any] = {
        "id": question.id,
        "question": question.text,
        "topic_entities": list(dict.fromkeys(parse.topic for parse in question.parses if parse.topic)),
        "answers": [answer.argument for answer in answers],
        "answer_type": "entities" if answers and all(answer.entity for answer in answers) else None,
        "answer_aliases": {argument: list(own) for argument, own in names.items()},
        "relation_paths": [list(chain) for chain in chains],
        "split": split or None,
        "hops": max(map(len, chains), default=None),
    }
    if not answers:
        lost = "no parse has an answer" if question.parses else "it has no parse"
        row |= {"answerable": False, "reason": f"{lost} in {file}"}
    parse, form, reason = _first_form(question.parses)
    if form is not None:
        row |= {"s_expression": str(form), "complexity": complexity_of(form)}
    found = canonical(row)
    if reason is not None:
        found["without_form"] = reason
    if parse is not None and parse.sparql is not None:
        found["sparql"] = parse.sparql
    return found


def _first_form(parses: Sequence[WebQspParse]) -> tuple[WebQspParse | None, Form | None, str | None]:
    """The first parse that a form writes, with the form; else the first parse, and why no form writes it."""
    reason = None
    for parse in parses:
        try:
            return parse, form_of(parse), None
        except FormError as fault:
            reason = reason or f"parse {parse.id}: {fault}"
    return (parses[0] if parses else None), None, reason


def _parsed(value: dict[str, Any], split: str) -> ParsedQuestion:
    parses = value["Parses"]
    first: dict[str, Any] = parses[0] if parses else {}
    answers = [
        (str(answer["AnswerArgument"]).strip(), answer.get("EntityName"), answer.get("AnswerType"))
        for answer in first.get("Answers") or ()
    ]
    return ParsedQuestion(
        value["QuestionId"],
        value["RawQuestion"].strip(),
        split,
        first.get("PotentialTopicEntityMention") or None,
        first.get("TopicEntityMid") or None,
        first.get("TopicEntityName") or None,
        tuple(first.get("InferentialChain") or ()),
        tuple((answer, name) for answer, name, _ in answers),
        bool(answers) and all(kind == "Entity" for _, _, kind in answers),
    )


def read(options: QuestionSource, seed: int) -> Iterator[RawQuestion | Reject]:
    """Canonical raw questions, as the options take them."""
    return read_webqsp(path_of(options), every_parse=options.parses == "all")


def _is_webqsp(head: FileHead) -> bool:
    questions = head.first.get("Questions") if head.shape == "object" else None
    return (
        isinstance(questions, list) and bool(questions) and isinstance(questions[0], dict) and "Parses" in questions[0]
    )


WEBQSP = DatasetSpec(
    "WebQSP",
    "WebQuestions with SPARQL and inferential chains",
    "Freebase",
    "4,737",
    "Microsoft Research: WebQuestions Semantic Parses Dataset",
    "see its page",
    ("webqsp/WebQSP.*.json", "WebQSP/data/WebQSP.*.json", "WebQSP.*.json"),
    source="webqsp",
    loader=Loader(
        lambda options: list(question_files(path_of(options)).values()),
        read,
        validated=True,
        without_dev=True,
    ),
    recognise=_is_webqsp,
    fields="an object with Questions, each with QuestionId, RawQuestion, Parses",
)
