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

from collections.abc import Sequence
from functools import partial

from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, PublishedFiles, RowSource, folder_files
from kgqa_core.datasets.published.documents import FileHead
from kgqa_core.datasets.published.form_fields import complexity_of
from kgqa_core.datasets.published.rows import list_rows
from kgqa_core.datasets.published.webqsp_parses import WebQspParse, WebQspQuestion, form_of
from kgqa_core.errors import FormError
from kgqa_core.logic.forms import Form


def raw_question(question: WebQspQuestion, source: RowSource) -> RawQuestion:
    """A question as a raw question, of its first parse or of every one."""
    if source.options.parses == "all":
        return _of_every_parse(question, source.file.name)
    first = question.parses[0] if question.parses else WebQspParse()
    hops = len(first.chain)
    return {
        "id": question.id,
        "question": question.text,
        "topic_entities": [first.topic] if first.topic else [],
        "topic_names": {first.topic: first.topic_name} if first.topic and first.topic_name else {},
        "answers": [answer.argument for answer in first.answers],
        "answer_type": "entities" if first.answers and all(answer.entity for answer in first.answers) else None,
        "answer_aliases": {
            answer.argument: [answer.name] for answer in first.answers if answer.name and answer.name != answer.argument
        },
        "relation_path": list(first.chain),
        "complexity": None if not hops else "generic" if hops == 1 else "multi-hop",
        "hops": hops or None,
    }


def _of_every_parse(question: WebQspQuestion, file: str) -> RawQuestion:
    answers = [answer for parse in question.parses for answer in parse.answers]
    names: dict[str, dict[str, None]] = {}
    for answer in answers:
        if answer.name and answer.name != answer.argument:
            names.setdefault(answer.argument, {})[answer.name] = None
    chains = list(dict.fromkeys(parse.chain for parse in question.parses if parse.chain))
    raw: RawQuestion = {
        "id": question.id,
        "question": question.text,
        "topic_entities": list(dict.fromkeys(parse.topic for parse in question.parses if parse.topic)),
        "topic_names": {parse.topic: parse.topic_name for parse in question.parses if parse.topic and parse.topic_name},
        "answers": [answer.argument for answer in answers],
        "answer_type": "entities" if answers and all(answer.entity for answer in answers) else None,
        "answer_aliases": {argument: list(aliases) for argument, aliases in names.items()},
        "relation_paths": [list(chain) for chain in chains],
        "hops": max(map(len, chains), default=None),
    }
    if not answers:
        lost = "no parse has an answer" if question.parses else "it has no parse"
        raw |= {"answerable": False, "reason": f"{lost} in {file}"}
    parse, form, reason = _first_form(question.parses)
    if form is not None:
        raw |= {"s_expression": str(form), "complexity": complexity_of(form)}
    return raw | {"without_form": reason, "sparql": parse.sparql if parse is not None else None}


def _first_form(parses: Sequence[WebQspParse]) -> tuple[WebQspParse | None, Form | None, str | None]:
    """The first parse that a form writes, with the form; else the first parse, and why no form writes it."""
    reason = None
    for parse in parses:
        try:
            return parse, form_of(parse), None
        except FormError as fault:
            reason = reason or f"parse {parse.id}: {fault}"
    return (parses[0] if parses else None), None, reason


FILES = PublishedFiles(
    "WebQSP",
    folder_files("WebQSP", {split: (f"WebQSP.{split}.json",) for split in ("train", "test")}),
    partial(list_rows, within="Questions"),
    WebQspQuestion,
    raw_question,
    forms_given=True,
)


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
    loader=FILES.loader(without_dev=True),
    recognise=_is_webqsp,
    fields="an object with Questions, each with QuestionId, RawQuestion, Parses",
)
