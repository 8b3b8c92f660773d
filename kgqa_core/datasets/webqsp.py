"""WebQSP, questions asked to a search engine with their parses over Freebase (Yih et al. 2016).

`WebQSP.{train,test}.json` (UTF-8 with a byte-order mark) hold `Questions`, each with `Parses`.  As in Wu et al. 2023
the first parse counts: its topic, its answers, and its inferential chain as the gold relation path, every relation
followed forward.  A question without topic or chain stays, without them; one without answers scores 0.  There is no
dev file: `load` holds out a tenth of train.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa_core.datasets.base import DatasetSpec, folder_loader
from kgqa_core.datasets.jsonl import RawQuestion, check_faults
from kgqa_core.errors import QuestionFileError
from kgqa_core.input_files import read_document

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
    """File of each split that is there.  Raises QuestionFileError when the folder is not WebQSP."""
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
        for number, value in enumerate(_questions(path), start=1):
            try:
                yield _parsed(value, split)
            except (KeyError, TypeError, AttributeError, ValueError) as fault:
                name = value.get("QuestionId") if isinstance(value, dict) else None
                faults.append(f"question {name or number}: {type(fault).__name__}: {fault}")
        check_faults(path, faults)


def read_webqsp(folder: Path) -> Iterator[RawQuestion]:
    """Raw questions of the splits that are there.  Raises QuestionFileError naming file and question."""
    for parsed in read_parsed(folder):
        hops = len(parsed.chain)
        yield {
            "id": parsed.id,
            "question": parsed.text,
            "topic_entities": [parsed.topic] if parsed.topic else [],
            "answers": [answer for answer, _ in parsed.answers],
            "answer_type": "entities" if parsed.entities else None,
            "answer_aliases": {answer: [name] for answer, name in parsed.answers if name and name != answer},
            "relation_path": list(parsed.chain),
            "split": parsed.split,
            "complexity": None if not hops else "generic" if hops == 1 else "multi-hop",
            "hops": hops or None,
        }


def _questions(path: Path) -> list[Any]:
    try:
        found = json.loads(read_document(path, QuestionFileError, needs="an object with `Questions`"))["Questions"]
    except (ValueError, KeyError, TypeError, RecursionError) as fault:
        raise QuestionFileError(
            f"{path} is not a WebQSP file ({type(fault).__name__}: {fault}); an object with `Questions` is needed"
        ) from None
    if not isinstance(found, list):
        raise QuestionFileError(f"{path}: `Questions` must be a list, but it is {type(found).__name__}")
    return found


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


WEBQSP = DatasetSpec(
    "WebQSP",
    "WebQuestions with SPARQL and inferential chains",
    "Freebase",
    "4,737",
    "Microsoft Research: WebQuestions Semantic Parses Dataset",
    "see its page",
    ("webqsp/WebQSP.*.json", "WebQSP/data/WebQSP.*.json", "WebQSP.*.json"),
    source="webqsp",
    loader=folder_loader(question_files, read_webqsp, without_dev=True),
)
